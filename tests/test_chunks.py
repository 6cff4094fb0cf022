"""What threads share: loops of few iterations, one or two of them, and the memory that a call leaves to the next."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from nets import built_from, kernels_in

from layerc import get_num_threads, set_num_threads
from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, If
from layerc.transpile.passes.chunk import COPIED
from layerc.transpile.passes.tree import accesses, walk

SOURCE = '''
import numpy as np
from layerc import i64, layer, real


@layer
def products(x: real["G M K"], w: real["G K N"]):
    """As a convolution in G groups: the loop around the products may have one iteration."""
    y = np.empty((x.shape[0], x.shape[1], w.shape[2]))
    for g in range(x.shape[0]):
        y[g] = np.maximum(x[g] @ w[g], 0.0)
    return y


@layer
def strips(x: real["G M"], w: real["K N"]):
    """As a convolution in strips: each iteration makes the operand of its product, which stays with one thread."""
    rows = x.shape[1] - w.shape[0] + 1
    y = np.empty((x.shape[0], rows, w.shape[1]))
    for g in range(x.shape[0]):
        t = np.empty((rows, w.shape[0]))
        for k in range(w.shape[0]):
            t[:, k] = x[g, k : k + rows]
        y[g] = t @ w
    return y


@layer
def filters(x: real["G D T"], a: real["D"]):
    y = np.empty_like(x)
    for g in range(x.shape[0]):
        for d in range(x.shape[1]):
            s = 0.0
            for t in range(x.shape[2]):
                s = s * a[d] + np.sin(x[g, d, t])
                y[g, d, t] = s / (1.0 + s * s)
    return y


@layer
def looked_up(x: real["G D T"], at: i64["G D"]):
    y = np.zeros((x.shape[0], x.shape[1], x.shape[2]))
    for g in range(x.shape[0]):
        for d in range(x.shape[1]):
            for t in range(x.shape[2]):
                y[g, d, t] = np.exp(x[g, d, at[g, d]]) * np.sin(x[g, d, t])
    return y


@layer
def by_way_of_much(x: real["N M"]):
    """Two temporaries as large as x."""
    y = np.cumsum(x, axis=0)
    z = np.cumsum(y[::-1], axis=1)
    return np.sum(z[::2], axis=0) + np.sum(z[:, :1])
'''
THREADS = (1, 2, 3, 5)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    package = built_from(folder, "chunks_of", SOURCE)
    package.folder = folder / "chunks_of_compiled"
    return package


def on_threads(call):
    """What a call gives on each number of threads."""
    before, found = get_num_threads(), []
    try:
        for count in THREADS:
            set_num_threads(count)
            found.append(call())
    finally:
        set_num_threads(before)
    return found


def same_bits(arrays):
    return all(np.array_equal(a, arrays[0], equal_nan=True) for a in arrays)


def test_two_loops_are_split(package):
    """A recurrence for each of G times D rows: the chunks of both are counted."""
    assert "% parts" in (package.folder / "chunks_of.c").read_text()


@pytest.mark.parametrize("groups", [0, 1, 2, 3, 4, 7, 70])
@pytest.mark.parametrize("size", [3, 130])
def test_products_in_few_groups(package, groups, size):
    rng = np.random.default_rng(groups)
    x, w = rng.standard_normal((groups, size, size + 1)), rng.standard_normal((groups, size + 1, 2 * size))
    dy = rng.standard_normal((groups, size, 2 * size))
    values = on_threads(lambda: package.products(x, w))
    np.testing.assert_allclose(values[0], np.maximum(x @ w, 0), 1e-12, 1e-12)
    assert same_bits(values)
    for position in range(2):
        assert same_bits(on_threads(lambda at=position: package.products.vjp(x, w)[1](dy)[at]))


def test_two_iterations_that_make_their_operands_are_split(package):
    """Patches that one thread makes and two read would go from core to core."""
    assert "if (G >= 2)" in (package.folder / "chunks_of.c").read_text()


@pytest.mark.parametrize("groups", [0, 1, 2, 3, 70])
def test_strips(package, groups):
    rng = np.random.default_rng(groups)
    x, w = rng.standard_normal((groups, 150)), rng.standard_normal((9, 16))
    dy = rng.standard_normal((groups, 142, 16))
    values = on_threads(lambda: package.strips(x, w))
    seen = np.lib.stride_tricks.sliding_window_view(x, 9, axis=1)
    np.testing.assert_allclose(values[0], seen @ w, 1e-12, 1e-12)
    assert same_bits(values)
    found = [on_threads(lambda at=position: package.strips.vjp(x, w)[1](dy)[at]) for position in range(2)]
    assert all(map(same_bits, found))
    np.testing.assert_allclose(found[1][0], np.einsum("gmk,gmn->kn", seen, dy), 1e-11, 1e-11)


def filters_of(x, a):
    y, s = np.empty_like(x), np.zeros(x.shape[:2])
    for t in range(x.shape[2]):
        s = s * a + np.sin(x[:, :, t])
        y[:, :, t] = s / (1 + s * s)
    return y


@pytest.mark.parametrize("groups", [0, 1, 2, 3, 50, 70])
@pytest.mark.parametrize("depth", [0, 1, 7, 100])
def test_recurrences_of_few_groups(package, groups, depth):
    rng = np.random.default_rng(depth)
    x, a = rng.standard_normal((groups, depth, 400)), rng.uniform(0.1, 0.9, depth)
    values = on_threads(lambda: package.filters(x, a))
    np.testing.assert_allclose(values[0], filters_of(x, a), 1e-12, 1e-12)
    assert same_bits(values)
    assert same_bits(on_threads(lambda: package.filters.vjp(x, a)[1](values[0])[0]))


@pytest.mark.parametrize("groups", [1, 2, 70])
def test_the_first_fault_is_reported(package, groups):
    """Chunks of two loops are in the order of their iterations."""
    x, at = np.zeros((groups, 60, 300)), np.zeros((groups, 60), np.int64)
    at[-1, 20], at[-1, 50] = 301, 302
    if groups > 1:
        at[-2, 59] = 303

    def message():
        with pytest.raises(IndexError) as caught:
            package.looked_up(x, at)
        return str(caught.value)

    said = on_threads(message)
    assert len(set(said)) == 1 and ("303" if groups > 1 else "301") in said[0]


def test_room_for_parts_of_what_is_less_than_nothing(tmp_path):
    """An extent that would be negative, in a loop that never runs, divides nothing: the processor stops at that."""
    shorter = """
        import numpy as np
        from layerc import layer, real


        @layer
        def shorter(a: real["N"], b: real["K"]):
            y = np.zeros((a.shape[0],))
            for t in range(a.shape[0]):
                y[1:] = np.tanh((0.5 * np.ones((b.shape[0],))) @ (0.5 * np.ones((b.shape[0], a.shape[0] - 1))))
                y[t] = a[t]
            return y
        """
    layer = built_from(tmp_path, "shorter_of", textwrap.dedent(shorter)).shorter
    for rows, size in ((0, 3), (1, 3), (4, 2), (3, 0)):
        values = np.linspace(0, 1, rows), np.linspace(0, 1, size)
        np.testing.assert_allclose(layer(*values), layer.reference(*values), 1e-12, 1e-12)


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts pages of Linux")
@pytest.mark.parametrize("rows", [100, 400, 1200])
def test_a_call_leaves_its_memory_to_the_next(package, rows):
    """Pages that are given back are cleared when they are taken again."""
    x = np.random.default_rng(0).standard_normal((rows, 1000))
    for _ in range(3):
        package.by_way_of_much(x)
    before = faults()
    for _ in range(20):
        package.by_way_of_much(x)
    assert faults() - before < 20


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm lists the symbols of the library")
def test_a_library_keeps_one(package):
    """Its parts, which are compiled on their own, share it."""
    (library,) = package.folder.glob("*.so")
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout.split("\n")
    assert sum(line.endswith(" lc_kept") for line in symbols) == 1


def test_calls_at_the_same_time_take_their_own(package):
    inputs = [np.random.default_rng(k).standard_normal((50 + 40 * k, 300)) for k in range(6)]
    expected = [package.by_way_of_much(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for got, wanted in zip(pool.map(package.by_way_of_much, inputs), expected, strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_threads_born_in_a_gradient_round_as_others(tmp_path):
    """A gradient lets what is below the smallest normal number be 0: threads that start in one go on without that."""
    source = """
