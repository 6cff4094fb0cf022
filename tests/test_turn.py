"""A matrix that products in a loop read across is turned once: where it is, where it is not, and what comes of it."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import For, Product
from layerc.transpile.passes.tree import walk

SOURCE = '''
import numpy as np
from layerc import Param, layer, real


@layer
def recurrent(x: real["T H"], w: Param[real["H H"]]) -> real["T H"]:
    """Its gradient multiplies with w.T at each step."""
    h = np.zeros(x.shape[1])
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w)
        y[t] = h
    return y


@layer
def across(x: real["T H"], w: Param[real["2*H H"]]) -> real["T H"]:
    """Parts of a matrix, each turned: the sum of its halves."""
    h = np.zeros(x.shape[1])
    y = np.zeros_like(x)
    d = x.shape[1]
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w[:d].T + (h * h) @ w[d:].T)
        y[t] = h
    return y


@layer
def changing(x: real["T H"], w: real["T H H"]) -> real["T H"]:
    """Another matrix at each step."""
    h = np.zeros(x.shape[1])
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w[t].T)
        y[t] = h
    return y


@layer
def sliding(x: real["T H"], w: Param[real["T+H H"]]) -> real["T H"]:
    # Another part of a matrix at each step.
    h = np.zeros(x.shape[1])
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w[t : t + x.shape[1]].T)
        y[t] = h
    return y


@layer(batched=True)
def fading(x: real["N T H"], w: Param[real["H H"]]) -> real["N T H"]:
    # A matrix that the loop changes.
    m = w.copy()
    h = np.zeros((x.shape[0], x.shape[2]))
    y = np.zeros_like(x)
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h @ m.T)
        m *= 0.5
        y[:, t] = h
    return y


@layer(batched=True)
def once(x: real["N H"], w: Param[real["H H"]]) -> real["N H"]:
    """One product of all rows: it turns the matrix itself."""
    return x @ w.T
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("turn") / "turning.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def package(file):
    return built_from(file.parent, "turning", SOURCE)


@pytest.fixture(scope="module")
def kernels(file):
    return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(file)).parts}


def turned(kernel):
    return [b.name for b in kernel.buffers if b.name.endswith("_turned") or "_turned_" in b.name]


def test_what_is_turned(kernels):
    assert turned(kernels["recurrent", "pullback"]) == ["w_turned"]
    assert not turned(kernels["recurrent", "predict"]), "memory goes along its columns"
    assert len(turned(kernels["across", "predict"])) == 2, "each half, from where it begins"
    for name in ("changing", "sliding", "fading"):
        assert not turned(kernels[name, "predict"]), name
    assert not turned(kernels["once", "predict"]), "no loop around it"
    kernel = kernels["recurrent", "pullback"]
    loops = [s for s in kernel.body if isinstance(s, For) and any(a == "w_turned" for a in _stored(s))]
    assert len(loops) == 1, "turned once, outside of all loops"


def _stored(stmt):
    return {getattr(s, "buffer", None) for s in walk((stmt,)) if not isinstance(s, Product)}


@pytest.mark.parametrize("name", ["recurrent", "across", "changing", "sliding", "fading"])
@pytest.mark.parametrize(("steps", "size"), [(0, 3), (1, 1), (2, 3), (5, 16), (3, 17)])
def test_values_and_gradients(package, name, steps, size):
    rng = np.random.default_rng(steps + size)
    shape = {"across": (2 * size, size), "changing": (steps, size, size), "sliding": (steps + size, size)}
    shape = shape.get(name, (size, size))
    steps = (4, steps) if name == "fading" else (steps,)
    agrees(getattr(package, name), [rng.standard_normal((*steps, size)), rng.standard_normal(shape)], rng, 1e-11, 1e-6)


def test_of_many_rows(package):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((21, 4, 18)), rng.standard_normal((18, 18))
    y, pullback = package.recurrent.vjp(x, w)
    dy = rng.standard_normal(y.shape)
    d_x, d_w = pullback(dy)
    singly = [package.recurrent.vjp(x[k], w)[1](dy[k]) for k in range(21)]
    np.testing.assert_allclose(d_x, [s[0] for s in singly], 1e-10, 1e-10)
    np.testing.assert_allclose(d_w, np.sum([s[1] for s in singly], axis=0), 1e-10, 1e-10)
