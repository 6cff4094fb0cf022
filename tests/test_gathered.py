"""Steps that look at neighbours, on grids that go around and on grids that end: in their gradients, places take what
neighbours give, so that the loops are vectors and threads need no copies."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def around(u: real["H W"], c: Param[real["2"]], *, steps: int = 3) -> real["H W"]:
    """A grid that goes around, in place of which each step makes another."""
    H, W = u.shape
    for _ in range(steps):
        v = np.empty_like(u)
        for i in range(H):
            up = (i - 1) % H
            dn = (i + 1) % H
            for j in range(W):
                le = (j - 1) % W
                ri = (j + 1) % W
                lap = u[up, j] + u[dn, j] + u[i, le] + u[i, ri] - 4 * u[i, j]
                v[i, j] = u[i, j] + c[0] * lap - c[1] * u[i, j] ** 3
        u = v
    return u


@layer
def heat(u: real["H W"], k: Param[real["H W"]], *, steps: int = 3) -> real["H W"]:
    """Inside of an edge that stays."""
    H, W = u.shape
    for _ in range(steps):
        v = u.copy()
        for i in range(1, H - 1):
            for j in range(1, W - 1):
                v[i, j] = u[i, j] + k[i, j] * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        u = v
    return u


@layer
def blur(u: real["H W"], w: Param[real["3"]], *, steps: int = 2) -> real["H W"]:
    """Nine places, of which the edge has fewer: branches give to neighbours."""
    H, W = u.shape
    for _ in range(steps):
        v = np.zeros_like(u)
        for i in range(H):
            for j in range(W):
                s = w[0] * u[i, j]
                if i > 0:
                    s += w[1] * u[i - 1, j]
                    if j > 0:
                        s += w[2] * u[i - 1, j - 1]
                    if j < W - 1:
                        s += w[2] * u[i - 1, j + 1]
                if i < H - 1:
                    s += w[1] * u[i + 1, j]
                if j > 0:
                    s += w[1] * u[i, j - 1]
                v[i, j] = s
        u = v
    return u


@layer
def upwind(q: real["H W"], a: Param[real["H W"]], b: Param[real["H W"]], *, steps: int = 2) -> real["H W"]:
    """Negative indices go around, and which neighbour is asked is told by a number."""
    H, W = q.shape
    for _ in range(steps):
        r = np.zeros((H, W))
        for i in range(H):
            for j in range(W):
                if a[i, j] > 0:
                    dy = q[i, j] - q[i - 1, j]
                    e = dy * dy / (1.0 + dy * dy) + np.tanh(dy) * q[(i + 2) % H, j]
                else:
                    dy = q[(i + 1) % H, j] - q[i, j]
                    e = dy / (2.0 + dy * dy) - q[(i - 2) % H, j] * np.tanh(dy)
                r[i, j] = q[i, j] - a[i, j] * e - b[i, j] * (q[i, j] - q[i, j - 1])
        q = r
    return q


@layer
def rolled(u: real["H W"], c: Param[real], *, steps: int = 3) -> real["H W"]:
    for _ in range(steps):
        lap = np.roll(u, 1, axis=0) + np.roll(u, -1, axis=0) + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u
        u = u + c * lap
    return u


@layer
def space(p: real["D H W"], c: Param[real["D H W"]]) -> real["D H W"]:
    """Three axes, the last one of which goes around, and numbers that change between two neighbours."""
    D, H, W = p.shape
    y = p.copy()
    for i in range(1, D - 1):
        for j in range(2, H):
            for k in range(W):
                t = c[i, j, k] * p[i + 1, j, k] + p[i, j - 1, (k + 1) % W]
                t = t * p[i, j, k] + p[i - 1, j - 2, k]
                y[i, j, k] = t * p[i, j, k - 1]
    return y


@layer
def levels(u: real["H W"], c: Param[real["H W"]]) -> real["H W"]:
    """Grids as large as a counter says: there is no array for what they give."""
    H, W = u.shape
    y = u.copy()
    for n in range(1, H):
        for i in range(n):
            for j in range(W):
                y[i, j] += c[n, j] * (u[i + 1, j] + u[i, (j + 1) % W] + c[i, j] * u[i, j])
    return y
'''

NAMES = ["around", "heat", "blur", "upwind", "rolled", "space", "levels"]
GRIDS = ["around", "heat", "blur", "upwind", "space"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("grids")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "grids", TEXT)


def draw(name: str, height: int, width: int, dtype: type, examples: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(31 * height + width)
    grid = (height, width) if name != "space" else (4, height, width)
    more = {"around": [(2,)], "blur": [(3,)], "upwind": [grid, grid], "rolled": [()]}.get(name, [grid])
    return [(0.5 * rng.standard_normal(s)).astype(dtype) for s in ((examples, *grid), *more)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 5), (5, 3), (6, 40)])
def test_values_and_gradients(package, name, height, width):
    values = draw(name, height, width, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(width), 1e-10, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_in_single_precision(package, name):
    layer, values = getattr(package, name), draw(name, 9, 37, np.float32)
    y, pullback = layer.vjp(*values)
    wide = [v.astype(float) for v in values]
    np.testing.assert_allclose(y, layer.reference(*wide), 2e-5, 2e-5)
    for found, want in zip(pullback(np.ones_like(y)), layer.vjp(*wide)[1](np.ones(y.shape)), strict=True):
        np.testing.assert_allclose(found, want, 1e-4, 2e-5 * max(1.0, float(np.max(np.abs(want)))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("examples", [1, 9])
def test_bits_do_not_hang_on_threads(package, name, examples):
    same_bits(getattr(package, name), draw(name, 70, 45, np.float32, examples))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("height", "width"), [(0, 3), (3, 0)])
def test_empty(package, name, height, width):
    layer, values = getattr(package, name), draw(name, height, width, np.float64)
    y, pullback = layer.vjp(*values)
    np.testing.assert_array_equal(y, layer.reference(*values))
    assert [g.shape for g in pullback(np.ones_like(y))] == [v.shape for v in values]


@pytest.mark.parametrize("name", ["around", "heat", "blur", "rolled"])
def test_what_is_no_number_stays_with_its_neighbours(package, name):
    """A place that gets NaN gives it to those that look at it, and to no other: zeros beside the grid are added."""
    layer, values = getattr(package, name), draw(name, 8, 40, np.float64, 1)
    dy = np.ones_like(values[0])
    dy[0, 4, 20] = np.nan
    d = layer.vjp(*values, steps=1)[1](dy)[0]
    moved = [
        layer.reference(values[0] + 1.0 * (np.arange(320) == k).reshape(1, 8, 40), *values[1:], steps=1)
        for k in range(320)
    ]
    seen = np.array([m[0, 4, 20] != layer.reference(*values, steps=1)[0, 4, 20] for m in moved]).reshape(1, 8, 40)
    np.testing.assert_array_equal(np.isnan(d), seen)


@pytest.mark.parametrize("name", GRIDS)
def test_places_take_what_neighbours_give(folder, package, name):
    kernel = kernels_in(folder / "grids.py")[name, "backward"]
    assert any("_given" in b.name for b in kernel.buffers)
    assert not any("_part" in b.name and len(b.shape) > 2 for b in kernel.buffers if name not in ("space", "upwind"))
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq"]
    if name not in ("blur", "upwind"):  # whose forwards have numbers that branches set
        assert not any(s.hi.symbols() & {"H", "W"} for s in loops if not _adds_up(s))


def _adds_up(loop: For) -> bool:
    """Whether it adds up what chunks have, in order."""
    return all(isinstance(s, For) or (isinstance(s, Store) and s.op) for s in walk(loop.body))


def test_a_row_around_an_axis_is_named_before_its_loop(folder, package):
    """So that gcc sees a loop along memory; nothing is divided for it."""
    (path,) = folder.rglob("*.c")
    text = path.read_text()
    assert "lc_around(" in text and re.search(r"y\[\(b\*H \+ around\)\*W \+ j\w* \+ 1\]", text)
