"""A loop that scatters into rows is split by columns: whatever rows are named, no two chunks touch one place.

    for b: for i: for j in 0..D: table[at[i], j] += v
    ->  for chunk parallel: for b: for i: for j in the chunk's share of 0..D: table[at[i], j] += v

Each chunk walks through all iterations, so that every place is added to in the order of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from ..dims import Dim, maximum, minimum
from ..ir import Comment, For, Product, Stmt, Store
from .tree import Access, Body, accesses, dim_loads, has, map_bodies

MOST = 4  # chunks: each walks through the places again
LEAST = 32  # columns of a chunk: whole cache lines


def columns(loop: For, shared: Collection[str], is_private: Callable[[str], bool], q: str) -> tuple[Dim, Body] | None:
    """How many chunks, and the body of chunk `q`; None where the loop writes anything else, or no columns."""
    if has(loop.body, Product):
        return None  # it is cut at run time
    widths = set()
    for access in accesses(loop.body):
        if not access.writes or is_private(access.buffer):
            continue
        inner = _columns_of(access) if access.buffer in shared else None
        if inner is None:
            return None
        if not all(isinstance(s, Comment) or (isinstance(s, Store) and s.buffer in shared) for s in inner.body):
            return None  # what else it fills would be filled in part
        widths.add((inner.lo, inner.hi))
    if len(widths) != 1:
        return None
    ((lo, width),) = widths
    if lo != Dim.of(0) or (width.value is not None and width.value < 2 * LEAST):
        return None
    count = maximum(Dim.of(1), minimum(Dim.of(MOST), width // LEAST))
    share = (width * Dim.of(q)) // count, (width * (Dim.of(q) + 1)) // count
    return count, (replace(loop, body=tuple(_narrowed(loop.body, set(shared), share)), kind="seq"),)


def _columns_of(access: Access) -> For | None:
    """The innermost loop around an access to places read from memory, if it runs along the last axis."""
    if access.mode != "add" or not access.index or not access.loops:
        return None
    *rows, column = access.index
    inner = access.loops[-1]
    free = not any(inner.var in d.symbols() for d in rows)
    scattered = any(True for d in rows for _ in dim_loads(d))
    return inner if scattered and free and inner.kind == "map" and column == Dim.of(inner.var) else None


def _narrowed(body: Body, shared: set[str], share: tuple[Dim, Dim]) -> Iterator[Stmt]:
    for stmt in body:
        if isinstance(stmt, For) and any(isinstance(s, Store) and s.buffer in shared for s in stmt.body):
            yield replace(stmt, lo=share[0], hi=share[1])
        else:
            yield map_bodies(stmt, lambda inner: tuple(_narrowed(inner, shared, share)))


__all__ = ["columns"]
