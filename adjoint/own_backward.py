"""Writes out the rule of a `with_backward`: the statements that a helper gives for its own reverse.

The names of the rule become those of the reverse sweep around it; a `Pull` in it becomes the reverse of the function
that it pulls through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..transpile.backwards import cotangents_of
from ..transpile.program import Assert, Assign, Expr, Function, Name, Pop, Pull, Return, Stmt, Type, walk_stmts
from ..transpile.renaming import map_stmt, rename_block
from .versions import name_types

Derive = Callable[[Function], Sequence[Stmt]]


def written_out(
    rule: Function, given: Sequence[Name], fresh: Callable[[str], str], types: dict[str, Type], derive: Derive
) -> tuple[list[Stmt], tuple[Expr, ...]]:
    """The statements of a rule over the given y, dy and arguments, and what they return: the gradients.

    `derive`: the body of the gradient of a function, ending in its return; `types`: takes those of the new names.
    """
    body = _expanded(rule.body, fresh, derive)
    names = dict(zip((p.name for p in rule.params), (g.id for g in given), strict=True))
    return _spliced(body, names, fresh, types)


def _spliced(
    body: Sequence[Stmt],
    names: Mapping[str, str],
    fresh: Callable[[str], str],
    types: dict[str, Type],
    wanted: Sequence[str] = (),
) -> tuple[list[Stmt], tuple[Expr, ...]]:
    """The body under names of its own, and what it returns; `wanted`: how that shall be called."""
    made = {s.name for s in walk_stmts(tuple(body)) if isinstance(s, (Assign, Pop))}
    returned = [v.id for v in body[-1].values if isinstance(v, Name)] if isinstance(body[-1], Return) else []
    called = {n: w for n, w in zip(returned, wanted, strict=False) if n in made and returned.count(n) == 1}
    *done, final = rename_block(body, {**names, **{n: called.get(n) or fresh(n) for n in sorted(made)}})
    assert isinstance(final, Return)
    types |= name_types(done, {})
    return done, final.values


def _expanded(body: Sequence[Stmt], fresh: Callable[[str], str], derive: Derive) -> tuple[Stmt, ...]:
    done: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Pull):
            done += _pulled(stmt, fresh, derive)
        elif isinstance(stmt, Assert):
            done.append(replace(stmt, lasting=True))  # no forward has made sure of it
        else:
            done.append(map_stmt(stmt, lambda e: e, lambda b: _expanded(b, fresh, derive), lambda n: n))
    return tuple(done)


def _pulled(stmt: Pull, fresh: Callable[[str], str], derive: Derive) -> list[Stmt]:
    ((_, cotangent),) = cotangents_of(stmt.function)
    given: list[Any] = [p.name for p in stmt.function.params]
    names = {p: a.id for p, a in zip(given, stmt.args, strict=True) if isinstance(a, Name)}
    assert len(names) == len(given)
    assert isinstance(stmt.dy, Name)
    names[cotangent.name] = stmt.dy.id
    done, values = _spliced(derive(stmt.function), names, fresh, {}, stmt.names)
    pairs = [(n, v) for n, v in zip(stmt.names, values, strict=True) if not isinstance(v, Name) or v.id != n]
    return [*done, *(Assign(n, v, stmt.span) for n, v in pairs)]
