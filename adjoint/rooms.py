"""Arrays in which the iterations of a loop leave what their reverses need: one place for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.cut import Window, windows
from ..transpile.dims import ZERO, Dim, Facts, largest, maximum, nonnegative, unclamped
from ..transpile.program import (
    Assign,
    At,
    Expr,
    For,
    Index,
    Name,
    Stmt,
    Store,
    Type,
    assigned,
    stmt_exprs,
    walk,
)
from .places import of_axes


def position(stmt: For, rooms: Dim | None = None) -> Expr:
    """The number of the iteration, from 0; of a window that a border cuts off, where in the window it is. `rooms`: of
    so many, those of a loop that counts down lie as what it counts does, so that it goes one way along both."""
    counter = Name(stmt.var, Type("int"), Dim.of(stmt.var))
    if rooms is not None and stmt.step == -1 and (first := value_of(stmt.start)) is not None:
        return construct.dim(unclamped(rooms) - 1 - first + Dim.of(stmt.var))
    if window := _window(stmt):
        return construct.call("subtract", counter, construct.dim(window.first))
    start = value_of(stmt.start)
    offset = counter if start == ZERO else construct.call("subtract", counter, stmt.start)
    if stmt.step == -1:
        return construct.call("subtract", stmt.start, counter)
    return offset if stmt.step == 1 else construct.call("floor_divide", offset, const(stmt.step))


def _window(stmt: For) -> Window | None:
    """What a loop goes over, if it begins at a border in some places and inside in others: all have as many rooms."""
    start, stop = value_of(stmt.start), value_of(stmt.stop)
    if stmt.step != 1 or start is None or stop is None:
        return None
    return next((w for w in windows(stop - start) if w.bottom == start), None)


def most_trips(stmt: For) -> Dim | None:
    """How often a loop runs at most: as its bounds say, or, where they depend on values, as often as an index that each
    step has stays on its axis: beyond that it fails. Places before the first are counted from the end, once. None:
    nobody knows."""
    if window := _window(stmt):
        return window.places
    exact = construct.trips(stmt.start, stmt.stop, stmt.step)
    if exact is not None:
        return exact
    start, stop = value_of(stmt.start), value_of(stmt.stop)
    if any(name == stmt.var for s in stmt.body for name in assigned((s,))):
        return None
    last = None if stop is None else stop - 1 if stmt.step > 0 else stop + 1
    lowest, highest = (start, last) if stmt.step > 0 else (last, start)
    for index, extent in _indices(stmt):
        offset = index - Dim.of(stmt.var)
        if stmt.var in offset.symbols():
            continue
        if lowest is not None:  # what it goes up to is no more than the axis has: fewer places than from its end on
            return (extent - offset - lowest + (abs(stmt.step) - 1)) // abs(stmt.step)
        if highest is not None:
            return (highest + offset + extent + abs(stmt.step)) // abs(stmt.step)
    return None


def most_rooms(stmt: For, facts: Facts, inside: Set[str]) -> Dim | None:
    """How many rooms its iterations need at most, as known outside of what `inside` names; None: unknown."""
    count = most_trips(stmt)
    if count is None:
        return None
    count = maximum(largest(count, facts), ZERO, facts)
    return None if count.symbols() & inside else count


def _indices(stmt: For) -> Iterator[tuple[Dim, Dim]]:
    """Indices that every step of a loop has, and the extents of the axes."""
    for inner in stmt.body:
        found = [(e.base.type, e.items) for x in stmt_exprs(inner) for e in walk(x) if isinstance(e, Index)]
        if isinstance(inner, Store):
            found.append((inner.base.type, inner.items))
        for type, items in found:
            for item, extent in zip(of_axes(items), type.shape, strict=True):
                if isinstance(item, At) and (index := value_of(item.index)) is not None:
                    yield index, extent


def room(name: str, type: Type, counts: Sequence[Dim]) -> tuple[Name, Stmt]:
    """An array for values of this type in as many iterations of the loops around, and the statement that makes it."""
    dtype = {"float": "real", "int": "i64"}.get(type.dtype, type.dtype)
    saved = Name(name, Type(dtype, (*map(_places, counts), *type.shape)))
    return saved, Assign(saved.id, construct.call("empty", shape=saved.type.shape, dtype=dtype))


def _places(count: Dim) -> Dim:
    """As many places as a loop may need, and no negative number of them: range(N - 1) is empty for N = 0."""
    constant = sum(c for monomial, c in count.terms if not monomial)
    above = count - constant if constant < 0 else count  # N reads better than max(0, N - 1)
    return above if nonnegative(above) else maximum(count, ZERO)


__all__ = ["most_rooms", "most_trips", "position", "room"]
