"""What an example adds to a table that all share, at places that it chooses, goes there; no example makes a table."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import product

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def expert(x: real["D"], gate: Param[real["E D"]], w: Param[real["E H D"]]) -> real["H"]:
    """The expert with the largest gate."""
    scores = gate @ x
    e = np.argmax(scores)
    return np.tanh(w[e] @ x) * scores[e]


@layer
def row(x: real["D"], k: i64, table: Param[real["V D"]]) -> real["D"]:
    return np.sin(table[k]) * x


@layer
def two_rows(x: real["D"], k: i64["2"], table: Param[real["V D"]]) -> real["D"]:
    return np.sin(table[k[0]]) * x + table[k[1]] ** 2


@layer
def column(x: real["V"], k: i64, table: Param[real["V D"]]) -> real["V"]:
    return np.sin(table[:, k]) * x


@layer
def element(x: real["D"], k: i64, table: Param[real["V D"]]) -> real["D"]:
    return np.sin(table[k, 1]) * x
'''
V, D, E, H = 7, 5, 3, 4


def draw(name: str, batch: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(batch)
    real = lambda *shape: rng.standard_normal(shape).astype(dtype)  # noqa: E731
    if name == "expert":
        return [real(batch, D), real(E, D), real(E, H, D)]
    places = (batch, 2) if name == "two_rows" else (batch,)
    high = D if name == "column" else V
    return [real(batch, V if name == "column" else D), rng.integers(-high, high, places), real(V, D)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scatter")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "scatter_of", TEXT)


NAMES = ["expert", "row", "two_rows", "column", "element"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [0, 1, 3, 40])
def test_values_and_gradients(package, name, batch):
    agrees(getattr(package, name), draw(name, batch), np.random.default_rng(1), 1e-10, 2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_no_example_makes_a_table(folder, package, name):
    """What is as large as the table: the chunks' copies, and nothing else."""
    for way in ("backward", "pullback"):
        kernel = kernels_in(folder / "scatter_of.py").get((name, way))
        if kernel is None:
            continue
        table = next(b for b in kernel.buffers if b.name in ("d_w", "d_table"))
        size = product(table.shape)
        temps = [b for b in kernel.buffers if b.kind == "temp" and not b.alias and b.shape]
        large = [b.name for b in temps if product(b.shape) == size or product(b.shape) == 16 * size]
        assert not large
