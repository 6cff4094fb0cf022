"""Numbers of a type that is said: of 64 bits where the gradient says them again, and written as text."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

TEXT = '''
import numpy as np
from layerc import i32, layer, real


@layer
def root(x: real["N"], a: i32) -> real["N"]:
    """A place of 32 bits, as one of 64: what the loop assigns."""
    nxt = np.maximum(np.arange(len(x)) - 1, 0)
    y = np.zeros_like(x)
    u = np.int64(a)
    while nxt[u] != u:
        u = nxt[u]
        y[u] += x[u] * x[u]
    return y


@layer
def spread(x: real["N"]) -> real[""]:
    """float("-inf"), as Python has it."""
    top = float("-inf")
    low = float("inf")
    for t in range(x.shape[0]):
        top = max(top, x[t])
        low = min(low, x[t])
    return (top - low) * float("1e-1")
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("casts"), "casts_of", TEXT)


def test_a_cast_to_64_bits_is_printed_as_one(package):
    x = np.random.default_rng(1).standard_normal((3, 9))
    agrees(package.root, [x, np.array([0, 5, 8], np.int32)], np.random.default_rng(2), 1e-12, 1e-6)


def test_float_of_text(package):
    x = np.random.default_rng(3).standard_normal((3, 9))
    agrees(package.spread, [x], np.random.default_rng(4), 1e-12, 1e-6)
