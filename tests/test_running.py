"""What a window makes of a number step by step: the reverse saves each of its steps, a row of places for each."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits, sized

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import in_vectors, walk
from layerc.transpile.passes.windows import STRIP

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def dilated(x: real["H W"], s: Param[real["3 3"]]):
    """The largest of a window, with weights: a morphological dilation."""
    h, w = x.shape
    y = np.full((max(h - 2, 0), max(w - 2, 0)), -np.inf)
    for i in range(h - 2):
        for j in range(w - 2):
            for a in range(3):
                for b in range(3):
                    y[i, j] = max(y[i, j], x[i + a, j + b] + s[a, b])
    return y


@layer
def multiplied(x: real["H W"], s: Param[real["2 3"]]):
    """A product, in the array itself."""
    h, w = x.shape
    y = np.ones((max(h - 1, 0), max(w - 2, 0)))
    for i in range(h - 1):
        for j in range(w - 2):
            for a in range(2):
                for b in range(3):
                    y[i, j] = y[i, j] * (1.0 + np.sin(x[i + a, j + b]) * s[a, b])
    return y


@layer
def bordered(x: real["H W"]) -> real["H W"]:
    """... of a number, where there is something."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            top = x[i, j]
            for a in range(3):
                for b in range(3):
                    if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                        top = np.tanh(top) + 0.5 * top * x[i + a - 1, j + b - 1]
            y[i, j] = top
    return y


@layer
def two(x: real["T"], w: Param[real["5"]]):
    """Two numbers that hang on each other."""
    y = np.zeros(max(x.shape[0] - 4, 0))
    for t in range(x.shape[0] - 4):
        p = 1.0
        q = 0.5
        for k in range(5):
            p, q = p + q * np.cos(x[t + k]), q - p * w[k]
        y[t] = p * q
    return y


@layer
def carried(x: real["R T"], w: Param[real["3"]]) -> real["T"]:
    """What a row leaves goes into the next: saved for each of them."""
    y = np.zeros(x.shape[1])
    for r in range(x.shape[0]):
        for t in range(x.shape[1] - 2):
            for k in range(3):
                y[t] = np.sin(y[t] * w[k]) + x[r, t + k]
    return y


@layer
def counting(x: real["H W"]):
    """Sizes that are the larger of two, windows in them, and a count of what is in each: much to be proven."""
    h, n = x.shape
    y = np.zeros((max((h - 2) // 1 + 1, 0), max((n - 5) // 1 + 1, 0)))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            m = np.max(x[1 * i : 1 * i + 2, 1 * j : 1 * j + 5])
            c = 0
            for a in range(2):
                for b in range(5):
                    if x[1 * i + a, 1 * j + b] <= m:
                        c += 1
            y[i, j] = m * m / c + c * x[1 * i, 1 * j]
    return y
'''

SHAPES = {
    "dilated": ["n m", "3 3"],
    "multiplied": ["n m", "2 3"],
    "bordered": ["n m"],
    "two": ["m", "5"],
    "carried": ["n m", "3"],
    "counting": ["n m"],
}
LEAST = {"dilated": 2, "multiplied": 2, "two": 4}  # elements of a row


def draw(name: str, examples: int, n: int, m: int, dtype: type) -> list[np.ndarray]:
    return sized(SHAPES[name], {"n": n, "m": m}, examples, dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("running")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "running_of", TEXT)


WIDTHS = {1: [0, 1, 2, 3, 5, 20, 66, 67, 131], 5: [0, 1, 2, 3, 5, 20, 66, 67, 131], 18: [0, 1, 2, 3, 5, 20]}


@pytest.mark.parametrize(
    ("name", "examples", "m"),
    [(name, b, m) for name in SHAPES for b, widths in WIDTHS.items() for m in widths if m >= LEAST.get(name, 0)],
)
def test_values_and_gradients(package, name, examples, m):
    """Every width beside a strip of 64, and as many examples as walk together."""
    for n in (2, 4) if m < 20 else (3,):
        values = draw(name, examples, n, m, np.float64)
        agrees(getattr(package, name), values, np.random.default_rng(m), 1e-10, 2e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3, 17, 75, np.float32))


def test_ties_are_those_of_each_step(package):
    """Of two that are alike the derivative is a half each, step by step, as the source says."""
    x = np.zeros((1, 3, 70))
    y, pullback = package.dilated.vjp(x, np.zeros((3, 3)))
    d_x, d_s = pullback(np.ones_like(y))
    np.testing.assert_allclose(d_s.ravel(), y.size * np.array([2**-8] + [2.0 ** (k - 9) for k in range(1, 9)]), 1e-12)
    np.testing.assert_allclose(d_x.sum(), y.size, 1e-12)


@pytest.mark.parametrize("name", ["dilated", "multiplied", "two"])
def test_gradients_run_along_memory(package, folder, name):
    """... and the steps of a window, of which each has a row, outside of it."""
    kernel = kernels_in(folder / "running_of.py")[name, "backward"]
    assert sum(isinstance(s, For) and in_vectors(s) for s in walk(kernel.body)) >= 3
    saved = [b for b in kernel.buffers if "saved" in b.name and len(b.shape) > 1]
    assert saved
    assert all(b.shape[-1].value == STRIP for b in saved)
