"""A sum whose terms take part of an earlier sum over the same space only as factors is made of sums in that sweep.

    for j: s += x[j] * y[j]                          for j: s += x[j] * y[j];  t += y[j];  u += x[j]
    c = s / n                                 ->     c = s / n
    for j: r += y[j] - c * x[j]                      r += t - c * u

What needs two looks at the arrays, or three where a mean is taken off next, as in the gradients of all layers that
normalise, needs one fewer. A constant is not summed apart: that of `x[j] - c` would cancel n c against the sum of x.
Before `inline`: what only the sum read is then read once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..dims import ZERO, Dim
from ..ir import Buffer, Check, Const, Expr, For, Grow, Kernel, Load, Op, Stmt, Store
from .inline import definition
from .order import perfect, rebuild
from .tree import Body, Names, buffers, has, loads, map_bodies, roots, subst_expr, substitute, symbols, written

MOST_TERMS = 4
Term = tuple[Expr | None, Expr]  # a factor that the loops do not change, if any, and what is summed


def linear(kernel: Kernel) -> Kernel:
    state = _Linear(kernel)
    return replace(kernel, body=state.body(kernel.body), buffers=tuple(state.table.values()))


@dataclass(frozen=True)
class Sum:
    """target[index] += value, for all of `loops`; the variables of `kept` are those of the index."""

    loops: list[For]
    store: Store

    @property
    def kept(self) -> list[For]:
        return [x for x in self.loops if any(x.var in d.symbols() for d in self.store.index)]

    @property
    def reduced(self) -> set[str]:
        return {x.var for x in self.loops} - {x.var for x in self.kept}

    @property
    def space(self) -> list[tuple[Dim, Dim]]:
        return [(x.lo, x.hi) for x in self.loops]


def sum_in(stmt: Stmt) -> Sum | None:
    """The statement as a sum over at least one loop, into places that the other loops number."""
    if not isinstance(stmt, For) or stmt.kind != "map":
        return None
    loops, inside = perfect(stmt)
    match inside:
        case (Store(op="add") as store,) if not any(load.buffer == store.buffer for load in loads(store.value)):
            found = Sum(loops, store)
        case _:
            return None
    own = {x.var for x in loops}
    numbered = [d.symbol for d in store.index if d.symbols() & own]
    plain = len(set(numbered)) == len(numbered) == len(found.kept) and set(numbered) <= own
    bounds = {name for x in loops for name in (*x.lo.symbols(), *x.hi.symbols())}
    return found if plain and found.reduced and not bounds & own and all(x.lo == ZERO for x in found.kept) else None


class _Linear:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.gradient = kernel.flush

    def body(self, body: Body) -> Body:
        k = 0
        while k < len(body):
            split = self.split(body, k)
            body, k = (body, k + 1) if split is None else split
        return tuple(map_bodies(s, self.body) for s in body)

    def split(self, body: Body, k: int) -> tuple[Body, int] | None:
        """The body with the sum at k made of sums that stand beside an earlier one, and where it goes on."""
        later = sum_in(body[k])
        if later is None:
            return None
        for m, first in enumerate(body[:k]):
            earlier = sum_in(first)
            between = body[m:k]
            if earlier is None or earlier.space != later.space or has(between, Check, Grow):
                continue
            terms = self.terms(later, between)
            if terms is not None:
                before, sums, after = self.sums(later, terms)
                moved = (*body[:m], *before, first, *sums, *body[m + 1 : k], *after)
                return (*moved, *body[k + 1 :]), len(moved)
        return None

    # -- what is summed ------------------------------------------------------------------------------------------
    def terms(self, later: Sum, between: Body) -> list[Term] | None:
        """What is to be summed, if that is known before what stands between, and something else is not."""
        late = {self.root[name] for name in written(between)}

        def is_late(expr: Expr) -> bool:
            return any(self.root[load.buffer] in late for load in loads(expr))

        def steady(expr: Expr) -> bool:
            return not symbols(expr) & later.reduced

        def taken(expr: Expr) -> list[Term] | None:
            if not is_late(expr):
                match expr:
                    case Op("divide", (a, b), dtype) if steady(b):
                        return [self.divided((None, a), b, dtype)]
                return [(None, expr)]
            match expr:
                case Op("add" | "subtract" as op, (a, b), dtype):
                    left, right = taken(a), taken(b)
                    if left is None or right is None:
                        return None
                    return left + (right if op == "add" else [_negated(t, dtype) for t in right])
                case Op("negative", (a,), dtype):
                    found = taken(a)
                    return found and [_negated(t, dtype) for t in found]
                case Op("multiply", (a, b), dtype) if steady(a) != steady(b):
                    factor, rest = (a, b) if steady(a) else (b, a)
                    found = taken(rest)
                    return found and [_times(factor, t, dtype, is_late(factor)) for t in found]
                case Op("divide", (a, b), dtype) if steady(b) and not is_late(b):
                    found = taken(a)
                    return found and [self.divided(t, b, dtype) for t in found]
                case Load(buffer, index) if not steady(expr):
                    made = stored_in(between, self.table[buffer], self.root)
                    return made and taken(subst_expr(made[1], dict(zip(made[0], index, strict=True))))
            return None

        found = taken(later.store.value)
        if found is None or len(found) > MOST_TERMS or any(steady(x) for _, x in found):
            return None
        return found if any(c is not None for c, _ in found) else None

    def divided(self, term: Term, by: Expr, dtype: str) -> Term:
        """In a gradient, whose order of roundings is nobody's, the sum is divided, not what is summed."""
        factor, value = term
        if factor is None and not self.gradient:
            return None, Op("divide", (value, by), dtype)
        return Op("divide", (Const(1.0, dtype) if factor is None else factor, by), dtype), value

    # -- the statements ------------------------------------------------------------------------------------------
    def sums(self, later: Sum, terms: list[Term]) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:
        """Zeros, the sums themselves, and what adds them, each times its factor, to the target."""
        store, dtype = later.store, self.table[later.store.buffer].dtype
        plain = [x for c, x in terms if c is None]
        grouped: list[Term] = [(None, _total(plain, dtype))] if plain else []
        grouped += [(c, x) for c, x in terms if c is not None]
        before: list[Stmt] = []
        sums: list[Stmt] = []
        parts: list[Expr] = []
        place = tuple(Dim.of(x.var) for x in later.kept)
        for factor, value in grouped:
            name = self.names.fresh(f"{store.buffer}_of")
            self.table[name] = Buffer(name, dtype, tuple(x.hi for x in later.kept), "temp")
            self.root[name] = name
            before.append(self.nest(later.kept, Store(name, place, Const(0.0, dtype), None)))
            sums.append(self.nest(later.loops, Store(name, place, value, "add")))
            part = Load(name, place, dtype)
            parts.append(part if factor is None else _weighed(factor, part, dtype))
        return before, sums, [self.nest(later.kept, replace(store, value=_total(parts, dtype)))]

    def nest(self, loops: list[For], store: Store) -> Stmt:
        return nest(loops, store, self.names)


