"""Loops that carry a number are parted around sums that do not hang on it: those are products of matrices for all of
their steps and all examples; so are those of their gradients. What does hang on it, or may not be reached, stays."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, If, Product
from layerc.transpile.passes.tree import walk

pytestmark = pytest.mark.heavy  # products, and loops beside them

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real


@layer
def maxout(x: real["D"], w: Param[real["K D O"]], b: Param[real["K O"]]) -> real["O"]:
    """The largest of some products, for each output."""
    K, D, O = w.shape
    y = np.zeros(O)
    for o in range(O):
        best = -np.inf
        for k in range(K):
            z = b[k, o]
            for d in range(D):
                z += x[d] * w[k, d, o]
            if z > best:
                best = z
        y[o] = best
    return y


@layer
def of_rows(x: real["D"], w: Param[real["K O D"]]) -> real["O"]:
    """The weights in another order, and the largest as `max` tells it."""
    y = np.zeros(w.shape[1])
    for o in range(w.shape[1]):
        best = -1.0e30
        for k in range(w.shape[0]):
            best = max(best, np.sum(x * w[k, o]))
        y[o] = best
    return y


@layer
def nearest(x: real["D"], c: Param[real["N D"]], v: Param[real["N E"]]) -> real["E"]:
    """Which one is the nearest, and what lies there."""
    best = np.inf
    which = 0
    for n in range(c.shape[0]):
        dot = 0.0
        size = 0.0
        for d in range(c.shape[1]):
            dot += x[d] * c[n, d]
            size += c[n, d] * c[n, d]
        away = size - 2.0 * dot
        if away < best:
            best = away
            which = n
    return v[which] * best


@layer
def hinge(x: real["D"], w: Param[real["C D"]], label: i64[""]) -> real[""]:
    """The worst of all other classes."""
    own = w[label] @ x
    worst = 0.0
    for c in range(w.shape[0]):
        s = 0.0
        for d in range(w.shape[1]):
            s += w[c, d] * x[d]
        if c != label and 1.0 + s - own > worst:
            worst = 1.0 + s - own
    return worst


@layer
def gated(x: real["T D"], w: Param[real["J D"]], u: Param[real["J D"]], b: Param[real["J"]]) -> real["T J"]:
    """A recurrence of numbers whose input are two products."""
    T, D = x.shape
    J = w.shape[0]
    y = np.zeros((T, J))
    for j in range(J):
        h = 0.0
        for t in range(T):
            a = b[j]
            s = 0.0
            for d in range(D):
                a += w[j, d] * x[t, d]
                s += u[j, d] * x[t, d]
            g = 1.0 / (1.0 + np.exp(-a))
            h = g * h + (1.0 - g) * np.tanh(s)
            y[t, j] = h
    return y


@layer
def logsum(x: real["D"], w: Param[real["O K D"]]) -> real["O"]:
    """The logarithm of a sum, as it goes."""
    O, K, D = w.shape
    y = np.zeros(O)
    for o in range(O):
        m = -np.inf
        s = 0.0
        for k in range(K):
            z = 0.0
            for d in range(D):
                z += x[d] * w[o, k, d]
            new = max(m, z)
            s = s * np.exp(m - new) + np.exp(z - new)
            m = new
        y[o] = m + np.log(s)
    return y


@layer
def until(x: real["D"], w: Param[real["K D O"]]) -> real["O"]:
    """What ends at the first one that is large enough does not work out the others."""
    y = np.zeros(w.shape[2])
    for o in range(w.shape[2]):
        for k in range(w.shape[0]):
            z = 0.0
            for d in range(w.shape[1]):
                z += x[d] * w[k, d, o]
            y[o] = z
            if z > 0.5:
                break
    return y


@layer
def chained(x: real["D"], w: Param[real["K D O"]]) -> real["O"]:
    """A sum that begins with what is carried is no product of all steps."""
    y = np.zeros(w.shape[2])
    for o in range(w.shape[2]):
        h = 0.1
        for k in range(w.shape[0]):
            z = np.tanh(h)
            for d in range(w.shape[1]):
                z += np.sin(z) * x[d] * w[k, d, o]
            h = z * 0.5
        y[o] = h
    return y


@layer
def looked_up(x: real["D"], w: Param[real["D D"]], v: Param[real["N"]]) -> real["D"]:
    """A place that is worked out for each example, between products."""
    h = x @ w
    n = int(np.floor(h[0]))
    return np.tanh(h) * v[n] + np.exp(-h) @ w


@layer
def small(x: real["3"], w: Param[real["2 3 4"]]) -> real["4"]:
    """Matrices of a few numbers stay loops."""
    y = np.zeros(4)
    for o in range(4):
        best = -np.inf
        for k in range(2):
            z = 0.0
            for d in range(3):
                z += x[d] * w[k, d, o]
            if z > best:
                best = z
        y[o] = best
    return y
'''

SHAPES = {  # of the first argument, for each example, and of others
    "maxout": ["D", "K D O", "K O"],
    "of_rows": ["D", "K O D"],
    "nearest": ["D", "N D", "N 4"],
    "hinge": ["D", "C D"],
    "gated": ["T D", "O D", "O D", "O"],
    "logsum": ["D", "O K D"],
    "until": ["D", "K D O"],
    "chained": ["D", "K D O"],
    "small": ["3", "2 3 4"],
}
FEW = {"D": 6, "K": 5, "O": 9, "N": 5, "C": 5, "T": 7}
MANY = {"D": 33, "K": 5, "O": 34, "N": 35, "C": 36, "T": 37}  # products


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("recur")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "recurring", TEXT)


def _values(name, examples, dtype, rng, sizes):
    shapes = [tuple(sizes[n] if n in sizes else int(n) for n in text.split()) for text in SHAPES[name]]
    values = [np.asarray(rng.standard_normal(shape) / 3, dtype) for shape in ((examples, *shapes[0]), *shapes[1:])]
    labels = [rng.integers(-len(values[1]), len(values[1]), examples)] if name == "hinge" else []
    return values + labels


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 3, 18])
@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-10, 1e-5), ("f4", 1e-4, 1e-2)])
def test_values_and_gradients(package, name, examples, sizes, dtype, tight, close):
    rng = np.random.default_rng(examples)
    agrees(getattr(package, name), _values(name, examples, dtype, rng, sizes), rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("axis", ["batch", "D", "K", "O", "T"])
@pytest.mark.parametrize("size", [0, 1])
def test_none_and_one(package, name, axis, size):
    """Of no steps, the largest is -inf, and the logarithm of their sum has no gradient."""
    if size == 0 and axis == "K" and name in ("maxout", "logsum"):
        layer, values = getattr(package, name), _values(name, 3, "f8", np.random.default_rng(0), {**MANY, "K": 0})
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(layer(*values), layer.reference(*values))
        return
    rng = np.random.default_rng(0)
    values = _values(name, size if axis == "batch" else 3, "f8", rng, {**MANY, axis: size})
    agrees(getattr(package, name), values, rng, 1e-10, 1e-5)


@pytest.mark.parametrize("name", ["maxout", "nearest", "logsum", "gated", "until"])
@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_no_numbers_stay_where_they_are(package, name, sizes, odd):
    layer = getattr(package, name)
    values = _values(name, 5, "f8", np.random.default_rng(1), sizes)
    values[0][2].flat[3] = odd
    values[1].flat[7] = odd
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(layer(*values), layer.reference(*values), 1e-11, 1e-11)


def test_a_centre_of_none_is_told(package):
    x, c, v = _values("nearest", 2, "f8", np.random.default_rng(1), FEW)
    with pytest.raises(IndexError):
        package.nearest(x, c[:0], v[:0])


@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", ["maxout", "nearest", "hinge", "logsum"])
def test_what_nets_ask_for_is_what_is_pulled_back(package, name, sizes):
    layer, values = getattr(package, name), _values(name, 19, "f8", np.random.default_rng(1), sizes)
    y, pullback = layer.vjp(*values)
    (layer_of,) = (f for f in ast.parse(TEXT).body if isinstance(f, ast.FunctionDef) and f.name == name)
    names = [a.arg for a in layer_of.args.args]
    found = layer.pull({**dict(zip(names, values)), "y": y, "dy": np.cos(y)}, {})
    want = {n: g for n, g in zip(names, pullback(np.cos(y))) if g is not None}
    assert found.keys() == want.keys()
    for n, gradient in want.items():
        np.testing.assert_allclose(found[n], gradient, 1e-10, 1e-10)


def test_the_first_example_that_fails_is_told(package):
    rng = np.random.default_rng(1)
    x, w, v = rng.uniform(0.1, 0.2, (9, 40)), np.eye(40), np.ones(3)
    np.testing.assert_allclose(package.looked_up(x, w, v), package.looked_up.reference(x, w, v), 1e-11)
    x[4, 0], x[6, 0], x[8, 0] = 7.5, -40.5, 8.5
    with pytest.raises(IndexError, match="7"):
        package.looked_up(x, w, v)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_bits_on_any_threads(package, name):
    same_bits(getattr(package, name), _values(name, 70, "f4", np.random.default_rng(0), MANY))


@pytest.mark.parametrize(
    ("name", "kernel", "many"),
    [
        ("maxout", "predict", 1),  # the weights lie across
        ("maxout", "backward", 3),
        ("of_rows", "backward", 3),
        ("hinge", "pullback", 3),
        ("gated", "backward", 6),
        ("logsum", "pullback", 3),
        ("until", "predict", 0),
        ("chained", "predict", 0),
        ("small", "predict", 0),
        ("small", "backward", 0),
    ],
)
def test_they_are_products(folder, package, name, kernel, many):
    """So many of large matrices, none of them twice; for small ones a layer that recurs is what it was."""
    parts = compile_module(read_module(folder / "recurring.py"), upto="products").parts
    (whole,) = (p.kernel for p in parts if (p.layer.name, p.method) == (name, kernel))
    match whole.body:
        case (If(_, large, small),):
            assert [sum(isinstance(s, Product) for s in walk(body)) for body in (large, small)] == [many, 0]
        case body:
            recurs = any(isinstance(s, For) and s.kind == "seq" for s in walk(body))
            assert sum(isinstance(s, Product) for s in walk(body)) == many and not (many and recurs)


def test_what_goes_along_memory_does_so_in_both(folder, package):
    """Whatever the order of the loops, the array lies as the weights do: the short loop over what is chosen from is not
    an axis of the product."""
    body = kernels_in(folder / "recurring.py")["maxout", "predict"].body
    assert {str(n) for s in walk(body) if isinstance(s, Product) for _, n in s.axes} == {"batch", "O", "D"}


def test_a_logarithm_of_a_sum_as_it_goes_is_a_product(folder, package):
    """For each row, whose scores are there before any of them is added: no loop in order over them."""
    parts = compile_module(read_module(folder / "recurring.py"), upto="products").parts
    (whole,) = (p.kernel for p in parts if (p.layer.name, p.method) == ("logsum", "predict"))
    assert sum(isinstance(s, Product) for s in walk(whole.body)) == 1
    assert {s.hi for s in walk(whole.body) if isinstance(s, For) and s.kind == "seq"} <= {Dim.of("O")}
