"""Renames names throughout statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .dims import Dim
from .program import (
    Assert,
    Assign,
    Call,
    Comment,
    Expr,
    For,
    If,
    Name,
    Pop,
    Pull,
    Push,
    Return,
    Stmt,
    Store,
    While,
    map_children,
    map_items,
)


def rename_expr(expr: Expr, names: Mapping[str, str]) -> Expr:
    if isinstance(expr, Name):
        return replace(expr, id=names.get(expr.id, expr.id))
    return map_children(expr, lambda e: rename_expr(e, names))


def rename_block(body: Sequence[Stmt], names: Mapping[str, str]) -> list[Stmt]:
    return [rename_stmt(s, names) for s in body]


def rename_stmt(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    def e(expr: Expr) -> Expr:
        return rename_expr(expr, names)

    def b(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(rename_block(body, names))

    return map_stmt(stmt, e, b, lambda n: names.get(n, n))


def map_stmt(stmt: Stmt, e: Any, b: Any, n: Any) -> Stmt:
    """The same statement over e(expression), b(block) and n(assigned name)."""
    match stmt:
        case Assign():
            return replace(stmt, name=n(stmt.name), value=e(stmt.value))
        case Store():
            base = replace(stmt.base, id=n(stmt.base.id))
            return replace(stmt, base=base, items=map_items(stmt.items, e), value=e(stmt.value))
        case For():
            return replace(stmt, var=n(stmt.var), start=e(stmt.start), stop=e(stmt.stop), body=b(stmt.body))
        case While():
            return replace(stmt, cond=e(stmt.cond), body=b(stmt.body))
        case If():
            return replace(stmt, cond=e(stmt.cond), then=b(stmt.then), orelse=b(stmt.orelse))
        case Return():
            return replace(stmt, values=tuple(e(v) for v in stmt.values))
        case Assert():
            return replace(stmt, cond=e(stmt.cond))
        case Push():
            return replace(stmt, list=replace(stmt.list, id=n(stmt.list.id)), value=e(stmt.value))
        case Pop():
            return replace(stmt, name=n(stmt.name), list=replace(stmt.list, id=n(stmt.list.id)))
        case Pull():
            function = replace(stmt.function, body=b(stmt.function.body))
            names = tuple(n(name) for name in stmt.names)
            return replace(stmt, names=names, function=function, args=tuple(e(a) for a in stmt.args), dy=e(stmt.dy))
        case Comment():
            return stmt
    raise AssertionError(stmt)


__all__ = ["Call", "Dim", "map_stmt", "rename_block", "rename_expr", "rename_stmt"]
