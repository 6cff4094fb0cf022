"""Numbers that loops in loops make anew: nests that only share a name do not wait for each other."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def additive(q: real["T A"], k: real["S A"], val: real["S E"], v: Param[real["A"]]) -> real["T E"]:
    """Its gradient makes tanh again in one nest, and takes it from where that left it in another."""
    T, A = q.shape
    S, E = val.shape
    out = np.zeros((T, E))
    for t in range(T):
        score = np.zeros(S)
        for s in range(S):
            for a in range(A):
                score[s] += v[a] * np.tanh(q[t, a] + k[s, a])
        top = max(score)
        total = 0.0
        for s in range(S):
            score[s] = np.exp(score[s] - top)
            total += score[s]
        for s in range(S):
            for e in range(E):
                out[t, e] += score[s] / total * val[s, e]
    return out


@layer
def handed_on(x: real["N M"]) -> real["N M"]:
    """A number that a nest leaves, if it runs at all, is another's to begin with; and one that each makes anew."""
    n, m = x.shape
    y = np.zeros((n, m))
    last = 0.5
    for i in range(n):
        for j in range(m):
            z = np.sin(x[i, j])
            y[i, j] = z * z
            last = x[i, j] * 2
    for i in range(n):
        for j in range(m - 1):
            z = np.cos(x[i, j]) + last
            y[i, j] += z * x[i, j + 1]
            last = z * 0.5
    y[0, 0] += last
    return y
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lives")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "lives_of", TEXT)


@pytest.mark.parametrize("batch", [1, 5, 17])
@pytest.mark.parametrize(("t", "s", "a", "e"), [(2, 3, 4, 1), (1, 1, 1, 2), (2, 17, 20, 0), (0, 2, 3, 2)])
def test_values_and_gradients(package, batch, t, s, a, e):
    rng = np.random.default_rng(batch + s)
    values = [rng.standard_normal(shape) for shape in ((batch, t, a), (batch, s, a), (batch, s, e), (a,))]
    agrees(package.additive, values, rng, 1e-11, 3e-6)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 1), (1, 20)])
def test_what_is_handed_on(package, shape):
    rng = np.random.default_rng(shape[1])
    agrees(package.handed_on, [rng.standard_normal((3, *shape))], rng, 1e-11, 3e-6)


@pytest.mark.parametrize("method", ["predict", "backward", "pullback"])
def test_no_nest_waits_for_another(package, folder, method):
    kernel = kernels_in(folder / "lives_of.py")["additive", method]
    extents = [Dim.of(name) for name in "TSA"]
    assert not any(isinstance(s, For) and s.kind == "seq" and s.hi in extents for s in walk(kernel.body))
