"""An array that is filled, and then stored into as a whole before anything reads it, need not be filled.

    y[i] = 0; for t seq: h = ...; y[t] = h    ->    for t seq: h = ...; y[t] = h

np.empty is zeros here, so that nothing ever depends on what was in memory; mostly there is nothing to fill. What has to
be filled, and is added to, is filled behind checks that come before: nothing else goes past a check, and so the loop
that adds to it could not be one with that which fills it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from ..dims import Dim
from ..ir import Buffer, Check, For, Kernel, Stmt
from .contract import over, stored_first
from .order import filled
from .tree import Access, Body, accesses, buffers, dim_loads, has, map_bodies, roots, touched


def fills(kernel: Kernel) -> Kernel:
    table, root = buffers(kernel), roots(kernel)

    def needed(stmt: Stmt, after: Body) -> bool:
        if (nest := filled(stmt)) is None:
            return True
        variables, name = {loop.var for loop in nest[0]}, nest[1].buffer
        still = {axis: dim for axis, dim in enumerate(nest[1].index) if not dim.symbols() & variables}
        for later in after:
            touching = [a for a in accesses((later,)) if root[a.buffer] == root[name]]
            if touching:
                return not stores_all(later, touching, table[name], still)
        return True

    def cleared(body: Body) -> Body:
        kept = tuple(stmt for k, stmt in enumerate(body) if needed(stmt, body[k + 1 :]))
        return tuple(map_bodies(stmt, cleared) for stmt in _behind_checks(kept, root))

    return replace(kernel, body=cleared(kernel.body))


def _behind_checks(body: Body, root: Mapping[str, str]) -> Body:
    for k in range(len(body) - 1, -1, -1):
        if (nest := filled(body[k])) is None or any(any(dim_loads(d)) for loop in nest[0] for d in (loop.lo, loop.hi)):
            continue
        name = root[nest[1].buffer]
        idle = tuple(takewhile(partial(_leaves, name, root), body[k + 1 :]))
        then = body[k + 1 + len(idle) :]
        if has(idle, Check) and any(root[a.buffer] == name and a.mode != "w" for a in accesses(then[:1])):
            body = (*body[:k], *idle, body[k], *then)
    return body


def _leaves(name: str, root: Mapping[str, str], stmt: Stmt) -> bool:
    return name not in {root[n] for n in touched((stmt,))}


def stores_all(stmt: Stmt, touching: Sequence[Access], buffer: Buffer, still: Mapping[int, Dim]) -> bool:
    """Whether a statement, which touches a buffer there, stores into all of it before it reads any: at these places
    along the axes that stand still. Where each iteration of a loop has a slice of its own, it is asked of the slice."""
    if len(touching) > 1:
        return isinstance(stmt, For) and any(
            axis not in still and stores_slice(stmt, buffer, {**still, axis: own})
            for axis, own in _slices(stmt, touching, buffer)
        )
    alike = len(touching) == 1 and touching[0].buffer == buffer.name and _stores(touching[0], still)
    return alike and stored_first((stmt,), buffer, set(still))


def stores_slice(loop: For, buffer: Buffer, still: Mapping[int, Dim]) -> bool:
    """The same of what an iteration does first with its slice."""
    first = next(s for s in loop.body if buffer.name in touched((s,)))
    return stores_all(first, [a for a in accesses((first,)) if a.buffer == buffer.name], buffer, still)


def _slices(loop: For, touching: Sequence[Access], buffer: Buffer) -> Iterator[tuple[int, Dim]]:
    """An axis along which each iteration has a place of its own, and all of them have all, and that place."""
    if any(a.buffer != buffer.name or a.index is None for a in touching):
        return
    for axis, extent in enumerate(buffer.shape):
        own = {a.index[axis] for a in touching if a.index is not None}
        if len(own) == 1 and over(place := own.pop(), extent, {loop.var: (loop.lo, loop.hi)}) == loop.var:
            yield axis, place


def _stores(access: Access, still: Mapping[int, Dim]) -> bool:
    """Whether it is a store at these places along some axes, and every loop around it is along another: one that is
    along none may run no times, and then nothing is stored."""
    if access.mode != "w" or access.index is None or any(access.index[axis] != dim for axis, dim in still.items()):
        return False
    return all(any(loop.var in d.symbols() for d in access.index) for loop in access.loops)


__all__ = ["fills", "stores_all", "stores_slice"]
