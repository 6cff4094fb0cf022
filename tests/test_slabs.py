"""Sweeps that wait for sums over a batch, one channel after the other where a cache holds one."""

from __future__ import annotations

import numpy as np
import pytest
from nets import FAMILIAR, built_from, built_with, kernels_in, layers_of
from thorough import agrees, same_bits

from layerc.transpile.ir import For, If
from layerc.transpile.passes.tree import walk

PASS = "layerc.transpile.passes.slabs"
SOURCE = '''
import numpy as np
from layerc import Param, layer, real


@layer(batched=True)
def scaled(x: real["N C H W"]) -> real["N C H W"]:
    """By the largest of a channel."""
    top = np.max(np.abs(x), axis=(0, 2, 3), keepdims=True)
    return x / (top + 1.0)


@layer(batched=True)
def crossed(x: real["N C S"]) -> real["N C S"]:
    """Channels are not alone: one asks what the one before has summed up."""
    total = np.sum(x, axis=(0, 2))
    y = np.empty_like(x)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for s in range(x.shape[2]):
                y[n, c, s] = x[n, c, s] - total[max(c - 1, 0)]
    return y


@layer(batched=True)
def last(x: real["N S C"], weight: Param[real["C"]]) -> real["N S C"]:
    centred = x - np.mean(x, axis=(0, 1), keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=(0, 1), keepdims=True) + 1e-5) * weight


@layer(batched=True)
def once(x: real["N C S"], scale: Param[real["C"]]) -> real["N C S"]:
    """One sweep."""
    return np.sin(x) * scale[:, None]


'''
SOURCE += layers_of(FAMILIAR, "batch_norm")


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Channels are always outside."""
    always = {"ROW": 0, "SLAB": 1 << 40, "LEAST": 0, "BEYOND": -1}
    return built_with(PASS, always, tmp_path_factory.mktemp("slabs"), "outside", SOURCE)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    file = tmp_path_factory.mktemp("slabs") / "kernels.py"
    file.write_text(SOURCE)
    return kernels_in(file)


def is_split(kernel):
    return any(isinstance(s, If) and any(isinstance(x, For) and x.parallel for x in walk(s.then)) for s in kernel.body)


def test_which_are(kernels):
    for method in ("predict", "vjp", "pullback"):
        assert is_split(kernels["batch_norm", method]), method
    assert is_split(kernels["scaled", "predict"])
    for name in ("crossed", "last", "once"):
        assert not is_split(kernels[name, "predict"]), name


def test_one_loop_is_shared(kernels):
    """All that a channel needs, within an iteration: no sums of threads' parts."""
    (version,) = [s for s in kernels["batch_norm", "predict"].body if isinstance(s, If)]
    assert sum(isinstance(s, For) and s.parallel for s in walk(version.then)) == 1


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 8, 5), (2, 9, 64), (5, 33, 70), (4, 2, 1030), (0, 3, 4), (3, 4, 0)])
def test_values_and_gradients(outside, shape):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    channels = rng.standard_normal((2, shape[1]))
    if x.size:
        agrees(outside.batch_norm, [x, *channels], rng, 1e-10, 1e-6)
        agrees(outside.scaled, [x[..., None]], rng, 1e-10, 1e-6)
        agrees(outside.crossed, [x], rng, 1e-10, 1e-6)
    else:
        assert outside.batch_norm(x, *channels).shape == shape


def test_bits_do_not_hang_on_threads(outside):
    rng = np.random.default_rng(0)
    same_bits(outside.batch_norm, [rng.standard_normal((20, 9, 333)), *rng.standard_normal((2, 9))])


def test_of_large_arrays(tmp_path):
    """As shipped: beyond the caches they are the same as ever, and as exact."""
    rng = np.random.default_rng(0)
    package = built_from(tmp_path, "shipped", SOURCE)
    x = (rng.standard_normal((30, 90, 1000)) + 3).astype(np.float32)
    values = [x, *rng.standard_normal((2, 90)).astype(np.float32)]
    y, back = package.batch_norm.vjp(*values)
    np.testing.assert_array_equal(y, package.batch_norm(*values))
    want = package.batch_norm.reference(*(v.astype(float) for v in values))
    np.testing.assert_allclose(y, want, 1e-5, 1e-5)
    dy = rng.standard_normal(x.shape).astype(np.float32)
    exact = package.batch_norm.vjp(*(v.astype(float) for v in values))[1](dy.astype(float))
    for found, right in zip(back(dy), exact, strict=True):
        np.testing.assert_allclose(found, right, 1e-5, 1e-5 * np.abs(right).max())
