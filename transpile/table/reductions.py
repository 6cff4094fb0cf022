"""Reductions over axes, and what is composed of them.

In a derivative, `unreduce(e)` spreads e over the reduced axes, `rereduce(e)` sums as the operation did, `count` is the number of
elements that went into one result.
"""

from __future__ import annotations

from typing import Any

from ..dims import product
from ..operations import ZERO, Row, add
from ..program import Type
from ..typing import TypingError, as_float, normal_axes, reduced

_ARGS = "a, axis: axes = None, keepdims: flag = False"
_ADDS = "a, axis: axes = None, dtype: dtype = None, keepdims: flag = False"  # of a call with a dtype, the elements are cast


def _keep(args: list[Type], static: dict[str, Any]) -> Type:
    dtype = {"bool": "i64", "int": "i64", "i32": "i64", "float": "real"}.get(args[0].dtype, args[0].dtype)
    return Type(dtype, reduced(args[0].shape, normal_axes(static["axis"], args[0].rank), static["keepdims"]))


def _same(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(args[0].dtype, reduced(args[0].shape, normal_axes(static["axis"], args[0].rank), static["keepdims"]))


def _extreme(args: list[Type], static: dict[str, Any]) -> Type:
    """As _same; of what is empty whatever the sizes there is none."""
    axes, shape = normal_axes(static["axis"], args[0].rank), args[0].shape
    kept = product(d for k, d in enumerate(shape) if k not in axes)
    if any(shape[k].value == 0 for k in axes) and kept.value != 0:
        raise TypingError("shape", "the greatest and the least of no elements are no numbers", "start from a value")
    return _same(args, static)


def _floating(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(as_float(args[0].dtype), _keep(args, static).shape)


def _boolean(args: list[Type], static: dict[str, Any]) -> Type:
    return Type("bool", _keep(args, static).shape)


def _index(args: list[Type], static: dict[str, Any]) -> Type:
    if isinstance(static["axis"], tuple):
        raise TypingError("type", "argmin and argmax go along one axis, or over all with axis=None", "axis=0")
    return Type("i64", _extreme(args, static).shape)


def _map(args: list[Type], static: dict[str, Any]) -> Type:
    normal_axes(static["axis"], args[0].rank)
    return Type(as_float(args[0].dtype), args[0].shape)


_EXTREME = "np.where(a == unreduce(y), unreduce(dy / rereduce(a == unreduce(y))), 0)"
_OTHERS = (
    "np.where(unreduce(rereduce(a == 0)) == 0, unreduce(dy * y) / np.where(a == 0, 1, a), "
    "np.where((a == 0) & (unreduce(rereduce(a == 0)) == 1), "
    "unreduce(dy * np.prod(np.where(a == 0, 1, a), axis=axis, keepdims=keepdims)), 0))"
)
# The others of two are the elements turned round: nothing is divided, so zeros need no care. Of one, 1.
_OTHERS_OF_FEW = ("unreduce(dy)", "unreduce(dy) * np.flip(a, axis)")
_MEAN = "np.mean(a, axis=axis, keepdims=True)"
_MAX = "np.max(a, axis=axis, keepdims=True)"
_TOP = f"np.where(np.isfinite({_MAX}), {_MAX}, 0)"  # as SciPy: inf - inf is not to be met
_OR_0 = _TOP.replace("np.max", "top")

add(
    Row("sum", "np.sum sum", _ADDS, "reduce", _keep, ("unreduce(dy)",), reduce=(0, "add")),
    Row("prod", "np.prod", _ADDS, "reduce", _keep, (_OTHERS,), reduce=(1, "multiply"), few=_OTHERS_OF_FEW),
    Row("max", "np.max np.amax max", _ARGS, "reduce", _extreme, (_EXTREME,), reduce=("lowest", "maximum")),
    # Within definitions: -inf of nothing, where np.max would raise.
    Row("top", "top", _ARGS, "reduce", _same, ZERO, reduce=("lowest", "maximum")),
    Row("min", "np.min np.amin min", _ARGS, "reduce", _extreme, (_EXTREME,), reduce=("highest", "minimum")),
    Row("any", "np.any", _ARGS, "reduce", _boolean, ZERO, reduce=(False, "logical_or")),
    Row("all", "np.all", _ARGS, "reduce", _boolean, ZERO, reduce=(True, "logical_and")),
    Row("argmax", "np.argmax", _ARGS, "special", _index, ZERO),
    Row("argmin", "np.argmin", _ARGS, "special", _index, ZERO),
    Row(
        "mean", "np.mean", _ADDS, "compose", _floating, ("unreduce(dy / count)",),
        define="np.sum(a, axis=axis, keepdims=keepdims) / count",
    ),
    Row(
        "var", "np.var", _ARGS + ", ddof: int = 0", "compose", _floating,
        (f"unreduce(2 * dy / (count - ddof)) * (a - {_MEAN})",),
        define=f"np.sum(np.square(a - {_MEAN}), axis=axis, keepdims=keepdims) / (count - ddof)",
    ),
    Row(
        "std", "np.std", _ARGS + ", ddof: int = 0", "compose", _floating,
        (f"unreduce(dy / ((count - ddof) * np.where(y == 0, 1, y))) * (a - {_MEAN})",),
        define="np.sqrt(np.var(a, axis=axis, keepdims=keepdims, ddof=ddof))",
    ),
    Row(
        "norm", "np.linalg.norm", "a, ord: value = None, axis: axes = None, keepdims: flag = False", "compose", _floating,
        ("unreduce(dy / np.where(y == 0, 1, y)) * a",),
        define="np.sqrt(np.sum(np.square(a), axis=axis, keepdims=keepdims))",
    ),
    Row(
        "logsumexp", "special.logsumexp", _ARGS, "compose", _floating,
        ("unreduce(dy) * np.exp(a - unreduce(np.where(y == -np.inf, 0, y)))",),  # the logarithm of 0, of nothing but those
        define=f"np.log(np.sum(np.exp(a - {_OR_0}), axis=axis, keepdims=keepdims)) + {_OR_0.replace('True', 'keepdims')}",
    ),
    Row(
        "softmax", "special.softmax", "a, axis: axes = None", "compose", _map,
        ("y * (dy - np.sum(dy * y, axis=axis, keepdims=True))",),
        define=f"np.exp(a - {_MAX}) / np.sum(np.exp(a - {_MAX}), axis=axis, keepdims=True)",
    ),
    Row(
        "log_softmax", "special.log_softmax", "a, axis: axes = None", "compose", _map,
        ("dy - np.exp(y) * np.sum(dy, axis=axis, keepdims=True)",),
        define=f"a - {_TOP} - np.log(np.sum(np.exp(a - {_TOP}), axis=axis, keepdims=True))",
    ),
)
