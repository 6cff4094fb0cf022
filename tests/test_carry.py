"""Sums of rows that are carried over many rows, a lane at a time."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits, sized

from layerc.transpile.emit import function
from layerc.transpile.ir import Const, For, If, Int, Load, Op, Stmt, Store
from layerc.transpile.passes.tree import parts, walk

pytestmark = pytest.mark.optimised

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def blur(x: real["C H W"], weight: Param[real["3 3"]]) -> real["C H W"]:
    """One filter for all channels, zeros around."""
    c, h, w = x.shape
    y = np.zeros((c, h, w))
    for k in range(c):
        for i in range(h):
            for j in range(w):
                for a in range(3):
                    for b in range(3):
                        if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                            y[k, i, j] += x[k, i + a - 1, j + b - 1] * weight[a, b]
    return y


@layer
def sharpen(x: real["H W"], weight: Param[real["5"]], gain: Param[real]) -> real["H W-4"]:
    """A window that nothing cuts off, and a number."""
    h, w = x.shape
    y = np.zeros((h, w - 4))
    for i in range(h):
        for j in range(w - 4):
            total = 0.0
            for b in range(5):
                total += x[i, j + b] * weight[b]
            y[i, j] = total * gain
    return y


@layer
def triangle(x: real["N N"], a: Param[real], b: Param[real]) -> real[""]:
    """Rows of all lengths."""
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            s += np.tanh(a * x[i, j] + b)
    return s


@layer
def adaptive(x: real["C H W"], *, parts: int = 3) -> real["C parts parts"]:
    """Means of parts whose ends are quotients."""
    c, h, w = x.shape
    y = np.zeros((c, parts, parts))
    for k in range(c):
        for i in range(parts):
            for j in range(parts):
                i0, i1 = i * h // parts, ((i + 1) * h + parts - 1) // parts
                j0, j1 = j * w // parts, ((j + 1) * w + parts - 1) // parts
                y[k, i, j] = np.mean(x[k, i0:i1, j0:j1])
    return y


@layer
def tap(x: real["C T"], weight: Param[real["C 5"]]) -> real["C T"]:
    """What was before, with weights for each channel: nothing to carry from one to the next."""
    c, t = x.shape
    y = np.zeros((c, t))
    for i in range(c):
        for j in range(t):
            for k in range(5):
                if j - k >= 0:
                    y[i, j] += x[i, j - k] * weight[i, k]
    return y
'''

SHAPES = {
    "blur": ["2 n m", "3 3"],
    "sharpen": ["n m", "5", ""],
    "triangle": ["m m", "", ""],
    "adaptive": ["2 n m"],
    "tap": ["n m", "n 5"],
}
SIZES = [(0, 7), (1, 1), (2, 0), (3, 5), (40, 7), (70, 33), (5, 600), (2, 1024), (1, 1025), (3, 2200)]


def draw(name: str, n: int, m: int, dtype: type, examples: int = 2) -> list[np.ndarray]:
    return sized(SHAPES[name], {"n": n, "m": m}, examples, dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("carry")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "carried_of", TEXT)


@pytest.mark.parametrize("name", ["blur", "sharpen", "tap"])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_values_and_gradients(package, name, n, m):
    """Rows of which many make a block, one is a block, or several blocks are one."""
    if name == "sharpen" and m < 4:
        m += 4
    agrees(getattr(package, name), draw(name, n, m, np.float64), np.random.default_rng(m), 1e-10, 3e-5)


@pytest.mark.parametrize("m", [0, 1, 2, 9, 70])
def test_rows_of_all_lengths(package, m):
    agrees(package.triangle, draw("triangle", 0, m, np.float64), np.random.default_rng(m), 1e-10, 3e-5, exact=False)


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_ends_that_are_quotients(package, parts):
    for n, m in ((3, 4), (7, 9), (40, 1100)):
        (x,) = draw("adaptive", n, m, np.float64)
        got, pullback = package.adaptive.vjp(x, parts=parts)
        np.testing.assert_allclose(got, package.adaptive.reference(x, parts=parts), 1e-12)
        way, dy = np.random.default_rng(n).standard_normal(x.shape), np.ones_like(got)
        want = np.sum(dy * package.adaptive.reference(way, parts=parts))  # it is linear
        np.testing.assert_allclose(np.sum(pullback(dy)[0] * way), want, 1e-9, 1e-9)


@pytest.mark.parametrize("name", ["blur", "sharpen", "tap"])
@pytest.mark.parametrize(("n", "m"), [(33, 40), (3, 2200)])
@pytest.mark.parametrize("examples", [1, 3])
def test_bits_do_not_hang_on_threads(package, name, n, m, examples):
    same_bits(getattr(package, name), draw(name, n, m, np.float32, examples))


@pytest.mark.parametrize(("n", "m"), [(600, 30), (30, 600), (2, 9000)])
def test_sums_are_as_exact_as_those_of_numpy(package, n, m):
    """Of numbers of one sign, whose sum grows."""
    rng = np.random.default_rng(n)
    x, dy = (rng.uniform(0.5, 1.0, (1, 1, n, m)).astype(np.float32) for _ in range(2))
    weight = np.ones((3, 3), np.float32)
    got = package.blur.vjp(x, weight)[1](dy)[1]
    want = package.blur.vjp(x.astype(float), weight.astype(float))[1](dy.astype(float))[1]
    np.testing.assert_allclose(got, want, 1.5e-7, 0)


def test_lanes_are_joined_once_for_many_rows(package, folder):
    """Not at the end of each row; and a layer whose weights change with the row has nothing to carry."""
    kernels = kernels_in(folder / "carried_of.py")
    kernel = kernels["blur", "backward"]
    lanes = {b.name for b in kernel.buffers if b.lanes}
    assert len(lanes) >= 9
    rows = [s for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("i_step")]
    assert rows
    for row in rows:
        assert not reading(row.body, lanes), "joined in a row that is no longer than a block"
    assert not any(b.lanes for b in kernels["tap", "backward"].buffers)
    text = function(kernel, "f32")
    begun = [found.start() for found in re.finditer(r"lc_part_f32 \w+_lanes;", text)]
    assert len(begun) == len(lanes)
    assert min(begun) < text.index("for (int64_t i_step")


def reading(body: tuple[Stmt, ...], names: set[str]) -> list[Store]:
    """What reads them, but for what only a row of several blocks does."""
    found: list[Store] = []
    for stmt in body:
        match stmt:
            case Store(value=value):
                found += [stmt] if any(isinstance(p, Load) and p.buffer in names for p in parts(value)) else []
            case For(body=inner):
                found += reading(inner, names)
            case If(Op("less", (Const(0), Int(block)))) if str(block).split("_")[0] == "p":
                continue
            case If(_, then, orelse):
                found += reading(then, names) + reading(orelse, names)
    return found
