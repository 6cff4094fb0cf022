"""A loop whose branch asks where its counter is goes there only, so that loops around and in the branch are one nest.

    for j in 0..W:                                          for j in max(0, 1 - b)..min(W, W + 1 - b):
        if (0 <= j + b - 1) & (j + b - 1 < W):      ->          for k in 0..C:
            for k in 0..C:                                          y[b,j] += x[k,j] * z[k,j + b - 1]
                y[b,j] += x[k,j] * z[k,j + b - 1]

Only where the branch holds a loop that jumps through memory: now another one can be the innermost (`order`,
`interchange`). Where all is in vectors anyway, a branch is cheaper than a loop with ends of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ..dims import Facts, maximum, minimum
from ..ir import Comment, Expr, For, If, Kernel, Load, Stmt
from .depend import Memory
from .guards import margins
from .predicate import conjunction, may_trap
from .products import step
from .ranges import conjuncts
from .tree import Body, accesses, buffers, dim_loads, map_bodies, parts, symbols, walk

SHORT = 16  # iterations: windows, which are written out


def bounds(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    return replace(kernel, body=state.body(kernel.body, Memory.of(kernel).facts))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table = buffers(kernel)

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(self.stmt(s, facts) for s in body)

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt:
        if not isinstance(stmt, For):
            return map_bodies(stmt, lambda inner: self.body(inner, facts))
        within = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
        loop = replace(stmt, body=self.body(stmt.body, within))
        match [s for s in loop.body if not isinstance(s, Comment)]:
            case [If(cond, then, ())] if loop.kind == "map" and not loop.parallel and _is_long(loop):
                if any(self.jumps(s) for s in walk(then)):
                    return _bounded(loop, cond, then, facts)
        return loop

    def jumps(self, stmt: Stmt) -> bool:
        """Whether it is a loop that nothing in memory lies along."""
        if not isinstance(stmt, For) or not _is_long(stmt):
            return False
        places = [(a.index, self.table[a.buffer].shape) for a in accesses(stmt.body) if a.index]
        return bool(places) and not {step(i, s, stmt.var) for i, s in places} & {1, -1}


def _is_long(loop: For) -> bool:
    trips = (loop.hi - loop.lo).value
    return trips is None or trips > SHORT


def _bounded(loop: For, cond: Expr, then: Body, facts: Facts) -> Stmt:
    """The loop where the condition holds; as it is, if that is no range."""
    low, high = loop.lo, loop.hi
    same: list[Expr] = []
    for part in conjuncts(cond):
        if any(isinstance(p, Load) or may_trap(p) for p in parts(part)):
            return loop
        if loop.var not in symbols(part):
            same.append(part)
            continue
        asked = [margin.split(loop.var) for margin in margins(part) if not any(True for _ in dim_loads(margin))]
        if not asked:
            return loop
        for split in asked:
            if split is None or split[0].value not in (1, -1):
                return loop
            step, rest = split
            if step.value == 1:
                low = maximum(low, -rest, facts)
            else:
                high = minimum(high, rest + 1, facts)
    if (low, high) == (loop.lo, loop.hi):
        return loop
    found = replace(loop, lo=low, hi=high, body=then)
    return If(reduce(conjunction, same), (found,)) if same else found


__all__ = ["bounds"]
