"""np.maximum.at and np.minimum.at: the loop they stand for, one index after the other, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

pytestmark = pytest.mark.heavy  # compiles for long

TEXT = '''
import numpy as np
from layerc import i64, layer, real


@layer
def segments(x: real["E D"], i: i64["E"], *, n: int = 4) -> real["n D"]:
    """Rows, pooled by the segment that they belong to."""
    top = np.full((n, x.shape[1]), -9.0)
    np.maximum.at(top, i, x)
    return top


@layer
def softmax_of_edges(x: real["E"], i: i64["E"], *, n: int = 4) -> real["E"]:
    top = np.full(n, -np.inf)
    np.maximum.at(top, i, x)
    e = np.exp(x - top[i])
    total = np.zeros(n)
    np.add.at(total, i, e)
    return e / total[i]


@layer
def pairs(a: real["N M"], x: real["E"], i: i64["E"], j: i64["E"]) -> real["N M"]:
    a = np.copy(a)
    np.minimum.at(a, (i, j), x * x)
    np.minimum.at(a, (0, j), 0.1)
    return a * a


@layer
def broadcast(a: real["N N"], x: real["P Q"], i: i64["P Q"], j: i64["Q"]) -> real["N N"]:
    """Indices, values and rows repeat; what is written into is seen through a view."""
    y = a * 2
    np.maximum.at(y, (i, j), x)
    np.maximum.at(y, np.s_[:, j], np.sum(y, axis=1)[:, None])
    np.maximum.at(y.T, j[::-1], a[:, 0])
    return y


@layer
def no_arrays(a: real["N M"], x: real["M"]) -> real["N M"]:
    y = a * 2
    np.maximum.at(y, np.s_[1:], x)
    np.maximum.at(y, 0, x[0])
    np.maximum.at(y, y < 0, 0.5)
    return y


@layer
def of_itself(a: real["N"], i: i64["N"]) -> real["N"]:
    """What is taken is what was there before."""
    y = a * a
    np.maximum.at(y, i, y[::-1] + 0.5)
    np.minimum.at(y, i + 1 - 1, y)
    np.maximum.at(y, i, y[1] + 0.2)
    return y


@layer
def numbers(a: i64["N"], i: i64["E"], v: i64["E"]) -> i64["N"]:
    y = np.copy(a)
    np.maximum.at(y, i, v)
    return y
'''
SHAPES = {
    "segments": [(11, 3), (4, 11)],
    "softmax_of_edges": [(9,), (4, 9)],
    "pairs": [(3, 4), (6,), (3, 6), (4, 6)],
    "broadcast": [(3, 3), (2, 4), (3, 2, 4), (3, 4)],
    "no_arrays": [(3, 4), (4,)],
    "of_itself": [(6,), (6, 6)],
}
FLOATS = {"segments": 1, "softmax_of_edges": 1, "pairs": 2, "broadcast": 2, "no_arrays": 2, "of_itself": 1}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("at"), "at_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 19])
def test_values_and_gradients(package, name, examples):
    rng = np.random.default_rng(examples)
    values = [
        rng.standard_normal((examples, *s)) if k < FLOATS[name] else rng.integers(-s[0], s[0], (examples, *s[1:]))
        for k, s in enumerate(SHAPES[name])
    ]
    agrees(getattr(package, name), values, rng, 1e-12, 1e-6)


def test_integers_and_nan(package):
    a, i, v = np.array([[1, 5, 3]]), np.array([[0, 0, 1, -1]]), np.array([[2, 7, 4, 9]])
    assert package.numbers(a, i, v).tolist() == [[7, 5, 9]]
    x = np.array([[[np.nan], [1.0], [2.0]]])
    np.testing.assert_array_equal(package.segments(x, np.array([[0, 0, 1]]), n=2), [[[np.nan], [2.0]]])
    assert package.segments(np.ones((1, 0, 2)), np.zeros((1, 0), int), n=1).tolist() == [[[-9.0, -9.0]]]


def test_equal_ones_share_step_by_step(package):
    """Half to each of two: what comes later has more, as where the loop is written out."""
    x = np.array([[[1.0], [1.0], [1.0]]])
    (d_x,) = package.segments.vjp(x, np.zeros((1, 3), int), n=1)[1](np.ones((1, 1, 1)))[:1]
    np.testing.assert_array_equal(d_x[0, :, 0], [0.25, 0.25, 0.5])


def test_a_place_that_is_not_there(package):
    with pytest.raises(IndexError):
        package.segments(np.ones((1, 1, 1)), np.array([[4]]))
