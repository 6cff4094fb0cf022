"""Rows are asked for before their turn, where processors do not see what comes next.

    for t: for i: d[t - n,i] = f(x[n - t,i])   ->   for t: for i (x[n - t - 4,i] ahead): d[n - t,i] = f(x[n - t,i])

All gradients of recurrences go back through rows: upwards in each, downwards from row to row. Processors fetch what
lies ahead in one direction, so what is FAR rows on is asked for.

    for b:                                               for b:
        for i: top max= x[b,i]                 ->            for i: top max= x[b,i]
        for i: total += exp(x[b,i] - top)                    for i (x[b + 1,i] ahead): total += exp(x[b,i] - top)

What is gone over again comes from a cache, and memory would idle meanwhile: it fetches the rows of the next iteration.
Where little is computed of them, that pays only if all come from memory. Last: nothing looks at what is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..dims import ONE, ZERO, Dim, product, unclamped
from ..ir import Buffer, For, Kernel, Load, Op, Stmt, While
from ..operations import flops
from .questions import compared
from .rows import moves_by_one
from .tree import (
    Access,
    Body,
    accesses,
    buffers,
    degree,
    dim_loads,
    has,
    in_vectors,
    map_bodies,
    map_stmts,
    own_exprs,
    parts,
    walk,
)
from .work import LAST_CACHE

FAR = 4  # rows
DEAR = 10  # flops: an exponential
MUCH = 1 << 20  # elements: 4 MB, which no core has in a cache of its own


def ahead(kernel: Kernel) -> Kernel:
    arrays = {n: b for n, b in buffers(kernel).items() if b.kind in ("in", "out")}
    most = max(map(degree, arrays.values()), default=0)
    large = {n: b for n, b in arrays.items() if degree(b) == most}

    def change(stmt: Stmt) -> Body:
        if not isinstance(stmt, For) or any(isinstance(s, For) and s.parallel for s in walk((stmt,))):
            return (stmt,)
        found = _backwards(stmt, arrays)
        return (found if _is_name(found) else _again(found, large),)

    return replace(kernel, body=map_stmts(kernel.body, change))


def _backwards(loop: For, table: Mapping[str, Buffer]) -> For:
    places = [place for stmt in loop.body for place in _rows(stmt, loop.var, table)]
    return replace(loop, body=tuple(_asking(s, loop.var, places) for s in loop.body)) if places else loop


def _again(loop: For, table: Mapping[str, Buffer]) -> For:
    """With inputs that a later part of an iteration goes along again asked for there, for the next iteration."""
    next_, names = {loop.var: Dim.of(loop.var) + 1}, [loop]
    while len(names[-1].body) == 1 and _is_name(inner := names[-1].body[0]):
        assert isinstance(inner, For)
        next_[inner.var] = Dim.of(inner.var) + inner.lo.subs(next_) - inner.lo
        names.append(inner)
    seen: set[str] = set()
    body: list[Stmt] = []
    for stmt in names[-1].body:
        along = {name for a in accesses((stmt,)) if (name := _input_along(a, next_, table))}
        if has((stmt,), While):  # it would ask at every step
            along = set()
        body.append(_asked(stmt, along & seen, next_, table) if along & seen else stmt)
        seen = (seen | along) - (along & seen)
    found = replace(names[-1], body=tuple(body))
    for around in reversed(names[:-1]):
        found = replace(around, body=(found,))
    return found


def _is_name(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.hi - stmt.lo == ONE


def _input_along(a: Access, next_: Mapping[str, Dim], table: Mapping[str, Buffer]) -> str | None:
    """The input that is read along memory, once in an iteration, and in another row in the next one."""
    if not a.index or not a.loops or a.buffer not in table or table[a.buffer].kind != "in":
        return None
    if any(dim_loads(d) for d in a.index):
        return None  # the next one may be anywhere
    known = {s for d in a.index for s in d.symbols()}
    for loop in reversed(a.loops):
        if loop.var not in known:
            return None
        known |= loop.lo.symbols() | loop.hi.symbols()
    moves = any(d.subs(next_) != d for d in a.index[:-1]) and not next_.keys() & {x.var for x in a.loops}
    return a.buffer if moves and moves_by_one(a.index, table[a.buffer].shape, a.loops[-1].var) else None


def _asked(stmt: Stmt, names: Collection[str], next_: Mapping[str, Dim], table: Mapping[str, Buffer]) -> Stmt:
    """With what its loops read of these arrays asked for as the next iteration has it."""
    if not in_vectors(stmt):
        return map_bodies(stmt, lambda body: tuple(_asked(s, names, next_, table) for s in body))
    if stmt.ahead:
        return stmt
    along = [a for a in accesses((stmt,)) if a.buffer in names and _input_along(a, next_, table)]
    if not along:
        return stmt
    places = (Load(a.buffer, a.index or (), table[a.buffer].dtype).subs(next_) for a in along)
    moved, much = (names, MUCH) if _is_dear(stmt) else (table, LAST_CACHE)
    large = compared("greater", sum((product(table[n].shape) for n in moved), ZERO), much)
    return replace(stmt, ahead=tuple(dict.fromkeys(places)), when=large)


def _is_dear(loop: For) -> bool:
    exprs = (p for s in walk(loop.body) for e in own_exprs(s) for p in parts(e))
    return any(isinstance(p, Op) and flops(p.op) >= DEAR for p in exprs)


def _rows(stmt: Stmt, outer: str, table: Mapping[str, Buffer]) -> list[Load]:
    """The first places of the rows that loops in a statement go along once, if an iteration more of the outer loop is
    one row back."""
    found: dict[tuple[str, tuple[Dim, ...]], Load] = {}
    for a in accesses((stmt,)):
        if a.buffer not in table or not a.index or not a.loops or not in_vectors(a.loops[-1]):
            continue
        buffer, row, (*around, loop) = table[a.buffer], a.index[:-1], a.loops
        if any(dim_loads(d) for d in row) or not {x.var for x in around} <= loop.lo.symbols().union(
            *(d.symbols() for d in row)
        ):
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
