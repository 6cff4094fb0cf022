"""The largest, or the smallest, that a loop has seen: its derivative goes to where it was found, once it is known.

    top = -np.inf                            largest = -np.inf
    for j in range(n):                       for j in range(n): largest = max(largest, x[j])
        top = max(top, x[j])          ->     ties = sum of 1.0 where x[j] == largest
    ...                                      shares = sum of x[j] / ties where x[j] == largest
                                             top = with_derivative(largest, shares)

Otherwise the reverse would need what had been the largest before each step, and ask the steps one after the other.
Equal ones share evenly, as those of `max(a, b, c)` and of `np.max` do. Where a branch keeps the largest, one of equal
ones is kept, and has all of it:

    for j in range(n):                       at = n - 1
        if x[j] > top: top = x[j]     ->     for j in range(n): at = min(at, j if x[j] == largest else n - 1)
                                             top = with_derivative(largest, x[at] if largest > top else top)

What is asked whether it is the largest is computed a second time for that, where it is the same to the last bit: read,
added and chosen, not multiplied. Else the loop leaves it in a row, along which another loop asks. The few elements of a
window, whose extents are known or configuration, stay in registers as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.dims import ZERO, Dim
from ..transpile.merge import mentions, merged_block
from ..transpile.program import (
    FLOATS,
    Assign,
    At,
    Call,
    Const,
    Expr,
    For,
    Function,
    If,
    Index,
    Name,
    Span,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    children,
    map_children,
    names,
    read,
    stmt_exprs,
    stored,
    walk,
    walk_stmts,
)
from ..transpile.renaming import rename_block
from ..transpile.values import Fresh
from .blocks import branch, rebound, taken
from .larger import HINTS, Update, made_by, update_of
from .rooms import most_rooms, most_trips, room

FEW = 64  # elements of a window
_EXACT = ("add", "subtract", "negative", "abs", "maximum", "minimum", "where")  # no part of an `a * b + c`


@dataclass(frozen=True)
class _Row:
    """A loop that leaves what it asks for in a row, with what stands before it, and a loop that asks that."""

    begun: list[Stmt]
    filled: For
    asked: For
    update: Update


def by_ties(function: Function, idle: Set[str]) -> tuple[Function, frozenset[str]]:
    """The function with shares for such numbers, and the names of the extremes, through which no derivative flows any
    more. `idle`: those through which none flows anyway."""
    config = frozenset(p.name for p in function.params if p.role == "config")
    merged = merged_block(function.body)
    left = read(merged) | assigned(merged)
    state = _Ties(Fresh(taken(function)), idle, config, mentions(function.body), left)
    body = state.block(function.body, {p.name for p in function.params})
    return (replace(function, body=body) if state.found else function), frozenset(state.found)


@dataclass
class _Ties:
    fresh: Fresh
    idle: Set[str]
    config: Set[str]
    mentions: Counter[str]
    lasting: Set[str]  # names that are left where one running value has one name
    found: set[str] = field(default_factory=set)

    def block(self, body: Sequence[Stmt], before: set[str]) -> tuple[Stmt, ...]:
        before = set(before)
        done: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                done += self.loop(stmt, before, done)
            elif isinstance(stmt, If):
                ways = (self.block(stmt.then, before), self.block(stmt.orelse, before))
                done.append(replace(stmt, then=ways[0], orelse=ways[1]))
            elif isinstance(stmt, While):
                done.append(replace(stmt, body=self.block(stmt.body, before)))
            else:
                done.append(stmt)
            before |= rebound((stmt,))
        return tuple(done)

    def loop(self, loop: For, before: set[str], done: list[Stmt]) -> list[Stmt]:
        starts: list[Stmt] = []
        ends: list[Stmt] = []
        made = [bind for s in walk_stmts(loop.body) for bind in made_by(s)]
        for bind in [bind for bind in made if bind.name not in self.idle]:
            name, renamed = self.with_one_name(loop, bind)
            update = update_of(renamed, name) if name in before - self.idle else None
            if update is None or self.is_window(renamed, update):
                continue
            needed, row = _needed(renamed, update, before), None
            if needed is None and (row := self.in_a_row(renamed, update)) is not None:
                update, needed = row.update, set()
            of = row.asked if row else renamed
            if needed is None or (update.last is not None and not _has_one_place(of, update, needed)):
                continue
            last = next((s for s in reversed(done) if name in rebound((s,))), None)
            known = last.value if isinstance(last, Assign) and isinstance(last.value, Const) else None
            way = self.shared if update.last is None else self.kept_in_a_row if row else self.kept
            start, found, end = way(of, update, needed, known)
            if row:
                loop, ends = row.filled, [*ends, *start, found, *end]
                starts += row.begun
            else:
                loop, ends = found, [*ends, *end]
                starts += start
        return [*starts, replace(loop, body=self.block(loop.body, before | {loop.var})), *ends]

    def in_a_row(self, loop: For, update: Update) -> _Row | None:
        """The loop with a row for what is asked whether it is the largest, and a loop along that."""
        count = most_rooms(loop, {}, frozenset())
        if count is None or abs(loop.step) != 1 or not any(s is update.stmt for s in loop.body):
            return None
        row, made = room(self.fresh(f"{update.name}_of"), update.type, [count])
        place = _way(loop, _counter(loop))
        begun: list[Stmt] = [made]
        there: list[Stmt] = [Store(row, (At(place),), update.new, span=update.span)]
        if isinstance(update.stmt, If) and (len(update.stmt.then) > 1 or update.stmt.orelse):
            largest = Name(self.fresh(HINTS[update.op]), update.type)  # others ask for it on the way
            self.found.add(largest.id)
            begun.append(Assign(largest.id, Name(update.name, update.type), update.span))
            there += rename_block((update.stmt,), {update.name: largest.id})
        body = (x for s in loop.body for x in (there if s is update.stmt else (s,)))
        along = Name(self.fresh(loop.var), Type("int"))
        along = replace(along, value=Dim.of(along.id))
        asked = update.asking(construct.index(row, (At(along),)))
        rest = For(along.id, const(0), _way(loop, loop.stop), 1, (asked.stmt,), loop.span)
        return _Row(begun, replace(loop, body=tuple(body)), rest, asked)

    def with_one_name(self, loop: For, bind: Assign) -> tuple[str, For]:
        """The loop with one name for a running value, that loops in loops and branches hand on under names of their own
        (see `transpile/merge.py`); and the name."""
        name, stmts = bind.name, [s for s in walk_stmts(loop.body) if s != bind]
        copies = [{s.name, s.value.id} for s in stmts if isinstance(s, Assign) and isinstance(s.value, Name)]
        same = {name}
        while more := [pair for pair in copies if pair & same and not pair <= same]:
            same |= more[0]
        kept, inside = same & self.lasting, mentions((loop,))
        if len(kept) != 1 or any(inside[n] < self.mentions[n] for n in same - kept):
            return name, loop
        (one,) = kept
        return one, replace(loop, body=_without_copies(rename_block(loop.body, dict.fromkeys(same - kept, one))))

    def is_window(self, loop: For, update: Update) -> bool:
        around = [s for s in walk_stmts((loop,)) if isinstance(s, For) and _is_in(update.stmt, s.body)]
        trips = [most_trips(s) for s in around]
        known = prod(n.value for n in trips if n is not None and n.value is not None)
        return known <= FEW and all(n is not None and n.symbols() <= self.config for n in trips)

    def begun(self, loop: For, update: Update, known: Const | None) -> tuple[Name, list[Expr], list[Stmt], For]:
        """A name for the largest, what it may be that was there before the loop, what stands there, and what makes it.
        `known`: what it begins with."""
        old = Name(update.name, update.type)
        largest = Name(self.fresh(HINTS[update.op]), update.type)
        self.found.add(largest.id)
        start: list[Stmt] = [Assign(largest.id, known or old, update.span)]
        firsts: list[Expr] = []  # what it begins with may be the largest, too
        if known is None or abs(float(known.value)) != float("inf"):
            firsts = [known or Name(self.fresh(f"{update.name}_first"), update.type)]
            start += [Assign(first.id, old, update.span) for first in firsts if isinstance(first, Name)]
        (found,) = rename_block((update.stmt,), {update.name: largest.id})
        return largest, firsts, start, replace(loop, body=_with(loop.body, update.stmt, found))

    def shared(
        self, loop: For, update: Update, needed: set[str], known: Const | None
    ) -> tuple[list[Stmt], For, list[Stmt]]:
        """What is before the loop, the loop, and what is behind it: shares of what was the largest."""
        largest, firsts, start, found = self.begun(loop, update, known)
        ties, shares = (Name(self.fresh(hint), update.type) for hint in ("ties", update.name))
        end: list[Stmt] = []
        for total, value in ((ties, _hit), (shares, partial(_share, ties=ties))):
            end.append(Assign(total.id, construct.zeros(update.type), update.span))
            end += [_added(total, value(first, largest), update.span) for first in firsts]
            added = _added(total, value(update.new, largest), update.span)
            end.append(replace(loop, body=_with(loop.body, update.stmt, added, needed)))
        return start, found, [*end, _told(update, largest, shares)]

    def kept(
        self, loop: For, update: Update, needed: set[str], known: Const | None
    ) -> tuple[list[Stmt], For, list[Stmt]]:
        """The same where one of equal ones is kept: where it is."""
        largest, firsts, start, found = self.begun(loop, update, known)
        none: Expr = const(-1) if update.last else construct.call("subtract", loop.stop, const(1))
        at, search = self.searched(loop, update, needed, largest, none)
        own = {n: self.fresh(n) for n in needed}
        makers = [s for s in loop.body if isinstance(s, Assign) and s.name in needed]
        there: list[Stmt] = [Assign(own[s.name], moved(s.value, loop.var, at, own), s.span) for s in makers]
        there.append(_told(update, largest, moved(update.new, loop.var, at, own)))
        before = _told(update, largest, firsts[0] if firsts else largest)
        is_there = _is_there(update, at, largest, firsts[0] if firsts else known)
        return start, found, [*search, If(is_there, tuple(there), (before,), update.span)]

    def kept_in_a_row(
        self, loop: For, update: Update, needed: set[str], known: Const | None
    ) -> tuple[list[Stmt], For, list[Stmt]]:
        """The same of a row, whose reverse goes along it anyway: each place asks whether it is the one, so that
        neighbours may do that side by side."""
        largest, firsts, start, found = self.begun(loop, update, known)
        none: Expr = const(-1) if update.last else loop.stop
        at, end = self.searched(loop, update, needed, largest, none)
        if not update.last:
            is_there = _is_there(update, at, largest, firsts[0] if firsts else known)
            end.append(Assign(at.id, construct.call("where", is_there, at, none), update.span))
        shares = Name(self.fresh(update.name), update.type)
        end.append(Assign(shares.id, construct.zeros(update.type), update.span))
        for first in firsts:
            end.append(_added(shares, construct.call("share", construct.call("equal", at, none), first), update.span))
        here = construct.call("share", construct.call("equal", _counter(loop), at), update.new)
        end.append(replace(loop, body=_with(loop.body, update.stmt, _added(shares, here, update.span), needed)))
        return start, found, [*end, _told(update, largest, shares)]

    def searched(
        self, loop: For, update: Update, needed: set[str], largest: Name, none: Expr
    ) -> tuple[Name, list[Stmt]]:
        """The place of the one that is kept, if one is, else `none` or any; and what finds it."""
        at = Name(self.fresh("at"), Type("int"))
        here = construct.call("where", construct.call("equal", update.new, largest), _counter(loop), none)
        nearer = construct.call("maximum" if update.last else "minimum", at, here)
        search = replace(loop, body=_with(loop.body, update.stmt, Assign(at.id, nearer, update.span), needed))
        return at, [Assign(at.id, none, update.span), search]


def _counter(loop: For) -> Name:
    return Name(loop.var, Type("int"), Dim.of(loop.var))


def _is_there(update: Update, at: Name, largest: Name, first: Expr | None) -> Expr:
    """Whether the loop has found one."""
    if update.last:
        return construct.call("greater_equal", at, const(0))
    assert first is not None
    return construct.call("greater" if update.op == "maximum" else "less", largest, first)


def _way(loop: For, place: Expr) -> Expr:
    """How far a place is from where a loop begins."""
    if loop.step < 0:
        return construct.call("subtract", loop.start, place)
    return place if construct.value_of(loop.start) == ZERO else construct.call("subtract", place, loop.start)


def _told(update: Update, largest: Name, of: Expr) -> Assign:
    return Assign(update.name, construct.call("with_derivative", largest, of), update.span)


def moved(expr: Expr, var: str, at: Name, own: Mapping[str, str]) -> Expr:
    """What an expression is in the iteration `at` of the loop `var`."""
    if isinstance(expr, Name):
        if expr.id == var:
            return at
        stale = expr.value is not None and var in expr.value.symbols()
        return replace(expr, id=own.get(expr.id, expr.id), value=None if stale else expr.value)
    there = map_children(expr, lambda e: moved(e, var, at, own))
    if isinstance(there, Call) and there is not expr:  # with another symbolic value, or none
        return construct.call(there.op, *there.args, span=there.span, **dict(there.static))
    return there


def _has_one_place(loop: For, update: Update, needed: set[str]) -> bool:
    """Whether it is found in one iteration of the loop, which a number of one place tells."""
    start = construct.number_of(loop.start)
    forward = loop.step == 1 and (not update.last or (start is not None and start >= 0))
    around = [s for s in walk_stmts(loop.body) if isinstance(s, For) and _is_in(update.stmt, s.body)]
    makers = {s.name: s.value for s in loop.body if isinstance(s, Assign)}
    exprs = [update.new, *(makers[n] for n in needed if n in makers)]
    items = [i for expr in exprs for e in walk(expr) if isinstance(e, Index) for i in e.items]
    return forward and not around and needed <= makers.keys() and all(isinstance(i, At) for i in items)


def _added(total: Name, value: Expr, span: Span) -> Stmt:
    return Assign(total.id, construct.call("add", total, value), span)


def _hit(value: Expr, largest: Name) -> Expr:
    return construct.call("where", construct.call("equal", value, largest), const(1.0), const(0.0))


def _share(value: Expr, largest: Name, ties: Name) -> Expr:
    return construct.call("share", construct.call("equal", value, largest), construct.call("divide", value, ties))


def _without_copies(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Without `v = v`, and branches that did only that."""
    done: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            stmt = replace(stmt, body=_without_copies(stmt.body))
        elif isinstance(stmt, If):
            done += branch(stmt, _without_copies(stmt.then), _without_copies(stmt.orelse))
            continue
        elif isinstance(stmt, Assign) and isinstance(stmt.value, Name) and stmt.value.id == stmt.name:
            continue
        done.append(stmt)
    return tuple(done)


