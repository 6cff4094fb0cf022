"""Wrong gradients that others shipped, each as a test: compiled and as text under NumPy, at the points where rules go wrong."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from layerc.build.driver import build

LAYERS = """
import numpy as np
from scipy import special
from layerc import bool_, i32, i64, layer, real

# -- stores -----------------------------------------------------------------------------------------------------
@layer
def add_to_item(x: real["N"], v: real[""]):
    x[1] += v * v
    return x * x

@layer
def add_to_items_in_loop(x: real["N"], v: real["N"]):
    for i in range(x.shape[0]):
        x[i] += v[i]
        x[i] += x[i] * v[i]
    return x

@layer
def logarithm_that_a_loop_replaces(x: real["N"]):
    y = np.log(x)
    for k in range(x.shape[0] + 1):
        y = x * (k + 1.0)
    return y

@layer
def constant_item(x: real["N"]):
    y = x * x
    y[0] = 5.0
    return y

@layer
def constant_in_array_of_zeros(x: real["N"]):
    y = np.zeros_like(x)
    y[0] = 5.0
    y[1:] = x[1:] * 3
    return y

@layer
def doubled_in_place(x: real["N"]):
    y = x
    y += x
    return y * x

@layer
def overlapping(x: real["N"], w: real["K"]):
    y = np.zeros(x.shape[0] - w.shape[0] + 1)
    for i in range(x.shape[0] - w.shape[0] + 1):
        for j in range(w.shape[0]):
            y[i] += x[i + j] * w[j]
    return y

@layer
def last_of_duplicates(x: real["N"], w: real["K"], i: i64["K"]):
    y = x * 2
    y[i] = w
    return y

@layer
def added_duplicates(x: real["N"], w: real["K"], i: i64["K"]):
    y = x * 2
    np.add.at(y, i, w)
    return y * y

@layer
def gathered(x: real["N"], i: i64["K"]):
    return x[i] * 2

# -- loops and branches -----------------------------------------------------------------------------------------
@layer
def zipped(x: real["N M"], y: real["N M"]):
    s = np.ones(x.shape[1])
    for a, b in zip(x, y):
        s = s * a + b * b
    return s

@layer
def powers_in_loop(x: real[""], a: real["T"]):
    h = x
    for t in range(a.shape[0]):
        h = h * h + a[t] * h
    return h

@layer
def product_in_loop(a: real["T D"]):
    h = np.ones(a.shape[1])
    for t in range(a.shape[0]):
        h = h * a[t] + a[t]
    return h

@layer
def values_after_loop(x: real["N"]):
    s, t = 0.5, 1.0
    for i in range(x.shape[0]):
        t = t * x[i]
        s = s + t
    return s * t * t

@layer
def else_branch(x: real["N"], a: real[""]):
    if a > 0:
        y = x * 2
    else:
        y = x * x * a
    return y

@layer
def guarded(x: real[""]):
    if x > 0:
        y = np.sqrt(x)
    else:
        y = x * 0.0
    return y

# -- broadcasting -----------------------------------------------------------------------------------------------
@layer
def divided(a: real["N M"], b: real["M"]):
    return a / b

@layer
def divided_by_column(a: real["M"], b: real["N 1"]):
    return a / b

@layer
def power_of(a: real["N 1"], b: real["M"]):
    return a ** b

@layer
def larger(a: real["N M"], b: real["M"]):
    return np.maximum(a, b)

@layer
def smaller(a: real["N 1"], b: real["1 M"]):
    return np.minimum(a, b)

@layer
def chosen(c: bool_["N 1"], a: real["M"], b: real[""]):
    return np.where(c, a, b)

@layer
def angle(a: real["N 1"], b: real["M"]):
    return np.arctan2(a, b)

@layer
def clipped_by(a: real["N M"], low: real["M"], high: real[""]):
    return np.clip(a, low, high)

# -- reductions -------------------------------------------------------------------------------------------------
@layer
def mean_last(a: real["A B C"]):
    return np.mean(a, axis=-1)

@layer
def mean_two(a: real["A B C"]):
    return np.mean(a, axis=(-1, 0))

@layer
def mean_keep(a: real["A B C"]):
    return np.mean(a, axis=(1, -1), keepdims=True)

@layer
def sum_negative(a: real["A B C"]):
    return np.sum(a * a, axis=-2)

