"""Loops over a small window, of an extent known at build, are written out.

    for j: part = -inf                                   for j:
           for k in 0..2: part max= x[2*j + k]     ->        part = -inf; part max= x[2*j]; part max= x[2*j + 1]

What is left inside the loop over windows is a list of statements, and that loop may run along memory. A loop over an
axis of its own (`x[n, k]`, k in 0..3) stays, as it runs along memory itself, but where it adds up rows too short for a
vector, or stands between numbers that a row has for itself: then rows lie side by side in one.

So are the loops of a scalar recurrence that are all as short (a filter whose state is two numbers and a matrix of two
by two), and of what stands before and behind it (`steps`): examples that walk through it together have a vector for
each number then, in registers, and a step is one loop over them.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import ZERO
from ..ir import Comment, For, If, Kernel, Product, Stmt, Store
from .alike import is_recurrence
from .elements import elements
from .guards import guards
from .tree import Body, accesses, has, map_bodies, substitute, walk

MOST_TRIPS = 4
MOST_STATEMENTS = 32  # of a window that is written out
MOST_OF_A_STEP = 256  # ... and of all that is done with an example


def unroll(kernel: Kernel) -> Kernel:
    body = _body(kernel.body, frozenset())
    return kernel if body == kernel.body else guards(replace(kernel, body=body), (ZERO,))


def steps(kernel: Kernel) -> Kernel:
    body = tuple(_with_steps(s) for s in kernel.body)
    return kernel if body == kernel.body else elements(guards(replace(kernel, body=body), (ZERO,)))


def _with_steps(stmt: Stmt) -> Stmt:
    """A loop over what has a recurrence for each, with that written out, if that can be."""
    if not isinstance(stmt, For) or stmt.kind != "map" or not any(is_recurrence(s) for s in stmt.body):
        return stmt
    loops = [s for s in walk(stmt.body) if isinstance(s, For) and s.kind == "map"]
    written = _all_written(stmt.body) if loops and all(_trips(x) <= MOST_TRIPS for x in loops) else ()
    few = sum(not isinstance(s, Comment) for s in walk(written)) <= MOST_OF_A_STEP
    return replace(stmt, body=written) if written and few and not has(stmt.body, Product) else stmt


def _all_written(body: Body) -> Body:
    """Without map loops."""
    done: list[Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, _all_written)
        done += _written_out(stmt) if isinstance(stmt, For) and stmt.kind == "map" else (stmt,)
    return tuple(done)


def _body(body: Body, around: frozenset[str]) -> Body:
    return tuple(new for stmt in body for new in _stmt(stmt, around))


def _stmt(stmt: Stmt, around: frozenset[str]) -> Body:
    """`around`: the variables of the map loops outside."""
    if not isinstance(stmt, For):
        return (map_bodies(stmt, lambda inner: _body(inner, frozenset())),)
    body = _body(stmt.body, around | {stmt.var} if stmt.kind == "map" else frozenset())
    stmt = replace(stmt, body=body)
    if stmt.kind == "map" and _is_of_short_rows(body):
        return (replace(stmt, body=tuple(s for inner in body for s in _written_out(inner))),)
    return _written_out(stmt) if _is_window(stmt, around) else (stmt,)


def _written_out(stmt: Stmt) -> Body:
    if not isinstance(stmt, For):
        return (stmt,)
    return tuple(s for k in range(_trips(stmt)) for s in substitute(stmt.body, {stmt.var: stmt.lo + k}))


def _is_short(loop: For) -> bool:
    inside = [s for s in walk(loop.body) if not isinstance(s, Comment)]
    if loop.kind != "map" or _trips(loop) > MOST_TRIPS or len(inside) * _trips(loop) > MOST_STATEMENTS:
        return False
    return all(isinstance(s, (Store, If)) for s in inside)


def _is_window(loop: For, around: frozenset[str]) -> bool:
    """Whether it is short, and its variable is added to one of a loop outside."""
    return _is_short(loop) and any(
        loop.var in (names := dim.symbols()) and names & around for a in accesses(loop.body) for dim in a.index or ()
    )


def _is_of_short_rows(body: Body) -> bool:
    """Whether there is nothing but short loops, and some add up, or are shorter than half a vector and go by numbers of
    the row: a row has no vector's worth, rows beside it have.
    (Four numbers are added in half a vector; the largest of four, which asks for NaN, is not found there.)"""
    loops = [s for s in body if isinstance(s, For)]
    if not all(_is_short(s) if isinstance(s, For) else isinstance(s, (Store, Comment)) for s in body):
        return False
    if sum(len(x.body) * _trips(x) for x in loops) > MOST_STATEMENTS:
        return False
    sums = [(x, s) for x in loops for s in x.body if isinstance(s, Store) and s.op]
    alone = [(x, s) for x, s in sums if all(x.var not in d.symbols() for d in s.index)]
    if any(_trips(x) < MOST_TRIPS or s.op in ("max", "min") for x, s in alone):
        return True
    return any(isinstance(s, Store) for s in body) and any(1 < _trips(x) < MOST_TRIPS for x in loops)


def _trips(loop: For) -> int:
    """How often it runs; a number that the build does not know counts as too many."""
    trips = (loop.hi - loop.lo).value
    return MOST_TRIPS + 1 if trips is None else max(trips, 0)


__all__ = ["steps", "unroll"]
