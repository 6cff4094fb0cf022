"""Extents that are known not to be negative: slices of an array go over one range with what has their shape."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import own_dims, walk

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def inner(x: real["H W"]) -> real["H-2 W-2"]:
    """The result tells that there is something between the borders."""
    dx = x[1:-1, 2:] - x[1:-1, :-2]
    dy = x[2:, 1:-1] - x[:-2, 1:-1]
    return np.sqrt(dx * dx + dy * dy + 0.1)


@layer
def made(x: real["N"]) -> real[""]:
    """An array that is made tells it."""
    n = x.shape[0]
    s = np.zeros(n - 2)
    s += x[1:-1] * x[2:]
    return np.sum(s * s)


@layer
def unknown(x: real["N"]) -> real[""]:
    """Nothing tells it: of one or two elements there is nothing to add up."""
    return np.sum(x[1:-1] * x[2:])
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("natural")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "natural_of", TEXT)


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 2, 5), (3, 3, 3), (5, 6, 19)])
def test_values_and_gradients(package, shape):
    rng = np.random.default_rng(shape[1])
    agrees(package.inner, [rng.standard_normal(shape)], rng, 1e-12, 2e-6)


@pytest.mark.parametrize("name", ["made", "unknown"])
@pytest.mark.parametrize("n", [2, 3, 4, 40])
def test_of_lines(package, name, n):
    rng = np.random.default_rng(n)
    agrees(getattr(package, name), [rng.standard_normal((2, n))], rng, 1e-12, 2e-6)


def test_less_than_nothing(package):
    with pytest.raises(ValueError, match="negative"):
        package.inner(np.zeros((2, 1, 4)))
    with pytest.raises(ValueError, match="negative"):
        package.made(np.zeros((2, 1)))
    x = np.zeros((2, 1))
    y, pullback = package.unknown.vjp(x)
    assert np.array_equal(y, [0, 0]) and np.array_equal(pullback(np.ones(2))[0], x)


@pytest.mark.parametrize(("name", "cut_off"), [("inner", False), ("made", False), ("unknown", True)])
def test_nothing_is_cut_off_that_cannot_be_negative(folder, package, name, cut_off):
    found = [
        str(d)
        for (layer, method), kernel in kernels_in(folder / "natural_of.py").items()
        if (layer, method) == (name, "backward")
        for s in walk(kernel.body)
        if isinstance(s, For)
        for d in own_dims(s)
    ]
    assert any("max(0, N - " in d or "max(0, H - " in d or "max(0, W - " in d for d in found) is cut_off
