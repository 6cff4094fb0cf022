"""Loops that run through memory without a gap become one.

    for b in 0..batch:                            for n in 0..batch*S:
        for s in 0..S: y[b,s] = f(x[b,s])    ->       y_flat[n] = f(x_flat[n])

So an elementwise kernel is one long vector loop, whether there are many short examples or a single long
one. `x_flat` is the memory of `x`, in another shape.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim, product
from ..ir import Buffer, Expr, For, Int, Kernel, Load, Stmt, Store
from .order import rebuild, stores
from .tree import Body, Names, accesses, map_bodies, map_expr, own_exprs, parts, symbols

Digits = dict[str, tuple[int, int]]  # buffer -> the axes that are the run of loops (empty: it is not indexed by them)


def flatten(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made.values()))


class _State:
    def __init__(self, kernel: Kernel):
        self.table = {b.name: b for b in kernel.buffers}
        self.names = Names.of(kernel)
        self.made: dict[tuple[str, tuple[int, int]], Buffer] = {}

    def body(self, body: Body) -> Body:
        return tuple(self.stmt(s) for s in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        if (nest := stores(stmt)) is not None:
            loops, inside = nest
            for length in range(len(loops), 1, -1):
                run = loops[-length:]
                if (digits := self.digits(run, inside)) is not None:
                    n = For(self.names.fresh("n"), Dim.of(0), product(loop.hi for loop in run), (), "map")
                    return rebuild([*loops[:-length], n], self.reshaped(inside, Dim.of(n.var), digits))
        return map_bodies(stmt, self.body)

    def digits(self, run: list[For], inside: Body) -> Digits | None:
        """Where the loops' variables stand in every access, if always side by side, in order, over whole
        axes."""
        variables = [Dim.of(loop.var) for loop in run]
        names = {loop.var for loop in run}
        if any(loop.lo.terms or loop.hi.symbols() & names for loop in run):
            return None
        found: Digits = {}
        for stmt in inside:
            for expr in own_exprs(stmt):
                if any(isinstance(p, Int) and symbols(p) & names for p in parts(expr)):
                    return None
        for a in accesses(inside):
            index, shape = a.index or (), self.table[a.buffer].shape
            used = [axis for axis, d in enumerate(index) if d.symbols() & names]
            where = (used[0], used[-1] + 1) if used else (0, 0)
            if used and [index[k] for k in range(*where)] != variables:
                return None
            if used and list(shape[where[0] + 1 : where[1]]) != [loop.hi for loop in run[1:]]:
                return None
            if (index and not used and a.mode == "w") or found.setdefault(a.buffer, where) != where:
                return None
        return found

    def reshaped(self, inside: Body, n: Dim, digits: Digits) -> Body:
        def place(name: str, index: tuple[Dim, ...]) -> tuple[str, tuple[Dim, ...]]:
            first, last = digits[name]
            if first == last:
                return name, index
            return self.alias(name, first, last), (*index[:first], n, *index[last:])

        def change(expr: Expr) -> Expr:
            if isinstance(expr, Load):
                name, index = place(expr.buffer, expr.index)
                return Load(name, index, expr.dtype)
            return expr

        found: list[Stmt] = []
        for stmt in inside:
            if isinstance(stmt, Store):
                name, index = place(stmt.buffer, stmt.index)
                stmt = Store(name, index, map_expr(stmt.value, change), stmt.op)
            found.append(stmt)
        return tuple(found)

    def alias(self, name: str, first: int, last: int) -> str:
        if (name, (first, last)) not in self.made:
            b = self.table[name]
            shape = (*b.shape[:first], product(b.shape[first:last]), *b.shape[last:])
            flat = Buffer(self.names.fresh(f"{name}_flat"), b.dtype, shape, "temp", alias=b.alias or name)
            self.made[(name, (first, last))] = self.table[flat.name] = flat
        return self.made[(name, (first, last))].name
