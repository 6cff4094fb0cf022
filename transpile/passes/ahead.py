"""Rows are asked for before their turn, where processors do not see what comes next.

    for t: for i: d[t - n,i] = f(x[n - t,i])   ->   for t: for i (x[n - t - 4,i] ahead): d[n - t,i] = f(x[n - t,i])

All gradients of recurrences go back through rows: upwards in each, downwards from row to row. Processors fetch what
lies ahead in one direction, so what is FAR rows on is asked for. Last: nothing looks at what is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..dims import ONE, Dim, unclamped
from ..ir import Buffer, For, Kernel, Load, Stmt
from .rows import moves_by_one
from .tree import Body, accesses, buffers, in_vectors, map_bodies, map_stmts, walk

FAR = 4  # rows


def ahead(kernel: Kernel) -> Kernel:
    arrays = {n: b for n, b in buffers(kernel).items() if b.kind in ("in", "out")}

    def change(stmt: Stmt) -> Body:
        shared = any(isinstance(s, For) and s.parallel for s in walk((stmt,)))
        return (_backwards(stmt, arrays) if isinstance(stmt, For) and not shared else stmt,)

    return replace(kernel, body=map_stmts(kernel.body, change))


def _backwards(loop: For, table: Mapping[str, Buffer]) -> For:
    places = [place for stmt in loop.body for place in _rows(stmt, loop.var, table)]
    return replace(loop, body=tuple(_asking(s, loop.var, places) for s in loop.body)) if places else loop


def _rows(stmt: Stmt, outer: str, table: Mapping[str, Buffer]) -> list[Load]:
    """The first places of the rows that loops in a statement go along once, if an iteration more of the outer loop is
    one row back."""
    found: dict[tuple[str, tuple[Dim, ...]], Load] = {}
    for a in accesses((stmt,)):
        if a.buffer not in table or not a.index or not a.loops or not in_vectors(a.loops[-1]):
            continue
        buffer, row, (*around, loop) = table[a.buffer], a.index[:-1], a.loops
        if not {x.var for x in around} <= loop.lo.symbols().union(*(d.symbols() for d in row)):
            continue
        steps = [part[0] for part in (unclamped(d).split(outer) for d in row) if part is not None]
        if -ONE in steps and moves_by_one(a.index, buffer.shape, loop.var):
            found.setdefault((a.buffer, row), Load(a.buffer, a.index, buffer.dtype))
    return list(found.values())


def _asking(stmt: Stmt, outer: str, places: Collection[Load]) -> Stmt:
    """With these places of a later iteration asked for in the loops that are at those of this one."""
    if in_vectors(stmt):
        here = {(a.buffer, a.index) for a in accesses((stmt,))}
        later = {outer: Dim.of(outer) + FAR}
        return replace(stmt, ahead=(*stmt.ahead, *(p.subs(later) for p in places if (p.buffer, p.index) in here)))
    return map_bodies(stmt, lambda body: tuple(_asking(s, outer, places) for s in body))


__all__ = ["ahead"]