def _needed(loop: For, update: Update, before: set[str]) -> set[str] | None:
    """The names of the loop's own that what is asked for hangs on; None where it cannot be asked again."""
    stmts = list(walk_stmts(loop.body))
    if any(isinstance(s, While) and _is_in(update.stmt, s.body) for s in stmts):
        return None  # of as many turns as what they change says
    makers = {s.name: s for s in stmts if isinstance(s, Assign)}
    others = {s.name for s in stmts if not isinstance(s, Assign) and hasattr(s, "name")}
    exprs = [update.new, loop.start, loop.stop, *_asked(loop.body, update.stmt)]
    needed: set[str] = set()
    while exprs:
        expr = exprs.pop()
        changed = names(expr) & stored(loop.body)
        if not is_exact(expr) or names(expr) & others or not all(_stays(n, expr, loop, update) for n in changed):
            return None
        for name in names(expr) & makers.keys() - needed:
            once = sum(isinstance(s, Assign) and s.name == name for s in stmts) == 1
            if name in before or not once or name in names(makers[name].value):
                return None
            needed.add(name)
            exprs.append(makers[name].value)
    return needed


def _stays(array: str, expr: Expr, loop: For, update: Update) -> bool:
    """Whether what is read of an array is, behind the loop, what it was: each iteration has written it before, at a
    place of its own."""
    around = [s.var for s in (loop, *walk_stmts(loop.body)) if isinstance(s, For) and _is_in(update.stmt, s.body)]
    stmts = list(walk_stmts(loop.body))
    written = [(k, s.items) for k, s in enumerate(stmts) if isinstance(s, Store) and s.base.id == array]
    read = [e.items for e in walk(expr) if isinstance(e, Index) and isinstance(e.base, Name) and e.base.id == array]
    whole = sum(isinstance(e, Name) and e.id == array for e in walk(expr))
    at = next(k for k, s in enumerate(stmts) if s is update.stmt)
    places = {*read, *(items for _, items in written)}
    own = {i.index.id for items in places for i in items if isinstance(i, At) and isinstance(i.index, Name)}
    return len(places) == 1 and whole == len(read) and own >= set(around) and all(k < at for k, _ in written)


