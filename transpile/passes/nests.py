"""Loops around a sum of products, as the passes see them that part loops around it: they are the axes of a product of
matrices, where each temporary in them is an array with an axis for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from math import prod

from ..dims import ZERO, Dim, product
from ..ir import FLOATS, Buffer, For, Kernel, Load, Op, Stmt, Store
from .distribute import sums
from .order import perfect
from .products import FEW, SMALL
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    extent_of,
    fits,
    loads,
    map_bodies,
    map_places,
    map_stmts,
    read_from_dims,
    rooms,
    roots,
    symbols,
    touched,
)


class State:
    """What is known of loops and of what is made in them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.table = kernel, {b.name: b for b in kernel.buffers}
        self.root = roots(kernel)
        self.names, self.batch = Names.of(kernel), Dim.of(kernel.batch or "")
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars), kernel.batch or ""}
        self.sums: Set[str] = frozenset()  # what an example only adds up, to be added to a sum of all examples
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        shared = {n for n, count in Counter(self.root.values()).items() if count > 1}  # memory with several names
        self.rooms = rooms(kernel)
        self.arrays: set[str] = set()  # that have an axis more as they are for a product
        self.told = read_from_dims(kernel)
        self.fixed = self.told | {n for n in self.table if self.root[n] in shared}

    def body(self, body: Body, around: tuple[For, ...]) -> Body:
        """`around`: the loops around it, as far as they can go around each statement alone."""
        return tuple(new for stmt in body for new in self.stmt(stmt, around))

    def stmt(self, stmt: Stmt, around: tuple[For, ...]) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, ())),)
        if stmt.hi == self.batch:
            stmt = replace(stmt, body=self.added(stmt))
            self.sums = sums(stmt.body, {n: self.table[n] for n in self.own(stmt)}).keys()
        if stmt.kind != "map":  # its steps go over all examples
            around = tuple(loop for loop in around if loop.hi == self.batch)
            return (replace(stmt, body=self.body(stmt.body, around)),)
        loop = replace(stmt, body=self.body(stmt.body, (*around, stmt)))
        return (loop,) if loop.hi == self.batch else self.done(loop, around)

    def done(self, loop: For, around: tuple[For, ...]) -> Body:
        """What is made of a loop, once all in it is done."""
        raise NotImplementedError

    def added(self, loop: For) -> Body:
        """What each example makes once, to be added to something, is added there at once."""
        private = self.private(loop) - self.told
        for k, stmt in enumerate(loop.body):
            total, name = _adds(stmt, self.table) or ("", "")
            names, others = ({n for n, r in self.root.items() if r == self.root.get(of)} for of in (name, total))
            before, after = loop.body[:k], loop.body[k + 1 :]
            made = names & touched(before)
            if len(made) != 1 or not names <= private or names & touched(after) or others & touched(before):
                continue
            (own,) = made
            if _makes(before, self.table[own]):
                there = partial(_added, own, self.seen_as(total, own))
                return self.added(replace(loop, body=(*map_stmts(before, there), *after)))
        return loop.body

    def seen_as(self, total: str, name: str) -> str:
        """The memory of `total` in the shape of `name`."""
        like = self.table[name].shape
        for b in self.table.values():
            if b.shape == like and self.root[b.name] == self.root[total]:
                return b.name
        new = Buffer(self.names.fresh(f"{total}_flat"), self.table[total].dtype, like, "temp", alias=self.root[total])
        self.table[new.name], self.root[new.name] = new, self.root[total]
        return new.name

    def own(self, loop: For) -> set[str]:
        """The temporaries that can have an axis for the loop, as nothing outside of it touches them."""
        return self.private(loop) & touched((loop,)) - self.fixed

    def private(self, loop: For) -> set[str]:
        inside = Counter(a.buffer for a in accesses((loop,)))
        return {n for n, b in self.table.items() if b.kind == "temp" and inside[n] == self.uses[n]}

    def extent(self, loop: For, around: Sequence[For]) -> Dim | None:
        """How many places an array has that has one for each iteration, where it is the sizes that say it."""
        return extent_of(loop, {x.var: (x.lo, x.hi - 1) for x in around}, self.sizes)

    def has_room(self, name: str, loop: For) -> bool:
        """Whether there may be one for each iteration: of numbers, and of arrays where the layer takes or gives as
        much."""
        shape = self.table[name].shape
        return not shape or fits((loop.hi, *shape), self.rooms)


