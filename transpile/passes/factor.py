"""What the terms of a sum have in common is multiplied by once, behind the sum: what is left is a sum of products.

    for i: for k:                                     for k: row[k] = tanh(x[k]); part[k] = 0
        t = tanh(x[k])                                for i: for k: part[k] += (dy[i] * w[i,k])
        d_x[k] += (dy[i] * w[i,k]) * (1 - t * t)  ->  for k: d_x[k] += part[k] * (1 - row[k] * row[k])

So are gradients of sums over a function of each element, written as loops. The order of roundings changes, so this is
for gradients. Part of fission, which knows the loops around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..dims import ZERO, Dim
from ..ir import FLOATS, Buffer, Const, Expr, For, Load, Op, Stmt, Store
from .order import perfect, rebuild
from .predicate import may_trap
from .share import dtype_of
from .tree import Body, Names, dim_loads, loads, map_expr, needed, parts, substitute, symbols, written
from .work import effort

DEAR = 10  # flops: what is worth a row


@dataclass
class Factored:
    """A nest inside a loop without what its terms have in common, and what is done about that before and behind the
    loop."""

    nest: Stmt
    before: list[Stmt] = field(default_factory=list)
    behind: list[Stmt] = field(default_factory=list)
    made: list[Buffer] = field(default_factory=list)


@dataclass(frozen=True)
class Around:
    """What is known of a nest: the loop that adds up; what is the nest's own; all that is done to memory in that loop;
    and whether a sum of two factors is one of a product of matrices."""

    loop: For
    own: Collection[str]
    names: Names
    sizes: Collection[str]  # that are known when memory is reserved
    root: Mapping[str, str]
    modes: Mapping[str, Collection[str]]  # by the root
    is_wanted: Callable[[Sequence[For], Sequence[Expr]], bool]


def factored(nest: Stmt, around: Around) -> Factored | None:
    """None where there is nothing to take out."""
    loops, inside = perfect(nest) if isinstance(nest, For) else ([], ())
    plain = all(isinstance(s, Store) for s in inside) and all(x.kind == "map" and x.lo == ZERO for x in loops)
    plain &= all(x.hi.symbols() <= set(around.sizes) and not any(dim_loads(x.hi)) for x in loops)
    return _Nest(loops, inside, around).factored() if loops and plain else None


class _Nest:
    def __init__(self, loops: list[For], inside: Body, around: Around) -> None:
        self.loops, self.inside, self.around = loops, inside, around
        self.place = tuple(Dim.of(x.var) for x in loops)
        self.shape = tuple(x.hi for x in loops)
        stored = Counter(s.buffer for s in inside if isinstance(s, Store))
        first = {s.buffer: s for s in reversed(inside) if isinstance(s, Store) and not s.index and s.op is None}
        self.variables = {n for n in first if stored[n] == 1 and n in around.own}

    def factored(self) -> Factored | None:
        found = Factored(rebuild(self.loops, self.inside))
        known: dict[str, Expr] = {}  # what variables are
        rows: dict[str, Expr] = {}  # those that are rows, made before the loop
        kept: list[Stmt] = []
        sums = 0
        for stmt in self.inside:
            assert isinstance(stmt, Store)
            value = with_values(stmt.value, known)
            if stmt.buffer in self.variables and dtype_of(value) in FLOATS:  # others may say where something is
                if self.is_steady(value) and effort(value) >= DEAR:
                    value = rows[stmt.buffer] = self.row(value, found)
                known[stmt.buffer] = value
            elif stmt.op == "add" and (term := self.summed(stmt, value, found)) is not None:
                kept.append(term)
                sums += 1
                continue
            kept.append(Store(stmt.buffer, stmt.index, with_values(stmt.value, rows), stmt.op))
        if not sums:
            return None
        found.nest = rebuild(self.loops, needed(kept, self.variables))
        return found

    def is_steady(self, expr: Expr) -> bool:
        """Whether it is the same for all terms, and may be computed apart from them."""
        alike = self.around.loop.var not in symbols(expr) and not any(may_trap(p) for p in parts(expr))
        return alike and self.is_read_only(expr)

    def is_read_only(self, expr: Expr) -> bool:
        return all(self.modes(x.buffer) <= {"r"} for x in loads(expr))

    def modes(self, name: str) -> set[str]:
        return set(self.around.modes.get(self.root_of(name), ()))

    def root_of(self, name: str) -> str:
        return self.around.root.get(name, name)  # a row has none yet

    def row(self, value: Expr, found: Factored) -> Load:
        assert isinstance(value, Op)
        made = self.array("row", value.dtype, found)
        found.before.append(self.again((Store(made.buffer, self.place, value),)))
        return made

    def summed(self, stmt: Store, value: Expr, found: Factored) -> Store | None:
        """The sum of what terms do not have in common; the rest is multiplied by it behind the loop."""
        terms, common = self.split(value)
        named = {s for d in stmt.index for s in d.symbols()}
        over = self.around.loop.var not in named and not any(dim_loads(d) for d in stmt.index)
        if not over or self.modes(stmt.buffer) != {"add"} or len(terms) != 2 or not common:
            return None
        changed = {self.root_of(n) for n in written(self.inside)}
        late = [t for t in terms if changed & {self.root_of(x.buffer) for x in loads(t)}]
        if not all(t in parts(stmt.value) for t in late):
            return None  # what it was when a variable was made of it
        dtype = terms[0].dtype if isinstance(terms[0], Load) else ""
        if dtype not in FLOATS or not all(isinstance(t, Load) and t.dtype == dtype for t in terms):
            return None
        if not self.around.is_wanted(self.loops, terms):
            return None
        part = self.array("part", dtype, found)
        found.before.append(self.again((Store(part.buffer, self.place, Const(0.0, dtype)),)))
        whole: Expr = part
        for op, by in common:
            whole = Op(op, (whole,) if by is None else (whole, by), dtype)
        found.behind.append(self.again((Store(stmt.buffer, stmt.index, whole, "add"),)))
        return Store(part.buffer, self.place, Op("multiply", tuple(terms), dtype), "add")

    def split(self, expr: Expr) -> tuple[list[Expr], list[tuple[str, Expr | None]]]:
        """The factors that terms have for their own, and what is done to a product of those."""
        if self.is_steady(expr):
            return [], [("multiply", expr)]
        match expr:
            case Op("multiply", (a, b), _):
                (one, then), (two, later) = self.split(a), self.split(b)
                return [*one, *two], [*then, *later]
            case Op("negative", (a,), _):
                one, then = self.split(a)
                return one, [*then, ("negative", None)]
            case Op("divide", (a, b), _) if self.is_steady(b):
                one, then = self.split(a)
                return one, [*then, ("divide", b)]
        return [expr], []

    def array(self, name: str, dtype: str, found: Factored) -> Load:
        buffer = Buffer(self.around.names.fresh(name), dtype, self.shape, "temp")
        found.made.append(buffer)
        return Load(buffer.name, self.place, dtype)

    def again(self, body: Body) -> Stmt:
        """The loops around something else."""
        fresh = {x.var: self.around.names.fresh(x.var) for x in self.loops}
        loops = [For(fresh[x.var], x.lo, x.hi, (), "map") for x in self.loops]
        return rebuild(loops, substitute(body, {v: Dim.of(n) for v, n in fresh.items()}))


def with_values(expr: Expr, known: Mapping[str, Expr]) -> Expr:
    return map_expr(expr, lambda e: known.get(e.buffer, e) if isinstance(e, Load) else e)
