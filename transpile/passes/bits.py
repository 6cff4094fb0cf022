"""What is taken or 0 is masked by its bits: gcc would join the conditions of several choices, and move masks about.

    for i: y[i] = where(x[i] > t, v, 0)        ->        for i: y[i] = or_zero(x[i] > t, v)

In loops that are vectorised; elsewhere a comparison and a choice are one instruction each. Last: no other pass need
know what `or_zero` is.
"""

from __future__ import annotations

from dataclasses import replace
from math import copysign

from ..ir import FLOATS, Const, Expr, Kernel, Op, Stmt
from .tree import Body, in_vectors, map_all, map_stmts


def bits(kernel: Kernel) -> Kernel:
    return replace(kernel, body=map_stmts(kernel.body, _masked))


def _masked(stmt: Stmt) -> Body:
    return (replace(stmt, body=map_all(stmt.body, _by_bits)),) if in_vectors(stmt) else (stmt,)


def _by_bits(expr: Expr) -> Expr:
    match expr:
        case Op("where", (asked, taken, other), dtype) if dtype in FLOATS:
            if _is_zero(other):
                return Op("or_zero", (asked, taken), dtype)
            if _is_zero(taken):
                return Op("or_zero", (Op("logical_not", (asked,), "bool"), other), dtype)
    return expr


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0 and copysign(1, float(expr.value)) > 0
