"""What all examples ask, or look up, alike is asked, or looked up, before the loop over them."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.ir import Check, For, Store
from layerc.transpile.passes.tree import dim_loads, has, loads, walk

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def biased(x: real["H W"], table: Param[real["M"]], win: int = 2) -> real["H*W H*W"]:
    """Scores with a number for how far apart two places are."""
    H, W = x.shape
    p = np.arange(H * W)
    r, c = p // W, p % W
    rel = (r[:, None] - r + win - 1) * (2 * win - 1) + c[:, None] - c + win - 1
    flat = x.reshape(-1)
    return flat[:, None] * flat + table[rel]


@layer
def after(x: real["N"], label: i64, table: Param[real["M"]], first: int = 0) -> real["N"]:
    """An example's own place before one that all have, and one behind it."""
    return x * table[label] + table[first] * table[label - 1]


@layer
def windows(x: real["N W"], table: Param[real["M heads"]], heads: int = 2) -> real["N heads W W"]:
    """Windows, perhaps none, that share what is looked up, of two heads that lie beside each other there."""
    W = x.shape[1]
    p = np.arange(W)
    rel = np.abs(p[:, None] // heads - p % heads)
    return np.tanh(x[:, None, :, None] * x[:, None, None, :] + table[rel].transpose(2, 0, 1))
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("settled")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "settled_examples", TEXT)


def draw(examples: int, win: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(10 * win + examples)
    x, table = rng.standard_normal((examples, win, win)), rng.standard_normal((2 * win - 1) ** 2)
    return [x.astype(dtype), table.astype(dtype)]


@pytest.mark.parametrize(("examples", "win"), [(1, 2), (3, 4), (17, 3), (2, 1)])
def test_values_and_gradients(package, examples, win):
    agrees(package.biased, draw(examples, win), np.random.default_rng(win), 1e-12, 1e-6, win=win)


@pytest.mark.parametrize(("examples", "n", "w"), [(1, 2, 5), (3, 4, 17), (2, 0, 4), (0, 2, 3), (2, 3, 1), (2, 3, 0)])
def test_windows_share_what_is_looked_up(package, examples, n, w):
    rng = np.random.default_rng(w)
    values = rng.standard_normal((examples, n, w)), rng.standard_normal((w + 1, 2))
    agrees(package.windows, values, rng, 1e-12, 1e-6)
    values[1][:1] = np.nan
    np.testing.assert_allclose(package.windows(*values), package.windows.reference(*values), 1e-12)


def test_bits_do_not_hang_on_threads(package):
    same_bits(package.biased, draw(40, 2, np.float32))


def test_no_examples_ask_nothing(package):
    """Not even what all of them would."""
    x, table = np.zeros((0, 3, 3)), np.ones(25)
    for win in (3, 40, -7):
        y, pullback = package.biased.vjp(x, table, win=win)
        assert y.shape == (0, 9, 9)
        d_x, d_table = pullback(y)
        assert d_x.shape == x.shape
        np.testing.assert_array_equal(d_table, 0)
    for first in (0, 99):
        y = package.after(np.zeros((0, 5)), np.zeros(0, int), np.ones(3), first=first)
        assert y.shape == (0, 5)


def test_what_is_wrong_for_all_is_told(package):
    x, table = draw(3, 3)
    with pytest.raises(IndexError, match="25"):
        package.biased(x, table, win=9)
    with pytest.raises(IndexError, match="25"):
        package.biased.vjp(x, table, win=9)


def test_the_first_fault_stays_the_first(package):
    x, label, table = np.ones((4, 5)), np.array([1, 2, 9, 1]), np.arange(3.0)
    with pytest.raises(IndexError, match="9 .*3"):
        package.after(x, label, table)
    with pytest.raises(IndexError, match="7 .*3"):  # of the first example, behind a place of its own that is there
        package.after(x, label, table, first=7)
    label[0] = 8
    with pytest.raises(IndexError, match="8 .*3"):
        package.after(x, label, table, first=7)


@pytest.mark.parametrize("name", ["biased", "windows"])
def test_examples_look_up_what_was_asked_before(package, folder, name):
    parts = compile_module(read_module(folder / "settled_examples.py"), upto="looked").parts
    found = [p.kernel for p in parts if p.layer.name == name]
    assert found
    for kernel in found:
        loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == Dim.of("batch")]
        assert loops, kernel.name
        assert not any(has(loop.body, Check) for loop in loops), kernel.name
        values = [s.value for loop in loops for s in walk(loop.body) if isinstance(s, Store)]
        assert not any(dim_loads(d) for v in values for e in loads(v) for d in e.index), kernel.name
