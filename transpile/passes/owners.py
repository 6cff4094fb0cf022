"""A loop that adds at looked-up rows is shared out by these rows: each thread owns a range of them.

    for r: for j in 0..D: y[r,j] = 0         for part in 0..threads parallel:
    for e in 0..E:                               for r in the part's range: for j: y[r,j] = 0
        at = target[e]; check at        ->       for e in 0..E:
        for j in 0..D: y[at,j] += x[e,j]             at = target[e]; check at
        w[e] = f(e)                                  if at is in the range: for j: y[at,j] += x[e,j]
                                                     if e is in the part's share of 0..E: w[e] = f(e)

Each part walks over all places, in order, and asks whose they are. There are no copies to clear and to add up, every
place is added to in the order of the loop, however many parts there are, and each thread finds the first fault. What is
cleared is cleared by the thread that adds there: memory need not go from one processor's cache to another's. One thread
goes over the loop as it is. Only where rows are long: to walk must cost little beside what is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..dims import ZERO, Dim, maximum, minimum, nonnegative, product
from ..ir import THREADS, Buffer, Check, Expr, For, Grow, If, Product, Stmt, Store, While
from .depend import Memory, independent
from .order import perfect
from .questions import all_of, compared
from .tree import Access, Body, Names, accesses, dim_loads, has, map_bodies, named, symbols, walk, written
from .verify import shared_places
from .work import WORTH, work

MOST = 16  # parts: each walks over all places
ROWS = 8  # at least, of what is added to: fewer would often be one thread's
LONG = 16  # numbers at least of a row
GAIN = 4  # times the work of a walk, at least, is that of the whole
COUNT = maximum(Dim.of(1), minimum(Dim.of(THREADS), Dim.of(MOST)))

Range = tuple[Dim, Dim]


@dataclass(frozen=True)
class Adding:
    """A loop that adds at looked-up places. `axis`: of each buffer, the one that is looked up; `private`: what is an
    iteration's own."""

    loop: For
    axis: Mapping[str, int]
    private: Callable[[str], bool]
    table: Mapping[str, Buffer]
    memory: Memory


def adding(
    loop: For, fixed: Mapping[str, int], private: Callable[[str], bool], table: Mapping[str, Buffer], memory: Memory
) -> Adding | None:
    """`fixed`: how many first indices of each buffer that iterations share are the same wherever the loop adds to it;
    None where another is the first that tells places apart, or where the loop does more than to look up and to add."""
    if has(loop.body, Product, While, Grow):
        return None
    for name, axis in fixed.items():
        if axis == len(table[name].shape):
            return None
        places = [s.index[axis] for s in walk(loop.body) if isinstance(s, Store) and s.buffer == name]
        if not any(any(dim_loads(d)) for d in places):
            return None
    return Adding(loop, fixed, private, table, memory)


def taken(found: Adding, before: Sequence[Stmt]) -> dict[str, int]:
    """Of each buffer that is made anew directly before the loop, where: a nest that each part may do for its rows."""
    at: dict[str, int] = {}
    root, changed = found.memory.root, found.memory.roots(written(found.loop.body))
    for name in found.axis:
        touching = (k for k in reversed(range(len(before))) if root[name] in found.memory.roots(_named(before[k])))
        k = next(touching, None)
        if k is None or not (fill := _rows_of(before[k], name, found)):
            continue
        read = found.memory.roots(a.buffer for a in accesses((fill,)) if not a.writes)
        if not read & changed and independent((fill,), before[k + 1 :], found.memory):
            at[name] = k
    return at


def pays(found: Adding, effort: Dim) -> tuple[Expr, ...] | None:
    """What is to be asked before rows are shared out; None where it is known not to pay."""
    parts = _Parts(found, Dim.of("part?"))
    nest = parts.nest()
    if any(not found.private(name) for name in shared_places((nest,), frozenset(("part?",)))):
        return None  # something of which it is not known whose it is
    guards = [s for s in walk(nest.body) if parts.is_guard(s)]
    if any(not has((s,), For) and not written((s,)).isdisjoint(found.axis) for s in guards):
        return None  # a question inside of a row
    walked = work(parts.without_rows(), found.table)
    if any(dim_loads(walked - effort)):
        return None
    asked = [(effort, walked * GAIN)]
    for name, axis in found.axis.items():
        rows, *row = found.table[name].shape[axis:]
        asked += [(rows, Dim.of(ROWS)), (product(row), Dim.of(LONG))]
    if any(nonnegative(b - 1 - a) for a, b in asked):
        return None
    return tuple(compared("greater_equal", a, b) for a, b in dict.fromkeys(asked) if not nonnegative(a - b))


