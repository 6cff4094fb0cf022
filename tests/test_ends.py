"""Loops as long as a number that is read from memory: no index is checked at each step, and the first that is out of
range is named all the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import SPELLED, built_from, kernels_in, layers_of
from thorough import agrees, same_bits

from layerc.transpile.ir import Check, For, Store
from layerc.transpile.passes.tree import has, in_vectors, walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def total(x: real["T S"], length: i32) -> real["T"]:
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        for j in range(length):
            y[t] += np.exp(x[t, j])
    return y


@layer
def backwards(x: real["T D"], length: i32, a: Param[real["D"]]) -> real["D"]:
    """A recurrence over the last steps first."""
    h = np.zeros(x.shape[1])
    for t in range(length - 1, -1, -1):
        h = a * h + np.tanh(x[t])
    return h


@layer
def spans(x: real["T D"], start: i32["K"], stop: i32["K"]) -> real["K D"]:
    """Sums over parts of a sequence; a negative place counts from the end."""
    y = np.zeros((start.shape[0], x.shape[1]))
    for k in range(start.shape[0]):
        for t in range(start[k], stop[k]):
            y[k] += x[t] * x[t]
    return y


@layer
def two(x: real["S"], z: real["R"], length: i32) -> real[""]:
    """Either array may be the shorter one."""
    total = 0.0
    for j in range(length):
        total += x[j + 1] * np.exp(z[j])
    return total


@layer
def mirrored(x: real["S"], length: i32) -> real["S"]:
    y = np.zeros(x.shape[0])
    for j in range(length):
        y[length - 1 - j] = np.exp(x[j]) * x[length - 1 - j]
    return y


@layer
def chosen(x: real["S"], at: i32["N"], length: i32) -> real[""]:
    """Places that are read from memory fail anywhere."""
    total = 0.0
    for j in range(length):
        total += x[at[j]] ** 2
    return total


@layer
def inside(x: real["T"], shift: i32) -> real["T"]:
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        if 0 <= t + shift and t + shift < x.shape[0]:
            y[t] = np.exp(x[t + shift])
    return y


@layer
def sums(x: real["N D"], label: i32["N"], *, groups: int = 4) -> real["groups"]:
    """A sum in a place that is read from memory, which no step asks for where rows are empty."""
    y = np.zeros(groups)
    for n in range(x.shape[0]):
        for d in range(x.shape[1]):
            y[label[n]] += np.exp(x[n, d])
    return y


@layer
def downwards(x: real["T D"], length: i32) -> real["T"]:
    """The same of a place that is counted down to."""
    y = np.zeros(x.shape[0])
    for t in range(length - 1, -1, -1):
        for d in range(x.shape[1]):
            y[t] += x[t, d] * x[t, d]
    return y


@layer
def gated(x: real["T D"], length: i32, w: Param[real["D D"]], u: Param[real["D D"]]) -> real["D"]:
    """A recurrence of products, as long as a number says."""
    h = np.zeros(x.shape[1])
    for t in range(length):
        h = np.tanh(x[t] @ w + h @ u)
    return h


@layer
def carried(x: real["S"], length: i32) -> real["S"]:
    """Each step goes over what it has read; the gradient takes that back."""
    y = x * 1.0
    for j in range(length):
        y[j] = y[j] * y[j] + np.sin(y[j])
        y[0] = y[0] + y[j] * 0.5
    return y
'''
TEXT += layers_of(SPELLED, "softmax__loops")

ROWS = ["total", "softmax__loops", "backwards", "two", "mirrored", "inside", "carried", "gated", "downwards", "sums"]


def draw(name: str, batch: int, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 100 + n)

    def floats(*shape: int) -> np.ndarray:
        return (0.5 * rng.standard_normal(shape)).astype(dtype)

    length = rng.integers(0, n + 1, batch).astype(np.int32)
    match name:
        case "total":
            return [floats(batch, 3, n), length]
        case "softmax__loops":
            return [floats(batch, 3, n), np.maximum(length, 1)]
        case "backwards":
            return [floats(batch, n, 4), length, floats(4)]
        case "spans":
            start = rng.integers(-n, n, (batch, 5)).astype(np.int32)
            return [floats(batch, n, 3), start, np.minimum(start + rng.integers(-2, 5, (batch, 5)), n).astype(np.int32)]
        case "two":
            return [floats(batch, n + 1), floats(batch, n + 2), length]
        case "downwards":
            return [floats(batch, n, 3), length]
        case "gated":
            return [floats(batch, n, 5), length, floats(5, 5), floats(5, 5)]
        case "sums":
            return [floats(batch, 6, n), rng.integers(-4, 4, (batch, 6)).astype(np.int32)]
        case "inside":
            return [floats(batch, n), rng.integers(-n - 1, n + 2, batch).astype(np.int32)]
        case "chosen":
            return [floats(batch, n), rng.integers(-n, n, (batch, n)).astype(np.int32), length]
    return [floats(batch, n), length]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ends")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "ends_of", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "ends_of.py")


@pytest.mark.parametrize("name", [*ROWS, "spans", "chosen"])
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (1, 40), (3, 5), (5, 17), (20, 33), (0, 4)])
def test_values_and_gradients(package, name, batch, n):
    agrees(getattr(package, name), draw(name, batch, n, np.float64), np.random.default_rng(n), 1e-10, 2e-5)


@pytest.mark.parametrize("name", [*ROWS, "spans"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 70, 100, np.float32))


def fault_of(layer, values) -> str:
    with pytest.raises(IndexError) as caught:
        layer(*values)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        ("total", [9, 12]),
        ("softmax__loops", [9, 30]),
        ("backwards", [9, 2000]),
        ("mirrored", [9, 11]),
        ("carried", [9]),
    ],
)
def test_the_first_index_out_of_range_is_named(package, name, lengths):
    """That of the first step that has none: 8 of 8; going down it is the largest."""
    for length in lengths:
        values = draw(name, 6, 8, np.float32)
        getattr(package, name)(*values)
        values[1][3] = length
        first = length - 1 if name in ("backwards", "mirrored") else 8
        message = fault_of(getattr(package, name), values)
        assert re.search(rf"index {first} is out of range for axis \d with size 8", message), message


def test_which_of_two_fails_first(package):
    """As Python does: by step, then by place in the line."""
    x, z = np.ones((2, 6), np.float32), np.ones((2, 9), np.float32)
    assert "index 6 is out of range for axis 0 with size 6" in fault_of(package.two, [x, z, np.array([3, 7], np.int32)])
    long = np.ones((2, 20), np.float32)
    assert "with size 9" in fault_of(package.two, [long, z, np.array([3, 17], np.int32)])
    assert "with size 10" in fault_of(package.two, [long[:, :10], z, np.array([3, 17], np.int32)])
    assert "with size 5" in fault_of(package.two, [long, z[:, :5], np.array([0, 6], np.int32)])


def test_negative_places_count_from_the_end(package):
    x = np.arange(12.0).reshape(1, 4, 3)
    start, stop = np.array([[-4, -2, 2]], np.int32), np.array([[-1, 0, 4]], np.int32)
    np.testing.assert_allclose(package.spans(x, start, stop), package.spans.reference(x, start, stop))
    start[0, 1] = -5
    assert "-5" in fault_of(package.spans, [x, start, stop])


def test_an_empty_loop_has_no_fault(package):
    """Whatever its bounds would say, were they not in that order."""
    for length in (0, -1, -500):
        assert package.two(np.ones((1, 2)), np.ones((1, 1)), np.array([length], np.int32)) == 0
        assert not package.mirrored(np.ones((1, 3)), np.array([length], np.int32)).any()
    x = np.ones((1, 4, 3))
    assert not package.spans(x, np.array([[900, 7]], np.int32), np.array([[900, -3]], np.int32)).any()


def test_no_place_is_asked_for_by_empty_rows(package):
    far = np.full((70, 6), 2_000_000_000, np.int32)
    y, pullback = package.sums.vjp(np.ones((70, 6, 0)), far)
    assert y.shape == (70, 4)
    assert not y.any()
    assert pullback(np.ones((70, 4)))[0].shape == (70, 6, 0)
    long = np.full(5, 20_000_000, np.int32)
    assert not package.downwards(np.ones((5, 3, 0)), long).any()
    assert "2000000000" in fault_of(package.sums, [np.ones((70, 6, 1)), far])


@pytest.mark.parametrize("way", ["predict", "backward", "pullback"])
def test_sums_are_in_registers(kernels, way):
    """Of a place in memory that a number from memory says no loop adds to it at each step."""
    kernel = kernels["gated", way]
    arrays = {b.name for b in kernel.buffers if b.shape}
    for loop in (s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s)):
        for stmt in loop.body:
            if isinstance(stmt, Store) and stmt.op and stmt.buffer in arrays:
                assert any(loop.var in d.symbols() for d in stmt.index), (loop, stmt)


@pytest.mark.parametrize("name", ["total", "softmax__loops", "two"])
@pytest.mark.parametrize("way", ["predict", "backward"])
def test_no_step_asks(kernels, name, way):
    """And what is left of the loops runs in vectors."""
    kernel = kernels[name, way]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and not has(s.body, For)]
    assert loops
    assert not any(has(s.body, Check) for s in loops)
    assert any(map(in_vectors, loops))
    assert not any(s.kind == "seq" for s in loops)


def test_what_is_left_for_the_reverse_has_room_for_all_steps(folder, package):
    """No array is copied for each step: an axis tells how many there are at most."""
    text = (folder / "ends_of_compiled" / "gradients.py").read_text().split("def d_carried")[1].split("\ndef ")[0]
    assert "append" not in text
    assert "np.empty((S,)" in text
