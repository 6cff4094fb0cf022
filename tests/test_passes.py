"""The optimiser by its properties: how many loops are left, what lives in a variable, what must not be
fused; and that every single pass keeps the meaning."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import ir_kernels as zoo
import numpy as np
import pytest
from ir_kernels import Builder, E
from nets import built_from, load_package

from layerc import get_num_threads, set_num_threads
from layerc.build.driver import build, compile_module, read_module
from layerc.transpile import dump, ir, passes
from layerc.transpile.dims import Atom, Dim
from layerc.transpile.passes import tree
from layerc.transpile.passes.fuse import count_loops
from layerc.transpile.passes.verify import IRError, verify


def after(kernel, upto):
    return passes.run(kernel, upto=upto)


def shapes_of(kernel):
    return {b.name: len(b.shape) for b in kernel.buffers if b.kind == "temp"}


def loops(kernel, kind=None):
    return [s for s in tree.walk(kernel.body) if isinstance(s, ir.For) and kind in (None, s.kind)]


def text(kernel):
    return dump.dump(kernel)


# -- fusion --------------------------------------------------------------------------------------------------
def test_srelu_backward_is_one_sweep():
    """dx and all four parameter gradients: batch, channel, space; and the zeros before."""
    kernel = after(zoo.srelu_backward(), "contract")
    assert count_loops(kernel.body) == 4
    assert not any(shapes_of(kernel).values()), "all temporaries are scalars"
    assert after(zoo.srelu_backward(), "lower") != kernel
    assert count_loops(zoo.srelu_backward().body) == 33


@pytest.mark.parametrize(
    ("kernel", "expected", "arrays"),
    [
        (zoo.mish(), 2, 0),
        (zoo.mish_backward(), 2, 0),
        (zoo.srelu(), 3, 0),
        (zoo.layernorm(), 4, 0),  # one row loop, three sweeps over the row
        (zoo.softmax(), 4, 1),  # the same, and a row of exponentials
        (zoo.ema(), 4, 1),
        (zoo.ema_backward(), 5, 1),
    ],
    ids=lambda v: v.name if isinstance(v, ir.Kernel) else str(v),
)
def test_number_of_loops(kernel, expected, arrays):
    done = after(kernel, "contract")
    assert count_loops(done.body) == expected, text(done)
    assert sum(1 for rank in shapes_of(done).values() if rank) == arrays, text(done)


def _pair(second, rank=1):
    """t[i] = exp(x[i]); then y[i] = second(t, i)."""
    k = Builder("pair", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    t = k.let("N", lambda i: zoo.op("exp", x[i]))
    k.set(y, lambda i: second(t, i))
    return k.kernel()


def test_neighbours_are_not_fused():
    """y[i] needs t of another iteration."""
    for second in (
        lambda t, i: t[Dim.of(i) - 1] + t[i],
        lambda t, i: t[Dim.of("N") - 1 - Dim.of(i)] + t[i],
        lambda t, i: t[0] + t[i],
    ):
        assert count_loops(after(_pair(second), "fuse").body) == 2
    assert count_loops(after(_pair(lambda t, i: t[i] * t[i]), "fuse").body) == 1


def test_a_sum_is_not_read_in_the_loop_that_makes_it():
    k = Builder("k", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    s = k.reduce("N", (), lambda i: x[i])
    k.set(y, lambda i: x[i] * s[()])
    assert count_loops(after(k.kernel(), "contract").body) == 2


def test_a_loop_passes_what_it_does_not_depend_on():
    k = Builder("k", "N M")
    x, z, y, w = k.arg("x", "N"), k.arg("z", "M"), k.out("y", "N"), k.out("w", "M")
    k.set(y, lambda i: x[i] * 2.0)
    k.set(w, lambda i: z[i] * 2.0)
    k.set(y, lambda i: x[i] * 3.0, "add")
    k.set(w, lambda i: z[i] * 3.0, "add")
    assert count_loops(after(k.kernel(), "fuse").body) == 2


def test_flattened_indices_are_compared_as_digits():
    """t[i*M + j] and t[i*M + j] meet in the same iteration only, as j < M."""
    k = Builder("k", "N M")
    x, y = k.arg("x", "N M"), k.out("y", "N M")
    t = k.temp((Dim.of("N") * Dim.of("M"),))
    k.emit(
        k.nest(
            x.shape,
            lambda i, j: ir.Store(t.name, (Dim.of(i) * Dim.of("M") + Dim.of(j),), zoo.op("exp", x[i, j]).ir),
        )
    )
    k.set(y, lambda i, j: t[Dim.of(i) * Dim.of("M") + Dim.of(j)] + x[i, j])
    done = after(k.kernel(), "contract")
    assert count_loops(done.body) == 2
    assert shapes_of(done) == {t.name: 0}


# -- contraction ---------------------------------------------------------------------------------------------
def test_a_value_carried_from_step_to_step_keeps_its_array():
    """h[d] is read in the next step: inside `for t: for d:` it is used alike everywhere, but must survive."""
    k = Builder("k", "T D")
    x, y = k.arg("x", "T D"), k.out("y", "D")
    h = k.temp("D")

    def step(t):
        first = E(ir.Op("equal", (ir.Int(Dim.of(t)), ir.Const(0, "i64")), "bool"))
        k.emit(k.nest(h.shape, lambda d: ir.If(first.ir, (ir.Store(h.name, (Dim.of(d),), ir.Const(0.0, "real")),))))
        k.set(h, lambda d: zoo.op("tanh", h[d] * 0.5 + x[t, d]))
        k.set(y, lambda d: h[d] * h[d])

    k.loop("t", "T", step)
    assert shapes_of(after(k.kernel(), "contract")) == {h.name: 1}


def test_dead_stores_vanish():
    k = Builder("k", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    k.let("N", lambda i: zoo.op("exp", x[i]))
    k.set(y, lambda i: 0.0)
    k.set(y, lambda i: x[i] * 2.0)
    done = after(k.kernel(), "contract")
    assert sum(isinstance(s, ir.Store) for s in tree.walk(done.body)) == 1
    assert not shapes_of(done)


# -- order, free, lanes, jam ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("layout", "innermost"), [("nn", 1), ("nt", 2), ("tn", 1)])
def test_the_innermost_loop_runs_along_memory(layout, innermost):
    kernel = after(zoo.matmul(layout, lambda a, b: a - b), "order")
    nest = kernel.body[1]
    while isinstance(nest.body[0], ir.For):
        nest = nest.body[0]
    assert nest.var.endswith(f"_{innermost}"), text(kernel)


def _user_loop(body):
    k = Builder("k", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    k.loop("i", "N", lambda i: body(k, x, y, i))
    return k.kernel()


def test_user_loops_with_independent_iterations_are_maps():
    free = _user_loop(lambda k, x, y, i: y.store(i, zoo.op("exp", x[i])))
    assert [x.kind for x in loops(after(free, "free"))] == ["map"]
    with_temp = _user_loop(lambda k, x, y, i: (t := k.let("", lambda: x[i] * 2.0)) and y.store(i, t[()] * t[()]))
    assert [x.kind for x in loops(after(with_temp, "free"))] == ["map"]
    for body in (
        lambda k, x, y, i: y.store(i, y[Dim.of(i) - 1] + x[i]),
        lambda k, x, y, i: y.store(0, x[i]),
        lambda k, x, y, i: y.store(Dim.of("N") - 1 - Dim.of(i), y[i] + x[i]),
    ):
        assert [x.kind for x in loops(after(_user_loop(body), "free"))] == ["seq"]


def test_a_sum_by_hand_is_an_accumulation():
    k = Builder("k", "N")
    x, y = k.arg("x", "N"), k.out("y")
    k.set(y, lambda: 0.0)
    k.loop("i", "N", lambda i: y.store((), y[()] + x[i]))
    done = after(k.kernel(), "free")
    assert [s.op for s in tree.walk(done.body) if isinstance(s, ir.Store)] == [None, "add"]


def _in_two_steps(between=None, other="add"):
    """for i: t = s + x[i]; (between); s = t + x[i] * 2"""
    k = Builder("k", "N")
    x, y, s, t = k.arg("x", "N"), k.out("y", "N"), k.out("s"), k.temp(name="t")
    other_name = k._declare("v", "", "temp", False, "real", "s")

    def body(i):
        t.store((), s[()] + x[i])
        if between:
            between(s, t, y, i, other_name)
        s.store((), zoo.op(other, t[()], x[i] * 2.0))

    k.set(s, lambda: 0.0)
    k.loop("i", "N", body)
    return after(k.kernel(), "free")


def test_a_sum_in_two_steps_is_two_accumulations():
    done = _in_two_steps()
    assert [(s.buffer, s.op) for s in tree.walk(done.body) if isinstance(s, ir.Store)][1:] == [
        ("s", "add"),
        ("s", "add"),
    ]
    assert [x.kind for x in loops(done)] == ["map"]
    for what in (
        _in_two_steps(lambda s, t, y, i, v: y.store(i, s[()])),  # reads what is not yet changed
        _in_two_steps(lambda s, t, y, i, v: y.store(i, v[()])),  # by its other name
        _in_two_steps(lambda s, t, y, i, v: y.store(i, t[()])),  # reads the half
        _in_two_steps(other="multiply"),
    ):
        assert "t" in tree.written(what.body), text(what)
        assert [x.kind for x in loops(what)] == ["seq"], text(what)


def test_scalar_recurrences_run_across_the_batch():
    done = after(zoo.kepler(), "contract")
    lanes = [str(x.hi) for x in loops(done)]
    assert (lanes.count("64"), lanes.count("(batch%64)")) == (3, 3), text(done)
    assert any(isinstance(s, ir.While) for s in tree.walk(done.body))
    assert after(zoo.ema(), "lanes") == after(zoo.ema(), "jam"), "its steps are vectors already"


def test_rows_of_a_nest_share_loads():
    kernel = after(zoo.matmul("nn", lambda a, b: a - b), "share")
    inner = max(loops(kernel), key=lambda x: sum(isinstance(s, ir.Store) and s.op == "add" for s in x.body))
    loads = [n for s in inner.body for n, _, mode in tree.own_accesses(s) if mode == "r" and n in ("a", "b")]
    assert loads == ["b"] * 4, text(kernel)


# -- sharing -------------------------------------------------------------------------------------------------
def test_loads_in_a_select_are_made_before_it_only_if_in_range():
    k = Builder("k", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    k.set(y, lambda i: zoo.op("where", x[i] > 0.0, x[i] * 2.0, 1.0))
    shared = after(k.kernel(), "share")
    assert "xv = x[" in text(shared)
    k = Builder("k", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    after_first = E(ir.Op("greater", (ir.Int(Dim.of("n")), ir.Const(0, "i64")), "bool"))
    k.emit(
        ir.For(
            "n",
            Dim.of(0),
            Dim.of("N"),
            (ir.Store("y", (Dim.of("n"),), zoo.op("where", after_first, x[Dim.of("n") - 1], 0.0).ir),),
        )
    )
    assert "where((int(n) > 0), x[n - 1]" in text(after(k.kernel(), "share"))


def test_what_a_loop_does_not_change_is_computed_before_it():
    kernel = after(zoo.srelu_backward(), "share")
    inner = next(x for x in loops(kernel) if not any(isinstance(s, ir.For) for s in x.body) and len(x.body) > 6)
    read = {n for s in inner.body for n, _, mode in tree.own_accesses(s) if mode == "r"}
    assert not read & {"tl", "al", "tr", "ar"}
    assert sum(n == "x" for s in inner.body for n, _, _ in tree.own_accesses(s)) == 1


# -- chunks --------------------------------------------------------------------------------------------------


# -- verification --------------------------------------------------------------------------------------------
def _store(index=("i",), buffer="y", value=None):
    return ir.Store(buffer, tuple(map(Dim.of, index)), value or ir.Const(1.0, "real"))


def _shared():
    """A parallel loop in two versions, each with a use of one temporary: it belongs to neither."""

    def version():
        inner = ir.For("i", Dim.of(0), Dim.of("N"), (_store(buffer="t"),))
        return ir.For("q", Dim.of(0), Dim.of(4), (inner,), parallel=True)

    return (ir.If(ir.Const(True, "bool"), (version(),), (version(),)),)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ((_store(),), "uses i, unknown there"),
        ((ir.For("i", Dim.of(0), Dim.of("N"), (_store(("i", "i")),)),), "1 axes, indexed by 2"),
        ((ir.For("i", Dim.of(0), Dim.of("N"), (_store(buffer="x"),)),), "writes the input x"),
        ((ir.For("i", Dim.of(0), Dim.of("N"), (_store(buffer="q"),)),), "unknown buffer q"),
        ((ir.For("N", Dim.of(0), Dim.of("N"), ()),), "hides another"),
        ((ir.Grow("y", Dim.of(1)),), "is no list"),
        (_shared(), "iterations of q, which threads share, write to the same places of t"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_verify(body, complaint):
    buffers = (ir.Buffer("x", "real", (Dim.of("N"),), "in"), ir.Buffer("y", "real", (Dim.of("N"),), "out"))
    buffers = (*buffers, ir.Buffer("t", "real", (Dim.of("N"),), "temp"))
    with pytest.raises(IRError, match=complaint):
        verify(ir.Kernel("k", ("N",), (), buffers, body))


def test_a_fault_names_its_pass(monkeypatch):
    broken = (("bad", lambda k: replace(k, body=(_store(),))),)
    monkeypatch.setattr(passes, "PASSES", broken)
    with pytest.raises(IRError, match="after pass bad"):
        passes.run(zoo.mish())


def test_same_input_same_text():
    for f in zoo.ZOO.values():
        assert text(passes.run(f())) == text(passes.run(f()))


# -- meaning -------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def stages():
    """Every kernel after every pass, in one library."""
    found = {}
    for kernel in zoo.all_kernels().values():

        def keep(name, done, kernel=kernel):
            found[f"{kernel.name}_{name}"] = replace(done, name=f"{kernel.name}_{name}")

        passes.run(kernel, trace=keep)
    # A pass may leave to a later one what nothing reads any more.
    flags = ["-std=gnu11", "-O1", "-fopenmp", "-Wno-unused-but-set-variable"]
    library = zoo.Library([(k, "f64") for k in found.values()], flags)
    return found, library


@pytest.mark.parametrize("name", zoo.all_kernels())
@pytest.mark.filterwarnings("ignore")
def test_every_pass_keeps_the_meaning(stages, name):
    found, library = stages
    kernel = zoo.all_kernels()[name]
    for dims in zoo.cases(kernel):
        values = zoo.random_inputs(kernel, dims, np.float64)
        expected = None
        for stage in ("lower", *passes.NAMES):
            got = zoo.run_kernel(library, found[f"{name}_{stage}"], dims, values, np.float64, threads=2)
            expected = expected or got
            for out in got:
                np.testing.assert_allclose(
                    got[out], expected[out], 1e-11, 1e-11, err_msg=f"{name} after {stage}: {dims}"
                )


def test_tanh_of_log1p_is_a_quotient_as_exact():
    k = Builder("eased", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    k.set(y, lambda i: zoo.op("tanh", zoo.op("log1p", x[i])))
    library = zoo.Library(zoo.both(passes.run(k.kernel())))
    assert "tanh(" not in library.text[library.text.index("eased_f32") :]
    for dtype in (np.float32, np.float64):
        special = [0, -0.0, -1, -1.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, 1e10, 3e38, -0.999999]
        x = np.array([*special, *np.geomspace(1e-8, 1e12, 5000), *-np.geomspace(1e-8, 0.9999, 500)], dtype)
        y = np.empty_like(x)
        library("eased", x, y, N=len(x))
        with np.errstate(all="ignore"):
            exact = np.tanh(np.log1p(x.astype(np.longdouble)))
        np.testing.assert_allclose(y, exact.astype(dtype), 4 * np.finfo(dtype).eps, 0)


BOUNDS = {
    "relu": lambda x: np.maximum(x, 0.0),
    "relu, the bound first": lambda x: np.maximum(0.0, x),
    "at most, the bound first": lambda x: np.minimum(-0.0, x),
    "clip": lambda x: np.clip(x, -1.5, 0.0),
    "clip to the left": lambda x: np.clip(x, 2.0, 1.0),
    "no bound": lambda x: np.minimum(x, np.inf),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_that_the_program_names(name):
    """To the bit: NaN goes through, and of zeros with two signs the first argument is taken."""
    k = Builder("bounded", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    bounds = {
        "relu": lambda v: zoo.op("maximum", v, 0.0),
        "relu, the bound first": lambda v: zoo.op("maximum", 0.0, v),
        "at most, the bound first": lambda v: zoo.op("minimum", -0.0, v),
        "clip": lambda v: zoo.op("clip", v, -1.5, 0.0),
        "clip to the left": lambda v: zoo.op("clip", v, 2.0, 1.0),
        "no bound": lambda v: zoo.op("minimum", v, np.inf),
    }
    k.set(y, lambda i: bounds[name](x[i]))
    library = zoo.Library(zoo.both(passes.run(k.kernel())))
    assert "lc_held" in library.text[library.text.index("bounded_f32") :]
    plain = {"relu": (0, -1), "relu, the bound first": (0, 1), "at most, the bound first": (-0.0, 1)}
    for dtype in (np.float32, np.float64):
        v = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-42, -1e-42, 1.5, -1.5, 3.0, -7.0] * 5, dtype)
        got = np.empty_like(v)
        library("bounded", v, got, N=len(v))
        np.testing.assert_array_equal(got, BOUNDS[name](v))
        if name in plain:
            bound, first = plain[name]
            zeros = v == 0
            np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(bound if first > 0 else v[zeros]))


@pytest.mark.parametrize("first", [False, True])
def test_a_bound_that_is_no_number_is_no_bound(first):
    k = Builder("unbounded", "N")
    x, y = k.arg("x", "N"), k.out("y", "N")
    k.set(y, lambda i: zoo.op("maximum", np.nan, x[i]) if first else zoo.op("maximum", x[i], np.nan))
    library = zoo.Library(zoo.both(passes.run(k.kernel())))
    v = np.linspace(-1, 1, 40)
    got = np.empty_like(v)
    library("unbounded", v, got, N=len(v))
    assert np.isnan(got).all()


def test_what_is_stored_as_a_whole_is_not_filled():
    """But what is added to is, and what is read before, and what is stored in part."""
    i, n = Dim.of("i"), Dim.of("N")
    fill = ir.For("j", Dim.of(0), n, (ir.Store("y", (Dim.of("j"),), ir.Const(0.0, "real")),))
    value = ir.Load("x", (i,), "real")

    def filled(lo=Dim.of(0), value=value, op=None, around=False):
        loop = ir.For("i", lo, n, (ir.Store("y", (i,), value, op),), "seq")
        loop = ir.For("k", Dim.of(0), Dim.of("K"), (loop,), "seq") if around else loop
        x, y = ir.Buffer("x", "real", (n,), "in"), ir.Buffer("y", "real", (n,), "out")
        kernel = ir.Kernel("k", ("N", "K"), (), (x, y), (fill, loop))
        return len(passes.fills(kernel).body) == 2

    assert not filled()
    assert filled(op="add")
    assert filled(lo=Dim.of(1))
    assert filled(around=True)  # which may run no times
    assert filled(value=ir.Load("y", (n - 1 - i,), "real"))


WINDOWS = """
    import numpy as np
    from layerc import Param, i64, layer, real

    @layer
    def looked_up(ids: i64["T"], table: Param[real["V D"]]):
        return np.sin(table[ids])

    @layer
    def pooled(x: real["C H W"]) -> real["C H//2 W//2"]:
        C, H, W = x.shape
        y = np.empty((C, H // 2, W // 2))
        for i in range(H // 2):
            for j in range(W // 2):
                y[:, i, j] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2], axis=(1, 2))
        return y
    """


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    path = tmp_path_factory.mktemp("windows") / "windows.py"
    path.write_text(textwrap.dedent(WINDOWS))
    return path


def kernels_of(path):
    return {part.kernel.name: part.kernel for part in compile_module(read_module(path)).parts}


def test_a_table_is_touched_where_it_is_used(windows):
    """The gradient of a look-up makes no table for each example."""
    kernel = kernels_of(windows)["looked_up_backward"]
    assert not [b.name for b in kernel.buffers if b.kind == "temp" and len(b.shape) == 2]


def test_windows_run_along_memory(windows):
    """Every innermost loop of the gradient of pooling is over a last axis, and none is over a window."""
    kernel = kernels_of(windows)["pooled_backward"]
    inner = [s for s in tree.walk(kernel.body) if isinstance(s, ir.For) and not tree.has(s.body, ir.For)]
    windows = [loop for loop in inner if any(a.buffer == "x" for a in tree.accesses((loop,)))]
    assert windows
    for loop in windows:
        assert (loop.hi - loop.lo).value is None
        assert all(loop.var in a.index[-1].symbols() for a in tree.accesses((loop,)) if a.buffer == "x")


WINDOWED = """
    import numpy as np
    from layerc import Layer, State, config, i64, init, layer, real

    @layer
    def windowed(x: real["N"], kernel: int, stride: int, rows: int) -> real["rows"]:
        y = np.zeros(rows)
        for i in range(rows):
            for a in range(kernel):
                y[i] += x[i * stride + a] * (a + 1)
        return y

    class Counted(Layer):
        batched = True
        seen: State[i64] = init.zeros()
        stride: int = config(2)

        def forward(self, x: real["N M"]) -> real["N M"]:
            y = x * 1
            for i in range(2):
                y[:, 0] += x[:, i * self.stride]
            self.seen = x.shape[0] * 3
            return y
    """


@pytest.fixture(scope="module")
def windowed(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("windowed"), "windowed", WINDOWED)


def test_indices_in_range_are_not_checked(tmp_path):
    """What configuration says is asked once; along memory runs the loop over places, not that over the window."""
    path = tmp_path / "windowed.py"
    path.write_text(textwrap.dedent(WINDOWED))
    (both,) = kernels_of(path)["windowed"].body
    assert isinstance(both, ir.If)
    assert not tree.has(both.then, ir.Check)
    assert tree.has(both.orelse, ir.Check)
    inner = [s for s in tree.walk(both.then) if isinstance(s, ir.For) and not tree.has(s.body, ir.For)]
    assert not any(str(loop.hi) == "kernel" for loop in inner)


def test_a_stride_of_one_runs_along_memory(windowed):
    """The stores of the gradient, which meet in one place where the stride is 0, are vectorised where it is 1."""
    lines = [line.strip() for line in windowed.windowed.c_source.splitlines()]
    asked = [k for k, line in enumerate(lines) if line == "if (stride == 1) {"]
    assert len(asked) >= 2
    bodies = [[line for line in lines[k + 1 :] if not line.startswith("const int")] for k in asked]
    assert all(body[0].startswith("#pragma omp simd") for body in bodies)
    assert any("d_x" in body[2] and "stride" not in body[2] for body in bodies)


@pytest.mark.parametrize("config", [(3, 2, 4), (1, 1, 10), (2, 3, 0), (0, 5, 3), (2, -1, 3), (1, -4, 3), (3, 0, 2)])
def test_windows_of_any_configuration(windowed, config):
    """In range; empty; from the end of the array; all in one place."""
    options = dict(zip(("kernel", "stride", "rows"), config))
    x = np.random.default_rng(3).normal(size=(5, 10))
    y, pullback = windowed.windowed.vjp(x, **options, batch=True)
    expected = np.stack([windowed.windowed.reference(one, **options) for one in x])
    np.testing.assert_allclose(y, expected, 1e-12)
    dy = np.random.default_rng(4).normal(size=y.shape)
    d_x = np.zeros_like(x)
    for i in range(options["rows"]):
        for a in range(options["kernel"]):
            d_x[:, i * options["stride"] + a] += dy[:, i] * (a + 1)
    np.testing.assert_allclose(pullback(dy)[0], d_x, 1e-12)


@pytest.mark.parametrize("config", [(3, 2, 5), (1, -4, 4), (11, 1, 1)])
def test_windows_beyond_the_array(windowed, config):
    x = np.ones((5, 10))
    with pytest.raises(IndexError, match=r"windowed.py:10: windowed: index -?\d+ is out of range"):
        windowed.windowed(x, **dict(zip(("kernel", "stride", "rows"), config)), batch=True)


def test_a_number_that_a_layer_gives_is_no_index(windowed):
    """It is stored once, as the variables of indices are that are left out."""
    layer = windowed.Counted()
    layer.initialize((4, 6))
    y, _ = layer.vjp(np.ones((4, 6), np.float32))
    assert layer.states["seen"] == 12
    np.testing.assert_array_equal(y[:, 0], 3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("width", [3, 64, 200])
def test_columns_of_a_table_are_added_up(windows, width, batch, threads):
    """From one to four chunks, each row named many times or never."""
    if not windows.with_name("windows_compiled").exists():
        build(windows)
    package = load_package(windows.with_name("windows_compiled"), "windows_compiled")
    rng = np.random.default_rng(width)
    ids, table = rng.integers(-7, 7, (batch, 40)), rng.normal(size=(9, width))
    dy = rng.normal(size=(batch, 40, width))
    expected = np.zeros_like(table)
    np.add.at(expected, ids, dy * np.cos(table[ids]))
    before = get_num_threads()
    try:
        set_num_threads(threads)
        _, pullback = package.looked_up.vjp(ids, table)
        np.testing.assert_allclose(pullback(dy)[1], expected, 1e-11, 1e-11)
    finally:
        set_num_threads(before)


def test_a_new_name_is_not_captured_by_a_loop_inside():
    """Two loops i, the second around a loop that is called what the second would be called."""
    i, n = Dim.of("i"), Dim.of("N")
    store = ir.Store("y", (i, Dim.of("i_2")), ir.Const(1.0, "real"))
    inner = ir.For("i_2", Dim.of(0), n, (store,))
    first = ir.For("i", Dim.of(0), n, (ir.Store("y", (i, i), ir.Const(0.0, "real")),))
    y = ir.Buffer("y", "real", (n, n), "out")
    kernel = ir.Kernel("k", ("N",), (), (y,), (first, ir.For("i", Dim.of(0), n, (inner,))))
    outer = passes.tidy(kernel).body[1]
    assert outer.body[0].body[0].index == (Dim.of(outer.var), Dim.of(outer.body[0].var))
    assert outer.var != outer.body[0].var


def test_a_sum_beside_another_place_of_its_array_is_in_a_register(tmp_path):
    """Rows of one loop over a matrix that divide by the sum before them (Sinkhorn) are jammed: s[4*k + 1] is added to
    where s[4*k] is read."""
    path = tmp_path / "steps.py"
    path.write_text(
        "from layerc import layer, real\n\n\n@layer\ndef steps(k: real['N M'], v: real['M']):\n"
        "    for _ in range(9):\n        u = 1 / (k @ v)\n        v = 1 / (u @ k)\n    return v\n"
    )
    kernel = kernels_of(path)["steps_backward"]
    rows = [
        s for s in tree.walk(kernel.body) if isinstance(s, ir.For) and not any(isinstance(x, ir.For) for x in s.body)
    ]
    added = [(row.var, s) for row in rows for s in tree.walk(row.body) if isinstance(s, ir.Store) and s.op]
    assert len(added) > 8
    assert not any(s.index and not any(var in d.symbols() for d in s.index) for var, s in added)


def test_a_dear_sum_has_no_copies(tmp_path):
    """Powers summed over windows, one for each channel: what sixteen copies would not load again is nothing beside
    them, and gcc took minutes to read them."""
    path = tmp_path / "pooled.py"
    path.write_text(
        "from layerc import Param, layer, real\n\n\n@layer\n"
        "def pooled(x: real['H W C'], p: Param[real['C']]) -> real['H//3 W//3 C']:\n"
        "    H, W, C = x.shape\n    y = np.zeros((H // 3, W // 3, C))\n"
        "    for i in range(H // 3):\n        for j in range(W // 3):\n            for c in range(C):\n"
        "                s = 1e-6\n                for a in range(3):\n                    for b in range(3):\n"
        "                        s += abs(x[3 * i + a, 3 * j + b, c]) ** p[c]\n"
        "                y[i, j, c] = s ** (1 / p[c])\n    return y\n"
    )
    path.write_text("import numpy as np\n" + path.read_text())
    stores = [s for s in tree.walk(kernels_of(path)["pooled"].body) if isinstance(s, ir.Store)]
    powers = sum(isinstance(e, ir.Op) and e.op == "power" for s in stores for e in tree.parts(s.value))
    assert 10 <= powers <= 20, "one of each place of a window and one of their sum, with a batch and without"


def test_loops_that_share_a_variable_are_a_fault():
    """What a pass finds out of a name it takes for true wherever the name stands."""
    pair = tuple(ir.For("i", Dim.of(0), Dim.of("N"), (_store(),)) for _ in range(2))
    kernel = ir.Kernel("k", ("N",), (), (ir.Buffer("y", "real", (Dim.of("N"),), "out"),), pair)
    with pytest.raises(IRError, match="2 loops have the variable i"):
        verify(kernel, own_loops=True)
    assert verify(kernel) == kernel
    assert verify(passes.tidy(kernel), own_loops=True)


def test_extents_of_what_a_loop_owns_follow_its_variable():
    n, i = Dim.of("N"), Dim.of("i")
    one = ir.Const(1.0, "real")
    table = {name: ir.Buffer(name, "real", (i,), "temp") for name in ("t", "u")}
    loops = tuple(
        ir.For("i", Dim.of(0), n, (ir.For(f"k{name}", Dim.of(0), i, (ir.Store(name, (Dim.of(f"k{name}"),), one),)),))
        for name in table
    )
    kernel = passes.tidy(ir.Kernel("k", ("N",), (), tuple(table.values()), loops))
    first, second = kernel.body
    assert first.var != second.var
    assert [b.shape for b in kernel.buffers] == [(Dim.of(first.var),), (Dim.of(second.var),)]


def test_what_is_dear_before_a_loop_and_kept_anyway_is_vectorised_on_its_own(tmp_path):
    """Capsules: the gradient of a routing makes the exponentials anew, and reads them twice."""
    (tmp_path / "routed.py").write_text(
        textwrap.dedent("""
        import numpy as np
        from layerc import layer, real


        @layer
        def routed(u: real["I J D"]) -> real["J D"]:
            n, m, d = u.shape
            b = np.zeros((n, m))
            v = np.zeros((m, d))
            for r in range(3):
                e = np.exp(b)
                v = ((e / e.sum(axis=1, keepdims=True))[:, :, None] * u).sum(axis=0)
                b = b + (u * v[None]).sum(axis=2)
            return v
        """)
    )
    for name, kernel in kernels_of(tmp_path / "routed.py").items():
        dear = [x for x in loops(kernel) if any(_has_exp(s) for s in x.body)]
        assert dear, name
        assert not any(isinstance(s, ir.For) for x in dear for s in x.body), name


def _has_exp(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Store) and any(isinstance(e, ir.Op) and e.op == "exp" for e in tree.parts(stmt.value))


def test_a_number_that_is_made_anew_has_its_own_name():
    """But not where a turn of the loop around reads what the one before has left."""
    n, i = Dim.of("N"), Dim.of("i")
    load = ir.Load("v", (), "real")

    def loop(var, start):
        body = (ir.Store("v", (), ir.Const(start, "real")), ir.Store("y", (Dim.of(var),), load))
        return ir.For(var, Dim.of(0), n, body)

    buffers = (ir.Buffer("y", "real", (n,), "out"), ir.Buffer("v", "real", (), "temp"))
    kernel = ir.Kernel("k", ("N",), (), buffers, (loop("i", 1.0), loop("j", 2.0)))
    first, second = passes.lives(kernel).body
    assert first.body[0].buffer == "v"
    assert second.body[0].buffer == second.body[1].value.buffer == "v_2"
    carried = ir.For(
        "i",
        Dim.of(0),
        n,
        (ir.Store("y", (i,), load), ir.Store("v", (), load), ir.Store("v", (), ir.Const(2.0, "real"))),
    )
    kernel = replace(kernel, body=(ir.Store("v", (), ir.Const(1.0, "real")), carried))
    assert passes.lives(kernel) == kernel


def test_what_was_asked_is_not_asked_again_unless_it_has_changed():
    n, i = Dim.of("N"), Dim.of("i")
    label, flag = ir.Load("label", (i,), "i64"), ir.Load("flag", (), "bool")
    check = ir.Check(ir.Op("less", (label, ir.Int(n)), "bool"), 1)

    def place(name):
        return ir.Store(name, (), ir.Op("add", (label, ir.Const(1, "i64")), "i64"))

    def use(name):
        at = Dim.of(Atom("load", (ir.Load(name, (), "i64"),)))
        return ir.Store("y", (at,), ir.Const(1.0, "real"), "add")

    def run(*body):
        names = [("at", "i64"), ("at_2", "i64"), ("flag", "bool"), ("label", "i64"), ("y", "real")]
        kinds = {"label": "temp", "y": "out"}
        shapes = {"label": (n,), "y": (n,)}
        buffers = tuple(ir.Buffer(name, dtype, shapes.get(name, ()), kinds.get(name, "temp")) for name, dtype in names)
        loop = ir.For("i", Dim.of(0), n, body)
        (again,) = passes.again(ir.Kernel("k", ("N",), (), buffers, (loop,))).body
        return again.body

    change = ir.Store("label", (i,), ir.Const(0, "i64"))
    once = (check, place("at"), use("at"))
    assert run(*once, check, place("at_2"), use("at_2")) == (*once, use("at"))
    assert run(*once, change, check, place("at_2"), use("at_2")) == (*once, change, check, place("at_2"), use("at_2"))
    one, other = ir.If(flag, (use("at"),)), ir.If(flag, (), (use("at"),))
    assert run(place("at"), one, other) == (place("at"), ir.If(flag, (use("at"),), (use("at"),)))
    changes = ir.If(flag, (ir.Store("flag", (), ir.Const(False, "bool")),))
    assert run(place("at"), changes, other) == (place("at"), changes, other)
