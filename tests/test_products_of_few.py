"""The gradient of a product of two is the other one: nothing is divided, and rows of it lie side by side in vectors."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of, kernels_in
from thorough import agrees

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import in_vectors, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def areas(x: real["K 2"]) -> real["K"]:
    return np.prod(x, axis=1)


@layer
def columns(x: real["2 K"]) -> real["1 K"]:
    return np.prod(x, axis=0, keepdims=True)


@layer
def pair(x: real["2"]) -> real:
    return np.prod(x)


@layer
def corner(x: real["K 1 2"]) -> real["K"]:
    return np.prod(x, axis=(1, 2))


@layer
def single(x: real["K 1"]) -> real["K"]:
    return np.prod(x, axis=1)


@layer
def three(x: real["K 3"]) -> real["K"]:
    return np.prod(x, axis=1)


@layer
def boxes(p: real["K 4"], size: Param[real["2"]]) -> real:
    """Areas of boxes, and of what they have in common with one: written piece by piece, and added to."""
    half = 0.5 * size * np.exp(p[:, 2:])
    lo = p[:, :2] - half
    hi = p[:, :2] + half
    area = np.prod(hi - lo, axis=1)
    inter = np.prod(np.maximum(np.minimum(hi, 1.0) - np.maximum(lo, 0.0), 0), axis=1)
    return np.mean(inter / (area + 1 - inter))
'''
SHAPES = {
    "areas": [(5, 2)],
    "columns": [(2, 5)],
    "pair": [(2,)],
    "corner": [(4, 1, 2)],
    "single": [(4, 1)],
    "three": [(5, 3)],
    "boxes": [(70, 4), (2,)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("few")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "few_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 3, 18])
@pytest.mark.parametrize(("dtype", "tight", "close"), [(np.float64, 1e-11, 1e-5), (np.float32, 1e-5, 3e-3)])
def test_values_and_gradients(package, name, examples, dtype, tight, close):
    rng = np.random.default_rng(examples)
    shapes = [shape if name == "boxes" and k else (examples, *shape) for k, shape in enumerate(SHAPES[name])]
    agrees(getattr(package, name), [rng.uniform(0.2, 0.9, s).astype(dtype) for s in shapes], rng, tight, close)


@pytest.mark.parametrize("name", ["areas", "three"])
def test_zeros_and_what_is_no_number(package, name):
    x = np.array([[[0, 0, 2], [0, 3, 2], [4, 0, 2], [np.inf, 2, 1], [1e300, 1e300, 1]]])[:, :, : SHAPES[name][0][1]]
    _, pullback = package.__dict__[name].vjp(x)
    others = np.stack([np.prod(np.delete(x, k, axis=2), axis=2) for k in range(x.shape[2])], axis=2)
    there = slice(None) if name == "areas" else slice(3)  # dividing the product loses those of infinities
    np.testing.assert_array_equal(pullback(np.ones((1, 5)))[0][:, there], others[:, there])


@pytest.mark.parametrize("shape", [(2, 0, 2), (0, 3, 2), (1, 1, 2)])
def test_empty_and_one(package, shape):
    y, pullback = package.areas.vjp(np.full(shape, 3.0))
    np.testing.assert_array_equal(y, np.full(shape[:2], 9.0))
    np.testing.assert_array_equal(pullback(np.ones(shape[:2]))[0], np.full(shape, 3.0))


@pytest.mark.parametrize("name", ["areas", "columns", "pair", "corner", "single"])
def test_nothing_is_divided(tmp_path, name):
    text = gradient_of(tmp_path, TEXT, name)
    assert "where" not in text, text
    assert "/" not in text, text


@pytest.mark.optimised
def test_rows_are_side_by_side(package, folder):
    """All that is done with a box is in one loop, without one inside, and each place is stored once."""
    kernel = kernels_in(folder / "few_of.py")["boxes", "backward"]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s)]
    stored = [[s for s in loop.body if isinstance(s, Store) and s.buffer == "d_p"] for loop in loops]
    assert any(len(stores) == 4 for stores in stored)
    assert not any(s.op for stores in stored for s in stores)
