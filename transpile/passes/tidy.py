"""Gives every loop its own variable name, and moves comments to the statements they speak of.

    # y = a + b                     for i in 0..N map:
    for i in 0..N map:        ->        # y = a + b
        y[i] = a[i] + b[i]              y[i] = a[i] + b[i]
    for i in 0..N map:              for i_2 in 0..N map:
        z[i] = y[i]                     z[i_2] = y[i_2]

Later passes compare loops by name, move them, and need not think of comments between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..dims import Dim
from ..ir import Buffer, Comment, For, Kernel, Stmt
from .tree import Body, Names, bodies, map_bodies, substitute, touched, walk


def tidy(kernel: Kernel) -> Kernel:
    taken = set(kernel.dims) | {s.name for s in kernel.scalars} | {b.name for b in kernel.buffers}
    # A new name is no loop's at all, or a loop further in that has it already would capture it.
    names = Names(taken | {s.var for s in walk(kernel.body) if isinstance(s, For)})
    own = _Own(taken, names, {b.name: b for b in kernel.buffers})
    body = own.body(_lower_comments(kernel.body))
    return replace(kernel, body=body, buffers=tuple(own.table.values()))


@dataclass(frozen=True)
class _Own:
    """Gives loops whose variables are taken new ones, and with them the extents of what is theirs."""

    taken: set[str]
    names: Names
    table: dict[str, Buffer]

    def body(self, body: Body) -> Body:
        return tuple(map_bodies(self.own(s) if isinstance(s, For) else s, self.body) for s in body)

    def own(self, loop: For) -> For:
        if loop.var not in self.taken:
            self.taken.add(loop.var)
            return loop
        fresh = self.names.fresh(loop.var)
        self.taken.add(fresh)
        for name in touched(loop.body):
            shape = tuple(d.subs({loop.var: Dim.of(fresh)}) for d in self.table[name].shape)
            self.table[name] = replace(self.table[name], shape=shape)
        return replace(loop, var=fresh, body=substitute(loop.body, {loop.var: Dim.of(fresh)}))


def _lower_comments(body: Body) -> Body:
    found: list[Stmt] = []
    waiting: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Comment):
            waiting.append(stmt)
            continue
        if isinstance(stmt, For):
            stmt = replace(stmt, body=(*waiting, *stmt.body))
        else:
            found += waiting
        waiting = []
        found.append(map_bodies(stmt, _lower_comments))
    return tuple(found)


def drop_idle(body: Body) -> Body:
    """Without comments that no statement follows, and without loops and branches that do nothing."""
    found: list[Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, drop_idle)
        if isinstance(stmt, Comment) and stmt in found:
            continue
        if bodies(stmt) and not any(bodies(stmt)) and not hasattr(stmt, "before"):
            continue
        found.append(stmt)
    while found and isinstance(found[-1], Comment):
        found.pop()
    return tuple(found)
