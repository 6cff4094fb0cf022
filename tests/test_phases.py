"""What an array held before a loop went over it has a name of its own: the gradient of work in place saves nothing."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of
from thorough import agrees

TEXT = '''
import numpy as np
from layerc import i64, layer, real


@layer
def softmax(x: real["T S"]) -> real["T S"]:
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        top = -np.inf
        for j in range(x.shape[1]):
            top = max(top, x[t, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[t, j] = np.exp(x[t, j] - top)
            total += y[t, j]
        for j in range(x.shape[1]):
            y[t, j] /= total
    return y


@layer
def three_times(x: real["T S"], g: real["S"]) -> real["T S"]:
    """One loop after the other, in place, and each reads what the one before has left."""
    y = np.zeros((x.shape[0], x.shape[1]))
    for t in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            y[t, j] = np.sin(x[t, j])
            mean += y[t, j] / x.shape[1]
        var = 0.0
        for j in range(x.shape[1]):
            y[t, j] = (y[t, j] - mean) ** 2 + y[t, j]
            var += y[t, j] * y[t, j]
        for j in range(x.shape[1]):
            if g[j] > 0:
                mean += y[t, j] * g[j]
        for j in range(x.shape[1]):
            y[t, j] = np.tanh(y[t, j] * g[j] + mean) / np.sqrt(var + 0.1)
    return y


@layer
def scores(q: real["T D"], k: real["T D"]) -> real["T"]:
    """Sums into zeros, then exponentials, in one private array."""
    n, d = q.shape
    y = np.zeros(n)
    for i in range(n):
        s = np.zeros(n)
        for j in range(i + 1):
            for c in range(d):
                s[j] += q[i, c] * k[j, c]
        total = 0.0
        for j in range(i + 1):
            s[j] = np.exp(0.3 * s[j])
            total += s[j] * s[j]
        y[i] = np.sum(s) / total
    return y


@layer
def planes(x: real["H W"]) -> real["H W"]:
    """Two loops, one in the other."""
    y = np.zeros_like(x)
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * x[i, j] + 1
            total += np.log(y[i, j])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] ** 2 / (1 + total * total)
    return y


@layer
def shifted(x: real["S"]) -> real["S"]:
    """The last loop reads its neighbour: that is none of the places it goes over one by one."""
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        y[j] = np.sin(x[j])
    for j in range(1, x.shape[0]):
        y[j] = y[j] * y[j - 1]
    return y


@layer
def a_part(x: real["S"]) -> real["S"]:
    """The last loop leaves some of what was there."""
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        y[j] = np.exp(x[j])
    for j in range(1, x.shape[0]):
        y[j] = y[j] * y[j]
    return y


@layer
def on_a_branch(x: real["S"]) -> real["S"]:
    y = np.zeros_like(x)
    for j in range(x.shape[0]):
        y[j] = np.exp(x[j])
    for j in range(x.shape[0]):
        if x[j] > 0.1:
            y[j] = y[j] * y[j]
    return y

@layer
def masked(x: real["T T"], keep: real["T"]) -> real["T T"]:
    """A softmax of what is kept, of triangular rows: the rest is 0, as it was."""
    T = x.shape[0]
    y = np.zeros((T, T))
    for t in range(T):
        top = 0.0
        for j in range(t + 1):
            if keep[j] > 0:
                top = max(top, x[t, j])
        total = np.exp(-top)
        for j in range(t + 1):
            if keep[j] > 0:
                y[t, j] = np.exp(x[t, j] - top)
                total += y[t, j]
        for j in range(t + 1):
            y[t, j] /= total
    return y


@layer
def added_to_zeros(x: real["T S"]) -> real["T S"]:
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        total = 1.0
        for j in range(x.shape[1]):
            if x[t, j] > 0.1:
                y[t, j] += np.exp(x[t, j])
            total += y[t, j] * y[t, j]
        for j in range(x.shape[1]):
            y[t, j] = y[t, j] * y[t, j] / total
    return y


@layer
def from_ones(x: real["T S"]) -> real["T S"]:
    """What is not stored is 1."""
    y = np.ones((x.shape[0], x.shape[1]))
    for t in range(x.shape[0]):
        total = 1.0
        for j in range(x.shape[1]):
            if x[t, j] > 0.1:
                y[t, j] = np.exp(x[t, j])
            total += y[t, j] * y[t, j]
        for j in range(x.shape[1]):
            y[t, j] = y[t, j] * y[t, j] / total
    return y


@layer
def handed_on(x: real["T S"]) -> real["T S"]:
    """What is not stored is what the row before has left there."""
    y = np.zeros_like(x)
    n = x.shape[0]
    for t in range(n):
        total = 1.0
        for j in range(x.shape[1]):
            if x[t, j] > 0.1:
                y[t, j] = np.exp(x[t, j])
            total += y[t, j] * y[t, j]
        for j in range(x.shape[1]):
            y[t, j] = y[t, j] * y[t, j] / total
        if t + 1 < n:
            for j in range(x.shape[1]):
                y[t + 1, j] = np.sin(y[t, j])
    return y


@layer
def two_rounds(x: real["T S"]) -> real["T S"]:
    """What is not stored is, in the second round, what the first one has left."""
    y = np.zeros_like(x)
    for r in range(2):
        for t in range(x.shape[0]):
            total = 1.0
            for j in range(x.shape[1]):
                if x[t, j] > 0.1 * r:
                    y[t, j] = np.exp(x[t, j]) + r
                total += y[t, j] * y[t, j]
            for j in range(x.shape[1]):
                y[t, j] = y[t, j] * y[t, j] / total
    return y
'''
SHAPES = {
    "masked": [(5, 5), (5,)],
    "added_to_zeros": [(3, 5)],
    "from_ones": [(3, 5)],
    "handed_on": [(4, 5)],
    "two_rounds": [(3, 5)],
    "softmax": [(3, 5)],
    "three_times": [(3, 5), (5,)],
    "scores": [(4, 3), (4, 3)],
    "planes": [(3, 4)],
    "shifted": [(5,)],
    "a_part": [(5,)],
    "on_a_branch": [(5,)],
}
NOTHING_SAVED = ("masked", "added_to_zeros", "softmax", "three_times", "scores", "planes")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("phases"), "phases", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [1, 19])
def test_values_and_gradients(package, name, dtype, batch):
    rng = np.random.default_rng(3)
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (1e-5, 2e-3)
    values = [rng.standard_normal((batch, *shape)).astype(dtype) for shape in SHAPES[name]]
    agrees(getattr(package, name), values, rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_saved(tmp_path, name):
    text = gradient_of(tmp_path, TEXT, name)
    assert ("_saved" not in text) == (name in NOTHING_SAVED), text


def test_a_softmax_is_what_one_would_write(tmp_path):
    """No derivative flows through the largest, and the output is what was divided."""
    text = gradient_of(tmp_path, TEXT, "softmax")
    assert "ties" not in text, text
    assert "ties" not in gradient_of(tmp_path, TEXT, "masked")
    assert "d_total += -(dy[t, j_3] * y[t, j_3] / total)" in text, text


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 2, 3), (1, 1, 1)])
def test_empty_and_one(package, shape):
    y, pullback = package.softmax.vjp(np.ones(shape))
    np.testing.assert_array_equal(y, np.ones(shape))
    np.testing.assert_array_equal(pullback(np.ones(shape))[0], np.zeros(shape))


def test_of_what_is_kept(package):
    """Rows of which nothing is kept, NaN and infinities that are not, and what is read is NaN."""
    rng = np.random.default_rng(0)
    x, keep = rng.standard_normal((2, 6, 6)), np.array([[-1, 1, -1, 1, 1, -1], [-1.0] * 6])
    x[:, :, 2], x[:, :, 5], x[0, 4, 3] = np.nan, np.inf, np.nan
    y, pullback = package.masked.vjp(x, keep)
    np.testing.assert_allclose(y, package.masked.reference(x, keep), 1e-12)
    d_x = pullback(np.ones(x.shape))[0]
    assert np.isnan(d_x[0, 4, 3])
    d_x[0, 4, [1, 3, 4]] = 0
    assert np.isfinite(d_x).all()
    assert (d_x[:, :, [0, 2, 5]] == 0).all()
