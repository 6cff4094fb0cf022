"""Places that are known before the loop over examples, one for all of them: they are no reason to go one by one."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For
from layerc.transpile.passes.alike import LANES
from layerc.transpile.passes.tree import walk

pytestmark = pytest.mark.heavy  # compiles for long

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def table(d: real["N M"]) -> real[""]:
    """Discrete Frechet distance: the last element, which N or M of 0 would make another one."""
    n, m = d.shape
    c = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            if i == 0 and j == 0:
                c[i, j] = d[0, 0]
            elif i == 0:
                c[i, j] = max(c[0, j - 1], d[i, j])
            elif j == 0:
                c[i, j] = max(c[i - 1, 0], d[i, j])
            else:
                c[i, j] = max(min(c[i - 1, j], c[i - 1, j - 1], c[i, j - 1]), d[i, j])
    return c[n - 1, m - 1]


@layer
def rows(d: real["N M"]) -> real[""]:
    n, m = d.shape
    before = np.zeros(m)
    for i in range(n):
        row = np.zeros(m)
        for j in range(m):
            if i == 0:
                row[j] = d[i, j] if j == 0 else max(row[j - 1], d[i, j])
            elif j == 0:
                row[j] = max(before[0], d[i, j])
            else:
                row[j] = max(min(before[j], before[j - 1], row[j - 1]), d[i, j])
        before = row
    return before[m - 1]


@layer
def chosen(x: real["T D"], k: int = -2) -> real["D"]:
    """A recurrence of which one step, configuration, is left."""
    t, n = x.shape
    h = np.zeros((t + 1, n))
    for i in range(t):
        for j in range(n):
            h[i + 1, j] = np.tanh(h[i, j] + x[i, j]) * (1 if i % 2 else 2)
    return h[k]
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("for_all")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "for_all", TEXT)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("examples", [0, 1, 3, 15, 16, 17, 40])
@pytest.mark.parametrize("name", ["table", "rows"])
def test_values_and_gradients(package, name, examples):
    for n, m in [(1, 1), (1, 4), (5, 1), (4, 6)]:
        agrees(getattr(package, name), [draw(examples, n, m)], np.random.default_rng(0), 1e-12, 1e-6)


@pytest.mark.parametrize("examples", [1, 16, 35])
@pytest.mark.parametrize("k", [-2, 0, 3])
def test_a_place_that_configuration_tells(package, examples, k):
    agrees(package.chosen, [draw(examples, 5, 4)], np.random.default_rng(0), 1e-12, 1e-6, k=k)


@pytest.mark.parametrize("k", [6, -7])
def test_a_place_that_is_none(package, k):
    for call in (package.chosen, package.chosen.vjp):
        with pytest.raises(IndexError, match="out of range"):
            call(draw(20, 5, 4), k=k)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_do_not_hang_on_threads(package, dtype):
    same_bits(package.table, [draw(40, 5, 7).astype(dtype)])


@pytest.mark.parametrize("name", ["table", "rows"])
def test_they_run_together(package, folder, name):
    for (layer, which), kernel in kernels_in(folder / "for_all.py").items():
        if layer == name:
            assert any(isinstance(s, For) and s.hi == Dim.of(LANES) for s in walk(kernel.body)), which
