"""Loops over examples, or rows, are distributed around products of a vector with a matrix that all of them share.

    for b:                                                 for b: for k: for j: h[b,j] += x[b,k] * w[k,j]
        for k: for j: h[j] += x[b,k] * w[k,j]      ->      for b: for j: y[b,j] = tanh(h[b,j])
        for j: y[j] = tanh(h[j])

Each of them is then one product of matrices (see products), and so is the gradient of w, whose depth is the batch.
Where they are steps of a recurrence, it goes into the recurrence: each step is one of all examples.
Iterations of such a loop are independent, so any of its statements may run for all of them before the next
one does; a temporary that is alive in between gets an axis for the loop.

Of examples there are a batch at once. A loop of the user may be long, and its temporaries rows of another long axis:
it goes in strips of 64 rows.

    for t in 0..T:                                         for strip: for t in 0..min(64, T - 64*strip):
        for i: for k: s[i] += k[i,k] * q[t,k]      ->          for i: for k: s[t,i] += k[i,k] * q[64*strip + t,k]
        ...                                                for strip: ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from math import inf
from typing import TypeGuard

from ..dims import ZERO, Dim, Facts, largest, minimum, nonnegative, product, without_remainder
from ..ir import Buffer, Check, Const, For, Grow, If, Int, Kernel, Load, Op, Stmt, Store, While
from .asked import asked_before
from .inline import inline_summands
from .operands import name_operands
from .order import perfect
from .products import FEW, State
from .tree import (
    Body,
    Names,
    accesses,
    bodies,
    buffers,
    degree,
    dim_loads,
    grows,
    has,
    map_bodies,
    map_places,
    of_terms,
    own_accesses,
    read_from_dims,
    rooms,
    roots,
    substitute,
    symbols,
    touched,
    walk,
    written,
)

ROWS = 64  # of a strip: enough for a product, few enough for what is kept of them to stay in cache


def distribute(kernel: Kernel) -> Kernel:
    kernel = name_operands(inline_summands(kernel))
    if kernel.batch is not None:
        asked = asked_before(kernel)
        made = _Loops(asked).over_batch()
        kernel = made if made.body != asked.body else _Loops(kernel).over_batch()
    return _Loops(kernel).over_rows()


@dataclass(frozen=True)
class _Many:
    """A loop over many examples or rows, from 0: over `most` at most, over `least` where it is to pay. `facts` are of
    the loops around it."""

    loop: For
    least: Dim
    most: Dim
    facts: Facts

    @property
    def inside(self) -> Facts:
        return {**self.facts, self.loop.var: (self.loop.lo, self.loop.hi - 1)}


class _Loops:
    """The loops of a kernel, one after the other."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel  # its buffers are those of the loops distributed so far
        self.names = Names.of(kernel)
        self.root = roots(kernel)
        self.aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
        self.fixed = _of_other_sizes(kernel, self.root) | read_from_dims(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.rooms = rooms(kernel)

    def over_batch(self) -> Kernel:
        body = tuple(new for s in self.kernel.body for new in (self.is_over_batch(s) and self.of_examples(s)) or (s,))
        return replace(self.kernel, body=body)

    def is_over_batch(self, stmt: Stmt) -> TypeGuard[For]:
        return isinstance(stmt, For) and stmt.kind == "map" and stmt.hi == Dim.of(self.kernel.batch or "")

    def of_examples(self, loop: For, into: float = inf) -> Body | None:
        """Around products in what is made of an example, in its recurrences, too, and in loops of `into` statements."""
        own = self.own(loop)
        if into < inf or any(isinstance(s, For) and s.kind == "seq" for s in loop.body):
            totals = sums(loop.body, {b.name: b for b in self.kernel.buffers if b.name in own - self.aliased})
            loop = replace(loop, body=_totalled(loop.body, totals))
        least = loop.hi if into == inf else Dim.of(FEW)  # small matrices stay in loops that people wrote
        return self.distributed(_Many(loop, least, loop.hi, {}), own, into)

    def over_rows(self) -> Kernel:
        body = self.body(self.kernel.body, {})
        return replace(self.kernel, body=body)

    def body(self, body: Body, facts: Facts) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, facts))

    def stmt(self, stmt: Stmt, facts: Facts) -> Body:
        """The outer ones of loops first; examples where there are products for none of their loops."""
        if isinstance(stmt, For):
            if stmt.kind == "map" and not self.is_over_batch(stmt) and len(stmt.body) > 1:
                if (strips := self.in_strips(stmt, facts)) is not None:
                    return strips
            facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
        new = map_bodies(stmt, lambda inner: self.body(inner, facts))
        made = self.of_examples(stmt, into=2) if new == stmt and self.is_over_batch(stmt) else None
        return (new,) if made is None else made

    def in_strips(self, loop: For, facts: Facts) -> Body | None:
        """A loop of the user, distributed; where it is not known to be short, in each strip of it."""
        length, row = loop.hi - loop.lo, Dim.of(loop.var)
        least = length if length.value is not None else Dim.of(FEW)
        if nonnegative(ROWS - length, facts):
            moved = substitute(loop.body, {loop.var: loop.lo + row})
            all_rows = replace(loop, lo=ZERO, hi=length, body=moved)
            return self.distributed(_Many(all_rows, least, largest(length, facts), facts), self.own(loop))
        names = Names(self.names.taken)
        strip, strips = names.fresh("strip"), (length + (ROWS - 1)) // ROWS
        first = Dim.of(strip) * ROWS
        moved = substitute(loop.body, {loop.var: loop.lo + first + row})
        part = replace(loop, lo=ZERO, hi=minimum(Dim.of(ROWS), length - first), body=moved)
        least = Dim.of(FEW if length.value is None else ROWS)
        facts = {**facts, strip: (ZERO, strips - 1)}
        made = self.distributed(_Many(part, least, Dim.of(ROWS), facts), self.own(loop))
        if made is None:
            return None
        self.names.taken.add(strip)
        return (For(strip, ZERO, strips, made),)

    def own(self, loop: For) -> set[str]:
        """What nothing outside of the loop touches, by whatever name."""
        inside = Counter(a.buffer for a in accesses((loop,)))
        elsewhere = {self.root[n] for n, count in self.uses.items() if inside[n] < count}
        return self.of_memory(inside) - self.of_memory(elsewhere)

    def of_memory(self, names: Iterable[str]) -> set[str]:
        """All names of the memory that these are names of."""
        memory = {self.root.get(n, n) for n in names}
        return {n for n, root in self.root.items() if root in memory}

    def distributed(self, many: _Many, own: set[str], into: float = 1) -> Body | None:
        """None where there is no such product, or what would have to be kept for all of them is too much."""
        loop, table = many.loop, {b.name: b for b in self.kernel.buffers}
        if has(loop.body, Grow) or not _in_order(loop):
            return None
        private = {n for n in own if table[self.root[n]].kind in ("temp", "list")}
        # The loop as it would be with an axis for it in every temporary shows which statements are products.
        wide = _by_rows(loop.body, loop, private - self.fixed)
        found = _Products(
            State.of(self.widened(many, private - self.fixed)), replace(many, loop=replace(loop, body=wide)), into
        )
        targets = found.targets(wide)
        if not targets:
            return None
        once = _alike(loop, private - self.fixed - self.aliased, self.root)
        pieces = list(_pieces(loop.body, wide, found, targets, once))
        steps = {n for step in _steps(pieces) for n in self.of_memory(touched((step,)))} & private
        uses = Counter(n for p in _runs(pieces) for n in self.of_memory(touched(p)))
        shared = {n for n in private if uses[n] > 1 and n not in once} | steps
        most = {n: 2 if n in steps else 1 for n in shared}
        if self.is_over_batch(loop):  # as much as the layer takes or gives of each example is not too much
            most |= {n: 2 for n in shared if degree(table[n]) == 2 and grows(table[n].shape) in self.rooms}
            less = {n for s, seen in zip(loop.body, wide) if found.made(seen) for n in of_terms(s, self.kernel)}
            most |= {n: degree(table[n]) for n in shared & less}
        if shared & self.fixed or any(table[n].kind == "list" or degree(table[n]) > k for n, k in most.items()):
            return None
        self.kernel = self.widened(many, shared)
        return _apart(pieces, self.around(many, shared, once - steps))

    def around(self, many: _Many, shared: set[str], once: set[str]) -> Callable[[Body], Stmt]:
        """What makes a loop around each of the pieces; not where it only sets what is alike for all."""
        loop, used = many.loop, False

        def of(run: Body) -> Stmt:
            nonlocal used
            if _sets(run[0], once) and not self.of_memory(touched(run)) & shared:
                return run[0]
            if isinstance(run[0], Check) and _of_all(run[0], loop):
                if nonnegative(loop.hi - 1, many.facts):
                    return run[0]
                return If(Op("greater", (Int(loop.hi), Const(0, "i64")), "bool"), run)
            var = self.names.fresh(loop.var) if used else loop.var
            used = True
            return replace(loop, var=var, body=substitute(_by_rows(run, loop, shared), {loop.var: Dim.of(var)}))

        return of

    def widened(self, many: _Many, names: set[str]) -> Kernel:
        """The kernel with an axis for the loop as the first of some temporaries."""
        wide = tuple(replace(b, shape=(many.most, *b.shape)) if b.name in names else b for b in self.kernel.buffers)
        return replace(self.kernel, buffers=wide)


