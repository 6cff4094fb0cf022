"""What is taken back, or cleared, though nothing reads its place again, stays."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of
from thorough import agrees

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def scaled(x: real["T S"]) -> real["T S"]:
    """Of each place, what the second loop takes back is asked for; of the first, nothing is."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            y[t, j] = np.exp(x[t, j])
            total += y[t, j]
        for j in range(1, x.shape[1]):
            y[t, j] = y[t, j] / total
    return y


@layer
def neighbours(x: real["S"]) -> real["S"]:
    """A step reads what the one before has written over."""
    y = np.zeros(x.shape)
    for j in range(x.shape[0]):
        y[j] = np.sin(x[j])
    for k in range(3):
        for j in range(1, x.shape[0]):
            y[j] = y[j] * y[j - 1] + x[j]
    return y


@layer
def again(x: real["S"]) -> real["S"]:
    """A place that is read in a later turn of the outer loop."""
    y = np.ones(x.shape)
    for k in range(4):
        for j in range(x.shape[0]):
            y[j] = y[j] * x[j] + 0.5
    return y


@layer
def two_rows(x: real["T S"]) -> real["T S"]:
    y = x.copy()
    for t in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[t, j] = y[t, j] * y[t - 1, j]
        for j in range(x.shape[1]):
            y[t, j] = np.cos(y[t, j])
    return y


@layer
def at_the_end(x: real["S"]) -> real[""]:
    """The first element is asked for once more, behind all."""
    y = np.zeros(x.shape)
    for k in range(2):
        for j in range(x.shape[0]):
            y[j] = y[j] ** 2 + x[j]
    return y[0] * y[-1]
'''
SHAPES = {"scaled": (2, 3, 4), "neighbours": (2, 5), "again": (2, 4), "two_rows": (2, 4, 3), "at_the_end": (2, 4)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("unread")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "unread_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients(package, name):
    x = np.random.default_rng(3).uniform(0.3, 1.2, SHAPES[name])
    agrees(getattr(package, name), [x], np.random.default_rng(4), 1e-12, 2e-6)


def test_only_what_is_read_is_left(folder):
    """Of what the loops write over, the division asks; what the exponential went over nobody asks for."""
    text = gradient_of(folder, TEXT, "scaled")
    assert text.count("= np.empty(") == 2 and "total_saved" in text, text
    assert text.count("= y_saved[") == 1 and "= 0\n" not in text, text


def test_what_is_read_again_is_taken_back(folder):
    text = gradient_of(folder, TEXT, "neighbours")
    assert "y[j_2] = y_saved[k, j_2 - 1]" in text, text
