"""Rows of a layer that sees the whole batch walk through a recurrence together, as examples do."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.alike import LANES
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer(batched=True)
def filtered(x: real["N T"], a: Param[real["2"]]) -> real["N T"]:
    n, steps = x.shape
    y = np.empty((n, steps))
    for r in range(n):
        u = 0.0
        v = 0.0
        for t in range(steps):
            w = x[r, t] - a[0] * np.tanh(u) - a[1] * v
            v = u
            u = w
            y[r, t] = w
    return y


@layer(batched=True)
def solved(x: real["N 9"], m: Param[real["9 9"]]) -> real["N 9"]:
    """A triangle that all rows share, which the layer makes before; the rows are read again behind."""
    n = x.shape[0]
    l = np.tril(m) + 4.0 * np.eye(9)
    c = x - x.mean(axis=0)
    y = np.zeros((n, 9))
    for r in range(n):
        for i in range(9):
            s = c[r, i]
            for k in range(i):
                s -= l[i, k] * y[r, k]
            y[r, i] = s / l[i, i]
    return y * c


@layer(batched=True)
def last_one(x: real["N T"]) -> real["N"]:
    """What the last row leaves is asked for behind the loop."""
    n, steps = x.shape
    y = np.zeros(n)
    h = 0.0
    for r in range(n):
        h = 0.0
        for t in range(steps):
            h = np.tanh(0.5 * h + x[r, t])
        y[r] = h
    return y * h


@layer(batched=True)
def summed(x: real["N T"], a: Param[real[""]]) -> real["N T"]:
    """All rows add to one place."""
    n, steps = x.shape
    total = np.zeros(steps)
    for r in range(n):
        h = 0.0
        for t in range(steps):
            h = np.tanh(a * h + x[r, t])
            total[t] += h
    return x * total


@layer(batched=True)
def from_the_second(x: real["N T"]) -> real["N T"]:
    n, steps = x.shape
    y = np.zeros((n, steps))
    for r in range(1, n):
        h = 0.0
        for t in range(steps):
            h = np.tanh(0.5 * h + x[r, t] * x[r - 1, t])
            y[r, t] = h
    return y
'''
SHAPES = {
    "filtered": ["n 7", "2"],
    "solved": ["n 9", "9 9"],
    "last_one": ["n 6"],
    "summed": ["n 5", ""],
    "from_the_second": ["n 6"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("of_rows")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "of_rows", TEXT)


def draw(name: str, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    shapes = [[n if axis == "n" else int(axis) for axis in text.split()] for text in SHAPES[name]]
    return [np.asarray(rng.standard_normal(shape) * 0.5, dtype) for shape in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [1, 3, 4, 15, 16, 17, 37])
def test_values_and_gradients(package, name, n):
    agrees(getattr(package, name), draw(name, n, np.float64), np.random.default_rng(n), 1e-10, 3e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, np.float32))


@pytest.mark.parametrize("name", ["filtered", "solved", "summed"])
def test_they_run_together(folder, name):
    for (layer, method), kernel in kernels_in(folder / "of_rows.py").items():
        if layer == name:
            assert any(isinstance(s, For) and (s.hi - s.lo).value == LANES for s in walk(kernel.body)), method
