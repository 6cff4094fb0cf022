"""The built-in layers' mathematics, in the language that layerc compiles.

Functions without `batched=True` describe one example, or one row of it.
"""

import numpy as np

from layerc import Param, Random, bool_, f64, i64, layer, real


@layer(batched=True)
def inner_product(x: real["N D"], weight: Param[real["D K"]], bias: Param[real["K"]]) -> real["N K"]:
    """x @ weight + bias."""
    return x @ weight + bias


@layer
def dropout(x: real["*S"], rng: Random, ratio: float, scale: float) -> real["*S"]:
    """0 with probability `ratio`, else `scale` x."""
    return np.where(rng.random(x.shape) >= ratio, scale * x, 0.0)


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
def power(x: real["*S"], scale: float, shift: float, power: float) -> real["*S"]:
    """(scale x + shift)^power."""
    return (scale * x + shift) ** power


@layer
def softmax(x: real["C"]) -> real["C"]:
    """exp(x) / sum exp(x), stable for any scores."""
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@layer(backward=None)
def top_k_hit(scores: real["C"], label: i64, k: int = 1) -> real[""]:
    """1 if the label is among the k highest scores; of equal scores the lower class is the higher."""
    classes = np.arange(scores.shape[0])
    own = np.sum(np.where(classes == label, scores, 0.0))
    ahead = np.where(classes < label, ~(scores < own), ~(scores <= own))  # so written, NaN is ahead of all
    rank = np.sum(np.where(ahead & (classes != label), 1.0, 0.0))
    return np.where((rank < k) & (own == own) & (label >= 0), 1.0, 0.0)


@layer(backward=None)
def largest(x: real["C"]) -> i64[""]:
    """The index of the largest, the first of equal ones."""
    return np.argmax(x)


@layer(backward=None)
def one_hot(index: i64, n_class: int) -> f64["n_class"]:
    """1 at the index, else 0."""
    return np.where(np.arange(n_class) == index, 1.0, 0.0)


@layer
def crop(x: real["C H W"], top: i64, left: i64, is_mirrored: bool_, height: int, width: int) -> real["C height width"]:
    """A rectangle of every channel, mirrored left to right or not."""
    columns = np.arange(width)
    columns = left + np.where(is_mirrored, width - 1 - columns, columns)
    return x[:, (top + np.arange(height))[:, None], columns]
