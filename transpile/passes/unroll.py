"""Loops over a small window, of an extent known at build, are written out.

    for j: part = -inf                                   for j:
           for k in 0..2: part max= x[2*j + k]     ->        part = -inf; part max= x[2*j]; part max= x[2*j + 1]

What is left inside the loop over windows is a list of statements, and that loop may run along memory. A loop over an
axis of its own (`x[n, k]`, k in 0..3) stays: it runs along memory itself.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Comment, For, Kernel, Stmt, Store
from .tree import Body, accesses, map_bodies, substitute, walk

MOST_TRIPS = 4
MOST_STATEMENTS = 32  # of a window that is written out


def unroll(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_body(kernel.body, frozenset()))


def _body(body: Body, around: frozenset[str]) -> Body:
    return tuple(new for stmt in body for new in _stmt(stmt, around))


def _stmt(stmt: Stmt, around: frozenset[str]) -> Body:
    """`around`: the variables of the map loops outside."""
    if not isinstance(stmt, For):
        return (map_bodies(stmt, lambda inner: _body(inner, frozenset())),)
    body = _body(stmt.body, around | {stmt.var} if stmt.kind == "map" else frozenset())
    stmt = replace(stmt, body=body)
    if not _is_window(stmt, around):
        return (stmt,)
    trips = range((stmt.hi - stmt.lo).value or 0)
    return tuple(s for k in trips for s in substitute(body, {stmt.var: stmt.lo + k}))


def _is_window(loop: For, around: frozenset[str]) -> bool:
    """Whether it is short, and its variable is added to one of a loop outside."""
    trips = (loop.hi - loop.lo).value
    if loop.kind != "map" or trips is None or trips > MOST_TRIPS:
        return False
    inside = [s for s in walk(loop.body) if not isinstance(s, Comment)]
    if len(inside) * trips > MOST_STATEMENTS or not all(isinstance(s, Store) for s in inside):
        return False
    return any(
        loop.var in (names := dim.symbols()) and names & around for a in accesses(loop.body) for dim in a.index or ()
    )


__all__ = ["unroll"]
