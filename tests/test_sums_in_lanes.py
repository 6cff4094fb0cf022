"""Long sums of an example, beside a recurrence: lanes add in blocks, as exactly as NumPy."""

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
def soft_edit(d: real["N M"], gap: real[""]) -> real[""]:
    """Its gradient adds up a row, of gaps, behind the recurrence."""
    n, m = d.shape
    before = np.arange(m + 1) * gap
    for i in range(n):
        row = np.empty_like(before)
        row[0] = (i + 1) * gap
        for j in range(1, m + 1):
            a, b, c = before[j - 1] + d[i, j - 1], before[j] + gap, row[j - 1] + gap
            least = min(a, b, c)
            row[j] = least - np.log(np.exp(least - a) + np.exp(least - b) + np.exp(least - c))
        before = row
    return before[m]


@layer
def smooth(x: real["T"], a: real[""]) -> real[""]:
    y = np.empty(x.shape[0])
    h = 0.0
    for t in range(x.shape[0]):
        h = a * h + x[t]
        y[t] = h
    return np.sum(np.abs(y))


@layer
def sheet(x: real["T D"], a: real["D"]) -> real[""]:
    """A sum over two axes, and one over one of them that is kept."""
    y = np.empty_like(x)
    for j in range(x.shape[1]):
        h = 0.0
        for t in range(x.shape[0]):
            h = a[j] * h + x[t, j]
            y[t, j] = h
    return np.sum(y * y) + np.sum(np.sum(y, axis=0) ** 3)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sums_in_lanes")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "sums_of", TEXT)


def draw(name: str, examples: int, m: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(examples + m)
    x, a = {"soft_edit": ((2, m), ()), "smooth": ((m,), ()), "sheet": ((m, 3), (3,))}[name]
    return [rng.random((examples, *x)).astype(dtype), rng.uniform(0.1, 0.9, (examples, *a)).astype(dtype)]


@pytest.mark.parametrize("examples", [1, 5, 16, 33])
@pytest.mark.parametrize("m", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("name", ["soft_edit", "smooth", "sheet"])
def test_values_and_gradients(package, name, examples, m):
    agrees(getattr(package, name), draw(name, examples, m), np.random.default_rng(0), 1e-10, 3e-6)


@pytest.mark.parametrize("name", ["soft_edit", "smooth", "sheet"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 50, 130, np.float32))


def test_sums_are_as_exact_as_those_in_pairs(package):
    """One by one they were wrong by seven millionths."""
    x, _ = draw("smooth", 32, 50_000)
    a = np.zeros(32)  # the recurrence itself rounds nothing
    found = package.smooth(x.astype(np.float32), a.astype(np.float32))
    exact = np.sum(x.astype(np.float32).astype(np.float64), axis=1)
    assert np.abs(found / exact - 1).max() < 3e-7


def test_they_run_together(package, folder):
    for (layer, which), kernel in kernels_in(folder / "sums_of.py").items():
        if layer == "soft_edit":
            assert any(isinstance(s, For) and s.hi == Dim.of(LANES) for s in walk(kernel.body)), which
            added = any(b.dtype == "f64" and b.shape == (Dim.of(LANES),) for b in kernel.buffers)
            assert added == (which in ("backward", "pullback"))  # in blocks, to a double of each lane