def _of_other_sizes(kernel: Kernel, root: Mapping[str, str]) -> set[str]:
    """Names of memory whose names are not all of as many elements: none of them can have an axis more."""
    table = buffers(kernel)
    odd = {
        root[b.name]
        for b in kernel.buffers
        if without_remainder(product(b.shape) - product(table[root[b.name]].shape)) != ZERO
    }
    return {n for n in table if root[n] in odd}


def sums(body: Body, private: Mapping[str, Buffer]) -> dict[str, str]:
    """What an example only adds up, from 0, for all of it to be added to a sum of all examples -> that one."""
    found: dict[str, str] = {}
    for position, stmt in enumerate(body):
        loops, inside = perfect(stmt) if isinstance(stmt, For) else ([], ())
        match inside:
            case [Store(total, index, Load(own, same), "add")] if index == same and own in private:
                whole = tuple(loop.hi for loop in loops) == private[own].shape
                if whole and index == tuple(Dim.of(loop.var) for loop in loops):
                    before, after = body[:position], body[position + 1 :]
                    modes = [a.mode for a in accesses(before) if a.buffer == own]
                    begun = modes.count("w") == sum(_clears(s, {own}, 0) for s in before) == 1
                    if begun and set(modes) == {"w", "add"} and own not in touched(after):
                        found[own] = total
    return found


