"""A dear number that a branch has left in a variable is not made again where the same is asked."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.transpile.dims import Atom, Dim
from layerc.transpile.ir import Buffer, Check, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from layerc.transpile.passes.again import again
from layerc.transpile.passes.tree import accesses, walk

I, N = Dim.of("i"), Dim.of("N")
X, Y, V, C = Load("x", (I,), "real"), Load("y", (I,), "real"), Load("v", (), "real"), Load("c", (), "bool")
OTHER = Op("greater", (X, Const(0.0, "real")), "bool")


def put(name: str, value: Expr, *index: Dim) -> Store:
    return Store(name, index, value)


def func(op: str, *args: Expr) -> Expr:
    return Op(op, args, "real")


MAKE = put("v", func("exp", X))
USE = Store("y", (I,), V, "add")
SOME = If(C, (USE,))
CHANGE_X = put("x", Const(1.0, "real"), I)


def made(*body: Stmt) -> int:
    """How often v is, after the pass."""
    shapes = {"x": ("real", (N,), "temp"), "y": ("real", (N,), "out"), "v": ("real", (), "temp")}
    shapes["c"] = ("bool", (), "temp")
    buffers = tuple(Buffer(name, dtype, shape, kind) for name, (dtype, shape, kind) in shapes.items())
    kernel = Kernel("k", ("N",), (), buffers, (For("i", Dim.of(0), N, body, "seq"),))
    return sum(isinstance(s, Store) and s.buffer == "v" for s in walk(again(kernel).body))


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ([MAKE, SOME, MAKE, USE], 1),
        ([MAKE, If(C, (MAKE, USE))], 1),
        ([MAKE, SOME, CHANGE_X, MAKE, USE], 2),
        ([MAKE, put("v", Y), SOME, MAKE, USE], 3),
        ([put("v", func("add", X, Y)), SOME, put("v", func("add", X, Y)), USE], 2),  # of what is cheap nothing is known
        ([If(C, (MAKE,)), USE, If(C, (MAKE, USE))], 1),
        ([If(C, (MAKE,), (put("v", X),)), USE, If(C, (MAKE, USE))], 2),
        ([If(C, (), (MAKE,)), USE, If(C, (), (MAKE, USE))], 1),
        ([If(C, (MAKE,)), USE, If(C, (), (MAKE, USE))], 2),  # the other way
        ([If(C, (MAKE,)), USE, If(OTHER, (MAKE, USE))], 2),
        ([If(C, (MAKE,)), USE, MAKE, USE], 2),
        ([If(C, (MAKE,)), CHANGE_X, If(C, (MAKE, USE))], 2),
        ([If(C, (MAKE,)), USE, put("c", OTHER), If(C, (MAKE, USE))], 2),
        ([If(C, (MAKE, put("c", OTHER))), USE, If(C, (MAKE, USE))], 2),
        ([If(C, (MAKE, CHANGE_X)), USE, If(C, (MAKE, USE))], 2),
        ([If(C, (MAKE,)), put("v", Y), If(C, (MAKE, USE))], 3),
        ([If(OTHER, (MAKE,)), If(C, (CHANGE_X,)), If(OTHER, (MAKE, USE))], 2),
        ([If(C, (USE, MAKE))], 1),  # an earlier turn has left another
        ([put("v", func("exp", V)), SOME, put("v", func("exp", V)), USE], 2),
    ],
)
def test_how_often_it_is_made(body, left):
    assert made(*body) == left


TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def paths(x: real["T K"]) -> real[""]:
    """A recurrence over states, with a number of the one before for all but the first."""
    T, K = x.shape
    alpha = np.zeros(K)
    for t in range(T):
        new = np.zeros(K)
        for s in range(K):
            v = alpha[s]
            if s > 0:
                v = np.logaddexp(v, alpha[s - 1])
            if s > 1 and x[t, s] > 0:
                v = np.logaddexp(v, alpha[s - 2])
            new[s] = v + x[t, s]
        alpha = new
    return np.logaddexp(alpha[K - 1], alpha[K - 2])
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("made_again"), "made_again", TEXT)


@pytest.mark.parametrize(("examples", "t", "k"), [(1, 3, 4), (3, 5, 2), (17, 4, 9), (2, 0, 3), (4, 6, 1)])
def test_values_and_gradients(package, examples, t, k):
    rng = np.random.default_rng(k)
    x = rng.standard_normal((examples, t, k))
    if k > 1:
        agrees(package.paths, [x], rng, 1e-11, 3e-5)
    same_bits(package.paths, [x.astype(np.float32)])


# -- arrays of places ----------------------------------------------------------------------------------------------
I64 = "i64"


def places(name: str, of: str = "dst", size: str = "V", counter: str = "i", number: int = 1) -> For:
    """name[i] = of[i], checked and counted from the end where it is negative."""
    at, there = Dim.of(counter), Load(name, (Dim.of(counter),), I64)
    wrapped = Op(
        "where", (Op("less", (there, Const(0, I64)), "bool"), Op("add", (there, Int(Dim.of(size))), I64), there), I64
    )
    check = Check(Op("less", (there, Int(Dim.of(size))), "bool"), number, (Dim.of(Atom("load", (there,))),))
    return For(counter, Dim.of(0), N, (put(name, Load(of, (at,), I64), at), check, put(name, wrapped, at)))


def use(name: str) -> Store:
    return put("y", Const(1.0, "real"), Dim.of(Atom("load", (Load(name, (Dim.of(0),), I64),))))


CHANGE_DST = put("dst", Const(1, I64), Dim.of(0))


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ([places("a"), use("a"), places("b", counter="j", number=2), use("b")], 1),
        ([places("a"), use("a"), places("b", counter="j"), use("b"), places("d"), use("d")], 1),
        ([places("a"), If(C, (places("b", counter="j"), use("b")))], 1),
        ([If(C, (places("a"), use("a"))), places("b", counter="j"), use("b")], 2),
        ([places("a"), use("a"), CHANGE_DST, places("b", counter="j"), use("b")], 2),
        ([places("a"), use("a"), places("b", of="src", counter="j"), use("b")], 2),
        ([places("a"), use("a"), places("b", size="W", counter="j"), use("b")], 2),  # another check
        ([places("a"), put("a", Const(0, I64), Dim.of(0)), places("b", counter="j"), use("b")], 2),
        ([places("a"), places("b", counter="j"), put("b", Const(0, I64), Dim.of(0)), use("a")], 2),
        ([For("k", Dim.of(0), N, (places("a"), use("a")), "seq"), places("b", counter="j"), use("b")], 2),
        ([places("a"), For("k", Dim.of(0), N, (places("b", counter="j"), use("b")), "seq")], 1),
        ([places("a"), For("k", Dim.of(0), N, (places("b", counter="j"), use("b"), CHANGE_DST), "seq")], 2),
    ],
)
def test_arrays_of_places(body: list[Stmt], left: int) -> None:
    """What is looked up at many places, all checked, is looked up once."""
    arrays = {"a": "temp", "b": "temp", "d": "temp", "dst": "in", "src": "in"}
    buffers = [Buffer(name, I64, (N,), kind) for name, kind in arrays.items()]
    buffers += [Buffer("y", "real", (N,), "out"), Buffer("c", "bool", (), "temp")]
    kernel = Kernel("k", ("N", "V", "W"), (), tuple(buffers), tuple(body))
    found = again(kernel)
    assert sum(isinstance(s, Check) for s in walk(found.body)) == left
    read = {a.buffer for a in accesses(found.body) if not a.writes}
    assert read - {"dst", "src", "c"} <= {a.buffer for a in accesses(found.body) if a.writes}
