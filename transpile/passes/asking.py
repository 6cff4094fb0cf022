"""Branches and checks as lanes like them, which ask together what is the same for all.

    if (s >= 2) & (ext[s] != 0): ...            if s >= 2: { if ext[s] != 0: ... else: ... } else: ...
    check ext[s] < K                    ->      asked = ext[s]; check asked < K

Behind the first branch a place like ext[s - 2] is there for every lane; a number that is read for a message is one that
each lane can have for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..ir import Buffer, Check, Expr, If, Kernel, Load, Op, Stmt, Store
from .ranges import conjuncts
from .tree import Body, Names, dim_loads, loads, map_all, map_bodies, symbols

FEW = 2  # statements that may stand in two places


def asking(kernel: Kernel) -> Kernel:
    """Of the examples of a kernel."""
    if kernel.batch is None:
        return kernel
    names, made = Names.of(kernel), list[Buffer]()

    def number() -> str:
        made.append(Buffer(names.fresh("asked"), "i64", (), "temp"))
        return made[-1].name

    body = _body(kernel.body, number)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *made))


def _body(body: Body, number: Callable[[], str]) -> Body:
    return tuple(s for stmt in body for s in _stmt(stmt, number))


def _stmt(stmt: Stmt, number: Callable[[], str]) -> Body:
    stmt = map_bodies(stmt, lambda inner: _body(inner, number))
    match stmt:
        case Check(_, _, info):
            return _with_numbers(stmt, [e for d in info for e in dim_loads(d) if e.index], number)
        case If(cond, then, orelse) if len(orelse) <= FEW:
            parts = conjuncts(cond)
            same = [p for p in parts if not any(loads(p)) and symbols(p)]
            own = [p for p in parts if p not in same]
            if same and own:
                return (If(_all(same), (If(_all(own), then, orelse),), orelse),)
    return (stmt,)


def _with_numbers(check: Check, read: list[Load], number: Callable[[], str]) -> Body:
    names = {e: Load(number(), (), "i64") for e in dict.fromkeys(read) if not any(any(dim_loads(d)) for d in e.index)}
    stores = (Store(name.buffer, (), e) for e, name in names.items())
    return (*stores, *map_all((check,), lambda e: names.get(e, e) if isinstance(e, Load) else e))


def _all(parts: list[Expr]) -> Expr:
    found = parts[0]
    for part in parts[1:]:
        found = Op("logical_and", (found, part), "bool")
    return found


__all__ = ["asking"]
