"""Layers of the kinds that people write because their framework has none: one or two of each kind, as they come."""

import numpy as np

from layerc import Param, i32, layer, real


# -- normalisation ------------------------------------------------------------------------------------------------
@layer
def group_norm(x: real["C H W"], weight: Param[real["C"]], bias: Param[real["C"]], *, groups: int = 8) -> real["C H W"]:
    """Over the channels of one group and all pixels, for each example."""
    c, h, w = x.shape
    g = x.reshape(groups, c // groups, h, w)
    centred = g - np.mean(g, axis=(1, 2, 3), keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=(1, 2, 3), keepdims=True) + 1e-5)
    return scaled.reshape(c, h, w) * weight[:, None, None] + bias[:, None, None]


@layer(batched=True)
def batch_norm_last(x: real["N H W C"], weight: Param[real["C"]], bias: Param[real["C"]]) -> real["N H W C"]:
    """Batch normalisation, channels last."""
    mean = np.mean(x, axis=(0, 1, 2))
    variance = np.mean((x - mean) ** 2, axis=(0, 1, 2))
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


@layer
def rms_norm(x: real["T D"], weight: Param[real["D"]]) -> real["T D"]:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight


@layer
def weight_standard(w: real["I H W"]) -> real["I H W"]:
    """The kernels of a convolution, each with mean 0 and variance 1."""
    centred = w - np.mean(w)
    return centred / np.sqrt(np.mean(centred**2) + 1e-5)


# -- activations --------------------------------------------------------------------------------------------------
@layer
def hard_swish(x: real["C H W"]) -> real["C H W"]:
    return x * np.clip(x + 3.0, 0.0, 6.0) / 6.0


@layer
def prelu_last(x: real["H W C"], slope: Param[real["C"]]) -> real["H W C"]:
    """A slope for each channel, channels last."""
    return np.where(x > 0, x, slope * x)


