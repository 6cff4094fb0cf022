"""Arrays that are written again and again, of whose old content the reverse reads little: that is left by the forward,
in place of what each write went over.

before:  for i ...: for k ...:                       after:  for i ...:
             m_saved[i, k] = m[k]                                m_read[i] = m[i]
             m[k] -= f * m[i]            # k != i                for k ...: m[k] -= f * m[i]
         for i ... back: for k ... back:                     for i ... back: for k ... back:
             m[k] = m_saved[i, k]                                d_f -= d_m[k] * m_read[i]
             d_f -= d_m[k] * m[i]

A place that a whole loop reads and does not write is left once, before that loop: elimination keeps a row for each of
its steps, and no matrix. Done where all that is left has fewer axes than what it replaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from ..transpile import construct
from ..transpile.clean import clean
from ..transpile.construct import value_of
from ..transpile.dims import ZERO, Dim, Facts, maximum
from ..transpile.program import (
    Assign,
    At,
    Expr,
    For,
    Function,
    If,
    Index,
    Item,
    Name,
    Pop,
    Slice,
    Span,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    blocks,
    item_exprs,
    map_children,
    names,
    read,
    walk_stmts,
)
from ..transpile.renaming import map_stmt
from ..transpile.values import Fresh
from .blocks import taken
from .finality import meeting, settled
from .linear import Form, contradictory
from .places import Access, Guards, bounds, cases, linear
from .rooms import most_rooms, position, room
from .sizes import degree

T = TypeVar("T")
Body = tuple[Stmt, ...]
Loops = tuple[For, ...]
Key = tuple[Span, str]  # of a loop: where it stands, and its counter


class _Stays(Exception):
    """The reverse goes on to take this array's writes back."""


def by_operands(function: Function, sweep: Sequence[Stmt], body: Body, facts: Facts) -> tuple[list[Stmt], Body]:
    """The forward sweep and the body of the gradient, with what the reverse reads in place of what is taken back."""
    sweep = list(sweep)
    fresh = Fresh(taken(function) | assigned(tuple(sweep)) | assigned(body) | read(body))
    undone = {s.base.id for s in walk_stmts(body) if isinstance(s, Store) and s.undoes}
    for array in sorted(undone):
        try:
            reverse = _Reverse(function, body, array, facts, fresh)
            rest = reverse.rewritten()
        except _Stays:
            continue
        if reverse.is_less():
            body = clean([*_with_saves(reverse.head, reverse.saves), *rest])
            if _means_the_same(sweep, reverse):  # else the pullback runs the forward again
                sweep = _with_saves(sweep, reverse.saves)
    return sweep, body


def _means_the_same(sweep: Sequence[Stmt], reverse: _Reverse) -> bool:
    """Whether what is left in the body can be left in the sweep as well, where `merge` has renamed nothing yet."""
    bound = Counter(s.name for s in walk_stmts(tuple(sweep)) if isinstance(s, (Assign, Pop)))
    loops = Counter((s.span, s.var) for s in walk_stmts(tuple(sweep)) if isinstance(s, For))
    stores = [save.store for saves in reverse.saves.values() for save in saves]
    named = read(tuple(stores)) & reverse.bound.keys()
    return all(bound[name] == 1 for name in named) and all(loops[key] == 1 for key in reverse.saves)


@dataclass(frozen=True)
class _Save:
    """What a loop reads of the array, left before it; `make`: the room for it."""

    room: Name
    make: Stmt
    store: Stmt


@dataclass(frozen=True)
class _Moment:
    """Where and when in the reverse something is read; `last`: what was taken back just before."""

    loops: Loops
    guards: Guards
    time: int
    last: Store | None

    def access(self, base: Expr, items: tuple[Item, ...] | None) -> Access:
        return Access(items, base.type.shape, self.loops, self.guards, self.time)


