"""A nest over an array that others see with an axis in groups goes over the groups, too.

    for i in 0..C: m[i] = dy[i] * w[i]                    for g in 0..G: for j in 0..C//G:
    for g in 0..G: for j in 0..C//G:               ->         m_flat[g,j] = dy_flat[g,j] * w[g * (C//G) + j]
        s[g] += m_flat[g,j] * x_flat[g,j]                 for g in 0..G: for j in 0..C//G: s[g] += ...

Here `m_flat` is the memory of `m` in another shape, as `np.reshape` leaves it. Both nests then run over one space: they
become one, and what only passes from the one to the other needs no array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..dims import ONE, ZERO, Dim, maximum, product
from ..ir import Buffer, Const, For, Kernel, Load, Stmt, Store
from .order import rebuild, stores
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    bodies,
    buffers,
    map_bodies,
    map_places,
    rename_buffers,
    roots,
    substitute,
    walk,
)

Shape = tuple[Dim, ...]
Groups = tuple[Shape, ...]  # for each axis of a coarse shape its extents in the fine one, in order


def regroup(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    if not state.known:
        return kernel
    body = state.body(kernel.body)
    return _retired(replace(kernel, body=body, buffers=tuple(state.table.values())))


@dataclass(frozen=True)
class _Axes:
    """The loops of one nest that are taken apart: variable -> the axis of which coarse shape, and the new loops."""

    shape: Shape
    groups: Groups
    loops: list[For]
    apart: dict[str, list[For]]


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.batch = Dim.of(kernel.batch) if kernel.batch else None
        self.known = dict(self.regroupings(kernel))  # coarse shape -> how a fine one groups its axes
        self.sums = dict(self.vectors(kernel))  # temporary -> the extents that its only axis falls into

    def own(self, shape: Shape) -> Shape:
        """The shape within an example."""
        return shape[1:] if shape and shape[0] == self.batch else shape

    def regroupings(self, kernel: Kernel) -> Iterator[tuple[Shape, Groups]]:
        """Of arrays that loops go over in both shapes: what only a product sees in groups gains nothing by them. Groups
        that are surely gone over, whatever the values: that they leave nothing over is known where they are."""
        used = sorted({a.buffer for s in walk(kernel.body) if isinstance(s, Store) for a in accesses((s,))})
        spaces = {tuple(loop.hi for loop in loops) for loops, _ in _nests(kernel.body, [self.batch])}
        for fine in used:
            for coarse in used:
                if fine != coarse and self.root[fine] == self.root[coarse]:
                    shape, into = (self.own(self.table[n].shape) for n in (coarse, fine))
                    groups = _groups(shape, into)
                    if groups is not None and any(space[-len(into) :] == into for space in spaces):
                        yield shape, groups

    def vectors(self, kernel: Kernel) -> Iterator[tuple[str, Shape]]:
        """Sums along the one axis that is taken apart: begun with 0, made in nests over such an array, and added to
        something. Of an array without elements the groups may be too few, and these sums are 0."""
        apart: dict[Shape, Shape] = {(e,): p for s, g in self.known.items() for e, p in zip(s, g) if len(p) > 1}
        used: Counter[str] = Counter()
        for loops, inside in _nests(kernel.body):
            space = tuple(loop.hi for loop in loops)
            if any(space[-len(shape) :] == shape for shape in self.known):
                used.update(a.buffer for a in accesses(inside))
            elif space[-1:] in apart:
                match inside:
                    case [Store(name, _, Const(value=0), None)] | [Store(_, _, Load(name), "add")]:
                        used[name] += 1
        every = Counter(a.buffer for a in accesses(kernel.body))
        aliased = {self.root[b.name] for b in kernel.buffers if b.alias}
        for name, count in used.items():
            b = self.table[name]
            if b.kind == "temp" and not b.alias and name not in aliased and b.shape in apart and every[name] == count:
                yield name, apart[b.shape]

    def body(self, body: Body) -> Body:
        return tuple(self.stmt(s) for s in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        if (nest := stores(stmt)) is not None:
            loops, inside = nest
            axes = self.taken_apart(loops, self.known) or self.taken_apart(loops, self.alone(inside))
            if axes is not None:
                over = [one for loop in loops for one in axes.apart.get(loop.var, [loop])]
                return rebuild(over, self.moved(inside, axes))
        return map_bodies(stmt, self.body)

    def alone(self, inside: Body) -> dict[Shape, Groups]:
        """The vectors that a nest touches, as shapes of their own."""
        return {self.table[a.buffer].shape: (self.sums[a.buffer],) for a in accesses(inside) if a.buffer in self.sums}

    def taken_apart(self, loops: list[For], known: Mapping[Shape, Groups]) -> _Axes | None:
        """The nest's own loops, the innermost ones, if they go over the whole of an array that is seen in groups."""
        for shape, groups in known.items():
            own = loops[len(loops) - len(shape) :]
            if tuple(loop.hi for loop in own) != shape or any(loop.lo != ZERO for loop in own):
                continue
            apart = {
                loop.var: [For(self.names.fresh(loop.var), ZERO, extent, ()) for extent in extents]
                for loop, extents in zip(own, groups)
                if len(extents) > 1
            }
            return _Axes(shape, groups, own, apart)
        return None

    def moved(self, inside: Body, axes: _Axes) -> Body:
        """What is inside the nest, over the new loops: a whole array under its fine shape, others by their places."""
        first = {v: [Dim.of(loop.var) for loop in loops] for v, loops in axes.apart.items()}
        place = {v: _place(loops) for v, loops in axes.apart.items()}
        variables = [Dim.of(loop.var) for loop in axes.loops]

        def seen(name: str, index: Index) -> tuple[str, Index]:
            shape = self.table[name].shape
            if name in self.sums and (axis := str(index[0].symbol)) in first and index[0] == Dim.of(axis):
                return self.under(name, self.sums[name]), tuple(first[axis])
            lead = len(shape) - len(axes.shape)
            if lead < 0 or self.own(shape) != axes.shape or list(index[lead:]) != variables:
                return name, index
            fine = (*shape[:lead], *(e for extents in axes.groups for e in extents))
            spread = (d for v in variables for d in first.get(str(v.symbol), [v]))
            return self.under(name, fine), (*index[:lead], *spread)

        return substitute(map_places(inside, seen), place)

    def under(self, name: str, shape: Shape) -> str:
        """The buffer's memory under another shape."""
        root = self.root[name]
        for b in self.table.values():
            if self.root[b.name] == root and b.shape == shape:
                return b.name
        alias = Buffer(self.names.fresh(f"{root}_flat"), self.table[root].dtype, shape, "temp", root)
        self.table[alias.name], self.root[alias.name] = alias, root
        return alias.name


