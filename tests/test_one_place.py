"""What a loop adds up in one place is summed beside it, also where only some of its steps ask for that place."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import in_vectors, walk

pytestmark = [pytest.mark.optimised, pytest.mark.heavy]

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def margins(x: real["K"], label: i64, weight: Param[real["K"]]) -> real:
    """A place that is looked up, of which the steps know that take a branch."""
    loss = 0.0
    for k in range(x.shape[0]):
        if k == label:
            continue
        v = 1.0 - x[label] + x[k]
        if v > 0:
            loss += weight[label] * v * v
    return loss / x.shape[0]


@layer
def above(x: real["K"], cut: real, at: i64, table: Param[real["M"]]) -> real:
    """Perhaps nobody asks for the place."""
    total = 0.0
    for k in range(x.shape[0]):
        if x[k] > cut:
            total += np.sin(x[k]) * table[at]
    return total


@layer
def either(x: real["K"], use: i64, at: i64, table: Param[real["M"]]) -> real:
    """A branch that each step takes, around one that only some take."""
    total = 0.0
    for k in range(x.shape[0]):
        if use > 0:
            if x[k] > 0.0:
                total += x[k] * table[at]
            else:
                total -= 2.0 * x[k] * table[at]
    return total


@layer
def twice(x: real["K"], a: i64, b: i64, table: Param[real["M N"]]) -> real:
    """Two places that are looked up, which may be one."""
    total = 0.0
    for k in range(x.shape[0]):
        if x[k] > 0.0:
            total += x[k] * table[a, b]
        if x[k] < 1.0:
            total += x[k] * x[k] * table[b, a]
    return total


@layer
def largest(x: real["K"], at: i64, y: real["M"]) -> real["M"]:
    """An operation that does not add."""
    z = y.copy()
    for k in range(x.shape[0]):
        if x[k] > 0.0:
            z[at] = max(z[at], x[k])
    return z
'''
NAMES = ("margins", "above", "either", "twice", "largest")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("one_place")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "one_place", TEXT)


def draw(name: str, examples: int, k: int, m: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(examples + 10 * k)
    x = rng.standard_normal((examples, k))

    def places(n: int) -> np.ndarray:
        return rng.integers(-n, max(n, 1), examples)

    match name:
        case "margins":
            return [x, places(k), rng.standard_normal(k)]
        case "above":
            return [x, rng.standard_normal(examples), places(m), rng.standard_normal(m)]
        case "either":
            return [x, rng.integers(0, 2, examples), places(m), rng.standard_normal(m)]
        case "twice":
            return [x, places(m), places(m), rng.standard_normal((m, m))]
    return [x, places(m), rng.standard_normal((examples, m))]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "k"), [(1, 1), (2, 7), (5, 33), (17, 16), (3, 0), (0, 4)])
def test_values_and_gradients(package, name, examples, k):
    if name == "margins" and not k:
        return  # Python divides by zero
    agrees(getattr(package, name), draw(name, examples, k), np.random.default_rng(k), 1e-10, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_long_sums_and_threads(package, name):
    values = draw(name, 9, 2500)
    layer = getattr(package, name)
    same_bits(layer, [v.astype(np.float32) if v.dtype == float else v for v in values])
    agrees(layer, values, np.random.default_rng(1), 1e-10, 3e-5)


@pytest.mark.parametrize("bad", [5, -6, 2**40])
def test_a_place_that_is_none_fails_only_if_it_is_asked_for(package, bad):
    x, _, at, table = draw("above", 6, 40)
    at[3] = bad
    for layer, more in ((package.above, np.zeros(6)), (package.either, np.ones(6, np.int64))):
        with pytest.raises(IndexError, match=str(bad)):
            layer.vjp(x, more, at, table)
    for layer, more, values in ((package.above, np.full(6, 9.0), x), (package.either, np.zeros(6, np.int64), x)):
        y, pullback = layer.vjp(values, more, at, table)
        assert not np.any(y)
        assert not any(np.any(g) for g in pullback(np.ones(6)) if g is not None)


def test_nan_and_infinity_are_added_where_they_belong(package):
    x, _, at, table = draw("above", 6, 40)
    cut = np.zeros(6)
    at[:] = np.arange(6) % 5
    x[2, 7], x[3, 1], x[4, 0] = np.nan, np.inf, -np.inf  # a NaN is above nothing
    with np.errstate(all="ignore"):
        want = package.above.reference(x, cut, at, table)
    y, pullback = package.above.vjp(x, cut, at, table)
    np.testing.assert_allclose(y, want, 1e-12)
    d_table = pullback(np.ones(6))[-1]
    np.testing.assert_array_equal(np.isnan(d_table), [k == 3 for k in range(5)])


def test_no_row_stores_to_one_place(folder, package):
    kernels = kernels_in(folder / "one_place.py")
    for name in ("margins", "above", "either", "twice"):
        for method in ("backward", "backward_params"):
            rows = [s for s in walk(kernels[name, method].body) if isinstance(s, For) and in_vectors(s)]
            stores = [(r.var, s) for r in rows for s in walk(r.body) if isinstance(s, Store) and s.index]
            assert all(any(var in d.symbols() for d in s.index) for var, s in stores), (name, method)
