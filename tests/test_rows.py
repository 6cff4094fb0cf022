"""Rows of a few elements are copied, added, compared through masks: all lengths, both types, no element more."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from nets import built_from

pytestmark = pytest.mark.optimised

SOURCE = '''
import numpy as np
from layerc import layer, real


@layer
def windows(x: real["H W"], size: int):
    """Each row's neighbours: what a convolution multiplies with."""
    rows, columns = x.shape[0], x.shape[1] - size + 1
    y = np.empty((size, rows, columns))
    for a in range(size):
        for i in range(rows):
            for j in range(columns):
                y[a, i, j] = x[i, j + a]
    return y


@layer
def middle(x: real["H W"], y: real["H V"]):
    """y with x in it, one element from its left."""
    z = y.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j + 1] = x[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j + 1] += x[i, j]
    return z


@layer
def sums(x: real["N"], least: real) -> tuple[real, real, real]:
    """Of a row from its second element on."""
    total, top, low = 0.0, -np.inf, np.inf
    for i in range(1, x.shape[0]):
        total += x[i]
    for i in range(1, x.shape[0]):
        top = max(top, x[i])
    return total, np.maximum(top, least), np.min(x[1:])


@layer
def farthest(x: real["N"], least: real) -> real:
    """From zero, from the second element on: of none it is what it began with, which may be less than zero."""
    far = -np.inf
    for i in range(1, x.shape[0]):
        far = max(far, abs(x[i]))
    return np.maximum(far, least)


