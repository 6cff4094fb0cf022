"""Moves that repeat, wrap around, pick diagonals and triangles, or pad.

In a derivative, `ungroup(e)` sums the copies of every element, `on_diagonal(e)` puts values on the diagonal of zeros, `inside(e)` is
the part of a padded array that is the array itself.
"""

from __future__ import annotations

from typing import Any

from .. import ir
from ..dims import ONE, Dim, Facts, maximum, minimum
from ..dims import ZERO as NONE
from ..operations import ZERO, Row, add
from ..program import Type
from ..typing import TypingError, normal_axes, promote, shape_text
from . import bodies


# -- repetitions -----------------------------------------------------------------------------------------------
def _copies(count: Dim) -> Dim:
    if count.value is not None and count.value < 0:
        raise TypingError("shape", "negative dimensions are not allowed", "a number of copies is 0 or more")
    return count


def _repeated(args: list[Type], static: dict[str, Any]) -> Type:
    (axis,) = normal_axes(static["axis"], args[0].rank)
    shape = list(args[0].shape)
    shape[axis] = shape[axis] * _copies(static["repeats"])
    return Type(args[0].dtype, tuple(shape))


def _pull_repeated(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    axis = static["axis"] % a.rank
    return tuple(d // static["repeats"] if k == axis else d for k, d in enumerate(index))


def tile_counts(rank: int, static: dict[str, Any]) -> tuple[Dim, ...]:
    """How often each axis is repeated, the axes that the array does not have first."""
    counts = static["reps"]
    return (ONE,) * (rank - len(counts)) + tuple(counts)


def _tiled(args: list[Type], static: dict[str, Any]) -> Type:
    counts = tile_counts(args[0].rank, static)
    shape = (ONE,) * (len(counts) - args[0].rank) + args[0].shape
    return Type(args[0].dtype, tuple(d * c for d, c in zip(shape, map(_copies, counts), strict=True)))


def _pull_tiled(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    counts = tile_counts(a.rank, static)
    tail = list(zip(index, counts, strict=True))[len(counts) - a.rank :]
    return tuple(NONE if n == ONE else d if c == ONE else d % n for (d, c), n in zip(tail, a.shape, strict=True))


def _rolled(args: list[Type], static: dict[str, Any]) -> Type:
    normal_axes(static["axis"], args[0].rank)
    return args[0]


# -- diagonals and triangles -----------------------------------------------------------------------------------
def diagonal_axes(rank: int, static: dict[str, Any]) -> tuple[int, int]:
    i, j = normal_axes(static["axis1"], rank)[0], normal_axes(static["axis2"], rank)[0]
    if i == j:
        raise TypingError("shape", "the two axes of a diagonal are the same")
    return i, j


def diagonal_start(static: dict[str, Any], facts: Facts | None = None) -> tuple[Dim, Dim]:
    """The first row and column."""
    offset = Dim.of(static["offset"])
    return maximum(-offset, NONE, facts), maximum(offset, NONE, facts)


def _diagonal(args: list[Type], static: dict[str, Any]) -> Type:
    a = args[0]
    if a.rank < 2:
        raise TypingError("shape", f"a diagonal needs two axes, got shape {shape_text(a.shape)}")
    i, j = diagonal_axes(a.rank, static)
    row, column = diagonal_start(static)
    rest = tuple(d for k, d in enumerate(a.shape) if k not in (i, j))
    return Type(a.dtype, (*rest, maximum(minimum(a.shape[i] - row, a.shape[j] - column, {}), NONE, {})))


def _pull_diagonal(index: tuple[Dim, ...], a: Type, static: dict[str, Any]) -> tuple[Dim, ...]:
    i, j = diagonal_axes(a.rank, static)
    row, column = diagonal_start(static)
    rest = iter(index[:-1])
    return tuple(index[-1] + row if k == i else index[-1] + column if k == j else next(rest) for k in range(a.rank))


def _gathered(args: list[Type], static: dict[str, Any]) -> str:
    """A diagonal by its positions: how one that is not that of a square is differentiated."""
    i, j = diagonal_axes(args[0].rank, static)
    order = (*(k for k in range(args[0].rank) if k not in (i, j)), i, j)
    places = f"np.arange(max(min(a.shape[{i}] - {{0}}, a.shape[{j}] - {{1}}), 0))".format(*diagonal_start(static))
    moved = "a" if order == tuple(range(args[0].rank)) else f"np.transpose(a, {order})"
    row, column = (places if k == NONE else f"{places} + {k}" for k in diagonal_start(static))
    return f"{moved}[{':, ' * (args[0].rank - 2)}{row}, {column}]"


def _trace(args: list[Type], static: dict[str, Any]) -> Type:
    dtype = {"bool": "i64", "i32": "i64"}.get(args[0].dtype, args[0].dtype)
    return Type(dtype, _diagonal(args, static).shape[:-1])


def _triangle(args: list[Type], static: dict[str, Any]) -> Type:
    if args[0].rank < 2:
        raise TypingError("shape", f"a triangle needs two axes, got shape {shape_text(args[0].shape)}")
    return args[0]


def _tri(args: list[Type], static: dict[str, Any]) -> Type:
    if static["N"] is None:
        raise TypingError("type", "np.tri needs a number of rows")
    n, m = static["N"], static["M"] if static["M"] is not None else static["N"]
    return Type(static["dtype"] or "real", (n, m))


def _below(index: tuple[Dim, ...], args: list[ir.Expr], static: dict[str, Any]) -> ir.Expr:
    return ir.Op("less_equal", (ir.Int(index[1]), ir.Int(index[0] + static["k"])), "bool")


# -- padding ---------------------------------------------------------------------------------------------------
def _padded(args: list[Type], static: dict[str, Any]) -> Type:
    a, widths = args[0], static["pad_width"]
    if any(w.value is not None and w.value < 0 for pair in widths for w in pair):
        raise TypingError("shape", "index can't contain negative values")
    return Type(a.dtype, tuple(before + d + after for d, (before, after) in zip(a.shape, widths, strict=True)))


_DIAGONAL = "a, offset: offset = 0, axis1: axis = 0, axis2: axis = 1"

add(
    Row("repeat", "np.repeat", "a, repeats: extent, axis: axis = None", "move", _repeated, ("ungroup(dy)",), pull=_pull_repeated),
    Row("tile", "np.tile", "a, reps: shape", "move", _tiled, ("ungroup(dy)",), pull=_pull_tiled),
    Row("roll", "np.roll", "a, shift: extent, axis: axis = None", "body", _rolled, ("np.roll(dy, -shift, axis=axis)",), body=bodies.roll, each="rest"),
    Row("diagonal", "np.diagonal", _DIAGONAL, "move", _diagonal, ("on_diagonal(dy)",), pull=_pull_diagonal, define=_gathered, view=True),
    Row(
        "trace", "np.trace", _DIAGONAL, "compose", _trace, ("on_diagonal(dy)",),
        define="np.sum(np.diagonal(a, offset=offset, axis1=axis1, axis2=axis2), axis=-1)",
    ),
    Row("tri", "np.tri", "N: extent, M: extent = None, k: extent = 0, dtype: dtype = None", "make", _tri, ZERO, make=_below),
    Row("tril", "np.tril", "a, k: extent = 0", "alias", _triangle, ("np.tril(dy, k)",), define="np.where(np.tri(a.shape[-2], a.shape[-1], k, dtype=bool), a, 0)"),
    Row("triu", "np.triu", "a, k: extent = 0", "alias", _triangle, ("np.triu(dy, k)",), define="np.where(np.tri(a.shape[-2], a.shape[-1], k - 1, dtype=bool), 0, a)"),
    Row(
        "pad", "np.pad", "a, value, pad_width: value", "special", _padded,
        ("inside(dy)", "np.sum(dy) - np.sum(inside(dy))"),
    ),
)

__all__ = ["diagonal_axes", "diagonal_start", "promote", "tile_counts"]