def is_of_rows(stmt: Stmt) -> bool:
    """Whether it is a sum of rows along memory, each times another: lanes of examples do that as fast as products."""
    while isinstance(stmt, For):
        stmt = stmt.body[0]
    match stmt:
        case Store(_, index, Op("multiply", (Load(_, (*_, a)), Load(_, (*_, b))))) if a == b:
            return not any(a.symbols() & d.symbols() for d in index)
    return False


def axes_of(around: Sequence[For], stmt: Stmt) -> Set[str]:
    """The loops that are axes of a product of matrices, for a sum of products in them and in those around; none where
    it is no such product."""
    loops, inside = perfect(stmt) if isinstance(stmt, For) and stmt.kind == "map" else ([], (stmt,))
    match inside:
        case [Store(_, index, Op("multiply", (a, b), dtype), "add")] if dtype in FLOATS:
            sizes = {x.var: x.hi - x.lo for x in (*around, *loops)}
            steering = {s for x in (*around, *loops) for s in x.lo.symbols() | x.hi.symbols()}
            long = {v for v, size in sizes.items() if size.value is None or size.value >= FEW} - steering
            target, left, right = ({s for d in index for s in d.symbols()} & long, symbols(a) & long, symbols(b) & long)
            axes = (target & left - right, target & right - left, left & right - target)
            known = [n for n in (product(sizes[v] for v in axis).value for axis in axes) if n is not None]
            large = len(known) < 2 or prod(known) * (1 if len(known) == 3 else FEW) >= SMALL
            return axes[0] | axes[1] | axes[2] if all(axes) and large else frozenset()
    return frozenset()


def widened(body: Body, rows: Sequence[tuple[For, set[str]]]) -> Body:
    """With an axis for each of the loops, the first one first, in the temporaries that go with it."""

    def place(name: str, index: Index) -> tuple[str, Index]:
        return name, (*(Dim.of(loop.var) for loop, names in rows if name in names), *index)

    return map_places(body, place)


def _adds(stmt: Stmt, table: Mapping[str, Buffer]) -> tuple[str, str] | None:
    """What all of an array is added to, as it stands, and the array, if that is all the statement does."""
    loops, inside = perfect(stmt) if isinstance(stmt, For) else ([], ())
    match inside:
        case [Store(total, index, Load(own, same), "add")] if index == same == tuple(Dim.of(x.var) for x in loops):
            shape = tuple(x.hi for x in loops) if all(x.lo == ZERO for x in loops) else None
            like, made = table[total], table[own]
            return (total, own) if like.shape == shape == made.shape and like.dtype == made.dtype else None
    return None


def _makes(body: Body, own: Buffer, around: tuple[For, ...] = ()) -> bool:
    """Whether each of its elements is stored once, in loops over them alone, and that is all that is done to it."""
    touching = [s for s in body if own.name in touched((s,))]
    match touching:
        case [For(lo=lo) as loop] if lo == ZERO:
            return _makes(loop.body, own, (*around, loop))
        case [Store(own.name, index, value, None)] if own.name not in {x.buffer for x in loads(value)}:
            sizes = {Dim.of(x.var): x.hi for x in around}
            return len(sizes) == len(index) and tuple(sizes.get(d) for d in index) == own.shape
    return False


def _added(name: str, total: str, stmt: Stmt) -> Body:
    return (replace(stmt, buffer=total, op="add") if isinstance(stmt, Store) and stmt.buffer == name else stmt,)
