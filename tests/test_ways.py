"""What only a branch asks of an index, adds, or stores: in vectors, and with the same faults."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import Check, For, If, Op, Store
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def hinge(x: real["K"], label: i32, *, margin: float = 1.0) -> real[""]:
    total = 0.0
    for j in range(x.shape[0]):
        if j != label:
            total += max(0.0, margin + x[j] - x[label])
    return total / x.shape[0]


@layer
def two_places(x: real["K"], first: i32, second: i32) -> real[""]:
    """What one branch never asks for must not spoil what the other one does."""
    total = 0.0
    for j in range(x.shape[0]):
        if j < 3:
            total += x[j] * x[first]
        elif j == 1000:
            total += x[j] * x[second]
        else:
            total += 0.5 * x[j] * x[j]
    return total


@layer
def in_turn(x: real["K"], first: i32, second: i32) -> real[""]:
    total = 0.0
    for j in range(x.shape[0]):
        if j == 2:
            total += x[j] * x[second]
        if j != first:
            if j > 0:
                total += np.sin(x[j]) * x[first]
    return total


@layer
def rows(x: real["N K"], label: i32["N"]) -> real["N"]:
    n, k = x.shape
    y = np.zeros(n)
    for i in range(n):
        for j in range(k):
            if j != label[i]:
                y[i] += max(0.0, 1.0 + x[i, j] - x[i, label[i]])
    return y


@layer
def one_place(x: real["K"], *, at: int = 2) -> real["K"]:
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        y[j] += x[j] * x[j]
        if j > at:
            y[at] += np.exp(x[j])
    return y


@layer
def spread(x: real["K"], w: Param[real["K"]]) -> real["K"]:
    """Its gradient adds to the first weight all the time, and to each in turn."""
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        y[j] = w[j] * x[j] + w[0] * np.tanh(x[j])
    return y


@layer
def all_but_one(x: real["K"], c: real[""]) -> real[""]:
    total = 0.0
    for j in range(x.shape[0]):
        if j != 3:
            total += max(0.0, 1.0 + x[j] - c)
    return total


@layer
def some_stored(x: real["K"]) -> real["K"]:
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        if x[j] > 0:
            y[j] = x[j] * x[j]
    return y


@layer
def stored_over(x: real["K"]) -> real["K"]:
    y = x.copy()
    for j in range(x.shape[0]):
        if y[j] > 0.5:
            y[j] = 0.5 + np.log(0.5 + y[j])
    return y


@layer
def three_ways(x: real["K"], a: Param[real[""]]) -> real["K"]:
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        if x[j] > 0.5:
            t = a + x[j]
            y[j] = t * t
        elif x[j] < -0.5:
            s = a * x[j]
            y[j] = s * x[j]
            y[j] += s
    return y


@layer
def root_of_some(x: real["K"]) -> real["K"]:
    """Nobody sees the root of what is below 0, nor its gradient."""
    y = np.ones_like(x)
    for j in range(x.shape[0]):
        if x[j] > 0.1:
            r = np.sqrt(x[j])
            y[j] = r * r * r
    return y


@layer
def picked(x: real["N K"], at: i32["N"]) -> real["N"]:
    """Of a few examples and of many: zeros are filled behind the checks, in two ways that share a loop."""
    return x[np.arange(x.shape[0]), at]


@layer
def ordinal(score: real[""], label: i32, cut: Param[real["K"]]) -> real[""]:
    total = 0.0
    for i in range(cut.shape[0]):
        z = score - cut[i]
        if label > i:
            total += np.log(1 + np.exp(-z))
        else:
            total += np.log(1 + np.exp(z))
    return total


@layer
def sigmoid_where(x: real["K"]) -> real["K"]:
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


@layer
def sigmoid_if(x: real["K"]) -> real["K"]:
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        if x[j] >= 0:
            z = np.exp(-x[j])
            y[j] = 1 / (1 + z)
        else:
            z = np.exp(x[j])
            y[j] = z / (1 + z)
    return y


@layer
def roots(x: real["K"], a: Param[real[""]]) -> real["K"]:
    """What is below 0 has no root, and is not asked for one."""
    return np.where(x > 0.1, np.sqrt(np.abs(x) + 0.1) * a, x * np.sqrt(a * a + 1.0) / np.sqrt(1.5 - np.minimum(x, 0.3)))


@layer
def escaping(x: real["K"], c: real["K"]) -> real["K"]:
    """Each element goes on until it is far; what it was at each turn waits for the gradient."""
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        a = x[j]
        n = 0
        while a * a < 4.0 and n < 9:
            a = a * a + c[j]
            n += 1
        y[j] = np.log(1.0 + a * a)
    return y


@layer
def long_ways(x: real["K"]) -> real["K"]:
    """What each line says twice must not be told twice as long after each."""
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        t = x[j]
        if t > 0:
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
            t = np.exp(-t) * t + t / (1 + t * t)
        else:
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
            t = np.exp(t) * t + t / (1 + t * t)
        y[j] = t
    return y


@layer
def places_in_places(x: real["K"]) -> real["K"]:
    """Each of two loops, one within the other, has a place of its own."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[j] += x[i] * x[j]
            y[i] += np.sin(x[j])
            y[0] += x[i] * x[i]
    return y


