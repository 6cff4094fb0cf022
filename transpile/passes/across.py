"""A loop over what lies side by side in memory goes inside, with a row in the place of each number that it makes.

    for c in 0..C:                                    for c: m[c] = 0
        m = 0                                         for i: for j: for c: m[c] += x[i,j,c]
        for i: for j: m += x[i,j,c]           ->      for c: m[c] = m[c] / (H * W)
        m = m / (H * W)                               for i: for j: for c: y[i,j,c] = x[i,j,c] - m[c]
        for i: for j: y[i,j,c] = x[i,j,c] - m

As if it had been written of whole arrays. One channel after the other would jump through memory, in every sweep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..dims import Dim
from ..ir import Buffer, Check, Comment, For, Kernel, Stmt, Store
from .contract import stored_first
from .products import step
from .strips import set_first
from .tree import (
    Access,
    Body,
    Names,
    accesses,
    anew,
    buffers,
    dim_loads,
    loads,
    map_bodies,
    map_places,
    roots,
    symbols,
    walk,
)


def across(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body)
    rows = {b.name: b for b in state.rows}
    kept = tuple(rows.pop(b.name, b) for b in kernel.buffers)
    return replace(kernel, body=body, buffers=kept)


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.examples = Dim.of(kernel.batch or "")  # they are shared out, and have ways of their own to go abreast
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars)}
        self.seen_otherwise = {b.alias for b in kernel.buffers if b.alias}
        self.rows: list[Buffer] = []

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Body:
        if isinstance(stmt, For) and stmt.kind == "map" and stmt.hi != self.examples:
            numbers = self.numbers(stmt)
            if numbers is not None and self.pays(stmt):
                return self.apart(stmt, numbers)
        return (map_bodies(stmt, self.body),)

    # -- whether -------------------------------------------------------------------------------------------------
    def numbers(self, loop: For) -> set[str] | None:
        """The numbers and arrays that an iteration makes for itself; None where it does anything but add up and store
        what is its own."""
        inner = [s for s in walk(loop.body) if isinstance(s, For)]
        others = [s for s in walk(loop.body) if not isinstance(s, (For, Comment))]
        if not all(isinstance(s, (Store, Check)) for s in others) or not _asks_once(loop):
            return None
        if not inner or not any(isinstance(s, Store) for s in loop.body):
            return None
        if not (loop.lo.symbols() | loop.hi.symbols()) <= self.sizes:
            return None
        ends = [d for s in (loop, *inner) for d in (s.lo, s.hi)]
        if any(dim_loads(d) for d in ends) or any(loop.var in d.symbols() for d in ends):
            return None
        touched = list(accesses(loop.body))
        own = {n for n in {a.buffer for a in touched if a.writes} if self.is_private(n, loop)}
        written = {self.root[a.buffer] for a in touched if a.writes and a.buffer not in own}
        for a in touched:
            if a.buffer in own or self.root[a.buffer] not in written:
                continue
            if a.mode in ("r", "w") and not any(loop.var in d.symbols() for d in a.index or ()):
                return None  # each iteration's own for a while, but others use it, too
        return own

    def is_private(self, name: str, loop: For) -> bool:
        uses = sum(a.buffer == name for a in accesses(loop.body))
        buffer = self.table[name]
        if buffer.kind != "temp" or self.root[name] != name or name in self.seen_otherwise or uses != self.uses[name]:
            return False
        return stored_first(loop.body, buffer, set()) if buffer.shape else set_first(name, loop.body)

    def pays(self, loop: For) -> bool:
        """Whether memory lies along the loop, and nothing that differs between its iterations along one in it."""
        places = [a for a in accesses(loop.body) if a.index and self.table[a.buffer].kind != "temp"]
        own = [a for a in places if any(loop.var in d.symbols() for d in a.index or ())]
        if not any({x.var for x in a.loops} & d.symbols() for a in own for d in a.index or ()):
            return False  # what goes on inside is each iteration's own: that may stay in registers (`lanes`)
        along = any(self.is_along(a, loop.var) for a in own)
        return along and not any(self.is_along(a, x.var) for a in own for x in a.loops)

    def is_along(self, a: Access, var: str) -> bool:
        return step(a.index or (), self.table[a.buffer].shape, var) in (1, -1)

    # -- how -----------------------------------------------------------------------------------------------------
    def apart(self, loop: For, numbers: set[str]) -> Body:
        extent = loop.hi - loop.lo
        self.rows += [replace(self.table[n], shape=(*self.table[n].shape, extent)) for n in sorted(numbers)]
        self.table |= {b.name: b for b in self.rows}
        at = (Dim.of(loop.var) - loop.lo,)
        body = map_places(loop.body, lambda name, index: (name, (*index, *at) if name in numbers else index))
        return self.inside(body, loop)

    def inside(self, body: Body, loop: For) -> Body:
        """The loop around each part that has none of its own, and inside the others."""
        found: list[Stmt] = []
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                found += self.around(run, loop)
                found.append(replace(stmt, body=self.inside(stmt.body, loop)))
                run = []
                continue
            if run and isinstance(stmt, Check) is not isinstance(run[-1], Check):
                found += self.around(run, loop)
                run = []
            run.append(stmt)
        return (*found, *self.around(run, loop))

    def around(self, run: Sequence[Stmt], loop: For) -> Body:
        if not any(isinstance(s, (Store, Check)) for s in run):
            return tuple(run)
        return (anew(replace(loop, body=tuple(run)), self.names),)


def _asks_once(loop: For) -> bool:
    """Whether the first of several faults stays that: all that may differ between iterations is asked at the end."""
    checks = [s for s in loop.body if isinstance(s, Check)]
    counters = {loop.var, *(s.var for s in walk(loop.body) if isinstance(s, For))}
    steady = (not symbols(s.cond) & counters and not any(loads(s.cond)) for s in checks[:-1])
    return len(checks) == sum(isinstance(s, Check) for s in walk(loop.body)) and all(steady)


__all__ = ["across"]
