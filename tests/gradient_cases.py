"""Small layers, one a row: name, source of the function, shapes of its arguments. Every gradient test runs over them."""

from __future__ import annotations

import re
from typing import NamedTuple


class Case(NamedTuple):
    name: str
    source: str
    shapes: dict[str, tuple[int, ...]]
    low: float = -2.0  # arguments are drawn from (low, high)
    high: float = 2.0


def _elementwise(name: str, body: str, low: float = -2.0, high: float = 2.0, two: bool = False) -> Case:
    args = 'a: real["N"], b: real["N"]' if two else 'a: real["N"]'
    shapes = {"a": (7,), "b": (7,)} if two else {"a": (7,)}
    return Case(name, f"def {name}({args}):\n    return {body}\n", shapes, low, high)


CASES: list[Case] = [
    # -- elementwise rows --------------------------------------------------------------------------------------
    _elementwise("add", "a + b", two=True),
    _elementwise("subtract", "a - b", two=True),
    _elementwise("multiply", "a * b", two=True),
    _elementwise("divide", "a / b", 0.5, 2.0, two=True),
    _elementwise("power", "a ** b", 0.5, 2.0, two=True),
    _elementwise("cube", "a ** 3"),
    _elementwise("mod", "np.mod(a, b)", 0.6, 1.9, two=True),
    _elementwise("maximum", "np.maximum(a, b)", two=True),
    _elementwise("minimum", "np.minimum(a, b)", two=True),
    _elementwise("fmax", "np.fmax(a, b)", two=True),
    _elementwise("fmin", "np.fmin(a, b)", two=True),
    _elementwise("logaddexp", "np.logaddexp(a, b)", two=True),
    _elementwise("arctan2", "np.arctan2(a, b)", two=True),
    _elementwise("hypot", "np.hypot(a, b)", two=True),
    _elementwise("copysign", "np.copysign(a, b)", two=True),
    _elementwise("heaviside", "np.heaviside(a, b) + a", two=True),
    _elementwise("where", "np.where(a > b, a * b, np.where(a < 0.5, b, 3.0))", two=True),
    _elementwise("clip", "np.clip(a, -0.7, b)", two=True),
    _elementwise("reciprocal", "np.reciprocal(a)", 0.5, 2.0),
    *(_elementwise(f, f"np.{f}(a)") for f in (
        "negative", "abs", "square", "cbrt", "exp", "exp2", "expm1", "sin", "cos", "tanh", "sinh", "cosh", "arctan", "arcsinh", "sign",
        "floor", "ceil", "trunc", "rint",
    )),
    *(_elementwise(f, f"np.{f}(a)", 0.3, 2.0) for f in ("sqrt", "log", "log2", "log10", "log1p")),
    *(_elementwise(f, f"np.{f}(a)", -0.9, 0.9) for f in ("tan", "arcsin", "arccos", "arctanh")),
    _elementwise("arccosh", "np.arccosh(a)", 1.2, 3.0),
    *(_elementwise(f, f"special.{f}(a)") for f in ("erf", "erfc", "expit", "log_expit")),
    _elementwise("logit", "special.logit(a)", 0.1, 0.9),
    _elementwise("gammaln", "special.gammaln(a)", 0.5, 3.0),
    _elementwise("digamma", "special.digamma(a)", 0.5, 3.0),
    _elementwise("digamma_below", "special.digamma(a - 4.0)", 0.2, 0.8),
    _elementwise("arctan2_at_0", "np.arctan2(a * 0, b * 0) + a * b", two=True),
    _elementwise("rolled_by_value", "np.roll(a, int(np.floor(b[0] * 0 + 2.5))) * b", two=True),
    _elementwise("xlogy", "special.xlogy(a, b)", 0.3, 2.0, two=True),
    _elementwise("positive", "+a * b", two=True),
    _elementwise("clip_low", "np.clip(a, b, 1.9)", two=True),
    _elementwise("heaviside_at_zero", "np.heaviside(np.floor(a), b)", 0.1, 0.9, two=True),
    _elementwise("filled", "np.full((a.size,), a[0]) * b + np.full_like(a, b[1])", two=True),
    _elementwise("cast", "a.astype(a.dtype) * b", two=True),
    # -- broadcasting ------------------------------------------------------------------------------------------
    Case("row", 'def row(a: real["N D"], b: real["D"]):\n    return a * b + b\n', {"a": (4, 3), "b": (3,)}),
    Case("column", 'def column(a: real["N D"], b: real["N 1"]):\n    return a / (1 + b * b)\n', {"a": (4, 3), "b": (4, 1)}),
    Case("scalar", 'def scalar(a: real["N D"], b: real[""]):\n    return np.exp(a * b) - b\n', {"a": (4, 3), "b": ()}),
    Case("cross", 'def cross(a: real["N"], b: real["M"]):\n    return a[:, None] * b + b[None, :] ** 2\n', {"a": (4,), "b": (3,)}),
    Case("middle", 'def middle(a: real["N 1 D"], b: real["M 1"]):\n    return np.tanh(a * b)\n', {"a": (4, 1, 2), "b": (3, 1)}),
    # -- reductions --------------------------------------------------------------------------------------------
    *(Case(f"{f}_{n}", f'def {f}_{n}(a: real["N M D"]):\n    return np.{f}(a{arg}) * 1.5\n', {"a": (3, 4, 2)}, 0.2, 2.0)
      for f in ("sum", "mean", "prod", "max", "min", "var", "std")
      for n, arg in (("all", ""), ("last", ", axis=-1"), ("tuple", ", axis=(0, 2)"), ("keep", ", axis=1, keepdims=True"))),
    Case("norm", 'def norm(a: real["N D"]):\n    return np.linalg.norm(a, axis=1) + np.linalg.norm(a)\n', {"a": (4, 3)}),
    Case("logsumexp_of_none", 'def logsumexp_of_none(a: real["N D"]):\n    return np.exp(special.logsumexp(a[:, :0], axis=1)) + a[:, 0]\n', {"a": (4, 3)}),
    Case("logsumexp", 'def logsumexp(a: real["N D"]):\n    return special.logsumexp(a, axis=1)\n', {"a": (4, 3)}),
    Case("softmax", 'def softmax(a: real["N D"]):\n    return special.softmax(a, axis=1) * a\n', {"a": (4, 3)}),
    Case("log_softmax", 'def log_softmax(a: real["N D"]):\n    return special.log_softmax(a, axis=0) * a\n', {"a": (4, 3)}),
    Case("layernorm", 'def layernorm(x: real["N D"], g: real["D"], b: real["D"]):\n    m = np.mean(x, axis=-1, keepdims=True)\n'
         "    v = np.mean((x - m) ** 2, axis=-1, keepdims=True)\n    return (x - m) / np.sqrt(v + 1e-5) * g + b\n", {"x": (4, 5), "g": (5,), "b": (5,)}),
    # -- products ----------------------------------------------------------------------------------------------
    Case("matmul", 'def matmul(a: real["N K"], b: real["K M"]):\n    return np.tanh(a @ b)\n', {"a": (3, 4), "b": (4, 2)}),
    Case("matvec", 'def matvec(a: real["N K"], b: real["K"]):\n    return a @ b\n', {"a": (3, 4), "b": (4,)}),
    Case("vecmat", 'def vecmat(a: real["K"], b: real["K M"]):\n    return a @ b\n', {"a": (4,), "b": (4, 2)}),
    Case("vecvec", 'def vecvec(a: real["K"], b: real["K"]):\n    return a @ b\n', {"a": (4,), "b": (4,)}),
    Case("batch_matmul", 'def batch_matmul(a: real["B N K"], b: real["K M"]):\n    return a @ b\n', {"a": (2, 3, 4), "b": (4, 2)}),
    Case("outer", 'def outer(a: real["N"], b: real["M"]):\n    return np.outer(a, b)\n', {"a": (3,), "b": (4,)}),
    Case("dot", 'def dot(a: real["N K"], b: real["K M"]):\n    return np.dot(a, b)\n', {"a": (3, 4), "b": (4, 2)}),
    Case("inner", 'def inner(a: real["N K"], b: real["M K"]):\n    return np.inner(a, b)\n', {"a": (3, 4), "b": (2, 4)}),
    # -- moves -------------------------------------------------------------------------------------------------
    Case("transpose", 'def transpose(a: real["N M D"]):\n    return np.transpose(a, (2, 0, 1)) * 2 + a.T.shape[0]\n', {"a": (3, 4, 2)}),
    Case("tee", 'def tee(a: real["N M"], b: real["M N"]):\n    return a.T * b\n', {"a": (3, 4), "b": (4, 3)}),
    Case("swap", 'def swap(a: real["N M D"]):\n    return np.swapaxes(a, 0, -1) ** 2\n', {"a": (3, 4, 2)}),
    Case("move", 'def move(a: real["N M D"]):\n    return np.moveaxis(a, 0, -1) ** 2\n', {"a": (3, 4, 2)}),
    Case("reshape", 'def reshape(a: real["N M"], w: real["M"]):\n    return np.reshape(a * w, (a.size,)) ** 2\n', {"a": (3, 4), "w": (4,)}),
    Case("ravel", 'def ravel(a: real["N M"]):\n    return np.ravel(a) * a.ravel()\n', {"a": (3, 4)}),
    Case("squeeze_thin", 'def squeeze_thin(a: real["N M"]):\n    return a * np.squeeze(a[:1], axis=0)\n', {"a": (3, 2)}),
    Case("expand", 'def expand(a: real["N"]):\n    return np.squeeze(np.expand_dims(a, 1) * 2, axis=1) * a\n', {"a": (3,)}),
    Case("stretch", 'def stretch(a: real["N"], b: real["M N"]):\n    return np.broadcast_to(a, b.shape) * b\n', {"a": (3,), "b": (2, 3)}),
    Case("flip", 'def flip(a: real["N M"]):\n    return np.flip(a, 1) * a\n', {"a": (3, 4)}),
    Case("concatenate", 'def concatenate(a: real["N D"], b: real["M D"]):\n    return np.concatenate((a, b * 2, a * a))\n', {"a": (2, 3), "b": (3, 3)}),
    Case("einsum_pairs", 'def einsum_pairs(a: real["N 6"], b: real["M 6"], c: real["6 6 K"]):\n    return np.einsum("hi,wj,ijr->hwr", np.sin(a), b, c)\n', {"a": (3, 6), "b": (2, 6), "c": (6, 6, 2)}),
    # -- indexing ----------------------------------------------------------------------------------------------
    Case("slices", 'def slices(a: real["5 M"]):\n    return a[1:4] * a[0:3] + a[::2]\n', {"a": (5, 3)}),
    Case("backward_slice", 'def backward_slice(a: real["N"]):\n    return a[::-1] * a\n', {"a": (5,)}),
    Case("ints", 'def ints(a: real["4 M"]):\n    return a[0] * a[-1] + a[1, 0]\n', {"a": (4, 3)}),
    Case("stencil", 'def stencil(x: real["N"]):\n    return x[1:-1] ** 2 - 0.5 * (x[:-2] + x[2:])\n', {"x": (6,)}),
    # -- statements --------------------------------------------------------------------------------------------
    Case("reuse", 'def reuse(x: real["N"]):\n    t = np.sin(x)\n    u = t * t\n    t = u + t\n    return t * u\n', {"x": (5,)}),
    Case("inplace", 'def inplace(x: real["N"], w: real["N"]):\n    y = x * w\n    y += x\n    y *= w\n    y -= 1\n    return y * y\n', {"x": (5,), "w": (5,)}),
    Case("store", 'def store(x: real["N"]):\n    y = np.zeros_like(x)\n    y[0] = x[0] * x[1]\n    y[1:] = x[1:] ** 2\n    return y * x\n', {"x": (5,)}),
    Case("overwrite", 'def overwrite(x: real["N"]):\n    y = x * x\n    z = y * y\n    y[0] = 3.0\n    y[1] = y[2] * x[0]\n    return y * z\n', {"x": (5,)}),
    Case("const_store", 'def const_store(x: real["N"]):\n    y = x * 2\n    y[0] = 7.0\n    return y * x\n', {"x": (5,)}),
    Case("argument", 'def argument(x: real["N"]):\n    x[0] = x[1] * x[2]\n    x += 1\n    return x * x\n', {"x": (5,)}),
    Case("view", 'def view(x: real["N M"]):\n    y = x * 1.0\n    v = y[1]\n    v *= 3\n    v[0] = y[0, 1] * y[0, 0]\n    return y * y\n', {"x": (3, 4)}),
    Case("running_sum", 'def running_sum(x: real["N"]):\n    s = 0.0\n    for i in range(x.shape[0]):\n        s += x[i] * x[i]\n    return s * s\n', {"x": (5,)}),
    Case("recurrence", 'def recurrence(x: real["T D"], a: real["D"]):\n    h = np.zeros_like(a)\n    for t in range(x.shape[0]):\n'
         "        h = np.tanh(a * h + x[t])\n    return h\n", {"x": (4, 3), "a": (3,)}),
    Case("twice", 'def twice(x: real["T D"], a: real["D"]):\n    h = np.ones_like(a)\n    for t in range(x.shape[0]):\n        h = h * a + x[t]\n'
         "        h = h * h * 0.3 + a\n    return h\n", {"x": (4, 3), "a": (3,)}),
    Case("two_carried", 'def two_carried(x: real["T"]):\n    p, q = 1.0, 0.5\n    for t in range(x.shape[0]):\n        p, q = p * q + x[t], p - q * x[t]\n'
         "    return p * q\n", {"x": (5,)}),
    Case("downward", 'def downward(x: real["N"]):\n    s = 1.0\n    for i in range(x.shape[0] - 1, 0, -1):\n        s = s * x[i] + x[i - 1]\n    return s\n', {"x": (5,)}),
    Case("stepped", 'def stepped(x: real["7"]):\n    s = 1.0\n    for i in range(1, 7, 2):\n        s = s * x[i] + x[i - 1]\n    return s\n', {"x": (7,)}),
    Case("cumulative", 'def cumulative(x: real["N"], a: real[""]):\n    y = np.zeros_like(x)\n    y[0] = x[0]\n    for i in range(1, x.shape[0]):\n'
         "        y[i] = a * y[i - 1] * x[i] + x[i]\n    return y\n", {"x": (6,), "a": ()}),
    Case("accumulate", 'def accumulate(x: real["N M"]):\n    y = np.zeros(x.shape[1])\n    for i in range(x.shape[0]):\n        y[1:] += x[i, 1:] * x[i, :-1]\n'
         "        y[0] += x[i, 0]\n    return y * y\n", {"x": (4, 3)}),
    Case("differences", 'def differences(x: real["N M"]):\n    return np.sum(np.diff(x, axis=0) ** 3) * np.diff(x, 2, axis=1) + np.count_nonzero(np.diff(x) > 0)\n', {"x": (4, 5)}),
    Case("diagonals", 'def diagonals(v: real["N"], a: real["N N"]):\n    return np.diag(v) @ a + np.diag(np.diag(a) ** 2)\n', {"v": (3,), "a": (3, 3)}),
    Case("heads_shared", 'def heads_shared(q: real["H T D"], k: real["G T D"]):\n    k = np.repeat(k, q.shape[0] // k.shape[0], axis=0)\n'
         "    return np.tanh(q @ k.transpose(0, 2, 1))\n", {"q": (4, 3, 2), "k": (2, 3, 2)}),
    Case("nonlinear_accumulate", 'def nonlinear_accumulate(x: real["N M"]):\n    y = np.ones(x.shape[1])\n    for i in range(x.shape[0]):\n'
         "        y[0] += x[i, 0] * y[1]\n        y *= x[i]\n    return y\n", {"x": (4, 3)}, 0.5, 1.5),
    Case("dp", 'def dp(c: real["N M"]):\n    r = np.zeros((c.shape[0] + 1, c.shape[1] + 1))\n    for i in range(1, c.shape[0] + 1):\n'
         "        for j in range(1, c.shape[1] + 1):\n            r[i, j] = c[i - 1, j - 1] + np.sin(r[i - 1, j]) * r[i, j - 1] + 0.5 * r[i - 1, j - 1] ** 2\n"
         "    return r[1:, 1:]\n", {"c": (4, 3)}),
    Case("nested", 'def nested(x: real["N M"], w: real["M"]):\n    s = 0.0\n    for i in range(x.shape[0]):\n        h = 0.5\n        for j in range(x.shape[1]):\n'
         "            h = np.sin(h * w[j]) + x[i, j]\n        s = s * 0.5 + h * h\n    return s\n", {"x": (3, 4), "w": (4,)}),
    Case("nested_carried", 'def nested_carried(x: real["N M"]):\n    h = 0.5\n    for i in range(x.shape[0]):\n        for j in range(x.shape[1]):\n'
         "            h = np.sin(h) * x[i, j] + h\n        h = h * h\n    return h\n", {"x": (3, 4)}, 0.1, 0.6),
    Case("branch", 'def branch(x: real["N"], a: real[""]):\n    if a > 0:\n        y = x * a\n    else:\n        y = x * x\n    return y * y\n', {"x": (5,), "a": ()}),
    Case("branch_update", 'def branch_update(x: real["N"]):\n    y = x * x\n    if x[0] > 0.1:\n        y = y * x\n    return y * y\n', {"x": (5,)}),
    Case("branch_in_loop", 'def branch_in_loop(x: real["N"]):\n    s = 1.0\n    for i in range(x.shape[0]):\n        if x[i] > 0:\n            s = s * x[i]\n'
         "        else:\n            s = s - x[i] * s\n    return s\n", {"x": (6,)}),
    Case("early", 'def early(x: real["N"]):\n    if x[0] > 0:\n        return x * x\n    return np.sin(x)\n', {"x": (5,)}),
    Case("while_newton", 'def while_newton(a: real["N"]):\n    x = a + 1.0\n    step = np.ones_like(a)\n    while np.max(np.abs(step)) > 1e-5:\n'
         "        step = (x * x - a) / (2 * x)\n        x = x - step\n    return x\n", {"a": (5,)}, 1.0, 3.0),
    Case("wider_in_a_loop", 'def wider_in_a_loop(a: real[""], w: float = 0.5):\n    v = np.sin(a)\n    u = np.broadcast_to(w, (2, 2)).copy()\n    for t in range(2):\n        u[...] += v\n    return u[0, 1] + v\n', {"a": ()}),
    Case("while_scalar", 'def while_scalar(a: real[""]):\n    x = a * 1.0\n    n = 0\n    while n < 5:\n        x = np.sin(x) + a\n        n += 1\n    return x\n', {"a": ()}),
    Case("helper", 'def scale(u, k):\n    t = u * k\n    return t + 1, t * t\n\n\ndef helper(x: real["N"]):\n    p, q = scale(x, 2.0)\n    r, _ = scale(q, p)\n    return r\n', {"x": (5,)}),
    Case("closure", 'def closure(x: real["N"], a: real[""]):\n    def f(u):\n        return u * a\n    g = lambda v: f(v) ** 2\n    return g(x) + f(x)\n', {"x": (5,), "a": ()}),
    Case("ternary", 'def ternary(x: real["N"]):\n    k = x[0] * 2 if x[1] > 0 else x[2]\n    return x * k\n', {"x": (5,)}),
    Case("unused", 'def unused(x: real["N"], w: real["N"]):\n    return x * 2\n', {"x": (5,), "w": (5,)}),
    Case("constant", 'def constant(x: real["N"]):\n    return np.zeros_like(x) + 3\n', {"x": (5,)}),
    Case("rows", 'def rows(x: real["N D"]):\n    s = np.zeros(x.shape[1])\n    for r in x:\n        s = s * r + r\n    return s\n', {"x": (4, 3)}),
    Case("enumerated", 'def enumerated(x: real["N D"], y: real["N D"]):\n    s = 0.0\n    for i, (p, q) in enumerate(zip(x, y)):\n        s = s + (i + 1) * np.sum(p * q)\n'
         "    return s\n", {"x": (4, 3), "y": (4, 3)}),
    Case("two_outputs", 'def two_outputs(x: real["N"], w: real["N"]):\n    p = x * w\n    return p, np.sum(p * x)\n', {"x": (5,), "w": (5,)}),
]


