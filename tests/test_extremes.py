"""The largest that a loop has seen gives its derivative to where it was found: nothing is saved on the way."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of
from thorough import agrees

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def rows(x: real["N M"]) -> real["N"]:
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        top = -np.inf
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        y[i] = top
    return y


@layer
def above(x: real["M"], start: real) -> real:
    """What it begins with may be the largest, too."""
    top = start
    for j in range(x.shape[0]):
        top = max(top, x[j])
    return top


@layer
def begun_in_a_branch(x: real["M"], start: real) -> real:
    top = -np.inf
    if start > 0:
        top = start * start
    for j in range(x.shape[0]):
        top = max(top, x[j])
    return top


@layer
def hinge(x: real["K"], label: i64) -> real:
    worst = 0.0
    for k in range(x.shape[0]):
        if k != label:
            worst = max(worst, 1.0 + x[k] - x[label])
    return worst


@layer
def in_steps(x: real["M"]) -> real["M"]:
    """Each step asks what is the largest so far."""
    top = -np.inf
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        top = max(top, x[j])
        y[j] = top * x[j]
    return y


@layer
def window(x: real["H W"], k: int = 2) -> real["H//k W//k"]:
    y = np.zeros((x.shape[0] // k, x.shape[1] // k))
    for i in range(x.shape[0] // k):
        for j in range(x.shape[1] // k):
            top = -np.inf
            for a in range(k):
                for b in range(k):
                    top = max(top, x[i * k + a, j * k + b])
            y[i, j] = top
    return y


@layer
def of_a_hundred(x: real["100"]) -> real:
    top = x[0]
    for j in range(100):
        if x[j] < 0:
            continue
        top = max(top, x[j])
    return top


@layer
def in_a_while(x: real["M"]) -> real:
    """Asked for in turns of which nobody knows how many there are."""
    s = np.zeros(x.shape[0])
    top = -np.inf
    for j in range(x.shape[0]):
        while s[j] < 1.5:
            s[j] += 1.0
            top = max(top, x[j])
    return top * top


@layer
def changed(x: real["M"]) -> real:
    """A place is written to again after it was asked for."""
    s = np.zeros(x.shape[0])
    top = -np.inf
    for j in range(1, x.shape[0]):
        s[j] = x[j] * x[0]
        top = max(top, s[j] + s[j - 1])
        s[j - 1] = 0.5
    return top


@layer
def product(x: real["M"], w: real["M"]) -> real:
    """Computed again, a product may be rounded another way, and nothing be the largest."""
    low = np.inf
    for j in range(x.shape[0]):
        low = min(low, x[j] * w[j] + 0.1)
    return low

@layer
def local(s: real["T S"], go: Param[real]) -> real[""]:
    """The largest of several stands in its place when its gradient asks which of them it is."""
    h = np.zeros((s.shape[0] + 1, s.shape[1] + 1))
    best = 0.0
    for i in range(1, s.shape[0] + 1):
        for j in range(1, s.shape[1] + 1):
            h[i, j] = max(0.0, h[i - 1, j - 1] + s[i - 1, j - 1], h[i, j - 1] - go, h[i - 1, j] - go)
            best = max(best, h[i, j])
    return best


@layer
def of_products(x: real["N"], w: Param[real[""]]) -> real["N"]:
    """What is rounded otherwise, where a product is fused with a sum, is not asked for there."""
    y = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        y[i] = max(w * y[i - 1] + x[i], x[i] * x[i] - y[i - 1], -1.0)
    return y


@layer
def named(x: real["N 3"], temp: real[""]) -> real["N"]:
    """How many are the largest has a name, which reads the largest."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        a, b, c = x[i]
        top = max(a, b, c, 0.0)
        y[i] = top + temp * np.log(np.exp((a - top) / temp) + np.exp((b - top) / temp) + np.exp((c - 2 * top) / temp))
    return y


@layer
def stored(x: real["N 3"], y: real["N"]) -> real["N"]:
    s = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        s[i] = max(x[i, 0], x[i, 1] - 1, x[i, 2], 0.0, y[i])
    return s * s
