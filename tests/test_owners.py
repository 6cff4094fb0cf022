"""Loops that add at looked-up rows: each thread owns a range of the rows, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in

from layerc import get_num_threads, set_num_threads
from layerc.transpile.ir import For, If, Store
from layerc.transpile.passes.owners import is_settled
from layerc.transpile.passes.tree import walk

SOURCE = '''
import numpy as np
from layerc import Param, i32, i64, layer, real


@layer
def bag(index: i32["L"], table: Param[real["V D"]]) -> real["D"]:
    """The gradient adds at rows that an example names."""
    total = np.zeros(table.shape[1])
    for i in range(index.shape[0]):
        total += table[index[i]]
    return total / index.shape[0]


@layer
def weighted(index: i64["L"], w: real["L"], table: Param[real["V D"]]) -> real["D"]:
    """Its gradient also has numbers of each example's own."""
    return np.sum(w[:, None] * table[index], axis=0)


@layer(batched=True)
def neighbours(x: real["V D"], source: i32["E"], target: i32["E"]) -> real["V D"]:
    y = np.zeros_like(x)
    for e in range(source.shape[0]):
        y[target[e]] += x[source[e]]
    return y


@layer(batched=True)
def messages(x: real["V D"], source: i64["E"], target: i64["E"], w: real["E"]) -> real["V D"]:
    """Added to what is there; a number for each edge."""
    y = x.copy()
    for e in range(source.shape[0]):
        y[target[e]] += np.tanh(w[e]) * x[source[e]]
    return y


@layer(batched=True)
def both_ends(start: real["V D"], x: real["E D"], first: i64["E"], second: i64["E"]) -> real["V D"]:
    """Two places of each iteration, one after the other."""
    y = start.copy()
    for e in range(x.shape[0]):
        y[first[e]] += x[e]
        y[second[e]] -= x[e] * x[e]
    return y
