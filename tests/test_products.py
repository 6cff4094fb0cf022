"""Matrix products: recognised in the loop nests, and as exact as BLAS at all shapes, strides and thread counts."""

from __future__ import annotations

import importlib
import itertools
import sys

import ir_kernels as zoo
import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc import runtime
from layerc.build.driver import build
from layerc.transpile import ir, passes
from layerc.transpile.dims import Dim
from layerc.transpile.passes import tree

SOURCE = """
import numpy as np
from layerc import Param, layer, real


@layer(batched=True)
def nn(a: real["N K"], b: Param[real["K M"]]):
    return a @ b


@layer(batched=True)
def nt(a: real["N K"], b: Param[real["M K"]]):
    return a @ b.T


@layer(batched=True)
def tn(a: real["N K"], b: Param[real["N M"]]):
    return a @ (a.T @ b)


@layer
def tt(a: real["K N"], b: Param[real["M K"]]):
    return a.T @ b.T


@layer(batched=True)
def turned(a: real["N K"], b: Param[real["M K"]]):
    return (b @ a.T).T


@layer(batched=True)
def strided(a: real["N K"], b: Param[real["K M"]]):
    return a[::-1, 1::2] @ b[1::2, ::-1]


@layer(batched=True)
def into(a: real["N K"], b: Param[real["K M"]]):
    y = np.ones((a.shape[0], b.shape[1], 2), dtype=a.dtype)
    y[:, :, 0] += a @ b
    y[:, :, 1] = a @ b
    return y


@layer(batched=True)
def batches(a: real["B N K"], b: real["B K M"], c: Param[real["M L"]]):
    return np.einsum("bik,bkj->bji", a, b).swapaxes(1, 2) @ c


@layer(batched=True)
def triangle(a: real["N N"], b: Param[real["N M"]]):
    y = np.zeros_like(b)
    for i in range(a.shape[0]):
        y[i] = np.sum(a[: i + 1, : i + 1] @ b[: i + 1], axis=0)
    return y


@layer(batched=True)
def affine(x: real["N K"], w: Param[real["K M"]], b: Param[real["M"]]):
    return np.tanh(x @ w + b)


@layer(batched=True)
def recurrent(x: real["N T K"], w: Param[real["K D"]], u: Param[real["D D"]]):
    h = np.zeros((x.shape[0], w.shape[1]), dtype=x.dtype)
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w + h @ u)
    return h


@layer
def mlp(x: real["D"], w: Param[real["H D"]], b: Param[real["H"]], u: Param[real["O H"]]):
    h = np.maximum(w @ x + b, 0)
    return u @ h


@layer
def attention(q: real["T D"], k: real["T D"], v: real["T D"]):
    s = q @ k.T
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return (e / np.sum(e, axis=-1, keepdims=True)) @ v


@layer
def bilinear(x: real["I"], w: Param[real["J I"]], y: real["J"]):
    return np.sum((w @ x) * y)
"""
SIZES = [0, 1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 31, 33, 64, 67]
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("products") / "products_of_all_kinds.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def built(file):
    sys.path.insert(0, str(file.parent))
    yield importlib.import_module(build(file).name)
    sys.path.remove(str(file.parent))


@pytest.fixture(scope="module")
def kernels(file):
    return kernels_in(file)


@pytest.fixture(params=[np.float32, np.float64], ids=["f32", "f64"])
def real(request):
    return request.param


def draw(real, *shape):
    return RNG.standard_normal(shape).astype(real)


def tolerance(real, depth, factor=4.0):
    return factor * np.finfo(real).eps * max(depth, 1) ** 0.5


def close(got, want, real, depth, factor=4.0):
    """Within what rounding does to sums of `depth` products of standard normal numbers."""
    assert got.dtype == real
    assert got.shape == want.shape
    np.testing.assert_allclose(
        got, want, rtol=0, atol=tolerance(real, depth, factor) * max(abs(want).max(initial=0), 1)
    )


def shapes():
    """All pairs of sizes, the third at random, and some larger than the blocks."""
    for m, n in itertools.product(SIZES, SIZES):
        yield m, n, int(RNG.choice(SIZES))
    yield from [(130, 20, 390), (5, 530, 400), (700, 3, 40), (40, 9, 100), (2, 70, 300), (300, 1, 90), (230, 600, 260)]
    yield from [(1, 700, 900), (900, 1, 700)]


