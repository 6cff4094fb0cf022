"""Loops around a sum of products hold nothing but that: it is a product of matrices for all of them.

    for b: for i:                                           for b: for i: s[i] = 0
        s = 0                                               for b: for i: for k: s[i] += w[i,k] * x[b,k]
        for k: s += w[i,k] * x[b,k]                   ->    for b: for i: y[b,i] = tanh(s[i])
        y[b,i] = tanh(s)

What is an array for each iteration stays in one loop: all of them would be more memory than the layer has. What is
parted and is no product after all is put together again (see fuse). What an example makes once, an element in each
iteration, to be added to a sum of all examples, is added to it at once: it is a sum of products then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from math import prod

from ..dims import ZERO, Dim, product
from ..ir import FLOATS, Buffer, Check, Expr, For, Grow, If, Kernel, Load, Op, Stmt, Store, While
from .addends import addends
from .common import Common
from .distribute import sums
from .factor import Around, Factored, factored
from .like_given import like_given
from .order import perfect
from .products import FEW, SMALL
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    fits,
    has,
    loads,
    map_bodies,
    map_places,
    map_stmts,
    of_terms,
    read_from_dims,
    rooms,
    roots,
    substitute,
    symbols,
    touched,
)


def fission(kernel: Kernel) -> Kernel:
    for done in (_Addends, _Factored, _Parted) if kernel.flush else (_Parted,):
        state = done(kernel)
        body = state.body(kernel.body, ())
        kernel = replace(kernel, body=body, buffers=tuple(state.table.values()))
    return like_given(kernel, state.arrays) if state.arrays else kernel


def parted_within(kernel: Kernel, others: Set[str]) -> Kernel:
    """Parted around sums of products behind a branch, too. `others`: what somebody else knows of, too."""
    state = _Parted(kernel)
    state.branches = True
    state.fixed |= others
    body = state.body(kernel.body, ())
    return replace(kernel, body=body, buffers=tuple(state.table.values()))


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

    def has_room(self, name: str, loop: For) -> bool:
        """Whether there may be one for each iteration: of numbers, and of arrays where the layer takes or gives as
        much."""
        shape = self.table[name].shape
        return not shape or fits((loop.hi, *shape), self.rooms)


class _Addends(State):
    """Parts what a nest adds to several places (see addends)."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.common = Common(kernel)

    def stmt(self, stmt: Stmt, around: tuple[For, ...]) -> Body:
        found = addends(stmt, self.private(stmt), self.names) if isinstance(stmt, For) and around else None
        if found is None:
            return super().stmt(stmt, around)
        made = self.common.body(found)
        wide = widened(made, [(x, self.own(x) - self.sums) for x in around])
        if not any(axes_of(around, s) for s in wide):
            return (stmt,)
        new = self.common.table.keys() - self.table.keys()
        self.table |= {name: self.common.table[name] for name in new}
        self.root |= dict(zip(new, new, strict=True))
        return made

    def done(self, loop: For, around: tuple[For, ...]) -> Body:
        return (loop,)


class _Factored(State):
    """Takes out of sums what their terms have in common (see factor)."""

    def done(self, loop: For, around: tuple[For, ...]) -> Body:
        modes: dict[str, set[str]] = {}
        for a in accesses(loop.body):
            modes.setdefault(self.root[a.buffer], set()).add(a.mode)
        nests, before, behind = list[Stmt](), list[Stmt](), list[Stmt]()
        for stmt in loop.body:
            about = Around(
                loop,
                self.private(stmt) if isinstance(stmt, For) else (),
                self.names,
                self.sizes,
                self.root,
                modes,
                lambda loops, terms: self.is_sum((*around, loop, *loops), loops, terms, loop.var),
            )
            made = factored(stmt, about) or Factored(stmt)
            nests.append(made.nest)
            before += made.before
            behind += made.behind
            for buffer in made.made:
                self.table[buffer.name], self.root[buffer.name] = buffer, buffer.name
        return (*before, replace(loop, body=tuple(nests)), *behind)

    def is_sum(self, around: Sequence[For], own: Sequence[For], terms: Sequence[Expr], var: str) -> bool:
        """Whether a sum of the product of two terms, of which there is one for each example and in each of its `own`
        loops, is one of a product of matrices."""
        place = tuple(Dim.of(x.var) for x in around if x.hi == self.batch or x in own)
        sum_ = Store("", place, Op("multiply", tuple(terms), terms[0].dtype), "add")  # type: ignore[union-attr]
        (wide,) = widened((sum_,), [(x, self.own(x) - self.sums) for x in around])
        return var in axes_of(around, wide)


