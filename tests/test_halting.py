"""Insertion into a few places, as it is written: a loop that halts has as many turns as there may be, and a gradient
without a list of them. What its counter is asked behind it, and what fails, is as before."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, While
from layerc.transpile.passes.tree import in_vectors, walk

TEXT = '''
import numpy as np
from layerc import i64, layer, real


@layer
def median(x: real["C T"], half: int = 1) -> real["C T"]:
    """Where each begins the counter says; the buffer lives on."""
    C, T = x.shape
    n = 2 * half + 1
    y = np.zeros((C, T))
    buf = np.zeros(n)
    for c in range(C):
        for t in range(T):
            for k in range(n):
                v = x[c][min(max(t + k - half, 0), T - 1)]
                j = k - 1
                while j >= 0 and buf[j] > v:
                    buf[j + 1] = buf[j]
                    j -= 1
                buf[j + 1] = v
            y[c][t] = buf[half] + 0.1 * buf[0]
    return y


@layer
def nearest(x: real["Q 2"], p: real["P 2"], f: real["P"]) -> real["Q"]:
    """Places beside distances, behind a branch."""
    y = np.zeros(x.shape[0])
    far = np.zeros(3)
    who = np.zeros(3, dtype=np.int64)
    for q in range(x.shape[0]):
        for k in range(3):
            far[k] = 1e3
            who[k] = 0
        for i in range(p.shape[0]):
            a = x[q][0] - p[i][0]
            b = x[q][1] - p[i][1]
            d = a * a + b * b
            if d >= far[2]:
                continue
            k = 2
            while k > 0 and far[k - 1] > d:
                far[k] = far[k - 1]
                who[k] = who[k - 1]
                k -= 1
            far[k] = d
            who[k] = i
        for k in range(3):
            y[q] += f[who[k]] / (far[k] + 0.5)
    return y


@layer
def swapped(x: real["N 5"]) -> real["N 5"]:
    """Nothing follows; two are asked, and change places."""
    y = x * 1.0
    for n in range(x.shape[0]):
        for k in range(1, 5):
            j = k
            while j > 0 and y[n, j - 1] > y[n, j]:
                y[n, j - 1], y[n, j] = y[n, j], y[n, j - 1]
                j = j - 1
    return y * np.arange(5)


@layer
def upward(x: real["N"], limit: real[""]) -> real["N"]:
    """From the left, with three conditions; a second loop of the same counter."""
    top = np.zeros(4)
    y = np.zeros(x.shape[0])
    for n in range(x.shape[0]):
        j = 0
        while j < 3 and top[j + 1] < x[n] and x[n] < limit:
            top[j] = top[j + 1]
            j += 1
        top[j] = x[n]
        y[n] = top[0] * top[3] + x[n]
        j = 3
        while j >= 1 and top[j - 1] > 1.5:
            top[j] = 0.5 * top[j - 1]
            j -= 1
    return y + np.sum(top)


@layer
def told(x: real["N"]) -> real["N"]:
    """Where the loop has ended is asked later: after the next has begun."""
    last = np.zeros(3)
    y = np.zeros(x.shape[0])
    j = 2
    for n in range(x.shape[0]):
        y[n] = 0.5 * j + x[n]
        j = 2
        while j > 0 and last[j - 1] > x[n]:
            last[j] = last[j - 1]
            j -= 1
        last[j] = x[n]
    return y * last[0] + j


@layer
def below(x: real["N"]) -> real["N"]:
    """It may begin behind its end."""
    last = np.zeros(4)
    y = np.zeros(x.shape[0])
    for n in range(x.shape[0]):
        for k in range(3):
            j = k - 2
            while j >= 0 and last[j] > x[n]:
                last[j + 1] = last[j]
                j -= 1
            last[j + 2] = x[n] * (k + 1)
        y[n] = last[0] + last[1] * last[2]
    return y


@layer
def too_few(x: real["N"], size: int = 2) -> real["N"]:
    """Places that are not all there."""
    last = np.zeros(size)
    y = np.zeros(x.shape[0])
    for n in range(x.shape[0]):
        k = 3
        while k > 0 and last[k - 1] > x[n]:
            last[k] = last[k - 1]
            k -= 1
        last[k] = x[n]
        y[n] = last[0]
    return y


@layer
def whole(x: real["N"]) -> real["N"]:
    """An array is no few places."""
    y = x * 1.0
    for n in range(1, x.shape[0]):
        v = y[n]
        j = n - 1
        while j >= 0 and y[j] > v:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = v
    return y * np.arange(x.shape[0])
'''
SIZES = {
    "median": [(1, 1), (3, 7), (2, 33)],
    "nearest": [(1, 4), (5, 9), (33, 17)],
    "swapped": [(1, 5), (7, 5), (33, 5)],
    "upward": [(1,), (12,)],
    "told": [(1,), (12,)],
    "below": [(1,), (12,)],
    "whole": [(1,), (2,), (12,)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("halting")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "halting_of", TEXT)


def apart(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers no two of which are as close as differences go, nor is one to zero."""
    return rng.permuted(np.linspace(-2, 3.07, int(np.prod(shape)) or 1)[: int(np.prod(shape))]).reshape(shape)


