"""Networks, solvers, recurrences and searches, each in one of the ways in which people write them."""

import math

import numpy as np
from scipy.special import expit, log_softmax, logsumexp, softmax

from layerc import Param, bool_, i64, layer, real

NEG = -1e9


def relu(x):
    return np.maximum(x, 0)


def batchnorm2d(x, eps=1e-5):
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


def conv2d(input, weights):
    K = weights.shape[0]
    N = input.shape[0]
    H_out = input.shape[1] - K + 1
    W_out = input.shape[2] - K + 1
    C_out = weights.shape[3]
    output = np.empty((N, H_out, W_out, C_out))
    for i in range(H_out):
        for j in range(W_out):
            output[:, i, j, :] = np.sum(input[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3))
    return output


def maxpool2d(x):
    output = np.empty((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]))
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


@layer(batched=True)
def lenet(input: real["N 8 8 1"], conv1: Param[real["3 3 1 2"]], fc: Param[real["18 4"]], b: Param[real["4"]]):  # N=2 edge=1
    x = relu(conv2d(input, conv1))
    x = maxpool2d(x)
    x = np.reshape(x, (x.shape[0], 18))
    return relu(x @ fc + b)


@layer(batched=True)
def resnet_block(input: real["N H W C"], conv1: Param[real["1 1 C D"]], conv2: Param[real["3 3 D D"]], conv3: Param[real["1 1 D C"]]):  # N=2 H=4 W=4 C=2 D=2 edge=-
    padded = np.zeros((input.shape[0], input.shape[1] + 2, input.shape[2] + 2, conv1.shape[3]))
    padded[:, 1:-1, 1:-1, :] = conv2d(input, conv1)
    x = relu(batchnorm2d(padded))
    x = conv2d(x, conv2)
    x = relu(batchnorm2d(x))
    x = conv2d(x, conv3)
    x = batchnorm2d(x)
    return relu(x + input)


@layer(batched=True)
def mlp3(x: real["N I"], w1: Param[real["I H"]], b1: Param[real["H"]], w2: Param[real["H O"]], b2: Param[real["O"]]):  # N=3 I=4 H=5 O=2 edge=1
    h = relu(x @ w1 + b1)
    logits = h @ w2 + b2
    tmp_max = np.max(logits, axis=-1, keepdims=True)
    tmp_out = np.exp(logits - tmp_max)
    return tmp_out / np.sum(tmp_out, axis=-1, keepdims=True)


@layer
def lstm_sequence(x: real["T I"], wx: Param[real["4*H I"]], wh: Param[real["4*H H"]], b: Param[real["4*H"]]):  # T=3 I=2 H=2
    H = wh.shape[1]
    h, c = np.zeros(H), np.zeros(H)
    out = np.zeros((x.shape[0], H))
    for t, x_t in enumerate(x):
        gates = wx @ x_t + wh @ h + b
        i, f, g, o = gates[:H], gates[H : 2 * H], gates[2 * H : 3 * H], gates[3 * H :]
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        out[t] = h
    return out, h, c


@layer
def gru_list(x: real["T I"], wz: real["H I+H"], wr: real["H I+H"], wn: real["H I+H"]):  # T=3 I=2 H=2 edge=1
    h = np.zeros(wz.shape[0])
    outs = []
    for t in range(x.shape[0]):
        xh = np.concatenate([x[t], h])
        z, r = expit(wz @ xh), expit(wr @ xh)
        n = np.tanh(wn @ np.concatenate((x[t], r * h)))
        h = (1 - z) * n + z * h
        outs.append(h)
    return np.array(outs)


@layer
def attention_masked(q: real["T D"], k: real["U D"], v: real["U E"], mask: bool_["T U"]):  # T=3 U=4 D=2 E=2 edge=1
    s = q @ k.T / math.sqrt(3.0)
    s = np.where(mask, s, NEG)
    s -= s.max(axis=1, keepdims=True)
    p = np.exp(s)
    p /= p.sum(axis=1, keepdims=True)
    return p @ v


