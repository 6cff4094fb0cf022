"""Lists with entries left over at the end.

The list of cotangents d_L mirrors L: where L was popped from, d_L is appended to, and the other way round. So where the
reverse sweep begins it has to be as long as L is at its end. Of a list that is emptied that is nothing; of any other
d_L begins with as many zeros as entries are left over. Where sizes do not tell how many, they are counted:

    seen.append(v)      ->      seen.append(v)
                                seen_length = seen_length + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.dims import ZERO, Dim, Facts, maximum
from ..transpile.program import (
    Assign,
    Call,
    Expr,
    For,
    Function,
    If,
    Name,
    Pop,
    Push,
    Return,
    Stmt,
    Type,
    While,
    assigned,
    walk_stmts,
)
from ..transpile.renaming import map_stmt
from ..transpile.values import Fresh


def with_lengths(function: Function, fresh: Fresh, facts: Facts) -> tuple[Function, dict[str, Expr]]:
    """The function, counting the entries of its lists where it must; by list that may have some left over, how many."""
    lengths: dict[str, Expr] = {}
    return replace(function, body=_counted(function.body, {}, lengths, fresh, facts)), lengths


def _counted(
    body: Sequence[Stmt], counters: dict[str, Name], lengths: dict[str, Expr], fresh: Fresh, facts: Facts
) -> tuple[Stmt, ...]:
    """counters: by list, the variable that counts its entries; those of outer blocks are given."""
    made = {s.name for s in body if isinstance(s, Assign) and _makes_list(s)}
    popped = {s.list.id for s in walk_stmts(tuple(body)) if isinstance(s, Pop)}
    growth = {n: _growth(body, n, facts) for n in made & popped}
    lengths |= {n: construct.dim(g) for n, g in growth.items() if g is not None and g != ZERO}
    counters = counters | {n: Name(fresh(f"{n}_length"), Type("int")) for n in sorted(growth) if growth[n] is None}
    out: list[Stmt] = []
    for stmt in body:
        out.append(map_stmt(stmt, lambda e: e, lambda b: _counted(b, counters, lengths, fresh, facts), lambda n: n))
        if isinstance(stmt, Assign) and stmt.name in growth.keys() & counters.keys():
            out.append(Assign(counters[stmt.name].id, const(0), stmt.span))
        if isinstance(stmt, (Push, Pop)) and stmt.list.id in counters:
            count = counters[stmt.list.id]
            more = construct.call("add" if isinstance(stmt, Push) else "subtract", count, const(1))
            out.append(Assign(count.id, more, stmt.span))
    ends = len(out) - (bool(out) and isinstance(out[-1], Return))
    for name in sorted(growth.keys() & counters.keys()):
        left = lengths[name] = Name(fresh(f"{name}_left"), Type("int"))
        out.insert(ends, Assign(left.id, counters[name]))
    return tuple(out)


def _makes_list(stmt: Assign) -> bool:
    return isinstance(stmt.value, Call) and stmt.value.op == "list"


def _growth(body: Sequence[Stmt], name: str, facts: Facts) -> Dim | None:
    """How many entries a list has more behind a block; None if sizes do not tell."""
    total = ZERO
    for stmt in body:
        growth = _growth_by(stmt, name, facts)
        if growth is None:
            return None
        total = total + growth
    return total


def _growth_by(stmt: Stmt, name: str, facts: Facts) -> Dim | None:
    match stmt:
        case Push(list=list):
            return Dim.of(int(list.id == name))
        case Pop(list=list):
            return Dim.of(-int(list.id == name))
        case If(then=then, orelse=orelse):
            growth = _growth(then, name, facts)
            return growth if growth == _growth(orelse, name, facts) else None
        case For(body=body) | While(body=body):
            growth = _growth(body, name, facts)
            if growth is None or growth == ZERO:
                return growth
            trips = construct.trips(stmt.start, stmt.stop, stmt.step) if isinstance(stmt, For) else None
            if trips is None or assigned((stmt,)) & growth.symbols():
                return None
            return growth * maximum(trips, ZERO, facts)
    return ZERO


__all__ = ["with_lengths"]
