"""What is dear in a loop over lanes, and the same for all iterations of the loop around it, is made once before it; and
never where one of them changes it."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import For, Op
from layerc.transpile.passes.tree import bodies, own_exprs, parts

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def inverse(a: real["D D"]) -> real["D D"]:
    """By Gauss and Jordan: a pivot for all of a row."""
    n = a.shape[0]
    m = np.zeros((n, 2 * n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, i] += 2.0
        m[i, n + i] = 1.0
    for i in range(n):
        pivot = m[i, i]
        for j in range(2 * n):
            m[i, j] = m[i, j] / pivot
        for k in range(n):
            if k != i:
                factor = m[k, i]
                for j in range(2 * n):
                    m[k, j] -= factor * m[i, j]
    return m[:, n:]


@layer
def forgets(a: real["D D"]) -> real["D D"]:
    """The pivot is 1 from its own column on: no pivot for all of a row."""
    n = a.shape[0]
    m = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, i] += 2.0
    for i in range(n):
        for j in range(n):
            m[i, j] = m[i, j] / m[i, i]
        for k in range(i + 1, n):
            for j in range(n):
                m[k, j] -= 0.5 * m[i, j]
    return m


@layer
def filtered(x: real["T S"], move: Param[real["S S"]]) -> real["T S"]:
    """A hidden Markov model's filter: each step's shares sum to 1."""
    steps, n = x.shape
    share = np.ones(n) / n
    y = np.zeros((steps, n))
    for t in range(steps):
        new = np.zeros(n)
        total = 0.0
        for s in range(n):
            for r in range(n):
                new[s] += share[r] * np.exp(move[r, s])
            new[s] *= np.exp(x[t, s])
            total += new[s]
        for s in range(n):
            share[s] = new[s] / total
        y[t] = share
    return y


@layer
def shrinks(x: real["T S"]) -> real["T S"]:
    """The divisor grows from element to element."""
    steps, n = x.shape
    y = np.zeros((steps, n))
    size = 1.0
    for t in range(steps):
        for s in range(n):
            y[t, s] = x[t, s] / size + np.tanh(size)
            size = size + 0.1 * y[t, s] * y[t, s]
    return y


@layer
def gated(x: real["T S"]) -> real["T S"]:
    """A gate of a state for all elements of a step; of which there may be none, and the state 0."""
    steps, n = x.shape
    y = np.zeros((steps, n))
    size = 0.0
    for t in range(steps):
        old = 0.0
        for s in range(n):
            y[t, s] = x[t, s] * np.exp(-size) / (1.0 + size * size)
            old += y[t, s] * x[t, s]
        size = 0.5 * size + old / n
    return y
'''

SHAPES = {
    "inverse": [(4, 4)],
    "forgets": [(4, 4)],
    "filtered": [(5, 3), (3, 3)],
    "shrinks": [(4, 3)],
    "gated": [(5, 3)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("beside")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "beside_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 4, 16, 19])
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-4, 2e-3)])
def test_values_and_gradients(package, name, examples, dtype, tight, close):
    rng = np.random.default_rng(examples)
    first, *others = SHAPES[name]
    values = [np.asarray(0.3 * rng.standard_normal((examples, *first)), dtype)]
    values += [np.asarray(0.3 * rng.standard_normal(shape), dtype) for shape in others]
    agrees(getattr(package, name), values, rng, tight, close)


def test_what_no_element_asks(package):
    """A divisor that is made before the loop over elements is made where there are none, too: nobody sees it."""
    for name in ("shrinks", "gated"):
        y, pullback = getattr(package, name).vjp(np.ones((17, 5, 0)))
        (d_x,) = pullback(y)
        assert y.shape == d_x.shape == (17, 5, 0)


def test_a_state_that_is_not_a_number_spoils_its_own_example_only(package):
    x = np.full((18, 4, 3), 0.25)
    x[7, 1, 0] = np.nan
    y, pullback = package.gated.vjp(x)
    (d_x,) = pullback(np.ones_like(y))
    others = np.arange(18) != 7
    assert np.isnan(y[7, 2:]).all()
    assert np.isfinite(y[others]).all()
    assert np.isfinite(d_x[others]).all()


DIVIDING = {"divide", "inverse", "exp", "tanh"}


def dear(body, loops=()):
    """The loops around each dear operation, the outermost first."""
    for stmt in body:
        ops = (p for e in own_exprs(stmt) for p in parts(e) if isinstance(p, Op) and p.op in DIVIDING)
        yield from (loops for _ in ops)
        for inner in bodies(stmt):
            yield from dear(inner, (*loops, stmt) if isinstance(stmt, For) else loops)


@pytest.mark.parametrize(
    ("name", "method", "along"), [("inverse", "predict", "j"), ("inverse", "backward", "j"), ("gated", "predict", "s")]
)
def test_it_is_made_before_the_loop(folder, package, name, method, along):
    """Nothing dear is left in loops along a row, but where a row's elements themselves are vectors."""
    kernel = kernels_in(folder / "beside_of.py")[name, method]
    found = list(dear(kernel.body))
    assert found
    assert not [loops for loops in found if any(s.var.split("_")[0] == along for s in loops)]
