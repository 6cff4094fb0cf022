"""What no example changes is made once, and its gradient goes back once, through a sum over the examples."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.ir import Check, For, Kernel, Op, Product
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def cosine(x: real["D"], w: Param[real["K D"]]) -> real["K"]:
    wn = w / np.sqrt(np.sum(w * w, axis=1, keepdims=True))
    return wn @ x


@layer
def arcface(x: real["D"], w: Param[real["K D"]], label: i32) -> real[""]:
    """A label to ask, an angle of one place."""
    xn = x / np.sqrt(np.sum(x * x))
    wn = w / np.sqrt(np.sum(w * w, axis=1, keepdims=True))
    c = np.clip(wn @ xn, -0.99, 0.99)
    z = 4.0 * c
    z[label] = 4.0 * np.cos(np.arccos(c[label]) + 0.3)
    m = np.max(z)
    return m + np.log(np.sum(np.exp(z - m))) - z[label]


@layer
def decay(x: real["T C"], p: Param[real["C"]]) -> real["T C"]:
    a = np.exp(-np.exp(p))
    h = np.zeros(x.shape[1])
    y = np.empty(x.shape)
    for t in range(x.shape[0]):
        h = a * h + (1 - a) * x[t]
        y[t] = h
    return y


@layer
def cosines(x: real["N"]) -> real["N"]:
    """A table that not even a weight tells."""
    n = x.shape[0]
    k = np.arange(n)
    return np.cos(np.pi / n * np.outer(k, k + 0.5)) @ x


@layer
def positions(x: real["T D"], *, base: float = 100.0) -> real["T D"]:
    """Angles, each of two counters and a setting, on one way or the other; the first counter from 1."""
    t, d = x.shape
    y = np.zeros((t, d))
    for i in range(1, t):
        for j in range(d):
            a = i / base ** (2 * (j // 2) / d)
            y[i, j] = x[i, j] * (np.sin(a) if j % 2 == 0 else np.cos(a))
    return y


@layer
def windowed(x: real["N"], *, width: int = 3) -> real["N"]:
    """A window, asked at other places than those of the loop, and a triangle of its values."""
    n = x.shape[0]
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / width)
    y = x * w[::-1]
    for i in range(n):
        for j in range(i):
            y[i] += x[j] * np.exp(-0.1 * (i - j)) * np.cos(0.2 * j)
    return y


@layer
def triangle(x: real["N"]) -> real["N"]:
    """What one counter tells, whose end another one is."""
    y = x * 1.0
    for i in range(x.shape[0]):
        for j in range(i + 1):
            y[i] += x[j] * np.exp(-0.1 * j)
    return y


@layer
def mixed(x: real["N D"], w: Param[real["N"]], v: Param[real["D"]]) -> real["D"]:
    """Weights that sum to 1, of which one is asked."""
    e = np.exp(w - np.max(w))
    p = e / np.sum(e)
    return p @ x * np.tanh(v) + p[0] * v


@layer
def orthogonal(x: real["N"], w: Param[real["N N"]]) -> real["N"]:
    """Gram and Schmidt, row after row."""
    n = w.shape[0]
    q = np.zeros((n, n))
    for i in range(n):
        r = w[i] + 0.0
        for j in range(i):
            r = r - np.sum(r * q[j]) * q[j]
        q[i] = r / np.sqrt(np.sum(r * r) + 0.1)
    return q @ x


@layer
def made_twice(x: real["D"], w: Param[real["D"]]) -> real["D"]:
    """What is read between two makings of one array."""
    t = np.exp(w)
    y = x * t
    t = t / np.sum(t)
    return y + x * x * t


@layer
def twice_steady(x: real["D"], w: Param[real["D"]]) -> real["D"]:
    t = np.zeros(w.shape[0])
    t[:] = w * w
    u = t + 1
    t[:] = np.exp(t)
    return x * t / u


@layer
def also_of_examples(x: real["D"], w: Param[real["D"]]) -> real["D"]:
    """A weight that is asked beside what is made of it, and a penalty."""
    s = np.exp(w)
    return x * s + w * np.sum(x * w) / np.sum(s)


@layer
def masked(x: real["D"], w: Param[real["D"]]) -> real["D"]:
    """Chosen by a weight."""
    g = np.where(w > 0, w * w, np.exp(w))
    return x / (1 + g)


@layer
def picked(x: real["D"], w: Param[real["M D"]], k: Param[i32["D"]], *, row: int = 1) -> real["D"]:
    """A row that a setting names, places that a parameter names."""
    e = np.exp(w[row])
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] * e[k[i]]
    return y


@layer
def seen_in_groups(x: real["4 D"], w: Param[real["4"]]) -> real["2 2 D"]:
    """Memory of an example under another name."""
    m = x * w[:, None]
    g = m.reshape(2, 2, -1)
    u = g * 1.0
    return u / (1 + np.sum(u * u, axis=1, keepdims=True))
'''
NAMES = [
    "cosine",
    "arcface",
    "decay",
    "cosines",
    "positions",
    "windowed",
    "triangle",
    "mixed",
    "orthogonal",
    "made_twice",
    "twice_steady",
    "also_of_examples",
    "masked",
    "picked",
    "seen_in_groups",
]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("once"), "made_once", TEXT)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "made_once.py"
    path.write_text(TEXT)

    @cache
    def of(upto: str) -> dict[tuple[str, str], Kernel]:
        return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path), upto=upto).parts}

    def one(name: str, method: str, upto: str) -> Kernel:
        return of(upto)[name, method]

    one.of = of
    return one


def draw(name: str, batch: int, size: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(batch * 31 + size)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    labels = rng.integers(0, size, batch).astype(np.int32)
    return {
        "cosine": lambda: [normal(batch, 5), normal(size, 5)],
        "arcface": lambda: [normal(batch, 5), normal(size, 5), labels],
        "decay": lambda: [normal(batch, 4, size), normal(size)],
        "cosines": lambda: [normal(batch, size)],
        "positions": lambda: [normal(batch, size, 5)],
        "windowed": lambda: [normal(batch, size)],
        "triangle": lambda: [normal(batch, size)],
        "mixed": lambda: [normal(batch, size, 3), normal(size), normal(3)],
        "orthogonal": lambda: [normal(batch, size), normal(size, size)],
        "made_twice": lambda: [normal(batch, size), normal(size)],
        "twice_steady": lambda: [normal(batch, size), normal(size)],
        "also_of_examples": lambda: [normal(batch, size), normal(size)],
        "masked": lambda: [normal(batch, size), normal(size)],
        "seen_in_groups": lambda: [normal(batch, 4, size), normal(4)],
        "picked": lambda: [normal(batch, size), normal(3, size), rng.integers(0, size, size).astype(np.int32)],
    }[name]()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("batch", "size"), [(1, 1), (3, 4), (17, 7), (40, 33)])
def test_values_and_gradients(package, name, batch, size):
    values = draw(name, batch, size)
    agrees(getattr(package, name), values, np.random.default_rng(size), 1e-9, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, 40, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_no_examples(package, name):
    """Nothing is made of nothing; weights have a gradient of zeros, also those whose quotient is none."""
    values = draw(name, 0, 4)
    if name in ("cosine", "arcface"):
        values[1][2] = 0
    layer = getattr(package, name)
    y, pullback = layer.vjp(*values)
    assert y.shape == layer.reference(*values).shape
    gradients = pullback(np.ones_like(y))
    for gradient in gradients if isinstance(gradients, tuple) else (gradients,):
        assert gradient is None or not np.any(gradient)


def test_a_row_without_an_angle(package):
    """Of the others' numbers none is lost."""
    x, w = draw("cosine", 5, 4)
    w[2] = 0
    y, pullback = package.cosine.vjp(x, w)
    assert np.array_equal(np.isnan(y).all(axis=0), [False, False, True, False])
    _, d_w = pullback(np.where(np.isnan(y), 0, 1.0))
    assert np.isfinite(d_w[[0, 1, 3]]).all()


