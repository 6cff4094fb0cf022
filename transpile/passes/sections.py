"""A loop along a row that chooses by its place is one loop for each choice, where a choice saves work.

    for j in 0..S:                                       for j in 0..n: e[j] = exp(x[j] - m); s += e[j]
        e[j] = exp(where(j < n, x[j], -inf) - m)    ->   for j in n..S: e[j] = exp(-inf - m); s += e[j]
        s += e[j]

What is behind a mask is the same number at all places, computed once (`share`), and the largest of many such numbers
is that number. In vectors both sides of a choice are
computed for all elements; in loops of their own only one is. Comparisons of the counter with anything else that stays
the same along the row; after `fuse`, which wants whole loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..dims import Atom, Dim, Facts, maximum, minimum
from ..ir import Buffer, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from ..operations import flops
from .depend import Memory
from .fold import fold_body
from .guards import answer, margins
from .tree import (
    Body,
    Names,
    accesses,
    another,
    buffers,
    has,
    in_vectors,
    loads,
    map_all,
    map_bodies,
    own_dims,
    own_exprs,
    parts,
    substitute,
    symbols,
    walk,
    written,
)

_ORDERS = frozenset(("less", "less_equal", "greater", "greater_equal"))
DEAR = 8  # flops that a place must save, on one side: a quotient
MOST = 2  # choices of one loop


def sections(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = tuple(map_bodies(s, lambda inner: state.body(inner, state.facts)) for s in kernel.body)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.names = Names.of(kernel)
        self.facts = Memory.of(kernel).facts
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.table = buffers(kernel)
        self.made: list[Buffer] = []

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, facts))

    def stmt(self, stmt: Stmt, facts: Facts) -> Body:
        if in_vectors(stmt):
            return self.of_loop(stmt, facts, MOST)
        if isinstance(stmt, For):
            facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
        return (map_bodies(stmt, lambda inner: self.body(inner, facts)),)

    def of_loop(self, loop: For, facts: Facts, most: int) -> Body:
        """The loop, or what comes before it and one for each choice."""
        for comparison in dict.fromkeys(_comparisons(loop)) if most else ():
            limits, asking, holds = self.with_limit(loop, comparison)
            if len(holds) != 1 or (split := holds[0].split(loop.var)) is None:
                continue
            (step, rest), fails = split, (-1 - holds[0],)
            if step.value == 1:
                middle, known = -rest, (fails, holds)
            elif step.value == -1:
                middle, known = rest + 1, (holds, fails)
            else:
                continue
            within = {**facts, loop.var: (loop.lo, loop.hi - 1)}
            bodies = [_told(asking, here, within) for here in known]
            saved = self.cost(loop.body, loop) - min(self.cost(b, loop) for b in bodies)
            if saved < DEAR and not any(self.is_once(b, loop) for b in bodies):
                continue
            middle = maximum(loop.lo, minimum(loop.hi, middle, facts), facts)
            first = replace(loop, hi=middle, body=bodies[0])
            second = self.another(replace(loop, lo=middle, body=bodies[1]))
            self.made += [Buffer(limit.buffer, "i64", (), "temp") for limit in limits]
            return (*limits, *self.of_loop(first, facts, most - 1), *self.of_loop(second, facts, most - 1))
        if self.is_once(loop.body, loop):
            return (If(Op("less", (Int(loop.lo), Int(loop.hi)), "bool"), loop.body),)
        return (loop,)

    def is_once(self, body: Body, loop: For) -> bool:
        """Whether all steps do the same, and the second one changes nothing: the largest of a number and itself."""
        return all(isinstance(s, Store) and s.op in ("max", "min") for s in body) and not self.cost(body, loop, 1)

    def with_limit(self, loop: For, comparison: Op) -> tuple[list[Store], Body, tuple[Dim, ...]]:
        """What names a limit that is read from memory, the loop's body with that name, and what is not negative where
        the comparison holds."""
        changed = written(loop.body)
        stores: list[Store] = []
        names: dict[Expr, Expr] = {}
        for side in comparison.args:
            if any(e.buffer in changed for e in loads(side)):
                return [], (), ()
            if loop.var not in symbols(side) and any(True for _ in loads(side)):
                name = self.names.fresh("limit")
                stores.append(Store(name, (), side))
                names[side] = Int(Dim.of(Atom("load", (Load(name, (), "i64"),))))
        named = replace(comparison, args=tuple(names.get(a, a) for a in comparison.args))
        body = map_all(loop.body, lambda e: named if e == comparison else e)
        return stores, body, margins(named)

    def cost(self, body: Body, loop: For, load: int = 0) -> int:
        """Flops of one step, without what is the same for all of them. `load`: those of a number from memory."""
        own = written(body)
        total = 0
        for stmt in walk(body):
            total += load * any(loop.var in d.symbols() for d in own_dims(stmt))
            for part in (p for e in own_exprs(stmt) for p in parts(e)):
                if loop.var in symbols(part) or any(e.buffer in own for e in loads(part)):
                    total += flops(part.op) if isinstance(part, Op) else load
        return total

    def another(self, loop: For) -> For:
        """With a counter and numbers of its own."""
        loop, made = another(loop, self.names, self.uses, self.table)
        self.made += made
        var = self.names.fresh(loop.var)
        return replace(loop, var=var, body=substitute(loop.body, {loop.var: Dim.of(var)}))


def _comparisons(loop: For) -> Iterator[Op]:
    """Of the counter with something else. What a branch asks is left to those who make one loop of it (`overlap`)."""
    for stmt in () if has(loop.body, If) else loop.body:
        for part in (p for e in own_exprs(stmt) for p in parts(e)):
            if isinstance(part, Op) and part.op in _ORDERS and loop.var in symbols(part):
                if all(isinstance(a, Int) or a.dtype == "i64" for a in part.args):
                    yield part


def _told(body: Body, known: tuple[Dim, ...], facts: Facts) -> Body:
    return fold_body(map_all(body, lambda e: answer(e, known, facts)))


__all__ = ["sections"]
