"""A negative index that wraps is a place around the axis, as `(i - 1) % n` is.

    for i in 0..n:                                       for i in 0..n:
        at = where(i - 1 < 0, n + i - 1, i - 1)    ->        y[i] = x[i] - x[(i - 1)%n]
        y[i] = x[i] - x[at]

A place is told by counters then, and not by memory: it is known which other places it differs from. That an extent
which a loop runs along is not 0 (`i % n`) is not asked inside of it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..dims import ANY, Dim, Facts, nonnegative
from ..ir import Check, Const, Expr, For, Int, Kernel, Op, Stmt
from .guards import without_places
from .ranges import as_dim
from .tree import Body, dim_loads, map_bodies, map_dim, map_expr, map_own
from .whole import inside


def wrapped(kernel: Kernel) -> Kernel:
    body = _body(kernel.body, {s.name: ANY for s in kernel.scalars})
    return kernel if body == kernel.body else replace(kernel, body=without_places(body, kernel))


def _body(body: Body, facts: Facts) -> Body:
    return tuple(_stmt(s, facts) for s in body)


def _stmt(stmt: Stmt, facts: Facts) -> Stmt:
    here = partial(_around, facts=facts)
    stmt = map_own(stmt, lambda d: map_dim(d, here), lambda e: map_expr(e, here))
    match stmt:
        case Check(Op("not_equal", (Int(extent), Const(0)))) if nonnegative(extent - 1, facts):
            return replace(stmt, cond=Const(True, "bool"))
        case For():
            facts = inside(stmt, facts)
    return map_bodies(stmt, lambda inner: _body(inner, facts))


def _around(expr: Expr, facts: Facts) -> Expr:
    match expr:
        case Op("where", (Op("less", (place, Const(0) | Int(Dim(()))), _), back, other)) if place == other:
            at, wraps = as_dim(place), as_dim(back)
            if at is None or wraps is None or any(dim_loads(at)) or nonnegative(at, facts):
                return expr
            extent = wraps - at
            if (
                nonnegative(extent - 1, facts)
                and nonnegative(at + extent, facts)
                and nonnegative(extent - 1 - at, facts)
            ):
                return Int(at % extent)
    return expr


__all__ = ["wrapped"]
