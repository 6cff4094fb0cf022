"""Rows of numbers beside truths go vector by vector to their end: all lengths, both types, parts of longer rows."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

pytestmark = pytest.mark.optimised

SOURCE = '''
import numpy as np
from layerc import Param, bool_, layer, real


@layer
def legal(x: real["N A"], ok: bool_["N A"], heat: Param[real]) -> real["N A"]:
    """The logarithm of a softmax over what is allowed."""
    z = np.where(ok, x / heat, -np.inf)
    z = z - z.max(axis=1, keepdims=True)
    return np.where(ok, z - np.log(np.exp(z).sum(axis=1, keepdims=True)), 0.0)


@layer
def chosen(x: real["N A"], y: real["N A"], ok: bool_["A"], up: bool_["N A"]) -> real["N A"]:
    """Two truths for each number, one of them the same in all rows; from the second column on."""
    z = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            if ok[j] and not up[i, j]:
                z[i, j] = x[i, j] * y[i, j] + x[i, j]
            else:
                z[i, j] = y[i, j]
    return z


@layer
def counted(x: real["N A"], ok: bool_["N A"]) -> real["N"]:
    """A sum beside them."""
    return np.sum(np.where(ok, x * x, 0.0), axis=1) / np.maximum(np.sum(ok, axis=1), 1)
'''

LENGTHS = (0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 79, 130)


@pytest.fixture(scope="module", params=["", "-march=x86-64-v3", "-march=x86-64-v2"])
def package(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setenv("LAYERC_CFLAGS", request.param)
        return built_from(tmp_path_factory.mktemp("truths"), "truths", SOURCE)


def _drawn(a: int, dtype: type) -> dict[str, tuple]:
    rng = np.random.default_rng(a)
    x, y = rng.standard_normal((2, 5, 3, a)).astype(dtype)
    ok = rng.uniform(size=(5, 3, a)) < 0.6
    ok[..., :1] = True
    heat = np.asarray(0.7, dtype)
    return {"legal": (x, ok, heat), "chosen": (x, y, rng.uniform(size=(5, a)) < 0.5, ok), "counted": (x, ok)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("a", LENGTHS)
def test_all_lengths(package, a, dtype):
    tight, close = (2e-6, 2e-3) if dtype == np.float32 else (1e-14, 1e-6)
    for name, values in _drawn(a, dtype).items():
        if a or name != "legal":  # of nothing there is no largest
            agrees(getattr(package, name), values, np.random.default_rng(1), tight, close, exact=False)


def test_parts_of_longer_rows(package):
    """What lies behind them, NaN, and truths that are no 0 and no 1, does not count."""
    for a in LENGTHS[1:]:
        x, ok, heat = _drawn(a, np.float32)["legal"]
        wide, marks = np.full((5, 3, a + 70), np.nan, np.float32), np.full((5, 3, a + 70), 255, np.uint8).view(bool)
        wide[..., :a], marks[..., :a] = x, ok
        assert np.array_equal(package.legal(wide[..., :a], marks[..., :a], heat), package.legal(x, ok, heat))


def test_nan_is_kept_apart(package):
    """What is not allowed may be anything, and what is, makes its own row NaN."""
    x, ok, heat = _drawn(19, np.float32)["legal"]
    ok[..., 18], ok[0, 0, 18] = False, True
    x[..., 18] = np.nan
    y = package.legal(x, ok, heat)
    assert np.isnan(y[0, 0, ok[0, 0]]).all()
    assert np.isfinite(y[1:]).all()
    assert np.isfinite(y[0, 1:]).all()


def test_threads(package):
    for values in (_drawn(19, np.float32), _drawn(130, np.float64)):
        for name in values:
            same_bits(getattr(package, name), values[name])
