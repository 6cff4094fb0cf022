"""What a loop adds at one place of an array, to which it adds along the loop, too, is added up aside.

    for j in 0..K:                                  total = 0
        d[j] += g                                   for j in 0..K:
        d[at] += -g                     ->              d[j] += g
                                                        total += -g
                                                    if 0 <= at < K: d[at] += total

The loop is then along memory, with a sum beside it. Nobody may have added there: what is not a place is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from ..dims import Dim, Facts, nonnegative
from ..ir import FLOATS, Buffer, Const, Expr, For, If, Kernel, Load, Op, Stmt, Store
from .depend import Memory
from .ends import compared
from .tree import Body, Names, accesses, buffers, dim_loads, map_bodies, map_stmts, walk, written


def aside(kernel: Kernel) -> Kernel:
    loops = _Loops(buffers(kernel), Names.of(kernel))
    body = loops.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *loops.made)) if loops.made else kernel


@dataclass(frozen=True)
class _Loops:
    table: dict[str, Buffer]
    names: Names
    made: list[Buffer] = field(default_factory=list)

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, memory)),)
        before: list[Stmt] = []
        after: list[Stmt] = []
        body, inside = stmt.body, memory.inside(stmt)
        for place in dict.fromkeys(_places(stmt, memory, self.table)):
            dtype = self.table[place.buffer].dtype
            total = self.names.fresh(f"{place.buffer}_sum")
            self.made.append(Buffer(total, dtype, (), "temp"))
            inside = inside.beside(self.made[-1:])
            before.append(Store(total, (), Const(0.0, dtype)))
            add = Store(place.buffer, place.index, Load(total, (), dtype), "add")
            after.append(if_there(add, self.table[place.buffer], memory.facts))
            body = map_stmts(body, partial(_moved, place, total))
        return (*before, replace(stmt, body=self.body(body, inside)), *after)


def _places(loop: For, memory: Memory, table: dict[str, Buffer]) -> Iterator[Load]:
    """Where the loop adds all the time, of arrays that it adds to elsewhere and does nothing else with."""
    counters = {loop.var, *(s.var for s in walk(loop.body) if isinstance(s, For))}
    changed = {memory.root[n] for n in written(loop.body)}
    stores = [s for s in walk(loop.body) if isinstance(s, Store)]

    def stays(store: Store) -> bool:
        looked = {memory.root[load.buffer] for d in store.index for load in dim_loads(d)}
        return not looked & changed and not any(counters & d.symbols() for d in store.index)

    for name in dict.fromkeys(s.buffer for s in stores if s.index):
        added = [s for s in stores if memory.root[s.buffer] == memory.root[name]]
        here = [a for a in accesses(loop.body) if memory.root[a.buffer] == memory.root[name]]
        if any(s.op != "add" or s.buffer != name for s in added) or len(here) != len(added):
            continue
        dtype = table[name].dtype
        still = [stays(s) for s in added]
        along = [loop.var in {v for d in s.index for v in d.symbols()} for s in added]
        if any(still) and any(along) and dtype in FLOATS:
            yield from (Load(name, s.index, dtype) for s, yes in zip(added, still, strict=True) if yes)


def _moved(place: Load, total: str, stmt: Stmt) -> Body:
    if isinstance(stmt, Store) and stmt.buffer == place.buffer and stmt.index == place.index:
        return (replace(stmt, buffer=total, index=()),)
    return (stmt,)


def if_there(add: Store, buffer: Buffer, facts: Facts) -> Stmt:
    """Adds if there is such a place."""
    cond: Expr | None = None
    for d, extent in zip(add.index, buffer.shape, strict=True):
        for op, bound, room in (("greater_equal", Dim.of(0), d), ("less", extent, extent - d - 1)):
            if not nonnegative(room, facts):
                holds = compared(op, d, bound)
                cond = holds if cond is None else Op("logical_and", (cond, holds), "bool")
    return add if cond is None else If(cond, (add,))


__all__ = ["aside", "if_there"]
