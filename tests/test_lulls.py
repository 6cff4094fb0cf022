"""Numbers that seldom change from step to step: several steps at once, until one changes."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, If
from layerc.transpile.passes.lulls import STRIP
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import i32, layer, real


@layer
def softmax(x: real["T S"], length: i32) -> real["T S"]:
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top = -np.inf
        for j in range(length):
            top = max(top, x[t, j])
        total = 0.0
        for j in range(length):
            y[t, j] = np.exp(x[t, j] - top)
            total += y[t, j]
        for j in range(length):
            y[t, j] = y[t, j] / total
    return y


@layer
def record(x: real["T S"], length: i32) -> real["T S"]:
    """The largest so far."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top = x[t, 0]
        for j in range(length):
            top = max(top, x[t, j])
            y[t, j] = top
    return y


@layer
def least(x: real["T S"], length: i32) -> real["T S"]:
    """What it was is asked before and behind the step."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        low = np.inf
        for j in range(length):
            v = x[t, j] * x[t, j]
            was = low
            low = min(v, low)
            y[t, j] = low + 0.5 * (was if was < 1e9 else 1.0)
    return y


@layer
def held(x: real["T S"], length: i32) -> real["T S"]:
    """Sample and hold: chosen by something else."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        last = 0.0
        for j in range(length):
            v = x[t, j]
            last = v if abs(v - last) > 1.5 else last
            y[t, j] = last * v
    return y


@layer
def chained(x: real["T S"], length: i32) -> real["T S"]:
    """A step that asks what the one before has stored."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top = 0.0
        for j in range(1, length):
            top = max(top, x[t, j])
            y[t, j] = 0.5 * y[t, j - 1] + top
    return y


@layer
def made_and_asked(x: real["T S"], length: i32) -> real["T S"]:
    """The largest of what the step itself stores."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top = 0.0
        for j in range(length):
            y[t, j] = 0.5 * top + x[t, j]
            top = max(top, y[t, j])
    return y
'''
NAMES = ["softmax", "record", "least", "held", "chained", "made_and_asked"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lulls")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "lulls_of", TEXT)


def draw(s: int, lengths, dtype=np.float64) -> list[np.ndarray]:
    lengths = np.asarray(lengths, np.int32)
    x = np.random.default_rng(s).standard_normal((len(lengths), 3, s)).astype(dtype)
    return [x, lengths]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("s", "lengths"), [(1, [1]), (STRIP, [STRIP, 1]), (50, [0, 1, 15, 16, 17, 31, 32, 33, 50]), (200, [7, 200])]
)
def test_values_and_gradients(package, name, s, lengths):
    agrees(getattr(package, name), draw(s, lengths), np.random.default_rng(s), 1e-10, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(90, [90, 17, 64, 33, 5], np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_and_special_values(package, dtype):
    """As NumPy's own steps give: NaN stays, and so do infinities."""
    x, lengths = draw(64, [64] * 5, dtype)
    x[0] = np.round(x[0])  # many of a kind
    x[1, :, 20] = np.nan
    x[2, :, 40:] = np.inf
    x[3, :, :50] = -np.inf
    x[4] = -0.0
    np.testing.assert_array_equal(package.record(x, lengths), np.maximum.accumulate(x, axis=2))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(package.held(x, lengths), package.held.reference(x, lengths))


def test_shares_of_equal_ones(package):
    x = np.zeros((1, 1, 40))
    x[0, 0, [3, 20, 21, 39]] = 2.0
    y, pullback = package.record.vjp(x, np.array([40], np.int32))
    dy = np.zeros_like(y)
    dy[..., -1] = 1.0
    d_x = pullback(dy)[0]
    want = np.zeros_like(x)
    want[0, 0, [3, 20, 21, 39]] = 0.125, 0.125, 0.25, 0.5
    np.testing.assert_array_equal(d_x, want)


@pytest.mark.parametrize(
    ("name", "strips"), [("record", True), ("held", True), ("chained", False), ("made_and_asked", False)]
)
def test_steps_side_by_side(folder, package, name, strips):
    """What does not change is stored by a loop in vectors, as one way of a branch; not where a step asks for what the
    one before has stored."""
    kernel = kernels_in(folder / "lulls_of.py")[name, "predict"]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq"]
    branches = [
        s
        for loop in loops
        for s in loop.body
        if isinstance(s, If) and [x.kind for x in (*s.then, *s.orelse) if isinstance(x, For)] == ["map", "seq"]
    ]
    assert bool(branches) is strips