def _is_in(stmt: Stmt, body: Sequence[Stmt]) -> bool:
    return any(s is stmt for s in walk_stmts(tuple(body)))


def _asked(body: Sequence[Stmt], update: Stmt) -> list[Expr]:
    """The conditions and bounds of what is around a statement."""
    found: list[Expr] = []
    for stmt in body:
        if stmt is not update and isinstance(stmt, (For, If)) and _is_in(update, (stmt,)):
            inside = stmt.body if isinstance(stmt, For) else (*stmt.then, *stmt.orelse)
            found += [*stmt_exprs(stmt), *_asked(inside, update)]
    return found


def is_exact(expr: Expr) -> bool:
    """Whether it is the same to the last bit however it is compiled."""
    match expr:
        case Const() | Name() | Index():
            return True
        case Call(op=op):
            return (op in _EXACT or expr.type.dtype not in FLOATS) and all(map(is_exact, children(expr)))
    return False


def _with(body: Sequence[Stmt], update: Stmt, new: Stmt, needed: set[str] | None = None) -> tuple[Stmt, ...]:
    """A block with another statement in the place of one. `needed`: without all that neither is, nor leads to it."""
    done: list[Stmt] = []
    for stmt in body:
        if stmt is update:
            done.append(new)
        elif isinstance(stmt, For) and (inside := _with(stmt.body, update, new, needed)):
            done.append(replace(stmt, body=inside))
        elif isinstance(stmt, If):
            done += branch(stmt, *(_with(way, update, new, needed) for way in (stmt.then, stmt.orelse)))
        elif needed is None or (isinstance(stmt, Assign) and stmt.name in needed):
            done.append(stmt)
    return tuple(done)


__all__ = ["by_ties", "is_exact", "moved"]
