"""An array that is filled, and then stored into as a whole before anything reads it, need not be filled.

    y[i] = 0; for t seq: h = ...; y[t] = h    ->    for t seq: h = ...; y[t] = h

np.empty is zeros here, so that nothing ever depends on what was in memory; mostly there is nothing to fill.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim
from ..ir import Comment, Const, For, Kernel, Stmt, Store
from .contract import stored_first
from .order import perfect
from .tree import Access, Body, accesses, buffers, map_bodies, roots


def fills(kernel: Kernel) -> Kernel:
    table, root = buffers(kernel), roots(kernel)

    def needed(stmt: Stmt, after: Body) -> bool:
        filled = _filled(stmt)
        if filled is None:
            return True
        name, still = filled
        for later in after:
            touching = [a for a in accesses((later,)) if root[a.buffer] == root[name]]
            if touching:
                same = all(
                    a.buffer == name
                    and a.mode == "w"
                    and a.index is not None
                    and all(a.index[axis] == dim for axis, dim in still.items())
                    for a in touching
                )
                once = len(touching) == 1 and _runs_where_it_stores(touching[0])
                return not (same and once and stored_first((later,), table[name], set(still)))
        return True

    def cleared(body: Body) -> Body:
        kept = tuple(stmt for k, stmt in enumerate(body) if needed(stmt, body[k + 1 :]))
        return tuple(map_bodies(stmt, cleared) for stmt in kept)

    return replace(kernel, body=cleared(kernel.body))


def _runs_where_it_stores(access: Access) -> bool:
    """Whether every loop around it is along an axis: one that is not may run no times, and nothing is stored."""
    return all(any(loop.var in d.symbols() for d in access.index or ()) for loop in access.loops)


def _filled(stmt: Stmt) -> tuple[str, dict[int, Dim]] | None:
    """The buffer, if a nest does nothing but to store a constant; and the axes along which the nest stands still."""
    loops, body = perfect(stmt) if isinstance(stmt, For) else ([], (stmt,))
    variables = {loop.var for loop in loops}
    match [s for s in body if not isinstance(s, Comment)]:
        case [Store(buffer, index, Const(), None)]:
            return buffer, {axis: dim for axis, dim in enumerate(index) if not dim.symbols() & variables}
    return None


__all__ = ["fills"]