def _line(name: str, body: str, low: float = -2.0, high: float = 2.0, **shapes: tuple[int, ...]) -> Case:
    """One expression over arrays of these shapes; the dimensions are named by their extents."""
    text = {k: " ".join("KNMDBC"[extent] for extent in shape) for k, shape in shapes.items()}
    args = ", ".join(f'{k}: real["{t}"]' for k, t in text.items())
    return Case(name, f"def {name}({args}):\n    return {body}\n", shapes, low, high)


_SPD = "a @ a.T + 2 * np.eye(a.shape[0])"
_SPDS = "a @ np.swapaxes(a, 1, 2) + 2 * np.eye(a.shape[1])"

CASES += [
    # -- along an axis -----------------------------------------------------------------------------------------
    _line("cumsum", "np.cumsum(a) * np.cumsum(a * b)", a=(4,), b=(4,)),
    _line("cumsum_axis", "np.cumsum(a * a, axis=1) * b", a=(3, 4), b=(3, 4)),
    _line("cumsum_first", "a.cumsum(axis=-2) * a", a=(3, 4)),
    _line("cumsum_flat", "np.cumsum(a) ** 2", a=(3, 4)),
    _line("cumprod", "np.cumprod(a, axis=-1) * b", a=(3, 4), b=(3, 4)),
    _line("cumprod_middle", "np.cumprod(a, axis=1) ** 2", a=(2, 3, 4)),
    _line("cumprod_flat", "np.cumprod(a)", a=(2, 3)),
    _line("cumprod_zeros", "np.cumprod(a * (np.arange(a.shape[1]) != 1), axis=1)", a=(3, 4)),
    _line("cumprod_two_zeros", "np.cumprod(a * (np.arange(a.size) % 2 == 0))", a=(4,)),
    _line("sort", "np.sort(a, axis=0) * b", a=(3, 4), b=(3, 4)),
    _line("sort_last", "np.sort(a) ** 2 + np.sort(a, axis=None)[0]", a=(3, 4)),
    _line("argsort", "a[np.argsort(b)] * b", a=(4,), b=(4,)),
    _line("argsort_least", "a[np.argsort(b)[:2]] * b[np.argsort(-b)[:2]]", a=(4,), b=(4,)),
    _line("take", "np.take(a, [2, 0, 2], axis=1) ** 2", a=(2, 3)),
    _line("take_rows", "a.take(np.array([[1, 0], [1, 1]]), axis=0) * np.take(a, 1)", a=(2, 3)),
    _line("take_flat", "np.take(a, np.argsort(np.ravel(a))) * np.arange(a.size)", a=(2, 3)),
    _line("take_along", "np.take_along_axis(a, np.argsort(b, axis=1), axis=1) * b", a=(3, 4), b=(3, 4)),
    _line("take_along_first", "np.take_along_axis(a, np.argmax(b, axis=0, keepdims=True), axis=0) ** 2", a=(3, 4), b=(3, 4)),
    _line("take_along_middle", "np.take_along_axis(a, np.argsort(a * a, axis=1), 1) * a", a=(2, 3, 4)),
    # -- moves -------------------------------------------------------------------------------------------------
    _line("repeat", "np.repeat(a * a, 3, axis=1)", a=(2, 3)),
    _line("repeat_first", "a.repeat(2, axis=0) + np.repeat(a, 1)[0]", a=(2, 3)),
    _line("repeat_flat", "np.repeat(a, 2) ** 2", a=(2, 3)),
    _line("tile", "np.tile(a, 3) ** 2", a=(4,)),
    _line("tile_both", "np.tile(a, (2, 3)) ** 2", a=(2, 3)),
    _line("tile_last", "np.tile(a, (1, 2)) * np.tile(a, 2)", a=(2, 3)),
    _line("tile_more_axes", "np.tile(a, (2, 1, 2)) ** 2", a=(2, 3)),
    _line("roll", "np.roll(a, 2) * a", a=(4,)),
    _line("roll_axis", "np.roll(a, -1, axis=1) * a", a=(3, 4)),
    _line("roll_both", "np.roll(a, (1, 5), axis=(0, -1)) * a", a=(3, 4)),
    _line("roll_flat", "np.roll(a, 3) * a", a=(3, 4)),
    _line("diagonal", "np.diagonal(a) ** 2", a=(3, 3)),
    _line("diagonal_wide", "np.diagonal(a, 1) ** 2", a=(3, 4)),
    _line("diagonal_at", "np.diagonal(a, a.shape[0] - 1) ** 2 * np.trace(a * a, offset=1 - a.shape[0])", a=(3, 4)),
    Case("cross_rows", 'def cross_rows(a: real["N 3"], b: real["3"]):\n    return np.cross(a * a, b) * np.cross(np.sin(b), a)\n', {"a": (4, 3), "b": (3,)}),
    Case("cross_axis", 'def cross_axis(a: real["3 N"], b: real["3 N"]):\n    return np.cross(a, np.cross(b, a, axis=0), axis=-2)\n', {"a": (3, 2), "b": (3, 2)}),
    Case("matrix_power", 'def matrix_power(a: real["K N N"]):\n    return np.linalg.matrix_power(a * a, 3) + np.linalg.matrix_power(a, 4)\n', {"a": (2, 3, 3)}),
    Case("matrix_inverse", 'def matrix_inverse(a: real["N N"]):\n    return np.linalg.matrix_power(a + 4 * np.eye(a.shape[0]), -3)[0] * np.linalg.matrix_power(a, 0)\n', {"a": (3, 3)}),
    _line("diagonal_tall", "np.diagonal(a * a, -1)", a=(4, 3)),
    _line("diagonal_corner", "np.diagonal(a, offset=-2) ** 2", a=(3, 4)),
    _line("diagonal_axes", "np.diagonal(a, axis1=2, axis2=0) ** 2", a=(3, 2, 3)),
    _line("trace", "np.trace(a) * a", a=(3, 3)),
    _line("trace_wide", "a.trace(1) ** 2 + np.trace(a, offset=-1)", a=(3, 4)),
    _line("trace_axes", "np.trace(a, axis1=1, axis2=-1) ** 2", a=(2, 3, 3)),
    _line("tril", "np.tril(a * a) * np.tril(a, -1)", a=(3, 4)),
    _line("triu", "np.triu(a * a, 1) + np.triu(a, k=-1) ** 2", a=(2, 3, 4)),
    _line("split", "np.split(a, 2)[0] * np.split(a, 2)[1]", a=(4,)),
    _line("split_at", "np.split(a, (1, 3), axis=1)[1] ** 2", a=(3, 4)),
    Case("split_unpacked", 'def split_unpacked(a: real["N 2*C"]):\n    u, v = np.split(a, 2, axis=-1)\n    return u * np.tanh(v)\n', {"a": (3, 4)}),
    _line("pad", "np.pad(a, 1) ** 2", a=(2, 3)),
    _line("pad_pairs", "np.pad(a, ((0, 2), (1, 0)), constant_values=3.0) ** 2", a=(2, 3)),
    _line("pad_value", "np.pad(a, (1, 2), mode='constant', constant_values=b[0]) ** 2", a=(2, 3), b=(2,)),
    _line("linspace", "np.linspace(a[0], a[1], 5) ** 2 * np.linspace(0, 1, 5)", a=(4,)),
    _line("linspace_open", "np.linspace(a[0], a[1], 5, endpoint=False) ** 2", a=(4,)),
    # -- products ----------------------------------------------------------------------------------------------
    _line("tensordot", "np.tensordot(a, b, 2)", a=(2, 3, 4), b=(3, 4, 5)),
    _line("tensordot_axes", "np.tensordot(a, b, axes=((0, 2), (1, 0))) ** 2", a=(2, 3, 4), b=(4, 2, 5)),
    _line("tensordot_one", "np.tensordot(a, b, axes=(-1, 0))", a=(2, 3), b=(3, 4)),
    _line("tensordot_outer", "np.tensordot(a, b, 0)", a=(2, 3), b=(4,)),
    _line("einsum_diagonal", 'np.einsum("ii,i->i", a, b)', a=(3, 3), b=(3,)),
    _line("einsum_trace", 'np.einsum("ii", a) * np.einsum("iji->j", b)', a=(3, 3), b=(3, 2, 3)),
    _line("einsum_thrice", 'np.einsum("iii,j->ij", a, b)', a=(3, 3, 3), b=(2,)),
    _line("einsum_lone", 'np.einsum("ij,jk->k", a, b) * np.einsum("ij->", a)', a=(2, 3), b=(3, 4)),
    _line("dot_ranks", "np.dot(a, b)", a=(2, 3), b=(4, 3, 5)),
    _line("dot_vector", "np.dot(a, b) * np.dot(a[0, 0, 0], b)[0]", a=(2, 4, 3), b=(3,)),
    _line("vdot", "np.vdot(a, b)", a=(2, 3), b=(2, 3)),
    _line("outer_flat", "np.outer(a, b)", a=(2, 3), b=(4,)),
    # -- linear algebra ----------------------------------------------------------------------------------------
    _line("solve", f"np.linalg.solve({_SPD}, b)", a=(3, 3), b=(3, 4)),
    _line("solve_vector", "np.linalg.solve(a + 4 * np.eye(a.shape[0]), b)", a=(3, 3), b=(3,)),
    _line("solve_batch", f"np.linalg.solve({_SPDS}, b)", a=(2, 3, 3), b=(2, 3, 4)),
    _line("solve_repeated", f"np.linalg.solve({_SPDS}, b)", a=(2, 3, 3), b=(3,)),
    _line("solve_lower", "np.linalg.solve(np.tril(a) + 4 * np.eye(a.shape[0]), b)", a=(3, 3), b=(3, 4)),
    _line("solve_upper", "np.linalg.solve(4 * np.eye(a.shape[0]) - np.triu(a), b)", a=(3, 3), b=(3,)),
    _line("solve_upper_batch", "np.linalg.solve(np.triu(a + 5), b)", a=(2, 3, 3), b=(2, 3, 4)),
    _line("solve_lower_repeated", "np.linalg.solve(np.tril(a + 5), b)", a=(2, 3, 3), b=(3,)),
    _line("solve_cholesky", f"np.linalg.solve(np.linalg.cholesky({_SPDS}), b)", a=(2, 3, 3), b=(2, 3, 4)),
    _line("inv", "np.linalg.inv(a + 4 * np.eye(a.shape[0])) * a", a=(3, 3)),
    _line("inv_batch", f"np.linalg.inv({_SPDS})", a=(2, 3, 3)),
    _line("det", "np.linalg.det(a) * a", a=(3, 3)),
    _line("det_batch", "np.linalg.det(a) ** 2", a=(2, 3, 3)),
    _line("cholesky", f"np.linalg.cholesky({_SPD})", a=(3, 3)),
    _line("cholesky_batch", f"np.linalg.cholesky({_SPDS}) ** 2", a=(2, 3, 3)),
]

