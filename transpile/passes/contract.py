"""Shrinks temporaries to what is alive at once, and drops what nobody reads.

    for i:                                  for i:
        for j: t[i,j] = f(x[i,j])     ->        for j:
               y[i,j] = t[i,j] * t[i,j]             t = f(x[i,j])
                                                    y[i,j] = t * t

An axis goes if all accesses index it alike and inside the loops it names: then only one slice is alive in
an iteration. A value may not be meant to survive until a later iteration, so inside a sequential loop that
the axis does not name, the first thing done to the slice must be to store all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..dims import ONE, ZERO, Atom, Dim
from ..ir import Buffer, Comment, Expr, For, Kernel, Load, Product, Stmt, Store, While
from .tidy import drop_idle
from .tree import (
    Access,
    Body,
    accesses,
    loads,
    map_bodies,
    map_dim,
    map_expr,
    map_own,
    map_stmts,
    own_accesses,
    roots,
    walk,
)


def contract(kernel: Kernel) -> Kernel:
    kernel = drop_dead(replace(kernel, body=_overwritten(kernel.body, roots(kernel))))
    aliased = {b.alias for b in kernel.buffers} | {b.name for b in kernel.buffers if b.alias}
    places = _places(kernel)
    for buffer in kernel.buffers:
        if buffer.kind == "temp" and buffer.name not in aliased and buffer.shape:
            smaller = _contract_one(kernel, buffer, places.get(buffer.name, []))
            if smaller is not kernel:
                kernel, places = smaller, _places(smaller)
    return kernel


def _places(kernel: Kernel) -> dict[str, list[Access]]:
    found: dict[str, list[Access]] = {}
    for access in accesses(kernel.body):
        found.setdefault(access.buffer, []).append(access)
    return found


# -- dead stores ---------------------------------------------------------------------------------------------
def drop_dead(kernel: Kernel) -> Kernel:
    """Without stores to temporaries that are never loaded, and without temporaries that are never used."""
    root = roots(kernel)
    temps = {b.name for b in kernel.buffers if b.kind in ("temp", "list")}
    while True:
        read = {root[n] for s in walk(kernel.body) for n, _, mode in own_accesses(s) if mode == "r"}
        dead = {n for n in temps if root[n] not in read and root[n] in temps}
        body = _without(kernel.body, dead)
        if body == kernel.body:
            break
        kernel = replace(kernel, body=drop_idle(body))
    used = {n for s in walk(kernel.body) for n, _, _ in own_accesses(s)}
    used |= {root[n] for n in used}
    return replace(kernel, buffers=tuple(b for b in kernel.buffers if b.name not in temps or b.name in used))


def _without(body: Body, dead: set[str]) -> Body:
    return map_stmts(body, lambda s: () if getattr(s, "buffer", None) in dead else (s,))


def _overwritten(body: Body, root: dict[str, str]) -> Body:
    """y[i] = 0; y[i] = f(x[i])    ->    y[i] = f(x[i])"""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        stmt = map_bodies(stmt, lambda inner: _overwritten(inner, root))
        if isinstance(stmt, Store) and stmt.op is None and _stored_again(stmt, reversed(kept), root):
            continue
        kept.append(stmt)
    return tuple(reversed(kept))


def _stored_again(store: Store, after: Iterable[Stmt], root: dict[str, str]) -> bool:
    for stmt in after:
        touching = [a for a in accesses((stmt,)) if root[a.buffer] == root[store.buffer]]
        if touching:
            again = isinstance(stmt, Store) and (stmt.buffer, stmt.index, stmt.op) == (
                store.buffer,
                store.index,
                None,
            )
            return again and len(touching) == 1
        if not isinstance(stmt, (Store, Comment)):
            return False
    return False


# -- axes ----------------------------------------------------------------------------------------------------
def _contract_one(kernel: Kernel, buffer: Buffer, found: list[Access]) -> Kernel:
    """`found`: the accesses of the buffer."""
    if not found or any(a.index is None for a in found):
        return kernel
    common = _common_loops(found)
    variables = {loop.var for loop in common}
    dropped = [axis for axis in range(len(buffer.shape)) if _alike(found, axis, variables)]
    dropped = [axis for axis in dropped if _private(kernel.body, buffer, found[0].index or (), axis, dropped, common)]
    if not dropped:
        return kernel

    def keep(index: tuple) -> tuple:
        return tuple(d for axis, d in enumerate(index) if axis not in dropped)

    def change(expr: Expr) -> Expr:
        return (
            Load(expr.buffer, keep(expr.index), expr.dtype)
            if isinstance(expr, Load) and expr.buffer == buffer.name
            else expr
        )

    def store(stmt: Stmt) -> Body:
        if all(name != buffer.name for name, _, _ in own_accesses(stmt)):
            return (stmt,)
        stmt = map_own(stmt, lambda d: map_dim(d, change), lambda e: map_expr(e, change))
        if isinstance(stmt, (Store, Product)) and stmt.buffer == buffer.name:
            stmt = replace(stmt, index=keep(stmt.index))
        return (stmt,)

    table = tuple(replace(b, shape=keep(b.shape)) if b.name == buffer.name else b for b in kernel.buffers)
    return replace(kernel, buffers=table, body=map_stmts(kernel.body, store))


def _common_loops(found: list[Access]) -> list[For]:
    common = []
    for level in zip(*(a.loops for a in found)):
        if any(loop.var != level[0].var for loop in level):
            break
        common.append(level[0])
    return common


def _alike(found: list[Access], axis: int, variables: set[str]) -> bool:
    first = (found[0].index or ())[axis]
    if any((a.index or ())[axis] != first for a in found):
        return False
    inner = {loop.var for a in found for loop in a.loops} - variables
    return not first.symbols() & inner and not any(not isinstance(s, str) and s.kind == "load" for s in first.atoms())


def _private(
    body: Body, buffer: Buffer, index: tuple[Dim, ...], axis: int, dropped: list[int], common: list[For]
) -> bool:
    """No value of the slice is carried from one iteration of the loops around to another."""
    named = index[axis].symbols()
    if not _inside_while(body, buffer.name) and all(loop.kind == "map" or loop.var in named for loop in common):
        return True
    innermost = (
        body if not common else next(s.body for s in walk(body) if isinstance(s, For) and s.var == common[-1].var)
    )
    return stored_first(innermost, buffer, set(dropped))


def _inside_while(body: Body, name: str) -> bool:
    return any(isinstance(s, While) and any(a.buffer == name for a in accesses((s,))) for s in walk(body))


def stored_first(body: Body, buffer: Buffer, dropped: set[int]) -> bool:
    """The first statement that touches the buffer is a nest that stores all of the axes that stay."""
    for stmt in body:
        if not any(a.buffer == buffer.name for a in accesses((stmt,))):
            continue
        ranges: dict[str, tuple[Dim, Dim]] = {}
        while isinstance(stmt, For):
            ranges[stmt.var] = (stmt.lo, stmt.hi)
            inner = [
                s
                for s in stmt.body
                if not isinstance(s, Comment) and any(a.buffer == buffer.name for a in accesses((s,)))
            ]
            if not inner:
                return False
            stmt = inner[0]
        if not isinstance(stmt, (Store, Product)) or stmt.buffer != buffer.name or stmt.op is not None:
            return False
        if isinstance(stmt, Product):
            ranges |= {name: (Dim.of(0), extent) for name, extent in stmt.axes}
        elif any(load.buffer == buffer.name for load in loads(stmt.value)):
            return False
        axes = [(d, n) for axis, (d, n) in enumerate(zip(stmt.index, buffer.shape)) if axis not in dropped]
        kept = [over(d, n, ranges) for d, n in axes if not (n == ONE and d == ZERO)]
        return all(kept) and len(set(kept)) == len(kept)
    return False


def over(index: Dim, extent: Dim, ranges: Mapping[str, tuple[Dim, Dim]]) -> str | None:
    """The loop variable with which an index takes all values from 0 to the extent once, upwards or downwards. An axis
    that cannot have fewer than no elements has as many as the loop."""
    for name in sorted(index.symbols() & ranges.keys()):
        (lo, hi), v = ranges[name], Dim.of(name)
        upwards = (index - v + lo, index - v + hi)
        downwards = (index + v - hi + 1, index + v - lo + 1)
        if (ZERO, extent) in (upwards, downwards):
            return name
    if isinstance(atom := extent.symbol, Atom) and atom.kind == "max" and ZERO in atom.args:
        return next((over(index, a, ranges) for a in atom.args if isinstance(a, Dim) and a != ZERO), None)
    return None
