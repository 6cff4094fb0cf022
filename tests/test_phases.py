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
'''
SHAPES = {
    "softmax": [(3, 5)],
    "three_times": [(3, 5), (5,)],
    "scores": [(4, 3), (4, 3)],
    "planes": [(3, 4)],
    "shifted": [(5,)],
    "a_part": [(5,)],
    "on_a_branch": [(5,)],
}
NOTHING_SAVED = ("softmax", "three_times", "scores", "planes")


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
    assert "d_total += -(dy[t, j_3] * y[t, j_3] / total)" in text, text


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 2, 3), (1, 1, 1)])
def test_empty_and_one(package, shape):
    y, pullback = package.softmax.vjp(np.ones(shape))
    np.testing.assert_array_equal(y, np.ones(shape))
    np.testing.assert_array_equal(pullback(np.ones(shape))[0], np.zeros(shape))
