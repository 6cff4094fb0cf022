"""Recurrences of rows: strands for threads, one product for what all steps add to a shared array."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Product
from layerc.transpile.passes.tree import walk

SOURCE = '''
import numpy as np
from layerc import Param, layer, real


@layer(batched=True)
def cell(x: real["N T D"], w: real["D H"], u: real["H H"], b: real["H"]):
    """All that a recurrent layer does: the product with the input stands in the loop, as people write it."""
    h = np.zeros((x.shape[0], u.shape[0]))
    y = np.empty((x.shape[0], x.shape[1], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u + b)
        y[:, t] = h
    return y


@layer(batched=True)
def lasts(x: real["N T D"], w: real["D H"], u: real["H H"]):
    """The same, of which the last state is all that is returned; two states, and one that a branch leaves as it is."""
    h, c = np.zeros((x.shape[0], u.shape[0])), np.ones((x.shape[0], u.shape[0]))
    for t in range(x.shape[1]):
        forget = 1 / (1 + np.exp(-(h @ u)))
        if t > 0:
            c = forget * c + np.tanh(x[:, t] @ w)
        h = np.sin(c @ u) * forget
    return h + c


@layer(batched=True)
def mixed(x: real["N T H"], u: real["H H"]):
    """Rows that touch each other: each step takes the mean of all."""
    h = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h @ u)
        h = h - np.mean(h, axis=0)
    return h


@layer(batched=True)
def turned(x: real["N T H"], u: real["H H"]):
    """Rows that change places at every step."""
    h = np.zeros((x.shape[0], u.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h[::-1] @ u)
    return h


@layer(batched=True)
def square(x: real["N T N"], u: real["N N"]):
    """Rows and columns are as many: which axis is the row?"""
    h = np.zeros((x.shape[0], x.shape[0]))
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h.T @ u)
    return h


@layer(batched=True)
def counted(x: real["N T H"], u: real["H H"]):
    """A number that goes along with the rows."""
    h, total = np.zeros((x.shape[0], u.shape[0])), 0.0
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] + h @ u) * (1 + 0.1 * total)
        total = np.sum(h) / (1 + h.size)
    return h * total


@layer(batched=True)
def shared(x: real["N T D"], w: real["D H"]):
    """A sum of products over examples, and over examples and steps."""
    return np.tanh(x @ w)


@layer
def twice(x: real["T D"], w: real["D H"], v: real["H H"]):
    """One example: its steps are the rows of a product."""
    h = np.tanh(x @ w)
    for k in range(3):
        h = np.tanh(h @ v) + h
    return h


@layer
def alone(x: real["T D"], w: Param[real["D H"]], u: Param[real["H H"]], b: Param[real["H"]]):
    """One example, as people write it: all of them are rows of each step's product."""
    h = np.zeros(u.shape[0])
    ys = []
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u + b)
        ys.append(h)
    return np.stack(ys)


@layer
def gated(x: real["T D"], w: Param[real["D 2*H"]], u: Param[real["H 2*H"]], b: Param[real["2*H"]]):
    """Two states, a sum over the steps, and a product before them and behind."""
    h, c = np.tanh(x[0] @ w)[: u.shape[0]], np.ones(u.shape[0])
    total = np.zeros(u.shape[0])
    for t in range(x.shape[0]):
        z = x[t] @ w + h @ u + b
        c = c * np.tanh(z[: u.shape[0]]) + z[u.shape[0] :]
        h = np.sin(c)
        total += h * t
    return (total + h) @ u


@layer
def own(x: real["T D"], s: real["D D"], w: Param[real["D D"]]):
    """Two matrices of which only one is all examples'."""
    h = x[0]
    for t in range(x.shape[0]):
        h = np.tanh((h @ s) @ w + x[t])
    return h


@layer(batched=True)
def later(x: real["N T D"], w: real["D H"]) -> real["N T H"]:
    """Whatever its derivative may be: the one below goes on changing what a product has read, in the same step."""
    return x @ w


@later.backward
def later_backward(x, w, dy):
    d_x, d_w = np.zeros_like(x), np.zeros_like(w)
    c = np.zeros((x.shape[0], w.shape[1]))
    for t in range(x.shape[1]):
        c = 0.5 * c + dy[:, t]
        z = c * 2.0
        d_w += x[:, t].T @ z
        z *= 3.0
        d_x[:, t] = z @ w.T
    return d_x, d_w


@layer(batched=True)
def later_in_place(x: real["N T D"], w: real["D H"]) -> real["N T H"]:
    """The same in an array of all steps."""
    return x @ w