def draw(name: str, sizes: tuple[int, ...], batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes) + batch)
    if name == "nearest":
        q, p = sizes
        return [rng.standard_normal((batch, *s)) for s in ((q, 2), (p, 2), (p,))]
    return [apart(rng, batch, *sizes), *([np.full(batch, 2.2)] if name == "upward" else [])]


@pytest.mark.parametrize("batch", [1, 5, 16])
@pytest.mark.parametrize(("name", "sizes"), [(name, s) for name, some in SIZES.items() for s in some])
def test_values_and_gradients(package, name, sizes, batch):
    agrees(getattr(package, name), draw(name, sizes, batch), np.random.default_rng(batch), 1e-12, 1e-5)


@pytest.mark.parametrize("half", [0, 1, 3, 9])
def test_other_configurations(package, half):
    agrees(package.median, draw("median", (2, 11), 3), np.random.default_rng(half), 1e-12, 1e-5, half=half)


@pytest.mark.parametrize("name", SIZES)
def test_ties_and_no_numbers(package, name):
    values = draw(name, SIZES[name][-1], 4)
    for fill in (np.nan, np.inf, 1.0):
        some = [v.copy() for v in values]
        some[0].reshape(-1)[::3] = fill
        layer = getattr(package, name)
        with np.errstate(all="ignore"):
            want = layer.reference(*some)
        np.testing.assert_allclose(layer(*some), want, 1e-12)


@pytest.mark.parametrize("name", ["median", "nearest", "swapped"])
def test_of_equal_ones_the_gradient_takes_the_one_that_was_taken(package, name):
    """Whole numbers, many of them equal: each is where the program has put it."""
    values = [np.round(v) for v in draw(name, SIZES[name][-1], 4)]
    layer = getattr(package, name)
    y, pullback = layer.vjp(*values)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    moved = np.round(100 * dy)
    first = pullback(moved)
    found = first[0] if isinstance(first, tuple) else first
    if name != "nearest":  # what goes in comes out, once for each number that was taken
        weights = {"median": 1.1, "swapped": None}[name]
        want = np.sum(moved * (weights if weights else np.arange(5.0)))
        np.testing.assert_allclose(np.sum(found), want, 1e-10)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", [n for n in SIZES if n != "whole"])
def test_none_at_all(package, name):
    sizes = tuple(0 if k == 0 else s for k, s in enumerate(SIZES[name][-1]))
    values = draw(name, sizes, 2)
    layer = getattr(package, name)
    np.testing.assert_array_equal(layer(*values), layer.reference(*values))


@pytest.mark.parametrize("name", ["median", "nearest", "swapped"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [v.astype(np.float32) for v in draw(name, SIZES[name][-1], 17)])


def test_what_is_not_there_fails_where_it_did(package):
    x = np.array([[1.0, 2.0]])
    for size in (0, 1, 2, 3):
        with pytest.raises(IndexError) as want:
            package.too_few.reference(x, size=size)
        with pytest.raises(IndexError, match=str(want.value).split(" is ")[0]):
            package.too_few(x, size=size)
    assert np.array_equal(package.too_few(x, size=4), package.too_few.reference(x, size=4))


def test_few_turns_are_counted(folder, package):
    kernels = kernels_in(folder / "halting_of.py")
    waits = {k for k, kernel in kernels.items() if any(isinstance(s, While) for s in walk(kernel.body))}
    assert not {(n, m) for n, m in waits if n in ("median", "nearest", "swapped", "upward", "too_few")}
    assert ("whole", "predict") in waits
    lists = [b for n in ("median", "nearest", "swapped") for b in kernels[n, "backward"].buffers if b.kind == "list"]
    assert not lists
    body = kernels["median", "predict"].body
    assert any(isinstance(s, For) and in_vectors(s) and s.hi.value == 16 for s in walk(body))
