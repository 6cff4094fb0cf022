"""The cases as a Numba user would write them, normalisations and losses: see twins_numba.py."""

import math

import numpy as np
from numba import prange
from twins_numba import ONE, ZERO, added, kernel, partial, serial, share

EPSILON = np.float32(1e-5)
LANES = 16  # of a running maximum, which the compiler may not part itself: it would have to forget about NaN


# -- normalisation ------------------------------------------------------------------------------------------------
@serial
def _sum(row):
    total = ZERO
    for i in range(row.size):
        total += row[i]
    return total


@serial
def _centred_squares(row, mean):
    total = ZERO
    for i in range(row.size):
        total += (row[i] - mean) * (row[i] - mean)
    return total


@serial
def _moments(row):
    """The mean and 1 / sqrt(variance + epsilon)."""
    size = np.float32(row.size)
    mean = _sum(row) / size
    return mean, ONE / math.sqrt(_centred_squares(row, mean) / size + EPSILON)


@kernel
def layer_norm_forward(x, weight, bias):
    y, mean, scale = np.empty_like(x), np.empty(x.shape[0], x.dtype), np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        row, put = x[i], y[i]
        m, s = _moments(row)
        for j in range(row.size):
            put[j] = (row[j] - m) * s * weight[j] + bias[j]
        mean[i], scale[i] = m, s
    return y, (mean, scale)


@serial
def layer_norm(x, weight, bias):
    return layer_norm_forward(x, weight, bias)[0]


@kernel
def layer_norm_backward(x, weight, mean, scale, dy):
    dx, d_weight, d_bias = np.empty_like(x), partial(weight), partial(weight)
    (n, width), parts, size = x.shape, d_bias.shape[0], np.float32(x.shape[1])
    for part in prange(parts):
        low, high = share(part, parts, n)
        to_weight, to_bias = d_weight[part], d_bias[part]
        for i in range(low, high):
            row, got, to, m, s, total, along = x[i], dy[i], dx[i], mean[i], scale[i], ZERO, ZERO
            for j in range(width):
                to_weight[j] += got[j] * (row[j] - m) * s
                to_bias[j] += got[j]
                total += got[j] * weight[j]
                along += got[j] * weight[j] * (row[j] - m)
            total, along = total / size, along * s * s / size
            for j in range(width):
                to[j] = s * (got[j] * weight[j] - total - (row[j] - m) * along)
    return dx, added(d_weight), added(d_bias)


@serial
def _channel_moments(flat, c):
    """The mean and 1 / sqrt(variance + epsilon) over examples and pixels."""
    n, size = flat.shape[0], np.float32(flat.shape[0] * flat.shape[2])
    mean, squares = ZERO, ZERO
    for k in range(n):
        mean += _sum(flat[k, c])
    mean /= size
    for k in range(n):
        squares += _centred_squares(flat[k, c], mean)
    return mean, ONE / math.sqrt(squares / size + EPSILON)


@kernel
def batch_norm_forward(x, weight, bias):
    n, channels = x.shape[:2]
    flat, y = x.reshape(n, channels, -1), np.empty_like(x)
    out = y.reshape(n, channels, -1)
    mean, scale = np.empty_like(weight), np.empty_like(weight)
    for c in prange(channels):
        m, s = _channel_moments(flat, c)
        by, b = s * weight[c], bias[c]
        for k in range(n):
            row, put = flat[k, c], out[k, c]
            for i in range(row.size):
                put[i] = (row[i] - m) * by + b
        mean[c], scale[c] = m, s
    return y, (mean, scale)


@serial
def batch_norm(x, weight, bias):
    return batch_norm_forward(x, weight, bias)[0]


@kernel
def batch_norm_backward(x, weight, mean, scale, dy):
    n, channels = x.shape[:2]
    dx, d_weight, d_bias = np.empty_like(x), np.empty_like(weight), np.empty_like(weight)
    flat, given = x.reshape(n, channels, -1), dy.reshape(n, channels, -1)
    back, size = dx.reshape(n, channels, -1), np.float32(n * flat.shape[2])
    for c in prange(channels):
        m, s, total, along = mean[c], scale[c], ZERO, ZERO
        for k in range(n):
            row, got = flat[k, c], given[k, c]
            for i in range(row.size):
                total += got[i]
                along += got[i] * (row[i] - m)
        d_weight[c], d_bias[c] = along * s, total
        by, total, along = weight[c] * s, total / size, along * s * s / size
        for k in range(n):
            row, got, to = flat[k, c], given[k, c], back[k, c]
            for i in range(row.size):
                to[i] = by * (got[i] - total - (row[i] - m) * along)
    return dx, d_weight, d_bias


# -- losses -------------------------------------------------------------------------------------------------------
@serial
def largest(row):
    """A maximum in lanes: one after the other, each comparison would wait for the one before."""
    lanes, whole = np.full(LANES, -np.inf, row.dtype), row.size - row.size % LANES
    for i in range(0, whole, LANES):
        for k in range(LANES):
            lanes[k] = row[i + k] if row[i + k] > lanes[k] else lanes[k]
    top = lanes[0]
    for k in range(1, LANES):
        top = max(top, lanes[k])
    for i in range(whole, row.size):
        top = max(top, row[i])
    return top


@kernel
def cross_entropy(x, label):
    y = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        row = x[i]
        top, total = largest(row), ZERO
        for j in range(row.size):
            total += math.exp(row[j] - top)
        y[i] = math.log(total) - (row[label[i]] - top)
    return y


@kernel
def cross_entropy_forward(x, label):
    y, power, total = np.empty(x.shape[0], x.dtype), np.empty_like(x), np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        row, to = x[i], power[i]
        top = largest(row)
        for j in range(row.size):
            to[j] = math.exp(row[j] - top)
        total[i] = _sum(to)
        y[i] = math.log(total[i]) - (row[label[i]] - top)
    return y, (power, total)


@kernel
def cross_entropy_backward(label, power, total, dy):
    dx = np.empty_like(power)
    for i in prange(power.shape[0]):
        row, to, scale = power[i], dx[i], dy[i] / total[i]
        for j in range(row.size):
            to[j] = scale * row[j]
        to[label[i]] -= dy[i]
    return dx, None
