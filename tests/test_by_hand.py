"""Loops as one writes them by hand: places held at an end by branches, borders in a `continue`, x[i][j], windows that
begin beside a place, masks of truths, pivots, relative positions. NumPy's values, and loops along memory."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_text
from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import Check, For, If
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, bool_, layer, real


@layer
def chained(x: real["N M"]) -> real["N"]:
    n, m = x.shape
    y = np.zeros(n)
    for i in range(n):
        for j in range(1, m):
            y[i] += x[i][j] * x[i][j - 1] + x[i][-1]
    return y


@layer
def unpacked(x: real["3 3"]) -> real["3 3"]:
    (a, b, c), (d, e, f), (g, h, i) = x
    return np.array([[a * e, c, d], [g, f * b, h], [i, a, a * i]])


@layer
def masked(x: real["T S"], mask: bool_["T S"], keep: bool_["S"]) -> real["T S"]:
    z = np.where(mask, x, -1e9)
    e = np.exp(z - np.max(z, axis=-1, keepdims=True)) * mask * (1 + keep)
    return e / np.maximum(np.sum(e, axis=-1, keepdims=True), 1e-12)


@layer
def held(x: real["T D"], reach: int = 2) -> real["T 2*D"]:
    """The second half is made of the first."""
    T, D = x.shape
    out = np.zeros((T, 2 * D))
    for t in range(T):
        for d in range(D):
            out[t, d] = x[t, d] * x[t, d]
    for t in range(T):
        for d in range(D):
            acc = 0.0
            for k in range(1, reach + 1):
                low, high = t - k, t + k
                if low < 0:
                    low = 0
                if high >= T:
                    high = T - 1
                acc += k * (out[high, d] - out[low, d])
            out[t, D + d] = acc / 3
    return out


@layer
def beside(x: real["C H W"], w: Param[real["K"]], beta: Param[real]) -> real["C H W"]:
    """Channels beside each one, of which some are not there."""
    C, H, W = x.shape
    K = w.shape[0]
    y = np.zeros_like(x)
    for c in range(C):
        for i in range(H):
            for j in range(W):
                pool = 1 + beta * beta
                for k in range(K):
                    q = c + k - K // 2
                    if q >= 0 and q < C:
                        pool += w[k] * w[k] * x[q, i, j] ** 2
                y[c, i, j] = x[c, i, j] / np.sqrt(pool)
    return y


@layer
def positive(x: real["H W C"], by: int = 2) -> real["H W C"]:
    """Of the places around one, those that are there and positive."""
    H, W, C = x.shape
    y = np.zeros((H, W, C))
    for i in range(H):
        for j in range(W):
            for c in range(C):
                s1, s2 = 0.0, 0.0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        r, s = i + di * by, j + dj * by
                        if r < 0 or r >= H or s < 0 or s >= W:
                            continue
                        p = x[r][s][c]
                        if p > 0:
                            s1 += p
                            s2 += p * p
                if s1 == 0:
                    continue
                y[i][j][c] = s2 / s1
    return y


@layer
def mixed(x: real["H W"]) -> real["(H-1)//2+1 (W-1)//2+1"]:
    """Windows that begin beside a place."""
    H, W = x.shape
    y = np.zeros(((H - 1) // 2 + 1, (W - 1) // 2 + 1))
    for i in range((H - 1) // 2 + 1):
        for j in range((W - 1) // 2 + 1):
            top, total, count = -1e30, 0.0, 0
            for r in range(2 * i - 1, 2 * i + 2):
                for s in range(2 * j - 1, 2 * j + 2):
                    if r >= 0 and r < H:
                        if s >= 0 and s < W:
                            total += x[r][s]
                            count += 1
                            if x[r][s] > top:
                                top = x[r][s]
            y[i][j] = 0.3 * top + 0.7 * total / count
    return y


@layer
def relative(s: real["T T"], bias: Param[real["2*T-1"]], far: Param[real["T"]]) -> real["T T"]:
    T = s.shape[0]
    i = np.arange(T)
    rel = i[:, None] - i + T - 1
    return s + bias[rel] + far[i[::-1]]


@layer
def solved(a: real["M 4 4"], b: real["M 4"]) -> real["M 4"]:
    """Rows are swapped."""
    M = a.shape[0]
    x = np.zeros((M, 4))
    for m in range(M):
        u, y = a[m].copy(), b[m].copy()
        for k in range(4):
            p = k
            for i in range(k + 1, 4):
                if abs(u[i, k]) > abs(u[p, k]):
                    p = i
            if p != k:
                for j in range(4):
                    tmp = u[k, j]
                    u[k, j] = u[p, j]
                    u[p, j] = tmp
                t = y[k]
                y[k] = y[p]
                y[p] = t
            for i in range(k + 1, 4):
                f = u[i, k] / u[k, k]
                for j in range(k, 4):
                    u[i, j] -= f * u[k, j]
                y[i] -= f * y[k]
        for i in range(3, -1, -1):
            s = y[i]
            for j in range(i + 1, 4):
                s -= u[i, j] * x[m, j]
            x[m, i] = s / u[i, i]
    return x


@layer
def while_all(q: real["K K"], x: float = -0.3) -> real:
    """What all are asked has names of its own."""
    s = 0.0
    k = 0
    while k < 2 and np.all(x + np.zeros((q.shape[0],)) <= np.broadcast_to(x, (1,)), axis=0):
        k += 1
        s += q[0, 0] / (1 + np.abs(q[0, 0]))
    return s


@layer
def either_way(x: real["K"], y: bool_["K"], power: float = 3.5) -> real:
    """Both ways are dear."""
    loss = 0.0
    for k in range(x.shape[0]):
        p = 1 / (1 + np.exp(-x[k]))
        if y[k]:
            loss -= (1 - p) ** power * np.log(max(p, 1e-8))
            continue
        q = p - 0.05
        if q <= 0:
            continue
        loss -= q**power * np.log(max(1 - q, 1e-8))
    return loss
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("by_hand")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "by_hand", TEXT)


def some(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s) for s in shapes]


def truths(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=shape) < 0.6


def values_of(name: str, size: int, batch: int) -> list[np.ndarray]:
    n = size
    match name:
        case "masked":
            return [*some(n, (batch, 3, n)), truths(n, batch, 3, n), truths(n + 1, batch, n)]
        case "either_way":
            return [*some(n, (batch, n)), truths(n, batch, n)]
        case "solved":
            a, b = some(n, (batch, n, 4, 4), (batch, n, 4))
            return [a, b]
        case "relative":
            return some(n, (batch, n, n), (2 * n - 1,), (n,))
        case "beside":
            return [*some(n, (batch, 4, 3, n), (5,)), np.asarray(0.7)]
        case "positive":
            return some(n, (batch, 5, 4, n))
        case "held":
            return some(n, (batch, n, 5))
    return some(
        n,
        {"chained": (batch, 3, n), "while_all": (batch, n, n), "unpacked": (batch, 3, 3), "mixed": (batch, n, n + 2)}[
            name
        ],
    )


NAMES = [
    "chained",
    "unpacked",
    "masked",
    "held",
    "beside",
    "positive",
    "mixed",
    "relative",
    "solved",
    "either_way",
    "while_all",
]


@pytest.mark.parametrize("size", [1, 5, 16, 33])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients(package, name, size):
    rng = np.random.default_rng(7)
    for batch in (1, 18):
        agrees(getattr(package, name), values_of(name, size, batch), rng, 1e-11, 2e-5, exact=False)


@pytest.mark.parametrize("name", NAMES)
def test_float32(package, name):
    values = values_of(name, 33, 18)
    single = [v.astype(np.float32) if v.dtype.kind == "f" else v for v in values]
    wide = [v.astype(float) if v.dtype.kind == "f" else v for v in single]
    close = 2e-2 if name == "solved" else 2e-5  # of systems that have no good pivot
    np.testing.assert_allclose(getattr(package, name)(*single), getattr(package, name)(*wide), close, close)
    same_bits(getattr(package, name), single)


@pytest.mark.parametrize("name", ["held", "beside", "positive", "solved", "either_way"])
def test_of_none(package, name):
    values = values_of(name, 0, 3)
    layer = getattr(package, name)
    y, pullback = layer.vjp(*values)
    np.testing.assert_array_equal(y, layer.reference(*values))
    gradients = pullback(np.ones_like(y))
    for g, v in zip(gradients if isinstance(gradients, tuple) else (gradients,), values, strict=False):
        assert g is None or g.shape == v.shape


@pytest.mark.parametrize("name", ["chained", "masked", "held", "beside", "positive", "mixed", "either_way"])
def test_what_is_no_number(package, name):
    values = values_of(name, 17, 3)
    values[0].reshape(-1)[::11] = np.nan
    values[0].reshape(-1)[5::11] = np.inf
    with np.errstate(all="ignore"):
        want = getattr(package, name).reference(*values)
    np.testing.assert_allclose(getattr(package, name)(*values), want, 1e-11)


@pytest.mark.parametrize("reach", [0, 1, 7])
def test_reach_is_configuration(package, reach):
    x = some(1, (4, 9, 20))[0]
    np.testing.assert_allclose(package.held(x, reach=reach), package.held.reference(x, reach=reach), 1e-12)
    y, pullback = package.positive.vjp(x[..., None], by=reach)
    np.testing.assert_allclose(y, package.positive.reference(x[..., None], by=reach), 1e-12)
    assert np.isfinite(pullback(np.ones_like(y))).all()


def test_truths_of_any_layout(package):
    x, mask, keep = values_of("masked", 40, 18)
    for seen in (lambda a: a[:, ::-1], lambda a: np.asfortranarray(a), lambda a: a[::2]):
        some_x, some_mask = seen(x), seen(mask)
        some_keep = keep[::2] if some_x.shape[0] < 18 else keep
        want = package.masked.reference(some_x, some_mask, some_keep)
        np.testing.assert_allclose(package.masked(some_x, some_mask, some_keep), want, 1e-12)


def test_the_gradient_says_one_place(folder, package):
    path = folder / "by_hand.py"
    layers = {layer.name: layer for layer in read_module(path).layers}
    chained, unpacked = (gradient_text(layers[n], path.read_text(), str(path)) for n in ("chained", "unpacked"))
    assert "d_x[i, j] +=" in chained
    assert "np.zeros((" not in chained
    assert "np.reshape" not in unpacked


def kernels_upto(path, upto):
    return {(p.layer.name, p.method): p.kernel for p in compile_module(read_module(path), upto=upto).parts}


def innermost(kernel):
    """The bodies of loops that hold no loop."""
    loops = [s for s in walk(kernel.body) if isinstance(s, For)]
    return [loop for loop in loops if not any(isinstance(s, For) for s in walk(loop.body))]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("held", "backward"),
        ("beside", "predict"),
        ("beside", "backward"),
        ("positive", "predict"),
        ("positive", "backward"),
        ("mixed", "predict"),
    ],
)
def test_nothing_is_asked_in_rows(folder, package, name, method):
    """What is asked is asked outside of the innermost loops, or is where these end."""
    kernel = kernels_upto(folder / "by_hand.py", "windows")[name, method]
    rows = [x for x in innermost(kernel) if "strip" in x.hi.render(str)]
    assert rows
    assert not any(isinstance(s, If) for row in rows for s in walk(row.body))


@pytest.mark.parametrize("name", ["held", "relative", "solved"])
def test_what_is_in_range_is_not_checked(folder, package, name):
    kernels = kernels_upto(folder / "by_hand.py", "inline")
    for stage in ((name, "predict"), (name, "backward")):
        assert not any(isinstance(s, Check) for s in walk(kernels[stage].body))
    if name == "relative":
        assert not [b.name for b in kernels[name, "predict"].buffers if b.dtype == "i64" and b.shape]
