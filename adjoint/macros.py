"""What the rules of linear algebra and of moves may call, beyond NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..transpile import construct
from ..transpile.construct import const, dim
from ..transpile.dims import ONE, Dim
from ..transpile.dims import ZERO as NONE
from ..transpile.program import Call, Expr, NewAxis, Slice, Type
from ..transpile.table.rearrange import diagonal_axes, tile_counts

_TRANSPOSED = {"solve": "solve", "solve_lower": "solve_upper", "solve_upper": "solve_lower"}

Fit = Callable[[Expr, Type], Expr]  # sums what broadcasting repeated


def matrix_macros(op: str, args: Sequence[Expr], fit: Fit) -> dict[str, Any]:
    """For linear algebra: of the last two axes."""
    a, b = args[0], args[-1]
    vector = len(args) == 2 and b.type.rank == 1

    def product_(v: Expr, y: Expr) -> Expr:
        if not vector:
            return construct.call("matmul", v, swapped(y))
        if v.type.rank == 1:
            return construct.call("outer", v, y)
        return construct.call("multiply", column(v), row_of(y))

    def solve_back(dy: Expr) -> Expr:
        if vector and a.type.rank > 2:  # NumPy takes it for a vector only if it has one axis
            solved = construct.call(_TRANSPOSED[op], swapped(a), column(dy))
            return construct.call("squeeze", solved, axis=dy.type.rank)
        return construct.call(_TRANSPOSED[op], swapped(a), dy)

    return {
        "swap": swapped,
        "product": product_,
        "solve_back": solve_back,
        "solve_upper": lambda a, b: construct.call("solve_upper", a, b),
        "fit_a": lambda e: fit(e, a.type),
        "fit_b": lambda e: fit(e, b.type),
        "on_matrix": lambda e: column(e, 2) if e.type.rank else e,
    }


def move_macros(call: Call, args: Sequence[Expr]) -> dict[str, Any]:
    """For moves that repeat, pick a diagonal, or pad."""
    type = args[0].type if args else Type("real")
    return {
        "ungroup": lambda e: _ungroup(call, e, type),
        "on_diagonal": lambda e: _spread_diagonal(call, e, type),
        "inside": lambda e: _inside(call, e, type),
    }


def _ungroup(call: Call, expr: Expr, type: Type) -> Expr:
    """Sums the copies that repeat (each element k times) or tile (the array k times) made."""
    shape: list[Dim] = []
    summed: list[int] = []
    if call.op == "repeat":
        axis = call.get("axis") % type.rank
        summed.append(axis + 1)
        shape = [*type.shape[: axis + 1], call.get("repeats"), *type.shape[axis + 1 :]]
    else:
        counts = tile_counts(type.rank, dict(call.static))
        for count, extent in zip(counts, (None,) * (len(counts) - type.rank) + type.shape, strict=True):
            if count != ONE:
                summed.append(len(shape))
                shape.append(count)
            if extent is not None:
                shape.append(extent)
            elif count == ONE:
                summed.append(len(shape))
                shape.append(ONE)
    if not summed:
        return expr
    grouped = construct.call("reshape", expr, shape=tuple(shape))
    return construct.call("sum", grouped, axis=summed[0] if len(summed) == 1 else tuple(summed))


def _spread_diagonal(call: Call, expr: Expr, type: Type) -> Expr:
    """Values for the diagonal of a square (for trace: one for all of it) as an array of the argument's shape that
    is zero beside it."""
    static = dict(call.static)
    i, j = diagonal_axes(type.rank, static)
    rows, columns = type.shape[i], type.shape[j]
    if call.op == "diagonal":
        expr = column(expr)
    elif expr.type.rank:
        expr = column(expr, 2)
    last = Type(type.dtype, (*(d for k, d in enumerate(type.shape) if k not in (i, j)), rows, columns))
    mask = construct.call("eye", N=rows, M=columns, k=static["offset"], dtype="bool")
    spread = construct.call("where", mask, expr, const(0))
    if spread.type.shape != last.shape:
        spread = construct.call("broadcast_to", spread, shape=last.shape)
    places = [k for k in range(type.rank) if k not in (i, j)] + [i, j]
    if places == list(range(type.rank)):
        return spread
    return construct.call("transpose", spread, axes=tuple(places.index(k) for k in range(type.rank)))


def _inside(call: Call, expr: Expr, type: Type) -> Expr:
    """The part of a padded array that is the array itself. A width that may be negative, for all that is known
    at build, is not the bound of a slice: such axes are indexed."""
    items: list[Any] = []
    for (before, after), extent in zip(call.get("pad_width"), type.shape, strict=True):
        if before == after == NONE:
            items.append(construct.full_slice(extent))
        else:
            items.append(
                Slice(
                    dim(before) if before != NONE else None,
                    dim(before + extent) if after != NONE else None,
                    1,
                    before,
                    extent,
                )
            )
    return construct.index(expr, items)


def swapped(expr: Expr) -> Expr:
    """The last two axes change places."""
    if expr.type.rank < 2:
        return expr
    if expr.type.rank == 2:
        return construct.call("transpose", expr, axes=None)
    return construct.call("swapaxes", expr, axis1=-1, axis2=-2)


def column(expr: Expr, count: int = 1) -> Expr:
    """New axes behind the last."""
    return construct.index(expr, [*(construct.full_slice(d) for d in expr.type.shape), *[NewAxis()] * count])


def row_of(expr: Expr) -> Expr:
    """A new axis before the last."""
    full = [construct.full_slice(d) for d in expr.type.shape]
    return construct.index(expr, [*full[:-1], NewAxis(), full[-1]])
