"""Operations that only move elements: the result's element at an index is the argument's at another.

In a derivative, `like(e)` reshapes e to the argument's shape, `unbroadcast(e)` sums what broadcasting repeated.
"""

from __future__ import annotations

from typing import Any

from ..dims import (
    ONE,
    Atom,
    Dim,
    coincide,
    exact_quotient,
    is_thin,
    product,
    quotient_without_remainder,
    same_extent,
    unclamped,
)
from ..dims import ZERO as NONE
from ..operations import BACKWARD, ZERO, Row, add
from ..program import Type
from ..typing import TypingError, must_stretch, normal_axes, shape_text


def _permuted(args: list[Type], static: dict[str, Any]) -> Type:
    a = args[0]
    axes = static["axes"] if static["axes"] is not None else tuple(reversed(range(a.rank)))
    if sorted(x % max(a.rank, 1) for x in axes) != list(range(a.rank)):
        raise TypingError("shape", f"axes {axes} are not a permutation of the {a.rank} axes of the array")
    return Type(a.dtype, tuple(a.shape[x] for x in axes))


def _pull_permuted(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    axes = static["axes"] if static["axes"] is not None else tuple(reversed(range(a.rank)))
    source: list[Dim] = [NONE] * a.rank
    for position, axis in enumerate(axes):
        source[axis % a.rank] = index[position]
    return tuple(source)


def _swapped(args: list[Type], static: dict[str, Any]) -> Type:
    axes = list(args[0].shape)
    i, j = normal_axes(static["axis1"], len(axes))[0], normal_axes(static["axis2"], len(axes))[0]
    axes[i], axes[j] = axes[j], axes[i]
    return Type(args[0].dtype, tuple(axes))


def _pull_swapped(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    source = list(index)
    i, j = static["axis1"] % a.rank, static["axis2"] % a.rank
    source[i], source[j] = source[j], source[i]
    return tuple(source)


def _moved_order(rank: int, static: dict[str, Any]) -> list[int]:
    source, destination = static["source"] % rank, static["destination"] % rank
    order = [axis for axis in range(rank) if axis != source]
    order.insert(destination, source)
    return order


def _movedaxis(args: list[Type], static: dict[str, Any]) -> Type:
    normal_axes(static["source"], args[0].rank), normal_axes(static["destination"], args[0].rank)
    return Type(args[0].dtype, tuple(args[0].shape[a] for a in _moved_order(args[0].rank, static)))


def _pull_movedaxis(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    return _pull_permuted(index, a, {"axes": tuple(_moved_order(a.rank, static))})


def _reshaped(args: list[Type], static: dict[str, Any]) -> Type:
    a, shape = args[0], list(static["shape"])
    size = product(a.shape)
    if Dim.of(-1) in shape:
        hole = shape.index(Dim.of(-1))
        shape[hole] = ONE
        if product(shape) == NONE:
            raise TypingError("shape", f"-1 in {shape_text(tuple(static['shape']))} could be any extent", "write it out")
        rest = product(shape)
        # An extent that is written out is none below zero: beside n - 1, max(0, n - 1) is that.
        whole, part = product(map(unclamped, a.shape)), product(map(unclamped, shape))
        exact = exact_quotient(size, rest) or exact_quotient(whole, part)
        if exact is None and not coincide(rest * (size // rest), size):
            exact = quotient_without_remainder(size, rest)
        shape[hole] = size // rest if exact is None else exact
        if exact is None and isinstance(shape[hole].symbol, Atom):  # for some sizes: the call checks it
            return Type(a.dtype, tuple(shape))
    made, given = product(map(unclamped, shape)), product(map(unclamped, a.shape))
    if product(shape) != size and made != given and not coincide(made, given):
        raise TypingError(
            "shape", f"cannot reshape {shape_text(a.shape)} to {shape_text(tuple(shape))}",
            "the number of elements must be the same for every size of the dimensions",
        )
    return Type(a.dtype, tuple(shape))


def _raveled(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(args[0].dtype, (product(args[0].shape),))


def _expanded(args: list[Type], static: dict[str, Any]) -> Type:
    rank = args[0].rank + (len(static["axis"]) if isinstance(static["axis"], tuple) else 1)
    axes = normal_axes(static["axis"], rank)
    rest = iter(args[0].shape)
    return Type(args[0].dtype, tuple(ONE if i in axes else next(rest) for i in range(rank)))


def _pull_expanded(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    axes = normal_axes(static["axis"], len(index))
    return tuple(d for i, d in enumerate(index) if i not in axes)


def _squeezed_axes(a: Type, static: dict[str, Any]) -> tuple[int, ...]:
    if static["axis"] is None:  # the checker sees to it that no other extent is 1
        return tuple(i for i, d in enumerate(a.shape) if d == ONE)
    return normal_axes(static["axis"], a.rank)


def _squeezed(args: list[Type], static: dict[str, Any]) -> Type:
    axes = _squeezed_axes(args[0], static)
    for axis in axes:
        if args[0].shape[axis] != ONE:
            raise TypingError("shape", f"cannot squeeze axis {axis}, its extent is {args[0].shape[axis]}")
    return Type(args[0].dtype, tuple(d for i, d in enumerate(args[0].shape) if i not in axes))


def _pull_squeezed(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    axes, rest = _squeezed_axes(a, static), iter(index)
    return tuple(NONE if i in axes else next(rest) for i in range(a.rank))


def _stretched(args: list[Type], static: dict[str, Any]) -> Type:
    shape = tuple(static["shape"])
    must_stretch(args[0].shape, shape)
    return Type(args[0].dtype, shape)


def pull_broadcast(index: tuple[Dim, ...], a: Type, static: dict[str, Any] | None = None) -> tuple[Dim, ...]:
    """The element of `a` that broadcasting puts at `index`."""
    tail = index[len(index) - a.rank :]
    return tuple(NONE if is_thin(extent) else i for i, extent in zip(tail, a.shape, strict=True))


def _flipped(args: list[Type], static: dict[str, Any]) -> Type:
    normal_axes(static["axis"], args[0].rank)
    return args[0]


def _pull_flipped(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    axes = normal_axes(static["axis"], a.rank)
    return tuple(a.shape[i] - 1 - d if i in axes else d for i, d in enumerate(index))


def _same(args: list[Type], static: dict[str, Any]) -> Type:
    return args[0]


def _pull_same(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    return index


def _cast(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(static["dtype"], args[0].shape)


def _concatenated(args: list[Type], static: dict[str, Any]) -> Type:
    (axis,) = normal_axes(static["axis"], args[0].rank)
    shape = list(args[0].shape)
    for other in args[1:]:
        for i, (mine, theirs) in enumerate(zip(shape, other.shape, strict=False)):
            if other.rank != len(shape) or (i != axis and not same_extent(mine, theirs)):
                raise TypingError("shape", f"cannot concatenate {shape_text(args[0].shape)} and {shape_text(other.shape)} along axis {axis}", "all other axes agree, and their number: x[None] adds one")
        shape[axis] = shape[axis] + other.shape[axis]
    return Type(_join(args), tuple(shape))


def _join(args: list[Type]) -> str:
    from ..typing import promote

    return promote(args)


add(
    Row("transpose", "np.transpose np.permute_dims", "a, axes: axes = None", "move", _permuted, ("np.transpose(dy, inverse(axes))",), pull=_pull_permuted, view=True),
    Row("swapaxes", "np.swapaxes", "a, axis1: axis, axis2: axis", "move", _swapped, ("np.swapaxes(dy, axis1, axis2)",), pull=_pull_swapped, view=True),
    Row("moveaxis", "np.moveaxis", "a, source: axis, destination: axis", "move", _movedaxis, ("np.moveaxis(dy, destination, source)",), pull=_pull_movedaxis, view=True),
    Row("reshape", "np.reshape", "a, shape: shape", "special", _reshaped, ("like(dy)",), view=True),
    Row("ravel", "np.ravel", "a", "special", _raveled, ("like(dy)",), view=True),
    Row("expand_dims", "np.expand_dims", "a, axis: axes", "move", _expanded, ("like(dy)",), pull=_pull_expanded, view=True),
    Row("squeeze", "np.squeeze", "a, axis: axes = None", "move", _squeezed, ("like(dy)",), pull=_pull_squeezed, view=True),
    Row("broadcast_to", "np.broadcast_to", "a, shape: shape", "move", _stretched, ("unbroadcast(dy)",), pull=pull_broadcast, view=True),
    Row("flip", "np.flip", "a, axis: axes = None", "move", _flipped, ("np.flip(dy, axis)",), pull=_pull_flipped, view=True),
    Row("copy", "np.copy", "a", "move", _same, ("dy",), pull=_pull_same),
    Row("cast", "np.astype", "a, dtype: dtype", "special", _cast, ("dy",)),
    Row("concatenate", "np.concatenate np.concat", "a: arrays, axis: axis = 0", "special", _concatenated, "pieces"),
    Row("extent", "extent", "a, axis: axis", "special", lambda args, static: Type("int", pythons=True), ZERO),
    Row("with_derivative", "derivative.with_derivative", "a, of", "derivative", _same, (None, "dy")),
    Row("with_backward", "derivative.with_backward", "a: arrays, rule: value", "derivative", _same, BACKWARD),
    Row("stop_gradient", "derivative.stop_gradient", "a", "move", _same, ZERO, pull=_pull_same),
    Row("size", "np.size", "a", "special", lambda args, static: Type("int", pythons=True), ZERO),
)
