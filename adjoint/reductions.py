"""Reductions in loops that carry something: each under a name, whose value an iteration can leave to its reverse.

Of `np.log(np.sum(np.exp(paths), axis=0))` with paths (K, K), the K sums are less than what they take to compute again.

before:  for t in ...: alpha = score[t] + np.log(np.sum(np.exp(alpha[:, None] + w), axis=0))
after:   for t in ...: total = np.sum(np.exp(alpha[:, None] + w), axis=0); alpha = score[t] + np.log(total)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..transpile.operations import ROWS
from ..transpile.program import Assign, Call, Expr, For, Function, Name, Stmt, Store, map_children, stored
from .blocks import rebound
from .sizes import degree
from .values import hint


def shrinks(expr: Expr) -> bool:
    """Whether it is a reduction to fewer axes of an extent that is not known."""
    if not isinstance(expr, Call) or ROWS[expr.op].kind not in ("reduce", "compose") or not expr.args:
        return False
    return expr.type.is_float and degree(expr.type) < degree(expr.args[0].type)


def named_reductions(function: Function, fresh: Callable[[str], str]) -> Function:
    done: list[Stmt] = []
    known = {p.name for p in function.params}
    for stmt in function.body:
        if isinstance(stmt, For) and rebound(stmt.body) & known:
            stmt = replace(stmt, body=tuple(s for inner in stmt.body for s in _named(inner, fresh)))
        known |= rebound((stmt,)) | stored((stmt,))
        done.append(stmt)
    return replace(function, body=tuple(done))


def _named(stmt: Stmt, fresh: Callable[[str], str]) -> Sequence[Stmt]:
    if not isinstance(stmt, (Assign, Store)):
        return (stmt,)
    parts: dict[Expr, str] = {}

    def without(expr: Expr) -> Expr:
        if isinstance(expr, Call) and expr.op == "where":  # what it does not choose may be out of range
            return expr
        expr = map_children(expr, without)
        if not shrinks(expr):
            return expr
        if expr not in parts:
            parts[expr] = fresh(hint(expr))
        return Name(parts[expr], expr.type)

    has_name = isinstance(stmt, Assign) and shrinks(stmt.value)
    value = map_children(stmt.value, without) if has_name else without(stmt.value)
    return (*(Assign(name, part, stmt.span) for part, name in parts.items()), replace(stmt, value=value))


__all__ = ["named_reductions", "shrinks"]
