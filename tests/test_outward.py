"""A loop over channels inside one over pixels that only works out where goes outside: pixels run along memory."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import in_vectors, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def resized(x: real["C H W"]) -> real["C 2*H 2*W"]:
    """Bilinear, all channels of a pixel at once."""
    c, h, w = x.shape
    y = np.zeros((c, 2 * h, 2 * w))
    for i in range(2 * h):
        for j in range(2 * w):
            u, v = max(i / 2 - 0.25, 0.0), max(j / 2 - 0.25, 0.0)
            i0, j0 = int(u), int(v)
            i1, j1 = min(i0 + 1, h - 1), min(j0 + 1, w - 1)
            du, dv = u - i0, v - j0
            y[:, i, j] = (1 - dv) * ((1 - du) * x[:, i0, j0] + du * x[:, i1, j0])
            y[:, i, j] += dv * ((1 - du) * x[:, i0, j1] + du * x[:, i1, j1])
    return y


@layer
def summed(x: real["C W"], w: Param[real["C"]]) -> real["W"]:
    """What all channels add up is no variable of one of them."""
    c, n = x.shape
    y = np.zeros(n)
    for j in range(n):
        s, t = 0.0, j / n
        for k in range(c):
            s += x[k, j] * w[k] * t
        for k in range(c):
            y[j] += s * x[k, j]
    return y


@layer
def swapped(x: real["C W"]) -> real["C W"]:
    """What one channel leaves another one takes."""
    c, n = x.shape
    y, t = np.zeros((c, n)), np.zeros((c, n))
    for j in range(n):
        f = np.cos(1.0 * j)
        for k in range(c):
            t[k, j] = f * x[k, j]
        for k in range(c):
            y[k, j] = t[c - 1 - k, j] * x[k, j]
    return y


@layer
def placed(x: real["C W"], at: real["W"]) -> real["C W"]:
    """Where is told by an array."""
    c, n = x.shape
    y = np.zeros((c, n))
    for j in range(n):
        p = min(max(at[j], 0.0), n - 1.0)
        q = int(p)
        for k in range(c):
            y[k, j] = x[k, q] * (p - q)
        for k in range(c):
            y[k, j] += x[k, j] * p
    return y


@layer
def averaged(x: real["C W"]) -> real["C W"]:
    """What is worked out of all channels has to wait for them."""
    c, n = x.shape
    y = np.zeros((c, n))
    for j in range(n):
        s = 1.0
        for k in range(c):
            s += x[k, j]
        v = s * 0.5
        for k in range(c):
            y[k, j] = v * x[k, j]
    return y


@layer
def branched(x: real["C W"]) -> real["C W"]:
    """What a branch adds is added once, not for each channel."""
    c, n = x.shape
    y = x * 0.5
    for j in range(n):
        if j > 1:
            y[0, j - 1] += x[0, j] ** 2
        for k in range(1, c):
            y[k, j] += x[k, j] * 3
    return y


@layer
def beside(x: real["C W"]) -> tuple[real["C W"], real["W"]]:
    """Something is left even where there are no channels."""
    c, n = x.shape
    y, z = np.zeros((c, n)), np.zeros(n)
    for j in range(n):
        f = np.cos(1.0 * j)
        z[j] = f
        for k in range(c):
            y[k, j] = f * x[k, j]
    return y, z


@layer
def last(x: real["W C"]) -> real["W C"]:
    """Memory lies along the channels."""
    n, c = x.shape
    y = np.zeros((n, c))
    for j in range(n):
        f = 1.0 / (j + 1)
        for k in range(c):
            y[j, k] = f * x[j, k]
        for k in range(c):
            y[j, k] += x[n - 1 - j, k] ** 2
    return y
'''
SHAPES = {
    "resized": ["c h w"],
    "summed": ["c w", "c"],
    "swapped": ["c w"],
    "placed": ["c w", "w"],
    "averaged": ["c w"],
    "last": ["w c"],
    "branched": ["c w"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("outward")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "outward_of", TEXT)


def draw(name: str, c: int, h: int, w: int) -> list[np.ndarray]:
    rng = np.random.default_rng(c + 10 * w)
    found = []
    for position, text in enumerate(SHAPES[name]):
        shape = tuple({"c": c, "h": h, "w": w}[n] for n in text.split())
        values = rng.standard_normal(shape if text == "c" and position else (2, *shape))
        found.append(rng.uniform(0.3, w - 1.3, values.shape) if text == "w" else values)
    return found


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("c", [1, 2, 7])
def test_values_and_gradients(package, name, c):
    for h, w in ((1, 1), (2, 3), (3, 8), (2, 40)):
        if name == "placed" and w < 3:
            continue
        agrees(getattr(package, name), draw(name, c, h, w), np.random.default_rng(w), 1e-10, 2e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [v.astype(np.float32) for v in draw(name, 9, 17, 33)])


@pytest.mark.parametrize("c", [0, 1, 3])
def test_what_is_left_beside_channels(package, c):
    x = np.random.default_rng(0).standard_normal((2, c, 40))
    for got, want in zip(package.beside(x), package.beside.reference(x), strict=True):
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)


@pytest.mark.parametrize(("name", "vectors"), [("resized", 4), ("last", 1)])
def test_what_is_innermost_runs_along_memory(folder, package, name, vectors):
    """In both directions there are loops in vectors that store along the last axis, and none that jumps."""
    for (layer, _), kernel in kernels_in(folder / "outward_of.py").items():
        if layer == name:
            rows = [s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s)]
            stores = [(row.var, s) for row in rows for s in walk(row.body) if isinstance(s, Store) and s.index]
            assert len(stores) >= vectors
            assert not any(var in d.symbols() for var, s in stores for d in s.index[1:-1])
