"""Groups of neighbours in a row: what belongs to a group lies beside each of them, and the row is one loop."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits, sized

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

pytestmark = [pytest.mark.optimised, pytest.mark.heavy]

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def group_norm(x: real["T C"], gain: Param[real["C"]], shift: Param[real["C"]], *, groups: int = 4) -> real["T C"]:
    """Channels last: a group is part of each row."""
    t, c = x.shape
    p = np.reshape(x, (t, groups, c // groups))
    centred = p - np.mean(p, axis=(0, 2), keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=(0, 2), keepdims=True) + 1e-5)
    return np.reshape(scaled, (t, c)) * gain + shift


@layer
def scaled(x: real["T 4 8"], scale: Param[real["4"]], tilt: Param[real["8"]]) -> real["T 4 8"]:
    """A number for each group, and one for each place in a group."""
    return np.tanh(x * scale[:, None] + tilt)


@layer
def largest(x: real["T C"], *, groups: int = 4) -> real["groups"]:
    """The largest of each group, of all rows."""
    t, c = x.shape
    return np.max(np.reshape(x, (t, groups, c // groups)), axis=(0, 2))


@layer
def of_rows(x: real["T C"], w: real["T groups"], *, groups: int = 4) -> real["T C"]:
    """What belongs to a group in one row only: nothing is the same in the next."""
    t, c = x.shape
    return np.reshape(np.reshape(x, (t, groups, c // groups)) * w[:, :, None], (t, c))


@layer
def shares(x: real["T C"], *, groups: int = 4) -> real["T C"]:
    """Two sums, the second of what the first divided, and a third over all."""
    t, c = x.shape
    p = np.exp(np.reshape(x, (t, groups, c // groups)))
    q = p / np.sum(p, axis=(0, 2), keepdims=True)
    mixed = q * np.log(np.sum(q * q, axis=(0, 2), keepdims=True)) + np.sum(q * p)
    return np.reshape(mixed, (t, c))
'''

SHAPES = {
    "group_norm": ["t c", "c", "c"],
    "scaled": ["t 4 8", "4", "8"],
    "largest": ["t c"],
    "of_rows": ["t c", "2 t g"],
    "shares": ["t c"],
}
SIZES = [(1, 4, 4), (1, 8, 2), (3, 4, 1), (5, 12, 4), (7, 24, 3), (9, 64, 8), (37, 40, 4), (2, 520, 2), (0, 8, 4)]


def draw(name: str, t: int, c: int, groups: int, dtype: type) -> list[np.ndarray]:
    return sized(SHAPES[name], {"t": t, "c": c, "g": groups}, 2, dtype)


def options(name: str, groups: int) -> dict[str, int]:
    return {} if name == "scaled" else {"groups": groups}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spread")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "spread_of", TEXT)


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize(("t", "c", "groups"), SIZES)
def test_values_and_gradients(package, name, t, c, groups):
    """One row and many, groups of one, one group, a row that is no whole vector, no row at all."""
    if not t and name in ("largest", "group_norm", "shares"):
        pytest.skip("of nothing there is no largest, and no mean")
    values = draw(name, t, c, groups, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(t), 1e-10, 3e-5, **options(name, groups))


@pytest.mark.parametrize("name", list(SHAPES))
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, 64, 4, np.float32))


def test_sums_are_as_exact_as_those_of_numpy(package):
    """Far from zero, where a mean of single precision shows."""
    rng = np.random.default_rng(0)
    x = (10 + rng.standard_normal((2, 900, 64))).astype(np.float32)
    gain, shift = np.ones(64, np.float32), np.zeros(64, np.float32)
    want = package.group_norm(x.astype(float), gain.astype(float), shift.astype(float))
    numpy = np.max(np.abs(package.group_norm.reference(x, gain, shift) - want))
    assert np.max(np.abs(package.group_norm(x, gain, shift) - want)) <= numpy


@pytest.mark.parametrize("method", ["predict", "backward"])
def test_rows_are_one_loop(package, folder, method):
    """No loop of a sweep goes over a group."""
    kernels = kernels_in(folder / "spread_of.py")
    for name in ("group_norm", "shares"):
        kernel = kernels[name, method]
        rows = [s for s in walk(kernel.body) if isinstance(s, For) and "groups" in str(s.hi) and "C//" in str(s.hi)]
        assert rows, name
        sweeps = [s for s in walk(kernel.body) if isinstance(s, For) and "T" in s.hi.symbols()]
        assert sweeps, name
        for stmt in sweeps:
            inner = {str(s.hi) for s in walk(stmt.body) if isinstance(s, For)}
            assert not {"(C//groups)", "groups"} & inner, name
