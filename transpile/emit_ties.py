"""Loops that count the elements of a rectangle that equal a number, or give each of them a share: ties of a largest;
and those that look for the first of them in a row.

    for i: for j: n += i64(x[i, j] == top)                       n += lc_equal_in(&x[0, 0], rows, step, columns, top)
    for i: for j: d[i, j] += or_zero(x[i, j] == top, share)  ->  lc_give_in(&d[0, 0], ..., top, share)
    for j in 0..n: at min= where(x[j] == top, j, n - 1)          lc_place(lc_first(&x[0], n, top), 0, n - 1)

gcc counts in 64 bits what it compares in 32, and goes over a row that fills no vector one by one. One place, or few,
has what is looked for: of all others nothing need be loaded or stored (`rows.h`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .dims import Dim, nonnegative
from .emit_rows import SHORT, is_straight
from .ir import FLOATS, Buffer, Cast, Const, Expr, For, Int, Load, Op, Scalar, Store


@dataclass(frozen=True)
class Ties:
    rows: For | None
    row: For
    store: Store
    source: Load  # whose elements are compared
    number: Expr
    share: Expr | None  # None: they are counted


def ties_of(loop: For, table: Mapping[str, Buffer], root: Mapping[str, str]) -> Ties | None:
    """What two nested loops, or one, count or give shares to, if that is all that they do."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    rows, row = (loop, inner) if isinstance(inner, For) else (None, loop)
    if any(x.kind != "map" or x.parallel for x in (loop, row)) or len(row.body) != 1:
        return None
    size = (row.hi - row.lo).value
    if (size is not None and size < SHORT) or (rows and rows.var in row.lo.symbols() | row.hi.symbols()):
        return None
    match row.body[0]:
        case Store(_, (), Cast(Op("equal", (Load() as source, number)), "i64"), "add") as store:
            share, places = None, [source]
        case Store(name, index, Op("or_zero", (Op("equal", (Load() as source, number)), share), dtype), "add") as store:
            places = [source, Load(name, index, dtype)]
            if root.get(name, name) == root.get(source.buffer, source.buffer):
                return None
        case _:
            return None
    kinds = {table[place.buffer].dtype for place in places}
    still = all(_is_still(e) for e in (number, share) if e)
    straight = all(is_straight(place, rows, row, table) for place in places)
    found = still and straight and len(kinds) == 1 and kinds <= {*FLOATS}
    return Ties(rows, row, store, source, number, share) if found else None


@dataclass(frozen=True)
class First:
    row: For
    store: Store
    source: Load  # whose elements are compared
    number: Expr
    begin: Dim  # what the place of the first element is called
    none: Dim  # what there is instead, where no element equals the number


def first_of(row: For, table: Mapping[str, Buffer]) -> First | None:
    """What a loop looks for, if that is all that it does."""
    if row.kind != "map" or row.parallel or len(row.body) != 1:
        return None
    match row.body[0]:
        case Store(
            _, (), Op("where", (Op("equal", (Load() as source, number)), Int(place), Int(none)), "i64"), "min"
        ) as store:
            first = place - Dim.of(row.var)
        case _:
            return None
    if row.var in first.symbols() | none.symbols() or not nonnegative(none + 1 - first - row.hi):
        return None
    kinds = {table[source.buffer].dtype}
    found = _is_still(number) and is_straight(source, None, row, table) and kinds <= {*FLOATS}
    return First(row, store, source, number, first + row.lo, none) if found else None


def _is_still(number: Expr) -> bool:
    return isinstance(number, (Const, Scalar)) or (isinstance(number, Load) and not number.index)
