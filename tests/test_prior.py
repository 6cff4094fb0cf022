"""What later iterations write is read from a copy made before; what earlier ones are done with is added to behind them.
Which side of them that is, a weight says that is known when the loop begins."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Op, Store
from layerc.transpile.passes.tree import parts, walk

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def soft(value: real["N"], weight: i64["N"], temp: Param[real], cap: int = 9) -> real:
    """A weight of each item's own: one of 0 is in order."""
    V = np.zeros(cap + 1)
    for n in range(value.shape[0]):
        w = weight[n]
        for c in range(cap, w - 1, -1):
            V[c] = np.logaddexp(V[c], V[c - w] + value[n] / temp)
    return temp * V[cap]


@layer
def hard(value: real["N"], weight: i64["N"], cap: int = 9) -> real["cap+1"]:
    V = np.zeros(cap + 1)
    for n in range(value.shape[0]):
        for c in range(cap, weight[n] - 1, -1):
            V[c] = np.maximum(V[c], V[c - weight[n]] + value[n])
    return V


@layer
def best(value: real["N"], weight: i64["N"], cap: int = 9) -> real["cap+1"]:
    """A branch keeps the better one."""
    V = np.zeros(cap + 1)
    for n in range(value.shape[0]):
        for c in range(cap, weight[n] - 1, -1):
            new = V[c - weight[n]] + value[n]
            if new > V[c]:
                V[c] = new
    return V


@layer
def ways(value: real["N"], weight: i64["N"], cap: int = 9) -> real["cap+1"]:
    """Two ways, each with a number of its own, and one inside; what one of them counts, and what stays from before."""
    V = np.zeros(cap + 1)
    times = 0.0
    last = 1.0
    for n in range(value.shape[0]):
        w = weight[n]
        for c in range(cap, w - 1, -1):
            new = V[c - w] + value[n]
            if new > 1.25 * V[c]:
                gain = new - V[c]
                times += gain
                if gain > 0.5:
                    V[c] = new * value[n]
                else:
                    V[c] = V[c] + gain * gain
            else:
                V[c] *= 0.75
    for n in range(value.shape[0]):
        w = weight[n]
        for c in range(cap, w - 1, -1):
            if V[c - w] > 1.0:
                last = V[c - w]
            V[c] = V[c] + np.tanh(last)
    return V + times


@layer
def again(value: real["N"], weight: i64["N"], cap: int = 9) -> real["cap+1"]:
    """As many of each item as there is room for: in order, from below."""
    V = np.zeros(cap + 1)
    for n in range(value.shape[0]):
        w = weight[n]
        for c in range(w, cap + 1):
            V[c] = np.logaddexp(V[c], V[c - w] + value[n])
    return V


@layer
def ahead(x: real["T D"], far: i64["D"]) -> real["T D"]:
    """Along the other axis, upwards; of two that are read, one is where it is."""
    T, D = x.shape
    y = np.copy(x)
    for d in range(D):
        f = far[d]
        for t in range(T - f):
            y[t, d] = np.tanh(y[t, d]) + 0.5 * np.exp(-(y[t + f, d] ** 2))
    return y


@layer
def given(x: real["T"], far: int = 2) -> real["T"]:
    """A distance that configuration says: it is that of all examples."""
    T = x.shape[0]
    y = np.copy(x)
    for _ in range(2):
        for t in range(T - 1, far - 1, -1):
            y[t] = np.tanh(y[t] + 0.5 * y[t - far])
    return y


@layer
def next_one(x: real["T"]) -> real["T"]:
    """A number that the program says: examples walk side by side."""
    y = np.copy(x)
    for t in range(x.shape[0] - 1):
        y[t] = np.exp(-y[t] * y[t + 1])
    return y


@layer
def both(x: real["T"], far: i64[""]) -> real["T"]:
    """One before and one behind: in order, wherever they are."""
    T = x.shape[0]
    y = np.copy(x)
    for t in range(2, T - 2):
        y[t] = np.tanh(y[t - far] - y[t + far])
    return y


@layer
def moving(x: real["T"], far: i64["T"]) -> real["T"]:
    """A distance of each iteration's own."""
    T = x.shape[0]
    y = np.copy(x)
    for t in range(T):
        y[t] = np.tanh(y[t] + 0.5 * y[far[t]])
    return y
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("prior")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "prior_of", TEXT)


