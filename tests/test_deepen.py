"""What all steps of a recurrence multiply is one product behind the loop: for weights, and for what comes in."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
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
def gated(
    x: real["T D"], w: Param[real["D H"]], u: Param[real["H H"]], v: Param[real["D H"]], z: Param[real["H H"]]
) -> real["T H"]:
    """What each step makes is multiplied on both sides, and steps and examples are numbered in two orders."""
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0]):
        f = 1 / (1 + np.exp(-(x[t] @ w + h @ u)))
        c = np.tanh(x[t] @ v + (f * h) @ z)
        h = (1 - f) * h + f * c
        y[t] = h
    return y


@layer
def twice(x: real["T D"], w: Param[real["D H"]], u: Param[real["H H"]]) -> real["T H"]:
    """One matrix is asked for twice in a step: its gradient is the sum of two products."""
    h = np.zeros(u.shape[0])
    y = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u)
        h = np.tanh(h @ u)
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
    head = TEXT.split(f"def {name}(")[1].split("->")[0]
    shapes = [part.split('"')[1].split() for part in head.split("real[")[1:]]
    first = [(examples,), *[()] * (len(shapes) - 1)]
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
    outside = products_of(kernel.body)
    assert {"d_x", "d_w"} <= outside
    inside = [s for loop in kernel.body if isinstance(loop, (For, If)) for s in walk((loop,))]
    assert not outside & products_of(inside)


@pytest.mark.parametrize("name", ["gated", "twice"])
@pytest.mark.parametrize("method", ["backward", "pullback"])
def test_no_gradient_of_a_parameter_is_added_to_in_the_recurrence(package, folder, name, method):
    kernel = kernels_in(folder / "deep_of.py")[name, method]
    inside = [s for loop in kernel.body if isinstance(loop, (For, If)) for s in walk((loop,))]
    gradients = {f"d_{p}" for p in arguments(name)}
    assert gradients <= products_of(kernel.body) and not gradients & products_of(inside)


@pytest.mark.parametrize("method", ["backward", "pullback"])
def test_the_reverse_makes_no_product_of_the_forward_again(package, folder, method):
    """Of `f` the sigmoid's exponential crosses, and not the product in it."""
    kernel = kernels_in(folder / "deep_of.py")["gated", method]
    of_weights = {s for s in walk(kernel.body) if isinstance(s, Product) and s.right.buffer in ("w", "u", "v", "z")}
    forward = {s for s in of_weights if s.buffer != "d_x" and s.right.index[-1] == Dim.of(s.columns[0])}
    assert len({s.right.buffer for s in forward}) == (4 if method == "backward" else 0)
    texts = " ".join(str(s) for s in walk(kernel.body))
    assert "exp_saved" in texts
    assert "f_saved" not in texts


def arguments(name: str) -> list[str]:
    return re.findall(r"(\w+): (?:Param\[)?real", TEXT.split(f"def {name}(")[1].split("->")[0])


def products_of(body) -> set[str]:
    return {re.sub(r"_(flat(_\d+)?|part)$", "", s.buffer) for s in body if isinstance(s, Product)}
