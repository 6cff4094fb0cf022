"""Loops over outputs, as people write them one output after the other, are products of matrices for all examples; and a
loop that holds more than a product, or hangs on its order, keeps its values."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import Product
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def perceptron(x: real["D"], w: Param[real["O D"]], bias: Param[real["O"]]) -> real["O"]:
    """A scalar of each output's own is read behind its product."""
    y = np.zeros(w.shape[0])
    for i in range(w.shape[0]):
        y[i] = np.tanh(np.sum(w[i] * x) + bias[i])
    return y


@layer
def dots(x: real["D"], w: Param[real["O D"]]) -> real["O"]:
    """With a product of something computed, and two sums."""
    o, d = w.shape
    y = np.zeros(o)
    for i in range(o):
        total = 0.0
        size = 0.0
        for k in range(d):
            total += w[i, k] * np.sin(x[k])
            size += w[i, k] * w[i, k]
        y[i] = total / np.sqrt(size + 1.0)
    return y


@layer
def radial(x: real["D"], c: Param[real["O D 8"]]) -> real["O"]:
    """A sum over two axes, of which one is short."""
    centers = np.linspace(-2.0, 2.0, 8)
    basis = np.exp(-(((x[:, None] - centers[None, :]) / 0.57) ** 2))
    y = np.zeros(c.shape[0])
    for i in range(c.shape[0]):
        y[i] = np.sum(c[i] * basis)
    return y


@layer
def reshaped(x: real["D"], c: Param[real["O D 8"]]) -> real["O"]:
    """The same as a product of reshaped arrays: the weights' gradient is made in another shape than it has."""
    o, d, n = c.shape
    basis = np.exp(-((x[:, None] - np.linspace(-2.0, 2.0, 8)[None, :]) ** 2))
    return c.reshape(o, d * n) @ basis.reshape(d * n)


@layer
def steps(x: real["D"], c: Param[real["8 D O"]]) -> real["O"]:
    """Products of all examples in a loop."""
    y = np.zeros(c.shape[2])
    for k in range(8):
        y += np.exp(-((x - 0.3 * k) ** 2)) @ c[k]
    return y


@layer
def activated(x: real["D"], w: Param[real["O D"]]) -> real["O"]:
    """A function of each element in the sum: its gradient has a factor that all terms have in common."""
    o, d = w.shape
    y = np.zeros(o)
    for i in range(o):
        for k in range(d):
            y[i] += w[i, k] * np.tanh(x[k])
    return y


@layer
def functions(x: real["D"], c: Param[real["O D 8"]]) -> real["O"]:
    """The same of two axes, with a sign, quotients and a variable of each term's own in it."""
    o, d = c.shape[0], c.shape[1]
    y = np.zeros(o)
    for i in range(o):
        for j in range(d):
            for k in range(8):
                t = (x[j] - (-2.0 + 4.0 * k / 7)) / 0.57
                y[i] += c[i, j, k] * np.exp(-t * t)
    return y


@layer
def mixed(x: real["D"], w: Param[real["O D"]]) -> real["O"]:
    """What terms have in common is changed in the sum, or is none of theirs."""
    o, d = w.shape
    y = np.zeros(o)
    z = np.zeros(d)
    for i in range(o):
        for k in range(d):
            z[k] = 0.5 * z[k] + np.sin(x[k] * w[i, k])
            y[i] += w[i, k] * z[k] * np.cosh(x[k])
    return y


@layer
def inner(x: real["D"], w: Param[real["O D"]], a: real["O"]) -> real["O"]:
    """A sum of each iteration's own, which its gradient makes again."""
    o, d = w.shape
    y = np.zeros(o)
    for i in range(o):
        s = 0.0
        for k in range(d):
            s += (a[i] * w[i, k]) * np.tanh(x[k])
        y[i] = np.sin(s)
    return y


