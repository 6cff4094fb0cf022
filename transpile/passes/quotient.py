"""A quotient by what the innermost loop does not change is a product with its reciprocal, corrected.

    for i: y[i] = x[i] / s        ->        for i: y[i] = quotient(x[i], s * f, 1 / (s * f), f),  f = scale(s)

The divisor's three parts are hoisted by `share`. See lc_quotient in math.h for what makes the result that of the
division. A gradient, whose terms are rounded many times, is as good without the correction (1 unit in the last place
instead of 1/2): rough_quotient(x[i], 1 / (s * f), f), a third of the instructions. What decides something stays exact
there, too: a gradient that asks which element the forward took must find it. Before `inline`: a value that is scaled
is then cheap to compute again.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Const, Expr, For, Kernel, Op, Stmt, Store
from .decide import deciding, decisions
from .tree import Body, loads, map_bodies, map_expr, map_stmts, parts, roots, symbols, walk, written


def quotient(kernel: Kernel) -> Kernel:
    root = roots(kernel)
    body = _body(kernel.body, None, root)
    if kernel.flush and any(_is_quotient(part) for s in walk(body) if isinstance(s, Store) for part in parts(s.value)):
        exact = deciding(kernel)
        body = map_stmts(body, lambda stmt: (_rough(stmt, root, exact),))
    return replace(kernel, body=body)


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


def _rough(stmt: Stmt, root: dict[str, str], exact: set[str]) -> Stmt:
    """The statement with rough quotients, wherever nothing is decided by them."""
    if not isinstance(stmt, Store) or root[stmt.buffer] in exact:
        return stmt
    decided = decisions(stmt.value)

    def rough(expr: Expr) -> Expr:
        match expr:
            case Op("quotient", (above, _, inverse, factor), dtype) if expr not in decided:
                return Op("rough_quotient", (above, inverse, factor), dtype)
        return expr

    return replace(stmt, value=map_expr(stmt.value, rough))


def _is_quotient(expr: Expr) -> bool:
    return isinstance(expr, Op) and expr.op == "quotient"
