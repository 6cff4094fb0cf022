"""Shares of a logarithm of a sum of exponentials, of which only the shares are asked, take no logarithm."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import Op
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def log_cosh(p: real["D"], y: real["D"]) -> real[""]:
    d = p - y
    return np.mean(np.logaddexp(d, -d) - np.log(2.0))


@layer
def softplus_loss(x: real["D"], y: real["D"]) -> real[""]:
    return np.sum(np.logaddexp(0.0, x) - y * x)


@layer
def weighted(x: real["D"], a: Param[real["D"]]) -> real["D"]:
    return x * np.logaddexp(x, a) ** 2


@layer
def mixed(x: real["D"]) -> real["D"]:
    """The gradient asks for the logarithm itself, too."""
    s = np.logaddexp(x, 1.0 - x)
    return s * s + np.exp(x - s)
'''
NAMES = ["log_cosh", "softplus_loss", "weighted", "mixed"]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("shares"), "shares", TEXT)


def draw(name, batch, size):
    rng = np.random.default_rng(batch + size)
    x, y = rng.standard_normal((2, batch, size))
    return {"log_cosh": [x, y], "softplus_loss": [x, y], "weighted": [x, rng.standard_normal(size)]}.get(name, [x])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "size"), [(1, 1), (3, 9), (17, 40)])
def test_values_and_gradients(package, name, batch, size):
    agrees(getattr(package, name), draw(name, batch, size), np.random.default_rng(size), 1e-9, 3e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_away(package, dtype):
    """The share of the larger one is 1, that of the other one 0."""
    x = np.array([[-1e30, -200.0, 0.0, 200.0, 1e30, np.nan]], dtype)
    _, pullback = package.softplus_loss.vjp(x, np.zeros_like(x))
    d_x, _ = pullback(np.ones(1, dtype))
    assert np.allclose(d_x, [[0, 0, 0.5, 1, 1, np.nan]], atol=1e-30, equal_nan=True)


@pytest.mark.parametrize(("name", "left"), [("log_cosh", 0), ("softplus_loss", 0), ("mixed", 1)])
def test_logarithms_that_are_left(tmp_path, name, left):
    path = tmp_path / "shares.py"
    path.write_text(TEXT)
    kernels = {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path), upto="share").parts}
    ops = {p for s in walk(kernels[name, "backward"].body) for e in own_exprs(s) for p in parts(e)}
    assert sum(isinstance(p, Op) and p.op == "logaddexp" for p in ops) == left