@layer
def var_negative(a: real["A B C"]):
    return np.var(a, axis=(-3, -1))

@layer
def max_all(a: real["N M"]):
    return np.max(a)

@layer
def max_row(a: real["N M"]):
    return np.max(a, axis=-1)

@layer
def min_two(a: real["A B C"]):
    return np.min(a, axis=(0, 2), keepdims=True)

@layer
def product_of(a: real["N"]):
    return np.prod(a)

@layer
def prefix_sums(a: real["N M"]):
    for j in range(1, a.shape[1]):
        a[:, j] += a[:, j - 1]
    return a

# -- kinks and poles --------------------------------------------------------------------------------------------
@layer
def square(x: real["N"]):
    return x ** 2

@layer
def first(x: real["N"]):
    return x ** 1

@layer
def zeroth(x: real["N"]):
    return x ** 0

@layer
def cubed(x: real["N"]):
    return x ** 3.0

@layer
def root(x: real["N"]):
    return x ** 0.5

@layer
def power(x: real["N"], y: real["N"]):
    return x ** y

@layer
def norm(x: real["N"]):
    return np.linalg.norm(x)

@layer
def norms(x: real["N M"]):
    return np.linalg.norm(x, axis=-1)

@layer
def std(x: real["N M"]):
    return np.std(x, axis=1)

@layer
def hypotenuse(x: real["N"], y: real["N"]):
    return np.hypot(x, y)

@layer
def size(x: real["N"]):
    return np.abs(x)

@layer
def relu(x: real["N"]):
    return np.maximum(x, 0)

@layer
def ties(x: real["N"], y: real["N"]):
    return np.maximum(x, y) + 10 * np.minimum(x, y)

@layer
def ties_of_several(x: real["4"]):
    return max(x[0], x[1], x[2], x[3]) + 10 * min(x[0], x[1], x[2])

@layer
def with_itself(x: real["N"]):
    return np.maximum(x, x)

@layer
def clipped(x: real["N"]):
    return np.clip(x, -1, 1)

# -- where: the branch not taken --------------------------------------------------------------------------------
@layer
def where_sqrt(x: real["N"]):
    return np.where(x > 0, np.sqrt(x), 0.0)

@layer
def where_log(x: real["N"]):
    return np.where(x > 0, np.log(x), x)

@layer
def where_divide(x: real["N"], y: real["N"]):
    return np.where(y != 0, x / y, 0.0)

@layer
def where_power(x: real["N"]):
    return np.where(x > 0, x ** 0.3, -x)

@layer
def where_exp(x: real["N"]):
    return np.where(x < 10, np.exp(x), 1.0)

@layer
def where_norm(x: real["N M"]):
    n = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
    return np.where(n > 0, x / n, 0.0)

@layer
def where_assigned(x: real["N"]):
    safe = x > 0
    r = 1 / np.sqrt(x)
    y = np.log(r) * 2
    return np.where(safe, y, 0.0)

@layer
def where_nested(x: real["N"]):
    return np.where(x > 1, np.log(x - 1), np.where(x < -1, np.sqrt(-1 - x), np.arcsin(x)))

@layer
def where_in_loop(x: real["N"]):
    s = 0.0
    for i in range(x.shape[0]):
        s = s + np.where(x[i] > 0, np.sqrt(x[i]), 0.0)
    return s

@layer
def masked_softmax(x: real["N"], keep: bool_["N"]):
    return special.softmax(np.where(keep, x, -np.inf), axis=0)

@layer
def masked_logsumexp(x: real["N"], keep: bool_["N"]):
    return special.logsumexp(np.where(keep, x, -np.inf), axis=0)

@layer
def entropy(p: real["N"]):
    return np.sum(special.xlogy(p, p))

# -- products ---------------------------------------------------------------------------------------------------
@layer
def diagonal_einsum(a: real["N N"], v: real["N"]):
    return np.einsum("ii,i->i", a, v)

@layer
def trace_einsum(a: real["N N"]):
    return np.einsum("ii->", a)

@layer
def lone_einsum(a: real["N M"], b: real["K"]):
    return np.einsum("ij,k->j", a, b)

@layer
def with_its_transpose(a: real["N N"]):
    return a @ a.T @ a

# -- arguments --------------------------------------------------------------------------------------------------
@layer
def typed(x: real["N"], i: i64[""], m: bool_["N"], k: i32["N"]):
    return np.where(m, x * k, x) + i