@layer
def before(x: real["D"], w: Param[real["O D"]], u: Param[real["O D"]]) -> real["O"]:
    """A term that is changed behind where it is read."""
    o, d = w.shape
    y = np.zeros(o)
    z = np.zeros((o, d))
    for i in range(o):
        for k in range(d):
            z[i, k] = np.sin(w[i, k])
            t = z[i, k]
            z[i, k] = t * u[i, k]
            y[i] += (t * np.tanh(x[k])) * (z[i, k] + 1.0)
    return y


@layer
def capsules(u: real["I D"], w: Param[real["J I D E"]]) -> real["J E"]:
    """A matrix of each example, as large as what is returned, between products."""
    j, i, d, e = w.shape
    y = np.zeros((j, e))
    for a in range(j):
        s = np.zeros(e)
        for b in range(i):
            s += u[b] @ w[a, b]
        n = np.sum(s * s)
        y[a] = s * np.sqrt(n + 1e-2) / (1.0 + n)
    return y


@layer
def triangular(x: real["D"], w: Param[real["D D"]]) -> real["D"]:
    """As many terms as there are outputs before: a loop that nothing goes around."""
    d = w.shape[0]
    y = np.zeros(d)
    for i in range(d):
        for k in range(i):
            y[i] += w[i, k] * np.tanh(x[k])
    return y


@layer
def windows(x: real["C T"], w: Param[real["O C K"]]) -> real["O T-K+1"]:
    """A convolution: an array for each filter, as large as what is returned."""
    c, t = x.shape
    o = w.shape[0]
    k = w.shape[2]
    y = np.zeros((o, t - k + 1))
    for f in range(o):
        for p in range(t - k + 1):
            s = 0.0
            for i in range(c):
                for j in range(k):
                    s += x[i, p + j] * w[f, i, j]
            y[f, p] = s
    return y


@layer
def images(x: real["C H W"], w: Param[real["O C 3 3"]]) -> real["O H-2 W-2"]:
    """A convolution whose windows are too short to be axes."""
    c, h, n = x.shape
    o = w.shape[0]
    y = np.zeros((o, h - 2, n - 2))
    for f in range(o):
        for i in range(h - 2):
            for j in range(n - 2):
                for k in range(c):
                    for p in range(3):
                        for q in range(3):
                            y[f, i, j] += w[f, k, p, q] * x[k, i + p, j + q]
    return y


@layer
def interactions(x: real["F"], v: Param[real["F K"]]) -> real:
    """Two sums of one loop, of which one is a product, and adds to the same as the other one."""
    f, k = v.shape
    y = 0.0
    for a in range(k):
        s = 0.0
        t = 0.0
        for i in range(f):
            s += v[i, a] * x[i]
            t += v[i, a] * v[i, a] * x[i] * x[i]
        y += 0.5 * (s * s - t)
    return y


@layer
def spread(x: real["F P"], w: real["F J"]) -> real["P+J"]:
    """Products that go to one place together are no product of matrices."""
    f, p = x.shape
    j = w.shape[1]
    y = np.zeros(p + j)
    for a in range(p):
        for b in range(j):
            for k in range(f):
                y[a + b] += x[k, a] * w[k, b]
    return y


@layer
def recurrent(x: real["T D"], w: Param[real["D D"]], u: Param[real["D D"]]) -> real["T D"]:
    """A loop over units in a recurrence."""
    t, d = x.shape
    h = np.zeros(d)
    y = np.zeros((t, d))
    for s in range(t):
        new = np.zeros(d)
        for i in range(d):
            a = 0.0
            for k in range(d):
                a += w[i, k] * x[s, k]
            b = 0.0
            for k in range(d):
                b += u[i, k] * h[k]
            new[i] = np.tanh(a + b)
        h = new
        y[s] = h
    return y


@layer
def heads(x: real["T D"], w: Param[real["H D D"]]) -> real["T D"]:
    """A matrix for each iteration: it stays in one loop."""
    t, d = x.shape
    y = np.zeros((t, d))
    for h in range(w.shape[0]):
        part = np.tanh(x @ w[h])
        y += part * part
    return y


