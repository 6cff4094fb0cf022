"""Windows that add to one row: one loop over what they share, with what is added up in a register."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits, sized

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import in_vectors, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def filtered(x: real["C H W"], weight: Param[real["C 3 3"]]) -> real["C H W"]:
    """Zeros around."""
    c, h, w = x.shape
    y = np.zeros((c, h, w))
    for k in range(c):
        for i in range(h):
            for j in range(w):
                for a in range(3):
                    for b in range(3):
                        if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                            y[k, i, j] += x[k, i + a - 1, j + b - 1] * weight[k, a, b]
    return y


@layer
def smoothed(x: real["H W"], weight: Param[real["2 4"]]) -> real["H W"]:
    """An even window, a running sum, and something done with it."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            total = 0.5
            for a in range(2):
                for b in range(4):
                    if i + a < h and 0 <= j + b - 2 and j + b - 2 < w:
                        total += np.sin(x[i + a, j + b - 2]) * weight[a, b]
            y[i, j] = total * total
    return y


@layer
def largest(x: real["H W"]) -> real["H W"]:
    """Of a window that is cut off at the border."""
    h, w = x.shape
    y = np.full((h, w), -100.0)
    for i in range(h):
        for j in range(w):
            for a in range(3):
                for b in range(3):
                    if 0 <= i + a - 1 < h and 0 <= j + b - 1 < w:
                        y[i, j] = max(y[i, j], x[i + a - 1, j + b - 1])
    return y


@layer
def one_sided(x: real["T"], w: Param[real["4"]]) -> real["T"]:
    """What was before, in one axis; on top of what is there."""
    y = x * x
    for t in range(x.shape[0]):
        for k in range(4):
            if t - k >= 0:
                y[t] += w[k] * x[t - k]
    return y


@layer
def dilated(x: real["T"], w: Param[real["3"]], *, step: int = 2) -> real["T"]:
    """How far the window goes is told by the call; and far apart."""
    n = x.shape[0]
    y = np.zeros(n)
    for t in range(n):
        for k in range(3):
            if t - step * k >= 0:
                y[t] += w[k] * x[t - step * k]
            if t + 20 * k < n:
                y[t] += x[t + 20 * k]
    return y


@layer
def spread(x: real["H W"], w: Param[real["3 3"]]) -> real["H W"]:
    """The other way round: each element adds to a window."""
    h, n = x.shape
    y = np.zeros((h, n))
    for i in range(h):
        for j in range(n):
            for a in range(3):
                for b in range(3):
                    if 0 <= i + a - 1 < h and 0 <= j + b - 1 < n:
                        y[i + a - 1, j + b - 1] += x[i, j] * w[a, b]
    return y


@layer
def guarded(x: real["T"], w: Param[real["4"]], *, step: int = 2) -> real["T"]:
    """What is asked of the second question must not be asked where the first says no."""
    n = x.shape[0]
    y = np.zeros(n)
    for k in range(4):
        if step != 0:
            if k // step == 1 or k % step == 0:
                for t in range(n):
                    y[t] += w[k] * x[t]
    return y


@layer
def long_window(x: real["T"], w: Param[real["9"]]) -> real["T"]:
    """Nine taps, cut off at both ends."""
    n = x.shape[0]
    y = np.zeros(n)
    for t in range(n):
        for k in range(9):
            if 0 <= t + k - 4 < n:
                y[t] += w[k] * x[t + k - 4]
    return y


@layer
def wide_window(x: real["H W"], w: Param[real["5 5"]]) -> real["H W"]:
    """More taps than one loop has."""
    h, n = x.shape
    y = np.zeros((h, n))
    for i in range(h):
        for j in range(n):
            for a in range(5):
                for b in range(5):
                    if 0 <= i + a - 2 < h and 0 <= j + b - 2 < n:
                        y[i, j] += x[i + a - 2, j + b - 2] * w[a, b]
    return y


@layer
def capped(x: real["H W"], w: Param[real["3"]]) -> real["H"]:
    """A row's sum first, and then the largest of it and of what a window has: one place for both."""
    h, n = x.shape
    y = np.zeros(h)
    for i in range(h):
        for j in range(n):
            y[i] += x[i, j] * w[0]
        for k in range(3):
            for j in range(n - 2):
                y[i] = max(y[i], x[i, j + k] * w[k])
    return y