@layer
def unused(x: real["N"], w: real["K"], s: real[""]):
    return x * 2

@layer
def unreachable(x: real["N"], w: real["N"]):
    return np.floor(w) + np.sign(w) + x

@layer
def overwriting(x: real["N M"], b: real["M"]):
    x[0] = b
    b *= 2
    x -= b
    return x * x

@layer
def empty_sums(x: real["N M"]):
    return np.sum(x * x, axis=0), np.sum(x), np.exp(x)

@layer
def everything(x: real["N M"]):
    m = np.mean(x, axis=-1, keepdims=True)
    return (x - m) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-3), np.max(x, axis=0), special.softmax(x, axis=-1)

@layer
def specials(x: real["N"]):
    return np.exp(x), np.tanh(x), np.maximum(x, 0.5), np.where(x > 0, x, 2 * x), x * x, np.abs(x), special.expit(x), np.minimum(x, 1.0)

@layer
def special_sums(x: real["N"]):
    return np.sum(x), np.max(x), np.min(x), np.mean(x), np.prod(x)

@layer
def special_logsumexp(x: real["N"]):
    return special.logsumexp(x)
"""


class Package:
    """A built file: `name(args)` are a layer's outputs, `gradients(name, args, dys)` its gradients, by the library and by the text."""

    def __init__(self, compiled: Any, text: Any) -> None:
        self.compiled, self.text = compiled, text

    def gradients(self, name: str, *args: Any, dy: Any = None) -> tuple[Any, ...]:
        args = tuple(np.asarray(a, float) if isinstance(a, (float, list)) else np.asarray(a) for a in args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 0 / 0 where NumPy computes what `where` does not take
            y, pullback = getattr(self.compiled, name).vjp(*args)
            ys = y if isinstance(y, tuple) else (y,)
            dys = (
                tuple(np.ones_like(v) for v in ys)
                if dy is None
                else dy
                if isinstance(dy, tuple)
                else (np.asarray(dy, float),)
            )
            found = pullback(*dys)
            again = self._by_text(name, args, ys, dys)
        assert len(found) == len(args)
        floats = [g for g in found if g is not None]
        for k, (a, b) in enumerate(zip(floats, again, strict=True)):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=f"compiled against text, gradient {k}")
        return found

    def _by_text(self, name: str, args: Any, ys: Any, dys: Any) -> tuple[Any, ...]:
        layer = getattr(self.compiled, name)
        function = getattr(self.text, f"d_{name}")
        code = function.__code__
        known = dict(zip(_parameters(layer), args, strict=True))
        numbers = [""] if len(ys) == 1 else [str(k + 1) for k in range(len(ys))]
        for number, y, dy in zip(numbers, ys, dys, strict=True):
            known |= {f"dy{number}": dy}
            known.setdefault(f"y{number}", y)
        result = function(*(np.array(known[p]) for p in code.co_varnames[: code.co_argcount]))
        return result if isinstance(result, tuple) else (result,)

    def one(self, name: str, *args: Any, dy: Any = None) -> Any:
        (gradient,) = self.gradients(name, *args, dy=dy)
        return gradient


def _parameters(layer: Any) -> list[str]:
    import ast

    return [a.arg for a in ast.parse(layer.source.strip()).body[0].args.args]  # type: ignore[attr-defined]


def _load(name: str, path: Any, package: bool = False) -> Any:
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(path.parent)] if package else None
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("enemy")
    (folder / "enemy.py").write_text(LAYERS)
    target = build(folder / "enemy.py")
    return Package(
        _load("enemy_compiled", target / "__init__.py", package=True), _load("enemy_gradients", target / "gradients.py")
    )


def equal(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """The same shape, and NaN equals nothing."""
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=False)


X = np.array([1.0, -2.0, 3.0, 0.5])


# -- stores ------------------------------------------------------------------------------------------------------
def test_adding_to_an_item_keeps_the_item(built: Package) -> None:
    dx, dv = built.gradients("add_to_item", X, 2.0)
    equal(dx, 2 * (X + [0, 4, 0, 0]))
    equal(dv, 2 * (X[1] + 4) * 2 * 2)


def test_a_value_that_a_loop_surely_replaces_has_no_derivative(built: Package) -> None:
    x = np.array([1.0, 0.0, 3.0])  # zero times 1 / 0
    equal(built.one("logarithm_that_a_loop_replaces", x), [4.0] * 3)


