"""A loop that finds its row in the cache asks memory for the next row meanwhile.

    for b: for i: s += x[b,i]                      for b: for i: s += x[b,i]
           for i: v += (x[b,i] - s)**2    ->              for i (x[b+1,i] ahead): v += (x[b,i] - s)**2

The first loop over a row waits for memory, those after it compute, and only loops that miss make the processor fetch
ahead: in turns each waits for the other. Last: nothing looks at what is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..dims import ONE, Dim
from ..ir import Buffer, For, Kernel, Load, Stmt
from .rows import moves_by_one
from .tree import accesses, buffers, in_vectors, map_bodies, map_stmts, walk

Row = tuple[str, tuple[Dim, ...]]  # a buffer, and all of the index but along the row


def ahead(kernel: Kernel) -> Kernel:
    table = {n: b for n, b in buffers(kernel).items() if b.kind == "in"}
    return replace(kernel, body=map_stmts(kernel.body, lambda s: (_ahead(s, table),)))


def _ahead(stmt: Stmt, table: Mapping[str, Buffer]) -> Stmt:
    if not isinstance(stmt, For) or stmt.parallel or any(isinstance(s, For) and s.parallel for s in walk(stmt.body)):
        return stmt
    seen: set[Row] = set()
    asked: set[Row] = set()
    body = []
    for inside in stmt.body:
        rows = _rows(inside, stmt.var, table)
        again = {row: place for row, place in rows.items() if row in seen - asked}
        seen |= rows.keys()
        asked |= again.keys()
        body.append(_with(inside, stmt.var, again.values()) if again else inside)
    return replace(stmt, body=tuple(body))


def _rows(stmt: Stmt, outer: str, table: Mapping[str, Buffer]) -> dict[Row, Load]:
    """The rows of this iteration that loops in a statement go along, and the first place of each."""
    found: dict[Row, Load] = {}
    for a in accesses((stmt,)):
        if a.mode != "r" or a.buffer not in table or not a.index or not a.loops or not in_vectors(a.loops[-1]):
            continue
        buffer, row = table[a.buffer], a.index[:-1]
        steps = [part[0] for part in (d.split(outer) for d in row) if part is not None]
        still = not any(d.symbols() & {loop.var for loop in a.loops} for d in row)
        if still and ONE in steps and moves_by_one(a.index, buffer.shape, a.loops[-1].var):
            found.setdefault((a.buffer, row), Load(a.buffer, a.index, buffer.dtype))
    return found


def _with(stmt: Stmt, outer: str, places: Collection[Load]) -> Stmt:
    """With the places of the next iteration asked for where those of this one are read."""
    if in_vectors(stmt):
        read = {(a.buffer, a.index) for a in accesses((stmt,))}
        step = {outer: Dim.of(outer) + 1}
        return replace(stmt, ahead=tuple(p.subs(step) for p in places if (p.buffer, p.index) in read))
    return map_bodies(stmt, lambda body: tuple(_with(s, outer, places) for s in body))
