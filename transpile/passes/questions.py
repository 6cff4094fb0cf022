"""What a kernel asks of sizes when it runs, to choose between versions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from ..dims import Dim
from ..ir import Const, Expr, Int, Op


def compared(op: str, a: Dim, b: Dim | int) -> Expr:
    """`op`: "less", "greater_equal", ..."""
    return Op(op, (Int(a), Const(b, "i64") if isinstance(b, int) else Int(b)), "bool")


def all_of(questions: Iterable[Expr]) -> Expr:
    return reduce(lambda a, b: Op("logical_and", (a, b), "bool"), questions)


__all__ = ["all_of", "compared"]
