"""Takes dear scalar statements out of a loop of loops, to be vectorised in a loop of their own.

    for j:                                              for j:
        d[j] = 0                                            d[j] = 0
        for k: d[j] += (x[k] - c[j,k]) ** 2       ->        for k: d[j] += (x[k] - c[j,k]) ** 2
        y[j] = exp(-d[j])                               for j: y[j] = exp(-d[j])

Only what ends the loop's body, or begins it and lies in an array anyway. The array that carries the values over is a
row, and stays in L1; what carries one value at a time, as d[0] would, keeps the loop whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from ..dims import Dim
from ..ir import Comment, For, Kernel, Op, Stmt, Store
from ..operations import flops
from .depend import Memory, in_order
from .tree import Body, Names, accesses, anew, has, map_bodies, parts

DEAR = 8  # flops: exp, log, tanh


def split(kernel: Kernel) -> Kernel:
    uses = Counter(a.buffer for a in accesses(kernel.body))
    state = _Split(Names.of(kernel), Dim.of(kernel.batch) if kernel.batch else None, uses)
    return replace(kernel, body=state.body(kernel.body, Memory.of(kernel)))


@dataclass(frozen=True)
class _Split:
    names: Names
    batch: Dim | None
    uses: Counter[str]

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        within = memory.inside(stmt) if isinstance(stmt, For) else memory
        stmt = map_bodies(stmt, lambda inner: self.body(inner, within))
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.hi == self.batch or not has(stmt.body, For):
            return (stmt,)
        pieces = [stmt.body]
        end = _behind_loops(stmt.body)
        head, tail = stmt.body[:end], stmt.body[end:]
        if any(map(_is_dear, tail)) and in_order(head, tail, stmt.var, within, {0, -1}):
            pieces = [head, tail]
        front, rest = self.kept(stmt, pieces[0])
        if front and in_order(front, rest, stmt.var, within, {0, -1}):
            pieces[:1] = [front, rest]
        found = [replace(stmt, body=piece) for piece in pieces]
        return (found[0], *(anew(loop, self.names) for loop in found[1:]))

    def kept(self, loop: For, body: Body) -> tuple[Body, Body]:
        """What is dear before the first loop and has an array anyway, as others read it, too; and the rest."""
        inside = Counter(a.buffer for a in accesses(loop.body))
        at = next(k for k, s in enumerate(body) if not isinstance(s, (Store, Comment)))
        while at and not (_is_dear(body[at - 1]) and self.is_read_elsewhere(body[at - 1], inside)):
            at -= 1
        return body[:at], body[at:]

    def is_read_elsewhere(self, stmt: Stmt, inside: Counter[str]) -> bool:
        return isinstance(stmt, Store) and self.uses[stmt.buffer] > inside[stmt.buffer]


def _behind_loops(body: Body) -> int:
    """Where what is behind the last loop begins."""
    at = len(body)
    while isinstance(body[at - 1], (Store, Comment)):
        at -= 1
    return at


def _is_dear(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and any(isinstance(p, Op) and flops(p.op) >= DEAR for p in parts(stmt.value))
