"""Products of a vector with a matrix in a loop over rows, whose iterations are independent, are matrix products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, If, Kernel, Product
from layerc.transpile.passes.tree import Body, walk

pytestmark = pytest.mark.heavy  # half a minute of compiling

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def attention(q: real["T D"], k: real["S D"], v: real["S E"]) -> real["T E"]:
    y = np.zeros((q.shape[0], v.shape[1]))
    for t in range(q.shape[0]):
        s = k @ q[t] / np.sqrt(q.shape[1])
        p = np.exp(s - np.max(s))
        y[t] = (p / np.sum(p)) @ v
    return y


@layer
def all_alike(a: real["T"], w: Param[real["D E"]], q: real) -> real["T"]:
    """Each row makes the same product, and something of it, for nobody."""
    for t in range(a.shape[0]):
        v = np.sin(q)
        u = np.cos((v + np.zeros((w.shape[1], w.shape[0]))) @ w)
    return a * 2.0


@layer
def heads(q: real["H T D"], k: real["H S D"], v: real["H S E"]) -> real["H T E"]:
    """Rows in a loop over heads, which is none over rows."""
    y = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for h in range(q.shape[0]):
        for t in range(q.shape[1]):
            s = k[h] @ q[h, t]
            p = np.exp(s - np.max(s))
            y[h, t] = (p / np.sum(p)) @ v[h]
    return y


@layer
def linear(x: real["N D"], w: Param[real["H D"]]) -> real["N H"]:
    y = np.zeros((x.shape[0], w.shape[0]))
    for i in range(x.shape[0]):
        y[i] = w @ x[i]
    return y


@layer
def perceptron(x: real["N D"], w: Param[real["H D"]], b: Param[real["H"]], u: Param[real["H E"]]) -> real["N E"]:
    y = np.zeros((x.shape[0], u.shape[1]))
    for i in range(x.shape[0]):
        y[i] = np.tanh(w @ x[i] + b) @ u
    return y


@layer(batched=True)
def of_all(x: real["N D"], w: Param[real["H D"]], u: Param[real["H E"]]) -> real["N E"]:
    y = np.zeros((x.shape[0], u.shape[1]))
    for i in range(x.shape[0]):
        y[i] = np.tanh(w @ x[i]) @ u
    return y


@layer
def bilinear(x: real["N D"], z: real["N E"], w: Param[real["D E"]]) -> real["N"]:
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] @ w @ z[i]
    return y


@layer
def distances(x: real["N D"], c: Param[real["K D"]]) -> real["N K"]:
    """What hangs on no row is summed once."""
    y = np.zeros((x.shape[0], c.shape[0]))
    for i in range(x.shape[0]):
        y[i] = np.sum(c * c, axis=1) - 2 * (c @ x[i]) + np.sum(x[i] * x[i])
    return y


@layer
def some(x: real["N D"], w: Param[real["H D"]]) -> real["N H"]:
    """Every third row, from the second on, from below."""
    y = np.ones((x.shape[0], w.shape[0]))
    for i in range(x.shape[0] - 1, 0, -3):
        y[i] = np.sin(w @ x[i])
    return y


@layer
def sums(x: real["N D"], w: Param[real["H D"]]) -> real["H"]:
    """The rows add to one place."""
    y = np.zeros(w.shape[0])
    for i in range(x.shape[0]):
        y += np.tanh(w @ x[i])
    return y


@layer
def known(x: real["48 D"], w: Param[real["H D"]], u: Param[real["H E"]]) -> real["48 E"]:
    y = np.zeros((48, u.shape[1]))
    for i in range(48):
        y[i] = np.tanh(w @ x[i]) @ u
    return y


@layer
def known_long(x: real["130 D"], w: Param[real["H D"]], u: Param[real["H E"]]) -> real["130 E"]:
    y = np.zeros((130, u.shape[1]))
    for i in range(130):
        y[i] = np.tanh(w @ x[i]) @ u
    return y


@layer
def recurrences(x: real["N T D"], w: Param[real["D H"]], u: Param[real["H H"]]) -> real["N H"]:
    """Each row is a recurrence of its own."""
    y = np.zeros((x.shape[0], u.shape[0]))
    for i in range(x.shape[0]):
        h = np.zeros(u.shape[0])
        for t in range(x.shape[1]):
            h = np.tanh(x[i, t] @ w + h @ u)
        y[i] = h
    return y


@layer
def in_steps(x: real["N D"], w: Param[real["D D"]], steps: int = 3) -> real["N D"]:
    """Rows in each step of a loop that is none over rows."""
    h = x
    for s in range(steps):
        g = np.zeros_like(x)
        for i in range(x.shape[0]):
            g[i] = np.tanh(w @ h[i])
        h = g
    return h


@layer
def pixels(x: real["H W C"], w: Param[real["D C"]], u: Param[real["E D"]]) -> real["H W E"]:
    y = np.zeros((x.shape[0], x.shape[1], u.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = u @ np.tanh(w @ x[i, j])
    return y


@layer
def sometimes(x: real["N D"], w: Param[real["H D"]]) -> real["N H"]:
    """What a row is asked hangs on its product."""
    y = np.zeros((x.shape[0], w.shape[0]))
    for i in range(x.shape[0]):
        z = w @ x[i]
        if z[0] > 0:
            y[i] = z
        else:
            y[i] = np.exp(z)
    return y


@layer
def few(x: real["3 D"], w: Param[real["H D"]]) -> real["3 H"]:
    """Too few rows for a product: it is one of the examples."""
    y = np.zeros((3, w.shape[0]))
    for i in range(3):
        y[i] = np.tanh(w @ x[i])
    return y


@layer
def pairs(x: real["N D"], w: Param[real["D D"]]) -> real["N N"]:
    """Each row beside all of them."""
    y = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        z = w @ x[i]
        for j in range(x.shape[0]):
            y[i, j] = np.sum(z * x[j])
    return y
'''

OTHERS = """
import numpy as np
from layerc import Param, layer, real


