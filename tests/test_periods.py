"""Places that are halves, thirds or remainders of a counter, or held at an edge; and sums into places side by side."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Atom, Dim
from layerc.transpile.ir import Cast, Check, Const, For, Int, Op, Store
from layerc.transpile.passes.tree import accesses, own_exprs, parts, walk
from layerc.transpile.passes.whole import Whole

TEXT = '''
import math

import numpy as np
from layerc import layer, real


@layer
def bilinear(x: real["H W"]) -> real["2*H 2*W"]:
    """Twice the size, half-pixel centres."""
    h, w = x.shape
    y = np.zeros((2 * h, 2 * w))
    for i in range(2 * h):
        for j in range(2 * w):
            si, sj = max((i + 0.5) / 2 - 0.5, 0.0), max((j + 0.5) / 2 - 0.5, 0.0)
            i0, j0 = int(si), int(sj)
            i1, j1 = min(i0 + 1, h - 1), min(j0 + 1, w - 1)
            u, v = si - i0, sj - j0
            top = x[i0, j0] * (1 - v) + x[i0, j1] * v
            bottom = x[i1, j0] * (1 - v) + x[i1, j1] * v
            y[i, j] = top * (1 - u) + bottom * u
    return y


@layer
def nearest(x: real["H W"]) -> real["2*H 3*W"]:
    h, w = x.shape
    y = np.zeros((2 * h, 3 * w))
    for i in range(2 * h):
        for j in range(3 * w):
            y[i, j] = x[i // 2, j // 3] * x[i // 2, j // 3]
    return y


@layer
def shuffled(x: real["4 H W"]) -> real["2*H 2*W"]:
    """Channels become pixels."""
    _, h, w = x.shape
    y = np.zeros((2 * h, 2 * w))
    for i in range(2 * h):
        for j in range(2 * w):
            y[i, j] = np.sin(x[2 * (i % 2) + j % 2, i // 2, j // 2])
    return y


@layer
def held(x: real["H W"]) -> real["H W"]:
    """The edge goes on beyond it."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            y[i, j] = x[i, max(j - 2, 0)] * x[i, j] + x[i, min(j + 1, w - 1)] ** 2
    return y


