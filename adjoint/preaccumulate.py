"""Local derivatives of what an element goes through alone, made in the forward, while all they need is at hand.

An element with a `while` of its own would leave to the pullback what each turn made, or run all of them again there.
But it has one result, so what comes back through it is one number times a derivative by each argument, and those can be
made ahead, with 1 for the number. (Preaccumulation: Griewank and Walther, Evaluating Derivatives, 2nd ed., ch. 10.)

    before:  for i in range(N):                after:  for i in range(N):
                 while far(w):                             while far(w):
                     w = step(w, x[i])                         saved.append(w)
                 y[i] = w                                      w = step(w, x[i])
             ...                                           y[i] = w
             for i in reversed(range(N)):                  d_w = 1.0
                 while far(w):                             for _ in range(trips):
                     saved.append(w)                           w = saved.pop()
                     w = step(w, x[i])                         slope += ... d_w ...
                 d_w = dy[i]                               slope_x[i] = slope
                 for _ in range(trips):                ...
                     w = saved.pop()                   for i in reversed(range(N)):
                     d_x[i] += ... d_w ...                 d_x[i] += dy[i] * slope_x[i]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from ..transpile import construct
from ..transpile.clean import clean, live_before
from ..transpile.construct import const
from ..transpile.merge import merged_block
from ..transpile.program import (
    NOWHERE,
    Assign,
    At,
    Call,
    Comment,
    Const,
    Expr,
    For,
    Function,
    Index,
    Item,
    Name,
    Pop,
    Push,
    Return,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    blocks,
    children,
    item_exprs,
    map_children,
    names,
    read,
    stmt_exprs,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_block
from .loops import DEAR, costs
from .merged import Merged, with_blocks
from .rooms import most_trips, position, room
from .tape import Taped
from .versions import name_types

MOST = 4  # derivatives of an element: of more, what they are made of may be less


def preaccumulated(
    forward: Sequence[Stmt],
    final: Return,
    head: Sequence[Stmt],
    rest: Sequence[Stmt],
    gradient: Function,
    fresh: Callable[[str], str],
) -> Taped | None:
    """For an example with a loop that is dear and one result, or each loop over elements that have: None if there is
    none. `final`: how the forward ends, as that of the result does. `head`, `rest`: the gradient, before and from where
    something comes back."""
    sizes = {s for p in gradient.params for d in p.type.shape for s in d.symbols()}
    found = _Elements(fresh, sizes | {p.name for p in gradient.params if p.role == "config"})
    given = {p.name for p in gradient.params if p.role not in ("output", "cotangent")}
    *forward, end = merged_block((*forward, final))  # as the gradient is
    assert isinstance(end, Return)
    whole = found.example(forward, end, head, rest, given, [r.name for r in gradient.results])
    if whole:
        return Taped(*whole, whole[1], found.slopes)
    sweep, back = found.loops(forward, rest, (), given, read((end,)))
    return Taped([*found.rooms, *sweep, end], back, back, found.slopes) if found.slopes else None


@dataclass
class _Elements:
    fresh: Callable[[str], str]
    sizes: Set[str]  # that a call tells
    rooms: list[Stmt] = field(default_factory=list)
    slopes: set[str] = field(default_factory=set)

    def loops(
        self,
        forward: Sequence[Stmt],
        rest: Sequence[Stmt],
        around: tuple[For, ...],
        known: Set[str],
        elsewhere: Set[str],
    ) -> tuple[list[Stmt], list[Stmt]]:
        """A block and its reverse. `known`: names that have values before the block; `elsewhere`: those that are read
        outside of it."""
        sweep, back = list(forward), list(rest)
        for k, loop in enumerate(forward):
            n = next((n for n, s in enumerate(back) if isinstance(s, For) and _is_reverse(s, loop)), None)
            if n is None or not isinstance(loop, For) or not _runs_long((loop,)):
                continue
            trips, reverse = most_trips(loop), back[n]
            if trips is None or not trips.symbols() <= self.sizes:
                continue
            assert isinstance(reverse, For)
            before = known | assigned(tuple(forward[:k])) | {loop.var}
            others = elsewhere | read(tuple(s for s in forward if s is not loop))
            nest = (*around, loop)
            inside = self.element(reverse.body, nest, before, others)
            inside = inside or self.loops(loop.body, reverse.body, nest, before, others)
            sweep[k], back[n] = (replace(s, body=tuple(b)) for s, b in zip((loop, reverse), inside, strict=True))
        return sweep, back

    def element(
        self, reverse: Sequence[Stmt], around: tuple[For, ...], known: Set[str], elsewhere: Set[str]
    ) -> tuple[list[Stmt], list[Stmt]] | None:
        """The body of the innermost loop and of its reverse; None where an element has more than one result, or leaves
        something to the next."""
        loop = around[-1]
        counters = {outer.var for outer in around}
        again, back = _cut(reverse, known)
        made = _Slopes.of(loop.body, again, back, known, counters, self.fresh)
        local = made.block(back) if made else None
        if made is None or local is None or not 0 < len(made.sums_of) <= MOST:
            return None
        others = elsewhere | live_before([loop], elsewhere)
        if made.renamed & others:
            return None
        slopes = list(made.sums_of.values())
        zeros = [Assign(name.id, construct.zeros(name.type)) for name in slopes]
        needed = made.needed([*zeros, *local], slopes)
        if needed is None:
            return None
        own = made.apart(needed, slopes, others)
        place = [At(position(outer)) for outer in around]
        kept = [self.room(name, around) for name in slopes]
        stores = [Store(a, construct.complete(a, place), n) for a, n in zip(kept, slopes, strict=True)]
        body = [*made.forward, *own, *stores]
        later = live_before([replace(loop, body=tuple(body))], elsewhere | {array.id for array in kept})
        if assigned(own) & (elsewhere | later):
            return None
        self.slopes |= {array.id for array in kept}
        given = [made.given(t, construct.index(a, place)) for t, a in zip(made.sums_of, kept, strict=True)]
        return body, [*given, *made.taken]

    def example(
        self,
        forward: Sequence[Stmt],
        final: Return,
        again: Sequence[Stmt],
        rest: Sequence[Stmt],
        known: Set[str],
        results: Sequence[str],
    ) -> tuple[list[Stmt], list[Stmt]] | None:
        """The sweeps of a layer whose example is an element, the forward with its end."""
        *back, returned = rest
        assert isinstance(returned, Return)
        made = _Slopes.of(forward, again, rest, known, set(), self.fresh)
        if made is None or len(returned.values) > MOST or any(v.type.rank for v in returned.values):
            return None
        ids = [self.fresh(f"slope_{name.removeprefix('d_')}") for name in results]
        slopes = [Name(n, v.type) for n, v in zip(ids, returned.values, strict=True)]
        local = made.block([*back, *(Assign(s.id, v) for s, v in zip(slopes, returned.values, strict=True))])
        needed = made.needed(local, slopes) if local is not None and not made.sums_of else None
        if needed is None or made.renamed & read((final,)):
            return None
        own = made.apart(needed, slopes, set())
        held = [Name(self.fresh("result"), v.type) for v in final.values if names(v) & assigned(own)]
        if any(name.type.rank for name in held):
            return None
        left = iter(held)
        values = tuple(next(left) if names(v) & assigned(own) else v for v in final.values)
        saved = [Assign(n.id, v) for n, v in zip(values, final.values, strict=True) if isinstance(n, Name) and n != v]
        self.slopes |= {s.id for s in slopes}
        back = [replace(returned, values=tuple(construct.call("multiply", made.seed, s) for s in slopes))]
        return [*made.forward, *saved, *own, replace(final, values=values)], back

    def room(self, slope: Name, around: tuple[For, ...]) -> Name:
        counts = [n for loop in around if (n := most_trips(loop)) is not None]
        array, made = room(self.fresh(f"{slope.id}_kept"), slope.type, counts)
        self.rooms.append(made)
        return array


def _cut(reverse: Sequence[Stmt], known: Set[str]) -> tuple[list[Stmt], list[Stmt]]:
    """What the reverse makes again of the forward, and what comes back."""
    for k, stmt in enumerate(reverse):
        if not isinstance(stmt, Comment) and read((stmt,)) - assigned((stmt,)) - known:
            return list(reverse[:k]), list(reverse[k:])
        known = known | assigned((stmt,))
    return list(reverse), []


def _bound(body: Sequence[Stmt]) -> set[str]:
    """Names that the statements give a value, rather than write into."""
    return {n for s in walk_stmts(tuple(body)) if not isinstance(s, Store) and not blocks(s) for n in assigned((s,))}


def _summed(body: Sequence[Stmt]) -> set[str]:
    """Numbers that it adds to, and does nothing else with."""
    adds = [s.name for s in walk_stmts(tuple(body)) if _is_sum(s)]
    uses = [n for s in walk_stmts(tuple(body)) for e in stmt_exprs(s) for n in _mentioned(e)]
    binds = [n for s in walk_stmts(tuple(body)) if not blocks(s) for n in assigned((s,))]
    return {n for n in adds if adds.count(n) == uses.count(n) == binds.count(n)}


def _is_sum(stmt: Stmt) -> TypeGuard[Assign]:
    match stmt:
        case Assign(name=name, value=Call(op="add", args=[Name(id=same), _])):
            return name == same
    return False


def _mentioned(expr: Expr) -> list[str]:
    return [e.id for e in walk(expr) if isinstance(e, Name)]


def _is_number(seed: Expr, counters: Set[str]) -> bool:
    """Whether an element, or a number that is the same for all, comes back."""
    places = [e for i in seed.items for e in item_exprs(i)] if isinstance(seed, Index) else []
    return not seed.type.rank and seed.type.is_float and all(names(e) <= counters for e in places)


def _seeds(body: Sequence[Stmt], unknown: set[str]) -> set[Expr]:
    """The numbers that come back: elements of what the forward does not know. More than one where that is none."""
    found: set[Expr] = set()

    def note(expr: Expr) -> None:
        if isinstance(expr, Index) and isinstance(expr.base, Name) and expr.base.id in unknown:
            found.add(expr if not expr.type.rank else expr.base)
        elif isinstance(expr, Name) and expr.id in unknown:
            found.add(expr)
        for inside in children(expr) if not found or expr not in found else ():
            note(inside)

    for stmt in walk_stmts(tuple(body)):
        for expr in stmt_exprs(stmt):
            note(expr)
    return found


Target = tuple[Name, tuple[Item, ...] | None]  # an element of an array, or a number


@dataclass
class _Slopes:
    """What comes back, with 1 for the number that does, and the sums it is added to an element's own."""

    forward: list[Stmt]  # with what the reverse saves
    renamed: Set[str]  # names that it had, and has no more
    primal: Set[str]  # what it made anyway
    seed: Expr
    known: Set[str]  # behind the forward
    counters: Set[str]
    own: Set[str]  # names that only this element has
    sums: Set[str]  # numbers that all elements add to
    fresh: Callable[[str], str]
    sums_of: dict[Target, Name] = field(default_factory=dict)
    first: set[Target] = field(default_factory=set)  # stored rather than added to
    taken: list[Stmt] = field(default_factory=list)  # what leaves 0 in its place

    @staticmethod
    def of(
        forward: Sequence[Stmt],
        again: Sequence[Stmt],
        back: Sequence[Stmt],
        known: Set[str],
        counters: Set[str],
        fresh: Callable[[str], str],
    ) -> _Slopes | None:
        """None where nothing is run again, or not one number comes back."""
        merged = Merged()
        if not _runs_long(again) or not merged.merge(forward, again):
            return None
        if assigned(tuple(merged.alone)) & read((*again, *back)):
            return None
        known = known | assigned(tuple(merged.body))
        seeds = _seeds(back, read(tuple(back)) - known - _bound(back))
        if len(seeds) != 1 or not _is_number(seed := seeds.pop(), counters):
            return None
        own = _bound([*merged.body, *back])
        renamed = {n for n, new in merged.versions.items() if n != new}
        return _Slopes(merged.body, renamed, _bound(forward), seed, known, counters, own, _summed(back) - known, fresh)

    def needed(self, local: Sequence[Stmt], slopes: Sequence[Name]) -> tuple[Stmt, ...] | None:
        """What of it the slopes need; None where the forward does not have all it takes."""
        ends = {name.id for name in slopes}
        local = clean(local, live=ends)
        emptied = {s.list.id for s in walk_stmts(local) if isinstance(s, Pop)}
        if not live_before(local, ends) <= self.known or not emptied <= self.lists & _bound(self.forward):
            return None
        return local

    @property
    def lists(self) -> set[str]:
        return {s.list.id for s in walk_stmts(tuple(self.forward)) if isinstance(s, Push)}

    def apart(self, local: Sequence[Stmt], slopes: Sequence[Name], others: Set[str]) -> tuple[Stmt, ...]:
        """With names of its own for what others read, and for what it makes before it asks: then elements that hand
        nothing on are independent. (The turns of a loop of known length shall not be so: elements go side by side.)"""
        taken = live_before(local, {name.id for name in slopes})
        shared = _bound(local) & _bound(self.forward) - self.lists
        loops = [s for s in walk_stmts(tuple(local)) if isinstance(s, For) and most_trips(s) is not None]
        turning = {n for loop in loops for n in _bound(loop.body)}
        begun = {s.name for s in self.forward if isinstance(s, Assign)} & turning
        own = {n: self.fresh(n) for n in sorted(shared & self.primal & others | shared - taken - begun)}
        types = name_types([*self.forward, *local], {})
        copies = [Assign(new, Name(n, types[n])) for n, new in own.items() if n in taken]
        return (*copies, *rename_block(local, own))

    def block(self, body: Sequence[Stmt], top: bool = True) -> list[Stmt] | None:
        """None where something else is done."""
        found: list[Stmt] = []
        for stmt in body:
            if self.taken and any(self.seed in walk(e) for e in stmt_exprs(stmt)):
                return None
            match stmt:
                case Comment():
                    continue
                case Store(base=base) if isinstance(self.seed, Index) and base == self.seed.base:
                    if not top or self.taken or stmt.op or stmt.items != self.seed.items or stmt.value != const(0):
                        return None
                    self.taken.append(stmt)
                case Store(base=base, items=items, value=value, op=op) if base.id not in self.own:
                    target = (base, items)
                    if stmt.scatter or value.type.rank or not all(self._is_own_place(i) for i in items):
                        return None
                    if base.id in self.known:  # what the forward went over comes back
                        return None
                    if op not in (None, "add") or (op is None and (not top or target in self.sums_of)):
                        return None
                    if op is None:
                        self.first.add(target)
                    found.append(self._added(target, value, op is None))
                case Assign(name=name, value=Call(args=[Name() as total, term])) if name in self.sums:
                    if total.type.rank:
                        return None
                    found.append(self._added((total, None), term, False))
                case _:
                    parts = [self.block(b, top=False) for b in blocks(stmt)]
                    done = [part for part in parts if part is not None]
                    if len(done) < len(parts):
                        return None
                    found.append(map_stmt(with_blocks(stmt, done), self._seeded, tuple, lambda n: n))
        return found

    def _is_own_place(self, item: Item) -> bool:
        return isinstance(item, At) and names(item.index) <= self.counters

    def _added(self, target: Target, value: Expr, first: bool) -> Stmt:
        base = target[0]
        if target not in self.sums_of:
            self.sums_of[target] = Name(self.fresh(f"slope_{base.id.removeprefix('d_')}"), Type(base.type.dtype))
        slope, value = self.sums_of[target], self._seeded(value)
        return Assign(slope.id, value if first else construct.call("add", slope, value))

    def _seeded(self, expr: Expr) -> Expr:
        if expr == self.seed:
            return Const(1.0, self.seed.type)
        return map_children(expr, self._seeded)

    def given(self, target: Target, slope: Expr) -> Stmt:
        """What the pullback does for an element."""
        base, items = target
        value = construct.call("multiply", self.seed, slope)
        if items is None:
            return Assign(base.id, construct.call("add", base, value))
        return Store(base, items, value, None if target in self.first else "add")


def _is_reverse(stmt: For, loop: Stmt) -> bool:
    """Whether both go over the same elements."""
    return isinstance(loop, For) and stmt.var == loop.var and stmt.span == loop.span != NOWHERE


def _runs_long(body: Sequence[Stmt]) -> bool:
    """Whether there is a loop in it that nobody wants to run again."""
    return any(isinstance(s, While) or (isinstance(s, For) and _is_dear(s)) for s in walk_stmts(tuple(body)))


def _is_dear(loop: For) -> bool:
    return any(costs(e) >= DEAR for s in walk_stmts(loop.body) for e in stmt_exprs(s))