# -- break, continue and return anywhere; lists; helpers ---------------------------------------------------------
LANGUAGE = '''
def broken(x: real["N"], a: real):
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < -1.5:
            break
        s += x[i] * x[i] * a
    return s * a

def leaves_a_loop(x: real["N"], a: real):
    s = 1.0
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            return s * x[i]
        s = s * a + x[i]
    return -s * a

def leaves_two_loops(x: real["N M"], a: real):
    s = 0.5
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] * s > 2.5:
                return s * x[i, j], s
            s = s * a + x[i, j]
        s = np.sin(s)
    return s, s * s

def skips(x: real["N M"]):
    s = 0.1
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] < 0:
                if i == 1:
                    continue
                s = s + x[i, j]
            if s > 3:
                break
            s += x[i, j] * s
        s = s * 0.5
    return s

def until(a: real):
    x, n = a + 1.0, 0
    while True:
        step = (x * x - a) / (2 * x)
        x = x - step
        n += 1
        if n > 6 or np.abs(step) < 1e-7:
            break
    return x

def while_returns(x: real["N"], a: real):
    i, s = 0, a * 1.0
    while i < x.shape[0]:
        s = s * x[i] + a
        if s > 4:
            return s * s
        i += 1
    return s

def returns_deep_inside(x: real["N M"]):
    s = 0.0
    for i in range(x.shape[0]):
        j = 0
        while j < x.shape[1]:
            for k in range(j + 1):
                s += x[i, k] * x[i, j]
                if s > 0.5:
                    return s * x[i, k]
            j += 1
    return s

def early_inside(x: real["N"], a: real):
    if a > 0:
        if x[0] > 0:
            return x * a
        x = x * x
    return x * a * a

def scan_while(x: real["N"]):
    i, s = 0, 0.0
    while i < x.shape[0] and x[i] < 1.5:
        s += x[i] * x[i]
        i += 1
    return s

def far(u):
    return np.sum(u * u) > 0.3

def helper_condition(x: real["N"]):
    n = 0
    while far(x) and n < 10:
        x = x * 0.5
        n += 1
    return x * x

def largest_from(x, k):
    best = x[k]
    for i in range(x.shape[0]):
        if x[i] > best:
            return x[i] * x[k]
    return best

def helper_returns(x: real["N"]):
    return largest_from(x, 0) + largest_from(x, 1) * x[2]

def collected(x: real["T D"], a: real["D"]):
    h = np.zeros_like(a)
    ys = []
    for t in range(x.shape[0]):
        h = np.tanh(a * h + x[t])
        ys.append(h)
    return np.stack(ys)

def collected_axis(x: real["T D"], a: real["D"]):
    h, ys = a * 1.0, []
    for row in x:
        h = h * row + a
        ys.append(h * 2)
    return np.stack(ys, axis=1) * len(ys)

def with_first(x: real["T D"], a: real["D"]):
    hs = [a]
    for t in range(x.shape[0]):
        hs.append(np.sin(hs[-1]) * x[t])
    return np.array(hs[1:]) + hs[0]

def pairs(x: real["N M"]):
    ys = []
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            ys.append(x[i, j] * x[i, 0])
        ys.append(x[i, 1])
    return np.array(ys)

def comprehended(x: real["N D"], w: real["D"]):
    return np.stack([np.tanh(row * w) for row in x]) + np.array([x[i, 0] ** 2 for i in range(x.shape[0])])[:, None]

def joined_rows(x: real["N D"]):
    parts = [x[i] * x[i] for i in range(x.shape[0])]
    return np.concatenate(parts) * sum(parts)[0]

def straight(x: real["N"]):
    parts = []
    parts.append(x[:2] * x[0])
    parts.append(x[2:] ** 2)
    return np.concatenate(parts)

def of_a_tuple(x: real["N"], y: real["N"]):
    p, q = [np.sin(v) for v in (x, y)]
    return p * q

def summed(x: real["N"], w: real["N"]):
    return sum(x[i] * w[i] for i in range(x.shape[0])) ** 2

def nested_lists(x: real["N M"]):
    rows = [[x[i, j] * x[0, j] for j in range(x.shape[1])] for i in range(x.shape[0])]
    return np.array(rows)

def chained(x: real["N"]):
    a = b = x * x
    c: real = 0.5
    (p, q), r = (a[0], b[1]), x[2]
    if 0 < p < 3:
        c = p * q
    return a * c + r

def swapped(x: real["N"]):
    y = x * 2.0
    y[0], y[1] = y[1] * y[2], y[0]
    return y * y

def pair_carried(x: real["N"]):
    state = (x[0], x[1])
    for i in range(x.shape[0]):
        state = (state[1] * x[i], state[0] + x[i])
    return state[0] * state[1]

def promoted(x: real["N"]):
    s, n = 0, 0
    for v in x:
        s = s * 0.5 + v * v
        n = n + 1
    return s * n

def late_binding(x: real["N"], a: real):
    k = a
    def f(u):
        return u * k
    y = f(x)
    if a > -5:
        k = a * a
        y = y + f(x)
    return y

def unpacked(x: real["3 D"]):
    a, b, c = x
    del b
    return a * c

def counted_down(x: real["N"]):
    ys = []
    for i in range(x.shape[0] - 1, -1, -2):
        ys.append(x[i] ** 2)
    return np.array(ys)

def array_in_a_second_branch(x: real["N"], q: real):
    if q > 3:
        return q
    v = x * 1.0
    if q > 2:
        return q * v[0]
    h = 0.5
    z = np.zeros_like(x)
    for t in range(x.shape[0]):
        h = np.sin((q + z[t]) * (h * 0.3)) + 0.5 * h + x[t]
        z[t] = h
    return q * h

def another_name_in_a_loop(x: real["N"], a: real["N"]):
    v = x
    for i in range(2):
        x -= v * a
    return v + x

def given_where_it_goes_on(x: real["N"], q: real):
    if q > 0:
        if x[0] > 1.5:
            return x * q
        v = x[1] * q
    elif q > -0.5:
        v = q
    else:
        v = 1.0
    return x * v

def loops_over_what_it_renames(x: real["N M"]):
    s = 0.5
    for r in x:
        x = np.sin(x) * s
        s = s + np.sum(r * r)
    return x * s

def parts_returned(x: real["N"], q: real):
    x[0] = q
    if q > 0:
        return x[1:]
    return x[:-1]

def old_value_on_a_branch(x: real["N"], q: real):
    y = np.empty((x.shape[0],))
    y[...] = x * x
    if q > 0:
        y = x * q
    return y * y

def one_shorter(x: real["N"]):
    x[:-1] += np.matmul(np.tri(x.shape[0] - 1), x[:-1] * x[1:])
    h = 0.5
    for i in range(x.shape[0] - 1):
        h = np.sin(h) * x[i] + h
    return x * h

def pushed_before_it_is_given_anew(x: real["N"], q: real):
    y, found, t, ys = x * q, np.sin(x), 0.0, []
    while t < 1:
        ys.append(y)
        y = found
        found = y * q
        t = t + 0.3
    s = np.zeros_like(x)
    for _ in range(4):
        y = ys.pop()
        s = s * 0.5 + y * y
    return s

def stages_of_an_array_made_in_a_loop(x: real["T D"], q: real):
    y = x[0] * 1.0
    for t in range(x.shape[0]):
        k = np.empty((3, x.shape[1]))
        for i in range(3):
            k[i] = np.sin(y + q * np.sum(k[:i], axis=0)) * x[t]
        y = y + np.sum(k, axis=0) * 0.1
    return y

def stages_from_the_last_to_the_first(x: real["N"]):
    y = np.zeros((x.shape[0],))
    for i in range(x.shape[0] - 1, -1, -1):
        y[i] = np.sin(x[i] + np.sum(y[i + 1:] * x[i + 1:]))
    return y

def reads_what_it_writes_next(x: real["N"]):
    y = x * 1.0
    for i in range(x.shape[0]):
        y[i] = np.sin(y[i]) * np.sum(y[:i + 1])
    return y

def of_other_shape(x: real, n: real["N M"]):
    return x + np.log(np.sum(np.exp(x + np.zeros((n.shape[1], n.shape[0])))))

def window_of_columns(x: real["N M"], w: real["N K"]):
    N, M = x.shape
    K = w.shape[1]
    y = np.zeros((N, M - K + 1))
    for k in range(K):
        y += x[:, k : k + M - K + 1] * w[:, k, None]
    return y

def scaled_through_a_stride(x: real["N"]):
    p = x[::2]
    p *= np.sin(x[::2])
    return x

def moved_along_a_stride(x: real["N"]):
    v = x[::2]
    v[1:] = v[:-1] * v[1:]
    return x

def squared_between_the_ends(x: real["N"]):
    p = x[1:-1:2]
    p *= p
    return x

def summed_along_a_stride(x: real["N"]):
    y = x * 1.0
    v = y[1:][::2]
    for i in range(2):
        v[1:] += v[:-1] * x[0]
    return y

def between_the_ends_of_a_stride(x: real["N"]):
    y = x * 1.0
    v = y[::3]
    v[1:-1] = v[2:] * v[:-2]
    return y

def ends_of_a_stride(x: real["N"]):
    y = x * 1.0
    v = y[1:-2:2]
    v[:-1:2] *= 3.0
    v[1:] += v[:-1] * x[0]
    return y

def variable_called_as_another_output(x: real["N"]):
    y1 = np.full(x.shape[0], 0.5) * x
    return np.tanh(x), y1

def outputs_called_as_each_other(x: real["N"]):
    y1 = x * x
    y2 = np.exp(x)
    return y2, y1

def counters_called_as_output_and_cotangent(x: real["N M"]):
    out = np.zeros_like(x)
    for y in range(x.shape[0]):
        for dy in range(-1, 2):
            if 0 <= y + dy < x.shape[0]:
                out[y] += np.sin(x[y + dy]) * (dy + 2)
    return out

def counter_beside_the_output(x: real["N"]):
    y = np.zeros_like(x)
    for dy in range(3):
        y += np.exp(x * dy) * (1 + y)
    return y

def counters_called_as_several(x: real["N"]):
    a = x * 1.0
    for y1 in range(3):
        for dy2 in range(2):
            a = a * x + y1 + dy2
    for y2 in range(2):
        a = np.sin(a) + y2
    return np.tanh(a), a

def added_to_what_gave_a_part(x: real["N"], v: real["N"]) -> tuple[real["N"], real]:
    t = x[0] * x[0]
    x += v
    return x, t

def added_to_what_moved(x: real["N"], v: real["N"]):
    r = np.tanh(v)
    x[1:] += x[:-1]
    x += r
    return x

def added_in_steps_to_parts(x: real["T D"], v: real["D"]):
    h = np.ones(v.shape[0])
    for t in range(x.shape[0]):
        h[0] = h[0] * x[t, 0]
        h += x[t]
        h[-1] += v[0] * h[0]
        h += v
    return h

def columns_of_a_stride(x: real["N M"]):
    u = x[:, ::2]
    u *= x[0, ::2]
    odd = x[:, 1::2]
    odd[:, 1:] -= odd[:, :-1]
    return x

def product_said_twice(y: real["T D"], A: real["D D"], g: real["D"]):
    w = 1.0 * g
    total = 0.0
    for t in range(y.shape[0]):
        s = (A @ w) @ g
        total += y[t, 0] * s
        w = np.tanh(s * (A @ w))
    return total

def product_said_before_it_is_kept(y: real["T D"], A: real["D D"], g: real["D"]):
    w = 1.0 * g
    total = 0.0
    for t in range(y.shape[0]):
        s = A @ w + g
        total += y[t, 1] * np.sum(s * s)
        w = np.tanh(s * (A @ w) * 0.3)
    return total

def product_said_in_a_branch(y: real["T D"], A: real["D D"], g: real["D"]):
    w = 1.0 * g
    total = 0.0
    for t in range(y.shape[0]):
        if y[t, 0] > 0:
            s = A @ w + g
        else:
            s = w * w
        total += y[t, 1] * np.sum(s * s)
        w = np.tanh(s * (A @ w) * 0.3)
    return total

def product_said_thrice(A: real["D D"], g: real["D"]):
    w = 1.0 * g
    total = 0.0
    k = 0
    while k < 4:
        s = np.sum(A @ w) + 1.0
        total += s * np.sum(np.tanh(A @ w))
        w = np.tanh(s * (A @ w) / np.sqrt(1 + np.sum((A @ w) * (A @ w))))
        k += 1
    return total

def product_said_behind_a_new_value(y: real["T D"], A: real["D D"], g: real["D"]):
    w = 1.0 * g
    total = 0.0
    for t in range(y.shape[0]):
        a = A @ w
        a = np.tanh(a)
        total += y[t, 1] * np.sum(a * a)
        w = a * (A @ w) * 0.3
    return total

def input_named_y(y: real["T D"]):
    h = np.zeros(y.shape[1])
    rows = np.zeros((y.shape[0], y.shape[1]))
    for t in range(y.shape[0]):
        h = np.abs(h) + y[t]
        rows[t] = h
    return rows

def window_behind_a_window(x: real["N"], c: real["D"]):
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n):
        for j in range(c.shape[0]):
            y[i] = max(y[i], x[(i + j + 1) % n])
    z = np.zeros(n)
    for i in range(n):
        for j in range(min(c.shape[0], n - i - 1)):
            z[i] += 0.3 * y[i + j + 1]
    return z

def largest_of_rows(x: real["N M"]):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        top = -np.inf
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        for j in range(x.shape[1]):
            y[i, j] = top * x[i, j]
    return y

def smallest_from_the_first(x: real["N M"]):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        low = x[i, 0]
        for j in range(1, x.shape[1]):
            low = np.minimum(x[i, j], low)
        y[i] = np.sin(low) * x[i, 1]
    return y

def largest_or_nothing(x: real["N M"], b: real["D"]):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        top = b[i] * b[i]
        above = 0.0
        for j in range(x.shape[1]):
            if j != i:
                top = max(top, x[i, j])
            above = max(above, x[i, j] - b[i])
        y[i] = top * top + above * x[i, 0]
    return y

def largest_sum_of_paths(s: real["T D"], w: real["D D"]):
    a = np.sin(s[0])
    for t in range(1, s.shape[0]):
        new = np.zeros(s.shape[1])
        for j in range(s.shape[1]):
            best = -np.inf
            for i in range(s.shape[1]):
                path = a[i] + w[i, j]
                best = max(best, path - s[t, i])
            new[j] = best * s[t, j]
        a = new
    return a

def largest_of_what_was_made(x: real["N M"], w: real["N M"]):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        s = np.zeros(x.shape[1])
        top = -np.inf
        for j in range(x.shape[1]):
            s[j] = x[i, j] * w[i, j]
            s[j] += x[i, 0]
            top = max(top, s[j])
        for j in range(x.shape[1]):
            s[j] = np.exp(s[j] - 0.5 * top)
        y[i] = np.sum(s)
    return y

def largest_of_two_loops(x: real["N M"], k: real["D"]):
    far = 0.2
    near = np.inf
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            far = max(far, x[i, j] - k[i])
            near = min(near, k[i])
    return far * near

def largest_of_products(x: real["N M"], w: real["N M"]):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        top = -np.inf
        for j in range(x.shape[1]):
            top = max(top, x[i, j] * w[i, j] + x[i, 0])
        y[i] = top * x[i, 1]
    return y
'''
_LANGUAGE_SHAPES: dict[str, tuple[int, ...]] = {"N": (6,), "N M": (3, 4), "T D": (4, 3), "N D": (4, 3), "D": (3,), "3 D": (3, 4), "N K": (3, 2), "D D": (3, 3)}


def _language_cases() -> list[Case]:
    """Every function of LANGUAGE with an annotation, with the helpers before it."""
    cases, helpers = [], ""
    for text in LANGUAGE.strip().split("\n\n"):
        name = re.match(r"def (\w+)", text)
        assert name
        arguments = dict(re.findall(r'(\w+): real(?:\["([^"]*)"\])?[,)]', text))
        if not arguments:
            helpers += text + "\n\n\n"
            continue
        shapes = {a: _LANGUAGE_SHAPES[dims] if dims else () for a, dims in arguments.items()}
        used = helpers if any(f"{h}(" in text for h in re.findall(r"def (\w+)", helpers)) else ""
        cases.append(Case(name[1], f"{used}{text}\n", shapes, 0.3 if name[1] in ("until",) else -2.0))
    return cases


CASES += _language_cases()