@later_in_place.backward
def later_in_place_backward(x, w, dy):
    d_w, z = np.zeros_like(w), np.zeros_like(dy)
    c = np.zeros((x.shape[0], w.shape[1]))
    for t in range(x.shape[1]):
        c = 0.5 * c + dy[:, t]
        z[:, t] = c * 2.0
        d_w += x[:, t].T @ z[:, t]
        z[:, t] *= 3.0
    return z @ w.T, d_w


@layer(batched=True)
def later_elsewhere(x: real["N T D"], w: real["D H"]) -> real["N T H"]:
    """A step changes the part of another one."""
    return x @ w


@later_elsewhere.backward
def later_elsewhere_backward(x, w, dy):
    d_w, z = np.zeros_like(w), np.zeros_like(dy)
    c = np.zeros((x.shape[0], w.shape[1]))
    for t in range(x.shape[1]):
        z[:, x.shape[1] - 1 - t] *= 3.0
        c = 0.5 * c + dy[:, t]
        z[:, t] = c * 2.0 + z[:, t]
        d_w += x[:, t].T @ z[:, t]
    return z @ w.T, d_w
'''
SHAPES = {
    "cell": lambda n, t: [(n, t, 5), (5, 6), (6, 6), (6,)],
    "lasts": lambda n, t: [(n, t, 5), (5, 6), (6, 6)],
    "mixed": lambda n, t: [(n, t, 6), (6, 6)],
    "turned": lambda n, t: [(n, t, 6), (6, 6)],
    "square": lambda n, t: [(n, t, n), (n, n)],
    "counted": lambda n, t: [(n, t, 6), (6, 6)],
    "shared": lambda n, t: [(n, t, 5), (5, 6)],
    "twice": lambda n, t: [(n, t, 5), (5, 6), (6, 6)],
    "alone": lambda n, t: [(n, t, 5), (5, 6), (6, 6), (6,)],
    "gated": lambda n, t: [(n, t, 5), (5, 12), (6, 12), (12,)],
    "own": lambda n, t: [(n, t, 5), (n, 5, 5), (5, 5)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("strands"), "strands_of", SOURCE)


def draw(rng, shapes, real):
    return [(0.5 * rng.standard_normal(s)).astype(real) for s in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "steps"), [(0, 3), (1, 1), (3, 0), (7, 4), (8, 2), (9, 5), (33, 3)])
def test_values_and_gradients(package, name, real, rows, steps):
    layer, rng = getattr(package, name), np.random.default_rng(rows + steps)
    values = draw(rng, SHAPES[name](rows, steps), real)
    if name == "twice":
        values[0] = values[0][0] if rows else values[0].reshape(0, 5)
    if name in ("alone", "gated", "own") and not steps:
        with pytest.raises((ValueError, IndexError)):
            layer(*values)
        return
    agrees(layer, values, rng, *((1e-11, 1e-6) if real == np.float64 else (3e-5, 1e-3)))


@pytest.mark.parametrize("name", ["later", "later_in_place", "later_elsewhere"])
def test_what_a_product_read_may_change_afterwards(package, name):
    """Taken out of the loop, it would read what the step, or another one, has made of it."""
    rng, space = np.random.default_rng(5), {}
    exec(SOURCE.partition("@layer")[0] + SOURCE[SOURCE.index(f"def {name}_backward") :].partition("\n\n\n")[0], space)
    x, w, dy = (rng.standard_normal(s) for s in ((9, 5, 3), (3, 6), (9, 5, 6)))
    found = getattr(package, name).vjp(x, w)[1](dy)
    for one, other in zip(found, space[f"{name}_backward"](x, w, dy), strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rows", [1, 9, 40, 70])
def test_bits_do_not_hang_on_threads(package, name, rows):
    layer, rng = getattr(package, name), np.random.default_rng(rows)
    values = draw(rng, SHAPES[name](rows, 6), np.float32)
    if name == "twice":
        values[0] = values[0][0]
    same_bits(layer, values)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("nests") / "strands_of.py"
    path.write_text(SOURCE)
    return kernels_in(path)


@pytest.mark.parametrize(
    ("name", "apart"), [("cell", True), ("lasts", False), ("mixed", False), ("turned", False), ("counted", False)]
)
def test_which_are_strands(kernels, name, apart):
    body = kernels[name, "predict"].body
    assert any(isinstance(s, For) and s.var.startswith("strand") for s in walk(body)) == apart


@pytest.mark.parametrize(("name", "deep"), [("cell", "N*T"), ("shared", "N*T")])
def test_gradients_of_what_all_share_are_deep(kernels, name, deep):
    body = kernels[name, "backward"].body
    depths = [str(s.depth[1]) for s in walk(body) if isinstance(s, Product)]
    assert deep in depths, depths
