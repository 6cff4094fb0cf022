"""What is dear, and told by counters alone, has a table, which is the same for all examples.

    for b: for i: for j: y[b,i] += cos(c * i * j) * x[b,j]

    for b: for i: for j: table[i,j] = cos(c * i * j)
           for i: for j: y[b,i] += table[i,j] * x[b,j]

Transforms of cosines, angles of positions, windows: `once` makes the table before the loop over the examples, and what
is left may be a product. What elements of arguments tell is for `tables`, later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..dims import ZERO, Dim, nonnegative
from ..ir import Buffer, Cast, Expr, For, Kernel, Load, Op, Stmt, Store
from ..operations import ROWS, flops
from .depend import Memory
from .once import Examples
from .order import rebuild
from .predicate import harmless
from .share import dtype_of
from .tree import Names, dim_loads, loads, over_examples, parts, subst_expr, symbols

DEAR = 10  # flops: a function of the mathematical library
MOST_AXES = 2


def counted(kernel: Kernel) -> Kernel:
    if kernel.batch is None:
        return kernel
    body: list[Stmt] = []
    for stmt in kernel.body:
        if over_examples(stmt, kernel):
            tables = _Tables(kernel, stmt)
            body.append(replace(stmt, body=tuple(tables.body())))
            kernel = replace(kernel, buffers=(*kernel.buffers, *tables.made))
        else:
            body.append(stmt)
    return replace(kernel, body=tuple(body))


@dataclass
class _Tables:
    """Of one loop over the examples. `found`: the tables there are, by what they hold."""

    kernel: Kernel
    loop: For
    made: list[Buffer] = field(default_factory=list)
    found: dict[Expr, Load] = field(default_factory=dict)
    before: list[Stmt] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.examples = Examples(self.kernel, self.loop)
        self.steady = self.examples.steady()
        self.told = self.examples.told_by_counters(self.steady)
        self.names = Names.of(self.kernel)
        self.known = {*self.kernel.dims, *(s.name for s in self.kernel.scalars)}  # before all loops

    def body(self) -> Iterator[Stmt]:
        for k, stmt in enumerate(self.loop.body):
            done = stmt if k in self.steady else self.stmt(stmt, (), self.examples.memory)
            yield from self.before
            self.before = []
            yield done

    def stmt(self, stmt: Stmt, loops: tuple[For, ...], memory: Memory) -> Stmt:
        match stmt:
            case For(body=body):
                inside = memory.inside(stmt)
                return replace(stmt, body=tuple(self.stmt(s, (*loops, stmt), inside) for s in body))
            case Store(value=value):
                return replace(stmt, value=self.value(value, loops, memory))
        return stmt

    def value(self, expr: Expr, loops: Sequence[For], memory: Memory) -> Expr:
        own = [loop for loop in loops if loop.var in symbols(expr)]
        if isinstance(expr, (Op, Cast)) and self.is_table(expr, own, memory):
            return self.table(expr, own)
        match expr:
            case Op(op, args, dtype):
                return Op(op, tuple(self.value(a, loops, memory) for a in args), dtype)
            case Cast(value, dtype):
                return Cast(self.value(value, loops, memory), dtype)
        return expr

    def is_table(self, expr: Expr, own: Sequence[For], memory: Memory) -> bool:
        ops = [p.op for p in parts(expr) if isinstance(p, Op)]
        if not any(flops(op) >= DEAR for op in ops) or any(ROWS[op].kind == "draw" for op in ops):
            return False
        if not 0 < len(own) <= MOST_AXES or self.loop.var in symbols(expr):
            return False
        if not all(x.lo == ZERO and nonnegative(x.hi, memory.facts) and not any(dim_loads(x.hi)) for x in own):
            return False
        if any(x.hi.symbols() - self.known for x in own) or symbols(expr) - self.known - {x.var for x in own}:
            return False
        return {e.buffer for e in loads(expr)} <= self.told and harmless(expr, memory)

    def table(self, expr: Expr, own: Sequence[For]) -> Load:
        if expr not in self.found:
            name, dtype = self.names.fresh("table"), dtype_of(expr)
            self.made.append(Buffer(name, dtype, tuple(x.hi for x in own), "temp"))
            fresh = {x.var: Dim.of(self.names.fresh(x.var)) for x in own}
            store = Store(name, tuple(fresh.values()), subst_expr(expr, fresh))
            self.before.append(rebuild([replace(x, var=str(fresh[x.var])) for x in own], (store,)))
            self.found[expr] = Load(name, tuple(Dim.of(x.var) for x in own), dtype)
        return self.found[expr]


__all__ = ["counted"]
