"""What is filled with zeros, and then written to piece by piece, the pieces side by side, is not filled; and what is
added to a piece is stored.

    for j in 0..d: y[j] = 0                                  for j in 0..m: y[j] = f(j)
    for j in 0..m: y[j] = f(j)                       ->      for j in 0..d - m: y[m + j] = g(j)
    for j in 0..d - m: y[m + j] += g(j)

Behind `deepen`, which looks for whole arrays that are cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from ..dims import ZERO, Dim, nonnegative
from ..ir import Buffer, Check, Expr, For, Int, Kernel, Op, Stmt, Store
from .contract import over
from .depend import Memory
from .order import filled, stores
from .tree import Access, Body, accesses, buffers, dim_loads, map_bodies, roots


def pieces(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    return replace(kernel, body=state.cleared(kernel.body, (), frozenset()))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.facts = buffers(kernel), roots(kernel), Memory.of(kernel).facts

    def cleared(self, body: Body, asked: tuple[Expr, ...], around: frozenset[Dim]) -> Body:
        """`asked`: what checks before have found to be true; `around`: how often the loops around run: not never."""
        kept: list[Stmt] = []
        rest = body
        while rest:
            stmt, rest = rest[0], rest[1:]
            if isinstance(stmt, Check):
                asked = (*asked, stmt.cond)
            if (nest := filled(stmt)) is not None and nest[1].value.value == 0:  # type: ignore[union-attr]
                whole = self.in_pieces(*nest, rest, [d for cond in asked for d in _nothing(cond, around)])
                if whole is not None:
                    rest = whole
                    continue
            kept.append(self.inside(stmt, asked, around))
        return tuple(kept)

    def inside(self, stmt: Stmt, asked: tuple[Expr, ...], around: frozenset[Dim]) -> Stmt:
        if isinstance(stmt, For) and stmt.lo == ZERO:
            around |= {stmt.hi}
        return map_bodies(stmt, lambda inner: self.cleared(inner, asked, around))

    def in_pieces(self, loops: Sequence[For], store: Store, after: Body, nothing: Sequence[Dim]) -> Body | None:
        """What follows, which stores into pieces of what is filled until that is whole; None where it does not."""
        buffer, still = self.table[store.buffer], _still(loops, store)
        ranges = {loop.var: (loop.lo, loop.hi) for loop in loops}
        places = zip(store.index, buffer.shape, strict=True)
        if any(over(d, n, ranges) is None for axis, (d, n) in enumerate(places) if axis not in still):
            return None  # what is not filled has other values
        found: dict[Dim, tuple[Dim, int]] = {}
        axes: set[int] = set()
        for position, later in enumerate(after):
            touching = [a for a in accesses((later,)) if self.root[a.buffer] == self.root[buffer.name]]
            if not touching:
                continue
            piece = _piece(touching[0], buffer, still) if len(touching) == 1 and stores(later) else None
            if piece is not None and touching[0].mode == "add" and axes == {piece[0]} and _is_among(piece, found):
                continue  # to a piece that is stored by now
            if piece is None or piece[1] in found or not nonnegative(piece[2] - piece[1], self.facts):
                return None
            axis, low, high = piece
            axes.add(axis)
            found[low] = high, position
            if len(axes) == 1 and _covers(found, buffer.shape[axis], nothing):
                stored = {position for _, position in found.values()}
                return tuple(_stored(s, buffer.name) if k in stored else s for k, s in enumerate(after))
        return None


def _still(loops: Sequence[For], store: Store) -> dict[int, Dim]:
    """The axes that a fill does not go along, and where it stands on them."""
    variables = {loop.var for loop in loops}
    return {axis: dim for axis, dim in enumerate(store.index) if not dim.symbols() & variables}


def _nothing(cond: Expr, around: Set[Dim]) -> Iterator[Dim]:
    """What is 0 where a condition holds, in loops that run."""
    match cond:
        case Op("equal", (Int(a), Int(b))):
            yield from (a - b, b - a)
        case Op("logical_or", (Op("less_equal", (Int(count), Int(none))), other)) if none == ZERO and count in around:
            yield from _nothing(other, around)


def _piece(access: Access, buffer: Buffer, still: Mapping[int, Dim]) -> tuple[int, Dim, Dim] | None:
    """The axis along which a nest of loops writes to a part of what is filled, once to each place, and from where to
    where."""
    if access.mode not in ("w", "add") or access.buffer != buffer.name or access.index is None:
        return None
    ranges = {loop.var: (loop.lo, loop.hi) for loop in access.loops}
    if any(d.symbols() & ranges.keys() or any(dim_loads(d)) for ends in ranges.values() for d in ends):
        return None
    pieces: list[tuple[int, Dim, Dim]] = []
    along: list[str] = []
    for axis, (dim, extent) in enumerate(zip(access.index, buffer.shape, strict=True)):
        if axis in still:
            if dim != still[axis]:
                return None
            continue
        own = sorted(dim.symbols() & ranges.keys())
        split = dim.split(own[0]) if len(own) == 1 else None
        if split is None or any(dim_loads(dim)):
            return None
        along += own
        if over(dim, extent, ranges) is None:
            if split[0].value != 1:
                return None
            low, high = ranges[own[0]]
            pieces.append((axis, split[1] + low, split[1] + high))
    return pieces[0] if len(pieces) == 1 and sorted(along) == sorted(ranges) else None


def _is_among(piece: tuple[int, Dim, Dim], found: Mapping[Dim, tuple[Dim, int]]) -> bool:
    _, low, high = piece
    return low in found and found[low][0] == high


def _covers(pieces: Mapping[Dim, tuple[Dim, int]], extent: Dim, nothing: Sequence[Dim]) -> bool:
    """Whether the pieces stand side by side, from 0 to the extent."""
    at = ZERO
    for _ in pieces:
        if at not in pieces:
            return False
        at = pieces[at][0]
    return at == extent or extent - at in nothing


def _stored(stmt: Stmt, name: str) -> Stmt:
    """The nest, with what it adds there stored."""
    if isinstance(stmt, Store):
        return replace(stmt, op=None) if stmt.buffer == name else stmt
    return map_bodies(stmt, lambda body: tuple(_stored(s, name) for s in body))


__all__ = ["pieces"]
