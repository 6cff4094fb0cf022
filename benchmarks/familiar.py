"""Layers that frameworks ship, or that people write out in Python and find slow."""

import numpy as np

from layerc import Param, i32, layer, real


@layer
def layer_norm(x: real["D"], weight: Param[real["D"]], bias: Param[real["D"]]) -> real["D"]:
    """(x - mean) / sqrt(variance + 1e-5) over the features of one example, then a scale and a shift."""
    centred = x - np.mean(x)
    return centred / np.sqrt(np.mean(centred * centred) + 1e-5) * weight + bias


@layer(batched=True)
def batch_norm(x: real["N C *S"], weight: Param[real["C"]], bias: Param[real["C"]]) -> real["N C *S"]:
    """The same over batch and space, for each channel."""
    centred = x - np.mean(x, axis=(0, 2), keepdims=True)
    variance = np.mean(centred * centred, axis=(0, 2), keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight[:, None] + bias[:, None]


@layer
def cross_entropy(x: real["K"], label: i32) -> real[""]:
    """-log softmax(x)[label], with the maximum taken out."""
    shifted = x - np.max(x)
    return np.log(np.sum(np.exp(shifted))) - shifted[label]


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


@layer(batched=True)
def gru(
    x: real["N T D"], w_input: Param[real["D 3*H"]], w_hidden: Param[real["H 3*H"]], bias: Param[real["3*H"]]
) -> real["N T H"]:
    """Gated recurrent unit (Cho et al. 2014), the reset gate after the product as cuDNN has it."""
    n, steps, _ = x.shape
    width = w_hidden.shape[0]
    h = np.zeros((n, width))
    y = np.empty((n, steps, width))
    gates = x @ w_input + bias
    for t in range(steps):
        inner = h @ w_hidden
        reset = _sigmoid(gates[:, t, :width] + inner[:, :width])
        update = _sigmoid(gates[:, t, width : 2 * width] + inner[:, width : 2 * width])
        candidate = np.tanh(gates[:, t, 2 * width :] + reset * inner[:, 2 * width :])
        h = (1 - update) * candidate + update * h
        y[:, t] = h
    return y


@layer
def soft_dtw(a: real["T D"], b: real["U D"], gamma: float = 1.0) -> real[""]:
    """Soft dynamic time warping of two series (Cuturi and Blondel 2017)."""
    rows, columns = a.shape[0], b.shape[0]
    cost = np.full((rows + 1, columns + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(rows):
        for j in range(columns):
            d = a[i] - b[j]
            left, up, both = -cost[i + 1, j] / gamma, -cost[i, j + 1] / gamma, -cost[i, j] / gamma
            top = max(left, up, both)
            soft = top + np.log(np.exp(left - top) + np.exp(up - top) + np.exp(both - top))
            cost[i + 1, j + 1] = np.sum(d * d) - gamma * soft
    return cost[rows, columns]


@layer
def crf(score: real["T K"], transition: Param[real["K K"]]) -> real[""]:
    """Log of the partition function of a linear chain (Lafferty et al. 2001), by the forward algorithm."""
    alpha = score[0]
    for t in range(1, score.shape[0]):
        paths = alpha[:, None] + transition
        top = np.max(paths, axis=0)
        alpha = score[t] + top + np.log(np.sum(np.exp(paths - top), axis=0))
    top = np.max(alpha)
    return top + np.log(np.sum(np.exp(alpha - top)))


@layer
def warp(image: real["C H W"], flow: real["2 H W"]) -> real["C H W"]:
    """Bilinear warp: y[c, i, j] = image[c, i + flow[0, i, j], j + flow[1, i, j]], the border repeated."""
    depth, height, width = image.shape
    y = np.empty_like(image)
    for i in range(height):
        for j in range(width):
            row = min(max(i + flow[0, i, j], 0.0), height - 1.0)
            column = min(max(j + flow[1, i, j], 0.0), width - 1.0)
            top, left = int(np.floor(row)), int(np.floor(column))
            below, right = min(top + 1, height - 1), min(left + 1, width - 1)
            down, across = row - top, column - left
            for c in range(depth):
                upper = (1 - across) * image[c, top, left] + across * image[c, top, right]
                lower = (1 - across) * image[c, below, left] + across * image[c, below, right]
                y[c, i, j] = (1 - down) * upper + down * lower
    return y
