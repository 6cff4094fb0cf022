"""Estimated work of statements, in flops, as a Dim: what decides whether threads are worth waking."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from ..dims import Atom, Dim, Facts, largest, product
from ..ir import Buffer, Expr, For, If, Load, Op, Product, Stmt, Store, While
from ..operations import flops
from .tree import Body, own_exprs, parts

WORTH = 40_000  # about 30 microseconds
FINER = 16  # times as much, where only the second of two loops has chunks: threads then fetch what others have made
LAST_CACHE = 7 << 20  # elements of all arrays that one holds
UNKNOWN = 16  # iterations of a loop whose length only running it tells


def work(stmt: Stmt, table: Mapping[str, Buffer], facts: Facts | None = None) -> Dim:
    facts = facts or {}
    total = Dim.of(0)
    for expr in own_exprs(stmt):
        for part in parts(expr):
            match part:
                case Op(op, _, _):
                    total += flops(op)
                case Load(_, index, _) if index:
                    total += 1
    match stmt:
        case Store():
            total += 1
        case Product():
            total += product(largest(extent, facts) for _, extent in stmt.axes) * 2
        case For(var, lo, hi, body):
            if stmt.work is not None:
                with suppress(ValueError):
                    return largest(stmt.work, facts)
                return stmt.work.subs({name: Dim.of(UNKNOWN) for name in facts})
            length = hi - lo
            if any(isinstance(a, Atom) and a.kind == "load" for a in length.atoms()):
                length = Dim.of(UNKNOWN)
            try:
                length = largest(length, facts)
            except ValueError:
                length = Dim.of(UNKNOWN)
            total += _without(var, length * _sum(body, table, {**facts, var: (lo, hi - 1)}), (lo, hi - 1))
        case While(before, _, body):
            total = (total + _sum(before + body, table, facts)) * UNKNOWN
        case If(_, then, orelse):
            total += _sum(then + orelse, table, facts)
    return total


def effort(*exprs: Expr) -> int:
    """The flops of expressions, each part as often as it stands there."""
    return sum(flops(part.op) for expr in exprs for part in parts(expr) if isinstance(part, Op))


def _without(var: str, total: Dim, bounds: tuple[Dim, Dim]) -> Dim:
    """An estimate that does not name the loop's own variable."""
    if var not in total.symbols():
        return total
    with suppress(ValueError):
        total = largest(total, {var: bounds})
    return total.subs({var: Dim.of(UNKNOWN)})


def _sum(body: Body, table: Mapping[str, Buffer], facts: Facts) -> Dim:
    return sum((work(s, table, facts) for s in body), Dim.of(0))
