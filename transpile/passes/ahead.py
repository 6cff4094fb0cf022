"""Rows are asked for before their turn, where processors do not see what comes next.

    for b: for i: s += x[b,i]                      for b: for i: s += x[b,i]
           for i: v += (x[b,i] - s)**2    ->              for i (x[b+1,i] ahead): v += (x[b,i] - s)**2

The first loop over a row waits for memory, those after it compute, and only loops that miss make the processor fetch
ahead: in turns each waits for the other. So the second one asks for the next row. Where a loop goes back through rows,
as all gradients of recurrences do, upwards in each row and downwards from row to row, what is FAR rows on is asked
for. Last: nothing looks at what is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..dims import ONE, Dim, unclamped
from ..ir import Buffer, For, Kernel, Load, Stmt
from .rows import moves_by_one
from .tree import Body, accesses, buffers, in_vectors, map_bodies, map_stmts, walk

Row = tuple[str, tuple[Dim, ...]]  # a buffer, and all of the index but along the row
FAR = 4  # rows


def ahead(kernel: Kernel) -> Kernel:
    inputs = {n: b for n, b in buffers(kernel).items() if b.kind == "in"}
    arrays = {n: b for n, b in buffers(kernel).items() if b.kind in ("in", "out")}

    def change(stmt: Stmt) -> Body:
        shared = any(isinstance(s, For) and s.parallel for s in walk((stmt,)))
        return (_backwards(_again(stmt, inputs), arrays) if isinstance(stmt, For) and not shared else stmt,)

    return replace(kernel, body=map_stmts(kernel.body, change))


def _again(loop: For, table: Mapping[str, Buffer]) -> For:
    """Rows that a second statement goes along, too."""
    seen: set[Row] = set()
    asked: set[Row] = set()
    body = []
    for stmt in loop.body:
        rows = {row: place for row, place in _rows(stmt, loop.var, table, ONE).items() if _stays(row, stmt)}
        again = {row: place for row, place in rows.items() if row in seen - asked}
        seen |= rows.keys()
        asked |= again.keys()
        body.append(_asking(stmt, loop.var, 1, again.values()) if again else stmt)
    return replace(loop, body=tuple(body))


def _backwards(loop: For, table: Mapping[str, Buffer]) -> For:
    places = [place for stmt in loop.body for place in _rows(stmt, loop.var, table, -ONE).values()]
    return replace(loop, body=tuple(_asking(s, loop.var, FAR, places) for s in loop.body)) if places else loop


def _rows(stmt: Stmt, outer: str, table: Mapping[str, Buffer], step: Dim) -> dict[Row, Load]:
    """The rows that loops in a statement go along once, and the first place of each, if an iteration more of the outer
    loop is so many rows on."""
    found: dict[Row, Load] = {}
    for a in accesses((stmt,)):
        if a.buffer not in table or not a.index or not a.loops or not in_vectors(a.loops[-1]):
            continue
        buffer, row, (*around, loop) = table[a.buffer], a.index[:-1], a.loops
        if not {x.var for x in around} <= loop.lo.symbols().union(*(d.symbols() for d in row)):
            continue
        steps = [part[0] for part in (unclamped(d).split(outer) for d in row) if part is not None]
        if step in steps and moves_by_one(a.index, buffer.shape, loop.var):
            found.setdefault((a.buffer, row), Load(a.buffer, a.index, buffer.dtype))
    return found


def _stays(row: Row, stmt: Stmt) -> bool:
    """Whether a statement is at one such row only: what is asked for has to stay in a cache until its turn."""
    variables = {s.var for s in walk((stmt,)) if isinstance(s, For)}
    return not any(d.symbols() & variables for d in row[1])


def _asking(stmt: Stmt, outer: str, steps: int, places: Collection[Load]) -> Stmt:
    """With these places of a later iteration asked for in the loops that are at those of this one."""
    if in_vectors(stmt):
        here = {(a.buffer, a.index) for a in accesses((stmt,))}
        later = {outer: Dim.of(outer) + steps}
        return replace(stmt, ahead=(*stmt.ahead, *(p.subs(later) for p in places if (p.buffer, p.index) in here)))
    return map_bodies(stmt, lambda body: tuple(_asking(s, outer, steps, places) for s in body))
