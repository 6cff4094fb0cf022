"""Quotients in gradients: rough where only sizes hang on them, exact where a decision does."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in

from layerc.transpile.ir import Op
from layerc.transpile.passes.tree import own_exprs, parts, walk

SOURCE = '''
import numpy as np
from layerc import i64, layer, real


@layer
def scaled(x: real["N"], s: real[""]):
    """Nothing is decided: both quotients of the gradient may be rough."""
    return x / s


@layer
def largest(x: real["N"], s: real[""]):
    """The gradient asks again which quotient was the largest: it has to find it."""
    return np.max(x / s)


@layer
def compared(x: real["N"], s: real[""], t: real[""]):
    """By way of another array, and of a nested quotient."""
    y = x / s
    z = np.sqrt(1.0 + y * y) / t
    return np.where(z > np.mean(z), y * z, y)


@layer
def rounded(x: real["N"], s: real[""]):
    """The derivative of floor is 0, but what it rounds counts."""
    return (x - s * np.floor(x / s)) ** 2


@layer
def looked_up(x: real["N"], table: real["K"], s: real[""]):
    y = np.zeros_like(x)
    for k in range(x.shape[0]):
        y[k] = table[min(max(int(x[k] / s), 0), table.shape[0] - 1)] * x[k] / s
    return y
'''
TIES = np.array([1, 3, 5, 7, 9, 11, 13, 49, 3e-20, 7e20])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("decide") / "deciding.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def package(file):
    return built_from(file.parent, "deciding", SOURCE)


def quotients(file, name, method="backward"):
    kernels = kernels_in(file)
    kernel = kernels[name, method]
    every = [p.op for s in walk(kernel.body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op)]
    return {op: every.count(op) for op in ("quotient", "rough_quotient") if op in every}


def test_a_forward_is_exact(file):
    assert list(quotients(file, "scaled", "predict")) == ["quotient"]


@pytest.mark.parametrize(
    ("name", "exact"), [("scaled", False), ("largest", True), ("compared", True), ("rounded", True)]
)
def test_which_are_exact(file, name, exact):
    assert ("quotient" in quotients(file, name)) == exact, quotients(file, name)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("divisor", TIES)
def test_the_largest_is_found_again(package, real, divisor):
    """Whatever the last bits of the quotients are, one element gets all of the gradient."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = rng.standard_normal(70).astype(real)
        gradient = package.largest.vjp(x, real(divisor))[1](real(1))[0]
        assert np.count_nonzero(gradient) == 1 and np.argmax(gradient) == np.argmax(x)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["scaled", "compared", "rounded"])
@pytest.mark.parametrize("divisor", TIES)
def test_rough_is_within_two_units(package, real, name, divisor):
    """Of the gradient as NumPy computes it from the same source, in more digits."""
    layer, rng = getattr(package, name), np.random.default_rng(1)
    values = [rng.standard_normal(100).astype(real) * real(divisor), real(divisor)]
    values += [real(3)] if name == "compared" else []
    y, pullback = layer.vjp(*values)
    dy = rng.standard_normal(y.shape).astype(real)
    got = pullback(dy)[0]
    step = np.float64(1e-6) * divisor
    wide = [np.asarray(v, np.float64) for v in values]
    if name == "scaled":
        np.testing.assert_allclose(got, dy.astype(float) / np.float64(divisor), 2 * np.finfo(real).eps)
        return
    ends = [layer.reference(wide[0] + s * step, *wide[1:]) for s in (1, -1)]
    want = np.sum(dy * (ends[0] - ends[1])) / (2 * step)
    scale = np.sum(np.abs(dy)) / divisor if name == "compared" else np.sum(np.abs(dy)) * divisor
    assert abs(np.sum(got, dtype=float) - want) <= (2e-3 if real == np.float32 else 1e-6) * scale


@pytest.mark.parametrize("divisor", [0.0, -0.0, np.inf, np.nan, 1e-45, 3e38])
def test_divisors_at_the_edge(package, divisor):
    dy = np.float32([0, 1, -1, 1e-30, 1e30, np.inf, np.nan])
    with np.errstate(all="ignore"):
        want = dy / np.float32(divisor)
        got = package.scaled.vjp(dy, np.float32(divisor))[1](dy)[0]
    tiny = np.abs(want) < np.finfo(np.float32).tiny  # gradients flush what is not normal
    np.testing.assert_allclose(got[~tiny], want[~tiny], 3e-7)
    assert np.all(np.abs(got[tiny]) < np.finfo(np.float32).tiny)


def test_indices_are_exact(package):
    x = np.float32(np.arange(1, 60)) * np.float32(0.1)
    table, s = np.arange(70, dtype=np.float32), np.float32(0.1)
    y, pullback = package.looked_up.vjp(x, table, s)
    assert np.array_equal(y, package.looked_up.reference(x, table, s))
    gradient = pullback(np.ones_like(y))[1]
    places = np.clip((x / s).astype(int), 0, 69)
    assert set(np.flatnonzero(gradient)) == set(places)
