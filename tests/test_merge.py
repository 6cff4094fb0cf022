"""One variable for one running value: no name that only hands a value over to another."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of, kernels_in
from thorough import agrees

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def running(x: real["T S"]) -> real["T S"]:
    """Run again by its gradient, which asks for what it had been."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top, total = -np.inf, 0.0
        for j in range(x.shape[1]):
            top = max(top, x[t, j])
        for j in range(x.shape[1]):
            total += np.exp(x[t, j] - top)
        for j in range(x.shape[1]):
            y[t, j] = (x[t, j] - top) / total
    return y


@layer
def dense(x: real["D"], w: Param[real["O D"]], bias: Param[real["O"]]) -> real["O"]:
    return np.tanh(w @ x + bias)


@layer
def exchanged(a: real["N"], b: real["N"], s: real) -> tuple[real["N"], real["N"]]:
    """Names of arrays that change places on one way of a branch in a loop, then in another loop."""
    n = a.shape[0]
    a, b = a.copy(), b.copy()
    u = a
    i = 0
    while i < 3 and a[n - 1] > u[-1] - 0.5:
        i += 1
        for k in range(1):
            u = b
            a[0] += 1.0
        a, u = (u, a) if u[n - 1] > -0.5 else (u, u)
    a[0] = s
    for k in range(2):
        u, a = (a, u)
    a -= s
    return u, b


@layer
def traced(x: real["H W"], c: Param[real["K"]], s: Param[real]) -> real["H W"]:
    """The gradient of s is a running sum in loops in loops, added to before, in and behind the innermost one."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j]
            k = 0
            while k < 4 and t < 1.5:
                f = np.exp(-s * (t + 1.0) ** 2)
                for m in range(c.shape[0]):
                    f += np.exp(-s * (t - c[m]) ** 2)
                t += 0.2 * np.log(1 + f) / s
                k += 1
            y[i, j] = t
    return y
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("merge")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "merge_of", TEXT)


def test_values_and_gradients(package):
    rng = np.random.default_rng(0)
    agrees(package.running, [rng.standard_normal((2, 3, 5))], rng, 1e-12, 2e-6)
    dense = [rng.standard_normal(s) for s in ((3, 4), (2, 4), (2,))]
    agrees(package.dense, dense, rng, 1e-12, 2e-6)
    for h, w in ((2, 3), (1, 70), (2, 0)):
        traced = [rng.standard_normal((2, h, w)), rng.standard_normal(3), np.array(1.3)]
        agrees(package.traced, traced, rng, 1e-12, 2e-6)


@pytest.mark.parametrize("seed", range(6))
def test_names_that_change_places(package, seed):
    rng = np.random.default_rng(seed)
    values = [rng.standard_normal((2, 4)), rng.standard_normal((2, 4)), rng.standard_normal(2)]
    for got, want in zip(package.exchanged(*values), package.exchanged.reference(*values), strict=True):
        np.testing.assert_array_equal(got, want)


def test_no_name_only_hands_a_value_over(folder):
    assert "largest = np.maximum(largest, x[t, j])" in gradient_of(folder, TEXT, "running")
    assert "d_bias = dy * (1 - y * y)" in gradient_of(folder, TEXT, "dense")


def test_a_running_sum_has_one_name_in_all_loops(package, folder):
    """So that it is a sum, and rows of elements do not wait for each other."""
    kernel = kernels_in(folder / "merge_of.py")["traced", "backward"]
    in_order = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq"]
    assert not any(s.hi in (Dim.of("H"), Dim.of("W")) for s in in_order)
