"""Whether any, or all, of many truths hold: as many as there are. gcc 12 had written past the variable that says it."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from

pytestmark = pytest.mark.optimised
TEXT = '''
import numpy as np
from layerc import bool_, layer, real


@layer
def some(x: real["N"], mask: bool_["N"], other: bool_["N"]) -> real["4"]:
    """Of a whole array, of two, of what is compared; and of all."""
    y = np.zeros(4)
    if np.any(mask):
        y[0] = 1.0
    if np.any(mask & other):
        y[1] = 1.0
    if np.any(x > 2.5):
        y[2] = 1.0
    if np.all(mask | other):
        y[3] = 1.0
    return y * np.sum(x)


@layer
def until(x: real["N"]) -> real["N"]:
    """As long as some go on."""
    y = x.copy()
    going = y > 0.1
    while np.any(going):
        y = np.where(going, 0.5 * y, y)
        going = y > 0.1
    return y
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("any"), "any_of", TEXT)


@pytest.mark.parametrize("size", [0, 1, 7, 16, 63, 64, 128, 129, 192, 257, 1003, 70_000])
@pytest.mark.parametrize("examples", [1, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_truths(package, size, examples, dtype):
    rng = np.random.default_rng(size)
    x = rng.standard_normal((examples, size)).astype(dtype) * 0.1
    for at in (None, 0, size // 2, size - 1):
        mask, other = np.zeros((2, examples, size), bool)
        if size and at is not None:
            mask[:, at], other[-1, at], x[0, at] = True, True, 3.0
        for m, o in ((mask, other), (~mask, mask), (~mask, ~other)):
            want = package.some.reference(x.astype(float), m, o)
            np.testing.assert_allclose(package.some(x, m, o), want, 1e-4, 1e-4)
            package.some.vjp(x, m, o)[1](want.astype(dtype))
        np.testing.assert_allclose(package.until(x), package.until.reference(x.astype(float)), 1e-6, 1e-6)