@dataclass
class _Reverse:
    """What takes the writes into one array back, and reads it as it then is.

    Time is that of the forward: a loop back stands for the loop it takes back, and what comes later in the text for
    what was earlier.
    """

    function: Function
    body: Body
    array: str
    facts: Facts
    fresh: Fresh
    writes: list[Access] = field(default_factory=list)
    saves: dict[Key, list[_Save]] = field(default_factory=dict)  # before which loop of the forward
    known: dict[tuple[Key, tuple[Item, ...]], Name] = field(default_factory=dict)
    logs: list[Type] = field(default_factory=list)  # what the writes went over
    clock: int = 0

    def __post_init__(self) -> None:
        cut = next(k for k, s in enumerate(self.body) if self.undoes(s))
        self.head, self.rest = self.body[:cut], self.body[cut:]
        loops = [s for s in walk_stmts(self.head) if isinstance(s, For)]
        times = Counter((s.span, s.var) for s in loops)
        self.forward = {(s.span, s.var): s for s in loops if times[s.span, s.var] == 1}
        self.bound = Counter(s.name for s in walk_stmts(self.body) if isinstance(s, (Assign, Pop)))
        self.stable = {p.name for p in self.function.params} - self.bound.keys()
        self.stable |= {s.name for s in self.head if isinstance(s, Assign) and self.bound[s.name] == 1}

    def rewritten(self) -> Body:
        """The reverse without the writes that take back, reading what is left. Raises _Stays."""
        if self.bound[self.array] != 1:
            raise _Stays
        self.note(self.rest, (), ())
        self.clock = 0
        return self.block(self.rest, (), ())

    def is_less(self) -> bool:
        """Whether what is left in addition has fewer axes than what the writes went over."""
        left = [degree(s.room.type) for saves in self.saves.values() for s in saves]
        return max(map(degree, self.logs)) > max(left, default=-1)

    def undoes(self, stmt: Stmt) -> bool:
        return any(isinstance(s, Store) and s.undoes and s.base.id == self.array for s in walk_stmts((stmt,)))

    def around(self, loop: For | While) -> For:
        """The loop of the forward that a loop takes back."""
        if not isinstance(loop, For) or (loop.span, loop.var) not in self.forward:
            raise _Stays
        return self.forward[loop.span, loop.var]

    # -- writes ------------------------------------------------------------------------------------------------
    def note(self, body: Sequence[Stmt], loops: Loops, guards: Guards) -> None:
        """All that is taken back, and when; in the order of `block`."""
        for stmt in body:
            self.clock += 1
            if isinstance(stmt, Store) and stmt.base.id == self.array:
                if not stmt.undoes:
                    raise _Stays
                self.writes.append(Access(stmt.items, stmt.base.type.shape, loops, guards, -self.clock))
                self.logs.append(stmt.value.base.type if isinstance(stmt.value, Index) else stmt.value.type)
            self.inside(stmt, loops, guards, self.note)

    def inside(self, stmt: Stmt, loops: Loops, guards: Guards, visit: Callable[[Body, Loops, Guards], T]) -> list[T]:
        """`visit` of each block in a statement."""
        if isinstance(stmt, (For, While)) and (self.undoes(stmt) or self.array in read((stmt,))):
            loops = (*loops, self.around(stmt))
        ways = [(*guards, (stmt.cond, holds)) for holds in (True, False)] if isinstance(stmt, If) else [guards]
        return [visit(part, loops, held) for part, held in zip(blocks(stmt), ways, strict=False)]

    # -- reads -------------------------------------------------------------------------------------------------
    def block(self, body: Sequence[Stmt], loops: Loops, guards: Guards) -> Body:
        done: list[Stmt] = []
        last: Store | None = None  # what has just been taken back here
        for stmt in body:
            self.clock += 1
            if isinstance(stmt, Store) and stmt.undoes and stmt.base.id == self.array:
                last = stmt
                continue
            here = partial(self.expr, here=_Moment(loops, guards, -self.clock, last))
            parts = iter(self.inside(stmt, loops, guards, self.block))
            done.append(map_stmt(stmt, here, lambda _, parts=parts: next(parts), lambda n: n))
            if self.undoes(stmt) or (last and assigned((stmt,)) & _named(last.items)):
                last = None
        return tuple(done)

    def expr(self, expr: Expr, here: _Moment) -> Expr:
        match expr:
            case Index(base=Name(id=self.array)):
                if self.array in _named(expr.items):
                    raise _Stays
                return self.gone_over(expr, here) or self.left(expr, here)
            case Name(id=self.array) if not self.is_final(here.access(expr, None)):
                raise _Stays
        return map_children(expr, partial(self.expr, here=here))

    def gone_over(self, expr: Index, here: _Moment) -> Expr | None:
        """A value that has just been taken back, or a part of it: the forward left it."""
        if here.last is None or len(expr.items) != len(here.last.items):
            return None
        old = here.last.value
        if expr.items != here.last.items:
            parts = _part_of(here.last.items, expr.items, here)
            if parts is None or not isinstance(old, Index):
                return None
            places = old.items[: len(old.items) - len(parts)]
            old = construct.index(old.base, construct.complete(old.base, [*places, *parts]))
        return old

    def is_final(self, access: Access) -> bool:
        """Whether what is read is what the array is left with."""
        return all(settled(write, access, 0) for write in self.writes)

    def left(self, expr: Index, here: _Moment) -> Expr:
        """The value of a read: where it is left, or the array itself, where nothing writes there any more."""
        access = here.access(expr.base, expr.items)
        if self.is_final(access):
            return expr
        for level, loop in enumerate(here.loops):
            if self.is_constant(level, access) and (within := self.needed(expr, here.loops, level)) is not None:
                return self.before(loop, expr, here.loops[:level], within)
        raise _Stays

    def is_constant(self, level: int, access: Access) -> bool:
        """Whether nothing in a loop around writes to a place it reads. What the loop writes for good, as nobody asks
        what it went over, is there when the reverse reads, and not before the loop."""
        around, loop = access.loops[:level], access.loops[level]
        stores = [s for s in walk_stmts(loop.body) if isinstance(s, Store) and s.base.id == self.array]
        if len(stores) != sum(len(w.loops) > level and w.loops[level] is loop for w in self.writes):
            return False
        outer = _forms(bounds(around))
        inner = replace(access, loops=access.loops[level:])
        for write in self.writes:
            if len(write.loops) > level and write.loops[level] is loop:
                pairs = (
                    (a, b)
                    for a in cases(replace(write, loops=write.loops[level:]), "write")
                    for b in cases(inner, "read")
                )
                if not all(contradictory([*outer, *a.forms, *b.forms, *meeting(a, b)]) for a, b in pairs):
                    return False
        return True

    def needed(self, expr: Index, loops: Loops, level: int) -> Loops | None:
        """The loops over the places that are read, from this level on; None where some may not be there."""
        wanted = _named(expr.items)
        for loop in reversed(loops[level:]):
            if loop.var in wanted:
                wanted |= names(loop.start) | names(loop.stop)
        within = tuple(loop for loop in loops[level:] if loop.var in wanted)
        known = self.stable | {loop.var for loop in (*loops[:level], *within)}
        outer = set().union(*(names(loop.start) | names(loop.stop) for loop in within)) if within else set()
        if not wanted | outer <= known or not _are_there(expr, (*loops[:level], *within)):
            return None
        return within

    def before(self, loop: For, expr: Index, around: Loops, within: Loops) -> Expr:
        """What is read, left before a loop of the forward."""
        key = loop.span, loop.var
        slices = [(i, d) for i, d in zip(expr.items, expr.base.type.shape, strict=True) if isinstance(i, Slice)]
        places = [At(position(one)) for one in (*around, *within)]
        if (key, expr.items) not in self.known:
            type = Type(expr.base.type.dtype, tuple(d for _, d in slices))
            saved, make = room(self.fresh(f"{self.array}_read"), type, [self.trips(o) for o in (*around, *within)])
            store: Stmt = Store(saved, construct.complete(saved, [*places, *(i for i, _ in slices)]), expr)
            for one in reversed(within):
                store = replace(one, body=(store,))
            self.saves.setdefault(key, []).append(_Save(saved, make, store))
            self.known[key, expr.items] = saved
        saved = self.known[key, expr.items]
        return construct.index(saved, construct.complete(saved, [*places, *(i for i, _ in slices)]))

    def trips(self, loop: For) -> Dim:
        count = most_rooms(loop, self.facts, {s.var for s in walk_stmts(self.body) if isinstance(s, For)})
        if count is None:
            raise _Stays
        return count


