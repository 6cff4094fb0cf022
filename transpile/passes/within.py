"""Sums of products behind a branch that asks where a window is go there only: then they are products of matrices.

    for i: for k:                                              for k: for i in max(0, r - k)..min(n, n + r - k):
        if (0 <= i + k - r) & (i + k - r < n):      ->             for j: for c: y[i,j] += x[i + k - r,c] * w[k,c,j]
            for j: for c: y[i,j] += x[i + k - r,c] * w[k,c,j]

The loops over a window go outside, and each of their steps asks nothing of its rows. Where the matrices are small, that
takes longer than to go along the row with a branch (`windows`): which of the two, the extents tell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

from ..dims import Dim, Facts, maximum, minimum, product
from ..ir import Buffer, Check, Comment, Const, Expr, For, If, Int, Kernel, Load, Op, Product, Stmt
from .depend import Memory
from .fission import fission, parted_within
from .guards import margins
from .order import perfect, rebuild
from .predicate import may_trap
from .products import products
from .ranges import conjuncts
from .tidy import tidy
from .tree import (
    Body,
    Names,
    accesses,
    another,
    buffers,
    dim_loads,
    has,
    map_bodies,
    map_stmts,
    parts,
    roots,
    walk,
    written,
)

WORTH = 16  # products of a row, or of a column, with a matrix of fewer elements take longer than windows


def within(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts)
    return tidy(replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))) if body != kernel.body else kernel


@dataclass(frozen=True)
class _Ends:
    """Where a loop goes, of the places that a branch in it asks for."""

    loop: For
    low: Dim
    high: Dim


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.table, self.root, self.names = kernel, buffers(kernel), roots(kernel), Names.of(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.counters = {s.var for s in walk(kernel.body) if isinstance(s, For)}
        self.made: list[Buffer] = []

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, facts))

    def stmt(self, stmt: Stmt, facts: Facts) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, facts)),)
        if stmt.kind == "map" and (found := self.nest(stmt, facts)) is not None:
            return found
        facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
        return (map_bodies(stmt, lambda inner: self.body(inner, facts)),)

    def nest(self, nest: For, facts: Facts) -> Body | None:
        """The nest for large matrices, and as it is for small ones; None where it is no such sum."""
        if nest.hi == Dim.of(self.kernel.batch or "") or not any(isinstance(s, If) for s in walk(nest.body)):
            return None
        copies, more = zip(*(another(s, self.names, self.uses, self.table) for s in _asked_before(nest)), strict=True)
        known = replace(self.kernel, buffers=(*self.kernel.buffers, *(b for own in more for b in own)))
        inside = Counter(a.buffer for a in accesses((nest,)))
        others = {name for name, uses in inside.items() if self.uses[name] > uses}
        known = parted_within(replace(known, body=map_stmts(copies, self.apart)), others)
        found = [self.sum_of(stmt, known, facts) for stmt in known.body]
        sizes = [made[1] for made in found if made is not None]
        if not sizes:
            return None
        small = reduce(minimum, sizes)
        if small.value is not None and small.value < WORTH:
            return None
        body = tuple(made[0] if made else stmt for stmt, made in zip(known.body, found, strict=True))
        self.made += known.buffers[len(self.kernel.buffers) :]
        worth = Op("greater_equal", (Int(small), Const(WORTH, "i64")), "bool")
        return body if small.value is not None else (If(worth, body, (nest,)),)

    def apart(self, stmt: Stmt) -> Body:
        """A branch for each sum behind it."""
        match stmt:
            case If(cond, then, ()) if not _reads(cond) and not has(then, Check):
                sums = [s for s in then if not isinstance(s, Comment)]
                made = [{self.root.get(n, n) for n in written((s,))} for s in sums]
                read = {self.root.get(a.buffer, a.buffer) for a in accesses(sums) if a.mode == "r"}
                alone = all(not one & other for one, other in combinations(made, 2))
                if len(sums) > 1 and alone and not read & set().union(*made):
                    return tuple(If(cond, (s,)) for s in sums)
        return (stmt,)

    def sum_of(self, nest: Stmt, known: Kernel, facts: Facts) -> tuple[For, Dim] | None:
        """The products that a sum behind a branch is, and how large the matrices are."""
        loops, inside = perfect(nest) if isinstance(nest, For) and nest.kind == "map" else ([], ())
        match [s for s in inside if not isinstance(s, Comment)]:
            case [If(cond, then, ())] if len(loops) > 1 and not has(then, Check, If):
                made = self.moved(loops, cond, then, facts)
                small = self.smallest(made, known) if made is not None else None
                return (made, small) if made is not None and small is not None else None
        return None

    def moved(self, loops: list[For], cond: Expr, inside: Body, facts: Facts) -> For | None:
        """The loops over windows first, the others where the branch is taken; None where that is no range."""
        own = {x.var for x in loops}
        facts = {**facts, **{x.var: (x.lo, x.hi - 1) for x in loops}}
        if any((x.lo.symbols() | x.hi.symbols()) & own or any(dim_loads(x.hi)) for x in loops):
            return None
        ends = {x.var: _Ends(x, x.lo, x.hi) for x in loops}
        cut: set[str] = set()
        first: set[str] = set()
        for part in conjuncts(cond):
            asked = margins(part)
            if _reads(part) or any(may_trap(p) for p in parts(part)) or not asked:
                return None
            for margin in asked:
                if (found := _cut(margin, loops, ends, facts)) is None:
                    return None
                ends[found.loop.var] = found
                cut.add(found.loop.var)
                first |= margin.symbols() & own - {found.loop.var}
        if not cut or cut & first or not first:
            return None
        outside = [x for x in loops if x.var in first]
        rows = [replace(x, lo=ends[x.var].low, hi=ends[x.var].high) for x in loops if x.var not in first]
        return _nest([*outside, *rows], inside)

    def smallest(self, nest: For, known: Kernel) -> Dim | None:
        """How large a matrix each row is multiplied with; None where not all of it are products."""
        made = products(fission(replace(known, body=(nest,))))
        counters = self.counters | {s.var for s in walk(made.body) if isinstance(s, For)}
        sizes: list[Dim] = []
        for stmt in walk(made.body):
            if isinstance(stmt, Product):
                steady = [n for _, n in stmt.axes if not n.symbols() & counters]
                if len(steady) != 2:
                    return None
                sizes.append(product(steady))
            elif not isinstance(stmt, (For, Comment)):
                return None
        return reduce(minimum, sizes) if sizes else None


def _asked_before(nest: For) -> list[For]:
    """What is asked of the places behind a branch, in a nest of its own, and the nest."""
    loops, inside = perfect(nest)
    match [s for s in inside if not isinstance(s, Comment)]:
        case [If(cond, then, ()) as branch]:
            asked = tuple(s for s in then if isinstance(s, Check))
            if asked and not any(_reads(s.cond) for s in asked):
                rest = tuple(s for s in then if not isinstance(s, Check))
                return [_nest(loops, (If(cond, asked),)), _nest(loops, (replace(branch, then=rest),))]
    return [nest]


def _cut(margin: Dim, loops: list[For], ends: dict[str, _Ends], facts: Facts) -> _Ends | None:
    """The ends of the outermost loop that the margin names, where it is not negative."""
    loop = next((x for x in loops if x.var in margin.symbols()), None)
    split = margin.split(loop.var) if loop is not None else None
    if loop is None or split is None or not split[0].value or any(dim_loads(margin)):
        return None
    step, rest = split[0].value, split[1]
    known = ends[loop.var]
    if step > 0:
        return replace(known, low=maximum(known.low, -(rest // step), facts))
    return replace(known, high=minimum(known.high, rest // -step + 1, facts))


def _nest(loops: list[For], inside: Body) -> For:
    nest = rebuild(loops, inside)
    assert isinstance(nest, For)
    return nest


def _reads(expr: Expr) -> bool:
    return any(isinstance(p, Load) or (isinstance(p, Int) and any(dim_loads(p.dim))) for p in parts(expr))
