"""What a loop of an element goes back to at each turn, it has in hand: the few numbers of a pixel's channels.

    for j:                                               for j:
        for g seq:                                           y_0 = y[j,0]; y_1 = y[j,1]
            ...                                  ->          for g seq: ...; y_0 += t * c[g,0]; y_1 += t * c[g,1]
            for k in 0..2: y[j,k] += t * c[g,k]              y[j,0] = y_0; y[j,1] = y_1

Elements that walk through such loops together (`lanes`) then have a vector for each of the numbers, and go to memory,
where those of a neighbour are some places further, once before the loop and once behind it. Nothing is added in another
order. The short loops of such an element are written out. What a `while` goes along at each turn, a row of an argument
or a result, is fetched first, and left behind it if something was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from ..dims import ZERO, Dim, product
from ..ir import Buffer, For, Kernel, Load, Stmt, Store, While
from .alike import is_recurrence
from .depend import Memory
from .elements import MOST, elements
from .guards import guards
from .once import own_temporaries
from .predicate import is_within
from .tree import Access, Body, Index, Names, accesses, dim_loads, map_bodies, map_places, substitute, walk

MOST_STATEMENTS = 128  # of an element, with its short loops written out


def in_hand(nest: For, kernel: Kernel) -> tuple[For, Kernel] | None:
    """A nest of the kernel's with such elements, and the kernel with it; None where there are none."""
    state = _State(kernel)
    made = state.inward(nest, state.memory, ())
    if made == nest:
        return None
    kernel = replace(kernel, buffers=(*kernel.buffers, *state.made))
    mine = own_temporaries(replace(kernel, body=tuple(made if s is nest else s for s in kernel.body)), made)
    shown = tuple(replace(b, kind="out") if b.kind == "temp" and b.name not in mine else b for b in kernel.buffers)
    apart = elements(guards(replace(kernel, body=(made,), buffers=shown), (ZERO,)))
    known = {b.name for b in kernel.buffers}
    more = tuple(b for b in apart.buffers if b.name not in known)
    body = tuple(new for s in kernel.body for new in (apart.body if s is nest else (s,)))
    match apart.body:
        case (For() as found,):
            return found, replace(kernel, body=body, buffers=(*kernel.buffers, *more))
    return None


