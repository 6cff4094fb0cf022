"""Gradients of weights that an example uses twice, squares, or sums up: products, and sums of all examples."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, Product, Store
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def tied(x: real["D"], w: Param[real["D H"]], b: Param[real["H"]], c: Param[real["D"]]) -> real["D"]:
    """An autoencoder whose second weights are the first."""
    h = 1 / (1 + np.exp(-(x @ w + b)))
    return h @ w.T + c


@layer
def machine(x: real["D"], w: Param[real["D H"]], c: Param[real["D"]]) -> real:
    """A factorisation machine (Rendle 2010)."""
    s = x @ w
    q = (x * x) @ (w * w)
    return c @ x + 0.5 * np.sum(s * s - q)


@layer
def summed_up(x: real["D"], w: Param[real["D H"]]) -> real["H"]:
    """Every row of the weights has the same derivative."""
    return np.sum(w, axis=0) * np.sum(x * x)


@layer
def polynomials(x: real["D"], w: Param[real["D H 4"]]) -> real["H"]:
    """Chebyshev's, one after the other, of which the first is 1."""
    t = np.tanh(x)
    a = np.ones(x.shape[0])
    b = t
    y = np.sum(w[:, :, 0], axis=0) + b @ w[:, :, 1]
    for k in range(2, 4):
        c = 2 * t * b - a
        y += c @ w[:, :, k]
        a = b
        b = c
    return y


@layer
def convolved(x: real["C N"], w: Param[real["D C 3"]], b: Param[real["D"]]) -> real["D N"]:
    """With a sum of its own for each place."""
    c, n = x.shape
    d = w.shape[0]
    y = np.zeros((d, n))
    for k in range(d):
        for i in range(n):
            total = b[k]
            for h in range(c):
                for p in range(3):
                    if 0 <= i + p - 1 < n:
                        total += w[k, h, p] * x[h, i + p - 1]
            y[k, i] = total
    return y
'''
NAMES = ("tied", "machine", "summed_up", "polynomials", "convolved")


def draw(name: str, batch: int, d: int, h: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * batch + 10 * d + h)
    if name == "convolved":
        shapes = [(batch, d, 9), (h, d, 3), (h,)]
        return [rng.standard_normal(s).astype(dtype) / 2 for s in shapes]
    shapes = {"tied": [(h,), (d,)], "machine": [(d,)]}.get(name, [])
    weights = [(d, h, 4) if name == "polynomials" else (d, h), *shapes]
    return [rng.standard_normal(s).astype(dtype) / 2 for s in [(batch, d), *weights]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("twice")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "used_twice", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("batch", "d", "h"), [(1, 3, 2), (5, 1, 1), (17, 20, 33), (64, 7, 16), (0, 3, 2), (3, 0, 2), (3, 2, 0)]
)
def test_values_and_gradients(package, name, batch, d, h):
    agrees(getattr(package, name), draw(name, batch, d, h), np.random.default_rng(d), 1e-11, 3e-6, exact=False)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        same_bits(getattr(package, name), draw(name, 300, 40, 24, dtype))


def test_what_is_not_finite_stays_so(package):
    """With what an example does not touch: no sum is left out for a factor of 0."""
    x, w, c = draw("machine", 4, 3, 2)
    w[1, 1] = np.inf
    with np.errstate(invalid="ignore"):
        y, pullback = package.machine.vjp(x, w, c)
    assert np.isnan(y).all()
    d_x, d_w, d_c = pullback(np.ones_like(y))
    assert np.isnan(d_x[:, 1]).all()
    assert np.isnan(d_w[1, 1])
    np.testing.assert_allclose(d_c, x.sum(axis=0))


@pytest.mark.parametrize(("name", "products"), [("tied", 4), ("machine", 2)])
def test_derivatives_of_weights_are_products(package, folder, name, products):
    """And nothing as large as the weights is gone over for each example."""
    kernel = next(
        k
        for (layer, method), k in kernels_in(folder / "used_twice.py").items()
        if (layer, method) == (name, "pullback")
    )
    found = [s for s in walk(kernel.body) if isinstance(s, Product)]
    assert len({(s.buffer, s.left.buffer) for s in found}) == products, found
    for loop in _around_examples(kernel.body):
        adds = [s for s in walk(loop.body) if isinstance(s, Store) and len(s.index) > 1 and "d_w" in s.buffer]
        assert not adds, adds


def test_what_all_rows_have_alike_is_added_up_first(package, folder):
    for (layer, method), kernel in kernels_in(folder / "used_twice.py").items():
        if layer in ("summed_up", "polynomials") and method == "pullback":
            assert any("alike" in b.name or b.name.endswith("_all") for b in kernel.buffers), kernel.name


def test_products_add_to_matrices_along_memory(package, folder):
    """Where the step, or the place in the window, is the last axis of the weights."""
    found = 0
    for (layer, _), kernel in kernels_in(folder / "used_twice.py").items():
        if layer in ("polynomials", "convolved"):
            sums = [s for s in walk(kernel.body) if isinstance(s, Product) and s.op == "add" and "d_w" in s.buffer]
            found += len(sums)
            for product in sums:
                assert product.columns[0] in product.index[-1].symbols(), product
    assert found >= 4


def _around_examples(body):
    return [
        s
        for s in walk(body)
        if isinstance(s, For) and "batch" in (s.lo.symbols() | s.hi.symbols()) and s.lo != Dim.of(0)
    ]