def test_adding_to_items_in_a_loop_keeps_them(built: Package) -> None:
    v = X[::-1].copy()
    dx, dv = built.gradients("add_to_items_in_loop", X, v)
    equal(dx, 1 + v)
    equal(dv, 1 + v + X + v)


def test_a_constant_store_leaves_the_rest_active(built: Package) -> None:
    equal(built.one("constant_item", X), [0, *(2 * X[1:])])
    equal(built.one("constant_in_array_of_zeros", X), [0, 3, 3, 3])


def test_accumulating_in_place_into_an_alias(built: Package) -> None:
    """y = x; y += x doubles x itself, as NumPy."""
    equal(built.one("doubled_in_place", X), 8 * X)


def test_places_that_two_iterations_share_add_up(built: Package) -> None:
    """d_x[i + j] is written once for each (i, j), not once for each place."""
    x, w, dy = np.arange(5.0), np.array([1.0, -1, 2]), np.array([1.0, 10, 100])
    dx, dw = built.gradients("overlapping", x, w, dy=dy)
    equal(dx, np.convolve(dy, w))
    equal(dw, np.correlate(x, dy, "valid"))


def test_of_duplicate_places_the_last_value_stays(built: Package) -> None:
    i = np.array([2, 0, 2, 2, 1])
    dx, dw, di = built.gradients("last_of_duplicates", X, np.arange(5.0), i, dy=X)
    equal(dx, [0, 0, 0, 2 * X[3]])
    equal(dw, [0, X[0], 0, X[2], X[1]])
    assert di is None


def test_duplicate_places_of_add_at_all_count(built: Package) -> None:
    i, w = np.array([2, 0, 2, 2, 1]), np.arange(5.0)
    y = 2 * X + np.bincount(i, w, 4)
    dx, dw, _ = built.gradients("added_duplicates", X, w, i)
    equal(dx, 4 * y)
    equal(dw, 2 * y[i])


def test_gathered_duplicates_add_up(built: Package) -> None:
    dx, di = built.gradients("gathered", X, np.array([1, 1, -1, 1]), dy=[1, 10, 100, 1000])
    equal(dx, [0, 2022, 0, 200])
    assert di is None


# -- loops and branches ------------------------------------------------------------------------------------------
def test_targets_of_zip_are_active(built: Package) -> None:
    x, y = np.array([[1.0, 2], [3, 4], [5, 6]]), np.array([[2.0, 1], [1, 3], [0, 1]])
    s1 = x[0] + y[0] ** 2
    s2 = s1 * x[1] + y[1] ** 2
    dx, dy = built.gradients("zipped", x, y)
    equal(dx, [x[2] * x[1], x[2] * s1, s2])
    equal(dy, [2 * y[0] * x[1] * x[2], 2 * y[1] * x[2], 2 * y[2]])


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_every_iteration_is_saved(built: Package, count: int) -> None:
    a = 0.1 * np.arange(1.0, count + 1)
    h = [0.7]
    for v in a:
        h.append(h[-1] ** 2 + v * h[-1])
    d, da = 1.0, np.zeros(count)
    for t in reversed(range(count)):
        da[t] = d * h[t]
        d *= 2 * h[t] + a[t]
    dx, found = built.gradients("powers_in_loop", 0.7, a)
    equal(dx, d)
    equal(found, da)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (3, 1), (2, 0), (0, 0)])
def test_loops_with_no_and_one_iteration(built: Package, shape: tuple[int, int]) -> None:
    a = np.linspace(0.5, 1.5, shape[0] * shape[1]).reshape(shape)
    expected = np.zeros(shape)
    for t in range(shape[0]):
        h = np.ones(shape[1])
        for row in a[:t]:
            h = h * row + row
        expected[t] = (h + 1) * np.prod(a[t + 1 :], axis=0)
    equal(built.one("product_in_loop", a), expected)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_what_is_read_after_a_loop_is_not_what_its_reverse_restores(built: Package, count: int) -> None:
    x = np.array([1.5, -0.5, 2.0, 0.8])[:count]
    t = [1.0, *np.cumprod(x)]
    s = 0.5 + sum(t[1:])
    ds, dt, dx = t[-1] ** 2, 2 * s * t[-1], np.zeros(count)
    for i in reversed(range(count)):
        dt += ds
        dx[i] = dt * t[i]
        dt *= x[i]
    equal(built.one("values_after_loop", x), dx)


