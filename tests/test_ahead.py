"""Where rows are gone over backwards, those to come are fetched: which loops do, and that nothing else changes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import built_from, in_caches, kernels_in
from thorough import agrees, same_bits

from layerc.transpile import emit
from layerc.transpile.ir import Const, For, Store
from layerc.transpile.passes.tree import walk
from layerc.transpile.passes.work import LAST_CACHE

SOURCE = """
import numpy as np
from layerc import layer, real


@layer
def variance(x: real["D"]) -> real[""]:
    return np.mean((x - np.mean(x)) ** 2)


@layer
def centred(x: real["T D"], scale: real["D"]) -> real["T D"]:
    return (x - np.mean(x, axis=1, keepdims=True)) * scale


@layer
def smoothed(x: real["T D"], decay: real["D"]) -> real["T D"]:
    y = np.zeros_like(x)
    h = np.zeros_like(decay)
    for t in range(x.shape[0]):
        h = decay * h + x[t] * x[t]
        y[t] = h
    return y


@layer
def stateful(k: real["T D"], v: real["T D"]) -> real["T D"]:
    # All of a row for each element of another: it is in the cache after the first.
    state = np.zeros((k.shape[1], k.shape[1]))
    y = np.zeros_like(k)
    for t in range(k.shape[0]):
        state = state + np.outer(k[t], v[t])
        y[t] = k[t] @ state
    return y


@layer
def likelihood(x: real["D"]) -> real[""]:
    top = np.max(x)
    return np.log(np.sum(np.exp(x - top))) + top


@layer
def twice(x: real["D"], z: real["D"]) -> real[""]:
    # Each is gone over twice more.
    total = np.sum(x) + np.sum(z)
    first = np.sum(np.exp(x - total) * np.exp(z - total))
    return np.sum(np.exp(x - first) * np.exp(z - first))


@layer
def single(x: real["D"], top: real[""]) -> real[""]:
    return np.sum(np.exp(x - top))


@layer
def steps(x: real["D"]) -> real[""]:
    # A loop of many steps would ask at each of them.
    w = np.max(x)
    n = 0
    while np.sum(np.exp(x - w)) > 1.0 and n < 9:
        w = w + 1.0
        n += 1
    return w


@layer
def once(x: real["D"], scale: real["D"]) -> real["D"]:
    return np.tanh(x) * scale
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ahead") / "fetching.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def package(file):
    return built_from(file.parent, "fetching", SOURCE)


def fetched(kernel):
    body = in_caches(kernel.body)
    return [(p.buffer, str(p.index[-2])) for s in walk(body) if isinstance(s, For) and not s.when for p in s.ahead]


def test_what_goes_forwards_is_not_fetched(file):
    """Processors see that a loop goes along memory, and that rows follow each other, in a cache at least."""
    kernels = kernels_in(file)
    for name in ("variance", "centred", "once", "smoothed"):
        assert fetched(kernels[name, "predict"]) == [], name


def test_of_a_long_row_only_what_a_cache_holds(file):
    text = emit.function(kernels_in(file)["smoothed", "backward"], "f32")
    assert re.search(r"lc_ahead\(&x\[.*lc_smaller\(D, LC_AHEAD\)", text)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1000, 1025])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_values_and_gradients(package, size, rows):
    rng = np.random.default_rng(size + rows)
    agrees(package.centred, [rng.standard_normal((rows, size)), rng.standard_normal(size)], rng, 1e-11, 1e-6)
    agrees(package.stateful, [rng.standard_normal((rows, min(size, 9))) for _ in range(2)], rng, 1e-10, 1e-5)
    agrees(package.smoothed, [rng.standard_normal((rows, size)), rng.standard_normal(size)], rng, 1e-11, 1e-6)
    x = rng.standard_normal((rows, size))
    np.testing.assert_allclose(package.variance(x), np.var(x, axis=1), 1e-12)


def test_bits_do_not_hang_on_threads(package):
    same_bits(package.variance, [np.random.default_rng(0).standard_normal((70, 40_000))])


def test_a_loop_back_fetches_rows_before_their_turn(file):
    """All that goes back with it, and only once a row."""
    found = fetched(kernels_in(file)["smoothed", "backward"])
    rows = [(name, index) for name, index in found if "- t_step" in index]
    assert rows, found
    assert all(index.endswith("- 6)" if name == "y" else "- 5") for name, index in rows), "four rows on"
    assert len(rows) == len(set(rows))
    assert {"x", "y", "dy", "d_x"} <= {name for name, _ in rows}


def test_a_row_that_is_gone_over_many_times_is_not_asked_for(file):
    """It would be at each of them; where it is filled, it is gone over once."""
    kernels = kernels_in(file)
    assert fetched(kernels["stateful", "predict"]) == []
    loops = [s for s in walk(in_caches(kernels["stateful", "backward"].body)) if isinstance(s, For)]
    asking = [s for s in loops if s.ahead and not s.when]
    fills = [s for loop in asking for s in loop.body]
    assert all(isinstance(s, Store) and isinstance(s.value, Const) for s in fills)


def asked(kernel):
    return [
        (p.buffer, str(p.index[0]), s.when is not None)
        for s in walk(kernel.body)
        if isinstance(s, For)
        for p in s.ahead
    ]


def test_what_is_dear_and_comes_from_a_cache_fetches_the_next_rows(file):
    """Behind all rows of a gang: those are there already."""
    found = asked(kernels_in(file)["likelihood", "predict"])
    assert found == [("x", "first + row_2 + rows", True)], found
    assert [name for name, _, _ in asked(kernels_in(file)["twice", "predict"])] == ["x", "z"], "once each"


def test_what_is_cheap_fetches_the_next_rows_where_all_come_from_memory(file):
    kernels = kernels_in(file)
    asking = [s for s in walk(kernels["variance", "predict"].body) if isinstance(s, For) and s.ahead]
    assert asking
    assert all(str(LAST_CACHE) in str(s.when) for s in asking)
    assert asked(kernels["once", "predict"]) == []


def test_one_sweep_or_a_while_fetches_nothing(file):
    kernels = kernels_in(file)
    for name in ("single", "steps"):
        assert asked(kernels[name, "predict"]) == [], name


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (1100, 1000)])
def test_rows_that_are_fetched_are_the_same(package, shape):
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, *shape))
    top = x.max(1)
    np.testing.assert_allclose(package.likelihood(x), np.log(np.exp(x - top[:, None]).sum(1)) + top, 1e-12)
    np.testing.assert_allclose(package.twice(x, z), package.twice.reference(x, z), 1e-9)