@dataclass
class _State:
    kernel: Kernel
    made: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names, self.memory = Names.of(self.kernel), Memory.of(self.kernel)
        self.table = {b.name: b for b in self.kernel.buffers}

    def inward(self, nest: For, memory: Memory, around: tuple[str, ...]) -> For:
        if nest.kind != "map":
            return nest
        memory, around = memory.inside(nest), (*around, nest.var)
        if any(map(is_recurrence, nest.body)):
            return self.element(nest, memory, around)
        inside = (self.inward(s, memory, around) if isinstance(s, For) else s for s in nest.body)
        return replace(nest, body=tuple(inside))

    def element(self, loop: For, memory: Memory, around: tuple[str, ...]) -> For:
        body = tuple(new for s in loop.body for new in (self.held(s, memory, around) if is_recurrence(s) else (s,)))
        written = _written_out(body)
        loop = replace(loop, body=body if written is None else written)
        examples = self.kernel.batch is not None and loop.hi == Dim.of(self.kernel.batch)  # `lanes` has groups of them
        searches = any(isinstance(s, While) for s in loop.body)
        return self.with_rows(loop, memory, around) if searches and not examples else loop

    def with_rows(self, loop: For, memory: Memory, around: tuple[str, ...]) -> For:
        """An element with each row that belongs to it fetched first, and left where it was if something is added to it:
        its neighbours' lie far apart."""
        before, behind = list[Stmt](), list[Stmt]()
        known = memory.root.keys()
        body, mine = loop.body, [a for a in accesses(loop.body) if a.buffer in known]  # but what is in hand already
        for name in sorted({a.buffer for a in mine if self.table[a.buffer].kind in ("in", "out")}):
            found = [a for a in mine if memory.root[a.buffer] == memory.root[name]]
            row = self.row(name, found, memory, around)
            if row is None:
                continue
            own = Buffer(self.names.fresh(name), self.table[name].dtype, (self.table[name].shape[-1],), "temp")
            self.made.append(own)
            self.table[own.name] = own
            body = map_places(body, partial(_moved, name, own.name, (len(row) - 1,)))
            k = Dim.of(self.names.fresh("k"))
            there = (*row[:-1], k)
            fetch = Store(own.name, (k,), Load(name, there, own.dtype))
            leave = Store(name, there, Load(own.name, (k,), own.dtype))
            before.append(For(str(k), ZERO, own.shape[0], (fetch,), "map"))
            behind += [For(str(k), ZERO, own.shape[0], (leave,), "map")] if any(a.writes for a in found) else []
        return replace(loop, body=(*before, *body, *behind)) if before else loop

    def row(self, name: str, found: list[Access], memory: Memory, around: tuple[str, ...]) -> Index | None:
        """Where the row lies, all of which some loop goes along, if nothing else of the array is read."""
        first, extent = found[0].index, self.table[name].shape[-1]
        if not first or len(first) < 2 or around[-1] not in {v for d in first[:-1] for v in d.symbols()}:
            return None
        if any(a.buffer != name for a in found) or (any(a.writes for a in found) and not _are_own(first[:-1], around)):
            return None
        if any(a.index is None or a.index[:-1] != first[:-1] or any(map(any, map(dim_loads, a.index))) for a in found):
            return None
        if not all(memory.in_range(d, n) for d, n in zip(first[:-1], self.table[name].shape)):
            return None  # asked for by some turns only, perhaps
        loops = ((x, a) for a in found for x in a.loops if x.kind == "map" and x.lo == ZERO and x.hi == extent)
        outer = {v for d in first[:-1] for v in d.symbols()}
        along = any((a.index or ())[-1] == Dim.of(x.var) for x, a in loops)
        return first if along and outer <= {*around, *self.kernel.dims} else None

    def held(self, walked: Stmt, memory: Memory, around: tuple[str, ...]) -> Body:
        """A loop, with what it goes back to in numbers, those fetched before and left behind."""
        before, behind = list[Stmt](), list[Stmt]()
        mine = list(accesses((walked,)))
        for name in sorted({a.buffer for a in mine}):
            found = [a for a in mine if memory.root[a.buffer] == memory.root[name]]
            places = self.places(name, found, memory, around)
            if places is None:
                continue
            index, axes = places
            own = Buffer(self.names.fresh(name), self.table[name].dtype, tuple(axes.values()), "temp")
            self.made.append(own)
            self.table[own.name] = own
            (walked,) = map_places((walked,), partial(_moved, name, own.name, tuple(axes)))
            changed = any(a.writes for a in found)
            for here, there in self.every(index, axes):
                before.append(Store(own.name, here, Load(name, there, own.dtype)))
                behind += [Store(name, there, Load(own.name, here, own.dtype))] if changed else []
        return (*before, walked, *behind)

    def places(
        self, name: str, found: list[Access], memory: Memory, around: tuple[str, ...]
    ) -> tuple[Index, dict[int, Dim]] | None:
        """The element's own place that a loop goes to at each turn; and the axes, of known lengths, along which it goes
        to some few."""
        shape, index = self.table[name].shape, found[0].index
        if not index or any(a.buffer != name or a.index is None for a in found) or self.table[name].kind == "list":
            return None
        inside = {loop.var: loop for a in found for loop in a.loops}
        named = {v for a in found for d in a.index or () for v in d.symbols()} & inside.keys()
        if any(inside[v].kind == "seq" for v in named) or any(any(dim_loads(d)) for a in found for d in a.index or ()):
            return None
        differ = [k for k, d in enumerate(index) if d.symbols() & named or any((a.index or ())[k] != d for a in found)]
        axes = {k: shape[k] for k in differ}
        fixed = {k: d for k, d in enumerate(index) if k not in axes}
        outer = {v for d in fixed.values() for v in d.symbols()}
        if around[-1] not in outer or not outer <= {*around, *self.kernel.dims, *(s.name for s in self.kernel.scalars)}:
            return None
        if _size(axes.values()) > MOST:
            return None
        if any(a.writes for a in found) and not _are_own(fixed.values(), around):
            return None  # others may add there, too
        there = tuple(fixed.get(k, ZERO) for k in range(len(shape)))
        return (index, axes) if is_within(name, there, memory, ()) else None

    def every(self, index: Index, axes: dict[int, Dim]) -> Iterator[tuple[Index, Index]]:
        """Places in the numbers, and those in memory."""
        here: list[dict[int, Dim]] = [{}]
        for k, extent in axes.items():
            here = [{**known, k: Dim.of(n)} for known in here for n in range(extent.value or 0)]
        for known in here:
            yield tuple(known.values()), tuple(known.get(k, d) for k, d in enumerate(index))


def _moved(name: str, own: str, axes: tuple[int, ...], buffer: str, index: Index) -> tuple[str, Index]:
    return (own, tuple(index[k] for k in axes)) if buffer == name else (buffer, index)


def _size(extents: Iterable[Dim]) -> int:
    size = product(extents).value
    return MOST + 1 if size is None else size


def _are_own(fixed: Iterable[Dim], around: tuple[str, ...]) -> bool:
    """Whether each loop around has an axis for its counter alone."""
    return {str(d.symbol) for d in fixed} >= set(around)


def _written_out(body: Body) -> Body | None:
    """Without short loops of known lengths; None where that is too long."""

    def opened(inner: Body) -> Body:
        done: list[Stmt] = []
        for stmt in inner:
            stmt = map_bodies(stmt, opened)
            trips = (stmt.hi - stmt.lo).value if isinstance(stmt, For) and stmt.kind == "map" else None
            if isinstance(stmt, For) and trips is not None and trips <= MOST:
                done += (s for k in range(trips) for s in substitute(stmt.body, {stmt.var: stmt.lo + k}))
            else:
                done.append(stmt)
        return tuple(done)

    written = opened(body)
    return written if sum(1 for _ in walk(written)) <= MOST_STATEMENTS else None


__all__ = ["in_hand"]