@layer
def running(x: real["D"], w: Param[real["O D"]]) -> real["O"]:
    """Each output takes the one before it."""
    y = np.zeros(w.shape[0])
    last = 0.0
    for i in range(w.shape[0]):
        last = np.tanh(np.sum(w[i] * x) + 0.5 * last)
        y[i] = last
    return y


@layer
def counted(x: real["D"], w: Param[real["O D"]]) -> real["O"]:
    """Loops that begin elsewhere, and one with a branch."""
    o = w.shape[0]
    y = np.zeros(o)
    for i in range(1, o):
        s = np.sum(w[i] * x)
        if s > 0.0:
            y[i] = s * s
        else:
            y[i] = np.expm1(s)
    return y


@layer
def cleared(x: real["D"], w: Param[real["D"]]) -> real["D"]:
    """A cotangent is copied, cleared, and added to: what is copied of it is not added before."""
    x[:] = np.squeeze(np.broadcast_to(x, (1, x.shape[0])), axis=0)
    return np.clip(x * w, None, 0.75)
'''

SHAPES = {
    "perceptron": [(6,), (5, 6), (5,)],
    "dots": [(6,), (5, 6)],
    "radial": [(5,), (4, 5, 8)],
    "reshaped": [(5,), (4, 5, 8)],
    "steps": [(5,), (8, 5, 4)],
    "activated": [(6,), (5, 6)],
    "functions": [(5,), (4, 5, 8)],
    "mixed": [(6,), (5, 6)],
    "inner": [(6,), (5, 6), (-1, 5)],
    "before": [(6,), (5, 6), (5, 6)],
    "triangular": [(5,), (5, 5)],
    "capsules": [(3, 4), (2, 3, 4, 5)],
    "windows": [(3, 9), (4, 3, 3)],
    "images": [(3, 5, 6), (4, 3, 3, 3)],
    "interactions": [(6,), (6, 5)],
    "spread": [(3, 7), (-1, 3, 4)],
    "recurrent": [(6, 5), (5, 5), (5, 5)],
    "heads": [(3, 4), (3, 4, 4)],
    "running": [(6,), (5, 6)],
    "counted": [(6,), (5, 6)],
    "cleared": [(6,), (6,)],
}

OUTPUTS = {"perceptron": 5, "dots": 5, "radial": 4, "reshaped": 4, "steps": 4, "running": 5, "counted": 5}
OUTPUTS |= {"activated": 5, "functions": 4, "mixed": 5, "inner": 5, "before": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fission")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "parted_loops", TEXT)


def _values(name, examples, dtype, rng, outputs=None):
    """Arguments of a layer; the axes that are as long as there are outputs have `outputs` of them, where it is told."""
    told = OUTPUTS.get(name)
    first, *rest = SHAPES[name]
    batched = [(examples, *shape[1:]) if shape[0] < 0 else shape for shape in rest]
    shapes = [(examples, *first), *batched]
    if outputs is not None:
        shapes = [tuple(outputs if n == told else n for n in shape) for shape in shapes]
    return [np.asarray(rng.standard_normal(shape) / 2, dtype) for shape in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 2, 7, 18])
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-5, 2e-3)])
def test_values_and_gradients(package, name, examples, dtype, tight, close):
    rng = np.random.default_rng(examples)
    agrees(getattr(package, name), _values(name, examples, dtype, rng), rng, tight, close)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("outputs", [0, 1])
def test_no_outputs_and_one(package, name, outputs):
    rng = np.random.default_rng(0)
    agrees(getattr(package, name), _values(name, 3, "f8", rng, outputs), rng, 1e-11, 1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_bits_on_any_threads(package, name):
    same_bits(getattr(package, name), _values(name, 70, "f4", np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("name", "kernel", "many"),
    [
        ("perceptron", "predict", 1),
        ("perceptron", "backward", 2),
        ("dots", "predict", 1),
        ("radial", "predict", 1),
        ("radial", "backward", 2),
        ("reshaped", "predict", 1),
        ("reshaped", "backward", 2),
        ("steps", "predict", 1),
        ("steps", "backward", 2),
        ("recurrent", "predict", 2),
        ("activated", "predict", 1),
        ("activated", "backward", 2),
        ("functions", "backward", 2),
        ("capsules", "predict", 1),
        ("capsules", "backward", 3),
        ("windows", "predict", 1),
        ("windows", "backward", 2),
        ("images", "predict", 1),
        ("images", "backward", 2),
        ("interactions", "predict", 1),
        ("interactions", "backward", 3),
    ],
)
def test_they_are_products(folder, package, name, kernel, many):
    body = kernels_in(folder / "parted_loops.py")[name, kernel].body
    assert sum(isinstance(s, Product) for s in walk(body)) >= many


def test_what_goes_to_one_place_together_is_no_product(folder, package):
    """Threads, which have rows or columns each, would write to one place."""
    body = kernels_in(folder / "parted_loops.py")["spread", "predict"].body
    assert not any(isinstance(s, Product) for s in walk(body))
    wide = kernels_in(folder / "parted_loops.py")["windows", "backward"]
    for s in walk(wide.body):
        if isinstance(s, Product):
            assert not any({s.rows[0], s.columns[0]} <= d.symbols() for d in s.index)


def test_a_sum_over_two_axes_is_one_axis_of_a_product(folder, package):
    kernel = kernels_in(folder / "parted_loops.py")["radial", "predict"]
    (product,) = (s for s in walk(kernel.body) if isinstance(s, Product))
    assert product.depth[1].symbols() == {"D"} and product in kernel.body


ATTENTION = '''
import math

