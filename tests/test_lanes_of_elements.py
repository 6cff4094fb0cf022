"""A `while` or a recurrence for each element: neighbours run together, in the gradient too, whose lists they share."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in, runs_loops
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, Load, Store
from layerc.transpile.passes.alike import LANES, MANY_LANES
from layerc.transpile.passes.tree import dim_loads, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def lambert(x: real["D"]) -> real["D"]:
    """As many steps as each element takes."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        w, step, trips = np.log1p(x[i]), 1.0, 0
        while abs(step) > 1e-3 * (1.0 + abs(w)) and trips < 20:
            e = np.exp(w)
            f = w * e - x[i]
            step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0))
            w = w - step
            trips += 1
        y[i] = w
    return y


@layer
def none_for_some(x: real["D"], a: Param[real[""]]) -> real["D"]:
    """Some elements do not enter; a parameter adds up over all."""
    y = x.copy()
    for i in range(x.shape[0]):
        v, k = x[i], 0
        while v > 0.3 and k < 6:
            v = a * v * np.cos(v)
            k += 1
        y[i] = v + k
    return y


@layer
def places(x: real["H W"]) -> real["H W"]:
    """Two axes, two loops one after the other, a condition inside."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            u = 0.3 * x[i, j]
            k = 0
            while u * u < 0.5 and k < 5:
                if u > 0:
                    u = u * 1.5 + 0.01
                else:
                    u = u * 1.25 - 0.02
                k += 1
            t = 0
            while t < k:
                u = np.sin(u) + x[i, j]
                t += 1
            y[i, j] = u * x[i, j]
    return y


@layer
def orbits(re: real["D"], im: real["D"]) -> real["D"]:
    """How fast a point escapes (Mandelbrot), smoothed."""
    y = np.zeros_like(re)
    for i in range(re.shape[0]):
        a, b, k = 0.0, 0.0, 0
        while a * a + b * b < 4.0 and k < 9:
            a, b = a * a - b * b + re[i], 2.0 * a * b + im[i]
            k += 1
        y[i] = k + np.log(1.0 + a * a + b * b)
    return y


@layer(batched=True)
def all_at_once(x: real["N"]) -> real["N"]:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        v, k = x[i], 0
        while abs(v) > 0.1 and k < 4:
            v = v - np.tanh(v)
            k += 1
        y[i] = v
    return y


@layer
def nested(x: real["D"]) -> real["D"]:
    """A loop in a loop, each with its own number of trips."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        v, k = x[i], 0
        while k < 3 and abs(v) < 2.0:
            j = 0
            while j < k + 1 and v < 1.0:
                v = v + 0.3 * np.exp(-v * v)
                j += 1
            v = v * 1.1
            k += 1
        y[i] = v
    return y


@layer
def remembered(x: real["D"]) -> real["D"]:
    """A list of one's own."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        v, k = 1.0 + x[i] * x[i], 0
        seen = []
        while v > 0.2 and k < 7:
            seen.append(np.sin(v))
            v = v - 0.45
            k += 1
        s = v
        while k > 0:
            s = s * 0.5 + seen.pop()
            k -= 1
        y[i] = s
    return y


@layer
def root(x: real["D"]) -> real["D"]:
    """As many steps for all."""
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        g = 1.0
        for _ in range(6):
            g = g - (g * g * g - 1.5 - np.cos(x[i])) / (3 * g * g)
        y[i] = g
    return y


@layer
def branched(x: real["D"], a: Param[real[""]]) -> real["D"]:
    """... with a branch."""
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        u = x[i] - a
        for _ in range(7):
            if u > 0:
                u = 0.5 * u
            else:
                u = a * u
            u = np.sin(u) + 0.2 * x[i]
        y[i] = u
    return y


@layer
def over_time(x: real["T D"], a: Param[real["D"]]) -> real["T D"]:
    """Features one after the other, each through all of time."""
    t, d = x.shape
    y = np.zeros((t, d))
    for k in range(d):
        h = 0.0
        for s in range(t):
            h = a[k] * h + np.sin(x[s, k])
            y[s, k] = h
    return y


@layer
def before_others(x: real["T D"]) -> real["T D"]:
    """What a step reads is a result of the step before."""
    t, d = x.shape
    y = np.zeros((t, d))
    for k in range(d):
        for s in range(t):
            v = x[s, k] * 0.3
            if s > 0:
                v += 0.5 * np.cos(y[s - 1, k])
            y[s, k] = v
    return y


@layer
def window_of_rows(x: real["T D"]) -> real["T D"]:
    """A running sum that begins with as many as half a window, in a loop of their own."""
    t, d = x.shape
    y = np.empty((t, d))
    for k in range(d):
        h = 0.0
        for s in range(min(2, t)):
            h += x[s, k] ** 2
        for s in range(t):
            if s + 2 < t:
                h += x[s + 2, k] ** 2
            if s - 3 >= 0:
                h -= x[s - 3, k] ** 2
            y[s, k] = x[s, k] / (1.0 + h)
    return y


@layer
def of_a_mixture(x: real["D"], w: Param[real["K"]]) -> real["D"]:
    """A sum over what all elements share, in each step of a loop that ends for each of them."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        t = x[i]
        for _ in range(8):
            f = 0.0
            for k in range(w.shape[0]):
                f += np.exp(-w[k] * w[k] * t * t)
            if f < 0.5:
                break
            t = t + 0.1 * f
            if t > 2.5:
                t = 2.5
                break
        y[i] = t
    return y


