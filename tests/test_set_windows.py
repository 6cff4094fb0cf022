"""Windows whose width, distance and border the configuration says: in vectors, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, If
from layerc.transpile.passes.tree import walk
from layerc.transpile.passes.windows import ADDED

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def mean_inside(x: real["C H W"], *, k: int = 3, s: int = 2, p: int = 1) -> real["C (H+2*p-k)//s+1 (W+2*p-k)//s+1"]:
    """The mean of what of a window lies in the image."""
    c, h, w = x.shape
    y = np.empty((c, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1))
    for n in range(c):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                top, left = max(i * s - p, 0), max(j * s - p, 0)
                bottom, right = min(i * s - p + k, h), min(j * s - p + k, w)
                y[n, i, j] = np.mean(x[n, top:bottom, left:right])
    return y


@layer
def mean_of(x: real["H W"], *, k: int = 3, s: int = 2) -> real["(H-k)//s+1 (W-k)//s+1"]:
    h, w = x.shape
    y = np.empty(((h - k) // s + 1, (w - k) // s + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = np.mean(x[i * s : i * s + k, j * s : j * s + k])
    return y


@layer
def power_of(x: real["H W"], *, k: int = 3, s: int = 2, p: int = 1) -> real["(H+2*p-k)//s+1 (W+2*p-k)//s+1"]:
    """The border in a condition."""
    h, w = x.shape
    y = np.zeros(((h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            total = 0.1
            for a in range(k):
                for b in range(k):
                    r, q = i * s + a - p, j * s + b - p
                    if 0 <= r < h and 0 <= q < w:
                        total += x[r, q] ** 2
            y[i, j] = np.sqrt(total)
    return y


@layer
def largest_of(x: real["H W"], *, k: int = 3, s: int = 2, p: int = 1) -> real["(H+2*p-k)//s+1 (W+2*p-k)//s+1"]:
    h, w = x.shape
    y = np.full(((h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1), -np.inf)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(max(0, i * s - p), min(h, i * s - p + k)):
                for b in range(max(0, j * s - p), min(w, j * s - p + k)):
                    y[i, j] = max(y[i, j], x[a, b])
    return y


@layer
def trailing(x: real["T"], *, k: int = 3, s: int = 2) -> real["T//s"]:
    """Of one axis: what was, up to every s-th place."""
    y = np.zeros(x.shape[0] // s)
    for t in range(y.shape[0]):
        y[t] = np.sum(np.exp(x[max(0, t * s - k + 1) : t * s + 1]))
    return y
'''
SIZES = {"mean_inside": (2, 23, 41), "trailing": (67,)}
SETTINGS = [(3, 2, 1), (3, 1, 1), (2, 2, 0), (1, 3, 0), (5, 2, 2), (4, 5, 1), (7, 1, 3), (20, 3, 4)]


def settings(name: str, k: int, s: int, p: int) -> dict[str, int]:
    return {"k": k, "s": s} if name in ("mean_of", "trailing") else {"k": k, "s": s, "p": p}


def draw(name: str, batch: int, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, *SIZES.get(name, (23, 41)))).astype(dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("set_windows")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "set_windows_of", TEXT)


NAMES = ["mean_inside", "mean_of", "power_of", "largest_of", "trailing"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("batch", [1, 5])
def test_values_and_gradients(package, name, setting, batch):
    options = settings(name, *setting)
    agrees(getattr(package, name), [draw(name, batch)], np.random.default_rng(1), 1e-10, 2e-5, **options)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [draw(name, 20, np.float32)])


@pytest.mark.parametrize(("k", "s", "p"), [(2, 1, -1), (3, 2, -2), (40, 1, 20)])
def test_borders_that_cut_off_more_or_less(package, k, s, p):
    for name in ("power_of", "largest_of"):
        layer, x = getattr(package, name), draw(name, 3)
        np.testing.assert_allclose(layer(x, k=k, s=s, p=p), layer.reference(x, k=k, s=s, p=p), 1e-12)


def test_a_window_without_end_takes_no_time(package):
    """As long as the row at most, whatever the configuration says."""
    x = draw("trailing", 2)
    y, pullback = package.trailing.vjp(x, k=2**40, s=1)
    np.testing.assert_allclose(y, np.cumsum(np.exp(x), axis=1), 1e-12)
    (d_x,) = pullback(np.ones_like(y))
    np.testing.assert_allclose(d_x, np.exp(x) * np.arange(67, 0, -1), 1e-12)


def test_large_windows_are_added_up_in_blocks(package):
    x = np.random.default_rng(0).uniform(0, 1, (1, 300, 310)).astype(np.float32)
    for k in (15, 17, 33, 280):
        y, wide = package.mean_of(x, k=k, s=7), package.mean_of(x.astype(float), k=k, s=7)
        assert np.max(np.abs(y - wide)) < 6e-7, k


@pytest.mark.parametrize("name", ["mean_inside", "mean_of", "power_of"])
def test_windows_are_outside_of_the_row(folder, package, name):
    kernel = kernels_in(folder / "set_windows_of.py")[name, "predict"]
    asked = [s for s in walk(kernel.body) if isinstance(s, If) and str(ADDED) in str(s.cond)]
    assert asked
    rows = [s for s in walk(kernel.body) if isinstance(s, For) and "row" in str(s.body)]
    assert rows