def _nests(body: Body, around: Sequence[Dim | None] | None = None) -> Iterator[tuple[list[For], Body]]:
    """Nests of map loops around stores. `around`: only those that nothing is around but loops of such extents."""
    for stmt in body:
        if (nest := stores(stmt)) is not None:
            yield nest
        elif around is None or (isinstance(stmt, For) and stmt.hi in around):
            for inner in bodies(stmt):
                yield from _nests(inner, around)


def _groups(coarse: Shape, fine: Shape) -> Groups | None:
    """The extents that each axis falls into; None where the one shape does not refine the other."""
    found: list[Shape] = []
    left = fine
    for extent in coarse:
        taken = next((n for n in range(1, len(left) + 1) if _covers(extent, left[:n])), None)
        if taken is None:
            return None
        found.append(left[:taken])
        left = left[taken:]
    return tuple(found) if not left and any(len(e) > 1 for e in found) else None


def _covers(extent: Dim, parts: Shape) -> bool:
    """Whether the parts make up the axis, given that the arrays are of one size: C of G and C // G, too. They never
    reach beyond it."""
    if product(parts) == extent:
        return True
    for k, part in enumerate(parts):
        rest = product((*parts[:k], *parts[k + 1 :]))
        if len(parts) > 1 and part in (extent // rest, extent // maximum(rest, ONE)):
            return True
    return False


def _place(loops: list[For]) -> Dim:
    place = ZERO
    for loop in loops:
        place = place * loop.hi + Dim.of(loop.var)
    return place


def _retired(kernel: Kernel) -> Kernel:
    """A temporary that is seen in one shape only has that shape; others are forgotten."""
    used = {a.buffer for a in accesses(kernel.body)}
    table = buffers(kernel)
    shapes: dict[str, set[str]] = {}
    for name, root in roots(kernel).items():
        if name in used:
            shapes.setdefault(root, set()).add(name)
    now: Mapping[str, str] = {
        root: next(iter(names)) for root, names in shapes.items() if len(names) == 1 and table[root].kind == "temp"
    }
    fresh = {name: root for root, name in now.items() if name != root}
    kept = []
    for b in kernel.buffers:
        if b.name in now:
            b = replace(b, shape=table[now[b.name]].shape)
        if b.name not in fresh and not (b.alias and b.name not in used):
            kept.append(b)
    return replace(kernel, body=rename_buffers(kernel.body, fresh), buffers=tuple(kept))
