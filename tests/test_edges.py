"""Windows at the ends of a row: masks touch nothing outside of it, with every set of vectors, and count for nothing."""

from __future__ import annotations

import ctypes
import mmap
import re

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.emit import function
from layerc.transpile.emit_zeros import never_minus_zero
from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import roots, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def filtered(x: real["H W"], weight: Param[real["3 3"]]) -> real["H W"]:
    """Zeros around."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            for a in range(3):
                for b in range(3):
                    if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                        y[i, j] += x[i + a - 1, j + b - 1] * weight[a, b]
    return y


@layer
def spread(x: real["W"], weight: Param[real["3"]]) -> real["W"]:
    """Each element adds to a window, something that is made of it before."""
    w = x.shape[0]
    y = np.zeros(w)
    e = np.zeros(w)
    for j in range(w):
        e[j] = np.exp(x[j])
        for b in range(3):
            if 0 <= j + b - 1 < w:
                y[j + b - 1] += e[j] * weight[b]
    return y


@layer
def kept_zero(x: real["W"], weight: Param[real["3"]]) -> real["W"]:
    """On top of what is there."""
    w = x.shape[0]
    y = x * 1.0
    for j in range(w):
        for b in range(3):
            if 0 <= j + b - 1 < w:
                y[j] += x[j + b - 1] * weight[b]
    return y
'''
VECTORS = ["", "-mno-avx512f", "-mno-avx"]  # 16 lanes, 8, none with masks
WIDTHS = [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 66, 79, 128, 131]


@pytest.fixture(scope="module", params=VECTORS, ids=["widest", "avx2", "no masks"])
def package(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAYERC_CFLAGS", request.param)
        return built_from(tmp_path_factory.mktemp("edges"), "edges_of", TEXT)


def fenced(values: np.ndarray, side: str) -> np.ndarray:
    """The same numbers where memory ends, or begins: whoever touches what is beside them is stopped."""
    page = mmap.PAGESIZE
    room = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for wall in (start, start + page + room):
        assert protect(wall, page, 0) == 0
    at = page if side == "begins" else page + room - values.nbytes
    found = np.frombuffer(memory, values.dtype, values.size, at).reshape(values.shape)
    found[...] = values
    return found


@pytest.mark.parametrize("side", ["begins", "ends"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_outside_is_touched(package, side, dtype):
    rng = np.random.default_rng(3)
    for width in WIDTHS:
        x, weight, dy = (rng.standard_normal(s).astype(dtype) for s in ((1, 4, width), (3, 3), (1, 4, width)))
        layer = package.filtered
        y, pullback = layer.vjp(fenced(x, side), fenced(weight, side), out=fenced(np.zeros_like(x), side))
        want, want_pullback = layer.vjp(x, weight)
        np.testing.assert_array_equal(y, want)
        for got, there in zip(pullback(fenced(dy, side)), want_pullback(dy), strict=True):
            np.testing.assert_array_equal(got, there)


@pytest.mark.parametrize("name", ["filtered", "spread", "kept_zero"])
def test_values_and_gradients(package, name):
    rng = np.random.default_rng(4)
    for width in WIDTHS:
        shapes = {"filtered": ((2, 3, width), (3, 3))}.get(name, ((2, width), (3,)))
        agrees(getattr(package, name), [rng.standard_normal(s) for s in shapes], rng, 1e-10, 2e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_outside_is_not_even_0(package, bad, dtype):
    """A weight that is no number, of a place that is not there; a cotangent, of a place that no weight has."""
    rng = np.random.default_rng(5)
    for width in (1, 2, 5, 16, 33, 65, 130):
        x, weight = rng.standard_normal((1, 3, width)).astype(dtype), rng.standard_normal((3, 3)).astype(dtype)
        dy = rng.standard_normal((1, 3, width)).astype(dtype)
        weight[:, 0], dy[0, :, -1] = bad, bad
        close = {"rtol": 2e-4 if dtype is np.float32 else 1e-11, "atol": 1e-4 if dtype is np.float32 else 1e-11}
        with np.errstate(invalid="ignore"):
            got, pullback = package.filtered.vjp(x, weight)
            np.testing.assert_allclose(got, package.filtered.reference(x, weight), **close)
            dx, dw = pullback(dy)
            want = [np.zeros((3, width)), np.zeros((3, 3))]
            for i, j, a, b in np.ndindex(3, width, 3, 3):
                if 0 <= i + a - 1 < 3 and 0 <= j + b - 1 < width:
                    want[0][i + a - 1, j + b - 1] += float(dy[0, i, j]) * float(weight[a, b])
                    want[1][a, b] += float(dy[0, i, j]) * float(x[0, i + a - 1, j + b - 1])
            np.testing.assert_allclose(dx[0], want[0], **close)
            np.testing.assert_allclose(dw, want[1], **close)


def test_a_zero_keeps_its_sign(package):
    """Where nothing is added, -0 is not 0."""
    x, weight = np.full((1, 40), -0.0), np.array([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(np.signbit(package.kept_zero(x, weight)), True)


def test_ends_of_a_row_are_no_loops_of_their_own(tmp_path):
    """One loop over the whole row has all nine weights."""
    built_from(tmp_path, "edges_alone", TEXT)
    kernels = kernels_in(tmp_path / "edges_alone.py")
    for method, taps in (("predict", 9), ("backward", 18)):
        kernel = kernels["filtered", method]
        loops = [s for s in walk(kernel.body) if isinstance(s, For)]
        rows = [s for s in loops if not any(isinstance(x, For) for x in walk(s.body))]
        assert not any(row.kind == "seq" for row in rows)
        assert max(sum(isinstance(s, Store) and s.op == "add" for s in walk(row.body)) for row in rows) == taps


def test_sums_that_begin_at_0_add_nothing_where_they_have_no_lane(tmp_path):
    """A factor is 0 there. A sum that begins at anything else keeps what it has."""
    built_from(tmp_path, "edges_alone", TEXT)
    kernels = kernels_in(tmp_path / "edges_alone.py")
    for name, chooses in (("filtered", False), ("kept_zero", True)):
        kernel = kernels[name, "predict"]
        text = function(kernel, "f32")
        assert ("lc_eitherf(" in text, "lc_or_zerof(" in text) == (chooses, not chooses)
        assert ("y" in never_minus_zero(kernel, roots(kernel))) != chooses


def test_lanes_of_many_sums_stay_in_registers(tmp_path):
    """As vectors, which a loop over lanes takes and gives back: gcc leaves arrays on the stack beside masked loads."""
    built_from(tmp_path, "edges_alone", TEXT)
    text = function(kernels_in(tmp_path / "edges_alone.py")["filtered", "backward"], "f32")
    assert len(re.findall(r"lc_part_f32 part\w*_lanes", text)) >= 9
    assert not re.findall(r"float part\w*_lanes\[", text)
