"""The gradient of a part of what a subscript or a transpose shows goes to its place in the array, and to nothing else:
a loop over `x[1:]` does not fill an array of all steps in each of them."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

TEXT = """
import numpy as np
from layerc import Param, i64, layer, real


@layer
def tail(x: real["T K"]) -> real["K"]:
    v = x[0]
    for xt in x[1:]:
        v = np.tanh(v + xt)
    return v


@layer
def back(x: real["T K"]) -> real["K"]:
    v = x[0]
    for xt in x[::-1]:
        v = np.tanh(v - 0.5 * xt)
    return v


@layer
def columns(x: real["T K"]) -> real["T"]:
    v = x[:, 0]
    for xt in x.T[1:]:
        v = np.tanh(v + xt)
    return v


@layer
def swapped(x: real["A B C"]) -> real["C A"]:
    v = np.zeros((x.shape[2], x.shape[0]))
    for m in x.transpose(1, 2, 0):
        v = np.tanh(v + m)
    return v


@layer
def pairs(x: real["T K"]) -> real["K"]:
    v = x[0]
    for a, b in zip(x[:-1], x[1:]):
        v = np.tanh(v + a * b)
    return v


@layer
def every_other(x: real["T K"]) -> real["K"]:
    v = np.zeros(x.shape[1])
    for t, xt in enumerate(x[1::2]):
        v = np.tanh(v + xt) + x[2:][t - 1] * x[:-1][t]
    return v


@layer
def picked(x: real["T K"], at: i64["N"]) -> real["K"]:
    v = x[0]
    for j in at:
        v = np.tanh(v + x[1:][j] * x[:, 1:][j, -1])
    return v


@layer
def of_one(x: real["T K"], at: i64[""]) -> real["K"]:
    return 2 * x[1:][at]


@layer
def inner(x: real["T 4"]) -> real["2"]:
    v = np.zeros(2)
    for t in range(x.shape[0]):
        v = np.tanh(v + x[:, 1:][t, 1:3] + x[t][None, :2][0])
    return v


@layer
def viterbi(x: real["T K"], trans: Param[real["K K"]]) -> real:
    K = x.shape[1]
    v = x[0]
    for xt in x[1:]:
        new = np.zeros(K)
        for k in range(K):
            new[k] = np.max(v + trans[:, k]) + xt[k]
        v = new
    return v.max()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nested")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "nested_of", TEXT)


@pytest.mark.parametrize(("t", "k"), [(1, 1), (1, 3), (2, 1), (7, 4), (16, 17)])
def test_loops(package, t, k):
    rng = np.random.default_rng(t + k)
    x = rng.standard_normal((3, t, k))
    for name in ("tail", "back", "columns", "pairs"):
        agrees(getattr(package, name), [x], rng, 1e-12, 1e-6)
    agrees(package.swapped, [rng.standard_normal((2, t, k, 3))], rng, 1e-12, 1e-6)
    agrees(package.viterbi, [x, rng.standard_normal((k, k))], rng, 1e-12, 1e-6)


@pytest.mark.parametrize("t", [4, 5, 12])
def test_places_that_are_counted_from_the_end(package, t):
    rng = np.random.default_rng(t)
    x = rng.standard_normal((2, t, 4))
    agrees(package.every_other, [x], rng, 1e-12, 1e-6)
    agrees(package.picked, [x, rng.integers(1 - t, t - 1, (2, 9))], rng, 1e-12, 1e-6)
    agrees(package.of_one, [x, np.array([-1, 1 - t])], rng, 1e-12, 1e-6)
    agrees(package.inner, [x], rng, 1e-12, 1e-6)


def test_no_steps(package):
    x = np.ones((2, 0, 3))
    with pytest.raises(IndexError):
        package.tail(x)
    y, pullback = package.picked.vjp(np.ones((2, 1, 3)), np.ones((2, 0), int))
    assert np.array_equal(pullback(np.ones_like(y))[0], np.ones((2, 1, 3)))


@pytest.mark.parametrize("at", [3, 4, -4, -5])
def test_what_the_view_does_not_have_is_an_error(package, at):
    """Though the array has it: x[1:][-4] of four rows is not x[0]."""
    x = np.ones((1, 4, 2))
    for call in (package.of_one, package.of_one.reference, package.of_one.vjp):
        with pytest.raises(IndexError):
            call(x, np.array([at]))


def test_no_array_of_all_steps(package, folder):
    gradient = (folder / "nested_of_compiled" / "gradients.py").read_text()
    assert "d_part" not in gradient
    assert "d_x[i + 1] += d_v" in gradient
    assert "d_x[:, i + 1] += d_v" in gradient
    assert "d_x[T - i - 1] -= 0.5 * d_v" in gradient or "d_x[T - i - 1] +=" in gradient