@layer
def of_a_triangle(x: real["D"], w: Param[real["K"]]) -> real["D"]:
    """How much is summed, a counter says: that is not known before its loop."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        v, n = x[i], 0
        while v < 2.0 and n < 3:
            for t in range(w.shape[0]):
                f = 0.1
                for k in range(t):
                    f += np.exp(-w[k] * w[k] * v * v)
                v = v + 0.05 * f
            n += 1
        y[i] = v
    return y
'''

SHAPES = {
    "none_for_some": ["d", ""],
    "places": ["3 d"],
    "orbits": ["d", "d"],
    "branched": ["d", ""],
    "over_time": ["5 d", "shared d"],
    "before_others": ["5 d"],
    "window_of_rows": ["5 d"],
    "of_a_mixture": ["d", "shared 5"],
    "of_a_triangle": ["d", "shared 4"],
}
NAMES = [line[4 : line.index("(")] for line in TEXT.split("\n") if line.startswith("def ")]


def draw(name: str, examples: int, d: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * examples + d)
    found = []
    for text in SHAPES.get(name, ["d"]):
        shape = tuple(d if axis == "d" else int(axis) for axis in text.removeprefix("shared").split())
        same = text == "" or text.startswith("shared") or name == "all_at_once"
        value = rng.standard_normal(shape if same else (examples, *shape))
        found.append(np.asarray(np.abs(value) * 3 if name == "lambert" else value, dtype))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("elements")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "elements_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("examples", "d"),
    [(1, 16), (2, 1), (3, 15), (2, 17), (1, 33), (17, 3), (3, 0), (0, 20), (2, 64), (1, 65), (2, 150)],
)
def test_values_and_gradients(package, name, examples, d):
    agrees(getattr(package, name), draw(name, examples, d, np.float64), np.random.default_rng(d), 1e-10, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        for examples, d in ((1, 200), (40, 37)):
            same_bits(getattr(package, name), draw(name, examples, d, dtype))


@pytest.mark.parametrize("name", ["lambert", "nested", "remembered", "all_at_once", "before_others"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [53, 150])
def test_an_element_does_not_know_its_neighbours(package, name, dtype, d):
    """The same bits wherever it stands: in lanes, in what is left over, beside NaN. (Not where two products are
    subtracted: of which of them the difference is fused with, the C compiler decides.)"""
    layer, values = getattr(package, name), draw(name, 3, d, dtype)
    order = np.random.default_rng(1).permutation(d)
    for what in (lambda *a: layer(*a), lambda *a: layer.vjp(*a)[1](np.cos(a[0]))):
        straight, shuffled = what(*values), what(*(v[..., order] for v in values))
        pairs = zip(*((r if isinstance(r, tuple) else (r,)) for r in (straight, shuffled)), strict=True)
        assert all(np.array_equal(a[..., order], b) for a, b in pairs)
    beside = [v.copy() for v in values]
    beside[0][..., 5] = np.nan
    assert np.array_equal(np.delete(layer(*beside), 5, -1), np.delete(layer(*values), 5, -1))


# Rows of `over_time` lie along memory: `across`; sums over a triangle are no elements' alike.
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("over_time", "of_a_triangle")])
def test_they_run_together(package, folder, name):
    """Forward and gradient, but of a pullback that has nothing left to run."""
    of = [k for (layer, _), k in kernels_in(folder / "elements_of.py").items() if layer == name and runs_loops(k)]
    assert len(of) >= 2
    for kernel in of:
        extents = (Dim.of(LANES), Dim.of(MANY_LANES))  # of a loop along examples, along elements
        wide = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi in extents]
        assert wide, kernel.name
        lists = [b for b in kernel.buffers if b.kind == "list"]
        assert not lists or any(b.shape[1:2] in [(e,) for e in extents] for b in lists), kernel.name


@pytest.mark.parametrize("name", ["lambert", "orbits"])
def test_what_a_gradient_keeps_of_neighbours_is_a_vector(package, folder, name):
    """Each turn makes the lists of all that go on longer by one: they end at one place, for all of them."""
    kernel = next(
        k
        for (layer, method), k in kernels_in(folder / "elements_of.py").items()
        if (layer, method) == (name, "backward")
    )
    wide = {b.name for b in kernel.buffers if b.kind == "list" and b.shape[1:] == (Dim.of(MANY_LANES),)}
    assert any(isinstance(s, For) and s.hi == Dim.of("D") // MANY_LANES for s in walk(kernel.body)), (
        "not along the elements"
    )
    kept = [
        (loop, stmt)
        for loop in walk(kernel.body)
        if isinstance(loop, For) and loop.hi == Dim.of(MANY_LANES)
        for stmt in loop.body
        if isinstance(stmt, Store) and stmt.buffer in wide
    ]
    assert kept
    for loop, stmt in kept:
        level, lane = stmt.index
        assert lane == Dim.of(loop.var)
        assert all(not load.index for load in dim_loads(level)), "a place for each lane"
        assert not any(isinstance(part, Load) and part.buffer in wide for part in parts(stmt.value)), "a choice"
    turns = [b for b in kernel.buffers if b.name.startswith("turns") and b.shape == (Dim.of(MANY_LANES),)]
    assert turns
    assert {b.dtype for b in turns} == {"i32"}, "twice as wide as the numbers"
