"""Pooling as people write it: a largest that is kept as the place where it is, and windows whose columns neighbours
share. Values are NumPy's, NaN and none at all included, whatever is looked up where."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import Check
from layerc.transpile.passes.tree import dim_loads, loads, own_exprs, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def by_place(x: real["C H W"]) -> real["C (H-1)//2+1 (W-1)//2+1"]:
    """Where the largest so far is; a NaN stays if it is in the middle, and is no more than any elsewhere."""
    C, H, W = x.shape
    y = np.zeros((C, (H - 1) // 2 + 1, (W - 1) // 2 + 1))
    for c in range(C):
        for i in range((H - 1) // 2 + 1):
            for j in range((W - 1) // 2 + 1):
                bi = 2 * i
                bj = 2 * j
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        r = 2 * i + di
                        s = 2 * j + dj
                        if r < 0 or r >= H or s < 0 or s >= W:
                            continue
                        if x[c, r, s] > x[c, bi, bj]:
                            bi = r
                            bj = s
                y[c, i, j] = x[c, bi, bj]
    return y


@layer
def of_another(x: real["H W"], w: real["H W"]) -> real["H W"]:
    """What another array has where the least is, and where that is; the last of equal ones."""
    H, W = x.shape
    y = np.zeros((H, W))
    for i in range(H):
        for j in range(W):
            bi, bj = i, j
            for a in range(3):
                for b in range(3):
                    if i + a < H and j + b < W and x[i + a, j + b] <= x[bi, bj]:
                        bi = i + a
                        bj = j + b
            y[i, j] = w[bi, bj] * (1 + bi) + bj
    return y


@layer
def one_at_a_time(x: real["H W"]) -> real["H W"]:
    """Numbers of a place that are not set together."""
    H, W = x.shape
    y = np.zeros((H, W))
    for i in range(H):
        for j in range(W):
            bi, bj = i, j
            for a in range(2):
                if i + a < H and x[i + a, bj] > x[bi, bj]:
                    bi = i + a
            for b in range(3):
                if j + b < W and x[bi, j + b] > x[bi, bj]:
                    bj = j + b
            y[i, j] = x[bi, bj]
    return y


@layer
def from_before(x: real["H W"]) -> real["H W"]:
    """A place in a row that an earlier row has told, and one that may be none."""
    H, W = x.shape
    y = np.zeros((H, W))
    k = 0
    for i in range(H):
        for j in range(W):
            if x[i, j] > x[i, k]:
                k = j
            y[i, j] = x[i, k]
    return y


@layer
def wrapped(x: real["N"]) -> real["N"]:
    """A place from the end."""
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n):
        k = i - n
        for a in range(3):
            if i + a < n and x[i + a] > x[k]:
                k = i + a
        y[i] = x[k]
    return y


@layer
def largest3(x: real["C H W"]) -> real["C H-2 W-2"]:
    """Windows one step apart, without a border."""
    C, H, W = x.shape
    y = np.zeros((C, H - 2, W - 2))
    for c in range(C):
        for i in range(H - 2):
            for j in range(W - 2):
                top = -np.inf
                for a in range(3):
                    for b in range(3):
                        top = np.maximum(top, x[c, i + a, j + b])
                y[c, i, j] = top
    return y


@layer
def least5(x: real["H W"]) -> real["(H+1)//2 (W+2)//3"]:
    """Steps of two and of three, a border, columns first, of something computed, and a sum beside it."""
    H, W = x.shape
    y = np.zeros(((H + 1) // 2, (W + 2) // 3))
    for i in range((H + 1) // 2):
        for j in range((W + 2) // 3):
            low = np.inf
            total = 0.0
            for b in range(-2, 3):
                for a in range(-2, 3):
                    if 0 <= 2 * i + a and 2 * i + a < H and 0 <= 3 * j + b and 3 * j + b < W:
                        low = np.minimum(low, x[2 * i + a, 3 * j + b] * 2 - 0.1 * a)
                        total += x[2 * i + a, 3 * j + b]
            y[i, j] = low + 0.1 * total
    return y


@layer
def least7(x: real["H W"]) -> real["(H+1)//2 (W+2)//3"]:
    """The same alone."""
    H, W = x.shape
    y = np.zeros(((H + 1) // 2, (W + 2) // 3))
    for i in range((H + 1) // 2):
        for j in range((W + 2) // 3):
            low = np.inf
            for b in range(-3, 4):
                for a in range(-2, 3):
                    if 0 <= 2 * i + a and 2 * i + a < H and 0 <= 3 * j + b and 3 * j + b < W:
                        low = np.minimum(low, x[2 * i + a, 3 * j + b] * 2 - 0.1 * a)
            y[i, j] = low
    return y
'''
SHAPES = {
    "by_place": ["c h w"],
    "of_another": ["h w", "h w"],
    "one_at_a_time": ["h w"],
    "from_before": ["h w"],
    "wrapped": ["w"],
    "largest3": ["c h w"],
    "least5": ["h w"],
    "least7": ["h w"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pooled")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "pooled_of", TEXT)


def draw(name: str, h: int, w: int, batch: int) -> list[np.ndarray]:
    """Of few values, some of which are the same, but no two of a window that a difference could swap."""
    rng = np.random.default_rng(h + 10 * w)
    shapes = [(batch, *({"c": 2, "h": h, "w": w}[n] for n in text.split())) for text in SHAPES[name]]
    return [rng.permutation(int(np.prod(s))).reshape(s) / 7 for s in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("h", "w", "batch"), [(3, 3, 1), (4, 5, 2), (5, 18, 1), (3, 40, 17)])
def test_values_and_gradients(package, name, h, w, batch):
    agrees(getattr(package, name), draw(name, h, w, batch), np.random.default_rng(w), 1e-12, 1e-5)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("h", "w"), [(2, 600), (3, 257), (3, 64), (2, 2)])
def test_values_of_long_rows(package, name, h, w):
    values = draw(name, h, w, 1)
    np.testing.assert_array_equal(getattr(package, name)(*values), getattr(package, name).reference(*values))


@pytest.mark.parametrize("name", [n for n in SHAPES if n != "least5"])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_what_is_no_number(package, name, real):
    rng = np.random.default_rng(0)
    layer = getattr(package, name)
    for w in (3, 17, 40):
        values = [v.astype(real) for v in draw(name, 5, w, 2)]
        for value in (np.nan, np.inf, -np.inf):
            values[0][rng.random(values[0].shape) < 0.2] = value
            np.testing.assert_array_equal(layer(*values), layer.reference(*values).astype(real), err_msg=f"{value} {w}")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("h", "w"), [(0, 3), (3, 0), (1, 1), (2, 2)])
def test_none_and_one(package, name, h, w):
    layer, values = getattr(package, name), draw(name, h, w, 2)
    try:
        want = layer.reference(*values)
    except (IndexError, ValueError) as fault:
        with pytest.raises(type(fault)):
            layer(*values)
    else:
        np.testing.assert_array_equal(layer(*values), want)


@pytest.mark.parametrize("name", ["by_place", "of_another", "least7"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [v.astype(np.float32) for v in draw(name, 9, 300, 9)])


def test_a_place_that_is_told_is_not_looked_up(folder, package):
    kernels = kernels_in(folder / "pooled_of.py")
    for name, method in (("by_place", "predict"), ("by_place", "backward"), ("of_another", "predict")):
        body = list(walk(kernels[name, method].body))
        assert not any(isinstance(s, Check) for s in body), (name, method)
        read = [x for s in body for e in own_exprs(s) for x in loads(e) if x.buffer.startswith("x")]
        assert read
        assert not any(any(dim_loads(d)) for x in read for d in x.index), (name, method)
    assert any(isinstance(s, Check) for s in walk(kernels["from_before", "predict"].body))


def test_neighbours_share_columns(folder, package):
    kernels = kernels_in(folder / "pooled_of.py")
    for name in ("by_place", "largest3", "least7"):
        kernel = kernels[name, "predict"]
        assert any(b.name.startswith("column") for b in kernel.buffers), name
