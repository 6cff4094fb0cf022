"""Halves of an axis, x[: d // 2] and x[d // 2 :], are as long as each other where d is even: that is asked of the
call, and then nobody reshapes anything."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.build.driver import gradient_source, read_module
from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def gated(x: real["T D"]) -> real["T D//2"]:
    d = x.shape[1] // 2
    a = x[:, :d]
    b = x[:, d:]
    return a / (1.0 + np.exp(-b))


@layer
def coupled(x: real["D"], s: real["D//2"]) -> real["D"]:
    """Written to a half, and added to it."""
    d = x.shape[0] // 2
    y = np.zeros_like(x)
    y[:d] = x[:d]
    y[d:] = x[d:] * np.exp(s)
    y[d:] += np.sin(x[:d])
    return y


@layer
def steps(x: real["T D"]) -> real["T D//2"]:
    """In a loop: where it does not run, nothing is asked."""
    t, d = x.shape
    y = np.zeros((t, d // 2))
    for i in range(t):
        a = x[i, : d // 2]
        b = x[i, d // 2 :]
        y[i] = np.tanh(a) * b
    return y


@layer
def quarters(x: real["D"], h: real["D//4"]) -> real["D//4"]:
    n = x.shape[0] // 4
    i, f, g, o = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n :]
    return np.tanh(f * h + i * np.tanh(g)) / (1.0 + np.exp(-o))


@layer
def outside(x: real["T D"]) -> real["T D//2"]:
    """A half that is taken before the loop, and used in it."""
    t, d = x.shape
    b = np.exp(x[:, d // 2 :])
    y = np.zeros((t, d // 2))
    for i in range(t):
        y[i] = b[i] * x[i, : d // 2]
    return y


@layer
def sometimes(x: real["D"], *, halves: bool = True) -> real[""]:
    """What is asked on one way only; the other one has a middle."""
    d = x.shape[0] // 2
    r = np.sum(np.sin(x[d:]))
    if halves:
        r += np.sum(x[:d] * x[d:])
    return r


@layer
def by_sign(x: real["D"]) -> real[""]:
    """The same of a branch that numbers decide."""
    d = x.shape[0] // 2
    r = np.sum(np.sin(x[d:]))
    if x[0] > 0.0:
        r += np.sum(x[:d] * x[d:])
    return r


@layer
def skips(x: real["T D"]) -> real[""]:
    """Steps that are left before their halves meet."""
    t, d = x.shape
    r = 0.0
    for i in range(t):
        b = x[i, d // 2 :]
        r += np.sum(np.sin(b))
        if x[i, 0] < 0.0:
            continue
        r += np.sum(x[i, : d // 2] * b)
    return r


@layer
def joined(x: real["T D"], w: Param[real["D//2"]]) -> real["T D"]:
    """Both halves meet a weight, and come together again."""
    d = x.shape[1] // 2
    return np.concatenate((x[:, d:] * w, np.cos(x[:, :d]) + x[:, d:]), axis=1)


@layer
def turned(x: real["T D"], angle: real["T D//2"]) -> real["T D"]:
    """Rotary positions, as they are mostly written."""
    h = x.shape[1] // 2
    a, b = x[:, :h], x[:, h:]
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate((a * c - b * s, a * s + b * c), axis=1)


def meet(a, b):
    return a * b


@layer
def helped(x: real["D"], z: real["E"]) -> real[""]:
    """A helper whose halves are those of one argument, then of another one, which has none."""
    return np.sum(meet(x[: x.shape[0] // 2], x[x.shape[0] // 2 :])) + np.sum(z[z.shape[0] // 2 :] ** 2)
'''

SHAPES = {
    "gated": [(3, 6)],
    "coupled": [(6,), (3,)],
    "steps": [(3, 4)],
    "quarters": [(8,), (2,)],
    "outside": [(3, 4)],
    "sometimes": [(6,)],
    "by_sign": [(6,)],
    "skips": [(4, 6)],
    "helped": [(6,), (5,)],
    "joined": [(3, 6), (3,)],
    "turned": [(3, 6), (3, 3)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("agree")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "agree_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 5, 18])
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-5, 1e-3)])
def test_values_and_gradients(package, name, examples, dtype, tight, close):
    rng = np.random.default_rng(examples)
    own = 1 if name == "joined" else len(SHAPES[name])  # the others are weights
    values = [rng.standard_normal((examples, *s) if k < own else s) for k, s in enumerate(SHAPES[name])]
    values = [np.asarray(v, dtype) for v in values]
    agrees(getattr(package, name), values, rng, tight, close)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("gated", [(2, 3, 5)]),
        ("gated", [(2, 0, 5)]),  # as NumPy
        ("coupled", [(2, 5), (2, 2)]),
        ("steps", [(2, 3, 5)]),
        ("quarters", [(2, 9), (2, 2)]),
        ("outside", [(2, 3, 5)]),
        ("sometimes", [(2, 5)]),
        ("by_sign", [(2, 5)]),
        ("skips", [(2, 3, 5)]),
        ("helped", [(2, 5), (2, 5)]),
        ("turned", [(2, 3, 5), (2, 3, 2)]),
    ],
)
def test_what_leaves_a_remainder(package, name, shapes):
    values = [np.ones(shape) for shape in shapes]
    for call in (getattr(package, name), getattr(package, name).vjp):
        with pytest.raises(ValueError, match="could not be broadcast"):
            call(*values)


def test_where_they_do_not_meet_nothing_is_asked(package):
    odd = -np.ones((2, 5))
    assert package.steps(np.ones((2, 0, 5))).shape == (2, 0, 2)
    assert package.steps(np.ones((0, 3, 5))).shape == (0, 3, 2)
    assert np.allclose(package.sometimes(odd, halves=False), 3 * np.sin(-1.0))
    assert np.allclose(package.by_sign(odd), 3 * np.sin(-1.0))
    (d_x,) = package.by_sign.vjp(odd)[1](np.ones(2))
    assert np.allclose(d_x, [[0, 0, *[np.cos(-1.0)] * 3]] * 2)
    assert np.allclose(package.skips(-np.ones((2, 4, 5))), 12 * np.sin(-1.0))


def test_gradients_as_one_would_write_them(package, folder):
    module = read_module(folder / "agree_of.py")
    for name in ("gated", "coupled", "steps", "quarters"):
        assert "reshape" not in gradient_source(module, name), name


@pytest.mark.parametrize("name", ["gated", "coupled", "steps", "quarters"])
@pytest.mark.parametrize("method", ["predict", "backward"])
def test_halves_are_one_loop(package, folder, name, method):
    """No loop goes over what the first half leaves."""
    kernel = kernels_in(folder / "agree_of.py")[name, method]
    assert not [s.var for s in walk(kernel.body) if isinstance(s, For) and "D - " in str(s.hi - s.lo)]
