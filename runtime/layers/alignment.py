"""Sums over alignments of two sequences."""

import numpy as np

from layerc import i64, layer, real

# Stands for log 0: far below every logarithm of a probability, yet with finite sums in float32 too.
_NEVER = -1e30


@layer(backward=None)
def spans(x: real["T C"], label: i64["S"]) -> {"x_length": i64, "label_length": i64}:
    """The lengths where none are given: all steps, and the labels before the first -1."""
    n = 0
    while n < label.shape[0] and label[n] != -1:
        n += 1
    return x.shape[0], n


@layer(backward=None)
def counted(label: i64["S"], label_length: i64, blank: int = 0) -> i64["S"]:
    """The labels that count, -1 where one is the blank, and 0 for the others: classes, if the labels are good."""
    inside = np.arange(label.shape[0]) < label_length
    return np.where(inside, np.where(label == blank, -1, label), 0)


@layer
def ctc(x: real["T C"], label: i64["S"], x_length: i64, label_length: i64, blank: int = 0) -> real[""]:
    """-log of the probability, under softmax(x[:x_length]), of all alignments of label[:label_length]
    (Graves et al. 2006); inf, with gradient 0, where none is possible."""
    shifted = x - np.max(x, axis=1, keepdims=True)
    log_p = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    size = 2 * label.shape[0] + 1
    wanted = np.full(size, blank)  # a blank before, between and after the labels
    wanted[1 : 2 * label.shape[0] : 2] = np.where(np.arange(label.shape[0]) < label_length, label, blank)
    may_skip = np.zeros(size)
    may_skip[2:] = np.where((wanted[2:] != blank) & (wanted[2:] != wanted[:-2]), 0.0, _NEVER)
    # alpha[2 + s]: log probability to have come to place s; two places in front that nothing comes to.
    alpha = np.where(np.arange(size + 2) == 2, 0.0, _NEVER)
    front = np.full(2, _NEVER)
    for t in range(x.shape[0]):
        stay, step, skip = alpha[2:], alpha[1:-1], alpha[:-2] + may_skip
        top = np.maximum(np.maximum(stay, step), skip)
        total = np.exp(stay - top) + np.exp(step - top) + np.exp(skip - top)
        moved = np.concatenate([front, top + np.log(total) + log_p[t][wanted]])
        alpha = np.where(t < x_length, moved, alpha)
    loss = -np.logaddexp(alpha[2 + 2 * label_length], alpha[1 + 2 * label_length])
    return np.where(loss > 1e29, np.inf, loss)
