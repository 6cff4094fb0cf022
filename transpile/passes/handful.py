"""A handful of turns over numbers, inside of a loop over elements, is written out.

    for i:                                                     for i:
        v = p[4]                                                   v = p[4]
        for k in 0..2 seq: saved[k] = v; v = v*x[i] + p[3 - k]     saved[0] = v; v = v*x[i] + p[3]
        y[i] = v                                           ->      saved[1] = v; v = v*x[i] + p[2]
                                                                   y[i] = v

What a polynomial or a few steps of an iteration carry is then no recurrence, that examples would have to walk through
together: it is arithmetic, and the loop over elements has vectors. What it saves for its gradient are variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims import Dim
from ..ir import Comment, For, Kernel, Op, Stmt, Store
from ..operations import flops
from .depend import neighbours
from .elements import elements
from .fold import fold_body
from .inline import CHEAP_FLOPS
from .tree import Body, accesses, bodies, map_bodies, own_exprs, parts, roots, substitute, walk

MOST_TURNS = 8
MOST_STATEMENTS = 96  # of all that is done with an element


def handful(kernel: Kernel) -> Kernel:
    root = roots(kernel)
    body = tuple(_of_elements(s, root) for s in kernel.body)
    return kernel if body == kernel.body else elements(replace(kernel, body=fold_body(body)))


def _of_elements(stmt: Stmt, root: Mapping[str, str]) -> Stmt:
    """A loop over elements with nothing in it but stores and loops of few turns, without those; not where what one
    element stores its neighbours ask for: that would have no vectors."""
    if isinstance(stmt, For) and stmt.kind == "map" and _trips(stmt) is None:
        inside = list(walk(stmt.body))
        loops = [s for s in inside if isinstance(s, For)]
        if any(x.kind == "seq" for x in loops) and all(isinstance(s, (Store, For, Comment)) for s in inside):
            few = all(_trips(x) in range(MOST_TURNS + 1) for x in loops)
            alone = not any(_is_dear(x) or _is_window(x, stmt) for x in loops)
            if few and alone and sum(map(_stores, stmt.body)) <= MOST_STATEMENTS:
                body = _written_out(stmt.body)
                return stmt if neighbours(body, stmt.var, root) else replace(stmt, body=body)
    return map_bodies(stmt, lambda body: tuple(_of_elements(s, root) for s in body))


def _is_window(loop: For, element: For) -> bool:
    """Whether its turns go over places beside the element's: rows of elements do that one turn after the other."""
    return any({loop.var, element.var} <= d.symbols() for a in accesses(loop.body) for d in a.index or ())


def _is_dear(loop: For) -> bool:
    """Whether there is more in it than arithmetic: that many exponentials are better one after the other."""
    ops = (p for s in walk(loop.body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op))
    return any(flops(p.op) > CHEAP_FLOPS for p in ops)


def _written_out(body: Body) -> Body:
    done: list[Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, _written_out)
        if isinstance(stmt, For):
            for k in range(_trips(stmt) or 0):
                done += substitute(stmt.body, {stmt.var: stmt.lo + Dim.of(k)})
        else:
            done.append(stmt)
    return tuple(done)


def _stores(stmt: Stmt) -> int:
    inside = sum(_stores(s) for body in bodies(stmt) for s in body)
    return isinstance(stmt, Store) + inside * ((_trips(stmt) or 0) if isinstance(stmt, For) else 1)


def _trips(loop: For) -> int | None:
    trips = (loop.hi - loop.lo).value
    return None if trips is None else max(trips, 0)


__all__ = ["handful"]
