"""What is filled, and stored into piece by piece, is not filled, if the pieces are side by side; and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import Const, Store
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def halves(x: real["T D"]) -> real["T D//2"]:
    """Its gradient writes to one half and adds to the other one."""
    d = x.shape[1] // 2
    return x[:, :d] / (1.0 + np.exp(-x[:, d:]))


@layer
def thirds(x: real["3*D"]) -> real["D"]:
    d = x.shape[0] // 3
    return np.tanh(x[:d]) * x[d : 2 * d] + np.sin(x[2 * d :])


@layer
def rows(x: real["2*H W"]) -> real["H W"]:
    """Pieces of the outer axis."""
    h = x.shape[0] // 2
    return x[:h] * np.exp(x[h:])


@layer
def gap(x: real["3*D"]) -> real["D"]:
    """The middle is never asked for: its gradient is 0."""
    d = x.shape[0] // 3
    return x[:d] * np.cos(x[2 * d :])


@layer
def overlaps(x: real["2*D"]) -> real["D"]:
    """A half, and all but its first elements once more."""
    d = x.shape[0] // 2
    return x[:d] * x[d:] + np.sin(x[:d])


@layer
def ones(x: real["2*D"]) -> real["2*D"]:
    """Added to what is 1."""
    d = x.shape[0] // 2
    y = np.ones(2 * d)
    for i in range(d):
        y[i] += np.sin(x[i])
    for i in range(d):
        y[d + i] += x[i] * x[d + i]
    return y


@layer
def partly(x: real["2*D"]) -> real["2*D"]:
    """Only the front of it is cleared."""
    d = x.shape[0] // 2
    y = np.cos(x)
    for i in range(2):
        y[i] = 0.0
    for i in range(d):
        y[i] += np.sin(x[i])
    for i in range(d, 2 * d):
        y[i] += x[i] * x[i]
    return y


@layer
def uneven(x: real["N"], z: real["M"]) -> real["N"]:
    """As many as another array has, from the front; then the rest: of none, or less."""
    n, m = x.shape[0], z.shape[0]
    y = np.zeros(n)
    for i in range(min(m, n)):
        y[i] += np.sin(x[i]) * z[i]
    for i in range(min(m, n), n):
        y[i] += x[i] * 2.0
    return y


@layer
def crossed(x: real["N"], *, less: int = 1) -> real["N"]:
    """Where the second piece ends before it begins, the third one begins in the first one."""
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n - 1):
        y[i] += np.sin(x[i])
    for i in range(n - 1, n - less):
        y[i] += 3.0 * x[i]
    for i in range(n - less, n):
        y[i] += x[i] * x[i]
    return y


@layer
def twice(x: real["D D"]) -> real["D D"]:
    """Pieces of two axes, which cross."""
    d = x.shape[0]
    y = np.zeros((d, d))
    for i in range(d // 2):
        for j in range(d):
            y[i, j] += np.sin(x[i, j])
    for i in range(d):
        for j in range(d // 2, d):
            y[i, j] += x[i, j] * x[i, j]
    return y


@layer
def again(x: real["2*D"]) -> real["2*D"]:
    """What is added to a piece that is stored stays in it; what is added beside it is no piece."""
    d = x.shape[0] // 2
    y = np.zeros(2 * d)
    for i in range(d):
        y[i] += np.sin(x[i])
    for i in range(d):
        y[i] += x[i] * x[d + i]
    for i in range(d):
        y[d + i] += np.cos(x[i])
    return y


@layer
def crossed_again(x: real["D D"]) -> real["D D"]:
    """Half of the rows, half of the columns, and the other rows."""
    d = x.shape[0]
    h = d // 2
    y = np.zeros((d, d))
    for i in range(h):
        for j in range(d):
            y[i, j] += np.sin(x[i, j])
    for i in range(d):
        for j in range(h):
            y[i, j] += x[i, j]
    for i in range(h, d):
        for j in range(d):
            y[i, j] += x[i, j] * x[i, j]
    return y


@layer
def diagonal(x: real["D D"]) -> real["D D"]:
    d = x.shape[0]
    y = np.zeros((d, d))
    for i in range(d):
        y[i, i] += np.sin(x[i, i])
    return y
'''

SHAPES = {
    "halves": [(3, 6)],
    "thirds": [(9,)],
    "rows": [(4, 3)],
    "gap": [(9,)],
    "overlaps": [(8,)],
    "ones": [(6,)],
    "partly": [(6,)],
    "uneven": [(5,), (3,)],
    "crossed": [(5,)],
    "twice": [(4, 4)],
    "again": [(8,)],
    "crossed_again": [(4, 4)],
    "diagonal": [(3, 3)],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pieces")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "pieces_of", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 3, 18])
@pytest.mark.parametrize(("dtype", "tight", "close"), [("f8", 1e-11, 1e-6), ("f4", 1e-5, 1e-3)])
def test_values_and_gradients(package, name, examples, dtype, tight, close):
    rng = np.random.default_rng(examples)
    values = [np.asarray(rng.standard_normal((examples, *shape)), dtype) for shape in SHAPES[name]]
    agrees(getattr(package, name), values, rng, tight, close)


@pytest.mark.parametrize("shapes", [[(2, 3), (2, 5)], [(2, 3), (2, 3)], [(2, 3), (2, 0)], [(2, 0), (2, 2)]])
def test_uneven_pieces(package, shapes):
    rng = np.random.default_rng(0)
    agrees(package.uneven, [rng.standard_normal(s) for s in shapes], rng, 1e-11, 1e-6)


@pytest.mark.parametrize("less", [0, 1, 2, 3])
def test_pieces_that_cross(package, less):
    """As NumPy has it: a place that two loops add to has both."""
    x = np.random.default_rng(0).standard_normal((3, 5))
    want = np.zeros_like(x)
    for b in range(3):
        for lo, hi, f in ((0, 4, np.sin), (4, 5 - less, lambda v: 3 * v), (5 - less, 5, np.square)):
            for i in range(lo, hi):
                want[b, i] += f(x[b, i])
    assert np.allclose(package.crossed(x, less=less), want, rtol=1e-12)


def fills(kernel, name):
    return [
        s
        for s in walk(kernel.body)
        if isinstance(s, Store) and s.buffer.startswith(name) and isinstance(s.value, Const)
    ]


@pytest.mark.parametrize(("name", "filled"), [("halves", False), ("thirds", False), ("rows", False), ("gap", True)])
def test_whether_it_is_filled(package, folder, name, filled):
    kernel = kernels_in(folder / "pieces_of.py")[name, "backward"]
    assert bool(fills(kernel, "d_x")) == filled
    adds = [s for s in walk(kernel.body) if isinstance(s, Store) and s.buffer.startswith("d_x") and s.op]
    assert filled or not adds


def test_what_is_added_to_a_piece(package, folder):
    kernel = kernels_in(folder / "pieces_of.py")["again", "predict"]
    assert not fills(kernel, "y")
    assert not any(isinstance(s, Store) and s.buffer == "y" and s.op for s in walk(kernel.body))
