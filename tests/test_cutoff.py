"""What is looked up along a line that is cut off at 0 is two loops: before the line begins, and along it. Where it
begins, a number says that is read from memory; a line that leaves the array behind its end is NumPy's IndexError."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import accesses, dim_loads, walk

TEXT = '''
import numpy as np
from layerc import i64, layer, real


@layer
def rows(value: real["N"], weight: i64["N"], cap: int = 9) -> real["cap+1"]:
    dp = np.zeros(cap + 1)
    c = np.arange(cap + 1)
    for v, w in zip(value, weight):
        dp = np.maximum(dp, np.where(c >= w, dp[np.maximum(c - w, 0)] + v, -np.inf))
    return dp


@layer
def held(x: real["T D"], far: i64["D"]) -> real["T D"]:
    """Each column later by a number of its own, the first one held."""
    T, D = x.shape
    y = np.zeros((T, D))
    t = np.arange(T)
    for d in range(D):
        f = far[d]
        y[:, d] = x[np.maximum(0, t - f), d] * x[t, d]
    return y


@layer
def other_side(x: real["T"], far: i64[""]) -> real["T"]:
    """What chooses the other way round, and by another line."""
    t = np.arange(x.shape[0])
    a = x[np.maximum(t - far, 0)]
    return np.where(t < far, 2 * a, a * a) + np.where(t + 1 > far, x, 0)


@layer
def two(x: real["T"], z: real["S"], far: i64["2"]) -> real["T"]:
    """Of two lengths: the shorter one says whether places are there."""
    v = np.zeros(x.shape[0])
    t = np.arange(x.shape[0])
    for f in far:
        at = np.maximum(t - f, 0)
        v = np.tanh(v + x[at] * z[at])
    return v


@layer
def counts(x: real["T"], far: i64[""]) -> real["T"]:
    """Numbers, and no places."""
    at = np.maximum(np.arange(x.shape[0]) - far, 0)
    return x * at


@layer
def moved(x: real["T"], far: i64[""]) -> real:
    """Looked up elsewhere than in its own iteration."""
    at = np.maximum(np.arange(x.shape[0]) - far, 0)
    s = 0.0
    for t in range(x.shape[0]):
        s += x[at[x.shape[0] - 1 - t]] * x[t]
    return s
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cutoff")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "cutoff_of", TEXT)


@pytest.mark.parametrize(("n", "batch"), [(1, 1), (5, 3), (4, 17)])
@pytest.mark.parametrize("cap", [0, 1, 9, 40])
def test_rows(package, n, batch, cap):
    rng = np.random.default_rng(n)
    value, weight = rng.uniform(0.1, 2, (batch, n)), rng.integers(1, 14, (batch, n))
    agrees(package.rows, [value, weight], rng, 1e-12, 1e-6, cap=cap)


@pytest.mark.parametrize("t", [1, 2, 17, 40])
@pytest.mark.parametrize("far", [0, 1, 3, 50])
def test_lines(package, t, far):
    rng = np.random.default_rng(t)
    x = rng.standard_normal((2, t, 3))
    agrees(package.held, [x, rng.integers(0, far + 1, (2, 3))], rng, 1e-12, 1e-6)
    agrees(package.other_side, [x[..., 0], np.array([far, 0])], rng, 1e-12, 1e-6)
    agrees(package.counts, [x[..., 0], np.array([far, -far])], rng, 1e-12, 1e-6)
    agrees(package.moved, [x[..., 0], np.array([far, 1])], rng, 1e-12, 1e-6)
    agrees(package.two, [x[..., 0], x[..., 1], np.array([[far, 0], [1, far]])], rng, 1e-12, 1e-6)


def test_what_is_behind_the_end_is_an_error(package):
    x = np.ones((1, 5))
    for call in (package.other_side, package.other_side.reference, package.other_side.vjp):
        with pytest.raises(IndexError):
            call(x, np.array([-1]))
    for far, length in (([1, 0], 4), ([2, 1], 3), ([0, 0], 0)):
        for call in (package.two, package.two.reference):
            with pytest.raises(IndexError):
                call(x, np.ones((1, length)), np.array([far]))
    want = package.two.reference(x, np.ones((1, 3)), np.array([[2, 3]]))
    np.testing.assert_allclose(package.two(x, np.ones((1, 3)), np.array([[2, 3]])), want)


def test_what_is_no_number(package):
    x = np.arange(6.0)[None]
    for odd in (np.nan, np.inf, -np.inf):
        for k in (0, 3):
            x[0, k] = odd
            for far in (0, 2, 9):
                with np.errstate(all="ignore"):
                    want = package.other_side.reference(x, np.array([far]))
                np.testing.assert_array_equal(package.other_side(x, np.array([far])), want)


def test_none_at_all(package):
    assert package.other_side(np.ones((2, 0)), np.array([0, 3])).shape == (2, 0)
    assert np.array_equal(package.rows(np.ones((2, 0)), np.ones((2, 0), int)), np.zeros((2, 10)))


def test_bits_do_not_hang_on_threads(package):
    rng = np.random.default_rng(3)
    same_bits(package.rows, [rng.uniform(0, 1, (33, 6)), rng.integers(1, 6, (33, 6))])


def looked_up(kernel) -> list[bool]:
    """Of the loops that look a place up beside that of their number: whether each of them reads it from a row."""
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and not any(isinstance(x, For) for x in s.body)]
    found = []
    for loop in loops:
        read = [e for a in accesses(loop.body) for d in a.index or () for e in dim_loads(d)]
        if read:
            found.append(any(e.index for e in read))
    return found


def test_rows_have_no_places(package, folder):
    """One version looks up along the line, the other, for what may be behind the end, in a row of places."""
    kernels = kernels_in(folder / "cutoff_of.py")
    for name, kind in (("rows", "predict"), ("rows", "backward"), ("held", "predict"), ("two", "predict")):
        ways = looked_up(kernels[name, kind])
        assert False in ways, (name, kind)
        assert True in ways, (name, kind)
