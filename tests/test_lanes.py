"""Sixteen examples at once: whatever a batch of many gives, each example alone gives too.

A batch of one never goes through lanes, so it is the reference for all of them; NumPy is the reference for it
(tests/test_forward.py, tests/test_gradients.py).
"""

import importlib
import sys
import textwrap

import numpy as np
import pytest
from nets import load_package

from layerc.build.driver import build, compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.dump import dump
from layerc.transpile.ir import For
from layerc.transpile.passes.tree import accesses, bodies, walk

HEAD = "import numpy as np\nfrom layerc import Param, layer, real\n"

# name: (layer, shapes of one example's inputs, shapes of params)
LAYERS = {
    "soft_dtw": (
        """
        @layer
        def f(a: real["T D"], b: real["U D"]) -> real[""]:
            cost = np.full((a.shape[0] + 1, b.shape[0] + 1), np.inf)
            cost[0, 0] = 0.0
            for i in range(a.shape[0]):
                for j in range(b.shape[0]):
                    d = a[i] - b[j]
                    low = min(cost[i, j], cost[i + 1, j], cost[i, j + 1])
                    soft = np.exp(low - cost[i, j]) + np.exp(low - cost[i + 1, j]) + np.exp(low - cost[i, j + 1])
                    cost[i + 1, j + 1] = np.sum(d * d) + low - np.log(soft)
            return cost[a.shape[0], b.shape[0]]
        """,
        [(5, 3), (4, 3)],
        [],
    ),
    "shared": (
        """
        @layer
        def f(x: real["T D"], w: Param[real["D"]], start: Param[real[""]]) -> real["T"]:
            h = start
            y = np.empty(x.shape[0])
            for t in range(x.shape[0]):
                h = np.tanh(h + np.sum(w * x[t]))
                y[t] = h
            return y
        """,
        [(7, 3)],
        [(3,), ()],
    ),
    "ways": (
        """
        @layer
        def f(x: real["T D"]) -> {"y": real["T"], "best": real["D"]}:
            y = np.zeros(x.shape[0])
            best = np.zeros(x.shape[1])
            total = 0.0
            for t in range(x.shape[0]):
                if t % 2 == 0:
                    best = np.maximum(best, x[t])
                    total += 0.5 * x[t, 0]
                else:
                    total = total * 0.9 + np.max(x[t])
                y[t] = np.sin(total)
            return y, best
        """,
        [(6, 4)],
        [],
    ),
    "branch_in_a_map": (
        """
        @layer
        def f(x: real["T"]) -> real[""]:
            top, tail = x[0], 0.0
            for t in range(x.shape[0]):
                if x[t] < 0:
                    continue
                top = max(top, x[t])
            for t in range(x.shape[0]):
                tail = np.tanh(0.5 * tail + x[t] * top)
            return tail
        """,
        [(40,)],
        [],
    ),
    "kalman": (
        """
        @layer
        def f(z: real["T 2"], a: Param[real["2 2"]]) -> real["T 2"]:
            m, p = np.zeros(2), np.eye(2)
            y = np.empty_like(z)
            for t in range(z.shape[0]):
                m = a @ m
                p = a @ p @ a.T + 0.1 * np.eye(2)
                det = (p[0, 0] + 0.3) * (p[1, 1] + 0.3) - p[0, 1] * p[1, 0]
                g00, g01 = (p[0, 0] * (p[1, 1] + 0.3) - p[0, 1] * p[1, 0]) / det, 0.3 * p[0, 1] / det
                r = z[t] - m
                m = m + np.stack([g00 * r[0] + g01 * r[1], g01 * r[0] + g00 * r[1]])
                p = p * 0.5
                y[t] = m
            return y
        """,
        [(6, 2)],
        [(2, 2)],
    ),
    "both": (
        """
        @layer
        def f(x: real["T"], w: real["D"]) -> {"y": real["D"], "a": real[""]}:
            # One loop makes what a lane has for itself and what it gives out: such groups are whole ones only.
            s = 0.0
            for t in range(x.shape[0]):
                s = np.sin(s) + x[t]
            z = np.tanh(w * s)
            y = z * z + w
            a = 0.0
            for i in range(w.shape[0]):
                a = np.sin(a) * 0.5 + z[i]
            return y, a
        """,
        [(5,), (7,)],
        [],
    ),
    "edit": (
        """
        @layer
        def f(match: real["T U"], gap: Param[real[""]]) -> real["T+1 U+1"]:
            T, U = match.shape
            y = np.zeros((T + 1, U + 1))
            for i in range(T):
                y[i + 1, 0] = y[i, 0] - gap
            for j in range(U):
                y[0, j + 1] = y[0, j] - gap
            for i in range(T):
                for j in range(U):
                    y[i + 1, j + 1] = max(y[i, j] + match[i, j], y[i, j + 1] - gap, y[i + 1, j] - gap)
            return y
        """,
        [(4, 5)],
        [()],
    ),
    "orthogonal": (
        """
        @layer
        def f(a: real["D D"]) -> real["D D"]:
            n = a.shape[0]
            q = np.zeros((n, n))
            for j in range(n):
                v = 0.2 * a[:, j]
                v[j] += 2.0
                for k in range(j):
                    v = v - np.sum(q[:, k] * v) * q[:, k]
                q[:, j] = v / np.sqrt(np.sum(v * v))
            return q
        """,
        [(5, 5)],
        [],
    ),
    "powers": (
        """
        @layer
        def f(x: real["D"]) -> real["D"]:
            d = x.shape[0]
            y = np.zeros(d)
            for i in range(d):
                h = 1.0
                for k in range(i + 1):
                    h = np.sin(h * x[k]) + 0.1 * h
                    for m in range(k):
                        h = h + 0.1 * np.tanh(h) * x[m]
                y[i] = h
            return y
        """,
        [(5,)],
        [],
    ),
    "per_channel": (
        """
        @layer
        def f(x: real["C T"], a: Param[real["C"]]) -> real["C T"]:
            y = np.empty_like(x)
            for c in range(x.shape[0]):
                h = 0.0
                for t in range(x.shape[1]):
                    h = a[c] * h + x[c, t]
                    y[c, t] = h
            return y
        """,
        [(3, 6)],
        [(3,)],
    ),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("lanes") / "many_lanes.py"
    layers = (textwrap.dedent(text).replace("def f(", f"def {name}(") for name, (text, _, _) in LAYERS.items())
    path.write_text(HEAD + "".join(layers))
    return path


@pytest.fixture(scope="module")
def built(file):
    build(file)
    sys.path.insert(0, str(file.parent))
    return importlib.import_module("many_lanes_compiled")


def test_lanes_are_taken(file):
    """By every kernel of these layers."""
    parts = compile_module(read_module(file), upto="lanes").parts
    texts = {part.kernel.name: dump(part.kernel) for part in parts}
    assert {name: "for group" in text for name, text in texts.items()} == dict.fromkeys(texts, True)


def test_threads_share_examples_but_no_row_of_a_cell(file):
    """Of those left over, too. To ask a row of a cell whether it is worth threads takes longer than the row."""

    def shared(body, steps=0):
        for stmt in body:
            if isinstance(stmt, For) and stmt.parallel:
                yield steps
            more = isinstance(stmt, For) and stmt.kind == "seq" and stmt.hi != Dim.of("batch")
            for inner in bodies(stmt):
                yield from shared(inner, steps + more)

    for part in compile_module(read_module(file)).parts:
        if part.layer.name == "soft_dtw":
            found = list(shared(part.kernel.body))
            assert found.count(0) >= 2, part.method
            assert max(found) < 2, part.method


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [3, 4, 15, 16, 37])
@pytest.mark.parametrize("name", LAYERS)
def test_a_batch_is_its_examples(built, name, batch, dtype):
    layer = getattr(built, name)
    _, shapes, params = LAYERS[name]
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=(batch, *s)).astype(dtype) for s in shapes]
    shared = [np.asarray(rng.uniform(0.2, 0.8, size=s), dtype) for s in params]
    y, pullback = layer.vjp(*inputs, *shared)
    ys = y if isinstance(y, tuple) else (y,)
    dys = [rng.normal(size=v.shape).astype(dtype) for v in ys]
    found = pullback(*dys)
    eps = np.finfo(dtype).eps
    sums = [np.zeros(s, np.float64) for s in params]
    for b in range(batch):
        one, back = layer.vjp(*(x[b : b + 1] for x in inputs), *shared)
        one = one if isinstance(one, tuple) else (one,)
        for whole, alone in zip(ys, one, strict=True):
            np.testing.assert_allclose(whole[b], alone[0], rtol=64 * eps, atol=64 * eps)
        gradients = back(*(d[b : b + 1] for d in dys))
        for whole, alone in zip(found[: len(inputs)], gradients[: len(inputs)], strict=True):
            np.testing.assert_allclose(whole[b], alone[0], rtol=256 * eps, atol=256 * eps)
        sums = [s + g for s, g in zip(sums, gradients[len(inputs) :], strict=True)]
    for whole, total in zip(found[len(inputs) :], sums, strict=True):
        np.testing.assert_allclose(whole, total, rtol=2000 * eps, atol=2000 * eps)


