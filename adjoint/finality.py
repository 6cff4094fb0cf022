"""When the final content of an array serves the reverse sweep: facts about the writes into it.

    R = np.zeros((n, n)); for i ...: for j ...: R[i, j] = f(R[i - 1, j], R[i, j - 1])

Every element is written before it is read and never again, so what the reverse sweep reads is what the forward
sweep read, and nothing need be saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd

from ..transpile.construct import value_of
from ..transpile.dims import ZERO, Dim
from ..transpile.program import (
    Assign,
    At,
    Expr,
    For,
    If,
    Index,
    Item,
    Name,
    Span,
    Stmt,
    Store,
    While,
    blocks,
    children,
    stmt_exprs,
    stored,
    walk,
    walk_stmts,
)
from .activity import flows
from .linear import Form, contradictory, difference
from .places import Access, Case, Guards, alike, cases, later, of_axes
from .rules import reads_result

LASTING = Dim.of("<last>")  # as the value of an array's name: the content that it is left with is meant


def final_when_read(array: str, body: Sequence[Stmt], called: set[str], gradient: Sequence[Stmt]) -> bool:
    """Whether each read of the array sees what its element holds at the very end, as far as it is one of those in the
    body of the gradient, where the array has these names. What that writes to it, it does before it goes back."""
    writes, reads = _accesses(array, body)
    outside = _loops_around_making(array, body)
    others = [s for s in walk_stmts(tuple(gradient)) if not (isinstance(s, Store) and s.base.id in called)]
    wanted = {items for stmt in others for e in stmt_exprs(stmt) for name in called for items in _read_items(e, name)}
    if not wanted <= {read.items for read in reads}:
        wanted |= {read.items for read in reads}
    return all(settled(write, read, outside) for write in writes for read in reads if read.items in wanted)


def settled_stores(body: Sequence[Stmt]) -> set[tuple[str, Span]]:
    """Writes after which nothing is written to the same place: (the array, where the statement stands)."""
    found: dict[tuple[str, Span], bool] = {}
    for array in stored(tuple(body)):
        writes, _ = _accesses(array, body)
        outside = _loops_around_making(array, body)
        for write in (w for w in writes if w.plain):
            after = replace(write, position=write.position + 1)
            lasting = all(settled(other, after, outside) for other in writes)
            found[array, write.span] = found.get((array, write.span), True) and lasting
    return {key for key, lasting in found.items() if lasting}


def never_read_again(array: str, body: Sequence[Stmt]) -> list[bool]:
    """For each write into the array, in the order of the text: whether nothing reads its place after it, in its
    iteration or a later one."""
    writes, reads = _accesses(array, body)
    reads += [w for w in writes if not w.plain]
    outside = _loops_around_making(array, body)
    stores = [w for w in writes if w.items is not None]
    return [all(settled(read, write, outside) for read in reads) for write in stores]


def written_once(body: Sequence[Stmt], varied: set[str]) -> set[str]:
    """Arrays made constant, each place of which at most one iteration of one statement writes then, or of one on each
    way of a branch."""
    makers: dict[str, list[tuple[Stmt, int]]] = {}
    for stmt, depth in _with_depth(body, 0):
        if isinstance(stmt, Assign):
            makers.setdefault(stmt.name, []).append((stmt, depth))
    found = set()
    for name, made in makers.items():
        writes, _ = _accesses(name, body)
        maker, depth = made[0]
        assert isinstance(maker, Assign)
        if len(made) == 1 and writes and not flows(maker.value) & varied and _once_each(writes, depth):
            found.add(name)
    return found


def _once_each(writes: Sequence[Access], outside: int) -> bool:
    """Whether no place is written twice. `outside`: how many of the loops around have an array of their own."""
    alone = all(w.plain and w.items is not None and _never_again(w, outside) for w in writes)
    return alone and all(_never_both(a, b, outside) for k, a in enumerate(writes) for b in writes[:k])


def _never_both(a: Access, b: Access, outside: int) -> bool:
    """Whether one place is never written by both: they are on two ways of a branch, or their places are apart."""
    if a.items == b.items and a.loops == b.loops and _on_other_ways(a, b):
        return True
    same = [form for loop in a.loops[:outside] for form in alike(loop, "write", "read")]
    return all(
        _never_equal(x, y) or contradictory([*x.forms, *y.forms, *same, *meeting(x, y)])
        for x in cases(a, "write")
        for y in cases(b, "read")
    )


def _never_equal(a: Case, b: Case) -> bool:
    """Whether they differ along an axis by what no steps make up for: 2 * i and 2 * i + 1."""
    for (low, high), (other, end) in zip(a.axes, b.axes, strict=False):
        distance = difference(low, other)
        if distance is not None and low == high and other == end:
            step = gcd(*(int(c) for v, c in distance.items() if v is not None))
            if step > 1 and distance.get(None, 0) % step:
                return True
    return False


def _on_other_ways(a: Access, b: Access) -> bool:
    """Whether a branch has one of them on each of its ways."""
    return any(c is d and way != other for c, way in a.guards for d, other in b.guards)


def _loops_around_making(array: str, body: Sequence[Stmt]) -> int:
    """In how many loops an array is made, if one statement makes it: each of their iterations has one of its own."""
    depths = [depth for stmt, depth in _with_depth(body, 0) if isinstance(stmt, Assign) and stmt.name == array]
    return depths[0] if len(depths) == 1 else 0


def settled(write: Access, read: Access, outside: int) -> bool:
    """Whether no write comes after a read of its place. `outside`: how many of the loops around have an array of
    their own in each iteration."""
    shared = [w for w, r in zip(write.loops, read.loops, strict=False) if w is r]
    return all(
        _never_after(shared, outside, [*a.forms, *b.forms, *meeting(a, b)], write.position < read.position)
        for a in cases(write, "write")
        for b in cases(read, "read")
    )


def _never_after(shared: Sequence[For | While], outside: int, meeting: list[Form], before: bool) -> bool:
    """Whether it contradicts `meeting`, that both mean one place, that the write is in a later iteration, or later in
    the same one (`before`: it is not)."""
    for level, loop in enumerate(shared):
        if level >= outside and not contradictory([*meeting, *later(loop, "write", "read")]):
            return False
        meeting = [*meeting, *alike(loop, "write", "read")]
    return before or contradictory(meeting)


def meeting(a: Case, b: Case) -> list[Form]:
    """That the two mean one place."""
    found = []
    for (low, high), (other_low, other_high) in zip(a.axes, b.axes, strict=False):
        found += [difference(high, other_low), difference(other_high, low)]
    return [f for f in found if f is not None]


def apart(items: Sequence[Item], shape: tuple[Dim, ...], loops: Sequence[For | While]) -> bool:
    """Whether no two iterations of these loops mean the same place: y[2 * i], but not y[i - 3], which counts from the
    end first."""
    return _never_again(Access(tuple(items), shape, tuple(loops), (), 0), 0)


def _never_again(write: Access, outside: int) -> bool:
    return settled(write, replace(write, position=write.position + 1), outside)


def place_of(items: Sequence[Item] | None, var: str, counters: Sequence[str]) -> tuple[int, Dim] | None:
    """(axis, c) where the axis is indexed by var + c, and c by none of the counters: y[i, j + 1], not y[i + j]."""
    for axis, item in enumerate(of_axes(items or ())):
        index = value_of(item.index) if isinstance(item, At) else None
        parts = index.split(var) if index is not None else None
        if parts is not None and parts[0] == Dim.of(1) and not parts[1].symbols() & set(counters):
            return axis, parts[1]
    return None


def _accesses(array: str, body: Sequence[Stmt]) -> tuple[list[Access], list[Access]]:
    """Its writes and reads. A name that several statements give an array is written whole by each of them; a statement
    whose rule reads what it makes reads it as it is then."""
    writes: list[Access] = []
    reads: list[Access] = []
    counter = [0]
    several = sum(isinstance(s, Assign) and s.name == array for s in walk_stmts(tuple(body))) > 1

    def visit(block: Sequence[Stmt], loops: tuple[For | While, ...], guards: Guards) -> None:
        for stmt in block:
            counter[0] += 1
            inner = (*loops, stmt) if isinstance(stmt, (For, While)) else loops
            for expr in stmt_exprs(stmt):
                around = inner if isinstance(stmt, While) else loops
                for items in _read_items(expr, array):
                    reads.append(Access(items, _shape(expr, array), around, guards, counter[0]))
            if isinstance(stmt, Store) and stmt.base.id == array:
                counter[0] += 1
                shape = stmt.base.type.shape
                writes.append(Access(stmt.items, shape, loops, guards, counter[0], stmt.op is None, stmt.span))
                counter[0] += 1
            if isinstance(stmt, Assign) and stmt.name == array:
                counter[0] += 1
                if several:
                    writes.append(Access(None, stmt.value.type.shape, loops, guards, counter[0]))
                    counter[0] += 1
                if reads_result(stmt.value):
                    reads.append(Access(None, stmt.value.type.shape, loops, guards, counter[0]))
            for which, part in enumerate(blocks(stmt)):
                held = (*guards, (stmt.cond, which == 0)) if isinstance(stmt, If) else guards
                visit(part, inner, held)

    visit(body, (), ())
    return writes, reads


def _shape(expr: Expr, array: str) -> tuple[Dim, ...]:
    return next(e.type.shape for e in walk(expr) if isinstance(e, Name) and e.id == array)


def _read_items(expr: Expr, array: str) -> Iterator[tuple[Item, ...] | None]:
    match expr:
        case Index(base=Name(id=id, value=value), items=items) if id == array:
            if value != LASTING:
                yield items
            for child in children(expr)[1:]:
                yield from _read_items(child, array)
            return
        case Name(id=id) if id == array:
            yield None
    for child in children(expr):
        yield from _read_items(child, array)


def _with_depth(body: Sequence[Stmt], depth: int) -> list[tuple[Stmt, int]]:
    found: list[tuple[Stmt, int]] = []
    for stmt in body:
        found.append((stmt, depth))
        for block in blocks(stmt):
            found += _with_depth(block, depth + isinstance(stmt, (For, While)))
    return found


__all__ = ["ZERO", "If", "apart", "final_when_read", "meeting", "place_of", "settled", "walk_stmts", "written_once"]