def in_parts(found: Adding, fills: Mapping[str, Stmt], effort: Dim, names: Names) -> For:
    """The parallel loop over the parts of the rows."""
    q = names.fresh("part")
    parts = _Parts(found, Dim.of(q))
    nest = parts.nest()
    body: Body = (*(parts.of_rows(fill, name) for name, fill in fills.items()), nest)
    for ends in reversed(list(parts.ranges.values())):
        for bound in reversed(ends):  # has a name: it is asked for at every place
            body = (named(names.fresh("end"), bound, body),)
    return For(q, ZERO, COUNT, body, "map", True, effort)


def alone(loop: For, axis: Mapping[str, int]) -> For:
    """The loop for one thread, in its order, as each part goes over it."""

    def of(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and has(stmt.body, For) and not written(stmt.body).isdisjoint(axis):
            stmt = replace(stmt, kind="seq")
        return map_bodies(stmt, lambda body: tuple(map(of, body)))

    return replace(loop, kind="seq", body=tuple(map(of, loop.body)))


def several(effort: Dim) -> Expr:
    """Whether there is more than one thread, and work for it."""
    return all_of((compared("greater", effort, WORTH), compared("greater", Dim.of(THREADS), 1)))


def is_settled(stmt: Stmt) -> bool:
    """Whether it chooses between a loop in parts and that for one thread: nothing of it is cut again."""
    return isinstance(stmt, If) and THREADS in symbols(stmt.cond)


class _Parts:
    """The loop as part `q` does it."""

    def __init__(self, found: Adding, q: Dim):
        self.found, self.q = found, q
        self.loop = alone(found.loop, found.axis)
        self.uses = self.counted(self.loop.body)
        self.ranges: dict[Range, Range] = {}  # an extent -> the part's share of it
        self.guards: set[Expr] = set()

    def nest(self) -> For:
        return replace(self.loop, body=self.body(self.loop.body))

    def without_rows(self) -> For:
        """What each part does for all rows alike."""
        nest = self.nest()

        def of(stmt: Stmt) -> Stmt:
            if isinstance(stmt, If) and self.is_guard(stmt):
                return replace(stmt, then=())
            return map_bodies(stmt, lambda body: tuple(map(of, body)))

        return replace(nest, body=tuple(map(of, nest.body)))

    def of_rows(self, fill: Stmt, name: str) -> For:
        rows = _rows_of(fill, name, self.found)
        assert rows is not None, "it was one before"
        extent = self.found.table[name].shape[self.found.axis[name]]
        low, high = self.share((ZERO, extent))
        if rows.hi != extent:  # seen as one axis
            size = product(self.found.table[name].shape[self.found.axis[name] + 1 :])
            low, high = low * size, high * size
        return replace(rows, lo=low, hi=high)

    def share(self, extent: Range) -> Range:
        if extent not in self.ranges:
            lo, length = extent[0], extent[1] - extent[0]
            self.ranges[extent] = (
                lo + (length * self.q) // COUNT,
                lo + (length * (self.q + 1)) // COUNT,
            )
        return self.ranges[extent]

    def body(self, body: Body) -> Body:
        """With questions around what only some parts do, and the numbers inside that only those need."""
        kept: list[Stmt] = []
        for stmt in reversed(body):
            new = self.stmt(stmt)
            last = kept[-1] if kept and self.is_guard(kept[-1]) else None
            if isinstance(last, If) and self.is_guard(new) and isinstance(new, If) and new.cond == last.cond:
                kept[-1] = replace(last, then=(*new.then, *last.then))
            elif isinstance(last, If) and self.is_only_for(stmt, last):
                kept[-1] = replace(last, then=(stmt, *last.then))
            else:
                kept.append(new)
        return tuple(reversed(kept))

    def stmt(self, stmt: Stmt) -> Stmt:
        place = self.place(stmt)
        if place is None:
            return map_bodies(stmt, self.body)
        low, high = self.share(place[1])
        cond = all_of((compared("greater_equal", place[0], low), compared("less", place[0], high)))
        self.guards.add(cond)
        return If(cond, (stmt,))

    def place(self, stmt: Stmt) -> tuple[Dim, Range] | None:
        """The only place at which it stores, of what extent, if that is known before."""
        if has((stmt,), Check):
            return None  # asked by all parts, which find the same first fault
        stores = [a for a in accesses((stmt,)) if a.writes]
        places = {self.place_of(a) for a in stores if not self.found.private(a.buffer)}
        if len(places) != 1 or not self.are_within(stores, (stmt,)):
            return None
        (place,) = places
        counters = {s.var for s in walk((stmt,)) if isinstance(s, For)}
        changed = self.found.memory.roots(written((stmt,)))
        asked = self.found.memory.roots(e.buffer for e in dim_loads(place[0]))
        return None if place[0].symbols() & counters or asked & changed else place

    def place_of(self, access: Access) -> tuple[Dim, Range]:
        """A row that is added to; or the iteration, of what has a place of its own for each."""
        axis = self.found.axis.get(access.buffer)
        if axis is None or access.index is None:
            return Dim.of(self.loop.var), (self.loop.lo, self.loop.hi)
        return access.index[axis], (ZERO, self.found.table[access.buffer].shape[axis])

    def is_only_for(self, stmt: Stmt, guard: If) -> bool:
        """Whether a statement makes what is asked for behind the guard only."""
        stores = [a for a in accesses((stmt,)) if a.writes]
        if has((stmt,), Check) or not all(self.found.private(a.buffer) for a in stores):
            return False
        asked = self.found.memory.roots(a.buffer for a in accesses((replace(guard, then=()),)))
        changed = self.found.memory.roots(a.buffer for a in stores)
        return not asked & changed and self.are_within(stores, (stmt, *guard.then))

    def are_within(self, stores: Sequence[Access], body: Body) -> bool:
        """Whether nothing else of the loop knows the private things that these store."""
        own = self.found.memory.roots(a.buffer for a in stores if self.found.private(a.buffer))
        inside = self.counted(body)
        return all(self.uses[name] == inside[name] for name in own)

    def counted(self, body: Body) -> Counter[str]:
        return Counter(self.found.memory.root.get(a.buffer, a.buffer) for a in accesses(body))

    def is_guard(self, stmt: Stmt) -> bool:
        return isinstance(stmt, If) and stmt.cond in self.guards


def _rows_of(stmt: Stmt, name: str, found: Adding) -> For | None:
    """A nest that stores all of a buffer once, by whatever name, if its outermost loop goes over the rows, or over all
    elements as one axis."""
    if not isinstance(stmt, For) or stmt.kind != "map" or stmt.lo != ZERO or stmt.parallel:
        return None
    loops, inside = perfect(stmt)
    match inside:
        case (Store(buffer, index, op=None) as store,):
            pass
        case _:
            return None
    shape, axis = found.table[name].shape, found.axis[name]
    fixed = next(s.index[:axis] for s in walk(found.loop.body) if isinstance(s, Store) and s.buffer == name)
    counters = {x.var for x in loops}
    own, rest = index[:axis], index[axis:]
    if own != fixed or any(d.symbols() & counters for d in own) or found.memory.root[buffer] != found.memory.root[name]:
        return None
    read = found.memory.roots(a.buffer for a in accesses((store,)) if not a.writes)
    ends = tuple(x.hi for x in loops)
    if (
        found.memory.root[name] in read
        or any(x.lo != ZERO for x in loops)
        or rest != tuple(Dim.of(x.var) for x in loops)
    ):
        return None
    return stmt if ends in (shape[axis:], (product(shape[axis:]),)) else None


def _named(stmt: Stmt) -> Iterator[str]:
    return (a.buffer for a in accesses((stmt,)))


__all__ = ["Adding", "adding", "alone", "in_parts", "is_settled", "pays", "several", "taken"]
