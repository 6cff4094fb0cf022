"""A number that an iteration's loops make, and its reverse reads, is left by the forward of training."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.build.driver import read_module, show

TEXT = '''
import numpy as np
from layerc import i64, layer, real


@layer
def log_sum(x: real["T S"]) -> real["T"]:
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        top = -np.inf
        for j in range(x.shape[1]):
            top = max(top, x[t, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += np.exp(x[t, j] - top)
        y[t] = top + np.log(total)
    return y


@layer
def norm(x: real["T S"], g: real["S"]) -> real["T S"]:
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        mean = 0.0
        for j in range(x.shape[1]):
            mean += x[t, j] / x.shape[1]
        var = 0.0
        for j in range(x.shape[1]):
            var += (x[t, j] - mean) ** 2 / x.shape[1]
        scale = 1 / np.sqrt(var + 0.01)
        for j in range(x.shape[1]):
            y[t, j] = (x[t, j] - mean) * scale * g[j]
    return y


@layer
def on_a_branch(x: real["T S"], label: i64["T"]) -> real["T"]:
    """Rows without a label have no sum."""
    y = np.zeros(x.shape[0])
    for t in range(1, x.shape[0]):
        total = 1.0
        for j in range(x.shape[1]):
            if label[t] > j:
                total += np.exp(x[t, j])
        y[t] = np.log(total) * x[t - 1, 0]
    return y


@layer
def window(x: real["T S"]) -> real["T"]:
    """Three elements are made again."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        total = 0.0
        for j in range(3):
            total += np.exp(x[t, j])
        y[t] = np.log(total)
    return y


@layer
def running(x: real["T S"]) -> real["T"]:
    """A number goes on from row to row."""
    y = np.zeros(x.shape[0])
    total = 1.0
    for t in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += np.exp(x[t, j]) / total
        y[t] = np.log(total)
    return y
'''
SHAPES = {"log_sum": [(3, 5)], "norm": [(3, 5), (5,)], "on_a_branch": [(4, 3)], "window": [(3, 5)], "running": [(3, 4)]}
KEPT = {"log_sum": {"top_kept", "total_kept"}, "norm": {"mean_kept", "var_kept"}, "on_a_branch": {"total_kept"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("residuals")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "residuals", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [1, 19])
def test_values_and_gradients(package, name, dtype, batch):
    rng = np.random.default_rng(3)
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (1e-5, 2e-3)
    values = [rng.standard_normal((batch, *shape)).astype(dtype) for shape in SHAPES[name]]
    if name == "on_a_branch":
        values.append(rng.integers(-1, 4, (batch, 4)))
    agrees(getattr(package, name), values, rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_kept(package, folder, name):
    """And what is kept needs no loop over the row to be made again."""
    text = show(read_module(folder / "residuals.py"), "kept", name)
    kept = text[text.index("d_" + name) :] if name in KEPT else ""
    for one in KEPT.get(name, ()):
        assert f"{one}: Memory[" in kept, text
    assert "_kept" not in text or name in KEPT, text
    if name in ("log_sum", "norm"):
        assert " range(" in kept
        assert "_kept[t]" in kept
        assert "max(" not in kept, text


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 2, 3), (1, 1, 1)])
def test_empty_and_one(package, shape):
    with np.errstate(all="ignore"):
        y, pullback = package.log_sum.vjp(np.ones(shape))
        (gradient,) = pullback(np.ones_like(y))
    np.testing.assert_array_equal(gradient, np.ones(shape))