@layer
def attention_causal(x: real["T D"], *, heads: int = 2):  # T=3 D=4 edge=-
    T, D = x.shape
    causal = np.tril(np.ones((T, T))) > 0
    y = np.zeros_like(x)
    for h in range(heads):
        part = x[:, h * (D // heads) : (h + 1) * (D // heads)]
        s = np.where(causal, part @ part.T, -np.inf)
        y[:, h * (D // heads) : (h + 1) * (D // heads)] = softmax(s, axis=1) @ part
    return y


@layer
def soft_dtw(a: real["N D"], b: real["M D"], gamma: real):  # N=3 M=4 D=2 low=0.3 high=1.5 edge=1
    d = np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
    r = np.full((a.shape[0] + 1, b.shape[0] + 1), 1e8)
    r[0, 0] = 0
    for i in range(1, a.shape[0] + 1):
        for j in range(1, b.shape[0] + 1):
            z = np.array([r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]]) / -gamma
            r[i, j] = d[i - 1, j - 1] - gamma * logsumexp(z)
    return r[-1, -1]


@layer
def ctc(logits: real["T V"], labels: i64["L"]):  # T=5 V=3 L=2 ints=1:3 edge=-
    T, V = logits.shape
    L = 2 * labels.shape[0] + 1
    lp = log_softmax(logits, axis=1)
    ext = np.zeros(L, dtype=np.int64)
    ext[1::2] = labels
    alpha = np.full((T, L), NEG)
    alpha[0, 0], alpha[0, 1] = lp[0, 0], lp[0, ext[1]]
    for t in range(1, T):
        for s in range(L):
            a = alpha[t - 1, s]
            if s > 0:
                a = np.logaddexp(a, alpha[t - 1, s - 1])
            if s > 1 and ext[s] != 0 and ext[s] != ext[s - 2]:
                a = np.logaddexp(a, alpha[t - 1, s - 2])
            alpha[t, s] = a + lp[t, ext[s]]
    return -np.logaddexp(alpha[-1, -1], alpha[-1, -2])


@layer
def crf(emissions: real["T K"], transitions: real["K K"], tags: i64["T"]):  # T=4 K=3 edge=1
    score = emissions[0, tags[0]]
    alpha = emissions[0]
    for t in range(1, emissions.shape[0]):
        score += transitions[tags[t - 1], tags[t]] + emissions[t, tags[t]]
        alpha = logsumexp(alpha[:, None] + transitions, axis=0) + emissions[t]
    return logsumexp(alpha) - score


@layer
def kalman(z: real["T M"], F: real["N N"], H: real["M N"], q: real, r: real):  # T=3 M=2 N=2 low=0.2 high=0.9 edge=-
    x, P = np.zeros(F.shape[0]), np.eye(F.shape[0])
    xs = np.zeros((z.shape[0], F.shape[0]))
    ll = 0.0
    for t in range(z.shape[0]):
        x, P = F @ x, F @ P @ F.T + q * np.eye(F.shape[0])
        S = H @ P @ H.T + r * np.eye(H.shape[0])
        K = np.linalg.solve(S, H @ P).T
        e = z[t] - H @ x
        ll -= 0.5 * (e @ np.linalg.solve(S, e) + np.log(np.linalg.det(S)))
        x = x + K @ e
        P = (np.eye(F.shape[0]) - K @ H) @ P
        xs[t] = x
    return xs, ll


@layer
def bilinear_warp(img: real["H W"], sy: real["H W"], sx: real["H W"]):  # H=4 W=5 low=-0.9 high=0.9 edge=-
    H, W = img.shape
    yy = np.clip(np.arange(H)[:, None] + sy, 0.0, H - 1.001)
    xx = np.clip(np.arange(W)[None, :] + sx, 0.0, W - 1.001)
    y0, x0 = np.floor(yy).astype(np.int64), np.floor(xx).astype(np.int64)
    wy, wx = yy - y0, xx - x0
    top = img[y0, x0] * (1 - wx) + img[y0, x0 + 1] * wx
    low = img[y0 + 1, x0] * (1 - wx) + img[y0 + 1, x0 + 1] * wx
    return top * (1 - wy) + low * wy


@layer
def sinkhorn(C: real["N M"], *, eps: float = 0.5, n: int = 4):  # N=3 M=4 edge=1
    K = np.exp(-C / eps)
    u, v = np.ones(C.shape[0]), np.ones(C.shape[1])
    for _ in range(n):
        u = 1.0 / C.shape[0] / (K @ v)
        v = 1.0 / C.shape[1] / (K.T @ u)
    P = u[:, None] * K * v
    return P, np.sum(P * C)


@layer
def newton_root(a: real["N"]):  # N=4 low=0.5 high=3
    x = np.ones_like(a)
    for _ in range(20):
        step = (x * x - a) / (2 * x)
        x = x - step
        if np.max(np.abs(step)) < 1e-13 if step.shape[0] > 0 else True:
            break
    return x


@layer
def householder_qr(A: real["M N"]):  # M=4 N=3 edge=-
    m, n = A.shape
    R = A.copy()
    Q = np.eye(m)
    for k in range(n):
        x = R[k:, k].copy()
        x[0] += np.copysign(np.linalg.norm(x), x[0])
        v = x / np.linalg.norm(x)
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
        Q[:, k:] -= 2.0 * np.outer(Q[:, k:] @ v, v)
    return Q, R


@layer
def givens_qr(A: real["N N"]):  # N=3 edge=-
    n = A.shape[0]
    for j in range(n):
        for i in range(n - 1, j, -1):
            a, b = A[i - 1, j], A[i, j]
            r = np.hypot(a, b)
            c, s = a / r, b / r
            top, low = A[i - 1].copy(), A[i].copy()
            A[i - 1] = c * top + s * low
            A[i] = -s * top + c * low
    return A


@layer
def levinson(r: real["N"], y: real["N"]):  # N=4 low=-0.3 high=0.3 edge=-
    n = r.shape[0]
    d = 3.0
    f = np.zeros(n)
    x = np.zeros(n)
    f[0] = 1 / d
    x[0] = y[0] / d
    for k in range(1, n):
        ef = r[1 : k + 1] @ f[:k][::-1]
        g = f[:k][::-1].copy()
        f[1 : k + 1] -= 0.0
        new = np.zeros(n)
        new[:k] = f[:k] / (1 - ef * ef)
        new[1 : k + 1] -= ef / (1 - ef * ef) * g
        f = new
        ex = r[1 : k + 1] @ x[:k][::-1]
        x[: k + 1] += (y[k] - ex) * f[: k + 1][::-1]
    return x


@layer
def edit_distance(a: i64["N"], b: i64["M"]):  # N=4 M=3
    prev = np.arange(b.shape[0] + 1)
    for i in range(a.shape[0]):
        cur = np.zeros_like(prev)
        cur[0] = i + 1
        for j in range(b.shape[0]):
            cost = 0 if a[i] == b[j] else 1
            cur[j + 1] = min(prev[j + 1] + 1, cur[j] + 1, prev[j] + cost)
        prev = cur
    return prev[-1]


@layer
def prefix_scan(x: real["8"]):  #
    y = x.copy()
    d = 1
    while d < 8:
        z = y.copy()
        for i in range(8):
            if i >= d:
                z[i] = y[i] + y[i - d]
        y = z
        d *= 2
    return y


@layer
def run_lengths(x: i64["N"]):  # N=6 ints=0:2 edge=-
    runs = np.zeros_like(x)
    count = 0
    for i in range(x.shape[0]):
        if i > 0 and x[i] == x[i - 1]:
            runs[count] += 1
        else:
            count += 1 if i > 0 else 0
            runs[count] = 1
    return runs, count + 1


@layer
def life(board: i64["H W"]):  # H=5 W=4 ints=0:2 edge=-
    H, W = board.shape
    n = np.zeros_like(board)
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            if di != 0 or dj != 0:
                n += np.roll(np.roll(board, di, axis=0), dj, axis=1)
    return ((n == 3) | ((board == 1) & (n == 2))).astype(np.int64)


@layer
def soft_histogram(x: real["N"], w: real["N"], *, bins: int = 4):  # N=6
    k = np.clip(np.floor((x + 2) / 4 * bins), 0, bins - 1).astype(np.int64)
    h = np.zeros(bins)
    np.add.at(h, k, w)
    return h


@layer
def kmeans_step(x: real["N D"], c: real["K D"]):  # N=6 D=2 K=2 edge=-
    d = np.sum((x[:, None] - c[None]) ** 2, axis=2)
    near = np.argmin(d, axis=1)
    total, count = np.zeros_like(c), np.zeros(c.shape[0])
    for i in range(x.shape[0]):
        total[near[i]] += x[i]
        count[near[i]] += 1
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], c)


@layer
def pagerank(links: real["N N"], *, damping: float = 0.85):  # N=3 low=0.1 high=1 edge=1
    n = links.shape[0]
    m = links / links.sum(axis=0)
    rank = np.full(n, 1.0 / n)
    for _ in range(8):
        rank = (1 - damping) / n + damping * m @ rank
    return rank


@layer
def mandelbrot(xmin: real, ymin: real, *, xn: int = 4, yn: int = 3, maxiter: int = 5):  # low=-1 high=-0.5
    X = np.linspace(xmin, 0.5, xn)
    Y = np.linspace(ymin, 1.0, yn)
    cx, cy = X[None, :] + np.zeros((yn, 1)), Y[:, None] + np.zeros((1, xn))
    N = np.zeros((yn, xn), dtype=np.int64)
    zx, zy = np.zeros_like(cx), np.zeros_like(cx)
    for n in range(maxiter):
        inside = zx * zx + zy * zy < 4.0
        N[inside] = n
        zx, zy = np.where(inside, zx * zx - zy * zy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
    N[N == maxiter - 1] = 0
    return zx, N


@layer
def nbody(mass: real["N"], pos: real["N 3"], vel: real["N 3"], *, G: float = 0.5):  # N=3 low=0.5 high=2
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + 0.01
    inv_r3 = np.where(inv_r3 > 0, inv_r3, 1.0) ** -1.5
    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    a = np.stack((ax, ay, az), axis=1)
    inv_r = np.sqrt(dx**2 + dy**2 + dz**2)
    inv_r = np.where(inv_r > 0, 1.0 / np.where(inv_r > 0, inv_r, 1), 0)
    PE = G * np.sum(np.triu(-(mass * mass[:, None]) * inv_r, 1))
    KE = 0.5 * np.sum(mass[:, None] * vel**2)
    return a, KE, PE


@layer
def normalised_columns(x: real["N D"], g: Param[real["D"]], b: Param[real["D"]]):  # N=4 D=3 edge=1
    y = x - x[:1] if x.shape[0] > 0 else x
    y = y - y.mean(axis=0)
    return y / np.sqrt(y.var(axis=0, keepdims=True) + 1e-3) * g + b


@layer
def rms_rotary(x: real["T D"]):  # T=3 D=4 edge=-
    T, D = x.shape
    x = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    half = D // 2
    freq = 10.0 ** (-np.arange(half) / half)
    angle = np.arange(T)[:, None] * freq[None, :]
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle[:, :half]), a * np.sin(angle) + b * np.cos(angle)], axis=1)
