"""Threads write to places of their own: sizes above the work that threads are taken for, values at one thread."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc import get_num_threads, set_num_threads

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def spread_out(x: real["T"], weight: Param[real["K"]]) -> real["T+K-1"]:
    """An inner loop moves the place on, as the outer one does."""
    y = np.zeros(x.shape[0] + weight.shape[0] - 1)
    for t in range(x.shape[0]):
        strength = np.sin(x[t])
        for k in range(weight.shape[0]):
            y[t + k] += strength * weight[k]
    return y


@layer
def two_places(x: real["M"], w: Param[real["K"]]) -> real["M+K"]:
    """Two statements, whose places are one apart."""
    n = x.shape[0]
    y = np.zeros(n + w.shape[0])
    for j in range(n):
        t = x[j] * x[j]
        for b in range(w.shape[0]):
            y[j + b] += t * w[b]
            y[j + b + 1] -= t
    return y


@layer
def back(x: real["M"], w: Param[real["K"]]) -> real["M"]:
    """A scatter in the gradient."""
    n = x.shape[0]
    y = np.zeros(n)
    for j in range(n):
        t, s = np.sin(x[j]), 0.0
        for b in range(w.shape[0]):
            if n - 1 - j - b >= 0:
                s += w[b] * x[n - 1 - j - b]
        y[j] = s * t
    return y


@layer
def neighbours(x: real["M"], w: Param[real["K"]]) -> real["M+1"]:
    """No loop inside: places one apart."""
    y = np.zeros(x.shape[0] + 1)
    for j in range(x.shape[0]):
        e = np.exp(np.sin(x[j]) * w[0])
        y[j] += e
        y[j + 1] -= 0.5 * e
    return y


@layer
def rows(x: real["M N"], w: Param[real["K"]]) -> real["M+K N"]:
    y = np.zeros((x.shape[0] + w.shape[0], x.shape[1]))
    for i in range(x.shape[0]):
        for a in range(w.shape[0]):
            for j in range(x.shape[1]):
                y[i + a, j] += x[i, j] * w[a]
    return y


@layer
def dilated(x: real["M"], w: Param[real["K"]], *, step: int = 3) -> real["M+step*K"]:
    y = np.zeros(x.shape[0] + step * w.shape[0])
    for j in range(x.shape[0]):
        for b in range(w.shape[0]):
            y[j + step * b] += np.cos(x[j]) * w[b]
    return y


@layer
def blocks(x: real["M K"], w: Param[real["K"]]) -> real["2*M"]:
    """Places that do not meet: pairs of them."""
    y = np.zeros(2 * x.shape[0])
    for j in range(x.shape[0]):
        for k in range(x.shape[1]):
            for b in range(2):
                y[2 * j + b] += np.sin(x[j, k]) * w[k] * (b + 1)
    return y
'''
SHAPES = {"rows": ("m 3", "k"), "blocks": ("m k", "k")}
NAMES = [line[4 : line.index("(")] for line in TEXT.split("\n") if line.startswith("def ")]


def draw(name: str, examples: int, m: int, k: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(m)
    x, w = ([{"m": m, "k": k, "3": 3}[a] for a in text.split()] for text in SHAPES.get(name, ("m", "k")))
    return [rng.standard_normal((examples, *x)).astype(dtype), 0.3 * rng.standard_normal(w).astype(dtype)]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("races"), "races_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "m", "k"), [(1, 5, 2), (2, 1, 3), (3, 70, 4)])
def test_values_and_gradients(package, name, examples, m, k):
    agrees(getattr(package, name), draw(name, examples, m, k, np.float64), np.random.default_rng(m), 1e-10, 2e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "m", "k"), [(1, 3000, 40), (3, 400, 300), (3, 130, 20), (20, 200, 60)])
def test_threads_do_not_meet(package, name, examples, m, k):
    """The same bits, again and again."""
    layer = getattr(package, name)
    before, found = get_num_threads(), []
    for dtype in (np.float32, np.float64):
        values = draw(name, examples, m, k, dtype)
        dy = np.cos(np.arange(np.size(layer(*values)), dtype=dtype)).reshape(np.shape(layer(*values)))
        found = []
        try:
            for count in (1, 2, 2, 2, 3, 5):
                set_num_threads(count)
                found.append([layer(*values), *layer.vjp(*values)[1](dy)])
        finally:
            set_num_threads(before)
        assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))
