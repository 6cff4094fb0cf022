"""In a gradient, products that are divided by one number share the quotient of what they have in common.

    a[i] += dy[i] / d[i]                             e = dy[i] / d[i]
    b[i] -= dy[i] * y[i] / d[i]          ->          a[i] += e
    c[i] += w[i] * (dy[i] / d[i])                    b[i] -= e * y[i];  c[i] += e * w[i]

    for i: a[i] = dy[i] * w / d          ->          for i: a[i] = dy[i] * (w / d)

All are rounded as often. The derivative of a quotient is this, and a division takes the time of ten products; one by
what a loop does not change (`quotient`) still that of two. `share` gives the quotient its variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from ..ir import FLOATS, Cast, Const, Expr, For, Kernel, Op, Stmt, Store
from .decide import deciding, decisions
from .tree import Body, descend, factors_of, loads, map_bodies, product_of, roots, symbols, written

Age = Mapping[str, int]  # how often memory was written before
Key = tuple[Expr, frozenset[tuple[str, int]]]  # an expression, and the age of what it reads


def divisors(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Quotients(kernel).body(kernel.body)) if kernel.flush else kernel


@dataclass(frozen=True)
class _Quotient:
    """A product that is divided: `by` is the name of the division, and all its arguments but the first."""

    value: Op
    by: tuple[str, tuple[Key, ...]]
    above: tuple[Key, ...]  # the factors, in the order of the program

    @property
    def factors(self) -> Counter[Key]:
        return Counter(self.above)

    def is_worth(self) -> bool:
        """Not a number's, whose inverse may be out of range."""
        return any(not isinstance(expr, Const) for expr, _ in self.above)

    def without(self, part: _Quotient) -> list[Expr]:
        """The factors that a part leaves."""
        left = part.factors
        rest: list[Expr] = []
        for key in self.above:
            if left[key] > 0:
                left[key] -= 1
            else:
                rest.append(key[0])
        return rest

    def common(self, other: _Quotient) -> _Quotient | None:
        """The quotient of what both have in common."""
        return self.of(self.factors & other.factors) if self.by == other.by else None

    def of(self, left: Counter[Key]) -> _Quotient | None:
        """The quotient of some of the factors."""
        above = []
        for key in self.above:
            if left[key] > 0:
                left[key] -= 1
                above.append(key)
        if not above:
            return None
        (op, below), dtype = self.by, self.value.dtype
        value = Op(op, (product_of([expr for expr, _ in above], dtype), *(expr for expr, _ in below)), dtype)
        return replace(self, value=value, above=tuple(above))


class _Quotients:
    """The quotients of each list of statements."""

    def __init__(self, kernel: Kernel) -> None:
        self.root, self.exact = roots(kernel), deciding(kernel)

    def body(self, body: Body, loop: For | None = None) -> Body:
        """`loop`: the one that has these statements."""
        ages = list(self.ages(body))
        each = [list(self.quotients(stmt, age)) for stmt, age in zip(body, ages, strict=True)]
        every = {(q.by, frozenset(q.factors.items())): q for found in each for q in found}.values()
        shared = [*every, *filter(None, (a.common(b) for a, b in combinations(every, 2)))]
        if loop is not None:
            changed = {self.root[name] for name in written(loop.body)}
            shared += filter(None, (self.steady(q, loop, changed) for q in every))
        parts_of = {q: part for q in {*shared, *(q for found in each for q in found)} if (part := _part(q, shared))}
        return tuple(self.stmt(stmt, found, parts_of) for stmt, found in zip(body, each, strict=True))

    def stmt(self, stmt: Stmt, found: list[_Quotient], parts_of: Mapping[_Quotient, _Quotient]) -> Stmt:
        if not isinstance(stmt, Store):
            return map_bodies(stmt, lambda inner: self.body(inner, stmt if isinstance(stmt, For) else None))
        if not any(q in parts_of for q in found):
            return stmt
        there: dict[Expr, _Quotient] = {q.value: q for q in found}

        def put(expr: Expr) -> Expr:
            here = there.get(expr)
            if here is None or here not in parts_of:
                return descend(expr, put)
            part = parts_of[here]
            there[part.value] = part  # which may have a part, too
            return product_of([put(part.value), *map(put, here.without(part))], here.value.dtype)

        return replace(stmt, value=put(stmt.value))

    def steady(self, quotient: _Quotient, loop: For, changed: set[str]) -> _Quotient | None:
        """The quotient of those factors that a loop does not change, if it does not change what divides them."""

        def same(key: Key) -> bool:
            return loop.var not in symbols(key[0]) and not any(self.root[x.buffer] in changed for x in loads(key[0]))

        if not all(map(same, quotient.by[1])):
            return None
        return quotient.of(Counter(key for key in quotient.above if same(key)))

    def quotients(self, stmt: Stmt, age: Age) -> Iterator[_Quotient]:
        """Those of a statement by which nothing is decided."""
        if not isinstance(stmt, Store) or self.root[stmt.buffer] in self.exact:
            return
        decided = decisions(stmt.value)
        for expr in _products(stmt.value):
            divided = [f for f in factors_of(expr) if _is_quotient(f)]
            if len(divided) == 1 and expr not in decided and divided[0] not in decided:
                (inner,) = divided
                assert isinstance(inner, Op)
                assert isinstance(expr, Op)
                above = [g for f in factors_of(expr) for g in (factors_of(inner.args[0]) if f is inner else [f])]
                by = inner.op, tuple(self.key(e, age) for e in inner.args[1:])
                yield _Quotient(expr, by, tuple(self.key(f, age) for f in above))

    def ages(self, body: Body) -> Iterator[Age]:
        """For each statement, how often memory was written before it."""
        age: Counter[str] = Counter()
        for stmt in body:
            yield dict(age)
            age.update({self.root[name] for name in written((stmt,))})

    def key(self, expr: Expr, age: Age) -> Key:
        read = {self.root[x.buffer] for x in loads(expr)}
        return expr, frozenset((name, age.get(name, 0)) for name in read)


def _part(quotient: _Quotient, others: Iterable[_Quotient]) -> _Quotient | None:
    """The largest that is part of it."""
    found = (q for q in others if q.by == quotient.by and q.is_worth() and q.factors < quotient.factors)
    return max(found, key=lambda q: (len(q.above), repr(q)), default=None)


def _products(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that are products with a quotient among their factors, or quotients, and no factors
    of such."""
    factors = factors_of(expr)
    if any(map(_is_quotient, factors)):
        yield expr
    if sum(map(_is_quotient, factors)) > 1:
        yield from (f for f in factors if _is_quotient(f))
    for factor in factors:
        match factor:
            case Op(_, (above, *others)) if _is_quotient(factor):
                inner = (*factors_of(above), *others)
            case Op(_, inner):
                pass
            case Cast(value):
                inner = (value,)
            case _:
                inner = ()
        for part in inner:
            yield from _products(part)


def _is_quotient(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.op in ("divide", "rough_quotient") and expr.dtype in FLOATS


__all__ = ["divisors"]
