"""Windows that look up places held at an edge, or around it: an array of its own, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import accesses, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def bilateral(x: real["H W"], sigma: Param[real], *, r: int = 2) -> real["H W"]:
    """Reads and adds to both axes, held places and others."""
    h, w = x.shape
    y = np.zeros_like(x)
    for i in range(h):
        for j in range(w):
            total, norm = 0.0, 1e-9
            for di in range(-r, r + 1):
                for dj in range(-r, r + 1):
                    ii = min(max(i + di, 0), h - 1)
                    jj = min(max(j + dj, 0), w - 1)
                    d = x[ii, jj] - x[i, j]
                    g = np.exp(-(di * di + dj * dj) / 8.0 - d * d / (2.0 * sigma * sigma))
                    total += g * x[ii, jj]
                    norm += g
            y[i, j] = total / norm
    return y


@layer
def row(x: real["N"], w: Param[real["K"]]) -> real["N"]:
    n, k = x.shape[0], w.shape[0]
    y = np.zeros(n)
    for i in range(n):
        for j in range(k):
            y[i] += w[j] * np.tanh(x[np.clip(i + j - k // 2, 0, n - 1)])
    return y


@layer
def around(x: real["C H W"], w: Param[real["C 3 3"]]) -> real["C H W"]:
    c, h, wd = x.shape
    y = np.zeros_like(x)
    for k in range(c):
        for i in range(h):
            for j in range(wd):
                s = 0.0
                for a in range(3):
                    for b in range(3):
                        s += w[k, a, b] * x[k, (i + a - 1) % h, (j + b - 1) % wd]
                y[k, i, j] = s
    return y


@layer
def life(x: real["H W"], *, steps: int = 3) -> real["H W"]:
    """What each step has made; an axis around, one held."""
    h, w = x.shape
    u = x.copy()
    for _ in range(steps):
        v = np.zeros_like(u)
        for i in range(h):
            for j in range(w):
                s = 0.0
                for di in range(-1, 2):
                    for dj in range(-2, 2):
                        s += u[(i + di) % h, max(min(j + dj, w - 1), 0)]
                v[i, j] = np.tanh(0.3 * s - u[i, j])
        u = v
    return u


@layer
def apart(x: real["C N"], *, k: int = 3) -> real["C (N+1)//2"]:
    """By steps, downwards, with a whole axis of channels inside."""
    c, n = x.shape
    y = np.zeros((c, (n + 1) // 2))
    for i in range(y.shape[1]):
        for j in range(k):
            for m in range(c):
                y[m, i] += np.exp(0.1 * j) * x[m, min(max(2 * i - j, 0), n - 1)]
    return y


@layer
def ring(x: real["N"], *, steps: int = 4) -> real["N"]:
    """Neighbours around an axis, no windows."""
    n = x.shape[0]
    u = x.copy()
    for _ in range(steps):
        v = np.empty(n)
        for i in range(n):
            v[i] = u[i] + 0.2 * (u[(i - 1) % n] - 2 * u[i] * u[i] + u[(i + 1) % n])
        u = v
    return u


@layer
def edges(x: real["H W"], *, r: int = 1) -> real["H W"]:
    """The same, where NumPy pads."""
    h, w = x.shape
    p = np.pad(x, r, mode="edge")
    y = np.zeros_like(x)
    for i in range(h):
        for j in range(w):
            for a in range(2 * r + 1):
                for b in range(2 * r + 1):
                    y[i, j] += np.sin(p[i + a, j + b] * (1 + a - b))
    return y
'''
SHAPES = {"bilateral": "hw", "row": "n", "around": "chw", "life": "hw", "apart": "cn", "ring": "n", "edges": "hw"}
SIZES = [{"c": 2, "h": 6, "w": 37, "n": 40}, {"c": 1, "h": 1, "w": 2, "n": 1}, {"c": 3, "h": 2, "w": 1, "n": 3}]
SETTINGS = {
    "bilateral": [{"r": 0}, {"r": 2}, {"r": 5}],
    "life": [{"steps": 0}, {"steps": 3}],
    "edges": [{"r": 0}, {"r": 2}],
    "apart": [{"k": 3}, {"k": 7}],
}


def draw(name: str, sizes: dict[str, int], batch: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(batch)
    x = rng.standard_normal((batch, *(sizes[axis] for axis in SHAPES[name])))
    w = rng.standard_normal((sizes["c"], 3, 3))
    params = {"bilateral": [np.array(0.7)], "row": [rng.standard_normal(5)], "around": [w]}
    return [np.asarray(v, dtype) for v in (x, *params.get(name, []))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("padded")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "padded_of", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "padded_of.py")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("batch", [1, 5])
def test_values_and_gradients(package, name, sizes, batch):
    for options in SETTINGS.get(name, [{}]):
        values = draw(name, sizes, batch)
        agrees(getattr(package, name), values, np.random.default_rng(1), 1e-10, 2e-5, exact=False, **options)


@pytest.mark.parametrize("name", [n for n in SHAPES if n != "edges"])
def test_nothing_is_looked_up_where_there_is_nothing(package, name):
    y, pullback = getattr(package, name).vjp(*draw(name, {"c": 2, "h": 0, "w": 3, "n": 0}, 3))
    assert y.size == 0
    assert all(np.all(g == 0) for g in pullback(np.ones_like(y)))


def test_nothing_has_no_edge(package):
    """NumPy says so of np.pad, the compiled layer of the first place that it looks up."""
    (x,) = draw("edges", {"c": 1, "h": 0, "w": 3}, 3)
    with pytest.raises(ValueError, match="empty axis 0"):
        package.edges.reference(x)
    for call in (package.edges, package.edges.vjp):
        with pytest.raises(IndexError, match="axis 0 with size 0"):
            call(x)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, SIZES[0], 20, np.float32))


def test_a_radius_below_nothing_is_no_window(package):
    x, sigma = draw("bilateral", SIZES[0], 2)
    for r in (-1, -9):
        y, pullback = package.bilateral.vjp(x, sigma, r=r)
        assert (y == 0).all()
        assert all((g == 0).all() for g in pullback(np.ones_like(y)))


@pytest.mark.parametrize("name", ["bilateral", "row", "around", "life"])
def test_windows_look_into_an_array_of_their_own(kernels, name):
    for method in ("predict", "backward"):
        assert any("_held" in b.name for b in kernels[name, method].buffers), method


def test_what_goes_around_has_a_middle_that_does_not(kernels):
    """Linear in the counter, and vectors."""
    for (name, method), kernel in kernels.items():
        if name == "ring" and method in ("predict", "backward"):
            loops = [s for s in walk(kernel.body) if isinstance(s, For) and "N - 2" in str(s.hi)]
            assert loops, method
            assert all(d.split(s.var) for s in loops for a in accesses(s.body) for d in a.index or ()), method