# -- softmax and losses -------------------------------------------------------------------------------------------
@layer
def masked_softmax(x: real["T S"], length: i32) -> real["T S"]:
    """A softmax over the first `length` columns; the others are 0."""
    s = x.shape[1]
    inside = np.arange(s) < length
    e = np.exp(np.where(inside, x, -np.inf) - np.max(np.where(inside, x, -np.inf), axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@layer
def focal_loss(x: real["K"], label: i32, *, gamma: float = 2.0) -> real[""]:
    """-(1 - p)^gamma log p of the right class (Lin et al. 2017)."""
    shifted = x - np.max(x)
    log_p = shifted[label] - np.log(np.sum(np.exp(shifted)))
    return -((1.0 - np.exp(log_p)) ** gamma) * log_p


@layer
def contrastive(a: real["D"], b: real["D"], same: i32, *, margin: float = 0.5) -> real[""]:
    """Of the cosine of two vectors: 1 - cos of a pair, what is above the margin of others."""
    cosine = np.sum(a * b) / (np.sqrt(np.sum(a * a)) * np.sqrt(np.sum(b * b)) + 1e-8)
    return 1.0 - cosine if same == 1 else max(cosine - margin, 0.0)


# -- dynamic programming ------------------------------------------------------------------------------------------
@layer
def ctc(x: real["T K"], label: i32["L"]) -> real[""]:
    """Connectionist temporal classification (Graves et al. 2006) of a softmax, blank 0: all labels, all steps."""
    shifted = x - np.max(x, axis=1, keepdims=True)
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    steps, length = x.shape[0], label.shape[0]
    states = 2 * length + 1
    alpha = np.full(states, -1e30)
    alpha[0] = log_p[0, 0]
    alpha[1] = log_p[0, label[0]]
    for t in range(1, steps):
        before = alpha.copy()
        for s in range(states):
            k = label[s // 2] if s % 2 == 1 else 0
            best = before[s]
            if s >= 1:
                best = np.logaddexp(best, before[s - 1])
            if s >= 3 and s % 2 == 1:
                if label[s // 2] != label[s // 2 - 1]:
                    best = np.logaddexp(best, before[s - 2])
            alpha[s] = best + log_p[t, k]
    return -np.logaddexp(alpha[states - 1], alpha[states - 2])


@layer
def hmm(emission: real["T S"], transition: Param[real["S S"]], initial: Param[real["S"]]) -> real[""]:
    """The logarithm of a hidden Markov model's likelihood, scaled at each step."""
    alpha = np.exp(initial + emission[0])
    total = np.sum(alpha)
    alpha = alpha / total
    result = np.log(total)
    step = np.exp(transition)
    for t in range(1, emission.shape[0]):
        alpha = (alpha @ step) * np.exp(emission[t])
        total = np.sum(alpha)
        alpha = alpha / total
        result += np.log(total)
    return result


# -- filters over time, recurrences -------------------------------------------------------------------------------
@layer
def biquad(x: real["T"], b: Param[real["3"]], a: Param[real["2"]]) -> real["T"]:
    """A recursive filter of second order."""
    y = np.zeros_like(x)
    x1, x2, y1, y2 = 0.0, 0.0, 0.0, 0.0
    for t in range(x.shape[0]):
        out = b[0] * x[t] + b[1] * x1 + b[2] * x2 - a[0] * y1 - a[1] * y2
        x2, x1, y2, y1 = x1, x[t], y1, out
        y[t] = out
    return y


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


@layer
def lstm(
    x: real["T D"], w_input: Param[real["D 4*H"]], w_hidden: Param[real["H 4*H"]], bias: Param[real["4*H"]]
) -> real["T H"]:
    width = w_hidden.shape[0]
    h, c = np.zeros(width), np.zeros(width)
    y = np.zeros((x.shape[0], width))
    for t in range(x.shape[0]):
        gates = x[t] @ w_input + h @ w_hidden + bias
        c = _sigmoid(gates[width : 2 * width]) * c + _sigmoid(gates[:width]) * np.tanh(gates[2 * width : 3 * width])
        h = _sigmoid(gates[3 * width :]) * np.tanh(c)
        y[t] = h
    return y


@layer
def linear_attention(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """Causal, by a state of outer products."""
    steps, d = q.shape
    state = np.zeros((d, d))
    y = np.zeros((steps, d))
    for t in range(steps):
        state = state + np.outer(k[t], v[t])
        y[t] = q[t] @ state
    return y


# -- small matrices -----------------------------------------------------------------------------------------------
@layer
def cholesky(a: real["D D"]) -> real["D D"]:
    n = a.shape[0]
    l = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, i] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l


@layer
def gauss_jordan(a: real["D D"]) -> real["D D"]:
    """The inverse of a matrix that needs no pivots."""
    n = a.shape[0]
    m = np.zeros((n, 2 * n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, n + i] = 1.0
    for i in range(n):
        pivot = m[i, i]
        for j in range(2 * n):
            m[i, j] = m[i, j] / pivot
        for k in range(n):
            if k != i:
                factor = m[k, i]
                for j in range(2 * n):
                    m[k, j] -= factor * m[i, j]
    return m[:, n:]


# -- attention ----------------------------------------------------------------------------------------------------
@layer
def causal_attention(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    t, d = q.shape
    scores = q @ k.T / np.sqrt(d)
    scores = np.where(np.arange(t)[:, None] >= np.arange(t)[None, :], scores, -np.inf)
    e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return (e / np.sum(e, axis=1, keepdims=True)) @ v


# -- gather and scatter -------------------------------------------------------------------------------------------
@layer
def embedding_bag(index: i32["L"], table: Param[real["V D"]]) -> real["D"]:
    """The mean of the rows that an example names."""
    total = np.zeros(table.shape[1])
    for i in range(index.shape[0]):
        total += table[index[i]]
    return total / index.shape[0]


@layer(batched=True)
def neighbour_sum(x: real["V D"], source: i32["E"], target: i32["E"]) -> real["V D"]:
    """A step of message passing: each node adds up its neighbours."""
    y = np.zeros_like(x)
    for e in range(source.shape[0]):
        y[target[e]] += x[source[e]]
    return y


# -- windows ------------------------------------------------------------------------------------------------------
@layer
def lp_pool(x: real["C H W"], *, p: float = 3.0) -> real["C H-2 W-2"]:
    """The p-norm of every 3 x 3 window."""
    c, h, w = x.shape
    y = np.zeros((c, h - 2, w - 2))
    for k in range(c):
        for i in range(h - 2):
            for j in range(w - 2):
                s = 0.0
                for a in range(3):
                    for b in range(3):
                        s += x[k, i + a, j + b] ** p
                y[k, i, j] = s ** (1 / p)
    return y


@layer
def depthwise(x: real["C H W"], weight: Param[real["C 3 3"]]) -> real["C H W"]:
    """A 3 x 3 filter for each channel, zeros around."""
    c, h, w = x.shape
    y = np.zeros((c, h, w))
    for k in range(c):
        for i in range(h):
            for j in range(w):
                for a in range(3):
                    for b in range(3):
                        if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                            y[k, i, j] += x[k, i + a - 1, j + b - 1] * weight[k, a, b]
    return y


@layer
def upsample(x: real["C H W"]) -> real["C 2*H 2*W"]:
    """Bilinear, twice the size, as images are resized (half-pixel centres)."""
    c, h, w = x.shape
    y = np.zeros((c, 2 * h, 2 * w))
    for k in range(c):
        for i in range(2 * h):
            for j in range(2 * w):
                si = max((i + 0.5) / 2 - 0.5, 0.0)
                sj = max((j + 0.5) / 2 - 0.5, 0.0)
                i0, j0 = int(si), int(sj)
                i1, j1 = min(i0 + 1, h - 1), min(j0 + 1, w - 1)
                u, v = si - i0, sj - j0
                top = x[k, i0, j0] * (1 - v) + x[k, i0, j1] * v
                bottom = x[k, i1, j0] * (1 - v) + x[k, i1, j1] * v
                y[k, i, j] = top * (1 - u) + bottom * u
    return y


# -- an iteration for each element --------------------------------------------------------------------------------
@layer
def lambert_w(x: real["D"]) -> real["D"]:
    """W(x) of x >= 0, by Halley's iteration, until it stands."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        w = np.log1p(x[i])
        step = 1.0
        trips = 0
        while abs(step) > 1e-6 * (1.0 + abs(w)) and trips < 20:
            e = np.exp(w)
            f = w * e - x[i]
            step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0))
            w = w - step
            trips += 1
        y[i] = w
    return y
