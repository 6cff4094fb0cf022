"""A quotient by what the innermost loop does not change is a product with its reciprocal, corrected.

    for i: y[i] = x[i] / s        ->        for i: y[i] = quotient(x[i], s * f, 1 / (s * f), f),  f = scale(s)

The divisor's three parts are hoisted by `share`. See lc_quotient in math.h for what makes the result that of the
division. Before `inline`: a value that is scaled is then cheap to compute again.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Const, Expr, For, Kernel, Op, Stmt, Store
from .tree import Body, loads, map_bodies, map_expr, roots, symbols, written


def quotient(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_body(kernel.body, None, roots(kernel)))


def _body(body: Body, loop: For | None, root: dict[str, str]) -> Body:
    return tuple(_stmt(s, loop, root) for s in body)


def _stmt(stmt: Stmt, loop: For | None, root: dict[str, str]) -> Stmt:
    if isinstance(stmt, For):
        return replace(stmt, body=_body(stmt.body, stmt, root))
    if not isinstance(stmt, Store):
        return map_bodies(stmt, lambda inner: _body(inner, None, root))
    if loop is None or loop.kind != "map":
        return stmt
    changed = {root.get(name, name) for name in written(loop.body)}

    def steady(expr: Expr) -> bool:
        return loop.var not in symbols(expr) and not any(root.get(x.buffer, x.buffer) in changed for x in loads(expr))

    def turned(expr: Expr) -> Expr:
        match expr:
            case Op("divide", (above, below), dtype) if steady(below) and not steady(above):
                factor = Op("scale", (below,), dtype)
                scaled = Op("multiply", (below, factor), dtype)
                return Op("quotient", (above, scaled, Op("divide", (Const(1.0, dtype), scaled), dtype), factor), dtype)
        return expr

    return replace(stmt, value=map_expr(stmt.value, turned))
