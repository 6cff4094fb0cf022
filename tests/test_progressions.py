"""`for d in (0, 1)`: a tuple of numbers that a range would count is one, so that the loop counts."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of, kernels_in
from thorough import agrees

from layerc.transpile.ir import For, Load
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def corners(x: real["H W"], table: Param[real["K K"]]) -> real["H W"]:
    """What a table has between its places."""
    y = np.zeros_like(x)
    k = table.shape[0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            u = min(max(x[i, j], 0.0), 1.0) * (k - 1)
            at = min(int(u), k - 2)
            f = u - at
            for a in (0, 1):
                for b in (1, 0):
                    w = (f if a else 1 - f) * (f if b else 1 - f)
                    y[i, j] += w * table[at + a, at + b]
    return y


@layer
def steps(x: real["N"]) -> real["N"]:
    """Down, over zero, of one number, of none that a range counts; counts and places at once."""
    y = np.zeros_like(x)
    for d in (4, 1, -2):
        y += d * np.roll(x, d)
    for d in [-1, 1]:
        y += np.sin(d * x)
    for d in (3,):
        y *= d
    for n, d in enumerate((2, 3, 5)):
        y += n * x**d
    for d in reversed((0, 2, 4)):
        y[d] += 0.5 * y[d] * x[d + 1]
    return y


@layer
def changed(x: real["N"]) -> real["N"]:
    """A target that the body sets; and truths are no numbers."""
    y = np.zeros_like(x)
    for d in (1, 2):
        d = d * 2
        y += x**d
    for on in (False, True):
        y += np.where(on, x, -2 * x)
    return y
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("progressions")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "progressions_of", TEXT)


@pytest.mark.parametrize("batch", [1, 17])
def test_values_and_gradients(package, batch):
    rng = np.random.default_rng(batch)
    x = rng.uniform(-0.2, 1.2, (batch, 3, 5))
    agrees(package.corners, [x, rng.standard_normal((4, 4))], rng, 1e-12, 3e-6)
    for layer in (package.steps, package.changed):
        agrees(layer, [rng.standard_normal((batch, 7))], rng, 1e-12, 3e-6)


def test_a_place_that_is_none_is_an_error(package):
    with pytest.raises(IndexError):
        package.steps(np.zeros((2, 4)))


def test_the_loop_counts(package, folder):
    """No array of 0 and 1; the loops over pixels do not wait for each other."""
    assert "for a in reversed(range(2)):" in gradient_of(folder, TEXT, "corners")
    kernel = kernels_in(folder / "progressions_of.py")["corners", "predict"]
    read = {e.buffer for s in walk(kernel.body) for own in own_exprs(s) for e in parts(own) if isinstance(e, Load)}
    assert not any(name.startswith("concatenate") for name in read)
    assert not any(isinstance(s, For) and s.kind == "seq" and {"H", "W"} & s.hi.symbols() for s in walk(kernel.body))
