"""What is looked up, or scattered into, for every channel lies turned meanwhile; and columns that become rows."""

from __future__ import annotations

import numpy as np
import pytest
from nets import FAMILIAR, built_from, kernels_in, layers_of
from thorough import agrees, same_bits

from layerc.transpile.ir import Const, If, Op, Store
from layerc.transpile.passes.tree import symbols, walk

SOURCE = '''
import numpy as np
from layerc import i64, layer, real


@layer
def splat(x: real["C N"], at: real["N"], size: int = 9) -> real["C size"]:
    """Forward, it is a scatter: in the order of the columns."""
    y = np.zeros((x.shape[0], size))
    for n in range(x.shape[1]):
        place = min(max(at[n], 0.0), size - 1.001)
        left = int(np.floor(place))
        part = place - left
        for c in range(x.shape[0]):
            y[c, left] += (1 - part) * x[c, n]
            y[c, left + 1] += part * x[c, n]
    return y


@layer
def onto(x: real["C N"], at: i64["N"], y0: real["C M"]) -> real["C M"]:
    """Scattered onto what is there."""
    y = y0 * 2.0
    for n in range(x.shape[1]):
        for c in range(x.shape[0]):
            y[c, at[n]] += x[c, n]
            y[c, at[n] - 1] += np.sin(x[c, n])
    return y


@layer
def begun(x: real["C N"], at: i64["N"], y0: real["C M"]) -> real["C M"]:
    """Filled with 0, but not all of it, and not last."""
    y = np.zeros_like(y0)
    y[:, 1] = 1.5 * y0[:, 0]
    for n in range(x.shape[1]):
        for c in range(x.shape[0]):
            y[c, at[n]] += x[c, n]
            y[c, at[n] - 1] += 2.0 * x[c, n]
    z = y0 * 3.0
    z[:2] = 0.0
    for n in range(x.shape[1]):
        for c in range(x.shape[0]):
            z[c, at[n]] += x[c, n]
            z[c, at[n] - 1] += 2.0 * x[c, n]
    return y + z


@layer
def below(x: real["C N"], at: i64["N"], y0: real["C M"]) -> real["C M"]:
    """The first channel stays 0, the last ones, too."""
    y = np.zeros_like(y0)
    for n in range(x.shape[1]):
        for c in range(1, x.shape[0] - 1):
            y[c, at[n]] += x[c, n]
            y[c, at[n] - 1] += 2.0 * x[c, n]
    return y + np.cos(y0)


@layer
def carried(x: real["C W"], at: i64["N"], w: real["N"]) -> real["C N"]:
    """A sum over all channels of all columns: no column has one of its own."""
    y, s = np.zeros((x.shape[0], at.shape[0])), 0.0
    for n in range(at.shape[0]):
        for c in range(x.shape[0]):
            y[c, n] = w[n] * x[c, at[n]] * x[c, at[n] - 1]
            s += y[c, n]
    return y * s


@layer
def oblique(x: real["C H N"], at: i64["N"]) -> real["C N"]:
    """The place along one axis is looked up, along the other it is the column."""
    y = np.zeros((x.shape[0], at.shape[0]))
    for n in range(at.shape[0]):
        for c in range(x.shape[0]):
            y[c, n] = x[c, at[n], n] * x[c, at[n] - 1, n]
    return y


@layer
def following(x: real["C H W"], rows: i64["N"]) -> real["C N"]:
    """Places that move on from channel to channel."""
    y = np.zeros((x.shape[0], rows.shape[0]))
    for n in range(rows.shape[0]):
        row, column = rows[n], n % x.shape[2]
        for c in range(x.shape[0]):
            before = column
            column = min(column + 1, x.shape[2] - 1)
            y[c, n] = x[c, row, before] * x[c, 0, column]
    return y


@layer
def sixteen(x: real["16 N"], at: i64["N"], w: real["N"]) -> real["16 N"]:
    """As many channels as pay, whoever calls."""
    y = np.empty_like(x)
    for n in range(x.shape[1]):
        for c in range(16):
            y[c, n] = w[n] * x[c, at[n] % x.shape[1]] + x[c, (at[n] + 1) % x.shape[1]]
    return y


@layer
def some(image: real["C W"], at: i64["N"], w: real["N"]) -> real["C N"]:
    """Not the first channel; and few places of many are looked up, or many of few."""
    y = np.zeros((image.shape[0], at.shape[0]))
    for n in range(at.shape[0]):
        for c in range(1, image.shape[0]):
            y[c, n] = w[n] * (image[c, at[n]] * image[c, at[n] - 1] + image[c, at[n] - 2])
    return y


@layer
def moving(x: real["C W"], at: i64["N"], w: real["N"]) -> real["C W"]:
    """What is written is looked up in the same loop: step by step."""
    y = np.zeros_like(x)
    for n in range(at.shape[0]):
        for c in range(x.shape[0]):
            y[c, at[n]] = w[n] * x[c, at[n]] + 0.5 * y[c, at[n] - 1]
    return y


@layer
def elsewhere(x: real["C W"], at: i64["N"]) -> real["N"]:
    """Something is asked between the places and the channels."""
    y = np.zeros(at.shape[0])
    for n in range(at.shape[0]):
        total = x[0, 0]
        for c in range(x.shape[0]):
            total += x[c, at[n]] * x[c, at[n] - 1]
        y[n] = np.tanh(total)
    return y


@layer
def steps(x: real["T C W"], at: i64["T N"]) -> real["T C N"]:
    """For each of T steps others: what is looked up changes with the step."""
    y = np.zeros((x.shape[0], x.shape[1], at.shape[1]))
    for t in range(x.shape[0]):
        for n in range(at.shape[1]):
            for c in range(x.shape[1]):
                y[t, c, n] = x[t, c, at[t, n]] * x[t, c, at[t, n] - 1] + x[t, c, at[t, n] - 2]
    return y


@layer
def nearest(x: real["C W"], at: i64["N"]) -> real["C N"]:
    """One place each, and nothing else."""
    y = np.zeros((x.shape[0], at.shape[0]))
    for n in range(at.shape[0]):
        for c in range(x.shape[0]):
            y[c, n] = x[c, at[n]]
    return y


@layer
def columns(x: real["C S"]) -> real["S C"]:
    return x.T


@layer
def last(x: real["C H W"]) -> real["H W C"]:
    return np.transpose(x, (1, 2, 0))
'''
SOURCE += layers_of(FAMILIAR, "warp")
CHANNELS = (0, 1, 7, 8, 9, 33)
WIDTHS = (0, 1, 3, 64, 65, 130)
LOOKING = ["warp", "splat", "onto", "begun", "below", "some", "moving", "elsewhere", "steps", "nearest"]
LOOKING += ["carried", "oblique", "following", "sixteen"]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("channels"), "channels_of", SOURCE)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("channels") / "channels_of.py"
    path.write_text(SOURCE)
    return kernels_in(path)