def test_the_else_branch_counts(built: Package) -> None:
    for a, dx, da in ((1.0, 2 + 0 * X, 0.0), (-3.0, 2 * X * -3, np.sum(X * X))):
        found = built.gradients("else_branch", X, a)
        equal(found[0], dx)
        equal(found[1], da)


def test_the_branch_not_taken_is_not_computed(built: Package) -> None:
    equal(built.one("guarded", 4.0), 0.25)
    for x in (0.0, -1.0):
        equal(built.one("guarded", x), 0.0)


# -- broadcasting ------------------------------------------------------------------------------------------------
A, B = np.array([[1.0, 2, 4], [3, 0.5, 2]]), np.array([2.0, 1, 4])


def test_division_is_summed_over_what_was_repeated(built: Package) -> None:
    da, db = built.gradients("divided", A, B)
    equal(da, np.ones_like(A) / B)
    equal(db, np.sum(-A / B**2, axis=0))
    column = np.array([[2.0], [4.0]])
    da, db = built.gradients("divided_by_column", B, column)
    equal(da, [0.75] * 3)
    equal(db, -np.sum(B) / column**2)


def test_power_is_summed_over_what_was_repeated(built: Package) -> None:
    a = np.array([[2.0], [3.0]])
    da, db = built.gradients("power_of", a, B)
    equal(da, np.sum(B * a ** (B - 1), axis=1, keepdims=True))
    equal(db, np.sum(a**B * np.log(a), axis=0))


def test_maximum_and_minimum_are_summed_over_what_was_repeated(built: Package) -> None:
    da, db = built.gradients("larger", A, B, dy=10 * A)
    equal(da, np.where(A > B, 10 * A, np.where(A == B, 5 * A, 0)))
    equal(db, np.sum(np.where(A < B, 10 * A, np.where(A == B, 5 * A, 0)), axis=0))
    a, b = np.array([[1.5], [3.0]]), B[None]
    da, db = built.gradients("smaller", a, b)
    equal(da, np.sum(a < b, axis=1, keepdims=True))
    equal(db, np.sum(b < a, axis=0, keepdims=True))


def test_where_arctan2_and_clip_are_summed_over_what_was_repeated(built: Package) -> None:
    dc, da, db = built.gradients("chosen", np.array([[True], [False], [True]]), B, 3.0)
    assert dc is None
    equal(da, [2, 2, 2])
    equal(db, 3)
    a = np.array([[1.0], [2.0]])
    da, db = built.gradients("angle", a, B)
    equal(da, np.sum(B / (a * a + B * B), axis=1, keepdims=True))
    equal(db, np.sum(-a / (a * a + B * B), axis=0))
    low = np.array([1.5, 0.0, 2.5])
    da, dlow, dhigh = built.gradients("clipped_by", A, low, 3.5)
    equal(da, (A >= low) & (A <= 3.5))
    equal(dlow, np.sum(A < low, axis=0))
    equal(dhigh, np.sum(A > 3.5))


# -- reductions --------------------------------------------------------------------------------------------------
CUBE = np.random.default_rng(0).standard_normal((2, 3, 4))


@pytest.mark.parametrize(
    ("name", "axis", "keep", "derivative"),
    [
        ("mean_last", -1, False, lambda a: np.ones_like(a) / 4),
        ("mean_two", (-1, 0), False, lambda a: np.ones_like(a) / 8),
        ("mean_keep", (1, -1), True, lambda a: np.ones_like(a) / 12),
        ("sum_negative", -2, False, lambda a: 2 * a),
        ("var_negative", (-3, -1), False, lambda a: 2 * (a - np.mean(a, axis=(0, 2), keepdims=True)) / 8),
        ("min_two", (0, 2), True, lambda a: a == np.min(a, axis=(0, 2), keepdims=True)),
    ],
)
def test_axes_negative_and_several(built: Package, name: str, axis: Any, keep: bool, derivative: Any) -> None:
    dy = np.random.default_rng(1).standard_normal(np.sum(CUBE, axis=axis, keepdims=keep).shape)
    spread = dy if keep else np.expand_dims(dy, axis)
    equal(built.one(name, CUBE, dy=dy), spread * derivative(CUBE))