import numpy as np
from layerc import layer, real


@layer
def powers(x: real["N"]) -> real["N"]:
    y = np.ones_like(x)
    for k in range(8):
        y = y * x
    return y
"""
    program = """
import numpy as np, powers_of_compiled as L
from layerc import set_num_threads
x = np.linspace(1e-4, 1e-6, 200_000, dtype=np.float32).reshape(20, -1)
set_num_threads(1)
alone = L.powers(x)
set_num_threads(3)
few = x[:4, :200]
L.powers.vjp(few)[1](few)  # the pullback has the first work of the process that is worth threads
assert 0 < np.sum((alone > 0) & (alone < 1.17e-38)), "no such numbers here"
assert np.array_equal(L.powers(x), alone), "lost"
"""
    built_from(tmp_path, "powers_of", source)
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


STEPS = """
import numpy as np
from layerc import layer, real


@layer
def settled(x: real["T K"], w: real["K K"]) -> real["T K"]:
    y = np.zeros_like(x)
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = np.tanh(np.sum(w * h, axis=1) + x[t])
        y[t] = h
    return y
"""


def test_few_examples_of_small_steps_go_alone(tmp_path):
    """Whether a step is worth threads is asked once, of its extents, and not at each step; the sums are the same."""
    path = tmp_path / "steps.py"
    path.write_text(STEPS)
    (part,) = [p for p in compile_module(read_module(path)).parts if p.method == "predict"]
    (asked,) = [s.cond for s in part.kernel.body if isinstance(s, If)]
    assert "batch" in str(asked)
    assert "80000" in str(asked), "twice the work that is worth threads"
    layer = built_from(tmp_path, "steps_of", STEPS).settled
    rng = np.random.default_rng(1)
    for batch in (1, 3, 4):
        for size in (3, 300):
            x, w = rng.standard_normal((batch, 5, size)), 0.1 * rng.standard_normal((batch, size, size))
            np.testing.assert_allclose(layer(x, w), layer.reference(x, w), 1e-9, 1e-9)


LARGEST = """
import numpy as np
from layerc import i64, layer, real


