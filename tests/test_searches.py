"""A loop that only looks for something runs element by element, and elements on several threads."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, While
from layerc.transpile.passes.alike import LANES, MANY_LANES
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def spline(x: real["N"], knots: Param[real["K"]], values: Param[real["K"]]) -> real["N"]:
    """Straight between knots, which may be anywhere: the interval is looked for."""
    n, k = x.shape[0], knots.shape[0]
    y = np.empty(n)
    for i in range(n):
        j = 0
        while j < k - 2 and x[i] > knots[j + 1]:
            j += 1
        t = (x[i] - knots[j]) / (knots[j + 1] - knots[j])
        y[i] = (1 - t) * values[j] + t * values[j + 1]
    return y


@layer
def halves(x: real["N"], knots: Param[real["K"]]) -> real["N"]:
    """By halves, with a branch."""
    n = x.shape[0]
    y = np.empty(n)
    for i in range(n):
        low, high = 0, knots.shape[0] - 1
        while high - low > 1:
            middle = (low + high) // 2
            if x[i] > knots[middle]:
                low = middle
            else:
                high = middle
        y[i] = x[i] * knots[low] + knots[high]
    return y


@layer
def newton(x: real["N"]) -> real["N"]:
    """Computes something on the way: many elements at once."""
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        u, step = x[i], 1.0
        while abs(step) > 1e-6:
            step = (u + np.exp(u) - x[i]) / (1 + np.exp(u))
            u = u - step
        y[i] = u
    return y
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("searches")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "searches_of", TEXT)


def draw(name: str, examples: int, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    x = rng.uniform(-0.1, 1.1, (examples, n)).astype(dtype)
    knots, values = np.linspace(0, 1, 12) + rng.uniform(0, 0.05, 12), rng.standard_normal(12)
    return [x, knots.astype(dtype), values.astype(dtype)][: {"spline": 3, "halves": 2, "newton": 1}[name]]


@pytest.mark.parametrize("name", ["spline", "halves", "newton"])
@pytest.mark.parametrize(("examples", "n"), [(1, 1), (1, 200), (2, 33), (4, 70), (21, 5), (0, 4), (3, 0)])
def test_values_and_gradients(package, name, examples, n):
    agrees(getattr(package, name), draw(name, examples, n, np.float64), np.random.default_rng(n), 1e-9, 3e-6)


@pytest.mark.parametrize("name", ["spline", "halves"])
def test_bits_do_not_hang_on_threads(package, name):
    for examples, n in ((1, 3000), (40, 100)):
        same_bits(getattr(package, name), draw(name, examples, n, np.float32))


@pytest.mark.parametrize("name", ["spline", "halves", "newton"])
def test_which_run_together(folder, name):
    body = kernels_in(folder / "searches_of.py")[name, "predict"].body
    wide = [s for s in walk(body) if isinstance(s, For) and (s.hi - s.lo).value in (LANES, MANY_LANES)]
    assert bool(wide) == (name == "newton")
    shared = [s for s in walk(body) if isinstance(s, For) and s.parallel]
    assert any(isinstance(s, While) for s in walk(tuple(shared)))


def test_the_first_place_out_of_range_is_told(package):
    x, knots, values = draw("spline", 4, 600, np.float32)
    with pytest.raises(IndexError, match="spline: index 1 is out of range for axis 0 with size 1"):
        package.spline(x, knots[:1], values[:1])
