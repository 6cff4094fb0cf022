"""Windows that go along a row by steps of two and more: even and odd places are rows of their own, side by side."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits, sized

from layerc.transpile.ir import For, If, Op, Store
from layerc.transpile.passes.tree import in_vectors, own_exprs, parts, walk

pytestmark = pytest.mark.optimised  # vectors are what it is about

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def largest(x: real["H W"]):
    """Windows of three by three share a row and a column."""
    h, w = x.shape
    y = np.zeros(((h - 3) // 2 + 1, (w - 3) // 2 + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = np.max(x[2 * i : 2 * i + 3, 2 * j : 2 * j + 3])
    return y


@layer
def blurred(x: real["H W"], f: Param[real["3"]]):
    """Weights of which there is one for each row, and for each column."""
    h, w = x.shape
    y = np.zeros(((h - 3) // 2 + 1, (w - 3) // 2 + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for a in range(3):
                for b in range(3):
                    y[i, j] += x[2 * i + a, 2 * j + b] * f[a] * f[b]
    return y


@layer
def strided(x: real["T"], w: Param[real["5"]]):
    """Five of each three."""
    y = np.zeros((x.shape[0] - 5) // 3 + 1)
    for t in range(y.shape[0]):
        for k in range(5):
            y[t] += w[k] * x[3 * t + k]
    return y


@layer
def upsampled(x: real["H W"], w: Param[real["4 4"]]):
    """A transposed convolution: each element adds to a window."""
    h, n = x.shape
    y = np.ones((2 * h + 2, 2 * n + 2))
    for i in range(h):
        for j in range(n):
            for a in range(4):
                for b in range(4):
                    y[2 * i + a, 2 * j + b] += x[i, j] * w[a, b]
    return y


@layer
def apart(x: real["T"], w: Param[real["3"]]) -> real["T"]:
    """Windows of every fourth place: some are in none."""
    y = x * x
    for t in range((x.shape[0] - 9) // 4):
        for k in range(3):
            y[4 * t + 2 * k + 5] += w[k] * x[t]
    return y


@layer
def mixed(x: real["T"], w: Param[real["3"]]) -> real["T"]:
    """One goes by twos what another goes by threes: they meet."""
    y = x * x
    for t in range(x.shape[0] // 3):
        for k in range(2):
            y[2 * t + k] += w[k] * x[t]
        y[3 * t] += w[2] * x[3 * t + 2]
    return y


@layer
def lowest(x: real["T"]) -> real["T"]:
    """What is not added, but the least of it."""
    y = x + 3
    for t in range((x.shape[0] - 3) // 2):
        for k in range(3):
            y[2 * t + k] = min(y[2 * t + k], x[t] - x[t + 1])
    return y


@layer
def told(x: real["T"], w: Param[real["3"]], *, step: int = 2) -> real["T"]:
    """How far windows are apart is told by the call."""
    y = np.zeros_like(x)
    for t in range((x.shape[0] - 3) // 4):
        for k in range(3):
            y[step * t + k] += w[k] * x[t]
    return y


@layer
def softest(x: real["H W"]):
    """Windows of two by two that share nothing, and exponentials."""
    h, w = x.shape
    y = np.zeros((h // 2, w // 2))
    for i in range(h // 2):
        for j in range(w // 2):
            e = np.exp(x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])
            y[i, j] = np.sum(e * x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]) / np.sum(e)
    return y


@layer
def overlapping(x: real["H W"]):
    """... by three that share a row and a column: what divides is used several times."""
    h, w = x.shape
    y = np.zeros(((h - 3) // 2 + 1, (w - 3) // 2 + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            e = np.exp(x[2 * i : 2 * i + 3, 2 * j : 2 * j + 3])
            y[i, j] = np.sum(e * x[2 * i : 2 * i + 3, 2 * j : 2 * j + 3]) / np.sum(e)
    return y


@layer
def every_third(x: real["T"]) -> real["T"]:
    """What is between stays as it is."""
    y = x * x
    for t in range(x.shape[0] // 3):
        y[3 * t + 1] = np.exp(np.tanh(x[3 * t])) * np.log1p(np.exp(x[3 * t + 2])) + np.tanh(x[3 * t + 1])
    return y
'''

SHAPES = {
    "largest": ["n m"],
    "blurred": ["n m", "3"],
    "strided": ["m", "5"],
    "upsampled": ["n m", "4 4"],
    "apart": ["m", "3"],
    "mixed": ["m", "3"],
    "lowest": ["m"],
    "told": ["m", "3"],
    "softest": ["n m"],
    "overlapping": ["n m"],
    "every_third": ["m"],
}
LEAST = {
    "largest": 3,
    "overlapping": 3,
    "blurred": 3,
    "strided": 5,
    "apart": 9,
    "lowest": 3,
    "told": 3,
}  # elements of a row


def draw(name: str, examples: int, n: int, m: int, dtype: type) -> list[np.ndarray]:
    return sized(SHAPES[name], {"n": n, "m": m}, examples, dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("steps")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "steps_of", TEXT)


@pytest.fixture(scope="module")
def kernels(package, folder):
    return kernels_in(folder / "steps_of.py")


WIDTHS = [0, 1, 3, 5, 8, 13, 18, 66, 131, 134]


@pytest.mark.parametrize(("name", "m"), [(name, m) for name in SHAPES for m in WIDTHS if m >= LEAST.get(name, 0)])
def test_values_and_gradients(package, name, m):
    """Every width beside a vector, and beside a strip of 64."""
    for n in (3, 6) if m < 20 else (3,):
        values = draw(name, 2, n, m, np.float64)
        agrees(getattr(package, name), values, np.random.default_rng(m), 1e-10, 2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [3, 8, 33, 140])
def test_ties_share_evenly(package, m, dtype):
    """Of few different numbers, each window has several that are the largest."""
    x = np.random.default_rng(m).integers(0, 2, (2, 7, m)).astype(dtype)
    y, pullback = package.largest.vjp(x)
    dy = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    want = np.zeros_like(x)
    for b, i, j in np.ndindex(y.shape):
        part = x[b, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        held = part == part.max()
        want[b, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += held * (dy[b, i, j] / held.sum())
    np.testing.assert_allclose(pullback(dy)[0], want, 4 * np.finfo(dtype).eps, 4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3, 41, 151, np.float32))


@pytest.mark.parametrize("step", [0, 1, 2, 3, 4])
def test_a_step_of_the_call(package, step):
    x, w = draw("told", 3, 1, 90, np.float64)
    np.testing.assert_allclose(package.told(x, w, step=step), package.told.reference(x, w, step=step), 1e-12, 1e-12)


def rows(kernel) -> list[For]:
    return [s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s)]


@pytest.mark.parametrize(
    ("name", "method", "windows"),
    [
        ("largest", "backward", 9),
        ("blurred", "backward_inputs", 9),
        ("strided", "backward_inputs", 5),
        ("upsampled", "predict", 16),
    ],
)
def test_one_loop_has_all_windows_and_no_branch(kernels, name, method, windows):
    """Nothing but that lets gcc take even and odd places from vectors, and lay them together again."""
    kernel = kernels[name, method]
    sums = [
        sum(isinstance(s, Store) and s.op == "add" for s in row.body)
        for row in rows(kernel)
        if not any(isinstance(s, If) for s in row.body)
    ]
    assert max(sums) >= windows - 1


@pytest.mark.parametrize("m", [41, 44, 47, 54, 58])
def test_parts_of_vectors(package, m):
    """What whole vectors leave is picked from the row, and laid back into it; float32 has other vectors."""
    for name in ("softest", "every_third"):
        (x,) = draw(name, 2, 4, m, np.float32)
        y, pullback = getattr(package, name).vjp(x)
        np.testing.assert_allclose(y, getattr(package, name).reference(x.astype(float)), 1e-6, 1e-6)
        wide, pull = getattr(package, name).vjp(x.astype(float))
        np.testing.assert_allclose(pullback(np.ones_like(y))[0], pull(np.ones_like(wide))[0], 2e-6, 2e-6)


def test_what_a_window_makes_has_a_variable_for_each_place(kernels):
    """gcc has no vectors for an array of an iteration."""
    kernel = kernels["softest", "backward"]
    assert not [b.name for b in kernel.buffers if b.kind == "temp" and b.shape and not b.alias]


def test_how_many_share_is_counted_in_numbers_of_vectors(kernels):
    """... and divides once, not once for each place of a window."""
    kernel = kernels["largest", "backward"]
    assert not [b.name for b in kernel.buffers if b.dtype == "i64"]
    exprs = [p for s in walk(kernel.body) for e in own_exprs(s) for p in parts(e)]
    assert sum(isinstance(p, Op) and p.op == "divide" for p in exprs) == 1