@layer
def largest(x: real["E H"], node: i64["E"], *, nodes: int = 5) -> real["nodes H"]:
    top = np.full((nodes, x.shape[1]), -np.inf)
    for e in range(x.shape[0]):
        top[node[e]] = np.maximum(top[node[e]], x[e])
    return top
"""


def test_a_short_row_of_a_step_enters_no_region(tmp_path):
    """Of one thread, either: that takes longer than the row."""
    path = tmp_path / "largest.py"
    path.write_text(LARGEST)
    (part,) = [p for p in compile_module(read_module(path)).parts if p.method == "predict"]
    steps = [s for s in walk(part.kernel.body) if isinstance(s, For) and s.var.startswith("e")]
    assert not any(isinstance(s, For) and s.parallel for step in steps for s in step.body)
    asked = [s for step in steps for s in step.body if isinstance(s, If)]
    assert any("threads" in str(s.cond) for s in asked)
    layer = built_from(tmp_path, "largest_of", LARGEST).largest
    rng = np.random.default_rng(1)
    for batch, rows, length in ((1, 40, 3), (1, 5, 50_000), (5, 9, 33)):
        x, node = rng.standard_normal((batch, rows, length)), rng.integers(0, 5, (batch, rows))
        values = on_threads(lambda x=x, node=node: layer(x, node))
        np.testing.assert_array_equal(values[0], layer.reference(x, node))
        assert same_bits(values)


def test_a_part_is_of_one_example_where_the_loop_is(tmp_path):
    """A few large examples go one after the other: what a chunk adds up of one has no axis for them."""
    source = """
        import numpy as np
        from layerc import layer, real

        @layer
        def spread(x: real["M W"], z: real["M W"]) -> real["W"]:
            y = np.zeros(x.shape[1])
            for k in range(x.shape[0]):
                for j in range(x.shape[1]):
                    if j + k < x.shape[1]:
                        y[j + k] += np.tanh(x[k, j]) * z[k, j]
            return y
        """
    layer = built_from(tmp_path, "of_one_example", source).spread
    kernel = kernels_in(tmp_path / "of_one_example.py")["spread", "predict"]
    parts = [b for b in kernel.buffers if "_part" in b.name and len(b.shape) > 1]
    assert parts
    assert any(b.shape[1:] == (Dim.of("W"),) for b in parts)
    rng = np.random.default_rng(0)
    for examples in (1, 2, 3, 5):
        x, z = rng.standard_normal((2, examples, 70, 600))
        np.testing.assert_allclose(layer(x, z), layer.reference(x, z), 1e-12, 1e-12)


SCATTER = """
import numpy as np
from layerc import i64, layer, real


