"""Along an axis: running sums and products, sorting, taking by index."""

from __future__ import annotations

from typing import Any

from ..operations import DEFINED, ZERO, Row, add
from ..program import Type
from ..typing import TypingError, broadcast, normal_axes, shape_text
from . import bodies

_AXIS = "a, axis: axis = None, dtype: dtype = None"
_SORTED = "np.take_along_axis(a, np.argsort(a, axis=axis), axis=axis)"
_SORT = "a, axis: axis = -1, kind: text = None, stable: flag = None"


def _running(args: list[Type], static: dict[str, Any]) -> Type:
    normal_axes(static["axis"], args[0].rank)
    dtype = {"bool": "i64", "int": "i64", "i32": "i64", "float": "real"}.get(args[0].dtype, args[0].dtype)
    return Type(dtype, args[0].shape)


def _same(args: list[Type], static: dict[str, Any]) -> Type:
    normal_axes(static["axis"], args[0].rank)
    return args[0]


def _positions(args: list[Type], static: dict[str, Any]) -> Type:
    return Type("i64", _same(args, static).shape)


def _first_positions(args: list[Type], static: dict[str, Any]) -> Type:
    shape = list(_same(args, static).shape)
    shape[static["axis"]] = static["count"]
    return Type("i64", tuple(shape))


def _indices(a: Type, indices: Type) -> None:
    if not indices.is_integer:
        raise TypingError("type", f"indices are integers, got {indices.dtype}", "use .astype(np.int64)")


def _taken(args: list[Type], static: dict[str, Any]) -> Type:
    a, indices = args
    (axis,) = normal_axes(static["axis"], a.rank)
    _indices(a, indices)
    return Type(a.dtype, (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]))


def _taken_along(args: list[Type], static: dict[str, Any]) -> Type:
    a, indices = args
    (axis,) = normal_axes(static["axis"], a.rank)
    _indices(a, indices)
    if a.rank != indices.rank:
        raise TypingError("shape", f"the indices need as many axes as the array: {shape_text(indices.shape)} for {shape_text(a.shape)}")
    others = broadcast([t.shape[:axis] + t.shape[axis + 1 :] for t in args])
    return Type(a.dtype, (*others[:axis], indices.shape[axis], *others[axis:]))


def _take(args: list[Type], static: dict[str, Any]) -> str:
    (axis,) = normal_axes(static["axis"], args[0].rank)
    return f"a[{':, ' * axis}indices]"


def _take_along(args: list[Type], static: dict[str, Any]) -> str:
    """Every other axis is indexed by its own positions, lined up with the axes of the indices."""
    rank = args[0].rank
    (axis,) = normal_axes(static["axis"], rank)
    places = [f"np.arange(a.shape[{k}])" + (f"[:{', None' * (rank - 1 - k)}]" if k < rank - 1 else "") for k in range(rank)]
    places[axis] = "indices"
    return f"a[{', '.join(places)}]"


# Before the first zero the product is divided by the element; at it, the zero is left out; behind it nothing comes through.
_BACK = "np.flip(np.cumsum(np.flip({0}, axis), axis=axis), axis)"
_CUMPROD = (
    f"np.where(first, {_BACK.format('dy * np.cumprod(np.where(first, 1, a), axis=axis)')}, "
    f"{_BACK.format('dy * y')} / np.where(a == 0, 1, a))"
)
_FIRST = "first = (a == 0) & (np.cumsum(a == 0, axis=axis) == 1)"

add(
    Row("cumsum", "np.cumsum", _AXIS, "body", _running, (_BACK.format("dy"),), body=bodies.cumsum, each="rest"),
    Row("cumprod", "np.cumprod", _AXIS, "body", _running, (_CUMPROD,), body=bodies.cumprod, each="rest", shared=_FIRST),
    Row("argsort", "np.argsort", _SORT, "body", _positions, ZERO, body=bodies.argsort, each="vector"),
    Row("argleast", "", "a, axis: axis = -1, count: extent = None", "body", _first_positions, ZERO, body=bodies.argleast, each="vector"),
    Row("sort", "np.sort", _SORT, "body", _same, DEFINED, body=bodies.sort, each="vector", define=_SORTED),
    Row("take", "np.take", "a, indices, axis: axis = None", "alias", _taken, DEFINED, define=_take),
    Row("take_along_axis", "np.take_along_axis", "a, indices, axis: axis = -1", "alias", _taken_along, DEFINED, define=_take_along),
)
