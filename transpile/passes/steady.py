"""What a loop asks of an index that it does not change is asked before it, if it is asked at all.

    for j in 0..K:                                      at = label
        at = label; check 0 <= at < K                   check K <= 0 or 0 <= at < K
        s += max(x[j] - x[at], 0)             ->        for j in 0..K:
                                                            s += max(x[j] - x[at], 0)

Numbers of which each iteration makes the same go with it. Not where the loop asks something else, too: which fault is
the first must stay.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from ..dims import Dim, nonnegative
from ..ir import Buffer, Check, Const, Expr, For, If, Kernel, Load, Stmt, Store
from .depend import Memory
from .ends import compared, unless
from .predicate import harmless
from .tree import (
    Body,
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
    symbols,
    walk,
    written,
)


def steady(kernel: Kernel) -> Kernel:
    if not has(kernel.body, Check):
        return kernel
    numbers = {n for n, b in buffers(kernel).items() if b.kind == "temp" and not b.shape and not b.alias}
    uses = Counter(a.buffer for a in accesses(kernel.body))
    loops = _Loops(numbers, uses, Names.of(kernel))
    body = loops.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *loops.made))


@dataclass(frozen=True)
class _Loops:
    """`numbers`: temporaries without axes; `uses`: how often the kernel touches each buffer."""

    numbers: set[str]
    uses: Counter[str]
    names: Names
    made: list[Buffer] = field(default_factory=list)

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, memory)),)
        loop = replace(stmt, body=self.body(stmt.body, memory.inside(stmt)))
        checks = [s for s in loop.body if isinstance(s, Check)]
        if not checks or has([s for s in loop.body if not isinstance(s, Check)], Check):
            return (loop,)
        first = self.of_all(loop, memory)
        if not all(any(s is check for s in first) for check in checks):
            return (loop,)
        runs = loop.hi - loop.lo
        idle = None if nonnegative(runs - 1, memory.facts) else compared("less_equal", runs, Dim.of(0))
        before = tuple(unless(idle, s, loop, loop.lo) if isinstance(s, Check) else s for s in first)
        rest = tuple(s for s in loop.body if not any(s is f for f in first))
        places = {s.buffer for s in first if isinstance(s, Store)}
        changed = {memory.root.get(n, n) for n in written(rest)}
        counters = {loop.var, *(s.var for s in walk(rest) if isinstance(s, For))}
        looks = dict.fromkeys(e for s in walk(rest) for e in _looks(s, places))
        still = all(
            not counters & symbols(e) and not {memory.root.get(x.buffer, x.buffer) for x in loads(e)} & changed
            for e in looks
        )
        if not still or any(_goes_along(s, places, counters) for s in walk(rest)):
            return (loop,)  # what is looked up, or stored, at one place for all of an axis is for `channels`
        return (*before, *self.read_before(replace(loop, body=rest), list(looks), idle))

    def read_before(self, loop: For, looks: list[Load], idle: Expr | None) -> Body:
        """What the loop reads from the places is read before it."""
        names = {e: self.names.fresh(f"{e.buffer}_there") for e in looks}
        self.made.extend(Buffer(name, e.dtype, (), "temp") for e, name in names.items())

        def there(e: Expr) -> Expr:
            return Load(names[e], (), e.dtype) if isinstance(e, Load) and e in names else e

        taken: Body = tuple(Store(name, (), e) for e, name in names.items())
        if idle is not None and taken:
            taken = (If(idle, tuple(Store(name, (), Const(0, e.dtype)) for e, name in names.items()), taken),)
        return (*taken, replace(loop, body=map_all(loop.body, there)))

    def of_all(self, loop: For, memory: Memory) -> list[Stmt]:
        """The checks, and what makes the numbers of the loop's own that they read, which are the same for all
        iterations."""
        inside = Counter(a.buffer for a in accesses(loop.body))
        stores = Counter(a.buffer for a in accesses(loop.body) if a.writes)
        changed = {memory.root.get(n, n) for n in written(loop.body)}
        found: list[Stmt] = []
        for stmt in loop.body:
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


def _looks(stmt: Stmt, places: set[str]) -> list[Load]:
    """What a statement reads from places that these numbers tell."""
    found = [e for own in own_exprs(stmt) for e in loads(own)]
    return [e for e in found if any(load.buffer in places for d in e.index for load in dim_loads(d))]


def _goes_along(stmt: Stmt, places: set[str], counters: set[str]) -> bool:
    """Whether it stores at places that these numbers and a loop tell."""
    if not isinstance(stmt, Store) or not any(load.buffer in places for d in stmt.index for load in dim_loads(d)):
        return False
    return any(counters & d.symbols() for d in stmt.index)


__all__ = ["steady"]
