"""The largest, or the smallest, that a loop has seen: its derivative goes to where it was found, once it is known.

    top = -np.inf                            largest = -np.inf
    for j in range(n):                       for j in range(n): largest = max(largest, x[j])
        top = max(top, x[j])          ->     ties = sum of 1.0 where x[j] == largest
    ...                                      shares = sum of x[j] / ties where x[j] == largest
                                             top = with_derivative(largest, shares)

Otherwise the reverse would need what had been the largest before each step, and ask the steps one after the other.
Equal ones share evenly, as those of `max(a, b, c)` and of `np.max` do. What is asked whether it is the largest is
computed a second time for that: it must be the same to the last bit, so that it may be read, added and chosen, not
multiplied. The few elements of a window, whose extents are known or configuration, stay in registers as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from ..transpile import construct
from ..transpile.construct import const
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
    While,
    assigned,
    children,
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
from .rooms import most_trips

FEW = 64  # elements of a window
_EXACT = ("add", "subtract", "negative", "abs", "maximum", "minimum", "where")  # no part of an `a * b + c`
_HINTS = {"maximum": "largest", "minimum": "smallest"}


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
        made = [s.name for s in walk_stmts(loop.body) if isinstance(s, Assign) and _is_extreme(s.value)]
        for target in [name for name in made if name not in self.idle]:
            name, renamed = self.with_one_name(loop, target)
            update = _update(renamed, name) if name in before - self.idle else None
            if update is None or self.is_window(renamed, update):
                continue
            if (needed := _needed(renamed, update, before)) is None:
                continue
            loop = renamed
            last = next((s for s in reversed(done) if name in rebound((s,))), None)
            known = last.value if isinstance(last, Assign) and isinstance(last.value, Const) else None
            start, loop, end = self.shared(loop, update, needed, known)
            starts += start
            ends += end
        return [*starts, replace(loop, body=self.block(loop.body, before | {loop.var})), *ends]

    def with_one_name(self, loop: For, name: str) -> tuple[str, For]:
        """The loop with one name for a running value, that loops in loops and branches hand on under names of their own
        (see `transpile/merge.py`); and the name."""
        stmts = walk_stmts(loop.body)
        copies = [{s.name, s.value.id} for s in stmts if isinstance(s, Assign) and isinstance(s.value, Name)]
        same = {name}
        while more := [pair for pair in copies if pair & same and not pair <= same]:
            same |= more[0]
        kept, inside = same & self.lasting, mentions((loop,))
        if len(kept) != 1 or any(inside[n] < self.mentions[n] for n in same - kept):
            return name, loop
        (one,) = kept
        return one, replace(loop, body=_without_copies(rename_block(loop.body, dict.fromkeys(same - kept, one))))

    def is_window(self, loop: For, update: Assign) -> bool:
        around = [s for s in walk_stmts((loop,)) if isinstance(s, For) and _is_in(update, s.body)]
        trips = [most_trips(s) for s in around]
        known = prod(n.value for n in trips if n is not None and n.value is not None)
        return known <= FEW and all(n is not None and n.symbols() <= self.config for n in trips)

    def shared(
        self, loop: For, update: Assign, needed: set[str], known: Const | None
    ) -> tuple[list[Stmt], For, list[Stmt]]:
        """What is before the loop, the loop, and what is behind it. `known`: what the extreme begins with."""
        assert isinstance(update.value, Call)
        type, span = update.value.type, update.span
        old = Name(update.name, type)
        new = next(a for a in update.value.args if a != old)
        largest, ties, shares = (
            Name(self.fresh(hint), type) for hint in (_HINTS[update.value.op], "ties", update.name)
        )
        self.found.add(largest.id)
        found = replace(update, name=largest.id, value=replace(update.value, args=(largest, new)))
        start: list[Stmt] = [Assign(largest.id, known or old, span)]
        firsts: list[Expr] = []  # what it begins with may be the largest, too
        if known is None or abs(float(known.value)) != float("inf"):
            firsts = [known or Name(self.fresh(f"{update.name}_first"), type)]
            start += [Assign(first.id, old, span) for first in firsts if isinstance(first, Name)]
        end: list[Stmt] = []
        for total, value in ((ties, _hit), (shares, partial(_share, ties=ties))):
            end.append(Assign(total.id, construct.zeros(type), span))
            end += [_added(total, value(first, largest), span) for first in firsts]
            added = _added(total, value(new, largest), span)
            end.append(replace(loop, body=_with(loop.body, update, added, needed)))
        end.append(Assign(update.name, construct.call("with_derivative", largest, shares), span))
        return start, replace(loop, body=_with(loop.body, update, found)), end


def _added(total: Name, value: Expr, span: Span) -> Stmt:
    return Assign(total.id, construct.call("add", total, value), span)


def _hit(value: Expr, largest: Name) -> Expr:
    return construct.call("where", construct.call("equal", value, largest), const(1.0), const(0.0))


def _share(value: Expr, largest: Name, ties: Name) -> Expr:
    return construct.call("share", construct.call("equal", value, largest), construct.call("divide", value, ties))


def _is_extreme(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op in _HINTS


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


def _update(loop: For, name: str) -> Assign | None:
    """What makes a number the larger of itself and of something else, where the loop does nothing else with it."""
    stmts = list(walk_stmts(loop.body))
    reads = sum(isinstance(e, Name) and e.id == name for s in stmts for x in stmt_exprs(s) for e in walk(x))
    binds = [s for s in stmts if getattr(s, "name", None) == name]
    match binds:
        case [Assign(value=Call(op="maximum" | "minimum", args=args) as value) as update]:
            is_number = not value.type.rank and value.type.dtype in FLOATS
            return update if is_number and reads == 1 and Name(name, value.type) in args else None
    return None


def _needed(loop: For, update: Assign, before: set[str]) -> set[str] | None:
    """The names of the loop's own that what is asked for hangs on; None where it cannot be asked again."""
    assert isinstance(update.value, Call)
    (new,) = (a for a in update.value.args if not (isinstance(a, Name) and a.id == update.name))
    stmts = list(walk_stmts(loop.body))
    if any(isinstance(s, While) and _is_in(update, s.body) for s in stmts):
        return None  # of as many turns as what they change says
    makers = {s.name: s for s in stmts if isinstance(s, Assign)}
    others = {s.name for s in stmts if not isinstance(s, Assign) and hasattr(s, "name")}
    exprs = [new, loop.start, loop.stop, *_asked(loop.body, update)]
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


