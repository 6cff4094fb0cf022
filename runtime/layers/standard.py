"""The built-in layers' mathematics, in the language that layerc compiles.

Functions without `batched=True` describe one example. A loss gives one number per example: the runtime
divides.
"""

import numpy as np

from layerc import Param, i64, layer, real


@layer(batched=True)
def inner_product(x: real["N D"], weight: Param[real["D K"]], bias: Param[real["K"]]) -> real["N K"]:
    """x @ weight + bias."""
    return x @ weight + bias


@layer(batched=True)
def inner_product_no_bias(x: real["N D"], weight: Param[real["D K"]]) -> real["N K"]:
    """x @ weight."""
    return x @ weight


@layer
def masked(x: real["*S"], mask: real["*S"]) -> real["*S"]:
    """Dropout, given what it multiplies by."""
    return x * mask


@layer
def add(a: real["*S"], b: real["*S"]) -> real["*S"]:
    """a + b."""
    return a + b


@layer
def subtract(a: real["*S"], b: real["*S"]) -> real["*S"]:
    """a - b."""
    return a - b


@layer
def multiply(a: real["*S"], b: real["*S"]) -> real["*S"]:
    """a * b."""
    return a * b


@layer
def divide(a: real["*S"], b: real["*S"]) -> real["*S"]:
    """a / b."""
    return a / b


@layer
def softmax(x: real["C S"]) -> real["C S"]:
    """exp(x) / sum exp(x) over C, stable for any scores."""
    e = np.exp(x - np.max(x, axis=0))
    return e / np.sum(e, axis=0)


@layer
def softmax_loss(scores: real["C S"], label: i64["S"], class_weights: Param[real["C"]]) -> real[""]:
    """-sum over positions of w_t log softmax(scores)_t, t the label; a label of -1 counts nowhere."""
    shifted = scores - np.max(scores, axis=0)
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=0))
    is_label = np.arange(scores.shape[0])[:, None] == label
    return -np.sum(np.where(is_label, class_weights[:, None] * log_p, 0.0))


@layer
def square_loss(p: real["*S"], t: real["*S"]) -> real[""]:
    """sum (p - t)² / 2."""
    return 0.5 * np.sum((p - t) ** 2)


@layer(backward=None)
def top_k_hits(scores: real["C S"], label: i64["S"], k: int = 1) -> real[""]:
    """Positions whose label is among the k highest scores; of equal scores the lower class is the higher."""
    classes = np.arange(scores.shape[0])[:, None]
    own = np.sum(np.where(classes == label, scores, 0.0), axis=0)
    ahead = np.where(classes < label, ~(scores < own), ~(scores <= own))  # so written, NaN is ahead of all
    rank = np.sum(np.where(ahead & (classes != label), 1.0, 0.0), axis=0)
    hit = (rank < k) & (own == own) & (label >= 0)
    return np.sum(np.where(hit, 1.0, 0.0))
