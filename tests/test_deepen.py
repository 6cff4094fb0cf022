"""What all steps of a recurrence multiply is one product behind the loop: for weights, and for what comes in."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, If, Product
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def plain(x: real["T D"], w: Param[real["D H"]], u: Param[real["H H"]]) -> real["T H"]:
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u)
        y[t] = h
    return y


@layer
def backwards(x: real["T D"], w: Param[real["D H"]], u: Param[real["H H"]]) -> real["T H"]:
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0] - 1, -1, -1):
        h = np.tanh(x[t] @ w + h @ u)
        y[t] = h
    return y


@layer
def looks_back(x: real["T D"], w: Param[real["D H"]], u: Param[real["H H"]]) -> real["T H"]:
    """Two steps ask for each x: its gradient is a sum."""
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(1, x.shape[0]):
        h = np.tanh(x[t] @ w + x[t - 1] @ w + h @ u)
        y[t] = h
    return y


@layer
def by_what_it_made(x: real["T H"], w: Param[real["H H"]], u: Param[real["H H"]]) -> real["T H"]:
    """What comes in is multiplied twice: the gradient of the first product is asked for in each step."""
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0]):
        h = np.tanh((x[t] @ w) @ w + h @ u)
        y[t] = h
    return y


@layer
def each_its_own(x: real["T D"], w: Param[real["T D H"]], u: Param[real["H H"]]) -> real["T H"]:
    """A matrix for each step: no product for all of them."""
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w[t] + h @ u)
        y[t] = h
    return y
'''
SIZES = {"T": 5, "D": 3, "H": 4}
NAMES = [line[4 : line.index("(")] for line in TEXT.split("\n") if line.startswith("def ")]


def draw(name: str, examples: int, dtype: type, **sizes: int) -> list[np.ndarray]:
    rng, sizes = np.random.default_rng(examples), SIZES | sizes
    line = next(line for line in TEXT.split("\n") if line.startswith(f"def {name}("))
    shapes = [part.split('"')[1].split() for part in line.split("->")[0].split("real[")[1:]]
    first = [(examples,), (), ()]
    return [rng.standard_normal((*e, *(sizes[a] for a in s))).astype(dtype) for e, s in zip(first, shapes, strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("deep")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "deep_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("examples", [1, 3, 17])
def test_values_and_gradients(package, name, examples):
    agrees(getattr(package, name), draw(name, examples, np.float64), np.random.default_rng(examples), 1e-10, 3e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [{"T": 1}, {"T": 40, "D": 20, "H": 33}])
def test_bits_do_not_hang_on_threads(package, name, sizes):
    same_bits(getattr(package, name), draw(name, 9, np.float32, **sizes))


@pytest.mark.parametrize("name", ["plain", "backwards"])
@pytest.mark.parametrize("method", ["backward", "pullback"])
def test_what_comes_in_has_one_product_for_all_steps(package, folder, name, method):
    kernel = kernels_in(folder / "deep_of.py")[name, method]
    outside = {s.buffer.removesuffix("_flat") for s in kernel.body if isinstance(s, Product)}
    assert {"d_x", "d_w"} <= outside
    inside = [s for loop in kernel.body if isinstance(loop, (For, If)) for s in walk((loop,)) if isinstance(s, Product)]
    assert not outside & {s.buffer.removesuffix("_flat") for s in inside}