import numpy as np
from layerc import layer, real


@layer
def loops(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """An attention as one writes it in C."""
    T, D = q.shape
    y = np.zeros((T, D))
    for i in range(T):
        s = np.zeros(T)
        m = -np.inf
        for j in range(T):
            acc = 0.0
            for d in range(D):
                acc += q[i, d] * k[j, d]
            s[j] = acc / math.sqrt(D)
            m = max(m, s[j])
        z = 0.0
        for j in range(T):
            s[j] = math.exp(s[j] - m)
            z += s[j]
        for j in range(T):
            for d in range(D):
                y[i, d] += s[j] / z * v[j, d]
    return y


@layer
def scaled(x: real["N D"], w: real["M D"], g: real["M"]) -> real["N"]:
    """Its gradient adds to three places, by a number that the innermost loop does not change, and one that it does."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            for d in range(x.shape[1]):
                y[i] += x[i, d] * w[j, d] * g[j] / (1.0 + g[j] * g[j])
    return y


@layer
def by_element(x: real["N D"], w: real["D"]) -> real["N D"]:
    """No products of matrices: what a nest adds to several places stays one nest."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            y[i, d] += x[i, d] * w[d] / 3.0
    return y
'''


@pytest.fixture(scope="module")
def attention(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("attention"), "attention", ATTENTION)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 2), (16, 8), (20, 16), (65, 17), (130, 24), (0, 3), (3, 0)])
def test_attention_in_loops(attention, sizes):
    rng, (t, d) = np.random.default_rng(1), sizes
    for dtype, tight, close in ((np.float32, 2e-5, 2e-3), (np.float64, 1e-12, 1e-5)):
        q, k, v = rng.standard_normal((3, 3, t, d)).astype(dtype)
        if d:
            agrees(attention.loops, (q, k, v), rng, tight, close, exact=False)
        g = rng.standard_normal((3, t)).astype(dtype)
        agrees(attention.scaled, (q, k, g), rng, tight, close, exact=False)
    if d:
        same_bits(attention.loops, (q, k, v))


def test_what_a_gradient_adds_in_one_nest_is_products(attention, tmp_path):
    """Five of them: scores again, and the gradients of weights, values, queries and keys."""
    path = tmp_path / "attention.py"
    path.write_text(ATTENTION)
    kernels = kernels_in(path)
    made = {s.buffer for s in walk(kernels["loops", "pullback"].body) if isinstance(s, Product)}
    assert len(made) >= 5
    assert {"d_q", "d_k", "d_v"} <= made
    assert not any(isinstance(s, Product) for s in walk(kernels["by_element", "backward"].body))