def test_long_sums_stay_in_pairs(built):
    """Above 64 terms lanes are left: they would add one by one."""
    layer = built.soft_dtw
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(16, 2, 100_000)).astype(np.float32) for _ in range(2))
    exact = layer(a.astype(np.float64), b.astype(np.float64))
    assert np.abs(layer(a, b) / exact - 1).max() < 3e-7


def test_a_delay_line_keeps_its_order(tmp_path, monkeypatch):
    """As users get it: gcc 12 took the copies of such a loop out of it in the wrong order."""
    monkeypatch.delenv("LAYERC_CFLAGS", raising=False)
    source = """
        @layer
        def filtered(x: real["T"], b: Param[real["3"]], a: Param[real["2"]]) -> real["T"]:
            y = np.zeros_like(x)
            x1 = x2 = y1 = y2 = 0.0
            for t in range(x.shape[0]):
                v = b[0] * x[t] + b[1] * x1 + b[2] * x2 - a[0] * y1 - a[1] * y2
                x2, x1, y2, y1 = x1, x[t], y1, v
                y[t] = v
            return y
        """
    (tmp_path / "delays.py").write_text(HEAD + textwrap.dedent(source))
    build(tmp_path / "delays.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    layer, plain = importlib.import_module("delays_compiled").filtered, importlib.import_module("delays").filtered
    rng = np.random.default_rng(2)
    x, b, a, dy = rng.normal(size=(32, 40)), np.array([0.2, 0.3, 0.2]), np.array([-0.5, 0.2]), rng.normal(size=(32, 40))
    y, pullback = layer.vjp(x, b, a)
    np.testing.assert_allclose(y, [plain(row, b, a) for row in x], rtol=1e-12, atol=1e-12)
    alone = [layer.vjp(x[k : k + 1], b, a)[1](dy[k : k + 1]) for k in range(32)]
    for k, gradient in enumerate(pullback(dy)):
        expected = np.concatenate([g[0] for g in alone]) if k == 0 else sum(g[k] for g in alone)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-10)


