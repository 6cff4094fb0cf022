"""Examples that walk together are at one place where counters alone tell it: what they add there is one sum."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import Const, For, Store
from layerc.transpile.passes.alike import LANES
from layerc.transpile.passes.tree import walk

pytestmark = [pytest.mark.optimised, pytest.mark.heavy]

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def turned(x: real["D"], theta: Param[real["P"]]) -> real["D"]:
    """A place that counts pairs."""
    y = x.copy()
    D = x.shape[0]
    k = 0
    for i in range(D):
        for j in range(i + 1, D):
            c = np.cos(theta[k])
            s = np.sin(theta[k])
            yi = c * y[i] - s * y[j]
            yj = s * y[i] + c * y[j]
            y[i] = yi
            y[j] = yj
            k += 1
    return y


@layer
def wound(x: real["T"], w: Param[real["P"]]) -> real[""]:
    """The first three are counted from the end."""
    h = 0.0
    k = 0
    for t in range(x.shape[0]):
        for j in range(t):
            h = np.tanh(h * w[k - 3] + x[t])
            k += 1
    return h


@layer
def of_some(x: real["T"], w: Param[real["P"]], *, far: bool = True) -> real[""]:
    """Asked for by all, by examples that take a branch, and where configuration says so."""
    h = 0.1
    k = 0
    for t in range(x.shape[0]):
        for j in range(t):
            if h > x[t]:
                h = h * w[k]
            if far:
                h = np.tanh(h + w[k - 2] * x[j])
            h = h + 0.1 * x[t]
            k += 1
    return h


@layer
def also_of_each(x: real["T"], w: Param[real["P"]], label: i64["T"]) -> real[""]:
    """Beside a place that each example looks up for itself."""
    h = 0.0
    k = 0
    for t in range(x.shape[0]):
        for j in range(t):
            h = np.tanh(h * w[k] + w[label[j]])
            k += 1
    return h
'''
NAMES = ("turned", "wound", "of_some", "also_of_each")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("of_counters")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "of_counters", TEXT)


def draw(name: str, examples: int, n: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    pairs = max(3, n * (n - 1) // 2)
    values = [rng.standard_normal((examples, n)).astype(dtype), rng.standard_normal(pairs).astype(dtype)]
    return [*values, rng.integers(-pairs, pairs, (examples, n))] if name == "also_of_each" else values


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "n"), [(1, 4), (3, 1), (4, 5), (16, 3), (37, 6), (5, 0), (0, 4)])
def test_values_and_gradients(package, name, examples, n):
    agrees(getattr(package, name), draw(name, examples, n), np.random.default_rng(n), 1e-10, 3e-5)


@pytest.mark.parametrize("examples", [4, 37])
def test_without_what_configuration_leaves_out(package, examples):
    agrees(package.of_some, draw("of_some", examples, 5), np.random.default_rng(1), 1e-10, 3e-5, far=False)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, 5, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_a_place_that_is_none(package, name):
    x, w, *more = draw(name, 20, 6)
    few = [np.clip(v, -11, 10) for v in more]
    layer = getattr(package, name)
    for short in (w[:11], w[:1]):
        with pytest.raises(IndexError):
            layer.reference(x, short, *few)
        with pytest.raises(IndexError):
            layer.vjp(x, short, *few)


def test_nan_of_one_example_is_in_what_all_share(package):
    x, w = draw("turned", 20, 4)
    x[7, 2] = np.nan
    y, pullback = package.turned.vjp(x, w)
    np.testing.assert_array_equal(np.isnan(y).any(axis=1), np.arange(20) == 7)
    d_x, d_w = pullback(np.ones_like(y))
    assert np.isfinite(d_x).all()
    assert np.isnan(d_w).any()


@pytest.mark.parametrize("name", ["turned", "wound"])
def test_they_have_one_place(folder, package, name):
    kernels = kernels_in(folder / "of_counters.py")
    for (layer, method), kernel in kernels.items():
        if layer == name:
            places = [b for b in kernel.buffers if b.dtype == "i64" and b.shape == (Dim.of(LANES),)]
            assert not places, method
    assert any(b.shape[-1:] == (Dim.of(LANES),) for b in kernels[name, "backward"].buffers)


def test_they_clear_memory_along_it(folder, package):
    body = kernels_in(folder / "of_counters.py")["turned", "backward"].body
    rows = [s for s in walk(body) if isinstance(s, For) and all(isinstance(x, Store) for x in s.body)]
    cleared = [(r.var, s) for r in rows for s in r.body if isinstance(s.value, Const) and "saved" in s.buffer]
    assert cleared
    assert all(var in s.index[-1].symbols() for var, s in cleared)
