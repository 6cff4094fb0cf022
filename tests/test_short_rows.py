"""Rows too short for a vector lie side by side in one; so do windows with a stride, and a border that cuts them off."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import in_vectors, walk

pytestmark = pytest.mark.optimised

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def largest(x: real["T 4"]) -> real["T"]:
    return x.max(axis=1)


@layer
def groups(x: real["T 3*D"]) -> real["T D"]:
    """The same axis in groups, as maxout has it."""
    t = x.shape[0]
    return x.reshape(t, x.shape[1] // 3, 3).max(axis=2)


@layer
def sums(x: real["T 3"]) -> real["T"]:
    return np.sum(x, axis=1)


@layer
def products(x: real["T 2"]) -> real["T"]:
    return np.prod(x, axis=1)


@layer
def unit(x: real["T 3"]) -> real["T 3"]:
    """Added up, and gone over again."""
    return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True) + 1e-6)


@layer
def turned(q: real["T 4"], p: real["T 3"]) -> real["T 3"]:
    """Rotated by quaternions."""
    n = np.sqrt(np.sum(q * q, axis=1, keepdims=True) + 1e-3)
    u = q[:, 1:] / n
    w = q[:, 0:1] / n
    s = np.sum(u * p, axis=1, keepdims=True)
    return 2 * s * u + (2 * w * w - 1) * p


@layer
def pooled(x: real["C H W"]) -> real["C H//2 W//2"]:
    """Windows of three, two apart, whose first row and column may lie outside."""
    c, h, w = x.shape
    y = np.empty((c, h // 2, w // 2))
    for k in range(c):
        for i in range(h // 2):
            for j in range(w // 2):
                best = -np.inf
                for a in range(3):
                    for b in range(3):
                        r, s = 2 * i + a - 1, 2 * j + b - 1
                        if 0 <= r < h and 0 <= s < w:
                            best = max(best, x[k, r, s])
                y[k, i, j] = best
    return y
'''
SHAPES = {
    "largest": ["t 4"],
    "groups": ["t 15"],
    "sums": ["t 3"],
    "products": ["t 2"],
    "unit": ["t 3"],
    "turned": ["t 4", "t 3"],
    "pooled": ["2 6 t"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("short")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "short_of", TEXT)


def draw(name: str, examples: int, t: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(t)
    shapes = [[t if axis == "t" else int(axis) for axis in text.split()] for text in SHAPES[name]]
    return [rng.standard_normal((examples, *shape)).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("examples", "t"), [(1, 1), (3, 2), (2, 17), (5, 64), (0, 3), (1, 131)])
def test_values_and_gradients(package, name, examples, t):
    values = draw(name, examples, t, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(t), 1e-10, 3e-6, exact=name != "turned")


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3, 500, np.float32))


@pytest.mark.parametrize("name", ["largest", "groups", "sums", "unit"])
def test_nan_is_the_largest(package, name):
    (x,) = draw(name, 2, 24, np.float32)
    x[:, ::2, 1] = np.nan
    x[:, 1::2, 0] = np.inf
    with np.errstate(all="ignore"):
        want = getattr(package, name).reference(x.astype(float))
    np.testing.assert_allclose(getattr(package, name)(x), want, 1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_no_loop_is_short(folder, name):
    """The innermost loops run over rows, of which there are many."""
    kernel = kernels_in(folder / "short_of.py")[name, "predict"]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and not any(isinstance(i, For) for i in walk(s.body))]
    assert loops
    assert all((s.hi - s.lo).value is None for s in loops)
    if name != "pooled":
        assert any(in_vectors(s) for s in loops if any(isinstance(i, Store) for i in s.body))