def test_equal_maxima_share_evenly(built: Package) -> None:
    a = np.array([[3.0, 1, 3], [3, 3, 0], [2, 2, 2]])
    equal(built.one("max_all", a), (a == 3) / 4)
    equal(built.one("max_row", a, dy=[6, 60, 600]), [[3, 0, 3], [30, 30, 0], [200, 200, 200]])
    equal(built.one("min_two", np.zeros((2, 1, 3)), dy=[[[6.0]]]), np.ones((2, 1, 3)))


def test_product_with_zeros(built: Package) -> None:
    equal(built.one("product_of", [2.0, 3, 4]), [12, 8, 6])
    equal(built.one("product_of", [2.0, 0, 4]), [0, 8, 0])
    equal(built.one("product_of", [0.0, 0, 4]), [0, 0, 0])
    equal(built.one("product_of", [0.0]), [1])
    equal(built.one("product_of", np.zeros(0)), [])


def test_prefix_sums_along_the_last_axis(built: Package) -> None:
    dy = np.arange(6.0).reshape(2, 3)
    equal(built.one("prefix_sums", A, dy=dy), np.cumsum(dy[:, ::-1], axis=1)[:, ::-1])


# -- kinks and poles ---------------------------------------------------------------------------------------------
def test_powers_at_zero(built: Package) -> None:
    x = np.array([0.0, -2.0, 3.0, -0.0])
    equal(built.one("square", x), 2 * x)
    equal(built.one("first", x), [1, 1, 1, 1])
    equal(built.one("zeroth", x), [0, 0, 0, 0])
    equal(built.one("cubed", x), 3 * x * x)
    equal(built.one("root", [4.0, 0.25]), [0.25, 1.0])


def test_variable_powers_at_zero(built: Package) -> None:
    """0**y is flat in y > 0; x**y at x = 0 has the slope of x**1 and of x**2."""
    dx, dy = built.gradients("power", [0.0, 0.0, 0.0, 0.0, 2.0], [1.0, 2.0, 0.0, 1.5, 3.0])
    equal(dx, [1, 0, 0, 0, 12])
    equal(dy, [0, 0, 0, 0, 8 * np.log(2)])


def test_a_negative_base_has_a_derivative_for_whole_exponents(built: Package) -> None:
    dx, _ = built.compiled.power.vjp(np.array([-2.0, -3.0]), np.array([3.0, 2.0]))[1](np.ones(2))
    equal(dx, [12, -6])


def test_norms_at_zero_have_no_slope(built: Package) -> None:
    equal(built.one("norm", np.zeros(3)), np.zeros(3))
    equal(built.one("norm", [3.0, 4.0]), [0.6, 0.8])
    equal(built.one("norms", [[0.0, 0], [3, 4]]), [[0, 0], [0.6, 0.8]])


def test_std_at_zero_variance_has_no_slope(built: Package) -> None:
    equal(built.one("std", [[2.0, 2, 2], [1, 2, 3]])[0], [0, 0, 0])
    equal(built.one("std", [[5.0], [7.0]]), [[0], [0]])


def test_hypot_and_abs_at_zero_have_no_slope(built: Package) -> None:
    dx, dy = built.gradients("hypotenuse", [0.0, 3.0], [0.0, -4.0])
    equal(dx, [0, 0.6])
    equal(dy, [0, -0.8])
    equal(built.one("size", [0.0, -0.0, -3.0, 2.0]), [0, 0, -1, 1])


