"""Rows that a loop sorts are sorted side by side: whatever a sort makes on the way is each row's own."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, While
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def medians(x: real["N K"]) -> real["N"]:
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = np.sort(x[i])[x.shape[1] // 2]
    return y


@layer
def in_order(x: real["N K"]) -> real["N K"]:
    """The largest first, and how large all before are together (as sparsemax asks)."""
    n, k = x.shape
    y = np.zeros((n, k))
    for i in range(n):
        z = np.sort(x[i])[::-1]
        total = 0.0
        for j in range(k):
            total += z[j]
            if 1 + (j + 1) * z[j] > total:
                y[i, j] = total / (j + 1)
    return y


@layer
def ranked(x: real["N K"], w: real["K"]) -> real["N K"]:
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        at = np.argsort(-x[i])
        for j in range(x.shape[1]):
            y[i, at[j]] = w[j] * x[i, at[j]] ** 2
    return y
'''
NAMES = ("medians", "in_order", "ranked")


def draw(name: str, n: int, k: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * n + k)
    x = rng.permuted(np.linspace(-1, 1, n * k).reshape(1, n, k), axis=2)  # no two as close as differences go
    return [x.astype(dtype), rng.standard_normal((1, k)).astype(dtype)][: 1 + (name == "ranked")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sorted_rows")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "sorted_rows_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 2), (40, 7), (5, 64), (5, 65), (4, 129), (3, 300), (0, 5)])
def test_values_and_gradients(package, name, n, k):
    agrees(getattr(package, name), draw(name, n, k), np.random.default_rng(k), 1e-12, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        same_bits(getattr(package, name), draw(name, 50, 200, dtype))


@pytest.mark.parametrize("k", [5, 64, 70, 200])
def test_nan_is_last_and_equal_ones_keep_their_order(package, k):
    x = np.random.default_rng(k).integers(0, 4, (1, 6, k)).astype(float)
    x[:, ::2, ::3] = np.nan
    w = np.arange(1.0, k + 1).reshape(1, k)
    np.testing.assert_array_equal(package.medians(x), package.medians.reference(x))
    got, want = package.ranked(x, w), package.ranked.reference(x, w)
    stable = np.stack([np.argsort(-row, kind="stable") for row in x[0]])
    for row, order in zip(want[0], stable):
        row[order] = w[0]  # NumPy's own order of equal ones is not told
    np.testing.assert_array_equal(got, want * x * x)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_independent(package, folder, name):
    for (layer, method), kernel in kernels_in(folder / "sorted_rows_of.py").items():
        if layer == name and (name != "in_order" or method in ("predict", "vjp")):
            loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and s.hi == Dim.of("N")]
            assert not loops, kernel.name


FEW = """
import numpy as np
from layerc import i64, layer, real
""" + "".join(
    f"""

@layer
def of_{n}(x: real["T {n}"]) -> real["T {n}"]:
    return np.sort(x, axis=-1)


