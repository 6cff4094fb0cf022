"""Loops around a triangle go in steps, of which each is products of matrices and a little beside them; what lies beyond
the triangle is never looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Product
from layerc.transpile.passes.tree import walk

pytestmark = pytest.mark.heavy  # a minute of compiling

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def past(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """What an attention in loops looks at: every step a little more."""
    t, d = q.shape
    y = np.zeros((t, d))
    for i in range(t):
        s = np.zeros(t)
        for j in range(i + 1):
            a = 0.0
            for e in range(d):
                a += q[i, e] * k[j, e]
            s[j] = a / np.sqrt(d)
        top = np.max(s[: i + 1])
        z = 0.0
        for j in range(i + 1):
            s[j] = np.exp(s[j] - top)
            z += s[j]
        for j in range(i + 1):
            for e in range(d):
                y[i, e] += s[j] / z * v[j, e]
    return y


@layer
def past_of_arrays(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """Arrays that are longer at each step."""
    y = np.zeros(q.shape)
    for i in range(q.shape[0]):
        s = k[: i + 1] @ q[i] / np.sqrt(q.shape[1])
        p = np.exp(s - np.max(s))
        y[i] = (p / np.sum(p)) @ v[: i + 1]
    return y


@layer
def future(q: real["T D"], k: real["T D"]) -> real["T"]:
    """Every step a little less, and never itself."""
    t, d = q.shape
    y = np.zeros(t)
    for i in range(t):
        for j in range(i + 1, t):
            a = 0.0
            for e in range(d):
                a += q[i, e] * k[j, e]
            y[i] += np.tanh(a) * np.cos(1.0 * j)
    return y


@layer
def band(q: real["T D"], k: real["T D"], v: real["T D"], *, width: int = 70) -> real["T D"]:
    """A window on both sides, cut off at both ends."""
    t, d = q.shape
    y = np.zeros((t, d))
    for i in range(t):
        z = 0.0
        row = np.zeros(d)
        for j in range(max(0, i - width), min(t, i + width + 1)):
            a = 0.0
            for e in range(d):
                a += q[i, e] * k[j, e]
            w = 1.0 / (1.0 + a * a)
            z += w
            for e in range(d):
                row[e] += w * v[j, e]
        y[i] = row / z
    return y


@layer
def pairs(x: real["N D"], w: Param[real["D D"]]) -> real[""]:
    """Each pair once."""
    n, d = x.shape
    total = 0.0
    z = x @ w
    for i in range(n):
        for j in range(i):
            a = 0.0
            for e in range(d):
                a += z[i, e] * x[j, e]
            total += np.log1p(np.exp(-a * a))
    return total


@layer
def heads(q: real["H T D"], k: real["H T D"], v: real["H T D"]) -> real["H T D"]:
    """Triangles in a loop over heads, with a slope for each."""
    h, t, d = q.shape
    y = np.zeros((h, t, d))
    for g in range(h):
        slope = 2.0 ** (-8.0 * (g + 1) / h)
        for i in range(t):
            s = np.zeros(i + 1)
            for j in range(i + 1):
                s[j] = np.sum(q[g, i] * k[g, j]) - slope * (i - j)
            p = np.exp(s - np.max(s))
            p = p / np.sum(p)
            for j in range(i + 1):
                y[g, i] += p[j] * v[g, j]
    return y
'''

NAMES = ("past", "past_of_arrays", "future", "band", "pairs", "heads")
SIZES = (
    1,
    5,
    16,
    17,
    33,
    70,
    97,
)  # of steps none, parts of one, whole ones, and the band's rectangle is cut off or not


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stairs")


@pytest.fixture(scope="module")
def package(folder: Path) -> Any:
    return built_from(folder, "stairs", TEXT)


def _arguments(name: str, size: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    axes = (2, size, 8) if name == "heads" else (size, 8)
    if name == "pairs":
        shapes: list[tuple[int, ...]] = [(3, size, 8), (8, 8)]
    else:
        shapes = [(3, *axes)] * (2 if name == "future" else 3)
    return [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_the_triangle(package: Any, name: str, size: int) -> None:
    rng = np.random.default_rng(7)
    agrees(getattr(package, name), _arguments(name, size, np.float64), rng, 1e-11, 2e-6, exact=False)
    agrees(getattr(package, name), _arguments(name, size, np.float32), rng, 2e-5, 2e-3, exact=False)


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_are_no_steps(package: Any, name: str) -> None:
    values = _arguments(name, 0, np.float64)
    y, pullback = getattr(package, name).vjp(*values)
    assert np.array_equal(y, getattr(package, name).reference(*values))
    assert all(not np.any(g) for g in pullback(np.ones_like(y)))


@pytest.mark.parametrize("name", ["past", "past_of_arrays", "heads"])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_lies_beyond_is_not_looked_at(package: Any, name: str, bad: float) -> None:
    q, k, v = _arguments(name, 50, np.float64)
    good, _ = getattr(package, name).vjp(q, k, v)
    for array in (k, v):
        array[..., 37:, :] = bad
    y, pullback = getattr(package, name).vjp(q, k, v)
    assert np.array_equal(y[..., :37, :], good[..., :37, :])
    assert not np.isfinite(y[..., 37:, :]).any()
    assert np.isfinite(pullback(np.ones_like(y))[0][..., :37, :]).all(), "the gradient of q looks at its own row's past"


@pytest.mark.parametrize("name", ["past", "band"])
def test_any_number_of_threads_gives_the_same(package: Any, name: str) -> None:
    same_bits(getattr(package, name), _arguments(name, 70, np.float32))


def test_each_step_is_products(package: Any, folder: Path) -> None:
    kernels = kernels_in(folder / "stairs.py")
    for (name, method), kernel in kernels.items():
        assert any(isinstance(s, Product) for s in walk(kernel.body)), f"{name}.{method} has no product of matrices"


WINDOWS = """
import numpy as np
from layerc import Param, layer, real


@layer
def same(x: real["C T"], w: Param[real["D C K"]]) -> real["D T"]:
    n, k = x.shape[1], w.shape[2]
    y = np.zeros((w.shape[0], n))
    for o in range(w.shape[0]):
        for m in range(x.shape[0]):
            for a in range(k):
                for t in range(n):
                    p = t + a - k // 2
                    if 0 <= p < n:
                        y[o, t] += w[o, m, a] * x[m, p]
    return y


@layer
def causal(x: real["T C"], w: Param[real["K C D"]]) -> real["T D"]:
    y = np.zeros((x.shape[0], w.shape[2]))
    for k in range(w.shape[0]):
        for t in range(k, x.shape[0]):
            for d in range(w.shape[2]):
                for c in range(x.shape[1]):
                    y[t, d] += w[k, c, d] * x[t - k, c]
    return y
"""


def test_a_window_is_no_triangle(tmp_path: Path) -> None:
    """Elements around the edge have less of it: a step would hold a window or two."""
    (tmp_path / "windows.py").write_text(WINDOWS)
    for (name, method), kernel in kernels_in(tmp_path / "windows.py").items():
        assert not any(s.var.startswith("step") for s in walk(kernel.body) if isinstance(s, For)), (name, method)
