"""Few turns over numbers of an element are written out: no recurrence is left, and no state in an array."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

pytestmark = pytest.mark.heavy  # compiles for long

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def horner(x: real["N C"], p: Param[real["C 5"]]) -> real["N C"]:
    n, c = x.shape
    y = np.empty_like(x)
    for i in range(n):
        for j in range(c):
            v = p[j, 4]
            for k in range(3, -1, -1):
                v = v * x[i, j] + p[j, k]
            y[i, j] = v
    return y


@layer
def newton(x: real["N"]) -> real["N"]:
    """Four steps to the root of v + v^3 = x, and what they came by."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        v = x[i]
        way = 0.0
        for _ in range(4):
            step = (v + v * v * v - x[i]) / (1 + 3 * v * v)
            way += step * step
            v -= step
        y[i] = v + way
    return y


@layer
def neighbours(x: real["N"], w: Param[real["3"]]) -> real["N"]:
    """Each adds to the places beside its own."""
    n = x.shape[0]
    y = np.zeros(n + 2)
    for i in range(n):
        v = x[i]
        for k in range(3):
            v = v * w[k] + 1.0
            y[i + k] += v
    return y[1:-1]


@layer
def many(x: real["N"]) -> real["N"]:
    """As many turns as a recurrence has."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        v = 0.5
        for _ in range(30):
            v = 1.5 * v * (1 - v) + x[i]
        y[i] = v
    return y
'''
NAMES = ("horner", "newton", "neighbours", "many")
WRITTEN = {"horner": True, "newton": True, "many": False}


def values(name, rng, n):
    if name == "horner":
        return [rng.standard_normal((3, n, 5)), rng.standard_normal((5, 5))]
    x = 0.1 * rng.standard_normal((3, n))
    return [x, rng.standard_normal(3)] if name == "neighbours" else [x]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("handful")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "of_few_turns", TEXT)


@pytest.mark.parametrize("n", [0, 1, 37])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients(package, name, n):
    agrees(getattr(package, name), values(name, np.random.default_rng(0), n), np.random.default_rng(1), 1e-12, 1e-6)


def test_no_number_stays_none(package):
    x, p = np.array([[[0.0, np.inf, -np.inf, np.nan, 1e200]]]), np.ones((5, 5))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(package.horner(x, p), package.horner.reference(x, p))


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_left_in_order(folder, name):
    for (layer, method), kernel in kernels_in(folder / "of_few_turns.py").items():
        if layer == name and method == "backward":
            loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and s.hi.value is not None]
            assert bool(loops) != WRITTEN[name], kernel.name