@layer
def quarters(x: real["H W"]) -> real["2 2"]:
    """The largest of each."""
    H, W = x.shape
    y = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            y[i, j] = np.max(x[i * H // 2 : (i + 1) * H // 2, j * W // 2 : (j + 1) * W // 2])
    return y


@layer
def box(x: real["H W"]) -> real:
    """The least of what is not at the ends of rows."""
    return np.min(x[:, 1:-1])


@layer
def bottom(x: real["H W"]) -> real:
    """The largest of rows that go on in memory."""
    return np.max(x[1:])


@layer
def farthest_of_all(x: real["H W"]) -> real:
    far = -np.inf
    for i in range(x.shape[0]):
        for j in range(2, x.shape[1]):
            far = max(far, abs(x[i, j]))
    return far


@layer
def seconds(x: real["H N"]) -> tuple[real["H (N+1)//2"], real["H N//2"]]:
    """Every second element, from the first and from the second on."""
    H, N = x.shape
    even, odd = np.empty((H, (N + 1) // 2)), np.empty((H, N // 2))
    for i in range(H):
        for k in range((N + 1) // 2):
            even[i, k] = x[i, 2 * k]
    for i in range(H):
        for k in range(N // 2):
            odd[i, k] = x[i, 2 * k + 1]
    return even, odd


@layer
def top_kept(x: real["N"], start: real) -> real:
    """The largest that a branch keeps, from the second element on."""
    top = start
    for i in range(1, x.shape[0]):
        if x[i] > top:
            top = x[i]
    return top


@layer
def low_kept(x: real["N"], start: real) -> real:
    low = start
    for i in range(1, x.shape[0]):
        if x[i] < low:
            low = x[i]
    return low


@layer
def softmax(x: real["K"]) -> real["K"]:
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@layer
def chosen(x: real["N"], low: real, high: real) -> tuple[real["N"], real["N"], real["N"]]:
    """What is taken or 0: choices within choices, of what is no number, and a zero with a sign."""
    inner = np.where(x > low, np.where(x > high, 0, np.log(x)), 0)
    return inner, np.where(x > low, x, -0.0), np.where(x > low, 0, np.where(x > high, x, x * 2))
'''


@pytest.fixture(
    scope="module", params=["cc", "cc -mno-avx512f", "cc -mno-avx2"], ids=["this processor", "AVX2", "neither"]
)
def built(request, tmp_path_factory):
    if "avx" in request.param and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("only x86 has masks to do without")
    folder, name = tmp_path_factory.mktemp("rows"), f"rows_{request.param_index}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", request.param)
        return built_from(folder, name, SOURCE), (folder / f"{name}_compiled" / f"{name}.c").read_text()


def test_the_loops_are_rows(built):
    _, text = built
    for verb in (
        f"{verb}_{real}(" for verb in ("lc_copy", "lc_add", "lc_largest", "lc_farthest") for real in ("f32", "f64")
    ):
        assert verb in text, verb  # a call: the definition is that of a template


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_every_length(built, real):
    layers, _ = built
    rng = np.random.default_rng(0)
    for columns in range(41):
        x = rng.standard_normal((3, columns + 2)).astype(real)
        want = np.stack([x[:, a : a + columns] for a in range(3)])
        y, pullback = layers.windows.vjp(x, size=3)
        np.testing.assert_array_equal(y, want)
        dy = rng.standard_normal(y.shape).astype(real)
        dx = np.zeros_like(x)
        for a in range(3):
            dx[:, a : a + columns] += dy[a]
        np.testing.assert_allclose(pullback(dy)[0], dx, rtol=1e-6)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_nothing_else_is_touched(built, real):
    layers, _ = built
    for columns in range(41):
        x, y = np.full((4, columns), 2, real), np.full((4, columns + 2), 7, real)
        z = layers.middle(x, y)
        np.testing.assert_array_equal(z[:, 1:-1], 4)
        np.testing.assert_array_equal(z[:, [0, -1]], 7)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_sums_of_every_length(built, real):
    layers, _ = built
    rng = np.random.default_rng(0)
    for length in [*range(1, 70), 127, 128, 129, 1023, 1024, 1025, 5000]:
        x = rng.standard_normal(length + 1).astype(real)
        x[0] = np.nan  # before the row
        total, top, low = layers.sums(x, real(-100))
        np.testing.assert_allclose(total, np.sum(x[1:], dtype=float), rtol=20 * np.finfo(real).eps, atol=1e-6)
        assert (top, low) == (np.max(x[1:]), np.min(x[1:]))
        for value in (np.nan, np.inf, -np.inf):
            y = x.copy()
            y[1 + length // 2] = value
            with np.errstate(invalid="ignore"):
                found, want = layers.sums(y, real(-100)), (np.sum(y[1:]), np.max(y[1:]), np.min(y[1:]))
            np.testing.assert_array_equal(found[1:], np.maximum(want[1:], [-100, -np.inf]))
            assert np.isnan(found[0]) == np.isnan(want[0])


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_what_is_kept_of_every_length(built, real):
    """NaN is left out, wherever in a vector; the derivative goes to the first of equal ones, behind the last whole
    vector, too, or to what was there before."""
    layers, text = built
    for verb in ("lc_largest_number", "lc_least_number", "lc_first"):
        assert all(f"{verb}_{t}(" in text for t in ("f32", "f64")), verb
    rng = np.random.default_rng(0)
    for length in [*range(70), 127, 128, 129, 1025]:
        x = np.append(1e9, rng.integers(-3, 4, length)).astype(real)  # one farther before the row
        x[1:][rng.random(length) < 0.2] = np.nan
        given = np.append(real(-1), x[1:][~np.isnan(x[1:])])
        for layer, best in ((layers.top_kept, given.max()), (layers.low_kept, given.min())):
            y, pullback = layer.vjp(x, real(-1))
            d_x, d_start = pullback(np.asarray(1, real))
            want = np.zeros(length + 1, real)
            if best != -1:
                want[1 + np.flatnonzero(x[1:] == best)[0]] = 1
            assert (y, d_start) == (best, best == -1)
            np.testing.assert_array_equal(d_x, want)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_farthest_of_every_length(built, real):
    layers, _ = built
    rng = np.random.default_rng(0)
    for length in [*range(70), 127, 128, 129, 1023, 1024, 1025, 5000]:
        x = np.append(-1e9, rng.standard_normal(length)).astype(real)  # one farther before the row
        for value in (0, np.nan, np.inf, -np.inf, -50):
            y, least = np.tile(x, (5, 1)), np.full(5, -2, real)  # so many examples have loops of their own
            if length:
                y[:, 1 + rng.integers(length)] = value
            want = np.max(np.abs(y[:, 1:]), axis=1, initial=-2)
            np.testing.assert_array_equal(layers.farthest(y, least), want)
            np.testing.assert_array_equal(layers.farthest(y[0], least[0]), want[0])


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_softmax_of_every_length(built, real):
    layers, _ = built
    rng = np.random.default_rng(0)
    for length in [*range(1, 40), 64, 100, 1030]:
        x, dy = rng.standard_normal((2, 5, length)).astype(real)
        e = np.exp(x - np.max(x, axis=1, keepdims=True), dtype=float)
        want = e / np.sum(e, axis=1, keepdims=True)
        y, pullback = layers.softmax.vjp(x)
        np.testing.assert_allclose(y, want, rtol=10 * np.finfo(real).eps)
        dx = want * (dy - np.sum(dy * want, axis=1, keepdims=True))
        np.testing.assert_allclose(
            pullback(dy)[0], dx, rtol=1e-5 if real == np.float32 else 1e-13, atol=np.finfo(real).eps
        )


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_what_is_taken_or_0(built, real):
    layers, text = built
    assert "lc_or_zero" in text
    for length in (1, 7, 16, 33, 100):
        x = np.resize([-1, 0, 0.5, 2, np.inf, -np.inf, np.nan, -0.0], length).astype(real)
        low, high = real(0), real(1)
        with np.errstate(all="ignore"):
            want = (
                np.where(x > low, np.where(x > high, 0, np.log(x)), 0),
                np.where(x > low, x, -0.0),
                np.where(x > low, 0, np.where(x > high, x, x * 2)),
            )
        for one, right in zip(layers.chosen(x, low, high), want, strict=True):
            np.testing.assert_array_equal(one, right.astype(real))
            np.testing.assert_array_equal(np.signbit(one[one == 0]), np.signbit(right[right == 0]))


BOXES = [(h, w) for h in (2, 3, 6) for w in (3, 4, 6, 9, 10, 16, 17, 18, 19, 24, 31, 33, 34, 35, 40, 66)]


def parted(size):
    """What quarters are of: two and two slices."""
    return [[slice(i * n // 2, (i + 1) * n // 2) for i in range(2)] for n in size]


def shares(x, best, dy):
    """What comes back through a largest of x: the same for each that is as large."""
    return dy * (x == best) / np.sum(x == best)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_rectangles_of_every_size(built, real):
    layers, text = built
    rng = np.random.default_rng(0)
    for size in BOXES:
        x = rng.integers(-9, 9, size).astype(real)  # some are the same
        x[:, [0, -1]] *= 10  # the farthest, which `box` leaves out
        y, pullback = layers.quarters.vjp(x)
        dy, dx = rng.standard_normal((2, 2)).astype(real), np.zeros_like(x)
        rows, columns = parted(size)
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                part = x[row, column]
                assert y[i, j] == part.max(), size
                dx[row, column] += shares(part, y[i, j], dy[i, j])
        np.testing.assert_allclose(pullback(dy)[0], dx, rtol=1e-6, err_msg=str(size))
        inner = x[:, 1:-1]
        for name, part in (("box", inner), ("bottom", x[1:])):
            y, pullback = getattr(layers, name).vjp(x)
            assert y == (part.min() if name == "box" else part.max())
            dx = np.zeros_like(x)
            dx[(slice(None), slice(1, -1)) if name == "box" else slice(1, None)] = shares(part, y, 2)
            np.testing.assert_allclose(pullback(real(2))[0], dx, rtol=1e-6, err_msg=f"{name} {size}")
        assert layers.farthest_of_all(x) == np.abs(x[:, 2:]).max()
    for verb in ("largest", "least", "farthest", "equal", "give"):
        for kind in ("f32", "f64"):
            assert f"lc_{verb}_in_{kind}(" in text, verb


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_rectangles_of_what_is_no_number(built, real):
    layers, _ = built
    for rows, columns in BOXES:
        for at in range(columns):
            x = np.zeros((rows, columns), real)
            x[at % rows, at] = np.nan
            assert np.isnan(layers.box(x)) == (0 < at < columns - 1), (rows, columns, at)
            np.testing.assert_array_equal(layers.bottom(x), np.max(x[1:]))
            assert np.sum(np.isnan(layers.quarters(x))) == 1
    x = np.full((3, 19), -np.inf, real)
    np.testing.assert_array_equal(layers.quarters(x), -np.inf)
    with pytest.raises(ValueError, match="empty|zero-size"):
        layers.quarters(np.zeros((1, 2), real))
    with pytest.raises(ValueError, match="empty|zero-size"):
        layers.box(np.zeros((3, 2), real))


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_every_second_of_every_length(built, real):
    layers, text = built
    for columns in range(70):
        x = np.arange(3.0 * columns, dtype=real).reshape(3, columns)
        even, odd = layers.seconds(x)
        np.testing.assert_array_equal(even, x[:, ::2])
        np.testing.assert_array_equal(odd, x[:, 1::2])
    assert "lc_even_f32(" in text
    assert "lc_even_f64(" in text