def _totalled(body: Body, totals: Mapping[str, str]) -> Body:
    """What the steps of a loop add to the example's own sums they add to those of all: so each step does it for all
    examples in one product."""

    def is_about(stmt: Stmt) -> bool:
        match perfect(stmt)[1] if isinstance(stmt, For) else (stmt,):
            case [Store(total, _, Load(own), "add")] if totals.get(own) == total:
                return True
        return bool(totals) and _clears(stmt, set(totals))

    kept = tuple(s for s in body if not is_about(s))
    return map_places(kept, lambda name, index: (totals.get(name, name), index))


@dataclass(frozen=True)
class _Step:
    """A recurrence that the loop goes into."""

    loop: For
    pieces: tuple[_Step | Body, ...]


class _Products:
    """Which statements of the loop are products of matrices, were it around each of them alone."""

    def __init__(self, state: State, many: _Many, least: float) -> None:
        self.state, self.many, self.loop = state, many, many.loop
        self.least = least  # statements in a map for the loop to go into it, as into any recurrence

    def made(self, stmt: Stmt) -> str | None:
        """The buffer of the product that a statement is for all of them, and is not for one."""
        wide = replace(self.loop, body=(stmt,))
        product = self.state.recognised(wide, self.many.facts)
        if product is None or self.state.recognised(stmt, self.many.inside) is not None:
            return None
        pays = self.state.recognised(replace(wide, hi=self.many.least), self.many.facts) is not None
        return product[1].buffer if pays else None

    def targets(self, body: Body) -> set[str]:
        found = {made for s in body if (made := self.made(s)) is not None}
        return found.union(*(self.targets(s.body) for s in body if self.recurs(s)))

    def recurs(self, stmt: Stmt) -> TypeGuard[For]:
        """Whether it is a loop of as many steps for each of them."""
        if not isinstance(stmt, For) or (stmt.kind != "seq" and len(stmt.body) < self.least):
            return False
        return self.loop.var not in stmt.lo.symbols() | stmt.hi.symbols()