# -- values ----------------------------------------------------------------------------------------------------
def test_every_transpose_and_size(built, real):
    for m, n, k in shapes():
        a, b = draw(real, m, k), draw(real, k, n)
        want = a.astype(float) @ b.astype(float)
        close(built.nn(a, b), want, real, k)
        close(built.nt(a, np.ascontiguousarray(b.T)), want, real, k)
        close(built.turned(a, np.ascontiguousarray(b.T)), want, real, k)
        close(built.tt(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)), want, real, k)


def test_products_of_products_and_strides(built, real):
    for m, n, k in [(17, 33, 40), (1, 5, 3), (0, 3, 4), (40, 1, 31), (15, 70, 2), (64, 64, 64)]:
        a, b = draw(real, m, k), draw(real, k, n)
        wide = a.astype(float)
        close(built.strided(a, b), wide[::-1, 1::2] @ b.astype(float)[1::2, ::-1], real, k)
        got, want = built.into(a, b), wide @ b
        close(got[..., 0], want + 1, real, k)
        close(got[..., 1], want, real, k)
        c = draw(real, m, n)
        close(built.tn(a, c), wide @ (wide.T @ c), real, m * k)


def test_batches(built, real):
    for b, m, n, k, o in [(0, 3, 4, 5, 6), (1, 8, 8, 8, 8), (7, 13, 9, 17, 5), (64, 8, 8, 8, 8), (3, 70, 40, 33, 65)]:
        x, y, z = draw(real, b, m, k), draw(real, b, k, n), draw(real, n, o)
        want = x.astype(float) @ y.astype(float) @ z.astype(float)
        close(built.batches(x, y, z), want, real, k * n)


def test_parts_whose_extents_depend_on_a_loop(built, real):
    a, b = draw(real, 37, 37), draw(real, 37, 18)
    want = np.array([(a[: i + 1, : i + 1].astype(float) @ b[: i + 1]).sum(axis=0) for i in range(37)])
    close(built.triangle(a, b), want, real, 37 * 37)


def test_the_depth_is_summed_as_exactly_as_by_blas(built):
    for k in (100, 1000, 20000):
        a, b = RNG.random((20, k)).astype(np.float32), RNG.random((k, 40)).astype(np.float32)
        exact = a.astype(float) @ b.astype(float)
        ours, blas = abs(built.nn(a, b) - exact).max(), abs(a @ b - exact).max()
        assert ours <= 2 * blas + 1e-6 * exact.max() / 10, (k, ours, blas)