def _stays(array: str, expr: Expr, loop: For, update: Assign) -> bool:
    """Whether what is read of an array is, behind the loop, what it was: each iteration has written it before, at a
    place of its own."""
    around = [s.var for s in (loop, *walk_stmts(loop.body)) if isinstance(s, For) and _is_in(update, s.body)]
    stmts = list(walk_stmts(loop.body))
    written = [(k, s.items) for k, s in enumerate(stmts) if isinstance(s, Store) and s.base.id == array]
    read = [e.items for e in walk(expr) if isinstance(e, Index) and isinstance(e.base, Name) and e.base.id == array]
    whole = sum(isinstance(e, Name) and e.id == array for e in walk(expr))
    at = next(k for k, s in enumerate(stmts) if s is update)
    places = {*read, *(items for _, items in written)}
    own = {i.index.id for items in places for i in items if isinstance(i, At) and isinstance(i.index, Name)}
    return len(places) == 1 and whole == len(read) and own >= set(around) and all(k < at for k, _ in written)


def _is_in(stmt: Stmt, body: Sequence[Stmt]) -> bool:
    return any(s is stmt for s in walk_stmts(tuple(body)))


def _asked(body: Sequence[Stmt], update: Assign) -> list[Expr]:
    """The conditions and bounds of what is around a statement."""
    found: list[Expr] = []
    for stmt in body:
        if isinstance(stmt, (For, If)) and _is_in(update, (stmt,)):
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


def _with(body: Sequence[Stmt], update: Assign, new: Stmt, needed: set[str] | None = None) -> tuple[Stmt, ...]:
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


__all__ = ["by_ties", "is_exact"]
