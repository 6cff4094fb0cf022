"""Recurrences that look back over a window, which their beginning cuts off: nothing of them is kept or copied."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import built_from, gradient_of
from thorough import agrees

TEXT = '''
import numpy as np
from scipy import special
from layerc import Param, layer, real


@layer
def segments(x: real["T K"], length: Param[real["L K"]]) -> real:
    """Of at most L steps, in a list."""
    T, K = x.shape
    total = np.zeros((T + 1, K))
    for t in range(1, T + 1):
        for k in range(K):
            ways = [total[t - d, k] + length[d - 1, k] for d in range(1, min(len(length), t) + 1)]
            total[t, k] = special.logsumexp(ways) + x[t - 1, k]
    return special.logsumexp(total[T])


@layer
def two_sides(x: real["T"], w: Param[real["3"]], n: int = 3) -> real["T"]:
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        s = x[t]
        for d in range(max(0, t - n), t):
            s += np.tanh(y[d]) * w[t - 1 - d]
        y[t] = s * y[t - 1] if t > 0 else s
    return y


@layer
def in_pieces(x: real["T"], n: int = 4) -> real:
    """Both ends cut off."""
    T = x.shape[0]
    best = np.zeros(T + 1)
    for t in range(1, T + 1):
        s = 0.1
        for d in range(max(1, t - n), min(t + 1, T)):
            s += best[d - 1] * best[d - 1] * x[d]
        best[t] = np.sin(s) + x[t - 1]
    return best[T] + best[1]


@layer
def ahead(x: real["T"]) -> real["T"]:
    """Looks at what is written again later: its earlier values are needed."""
    y = np.copy(x)
    for t in range(x.shape[0]):
        s = 0.0
        for d in range(0, min(3, x.shape[0] - t)):
            s += y[t + d] * y[t + d]
        y[t] = s
    return y
'''
SHAPES = {
    "segments": [(7, 3), ("shared", 4, 3)],
    "two_sides": [(9,), ("shared", 3)],
    "in_pieces": [(11,)],
    "ahead": [(8,)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("windows_back"), "windows_back", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_gradients(package, name, dtype):
    rng = np.random.default_rng(3)
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (1e-5, 1e-3)
    values = [
        np.asarray(rng.standard_normal(s[1:] if s[0] == "shared" else (19, *s)) * 0.5, dtype) for s in SHAPES[name]
    ]
    agrees(getattr(package, name), values, rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_final_is_neither_kept_nor_copied(tmp_path, name):
    text = gradient_of(tmp_path, TEXT, name)
    assert not re.search(r"(total|y|best)(_\d+)?_saved|np.copy\(d_(total|y|best)", text) or name == "ahead", text
