"""What blocks of statements rebind and write to, as the reverse of loops and branches asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..transpile.program import (
    Assign,
    For,
    If,
    Pop,
    Push,
    Stmt,
    Store,
    While,
    walk_stmts,
)


def rebound(body: Sequence[Stmt]) -> set[str]:
    """Names that get another value in a block."""
    return {s.name for s in walk_stmts(tuple(body)) if isinstance(s, (Assign, Pop))}


def without_stores(body: Sequence[Stmt], own: set[str]) -> list[Stmt]:
    """Writes into arrays and lists of outer blocks are not repeated by the reverse: their final content is there."""
    kept: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Store(base=target) | Push(list=target) if target.id not in own:
                continue
            case For() | While():
                stmt = replace(stmt, body=tuple(without_stores(stmt.body, own)))
            case If():
                stmt = replace(
                    stmt, then=tuple(without_stores(stmt.then, own)), orelse=tuple(without_stores(stmt.orelse, own))
                )
        kept.append(stmt)
    return kept


__all__ = ["rebound", "without_stores"]
