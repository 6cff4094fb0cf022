"""What all terms of a gradient's sum have in common is left to the sum, and equal sums are made once: how many sums a
gradient asks each element for, and that it stays the gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ir_kernels import Builder
from nets import built_from
from thorough import agrees

from layerc.transpile.ir import For, Op, Store
from layerc.transpile.passes.common import common
from layerc.transpile.passes.tree import parts, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer(batched=True)
def channels_last(x: real["N S C"], weight: Param[real["C"]], bias: Param[real["C"]]) -> real["N S C"]:
    mean = np.mean(x, axis=(0, 1))
    variance = np.mean((x - mean) ** 2, axis=(0, 1))
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


@layer(batched=True)
def channels_first(x: real["N C S"], weight: Param[real["C"]], bias: Param[real["C"]]) -> real["N C S"]:
    mean = np.mean(x, axis=(0, 2), keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=(0, 2), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * weight[:, None] + bias[:, None]


@layer
def in_groups(x: real["C S"], weight: Param[real["C"]], bias: Param[real["C"]], *, groups: int = 2) -> real["C S"]:
    c, s = x.shape
    g = x.reshape(groups, c // groups, s)
    centred = g - np.mean(g, axis=(1, 2), keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=(1, 2), keepdims=True) + 1e-5)
    return scaled.reshape(c, s) * weight[:, None] + bias[:, None]


@layer
def root_mean_square(x: real["T D"], weight: Param[real["D"]]) -> real["T D"]:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight


@layer
def by_loops(x: real["C S"], weight: Param[real["C"]], a: real[""]) -> real[""]:
    """Loops of the user; a weight for each row, one for all, and a term that is negative."""
    total = 0.0
    for c in range(x.shape[0]):
        for s in range(x.shape[1]):
            total += -(weight[c] * np.sin(x[c, s])) * a / 3.0
    return np.tanh(total)


@layer
def cosine(a: real["D"], b: real["D"]) -> real[""]:
    return np.sum(a * b) / (np.sqrt(np.sum(a * a)) * np.sqrt(np.sum(b * b)) + 1e-8)


@layer
def asked_between(x: real["T D"], w: real["D"]) -> real["T D"]:
    """Sums that later rows ask for, and an argument that is written into in between."""
    s = np.sum(x * w / (1.0 + np.sum(w * w)), axis=1, keepdims=True)
    x = x.copy()
    x[0] = x[0] * 2.0
    r = np.sum(x * w / (1.0 + np.sum(w * w)), axis=1, keepdims=True)
    return x * s + np.sin(x * r) / (1.0 + r * r)


@layer
def largest(x: real["T D"], w: real["T"]) -> real["D"]:
    """Of rows, told by a sum with a factor: what decides is the forward's, to the last bit."""
    score = np.sum(x * w[:, None] / 3.0, axis=1)
    return np.max(score) * x[np.argmax(score)]
'''

SHAPES = {
    "channels_last": [(3, 5, 4), (4,), (4,)],
    "channels_first": [(3, 4, 5), (4,), (4,)],
    "in_groups": [(3, 4, 5), (4,), (4,)],
    "root_mean_square": [(3, 4, 5), (5,)],
    "by_loops": [(3, 4, 5), (4,), (3,)],
    "cosine": [(3, 6), (3, 6)],
    "asked_between": [(3, 4, 5), (3, 5)],
    "largest": [(3, 4, 5), (3, 4)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("common"), "in_common", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-4, 2e-3)])
def test_gradient(package, name, dtype, tight, close):
    rng = np.random.default_rng(len(name))
    for wide in (1, 7):  # vectors, and what is left of them
        shapes = [(*s[:-1], s[-1] * wide) if s[-1] == 5 else s for s in SHAPES[name]]
        values = [np.asarray(rng.standard_normal(s), dtype) for s in shapes]
        agrees(getattr(package, name), values, rng, tight, close)


def test_one_and_empty(package):
    for shape in ((1, 1, 1), (0, 3, 2), (2, 0, 3), (2, 3, 0)):
        channels = np.ones(shape[-1], np.float32)
        y, pullback = package.channels_last.vjp(np.ones(shape, np.float32), channels, channels)
        d_x, d_weight, d_bias = pullback(np.ones_like(y))
        assert d_x.shape == shape and d_weight.shape == d_bias.shape == channels.shape
        assert np.array_equal(d_bias, np.full(channels.shape, float(shape[0] * shape[1])))
        assert np.array_equal(d_weight, np.zeros_like(d_weight)), "also where a deviation of nothing is no number"


# -- the kernels --------------------------------------------------------------------------------------------------
def sums(kernel) -> list[str]:
    """What is added up in loops that have nothing else."""
    return [s.buffer for loop in walk(kernel.body) if isinstance(loop, For) for s in loop.body if _is_sum(s, loop)]


def _is_sum(stmt, loop) -> bool:
    return isinstance(stmt, Store) and stmt.op == "add" and all(loop.var not in d.symbols() for d in stmt.index)


def made(between=None, second=lambda i, x, w: x[i] * w[()] / 7.0):
    """r += x[i] * w / 3; (between); s += ..."""
    k = Builder("k", "N")
    x, w, y = k.arg("x", "N"), k.arg("w"), k.out("y", "N")
    r, s = k.temp(name="r"), k.temp(name="s")
    r.store((), 0.0)
    k.loop("i", "N", lambda i: r.store((), x[i] * w[()] / 3.0, op="add"), "map")
    if between:
        between(k, r, y)
    s.store((), 0.0)
    k.loop("j", "N", lambda j: s.store((), second(j, x, w), op="add"), "map")
    k.loop("m", "N", lambda m: y.store(m, r[()] + s[()]), "map")
    return replace(k.kernel(), flush=True)


def test_equal_sums_are_made_once():
    kernel = made()
    after = common(kernel)
    assert len(sums(kernel)) == 2 and len(sums(after)) == 1
    assert common(replace(kernel, flush=False)) == replace(kernel, flush=False), "a forward rounds as NumPy does"
    inner = [s for loop in walk(after.body) if isinstance(loop, For) for s in loop.body if _is_sum(s, loop)]
    assert not any(isinstance(p, Op) and p.op in ("multiply", "divide") for s in inner for p in parts(s.value))


def test_others_are_not():
    assert len(sums(common(made(second=lambda i, x, w: x[i] * x[i] / 7.0)))) == 2


def test_nor_of_what_has_changed():
    k = Builder("k", "N")
    y, w, z = k.out("y", "N"), k.arg("w"), k.out("z", "N")
    r, s = k.temp(name="r"), k.temp(name="s")
    k.loop("f", "N", lambda i: y.store(i, w[()] + 1.0), "map")
    r.store((), 0.0)
    k.loop("i", "N", lambda i: r.store((), y[i] * w[()], op="add"), "map")
    k.loop("g", "N", lambda i: y.store(i, r[()] + y[i] * y[i]), "map")
    s.store((), 0.0)
    k.loop("j", "N", lambda i: s.store((), y[i] * w[()], op="add"), "map")
    k.loop("m", "N", lambda i: z.store(i, s[()]), "map")
    assert len(sums(common(replace(k.kernel(), flush=True)))) == 2
