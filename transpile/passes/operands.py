"""What an outer product multiplies has a name, and what a matrix is multiplied by: a product of matrices wants arrays.

    for i: for j: dw[i,j] += (f[i] * h[i]) * d[j]    ->    for i: p[i] = f[i] * h[i]
                                                           for i: for j: dw[i,j] += p[i] * d[j]

    for i: for k: y[i] += w[i,k] * sin(x[k])         ->    for k: p[k] = sin(x[k])
                                                           for i: for k: y[i] += w[i,k] * p[k]

Where no product comes of it, `inline` computes what is cheap where it is used, as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..dims import ZERO, Dim, Facts, largest
from ..ir import FLOATS, Buffer, Const, Expr, For, Kernel, Load, Op, Stmt, Store
from .order import perfect, rebuild
from .predicate import may_trap
from .tree import Body, Names, dim_loads, extent_of, loads, map_bodies, parts, roots, subst_expr, symbols


def name_operands(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, {})
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.names, self.root, self.made = Names.of(kernel), roots(kernel), list[Buffer]()
        self.known = {*kernel.dims, *(s.name for s in kernel.scalars), kernel.batch or ""}

    def body(self, body: Body, facts: Facts) -> Body:
        """`facts`: of the loops around it."""
        return tuple(new for stmt in body for new in self.stmt(stmt, facts))

    def stmt(self, stmt: Stmt, facts: Facts) -> Iterator[Stmt]:
        if isinstance(stmt, For) and stmt.kind == "map":
            loops, inside = perfect(stmt)
            match inside:
                case [Store(_, _, Op("multiply", (a, b), dtype) as value, "add") as store] if dtype in FLOATS:
                    rows = {a: self.row(a, b, store, loops, facts), b: self.row(b, a, store, loops, facts)}
                    named = {v: self.named(v, row, dtype, facts) for v, row in rows.items() if row is not None}
                    if named and all(row is not None or isinstance(v, Load) for v, row in rows.items()):
                        yield from (nest for nest, _ in named.values())
                        args = tuple(named[v][1] if v in named else v for v in (a, b))
                        yield rebuild(loops, (replace(store, value=replace(value, args=args)),))
                        return
        there = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)} if isinstance(stmt, For) else facts
        yield map_bodies(stmt, lambda body: self.body(body, there))

    def row(self, one: Expr, other: Expr, store: Store, loops: list[For], facts: Facts) -> For | None:
        """The loop that a computed operand runs along, if it is the only one, and the result or the other operand of a
        matrix goes along it, too."""
        if isinstance(one, (Load, Const)) or any(may_trap(p) for p in parts(one)):
            return None
        read = list(loads(one))
        if not read or any(True for e in read for d in e.index for _ in dim_loads(d)):
            return None
        if self.root[store.buffer] in {self.root[e.buffer] for e in read}:
            return None  # what the nest changes
        own = [x for x in loops if x.var in symbols(one)]
        if len(own) != 1 or own[0].lo != ZERO or extent_of(own[0], facts, self.known) is None:
            return None
        (row,), target = own, {s for d in store.index for s in d.symbols()}
        if row.var in symbols(other):
            again = any(x.var in symbols(other) & target for x in loops)
            return row if again and row.var not in target else None
        return row if row.var in target else None

    def named(self, value: Expr, row: For, dtype: str, facts: Facts) -> tuple[Stmt, Load]:
        operand = Buffer(self.names.fresh("operand"), dtype, (largest(row.hi, facts),), "temp")
        self.made.append(operand)
        var = self.names.fresh(row.var)
        nest = For(var, ZERO, row.hi, (Store(operand.name, (Dim.of(var),), subst_expr(value, {row.var: Dim.of(var)})),))
        return nest, Load(operand.name, (Dim.of(row.var),), dtype)
