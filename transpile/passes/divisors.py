"""In a gradient, a quotient of a product is the rest of it times the quotient of a part that is made as well.

    a[i] += dy[i] / d[i]                             e = dy[i] / d[i]
    b[i] -= dy[i] * y[i] / d[i]          ->          a[i] += e
                                                     b[i] -= e * y[i]

Both are rounded as often. The derivative of a quotient is this, and a division takes the time of ten products. `share`
gives the quotient its variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from ..ir import FLOATS, Const, Expr, Kernel, Op, Stmt, Store
from .decide import deciding, decisions
from .tree import Body, descend, loads, map_bodies, parts, roots, written

Age = Mapping[str, int]  # how often memory was written before
Key = tuple[Expr, frozenset[tuple[str, int]]]  # an expression, and the age of what it reads


def divisors(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Quotients(kernel).body(kernel.body)) if kernel.flush else kernel


@dataclass(frozen=True)
class _Quotient:
    value: Op
    below: Key
    above: tuple[Key, ...]  # the factors of what is divided

    def is_worth(self) -> bool:
        """Not a number's, whose inverse may be out of range."""
        return any(not isinstance(expr, Const) for expr, _ in self.above)

    def without(self, part: _Quotient) -> list[Expr]:
        """The factors that a part leaves."""
        left = Counter(part.above)
        rest: list[Expr] = []
        for key in self.above:
            if left[key] > 0:
                left[key] -= 1
            else:
                rest.append(key[0])
        return rest


class _Quotients:
    """The quotients of each list of statements."""

    def __init__(self, kernel: Kernel) -> None:
        self.root, self.exact = roots(kernel), deciding(kernel)

    def body(self, body: Body) -> Body:
        ages = list(self.ages(body))
        each = [list(self.quotients(stmt, age)) for stmt, age in zip(body, ages, strict=True)]
        every = {q for found in each for q in found}
        parts_of = {q: part for q in every if (part := _largest_part(q, every))}
        return tuple(self.stmt(stmt, found, parts_of) for stmt, found in zip(body, each, strict=True))

    def stmt(self, stmt: Stmt, found: list[_Quotient], parts_of: Mapping[_Quotient, _Quotient]) -> Stmt:
        if not isinstance(stmt, Store):
            return map_bodies(stmt, self.body)
        if not any(q in parts_of for q in found):
            return stmt
        there: dict[Expr, _Quotient] = {q.value: q for q in found}

        def put(expr: Expr) -> Expr:
            here = there.get(expr)
            if here is None or here not in parts_of:
                return descend(expr, put)
            part = parts_of[here]
            there[part.value] = part  # which may have a part, too
            return reduce(
                lambda a, b: Op("multiply", (a, put(b)), here.value.dtype), here.without(part), put(part.value)
            )

        return replace(stmt, value=put(stmt.value))

    def quotients(self, stmt: Stmt, age: Age) -> Iterator[_Quotient]:
        """Those of a statement by which nothing is decided."""
        if not isinstance(stmt, Store) or self.root[stmt.buffer] in self.exact:
            return
        decided = decisions(stmt.value)
        for part in parts(stmt.value):
            match part:
                case Op("divide", (above, below), dtype) if dtype in FLOATS and part not in decided:
                    yield _Quotient(part, self.key(below, age), tuple(self.key(f, age) for f in _factors(above)))

    def ages(self, body: Body) -> Iterator[Age]:
        """For each statement, how often memory was written before it."""
        age: Counter[str] = Counter()
        for stmt in body:
            yield dict(age)
            age.update({self.root[name] for name in written((stmt,))})

    def key(self, expr: Expr, age: Age) -> Key:
        read = {self.root[x.buffer] for x in loads(expr)}
        return expr, frozenset((name, age.get(name, 0)) for name in read)


def _largest_part(quotient: _Quotient, every: set[_Quotient]) -> _Quotient | None:
    found = (
        q for q in every if q.below == quotient.below and q.is_worth() and Counter(q.above) < Counter(quotient.above)
    )
    return max(found, key=lambda q: (len(q.above), repr(q)), default=None)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Op("multiply", (a, b), _):
            return (*_factors(a), *_factors(b))
    return (expr,)


__all__ = ["divisors"]