@layer
def causal(q: real["T D"], k: real["T D"], v: real["T E"]) -> real["T E"]:
    y = np.zeros((q.shape[0], v.shape[1]))
    for t in range(q.shape[0]):
        s = k[: 2 * t + 1] @ q[t]
        p = np.exp(s - np.max(s))
        y[t] = (p / np.sum(p)) @ v[: 2 * t + 1]
    return y


@layer
def recurrence(x: real["T D"], w: Param[real["D D"]]) -> real["T D"]:
    y = np.zeros_like(x)
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = np.tanh(h * 0.5 + x[t])
        y[t] = h - y[t - 1] if t > 0 else h
    return y


@layer
def small(x: real["N 4"], w: Param[real["4 4"]]) -> real["N 4"]:
    y = np.zeros((x.shape[0], 4))
    for i in range(x.shape[0]):
        y[i] = np.tanh(w @ x[i])
    return y
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return built_from(tmp_path_factory.mktemp("rows"), "rows", TEXT)


def _kernels(folder: Path, text: str) -> dict[tuple[str, str], Kernel]:
    path = folder / "rows.py"
    path.write_text(text)
    return kernels_in(path)


def _products(body: Body) -> int:
    """Those that one call comes to: of the versions of a loop, the largest."""
    found = 0
    for stmt in body:
        if isinstance(stmt, If):
            found += max(_products(stmt.then), _products(stmt.orelse))
        else:
            found += isinstance(stmt, Product) + (_products(stmt.body) if isinstance(stmt, For) else 0)
    return found


