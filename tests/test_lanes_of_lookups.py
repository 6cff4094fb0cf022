"""Elements that look something up if a branch says so: neighbours look together, and add one by one."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import Check, For, If, Store
from layerc.transpile.passes.alike import MANY_LANES
from layerc.transpile.passes.tree import dim_loads, walk

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def between(x: real["N"], cut: Param[real["K"]], label: i64["N"]) -> real["N"]:
    """How likely a number is between two cuts, of which the first and the last one may not be there."""
    n = x.shape[0]
    k = cut.shape[0]
    y = np.zeros(n)
    for i in range(n):
        upper = 1.0
        lower = 0.0
        if label[i] < k:
            upper = 1 / (1 + np.exp(x[i] - cut[label[i]]))
        if label[i] > 0:
            lower = 1 / (1 + np.exp(x[i] - cut[label[i] - 1]))
        y[i] = np.log(upper - lower + 0.1)
    return y


@layer
def scaled(x: real["N"], table: Param[real["K"]], label: i64["N"]) -> real["N"]:
    """Two tables in one, of which the second is read backwards; some have no number."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if label[i] < 0:
            v = np.sin(x[i])
        else:
            v = x[i] * table[label[i]]
            v = v + np.tanh(table[-1 - label[i]]) * x[i]
        y[i] = v * v
    return y
'''
NAMES = ("between", "scaled")


def draw(name: str, examples: int, n: int, dtype: type, k: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(10 * n + examples)
    label = rng.integers(0, k + 1, (examples, n)) if name == "between" else rng.integers(-1, k, (examples, n))
    return [rng.standard_normal((examples, n)).astype(dtype), np.sort(rng.standard_normal(k)).astype(dtype), label]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lookups")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "lookups_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("examples", "n"), [(1, 64), (2, 1), (3, 15), (17, 63), (1, 65), (3, 0), (0, 20), (2, 150), (20, 7)]
)
def test_values_and_gradients(package, name, examples, n):
    agrees(getattr(package, name), draw(name, examples, n, np.float64), np.random.default_rng(n), 1e-11, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        for examples, n in ((1, 3000), (40, 137)):
            same_bits(getattr(package, name), draw(name, examples, n, dtype))


def test_whoever_looks_nowhere_needs_no_table(package):
    for name, label in (("between", 0), ("scaled", -1)):
        x = np.linspace(-1, 1, 300).reshape(2, 150)
        values = (x, np.zeros(0), np.full(x.shape, label))
        y, pullback = getattr(package, name).vjp(*values)
        np.testing.assert_allclose(y, getattr(package, name).reference(*values), 1e-13)
        d_x, d_table, _ = pullback(np.ones_like(y))
        assert np.isfinite(d_x).all()
        assert d_table.shape == (0,)


def test_the_first_that_is_wrong_is_named(package):
    """Where others look somewhere wrong behind it, and in another group of neighbours."""
    x, cut, label = draw("scaled", 2, 200, np.float64)
    label[1, 70], label[1, 90], label[1, 150] = 9, 8, 7
    layer = package.scaled
    for call in (layer, layer.vjp):
        with pytest.raises(IndexError, match="9 .*5"):
            call(x, cut, label)
    x, cut, label = draw("between", 2, 200, np.float64)
    label[1, 70], label[1, 71] = -8, -9  # less than the least place there is
    with pytest.raises(IndexError, match="-8 .*5"):
        package.between(x, cut, label)


@pytest.mark.parametrize("name", NAMES)
def test_they_look_together_and_add_alone(package, folder, name):
    kernels = [k for (layer, _), k in kernels_in(folder / "lookups_of.py").items() if layer == name]
    for kernel in kernels:
        wide = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == Dim.of(MANY_LANES)]
        assert wide, kernel.name
        for loop in wide:
            adds = [s for s in walk(loop.body) if isinstance(s, Store) and any(map(dim_loads, s.index))]
            assert not adds or loop.kind == "seq", kernel.name
        branches = [s for s in walk(kernel.body) if isinstance(s, If) and any(isinstance(c, Check) for c in s.then)]
        lone = [s for b in branches for s in b.then if isinstance(s, Store) and s.index]
        assert not lone, kernel.name


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_asks_as_often_as_its_function(package, folder, name):
    """A place is checked where a number is read; what is added there is not checked again."""
    found = {method: k for (layer, method), k in kernels_in(folder / "lookups_of.py").items() if layer == name}
    text = TEXT.split("@layer")[1 + NAMES.index(name)]
    lookups = text.count("cut[label") + text.count("table[")
    checks = {c.number for c in walk(found["backward"].body) if isinstance(c, Check) and "K" in str(c)}
    assert len(checks) <= 2 * lookups  # those of the values, and those of the derivatives
