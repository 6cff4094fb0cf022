"""Convolutions as NumPy writes them, a product for each place of the window: its depth are the channels."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import Product
from layerc.transpile.passes.tree import walk

pytestmark = [pytest.mark.optimised, pytest.mark.heavy]

TEXT = """
import numpy as np
from layerc import Param, layer, real


@layer
def by_einsum(x: real["C H W"], w: Param[real["D C K K"]], padding: int = 1) -> real["D _ _"]:
    k = w.shape[2]
    p = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    h, wd = p.shape[1] - k + 1, p.shape[2] - k + 1
    y = np.zeros((w.shape[0], h, wd))
    for i in range(k):
        for j in range(k):
            y += np.einsum("dc,chw->dhw", w[:, :, i, j], p[:, i : i + h, j : j + wd])
    return y


@layer
def by_tensordot(x: real["C H W"], w: Param[real["D C K K"]], stride: int = 2) -> real["D _ _"]:
    k = w.shape[2]
    h, wd = (x.shape[1] - k) // stride + 1, (x.shape[2] - k) // stride + 1
    y = np.zeros((w.shape[0], h, wd))
    for i in range(k):
        for j in range(k):
            y += np.tensordot(w[:, :, i, j], x[:, i : i + stride * h : stride, j : j + stride * wd : stride], axes=1)
    return y


@layer
def over_time(x: real["T C"], w: Param[real["K C D"]], dilation: int = 2) -> real["T D"]:
    t = x.shape[0]
    y = np.zeros((t, w.shape[2]))
    for j in range(w.shape[0]):
        o = min(j * dilation, t)
        y[o:] += x[: t - o] @ w[j]
    return y
"""
CASES = {
    "by_einsum": [([(2, 3, 7, 9), (4, 3, k, k)], {"padding": p}) for k in (1, 3) for p in (0, 1, 2)],
    "by_tensordot": [([(2, 3, 9, 11), (4, 3, k, k)], {"stride": s}) for k in (1, 3) for s in (1, 2, 3)],
    "over_time": [([(2, t, 3), (3, 3, 4)], {"dilation": d}) for t in (1, 5, 20) for d in (1, 3)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("convolutions")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "convolutions_of", TEXT)


@pytest.mark.parametrize("name", CASES)
def test_is_as_numpy(package, name):
    for shapes, options in CASES[name]:
        for dtype, tight, close in ((np.float64, 1e-11, 1e-6), (np.float32, 2e-5, 2e-3)):
            rng = np.random.default_rng(0)
            values = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
            agrees(getattr(package, name), values, rng, tight, close, exact=False, **options)


def test_channels_are_the_depth(folder, package):
    """Not the places of the window, which are few: forward over C, the gradient of x over D."""
    depths = {
        (layer, method): {str(s.depth[1]) for s in walk(kernel.body) if isinstance(s, Product)}
        for (layer, method), kernel in kernels_in(folder / "convolutions_of.py").items()
    }
    for name in ("by_einsum", "by_tensordot"):
        assert depths[name, "predict"] == {"C"}
        assert "D" in depths[name, "backward"]
        assert "K" not in depths[name, "backward"]