def _named(items: Sequence[Item]) -> set[str]:
    return set().union(*(names(e) for item in items for e in item_exprs(item))) if items else set()


def _forms(dims: Sequence[Dim]) -> list[Form]:
    return [f for d in dims if (f := linear(d, "", set())) is not None]


def _are_there(expr: Index, loops: Loops) -> bool:
    """Whether the array has every place that is read in these loops, whatever the conditions around the reading."""
    around = [*bounds(loops), *expr.base.type.shape]  # of which none is below 0
    return len(expr.items) == expr.base.type.rank and all(
        _is_within(item, ZERO, extent, around) for item, extent in zip(expr.items, expr.base.type.shape, strict=True)
    )


def _is_within(item: Item, low: Dim, high: Dim, around: Sequence[Dim]) -> bool:
    """Whether an index or a slice is of places from `low` to below `high`, where all of `around` is at least 0."""
    match item:
        case At(index) if (place := value_of(index)) is not None:
            past = [low - place - 1, place - high]
        case Slice(step=1, first=first, extent=count):
            past = [low - first - 1]
            if count != maximum(high - first, ZERO):  # all that there is from there on
                past += [first + count - high - 1, -count - 1]
        case _:
            return False
    forms = _forms(around)
    return all(len(f) == 1 and contradictory([*forms, *f]) for f in (_forms([d]) for d in past))


def _part_of(whole: Sequence[Item], part: Sequence[Item], here: _Moment) -> list[Item] | None:
    """The items of a part on the axes where the whole has slices; None if it may reach beyond them."""
    found: list[Item] = []
    for item, of in zip(part, whole, strict=True):
        if isinstance(of, Slice):
            if not _is_within(item, of.first, of.first + of.extent, bounds(here.loops)):
                return None
            found.append(item)
        elif item != of:
            return None
    return found


def _with_saves(body: Sequence[Stmt], saves: dict[Key, list[_Save]]) -> list[Stmt]:
    """With what is to be left before loops, and the rooms for it before the outermost ones."""

    def block(body: Sequence[Stmt]) -> Body:
        done: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                done += [s.store for s in saves.get((stmt.span, stmt.var), [])]
            done.append(map_stmt(stmt, lambda e: e, block, lambda n: n) if blocks(stmt) else stmt)
        return tuple(done)

    done: list[Stmt] = []
    for stmt in body:
        inner = [s for s in walk_stmts((stmt,)) if isinstance(s, For)]
        done += [save.make for s in inner for save in saves.get((s.span, s.var), [])]
        done += block((stmt,))
    return done


__all__ = ["by_operands"]
