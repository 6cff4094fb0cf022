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
from ..ir import Buffer, Comment, For, Kernel, Stmt, Store
from .products import step
from .strips import set_first
from .tree import Access, Body, Names, accesses, buffers, dim_loads, map_bodies, map_places, roots, substitute, walk


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
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars)}
        self.rows: list[Buffer] = []

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Body:
        if isinstance(stmt, For) and stmt.kind == "map" and not stmt.parallel:
            numbers = self.numbers(stmt)
            if numbers is not None and self.pays(stmt):
                return self.apart(stmt, numbers)
        return (map_bodies(stmt, self.body),)

    # -- whether -------------------------------------------------------------------------------------------------
    def numbers(self, loop: For) -> set[str] | None:
        """The numbers that an iteration makes for itself; None where it does anything but add up and store what is its
        own."""
        inner = [s for s in walk(loop.body) if isinstance(s, For)]
        others = [s for s in walk(loop.body) if not isinstance(s, (For, Comment))]
        if any(s.kind != "map" for s in inner) or not all(isinstance(s, Store) for s in others):
            return None
        if not inner or not any(isinstance(s, Store) for s in loop.body):
            return None
        if not (loop.lo.symbols() | loop.hi.symbols()) <= self.sizes:
            return None
        ends = [d for s in (loop, *inner) for d in (s.lo, s.hi)]
        if any(dim_loads(d) for d in ends) or any(loop.var in d.symbols() for d in ends):
            return None
        touched = list(accesses(loop.body))
        if any(dim_loads(d) for a in touched for d in a.index or ()):
            return None
        own = {a.buffer for a in touched if a.writes and not a.index and self.is_private(a.buffer, loop)}
        written = {self.root[a.buffer] for a in touched if a.writes and a.buffer not in own}
        for a in touched:
            if a.buffer in own or self.root[a.buffer] not in written:
                continue
            if Dim.of(loop.var) not in (a.index or ()) and a.mode in ("r", "w"):
                return None  # what other iterations see
        return own

    def is_private(self, name: str, loop: For) -> bool:
        uses = sum(a.buffer == name for a in accesses(loop.body))
        buffer = self.table[name]
        alone = buffer.kind == "temp" and not buffer.shape and not buffer.alias and uses == self.uses[name]
        return alone and set_first(name, loop.body)

    def pays(self, loop: For) -> bool:
        """Whether memory lies along the loop, and along none in it."""
        places = [a for a in accesses(loop.body) if a.index and a.loops]
        inner = {x.var for a in places for x in a.loops}
        return any(self.is_along(a, loop.var) for a in places) and not any(
            self.is_along(a, var) for a in places for var in inner
        )

    def is_along(self, a: Access, var: str) -> bool:
        return step(a.index or (), self.table[a.buffer].shape, var) in (1, -1)

    # -- how -----------------------------------------------------------------------------------------------------
    def apart(self, loop: For, numbers: set[str]) -> Body:
        extent = loop.hi - loop.lo
        self.rows += [replace(self.table[n], shape=(extent,)) for n in sorted(numbers)]
        self.table |= {b.name: b for b in self.rows}
        at = (Dim.of(loop.var) - loop.lo,)
        body = map_places(loop.body, lambda name, index: (name, at if name in numbers else index))
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
            else:
                run.append(stmt)
        return (*found, *self.around(run, loop))

    def around(self, run: Sequence[Stmt], loop: For) -> Body:
        if not any(isinstance(s, Store) for s in run):
            return tuple(run)
        fresh = self.names.fresh(loop.var)
        return (replace(loop, var=fresh, body=substitute(tuple(run), {loop.var: Dim.of(fresh)})),)


__all__ = ["across"]