@layer
def middle_{n}(x: real["T"]) -> real["T"]:
    p = np.pad(x, {n // 2}, mode="edge")
    return np.sort(np.stack([p[j : j + x.shape[0]] for j in range({n})], axis=-1))[:, {n // 2}]
"""
    for n in (1, 2, 5, 9, 10)
)


@pytest.fixture(scope="module")
def few(folder):
    return built_from(folder, "few_sorted", FEW)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 10])
@pytest.mark.parametrize("batch", [0, 1, 3, 17])
def test_few(few, n, batch):
    rng = np.random.default_rng(n)
    for t in (1, 7, 40, 300):
        x = rng.permuted(np.linspace(-1, 1, batch * t * n).reshape(batch, t, n), axis=1)
        agrees(getattr(few, f"of_{n}"), [x], rng, 1e-12, 3e-6)
        agrees(getattr(few, f"middle_{n}"), [rng.permuted(x[:, :, 0], axis=1)], rng, 1e-12, 3e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 10])
def test_few_that_are_no_numbers_or_equal(few, n):
    rng = np.random.default_rng(n)
    for dtype in (np.float32, np.float64):
        x = rng.choice([np.nan, np.inf, -np.inf, 0.5, 1.0, -3.0], (20, 40, n)).astype(dtype)
        np.testing.assert_array_equal(getattr(few, f"of_{n}")(x), np.sort(x, axis=-1))
        np.testing.assert_array_equal(
            getattr(few, f"middle_{n}")(x[:, :, 0]), getattr(few, f"middle_{n}").reference(x[:, :, 0])
        )
        same_bits(getattr(few, f"of_{n}"), [np.nan_to_num(x)])


LEAST = """
import numpy as np
from layerc import i64, layer, real


@layer
def nearest(d: real["N M"], *, k: int = 3) -> i64["N k"]:
    return np.argsort(d, axis=1)[:, :k]


@layer
def down(d: real["M N"]) -> i64["min(M,2) N"]:
    return np.argsort(d, axis=0)[:2]


@layer
def all_but_two(d: real["M"]) -> i64["max(0,M-2)"]:
    return np.argsort(d)[:-2]


@layer
def routed(score: real["T E"], w: real["E D"]) -> real["T D"]:
    top = np.argsort(-score, axis=-1)[:, :2]
    p = np.exp(np.take_along_axis(score, top, axis=-1))
    return np.sum((p / np.sum(p, axis=-1, keepdims=True))[:, :, None] * w[top], axis=1)


@layer
def of_a_row(d: real["N M"], w: real["M"]) -> real["N"]:
    y = np.zeros(d.shape[0])
    for i in range(d.shape[0]):
        row = d[i]
        order = np.argsort(row)
        y[i] = row[order] @ w
    return y
"""


@pytest.fixture(scope="module")
def least(folder):
    return built_from(folder, "least", LEAST)


@pytest.mark.parametrize("batch", [1, 3, 17])
def test_the_least_come_as_in_a_sort(least, batch):
    rng = np.random.default_rng(batch)
    for dtype in (np.float32, np.float64):
        for n, m in ((1, 9), (5, 12), (70, 30), (3, 100)):
            for some in ([0.5, 1.0, -3.0], [np.nan, np.inf, -np.inf, 0.5, 1.0], rng.standard_normal(50)):
                d = rng.choice(some, (batch, n, m)).astype(dtype)
                order = np.argsort(d, axis=2, kind="stable")
                for k in (0, 1, 3, 8, 9):
                    np.testing.assert_array_equal(least.nearest(d, k=k), order[:, :, :k])
                np.testing.assert_array_equal(least.all_but_two(d[:, 0]), order[:, 0, :-2])
                turned = np.ascontiguousarray(d.transpose(0, 2, 1))
                np.testing.assert_array_equal(least.down(turned), order.transpose(0, 2, 1)[:, :2])
    for m in (0, 1, 2):
        d = rng.standard_normal((batch, m))
        np.testing.assert_array_equal(least.all_but_two(d), np.argsort(d)[:, :-2])
        np.testing.assert_array_equal(least.down(d[:, :, None]), np.argsort(d[:, :, None], axis=1)[:, :2])
    with pytest.raises(ValueError, match="k"):
        least.nearest(np.zeros((batch, 2, 2)), k=3)


@pytest.mark.parametrize("batch", [0, 1, 17])
def test_gradients_of_the_least(least, batch):
    rng = np.random.default_rng(batch)
    for t, e in ((1, 2), (7, 5), (40, 19)):
        score = rng.permuted(np.linspace(-1, 1, batch * t * e).reshape(batch, t, e), axis=2)
        agrees(least.routed, [score, rng.standard_normal((batch, e, 4))], rng, 1e-12, 3e-6)
        agrees(least.of_a_row, [score, rng.standard_normal((batch, e))], rng, 1e-12, 3e-6)


def test_a_sort_of_a_view_is_done_once(folder, least):
    parts = compile_module(read_module(folder / "least.py"), upto="lower").parts
    kernel = next(p.kernel for p in parts if (p.layer.name, p.method) == ("of_a_row", "predict"))
    assert sum(isinstance(s, While) for s in walk(kernel.body)) == 2  # of the runs, and of pairs of them
