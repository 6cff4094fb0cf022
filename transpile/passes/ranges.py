"""Where all indices are in range, none is checked: that is asked once, before the loops, and not at each of them.

    before:  for i in 0..n: for a in 0..k:                      after:  if (s*(n - 1) >= 0) & (s*(n - 1) + k <= N):
                 check i*s + a < N else 1                                   for i: for a: y[i] += x[i*s + a]
                 at = where(i*s + a < 0, i*s + a + N, i*s + a)          else:
                 y[i] += x[at]                                              for i: for a: check ...; y[i] += x[at]

An index is asked about if it is linear in the loops around it, so that it is smallest and largest at their ends: what
those are is said by extents and configuration, which the compiler does not know and the call does. What is under a
condition may never be evaluated, and is left alone; so is what is negative for certain (x[i - 1] from 0 on).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims import ANY, Atom, Dim, Facts, minimum, nonnegative
from ..ir import Check, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store, While
from .fold import fold_body
from .tidy import tidy
from .tree import Body, Names, apart, dim_loads, map_all, map_stmts, walk

MOST = 24  # questions
Box = Mapping[str, tuple[Dim, Dim]]  # loop variable -> its first and last value; the innermost comes last


def ranges(kernel: Kernel) -> Kernel:
    asked = _Questions(kernel)
    asked.body(kernel.body, {})
    if not asked.in_loops or len(asked.lowest) > MOST or any(dim_loads(d) for b in kernel.buffers for d in b.shape):
        return kernel
    cond: Expr = Const(True, "bool")
    for low in asked.lowest:
        holds = Op("greater_equal", (Int(low), Const(0, "i64")), "bool")
        cond = holds if isinstance(cond, Const) else Op("logical_and", (cond, holds), "bool")
    inside = _without_checks(fold_body(map_all(kernel.body, lambda e: asked.answers.get(e, e))), asked.places)
    checked, more = apart(kernel, Names.of(kernel))
    return tidy(replace(kernel, buffers=(*kernel.buffers, *more), body=(If(cond, inside, checked),)))


class _Questions:
    """The comparisons that hold if `lowest` are not negative, and what they are then."""

    def __init__(self, kernel: Kernel) -> None:
        self.known = {*kernel.dims, *(s.name for s in kernel.scalars)}
        self.facts: Facts = {s.name: ANY for s in kernel.scalars if s.dtype == "i64"}
        self.batch = kernel.batch
        self.answers: dict[Expr, Const] = {}
        self.places: set[str] = set()  # variables of indices that could wrap
        self.lowest: dict[Dim, None] = {}
        self.in_loops = False

    def body(self, body: Body, box: Box) -> None:
        for stmt in body:
            match stmt:
                case For(var, lo, hi, inner):
                    self.body(inner, {**box, var: (lo, hi - 1)})
                case While(before, _, inner):
                    self.body(before, box)
                    self.body(inner, box)
                case Check(cond):
                    for part in conjuncts(cond):
                        self.ask(part, True, box)
                case Store(at, (), Op("where", (Op("less", (Int(), Const(0)), _) as below, _, _))):
                    self.places |= {at} if self.ask(below, False, box) else set()

    def ask(self, comparison: Expr, wanted: bool, box: Box) -> bool:
        """Whether it can be asked about."""
        margin = _margin(comparison, wanted)
        if margin is None:
            return False
        lowest = [self._lowest(one, box) for one in lesser(margin)]
        if not all(low is not None and self._can_be_asked(low) for low in lowest):
            return False
        self.answers[comparison] = Const(wanted, "bool")
        open_ones = [low for low in lowest if low is not None and not nonnegative(low, self.facts)]
        if open_ones:
            self.lowest.update(dict.fromkeys(open_ones))
            examples = {var for var, (_, last) in box.items() if self.batch and last == Dim.of(self.batch) - 1}
            self.in_loops |= bool(margin.symbols() & box.keys() - examples)
        return True

    def _can_be_asked(self, low: Dim) -> bool:
        return low.symbols() <= self.known and not dim_loads(low) and not nonnegative(-low - 1, self.facts)

    def _lowest(self, dim: Dim, box: Box) -> Dim | None:
        for var in reversed(list(box)):
            if var not in dim.symbols():
                continue
            split = dim.split(var)
            if split is None or split[0].symbols() & box.keys():
                return None
            (step, rest), (first, last) = split, box[var]
            if nonnegative(step, self.facts):
                dim = step * first + rest
            elif nonnegative(-step, self.facts):
                dim = step * last + rest
            else:
                dim = minimum(step * first, step * last) + rest
        return dim


def conjuncts(cond: Expr) -> list[Expr]:
    if isinstance(cond, Op) and cond.op in ("logical_and", "bitwise_and"):
        return [part for arg in cond.args for part in conjuncts(arg)]
    return [cond]


def _margin(comparison: Expr, wanted: bool) -> Dim | None:
    """What must not be negative for the comparison of two integers to be as wanted."""
    match comparison:
        case Op("less", (a, b), _) if (x := as_dim(a)) is not None and (y := as_dim(b)) is not None:
            return y - x - 1 if wanted else x - y
        case Op("greater_equal", (a, b), _) if (x := as_dim(a)) is not None and (y := as_dim(b)) is not None:
            return x - y if wanted else y - x - 1
    return None


def lesser(margin: Dim) -> list[Dim]:
    """What none of is negative where this is not: a and b, of min(a, b)."""
    for monomial, times in margin.terms:
        match monomial:
            case (Atom(kind, args),) if (kind, times) in (("min", 1), ("max", -1)):
                rest = margin - Dim(((monomial, times),))
                return [one for arg in args for one in lesser(rest + arg * times)]
    return [margin]


def as_dim(expr: Expr) -> Dim | None:
    match expr:
        case Int(dim):
            return dim
        case Const(int() as value, "i64"):
            return Dim.of(value)
    return None


def _without_checks(body: Body, variables: set[str]) -> Body:
    """Without the checks that always hold; and an index that is a variable because it could wrap is itself."""
    stores = [s.buffer for s in walk(body) if isinstance(s, Store)]
    places: dict[str, Dim] = {}

    def kept(stmt: Stmt) -> Body:
        match stmt:
            case Check(Const(True)):
                return ()
            case Store(buffer, (), Int(dim), None) if buffer in variables and stores.count(buffer) == 1:
                places[buffer] = dim
                return ()
        return (stmt,)

    body = map_stmts(body, kept)
    return map_all(body, lambda e: Int(places[e.buffer]) if isinstance(e, Load) and e.buffer in places else e)


__all__ = ["as_dim", "conjuncts", "ranges"]
