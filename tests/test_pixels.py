"""A loop over a list that all pixels share, with a way out of it: neighbours walk together, and what a pixel's channels
add up to is in hand until the list ends."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, If, Op, Store
from layerc.transpile.passes.alike import MANY_LANES
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import math

import numpy as np
from layerc import Param, layer, real


@layer
def splats(mu: real["G 2"], size: real["G"], turn: real["G"], light: real["G"], colour: real["G 3"],
           H: int = 5, W: int = 19) -> real["H W 3"]:
    """Skips what is far, ends where all is covered; adds to its channels in memory."""
    img = np.zeros((H, W, 3))
    for i in range(H):
        for j in range(W):
            T = 1.0
            for g in range(len(mu)):
                dx, dy = 0.3 * j - mu[g, 0], 0.7 * i - mu[g, 1]
                c, s = math.cos(turn[g]), math.sin(turn[g])
                px, py = (c * dx + s * dy) / size[g], (c * dy - s * dx) / 2
                alpha = np.minimum(0.9, light[g] * math.exp(-0.5 * (px * px + py * py)))
                if alpha < 0.02:
                    continue
                img[i, j] += T * alpha * colour[g]
                T *= 1 - alpha
                if T < 0.1:
                    break
    return img


@layer
def channels(mu: real["G 2"], light: real["G"], colour: Param[real["G 4"]],
             H: int = 5, W: int = 19) -> real["H W 4"]:
    """The channels are a variable of the pixel."""
    img = np.zeros((H, W, 4))
    for i in range(H):
        for j in range(W):
            T = 1.0
            acc = np.ones(4)
            for g in range(len(mu)):
                alpha = light[g] * np.exp(-((0.3 * j - mu[g, 0]) ** 2) - (0.7 * i - mu[g, 1]) ** 2)
                acc += T * alpha * colour[g]
                T *= 1 - alpha
                if T < 0.2:
                    break
            img[i, j] = acc
    return img


@layer
def composite(light: real["G"], colour: real["G 3"], x: real["H W 2"]) -> real["H W 3"]:
    """To the end, of two numbers that each pixel has."""
    H, W, _ = x.shape
    img = np.zeros((H, W, 3))
    for i in range(H):
        for j in range(W):
            T = 1.0
            for g in range(len(light)):
                alpha = light[g] / (1 + x[i, j, 0] ** 2 + g * x[i, j, 1] ** 2)
                img[i, j] += T * alpha * colour[g]
                T *= 1 - alpha
    return img


@layer
def march(centre: real["G 3"], radius: real["G"], H: int = 5, W: int = 19) -> real["H W 2"]:
    """A minimum over the list at each step; how far, and how many steps."""
    out = np.zeros((H, W, 2))
    for i in range(H):
        for j in range(W):
            dx, dy = 0.06 * (j - 9), 0.2 * (i - 2)
            t, steps = 0.0, 0
            while t < 3 and steps < 12:
                near = 4.0
                for g in range(len(radius)):
                    ex, ey, ez = t * dx - centre[g, 0], t * dy - centre[g, 1], t - 2 - centre[g, 2]
                    near = np.minimum(near, math.sqrt(ex * ex + ey * ey + ez * ez + 0.1) - 0.3 * radius[g])
                if near < 0.05:
                    break
                t += near
                steps += 1
                out[i, j, 0] += near * t
            out[i, j, 1] = t
    return out


@layer
def into_one(x: real["H W"], w: real["G"]) -> real["W 2"]:
    """Rows meet in one place: it is not a pixel's own."""
    H, W = x.shape
    y = np.zeros((W, 2))
    for i in range(H):
        for j in range(W):
            v = x[i, j]
            for g in range(len(w)):
                v = np.sin(v) * w[g]
                if v > 0.9:
                    break
                y[j, 0] += v
                y[j, 1] += v * v
    return y
