"""The outputs that a gradient is given, where they stand: what the forward filled them with need not be made again.

def d_f(x, dy):                                     def d_f(x, y, dy):
    l = np.zeros_like(x)
    for i ...: for j ...: l[i, j] = ...      ->         for i ...: for j ...: ... dy[i, j] / y[j, j]
    for i ...: for j ...: ... dy[i, j] / l[j, j]
"""

from __future__ import annotations

from collections.abc import Sequence

from ..transpile.backwards import cotangents_of
from ..transpile.clean import clean, live_before
from ..transpile.program import (
    Assign,
    Call,
    Expr,
    Function,
    Index,
    Name,
    Return,
    Stmt,
    Store,
    assigned,
    read,
    stored,
    walk,
    walk_stmts,
)
from ..transpile.renaming import rename_block
from .activity import flows
from .rules import asks_which


def given_outputs(function: Function, returned: Stmt, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body of the gradient with outputs in the place of names that hold what they hold. `returned`: the return of
    the forward sweep."""
    assert isinstance(returned, Return)
    arguments = {p.name for p in function.params} - stored(function.body)
    cotangents = {c.name for _, c in cotangents_of(function)}
    for result, value in zip(function.results, returned.values, strict=True):
        if not (isinstance(value, Name) and result.role == "output" and value.type == result.type):
            continue
        head, rest = cut(body, cotangents)
        changed = assigned(tuple(rest)) | stored(tuple(rest))
        if value.id not in live_before(rest) - changed or _was_chosen(value.id, head, arguments):
            continue
        given = rename_block(rest, {value.id: "<given>"})
        found = clean([*head, *given])
        own = assigned(found) | {p.name for p in function.params}
        if value.id not in own and result.name not in own:
            body = rename_block(found, {"<given>": result.name})
    return tuple(body)


def cut(body: Sequence[Stmt], cotangents: set[str]) -> tuple[list[Stmt], list[Stmt]]:
    """The forward sweep, and what comes after it: from the first statement that depends on a cotangent, or takes a
    write back."""
    for position, stmt in enumerate(body):
        back = any(isinstance(s, Store) and s.undoes for s in walk_stmts((stmt,)))
        if back or read((stmt,)) & cotangents or isinstance(stmt, Return):
            return list(body[:position]), list(body[position:])
    raise AssertionError("a function without a return")


def _was_chosen(name: str, body: Sequence[Stmt], arguments: set[str]) -> bool:
    """Whether it holds the largest of what is computed again: the gradient asks which element that was, and rounding
    must not tell another story in the forward."""
    values = [
        s.value
        for s in walk_stmts(tuple(body))
        if (isinstance(s, Assign) and s.name == name) or (isinstance(s, Store) and s.base.id == name)
    ]
    calls = (e for value in values for e in walk(value) if isinstance(e, Call))
    return any(asks_which(e) and not is_part_of(e.args[0], arguments) for e in calls)


def is_part_of(expr: Expr, arguments: set[str]) -> bool:
    """Whether it is one of the arguments, or elements of one: no rounding lies between."""
    return isinstance(expr, (Name, Index)) and flows(expr) <= arguments
