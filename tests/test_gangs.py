"""What rows ask for as numbers is computed for many rows at once: the same numbers, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, in_caches, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import has, walk

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


@layer
def norm(x: real["T D"], weight: Param[real["D"]]) -> real["T D"]:
    """A loop that waits for a number that waits for a loop, twice."""
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-3) * weight


@layer
def softmax(x: real["D"]) -> real["D"]:
    """Elements cross from one loop over the row to another."""
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


@layer
def told(x: real["K"], label: i32) -> real["K"]:
    """An index that can be wrong, and a loop that waits."""
    e = np.exp(x) / np.sum(np.exp(x))
    return e * x[label]


@layer
def steps(x: real["T D"]) -> real["T D"]:
    """A loop of the user, whose numbers are used once more at the end of each row."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top = np.max(np.abs(x[t])) + 1.0
        scale = np.sqrt(np.sum((x[t] / top) ** 2) + 1.0)
        for d in range(x.shape[1]):
            y[t, d] = x[t, d] / (scale * top)
        y[t, 0] += np.log(scale) * top
    return y


@layer
def twice(x: real["D"]) -> real[""]:
    """A number that a loop waits for, and that is added to after it."""
    s = 0.0
    for d in range(x.shape[0]):
        s += x[d] ** 2
    scale = np.sqrt(s + 1.0)
    for d in range(x.shape[0]):
        s += np.exp(x[d] / scale)
    return np.log(s) * np.tanh(s)


@layer(batched=True)
def whole(x: real["N D"]) -> real["N"]:
    total = np.sum(np.exp(x), axis=1)
    return np.log(total) + np.tanh(total)
'''

PLAIN = """
@layer
def means(x: real["T D"]) -> real["T"]:
    return np.mean(x, axis=1)


@layer
def elements(x: real["T D"]) -> real["T D"]:
    return np.exp(x) / (1.0 + np.exp(x))
"""

NAMES = ["focal", "cosine", "two_ends", "by_rows", "norm", "softmax", "told", "steps", "twice", "whole"]


def draw(name: str, batch: int, d: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 100 + d)
    x = (0.5 * rng.standard_normal((batch, d))).astype(dtype)
    match name:
        case "focal" | "told":
            return [x, rng.integers(0, d, batch).astype(np.int32)]
        case "cosine":
            return [x, x[::-1].copy(), rng.integers(0, 2, batch).astype(np.int32)]
        case "by_rows" | "steps":
            return [(0.5 * rng.standard_normal((batch, 7, d))).astype(dtype)]
        case "norm":
            return [(0.5 * rng.standard_normal((batch, 35, d))).astype(dtype), np.linspace(0.5, 1.5, d).astype(dtype)]
    return [x]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gangs")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "gangs_of", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "gangs_of.py")


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


@pytest.mark.parametrize("name", ["focal", "told"])
def test_an_index_out_of_range_is_named(package, name):
    """The first row's, not that of the first phase."""
    x, label = draw(name, 100, 6, np.float32)
    label[57], label[58] = 6, 9
    with pytest.raises(IndexError, match="index 6 is out"):
        getattr(package, name)(x, label)


@pytest.mark.parametrize(("batch", "d"), [(70, 64), (9, 9000), (3, 5000), (33, 2000)])
def test_rows_of_any_length(package, batch, d):
    """A gang has fewer rows the longer they are."""
    (x,) = draw("softmax", batch, d, np.float64)
    np.testing.assert_allclose(package.softmax(x), package.softmax.reference(x), 1e-12, 1e-15)
    same_bits(package.softmax, draw("softmax", batch, d, np.float32))


@pytest.mark.parametrize("name", ["norm", "softmax", "steps"])
def test_rows_beside_nan(package, name):
    values = draw(name, 50, 24, np.float32)
    clean = getattr(package, name)(*values)
    values[0][20] = np.nan
    got = getattr(package, name)(*values)
    assert np.isnan(got[20]).all()
    assert np.array_equal(np.delete(got, 20, axis=0), np.delete(clean, 20, axis=0))


def gangs_of(kernel):
    return [s for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("gang")]


@pytest.mark.parametrize(
    ("name", "phases"),
    [("focal", 3), ("cosine", 2), ("two_ends", 2), ("norm", 5), ("softmax", 4), ("told", 3), ("steps", 5)],
)
def test_there_are_gangs(kernels, name, phases):
    """Loops over rows and loops over numbers, of one gang all of them."""
    found = gangs_of(kernels[name, "predict"])
    assert found
    for gang in found:
        (first,) = in_caches(gang.body)
        assert len(first.body) == phases
        assert len({rows.hi for rows in first.body}) == 1
        assert sum(not has(rows.body, For) for rows in first.body) == (phases - 1) // 2 + (phases == 2)


def test_what_does_not_wait_stays_together(folder, package):
    """A pass over each row, and a number of it that is cheap."""
    path = folder / "plain.py"
    path.write_text(TEXT.split("@layer", maxsplit=1)[0] + PLAIN)
    for (name, _), kernel in kernels_in(path).items():
        assert not gangs_of(kernel), name
