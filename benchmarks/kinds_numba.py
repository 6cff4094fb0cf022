"""Those of the cases of kinds.py that are loops by nature, as a Numba user would write them: see twins_numba.py. Those
that go step by step are in kinds_numba_steps.py.
"""

import math

import numpy as np
from numba import get_num_threads, prange
from twins_numba import ONE, TWO, ZERO, kernel, serial, share

THIRD = np.float32(1 / 3)
CONVERGED = np.float32(1e-6)  # of lambert_w


# -- small matrices -----------------------------------------------------------------------------------------------
@serial
def _factor(a, l):
    n = a.shape[0]
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            l[i, j] = math.sqrt(s) if i == j else s / l[j, j]


@kernel
def cholesky(a):
    y = np.zeros_like(a)
    for e in prange(a.shape[0]):
        _factor(a[e], y[e])
    return y


@kernel
def cholesky_backward(y, dy):
    """The loops of the factorisation backward."""
    n, da = y.shape[1], np.zeros_like(y)
    for e in prange(y.shape[0]):
        l, g, to = y[e], dy[e].copy(), da[e]
        for i in range(n - 1, -1, -1):
            for j in range(i, -1, -1):
                s = g[i, j] / l[j, j]
                if i == j:
                    s /= TWO
                else:
                    g[j, j] -= s * l[i, j]
                to[i, j] = s
                for k in range(j):
                    g[i, k] -= s * l[j, k]
                    g[j, k] -= s * l[i, k]
    return (da,)


@serial
def _invert(m):
    """In place, by Gauss and Jordan, without pivots."""
    n = m.shape[0]
    for i in range(n):
        inverse = ONE / m[i, i]
        m[i, i] = ONE
        for j in range(n):
            m[i, j] *= inverse
        for k in range(n):
            if k != i:
                factor = m[k, i]
                m[k, i] = ZERO
                for j in range(n):
                    m[k, j] -= factor * m[i, j]


@kernel
def gauss_jordan(a):
    y = np.empty_like(a)
    for e in prange(a.shape[0]):
        y[e] = a[e]
        _invert(y[e])
    return y


@kernel
def gauss_jordan_backward(y, dy):
    """Of the inverse Y: -Y^T dY Y^T."""
    n, da = y.shape[1], np.zeros_like(y)
    for e in prange(y.shape[0]):
        inverse, got, to, half = y[e], dy[e], da[e], np.zeros_like(y[e])
        for i in range(n):
            for k in range(n):
                for j in range(n):
                    half[i, j] -= inverse[k, i] * got[k, j]
        for i in range(n):
            for k in range(n):
                total = ZERO
                for j in range(n):
                    total += half[i, j] * inverse[k, j]
                to[i, k] = total
    return (da,)


# -- gather and scatter: a thread owns rows of what is added to, and looks for those that are its own ---------------
@serial
def _gathered(index, table, y):
    y[:] = ZERO
    for i in range(index.size):
        row = table[index[i]]
        for j in range(y.size):
            y[j] += row[j]
    for j in range(y.size):
        y[j] /= np.float32(index.size)


@kernel
def embedding_bag(index, table):
    y = np.empty((index.shape[0], table.shape[1]), table.dtype)
    for e in prange(index.shape[0]):
        _gathered(index[e], table, y[e])
    return y


@kernel
def embedding_bag_backward(index, table, dy):
    (n, count), d_table = index.shape, np.empty_like(table)
    scale, parts = ONE / np.float32(count), get_num_threads()
    for part in prange(parts):
        low, high = share(part, parts, table.shape[0])
        d_table[low:high] = ZERO
        for e in range(n):
            got = dy[e]
            for i in range(count):
                if low <= index[e, i] < high:
                    to = d_table[index[e, i]]
                    for j in range(got.size):
                        to[j] += scale * got[j]
    return None, d_table


@serial
def _scattered(x, source, target, low, high, y):
    """y[target] += x[source] for the targets from low to high."""
    y[low:high] = ZERO
    for e in range(source.size):
        if low <= target[e] < high:
            row, to = x[source[e]], y[target[e]]
            for j in range(row.size):
                to[j] += row[j]


@kernel
def neighbour_sum(x, source, target):
    y, parts = np.empty_like(x), get_num_threads()
    for part in prange(parts):
        low, high = share(part, parts, x.shape[0])
        _scattered(x, source, target, low, high, y)
    return y


@kernel
def neighbour_sum_backward(source, target, dy):
    dx, parts = np.empty_like(dy), get_num_threads()
    for part in prange(parts):
        low, high = share(part, parts, dy.shape[0])
        _scattered(dy, target, source, low, high, dx)
    return dx, None, None


# -- windows ------------------------------------------------------------------------------------------------------
@serial
def _cubes(plane, i, sums):
    """The sums of cubes in the windows whose first row is i."""
    sums[:] = ZERO
    for a in range(3):
        row = plane[i + a]
        for b in range(3):
            for j in range(sums.size):
                sums[j] += row[j + b] * row[j + b] * row[j + b]


@kernel
def lp_pool(x):
    n, c, h, w = x.shape
    y = np.empty((n, c, h - 2, w - 2), x.dtype)
    for e in prange(n):
        for k in range(c):
            for i in range(h - 2):
                put = y[e, k, i]
                _cubes(x[e, k], i, put)
                for j in range(w - 2):
                    put[j] = put[j] ** THIRD
    return y


@kernel
def lp_pool_backward(x, y, dy):
    """dx = x^2 times the sum over its windows of dy s^(-2/3), where s^(1/3) = y."""
    n, c, h, w = x.shape
    dx = np.zeros_like(x)
    for e in prange(n):
        g = np.empty(w - 2, x.dtype)
        for k in range(c):
            plane, to = x[e, k], dx[e, k]
            for i in range(h - 2):
                out, got = y[e, k, i], dy[e, k, i]
                for j in range(w - 2):
                    g[j] = got[j] / (out[j] * out[j])
                for a in range(3):
                    row = to[i + a]
                    for b in range(3):
                        for j in range(w - 2):
                            row[j + b] += g[j]
            for i in range(h):
                for j in range(w):
                    to[i, j] *= plane[i, j] * plane[i, j]
    return (dx,)


# -- an iteration for each element --------------------------------------------------------------------------------
@kernel
def lambert_w(x):
    flat = x.reshape(-1)
    y = np.empty_like(flat)
    for i in prange(flat.size):
        y[i] = _lambert_w(flat[i])[0]
    return y.reshape(x.shape)


@serial
def _lambert_w(x):
    """By Halley's iteration: w, and its derivative, which goes through the iteration with it."""
    w, slope = math.log1p(x), ONE / (ONE + x)
    for _ in range(20):
        e, next_, twice = math.exp(w), w + ONE, TWO * w + TWO
        f = w * e - x
        by = e * next_ - (next_ + ONE) * f / twice
        step = f / by
        d_f = e * next_ * slope - ONE
        d_by = e * slope * (next_ + ONE) - (slope * f + (next_ + ONE) * (d_f - TWO * slope * f / twice)) / twice
        slope -= (d_f - step * d_by) / by
        w -= step
        if not abs(step) > CONVERGED * (ONE + abs(w)):
            break
    return w, slope


@kernel
def lambert_w_forward(x):
    flat = x.reshape(-1)
    y, slope = np.empty_like(flat), np.empty_like(flat)
    for i in prange(flat.size):
        y[i], slope[i] = _lambert_w(flat[i])
    return y.reshape(x.shape), (slope.reshape(x.shape),)


@kernel
def lambert_w_backward(slope, dy):
    return (slope * dy,)
