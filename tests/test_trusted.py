"""Whether what a row looks up is there is asked before it, so that it is gone over in vectors."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import Check, For, If
from layerc.transpile.passes.tree import dim_loads, has, in_vectors, own_accesses, walk

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def curve(x: real["H C"], table: Param[real["C K"]], lo: float = -2.0, hi: float = 2.0) -> real["H C"]:
    """A line between the two nearest of a channel's numbers, level beyond the ends."""
    H, C = x.shape
    K = table.shape[1]
    y = np.zeros((H, C))
    for i in range(H):
        for c in range(C):
            u = (x[i, c] - lo) / (hi - lo) * (K - 1)
            if u <= 0:
                y[i, c] = table[c, 0]
            elif u >= K - 1:
                y[i, c] = table[c, K - 1]
            else:
                k = int(u)
                y[i, c] = (1 - (u - k)) * table[c, k] + (u - k) * table[c, k + 1]
    return y


@layer
def chosen(x: real["H C"], table: Param[real["C K"]], label: i64["H C"]) -> real["H C"]:
    """Places that are given, from either end; whoever has none keeps what it is. A row's total beside it."""
    y = x.copy()
    for i in range(x.shape[0]):
        s = 0.0
        for c in range(x.shape[1]):
            if label[i, c] < 100:
                y[i, c] = np.tanh(x[i, c]) * table[c, label[i, c]]
                s += table[c, label[i, c]]
        y[i, 0] += s
    return y


@layer
def every(x: real["H C"], table: Param[real["C K"]], label: i64["H C"]) -> real["H C"]:
    """Without a branch."""
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            y[i, c] = x[i, c] * table[c, label[i, c]]
    return y
'''
NAMES = ("curve", "chosen", "every")


def draw(name: str, examples: int, h: int, c: int, dtype: type = np.float64, k: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * h + 10 * c + examples)
    x, table = 1.5 * rng.standard_normal((examples, h, c)), rng.standard_normal((c, k))
    label = rng.integers(-k, k, (examples, h, c))
    if name == "chosen":
        label[rng.uniform(size=label.shape) < 0.3] = 100
    values = [x.astype(dtype), table.astype(dtype)]
    return values if name == "curve" else [*values, label]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trusted")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "trusted_rows", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("examples", "h", "c"), [(1, 3, 32), (5, 2, 8), (2, 3, 7), (3, 1, 1), (4, 2, 45), (0, 3, 9), (2, 0, 9)]
)
def test_values_and_gradients(package, name, examples, h, c):
    agrees(getattr(package, name), draw(name, examples, h, c), np.random.default_rng(c), 1e-12, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for examples, h, c in ((1, 90, 40), (24, 9, 33)):
        same_bits(getattr(package, name), draw(name, examples, h, c, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_no_number_and_infinite_ones(package, name):
    values = draw(name, 2, 3, 20)
    values[0][0, 1, 4:9] = np.inf, -np.inf, 1e300, -1e300, -0.0
    if name != "curve":
        values[0][1, 2, 3] = np.nan
    values[1][3, 2:4] = np.nan, np.inf
    layer = getattr(package, name)
    with np.errstate(invalid="ignore"):
        want = layer.reference(*values)
    np.testing.assert_allclose(layer(*values), want, 1e-13)
    np.testing.assert_allclose(layer.vjp(*values)[0], want, 1e-13)


@pytest.mark.parametrize("name", ["chosen", "every"])
def test_the_first_that_is_wrong_is_named(package, name):
    x, table, label = draw(name, 3, 4, 30)
    label[1, 2, 17], label[1, 2, 23], label[2, 0, 1] = 9, 8, 7
    layer = getattr(package, name)
    for call in (layer, layer.vjp):
        with pytest.raises(IndexError, match="9 .*7"):
            call(x, table, label)
    label[1, 2, 17] = -8
    with pytest.raises(IndexError, match="-8 .*7"):
        layer(x, table, label)


def test_whoever_looks_nowhere_needs_no_table(package):
    x, _, label = draw("chosen", 2, 3, 20, k=1)
    label[:] = 100
    values = (x, np.zeros((20, 0)), label)
    np.testing.assert_array_equal(package.chosen(*values), x)
    d_x, d_table, _ = package.chosen.vjp(*values)[1](np.ones_like(x))
    np.testing.assert_array_equal(d_x, 1)
    assert d_table.shape == (20, 0)
    label[1, 1, 1] = 0
    with pytest.raises(IndexError):
        package.chosen(*values)


def looks_up(loop: For) -> bool:
    places = [index for s in walk(loop.body) for _, index, _ in own_accesses(s)]
    return any(any(dim_loads(d)) for index in places for d in index or ())


@pytest.mark.parametrize("name", NAMES)
def test_rows_look_up_in_vectors(package, folder, name):
    for (layer, _), kernel in kernels_in(folder / "trusted_rows.py").items():
        if layer == name:
            loops = [s for s in walk(kernel.body) if isinstance(s, For) and in_vectors(s) and looks_up(s)]
            assert loops or not any(has((s,), Check) for s in walk(kernel.body)), kernel.name
            assert not any(has(loop.body, If) for loop in loops), kernel.name
