"""Losses: one number for each example, which the runtime sums, weighs and divides."""

import numpy as np

from layerc import State, i64, layer, real

# Below it a logarithm is under -100: there `binary_cross_entropy` clamps.
_TINY = 3.720075976020836e-44


@layer
def square(p: real["*S"], t: real["*S"]) -> real[""]:
    """sum (p - t)² / 2."""
    return 0.5 * np.sum((p - t) ** 2)


@layer
def binary_cross_entropy(p: real["*S"], t: real["*S"]) -> real[""]:
    """-sum t log p + (1 - t) log(1 - p), logarithms not below -100; a p outside 0..1 gives NaN."""
    q = 1 - p
    p_is_0 = (p >= 0) & (p <= _TINY)
    q_is_0 = (q >= 0) & (q <= _TINY)
    log_p = np.where(p_is_0, -100.0, np.log(np.where(p_is_0, 1.0, p)))
    log_q = np.where(q_is_0, -100.0, np.log(np.where(q_is_0, 1.0, q)))
    return -np.sum(t * log_p + (1 - t) * log_q)


@layer
def hinge(p: real["*S"], t: real["*S"]) -> real[""]:
    """sum max(1 - t p, 0)."""
    short = 1 - t * p
    return np.sum(np.where(short <= 0, 0.0, short))


@layer
def gaussian_kl(mu: real["*S"], sigma: real["*S"]) -> real[""]:
    """KL(N(mu, sigma²) || N(0, 1)) = sum (mu² + sigma² - 2 log sigma - 1) / 2 (Kingma and Welling 2014)."""
    return 0.5 * np.sum(mu * mu + sigma * sigma - 2 * np.log(sigma) - 1)


@layer
def softmax(scores: real["C"], label: i64) -> real[""]:
    """-log softmax(scores)[label]; for a label of -1 something finite that nobody reads."""
    shifted = scores - np.max(scores)
    is_label = np.arange(scores.shape[0]) == label
    return np.log(np.sum(np.exp(shifted))) - np.sum(np.where(is_label, shifted, 0.0))


@layer
def multinomial_logistic(p: real["C"], label: i64) -> real[""]:
    """-log max(p[label], 1e-20); for a label of -1 something finite that nobody reads."""
    chosen = p[max(label, 0)]
    return -np.log(np.where(chosen <= 1e-20, 1e-20, chosen))


@layer
def soft_label_softmax(scores: real["C"], t: real["C"]) -> real[""]:
    """-sum t log softmax(scores); a class that is impossible and not asked for (score -inf, t 0) counts
    nothing."""
    shifted = scores - np.max(scores)
    log_p = shifted - np.log(np.sum(np.exp(shifted)))
    is_void = np.isinf(log_p) & (t == 0)
    return -np.sum(np.where(is_void, 0.0, t * log_p))


@layer(backward=None)
def class_weight(label: i64, weights: State[real["C"]]) -> real[""]:
    """weights[label]; 0 for a label of -1, which is ignored."""
    return np.where(label >= 0, weights[max(label, 0)], 0.0)
