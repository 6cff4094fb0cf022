"""What every example adds to a whole axis alike is added up for all examples, and then added along the axis.

    for b in 0..batch:                                 for j: s[j] = 0
        for i: for j: d_w[i,j] += dy[b,j]       ->     for b in 0..batch: for j: s[j] += dy[b,j]
                                                       for i: for j: d_w[i,j] += s[j]

So it is with a weight that is summed up: it may be larger than all that an example has, and each would go over it.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import ZERO, Dim
from ..ir import FLOATS, Buffer, Const, For, Kernel, Load, Stmt, Store
from .order import rebuild, stores
from .share import dtype_of
from .tree import Body, Names, accesses, buffers, dim_loads, nest_anew, over_examples, symbols


def spills(kernel: Kernel) -> Kernel:
    if kernel.batch is None or not kernel.flush:
        return kernel
    state = _State(kernel)
    body = tuple(new for stmt in kernel.body for new in state.stmt(stmt))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.names, self.table = kernel, Names.of(kernel), buffers(kernel)
        self.made: list[Buffer] = []

    def stmt(self, stmt: Stmt) -> Body:
        if not over_examples(stmt, self.kernel):
            return (stmt,)
        assert isinstance(stmt, For)
        others = {a.buffer for a in accesses(stmt.body) if a.mode != "add"}
        before: list[Stmt] = []
        inside: list[Stmt] = []
        behind: list[Stmt] = []
        for inner in stmt.body:
            made = self.of_all(inner, stmt.var, others)
            if made is None:
                inside.append(inner)
            else:
                zeros, adds, spread = made
                before.append(zeros)
                inside.append(adds)
                behind.append(spread)
        return (*before, replace(stmt, body=tuple(inside)), *behind)

    def of_all(self, stmt: Stmt, example: str, others: set[str]) -> tuple[Stmt, Stmt, Stmt] | None:
        """What clears a sum, adds to it, and spreads it."""
        nest = stores(stmt)
        match nest:
            case (loops, [Store(buffer, index, value, "add") as store]) if self.is_sum(buffer, others):
                pass
            case _:
                return None
        told = symbols(value)
        counters = {x.var for x in loops}
        spread = [x for x in loops if x.var not in told and Dim.of(x.var) in index]
        rest = [x for x in loops if x not in spread]
        bounds = {n for x in loops for d in (x.lo, x.hi) for n in d.symbols()}
        if not spread or not rest or example not in told or bounds & (counters | {example}):
            return None
        if any(x.lo != ZERO for x in rest) or any(any(dim_loads(d)) for x in loops for d in (x.lo, x.hi)):
            return None
        if any(n == example for d in index for n in d.symbols()) or any(any(dim_loads(d)) for d in index):
            return None
        dtype = dtype_of(value)
        total = Buffer(self.names.fresh(f"{buffer}_alike"), dtype, tuple(x.hi for x in rest), "temp")
        self.made.append(total)
        place = tuple(Dim.of(x.var) for x in rest)
        zeros = nest_anew(rebuild(rest, (Store(total.name, place, Const(0.0, dtype)),)), self.names)
        adds = rebuild(rest, (replace(store, buffer=total.name, index=place),))
        behind = rebuild(loops, (replace(store, value=Load(total.name, place, dtype)),))
        return zeros, adds, nest_anew(behind, self.names)

    def is_sum(self, name: str, others: set[str]) -> bool:
        return self.table[name].kind == "out" and self.table[name].dtype in FLOATS and name not in others


__all__ = ["spills"]
