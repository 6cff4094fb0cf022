"""Writes that are taken back, and cotangents that are cleared, though nothing reads their places again: they stay.

    for j in reversed(range(n)):                      for j in reversed(range(n)):
        v = y[j]                                          v = y[j]
        y[j] = y_saved[j]                     ->          d_x[j] += d_y[j] * v
        d_x[j] += d_y[j] * v
        d_y[j] = 0

What had been left for it, in `y_saved`, need not be left either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..transpile.construct import const
from ..transpile.program import Stmt, Store, walk_stmts
from ..transpile.renaming import map_stmt
from .finality import never_read_again


def without_unread(body: Sequence[Stmt]) -> list[Stmt]:
    body = list(body)
    for array in sorted({s.base.id for s in walk_stmts(tuple(body)) if isinstance(s, Store) and _may_go(s)}):
        body = _without(body, array, iter(never_read_again(array, body)))
    return body


def _without(body: Sequence[Stmt], array: str, unread: Iterator[bool]) -> list[Stmt]:
    left: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store) and stmt.base.id == array and next(unread) and _may_go(stmt):
            continue
        left.append(map_stmt(stmt, lambda e: e, lambda b: tuple(_without(b, array, unread)), lambda n: n))
    return left


def _may_go(stmt: Store) -> bool:
    return stmt.undoes or (stmt.op is None and stmt.value == const(0))


__all__ = ["without_unread"]
