"""Rows that windows step along, one long window after the other, are combed into a row for each place of a step."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Load, Store
from layerc.transpile.passes.tree import in_vectors, own_exprs, parts, walk

pytestmark = pytest.mark.optimised

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def decimated(x: real["T"], w: Param[real["K"]], stride: int = 4) -> real["(T-K)//stride+1"]:
    n = (x.shape[0] - w.shape[0]) // stride + 1
    y = np.zeros(n)
    for i in range(n):
        y[i] = np.dot(w, x[i * stride : i * stride + w.shape[0]])
    return y


@layer
def rows(x: real["C T"], w: Param[real["C K"]], stride: int = 2) -> real["C (T-K)//stride+1"]:
    """Of each channel its own."""
    C, T = x.shape
    K = w.shape[1]
    n = (T - K) // stride + 1
    y = np.zeros((C, n))
    for c in range(C):
        for i in range(n):
            for k in range(K):
                y[c, i] += w[c, k] * x[c, i * stride + k]
    return y


@layer
def mixed(x: real["C T"], w: Param[real["O C K"]], stride: int = 3) -> real["O (T-K)//stride+1"]:
    """All channels add to each."""
    O, C, K = w.shape
    n = (x.shape[1] - K) // stride + 1
    y = np.zeros((O, n))
    for o in range(O):
        for i in range(n):
            for c in range(C):
                for k in range(K):
                    y[o, i] += w[o, c, k] * x[c, i * stride + k]
    return y
'''
SHAPES = {"decimated": ((), ()), "rows": ((3,), (3,)), "mixed": ((2,), (3, 2))}
SIZES = [(1, 1200, 37), (3, 61, 16), (5, 40, 7), (2, 9, 9), (2, 30, 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("combed")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "combed_of", TEXT)


def values(name, examples, length, taps, dtype=float):
    rng = np.random.default_rng(length)
    x, w = SHAPES[name]
    draw = (examples, *x, length), (*w, taps)
    return [rng.standard_normal(shape).astype(dtype) for shape in draw], rng


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("examples", "length", "taps"), [(1, 1200, 37), (3, 61, 16), (5, 40, 7), (2, 9, 9), (2, 30, 1)]
)
@pytest.mark.parametrize(("dtype", "tight", "close"), [(np.float64, 1e-11, 1e-5), (np.float32, 2e-4, 5e-3)])
def test_values_and_gradients(package, name, examples, length, taps, dtype, tight, close):
    """Of windows longer and shorter than two steps, of rows of one strip and of several, of what a step leaves over."""
    given, rng = values(name, examples, length, taps, dtype)
    agrees(getattr(package, name), given, rng, tight, close, exact=False)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("name", SHAPES)
def test_other_steps(package, name, stride):
    given, rng = values(name, 5, 83, 18)
    agrees(getattr(package, name), given, rng, 1e-11, 1e-5, exact=False, stride=stride)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 5])
def test_bits_do_not_hang_on_threads(package, name, examples):
    given, _ = values(name, examples, 2500, 21, np.float32)
    same_bits(getattr(package, name), given)


def test_not_a_number_stays_where_it_is(package):
    (x, w), _ = values("decimated", 4, 400, 37)
    _, pullback = package.decimated.vjp(x, w)
    dy = np.ones((4, 91))
    dy[0, 50], dy[1, 0] = np.nan, np.inf
    d_x, _ = pullback(dy)
    assert np.isnan(d_x[0, 200:237]).all()
    assert np.isfinite(np.delete(d_x[0], range(200, 237))).all()
    assert np.isinf(d_x[1, :37]).all()
    assert np.isfinite(d_x[1, 37:]).all()


@pytest.mark.parametrize("shapes", [((0, 50), (9,)), ((3, 8), (9,)), ((4, 9), (9,)), ((2, 4), (0,))])
def test_empty_and_one(package, shapes):
    x, w = (np.ones(shape) for shape in shapes)
    y, pullback = package.decimated.vjp(x, w)
    np.testing.assert_allclose(y, package.decimated.reference(x, w))
    d_x, d_w = pullback(np.ones(y.shape))
    np.testing.assert_allclose(d_w, np.full(w.shape, y.size))
    assert d_x.sum() == y.size * w.size


def test_its_vectors_go_along_memory(package, folder):
    """Nothing of a long window is gathered, or scattered, step by step."""
    kernel = kernels_in(folder / "combed_of.py")["decimated", "backward"]
    combed = {b.name for b in kernel.buffers if "_combed" in b.name}
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s)]
    sums = [s for loop in loops for s in loop.body if isinstance(s, Store) and s.op == "add" and s.buffer in combed]
    read = {
        p.buffer for loop in loops for s in loop.body for e in own_exprs(s) for p in parts(e) if isinstance(p, Load)
    }
    assert sums
    assert any(name.startswith("x_combed") for name in read)
