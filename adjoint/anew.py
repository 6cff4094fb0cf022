"""An array that is stored as a whole is another array from there on: nothing of what it was has to come back.

    p = np.exp(s)                          p = np.exp(s)
    p /= np.sum(p, axis=-1)         ->     p_2 = p / np.sum(p, axis=-1)
    return p @ v                           return p_2 @ v

So what one writes to save memory has the gradient of what one writes without that thought. Not where something shows
the array by another name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from ..transpile import construct
from ..transpile.aliasing import root_shown
from ..transpile.program import (
    Assign,
    Expr,
    Function,
    Index,
    Push,
    Stmt,
    Store,
    blocks,
    map_children,
    names,
    stmt_exprs,
    walk_stmts,
)
from ..transpile.renaming import map_stmt, rename_stmt
from .stores import is_whole


def with_anew(function: Function, arrays: Set[str], fresh: Callable[[str], str]) -> Function:
    """The function with these arrays made anew where they are stored as a whole. The very function where none is."""
    for array in sorted(arrays - {p.name for p in function.params}):
        if not any(_shows(stmt, array) for stmt in walk_stmts(function.body)):
            body = _Anew(array, fresh, _uses(function.body, array)).block(function.body)
            function = function if body == function.body else replace(function, body=body)
    return function


class _Anew:
    def __init__(self, array: str, fresh: Callable[[str], str], uses: int) -> None:
        self.array, self.fresh = array, fresh
        self.uses = uses  # statements of the function that are about the array

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        first = next((k for k, s in enumerate(body) if isinstance(s, Assign) and s.name == self.array), None)
        if first is None or _uses(body[first:], self.array) < self.uses:
            return tuple(map_stmt(s, lambda e: e, self.block, lambda n: n) if blocks(s) else s for s in body)
        done, called = [*body[: first + 1]], self.array
        for stmt in body[first + 1 :]:
            stmt = rename_stmt(stmt, {self.array: called})
            if isinstance(stmt, Store) and (value := self.whole(stmt, called)) is not None:
                called = self.fresh(self.array)
                stmt = Assign(called, value, stmt.span)
            done.append(stmt)
        return tuple(done)

    def whole(self, store: Store, called: str) -> Expr | None:
        """What the array is after a store that leaves nothing of what it was."""
        if store.base.id != called or store.scatter or not is_whole(store.items):
            return None
        value = _plain(store.value)
        if store.op:
            value = construct.call(store.op, store.base, value)
        return value if value.type == store.base.type else None


def _plain(expr: Expr) -> Expr:
    """With p for p[:]."""
    expr = map_children(expr, _plain)
    return expr.base if isinstance(expr, Index) and is_whole(expr.items) else expr


def _uses(body: Sequence[Stmt], array: str) -> int:
    return sum(_is_about(stmt, array) for stmt in walk_stmts(tuple(body)))


def _is_about(stmt: Stmt, array: str) -> bool:
    own = {stmt.name} if isinstance(stmt, Assign) else {stmt.base.id} if isinstance(stmt, Store) else set[str]()
    return array in own.union(*map(names, stmt_exprs(stmt)))


def _shows(stmt: Stmt, array: str) -> bool:
    """Whether the array has another name from here on, or is another one's part."""
    if isinstance(stmt, Assign) and stmt.name == array:
        return root_shown(stmt.value) is not None
    return isinstance(stmt, (Assign, Push)) and root_shown(stmt.value) == array


__all__ = ["with_anew"]
