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
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from ..dims import Dim
from ..ir import Check, Expr, For, Grow, If, Kernel, Op, Stmt, Store, While
from .addends import addends
from .common import Common
from .factor import Around, Factored, factored
from .like_given import like_given
from .nests import State, axes_of, is_of_rows, widened
from .stairs import Stairs
from .tree import (
    Body,
    accesses,
    has,
    of_terms,
    substitute,
    touched,
)


def fission(kernel: Kernel) -> Kernel:
    for done in (Stairs, _Addends, _Factored, _Parted) if kernel.flush else (Stairs, _Parted):
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


class _Addends(State):
    """Parts what a nest adds to several places (see addends)."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.common = Common(kernel)

    def stmt(self, stmt: Stmt, around: tuple[For, ...]) -> Body:
        found = addends(stmt, self.private(stmt), self.names) if isinstance(stmt, For) and around else None
        if found is None:
            return super().stmt(stmt, around)
        made = self.common.body(found, around)
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
        extent = self.extent(loop, around)
        if extent is None and crossing:
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
            assert extent is not None, "what crosses has room"
            self.table[name] = replace(self.table[name], shape=(extent, *self.table[name].shape))
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
