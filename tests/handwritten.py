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


def d_ema(x: Array, decay: Array, y: Array, dy: Array) -> tuple[Array, ...]:
    d_x = np.empty_like(x)
    d_decay = np.zeros_like(decay)
    d_h = np.zeros_like(decay)
    for t in reversed(range(x.shape[0])):
        before = y[t - 1] if t > 0 else np.zeros_like(decay)
        d_h = d_h + dy[t]
        d_x[t] = d_h * (1 - decay)
        d_decay += d_h * (before - x[t])
        d_h = d_h * decay
    return d_x, d_decay


# -- of golden_layers.py ---------------------------------------------------------------------------------------
def d_dense(x: Array, weight: Array, y: Array, dy: Array) -> tuple[Array, ...]:
    d_sum = dy * (1 - y * y)
    d_x = d_sum @ weight
    d_weight = np.outer(d_sum, x)
    return d_x, d_weight, d_sum


def d_layer_norm(x: Array, weight: Array, dy: Array, eps: float = 1e-5) -> tuple[Array, ...]:
    centred = x - np.mean(x)
    deviation = np.sqrt(np.mean(centred * centred) + eps)
    normal = centred / deviation
    d_normal = dy * weight
    d_x = (d_normal - np.mean(d_normal) - normal * np.mean(d_normal * normal)) / deviation
    d_weight = dy * normal
    d_bias = dy
    return d_x, d_weight, d_bias


def d_cross_entropy(x: Array, target: Array, dy: Array) -> tuple[Array, ...]:
    e = np.exp(x - np.max(x))
    logs = x - np.max(x) - np.log(np.sum(e))
    d_x = dy * (np.sum(target) * np.exp(logs) - target)
    d_target = -dy * logs
    return d_x, d_target


def d_huber(p: Array, t: Array, dy: Array, delta: float = 1.0) -> tuple[Array, ...]:
    error = np.abs(p - t)
    d_p = dy * np.sign(p - t) * np.where(error <= delta, error, delta)
    return d_p, -d_p


def d_attention(q: Array, k: Array, v: Array, y: Array, dy: Array) -> tuple[Array, ...]:
    root = np.sqrt(q.shape[1])
    scores = q @ k.T / root
    e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    weights = e / np.sum(e, axis=1, keepdims=True)
    d_weights = dy @ v.T
    d_scores = weights * (d_weights - np.sum(dy * y, axis=1, keepdims=True)) / root
    return d_scores @ k, d_scores.T @ q, weights.T @ dy


def d_bilinear(x: Array, y: Array, a: Array, dy: Array) -> tuple[Array, ...]:
    d_x = np.einsum("k,kij,j->i", dy, a, y)
    d_y = np.einsum("k,kij,i->j", dy, a, x)
    d_a = np.einsum("k,i,j->kij", dy, x, y)
    return d_x, d_y, d_a


def d_largest_of_pairs(x: Array, dy: Array) -> Array:
    left, right = x[0::2], x[1::2]
    d_x = np.empty_like(x)
    d_x[0::2] = dy * np.where(left > right, 1, np.where(left == right, 0.5, 0))
    d_x[1::2] = dy * np.where(right > left, 1, np.where(left == right, 0.5, 0))
    return d_x


def d_cosine(a: Array, b: Array, y: Array, dy: Array) -> tuple[Array, ...]:
    norm_a = np.linalg.norm(a)
    norm_b = np.linalg.norm(b)
    d_dot = dy / (norm_a * norm_b)
    d_a = d_dot * b - dy * y * a / norm_a**2
    d_b = d_dot * a - dy * y * b / norm_b**2
    return d_a, d_b
