"""An array that is filled, and then stored into as a whole before anything reads it, need not be filled.

    y[i] = 0; for t seq: h = ...; y[t] = h    ->    for t seq: h = ...; y[t] = h

What is stored into piece by piece, the pieces side by side, neither; what is added to a piece is then stored.

    y[0:d] = 0; for j in 0..m: y[j] = f(j); for j in 0..d - m: y[m + j] += g(j)    ->    ...: y[m + j] = g(j)

np.empty is zeros here, so that nothing ever depends on what was in memory; mostly there is nothing to fill. What has to
be filled, and is added to, is filled behind checks that come before: nothing else goes past a check, and so the loop
that adds to it could not be one with that which fills it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import takewhile

from ..dims import ZERO, Dim, nonnegative
from ..ir import Buffer, Check, Const, Expr, For, Int, Kernel, Op, Stmt, Store
from .contract import over, stored_first
from .depend import Memory
from .order import filled, stores
from .tree import Access, Body, accesses, buffers, dim_loads, has, map_bodies, roots, touched


def fills(kernel: Kernel) -> Kernel:
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
            stmt, *after = rest
            rest = tuple(after)
            if isinstance(stmt, Check):
                asked = (*asked, stmt.cond)
            if (nest := filled(stmt)) is None:
                kept.append(stmt)
                continue
            if self.is_needed(*nest, rest):
                whole = self.in_pieces(*nest, rest, [d for cond in asked for d in _nothing(cond, around)])
                kept += [stmt] if whole is None else []
                rest = rest if whole is None else whole
        return tuple(self.inside(stmt, asked, around) for stmt in _behind_checks(tuple(kept), self.root))

    def inside(self, stmt: Stmt, asked: tuple[Expr, ...], around: frozenset[Dim]) -> Stmt:
        if isinstance(stmt, For) and stmt.lo == ZERO:
            around |= {stmt.hi}
        return map_bodies(stmt, lambda inner: self.cleared(inner, asked, around))

    def touching(self, stmt: Stmt, name: str) -> list[Access]:
        return [a for a in accesses((stmt,)) if self.root[a.buffer] == self.root[name]]

    def is_needed(self, loops: Sequence[For], store: Store, after: Body) -> bool:
        for later in after:
            if touching := self.touching(later, store.buffer):
                return not stores_all(later, touching, self.table[store.buffer], _still(loops, store))
        return True

    def in_pieces(self, loops: Sequence[For], store: Store, after: Body, nothing: Sequence[Dim]) -> Body | None:
        """What follows, which stores into pieces of what is filled until that is whole; None where it does not."""
        buffer, still = self.table[store.buffer], _still(loops, store)
        found: dict[Dim, tuple[Dim, int]] = {}
        axes: set[int] = set()
        for position, later in enumerate(after):
            touching = self.touching(later, buffer.name)
            if not touching:
                continue
            piece = _piece(touching[0], buffer, still) if len(touching) == 1 and stores(later) else None
            if touching[0].mode != "w" and not (isinstance(store.value, Const) and store.value.value == 0):
                return None
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
