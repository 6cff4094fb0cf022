"""Stacks: lists that are popped from. Entries left over, and pops under conditions, have the right gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.build.driver import gradient_source, read_module

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def leftover(x: real["N"]):
    seen = []
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        seen.append(x[i] * x[i])
    for i in range(x.shape[0] // 2):
        y[i] = seen.pop() * 3.0
    return y


@layer
def brackets(x: real["N"]):
    """A stack: positive values are pushed, negative ones pop and multiply."""
    stack = []
    n = 0
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            stack.append(np.sin(x[i]))
            n += 1
        elif n > 0:
            total += stack.pop() * x[i]
            n -= 1
    return total


@layer
def rows(x: real["N D"]):
    stack = []
    n = 0
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        stack.append(x[i] * 2.0)
        n += 1
        if x[i, 0] < 0 and n > 1:
            a = stack.pop()
            b = stack.pop()
            stack.append(a * b)
            n -= 1
    for i in range(n):
        if i < 2:
            y[i] = stack.pop()
    return y


@layer
def inner(x: real["N M"]):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        s = []
        for j in range(x.shape[1]):
            s.append(x[i, j] * x[i, j])
        for j in range(min(2, x.shape[1])):
            y[i, j] = s.pop() * x[i, 0]
    return y


@layer
def before(x: real["N"]):
    s = []
    s.append(1.0)
    for i in range(x.shape[0]):
        s.append(x[i])
        y = s.pop() * 2.0
    z = s.pop()
    return y + z


@layer
def loose(x: real):
    s = []
    k = 0
    v = x * 0.7
    while v > 0.1 and k < 30:
        s.append(v * v)
        v = v * 0.6
        k += 1
    return s.pop() + s.pop() * v


@layer
def otherwise(x: real["N"]):
    """Only one way of a branch appends."""
    s = []
    total = 0.0
    s.append(x[0])
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            total += x[i]
        else:
            s.append(x[i] * x[i])
    return total * s.pop()


@layer
def configured(x: real["N"], *, n: int = 2, m: int = 1):
    s = []
    y = np.zeros_like(x)
    for i in range(n):
        s.append(x[i] * x[i])
    for i in range(m):
        y[i] = s.pop() * 3.0
    return y


@layer
def equal(x: real["N"], *, n: int = 2):
    s = []
    y = np.zeros_like(x)
    for i in range(n):
        s.append(x[i] * x[i])
    for i in range(n):
        y[i] = s.pop() * 3.0
    return y


@layer
def triangle(x: real["N"]):
    s = []
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(i):
            s.append(x[i] * x[j])
    for i in range(x.shape[0] - 1):
        y[i] = s.pop()
    return y


@layer
def vectors(x: real["N D"]):
    s = []
    total = 0.0
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            s.append(np.tanh(x[i]))
    if x[0, 0] > 0:
        total = np.sum(s.pop() * x[0])
    return total
'''

SHAPES = {
    "leftover": (7,),
    "brackets": (30,),
    "rows": (12, 3),
    "inner": (3, 5),
    "before": (6,),
    "loose": (),
    "otherwise": (9,),
    "configured": (6,),
    "equal": (6,),
    "triangle": (6,),
    "vectors": (6, 3),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("stacks"), "stacks", TEXT)


def values(name: str, rng: np.random.Generator, dtype: str) -> np.ndarray:
    x = rng.standard_normal(SHAPES[name])
    if name == "vectors":
        x[0, 0] = abs(x[0, 0])  # else there may be nothing to pop
    return np.asarray(np.abs(x) + 1.5 if name == "loose" else x, dtype)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-9, 1e-5), ("f4", 1e-4, 1e-3)])
def test_gradient(package, name, dtype, tight, close):
    rng = np.random.default_rng(7)
    for _ in range(5):
        agrees(getattr(package, name), [values(name, rng, dtype)], rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_written_gradient_is_the_compiled_one(package, name):
    rng = np.random.default_rng(8)
    x = values(name, rng, "f8")
    layer = getattr(package, name)
    y, pullback = layer.vjp(x)
    dy = rng.standard_normal(np.shape(y))
    space: dict = {}
    exec(Path(package.__file__).with_name("gradients.py").read_text(), space)
    (d_x,) = pullback(dy)
    np.testing.assert_allclose(d_x, space[f"d_{name}"](x, dy), 1e-12, 1e-12)


def test_zeros_are_only_where_entries_are_left(tmp_path):
    path = tmp_path / "stacks.py"
    path.write_text(TEXT)
    module = read_module(path)
    assert "range(N - N // 2)" in gradient_source(module, "leftover")
    assert "d_s.append(0.0)" not in gradient_source(module, "equal")
    assert "s_left += 1" in gradient_source(module, "triangle")


def test_gradient_of_the_gradient(tmp_path):
    path = tmp_path / "stacks.py"
    path.write_text(TEXT[: TEXT.index("@layer\ndef brackets")])
    second = built_from(tmp_path, "second", gradient_source(read_module(path)))
    rng = np.random.default_rng(9)
    agrees(second.d_leftover, [rng.standard_normal(7), rng.standard_normal(7)], rng, 1e-9, 1e-5)
