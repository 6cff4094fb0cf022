"""Layers as people write them, with a branch or a border where one would not: they go side by side all the same."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in, runs_loops
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, If, Op
from layerc.transpile.passes.alike import LANES, MANY_LANES
from layerc.transpile.passes.tree import loads, own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, i32, i64, layer, real


@layer(batched=True)
def skipping(x: real["N K"], target: i32["N"], *, smoothing: float = 0.1, ignored: int = -100) -> real[""]:
    """A cross entropy; a row that is ignored makes nothing."""
    n, _ = x.shape
    total = 0.0
    count = 0
    for i in range(n):
        if target[i] == ignored:
            continue
        log_p = x[i] - np.max(x[i])
        log_p = log_p - np.log(np.sum(np.exp(log_p)))
        total += -(1 - smoothing) * log_p[target[i]] - smoothing * np.mean(log_p)
        count += 1
    return total / count


@layer(batched=True)
def kept_rows(x: real["N K"], keep: i32["N"]) -> real["N K"]:
    """Two arrays that one way of a branch makes, and neither the other nor what comes behind."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if keep[i] > 0:
            e = np.exp(x[i])
            f = e / np.sum(e)
            y[i] = f * np.sum(f * f)
    return y


@layer(batched=True)
def maxout(x: real["N C H W"], slope: Param[real["C P"]], offset: Param[real["C P"]]) -> real["N C H W"]:
    """The largest of a few lines, for each pixel."""
    n, c, h, w = x.shape
    y = np.empty_like(x)
    for b in range(n):
        for k in range(c):
            for i in range(h):
                for j in range(w):
                    best = slope[k, 0] * x[b, k, i, j] + offset[k, 0]
                    for p in range(1, slope.shape[1]):
                        z = slope[k, p] * x[b, k, i, j] + offset[k, p]
                        if z > best:
                            best = z
                    y[b, k, i, j] = best
    return y


@layer
def settled(x: real["H W"], a: real["W"]) -> real["H W"]:
    """A number for each column: rows are not one loop."""
    h, w = x.shape
    y = np.empty_like(x)
    for i in range(h):
        for j in range(w):
            v = x[i, j]
            for _ in range(4):
                v = 0.5 * v + a[j] * np.sin(v)
            y[i, j] = v
    return y


@layer
def aligned(x: real["T K"], target: i64["L"], *, blank: int = 0) -> real[""]:
    """All alignments of a sequence: states before the first one, and of logarithms of 0."""
    steps, length = x.shape[0], target.shape[0]
    states = 2 * length + 1
    top = np.max(x, axis=1, keepdims=True)
    log_p = x - top - np.log(np.sum(np.exp(x - top), axis=1, keepdims=True))
    labels = np.full(states, blank)
    labels[1::2] = target
    alpha = np.full((steps, states), -np.inf)
    alpha[0, 0] = log_p[0, blank]
    alpha[0, 1] = log_p[0, labels[1]]
    for t in range(1, steps):
        for s in range(states):
            a = alpha[t - 1, s]
            if s >= 1:
                a = np.logaddexp(a, alpha[t - 1, s - 1])
            if s >= 2 and labels[s] != blank and labels[s] != labels[s - 2]:
                a = np.logaddexp(a, alpha[t - 1, s - 2])
            alpha[t, s] = a + log_p[t, labels[s]]
    return -np.logaddexp(alpha[steps - 1, states - 1], alpha[steps - 1, states - 2])


F = np.array([[1.0, 1.0], [0.0, 1.0]])


@layer
def kalman(y: real["T"], log_q: Param[real["2"]], log_r: Param[real]) -> real:
    """A filter whose state is two numbers and a matrix of two by two."""
    q = np.exp(log_q)[:, None] * np.eye(2)
    r = np.exp(log_r)
    h = np.array([1.0, 0.0])
    m = np.zeros(2)
    p = 10.0 * np.eye(2)
    total = 0.0
    for t in range(y.shape[0]):
        m = F @ m
        p = F @ p @ F.T + q
        s = h @ p @ h + r
        v = y[t] - h @ m
        gain = p @ h / s
        m = m + gain * v
        p = p - np.outer(gain, h @ p)
        total -= 0.5 * (np.log(s) + v**2 / s)
    return total


