"""What rows end with is computed for many rows at once: the same numbers, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.gangs import GANG
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def focal(x: real["K"], label: i32, *, gamma: float = 2.0) -> real[""]:
    shifted = x - np.max(x)
    log_p = shifted[label] - np.log(np.sum(np.exp(shifted)))
    return -((1.0 - np.exp(log_p)) ** gamma) * log_p


@layer
def cosine(a: real["D"], b: real["D"], same: i32, *, margin: float = 0.5) -> real[""]:
    c = np.sum(a * b) / (np.sqrt(np.sum(a * a)) * np.sqrt(np.sum(b * b)) + 1e-8)
    return 1.0 - c if same == 1 else max(c - margin, 0.0)


@layer
def two_ends(x: real["D"]) -> tuple[real[""], real["2"]]:
    """Two outputs, one of them a pair, made of two sums."""
    s, q = np.sum(x), np.sum(x * x)
    pair = np.zeros(2)
    pair[0] = np.tanh(s)
    pair[1] = np.exp(-q) + np.log(1.0 + q)
    return np.log(1.0 + s * s) * np.tanh(q), pair


@layer
def by_rows(x: real["T D"]) -> real["T"]:
    """The rows of an example."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        y[t] = np.log(np.sum(np.exp(x[t]))) * np.tanh(x[t, 0])
    return y


@layer(batched=True)
def whole(x: real["N D"]) -> real["N"]:
    total = np.sum(np.exp(x), axis=1)
    return np.log(total) + np.tanh(total)
'''

NAMES = ["focal", "cosine", "two_ends", "by_rows", "whole"]


def draw(name: str, batch: int, d: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 100 + d)
    x = (0.5 * rng.standard_normal((batch, d))).astype(dtype)
    match name:
        case "focal":
            return [x, rng.integers(0, d, batch).astype(np.int32)]
        case "cosine":
            return [x, x[::-1].copy(), rng.integers(0, 2, batch).astype(np.int32)]
        case "by_rows":
            return [(0.5 * rng.standard_normal((batch, 7, d))).astype(dtype)]
    return [x]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gangs")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "gangs_of", TEXT)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "two_ends"])
@pytest.mark.parametrize(("batch", "d"), [(1, 5), (3, 4), (4, 17), (33, 5), (150, 3), (0, 4), (2500, 9)])
def test_values_and_gradients(package, name, batch, d):
    agrees(getattr(package, name), draw(name, batch, d, np.float64), np.random.default_rng(d), 1e-10, 1e-5)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "two_ends"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_hang_on_threads(package, name, dtype):
    for batch, d in ((4000, 20), (70, 100)):
        same_bits(getattr(package, name), draw(name, batch, d, dtype))


@pytest.mark.parametrize("batch", [1, 5, 40, 3000])
def test_two_outputs(package, batch):
    (x,) = draw("two_ends", batch, 11, np.float64)
    for got, want in zip(package.two_ends(x), package.two_ends.reference(x), strict=True):
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)


@pytest.mark.parametrize("name", ["focal", "cosine", "whole"])
def test_a_row_does_not_know_its_gang(package, name):
    """The same bits in whatever place of a gang it is, beside NaN, too."""
    for dtype in (np.float32, np.float64):
        values = draw(name, 101, 12, dtype)
        order = np.random.default_rng(3).permutation(101)
        layer = getattr(package, name)
        assert np.array_equal(layer(*(v[order] for v in values)), layer(*values)[order])
        beside = [v.copy() for v in values]
        beside[0][40] = np.nan
        assert np.array_equal(np.delete(layer(*beside), 40), np.delete(layer(*values), 40))
        assert np.isnan(layer(*beside)[40])


def test_an_index_out_of_range_is_named(package):
    x, label = draw("focal", 100, 6, np.float32)
    label[57] = 6
    with pytest.raises(IndexError, match="6"):
        package.focal(x, label)


@pytest.mark.parametrize("name", ["focal", "cosine", "two_ends"])
def test_there_are_gangs(folder, package, name):
    kernel = kernels_in(folder / "gangs_of.py")[name, "predict"]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("gang")]
    assert loops
    for gang in loops:
        rows, last = (s for s in gang.body if isinstance(s, For))
        assert not any(isinstance(s, For) for s in last.body)
        assert rows.hi == last.hi
        assert str(GANG) in str(rows.hi)
