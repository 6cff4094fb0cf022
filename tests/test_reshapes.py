"""Shapes with -1 beside what divides: the extent is the quotient, and the call checks that nothing is left."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.transpile.dims import Dim

pytestmark = pytest.mark.heavy  # compiles for long

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def attention(
    x: real["H W C"], w: Param[real["C 3*C"]], *, heads: int = 2, window: int = 2
) -> real["(H//window)*(W//window) 3 heads window*window C//heads"]:
    """As it is written everywhere: windows, and the parts of their heads."""
    H, W, C = x.shape
    x = x.reshape(H // window, window, W // window, window, C).transpose(0, 2, 1, 3, 4)
    q = (x.reshape(-1, window * window, C) @ w).reshape(-1, window * window, 3, heads, C // heads)
    return q.transpose(0, 2, 3, 1, 4)


@layer
def there_and_back(x: real["T D"], *, heads: int = 2) -> real["T D"]:
    q = np.tanh(x.reshape(-1, heads, x.shape[1] // heads))
    return q.reshape(-1, x.shape[1]) + q.reshape(x.shape[0], -1)


@layer
def pieces(x: real["N"], *, k: int = 2) -> real["k+1"]:
    y = x.reshape(-1, k + 1)
    return np.sum(y * y, axis=0)


@layer
def parts(x: real["T D"], *, heads: int = 2) -> real["T*heads"]:
    y = x.reshape(-1, x.shape[1] // heads)
    return np.sum(y * y, axis=1)
'''
SHAPES = {"attention": [(4, 6, 4)], "there_and_back": [(3, 4)], "pieces": [(9,)], "parts": [(3, 4)]}
LEAVES = [("attention", (4, 6, 5)), ("there_and_back", (3, 5)), ("pieces", (8,)), ("parts", (3, 5))]
WEIGHTS = {"attention": lambda c: [np.random.default_rng(1).standard_normal((c, 3 * c))]}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("reshapes"), "reshapes", TEXT)


def _values(name, shape, examples):
    x = np.random.default_rng(examples).standard_normal((examples, *shape))
    return [x, *WEIGHTS.get(name, lambda c: [])(shape[-1])]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 19])
def test_values_and_gradients(package, name, examples):
    values = _values(name, *SHAPES[name], examples)
    agrees(getattr(package, name), values, np.random.default_rng(2), 1e-12, 1e-6)


@pytest.mark.parametrize(("name", "shape"), LEAVES)
def test_what_leaves_a_remainder(package, name, shape):
    for call in (getattr(package, name), getattr(package, name).vjp):
        with pytest.raises(ValueError, match=r"cannot reshape .* to"):
            call(*_values(name, shape, 2))


def test_nothing(package):
    assert package.pieces(np.ones((2, 0))).tolist() == [[0, 0, 0]] * 2
    (d_x,) = package.pieces.vjp(np.ones((2, 0)))[1](np.ones((2, 3)))
    assert d_x.shape == (2, 0)
    with pytest.raises(ValueError, match="-1 could be any extent"):
        package.parts(np.ones((2, 3, 0)))


def test_a_product_that_divides_has_brackets():
    n, h, k = map(Dim.of, "nhk")
    assert str(n // (h * k)) == "(n//(h*k))"
    assert str((n + 1) % (2 * h)) == "((n + 1)%(2*h))"
    assert str(3 * n // h // 2) == "((3*n//h)//2)"
