"""Convolutions as one writes them for a pixel, with products of vectors and matrices: what is carried through loops in
loops has one name, rows of pixels go into the loops over the window, and what an index looks up is not divided anew."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.ir import For, Op, Product
from layerc.transpile.layers import check_file
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def conv(x: real["H W C"], k: Param[real["3 3 C D"]], b: Param[real["D"]]) -> real["H-2 W-2 D"]:
    h, w, c = x.shape
    y = np.zeros((h - 2, w - 2, k.shape[3]))
    for i in range(h - 2):
        for j in range(w - 2):
            acc = b
            for a in range(3):
                for e in range(3):
                    acc = acc + x[i + a, j + e] @ k[a, e]
            y[i, j] = np.tanh(acc)
    return y


@layer
def along(x: real["T C"], k: Param[real["K C D"]]) -> real["T-K+1 D"]:
    """A window of any length, added in place."""
    t, n = x.shape[0], k.shape[0]
    y = np.zeros((t - n + 1, k.shape[2]))
    for i in range(t - n + 1):
        acc = np.zeros(k.shape[2])
        for a in range(n):
            acc += x[i + a] @ k[a]
        y[i] = np.sin(acc)
    return y


@layer
def last_of(x: real["T C"], k: Param[real["3 C C"]]) -> real["T-2 C"]:
    """Each step of the window needs the one before: no sum."""
    y = np.zeros((x.shape[0] - 2, x.shape[1]))
    for i in range(x.shape[0] - 2):
        h = x[i]
        for a in range(3):
            h = np.tanh(x[i + a] + h @ k[a])
        y[i] = h
    return y


@layer
def nested(x: real["N M D"], b: Param[real["D"]]) -> real["D"]:
    acc = b
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            acc = acc + x[i, j] * x[i, j]
    return acc


@layer
def written_too(x: real["N M D"], b: Param[real["D"]]) -> real["2*D"]:
    """Bound anew, and written into: b stays as it is."""
    acc = b.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            acc[0] += x[i, j, 0]
            acc = acc * 0.5 + x[i, j]
    return np.concatenate((acc, b))


@layer
def first_kept(x: real["N M D"]) -> real["2*D"]:
    """The value of before is needed behind the loop."""
    acc = x[0, 0]
    first = acc
    for i in range(x.shape[0]):
        before = acc
        for j in range(x.shape[1]):
            acc = np.sin(acc) + before * x[i, j]
    return np.concatenate((acc, first))


@layer(batched=True)
def edges(h: real["V D"], src: i32["E"], dst: i32["E"], size: real["V"]) -> real["V D"]:
    y = np.zeros_like(h)
    scaled = h / (1.0 + size[:, None] * size[:, None])
    for e in range(src.shape[0]):
        y[dst[e]] += scaled[src[e]] * np.sum(scaled[dst[e]] * h[src[e]])
    return y


@layer
def delta(q: real["T D"], k: real["T D"], v: real["T E"], beta: real["T"]) -> real["T E"]:
    s = np.zeros((q.shape[1], v.shape[1]))
    y = np.empty(v.shape)
    for t in range(q.shape[0]):
        s = s + beta[t] * np.outer(k[t], v[t] - k[t] @ s)
        y[t] = q[t] @ s
    return y
'''
SHAPES = {
    "conv": (["b n m 3"], ["3 3 3 5", "5"]),
    "along": (["b n 4"], ["3 4 6"]),
    "last_of": (["b n 4"], ["3 4 4"]),
    "nested": (["b n m 3"], ["3"]),
    "written_too": (["b n m 3"], ["3"]),
    "first_kept": (["b n m 3"], []),
    "delta": (["b n 4", "b n 4", "b n 6", "b n"], []),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pixels")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "pixels_of", TEXT)


def draw(name: str, examples: int, n: int, m: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    known = {"b": examples, "n": n, "m": m}
    texts = [*SHAPES[name][0], *SHAPES[name][1]]
    shapes = [[known[axis] if axis in known else int(axis) for axis in text.split()] for text in texts]
    return [(rng.standard_normal(shape) * 0.6).astype(dtype) for shape in shapes]


def draw_edges(n: int, count: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    ends = [rng.integers(-n, n, count).astype(np.int32) for _ in range(2)]
    return [rng.standard_normal((n, 5)).astype(dtype), *ends, rng.standard_normal(n).astype(dtype)]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("examples", "n", "m"), [(1, 3, 3), (3, 4, 9), (2, 7, 70), (5, 12, 4), (0, 5, 5), (20, 3, 67)])
def test_values_and_gradients(package, name, examples, n, m):
    values = draw(name, examples, n, m, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(n), 1e-9, 3e-6, exact=False)


@pytest.mark.parametrize(("n", "count"), [(1, 1), (7, 3), (9, 200), (4, 0)])
def test_edges(package, n, count):
    agrees(package.edges, draw_edges(n, count, np.float64), np.random.default_rng(n), 1e-10, 3e-6, exact=False)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 4, 9, 40, np.float32))


def test_bits_of_edges_do_not_hang_on_threads(package):
    same_bits(package.edges, draw_edges(60, 5000, np.float32))


@pytest.mark.parametrize(
    ("name", "kind", "count"), [("conv", "predict", 1), ("conv", "backward", 3), ("along", "predict", 1)]
)
def test_windows_are_products_of_rows(folder, package, name, kind, count):
    """The value, the gradient of the pixels and that of the matrices: each of three axes, in loops over a window."""
    kernel = kernels_in(folder / "pixels_of.py")[name, kind]
    found = [s for s in walk(kernel.body) if isinstance(s, Product)]
    assert len(found) >= count
    assert all(len(s.axes) == 3 for s in found)


def test_what_is_looked_up_is_divided_before(folder, package):
    """No loop that goes along what an index looks up has a quotient."""
    for kind in ("predict", "backward"):
        kernel = kernels_in(folder / "pixels_of.py")["edges", kind]
        inner = [s for s in walk(kernel.body) if isinstance(s, For) and "src" in repr(s)]
        assert inner
        ops = {e.op for s in walk(tuple(inner)) for own in own_exprs(s) for e in parts(own) if isinstance(e, Op)}
        assert not ops & {"divide", "quotient", "rough_quotient"}


def test_gradients_are_as_one_would_write_them(folder, package):
    text = gradient_file(check_file(folder / "pixels_of.py"))
    of = {part.split("(")[0]: part for part in text.split("\ndef d_")[1:]}
    assert "acc_2" not in of["conv"] and "d_x[i + a, j + e] += d_acc @ k[a, e].T" in of["conv"]
    assert "d_acc_2" not in of["nested"]
    assert "outer_saved" not in of["delta"]