'''
SHAPES = {
    "rows": [(3, 5)],
    "above": [(4,), ()],
    "begun_in_a_branch": [(4,), ()],
    "in_steps": [(5,)],
    "window": [(4, 6)],
    "of_a_hundred": [(100,)],
    "in_a_while": [(5,)],
    "changed": [(5,)],
    "product": [(4,), (4,)],
    "local": [(5, 6), "shared"],
    "of_products": [(7,), "shared"],
    "named": [(6, 3), ()],
    "stored": [(5, 3), (5,)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("extremes"), "extremes", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_gradients(package, name, dtype):
    rng = np.random.default_rng(3)
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (1e-5, 1e-3)
    values = [np.asarray(rng.standard_normal((19, *x) if x != "shared" else ()), dtype) for x in SHAPES[name]]
    agrees(getattr(package, name), values, rng, tight, close)


def test_hinges(package):
    rng = np.random.default_rng(4)
    x, label = rng.standard_normal((21, 6)), rng.integers(0, 6, 21)
    y, pullback = package.hinge.vjp(x, label)
    gradient = pullback(np.ones(21))[0]
    for b in range(21):
        others = [k for k in range(6) if k != label[b]]
        worst = max(others, key=lambda k: x[b, k])
        expected = np.zeros(6)
        if 1 + x[b, worst] > x[b, label[b]]:
            expected[worst], expected[label[b]] = 1, -1
        np.testing.assert_allclose(gradient[b], expected)
        np.testing.assert_allclose(y[b], max(0, 1 + x[b, worst] - x[b, label[b]]))


def test_equal_ones_share(package):
    x = np.array([[[3.0, 1, 3, 3, 0], [2.0, 2, 1, 1, 0]]])
    (gradient,) = package.rows.vjp(x)[1](np.array([[3.0, 1.0]]))
    np.testing.assert_array_equal(gradient, [[[1, 0, 1, 1, 0], [0.5, 0.5, 0, 0, 0]]])
    d_x, d_start = package.above.vjp(np.array([[2.0, 5, 1, 5]]), np.array([5.0]))[1](np.array([6.0]))
    np.testing.assert_array_equal(d_x, [[0, 2, 0, 2]])
    np.testing.assert_array_equal(d_start, [2])
    (d_x,) = package.rows.vjp(np.full((1, 2, 4), -np.inf))[1](np.ones((1, 2)))
    np.testing.assert_array_equal(d_x, np.full((1, 2, 4), 0.25))


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 4), (0, 3, 4), (1, 1, 1)])
def test_nothing_to_be_the_largest(package, shape):
    x = np.ones(shape)
    y, pullback = package.rows.vjp(x)
    (gradient,) = pullback(np.ones_like(y))
    np.testing.assert_array_equal(gradient, np.ones(shape))


def test_the_others_have_no_part_in_it(package):
    """Not even where what comes back is infinite; a row without a largest tells nothing of others."""
    x = np.array([[[1.0, 7, 2, 3, 0], [1.0, 2, 5, 3, 4]]])
    (d_x,) = package.rows.vjp(x)[1](np.array([[np.inf, 1.0]]))
    np.testing.assert_array_equal(d_x, [[[0, np.inf, 0, 0, 0], [0, 0, 1, 0, 0]]])
    x[0, 0, 2] = np.nan
    y, pullback = package.rows.vjp(x)
    assert np.isnan(y[0, 0])
    np.testing.assert_array_equal(pullback(np.ones((1, 2)))[0][0, 1], [0, 0, 1, 0, 0])


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("rows", True),
        ("above", True),
        ("in_steps", False),
        ("window", False),
        ("of_a_hundred", True),
        ("in_a_while", False),
        ("changed", True),
        ("product", True),
    ],
)
def test_where_it_is_so(tmp_path, name, shares):
    text = gradient_of(tmp_path, TEXT, name)
    assert ("ties" in text) == shares, text
    assert not shares or "_saved" not in text, text


def test_a_stored_one_is_read_where_it_stands(tmp_path, package):
    text = gradient_of(tmp_path, TEXT, "local")
    assert "h[i, j - 1] - go == h[i, j]" in text
    assert text.count("np.maximum(np.maximum(") == 1, text
    assert "== y[i]" not in gradient_of(tmp_path, TEXT, "of_products")
    d_s, d_go = package.local.vjp(np.zeros((1, 2, 2)), np.array(0.0))[1](np.ones(1))
    assert np.all(np.isfinite(d_s)) and np.isfinite(d_go)
