"""What is made before a product and read behind it, for all examples, has room for all of them, whatever it is called:
an array and its reshaped view are one memory."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import Product
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def coupling(x: real["2*D"], w: Param[real["D D"]], v: Param[real["D D"]]) -> real["2 D"]:
    """Half of it is made before the second product, and half behind it."""
    d = x.shape[0] // 2
    a, b = x[:d], x[d:]
    s = np.tanh(a @ w)
    return np.reshape(np.concatenate((a, b * np.exp(s) + a @ v)), (2, d))


@layer
def flow(x: real["D"], w: Param[real["D//2 D//2"]], v: Param[real["D//2 D//2"]]) -> real["D"]:
    """The same where only the call tells that two halves are as long as the whole."""
    d = x.shape[0] // 2
    a, b = x[:d], x[d:]
    s = np.tanh(a @ w)
    return np.concatenate((a, b * np.exp(s) + a @ v))


@layer
def seen(x: real["D"], w: Param[real["D D"]]) -> real["2 D"]:
    """Made before the product by one name, read behind it by another one only."""
    h = np.concatenate((np.sin(x), np.cos(x)))
    pair = h.reshape(2, x.shape[0])
    return np.tanh(x @ w) * pair


@layer
def flat(x: real["H D"], w: Param[real["D D"]]) -> real["H*D"]:
    """A matrix that is a vector behind the product."""
    h, d = x.shape
    e = np.exp(-x * x)
    z = e[0] @ w
    long = e.reshape(h * d)
    return long * np.sum(z) + long * long


@layer
def rows(x: real["T D"], w: Param[real["D D"]]) -> real["T D"]:
    """In a loop of the user."""
    t, d = x.shape
    y = np.zeros((t, d))
    for i in range(t):
        h = np.concatenate((np.sin(x[i]), np.cos(x[i])))
        z = np.tanh(x[i] @ w)
        pair = h.reshape(2, d)
        y[i] = pair[0] * z + pair[1] * (z @ w)
    return y
'''

SHAPES = {
    "coupling": [(6,), (3, 3), (3, 3)],
    "flow": [(6,), (3, 3), (3, 3)],
    "seen": [(5,), (5, 5)],
    "flat": [(3, 4), (4, 4)],
    "rows": [(5, 4), (4, 4)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("views")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "views_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 2, 5, 18])
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-5, 2e-3)])
def test_values_and_gradients(package, name, examples, dtype, tight, close):
    rng = np.random.default_rng(examples)
    first, *weights = SHAPES[name]
    values = [rng.standard_normal((examples, *first)), *map(rng.standard_normal, weights)]
    agrees(getattr(package, name), [np.asarray(v / 2, dtype) for v in values], rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_bits_on_any_threads(package, name):
    rng = np.random.default_rng(0)
    first, *weights = SHAPES[name]
    values = [rng.standard_normal((70, *first)), *map(rng.standard_normal, weights)]
    same_bits(getattr(package, name), [np.asarray(v / 2, "f4") for v in values])


@pytest.mark.parametrize(("name", "least"), [("flow", 2), ("seen", 1)])
def test_they_are_products(folder, package, name, least):
    kernel = kernels_in(folder / "views_of.py")[name, "predict"]
    assert sum(isinstance(s, Product) for s in walk(kernel.body)) >= least
