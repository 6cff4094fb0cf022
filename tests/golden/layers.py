"""Gradients of golden_layers.py, written by layerc. They run under plain NumPy; edit one and give it back as `backward`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from layerc import Param, real

__layers__ = ("d_dense", "d_layer_norm", "d_cross_entropy", "d_huber", "d_attention", "d_bilinear", "d_largest_of_pairs", "d_cosine")


def d_dense(
    x: real["I"],
    weight: Param[real["O I"]],
    y: real["O"],
    dy: real["O"],
) -> tuple[real["I"], Param[real["O I"]], Param[real["O"]]]:
    """Gradient of dense: dy (O,) -> d_x (I,), d_weight (O, I), d_bias (O,)."""
    # 11: return np.tanh(weight @ x + bias)
    d_bias = dy * (1 - y * y)
    d_x = d_bias @ weight
    d_weight = d_bias[:, None] * x
    return d_x, d_weight, d_bias


def d_layer_norm(
    x: real["D"],
    weight: Param[real["D"]],
    dy: real["D"],
    eps: float = 1e-05,
) -> tuple[real["D"], Param[real["D"]], Param[real["D"]]]:
    """Gradient of layer_norm: dy (D,) -> d_x (D,), d_weight (D,), d_bias (D,)."""
    D, = x.shape
    centred = x - np.mean(x)
    deviation = np.sqrt(np.mean(centred * centred) + eps)
    ratio = weight * centred / deviation
    # 18: return weight * centred / deviation + bias
    d_prod = dy / deviation
    # 17: deviation = np.sqrt(np.mean(centred * centred) + eps)
    d_prod_2 = -(0.5 * np.sum(dy * ratio) / deviation / deviation / D)
    # 16: centred = x - np.mean(x)
    d_diff = d_prod * weight + 2 * d_prod_2 * centred
    d_x = d_diff - np.sum(d_diff) / D
    d_weight = d_prod * centred
    d_bias = dy
    return d_x, d_weight, d_bias


def d_cross_entropy(x: real["K"], target: real["K"], dy: real) -> tuple[real["K"], real["K"]]:
    """Gradient of cross_entropy: dy () -> d_x (K,), d_target (K,)."""
    log_softmax_x = special.log_softmax(x)
    # 23: return -np.sum(target * special.log_softmax(x))
    d_log_softmax_x = -(dy * target)
    d_x = d_log_softmax_x - np.exp(log_softmax_x) * np.sum(d_log_softmax_x, keepdims=True)
    d_target = -(dy * log_softmax_x)
    return d_x, d_target


def d_huber(p: real["N"], t: real["N"], dy: real, delta: float = 1.0) -> tuple[real["N"], real["N"]]:
    """Gradient of huber: dy () -> d_p (N,), d_t (N,)."""
    error = np.abs(p - t)
    # 28: error = np.abs(p - t)
    d_diff = (np.where(error <= delta, dy * error, 0) + np.where(error <= delta, 0, dy) * delta) * np.sign(p - t)
    d_p = d_diff
    d_t = -d_diff
    return d_p, d_t


def d_attention(
    q: real["T D"],
    k: real["S D"],
    v: real["S E"],
    y: real["T E"],
    dy: real["T E"],
) -> tuple[real["T D"], real["S D"], real["S E"]]:
    """Gradient of attention: dy (T, E) -> d_q (T, D), d_k (S, D), d_v (S, E)."""
    sqrt = np.sqrt(q.shape[1])
    weights = special.softmax(q @ k.T / sqrt, axis=1)
    # 34: weights = special.softmax(q @ k.T / np.sqrt(q.shape[1]), axis=1)
    d_softmax = dy @ v.T
    d_product = weights * (d_softmax - np.sum(dy * y, axis=1, keepdims=True)) / sqrt
    d_q = d_product @ k
    d_k = d_product.T @ q
    d_v = weights.T @ dy
    return d_q, d_k, d_v


def d_bilinear(
    x: real["I"],
    y: real["J"],
    a: Param[real["K I J"]],
    dy: real["K"],
) -> tuple[real["I"], real["J"], Param[real["K I J"]]]:
    """Gradient of bilinear: dy (K,) -> d_x (I,), d_y (J,), d_a (K, I, J)."""
    d_x = np.einsum('k,kij,j->i', dy, a, y)
    d_y = np.einsum('k,i,kij->j', dy, x, a)
    d_a = np.einsum('k,i,j->kij', dy, x, y)
    return d_x, d_y, d_a


def d_largest_of_pairs(x: real["2*N"], dy: real["N"]) -> real["2*N"]:
    """Gradient of largest_of_pairs: dy (N,) -> d_x (2*N,)."""
    # 45: return np.maximum(x[0::2], x[1::2])
    d_x = np.zeros_like(x)
    d_x[0::2] = np.where(x[0::2] > x[1::2], dy, np.where(x[0::2] == x[1::2], 0.5 * dy, 0))
    d_x[1::2] = np.where(x[1::2] > x[0::2], dy, np.where(x[1::2] == x[0::2], 0.5 * dy, 0))
    return d_x


def d_cosine(a: real["N"], b: real["N"], y: real, dy: real) -> tuple[real["N"], real["N"]]:
    """Gradient of cosine: dy () -> d_a (N,), d_b (N,)."""
    norm_a = np.linalg.norm(a)
    norm_b = np.linalg.norm(b)
    prod = norm_a * norm_b
    # 50: return np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
    d_dot = dy / prod
    d_prod = -(dy * y / prod)
    d_a = d_dot * b + d_prod * norm_b / np.where(norm_a == 0, 1, norm_a) * a
    d_b = d_dot * a + d_prod * norm_a / np.where(norm_b == 0, 1, norm_b) * b
    return d_a, d_b
