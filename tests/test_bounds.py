"""A branch that asks where a counter is, around a loop that jumps: the loop goes there only; another is innermost."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import For, If
from layerc.transpile.passes.tree import accesses, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def correlation(x: real["C H W"], z: real["C H W"]) -> real["9 H W"]:
    """How like each place of one image is to those around it in another one."""
    c, h, w = x.shape
    y = np.zeros((9, h, w))
    for a in range(3):
        for b in range(3):
            for i in range(h):
                for j in range(w):
                    if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                        for k in range(c):
                            y[3 * a + b, i, j] += x[k, i, j] * z[k, i + a - 1, j + b - 1]
    return y


@layer
def summed(x: real["C W"], z: real["C W"], *, shift: int = 1) -> real["W"]:
    """The same as a sum; how far is told by the call."""
    c, w = x.shape
    y = np.zeros(w)
    for j in range(w):
        if j - shift >= 0 and j - shift < w and shift != 7:
            y[j] = np.sum(x[:, j] * z[:, j - shift])
    return y


@layer
def valued(x: real["C W"], limit: real[""]) -> real["W"]:
    """Values are no places."""
    c, w = x.shape
    y = np.zeros(w)
    for j in range(w):
        if j >= 2 and x[0, j] > limit:
            for k in range(c):
                y[j] += x[k, j] * x[k, j - 2]
    return y


@layer
def either(x: real["C W"]) -> real["W"]:
    """There is something to do for the others, too."""
    c, w = x.shape
    y = np.zeros(w)
    for j in range(w):
        if j >= 3:
            for k in range(c):
                y[j] += x[k, j] * x[k, j - 3]
        else:
            y[j] = x[0, j]
    return y
'''
SHAPES = {"correlation": ["c h w", "c h w"], "summed": ["c w", "c w"], "valued": ["c w", ""], "either": ["c w"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bounds")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "bounds_of", TEXT)


def draw(name: str, c: int, h: int, w: int) -> list[np.ndarray]:
    rng = np.random.default_rng(c + 10 * w)
    return [rng.standard_normal((2, *({"c": c, "h": h, "w": w}[n] for n in text.split()))) for text in SHAPES[name]]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("c", [0, 1, 5])
def test_values_and_gradients(package, name, c):
    """Every width beside a window: none, less than it, a few vectors."""
    if c == 0 and name in ("valued", "either"):
        return
    for h, w in ((0, 3), (1, 1), (2, 2), (1, 17), (3, 40), (4, 0)):
        agrees(getattr(package, name), draw(name, c, h, w), np.random.default_rng(w), 1e-10, 2e-5)


@pytest.mark.parametrize("shift", [-50, -3, 0, 2, 7, 39, 40, 41, 2**62, -(2**62)])
def test_a_shift_of_the_call(package, shift):
    layer = package.summed
    x, z = draw("summed", 3, 0, 40)
    got, pullback = layer.vjp(x, z, shift=shift)
    np.testing.assert_allclose(got, layer.reference(x, z, shift=shift), 1e-12, 1e-12)
    assert np.isfinite(pullback(np.ones_like(got))[0]).all()


def test_the_last_axis_is_innermost(folder, package):
    """... of what is stored, and no branch is left."""
    kernels = {m: k for (name, m), k in kernels_in(folder / "bounds_of.py").items() if name == "correlation"}
    for kernel in kernels.values():
        inner = [
            s for s in walk(kernel.body) if isinstance(s, For) and not any(isinstance(x, For) for x in walk(s.body))
        ]
        for loop in inner:
            stored = [a for a in accesses(loop.body) if a.writes and a.index]
            assert all(loop.var in a.index[-1].symbols() for a in stored)
            assert not any(isinstance(s, If) for s in walk(loop.body))
