"""The value alone: what `with_derivative` and `with_backward` say matters to the adjoint, and to nobody after it.

before: y_2 = step(y); y = with_derivative(found, y_2)        after: y = found
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .clean import clean
from .operations import ROWS
from .program import Call, Expr, Function, Stmt, children, map_children, stmt_exprs, walk, walk_stmts
from .renaming import map_stmt


def primal(function: Function) -> Function:
    """The function without them, and without what only they read."""
    tops = (e for s in walk_stmts(function.body) for e in stmt_exprs(s))
    if not any(_says_derivative(e) for top in tops for e in walk(top)):
        return function
    return replace(function, body=clean(primal_block(function.body), checks=True))


def primal_block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    return tuple(map_stmt(s, _value, primal_block, lambda n: n) for s in body)


def _value(expr: Expr) -> Expr:
    return _value(children(expr)[0]) if _says_derivative(expr) else map_children(expr, _value)


def _says_derivative(expr: Expr) -> bool:
    return isinstance(expr, Call) and ROWS[expr.op].kind == "derivative"
