"""Loops that jump through memory go out of one along it that only works out where, and how much.

    for i in 0..H:                                          for i in 0..H:
        for j in 0..W:                                          for c in 0..C:
            u = j / 2 - 0.25; at = int(u)                           for j in 0..W:
            for c in 0..C: y[c,i,j] = x[c,i,at] * u       ->            u = j / 2 - 0.25; at = int(u)
            for c in 0..C: y[c,i,j] += x[c,i,at + 1]                    y[c,i,j] = x[c,i,at] * u
                                                                        y[c,i,j] += x[c,i,at + 1]

As if the channels had been written outside: the loop along memory is the innermost, where places that repeat are seen
(`periods`). What is worked out hangs on counters only; it is worked out once more for each channel, or, later, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from ..dims import Dim
from ..ir import Comment, For, If, Kernel, Load, Stmt, Store
from .depend import Memory, injective
from .predicate import may_trap
from .products import step
from .strips import set_first
from .tree import Access, Body, Names, accesses, buffers, dim_loads, map_bodies, parts, roots, substitute, touched, walk


def outward(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    return replace(kernel, body=state.body(kernel.body))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.facts = Memory.of(kernel).facts
        self.uses = Counter(a.buffer for a in accesses(kernel.body))

    def body(self, body: Body) -> Body:
        return tuple(self.stmt(s) for s in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        stmt = map_bodies(stmt, self.body)
        return self.moved(stmt) if isinstance(stmt, For) else stmt

    def moved(self, loop: For) -> For:
        body = [s for s in loop.body if not isinstance(s, Comment)]
        inner = [s for s in body if isinstance(s, For)]
        if len(body) < 2 or not inner or not self.may_be(loop, body, inner) or not self.pays(loop, inner):
            return loop
        var = self.names.fresh(inner[0].var)
        whole: list[Stmt] = []
        for stmt in body:
            whole += substitute(stmt.body, {stmt.var: Dim.of(var)}) if isinstance(stmt, For) else (stmt,)
        return replace(inner[0], var=var, body=(replace(loop, body=tuple(whole)),))

    # -- whether -------------------------------------------------------------------------------------------------
    def may_be(self, loop: For, body: Sequence[Stmt], inner: Sequence[For]) -> bool:
        """Whether the inner loops go over one range, and none of their iterations needs what another one leaves."""
        first = inner[0]
        if any(s.kind != "map" or s.parallel or (s.lo, s.hi) != (first.lo, first.hi) for s in (loop, *inner)[1:]):
            return False
        if loop.kind != "map" or loop.parallel:
            return False
        if any(loop.var in d.symbols() or any(dim_loads(d)) for d in (first.lo, first.hi)):
            return False
        if not all(isinstance(s, (Store, For, If, Comment)) for s in walk(inner)):
            return False
        if not all(isinstance(s, For) or (isinstance(s, Store) and self.is_worked_out(s, loop)) for s in body):
            return False
        return all(self.is_own(s) for s in inner) and all(self.are_apart(a, b) for a, b in combinations(inner, 2))

    def is_worked_out(self, stmt: Store, loop: For) -> bool:
        """Whether it is a variable of an iteration, of counters and other such variables."""
        plain = all(not (isinstance(p, Load) and p.index) and not may_trap(p) for p in parts(stmt.value))
        return not stmt.index and stmt.op is None and plain and self.is_private(stmt.buffer, loop)

    def is_private(self, name: str, loop: For) -> bool:
        return self.is_within(name, loop) and set_first(name, loop.body)

    def is_within(self, name: str, loop: For) -> bool:
        """Whether it is a temporary of the loop alone."""
        uses = sum(a.buffer == name for a in accesses(loop.body))
        return self.table[name].kind == "temp" and not self.table[name].alias and uses == self.uses[name]

    def is_own(self, loop: For) -> bool:
        """Whether variables that it sets are of its iterations."""
        return all(a.index or not a.writes or self.is_private(a.buffer, loop) for a in accesses(loop.body))

    def are_apart(self, one: For, other: For) -> bool:
        """Whether they meet only in places of one iteration, or both add."""
        there = tuple(substitute(other.body, {other.var: Dim.of(one.var)}))
        return all(self.is_apart(a, b, one) for a in accesses(one.body) for b in accesses(there))

    def is_apart(self, a: Access, b: Access, loop: For) -> bool:
        if not (a.writes or b.writes) or self.root[a.buffer] != self.root[b.buffer]:
            return True
        if a.mode == b.mode and a.mode not in ("r", "w"):
            return True
        if a.buffer != b.buffer or not a.index or a.index != b.index:
            return False
        return injective(a.index, loop.var, {**self.facts, loop.var: (loop.lo, loop.hi - 1)})

    def pays(self, loop: For, inner: Sequence[For]) -> bool:
        """Whether memory lies along the loop, and nothing of it along the inner ones but what each channel leaves to
        itself."""
        own = {n for n in touched(loop.body) if self.is_within(n, loop)}
        places = [(a, one.var) for one in inner for a in accesses(one.body) if a.index and a.buffer not in own]
        return any(self.is_along(a, loop.var) for a, _ in places) and not any(self.is_along(a, v) for a, v in places)

    def is_along(self, a: Access, var: str) -> bool:
        return step(a.index or (), self.table[a.buffer].shape, var) in (1, -1)


__all__ = ["outward"]
