"""Backwards as a person writes them, for the example layers: what generated gradients are measured against.

`srelu` follows the arithmetic of the hand-written backward that MATLAB's documentation gives for this layer:
dX, and for each learnable the sum over everything but the channel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def d_SReLU(
    x: Array, left_threshold: Array, left_slope: Array, right_threshold: Array, right_slope: Array, dy: Array
) -> tuple[Array, ...]:
    tl = left_threshold[:, None]
    al = left_slope[:, None]
    tr = right_threshold[:, None]
    ar = right_slope[:, None]
    left = x <= tl
    right = ~left & (x >= tr)
    d_x = dy * np.where(left, al, np.where(right, ar, 1))
    d_left = np.where(left, dy, 0)
    d_right = np.where(right, dy, 0)
    d_left_threshold = np.sum(d_left * (1 - al), axis=1)
    d_left_slope = np.sum(d_left * (x - tl), axis=1)
    d_right_threshold = np.sum(d_right * (1 - ar), axis=1)
    d_right_slope = np.sum(d_right * (x - tr), axis=1)
    return d_x, d_left_threshold, d_left_slope, d_right_threshold, d_right_slope


def d_mish(x: Array, dy: Array) -> Array:
    e = np.exp(x)
    t = np.tanh(np.log1p(e))
    d_x = dy * (t + x * (1 - t * t) * e / (1 + e))
    return d_x


def d_rbf(x: Array, centers: Array, gamma: Array, y: Array, dy: Array) -> tuple[Array, ...]:
    d = x[:, None, :] - centers
    r = np.sum(d * d, axis=-1)
    d_r = -dy * y * gamma
    d_d = 2 * d_r[:, :, None] * d
    d_x = np.sum(d_d, axis=1)
    d_centers = -np.sum(d_d, axis=0)
    d_gamma = -np.sum(dy * y * r, axis=0)
    return d_x, d_centers, d_gamma


def d_ema(x: Array, decay: Array, dy: Array) -> tuple[Array, ...]:
    before = np.empty_like(x)
    h = np.zeros_like(decay)
    for t in range(x.shape[0]):
        before[t] = h
        h = decay * h + (1 - decay) * x[t]
    d_x = np.empty_like(x)
    d_decay = np.zeros_like(decay)
    d_h = np.zeros_like(decay)
    for t in reversed(range(x.shape[0])):
        d_h = d_h + dy[t]
        d_x[t] = d_h * (1 - decay)
        d_decay += d_h * (before[t] - x[t])
        d_h = d_h * decay
    return d_x, d_decay
