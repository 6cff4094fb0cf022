"""What blocks of statements rebind and write to, as the reverse of loops and branches asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..transpile import construct
from ..transpile.program import (
    Assign,
    For,
    Function,
    If,
    Pop,
    Push,
    Stmt,
    Store,
    While,
    assigned,
    read,
    walk_stmts,
)


def rebound(body: Sequence[Stmt]) -> set[str]:
    """Names that get another value in a block."""
    return {s.name for s in walk_stmts(tuple(body)) if isinstance(s, (Assign, Pop))}


def taken(function: Function) -> set[str]:
    """Names that mean something in a function."""
    found = {p.name for p in function.params} | {r.name for r in function.results}
    found |= {s for p in function.params for d in p.type.shape for s in d.symbols()}
    return found | read(function.body) | assigned(function.body)


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


def branch(stmt: If, then: Sequence[Stmt], orelse: Sequence[Stmt]) -> tuple[If, ...]:
    """The branch with other ways: none where both are empty, and the other way round where the first one is."""
    if not then and not orelse:
        return ()
    cond = stmt.cond if then else construct.call("logical_not", stmt.cond)
    return (replace(stmt, cond=cond, then=tuple(then or orelse), orelse=tuple(orelse) if then else ()),)


__all__ = ["branch", "rebound", "taken", "without_stores"]
