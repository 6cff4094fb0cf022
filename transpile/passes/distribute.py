"""The loop over the batch is distributed around products of a vector with a matrix that all examples share.

    for b:                                                 for b: for k: for j: h[b,j] += x[b,k] * w[k,j]
        for k: for j: h[j] += x[b,k] * w[k,j]      ->      for b: for j: y[b,j] = tanh(h[b,j])
        for j: y[j] = tanh(h[j])

Each of them is then one product of matrices (see products), and so is the gradient of w, whose depth is the batch.
Where they are steps of a recurrence, it goes into the recurrence: each step is one of all examples.
Iterations of the batch loop are independent, so any of its statements may run for all examples before the next
one does; a temporary that is alive in between gets an axis for the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from ..dims import Dim
from ..ir import Buffer, Check, Const, For, Grow, If, Int, Kernel, Load, Op, Stmt, Store
from .inline import inline_summands
from .order import perfect
from .products import State
from .tree import Body, Names, accesses, map_places, own_accesses, read_from_dims, substitute, symbols, touched, walk


def distribute(kernel: Kernel) -> Kernel:
    if kernel.batch is None:
        return kernel
    batch = Dim.of(kernel.batch)
    kernel = inline_summands(kernel)
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, For) and stmt.kind == "map" and stmt.hi == batch:
            outside = {n for s in kernel.body if s is not stmt for n in touched((s,))}
            aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
            sums = _sums(stmt.body, {b.name: b for b in kernel.buffers if b.name not in outside | aliased})
            made = _distributed(replace(stmt, body=_totalled(stmt.body, sums)), outside, aliased, kernel)
            loops, kernel = made or ((stmt,), kernel)
            body += loops
        else:
            body.append(stmt)
    return replace(kernel, body=tuple(body))


def _distributed(loop: For, outside: set[str], aliased: set[str], kernel: Kernel) -> tuple[Body, Kernel] | None:
    """None where there is no such product, or what would have to be kept for all examples is too much."""
    if any(isinstance(s, Grow) or (isinstance(s, Check) and not _of_all(s, loop)) for s in walk(loop.body)):
        return None
    inside = touched(loop.body)
    private = {
        b.name for b in kernel.buffers if b.kind in ("temp", "list") and b.name in inside and b.name not in outside
    }
    # The loop as it would be with the batch as an axis of every temporary shows which statements are products.
    wide, widened = _widened(kernel, loop, private)
    found = _Products(State.of(widened), wide)
    targets = found.targets(wide.body)
    if not targets:
        return None
    pieces = list(_pieces(loop.body, wide.body, found, targets))
    steps = {n for step in _steps(pieces) for n in touched((step,))} & private
    shared = {n for n in private if sum(n in touched(p) for p in _runs(pieces)) > 1} | steps
    table = {b.name: b for b in kernel.buffers}
    if shared & (aliased | read_from_dims(kernel)) or any(
        table[n].kind == "list" or len(table[n].shape) > (2 if n in steps else 1) for n in shared
    ):
        return None
    _, kernel = _widened(kernel, loop, shared)
    names, used = Names.of(kernel), False

    def around(run: Body) -> Stmt:
        nonlocal used
        if isinstance(run[0], Check):
            return If(Op("greater", (Int(loop.hi), Const(0, "i64")), "bool"), run)
        var = names.fresh(loop.var) if used else loop.var
        used = True
        return replace(loop, var=var, body=substitute(_by_rows(run, loop, shared), {loop.var: Dim.of(var)}))

    return _apart(pieces, around), kernel


def _sums(body: Body, private: Mapping[str, Buffer]) -> dict[str, str]:
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


def _totalled(body: Body, sums: Mapping[str, str]) -> Body:
    """What the steps of a recurrence add to the example's own sums they add to those of all: so each step does it for
    all examples in one product."""
    if not any(isinstance(s, For) and s.kind == "seq" for s in body):
        return body

    def is_about(stmt: Stmt) -> bool:
        match perfect(stmt)[1] if isinstance(stmt, For) else (stmt,):
            case [Store(total, _, Load(own), "add")] if sums.get(own) == total:
                return True
        return bool(sums) and _clears(stmt, set(sums))

    kept = tuple(s for s in body if not is_about(s))
    return map_places(kept, lambda name, index: (sums.get(name, name), index))


@dataclass(frozen=True)
class _Step:
    """A recurrence that the loop over the batch goes into."""

    loop: For
    pieces: tuple[_Step | Body, ...]


class _Products:
    """Which statements of the loop over the batch are products of matrices, were it around each of them alone."""

    def __init__(self, state: State, loop: For) -> None:
        self.state, self.loop = state, loop

    def made(self, stmt: Stmt) -> str | None:
        """The buffer of the product that a statement is for all examples, and is not for one."""
        product = self.state.recognised(replace(self.loop, body=(stmt,)), {})
        return None if product is None or self.state.recognised(stmt, {}) is not None else product[1].buffer

    def targets(self, body: Body) -> set[str]:
        found = {made for s in body if (made := self.made(s)) is not None}
        return found.union(*(self.targets(s.body) for s in body if self.recurs(s)))

    def recurs(self, stmt: Stmt) -> TypeGuard[For]:
        """Whether it is a loop of as many steps for each example."""
        if not isinstance(stmt, For) or stmt.kind != "seq":
            return False
        return self.loop.var not in stmt.lo.symbols() | stmt.hi.symbols()


def _pieces(body: Body, wide: Body, found: _Products, targets: set[str]) -> Iterator[_Step | Body]:
    """Statements that stay together; those that are products, or begin one, alone; the recurrences with products."""
    run: list[Stmt] = []
    for stmt, seen in zip(body, wide, strict=True):
        if found.recurs(seen) and found.targets(seen.body):
            assert isinstance(stmt, For)
            piece: _Step | Body = _Step(stmt, tuple(_pieces(stmt.body, seen.body, found, targets)))
        elif isinstance(stmt, Check) or found.made(seen) is not None or _clears(seen, targets):
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


def _of_all(check: Check, loop: For) -> bool:
    """Whether what it asks is the same for all examples."""
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


def _widened(kernel: Kernel, loop: For, names: set[str]) -> tuple[For, Kernel]:
    """The loop and the kernel's buffers with the batch as the first axis of some temporaries."""
    extent = (Dim.of(kernel.batch or ""),)
    wide = tuple(replace(b, shape=(*extent, *b.shape)) if b.name in names else b for b in kernel.buffers)
    return replace(loop, body=_by_rows(loop.body, loop, names)), replace(kernel, buffers=wide)


def _by_rows(body: Body, loop: For, names: set[str]) -> Body:
    row = Dim.of(loop.var)
    return map_places(body, lambda name, index: (name, (row, *index) if name in names else index))
