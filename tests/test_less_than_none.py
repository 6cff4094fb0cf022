"""Loops that end before they begin go nowhere, whatever a pass makes of them: strips, groups of rows, products."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def sums(x: real["N"], *, less: int = 5) -> real["N"]:
    y = x * 1.0
    for i in range(x.shape[0] - less):
        for j in range(x.shape[0] - 3):
            y[i] += np.cos(0.3 * i * j) * x[j]
    for i in range(2 - less):
        y += np.cos(i) * np.sin(x)
    return y


@layer
def until(x: real["N"], *, less: int = 5) -> real["N"]:
    y = x * 1.0
    for i in range(x.shape[0] - less):
        v = x[i] * x[i]
        while v < 3.0:
            v = v * 1.5 + 0.1
        y[i] = v
    return y


@layer
def recurs(x: real["T N"], *, less: int = 5) -> real["N"]:
    y = np.zeros(x.shape[1])
    for i in range(x.shape[1] - less):
        h = 0.0
        for t in range(x.shape[0] - less):
            h = np.tanh(0.5 * h + x[t, i])
        y[i] = h
    return y


@layer
def rows(x: real["N"], w: Param[real["N N"]], *, less: int = 5) -> real["N"]:
    y = x * 1.0
    for i in range(x.shape[0] - less):
        for k in range(x.shape[0] - less):
            y[i] += w[i, k] * x[k]
    return y


@layer
def rows_and_columns(x: real["N D"], w: Param[real["D D"]], *, less: int = 5) -> real["N D"]:
    n, d = x.shape
    y = x * 1.0
    for i in range(n - less):
        for j in range(d - less):
            for k in range(d - 2):
                y[i, j] += x[i, k] * w[k, j]
    return y


@layer
def neighbours(x: real["N"], *, less: int = 5) -> real["N"]:
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0] - less):
        y[i] += x[i] * x[i + 1]
        y[i + 1] += x[i] - x[i + 1]
        y[(i + 1) // 2] += x[i] ** 3
    return y


@layer
def total(x: real["N M"], *, less: int = 5) -> real[""]:
    """Two numbers below 0, whose product is above it."""
    s = 1.0
    for i in range(x.shape[0] - less):
        for j in range(x.shape[1] - less):
            s += np.exp(x[i, j]) * x[i, j]
    return s


@layer
def largest(x: real["N M"], *, less: int = 5) -> real["N"]:
    y = np.full(x.shape[0], -2.0)
    for i in range(x.shape[0] - less):
        for j in range(x.shape[1] - less):
            y[i] = max(y[i], x[i, j])
    return y


@layer
def pooled(x: real["N M"], *, less: int = 5) -> real["N M"]:
    n, m = x.shape
    y = x * 1.0
    for i in range(n - less):
        for j in range(m - less):
            s = 0.0
            for a in range(3):
                for b in range(3):
                    s += x[min(i + a, n - 1), min(j + b, m - 1)]
            y[i, j] = s * s
    return y
'''
SHAPES = {
    "sums": lambda n: [(n,)],
    "until": lambda n: [(n,)],
    "recurs": lambda n: [(n, n)],
    "rows": lambda n: [(n,), None, (n, n)],
    "rows_and_columns": lambda n: [(n, n), None, (n, n)],
    "neighbours": lambda n: [(n,)],
    "total": lambda n: [(n, n)],
    "largest": lambda n: [(n, n)],
    "pooled": lambda n: [(n, n)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("less"), "less_than_none", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("batch", [1, 3, 21])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 9, 70])
def test_values_and_gradients(package, name, batch, size):
    rng = np.random.default_rng(size)
    first, *rest = SHAPES[name](size)
    values = [0.3 * rng.standard_normal((batch, *first))] + [0.3 * rng.standard_normal(s) for s in rest if s]
    agrees(getattr(package, name), values, rng, 1e-9, 3e-5)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("less", [40, 64, 65, 100, 1500])
def test_far_less_than_none(package, name, less):
    """Nothing but what is there without the loops; and nothing is read or written beside the arrays."""
    first, *rest = SHAPES[name](6)
    rng = np.random.default_rng(3)
    values = [rng.standard_normal((5, *first))] + [rng.standard_normal(s) for s in rest if s]
    layer = getattr(package, name)
    y, pullback = layer.vjp(*values, less=less)
    want = layer.reference(*values, less=less)
    np.testing.assert_array_equal(y, want)
    gradients = pullback(np.ones_like(y))
    d_x = gradients[0] if isinstance(gradients, tuple) else gradients
    np.testing.assert_array_equal(
        d_x, np.broadcast_to(float(name in ("sums", "until", "rows", "rows_and_columns", "pooled")), d_x.shape)
    )