def test_ties_of_maximum_and_minimum_share_evenly(built: Package) -> None:
    dx, dy = built.gradients("ties", [1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    equal(dx, [5.5, 10, 1])
    equal(dy, [5.5, 1, 10])
    equal(built.one("with_itself", X), np.ones(4))
    equal(built.one("ties_of_several", [2.0, 2, 2, 1]), np.array([11, 11, 11, 0]) / 3)
    equal(built.one("ties_of_several", [1.0, 2, 1, 2]), [5, 0.5, 5, 0.5])
    equal(built.one("relu", [-1.0, 0.0, 2.0]), [0, 0.5, 1])


def test_clip_passes_the_gradient_at_its_bounds(built: Package) -> None:
    equal(built.one("clipped", [-2.0, -1.0, 0.0, 1.0, 2.0]), [0, 1, 1, 1, 0])


# -- where: NaN and infinity in the branch not taken -------------------------------------------------------------
P = np.array([4.0, 0.0, -1.0])


def test_where_keeps_the_root_of_a_negative_out(built: Package) -> None:
    equal(built.one("where_sqrt", P), [0.25, 0, 0])
    equal(built.one("where_in_loop", P), [0.25, 0, 0])


def test_where_keeps_the_logarithm_out(built: Package) -> None:
    equal(built.one("where_log", P), [0.25, 1, 1])


def test_where_keeps_the_division_by_zero_out(built: Package) -> None:
    dx, dy = built.gradients("where_divide", [1.0, 2.0, 0.0], [0.0, 4.0, 0.0])
    equal(dx, [0, 0.25, 0])
    equal(dy, [0, -0.125, 0])


def test_where_keeps_the_power_and_the_overflow_out(built: Package) -> None:
    equal(built.one("where_power", [1.0, 0.0, -1.0]), [0.3, -1, -1])
    equal(built.one("where_exp", [0.0, 1000.0]), [1, 0])


def test_where_keeps_out_what_was_computed_before_it(built: Package) -> None:
    equal(built.one("where_assigned", P), [-0.25, 0, 0])
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    equal(built.one("where_norm", x, dy=[[1.0, 0], [1, 1]]), [[0.128, -0.096], [0, 0]])


def test_nested_wheres(built: Package) -> None:
    equal(built.one("where_nested", [3.0, -2.0, 0.6]), [0.5, -0.5, 1.25])


def test_masks_of_minus_infinity(built: Package) -> None:
    x, keep = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    p = np.exp([1.0, 3.0]) / np.sum(np.exp([1.0, 3.0]))
    dx, dkeep = built.gradients("masked_softmax", x, keep, dy=[1.0, 5.0, 0.0])
    equal(dx, [p[0] * p[1], 0, -p[0] * p[1]])
    assert dkeep is None
    equal(built.gradients("masked_logsumexp", x, keep)[0], [p[0], 0, p[1]])


def test_xlogy_of_one_variable_away_from_zero(built: Package) -> None:
    equal(built.one("entropy", [0.5, 2.0]), 1 + np.log([0.5, 2.0]))


# -- products ----------------------------------------------------------------------------------------------------
def test_einsum_with_repeated_letters(built: Package) -> None:
    a, v = np.arange(9.0).reshape(3, 3), np.array([1.0, 2, 3])
    da, dv = built.gradients("diagonal_einsum", a, v, dy=[1, 10, 100])
    equal(da, np.diag([1.0, 20, 300]))
    equal(dv, [0, 40, 800])
    equal(built.one("trace_einsum", a, dy=2.0), 2 * np.eye(3))


def test_einsum_with_letters_of_one_operand(built: Package) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.array([1.0, 2])
    da, db = built.gradients("lone_einsum", a, b, dy=[1, 10, 100])
    equal(da, [[3, 30, 300], [3, 30, 300]])
    equal(db, [np.sum(a, axis=0) @ [1, 10, 100]] * 2)


def test_an_array_that_meets_itself(built: Package) -> None:
    a, dy = np.arange(4.0).reshape(2, 2), np.array([[1.0, -1], [2, 0.5]])
    equal(built.one("with_its_transpose", a, dy=dy), dy @ a.T @ a + a @ dy.T @ a + a @ a.T @ dy)


# -- arguments ---------------------------------------------------------------------------------------------------
def test_integers_and_booleans_have_none(built: Package) -> None:
    found = built.gradients("typed", X, np.int64(3), np.array([True, False, True, False]), np.arange(4, dtype=np.int32))
    equal(found[0], [0, 1, 2, 1])
    assert found[1:] == (None, None, None)


def test_unused_inputs_have_exact_zeros(built: Package) -> None:
    for dtype in (np.float32, np.float64):
        _, pullback = built.compiled.unused.vjp(X.astype(dtype), np.full(3, np.nan, dtype), dtype(np.inf))
        dx, dw, ds = pullback(np.full(4, 3, dtype))
        assert dw.shape == (3,) and dw.dtype == dtype and ds.shape == () and ds.dtype == dtype
        assert not np.any(dw) and not np.any(ds)
        equal(dx, [6] * 4)
    dx, dw = built.gradients("unreachable", X, X)
    equal(dx, np.ones(4))
    assert not np.any(dw)


def test_overwritten_arguments_leave_the_callers_arrays_alone(built: Package) -> None:
    for shape in ((2, 3), (3, 2, 3)):
        batch = len(shape) == 3
        x, b = np.arange(float(np.prod(shape))).reshape(shape), np.broadcast_to(B, (*shape[:-2], 3)).copy()
        kept = x.copy(), b.copy()
        y, pullback = built.compiled.overwriting.vjp(x, b, batch=batch)
        dy = np.ones_like(y)
        once = [g.copy() for g in pullback(dy)]
        twice = pullback(dy)
        assert np.array_equal(x, kept[0]) and np.array_equal(b, kept[1]) and np.all(dy == 1)
        for one, other in zip(once, twice, strict=True):
            assert np.array_equal(one, other)
            assert not np.shares_memory(one, x) and not np.shares_memory(other, dy)


def test_gradients_do_not_share_memory_with_what_was_given(built: Package) -> None:
    y, pullback = built.compiled.first.vjp(X)
    dy = np.ones(4)
    (dx,) = pullback(dy)
    dx[:] = 7
    assert np.all(dy == 1) and np.array_equal(pullback(dy)[0], np.ones(4)) and np.array_equal(y, X)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3), (3, 1)])