def draw(name, batch, channels, width, dtype=float):
    rng = np.random.default_rng(batch + channels + width)

    def floats(*shape):
        return rng.standard_normal(shape).astype(dtype)

    at = rng.integers(-3, 5, (batch, width))
    match name:
        case "warp":
            return [floats(batch, channels, 4, width), 3 * floats(batch, 2, 4, width)]
        case "splat":
            return [floats(batch, channels, width), 4 + 3 * floats(batch, width)]
        case "sixteen":
            return [floats(batch, 16, width), at, floats(batch, width)]
        case "onto" | "begun" | "below":
            return [floats(batch, channels, width), at, floats(batch, channels, 5)]
        case "oblique":
            return [floats(batch, channels, 5, width), at]
        case "following":
            return [floats(batch, channels, 5, 7), at]
        case "some" | "moving" | "carried":
            return [floats(batch, channels, 5), at, floats(batch, width)]
        case "steps":
            return [floats(batch, 3, channels, 5), rng.integers(-3, 5, (batch, 3, width))]
    return [floats(batch, channels, 5), at]


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("width", WIDTHS)
def test_values_and_gradients(package, name, channels, width):
    if name == "elsewhere" and not channels:
        return  # it asks for channel 0
    layer = getattr(package, name)
    for batch in (1, 5):
        values = draw(name, batch, channels, width)
        agrees(layer, values, np.random.default_rng(0), 1e-11, 1e-6, exact=False)


