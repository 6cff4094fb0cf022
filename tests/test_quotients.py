"""Gradients write quotients as a person does; and never one whose parts have changed meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.adjoint.quotients import by_quotients
from layerc.build.driver import gradient_source, read_module
from layerc.transpile import construct
from layerc.transpile.dims import Dim
from layerc.transpile.program import Assign, For, Name, Type

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def softmax(x: real["T S"]) -> real["T S"]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@layer
def attention(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    s = q @ k.T
    e = np.exp(s)
    p = e / np.sum(e, axis=1, keepdims=True)
    return p @ v


@layer
def changed(x: real["D"]) -> real["D"]:
    """What is divided is written into, once the quotient is made."""
    e = np.exp(x)
    t = np.sum(e)
    p = e / t
    e[0] = e[0] * 3.0
    return np.sin(p) * e + e / t


@layer
def rebound(x: real["D"]) -> real["D"]:
    """The divisor has another value, and the name of the quotient, too."""
    e = np.exp(x)
    t = np.sum(e)
    p = e / t
    q = np.cos(p)
    t = t + 2.0
    p = p * p
    return q * (e / t) + p


@layer
def steps(x: real["T D"]) -> real["T D"]:
    """A quotient for each step, of a state."""
    y = np.zeros_like(x)
    e = np.ones(x.shape[1])
    for t in range(x.shape[0]):
        e = e * np.exp(0.3 * x[t])
        total = np.sum(e)
        e = e / total
        y[t] = np.tanh(e) / total
    return y


@layer
def wide_divisor(x: real["D"], s: real[""]) -> real["D"]:
    """Terms with one divisor, of different shapes."""
    t = 2.0 + x * x
    return s / t + np.sin(x) / t + np.sum(x) / t


@layer
def twice(x: real["D"], w: real["D"]) -> real["D"]:
    """Divided by two, multiplied by one of those divided."""
    n = np.sqrt(np.sum(w * w) + 1.0)
    u = w / n
    v = x / n
    return u * v / n + np.exp(u - v)


@layer
def written_between(x: real["T D"], w: real["D"]) -> real["T D"]:
    """One divisor before and after it is written into: nests of loops that share an inverse do not share this one."""
    s = np.exp(w)
    y = x / s
    s *= 1.0 + w * w
    z = x * x / s
    s[0] = 3.0
    return y * z + x * x * x / s
'''

SHAPES = {
    "softmax": [(3, 5)],
    "attention": [(4, 3)] * 3,
    "changed": [(6,)],
    "rebound": [(6,)],
    "steps": [(4, 5)],
    "wide_divisor": [(7,), ()],
    "twice": [(5,), (5,)],
    "written_between": [(4, 5), (5,)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("quotients")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "quotients_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-4, 1e-3)])
def test_gradient(package, name, dtype, tight, close):
    rng = np.random.default_rng(len(name))
    for examples in (1, 3):
        values = [np.asarray(rng.standard_normal((examples, *shape)), dtype) for shape in SHAPES[name]]
        agrees(getattr(package, name), values, rng, tight, close)


def test_it_is_the_textbooks(package, folder):
    module = read_module(folder / "quotients_of.py")
    text = gradient_source(module, "softmax")
    assert "d_x = (dy - np.sum(dy * y, axis=1, keepdims=True)) * y\n" in text
    assert "exp" not in text
    text = gradient_source(module, "attention")
    assert "(d_ratio - np.sum(dy * y, axis=1, keepdims=True)) * p\n" in text
    assert "p = e / total_e" in text


def test_a_divisor_is_divided_by_once(folder, package):
    text = gradient_source(read_module(folder / "quotients_of.py"), "twice")
    assert "0.5 * np.sum(-(dy * ratio) - d_ratio * v - d_ratio_2 * u) / n / n" in text


def test_not_where_its_parts_have_changed():
    """Of hand-made statements: names that a loop or a line gives another value."""
    real, scalar = Type("real", (Dim.of("D"),)), Type("real")
    a, e, p, t = Name("a", real), Name("e", real), Name("p", real), Name("t", scalar)
    made = Assign("p", construct.call("divide", e, t))
    used = Assign("d", construct.call("multiply", construct.call("divide", a, t), e))
    better = Assign("d", construct.call("multiply", a, p))
    assert by_quotients([made, used], {}) == [made, better]
    for name, type in (("e", real), ("t", scalar), ("p", real)):
        other = Assign(name, construct.call("exp", Name(name, type)))
        assert by_quotients([made, other, used], {}) == [made, other, used]
        loop = For("k", construct.const(0), construct.const(3), 1, (used, other))
        assert by_quotients([made, loop], {}) == [made, loop]
    loop = For("k", construct.const(0), construct.const(3), 1, (used,))
    assert by_quotients([made, loop], {}) == [made, replace(loop, body=(better,))]
    back = Assign("d", construct.call("multiply", e, construct.call("divide", a, t)))
    assert by_quotients([back], {made.value: p}) == [better]


def test_a_largest_probability_has_a_gradient_of_nothing(package):
    """Rows of which one element takes all."""
    x = np.array([[[900.0, 0.0, -900.0]]], np.float32)
    y, pullback = package.softmax.vjp(x)
    (d_x,) = pullback(np.ones_like(y))
    assert np.array_equal(y, [[[1, 0, 0]]])
    assert np.array_equal(d_x, np.zeros_like(x))


# -- a quotient by what a loop does not change --------------------------------------------------------------------
SCALED = """
from layerc import layer, real


@layer
def scaled(x: real["D"], s: real[""]) -> real["D"]:
    return x / s
"""
DIVISORS = (1.0, -3.0, 7.0, 1 / 3, 0.0, -0.0, np.inf, -np.inf, np.nan)


@pytest.fixture(scope="module")
def scaled(folder):
    return built_from(folder, "scaled_by", SCALED).scaled


def anything(rng, dtype, shape):
    """Bits: all exponents, denormal numbers, infinities and NaN."""
    kind = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    return rng.integers(0, np.iinfo(kind).max, shape, kind, endpoint=True).view(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quotient_is_the_nearest_number(scaled, dtype):
    """But for one in some million, and where it is denormal; what is infinite, 0 or no number is so everywhere."""
    rng = np.random.default_rng(4)
    x, s = anything(rng, dtype, (4000, 500)), anything(rng, dtype, 4000)
    s[: len(DIVISORS)] = DIVISORS
    x[:, :12] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 3, 1 / 3, *np.finfo(dtype).tiny * np.array([1, 0.5, 2e-5])]
    x[:, 12:20], x[::2, 20:] = s[:, None] * np.arange(1, 9, dtype=dtype), rng.standard_normal((2000, 480))
    y, true = scaled(x, s), x / s[:, None]
    same = (y == true) & (np.signbit(y) == np.signbit(true)) | np.isnan(y) & np.isnan(true)
    size, least = np.abs(true), np.finfo(dtype).tiny
    special = ~np.isfinite(true) | (x == 0) | np.isinf(s)[:, None]
    assert np.all(same | ~special)
    assert np.mean(~same & (size > least / np.finfo(dtype).eps)) < 2e-6
    assert np.all((np.abs(y - true) <= 1.01 * np.spacing(size)) | special)
