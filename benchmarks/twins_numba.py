"""The cases as a Numba user would write them: functions of elements and radial basis functions. Normalisations and
losses are in rows_numba.py, what goes step by step or looks things up in steps_numba.py.

A twin is what its user hands to a framework, in which dy is known only after the forward has returned y. `name` takes
the arguments and returns y; `name_forward`, where something is worth keeping, y and a tuple of it: statistics, states,
what exponentials and iterations have made; `name_backward` takes what it reads, the arguments by their names, then y,
all that was kept and dy, and returns the gradients of all arguments, worked out by hand: Numba has no derivatives.

Parameters that all examples share get their gradient in one part a thread, the parts added in order: the same bits
at each call. float32 needs its constants in float32: beside a plain 1.0 a kernel counts in float64. Views of what a
kernel writes have a line each: of those that a tuple names, Numba 0.68 can lose what is written through them. A loop
stores to one or two arrays: of more, the compiler does not ask whether they overlap, and makes no vectors.
"""

import math

import numpy as np
from numba import get_num_threads, njit, prange

# Sums in any order, products and sums in one instruction; unlike with `fastmath=True`, NaN and inf stay what they are.
OPTIONS = {"fastmath": {"contract", "nsz", "reassoc"}, "error_model": "numpy"}
kernel = njit(parallel=True, **OPTIONS)
serial = njit(**OPTIONS)  # what a kernel calls, and kernels of arrays so small that a second thread does not pay

ZERO, ONE, TWO = np.float32(0), np.float32(1), np.float32(2)
LINEAR = np.float32(20)  # from here on softplus(x) is x in float32
CONVERGED = np.float32(1e-5)


@serial
def share(part, parts, n):
    """The rows of a thread."""
    return part * n // parts, (part + 1) * n // parts


@serial
def partial(parameter):
    """A gradient of it for each thread."""
    return np.zeros((get_num_threads(), *parameter.shape), parameter.dtype)


@serial
def added(parts):
    """The sum over the first axis, in order."""
    total = parts[0].copy()
    for k in range(1, parts.shape[0]):
        total += parts[k]
    return total


# -- functions of elements ----------------------------------------------------------------------------------------
@kernel
def srelu(x, left_threshold, left_slope, right_threshold, right_slope):
    n, channels = x.shape[:2]
    flat, y = x.reshape(n, channels, -1), np.empty_like(x)
    out = y.reshape(n, channels, -1)
    for c in prange(channels):
        tl, al, tr, ar = left_threshold[c], left_slope[c], right_threshold[c], right_slope[c]
        for k in range(n):
            row, put = flat[k, c], out[k, c]
            for i in range(row.size):
                v = row[i]
                put[i] = tl + al * (v - tl) if v <= tl else (tr + ar * (v - tr) if v >= tr else v)
    return y


@kernel
def srelu_backward(x, left_threshold, left_slope, right_threshold, right_slope, dy):
    n, channels = x.shape[:2]
    dx = np.empty_like(x)
    flat, given = x.reshape(n, channels, -1), dy.reshape(n, channels, -1)
    back = dx.reshape(n, channels, -1)
    d_tl, d_al = np.empty_like(left_threshold), np.empty_like(left_slope)
    d_tr, d_ar = np.empty_like(right_threshold), np.empty_like(right_slope)
    for c in prange(channels):
        tl, al, tr, ar = left_threshold[c], left_slope[c], right_threshold[c], right_slope[c]
        lost, lost_by, won, won_by = ZERO, ZERO, ZERO, ZERO
        for k in range(n):
            row, got, to = flat[k, c], given[k, c], back[k, c]
            for i in range(row.size):
                v, g = row[i], got[i]
                low = g if v <= tl else ZERO
                high = g if v > tl and v >= tr else ZERO
                to[i] = g - (ONE - al) * low - (ONE - ar) * high
                lost += low
                lost_by += low * (v - tl)
                won += high
                won_by += high * (v - tr)
        d_tl[c], d_al[c], d_tr[c], d_ar[c] = (ONE - al) * lost, lost_by, (ONE - ar) * won, won_by
    return dx, d_tl, d_al, d_tr, d_ar


srelu_serial, srelu_serial_backward = serial(srelu.py_func), serial(srelu_backward.py_func)