def test_nan_and_infinity_pass(built, real):
    for m, n, k in [(1, 1, 3), (15, 33, 17), (64, 64, 64), (2, 40, 64), (300, 300, 400)]:
        a, b = draw(real, m, k), draw(real, k, n)
        a[0, k - 1], b[k // 2, n - 1] = np.nan, np.inf
        with np.errstate(invalid="ignore"):
            want = a.astype(float) @ b.astype(float)
        got = built.nn(a, b)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
        zero = np.zeros_like(b)
        assert np.isnan(built.nn(a, zero)[0]).all(), "NaN times zero"


def triangles(m, k):
    """Masks that leave rows zeros before or behind what is kept: triangles, bands, cut rows, nothing, isolated rows."""
    rows, columns = np.ogrid[:m, :k]
    yield from (columns <= rows, columns >= rows, abs(columns - rows) < 9, columns < k // 2, columns < 0 * rows)
    yield (columns > k // 3) & (rows % 17 != 0)


@pytest.mark.parametrize("name", ["nn", "nt", "tt", "turned", "into"])
def test_zeros_at_the_ends_of_rows_change_nothing(built, real, name):
    """Of integers, whose sums are exact; beside infinities and NaN, 0 times which is not 0."""
    for m, n, k in [(128, 64, 128), (45, 33, 70), (15, 130, 64), (300, 20, 700), (64, 600, 33), (3, 5, 200)]:
        for mask in triangles(m, k):
            a = np.where(mask, RNG.integers(-9, 9, (m, k)), 0).astype(real)
            b = RNG.integers(-9, 9, (k, n)).astype(real)
            for spoilt in (None, (0, 0, np.inf), (k - 1, n - 1, np.nan), (k // 2, n // 2, -np.inf)):
                if spoilt:
                    b[spoilt[0], spoilt[1]] = spoilt[2]
                with np.errstate(invalid="ignore"):
                    want = np.einsum("ik,kj->ij", a.astype(float), b.astype(float))
                if name == "tt":
                    got = built.tt(np.ascontiguousarray(a.T)[None], np.ascontiguousarray(b.T))[0]
                else:
                    got = getattr(built, name)(a, b if name in ("nn", "into") else np.ascontiguousarray(b.T))
                got = got[..., 1] if name == "into" else got
                np.testing.assert_array_equal(got, want.astype(real), str((m, n, k)))


def test_no_depth_gives_zeros(built, real):
    got = built.nn(draw(real, 5, 0), draw(real, 0, 7), out=np.full((5, 7), 9, real))
    np.testing.assert_array_equal(got, np.zeros((5, 7), real))
    np.testing.assert_array_equal(built.into(draw(real, 2, 0), draw(real, 0, 3)), [[[1, 0]] * 3] * 2)


def test_the_same_bits_at_any_number_of_threads(built, real):
    before = runtime.get_num_threads()
    try:
        for m, n, k in [(300, 300, 400), (1000, 17, 100), (33, 2000, 70), (512, 512, 64), (1, 900, 800), (900, 1, 800)]:
            a, b, bias = draw(real, m, k), draw(real, k, n), draw(real, n)
            x, u = draw(real, m, 3, k), draw(real, n, n)
            found = []
            for threads in (1, 2, 3, 8):
                runtime.set_num_threads(threads)
                y, pullback = built.affine.vjp(a, b, bias)
                found.append([built.nn(a, b), built.recurrent(x, b, u), y, *pullback(np.ones_like(y))])
            for other in found[1:]:
                for one, two in zip(found[0], other):
                    np.testing.assert_array_equal(one, two)
    finally:
        runtime.set_num_threads(before)


# -- gradients -------------------------------------------------------------------------------------------------
ARGUMENTS = {
    "nn": [(9, 20), (20, 17)],
    "nt": [(9, 20), (17, 20)],
    "tn": [(9, 8), (9, 7)],
    "turned": [(9, 20), (17, 20)],
    "strided": [(9, 20), (20, 17)],
    "into": [(9, 20), (20, 17)],
    "batches": [(3, 5, 6), (3, 6, 7), (7, 4)],
    "triangle": [(9, 9), (9, 6)],
    "affine": [(9, 20), (20, 17), (17,)],
    "recurrent": [(5, 3, 6), (6, 8), (8, 8)],
    "mlp": [(7, 9), (8, 9), (8,), (5, 8)],
    "attention": [(2, 7, 5), (2, 7, 5), (2, 7, 5)],
    "bilinear": [(6, 9), (8, 9), (6, 8)],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_gradients_are_those_of_the_reference(built, name):
    """Central differences along a random direction, in float64, of what NumPy computes."""
    layer = getattr(built, name)
    values = [draw(np.float64, *s) for s in ARGUMENTS[name]]
    y, pullback = layer.vjp(*values)
    np.testing.assert_allclose(y, layer.reference(*values), rtol=1e-11, atol=1e-11)
    dy = draw(np.float64, *np.shape(y))
    gradients = pullback(dy)
    for k, gradient in enumerate(gradients):
        way, step = draw(np.float64, *values[k].shape), 1e-6
        ends = [layer.reference(*(v + s * way if n == k else v for n, v in enumerate(values))) for s in (step, -step)]
        want = np.sum(dy * (ends[0] - ends[1])) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * way), want, rtol=2e-6, atol=2e-6)


def test_examples_across_the_batch(built, real):
    for batch in (0, 1, 3, 70):
        x, w, b, u = (draw(real, *s) for s in ((batch, 33), (20, 33), (20,), (9, 20)))
        wide = [v.astype(float) for v in (x, w, b, u)]
        hidden = np.maximum(wide[0] @ wide[1].T + wide[2], 0)
        y, pullback = built.mlp.vjp(x, w, b, u)
        close(y, hidden @ wide[3].T, real, 33 * 20)
        dy = draw(real, batch, 9)
        d_hidden = (dy @ wide[3]) * (hidden > 0)
        for got, want in zip(pullback(dy), (d_hidden @ wide[1], d_hidden.T @ wide[0], d_hidden.sum(0), dy.T @ hidden)):
            close(got, want, real, max(batch, 33) * 20)


# -- loop nests ------------------------------------------------------------------------------------------------
def products(kernel):
    return [s for s in tree.walk(kernel.body) if isinstance(s, ir.Product)]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (("nn", "predict"), 1),
        (("nn", "backward"), 2),
        (("turned", "predict"), 1),
        (("turned", "backward"), 2),
        (("affine", "backward"), 2),
        (("recurrent", "predict"), 4),  # two, for strands of rows and for few rows
        (("mlp", "predict"), 2),
        (("mlp", "backward"), 5),
    ],
)
def test_what_is_a_product(kernels, name, count):
    found = products(kernels[name])
    assert len(found) == count, passes.NAMES
    temps = {b.name for b in kernels[name].buffers if b.kind == "temp"}
    if name[0] in ("nn", "turned"):
        assert not temps, "each is computed where it goes"
    assert all(s.op is None for s in found), "none begins with zeros of its own"


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_zeros_and_sums_are_one_product(layout):
    kernel = passes.run(zoo.matmul(layout), "products")
    (product,) = kernel.body
    assert isinstance(product, ir.Product)
    assert product.op is None


def _nest(term, extent="K", other=None):
    k = zoo.Builder("k", "N M K")
    a, b, c = k.arg("a", "N K"), k.arg("b", "K M"), k.out("c", "N M")
    k.emit(k.nest((Dim.of("N"), Dim.of("M")), lambda i, j: ir.Store("c", c.at((i, j)), ir.Const(0.0, "real"))))
    if other:
        other(k, c)
    space = (Dim.of("N"), Dim.of("M"), Dim.of(extent))
    k.emit(k.nest(space, lambda i, j, l: ir.Store("c", c.at((i, j)), term(a, b, i, j, l).ir, "add")))
    return k.kernel()


def test_sums_that_are_no_products_stay_nests():
    for term in (
        lambda a, b, i, j, l: a[i, l] - b[l, j],
        lambda a, b, i, j, l: a[i, l] * a[i, l],
    ):
        assert not products(passes.run(_nest(term), "products"))
    few = _nest(lambda a, b, i, j, l: a[i, l] * b[l, j], extent=3)
    assert not products(passes.run(few, "products")), "three steps are no depth"


def test_what_is_computed_of_each_row_is_an_operand():
    kernel = passes.run(_nest(lambda a, b, i, j, l: zoo.op("exp", a[i, l]) * b[l, j]), "products")
    (product,) = products(kernel)
    (operand,) = (b for b in kernel.buffers if b.name == product.left.buffer)
    assert operand.kind == "temp" and len(operand.shape) == 2


def test_what_stands_between_keeps_the_zeros():
    def write(k, c):
        k.emit(k.nest((Dim.of("N"),), lambda i: ir.Store("c", c.at((i, 0)), ir.Const(5.0, "real"))))

    (product,) = products(passes.run(_nest(lambda a, b, i, j, l: a[i, l] * b[l, j], other=write), "products"))
    assert product.op == "add"


def test_a_product_may_not_overwrite_what_it_reads():
    good = passes.run(zoo.matmul("nn"), "products")
    (product,) = products(good)
    for wrong in (
        ir.Product("c", product.index, ir.Load("c", product.left.index, "real"), product.right, *product.axes),
        ir.Product("c", product.index, product.left, product.right, product.rows, product.rows, product.depth),
        ir.Product("c", product.index, product.left, product.right, *product.axes, op="mul"),
        ir.Product("c", product.index[:1], product.left, product.right, *product.axes),
    ):
        with pytest.raises(passes.IRError):
            passes.verify(ir.Kernel(good.name, good.dims, good.scalars, good.buffers, (wrong,)))


FILTERS = """
import numpy as np
from layerc import Param, layer, real


@layer
def bank(x: real["T"], w: Param[real["F K"]]) -> real["F T"]:
    f, k = w.shape
    t = x.shape[0]
    y = np.zeros((f, t))
    for i in range(f):
        for n in range(t):
            for j in range(min(k, n + 1)):
                y[i, n] += w[i, j] * x[n - j]
    return y


@layer
def short(x: real["T"], w: Param[real["F 9"]]) -> real["F T"]:
    y = np.zeros((w.shape[0], x.shape[0]))
    for i in range(w.shape[0]):
        for n in range(x.shape[0]):
            for j in range(min(9, n + 1)):
                y[i, n] += w[i, j] * x[n - j]
    return y
"""


def test_a_bank_of_filters(tmp_path):
    """Long ones go in steps that have most of a filter in common; of short ones each step would be a product of its
    own: of a few filters, and examples far apart in memory."""
    package = built_from(tmp_path, "filters", FILTERS)
    rng = np.random.default_rng(3)
    for batch, t, f, k in ((3, 40, 5, 7), (20, 70, 8, 16), (2, 3, 2, 9), (4, 1, 1, 1), (0, 5, 2, 3)):
        agrees(package.bank, [rng.standard_normal((batch, t)), rng.standard_normal((f, k))], rng, 1e-12, 3e-6)
        agrees(package.short, [rng.standard_normal((batch, t)), rng.standard_normal((f, 9))], rng, 1e-12, 3e-6)
    kernels = kernels_in(tmp_path / "filters.py")
    assert products(kernels["bank", "predict"])
    assert not products(kernels["short", "predict"])
