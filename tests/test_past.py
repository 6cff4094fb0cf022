"""What is written once and not read again goes past the caches where much is moved: what does, and to the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from nets import FAMILIAR, built_from, built_with, is_of_two_ways, kernels_in, layers_of
from thorough import agrees, same_bits

from layerc.transpile import emit
from layerc.transpile.dims import Dim
from layerc.transpile.ir import Const, For, If, Int, Load, Op, Store
from layerc.transpile.passes.past import _outside
from layerc.transpile.passes.tree import walk

PASS = "layerc.transpile.passes.past"
SOURCE = '''
import numpy as np
from layerc import Param, i32, i64, layer, real


@layer
def flat(x: real["*S"], a: real[""]) -> real["*S"]:
    return np.tanh(x) * a


@layer
def both(x: real["N D"]) -> tuple[real["N D"], real["N D"]]:
    """Two results in one loop."""
    return np.sin(x), x * x


@layer
def ticked(x: real["D"], at: i64, v: real[""]) -> real["D"]:
    """One place of each row is changed afterwards."""
    y = 2.0 * x
    y[at] += v
    return y


@layer
def told(x: real["D"], v: real[""]) -> real["D"]:
    """What changes the row asks what the row is."""
    y = 2.0 * x
    y[0] += y[1] * v
    return y


@layer
def crossed(x: real["D"], v: real[""]) -> tuple[real["D"], real["D"]]:
    """What changes one row asks the end of the other, of the same loop."""
    y = 2.0 * x
    z = 3.0 * x
    y[0] += z[-1] * v
    return y, z


@layer
def asked(x: real["D"], v: real[""]) -> tuple[real["D"], real[""]]:
    """A place of the row is another result."""
    y = 2.0 * x
    return y, y[0] * v


@layer
def scattered(x: real["N D"], at: i64["N"]) -> real["N D"]:
    y = np.zeros_like(x)
    for n in range(x.shape[0]):
        y[at[n]] += x[n]
    return y


@layer
def again(x: real["N D"]) -> real["N D"]:
    """Each row is written many times."""
    y = np.empty_like(x)
    for n in range(x.shape[0]):
        for t in range(3):
            for d in range(x.shape[1]):
                y[n, d] = x[n, d] * t
    return y


@layer
def short(x: real["N 16"]) -> real["N 16"]:
    return x / np.sum(x, axis=1, keepdims=True)


@layer
def rows(x: real["T D"], weight: Param[real["D"]]) -> real["T D"]:
    """Its gradient goes over four rows at once, and over those that are left."""
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6) * weight


@layer
def softmax(x: real["T D"]) -> real["T D"]:
    """Its rows lie side by side, and all would ask the same."""
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


'''
SOURCE += layers_of(FAMILIAR, "layer_norm", "batch_norm", "cross_entropy")
SIZES = [1, 3, 15, 16, 17, 100, 1023, 1024, 1025, 1040, 2100]


@pytest.fixture(scope="module")
def leaving(tmp_path_factory):
    """All goes past the caches, rows of one element, too."""
    return built_with(PASS, {"MUCH": -1, "LONG": 1}, tmp_path_factory.mktemp("past"), "leaving", SOURCE)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("past"), "staying", SOURCE)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    file = tmp_path_factory.mktemp("past") / "kernels.py"
    file.write_text(SOURCE)
    return kernels_in(file)


def leaves(kernel):
    found = [s.body[0] for s in walk(kernel.body) if isinstance(s, For) and s.past]
    assert all(isinstance(s, Store) and isinstance(s.value, Load) for s in found)
    return {kernel_root(kernel, s.buffer) for s in found}


def kernel_root(kernel, name):
    return next(b.alias or b.name for b in kernel.buffers if b.name == name)


def shown(kernels):
    return {key: sorted(leaves(k)) for key, k in kernels.items() if leaves(k)}


def test_what_goes_past(kernels):
    found = shown(kernels)
    for name in ("flat", "layer_norm", "batch_norm"):
        assert found[name, "predict"] == ["y"], name
        assert found[name, "backward"] == ["d_x"], name
    assert len(found["both", "predict"]) == 2
    assert found["ticked", "predict"] == ["y"]
    assert found["cross_entropy", "backward"] == ["d_x"]
    assert found["rows", "pullback"] == ["d_x"]
    stores = [s.body[0] for s in walk(kernels["rows", "pullback"].body) if isinstance(s, For) and s.past]
    assert len({str(s.index[1]) for s in stores}) > 4, "four rows, and those left"
    assert found["layer_norm", "vjp"] == ["y"], "numbers of rows are no large arrays"


def test_what_does_not(kernels):
    """What is read or changed again would come back from memory."""
    found = shown(kernels)
    for name in ("told", "scattered", "again", "short"):
        assert (name, "predict") not in found, name
    assert ("cross_entropy", "predict") not in found


def test_rows_ask_once(kernels):
    """Whether there is much to move, not each for itself."""
    for method in ("predict", "backward"):
        kernel = kernels["softmax", method]
        around = [s.var for s in walk(kernel.body) if isinstance(s, For) and any(is_of_two_ways(t) for t in s.body)]
        assert around == ["first"], method


def test_a_branch_of_the_program_is_asked_each_time():
    """What it asks for may be what it changes, or would trap where the loop never runs."""
    zero = Const(0.0, "real")
    change = Store("s", (), zero)
    row = For("k", Dim.of(0), Dim.of("D"), (Store("y", (Dim.of("k"),), zero),), past=True)
    memory = Op("greater", (Load("s", (), "real"), zero), "bool")
    counters = Op("greater", (Int(Dim.of("D")), Const(9, "i64")), "bool")
    for cond, then, moved in ((memory, row, False), (counters, change, False), (counters, row, True)):
        loop = For("i", Dim.of(0), Dim.of("N"), (If(cond, (then,), (change,)),), "seq")
        assert isinstance(_outside(loop), If) == moved


def test_threads_see_it(kernels):
    text = emit.function(kernels["flat", "predict"], "f32")
    assert text.index("lc_past_f32(") < text.index("LC_FENCE();") < text.index("lc_round_again")
    assert "LC_FENCE" not in emit.function(kernels["short", "predict"], "f32")


def cases(size, rng):
    x = rng.standard_normal((5, size))
    at = rng.integers(-size, size, 5)
    yield "flat", [x, rng.standard_normal(5)]
    yield "both", [x[None].repeat(2, 0)]
    yield "ticked", [x, at, rng.standard_normal(5)]
    yield "crossed", [x, rng.standard_normal(5)]
    yield "asked", [x, rng.standard_normal(5)]
    yield "layer_norm", [x, rng.standard_normal(size), rng.standard_normal(size)]
    yield "batch_norm", [rng.standard_normal((3, 5, size)), rng.standard_normal(5), rng.standard_normal(5)]
    yield "cross_entropy", [x, at.astype(np.int32)]
    for examples, rows in ((5, 7), (2, 6), (1, 4)):
        yield "rows", [rng.standard_normal((examples, rows, size)), rng.standard_normal(size)]
        yield "softmax", [rng.standard_normal((examples, rows, size))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_bits_are_the_same(leaving, package, size, dtype):
    rng = np.random.default_rng(size)
    for name, values in cases(size, rng):
        values = [v.astype(dtype) if v.dtype == float else v for v in values]
        one, other = getattr(leaving, name), getattr(package, name)
        (y, back), (want, back_of) = one.vjp(*values), other.vjp(*values)
        dy = [rng.standard_normal(v.shape).astype(dtype) for v in (want if isinstance(want, tuple) else (want,))]
        pairs = [(y, want), (one(*values), other(*values)), (back(*dy), back_of(*dy))]
        for a, b in pairs:
            for p, q in zip(*(v if isinstance(v, tuple) else (v,) for v in (a, b)), strict=True):
                if p is not None:
                    np.testing.assert_array_equal(p, q, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wherever_a_result_begins(leaving, dtype):
    """No line is written but where the result is."""
    rng = np.random.default_rng(0)
    for begin in range(17):
        for size in (1, 2, 15, 16, 31, 32, 33, 63, 64, 200):
            room = np.full(300, 7.0, dtype)
            x = rng.standard_normal((1, size)).astype(dtype)
            leaving.flat(x, np.ones(1, dtype), out=room[begin : begin + size].reshape(1, size))
            np.testing.assert_array_equal(room[begin : begin + size], leaving.flat(x, np.ones(1, dtype))[0])
            assert np.all(room[:begin] == 7) and np.all(room[begin + size :] == 7)


def test_in_place(leaving):
    x = np.random.default_rng(0).standard_normal((3, 2100)).astype(np.float32)
    want = leaving.flat(x, np.ones(3, np.float32))
    leaving.flat(x, np.ones(3, np.float32), out=x)
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("label", [0, 1023, 1024, 2047, 2048, 2099, -1, -2100])
def test_a_place_of_each_strip(leaving, label):
    rng = np.random.default_rng(0)
    agrees(leaving.cross_entropy, [rng.standard_normal((3, 2100)), np.full(3, label, np.int32)], rng, 1e-11, 1e-6)


def test_a_wrong_place_is_told(leaving):
    with pytest.raises(IndexError):
        leaving.ticked(np.ones((3, 1500)), np.array([0, 1500, 2]), np.ones(3))


def test_bits_do_not_hang_on_threads(leaving):
    rng = np.random.default_rng(0)
    same_bits(leaving.layer_norm, [rng.standard_normal((300, 1000)), *rng.standard_normal((2, 1000))])
    same_bits(leaving.flat, [rng.standard_normal((300, 1000)), np.ones(300)])


def test_of_large_arrays(package):
    """As shipped, without a switch."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3000, 1001)).astype(np.float32)
    scale, shift = rng.standard_normal((2, 1001)).astype(np.float32)
    y, back = package.layer_norm.vjp(x, scale, shift)
    d_x = back(x)[0]
    for rows in (slice(0, 7), slice(1499, 1503), slice(2995, 3000)):
        few, back_few = package.layer_norm.vjp(x[rows], scale, shift)
        np.testing.assert_array_equal(y[rows], few)
        np.testing.assert_array_equal(d_x[rows], back_few(x[rows])[0])
