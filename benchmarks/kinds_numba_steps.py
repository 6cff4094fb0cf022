"""Those of the cases of kinds.py that go step by step, as a Numba user would write them: see twins_numba.py."""

import math

import numpy as np
from numba import prange
from rows_numba import largest
from twins_numba import ZERO, added, kernel, partial, serial, share

IMPOSSIBLE = np.float32(-1e30)  # the logarithm of ctc's zeros


# -- dynamic programming ------------------------------------------------------------------------------------------
@serial
def _log_softmax(x, log_p, p):
    """And the softmax itself."""
    for t in range(x.shape[0]):
        top, total = largest(x[t]), ZERO
        for k in range(x.shape[1]):
            p[t, k] = math.exp(x[t, k] - top)
            total += p[t, k]
        top += math.log(total)
        for k in range(x.shape[1]):
            log_p[t, k] = x[t, k] - top
            p[t, k] /= total


@serial
def _log_sum(a, b, c):
    """The logarithm of the sum of three exponentials, and the share of each."""
    top = max(a, b, c)
    of_a, of_b, of_c = math.exp(a - top), math.exp(b - top), math.exp(c - top)
    total = of_a + of_b + of_c
    return top + math.log(total), of_a / total, of_b / total, of_c / total


@serial
def _state(label, s):
    """The class of a state, and whether it can be reached from two before."""
    if s % 2 == 0:
        return 0, False
    return label[s // 2], s >= 3 and label[s // 2] != label[s // 2 - 1]


@serial
def _ctc_paths(log_p, label, shares):
    """-log of the probability of all paths; `shares`: what each of three states before adds to a state."""
    steps, states = log_p.shape[0], 2 * label.size + 1
    alpha, before = np.full(states, IMPOSSIBLE), np.empty(states, log_p.dtype)
    alpha[0], alpha[1] = log_p[0, 0], log_p[0, label[0]]
    for t in range(1, steps):
        before[:] = alpha
        for s in range(states):
            k, skips = _state(label, s)
            one = before[s - 1] if s >= 1 else IMPOSSIBLE
            two = before[s - 2] if skips else IMPOSSIBLE
            best, shares[t, s, 0], shares[t, s, 1], shares[t, s, 2] = _log_sum(before[s], one, two)
            alpha[s] = best + log_p[t, k]
    best, shares[0, 0, 0], shares[0, 0, 1], _ = _log_sum(alpha[states - 1], alpha[states - 2], IMPOSSIBLE)
    return -best


@kernel
def ctc(x, label):
    n, steps, states = x.shape[0], x.shape[1], 2 * label.shape[1] + 1
    y = np.empty(n, x.dtype)
    for e in prange(n):
        log_p, p, shares = np.empty_like(x[e]), np.empty_like(x[e]), np.empty((steps, states, 3), x.dtype)
        _log_softmax(x[e], log_p, p)
        y[e] = _ctc_paths(log_p, label[e], shares)
    return y


@kernel
def ctc_forward(x, label):
    """Kept: the softmax, and the share of each of three states in the next."""
    n, steps, states = x.shape[0], x.shape[1], 2 * label.shape[1] + 1
    y, p, shares = np.empty(n, x.dtype), np.empty_like(x), np.empty((n, steps, states, 3), x.dtype)
    for e in prange(n):
        log_p = np.empty_like(x[e])
        _log_softmax(x[e], log_p, p[e])
        y[e] = _ctc_paths(log_p, label[e], shares[e])
    return y, (p, shares)


@kernel
def ctc_backward(label, p, shares, dy):
    """A step's gradient: the softmax less the share of all paths that are in a class then."""
    (n, steps, classes), states, dx = p.shape, shares.shape[2], np.empty_like(p)
    for e in prange(n):
        weight, before, ways = np.zeros(states, p.dtype), np.empty(states, p.dtype), shares[e]
        weight[states - 1], weight[states - 2] = ways[0, 0, 0], ways[0, 0, 1]
        for t in range(steps - 1, -1, -1):
            to = dx[e, t]
            for k in range(classes):
                to[k] = dy[e] * p[e, t, k]
            for s in range(states):
                to[_state(label[e], s)[0]] -= dy[e] * weight[s]
            if t > 0:
                before[:] = ZERO
                for s in range(states):
                    before[s] += weight[s] * ways[t, s, 0]
                    if s >= 1:
                        before[s - 1] += weight[s] * ways[t, s, 1]
                    if s >= 2:
                        before[s - 2] += weight[s] * ways[t, s, 2]
                weight[:] = before
    return dx, None


@serial
def _scaled(u, alpha):
    """alpha = u / sum(u); the sum."""
    total = ZERO
    for j in range(u.size):
        total += u[j]
    for j in range(u.size):
        alpha[j] = u[j] / total
    return total


@serial
def _hmm_steps(emission, step, initial, alpha, emitted, totals):
    """The logarithm of the likelihood; alpha, e^emission and the totals of all steps."""
    steps, states = emission.shape
    u = np.empty(states, emission.dtype)
    for j in range(states):
        u[j] = math.exp(initial[j] + emission[0, j])
    totals[0] = _scaled(u, alpha[0])
    result = math.log(totals[0])
    for t in range(1, steps):
        u[:] = ZERO
        for i in range(states):
            for j in range(states):
                u[j] += alpha[t - 1, i] * step[i, j]
        for j in range(states):
            emitted[t, j] = math.exp(emission[t, j])
            u[j] *= emitted[t, j]
        totals[t] = _scaled(u, alpha[t])
        result += math.log(totals[t])
    return result


@kernel
def hmm(emission, transition, initial):
    y, step = np.empty(emission.shape[0], emission.dtype), np.exp(transition)
    for e in prange(emission.shape[0]):
        alpha, emitted = np.empty_like(emission[e]), np.empty_like(emission[e])
        totals = np.empty(emission.shape[1], emission.dtype)
        y[e] = _hmm_steps(emission[e], step, initial, alpha, emitted, totals)
    return y


@kernel
def hmm_forward(emission, transition, initial):
    """Kept: alpha, e^emission and the totals of all steps, and e^transition."""
    y, step = np.empty(emission.shape[0], emission.dtype), np.exp(transition)
    alpha, emitted = np.empty_like(emission), np.empty_like(emission)
    totals = np.empty(emission.shape[:2], emission.dtype)
    for e in prange(emission.shape[0]):
        y[e] = _hmm_steps(emission[e], step, initial, alpha[e], emitted[e], totals[e])
    return y, (step, alpha, emitted, totals)


@kernel
def hmm_backward(step, alpha, emitted, totals, dy):
    (n, steps, states), d_emission, d_step = alpha.shape, np.empty_like(alpha), partial(step)
    parts = d_step.shape[0]
    for part in prange(parts):
        low, high = share(part, parts, n)
        g, to_step = np.empty(states, step.dtype), d_step[part]
        for e in range(low, high):
            g[:] = ZERO
            for t in range(steps - 1, -1, -1):
                to, now, given, along = d_emission[e, t], alpha[e, t], emitted[e, t], dy[e]
                for j in range(states):
                    along -= g[j] * now[j]
                for j in range(states):
                    to[j] = (along + g[j]) * now[j]
                if t > 0:
                    for j in range(states):
                        g[j] = (along + g[j]) * given[j] / totals[e, t]
                    _through(step, alpha[e, t - 1], g, to_step)
    return d_emission, added(d_step) * step, added(d_emission[:, 0])


@serial
def _through(step, alpha, g, to_step):
    """Backward through alpha @ step: g, the gradient of the product, becomes that of alpha."""
    back = np.empty_like(g)
    for i in range(g.size):
        total = ZERO
        for j in range(g.size):
            total += step[i, j] * g[j]
            to_step[i, j] += alpha[i] * g[j]
        back[i] = total
    g[:] = back


# -- filters over time --------------------------------------------------------------------------------------------
@serial
def _filtered(x, b, a, y):
    x1, x2, y1, y2 = ZERO, ZERO, ZERO, ZERO
    for t in range(x.size):
        out = b[0] * x[t] + b[1] * x1 + b[2] * x2 - a[0] * y1 - a[1] * y2
        x2, x1, y2, y1 = x1, x[t], y1, out
        y[t] = out


@kernel
def biquad(x, b, a):
    y = np.empty_like(x)
    for e in prange(x.shape[0]):
        _filtered(x[e], b, a, y[e])
    return y


@kernel
def biquad_backward(x, b, a, y, dy):
    """The same filter, backward in time."""
    (n, steps), dx = x.shape, np.empty_like(x)
    d_b, d_a = np.empty((n, 3), x.dtype), np.empty((n, 2), x.dtype)
    for e in prange(n):
        row, out, got, to = x[e], y[e], dy[e], dx[e]
        v1, v2, by_0, by_1, by_2, of_1, of_2 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
        for t in range(steps - 1, -1, -1):
            v = got[t] - a[0] * v1 - a[1] * v2
            to[t] = b[0] * v + b[1] * v1 + b[2] * v2
            by_0 += v * row[t]
            by_1 += v1 * row[t]
            by_2 += v2 * row[t]
            of_1 -= v1 * out[t]
            of_2 -= v2 * out[t]
            v1, v2 = v, v1
        d_b[e, 0], d_b[e, 1], d_b[e, 2], d_a[e, 0], d_a[e, 1] = by_0, by_1, by_2, of_1, of_2
    return dx, added(d_b), added(d_a)
