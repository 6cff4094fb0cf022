"""Loops that change places so that the inner one runs along memory: warps, look-ups for all channels, scatters."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, in_caches, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

SOURCE = '''
import numpy as np
from layerc import i64, layer, real


@layer
def pixels(x: real["C H W"], row: i64["N"], column: i64["N"]):
    """Nothing but places: what is asked of them hangs on no channel."""
    y = np.empty((x.shape[0], row.shape[0]))
    for n in range(row.shape[0]):
        for c in range(x.shape[0]):
            y[c, n] = x[c, row[n], column[n]] * 0.5
    return y


@layer
def warped(image: real["C W"], flow: real["W"]):
    """Linear interpolation: the weights and places of a column are those of all channels."""
    y = np.empty_like(image)
    for j in range(image.shape[1]):
        at = min(max(j + flow[j], 0.0), image.shape[1] - 1.0)
        left = int(np.floor(at))
        right, part = min(left + 1, image.shape[1] - 1), at - left
        for c in range(image.shape[0]):
            y[c, j] = (1 - part) * image[c, left] + part * image[c, right]
    return y


@layer
def looked_up(x: real["C H W"], rows: i64["N"], columns: i64["N"], scale: real["N"]):
    """Two places of an array, asked for by each of C channels, out of range or not."""
    y = np.zeros((x.shape[0], rows.shape[0]))
    for n in range(rows.shape[0]):
        factor = np.exp(scale[n])
        for c in range(x.shape[0]):
            y[c, n] = factor * x[c, rows[n], columns[n]] * x[c, 0, columns[n]]
    return y


@layer
def scattered(v: real["C N"], at: i64["N"], size: int = 5):
    """Several columns go to one place, in their order."""
    y = np.zeros((v.shape[0], size))
    for n in range(v.shape[1]):
        weight = 1.0 / (1 + n)
        for c in range(v.shape[0]):
            y[c, at[n]] += weight * v[c, n]
    return y


@layer
def summed(x: real["C N"], w: real["N"]):
    """What an iteration carries from channel to channel, and what it does with it afterwards."""
    y = np.empty_like(w)
    for n in range(w.shape[0]):
        total, largest, last = 0.0, -1e30, w[n]
        for c in range(x.shape[0]):
            last = np.tanh(last + x[c, n])
            total += last * w[n]
            largest = max(largest, x[c, n])
        y[n] = total + 0.5 * largest * last
    return y


@layer
def wandering(x: real["C H W"], rows: i64["N"]):
    """Places that move on from channel to channel are not those that the column began with."""
    y = np.empty((x.shape[0], rows.shape[0]))
    for n in range(rows.shape[0]):
        row, column = rows[n], n % x.shape[2]
        for c in range(x.shape[0]):
            y[c, n] = x[c, row, column] * x[c, 0, column]
            column = min(column + 1, x.shape[2] - 1)
    return y


@layer
def mixed(x: real["C N"], w: real["N"]):
    """A sum over all: in another order it would be another one."""
    y, s = np.empty_like(x), 0.0
    for n in range(w.shape[0]):
        part = np.tanh(w[n])
        for c in range(x.shape[0]):
            y[c, n] = part * x[c, n]
            s += y[c, n]
    return y * s
'''
CHANNELS = (0, 1, 3, 16)
WIDTHS = (0, 1, 63, 64, 65, 200)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("interchange") / "interchanged.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def package(file):
    return built_from(file.parent, "interchanged", SOURCE)


def draw(name, channels, width, rng):
    at = rng.integers(-5, 5, width)
    match name:
        case "warped":
            return [rng.standard_normal((channels, width)), 3 * rng.standard_normal(width)]
        case "pixels":
            return [rng.standard_normal((channels, 5, 7)), at, rng.integers(-7, 7, width)]
        case "looked_up":
            x = rng.standard_normal((channels, 5, 7))
            return [x, at, rng.integers(-7, 7, width), 0.3 * rng.standard_normal(width)]
        case "wandering":
            return [rng.standard_normal((channels, 5, 7)), at]
        case "scattered":
            return [rng.standard_normal((channels, width)), at]
    return [rng.standard_normal((channels, width)), rng.standard_normal(width)]


@pytest.mark.parametrize("name", ["pixels", "warped", "looked_up", "scattered", "summed", "wandering", "mixed"])
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("width", WIDTHS)
def test_values_and_gradients(package, name, channels, width):
    layer, rng = getattr(package, name), np.random.default_rng(width + channels)
    values = draw(name, channels, width, rng)
    agrees(layer, values, rng, 1e-11, 1e-6)


@pytest.mark.parametrize("name", ["warped", "looked_up", "scattered", "summed"])
def test_bits_do_not_hang_on_threads(package, name):
    layer = getattr(package, name)
    values = draw(name, 40, 3000, np.random.default_rng(0))
    same_bits(layer, values)


def test_scattered_in_the_order_of_the_loop(package):
    """Large numbers cancel only if each place is added to in its order."""
    v, at = np.zeros((3, 130)), np.zeros(130, np.int64)
    v[:, 0], v[:, 1], v[:, 129] = 1e20, -2e20, 3.0
    assert np.array_equal(package.scattered(v, at), package.scattered.reference(v, at))


def said(call):
    with pytest.raises(IndexError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("pullback", [False, True])
def test_the_first_place_out_of_range_is_named(package, pullback):
    """Also where another one of the same strip is out of range, along another axis."""
    x, rows, columns, scale = draw("looked_up", 4, 150, np.random.default_rng(1))
    rows[97], columns[80], columns[79] = 5, 7, -8
    call = package.looked_up.vjp if pullback else package.looked_up
    assert "index -8 is" in said(lambda: call(x, rows, columns, scale))
    columns[79] = 0
    assert "index 7 is" in said(lambda: call(x, rows, columns, scale))
    columns[80] = 0
    assert "index 5 is" in said(lambda: call(x, rows, columns, scale))


def test_nothing_is_asked_where_nothing_is_read(package):
    """No channel: no place of it is out of range."""
    at = np.full(70, 99)
    assert package.looked_up(np.zeros((0, 5, 7)), at, at, np.zeros(70)).shape == (0, 70)


def test_a_nan_is_no_place(package):
    image, flow = np.ones((2, 70)), np.zeros(70)
    flow[66] = np.nan
    assert "out of" in said(lambda: package.warped(image, flow))


@pytest.mark.parametrize(
    ("name", "method", "changed"),
    [
        ("pixels", "predict", True),
        ("warped", "predict", True),
        ("warped", "backward", True),
        ("looked_up", "predict", True),
        ("scattered", "predict", True),
        ("summed", "predict", False),  # goes inside as a whole (`across`)
        ("mixed", "predict", False),
    ],
)
def test_which_change_places(file, name, method, changed):
    kernels = kernels_in(file)
    body = in_caches(kernels[name, method].body)
    strips = [s for s in walk(body) if isinstance(s, For) and s.var.startswith("strip")]
    assert bool(strips) == changed