@pytest.mark.parametrize("bad", [-6, 5, 99])
def test_the_first_example_that_fails_is_named(package, bad):
    x, w, label = draw("arcface", 9, 5)
    label[[4, 7]] = bad, 77
    with pytest.raises(IndexError, match=f"index {bad} is out of range"):
        package.arcface(x, w, label)


def _of_examples(kernel: Kernel) -> list[For]:
    """The loops over the examples."""
    return [s for s in walk(kernel.body) if isinstance(s, For) and Dim.of("batch") in (s.hi, s.hi - s.lo)]


def _dear(stmts: list[For]) -> set[str]:
    ops = {p.op for s in walk(stmts) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op)}
    return ops & {"exp", "sqrt", "divide", "cos", "tanh"}


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("cosine", "predict"),
        ("cosine", "backward"),
        ("orthogonal", "predict"),
        ("cosines", "predict"),
        ("cosines", "backward"),
    ],
)
def test_no_example_makes_what_all_share(kernels, name, method):
    kernel = kernels(name, method, "summed")
    assert not _dear(_of_examples(kernel))


def test_what_is_made_element_by_element_stays(kernels):
    """`tables` makes it once, if it is dear, and a recurrence with it still goes through sixteen examples at once."""
    assert "exp" in _dear(_of_examples(kernels("decay", "predict", "once")))


def test_the_gradient_goes_back_once(kernels):
    """The products of all examples are one, and what is made of it is not in a loop over them."""
    kernel = kernels("cosine", "backward", "products")
    depths = [s.depth[1] for s in walk(kernel.body) if isinstance(s, Product)]
    assert Dim.of("batch") in depths
    assert not _of_examples(kernel)


@pytest.mark.parametrize("method", ["predict", "backward"])
def test_a_transform_is_a_product(kernels, method):
    kernel = kernels("cosines", method, "products")
    assert [s for s in kernel.body if isinstance(s, Product)]
    assert not _of_examples(kernel)


def test_labels_are_asked_before_products(kernels):
    kernel = kernels("arcface", "predict", "products")
    first = next(s for s in kernel.body if s in _of_examples(kernel))
    assert any(isinstance(s, Check) for s in first.body)
    assert any(isinstance(s, Product) for s in kernel.body)


def test_what_all_share_is_not_kept_for_each(kernels):
    methods = {method for name, method in kernels.of("summed") if name == "cosine"}
    assert "pullback" not in methods  # nothing crosses