def items(n: int, batch: int, least: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(n + batch)
    return [rng.uniform(0.1, 2, (batch, n)), rng.integers(least, 7, (batch, n))]


@pytest.mark.parametrize(("n", "batch"), [(1, 1), (5, 3), (4, 17)])
@pytest.mark.parametrize("least", [1, 0])
def test_items(package, n, batch, least):
    rng = np.random.default_rng(n)
    values = items(n, batch, least)
    agrees(package.soft, [*values, np.array(0.7)], rng, 1e-10, 1e-5)
    agrees(package.hard, values, rng, 1e-10, 1e-5)
    agrees(package.best, values, rng, 1e-10, 1e-5)
    agrees(package.ways, values, rng, 1e-10, 1e-5)
    agrees(package.again, items(n, batch), rng, 1e-10, 1e-5)


@pytest.mark.parametrize("cap", [0, 1, 40])
def test_of_other_sizes(package, cap):
    values = items(5, 3)
    agrees(package.soft, [*values, np.array(0.7)], np.random.default_rng(1), 1e-10, 1e-5, cap=cap)
    agrees(package.hard, values, np.random.default_rng(1), 1e-10, 1e-5, cap=cap)
    agrees(package.best, values, np.random.default_rng(1), 1e-10, 1e-5, cap=cap)


def test_a_weight_that_counts_from_the_end_is_an_error_where_it_is_numpys(package):
    value, weight = items(2, 1)
    for heavy in (10, 11, 12, -9, -10, -11, -12, -25):
        weight[0] = heavy, 2
        for layer, more in ((package.soft, (np.array(0.7),)), (package.hard, ()), (package.best, ())):
            try:
                want = layer.reference(value, weight, *more)
            except IndexError:
                with pytest.raises(IndexError):
                    layer(value, weight, *more)
                with pytest.raises(IndexError):
                    layer.vjp(value, weight, *more)[1](np.ones(1))
            else:
                np.testing.assert_allclose(layer(value, weight, *more), want, 1e-12)


@pytest.mark.parametrize(("t", "d"), [(1, 1), (7, 3), (40, 2)])
@pytest.mark.parametrize("far", [0, 1, 3])
def test_upwards(package, t, d, far):
    rng = np.random.default_rng(t)
    x = rng.standard_normal((2, t, d))
    agrees(package.ahead, [x, np.full((2, d), far)], rng, 1e-10, 1e-5)
    agrees(package.next_one, [x[..., 0]], rng, 1e-10, 1e-5)
    agrees(package.given, [x[..., 0]], rng, 1e-10, 1e-5, far=far)
    if t > 6:
        agrees(package.both, [x[..., 0], np.full(2, far - 1)], rng, 1e-10, 1e-5)
    agrees(package.moving, [x[..., 0], rng.integers(-t, t, (2, t))], rng, 1e-10, 1e-5)


def test_what_is_no_number(package):
    value, weight = items(4, 2)
    for odd in (np.nan, np.inf, -np.inf):
        value[0, 1] = odd
        with np.errstate(all="ignore"):
            want = package.soft.reference(value, weight, np.array(0.7))
            other = package.hard.reference(value, weight)
            kept = package.best.reference(value, weight)
        np.testing.assert_allclose(package.soft(value, weight, np.array(0.7)), want, 1e-10)
        np.testing.assert_array_equal(package.hard(value, weight), other)
        np.testing.assert_array_equal(package.best(value, weight), kept)


def test_none_at_all(package):
    assert np.array_equal(package.soft(np.ones((2, 0)), np.ones((2, 0), int), np.array(0.7)), np.zeros(2))
    assert np.array_equal(package.best(np.ones((2, 0)), np.ones((2, 0), int), cap=3), np.zeros((2, 4)))
    assert package.next_one(np.ones((3, 0))).shape == (3, 0)


def test_bits_do_not_hang_on_threads(package):
    same_bits(package.soft, [*items(6, 33), np.array(0.7)])
    same_bits(package.best, items(6, 33))


def in_order(kernel, *ops: str) -> list[str]:
    """The kinds of the loops that compute these."""
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and all(isinstance(x, Store) for x in s.body)]
    return [x.kind for x in loops if any(_is_one(p, ops) for s in x.body for p in (s, *parts(s.value)))]


def _is_one(part, ops: tuple[str, ...]) -> bool:
    return isinstance(part, (Op, Store)) and part.op in ops


def test_iterations_are_independent(package, folder):
    kernels = kernels_in(folder / "prior_of.py")
    assert "map" in in_order(kernels["soft", "predict"], "logaddexp")
    assert set(in_order(kernels["soft", "backward"], "logaddexp", "exp", "expit")) == {"map"}
    assert "map" in in_order(kernels["hard", "predict"], "maximum", "max")
    assert "map" in in_order(kernels["ahead", "predict"], "exp")
    assert "map" in in_order(kernels["best", "predict"], "greater")
    assert any(b.name.startswith("prior") for b in kernels["ways", "predict"].buffers)
    assert any(b.name.startswith("later") for b in kernels["best", "backward"].buffers)
    for name in ("again", "given", "next_one", "both", "moving"):
        assert not any(b.name.startswith("prior") for b in kernels[name, "predict"].buffers)


def test_each_write_leaves_one_number(package, folder):
    """Though no extent says how often the loop runs: no row is saved for each of its steps."""
    gradient = (folder / "prior_of_compiled" / "gradients.py").read_text()
    assert "V_saved[n, c + cap + 1] = V[c]" in gradient


def test_a_branch_is_gone_over_in_vectors(package, folder):
    """What it asks is a mask, and what it leaves for the reverse lies along memory."""
    text = "".join(f.read_text() for f in sorted((folder / "prior_of_compiled").glob("*.c")))
    body = text[text.rindex("int LC_NAME(best_backward_f32)(") :].split("\nint LC_NAME")[0]
    lines = [line.strip() for line in body.splitlines()]
    kept = [k for k, line in enumerate(lines) if line.startswith("chosen_saved[") and "weight" in line]
    loops = [next(k for k in range(at, 0, -1) if lines[k].startswith("for (")) for at in kept]
    assert kept
    assert lines[loops[0] - 1].startswith("#pragma omp simd")
