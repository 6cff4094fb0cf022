"""A layer file that random programs import from: helpers that are typed from the call."""

import numpy as np

SHARE = 0.75
STEPS = 2


def squeezed(a):
    return np.tanh(a) * SHARE


def mixed(a, b):
    total = squeezed(a)
    for _ in range(STEPS):
        total = total + np.sin(b) * SHARE
    return total


def bumped(a):
    """Writes into its argument."""
    a += 0.25
    a[...] = np.cos(a)
    return a * SHARE


def first_positive(a, otherwise=0.5):
    for v in a.ravel():
        if v > 0:
            return v * 1.0
    return otherwise * np.sum(a)


def one_of(a, b, first):
    """One of its arguments, not a copy."""
    if first:
        return a
    return b
