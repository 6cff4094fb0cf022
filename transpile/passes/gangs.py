"""What each row ends with is computed for many rows side by side.

    for b:                                          for g: for row in a gang of 32:
        for i: total += exp(x[b,i])                         for i: total += exp(x[32*g + row, i])
        y[b] = log(total)                  ->               totals[row] = total
                                                        for row: y[32*g + row] = log(totals[row])

A number's logarithm takes as long as that of sixteen. As `split`, which does it for whole loops inside an example; here
the loop goes over examples, or over a thread's share of them, and a gang's numbers stay in L1. After `chunk`: how the
loop is shared out stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ..dims import Dim, minimum
from ..ir import Buffer, Comment, Expr, For, Kernel, Load, Op, Stmt, Store
from ..operations import flops
from .depend import Memory, in_order
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    has,
    in_vectors,
    map_all,
    map_bodies,
    map_places,
    own_exprs,
    parts,
    substitute,
    touched,
)

GANG = 32  # rows
CHEAP = 8  # flops: less than a quotient
DEAR = 16  # flops of what is not cheap: two quotients, a logarithm


def gangs(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.names = Names.of(kernel)
        self.table = {b.name: b for b in kernel.buffers}
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.made: list[Buffer] = []

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(self.stmt(s, memory) for s in body)

    def stmt(self, stmt: Stmt, memory: Memory) -> Stmt:
        within = memory.inside(stmt) if isinstance(stmt, For) else memory
        stmt = map_bodies(stmt, lambda inner: self.body(inner, within))
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.parallel or not _has_rows(stmt.body):
            return stmt
        return self.in_gangs(stmt, within) or stmt

    def in_gangs(self, loop: For, memory: Memory) -> For | None:
        at = len(loop.body)
        while at and isinstance(loop.body[at - 1], (Store, Comment)):
            at -= 1
        while at < len(loop.body) and not _dear(loop.body[at]):
            at += 1
        head, tail = loop.body[:at], loop.body[at:]
        if sum(map(_dear, tail)) < DEAR or not self.is_own(tail, loop.var):
            return None
        carried = sorted(n for n in touched(head) & touched(tail) if not self.table[n].shape)
        kept = {n: self.names.fresh(f"{n}_of") for n in carried}
        begins, ends = _expanded(head, tail, {n: self.table[n].dtype for n in carried}, kept, Dim.of(loop.var))
        if not in_order(begins, ends, loop.var, memory, {0, -1}):
            return None
        self.made += [Buffer(kept[n], self.table[n].dtype, (Dim.of(GANG),), "temp") for n in carried]
        group, row, last = (self.names.fresh(n) for n in ("gang", "row", "row"))
        first = loop.lo + Dim.of(group) * GANG
        count = minimum(Dim.of(GANG), loop.hi - first)
        inside = tuple(
            replace(loop, var=var, lo=Dim.of(0), hi=count, body=_at(body, loop.var, first + Dim.of(var), kept, var))
            for var, body in ((row, begins), (last, ends))
        )
        return replace(loop, var=group, lo=Dim.of(0), hi=(loop.hi - loop.lo + (GANG - 1)) // GANG, body=inside)

    def is_own(self, tail: Body, var: str) -> bool:
        """Whether iterations share nothing that the tail stores: places of their own, or numbers that it alone asks
        for."""
        asked = Counter(a.buffer for a in accesses(tail))
        for stmt in tail:
            if not isinstance(stmt, Store):
                continue
            single = not stmt.index and self.table[stmt.buffer].kind == "temp"
            if stmt.op or (single and asked[stmt.buffer] != self.uses[stmt.buffer]):
                return False
            if not single and not any(d == Dim.of(var) for d in stmt.index):
                return False
        return True


def _expanded(
    head: Body, tail: Body, carried: Mapping[str, str], kept: Mapping[str, str], place: Dim
) -> tuple[Body, Body]:
    """The two parts of an iteration, arrays for the numbers that go from one to the other; `carried`: their types."""

    def there(e: Expr) -> Expr:
        return Load(kept[e.buffer], (place,), e.dtype) if isinstance(e, Load) and e.buffer in kept else e

    copies = tuple(Store(kept[n], (place,), Load(n, (), dtype)) for n, dtype in carried.items())
    return (*head, *copies), map_all(tail, there)


def _at(body: Body, var: str, iteration: Dim, kept: Mapping[str, str], row: str) -> Body:
    """What an iteration does, in the row of a gang that it is."""
    arrays = set(kept.values())

    def place(buffer: str, index: Index) -> tuple[str, Index]:
        return buffer, (Dim.of(row),) if buffer in arrays else index

    return map_places(substitute(body, {var: iteration}), place)


def _has_rows(body: Body) -> bool:
    return any(in_vectors(s) or (isinstance(s, For) and has(s.body, For)) for s in body)


def _dear(stmt: Stmt) -> int:
    """The flops of operations that take longer than an addition."""
    costs = (flops(p.op) for e in own_exprs(stmt) for p in parts(e) if isinstance(p, Op))
    return sum(n for n in costs if n >= CHEAP)


__all__ = ["gangs"]