def test_axes_of_size_zero_and_one(built: Package, shape: tuple[int, int]) -> None:
    x = np.linspace(0.5, 1.5, shape[0] * shape[1]).reshape(shape)
    ys, pullback = built.compiled.empty_sums.vjp(x)
    dys = [np.random.default_rng(k).standard_normal(y.shape) for k, y in enumerate(ys)]
    equal(ys[0], np.sum(x * x, axis=0))
    equal(ys[1], np.sum(x))
    equal(pullback(*dys)[0], dys[0] * 2 * x + dys[1] + dys[2] * np.exp(x))


def test_a_single_row_and_a_single_column(built: Package) -> None:
    for shape in ((1, 4), (4, 1), (1, 1)):
        x = np.linspace(0.5, 1.5, shape[0] * shape[1]).reshape(shape)
        gradient = built.one("everything", x)
        assert gradient.shape == shape and np.all(np.isfinite(gradient))
        if shape[1] == 1:  # normalised and softmax of one are constant
            equal(gradient, x == np.max(x, axis=0))


SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e300, -1e300, 5e-324]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_infinity_propagate_as_in_numpy(built: Package, dtype: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (
            np.array(SPECIALS, dtype),
            *(np.array([1, v, 2], dtype) for v in SPECIALS),
            np.array([np.inf, -np.inf], dtype),
        ):
            for name in ("specials", "special_sums", "special_logsumexp"):
                layer = getattr(built.compiled, name)
                found, expected = layer(x), layer.reference(x)
                if not isinstance(found, tuple):
                    found, expected = (found,), (expected,)
                for k, (a, b) in enumerate(zip(found, expected, strict=True)):
                    np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=f"output {k} of {name}({x})")


def test_nan_in_one_element_stays_there(built: Package) -> None:
    """The gradient of an elementwise function at NaN is NaN, its neighbours do not notice; so with a NaN cotangent."""
    _, pullback = built.compiled.square.vjp(np.array([1.0, np.nan, 3.0]))
    assert np.array_equal(pullback(np.ones(3))[0], [2, np.nan, 6], equal_nan=True)
    _, pullback = built.compiled.square.vjp(np.array([1.0, 2.0, 3.0]))
    assert np.array_equal(pullback(np.array([1, np.nan, 1]))[0], [2, np.nan, 6], equal_nan=True)


def test_a_nan_example_leaves_the_other_examples_alone(built: Package) -> None:
    x = np.ones((3, 4, 4))
    x[1] = np.nan
    ys, pullback = built.compiled.everything.vjp(x, batch=True)
    (gradient,) = pullback(*(np.ones_like(y) for y in ys))
    assert np.all(np.isfinite(gradient[[0, 2]])) and np.any(np.isnan(gradient[1]))


# -- the helper itself must be able to fail ----------------------------------------------------------------------
def test_the_comparison_catches_what_it_should() -> None:
    for wrong in ([1.0, 2.002], [1.0, np.nan], [1.0, 2.0, 3.0], [1.0]):
        with pytest.raises(AssertionError):
            equal(np.array(wrong), [1.0, 2.0])
