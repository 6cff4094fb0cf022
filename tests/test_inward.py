"""Windows of whole arrays, a slice for each place: the loops over them go inside of those over rows."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import For
from layerc.transpile.passes.tree import accesses, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def depthwise(x: real["H W C"], w: Param[real["5 3 C"]]) -> real["H-4 W-2 C"]:
    H, W, C = x.shape
    y = np.zeros((H - 4, W - 2, C))
    for i in range(5):
        for j in range(3):
            y += x[i : i + H - 4, j : j + W - 2] * w[i, j]
    return y


@layer
def bilateral(x: real["H W"], *, sigma: float = 0.5) -> real["H-4 W-4"]:
    """Two sums of one window, and what they share."""
    H, W = x.shape
    num = np.zeros((H - 4, W - 4))
    den = np.zeros((H - 4, W - 4))
    for i in range(5):
        for j in range(5):
            v = x[i : i + H - 4, j : j + W - 4]
            g = np.exp(-((v - x[2:-2, 2:-2]) ** 2) / (2 * sigma**2))
            num += g * v
            den += g
    return num / den


@layer
def scored(x: real["H W"], w: Param[real["5 5"]]) -> tuple[real["H-4 W-4"], real["5 5"]]:
    """What each place of the window adds up is its own."""
    H, W = x.shape
    y = np.zeros((H - 4, W - 4))
    s = np.zeros((5, 5))
    for i in range(5):
        for j in range(5):
            part = x[i : i + H - 4, j : j + W - 4] * w[i, j]
            s[i, j] = np.sum(part * part)
            y += part
    return y, s


@layer
def largest(x: real["C H W"]) -> real["C H-5 W-4"]:
    C, H, W = x.shape
    y = np.full((C, H - 5, W - 4), -np.inf)
    for i in range(6):
        for j in range(5):
            y = np.maximum(y, x[:, i : i + H - 5, j : j + W - 4])
    return y


@layer
def last(x: real["H W"]) -> tuple[real["H-4 W-4"], real["H-4 W-4"]]:
    """What the last place of the window leaves stays."""
    H, W = x.shape
    y, v = np.zeros((H - 4, W - 4)), np.zeros((H - 4, W - 4))
    for i in range(5):
        for j in range(5):
            v[:] = x[i : i + H - 4, j : j + W - 4] * (i + 1.0)
            y += v * v
    return y, v


@layer
def smoothed(x: real["H W"]) -> real["H W"]:
    """Each place of the window sees what the one before has left."""
    y = x.copy()
    for i in range(5):
        y[i : i + x.shape[0] - 4] += 0.1 * y[4 - i : x.shape[0] - i]
    return y


@layer
def triangle(x: real["H W"]) -> real["H-4 W-4"]:
    """The inner loop of the window ends where the outer one stands."""
    H, W = x.shape
    y = np.zeros((H - 4, W - 4))
    for i in range(5):
        for j in range(i + 1):
            y += x[i : i + H - 4, j : j + W - 4] ** 2
    return y
'''

SHAPES = {
    "depthwise": ["h w c", "5 3 c"],
    "bilateral": ["h w"],
    "scored": ["h w", "5 5"],
    "largest": ["c h w"],
    "last": ["h w"],
    "smoothed": ["h w"],
    "triangle": ["h w"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inward")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "inward_of", TEXT)


def draw(name: str, h: int, w: int, batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(h + 10 * w)
    extents = {"c": 3, "h": h, "w": w, "5": 5, "3": 3}
    shapes = [tuple(extents[n] for n in text.split()) for text in SHAPES[name]]
    return [rng.standard_normal((batch, *shape) if k == 0 else shape) for k, shape in enumerate(shapes)]


class First:
    """A layer with one of its two results, as `agrees` takes it."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, *args):
        return self.layer(*args)[0]

    def reference(self, *args):
        return self.layer.reference(*args)[0]

    def vjp(self, *args):
        (y, other), pullback = self.layer.vjp(*args)
        return y, lambda dy: pullback(dy, np.zeros_like(other))


class Second(First):
    def __call__(self, *args):
        return self.layer(*args)[1]

    def reference(self, *args):
        return self.layer.reference(*args)[1]

    def vjp(self, *args):
        (other, y), pullback = self.layer.vjp(*args)
        return y, lambda dy: pullback(np.zeros_like(other), dy)


def layers_of(package, name):
    layer = getattr(package, name)
    return [First(layer), Second(layer)] if name in ("scored", "last") else [layer]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("h", "w", "batch"), [(6, 6, 2), (5, 5, 1), (9, 40, 5), (8, 7, 4), (21, 6, 1)])
def test_values_and_gradients(package, name, h, w, batch):
    if name == "largest" and (h, w) == (5, 5):
        pytest.skip("no window fits in")
    for layer in layers_of(package, name):
        agrees(layer, draw(name, h, w, batch), np.random.default_rng(w), 1e-10, 2e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    for layer in layers_of(package, name):
        same_bits(layer, [v.astype(np.float32) for v in draw(name, 19, 33, 9)])


@pytest.mark.parametrize("name", ["depthwise", "bilateral", "scored", "largest"])
def test_windows_are_inside_rows(folder, package, name):
    """No loop over a window is around one over rows: each row is added to while it is near."""
    for (layer, method), kernel in kernels_in(folder / "inward_of.py").items():
        if layer != name or method.startswith("backward"):
            continue
        added = [a for a in accesses(kernel.body) if a.mode in ("add", "max") and len(a.index or ()) > 1]
        for a in added:
            short = [k for k, loop in enumerate(a.loops) if (loop.hi - loop.lo).value in (3, 5, 6)]
            rows = [k for k, loop in enumerate(a.loops[:-1]) if loop.hi.symbols() & {"H"}]
            assert not short or not rows or max(rows) < min(short), a


def test_loops_have_their_own_variables(folder, package):
    """What a nest is parted into are loops of their own, to whatever looks at them later."""
    for part in compile_module(read_module(folder / "inward_of.py"), upto="inward").parts:
        if part.layer.name not in ("depthwise", "bilateral", "scored", "largest"):
            continue  # of two ways of a branch, both may have the same
        variables = [s.var for s in walk(part.kernel.body) if isinstance(s, For)]
        assert len(variables) == len(set(variables)), part.kernel.name
