"""Sums of products behind a branch that asks where a window is: products of matrices, or windows, the same numbers."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import nonnegative
from layerc.transpile.ir import For, If, Product, Store
from layerc.transpile.passes.tree import bodies, walk
from layerc.transpile.passes.within import WORTH

pytestmark = pytest.mark.heavy

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def causal(x: real["T C"], w: Param[real["K C D"]], *, dilation: int = 2) -> real["T D"]:
    """A filter over time, of vectors; the branch in the middle."""
    t, c = x.shape
    y = np.zeros((t, w.shape[2]))
    for i in range(t):
        for j in range(w.shape[0]):
            s = i - j * dilation
            if s >= 0:
                y[i] += x[s] @ w[j]
    return y


@layer
def image(x: real["C H W"], w: Param[real["D C 3 3"]]) -> real["D H W"]:
    """Channels inside of the window."""
    c, h, wd = x.shape
    d = w.shape[0]
    y = np.zeros((d, h, wd))
    for o in range(d):
        for i in range(h):
            for j in range(wd):
                for a in range(3):
                    for b in range(3):
                        if 0 <= i + a - 1 < h and 0 <= j + b - 1 < wd:
                            for k in range(c):
                                y[o, i, j] += w[o, k, a, b] * x[k, i + a - 1, j + b - 1]
    return y


@layer
def summed(x: real["C H W"], w: Param[real["D C K K"]], bias: Param[real["D"]]) -> real["D H W"]:
    """A sum of its own, something added and something done to it; a window whose width the call tells."""
    c, h, wd = x.shape
    d, k = w.shape[0], w.shape[2]
    y = np.empty((d, h, wd))
    for o in range(d):
        for i in range(h):
            for j in range(wd):
                s = bias[o]
                for m in range(c):
                    for a in range(k):
                        for b in range(k):
                            p, q = i + a - k // 2, j + b - k // 2
                            if p >= 0 and p < h and q >= 0 and q < wd:
                                s += w[o, m, a, b] * x[m, p, q]
                y[o, i, j] = np.tanh(s)
    return y


@layer
def by_steps(x: real["C H W"], w: Param[real["D C 3 3"]]) -> real["D (H-1)//2+1 (W-1)//3+1"]:
    c, h, wd = x.shape
    d = w.shape[0]
    y = np.zeros((d, (h - 1) // 2 + 1, (wd - 1) // 3 + 1))
    for o in range(d):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                for k in range(c):
                    for a in range(3):
                        for b in range(3):
                            p, q = 2 * i + a - 1, 3 * j + b - 1
                            if 0 <= p < h and 0 <= q < wd:
                                y[o, i, j] += w[o, k, a, b] * x[k, p, q]
    return y


@layer
def last(x: real["H W C"], w: Param[real["3 3 C D"]]) -> real["H W D"]:
    h, wd, c = x.shape
    y = np.zeros((h, wd, w.shape[3]))
    for i in range(h):
        for j in range(wd):
            for a in range(3):
                for b in range(3):
                    p, q = i + a - 1, j + b - 1
                    if 0 <= p < h and 0 <= q < wd:
                        y[i, j] += x[p, q] @ w[a, b]
    return y


@layer
def around_it(x: real["C H W"], w: Param[real["D C 3 5"]]) -> real["D H W"]:
    """Windows that begin before their place."""
    c, h, wd = x.shape
    d = w.shape[0]
    y = np.zeros((d, h, wd))
    for o in range(d):
        for i in range(h):
            for j in range(wd):
                for a in range(-1, 2):
                    for b in range(-2, 3):
                        if 0 <= i + a < h and 0 <= j + b < wd:
                            for k in range(c):
                                y[o, i, j] += w[o, k, a + 1, b + 2] * x[k, i + a, j + b]
    return y


@layer
def bounded(x: real["C H W"], w: Param[real["D C 3 3"]]) -> real["D H W"]:
    """As one may write it oneself: nothing asked."""
    c, h, wd = x.shape
    d = w.shape[0]
    y = np.zeros((d, h, wd))
    for a in range(3):
        for b in range(3):
            for o in range(d):
                for i in range(max(0, 1 - a), min(h, h + 1 - a)):
                    for j in range(max(0, 1 - b), min(wd, wd + 1 - b)):
                        for k in range(c):
                            y[o, i, j] += w[o, k, a, b] * x[k, i + a - 1, j + b - 1]
    return y
'''
NAMES = ["around_it", "causal", "image", "summed", "by_steps", "last", "bounded"]
SIZES = [(1, 1, 5, 7), (2, 3, 1, 1), (3, 7, 6, 9), (17, 5, 4, 21), (4, 4, 1, 18)]  # channels, filters, height, width


def draw(name: str, sizes: tuple[int, ...], batch: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng, (c, d, h, w) = np.random.default_rng(batch), sizes
    shapes = {
        "causal": [(w, c), (3, c, d)],
        "last": [(h, w, c), (3, 3, c, d)],
        "around_it": [(c, h, w), (d, c, 3, 5)],
        "summed": [(c, h, w), (d, c, 5, 5), (d,)],
    }
    first, *rest = shapes.get(name, [(c, h, w), (d, c, 3, 3)])
    return [rng.standard_normal(s).astype(dtype) for s in ((batch, *first), *rest)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("within")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "within_of", TEXT)


@pytest.fixture(scope="module")
def kernels(folder, package):
    return kernels_in(folder / "within_of.py")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("batch", [1, 5])
def test_values_and_gradients(package, name, sizes, batch):
    agrees(getattr(package, name), draw(name, sizes, batch), np.random.default_rng(1), 1e-10, 3e-5, exact=False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [SIZES[2], SIZES[3]], ids=str)
def test_bits_do_not_hang_on_threads(package, name, sizes):
    same_bits(getattr(package, name), draw(name, sizes, 20, np.float32))


@pytest.mark.parametrize("channels", [2, 8])
def test_a_place_that_is_not_there_is_told(package, channels):
    """As NumPy does, on both ways."""
    x, w = draw("causal", (channels, channels, 1, 9), 3)
    for dilation in (0, 4, 9, 100):
        expected = package.causal.reference(x, w, dilation=dilation)
        np.testing.assert_allclose(package.causal(x, w, dilation=dilation), expected, 1e-12, 1e-12)
    for call in (package.causal.reference, package.causal, package.causal.vjp):
        with pytest.raises(IndexError):
            call(x, w, dilation=-1)


@pytest.mark.parametrize("name", NAMES)
def test_large_ones_are_products(kernels, name):
    """And small ones are windows, but where one has written no branch."""
    for method in ("predict", "backward"):
        kernel = kernels[name, method]
        assert any(isinstance(s, Product) for s in walk(kernel.body)), method
        asked = [
            s for s in walk(kernel.body) if isinstance(s, If) and str(WORTH) in str(s.cond) and "C*D" in str(s.cond)
        ]
        assert bool(asked) == (name != "bounded"), method


def test_nothing_is_written_behind_a_branch_that_is_not_taken(tmp_path):
    """The sum of a row goes to its place where there is one: `d_x[2 * i + j - 1]` at -1 is none."""
    text = """
        import numpy as np
        from layerc import Param, layer, real

        @layer
        def f(x: real["5 4"], m: Param[real["4 4"]]) -> real["5 4"]:
            y = np.zeros((5, 4))
            for i in range(5):
                for j in range(2):
                    for c in range(4):
                        for d in range(4):
                            if 0 <= 2 * i + j - 1 < 5:
                                y[i, d] += np.sin(x[2 * i + j - 1, c]) * m[c, d]
            return y
        """
    (tmp_path / "behind.py").write_text(textwrap.dedent(text))
    kernel = kernels_in(tmp_path / "behind.py")["f", "backward"]

    def unasked(body, facts):
        for stmt in body:
            if isinstance(stmt, Store) and stmt.buffer == "d_x":
                shape = next(b.shape for b in kernel.buffers if b.name == "d_x")
                if not all(nonnegative(d, facts) and nonnegative(n - 1 - d, facts) for d, n in zip(stmt.index, shape)):
                    yield stmt
            if isinstance(stmt, For):
                yield from unasked(stmt.body, {**facts, stmt.var: (stmt.lo, stmt.hi - 1)})
            elif not isinstance(stmt, If):
                for inner in bodies(stmt):
                    yield from unasked(inner, facts)

    assert not [s for s in unasked(kernel.body, {}) if "chunk" not in str(s.index)]
