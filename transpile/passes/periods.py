"""Places that repeat: where an index is j//2 or j%2, two iterations are made together; where it is held at an edge, the
first and the last ones are made apart. What is left in the middle runs along memory.

    for j in 0..2*W:                              for j in 0..1: as before
        y[j] = x[max(2*j - 1, 0)//4]     ->       for m in 0..W - 1: y[2*m + 1] = x[m]; y[2*m + 2] = x[m]
                                                  for j in 2*(W - 1) + 1..2*W: as before

Where iterations add to places that are neighbours, there is a loop for each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from ..dims import ANY, ZERO, Atom, Dim, Facts, maximum, minimum, settled
from ..ir import FLOATS, Buffer, Comment, Expr, For, Int, Kernel, Load, Op, Stmt, Store
from .depend import neighbours
from .tree import (
    Body,
    Names,
    accesses,
    buffers,
    loads,
    map_bodies,
    map_expr,
    map_own,
    own_exprs,
    rename_buffers,
    roots,
    substitute,
)
from .whole import Whole, inside

MOST = 4  # iterations made together
EDGE = 2  # iterations made apart


def periods(kernel: Kernel) -> Kernel:
    state = _Periods(kernel)
    body = state.body(kernel.body, {s.name: ANY for s in kernel.scalars})
    return replace(kernel, buffers=(*kernel.buffers, *state.made), body=body)


@dataclass
class _Periods:
    kernel: Kernel

    def __post_init__(self) -> None:
        self.names = Names.of(self.kernel)
        self.table, self.root = buffers(self.kernel), roots(self.kernel)
        self.uses = Counter(a.buffer for a in accesses(self.kernel.body))
        self.made: list[Buffer] = []
        self.private: set[str] = set()

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, facts))

    def stmt(self, stmt: Stmt, facts: Facts) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, facts)),)
        if stmt.kind == "map" and all(isinstance(s, (Store, Comment)) for s in stmt.body):
            self.private = self.variables(stmt)
            return self.apart(stmt, facts) or self.by_place(stmt)
        return (replace(stmt, body=self.body(stmt.body, inside(stmt, facts))),)

    def apart(self, loop: For, facts: Facts) -> Body | None:
        """The loop in three: its first iterations, those in the middle, its last ones."""
        atoms = {a for d in _places(loop.body) for a in d.atoms() if isinstance(a, Atom) and _names(a, loop.var)}
        period = _period(atoms, loop.var)
        if not atoms or not period or period > MOST:
            return None
        for first, last in sorted(product(range(EDGE + 1), repeat=2), key=sum):
            times = (loop.hi - loop.lo - first - last) // period
            middle = self.middle(loop, loop.lo + first, times, period, facts)
            if middle is not None:
                times = maximum(ZERO, times, facts)
                start = _told(replace(loop, hi=minimum(loop.lo + first, loop.hi, facts)), loop, facts)
                end = _told(replace(loop, lo=loop.lo + first + times * period), loop, facts)
                return (*((start,) if first else ()), *middle, *self.again(end, period - 1 + last))
        return None

    def variables(self, loop: For) -> set[str]:
        """What only the loop uses."""
        within = Counter(a.buffer for a in accesses(loop.body))
        return {n for n, b in self.table.items() if b.kind == "temp" and not b.shape and within[n] == self.uses[n] > 0}

    def middle(self, loop: For, first: Dim, times: Dim, period: int, facts: Facts) -> Body | None:
        """Iterations from the first on, `period` at once, none where `times` is less than 1; None where their places
        are not linear."""
        var = self.names.fresh(loop.var)
        known = {**inside(loop, facts), var: (ZERO, times - 1)}
        del known[loop.var]
        body: list[Stmt] = []
        for offset in range(period):
            one = substitute(loop.body, {loop.var: first + Dim.of(var) * period + offset})
            body += self.own(one)
        done = _map_places(tuple(body), lambda d: settled(d, known))
        done = Whole.of(replace(self.kernel, buffers=tuple(self.made), body=done)).body(done, known)
        if any(_names(a, var) for d in _places(done) for a in d.atoms() if isinstance(a, Atom)):
            return None
        return self.by_place(replace(loop, var=var, lo=ZERO, hi=times, body=done))

    def by_place(self, loop: For) -> Body:
        """A loop for each place that the iterations add to: neighbours in one loop would wait for one another."""
        sums: dict[tuple[str, tuple[Dim, ...]], Expr] = {}
        first: list[Stmt] = []
        for stmt in loop.body:
            if isinstance(stmt, Store) and stmt.buffer not in self.private:
                place = (stmt.buffer, stmt.index)
                dtype = self.table[stmt.buffer].dtype
                sums[place] = Op("add", (sums[place], stmt.value), dtype) if place in sums else stmt.value
            else:
                first.append(stmt)
        stores = [s for s in loop.body if isinstance(s, Store) and s.buffer not in self.private]
        reads = {load.buffer for s in loop.body for e in own_exprs(s) for load in loads(e)}
        alone = all(s.op == "add" and self.table[s.buffer].dtype in FLOATS for s in stores)
        if not alone or reads & {n for n, _ in sums} or not neighbours(loop.body, loop.var, self.root):
            return (loop,)
        found = []
        for (buffer, index), value in sums.items():
            body = self.own((*first, Store(buffer, index, value, "add")))
            var = self.names.fresh(loop.var)
            found.append(replace(loop, var=var, body=substitute(body, {loop.var: Dim.of(var)})))
        return tuple(found)

    def own(self, body: Body) -> Body:
        """With variables of its own."""
        stored = {s.buffer for s in body if isinstance(s, Store)} & self.private
        mine = [b for b in (*self.kernel.buffers, *self.made) if b.name in stored]
        fresh = {b.name: self.names.fresh(b.name) for b in mine}
        self.made += [replace(b, name=fresh[b.name]) for b in mine]
        self.private |= set(fresh.values())
        return rename_buffers(body, fresh)

    def again(self, loop: For, most: int) -> Body:
        """The loop, of some iterations at most, with variables of its own."""
        var = self.names.fresh(loop.var)
        body = self.own(substitute(loop.body, {loop.var: Dim.of(var)}))
        return (replace(loop, var=var, body=body),) if most else ()


def _period(atoms: set[Atom], var: str) -> int:
    """After how many iterations all quotients are one more, or as many as their step says; 0 where that is not so."""
    found = 1
    for atom in atoms:
        if atom.kind in ("floordiv", "mod"):
            over, under = atom.args
            if atom.kind == "mod" and isinstance(under, Dim) and under.value is None and var not in under.symbols():
                continue  # around the whole axis: at its ends only
            split = over.split(var) if isinstance(under, Dim) and under.value else None
            if split is None or split[0].value is None or under.value < 0:
                return 0
            found = math.lcm(found, under.value // math.gcd(split[0].value, under.value))
        elif atom.kind not in ("min", "max"):
            return 0
    return found


def _names(atom: Atom, var: str) -> bool:
    return any(var in arg.symbols() for arg in atom.args if isinstance(arg, Dim)) or atom.kind == "load"


def _places(body: Body) -> list[Dim]:
    """The indices of what is read and written."""
    return [d for a in accesses(body) for d in a.index or ()]


def _told(part: For, loop: For, facts: Facts) -> For:
    """A part of a loop, with places as its counter tells them: of the first one, the place before is the last."""
    known = {**inside(loop, facts), loop.var: (part.lo, part.hi - 1)}
    return replace(part, body=_map_places(part.body, lambda d: settled(d, known)))


def _map_places(body: Body, f: Callable[[Dim], Dim]) -> Body:
    def expr(e: Expr) -> Expr:
        match e:
            case Int(dim):
                return Int(f(dim))
            case Load(buffer, index, dtype):
                return Load(buffer, tuple(f(d) for d in index), dtype)
        return e

    return tuple(map_own(s, f, lambda e: map_expr(e, expr)) for s in body)


__all__ = ["periods"]
