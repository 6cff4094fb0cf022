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
def layer_norm(x, weight, bias):
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        row, put = x[i], y[i]
        mean, scale = _moments(row)
        for j in range(row.size):
            put[j] = (row[j] - mean) * scale * weight[j] + bias[j]
    return y


@kernel
def layer_norm_gradient(x, weight, bias, dy):
    y, dx, d_weight, d_bias = np.empty_like(x), np.empty_like(x), partial(weight), partial(bias)
    (n, width), parts, size = x.shape, d_bias.shape[0], np.float32(x.shape[1])
    for part in prange(parts):
        low, high = share(part, parts, n)
        to_weight, to_bias = d_weight[part], d_bias[part]
        for i in range(low, high):
            row, got, put, to = x[i], dy[i], y[i], dx[i]
            mean, scale = _moments(row)
            total, along = ZERO, ZERO
            for j in range(width):
                put[j] = (row[j] - mean) * scale * weight[j] + bias[j]
            for j in range(width):
                to_weight[j] += got[j] * (row[j] - mean) * scale
                to_bias[j] += got[j]
            for j in range(width):
                total += got[j] * weight[j]
                along += got[j] * weight[j] * (row[j] - mean) * scale
            total, along = total / size, along / size
            for j in range(width):
                to[j] = scale * (got[j] * weight[j] - total - (row[j] - mean) * scale * along)
    return y, (dx, added(d_weight), added(d_bias))


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
def batch_norm(x, weight, bias):
    n, channels = x.shape[:2]
    flat, y = x.reshape(n, channels, -1), np.empty_like(x)
    out = y.reshape(n, channels, -1)
    for c in prange(channels):
        mean, scale = _channel_moments(flat, c)
        scale *= weight[c]
        for k in range(n):
            row, put = flat[k, c], out[k, c]
            for i in range(row.size):
                put[i] = (row[i] - mean) * scale + bias[c]
    return y


@kernel
def batch_norm_gradient(x, weight, bias, dy):
    n, channels = x.shape[:2]
    y, dx = np.empty_like(x), np.empty_like(x)
    flat, given = x.reshape(n, channels, -1), dy.reshape(n, channels, -1)
    out = y.reshape(n, channels, -1)
    back = dx.reshape(n, channels, -1)
    d_weight, d_bias, size = np.empty_like(weight), np.empty_like(bias), np.float32(n * flat.shape[2])
    for c in prange(channels):
        mean, scale = _channel_moments(flat, c)
        w, b, total, along = weight[c], bias[c], ZERO, ZERO
        for k in range(n):
            row, got, put = flat[k, c], given[k, c], out[k, c]
            for i in range(row.size):
                normal = (row[i] - mean) * scale
                put[i] = normal * w + b
                total += got[i]
                along += got[i] * normal
        d_weight[c], d_bias[c] = along, total
        total, along = total / size, along / size
        for k in range(n):
            row, got, to = flat[k, c], given[k, c], back[k, c]
            for i in range(row.size):
                to[i] = w * scale * (got[i] - total - (row[i] - mean) * scale * along)
    return y, (dx, d_weight, d_bias)


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
def cross_entropy_gradient(x, label, dy):
    y, dx = np.empty_like(dy), np.empty_like(x)
    for i in prange(x.shape[0]):
        row, to = x[i], dx[i]
        top, total = largest(row), ZERO
        for j in range(row.size):
            to[j] = math.exp(row[j] - top)
            total += to[j]
        y[i] = math.log(total) - (row[label[i]] - top)
        scale = dy[i] / total
        for j in range(row.size):
            to[j] *= scale
        to[label[i]] -= dy[i]
    return y, (dx, None)