class _Parted(State):
    """Parts loops around sums of products."""

    branches = False  # whether a sum behind a branch is one

    def done(self, loop: For, around: tuple[For, ...]) -> Body:
        if len(loop.body) < 2 or has(loop.body, Check, While, Grow):
            return (loop,)
        own = self.own(loop)
        wide = widened(loop.body, [(x, self.own(x) - self.sums) for x in (*around, loop)])
        axes = [axes_of((*around, loop), _taken(stmt) if self.branches else stmt) for stmt in wide]
        pieces = list(_pieces(loop.body, {k for k, own in enumerate(axes) if own}))
        if len(pieces) < 2:
            return (loop,)
        crossing = self.crossing(loop, pieces)
        if crossing and not any(loop.var in own for own in axes):
            return (loop,)
        if crossing and not (loop.lo.value is not None and loop.lo.value >= 0 and loop.hi.symbols() <= self.sizes):
            return (loop,)
        sums_ = [s for k, s in enumerate(loop.body) if axes[k] and (self.kernel.flush or not is_of_rows(s))]
        less = {n for s in sums_ for n in of_terms(s, self.kernel, (*around, loop))}
        if not crossing <= own or not all(n in less or self.has_room(n, loop) for n in crossing):
            return (loop,)
        recurs = any(isinstance(s, For) and s.kind == "seq" for s in loop.body)
        if any(self.table[n].shape for n in crossing) and not recurs and self.is_of_rows(loop, around, wide):
            return (loop,)
        self.arrays |= {n for n in (crossing if recurs else crossing & less) if self.table[n].shape}
        for name in crossing:
            self.table[name] = replace(self.table[name], shape=(loop.hi, *self.table[name].shape))
        return tuple(self.alone(loop, piece, crossing, first=piece is pieces[0]) for piece in pieces)

    def is_of_rows(self, loop: For, around: tuple[For, ...], body: Body) -> bool:
        """Whether each example has a product of its own for all iterations: they go in strips then (see distribute)."""
        inside = tuple(x for x in around if x.hi != self.batch)
        return any(loop.var in axes_of((*inside, loop), stmt) for stmt in body)

    def alone(self, loop: For, piece: Body, crossing: set[str], first: bool) -> For:
        new = loop if first else replace(loop, var=self.names.fresh(loop.var))
        return replace(new, body=widened(substitute(piece, {loop.var: Dim.of(new.var)}), [(new, crossing)]))

    def crossing(self, loop: For, pieces: Sequence[Body]) -> set[str]:
        """What one piece leaves for another one, in no place of the iteration's own."""
        used = Counter(m for piece in pieces for m in {self.root[n] for n in touched(piece)})
        several = [a for a in accesses(loop.body) if used[self.root[a.buffer]] > 1]
        modes: dict[str, set[str]] = {}
        for a in several:
            modes.setdefault(self.root[a.buffer], set()).add(a.mode)
        alike = {root for root, how in modes.items() if how in ({"r"}, {"add"})}
        return {
            a.buffer
            for a in several
            if self.root[a.buffer] not in alike and not any(loop.var in d.symbols() for d in a.index or ())
        }


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


def widened(body: Body, rows: Sequence[tuple[For, set[str]]]) -> Body:
    """With an axis for each of the loops, the first one first, in the temporaries that go with it."""

    def place(name: str, index: Index) -> tuple[str, Index]:
        return name, (*(Dim.of(loop.var) for loop, names in rows if name in names), *index)

    return map_places(body, place)


def _pieces(body: Body, found: set[int]) -> Iterator[Body]:
    """The sums of products, each alone; what is between them together, but for what only clears."""
    run: list[Stmt] = []
    for k, stmt in enumerate(body):
        if k not in found:
            run.append(stmt)
            continue
        if run:
            yield tuple(run)
        run = []
        yield (stmt,)
    if run:
        yield tuple(run)


def _taken(stmt: Stmt) -> Stmt:
    """A nest without the branch in it."""
    match stmt:
        case For(body=(inner,)):
            return replace(stmt, body=(_taken(inner),))
        case If(_, (inner,), ()):
            return _taken(inner)
    return stmt


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
            long = {v for v, size in sizes.items() if size.value is None or size.value >= FEW}
            target, left, right = ({s for d in index for s in d.symbols()} & long, symbols(a) & long, symbols(b) & long)
            axes = (target & left - right, target & right - left, left & right - target)
            known = [n for n in (product(sizes[v] for v in axis).value for axis in axes) if n is not None]
            large = len(known) < 2 or prod(known) * (1 if len(known) == 3 else FEW) >= SMALL
            return axes[0] | axes[1] | axes[2] if all(axes) and large else frozenset()
    return frozenset()