@layer
def each_its_own(x: real["K"]) -> real["K"]:
    return np.where(x > 0, np.tanh(x) + np.exp(-x), np.exp(np.sin(x)) - 1.0)
'''
NAMES = [line[4 : line.index("(")] for line in TEXT.splitlines() if line.startswith("def ")]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("ways"), "ways", TEXT)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "ways.py"
    path.write_text(TEXT)

    @cache
    def of(upto):
        return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path), upto=upto).parts}

    return of


def draw(name, batch, size, dtype=np.float64):
    rng = np.random.default_rng(batch * 37 + size)
    x = rng.standard_normal((batch, size)).astype(dtype)
    first, second = rng.integers(-size, size, (2, batch)).astype(np.int32)
    return {
        "hinge": lambda: [x, first],
        "two_places": lambda: [x, first, second + 1000],
        "in_turn": lambda: [x, first, second],
        "rows": lambda: [np.stack([x, 2 * x], 1), np.stack([first, second], 1)],
        "picked": lambda: [np.stack([x, 2 * x], 1), np.stack([first, second], 1)],
        "spread": lambda: [x, rng.standard_normal(size).astype(dtype)],
        "all_but_one": lambda: [x, rng.standard_normal(batch).astype(dtype)],
        "three_ways": lambda: [x, np.array(0.7, dtype)],
        "escaping": lambda: [0.9 * x, 0.3 * rng.standard_normal(x.shape).astype(dtype)],
        "ordinal": lambda: [x[:, 0], first, rng.standard_normal(size).astype(dtype)],
        "roots": lambda: [x, np.array(0.7, dtype)],
    }.get(name, lambda: [x])()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "size"), [(1, 4), (3, 3), (17, 9), (40, 70)])
def test_values_and_gradients(package, name, batch, size):
    values = draw(name, batch, size)
    agrees(getattr(package, name), values, np.random.default_rng(size), 1e-9, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, 40, np.float32))


@pytest.mark.parametrize("name", ["hinge", "rows", "spread", "all_but_one", "some_stored", "three_ways"])
def test_nothing_to_go_through(package, name):
    """A loop of no iterations asks nothing."""
    x = np.zeros((3, 2, 0) if name == "rows" else (3, 0))
    label = np.full((3, 2) if name == "rows" else 3, 99, np.int32)
    rest = {"hinge": [label], "rows": [label], "spread": [np.zeros(0)], "all_but_one": [np.ones(3)]}
    rest["three_ways"] = [np.array(0.5)]
    y, pullback = getattr(package, name).vjp(x, *rest.get(name, []))
    assert np.isnan(y).all() if name == "hinge" else not np.any(y)  # 0 / 0, as in NumPy
    pullback(np.ones_like(y))


@pytest.mark.parametrize("bad", [-6, 5, 2**31 - 1])
@pytest.mark.parametrize("batch", [1, 3, 40])
def test_a_branch_that_asks_fails(package, bad, batch):
    x, label = draw("hinge", batch, 5)
    label[batch // 2] = bad
    with pytest.raises(IndexError, match=f"index {bad} is out of range for axis 0 with size 5"):
        package.hinge(x, label)
    with pytest.raises(IndexError, match=f"index {bad} "):
        package.hinge.vjp(x, label)


def test_the_first_that_fails_is_told(package):
    """In the order of the steps: the second place is asked at the third one."""
    x = np.arange(5.0)[None]
    with pytest.raises(IndexError, match="index 77 "):
        package.in_turn(x, np.array([77], np.int32), np.array([99], np.int32))
    with pytest.raises(IndexError, match="index 99 "):
        package.in_turn(x, np.array([1], np.int32), np.array([99], np.int32))


def test_a_branch_that_is_not_taken_asks_nothing(package):
    x = np.array([[2.0]])
    label = np.array([0], np.int32)
    assert package.hinge(x, label) == 0
    assert package.in_turn(x, np.array([77], np.int32), np.array([99], np.int32)) == 0


@pytest.mark.parametrize("name", ["hinge", "all_but_one", "some_stored", "three_ways", "root_of_some", "one_place"])
@pytest.mark.parametrize("method", ["predict", "backward"])
def test_no_loop_has_a_branch(kernels, name, method):
    kernel = kernels("select")[name, method]
    inner = [s for s in walk(kernel.body) if isinstance(s, For) and not any(isinstance(i, For) for i in walk(s.body))]
    working = [loop for loop in inner if not any(isinstance(s, Check) for s in walk(loop.body))]
    assert working
    for loop in working:
        if any(isinstance(s, Store) and s.index for s in walk(loop.body)):
            assert loop.kind == "map"
            assert not any(isinstance(s, If) for s in walk(loop.body))


def test_no_fill_beside_what_adds(kernels):
    """Where labels are asked between, too."""
    kernel = kernels("fuse")["hinge", "backward"]
    assert sum(isinstance(s, For) and s.hi.symbols() == {"K"} for s in walk(kernel.body)) == 2  # one asks


def _dear(kernel):
    """Exponentials, logarithms and quotients that the kernel computes, each where it stands."""
    found = {p for s in walk(kernel.body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op)}
    return Counter(p.op for p in found if p.op in ("exp", "log", "divide", "sqrt"))


@pytest.mark.parametrize(
    ("name", "method", "most"),
    [
        ("ordinal", "predict", {"exp": 1, "log": 1}),
        ("ordinal", "backward", {"exp": 1, "divide": 1}),
        ("sigmoid_where", "predict", {"exp": 1, "divide": 1}),
        ("sigmoid_where", "backward", {"exp": 1, "divide": 2}),
        ("sigmoid_if", "predict", {"exp": 1, "divide": 1}),
        ("sigmoid_if", "backward", {"exp": 1, "divide": 2}),
    ],
)
def test_two_ways_are_one_of_what_is_chosen(kernels, name, method, most):
    assert _dear(kernels("rechosen")[name, method]) == most


@pytest.mark.parametrize("name", ["sigmoid_where", "sigmoid_if"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_at_the_edges(package, name, dtype):
    """Choosing the argument is choosing the result, to the bit; nothing overflows."""
    x = np.array([[-np.inf, -1e30, -100.0, -0.0, 0.0, 1e-30, 100.0, 1e30, np.inf, np.nan]], dtype)
    y, pullback = getattr(package, name).vjp(x)
    assert np.array_equal(y, [[0, 0, y[0, 2], 0.5, 0.5, 0.5, 1, 1, 1, np.nan]], equal_nan=True)
    assert 0 <= y[0, 2] < 1e-40
    (d_x,) = pullback(np.ones_like(y))
    assert np.array_equal(d_x[0, 3:6], [0.25] * 3)
    assert not np.isnan(d_x[0, 1:8]).any()


def test_lanes_that_are_done_are_stored(package):
    """Nobody reads what they leave, and a store of some lanes only takes many times as long on some processors."""
    text = package.escaping.c_source
    kept = re.findall(r"(\w+_saved\w*)\[[^=;]*\] = (.*);", text)
    assert kept
    assert not any("?" in value or "lc_either" in value for _, value in kept)
