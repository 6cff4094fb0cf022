"""Strips of near angles, in loops that add up what they take sines of."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import Op, Store
from layerc.transpile.passes.tree import parts, walk

pytestmark = pytest.mark.optimised

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def snake(x: real["C N"], alpha: Param[real["C"]]) -> real["C N"]:
    y = np.zeros_like(x)
    for c in range(x.shape[0]):
        y[c] = x[c] + np.sin(alpha[c] * x[c]) ** 2 / alpha[c]
    return y


@layer
def waves(x: real["N"], w: Param[real]) -> real[""]:
    """A sum, and the largest."""
    return np.sum(np.sin(w * x)) + np.max(np.cos(x))


@layer
def before(x: real["N"]) -> real["N"]:
    """The first angles are the last of x: where one is read is asked in the iteration."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[2 * i - x.shape[0]] = np.sin(x[i - 2])
    return y


@layer
def itself(x: real["N"]) -> real[""]:
    """Angles that hang on the sum so far are no angles of a strip."""
    s = 0.0
    for i in range(x.shape[0]):
        s += np.sin(x[i] + s)
    return s
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("near")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "near_of", TEXT)


def draw(name: str, n: int, dtype: type, scale: float = 1.0) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    if name == "snake":
        return [scale * rng.standard_normal((3, 2, n)).astype(dtype), rng.uniform(0.5, 2, 2).astype(dtype)]
    first = scale * rng.standard_normal((3, n)).astype(dtype)
    return [first, np.array(1.3, dtype)] if name == "waves" else [first]


@pytest.mark.parametrize("n", [1, 7, 64, 1023, 1025, 3000])
@pytest.mark.parametrize("name", ["snake", "waves", "itself", "before"])
def test_values_and_gradients(package, name, n):
    if name == "itself" and n > 64:
        n = 64  # it is chaotic
    if name == "before":
        n += 1  # the first place is the second from the end
    agrees(getattr(package, name), draw(name, n, np.float64), np.random.default_rng(n), 1e-9, 3e-5)


@pytest.mark.parametrize("name", ["snake", "waves"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3000, np.float32))


@pytest.mark.parametrize("far", [1e7, np.inf, np.nan])
def test_one_far_angle_changes_nothing_else(package, far):
    """The strip that has it takes the other way; what is beside it, and in other strips, is the same in every bit."""
    x, alpha = draw("snake", 3000, np.float32)
    dy = np.ones_like(x)
    want = package.snake.vjp(x, alpha)[1](dy)[0]
    x[1, 0, 1500] = far
    y, pullback = package.snake.vjp(x, alpha)
    got, d_alpha = pullback(dy)
    others = np.ones(x.shape, bool)
    others[1, 0, 1500] = False
    assert np.array_equal(got[others], want[others])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(y, package.snake.reference(x.astype(float), alpha.astype(float)), 2e-3)
    assert np.isfinite(d_alpha[1]) and np.isfinite(d_alpha[0]) == np.isfinite(far)


@pytest.mark.parametrize(("name", "method"), [("snake", "backward"), ("waves", "predict")])
def test_a_loop_with_sums_asks(folder, package, name, method):
    kernel = kernels_in(folder / "near_of.py")[name, method]
    values = [s.value for s in walk(kernel.body) if isinstance(s, Store)]
    ops = {p.op for value in values for p in parts(value) if isinstance(p, Op)}
    assert "sin_near" in ops and "sin" not in ops
