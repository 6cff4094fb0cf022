"""Gradients of layers.py, written by layerc. They run under plain NumPy; edit one and give it back as `backward`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from layerc import Param, real

__layers__ = ("d_SReLU", "d_mish", "d_rbf", "d_ema", "d_kepler")
__batched__ = ("d_rbf",)


def d_SReLU(
    x: real["C *S"],
    left_threshold: Param[real["C"]],
    left_slope: Param[real["C"]],
    right_threshold: Param[real["C"]],
    right_slope: Param[real["C"]],
    dy: real["C *S"],
) -> tuple[real["C *S"], Param[real["C"]], Param[real["C"]], Param[real["C"]], Param[real["C"]]]:
    """Gradient of SReLU: dy (C, *S) -> d_x (C, *S), d_left_threshold (C,), d_left_slope (C,), d_right_threshold (C,), d_right_slope (C,)."""
    tl = left_threshold[:, None]
    al = left_slope[:, None]
    tr = right_threshold[:, None]
    ar = right_slope[:, None]
    # 23: return np.where(x <= tl, tl + al * (x - tl), np.where(x >= tr, tr + ar * (x - tr), x))
    d_then = np.where(x <= tl, dy, 0)
    d_diff = d_then * al
    d_else = np.where(x <= tl, 0, dy)
    d_then_2 = np.where(x >= tr, d_else, 0)
    d_diff_2 = d_then_2 * ar
    d_x = d_diff + d_diff_2 + np.where(x >= tr, 0, d_else)
    d_left_threshold = np.sum(d_then - d_diff, axis=1)
    d_left_slope = np.sum(d_then * (x - tl), axis=1)
    d_right_threshold = np.sum(d_then_2 - d_diff_2, axis=1)
    d_right_slope = np.sum(d_then_2 * (x - tr), axis=1)
    return d_x, d_left_threshold, d_left_slope, d_right_threshold, d_right_slope


def d_mish(x: real["*S"], dy: real["*S"]) -> real["*S"]:
    """Gradient of mish: dy (*S,) -> d_x (*S,)."""
    exp_x = np.exp(x)
    tanh = np.tanh(np.log1p(exp_x))
    d_x = dy * (tanh + x * (1 - tanh * tanh) / (1 + exp_x) * exp_x)
    return d_x


def d_rbf(
    x: real["N D"],
    centers: Param[real["K D"]],
    gamma: Param[real["K"]],
    y: real["N K"],
    dy: real["N K"],
) -> tuple[real["N D"], Param[real["K D"]], Param[real["K"]]]:
    """Gradient of rbf: dy (N, K) -> d_x (N, D), d_centers (K, D), d_gamma (K,)."""
    d = x[:, None] - centers
    total = np.sum(d * d, axis=-1)
    # 36: return np.exp(-gamma * np.sum(d * d, axis=-1))
    d_prod = dy * y
    d_prod_2 = -(d_prod * gamma)[:, :, None]
    # 35: d = x[:, None, :] - centers
    d_diff = 2 * d_prod_2 * d
    d_x = np.sum(d_diff, axis=1)
    d_centers = -np.sum(d_diff, axis=0)
    d_gamma = -np.sum(d_prod * total, axis=0)
    return d_x, d_centers, d_gamma


def d_ema(
    x: real["T D"],
    decay: Param[real["D"]],
    y: real["T D"],
    dy: real["T D"],
) -> tuple[real["T D"], Param[real["D"]]]:
    """Gradient of ema: dy (T, D) -> d_x (T, D), d_decay (D,)."""
    _, D = x.shape
    # 44: for t in range(x.shape[0]):
    d_decay = np.zeros_like(decay)
    d_x = np.empty_like(x)
    d_h = np.zeros((D,), dtype=x.dtype)
    for t in reversed(range(x.shape[0])):
        h = np.where(t > 0, y[max(t - 1, 0)], 0.0)
        # 45: h = decay * h + (1 - decay) * x[t]
        d_sum = d_h + dy[t]
        d_x[t] = d_sum * (1 - decay)
        d_decay += d_sum * (h - x[t])
        d_h = d_sum * decay
    return d_x, d_decay


def d_kepler(mean: real["*S"], e: real["*S"], dy: real["*S"]) -> tuple[real["*S"], real["*S"]]:
    """Gradient of kepler: dy (*S,) -> d_mean (*S,), d_e (*S,)."""
    sin_mean = np.sin(mean)
    E = mean + e * sin_mean
    step = np.ones_like(mean)
    count = 0
    sin_E_saved = []
    cos_E_saved = []
    trips = 0
    E_saved = []
    while np.max(np.abs(step)) > 1e-05 and count < 50:
        E_saved.append(E)
        sin_E = np.sin(E)
        sin_E_saved.append(sin_E)
        cos_E = np.cos(E)
        cos_E_saved.append(cos_E)
        step = (E - e * sin_E - mean) / (1 - e * cos_E)
        E = E - step
        count += 1
        trips += 1
    # 56: while np.max(np.abs(step)) > 1e-5 and count < 50:
    d_e = np.zeros_like(e)
    d_mean = np.zeros_like(mean)
    d_E = dy
    for _ in range(trips):
        E = E_saved.pop()
        sin_E = sin_E_saved.pop()
        cos_E = cos_E_saved.pop()
        diff = 1 - e * cos_E
        step_2 = (E - e * sin_E - mean) / diff
        # 57: step = (E - e * np.sin(E) - mean) / (1 - e * np.cos(E))
        d_diff = -(d_E / diff)
        d_prod = -(d_E * step_2 / diff)
        d_e += d_prod * cos_E - d_diff * sin_E
        d_mean -= d_diff
        d_E = d_E + d_diff - d_diff * e * cos_E - d_prod * e * sin_E
    # 53: E = mean + e * np.sin(mean)
    d_mean += d_E * (1 + e * np.cos(mean))
    d_e += d_E * sin_mean
    return d_mean, d_e