def nest(loops: Sequence[For], store: Store, names: Names) -> Stmt:
    """The store in these loops, with variables of its own."""
    fresh = {x.var: names.fresh(x.var) for x in loops}
    renamed = substitute((store,), {old: Dim.of(new) for old, new in fresh.items()})
    return rebuild([replace(x, var=fresh[x.var]) for x in loops], renamed) if loops else renamed[0]


def stored_in(body: Body, buffer: Buffer, root: Mapping[str, str]) -> tuple[tuple[str, ...], Expr] | None:
    """What a nest stores in all of a buffer, which nothing else writes to: variables for a place, and the value."""
    writers = [s for s in body if buffer.name in written((s,))]
    if len(writers) != 1 or root[buffer.name] != buffer.name:
        return None
    made = definition(writers[0], buffer)
    behind = {root[n] for n in written(body[body.index(writers[0]) + 1 :])}
    return None if made is None or any(root[load.buffer] in behind for load in loads(made[1])) else made


def _negated(term: Term, dtype: str) -> Term:
    factor, value = term
    if factor is None:
        return None, Op("negative", (value,), dtype)
    return Op("negative", (factor,), dtype), value


def _times(factor: Expr, term: Term, dtype: str, late: bool) -> Term:
    inner, value = term
    if inner is not None:
        return Op("multiply", (factor, inner), dtype), value
    return (factor, value) if late else (None, Op("multiply", (factor, value), dtype))


def _weighed(factor: Expr, value: Expr, dtype: str) -> Expr:
    match factor:
        case Op("divide", (Const(1.0), below)):
            return Op("divide", (value, below), dtype)
    return Op("multiply", (factor, value), dtype)


def _total(values: list[Expr], dtype: str) -> Expr:
    total = values[0]
    for value in values[1:]:
        total = Op("add", (total, value), dtype)
    return total
