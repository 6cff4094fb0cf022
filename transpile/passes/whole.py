"""A fraction of places, rounded down, is a place: int(max((j + 0.5) / 2 - 0.5, 0.0)) is max(2*j - 1, 0)//4.

    before:  s = maximum(0.5*(f64(int(j)) + 0.5) - 0.5, 0)          after:  s = ...
             at = i64(s); check at < W else 1; v = s - at                   v = s - int(max(2*j - 1, 0)//4)
             y[j] = x[at] * v                                               y[j] = x[max(2*j - 1, 0)//4] * v

Sums of counters and extents, times and over powers of two, are exact in double precision: what they are rounded to is
known as the integers are, and whether it is in range. A difference of them that is the same everywhere is a number.
What a loop runs along is not empty inside of it: x[min(j + 1, W - 1)] is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..dims import ANY, ZERO, Dim, Facts, maximum, minimum, nonnegative
from ..ir import FLOATS, Cast, Check, Const, Expr, For, Int, Kernel, Load, Op, Stmt, Store
from .fold import simplify
from .guards import answer
from .tree import Body, accesses, dim_loads, has, map_bodies, map_dim, map_expr, map_own, own_exprs, parts, walk

MOST_BITS = 10  # of a fraction, and of a factor: with 40 of an index they fit into the 53 of a double


@dataclass(frozen=True)
class Ratio:
    """over / under, a power of two."""

    over: Dim
    under: int = 1

    def plus(self, other: Ratio, sign: int = 1) -> Ratio:
        a, b = common(self, other)
        return Ratio(a + b * sign, max(self.under, other.under)).reduced()

    def times(self, factor: Ratio) -> Ratio | None:
        if self.over.value is None and factor.over.value is None:
            return None
        return Ratio(self.over * factor.over, self.under * factor.under).reduced()

    def reduced(self) -> Ratio:
        over, under = self.over, self.under
        while under > 1 and all(c % 2 == 0 for _, c in over.terms):
            over, under = over // 2, under // 2
        return Ratio(over, under)


def common(a: Ratio, b: Ratio) -> tuple[Dim, Dim]:
    """What is over the larger of the two powers of two."""
    under = max(a.under, b.under)
    return a.over * (under // a.under), b.over * (under // b.under)


def whole(kernel: Kernel) -> Kernel:
    rounds = any(_rounds(p) for s in walk(kernel.body) for e in own_exprs(s) for p in parts(e))
    if not rounds and not has(kernel.body, Check):
        return kernel
    return replace(kernel, body=Whole.of(kernel).body(kernel.body, {s.name: ANY for s in kernel.scalars}))


def _rounds(expr: Expr) -> bool:
    return isinstance(expr, Cast) and expr.dtype == "i64" and not isinstance(expr.value, (Int, Const))


@dataclass
class Whole:
    """`once`: variables that are stored to in one place; `known`: what they are."""

    once: set[str]
    known: dict[str, Ratio]

    @staticmethod
    def of(kernel: Kernel) -> Whole:
        stores = Counter(a.buffer for a in accesses(kernel.body) if a.writes)
        scalars = {b.name for b in kernel.buffers if b.kind == "temp" and not b.shape and b.dtype in ("f64", "i64")}
        return Whole({n for n in scalars if stores[n] == 1}, {})

    def body(self, body: Body, facts: Facts) -> Body:
        before, found = dict(self.known), []
        for stmt in body:
            done = self.stmt(stmt, facts)
            if done is not None:
                found.append(done)
        self.known = before
        return tuple(found)

    def stmt(self, stmt: Stmt, facts: Facts) -> Stmt | None:
        def here(expr: Expr) -> Expr:
            return self.simpler(expr, facts)

        stmt = map_own(stmt, lambda d: map_dim(d, here), lambda e: map_expr(e, here))
        match stmt:
            case Check(Const(True)):
                return None
            case For():
                return replace(stmt, body=self.body(stmt.body, inside(stmt, facts)))
            case Store(name, (), value, None) if name in self.once:
                ratio = self.ratio(value, facts)
                if ratio is not None:
                    self.known[name] = ratio
        return map_bodies(stmt, lambda inner: self.body(inner, facts))

    def simpler(self, expr: Expr, facts: Facts) -> Expr:
        """One node, its arguments being simple already."""
        match expr:
            case Load(name, (), "i64") if name in self.known and self.known[name].under == 1:
                return Int(self.known[name].over)
            case Cast(value, "i64") if _rounds(expr):
                ratio = self.ratio(value, facts)
                if ratio is not None:
                    return Int(_towards_zero(ratio, facts))
            case Op("subtract", (a, b), dtype) if dtype in FLOATS:
                first, second = (self.ratio(x.value if isinstance(x, Cast) else x, facts) for x in (a, b))
                apart = first.plus(second, -1) if first and second else None
                if apart is not None and apart.over.value is not None:
                    return Const(apart.over.value / apart.under, dtype)
        return simplify(answer(expr, (ZERO,), facts))

    def ratio(self, expr: Expr, facts: Facts) -> Ratio | None:
        """The value of an expression, if that is exact, and all it is made of: a float of 24 bits is not asked."""
        found = self.of_exact(expr, facts)
        return found if found is not None and _is_exact(found, facts) else None

    def of_exact(self, expr: Expr, facts: Facts) -> Ratio | None:
        match expr:
            case Int(dim):
                return Ratio(dim)
            case Const(bool()):
                return None
            case Const(float() | int() as value):
                return _dyadic(value)
            case Load(name, ()):
                return self.known.get(name)
            case Cast(value, "f64"):
                return self.ratio(value, facts)
            case Op(op, args, "f64" | "i64") if op in _EXACT:
                ratios = [self.ratio(a, facts) for a in args]
                return None if None in ratios else _EXACT[op](*ratios, facts)
        return None


def inside(loop: For, facts: Facts) -> Facts:
    """What is known in a loop, that it has an iteration among it: of 2*W the extent W is not 0."""
    trips = loop.hi - loop.lo
    there = {}
    for monomial, factor in trips.terms[:1]:
        if len(monomial) == 1 and isinstance(monomial[0], str) and trips == Dim.of(monomial[0]) * factor and factor > 0:
            there = {monomial[0]: (Dim.of(1), ANY[1])} if monomial[0] not in facts else {}
    return {**there, **facts, loop.var: (loop.lo, loop.hi - 1)}


def _dyadic(value: float) -> Ratio | None:
    over, under = float(value).as_integer_ratio() if abs(value) < 2**MOST_BITS else (0, 0)
    return Ratio(Dim.of(over), under) if 0 < under <= 2**MOST_BITS else None


def _is_exact(ratio: Ratio, facts: Facts) -> bool:
    """Whether a double holds it, and all that it was made of: of counters of elements that are in memory."""
    small = all(abs(c) <= 2**MOST_BITS or not m for m, c in ratio.over.terms) and ratio.under <= 2**MOST_BITS
    return small and all(_is_counter(s, facts) for s in ratio.over.symbols())


def _is_counter(symbol: str, facts: Facts) -> bool:
    """Whether it is an extent, or runs along one."""
    if symbol not in facts or facts[symbol][1] == ANY[1]:
        return facts.get(symbol, (ZERO, ZERO))[0] != ANY[0]
    ends = facts[symbol]
    return not any(dim_loads(end) for end in ends) and all(_is_counter(s, facts) for end in ends for s in end.symbols())


def _towards_zero(ratio: Ratio, facts: Facts) -> Dim:
    if nonnegative(ratio.over, facts):
        return ratio.over // ratio.under
    return maximum(ratio.over, ZERO, facts) // ratio.under - maximum(-ratio.over, ZERO, facts) // ratio.under


def _of_two(choose: Callable[[Dim, Dim, Facts], Dim]) -> Callable[[Ratio, Ratio, Facts], Ratio]:
    def chosen(a: Ratio, b: Ratio, facts: Facts) -> Ratio:
        return Ratio(choose(*common(a, b), facts), max(a.under, b.under)).reduced()

    return chosen


_EXACT: dict[str, Callable[..., Ratio | None]] = {
    "add": lambda a, b, facts: a.plus(b),
    "subtract": lambda a, b, facts: a.plus(b, -1),
    "multiply": lambda a, b, facts: a.times(b),
    "divide": lambda a, b, facts: a.times(inverse) if (inverse := _inverse(b)) else None,
    "negative": lambda a, facts: Ratio(-a.over, a.under),
    "positive": lambda a, facts: a,
    "floor": lambda a, facts: Ratio(a.over // a.under),
    "maximum": _of_two(maximum),
    "minimum": _of_two(minimum),
}


def _inverse(ratio: Ratio) -> Ratio | None:
    value = ratio.over.value
    if not value or abs(value) & (abs(value) - 1):
        return None
    return Ratio(Dim.of(ratio.under * (1 if value > 0 else -1)), abs(value)).reduced()


__all__ = ["Whole", "inside", "whole"]