@pytest.mark.parametrize("name", LOOKING)
def test_floats(package, name):
    values = draw(name, 6, 20, 100, np.float32)
    wide = [v.astype(float) if v.dtype == np.float32 else v for v in values]
    np.testing.assert_allclose(getattr(package, name)(*values), getattr(package, name).reference(*wide), 2e-5, 2e-5)
    dy = np.ones_like(getattr(package, name)(*wide))
    for narrow, want in zip(
        getattr(package, name).vjp(*values)[1](dy.astype(np.float32)),
        getattr(package, name).vjp(*wide)[1](dy),
        strict=True,
    ):
        if narrow is not None:
            np.testing.assert_allclose(narrow, want, 1e-4, 1e-4)


@pytest.mark.parametrize("name", ["warp", "splat", "onto", "steps"])
@pytest.mark.parametrize("batch", [1, 7])
def test_bits_do_not_hang_on_threads(package, name, batch):
    same_bits(getattr(package, name), draw(name, batch, 40, 3000))


def test_scattered_in_the_order_of_the_loop(package):
    """Large numbers cancel only if each place is added to in its order."""
    x, at = np.zeros((1, 16, 130)), np.zeros((1, 130), np.int64)
    x[..., 0], x[..., 1], x[..., 129] = 1e20, -2e20, 3.0
    zero = np.zeros((1, 16, 5))
    assert np.array_equal(package.onto(x, at, zero), package.onto.reference(x, at, zero))


@pytest.mark.parametrize("channels", [4, 20])
def test_the_first_place_out_of_range_is_named(package, channels):
    x, at, w = draw("some", 1, channels, 150)
    at[0, 97], at[0, 80] = 5, -6
    for call in (package.some, package.some.vjp):
        with pytest.raises(IndexError, match="index -6 is"):
            call(x, at, w)
    at[0, 80] = -3
    with pytest.raises(IndexError, match="index 5 is"):
        package.some(x, at, w)


def test_a_nan_reaches_its_channel_only(package):
    image, flow = np.ones((1, 16, 3, 70)), np.zeros((1, 2, 3, 70))
    image[0, 5, 1, 66] = np.nan
    y = package.warp(image, flow)
    assert np.isnan(y[0, 5]).any()
    assert not np.isnan(np.delete(y, 5, 1)).any()


def turned(kernel):
    return {b.name.split("_turned")[0] for b in kernel.buffers if "_turned" in b.name}


@pytest.mark.parametrize(
    ("name", "method", "arrays"),
    [
        ("warp", "predict", {"image", "y"}),
        ("warp", "backward", {"image", "dy", "d_image"}),
        ("splat", "predict", {"x", "y"}),
        ("onto", "predict", {"x", "y"}),
        ("some", "predict", {"image", "y"}),
        ("steps", "predict", {"x", "y"}),
        ("nearest", "predict", {"x", "y"}),
        ("elsewhere", "predict", set()),
        ("moving", "predict", set()),
    ],
)
def test_what_is_turned(kernels, name, method, arrays):
    assert turned(kernels[name, method]) == arrays


def test_few_places_of_many_are_looked_up_where_they_are(kernels):
    """Whether there are enough is asked when the kernel is called."""
    kernel = kernels["nearest", "predict"]
    asked = [s.cond for s in walk(kernel.body) if isinstance(s, If) and {"N", "W"} <= symbols(s.cond)]
    assert asked
    assert all(isinstance(cond, Op) and cond.op == "logical_and" for cond in asked)


def test_what_is_filled_is_filled_turned(kernels):
    """d_image is 0 before: nothing of it is read to be turned."""
    for version in (s for s in walk(kernels["warp", "backward"].body) if isinstance(s, If)):
        stores = [s for s in walk(version.then) if isinstance(s, Store)]
        if any(s.buffer.startswith("d_image_turned") for s in stores):
            first = next(s for s in stores if s.buffer.startswith("d_image_turned"))
            assert isinstance(first.value, Const)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (3, 70), (70, 3), (8, 8), (9, 15), (17, 300), (300, 17)])
def test_columns_become_rows(package, shape, dtype):
    for batch in (1, 6):
        x = np.arange(batch * np.prod(shape), dtype=dtype).reshape(batch, *shape)
        y, pullback = package.columns.vjp(x)
        assert np.array_equal(y, x.swapaxes(1, 2))
        assert np.array_equal(package.columns(x), y)
        assert np.array_equal(pullback(y)[0], x)
        image = x.reshape(batch, shape[0], 1, shape[1])
        y, pullback = package.last.vjp(image)
        assert np.array_equal(y, image.transpose(0, 2, 3, 1))
        assert np.array_equal(pullback(y)[0], image)
