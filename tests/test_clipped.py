"""Windows that borders cut off, written with the border in the bounds of the loop: the same numbers, without a loop
whose length changes from place to place."""

from __future__ import annotations

import numpy as np
import pytest
from nets import SPELLED, built_from, kernels_in, layers_of
from thorough import agrees, same_bits

from layerc.transpile.cut import windows
from layerc.transpile.dims import Dim, maximum, minimum
from layerc.transpile.ir import Check, For, Int, Store
from layerc.transpile.passes.clipped import whole
from layerc.transpile.passes.tree import has, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def mean_pool(x: real["C H W"]) -> real["C H W"]:
    """A mean of what is there."""
    c, h, w = x.shape
    y = np.zeros(x.shape)
    for k in range(c):
        for i in range(h):
            for j in range(w):
                total = 0.0
                n = 0
                for a in range(max(0, i - 1), min(h, i + 2)):
                    for b in range(max(0, j - 1), min(w, j + 2)):
                        total += x[k, a, b]
                        n += 1
                y[k, i, j] = total / n
    return y


@layer
def max_pool(x: real["H W"]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            m = -np.inf
            for a in range(max(0, i - 1), min(h, i + 2)):
                for b in range(max(0, j - 2), min(w, j + 1)):
                    m = max(m, x[a, b])
            y[i, j] = m
    return y


@layer
def causal(x: real["T"]) -> real["T"]:
    """Cut off at one end."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        for k in range(max(0, t - 3), t + 1):
            y[t] += np.tanh(x[k]) * (t - k + 1)
    return y


@layer
def ahead(x: real["T"]) -> real["T"]:
    """At the other, downwards."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        for k in range(min(x.shape[0], t + 3) - 1, t - 1, -1):
            y[t] = 0.5 * y[t] + np.exp(x[k])
    return y


@layer
def strided(x: real["H W"]) -> real["(H+1)//2 W"]:
    h, w = x.shape
    y = np.zeros(((h + 1) // 2, w))
    for i in range((h + 1) // 2):
        for j in range(w):
            for a in range(max(0, 2 * i - 1), min(h, 2 * i + 2)):
                y[i, j] += x[a, j] ** 2
    return y


@layer
def recurrent(x: real["T D"]) -> real["T D"]:
    """What a step of the window does hangs on the one before: kept for the gradient, three places for each."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        for d in range(x.shape[1]):
            h = 0.1
            for k in range(max(0, t - 1), min(x.shape[0], t + 2)):
                h = np.tanh(h * x[k, d] + 0.5)
            y[t, d] = h
    return y


@layer
def otherwise(x: real["T"]) -> real["T"]:
    """And one that has something to do there."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        for k in range(4):
            if t + k >= x.shape[0] or (t + k == 2 and k > 0):
                y[t] -= 0.25 * x[t]
            else:
                y[t] += np.exp(x[t + k])
    return y


@layer
def corner(x: real["N"]) -> real["N"]:
    """Two borders at one end; what is left may be nothing."""
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n):
        for k in range(max(1, max(i - 2, n - 4)), min(n - 1, i + 2)):
            y[i] += x[k] * x[i]
    return y
'''
TEXT += layers_of(SPELLED, "filter__bounds", "filter__skip")

IMAGES = {"mean_pool": 3, "max_pool": 2, "filter__bounds": 2, "strided": 2, "recurrent": 2, "filter__skip": 2}
NAMES = [
    "mean_pool",
    "max_pool",
    "filter__bounds",
    "causal",
    "ahead",
    "strided",
    "recurrent",
    "filter__skip",
    "otherwise",
    "corner",
]


def draw(name: str, batch: int, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 100 + n)
    shape = {3: (2, n, n + 1), 2: (n, n + 2)}.get(IMAGES.get(name, 1), (n,))
    found = [rng.standard_normal((batch, *shape))]
    if name in ("filter__bounds", "filter__skip"):
        found.append(rng.standard_normal((3, 3)))
    return [v.astype(dtype) for v in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clipped")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "clipped_of", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "clipped_of.py")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (2, 2), (1, 3), (5, 4), (17, 9), (1, 40), (3, 70), (0, 3)])
def test_values_and_gradients(package, name, batch, n):
    agrees(getattr(package, name), draw(name, batch, n, np.float64), np.random.default_rng(n), 1e-10, 2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 20, 33, np.float32))


@pytest.mark.parametrize("name", ["max_pool", "mean_pool", "filter__bounds"])
def test_what_is_outside_is_not_there(package, name):
    """It is not 0 either: infinite values at the border reach their window only."""
    values = draw(name, 1, 8, np.float64)
    values[0][..., 0, 0] = np.inf
    got, want = getattr(package, name)(*values), getattr(package, name).reference(*values)
    np.testing.assert_allclose(got, want, 1e-12)
    assert np.isfinite(got[..., 4:, 4:]).all()


@pytest.mark.parametrize("way", ["predict", "backward"])
@pytest.mark.parametrize("name", ["mean_pool", "filter__bounds", "ahead", "recurrent"])
def test_no_loop_has_the_length_of_a_place(kernels, name, way):
    kernel = kernels[name, way]
    counters = {"i", "j", "t"}
    for loop in (s for s in walk(kernel.body) if isinstance(s, For)):
        named = {v.split("_")[0] for v in (loop.hi - loop.lo).symbols()}
        assert not named & counters, (loop.var, loop.lo, loop.hi)


def test_what_is_skipped_is_a_condition_of_the_rest(kernels):
    """So that the loops are maps without checks, as with the border in the condition."""
    for way in ("predict", "backward"):
        kernel = kernels["filter__skip", way]
        assert not has(kernel.body, Check)
        assert not any(
            s.kind == "seq" for s in walk(kernel.body) if isinstance(s, For) and not s.var.startswith("chunk")
        )


def test_windows():
    i, h = Dim.of("i"), Dim.of("H")
    whole = next(windows(minimum(h, i + 2) - maximum(Dim.of(0), i - 1)))
    assert (whole.places, whole.first, whole.end) == (Dim.of(3), i - 1, i + 2)
    assert (whole.lower, whole.upper) == ((Dim.of(0),), (h,))
    assert not list(windows(i + 2 - (i - 1)))  # nothing cuts it off
    assert not list(windows(minimum(h, Dim.of(4))))  # the first four, at every place
    assert not list(windows(minimum(h, i + 1) - i))  # one place
    assert not list(windows(minimum(h, i + 40) - maximum(Dim.of(0), i - 1)))  # too long to write out
    assert not list(windows(minimum(h, i + Dim.of("r")) - i))  # of a length that only the call knows


def test_windows_of_a_length_that_the_call_knows():
    t, k, n = Dim.of("t"), Dim.of("K"), Dim.of("T")
    ahead = next(windows(minimum(k, t + 1), "t"))
    assert (ahead.places, ahead.first, ahead.upper) == (k, Dim.of(0), (t + 1,))
    loop = For("s", maximum(Dim.of(0), t - k), minimum(n, t + k + 1), (Store("y", (t,), Int(Dim.of("s")), "add"),))
    assert whole(loop, "t").hi == 2 * k + 1, "not all of the row"
    assert not list(windows(minimum(k, n), "t"))  # as long everywhere
    assert not list(windows(minimum(t * t, t + 1), "t"))  # no window has all places