@layer
def pooled(x: real["H 2*W+1"]) -> real["H W+1"]:
    """Sums of two, and of one at the end."""
    h, w = x.shape
    y = np.zeros((h, w // 2 + 1))
    for i in range(h):
        for j in range(w):
            y[i, j // 2] += x[i, j] ** 3
    return y


@layer
def behind(x: real["H W"]) -> real["H W"]:
    """Towards 0 and downwards are not one below it; -1 is the last one."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            y[i, j] = x[i, int((j - 3) / 4)] * x[i, math.floor((j - 1) / 4)] + x[i, int(-0.25 * j)]
    return y


@layer
def uneven(x: real["H W"]) -> real["H W"]:
    """A tenth is no double, nor are 61 bits: what is rounded stays rounded."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            large = j * 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0
            k = int(large + 1.0 - large)
            y[i, j] = x[i, int(j * 0.1 * 10) % w] * (j * 0.1 - int(j * 0.1)) + x[i, int(j / 49 * 49)] * (k + 1)
    return y


@layer
def part(x: real["H W"], *, first: int = 1) -> real["H W"]:
    """From a column of the call on, and what the last one was."""
    h, w = x.shape
    y = x * 1.0
    for i in range(h):
        last = 0
        s = 0.0
        for j in range(first, w):
            last = j // 2
            s += x[i, last]
            y[i, j] = x[i, j] * x[i, last] + s
        y[i, 0] = y[i, 0] + x[i, last] * last
    return y


@layer
def spread(x: real["H W"]) -> real["H W"]:
    """To a place and its neighbours, and to a sum."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        s = 0.0
        for j in range(w - 2):
            a = x[i, j] * x[i, j + 1]
            y[i, j + 2] += 3 * a
            y[i, j] += a
            s += a
            y[i, j + 1] += 2 * a
        y[i, 0] += s
    return y


@layer
def pairs(x: real["H W"]) -> real["H W"]:
    """To places of which none is another one's."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w // 2):
            y[i, 2 * j] += x[i, j] * x[i, 2 * j]
            y[i, 2 * j + 1] += x[i, j] - x[i, 2 * j + 1]
    return y


@layer
def beyond(x: real["H W"]) -> real["H W"]:
    """Out of range in the second half."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            y[i, j] = x[i, int(1.5 * j)]
    return y
'''

NAMES = ["bilinear", "nearest", "shuffled", "held", "pooled", "behind", "uneven", "part", "spread", "pairs"]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("periods"), "periods_of", TEXT)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "periods_of.py"
    path.write_text(TEXT)
    return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path)).parts}


def draw(name: str, height: int, width: int, dtype: type) -> np.ndarray:
    shape = {"shuffled": (2, 4, height, width), "pooled": (2, height, 2 * width + 1)}.get(name, (2, height, width))
    return np.random.default_rng(height * 31 + width).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 2), (1, 3), (3, 4), (2, 17), (2, 50)])
def test_values_and_gradients(package, name, height, width):
    values = draw(name, height, width, np.float64)
    agrees(getattr(package, name), [values], np.random.default_rng(width), 1e-9, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_in_single_precision(package, name):
    layer, x = getattr(package, name), draw(name, 3, 50, np.float32)
    y, pullback = layer.vjp(x)
    np.testing.assert_allclose(y, layer.reference(x.astype(float)), 2e-5, 2e-5)
    wide = layer.vjp(x.astype(float))[1](np.ones(y.shape))[0]
    np.testing.assert_allclose(pullback(np.ones_like(y))[0], wide, 1e-4, 1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [draw(name, 7, 33, np.float32)])


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("part", "uneven", "spread")])
@pytest.mark.parametrize(("height", "width"), [(0, 3), (3, 0)])
def test_empty(package, name, height, width):
    layer, x = getattr(package, name), draw(name, height, width, np.float64)
    y, pullback = layer.vjp(x)
    np.testing.assert_allclose(y, layer.reference(x), 1e-12)
    assert pullback(np.ones_like(y))[0].shape == x.shape


@pytest.mark.parametrize("first", [0, 2, 9])
def test_from_a_column_of_the_call_on(package, first):
    x = draw("part", 3, 7, np.float64)
    np.testing.assert_allclose(package.part(x, first=first), package.part.reference(x, first=first), 1e-12)


@pytest.mark.parametrize(("width", "index"), [(3, 3), (5, 6)])
def test_out_of_range_is_said(package, width, index):
    x = draw("beyond", 2, width, np.float64)
    np.testing.assert_array_equal(package.beyond(x[:, :, :2]), x[:, :, :2])
    with pytest.raises(IndexError, match=f"index {index} is out of range for axis 1 with size {width}"):
        package.beyond(x)


@pytest.mark.parametrize("name", ["bilinear", "nearest", "shuffled", "held"])
@pytest.mark.parametrize("method", ["predict", "backward"])
def test_the_middle_runs_along_memory(kernels, name, method):
    """No checks, and a loop over all but the edges whose places are linear."""
    body = kernels[name, method].body
    assert not any(isinstance(s, Check) for s in walk(body))
    loops = [s for s in walk(body) if isinstance(s, For) and all(isinstance(x, Store) for x in s.body)]
    places = [[d for a in accesses(loop.body) for d in a.index or () if loop.var in d.symbols()] for loop in loops]
    assert any(own and all(d.split(loop.var) is not None for d in own) for loop, own in zip(loops, places, strict=True))


def test_a_fraction_that_is_the_same_everywhere_is_a_number(kernels):
    """0.25 and 0.75, in the loop over the middle."""
    body = kernels["bilinear", "predict"].body
    loop = next(s for s in walk(body) if isinstance(s, For) and "//2" not in str(s.hi) and len(_stored(s)) == 2)
    assert not any(isinstance(p, Cast) for s in loop.body for e in own_exprs(s) for p in parts(e))


def _stored(loop: For) -> list[Store]:
    return [s for s in loop.body if isinstance(s, Store) and s.buffer == "y"]


def test_what_is_rounded_is_not_presumed(kernels):
    body = kernels["uneven", "predict"].body
    assert any(isinstance(p, Cast) and p.dtype == "i64" for s in walk(body) for e in own_exprs(s) for p in parts(e))


@pytest.mark.parametrize(("name", "loops"), [("spread", 3), ("pairs", 1)])
def test_a_loop_for_each_neighbour(kernels, name, loops):
    """Of those that could be one place; in one loop are those that could not."""
    adding = [
        s
        for s in walk(kernels[name, "predict"].body)
        if isinstance(s, For) and any(isinstance(x, Store) and x.buffer == "y" and x.op == "add" for x in s.body)
    ]
    assert len(adding) >= loops
    if name == "pairs":
        assert any(len(_stored(s)) == 2 for s in adding)


def test_no_atom_is_left_in_the_middle(kernels):
    body = kernels["held", "predict"].body
    loops = [s for s in walk(body) if isinstance(s, For) and any(isinstance(x, Store) for x in s.body)]
    free = [
        s
        for s in loops
        if not any(isinstance(a, Atom) for x in accesses(s.body) for d in x.index or () for a in d.atoms())
    ]
    assert free


@pytest.mark.parametrize(("dtype", "exact"), [("f64", True), ("real", False), ("f32", False)])
def test_a_counter_in_single_precision_is_rounded(dtype, exact):
    """From 2**24 on: its half is no place that is known."""
    half = Op("multiply", (Cast(Int(Dim.of("j")), dtype), Const(0.5, dtype)), dtype)
    facts = {"j": (Dim.of(0), Dim.of("N") - 1)}
    assert (Whole(set(), {}).ratio(half, facts) is not None) == exact
    assert isinstance(Whole(set(), {}).simpler(Cast(half, "i64"), facts), Int) == exact
