"""Takes dear scalar statements out of a loop of loops, to be vectorised in a loop of their own.

    for j:                                              for j:
        d[j] = 0                                            d[j] = 0
        for k: d[j] += (x[k] - c[j,k]) ** 2       ->        for k: d[j] += (x[k] - c[j,k]) ** 2
        y[j] = exp(-d[j])                               for j: y[j] = exp(-d[j])

Only what ends the loop's body: nothing in it waits for the value. The array that carries the values over is
a row, and stays in L1; what carries one value at a time, as d[0] would, keeps the loop whole.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim
from ..ir import Comment, For, Kernel, Op, Stmt, Store
from ..operations import flops
from .depend import Memory, in_order
from .tree import Body, Names, has, map_bodies, parts, substitute

DEAR = 8  # flops: exp, log, tanh


def split(kernel: Kernel) -> Kernel:
    names = Names.of(kernel)
    batch = Dim.of(kernel.batch) if kernel.batch else None
    return replace(kernel, body=_body(kernel.body, names, batch, Memory.of(kernel)))


def _body(body: Body, names: Names, batch: Dim | None, memory: Memory) -> Body:
    return tuple(new for stmt in body for new in _stmt(stmt, names, batch, memory))


def _stmt(stmt: Stmt, names: Names, batch: Dim | None, memory: Memory) -> Body:
    within = memory.inside(stmt) if isinstance(stmt, For) else memory
    stmt = map_bodies(stmt, lambda inner: _body(inner, names, batch, within))
    if not isinstance(stmt, For) or stmt.kind != "map" or stmt.hi == batch or not has(stmt.body, For):
        return (stmt,)
    at = len(stmt.body)
    while at and isinstance(stmt.body[at - 1], (Store, Comment)):
        at -= 1
    head, tail = stmt.body[:at], stmt.body[at:]
    if not any(_is_dear(s) for s in tail) or not in_order(head, tail, stmt.var, within, {0, -1}):
        return (stmt,)
    var = names.fresh(stmt.var)
    return replace(stmt, body=head), replace(stmt, var=var, body=substitute(tail, {stmt.var: Dim.of(var)}))


def _is_dear(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and any(isinstance(p, Op) and flops(p.op) >= DEAR for p in parts(stmt.value))