@layer(backward=None)
def summed(at: i64["N 2"], x: real["N D"], *, rows: int = 64) -> real["rows rows D"]:
    table = np.zeros((rows, rows, x.shape[1]))
    for n in range(x.shape[0]):
        table[at[n, 0], at[n, 1]] += np.exp(np.sin(x[n])) + np.cos(x[n])
    return table
"""


def test_copies_of_a_table_pay_or_are_not_made(tmp_path):
    """There are as many as the work is worth; where it is worth none, what is scattered goes to its place at once."""
    path = tmp_path / "scatter.py"
    path.write_text(SCATTER)
    (part,) = compile_module(read_module(path)).parts
    asked = [s for s in walk(part.kernel.body) if isinstance(s, If) and f"{COPIED}*" in str(s.cond)]
    assert asked
    for one in asked:
        assert any("_part" in a.buffer for a in accesses(one.then))
        assert not any("_part" in a.buffer for a in accesses(one.orelse))
        adding = one.then[-1]
        assert isinstance(adding, For)
        assert adding.parallel, "threads share its rows"
    layer = built_from(tmp_path, "scatter_of", SCATTER).summed
    rng = np.random.default_rng(1)
    for n, rows in ((40000, 3), (40000, 64), (40, 64), (0, 5)):
        at, x = rng.integers(0, rows, (1, n, 2)), rng.standard_normal((1, n, 5))
        found = on_threads(lambda at=at, x=x, rows=rows: layer(at, x, rows=rows))
        np.testing.assert_allclose(found[0], layer.reference(at, x, rows=rows), 1e-10, 1e-10)
        assert same_bits(found)


def test_examples_of_memory_by_two_names_are_shared_out(tmp_path):
    """A gradient that adds to single places of each example, and to all of them as one axis."""
    source = """
        import numpy as np
        from layerc import i64, layer, real

        @layer
        def scored(x: real["T V"], label: i64["T"]) -> real[""]:
            total = 0.0
            for t in range(1, x.shape[0]):
                total = np.tanh(total + x[t - 1, label[t]]) * x[t, 0]
            return total + np.sum(np.exp(x) * x)
        """
    layer = built_from(tmp_path, "by_two_names", source).scored
    kernel = kernels_in(tmp_path / "by_two_names.py")["scored", "backward"]
    outside = [s for s in walk(kernel.body) if isinstance(s, For) and s.parallel]
    names = {b.name for b in kernel.buffers if b.name == "d_x" or b.alias == "d_x"}
    assert len(names) > 1, names
    assert any({a.buffer for a in accesses((s,)) if a.writes} >= names for s in outside)
    rng = np.random.default_rng(0)
    x, label = rng.standard_normal((9, 40, 7)), rng.integers(0, 7, (9, 40))
    whole = layer.vjp(x, label)[1](np.ones(9))[0]
    for b in range(9):
        np.testing.assert_array_equal(layer.vjp(x[b : b + 1], label[b : b + 1])[1](np.ones(1))[0][0], whole[b])
