"""Arrays of few sheets: taken apart where loops go over them element by element, whole where they are operands."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import Op
from layerc.transpile.passes.tree import own_exprs, parts, walk

pytestmark = pytest.mark.heavy  # compiles for long

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def rational(x: real["C N"], p: Param[real["C 6"]], q: Param[real["C 4"]]) -> real["C N"]:
    """Powers, and some of them."""
    powers = np.stack([x**i for i in range(6)])
    return np.einsum("ck,kcn->cn", p, powers) / (1 + np.abs(np.einsum("ck,kcn->cn", q, powers[1:5])))


@layer
def series(x: real["N D"], w: Param[real["5"]]) -> real["N D"]:
    """Chebyshev polynomials: each made of the two before."""
    t = [np.ones_like(x), x]
    for _ in range(3):
        t.append(2 * x * t[-1] - t[-2])
    return np.tensordot(w, np.stack(t), axes=1)


@layer
def branches(x: real["N D"], w: Param[real["3"]]) -> real["N D"]:
    """The largest, the mean and a mixture of three, the last axis theirs."""
    y = np.stack([np.tanh(x), x * w[0], np.sin(x)], axis=-1)
    return y.max(axis=-1) + y.mean(axis=-1) + y @ w


@layer
def backwards(x: real["N D"], w: Param[real["4"]]) -> real["N D"]:
    """Filled in a loop that counts down, some of it twice."""
    y = np.zeros((4, x.shape[0], x.shape[1]))
    for k in range(3, -1, -1):
        y[k] = w[k] * x**k
    y[1:3] *= 2.0
    return (y * y).sum(axis=0)


@layer
def outer(x: real["N D"], w: Param[real["O D 3"]]) -> real["N O"]:
    """Operands of a product: they stay."""
    basis = np.stack([np.tanh(x - k) for k in range(3)])
    return np.einsum("knd,odk->no", basis, w)


@layer
def looked_up(x: real["N D"], which: real["N D"]) -> real["N D"]:
    """A sheet that the data tell: they stay."""
    y = np.stack([x, x * x, x * x * x])
    n, d = x.shape
    z = np.empty_like(x)
    for i in range(n):
        for j in range(d):
            z[i, j] = y[int(which[i, j]), i, j]
    return z
'''
GONE = {"rational": True, "series": True, "branches": True, "backwards": True, "outer": False, "looked_up": False}


def values(name, rng, n, d):
    x = rng.standard_normal((2, n, d))
    more = {
        "rational": [rng.standard_normal((n, 6)), rng.standard_normal((n, 4))],
        "series": [rng.standard_normal(5)],
        "branches": [rng.standard_normal(3)],
        "backwards": [rng.standard_normal(4)],
        "outer": [rng.standard_normal((5, d, 3))],
        "looked_up": [rng.integers(0, 3, (2, n, d)).astype(float)],
    }
    return [x, *more[name]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sheets")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "of_sheets", TEXT)


@pytest.mark.parametrize("size", [(7, 19), (1, 1), (3, 0), (0, 3)])
@pytest.mark.parametrize("name", [name for name in GONE if name != "looked_up"])
def test_values_and_gradients(package, name, size):
    agrees(getattr(package, name), values(name, np.random.default_rng(0), *size), np.random.default_rng(1), 1e-12, 1e-6)


def test_what_is_looked_up(package):
    x, which = values("looked_up", np.random.default_rng(0), 5, 6)
    np.testing.assert_allclose(package.looked_up(x, which), x ** (which + 1), 1e-12)


def test_nothing_is_invented(package):
    """0 times what is infinite or no number is no number, as in NumPy."""
    x = np.array([[[0.0, -0.0, np.inf, -np.inf, np.nan, 1e200]]])
    p, q = np.ones((1, 6)), np.zeros((1, 4))
    with np.errstate(all="ignore"):
        want = package.rational.reference(x, p, q)
    np.testing.assert_array_equal(package.rational(x, p, q), want)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("name", GONE)
def test_which_are_taken_apart(folder, name):
    """No array has an axis of sheets then, and a power is a few products."""
    for (layer, _), kernel in kernels_in(folder / "of_sheets.py").items():
        if layer == name:
            made = [b for b in kernel.buffers if b.kind == "temp" and not b.name.endswith("_part")]  # a thread's
            stacks = [b for b in made if not b.alias and len(b.shape) > 2]
            ops = {p.op for s in walk(kernel.body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op)}
            assert not (GONE[name] and stacks), f"{kernel.name}: {[b.name for b in stacks]}"
            assert name != "rational" or "power" not in ops