def _pieces(
    body: Body, wide: Body, found: _Products, targets: set[str], once: Set[str] = frozenset()
) -> Iterator[_Step | Body]:
    """Statements that stay together; those that are products, or begin one, alone, and those that only set what is to
    be set `once`; the recurrences with products."""
    run: list[Stmt] = []
    for stmt, seen in zip(body, wide, strict=True):
        if found.recurs(seen) and found.targets(seen.body):
            assert isinstance(stmt, For)
            piece: _Step | Body = _Step(stmt, tuple(_pieces(stmt.body, seen.body, found, targets)))
        elif isinstance(stmt, Check) and not _of_all(stmt, found.loop):
            run.append(stmt)
            continue
        elif isinstance(stmt, Check) and not any(isinstance(s, Check) for s in walk(run)):
            yield (stmt,)  # before what computes only, and could as well be told after it
            continue
        elif isinstance(stmt, Check) or found.made(seen) is not None or _clears(seen, targets) or _sets(stmt, once):
            piece = (stmt,)
        else:
            run.append(stmt)
            continue
        if run:
            yield tuple(run)
        run = []
        yield piece
    if run:
        yield tuple(run)


def _alike(loop: For, private: set[str], root: Mapping[str, str]) -> set[str]:
    """The temporaries that each iteration sets to the same: nothing that sets them hangs on the iteration."""
    alike, before = set(private), None
    while alike != before:
        before = set(alike)
        changes = {root[n] for n in written(loop.body) - alike}
        for stmt in loop.body:
            sets, reads = written((stmt,)), {root[a.buffer] for a in accesses((stmt,)) if a.mode == "r"}
            fixed = substitute((stmt,), {loop.var: ZERO}) == (stmt,) and not has((stmt,), Check, While)
            if not fixed or reads & changes or not sets <= alike:
                alike -= sets
    return alike


def _sets(stmt: Stmt, once: Set[str]) -> bool:
    sets = written((stmt,))
    return bool(sets) and sets <= once


def _in_order(loop: For) -> bool:
    """Whether the first fault is the first one still: all iterations come to all checks, but for those of one statement
    behind which there are none. Or there is one only."""
    if sum(isinstance(s, Check) for s in walk(loop.body)) == sum(isinstance(s, Check) for s in loop.body) <= 1:
        return True
    told = [sure for s in loop.body if (sure := [*_told((s,), loop)])]
    same = all(_of_all(s, loop) for s in walk(loop.body) if isinstance(s, Check))
    return same and all(all(sure) for sure in told[:-1])


def _told(body: Body, loop: For, sure: bool = True) -> Iterator[bool]:
    """Of each check, whether all iterations come to it."""
    for stmt in body:
        if isinstance(stmt, Check):
            yield sure
        still = isinstance(stmt, For) and not any(loop.var in d.symbols() or dim_loads(d) for d in (stmt.lo, stmt.hi))
        for inside in bodies(stmt):
            yield from _told(inside, loop, sure and still)


def _of_all(check: Check, loop: For) -> bool:
    """Whether what it asks is the same for all iterations."""
    told = (check.cond, *map(Int, check.info))
    return not own_accesses(check) and not any(loop.var in symbols(e) for e in told)


def _steps(pieces: Iterable[_Step | Body]) -> list[For]:
    return [p.loop for p in pieces if isinstance(p, _Step)]


def _runs(pieces: Iterable[_Step | Body]) -> Iterator[Body]:
    for piece in pieces:
        if isinstance(piece, _Step):
            yield from _runs(piece.pieces)
        else:
            yield piece


def _apart(pieces: Iterable[_Step | Body], around: Callable[[Body], Stmt]) -> Body:
    return tuple(replace(p.loop, body=_apart(p.pieces, around)) if isinstance(p, _Step) else around(p) for p in pieces)


def _clears(stmt: Stmt, targets: set[str], to: float | None = None) -> bool:
    """Whether it sets to a constant what a product is added to."""
    inside = perfect(stmt)[1] if isinstance(stmt, For) else (stmt,)
    sets = all(isinstance(s, Store) and s.buffer in targets and isinstance(s.value, Const) for s in inside)
    return sets and (to is None or all(s.value.value == to for s in inside))  # type: ignore[union-attr]


def _by_rows(body: Body, loop: For, names: set[str]) -> Body:
    row = Dim.of(loop.var)
    return map_places(body, lambda name, index: (name, (row, *index) if name in names else index))