@serial
def _tanh_softplus(v):
    """tanh(log(1 + e^v)) and the logistic function by one exponential, e = e^v: e (e + 2) / (e (e + 2) + 2)."""
    e = math.exp(min(v, LINEAR))
    product = e * (e + TWO)
    return product / (product + TWO), e / (e + ONE)


@kernel
def mish(x):
    flat = x.reshape(-1)
    y = np.empty_like(flat)
    for i in prange(flat.size):
        y[i] = flat[i] * _tanh_softplus(flat[i])[0]
    return y.reshape(x.shape)


@kernel
def mish_forward(x):
    flat = x.reshape(-1)
    y, slope = np.empty_like(flat), np.empty_like(flat)
    for i in prange(flat.size):
        v = flat[i]
        t, logistic = _tanh_softplus(v)
        y[i] = v * t
        slope[i] = t + v * (ONE - t * t) * logistic
    return y.reshape(x.shape), (slope.reshape(x.shape),)


@kernel
def mish_backward(slope, dy):
    flat, given = slope.reshape(-1), dy.reshape(-1)
    dx = np.empty_like(flat)
    for i in prange(flat.size):
        dx[i] = flat[i] * given[i]
    return (dx.reshape(dy.shape),)


@serial
def _step(E, m, e):
    """Of Newton's method for E - e sin E = m: the step, its slope, the sine and the cosine."""
    sine, cosine = math.sin(E), math.cos(E)
    slope = ONE - e * cosine
    return (E - e * sine - m) / slope, slope, sine, cosine


@serial
def _root(m, e):
    """Each element until it has converged itself."""
    E = m + e * math.sin(m)
    for _ in range(50):
        step = _step(E, m, e)[0]
        E -= step
        if not abs(step) > CONVERGED:
            break
    return E


@kernel
def kepler(mean, e):
    m, by = mean.reshape(-1), e.reshape(-1)
    y = np.empty_like(m)
    for i in prange(m.size):
        y[i] = _root(m[i], by[i])
    return y.reshape(mean.shape)


@kernel
def kepler_forward(mean, e):
    """The derivatives of E go through the iteration with it: two numbers an element, all that is kept."""
    m, by = mean.reshape(-1), e.reshape(-1)
    y, by_mean, by_e = np.empty_like(m), np.empty_like(m), np.empty_like(m)
    for i in prange(m.size):
        sine, cosine = math.sin(m[i]), math.cos(m[i])
        E = m[i] + by[i] * sine
        E_mean, E_e = ONE + by[i] * cosine, sine
        for _ in range(50):
            step, slope, sine, cosine = _step(E, m[i], by[i])
            bent = step * by[i] * sine / slope  # the derivative of E - step by E
            E_mean = bent * E_mean + ONE / slope
            E_e = bent * E_e + (sine - step * cosine) / slope
            E -= step
            if not abs(step) > CONVERGED:
                break
        y[i], by_mean[i], by_e[i] = E, E_mean, E_e
    return y.reshape(mean.shape), (by_mean.reshape(mean.shape), by_e.reshape(mean.shape))


@kernel
def kepler_backward(by_mean, by_e, dy):
    return by_mean * dy, by_e * dy


kepler_implicit = kepler  # the forward is the same


@kernel
def kepler_implicit_backward(e, y, dy):
    E, by, given = y.reshape(-1), e.reshape(-1), dy.reshape(-1)
    d_mean, d_e = np.empty_like(E), np.empty_like(E)
    for i in prange(E.size):
        d_mean[i] = given[i] / (ONE - by[i] * math.cos(E[i]))
        d_e[i] = d_mean[i] * math.sin(E[i])
    return d_mean.reshape(y.shape), d_e.reshape(y.shape)


# -- radial basis functions ---------------------------------------------------------------------------------------
@serial
def _square(a, b):
    total = ZERO
    for i in range(a.size):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


@kernel
def rbf(x, centers, gamma):
    y = np.empty((x.shape[0], centers.shape[0]), x.dtype)
    for i in prange(x.shape[0]):
        for k in range(centers.shape[0]):
            y[i, k] = math.exp(-gamma[k] * _square(x[i], centers[k]))
    return y