'''

THREADS_ASKED = 1, 2, 3


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("owners"), "owners_of", SOURCE)


def on_threads(call):
    before, found = get_num_threads(), []
    try:
        for count in THREADS_ASKED:
            set_num_threads(count)
            found.append(call())
    finally:
        set_num_threads(before)
    return found


def drawn(name, rows, width, places, rng):
    x = rng.standard_normal((rows, width))
    at = [rng.integers(-rows, rows, places) for _ in range(2)]
    match name:
        case "bag" | "weighted":
            index = rng.integers(-rows, rows, (places // 20, 20))
            return (index.astype(np.int32), x) if name == "bag" else (index, rng.standard_normal(index.shape), x)
        case "neighbours":
            return (x, *(a.astype(np.int32) for a in at))
        case "messages":
            return (x, *at, rng.standard_normal(places))
    return (x, rng.standard_normal((places, width)), *at)


def everything(layer, values, dy):
    y, pullback = layer.vjp(*values)
    given = pullback(dy)
    return [y, *(g for g in (given if isinstance(given, tuple) else (given,)) if g is not None)]


NAMES = ["bag", "weighted", "neighbours", "messages", "both_ends"]
SIZES = [(200, 64, 2000), (200, 16, 4000), (9, 33, 2000), (8, 40, 2000), (3, 70, 2000), (1, 64, 2000), (50, 5, 400)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_same_bits_at_any_number_of_threads(package, name, size, dtype):
    rng = np.random.default_rng(3)
    values = [v.astype(dtype) if v.dtype.kind == "f" else v for v in drawn(name, *size, rng)]
    layer = getattr(package, name)
    wanted = layer.reference(*values)
    dy = rng.standard_normal(wanted.shape).astype(dtype)
    first, *others = on_threads(lambda: everything(layer, values, dy))
    close = 1e-11 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(first[0], wanted, close, close * np.abs(wanted).max())
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_by_differences(package, name):
    rng = np.random.default_rng(5)
    values = list(drawn(name, 60, 40, 1200, rng))
    layer, before = getattr(package, name), get_num_threads()
    set_num_threads(2)
    try:
        y, pullback = layer.vjp(*values)
        dy = rng.standard_normal(y.shape)
        given = pullback(dy)
    finally:
        set_num_threads(before)
    given = [g for g in (given if isinstance(given, tuple) else (given,)) if g is not None]
    floats = [k for k, v in enumerate(values) if v.dtype.kind == "f"]
    for gradient, k in zip(given, floats, strict=True):
        way = rng.standard_normal(values[k].shape)
        step = 1e-6
        up, down = (layer(*values[:k], values[k] + s * step * way, *values[k + 1 :]) for s in (1, -1))
        wanted = np.sum((up - down) / (2 * step) * dy)
        assert np.isclose(np.sum(gradient * way), wanted, 1e-6, 1e-6)


def test_added_in_the_order_of_the_loop(package):
    """Large numbers cancel only if each place is added to in its order; others stay as they are."""
    x = np.ones((4000, 32), np.float32)
    first, second = np.arange(4000) % 40, np.full(4000, -1)
    x[::2] = 3e4
    wanted = np.zeros((50, 32), np.float32)
    for e in range(4000):
        wanted[first[e]] += x[e]
        wanted[second[e]] -= x[e] * x[e]
    for y in on_threads(lambda: package.both_ends(wanted * 0, x, first, second)):
        assert np.array_equal(y, wanted)


def test_nan_and_infinity_go_where_they_are_added(package):
    x = np.ones((100, 32))
    x[7, 3], x[8, 4] = np.nan, np.inf
    source, target = np.arange(2000, dtype=np.int32) % 100, np.arange(2000, dtype=np.int32) % 90
    wanted = package.neighbours.reference(x, source, target)
    for y in on_threads(lambda: package.neighbours(x, source, target)):
        assert np.array_equal(y, wanted, equal_nan=True)
        assert np.isfinite(y[:, :3]).all()


@pytest.mark.parametrize(("which", "place", "bad"), [(1, 3000, 200), (2, 40, -201), (2, 3999, 10**6), (1, 0, -300)])
def test_the_first_place_that_is_not_there_is_reported(package, which, place, bad):
    rng = np.random.default_rng(0)
    values = list(drawn("neighbours", 200, 64, 4000, rng))
    values[which][place] = bad
    if place:
        values[3 - which][place + 1 :] = 999  # a later fault, of other rows

    def said():
        with pytest.raises(IndexError) as caught:
            package.neighbours(*values)
        return str(caught.value)

    first, *others = on_threads(said)
    assert str(bad) in first
    assert others == [first] * len(others)


@pytest.mark.parametrize("name", ["neighbours", "messages"])
def test_no_edges_and_no_nodes(package, name):
    rng = np.random.default_rng(0)
    for size in ((200, 64, 0), (0, 64, 0), (200, 0, 3000)):
        values = (
            drawn(name, *size, rng) if size[0] else [v[:0] if k else v for k, v in enumerate(drawn(name, 1, 4, 0, rng))]
        )
        for y in on_threads(lambda values=values: getattr(package, name)(*values)):
            assert np.array_equal(y, getattr(package, name).reference(*values))


def test_each_part_asks_whose_a_row_is(tmp_path):
    """And clears its rows; one thread asks nothing."""
    path = tmp_path / "owners.py"
    path.write_text(SOURCE)
    found = {
        kernel.name: [s for s in walk(kernel.body) if isinstance(s, If) and is_settled(s) and "part" not in str(s.cond)]
        for kernel in kernels_in(path).values()
    }
    for name in ("bag", "weighted", "neighbours"):
        assert found[f"{name}_backward"]
    for name in ("neighbours", "messages", "both_ends"):
        (asked,) = found[name]
        (parts,) = asked.then
        assert isinstance(parts, For)
        assert parts.parallel
        guards = [s for s in walk(parts.body) if isinstance(s, If) and "part" in str(s.cond)]
        assert len(guards) == (2 if name == "both_ends" else 1)
        assert any(isinstance(s, Store) and s.op is None and "y" in s.buffer for s in walk(parts.body)), "it clears"
        assert not any(isinstance(s, For) and s.parallel for s in walk(asked.orelse))