@layer
def turning(rate: real["T 3"], start: real["3"]) -> real["T 3"]:
    """A vector that is turned a little at each step: rows of three numbers, walked along."""
    v = start * 1.0
    out = np.zeros(rate.shape)
    for t in range(rate.shape[0]):
        u = rate[t]
        turned = np.array([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
        v = v + 0.1 * turned
        out[t] = v / np.sqrt(np.sum(v * v) + 0.01)
    return out


@layer(batched=True)
def limited(x: real["N 2*D"], *, limit: float = 1.5) -> real["N D"]:
    """Bounds that a call may set."""
    gate = np.minimum(x[:, ::2], limit)
    linear = np.clip(x[:, 1::2], -limit, limit)
    return gate / (1 + np.exp(-gate)) * (linear + 1)
'''


def draw(name: str, size: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    n = {
        "skipping": [(7, size)], "kept_rows": [(7, size)], "maxout": [(2, 3, 5, size), (3, 3), (3, 3)],
        "settled": [(2, 5, size), (2, size)], "aligned": [(5, 9, 4)], "limited": [(3, 2 * size)],
        "kalman": [(size, 7), (2,), ()], "turning": [(size, 6, 3), (size, 3)],
    }[name]  # fmt: skip
    values = [rng.standard_normal(s).astype(dtype) for s in n]
    if name == "skipping":
        values.append(np.array([size // 2, -100, 0, -1, -100, size - 1, 0], np.int32))
    if name == "kept_rows":
        values.append(np.array([1, 0, 0, 1, 1, 0, 1], np.int32))
    if name == "aligned":
        values.append(rng.integers(1, 4, (5, 3)))
    return values


NAMES = ["skipping", "kept_rows", "maxout", "settled", "aligned", "limited", "kalman", "turning"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("written")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "as_written", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "as_written.py")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 3, 16, 29, 70])
def test_values_and_gradients(package, name, size):
    agrees(getattr(package, name), draw(name, size), np.random.default_rng(size), 1e-10, 3e-6, exact=name != "aligned")


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        same_bits(getattr(package, name), draw(name, 150, dtype))


@pytest.mark.parametrize("name", ["skipping", "kept_rows"])
def test_rows_behind_a_branch_are_independent(kernels, name):
    """What one way of it makes is an iteration's own, arrays, too."""
    for (layer, method), kernel in kernels.items():
        if layer == name:
            branches = [s for s in walk(kernel.body) if isinstance(s, For) and any(isinstance(x, If) for x in s.body)]
            assert branches, method
            assert all(s.kind == "map" for s in branches), method


def test_pixels_are_one_loop(kernels):
    """Groups of all pixels of a channel, not of each row; columns with numbers of their own go row by row."""
    h, w = Dim.of("H"), Dim.of("W")
    for name, extent in (("maxout", h * w), ("settled", w)):
        for (layer, method), kernel in kernels.items():
            if layer == name and runs_loops(kernel):
                groups = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == extent // MANY_LANES]
                assert groups, (name, method)


def test_alignments_of_sixteen_go_together(kernels):
    for (layer, method), kernel in kernels.items():
        if layer == "aligned":
            assert any(isinstance(s, For) and s.hi == Dim.of(LANES) for s in walk(kernel.body)), method


@pytest.mark.parametrize("name", ["kalman", "turning"])
def test_a_step_of_a_few_numbers_is_one_loop_over_examples(kernels, name):
    """Its small arrays are variables, and no loop goes over two or three of anything."""
    for (layer, method), kernel in kernels.items():
        if layer == name:
            steps = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and "T" in s.hi.symbols()]
            groups = [s for step in steps for s in walk(step.body) if isinstance(s, For)]
            assert any(s.hi == Dim.of(LANES) for s in groups), method
            assert not any((s.hi - s.lo).value in (2, 3) for s in groups if s.kind == "map"), method


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_of_nothing_have_no_share(package, dtype):
    """States that no alignment has reached yet: the gradient is that of the others, and no NaN."""
    x, target = draw("aligned", 0, dtype)
    far = np.where(np.arange(5)[:, None, None] == 2, -200.0, 0.0) * (np.arange(4) == 0)
    for values in (x, x + far.astype(dtype)):
        y, pullback = package.aligned.vjp(values, target)
        gradient = pullback(np.ones_like(y))[0]
        assert np.isfinite(y).all()
        assert np.isfinite(gradient).all()
        np.testing.assert_allclose(np.sum(gradient, axis=-1), 0, atol=1e-5)  # of a softmax


def test_what_a_call_sets_is_not_asked_whether_it_is_nan(kernels, package):
    """Of the two that a minimum has, the second is asked, for each element; gcc has no vectors for what all share."""
    for method in ("predict", "backward"):
        ops = (e for s in walk(kernels["limited", method].body) for o in own_exprs(s) for e in parts(o))
        seconds = [e.args[1] for e in ops if isinstance(e, Op) and e.op in ("minimum", "maximum")]
        assert seconds
        assert all(any(loads(e)) for e in seconds)
    x = np.array([[np.nan, 1.0, 2.0, np.nan, 0.5, 9.0]])
    np.testing.assert_array_equal(np.isnan(package.limited(x)), [[True, True, False]])
    assert np.isnan(package.limited(x, limit=np.nan)).all()
