"""What chooses by its place along a row is a loop for each choice: the same numbers, wherever the choice falls."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, in_caches, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Op
from layerc.transpile.passes.tree import in_vectors, own_exprs, parts, symbols, walk

TEXT = '''
import numpy as np
from layerc import i32, layer, real


@layer
def masked(x: real["T S"], length: i32) -> real["T S"]:
    """A softmax over the first `length` columns."""
    inside = np.arange(x.shape[1]) < length
    e = np.exp(np.where(inside, x, -np.inf) - np.max(np.where(inside, x, -np.inf), axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@layer
def causal(x: real["T S"]) -> real["T S"]:
    t, s = x.shape
    later = np.arange(t)[:, None] < np.arange(s)[None, :]
    e = np.where(later, 0.0, np.exp(x))
    return np.log(1.0 + np.sum(e, axis=1, keepdims=True)) * e


@layer
def band(x: real["T S"], *, width: int = 3) -> real["T"]:
    """Two limits of a row."""
    t, s = x.shape
    i, j = np.arange(t)[:, None], np.arange(s)[None, :]
    near = (j > i - width) & (j <= i + width)
    return np.sum(np.where(near, np.exp(x), np.tanh(x)), axis=1)


@layer
def shown(x: real["S"], start: i32, stop: i32) -> real[""]:
    """In a loop, with limits that are read from memory; the largest of what is inside and of a floor."""
    total, top = 0.0, -1.0
    for j in range(x.shape[0]):
        inside = j >= start and j < stop
        total += np.exp(x[j]) if inside else 0.25
        top = max(top, x[j] if inside else -0.5)
    return total * top


@layer
def flags(x: real["S"], length: i32) -> real["S"]:
    """Of each element something else: both sides are dear."""
    return np.where(np.arange(x.shape[0]) >= length, np.sin(x) / (1.0 + x * x), np.log(1.0 + np.exp(x)))
'''

CHEAP = """
@layer
def cheap(x: real["S"], length: i32) -> real["S"]:
    return np.where(np.arange(x.shape[0]) < length, 2.0 * x, 0.0)
"""

NAMES = ["masked", "causal", "band", "shown", "flags"]


def draw(name: str, batch: int, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 100 + n)
    length = rng.integers(-2, n + 3, (2, batch)).astype(np.int32)
    x = (0.5 * rng.standard_normal((batch, 3, n) if name in ("masked", "causal", "band") else (batch, n))).astype(dtype)
    match name:
        case "masked":
            return [x, np.maximum(length[0], 1)]
        case "shown":
            return [x, length[0], length[1]]
        case "flags":
            return [x, length[0]]
    return [x]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sections")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "sections_of", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "sections_of.py")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (1, 70), (3, 2), (7, 33), (20, 16), (2, 2100), (0, 5)])
def test_values_and_gradients(package, name, batch, n):
    exact = name != "shown"  # its forward that keeps goes step by step: each largest so far is kept
    values = draw(name, batch, n, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(n), 1e-10, 2e-5, exact)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 70, 130, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_limit(package, dtype):
    """Before the row, at each place of it, and beyond."""
    limits = np.arange(-3, 40, dtype=np.int32)
    x = np.random.default_rng(0).standard_normal((len(limits), 35)).astype(dtype)
    tight = 1e-5 if dtype == np.float32 else 1e-12
    for first, last in ((limits, limits + 7), (limits, limits - 2), (limits * 0, limits)):
        np.testing.assert_allclose(package.shown(x, first, last), package.shown.reference(x, first, last), tight)
    np.testing.assert_allclose(package.flags(x, limits), package.flags.reference(x, limits), tight, tight)
    low = -2.0 - np.abs(x)  # what is outside is larger than all that is inside
    first = limits * 0
    for last in (first + 35, limits):
        np.testing.assert_allclose(package.shown(low, first, last), package.shown.reference(low, first, last), tight)


def test_what_is_behind_the_mask_is_not_looked_at(package):
    """NaN and inf there are nothing; those before it are seen."""
    x = np.random.default_rng(1).standard_normal((2, 3, 20))
    length = np.array([7, 20], np.int32)
    clean = package.masked(x, length)
    x[0, :, 7:] = np.array([np.nan, np.inf, -np.inf])[:, None]
    assert np.array_equal(package.masked(x, length), clean)
    x[0, 1, 6] = np.nan
    got = package.masked(x, length)
    assert np.isnan(got[0, 1]).all()
    assert not np.isnan(np.delete(got[0], 1, axis=0)).any()
    everything_out = package.masked(x, np.array([0, 0], np.int32))  # exp(-inf - -inf)
    assert np.isnan(everything_out).all()


@pytest.mark.parametrize("name", ["masked", "causal", "band"])
def test_no_element_is_asked_where_it_is(kernels, name):
    kernel = kernels[name, "predict"]
    for loop in (s for s in walk(kernel.body) if isinstance(s, For)):
        for stmt in loop.body:
            for part in (p for e in own_exprs(stmt) for p in parts(e)):
                assert not (isinstance(part, Op) and part.op == "where" and loop.var in symbols(part.args[0])), part


def test_a_choice_that_saves_little_is_one_loop(tmp_path):
    path = tmp_path / "cheap.py"
    path.write_text(TEXT.split("@layer", maxsplit=1)[0] + CHEAP)
    (versions,) = kernels_in(path)["cheap", "predict"].body
    for version in (versions.then, versions.orelse):
        assert sum(in_vectors(s) for s in walk(in_caches(version))) == 1