def test_they_are_products(tmp_path: Path) -> None:
    found = {key: _products(kernel.body) for key, kernel in _kernels(tmp_path, TEXT).items()}
    wanted = {
        "all_alike": (0, 0),
        "attention": (2, 4),
        "heads": (2, 4),
        "linear": (1, 1),
        "perceptron": (2, 3),
        "of_all": (2, 3),
        "bilinear": (1, 2),
        "distances": (1, 1),
        "some": (1, 1),
        "sums": (1, 1),
        "known": (2, 3),
        "known_long": (2, 3),
        "recurrences": (2, 3),
        "in_steps": (1, 2),
        "pixels": (2, 3),
        "sometimes": (1, 1),
        "few": (1, 2),
        "pairs": (2, 2),
    }
    for (name, method), count in found.items():
        forward, pullback = wanted[name]
        if method in ("predict", "vjp"):
            assert count == forward, (name, method, count)
        elif method in ("pullback", "backward"):
            assert count >= pullback, (name, method, count)


def test_where_they_are_not(tmp_path: Path) -> None:
    """Extents that hang on the row, so that few rows have much in common, rows that hang on each other, and small
    matrices."""
    for (name, method), kernel in _kernels(tmp_path, OTHERS).items():
        if method != "backward_params":
            assert not any(isinstance(s, Product) for s in walk(kernel.body)), (name, method)


def test_temporaries_are_of_a_strip(tmp_path: Path) -> None:
    """Of a long loop no more than 64 rows are kept; of a short one those that there are."""
    kernels = _kernels(tmp_path, TEXT)
    for name, rows in (("attention", 64), ("known", 48), ("known_long", 64)):
        temps = [b for b in kernels[name, "predict"].buffers if b.kind == "temp" and b.alias is None]
        kept = [b for b in temps if len(b.shape) == 2 and not b.name.endswith(("_turned", "_of"))]  # gangs have fewer
        assert {b.shape[0].value for b in kept} == {rows}, (name, kept)


ROWS = (0, 1, 3, 63, 64, 65, 130)
SHAPES: dict[str, Any] = {
    "all_alike": lambda b, t: [(b, t), (3, 4), (b,)],
    "attention": lambda b, n: ((b, n, 5), (b, 7, 5), (b, 7, 6)),
    "heads": lambda b, n: ((b, 2, n, 5), (b, 2, 7, 5), (b, 2, 7, 6)),
    "linear": lambda b, n: ((b, n, 5), (7, 5)),
    "perceptron": lambda b, n: ((b, n, 5), (7, 5), (7,), (7, 6)),
    "of_all": lambda b, n: ((n, 5), (7, 5), (7, 6)),
    "bilinear": lambda b, n: ((b, n, 5), (b, n, 6), (5, 6)),
    "distances": lambda b, n: ((b, n, 5), (7, 5)),
    "some": lambda b, n: ((b, n, 5), (7, 5)),
    "sums": lambda b, n: ((b, n, 5), (7, 5)),
    "recurrences": lambda b, n: ((b, n, 4, 5), (5, 6), (6, 6)),
    "in_steps": lambda b, n: ((b, n, 5), (5, 5)),
    "pixels": lambda b, n: ((b, 3, n, 5), (7, 5), (6, 7)),
    "sometimes": lambda b, n: ((b, n, 5), (7, 5)),
    "few": lambda b, n: ((b, 3, 5), (7, 5)),
    "pairs": lambda b, n: ((b, n, 5), (5, 5)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradients(built: Any, name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    tight, close = (1e-5, 2e-3) if dtype is np.float32 else (1e-12, 1e-6)
    for rows in ROWS:
        for batch in (0, 1, 2, 5) if rows in (3, 65) else (5,):
            values = [rng.standard_normal(s).astype(dtype) / 2 for s in SHAPES[name](batch, rows)]
            agrees(getattr(built, name), values, rng, tight, close, exact=False)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 63, 3), (64, 64, 65), (65, 130, 63), (130, 3, 1), (0, 4, 5)])
