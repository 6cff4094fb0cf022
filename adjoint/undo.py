"""The reverse of loops that write into arrays again and again: it takes back each write, so that every read is of what
the forward read.

for k ...:                                   for k ...:
    m[k] -= factor[k] * m[0]                     m_saved[k] = m[k]; m[k] -= ...
                                      ->     for k in reversed ...:
                                                 m[k] = m_saved[k]; d_factor[k] -= sum(d_m[k] * m[0]); ...

Going back, an iteration begins with the arrays as the forward left them at its end. What the body computed from them
cannot be computed again from there, so those values, too, are left by the forward: one place for each iteration of all
the loops around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.dims import Dim
from ..transpile.operations import ROWS
from ..transpile.program import (
    Assign,
    At,
    Call,
    Expr,
    For,
    If,
    Item,
    Name,
    Pop,
    Push,
    Slice,
    Stmt,
    Store,
    Type,
    While,
    blocks,
    names,
    stmt_exprs,
    stored,
    walk,
    walk_stmts,
)
from .blocks import rebound
from .cotangents import Cotangents
from .rooms import most_rooms, position, room
from .values import CHEAP, cost, hint
from .versions import with_versions

PLACE = 3 * CHEAP  # flops of what is made of integers, conditions and places: quotients by constants are shifts
LOST = "<lost>"  # stands for a value that the forward cannot leave


class CannotUndo(Exception):
    """Something in these loops cannot be taken back: their arrays get versions instead."""


@dataclass
class Nest:
    """The loops around, from the outermost that writes into an array of outside."""

    positions: list[Expr] = field(default_factory=list)
    counts: list[Dim] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)  # what the outermost of them binds
    rooms: list[Stmt] = field(default_factory=list)  # made before it
    branches: dict[int, tuple[If, If]] = field(default_factory=dict)  # by id: one, and what restores its results


class Undo:
    """Mixed into `Reverser`."""

    nest: Nest | None

    def _is_undone(self: Any, stmt: For | While) -> bool:
        return bool(self.nest or stored(stmt.body) & self.undone - rebound(stmt.body))

    def _undone_loop(self: Any, stmt: For | While, cots: Cotangents, before: set[str]) -> list[Stmt]:
        carried = rebound(stmt.body) & before
        if isinstance(stmt, While) or carried & stored(stmt.body) or _has_lists(stmt.body):
            raise CannotUndo
        inside, leaving = with_versions(stmt.body, carried, self.versioned, self.types, self.version)
        touched = [n for n in sorted(self._touched(inside)) if n not in carried]
        if not any(n in self.active for n in [*touched, *carried]):
            if stored(stmt.body) & self.undone:
                raise CannotUndo
            return [stmt]
        outermost = self.nest is None
        if outermost:
            counters = {s.var for s in walk_stmts((stmt,)) if isinstance(s, For)}
            self.nest = Nest(inside=rebound([stmt]) | counters)
        nest = self.nest
        nest.counts.append(self._most(stmt))
        nest.positions.append(position(stmt, nest.counts[-1]))
        self.quote(stmt.span, cots.out, len(cots.out), always=True)
        flowing = {n for n in carried & self.active if self._flows_in(n, inside, cots)}
        inner = self._inner(cots, inside, carried, flowing, touched)
        for name in sorted(flowing):
            inner.pending[leaving.get(name, name)] = [cots.variable(name)]
        swept = self.block(inside, inner, before | carried)
        self._leave(flowing, cots, inner)
        entering = [self._left(n) for n in sorted(carried)]
        filled, restored = self._leaving(swept)
        filled += [Assign(n, Name(leaving[n], self.types[n])) for n in sorted(carried) if leaving.get(n, n) != n]
        nest.positions.pop()
        nest.counts.pop()
        body = [*(back for _, back in entering), *restored, *inner.out]
        cots.emit(self._backward(stmt, const(0), body))
        forward = replace(stmt, body=(*(s for saving, _ in entering for s in saving), *filled))
        if not outermost:
            return [forward]
        self.nest = None
        return [*nest.rooms, forward]

    def _undone_branch(
        self: Any, stmt: If, branches: Sequence[tuple[list[Stmt], list[Stmt]]], cots: Cotangents
    ) -> list[Stmt]:
        """A branch in such a loop. The reverse is told which way was taken, if it cannot tell by itself."""
        chosen, telling = stmt.cond, []
        if not self._again(stmt.cond):
            chosen = self.new("chosen", stmt.cond.type)
            telling = [Assign(chosen.id, stmt.cond, stmt.span)]
        (then, then_out), (orelse, else_out) = branches
        then, then_back = self._leaving(then)
        orelse, else_back = self._leaving(orelse)
        cots.emit(If(chosen, (*then_back, *then_out), (*else_back, *else_out), stmt.span))
        forward = If(chosen, tuple(then), tuple(orelse), stmt.span)
        self.nest.branches[id(forward)] = forward, If(chosen, tuple(then_back), tuple(else_back), stmt.span)
        return [*telling, forward]

    def _most(self: Any, stmt: For) -> Dim:
        """How often a loop runs at most."""
        count = most_rooms(stmt, self.facts, self.nest.inside)
        if count is None:
            raise CannotUndo
        return count

    def _leaving(self: Any, swept: Sequence[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
        """A block with what it leaves for the reverse, and what there stands for it: cheap values are computed again
        from those left."""
        filled: list[Stmt] = []
        restored: list[Stmt] = []
        filling = stored(tuple(swept))
        for stmt in swept:
            filled.append(stmt)
            if isinstance(stmt, Assign) and self._again(stmt.value):
                restored.append(stmt)
                continue
            if isinstance(stmt, If) and not rebound((stmt,)) & filling and (ways := self._ways(stmt)) is not None:
                filled[-1], back = ways
                restored.append(back)
                anew = self._on_many_ways(back)
            else:
                anew = rebound((stmt,)) - filling if isinstance(stmt, Assign) or blocks(stmt) else set()
            for name in sorted(anew):
                saving, back = self._left(name)
                filled += saving
                restored.append(back)
        for name in sorted(rebound(swept) & filling):
            saving, back = self._left(name)
            filled += saving
            restored.append(back)
        return filled, restored

    def _ways(self: Any, stmt: If) -> tuple[If, If] | None:
        """A branch with what it leaves, and one that restores its results on the way that was taken: a result that is
        left on that way, or is made again, needs no room of its own."""
        if id(stmt) in self.nest.branches:
            return self.nest.branches[id(stmt)]
        if not self._again(stmt.cond):
            return None
        then, then_back = self._leaving(stmt.then)
        orelse, else_back = self._leaving(stmt.orelse)
        done = replace(stmt, then=tuple(then), orelse=tuple(orelse))
        return done, replace(stmt, then=tuple(then_back), orelse=tuple(else_back))

    def _on_many_ways(self: Any, back: If) -> set[str]:
        """Results that would need a room for each of several ways: behind the branch one will do."""
        rooms = {s.name for s in self.nest.rooms if isinstance(s, Assign)}
        taken = Counter(s.name for s in walk_stmts((back,)) if isinstance(s, Assign) and names(s.value) & rooms)
        return {name for name in rebound((back,)) if taken[name] > 1}

    def _left(self: Any, name: str) -> tuple[list[Stmt], Stmt]:
        """The statement that leaves the value of a name in this iteration, and the one that restores it."""
        type = self.types[name]
        if {s for d in type.shape for s in d.symbols()} & self.nest.inside:
            return [], Assign(name, Name(LOST, type))
        saved = self._room_in_nest(name, type)
        place = [At(p) for p in self.nest.positions]
        return [Store(saved, construct.complete(saved, place), Name(name, type))], Assign(
            name, construct.index(saved, place)
        )

    def _room_in_nest(self: Any, name: str, type: Type) -> Name:
        saved, make = room(self.fresh(f"{name}_saved"), type, self.nest.counts)
        self.nest.rooms.append(make)
        return saved

    def _again(self: Any, value: Expr) -> bool:
        """Whether the reverse may compute it, where the arrays have gone on to change."""
        whole = not any(e.type.is_float for e in walk(value))
        most = PLACE if whole else CHEAP
        if any(isinstance(e, Name) and e.id in self.written for e in walk(value)) or cost(value) > most:
            return False
        return all(ROWS[e.op].kind not in ("draw", "derivative") for e in walk(value) if isinstance(e, Call))

    def _taking_back(self: Any, stmt: Store, cots: Cotangents) -> tuple[Expr | None, list[Stmt]]:
        """Emits what takes a write back. Returns a name for what it had written, and what leaves the value it went
        over."""
        slices, shape = _slices(stmt)
        if any(isinstance(e, Name) and e.id in self.written for e in _item_exprs(stmt)):
            raise CannotUndo
        place = construct.index(stmt.base, stmt.items)
        new: Name | None = None
        if stmt.op is None and not _is_of_shares(stmt.value) and place.type == stmt.value.type:
            new = self._named(place, hint(stmt.value), cots, copy=bool(place.type.rank))
        if self.nest is None:
            name = self.fresh(f"{stmt.base.id}_saved")
            self.types[name] = place.type
            leaves: Stmt = Assign(name, construct.call("copy", place) if place.type.rank else place)
            old: Expr = Name(name, place.type)
        elif {s for d in shape for s in d.symbols()} & self.nest.inside:
            raise CannotUndo
        else:
            saved = self._room_in_nest(stmt.base.id, Type(stmt.base.type.dtype, shape))
            items = construct.complete(saved, [*(At(p) for p in self.nest.positions), *slices])
            leaves, old = Store(saved, items, place), construct.index(saved, items)
        cots.emit(Store(stmt.base, stmt.items, old, undoes=True))
        return new, [leaves]


def _slices(stmt: Store) -> tuple[list[Item], tuple[Dim, ...]]:
    """Those of the items of a write that are slices, and the extents of the axes they are of."""
    if not all(isinstance(i, (At, Slice)) for i in stmt.items):
        raise CannotUndo
    sliced = [(i, d) for i, d in zip(stmt.items, stmt.base.type.shape, strict=True) if isinstance(i, Slice)]
    return [i for i, _ in sliced], tuple(d for _, d in sliced)


def _is_of_shares(value: Expr) -> bool:
    """Whether it costs no more to make it again: of the logarithm of a sum the reverse asks for the shares, which the
    compiler makes of the terms without it, and more exactly than of what was rounded (`Point._result`)."""
    return cost(value) <= CHEAP or (isinstance(value, Call) and value.op == "logaddexp")


def _item_exprs(stmt: Store) -> list[Expr]:
    return [e for one in stmt_exprs(replace(stmt, value=const(0))) for e in walk(one)]


def _has_lists(body: Sequence[Stmt]) -> bool:
    return any(isinstance(s, (Push, Pop, While)) for s in walk_stmts(tuple(body)))


def is_lost(body: Sequence[Stmt]) -> bool:
    """Whether the reverse needs a value that the forward could not leave."""
    return any(LOST in names(e) for s in walk_stmts(tuple(body)) for e in stmt_exprs(s))


__all__ = ["CannotUndo", "Nest", "Undo", "is_lost"]
