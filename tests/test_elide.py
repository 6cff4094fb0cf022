"""What is made only to be copied is made where the copy goes; and what looks like it, but is not, stays."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile import ir, passes
from layerc.transpile.dims import Dim

SOURCE = '''
import numpy as np
from layerc import i64, layer, real


@layer
def marked(x: real["K"], at: i64):
    """A place that is known at run time is changed after all are stored: its gradient, too."""
    t = np.exp(x - np.max(x))
    t[at] -= 1.0
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = t[i]
    return y


@layer
def moved(x: real["K"], at: i64):
    """Into a part of a larger result, which is filled before."""
    y = np.ones(x.shape[0] + 2)
    t = np.sin(x)
    t[at] *= 3.0
    y[1:-1] = t
    return y


@layer
def asked_again(x: real["K"], at: i64):
    """The model changes after the copy, and is copied once more."""
    y = np.empty((2, x.shape[0]))
    t = np.sin(x)
    t[at] += 1.0
    for i in range(x.shape[0]):
        y[0, i] = t[i]
    t[at] *= 7.0
    for i in range(x.shape[0]):
        y[1, i] = t[i]
    return y


@layer
def read_between(x: real["K"], at: i64):
    """What the result held before the copy is asked for while the copy is made."""
    y = np.cos(x)
    t = np.sin(x)
    for i in range(x.shape[0]):
        t[at] += y[i] * t[i]
    for i in range(x.shape[0]):
        y[i] = t[i]
    return y


@layer
def carried(x: real["T K"], at: i64):
    """What the copy is made of lives on from step to step."""
    t = np.zeros(x.shape[1])
    y = np.empty_like(x)
    for s in range(x.shape[0]):
        for i in range(x.shape[1]):
            t[i] = 0.5 * t[i] + x[s, i]
        t[at] += 1.0
        for i in range(x.shape[1]):
            y[s, i] = t[i]
    return y


@layer
def maybe_stored(x: real["K"], times: i64, at: i64):
    """A loop that runs no times stores nothing: what is filled before is the copy."""
    t = np.zeros_like(x)
    for n in range(times):
        for i in range(x.shape[0]):
            t[i] = x[i] * n
    t[at] += x[at]
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = t[i]
    return y


@layer
def backwards(x: real["K"], at: i64):
    """The copy turns it round."""
    t = np.sin(x)
    t[at] += 2.0
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i] = t[i]
    return y


@layer
def turned(x: real["M K"], at: i64):
    """The copy is the transpose."""
    t = np.sin(x)
    for i in range(x.shape[0]):
        t[i, at] += 2.0
    return t.T
'''
NAMES = ["marked", "moved", "asked_again", "read_between", "carried", "backwards", "turned"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("elide") / "elided.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def package(file):
    return built_from(file.parent, "elided", SOURCE)


def draw(name, size, rng):
    shape = (3, size) if name in ("carried", "turned") else (size,)
    last = int(rng.integers(-size, size))
    return [rng.standard_normal(shape), *([int(rng.integers(0, 3))] if name == "maybe_stored" else []), last]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 100])
def test_values_and_gradients(package, name, size):
    rng = np.random.default_rng(size)
    agrees(getattr(package, name), draw(name, size, rng), rng, 1e-11, 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_of_many_rows(package, name):
    """With examples for several threads, one of them with a place that is not there."""
    layer, rng = getattr(package, name), np.random.default_rng(1)
    several = [np.stack([np.asarray(v) for v in column]) for column in zip(*(draw(name, 40, rng) for _ in range(70)))]
    same_bits(layer, several)
    singly = [layer(*(v[k] for v in several)) for k in range(70)]
    assert np.array_equal(layer(*several), np.stack(singly))
    several[-1][33] = 40
    with pytest.raises(IndexError):
        layer(*several)
    several[-1][33] = 0
    assert np.array_equal(layer(*several)[34], singly[34])


def test_where_it_is_done(file):
    """By what is in arrays of their own: nothing, if what is copied lies where it goes."""
    parts = compile_module(read_module(file), upto="elide").parts
    own = {(p.layer.name, p.method): {b.name for b in p.kernel.buffers if b.kind == "temp" and b.shape} for p in parts}
    for name in ("marked", "moved", "maybe_stored"):
        assert not own[name, "predict"], name
    for name in ("asked_again", "read_between", "carried", "backwards", "turned"):
        assert own[name, "predict"], name


def test_what_is_begun_in_one_iteration_only_stays(file):
    """Of a temporary that no statement around the copy stores as a whole, something lives on from before."""
    s, i, n = Dim.of("s"), Dim.of("i"), Dim.of("N")

    def kernel(*begins):
        added = ir.Store("t", (Dim.of(0),), ir.Const(1.0, "real"), "add")
        copied = ir.For("i", Dim.of(0), n, (ir.Store("y", (s, i), ir.Load("t", (i,), "real")),))
        loop = ir.For("s", Dim.of(0), Dim.of("T"), (*begins, added, copied), "seq")
        buffers = (ir.Buffer("y", "real", (Dim.of("T"), n), "out"), ir.Buffer("t", "real", (n,), "temp"))
        return ir.Kernel("k", ("T", "N"), (), buffers, (loop,))

    fill = ir.For("j", Dim.of(0), n, (ir.Store("t", (Dim.of("j"),), ir.Const(0.0, "real")),))
    first = ir.Op("equal", (ir.Int(s), ir.Const(0, "i64")), "bool")
    assert len(passes.elide(kernel(fill)).buffers) == 1
    for begins in (ir.If(first, (fill,)), ir.For("k", Dim.of(0), s, (fill,), "seq")):
        assert passes.elide(kernel(begins)) == kernel(begins)
