"""What a loop asks of an index that it does not change is asked before it, if it is asked at all.

    for j in 0..K:                                      at = label
        at = label; check 0 <= at < K                   check K <= 0 or 0 <= at < K
        s += max(x[j] - x[at], 0)             ->        for j in 0..K:
                                                            s += max(x[j] - x[at], 0)

Numbers of which each iteration makes the same go with it. Not where the loop asks something else, too: which fault is
the first must stay. What only a branch asks is asked of the iterations that take it, before the loop, where it does
not hold:

    for j in 0..K:                                      at = label
        if j != label:                                  if not (0 <= at < K):
            at = label; check 0 <= at < K     ->            for j in 0..K: if j != label: check 0 <= at < K
            s += max(x[j] - x[at], 0)                   for j in 0..K: if j != label: s += max(x[j] - x[at], 0)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from ..dims import Dim, nonnegative
from ..ir import Buffer, Check, Const, Expr, For, If, Kernel, Load, Op, Stmt, Store, While
from .depend import Memory
from .ends import compared, unless
from .predicate import harmless
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    buffers,
    dim_loads,
    has,
    loads,
    map_all,
    map_bodies,
    own_accesses,
    own_dims,
    own_exprs,
    rename_buffers,
    substitute,
    symbols,
    walk,
    written,
)


def steady(kernel: Kernel) -> Kernel:
    if not has(kernel.body, Check):
        return kernel
    numbers = {n for n, b in buffers(kernel).items() if b.kind == "temp" and not b.shape and not b.alias}
    uses = Counter(a.buffer for a in accesses(kernel.body))
    loops = _Loops(numbers, uses, Names.of(kernel), buffers(kernel))
    body = loops.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *loops.made))


@dataclass(frozen=True)
class _Loops:
    """`numbers`: temporaries without axes; `uses`: how often the kernel touches each buffer."""

    numbers: set[str]
    uses: Counter[str]
    names: Names
    table: dict[str, Buffer]
    made: list[Buffer] = field(default_factory=list)

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, memory)),)
        loop = replace(stmt, body=self.body(stmt.body, memory.inside(stmt)))
        checks = [s for s in walk(loop.body) if isinstance(s, Check)]
        if not checks:
            return (loop,)
        first = self.of_all(loop, memory)
        asked = _asked(loop.body, {memory.root.get(n, n) for n in written(_without(loop.body, first))}, memory)
        if asked is None or not all(any(s is check for s in first) for check in checks):
            return (loop,)
        rest = _without(loop.body, first)
        same = _same(first)
        rest, asked, once = (rename_buffers(part, same) for part in (rest, asked, _once(first, same)))
        runs = loop.hi - loop.lo
        idle = None if nonnegative(runs - 1, memory.facts) else compared("less_equal", runs, Dim.of(0))
        places = {s.buffer for s in once if isinstance(s, Store)}
        changed = {memory.root.get(n, n) for n in written(rest)}
        counters = {loop.var, *(s.var for s in walk(rest) if isinstance(s, For))}
        looks = dict.fromkeys(
            e for s in walk(rest) for e in _looks(s, places) if not _in_row(e.index, places, counters)
        )
        still = all(
            not counters & symbols(e) and not {memory.root.get(x.buffer, x.buffer) for x in loads(e)} & changed
            for e in looks
        )
        if not still or any(_goes_along(s, places, counters) for s in walk(rest)):
            return (loop,)  # what is looked up, or stored, at one place for all of an axis is for `channels`
        loop = replace(loop, body=rest)
        if has(asked, If):
            return (*self.asked_before(loop, once, asked), *self.read_before(loop, list(looks), self.in_range(places)))
        checked = (unless(idle, s, loop, loop.lo) if isinstance(s, Check) else s for s in once)
        return (*checked, *self.read_before(loop, list(looks), lambda _: idle))

    def asked_before(self, loop: For, first: Body, asked: Body) -> Body:
        """The numbers, and, where a check does not hold, the loop with nothing but its branches and checks."""
        var = self.names.fresh(loop.var)
        again = For(var, loop.lo, loop.hi, substitute(asked, {loop.var: Dim.of(var)}), "seq")
        conds = dict.fromkeys(s.cond for s in first if isinstance(s, Check))
        fails = Op("logical_not", (_all(list(conds)),), "bool")
        return (*(s for s in first if isinstance(s, Store)), If(fails, (again,)))

    def in_range(self, places: set[str]) -> Callable[[Load], Expr]:
        """Whether what is read is there: nobody may have asked."""

        def absent(e: Load) -> Expr:
            asked = [
                compared(op, d, bound)
                for d, extent in zip(e.index, self.table[e.buffer].shape, strict=True)
                if any(load.buffer in places for load in dim_loads(d))
                for op, bound in (("greater_equal", Dim.of(0)), ("less", extent))
            ]
            return Op("logical_not", (_all(asked),), "bool")

        return absent

    def read_before(self, loop: For, looks: list[Load], absent: Callable[[Load], Expr | None]) -> Body:
        """What the loop reads from the places is read before it, unless it is absent."""
        names = {e: self.names.fresh(f"{e.buffer}_there") for e in looks}
        self.made.extend(Buffer(name, e.dtype, (), "temp") for e, name in names.items())

        def there(e: Expr) -> Expr:
            return Load(names[e], (), e.dtype) if isinstance(e, Load) and e in names else e

        taken: dict[Expr | None, list[Store]] = {}
        for e, name in names.items():
            taken.setdefault(absent(e), []).append(Store(name, (), e))
        read: list[Stmt] = []
        for cond, stores in taken.items():
            none = tuple(replace(s, value=Const(0, s.value.dtype)) for s in stores if isinstance(s.value, Load))
            read += stores if cond is None else [If(cond, none, tuple(stores))]
        return (*read, replace(loop, body=map_all(loop.body, there)))

    def of_all(self, loop: For, memory: Memory) -> list[Stmt]:
        """The checks, and what makes the numbers of the loop's own that they read, which are the same for all
        iterations."""
        inside = Counter(a.buffer for a in accesses(loop.body))
        stores = Counter(a.buffer for a in accesses(loop.body) if a.writes)
        changed = {memory.root.get(n, n) for n in written(loop.body)}
        found: list[Stmt] = []
        for stmt in _ways(loop.body):
            read = {memory.root.get(name, name) for name, _, mode in own_accesses(stmt) if mode == "r"}
            told = {v for e in own_exprs(stmt) for v in symbols(e)} | {v for d in own_dims(stmt) for v in d.symbols()}
            if read & changed or loop.var in told:
                continue
            if isinstance(stmt, Check):
                found.append(stmt)
            elif isinstance(stmt, Store) and stmt.buffer in self.numbers and not stmt.op:
                own = stores[stmt.buffer] == 1 and self.uses[stmt.buffer] == inside[stmt.buffer]
                if own and harmless(stmt.value, memory):
                    found.append(stmt)
                    changed.discard(stmt.buffer)
        return found


def _ways(body: Body) -> Iterator[Stmt]:
    """The statements of a body and of its branches, as they come."""
    for stmt in body:
        if isinstance(stmt, If):
            yield from _ways(stmt.then)
            yield from _ways(stmt.orelse)
        else:
            yield stmt


def _without(body: Body, some: list[Stmt]) -> Body:
    """Without these statements of it and of its branches; a branch that nothing is left of goes, too."""
    kept: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, If):
            stmt = replace(stmt, then=_without(stmt.then, some), orelse=_without(stmt.orelse, some))
            kept += [stmt] if stmt.then or stmt.orelse else []
        elif not any(stmt is s for s in some):
            kept.append(stmt)
    return tuple(kept)


def _asked(body: Body, changed: set[str], memory: Memory) -> Body | None:
    """The checks, in their branches. None where more than arguments and what the loop leaves alone tells the way, or
    where a loop inside asks."""
    found: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Check():
                found.append(stmt)
            case If(cond) if has((stmt,), Check):
                then, orelse = _asked(stmt.then, changed, memory), _asked(stmt.orelse, changed, memory)
                told = {memory.root.get(e.buffer, e.buffer) for e in loads(cond)}
                if then is None or orelse is None or told & changed:
                    return None
                found.append(If(cond, then, orelse))
            case For() | While() if has((stmt,), Check):
                return None
    return tuple(found)


def _all(conds: list[Expr]) -> Expr:
    return reduce(lambda a, b: Op("logical_and", (a, b), "bool"), conds)


def _same(first: list[Stmt]) -> dict[str, str]:
    """Numbers that are one that was made before."""
    made: dict[Expr, str] = {}
    same: dict[str, str] = {}
    for stmt in first:
        if isinstance(stmt, Store):
            (renamed,) = rename_buffers((stmt,), same)
            assert isinstance(renamed, Store)
            if made.setdefault(renamed.value, stmt.buffer) != stmt.buffer:
                same[stmt.buffer] = made[renamed.value]
    return same


def _once(first: list[Stmt], same: dict[str, str]) -> Body:
    return tuple(s for s in first if not (isinstance(s, Store) and s.buffer in same))


def _looks(stmt: Stmt, places: set[str]) -> list[Load]:
    """What a statement reads from places that these numbers tell."""
    found = [e for own in own_exprs(stmt) for e in loads(own)]
    return [e for e in found if any(load.buffer in places for d in e.index for load in dim_loads(d))]


def _goes_along(stmt: Stmt, places: set[str], counters: set[str]) -> bool:
    """Whether it stores at places that these numbers and a loop tell."""
    if not isinstance(stmt, Store) or not any(load.buffer in places for d in stmt.index for load in dim_loads(d)):
        return False
    return any(counters & d.symbols() for d in stmt.index) and not _in_row(stmt.index, places, counters)


def _in_row(index: Index, places: set[str], counters: set[str]) -> bool:
    """Whether these numbers tell a row, and a loop goes along it."""
    rows = [k for k, d in enumerate(index) if any(load.buffer in places for load in dim_loads(d))]
    along = [k for k, d in enumerate(index) if counters & d.symbols()]
    return bool(along) and max(rows, default=-1) < min(along)


__all__ = ["steady"]
