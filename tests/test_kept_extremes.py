"""The largest that a branch keeps: its derivative goes to the one that was kept, once it is known where that is."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import built_from, gradient_of
from thorough import agrees

TEXT = '''
import math
import numpy as np
from layerc import bool_, i64, layer, real


@layer
def rows(x: real["T V"]) -> real["T V"]:
    """A softmax as one writes it in C."""
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        m = x[t, 0]
        for k in range(1, x.shape[1]):
            if x[t, k] > m:
                m = x[t, k]
        s = 0.0
        for k in range(x.shape[1]):
            s += math.exp(x[t, k] - m)
        for k in range(x.shape[1]):
            y[t, k] = m * math.exp(x[t, k] - m) / s
    return y


@layer
def first(x: real["N"]) -> real[""]:
    m = -1e30
    for k in range(x.shape[0]):
        if m < x[k]:
            m = x[k]
    return m * m


@layer
def last(x: real["N"]) -> real[""]:
    m = -1e30
    for k in range(x.shape[0]):
        if x[k] >= m:
            m = x[k]
    return m * m


@layer
def least(x: real["N"], start: real[""]) -> real[""]:
    m = start
    for k in range(x.shape[0]):
        if m > x[k]:
            m = x[k]
    return m * start


@layer
def least_last(x: real["N"], start: real[""]) -> real[""]:
    m = start
    for k in range(x.shape[0]):
        if x[k] <= m:
            m = x[k]
    return m * start


@layer
def of_some(x: real["N"], keep: bool_["N"]) -> real[""]:
    m = 0.5
    for k in range(x.shape[0]):
        if not keep[k]:
            continue
        if x[k] > m:
            m = x[k]
    return m * 2.0


@layer
def of_sums(a: real["N"], b: real["N"]) -> real["2"]:
    """With the place, as of dynamic programming."""
    best = -1e30
    at = 0
    for k in range(a.shape[0]):
        v = a[k] - b[k]
        if v > best:
            best = v
            at = k
    return np.array([best * best, a[at]])


@layer
def of_products(a: real["N"], b: real["N"]) -> real[""]:
    """What may be rounded otherwise is left in a row."""
    best = -1e30
    for k in range(a.shape[0]):
        v = a[k] * b[k] + 0.1
        if v > best:
            best = v
    return best


@layer
def nearest(x: real["N D"], book: real["K D"]) -> real["N D"]:
    """As of a vector quantiser: with the place, of sums of a loop."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        best = 1e30
        at = 0
        for k in range(book.shape[0]):
            d = 0.0
            for c in range(x.shape[1]):
                d += (x[i, c] - book[k, c]) ** 2
            if d < best:
                best = d
                at = k
        for c in range(x.shape[1]):
            y[i, c] = book[at, c] * best
    return y


@layer
def chamfer(a: real["N 2"], b: real["M 2"]) -> real[""]:
    """Equal ones share."""
    total = 0.0
    for i in range(len(a)):
        best = np.inf
        for j in range(len(b)):
            best = min(best, (a[i, 0] - b[j, 0]) ** 2 + (a[i, 1] - b[j, 1]) ** 2)
        total += best
    return total


@layer
def of_earlier(x: real["N"]) -> real["N"]:
    """As many as a counter says, backwards, from some place on."""
    y = np.zeros_like(x)
    for i in range(2, x.shape[0]):
        top = x[i]
        for j in reversed(range(1, i)):
            top = max(top, x[j] * x[i] - 0.3 * x[j])
        y[i] = top
    return y


@layer
def of_pairs(x: real["N M"]) -> real[""]:
    """One number does not tell where it is."""
    best = -1e30
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best = x[i, j]
    return best * 2.0


@layer
def along(x: real["N"]) -> real["N"]:
    """Used on the way: the largest so far."""
    y = np.zeros_like(x)
    m = x[0]
    for k in range(x.shape[0]):
        if x[k] > m:
            m = x[k]
        y[k] = m
    return y


@layer
def backwards(x: real["N"]) -> real[""]:
    m = 0.1
    for k in reversed(range(x.shape[0])):
        if x[k] > m:
            m = x[k]
    return m


@layer
def segments(x: real["N H"], ends: i64["S"]) -> real["S H"]:
    """Of parts whose ends are read."""
    y = np.zeros((ends.shape[0], x.shape[1]))
    begin = 0
    for s in range(ends.shape[0]):
        for h in range(x.shape[1]):
            m = -5.0
            for n in range(begin, ends[s]):
                if x[n, h] > m:
                    m = x[n, h]
            y[s, h] = m
        begin = ends[s]
    return y
