"""In a gradient, what all terms of a sum are multiplied or divided by is left to the sum; and equal sums are made once.

    for j: s += g[j] * (x[j] / c)                    for j: t += g[j] * x[j]
    for j: r += g[j] * x[j] * d             ->       s += t / c;  r += t * d

    for c: for i: s += w[c] * g[c,i]                 for c: for i: t[c] += g[c,i]
    for c: for i: b[c] += g[c,i]            ->       for c: s += w[c] * t[c];  for c: b[c] += t[c]

The order of roundings changes, which is a gradient's own. So the gradients of what is normalised ask each element for
two or three sums, whatever weights, biases and deviations there are. Sums that others are made of stay where they are,
what is made of them waits as long as it can: it would part sweeps that `fuse` could make one. Before `quotient`: what
is left of a term is seldom divided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..dims import ZERO, Dim, Facts, largest, product
from ..ir import Buffer, Const, Expr, For, Int, Kernel, Load, Op, Stmt, Store
from .decide import deciding
from .linear import nest, stored_in, sum_in
from .tree import (
    Body,
    Names,
    buffers,
    extent_of,
    factors_of,
    loads,
    map_bodies,
    product_of,
    roots,
    subst_expr,
    symbols,
    touched,
    written,
)
from .work import effort

CHEAP = 2  # flops of a term that is read of what made it: less than to read what it made

Factor = tuple[str, Expr]  # multiply or divide, by what; or negative
Key = tuple[Expr, tuple[tuple[Dim, Dim, bool], ...]]  # of a sum: its term, and its loops, and whether they number it


def common(kernel: Kernel) -> Kernel:
    if not kernel.flush:
        return kernel
    state = Common(kernel)
    body = state.body(kernel.body)
    return replace(kernel, body=body, buffers=tuple(state.table.values()))


@dataclass(frozen=True)
class _Part:
    """A sum of which another one is made."""

    loops: list[For]
    kept: list[For]  # those that number it
    term: Expr
    factors: list[Factor]  # what makes the other one of it
    store: Store  # of the other one

    @property
    def key(self) -> Key:
        numbered = {x.var: Dim.of(f"#{k}") for k, x in enumerate(self.loops)}
        spaces = tuple((x.lo, x.hi, x in self.kept) for x in self.loops)
        return _ordered(subst_expr(self.term, numbered)), spaces


class Common:
    """What the statements of a kernel's bodies are made of; `table` gets the sums that are new."""

    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.exact = deciding(kernel)
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars), kernel.batch or ""}

    def body(self, body: Body, around: Sequence[For] = ()) -> Body:
        """`around`: the loops around it."""
        facts = {x.var: (x.lo, x.hi - 1) for x in around}
        parts_of = [self.part(stmt, body[:k], facts) for k, stmt in enumerate(body)]
        often = Counter(part.key for part in parts_of if part)
        known: dict[Key, Buffer] = {}
        late: list[Stmt] = []  # what is made of sums, until somebody asks for it
        done: list[Stmt] = []
        for stmt, part in zip(body, parts_of, strict=True):
            if part and (part.factors or often[part.key] > 1):
                new, after = self.made(part, known, facts)
            else:
                inside = (*around, stmt) if isinstance(stmt, For) else around
                new, after = [map_bodies(stmt, partial(self.body, around=inside))], []
            asked = [s for s in late if self.meet(s, (stmt, *new, *after))]
            late = [s for s in late if s not in asked] + after
            done += [*asked, *new]
            changed = self.rooted(written((*asked, *new)))
            known = {key: b for key, b in known.items() if b.name in changed or not changed & self.read(key[0])}
        return (*done, *late)

    def meet(self, one: Stmt, other: Body) -> bool:
        """Whether one writes to what the other touches."""
        return bool(
            self.rooted(written((one,))) & self.rooted(touched(other))
            or self.rooted(written(other)) & self.rooted(touched((one,)))
        )

    def rooted(self, names: Iterable[str]) -> set[str]:
        return {self.root[name] for name in names}

    def read(self, expr: Expr) -> set[str]:
        return self.rooted(load.buffer for load in loads(expr))

    # -- what a sum is made of -----------------------------------------------------------------------------------
    def part(self, stmt: Stmt, before: Body, facts: Facts) -> _Part | None:
        """The sum that one is made of, by factors that its own loops do not change; its inner loops' alone, where the
        outer ones change the factor. `before`: the statements that say what arrays are."""
        whole = sum_in(stmt)
        if whole is None or self.root[whole.store.buffer] in self.exact:
            return None
        reduced = [x for x in whole.loops if x.var in whole.reduced]
        best: _Part | None = None
        for k in range(len(reduced)):
            kept = [x for x in whole.loops if x not in reduced[k:]]
            if any(x.lo != ZERO or extent_of(x, facts, self.sizes) is None for x in kept):
                break
            term, factors = self.apart(whole.store, {x.var for x in reduced[k:]}, before)
            if any(whole.loops[-1].var not in symbols(f) for f in factors_of(term)):  # it would take in the others
                term, factors = whole.store.value, []
            if best is None or (len(factors) > len(best.factors) and _is_smaller(kept, term)):
                best = _Part(whole.loops, kept, term, factors, whole.store)
        return best

    def apart(self, store: Store, inner: set[str], before: Body) -> tuple[Expr, list[Factor]]:
        """A term without what loops do not change, and that."""

        def steady(expr: Expr) -> bool:
            return not symbols(expr) & inner and self.root[store.buffer] not in self.read(expr)

        def split(expr: Expr) -> tuple[Expr, list[Factor]]:
            match expr:
                case Op("multiply", (a, b), dtype) if steady(a) != steady(b):
                    factor, rest = (a, b) if steady(a) else (b, a)
                    term, factors = split(rest)
                    return term, [*factors, ("multiply", factor)]
                case Op("multiply", (a, b), dtype) if not steady(a):
                    (left, one), (right, two) = split(a), split(b)
                    return Op("multiply", (left, right), dtype), [*one, *two]
                case Op("divide", (a, b)) if steady(b) and not steady(a):
                    term, factors = split(a)
                    return term, [*factors, ("divide", b)]
                case Op("negative", (a,)) if not steady(a):
                    term, factors = split(a)
                    return term, [*factors, ("negative", a)]
                case Load(buffer, index) if not steady(expr):
                    made = stored_in(before, self.table[buffer], self.root)
                    if made is not None:
                        term, factors = split(subst_expr(made[1], dict(zip(made[0], index, strict=True))))
                        if factors and effort(term) <= CHEAP:
                            return term, factors
            return expr, []

        return split(store.value)

    # -- the statements ------------------------------------------------------------------------------------------
    def made(self, part: _Part, known: dict[Key, Buffer], facts: Facts) -> tuple[list[Stmt], list[Stmt]]:
        """The sum that another is made of, if there is none yet, and what is made of it."""
        key, place, dtype, new = part.key, tuple(Dim.of(x.var) for x in part.kept), self.dtype_of(part.store), []
        if key not in known:
            name = self.names.fresh(f"{part.store.buffer}_of")
            shape = tuple(largest(x.hi, facts) for x in part.kept)
            known[key] = self.table[name] = Buffer(name, dtype, shape, "temp")
            self.root[name] = name
            new = [self.nest(part.kept, Store(name, place, Const(0.0, dtype)))]
            new += [self.nest(part.loops, Store(name, place, part.term, "add"))]
        value: Expr = Load(known[key].name, place, dtype)
        for op, by in part.factors:
            value = Op(op, (value, by) if op != "negative" else (value,), dtype)
        count = product(x.hi - x.lo for x in part.loops if x not in part.kept)
        if part.factors and not (count.value and count.value > 0):  # a sum of nothing is 0, whatever the factors are
            some = Op("greater", (Int(count), Const(0, "i64")), "bool")
            value = Op("where", (some, value, Const(0.0, dtype)), dtype)
        return new, [self.nest(part.kept, replace(part.store, value=value))]

    def dtype_of(self, store: Store) -> str:
        return self.table[store.buffer].dtype

    def nest(self, loops: list[For], store: Store) -> Stmt:
        return nest(loops, store, self.names)


def _is_smaller(kept: list[For], term: Expr) -> bool:
    """Whether sums that these loops number take less room than something that is read for them."""
    variables = {loop.var for loop in kept}
    return any(variables <= {s for d in load.index for s in d.symbols()} for load in loads(term))


def _ordered(expr: Expr) -> Expr:
    """With the factors of products in one order, whatever the program's was."""
    match expr:
        case Op("multiply", (a, b), dtype):
            return product_of(sorted((*factors_of(a), *factors_of(b)), key=repr), dtype)
    return expr
