"""What is known not to be negative is not cut off at zero.

    in dy: real[N - 2]                                    in dy: real[N - 2]
    for j in 0..max(0, N - 2): g[j] = ...          ->     for j in 0..N - 2: g[j] = ...
    for j in 0..N - 2: d[j] = g[j] * dy[j]                for j in 0..N - 2: d[j] = g[j] * dy[j]

A slice takes what there is, `x[1:-1]` of an array of one is empty, and so its extent is the larger of two numbers. An
array of an argument or a result has no negative extents, and what has been checked holds behind it. The two loops go
over one range then, and become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..dims import Atom, Dim, Facts, maximum, minimum, nonnegative
from ..ir import Check, Expr, For, Int, Kernel, Load, Stmt
from .depend import Memory
from .guards import margins
from .ranges import conjuncts
from .tree import Body, dim_loads, map_bodies, map_expr, map_own, touched

Known = frozenset[Dim]  # what is not negative


def natural(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, state.extents, state.facts)
    shaped = [replace(b, shape=state.shape(b.name, b.shape)) if b.kind == "temp" else b for b in kernel.buffers]
    return replace(kernel, body=body, buffers=tuple(shaped))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.facts = Memory.of(kernel).facts
        given = (d for b in kernel.buffers if b.kind in ("in", "out") for d in b.shape)
        self.extents: Known = frozenset(d for d in given if d.value is None and d.symbol is None)
        self.where: dict[str, Known] = {}  # buffer -> what is known wherever it is touched

    def body(self, body: Body, known: Known, facts: Facts) -> Body:
        done: list[Stmt] = []
        for stmt in body:
            done.append(self.stmt(stmt, known, facts))
            if isinstance(stmt, Check):
                asked = (m for part in conjuncts(stmt.cond) for m in margins(part))
                known |= {m for m in asked if m.value is None and not any(dim_loads(m))}
        return tuple(done)

    def stmt(self, stmt: Stmt, known: Known, facts: Facts) -> Stmt:
        inside = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)} if isinstance(stmt, For) else facts
        new = map_bodies(stmt, lambda body: self.body(body, known, inside))
        for name in touched((replace(stmt, body=()) if isinstance(stmt, For) else stmt,)):
            self.where[name] = self.where.get(name, known) & known
        return map_own(new, lambda d: _plain(d, known, facts), lambda e: _in(e, known, facts)) if known else new

    def shape(self, name: str, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        return tuple(_plain(d, self.where.get(name, frozenset()), self.facts) for d in shape)


def _in(expr: Expr, known: Known, facts: Facts) -> Expr:
    def of(e: Expr) -> Expr:
        if isinstance(e, Int):
            return Int(_plain(e.dim, known, facts))
        if isinstance(e, Load):
            return Load(e.buffer, tuple(_plain(d, known, facts) for d in e.index), e.dtype)
        return e

    return map_expr(expr, of)


def _plain(dim: Dim, known: Known, facts: Facts) -> Dim:
    """With the larger, or lesser, of two where it is known which that is."""
    if not any(isinstance(atom, Atom) for atom in dim.atoms()):
        return dim

    def of(atom: str | Atom) -> Dim:
        if not isinstance(atom, Atom) or atom.kind not in ("max", "min"):
            return Dim.of(atom)
        a, b = (_plain(arg, known, facts) for arg in atom.args)
        for more, less in ((a, b), (b, a)):
            if any(nonnegative(more - less - k, facts) for k in known):
                return more if atom.kind == "max" else less
        return maximum(a, b) if atom.kind == "max" else minimum(a, b)

    return dim.rebuilt(of)


__all__ = ["natural"]