'''
SHAPES = {
    "rows": [(3, 21)],
    "first": [(40,)],
    "last": [(40,)],
    "least": [(5,), ()],
    "least_last": [(5,), ()],
    "of_some": [(37,)],
    "of_sums": [(33,), (33,)],
    "of_products": [(6,), (6,)],
    "nearest": [(4, 3), (40, 3)],
    "chamfer": [(17, 2), (9, 2)],
    "of_earlier": [(70,)],
    "of_pairs": [(3, 5)],
    "along": [(9,)],
    "backwards": [(7,)],
    "segments": [(12, 5)],
}
KEPT = (
    *("rows", "first", "last", "least", "least_last", "of_some", "of_sums", "segments"),
    *("of_products", "nearest"),
)
IN_A_ROW = ("of_products", "nearest", "chamfer", "of_earlier")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("kept_extremes"), "kept_extremes", TEXT)


def _values(name, rng, dtype, examples=19):
    values = [np.asarray(rng.standard_normal((examples, *shape)), dtype) for shape in SHAPES[name]]
    if name == "of_some":
        values.append(rng.random((examples, 37)) < 0.5)
    if name == "segments":
        values.append(np.sort(rng.integers(0, 13, (examples, 4)), axis=1))
    return values


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_gradients(package, name, dtype):
    rng = np.random.default_rng(3)
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (1e-5, 1e-3)
    agrees(getattr(package, name), _values(name, rng, dtype), rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_where_it_is_so(tmp_path, name):
    text = gradient_of(tmp_path, TEXT, name)
    assert bool(re.search(r"(at(_\d)?) = np.m\w+\(\1, np.where", text)) == (name in KEPT), text
    assert name not in KEPT or "m_saved" not in text, text
    assert ("best_of = " in text or "top_of = " in text) == (name in IN_A_ROW), text


def test_equal_ones_in_a_row_share(package):
    a, b = np.zeros((1, 2)), np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, -1.0]])
    d_a, d_b = _gradient(package.chamfer, a, b)
    np.testing.assert_allclose(d_b, np.array([[2, 0], [0, 2], [0, 0], [0, -2]]) / 3)
    np.testing.assert_allclose(d_a, [[-2 / 3, 0]])


def test_of_equal_ones_in_a_row_the_first_is_kept(package):
    x, book = np.zeros((1, 3)), np.array([[2.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    d_x, d_book = _gradient(package.nearest, x, book)
    np.testing.assert_allclose(d_x, [[0, -2, 0]])
    np.testing.assert_allclose(d_book, [[0, 0, 0], [1, 3, 1], [0, 0, 0], [0, 0, 0]])


def _gradient(layer, *values):
    y, pullback = layer.vjp(*[np.asarray(v)[None] for v in values])
    return [d[0] for d in pullback(np.ones_like(y)) if d is not None]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [2, 7, 16, 17, 40, 64, 100])
def test_of_equal_ones_one_is_kept(package, n, dtype):
    """As the branch says: the first, or the last; wherever in a vector, or behind the last one, that is."""
    rng = np.random.default_rng(n)
    for _ in range(20):
        x = rng.integers(-2, 3, n).astype(dtype)
        equal = np.flatnonzero(x == x.max())
        for layer, place in ((package.first, equal[0]), (package.last, equal[-1])):
            expected = np.zeros(n, dtype)
            expected[place] = 2 * x.max()
            np.testing.assert_array_equal(_gradient(layer, x)[0], expected)


def test_what_was_there_before(package):
    """It is kept against equal ones, or is not."""
    x, start = np.array([3.0, 2.0, 2.0, 5.0]), np.array(2.0)
    np.testing.assert_array_equal(_gradient(package.least, x, start)[0], [0, 0, 0, 0])
    np.testing.assert_array_equal(_gradient(package.least, x, start)[1], 4)
    np.testing.assert_array_equal(_gradient(package.least_last, x, start)[0], [0, 0, 2, 0])
    np.testing.assert_array_equal(_gradient(package.least_last, x, start)[1], 2)


@pytest.mark.parametrize("n", [3, 20, 50])
def test_nan_is_not_greater(package, n):
    """NaN is left out, as Python's comparison does; where all are, what was there before is kept."""
    x = np.arange(n, dtype=float)
    x[[0, n - 1]] = np.nan
    for layer in (package.first, package.last):
        y = layer(x[None])
        assert y == (n - 2.0) ** 2
        expected = np.zeros(n)
        expected[n - 2] = 2 * (n - 2)
        np.testing.assert_array_equal(_gradient(layer, x)[0], expected)
        np.testing.assert_allclose(layer(np.full((1, n), np.nan)), [1e60])
        np.testing.assert_array_equal(_gradient(layer, np.full(n, np.nan))[0], np.zeros(n))
    (d_start,) = _gradient(package.least, np.full(n, np.nan), np.array(3.0))[1:]
    assert d_start == 6


@pytest.mark.parametrize("n", [0, 1])
def test_few(package, n):
    x = np.full(n, 3.0)
    np.testing.assert_array_equal(_gradient(package.first, x)[0], 2 * x)
    np.testing.assert_array_equal(_gradient(package.last, x)[0], 2 * x)
    np.testing.assert_array_equal(_gradient(package.of_some, np.full(37, 3.0), np.zeros(37, bool))[0], np.zeros(37))