@kernel
def rbf_forward(x, centers, gamma):
    y = np.empty((x.shape[0], centers.shape[0]), x.dtype)
    square = np.empty_like(y)
    for i in prange(x.shape[0]):
        put, to = y[i], square[i]
        for k in range(centers.shape[0]):
            to[k] = _square(x[i], centers[k])
            put[k] = math.exp(-gamma[k] * to[k])
    return y, (square,)


@kernel
def rbf_backward(x, centers, gamma, y, square, dy):
    dx, d_centers, d_gamma = np.zeros_like(x), partial(centers), partial(gamma)
    n, parts = x.shape[0], d_gamma.shape[0]
    for part in prange(parts):
        low, high = share(part, parts, n)
        to_gamma, by = d_gamma[part], np.empty_like(gamma)
        for i in range(low, high):
            row, to, got, out, far = x[i], dx[i], dy[i], y[i], square[i]
            for k in range(gamma.size):
                to_gamma[k] -= got[k] * out[k] * far[k]
            for k in range(gamma.size):
                by[k] = TWO * gamma[k] * got[k] * out[k]
            for k in range(gamma.size):
                center, to_center, d = centers[k], d_centers[part, k], by[k]
                for j in range(row.size):
                    pull = d * (row[j] - center[j])
                    to[j] -= pull
                    to_center[j] += pull
    return dx, added(d_centers), added(d_gamma)


@serial
def _squares(a):
    total = np.zeros(a.shape[0], a.dtype)
    for i in range(a.shape[0]):
        total[i] = _square_of(a[i])
    return total


@serial
def _square_of(row):
    total = ZERO
    for i in range(row.size):
        total += row[i] * row[i]
    return total


@kernel
def rbf_matmul(x, centers, gamma):
    """|x - c|^2 = |x|^2 + |c|^2 - 2 x.c, the product of a thread's rows by BLAS."""
    n, parts, of_centers = x.shape[0], get_num_threads(), _squares(centers)
    y = np.empty((n, gamma.size), x.dtype)
    for part in prange(parts):
        low, high = share(part, parts, n)
        np.dot(x[low:high], centers.T, y[low:high])
        for i in range(low, high):
            of_x, put = _square_of(x[i]), y[i]
            for k in range(gamma.size):
                put[k] = math.exp(-gamma[k] * max(of_x + of_centers[k] - TWO * put[k], ZERO))
    return y


@kernel
def rbf_matmul_forward(x, centers, gamma):
    n, parts, of_centers = x.shape[0], get_num_threads(), _squares(centers)
    y, square = np.empty((n, gamma.size), x.dtype), np.empty((n, gamma.size), x.dtype)
    for part in prange(parts):
        low, high = share(part, parts, n)
        np.dot(x[low:high], centers.T, square[low:high])
        for i in range(low, high):
            of_x, put, to = _square_of(x[i]), y[i], square[i]
            for k in range(gamma.size):
                to[k] = max(of_x + of_centers[k] - TWO * to[k], ZERO)
            for k in range(gamma.size):
                put[k] = math.exp(-gamma[k] * to[k])
    return y, (square,)


@kernel
def rbf_matmul_backward(x, centers, gamma, y, square, dy):
    dx, d_centers, d_gamma = np.empty_like(x), partial(centers), partial(gamma)
    n, parts = x.shape[0], d_gamma.shape[0]
    for part in prange(parts):
        low, high = share(part, parts, n)
        pull, of_columns, to_gamma = np.empty_like(y[low:high]), np.zeros_like(gamma), d_gamma[part]
        of_rows = np.zeros(high - low, x.dtype)
        for i in range(low, high):
            far, out, got, to, total = square[i], y[i], dy[i], pull[i - low], ZERO
            for k in range(gamma.size):
                to_gamma[k] -= got[k] * out[k] * far[k]
            for k in range(gamma.size):
                to[k] = TWO * gamma[k] * got[k] * out[k] if far[k] > ZERO else ZERO
                total += to[k]
            for k in range(gamma.size):
                of_columns[k] += to[k]
            of_rows[i - low] = total
        np.dot(pull, centers, dx[low:high])
        np.dot(pull.T, x[low:high], d_centers[part])
        for i in range(low, high):
            dx[i] -= of_rows[i - low] * x[i]
        for k in range(gamma.size):
            d_centers[part, k] -= of_columns[k] * centers[k]
    return dx, added(d_centers), added(d_gamma)
