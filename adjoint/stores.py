"""The reverse of a write into an array: its cotangent goes to what was written, and what was there before gets none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.dims import Facts, product
from ..transpile.program import (
    Assign,
    At,
    Expr,
    Gather,
    Index,
    Item,
    Name,
    Slice,
    Stmt,
    Store,
    Type,
    names,
    walk,
)
from .activity import flows
from .cotangents import Cotangents
from .finality import LASTING
from .overlap import are_apart
from .point import Point
from .rules import unbroadcast
from .simplify import simplify


class Stores:
    """Mixed into `Reverser`."""

    def _store(self: Any, stmt: Store, cots: Cotangents) -> list[Stmt]:
        array = stmt.base.id
        start = len(cots.out)
        new, leaves = self._taking_back(stmt, cots) if array in self.undone else (None, [])
        if array not in self.active:
            return [*leaves, stmt]
        if cots.owns(array) and array not in cots.variables and not cots.pending.get(array):
            return [*leaves, stmt]
        variable = cots.variable(array)
        piece = simplify(construct.index(variable, stmt.items)) if not is_whole(stmt.items) else variable
        overwritten = stmt.op is None
        value = stmt.value
        kept, behind = list[Stmt](), list[Stmt]()
        if flows(value) & self.active:
            if overwritten and piece.type.rank and (self._must_clear(stmt) or array in _reads_of(value)):
                piece = self._named(piece, f"d_{array}_part", cots, copy=True)
            elif not overwritten and sum(isinstance(e, Name) and e.id == array for e in walk(value)) > 1:
                # one contribution to the array's own cotangent must not be seen by the next
                piece = self._named(piece, f"d_{array}_part", cots, copy=bool(piece.type.rank))
            elif overwritten and not piece.type.rank:
                piece = self._named(piece, f"d_{array}_part", cots) if self._must_clear(stmt) else piece
        if overwritten and self._must_clear(stmt):
            cots.emit(Store(variable, stmt.items, const(0)))
        if flows(value) & self.active:
            if overwritten and any(isinstance(i, Gather) for i in stmt.items):
                piece = self._of_last_writers(stmt, piece, cots)
            point = Point(self, cots, stmt.span)
            held = new or self._left_by(stmt)
            value = point.pull(value, unbroadcast(piece, value.type), held, quote=False, guarded=array in self.chosen)
            kept, behind = point.kept, point.behind
        self.quote(stmt.span, cots.out, start)
        return [*kept, *leaves, replace(stmt, value=value), *behind]

    def _left_by(self: Any, stmt: Store) -> Expr | None:
        """What holds the value of a write from then on: its place in the array, if it stays."""
        place = construct.index(replace(stmt.base, value=LASTING), stmt.items)
        stays = stmt.op is None and (stmt.base.id, stmt.span) in self.settled
        plain = all(isinstance(i, (At, Slice)) for i in stmt.items) and place.type == stmt.value.type
        return place if stays and plain else None

    def _of_last_writers(self: Any, stmt: Store, piece: Expr, cots: Cotangents) -> Expr:
        """In y[i] = v with an index array, of the values that go to one place the last stays: the others get no
        cotangent."""
        shape = construct.index(stmt.base, stmt.items).type.shape
        order = construct.call("arange", start=construct.ZERO, stop=product(shape))
        if len(shape) > 1:
            order = construct.call("reshape", order, shape=shape)
        last = self.new("last", Type("i64", stmt.base.type.shape))
        cots.emit(Assign(last.id, construct.call("zeros", shape=last.type.shape, dtype="i64")))
        cots.emit(Store(last, stmt.items, order))
        stays = construct.call("equal", construct.index(last, stmt.items), order)
        return construct.call("where", stays, piece, const(0))

    def _must_clear(self: Any, stmt: Store) -> bool:
        """Whether an overwritten place could still receive the cotangent of what it held before."""
        return stmt.base.id not in self.written_once or not _reads_elsewhere(stmt, self.facts)


def is_whole(items: Sequence[Item]) -> bool:
    return all(isinstance(i, Slice) and i.start is None and i.stop is None and i.step == 1 for i in items)


def _reads_elsewhere(stmt: Store, facts: Facts) -> bool:
    """Whether the value reads the array, if at all, at places that are provably not the one written."""
    for expr in walk(stmt.value):
        if isinstance(expr, Index) and expr.base == stmt.base:
            if not are_apart(expr.items, stmt.items, facts):
                return False
    whole = sum(isinstance(e, Name) and e.id == stmt.base.id for e in walk(stmt.value))
    return whole == sum(isinstance(e, Index) and e.base == stmt.base for e in walk(stmt.value))


def _reads_of(expr: Expr) -> set[str]:
    return names(expr)


__all__ = ["Stores", "is_whole"]