'''
COSINES = tuple(f"{name}{way}" for name in ("cos", "sin") for way in ("", "_near", "_far"))
NAMES = ("splats", "channels", "composite", "march", "into_one")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pixels")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "pixels_of", TEXT)


def draw(name, batch, g, w=19, dtype=np.float64):
    rng = np.random.default_rng(len(name) + g)

    def u(lo, hi, *shape):
        return rng.uniform(lo, hi, shape).astype(dtype)

    light = u(0.1, 1.2, batch, g)
    match name:
        case "splats":
            return (u(0, 5, batch, g, 2), u(0.4, 2, batch, g), u(-3, 3, batch, g), light, u(0, 1, batch, g, 3))
        case "channels":
            return (u(0, 5, batch, g, 2), u(0.1, 0.9, batch, g), u(0, 1, g, 4))
        case "composite":
            return (u(0.1, 0.8, batch, g), u(0, 1, batch, g, 3), u(-1, 1, batch, 3, w, 2))
        case "march":
            return (u(-1, 1, batch, g, 3), u(0.5, 1.5, batch, g))
    return (u(-2, 2, batch, 4, w), u(0.5, 1.3, batch, g))


def options(name, w):
    return {"W": w} if name in ("splats", "channels", "march") else {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("batch", "g", "w"), [(1, 4, 19), (2, 3, 70), (3, 1, 15), (2, 0, 19), (0, 3, 19), (17, 3, 16), (1, 37, 19)]
)
def test_values_and_gradients(package, name, batch, g, w):
    agrees(getattr(package, name), draw(name, batch, g, w), np.random.default_rng(w), 1e-10, 5e-6, **options(name, w))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_hang_on_threads(package, name, dtype):
    same_bits(getattr(package, name), draw(name, 2, 7, dtype=dtype))


@pytest.mark.parametrize("name", ["splats", "channels", "march"])
def test_what_is_no_number_stays_where_numpy_has_it(package, name):
    """Of one of the list, in all pixels that come to it; and infinity."""
    layer = getattr(package, name)
    for bad in (np.nan, np.inf):
        values = draw(name, 2, 6)
        values[0][1, 2, 0] = values[1][0, 4] = bad
        with np.errstate(all="ignore"):
            want = layer.reference(*values)
        np.testing.assert_allclose(layer(*values), want, 1e-10, 1e-10)


def of(folder, name, method):
    return kernels_in(folder / "pixels_of.py")[name, method]


@pytest.mark.parametrize("name", ["splats", "channels", "composite", "march"])
def test_pixels_walk_together(package, folder, name):
    for method in ("predict", "backward"):
        kernel = of(folder, name, method)
        wide = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == Dim.of(MANY_LANES)]
        assert wide, f"{name} {method}: one by one"


def test_a_step_of_the_list_stores_no_channel(package, folder):
    """They are in hand: memory is written before the list and behind it."""
    kernel = of(folder, "splats", "predict")
    lists = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and "G" in s.hi.symbols()]
    together = [s for s in lists if any(isinstance(x, For) and x.hi == Dim.of(MANY_LANES) for x in walk(s.body))]
    assert together
    assert not any(isinstance(x, Store) and x.buffer == "y" for s in together for x in walk(s.body))


def test_a_pixel_asks_no_cosine(package, folder):
    """The list has as many as it is long, in a table: not each row of pixels, though a pixel may skip it."""
    for method in ("predict", "backward"):
        kernel = of(folder, "splats", method)
        dear = [
            s
            for s in walk(kernel.body)
            if isinstance(s, Store)
            and any(isinstance(p, Op) and p.op in COSINES for e in own_exprs(s) for p in parts(e))
        ]
        assert dear
        assert all(s.buffer.startswith("table") for s in dear), [s.buffer for s in dear]


def test_sums_of_lanes_wait(package, folder):
    """What all pixels add up in the gradient is added behind the one loop over lanes that makes it."""
    kernel = of(folder, "splats", "backward")
    lists = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and "G" in s.hi.symbols()]
    for back in (s for s in lists if any(isinstance(x, Store) and x.buffer.startswith("d_mu") for x in walk(s.body))):
        made = [
            s
            for s in back.body
            if isinstance(s, For) and s.hi == Dim.of(MANY_LANES) and any(not x.op and x.index for x in s.body)
        ]
        assert len(made) <= 1


def test_what_is_over_for_all_is_not_gone_over(package, folder):
    """A strip of the list is asked for pixels that go on; without any, only what the gradient keeps is kept."""
    for method in ("predict", "backward"):
        kernel = of(folder, "splats", method)
        strips = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == (Dim.of("G") + 15) // 16]
        assert strips, method
        for strip in strips:
            (asked,) = (s for s in strip.body if isinstance(s, If))
            lengths = [sum(1 for _ in walk(way)) for way in (asked.then, asked.orelse)]
            assert lengths[0] > 3 * lengths[1]
