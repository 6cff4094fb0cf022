"""What belongs to a group of neighbours is spread over the row they lie in.

    for i: for k in 0..G: for l in 0..C//G:             for k: for l: mean[k,l] = m[k], sums[k,l] = 0
        d = x[i,k,l] - m[k]                       ->    for i: for k: for l:
        s[k] += d * d                                       d = x[i,k,l] - mean[k,l]
                                                            sums[k,l] += d * d
                                                        for k: for l: s[k] += sums[k,l]

A group of eight channels is one vector, and a loop for each costs more than what is in it; `flatten` makes one loop of
k and l here. For groups that are parts of a row in memory: those are short, or few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..dims import Dim, product
from ..ir import Buffer, Expr, For, Kernel, Load, Stmt, Store
from .accumulate import neutral
from .depend import Memory
from .flatten import Flat, digits
from .order import is_group, rebuild, stores
from .predicate import may_trap
from .share import dtype_of
from .tree import Body, Index, accesses, descend, dim_loads, map_bodies, parts, substitute, symbols, written


def spread(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=state.flat.buffers)


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.flat = Flat(kernel)

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        if (nest := stores(stmt)) is not None:
            loops, inside = nest
            for start in range(len(loops) - 2):
                if (made := self.nest(loops[start:], inside, memory)) is not None:
                    return (rebuild(loops[:start], made),) if start else made
                memory = memory.inside(loops[start])
            return (stmt,)
        inner = memory.inside(stmt) if isinstance(stmt, For) else memory
        return (map_bodies(stmt, lambda body: self.body(body, inner)),)

    def nest(self, loops: list[For], inside: Body, memory: Memory) -> Body | None:
        """The nest, if it goes over groups, between the rows that are made before it and what is added up behind."""
        if not is_group(*loops[-2:]):
            return None
        rows = _Rows(self.flat, loops, memory, memory.roots(written(inside)))
        changed = rows.body(inside)
        made = {b.name: b for b in (*rows.read.values(), *rows.added.values())}
        if not made or digits(loops[-2:], changed, {**self.flat.table, **made}) is None:
            return None
        self.flat.table.update(made)
        one = self.flat.nest(loops, 2, changed)
        assert one, "there was no gap"
        return (*rows.before(), one, *rows.behind())


@dataclass
class _Rows:
    """The rows that stand for what belongs to a group in a nest of loops, the last two of which are a group's."""

    flat: Flat
    loops: Sequence[For]
    memory: Memory
    changed: set[str]
    read: dict[Expr, Buffer] = field(default_factory=dict)
    added: dict[tuple[str, Index, str], Buffer] = field(default_factory=dict)

    @property
    def inside(self) -> Memory:
        """What is known in a group, whatever the loops around."""
        return self.memory.inside(self.loops[-2]).inside(self.loops[-1])

    @property
    def place(self) -> Index:
        """The number of a neighbour in its row."""
        k, l = self.loops[-2:]
        return (Dim.of(k.var) * l.hi + Dim.of(l.var),)

    def body(self, inside: Body) -> Body:
        found: list[Stmt] = []
        for stmt in inside:
            if isinstance(stmt, Store):
                stmt = replace(stmt, value=self.expr(stmt.value))
                if self.is_sum(stmt, inside):
                    assert stmt.op
                    row = self.row(self.added, (stmt.buffer, stmt.index, stmt.op), self.flat.table[stmt.buffer].dtype)
                    stmt = Store(row.name, self.place, stmt.value, stmt.op)
            found.append(stmt)
        return tuple(found)

    def expr(self, expr: Expr) -> Expr:
        """With rows in place of what is the same for a whole group, or for the same neighbour of each group."""
        if not self.is_of_one(symbols(expr)) or not self.is_steady(expr):
            return descend(expr, self.expr)
        return Load(self.row(self.read, expr, dtype_of(expr)).name, self.place, dtype_of(expr))

    def is_of_one(self, names: set[str]) -> bool:
        k, l = (loop.var for loop in self.loops[-2:])
        return (k in names) is not (l in names) and not names & {loop.var for loop in self.loops[:-2]}

    def is_steady(self, expr: Expr) -> bool:
        """Whether it may be asked for before the loops, of which there may be none."""
        return not any(
            may_trap(part)
            or (
                isinstance(part, Load)
                and (self.memory.roots({part.buffer}) & self.changed or not self.inside.in_bounds(part))
            )
            for part in parts(expr)
        )

    def is_sum(self, stmt: Store, inside: Body) -> bool:
        """Whether it adds to one place for a whole group, which nothing else touches, and is there without any loop."""
        if not stmt.op or not self.is_of_one({name for d in stmt.index for name in d.symbols()}):
            return False
        place, root = (stmt.buffer, stmt.index, stmt.op), self.memory.root[stmt.buffer]
        touching = {(a.buffer, a.index, a.mode) for a in accesses(inside) if self.memory.root[a.buffer] == root}
        if touching != {place} or any(load for d in stmt.index for load in dim_loads(d)):
            return False
        return self.inside.in_bounds(Load(stmt.buffer, stmt.index, self.flat.table[stmt.buffer].dtype))

    def row(self, known: dict[Any, Buffer], key: object, dtype: str) -> Buffer:
        if key not in known:
            extent = product(loop.hi for loop in self.loops[-2:])
            known[key] = Buffer(self.flat.names.fresh("row"), dtype, (extent,), "temp")
        return known[key]

    def before(self) -> Body:
        first: Body = tuple(Store(row.name, self.place, expr) for expr, row in self.read.items())
        first += tuple(Store(row.name, self.place, neutral(op, row.dtype)) for (_, _, op), row in self.added.items())
        return (self.over(first),)

    def behind(self) -> Body:
        last: Body = tuple(
            Store(buffer, index, Load(row.name, self.place, row.dtype), op)
            for (buffer, index, op), row in self.added.items()
        )
        return (self.over(last),) if last else ()

    def over(self, body: Body) -> Stmt:
        """The loops over groups and neighbours, with variables of their own."""
        k, l = (replace(loop, var=self.flat.names.fresh(loop.var)) for loop in self.loops[-2:])
        fresh = {old.var: Dim.of(new.var) for old, new in zip(self.loops[-2:], (k, l), strict=True)}
        return rebuild([k, l], substitute(body, fresh))