def test_attention_of_all_extents(built: Any, sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    rows, keys, width = sizes
    for batch in (1, 4):
        shapes = ((batch, rows, width), (batch, keys, width), (batch, keys, 9))
        values = [rng.standard_normal(s) / 2 for s in shapes]
        agrees(built.attention, values, rng, 1e-12, 1e-6, exact=False)


def test_known_numbers_of_rows(built: Any) -> None:
    rng = np.random.default_rng(2)
    for name, rows in (("known", 48), ("known_long", 130)):
        for batch in (1, 5):
            values = [rng.standard_normal(s) / 2 for s in ((batch, rows, 9), (8, 9), (8, 6))]
            agrees(getattr(built, name), values, rng, 1e-12, 1e-6, exact=False)


def test_strided_arguments(built: Any) -> None:
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal(s)[:, ::-1, ::2] for s in ((5, 70, 8), (5, 9, 8), (5, 9, 10)))
    agrees(built.attention, [q, k, v], rng, 1e-12, 1e-6, exact=False)
    x, w = rng.standard_normal((4, 5, 70)).swapaxes(1, 2), rng.standard_normal((5, 7)).T
    agrees(built.linear, [x, w], rng, 1e-12, 1e-6, exact=False)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_bits_on_any_threads(built: Any, name: str) -> None:
    rng = np.random.default_rng(4)
    for batch, rows in ((1, 200), (2, 65), (9, 130)):
        same_bits(getattr(built, name), [rng.standard_normal(s).astype("f4") for s in SHAPES[name](batch, rows)])


def test_predict_and_vjp_agree_in_every_bit(built: Any) -> None:
    rng = np.random.default_rng(5)
    for batch, rows in ((1, 70), (5, 64)):
        values = [rng.standard_normal(s).astype("f4") for s in SHAPES["attention"](batch, rows)]
        assert np.array_equal(built.attention(*values), built.attention.vjp(*values)[0])


def test_faults(built: Any) -> None:
    """The largest of no numbers is one as soon as there is a row, and none where there is not."""
    q, k, v = np.ones((4, 3, 5)), np.ones((4, 0, 5)), np.ones((4, 0, 6))
    for batch in (1, 4):
        with pytest.raises(ValueError, match="zero-size"):
            built.attention(q[:batch], k[:batch], v[:batch])
        with pytest.raises(ValueError, match="zero-size"):
            built.attention.reference(q[:batch], k[:batch], v[:batch])
        assert built.attention(q[:batch, :0], k[:batch], v[:batch]).shape == (batch, 0, 6)


def test_the_first_fault_is_the_first_one(tmp_path: Path) -> None:
    """Only the third row asks for a number of `a`, and the first one already for one of `b`."""
    source = """
    import numpy as np
    from layerc import layer, real


    @layer(batched=True)
    def picky(x: real["N D"], w: real["H D"], a: real["A"], b: real["B"]) -> real["N H"]:
        y = np.zeros((x.shape[0], w.shape[0]))
        for i in range(x.shape[0]):
            z = w @ x[i]
            if x[i, 0] > 0:
                y[i] = z + a[0]
            z = np.tanh(w @ np.tanh(x[i] + np.sum(z)))
            y[i] += z + b[0]
        return y
    """
    layer = built_from(tmp_path, "faults", source).picky
    x, w, none, one = np.array([[-1.0, 1], [-1, 1], [1, 1]]), np.ones((3, 2)), np.ones(0), np.ones(1)
    for a, b, line in ((none, none, 14), (none, one, 12), (one, none, 14)):
        with pytest.raises(IndexError, match=f"faults.py:{line}:"):
            layer(x, w, a, b)
    np.testing.assert_allclose(layer(x, w, one, one), layer.reference(x, w, one, one), 1e-12)


def test_sums_are_no_less_exact(built: Any) -> None:
    """A thousand rows add to one gradient."""
    rng = np.random.default_rng(6)
    x, w = rng.random((3, 1000, 8)), rng.random((9, 8))
    dy = rng.random((3, 1000, 9))
    d_w = built.linear.vjp(x.astype("f4"), w.astype("f4"))[1](dy.astype("f4"))[1]
    np.testing.assert_allclose(d_w, np.einsum("bnh,bnd->hd", dy, x), 2e-6)