@layer
def floored(x: real["H W"], w: Param[real["5"]]) -> real["H"]:
    """... and the other way round."""
    h, n = x.shape
    y = np.ones(h)
    for i in range(h):
        for k in range(3):
            for j in range(n - 2):
                y[i] += x[i, j + k] * w[k]
        for j in range(n - 2):
            y[i] = min(y[i], x[i, j + 1])
    return y
'''

SHAPES = {
    "filtered": ["2 n m", "2 3 3"],
    "smoothed": ["n m", "2 4"],
    "largest": ["n m"],
    "one_sided": ["m", "4"],
    "dilated": ["m", "3"],
    "spread": ["n m", "3 3"],
    "guarded": ["m", "4"],
    "long_window": ["m", "9"],
    "wide_window": ["n m", "5 5"],
    "capped": ["n m", "3"],
    "floored": ["n m", "5"],
}


def draw(name: str, examples: int, n: int, m: int, dtype: type) -> list[np.ndarray]:
    return sized(SHAPES[name], {"n": n, "m": m}, examples, dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("overlap")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "overlap_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 30, 63, 65, 66, 130])
def test_values_and_gradients(package, name, m):
    """Every width beside a strip of 64, every height beside a window."""
    for n in (1, 2, 5) if m < 60 else (3,):
        values = draw(name, 2, n, m, np.float64)
        agrees(getattr(package, name), values, np.random.default_rng(m), 1e-10, 2e-5)


@pytest.mark.parametrize("step", [-1, 0, 1, 3, 7, 90])
def test_a_step_of_the_call(package, step):
    layer = package.dilated
    for m in (1, 40, 100):
        x, w = draw("dilated", 3, 1, m, np.float64)
        if step < 0:
            with pytest.raises(IndexError):
                layer(x, w, step=step)
            continue
        np.testing.assert_allclose(layer(x, w, step=step), layer.reference(x, w, step=step), 1e-12, 1e-12)


@pytest.mark.parametrize("step", [0, 1, 2, 3, -2])
def test_no_division_where_a_guard_says_no(package, step):
    """The processor stops at an integer that is divided by 0."""
    x, w = draw("guarded", 3, 1, 70, np.float64)
    got, pullback = package.guarded.vjp(x, w, step=step)
    np.testing.assert_allclose(got, package.guarded.reference(x, w, step=step), 1e-12, 1e-12)
    assert np.isfinite(pullback(np.ones_like(got))[0]).all()


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3, 40, 150, np.float32))


@pytest.mark.parametrize("name", ["filtered", "one_sided"])
def test_values_that_are_none_stay_where_they_are(package, name):
    """A weight times what is outside is not added, not even as 0: infinite weights."""
    values = draw(name, 1, 6, 70, np.float64)
    values[0][..., 11] = np.nan
    values[0][..., 0] = np.inf
    values[1].flat[0] = np.inf
    with np.errstate(invalid="ignore"):
        want = getattr(package, name).reference(*values)
    np.testing.assert_allclose(getattr(package, name)(*values), want, 1e-12, 1e-12)


@pytest.mark.parametrize(("name", "method", "most"), [("filtered", "forward", 10), ("spread", "forward", 9)])
def test_one_loop_has_all_of_them(package, folder, name, method, most):
    """... and stores once what it has added up."""
    kernels = {m: k for (layer, m), k in kernels_in(folder / "overlap_of.py").items() if layer == name}
    kernel = kernels[method] if method in kernels else next(iter(kernels.values()))
    rows = [s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s)]
    counts = [sum(isinstance(s, Store) and not s.index for s in walk(row.body)) for row in rows]
    assert max(counts) >= most
    widest = rows[counts.index(max(counts))]
    assert sum(isinstance(s, Store) and bool(s.index) for s in walk(widest.body)) <= 3


@pytest.mark.parametrize(("method", "most"), [("predict", 5), ("backward", 6)])
def test_borders_have_one_loop_for_each_row_of_a_window(package, folder, method, most):
    """... beside that for all of it; not one for each element, on which C compilers spent most of their time."""
    kernel = kernels_in(folder / "overlap_of.py")["filtered", method]
    assert sum(isinstance(s, For) and in_vectors(s) and s.hi.value is None for s in walk(kernel.body)) <= most


@pytest.mark.parametrize("name", ["filtered", "one_sided", "spread", "long_window"])
def test_a_loop_that_has_all_of_them_has_no_strips(package, folder, name):
    """It goes over a row once, so only the row has ends."""
    for (layer, method), kernel in kernels_in(folder / "overlap_of.py").items():
        if layer == name:
            assert not [s.var for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("strip")], method
