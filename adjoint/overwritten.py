"""Values that nothing reads before their names are assigned anew: their derivative is zero, whatever they are.

v = np.log(x)                       d_v = 0, so d_x += d_v / x is 0 / 0 where x is 0
for i in range(n + 1):         ->   v = 0, of which nothing is differentiated
    v = x[i]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..transpile import construct
from ..transpile.construct import value_of
from ..transpile.dims import nonnegative
from ..transpile.program import Assign, Call, Const, Expr, For, Function, If, Pop, Stmt, While, names, stmt_exprs
from .activity import flows


def without_overwritten(function: Function) -> Function:
    """The function with zeros in the place of such values."""
    body, _ = _block(function.body, frozenset())
    return replace(function, body=body)


Live = frozenset[str]  # names that may be read before they are assigned


def _block(body: Sequence[Stmt], live: Live) -> tuple[tuple[Stmt, ...], Live]:
    """The statements, and what is live before them, from what is live after them."""
    found: list[Stmt] = []
    for stmt in reversed(body):
        read = frozenset().union(*map(names, stmt_exprs(stmt)))
        match stmt:
            case Assign(name=name, value=value):
                if name not in live and flows(value) and not _is_blank(value):
                    stmt, read = replace(stmt, value=_blank(value)), frozenset()
                live = live - {name} | read
            case Pop(name=name, list=list_):
                live = live - {name} | {list_.id}
            case If(then=then, orelse=orelse):
                then, first = _block(then, live)
                orelse, second = _block(orelse, live)
                stmt, live = replace(stmt, then=then, orelse=orelse), first | second | read
            case For() | While():
                after, again = live, frozenset[str]()
                while not (before := _block(stmt.body, after | again | read)[1]) <= again:
                    again |= before
                stmt = replace(stmt, body=_block(stmt.body, after | again | read)[0])
                live = (again if _runs(stmt) else after | again) | read
            case _:
                live = live | read
        found.append(stmt)
    return tuple(reversed(found)), live


def _runs(loop: For | While) -> bool:
    """Whether there is a first iteration."""
    if isinstance(loop, While):
        return False
    start, stop = value_of(loop.start), value_of(loop.stop)
    if start is None or stop is None:
        return False
    return nonnegative(stop - start - 1 if loop.step > 0 else start - stop - 1)


def _blank(value: Expr) -> Expr:
    return construct.zeros(value.type)


def _is_blank(value: Expr) -> bool:
    return isinstance(value, Const) or (isinstance(value, Call) and value.op in ("zeros", "empty"))


__all__ = ["without_overwritten"]