def test_a_state_is_left_by_one_lane_alone(tmp_path):
    """All others would store what was there, and another thread may have read that before the state was stored."""
    source = """
        class Counted(Layer):
            count: State[real] = init.zeros()

            def forward(self, x: real):
                self.count = 0.5 * self.count + 1
                for _ in range(3):
                    x /= 1.5 + np.sin(x)
                return x + self.count
        """
    head = "import numpy as np\nfrom layerc import Layer, State, init, real\n"
    (tmp_path / "counted.py").write_text(head + textwrap.dedent(source))
    stages = compile_module(read_module(tmp_path / "counted.py"))
    text = dump(stages.parts[0].kernel)
    assert "min((batch//64), 64) map parallel" in text
    assert "where" not in text.split("map parallel")[1], text


def test_few_examples_walk_together_where_that_pays(tmp_path):
    """A group does as much for four as for sixteen: with long map loops inside, the batch is asked, too."""
    source = """
        @layer
        def pairs(a: real["N D"], label: i32["N"]) -> real[""]:
            total = 0.0
            for i in range(a.shape[0]):
                far, near = 0.0, 1e9
                for j in range(a.shape[0]):
                    s = np.sqrt(np.sum((a[i] - a[j]) ** 2) + 1e-9)
                    if label[i] == label[j]:
                        far = max(far, s)
                    else:
                        near = min(near, s)
                total += max(far - near + 0.2, 0.0)
            return total
        """
    (tmp_path / "pairs.py").write_text(HEAD.replace("Param", "i32") + textwrap.dedent(source))
    parts = compile_module(read_module(tmp_path / "pairs.py"), upto="lanes").parts
    (groups,) = next(part.kernel.body for part in parts if part.method == "backward")
    assert [s.hi if s.lo == Dim.of(0) else s.lo for s in groups.body] == [Dim.of(groups.var), Dim.of(groups.var) * 16]

    def chosen(batch: int, d: int) -> bool:
        sizes = {"batch": Dim.of(batch), "N": Dim.of(64), "D": Dim.of(d)}
        count = groups.lo.subs(sizes).value
        assert count in (0, (batch + 12) // 16)
        return count > 0

    assert chosen(4, 8)
    assert chosen(16, 32)
    assert not chosen(4, 60)


TURNED_POINTS = """
    @layer
    def turned(axis: real["3"], angle: real, p: real["N 3"]) -> real["N 3"]:
        k = axis / np.sqrt(axis @ axis)
        y = np.zeros_like(p)
        last = np.zeros(3)
        for i in range(p.shape[0]):
            a, b, c = p[i, 0], p[i, 1], p[i, 2]
            across = np.array([k[1] * c - k[2] * b, k[2] * a - k[0] * c, k[0] * b - k[1] * a])
            last = 0.5 * last + p[i] * np.cos(angle) + across * np.sin(angle)
            y[i] = last
        return y
    """


def test_what_each_step_reads_lies_beside_that_of_other_lanes(tmp_path):
    """Of sixteen examples the axis and the angle are laid side by side once: a step picks nothing from far apart."""
    (tmp_path / "turned.py").write_text(HEAD + textwrap.dedent(TURNED_POINTS))
    for part in compile_module(read_module(tmp_path / "turned.py"), upto="lanes").parts:
        steps = [s for s in walk(part.kernel.body) if isinstance(s, For) and s.kind == "seq" and s.hi == Dim.of("N")]
        lanes = [s for loop in steps for s in walk(loop.body) if isinstance(s, For) and s.hi == Dim.of(16)]
        assert lanes, part.method
        far = {
            a.buffer for a in accesses(tuple(lanes)) if a.index and "batch" in {n for d in a.index for n in d.symbols()}
        }
        assert not far, (part.method, far)


@pytest.mark.parametrize("batch", [1, 3, 4, 15, 16, 17, 35])
def test_lanes_of_matrices_and_numbers(tmp_path, batch):
    """Whatever is turned for a group, whole or not, is each example's own."""
    (tmp_path / "turned.py").write_text(HEAD + textwrap.dedent(TURNED_POINTS))
    package = load_package(build(tmp_path / "turned.py"), f"turned_{batch}")
    rng = np.random.default_rng(5)
    values = [rng.standard_normal((batch, *shape)) for shape in ((3,), (), (7, 3))]
    dy = rng.standard_normal((batch, 7, 3))
    y, pullback = package.turned.vjp(*values)
    given = pullback(dy)
    for b in range(batch):
        one, back = package.turned.vjp(*(v[b : b + 1] for v in values))
        np.testing.assert_allclose(y[b], one[0], rtol=1e-13, atol=1e-13)
        for gradient, own in zip(given, back(dy[b : b + 1])):
            np.testing.assert_allclose(gradient[b], own[0], rtol=1e-11, atol=1e-12)


SELDOM = """
@layer
def seldom(x: real["T"], t: Param[real["K"]]) -> real[""]:
    h = 0.0
    for i in range(x.shape[0]):
        h = 0.9 * h + x[i]
        if h > 100:
            h = h * t[0]
    return h
"""


def test_what_no_lane_asks_for_need_not_be_there(tmp_path):
    """A place that only a branch reads is asked for where somebody takes it, forwards and backwards."""
    (tmp_path / "seldom.py").write_text(HEAD + SELDOM)
    package = load_package(build(tmp_path / "seldom.py"), "seldom")
    x = np.random.default_rng(3).random((32, 20))
    _, pullback = package.seldom.vjp(x, np.zeros(0))
    d_x, d_t = pullback(np.ones(32))
    np.testing.assert_allclose(d_x, np.broadcast_to(0.9 ** np.arange(20)[::-1], (32, 20)))
    assert d_t.shape == (0,)
    x[7, 3] = 200
    with pytest.raises(IndexError, match="index 0 is out of range for axis 0 with size 0"):
        package.seldom.vjp(x, np.zeros(0))[1](np.ones(32))
