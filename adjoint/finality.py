"""When the final content of an array serves the reverse sweep: facts about the writes into it.

    R = np.zeros((n, n)); for i ...: for j ...: R[i, j] = f(R[i - 1, j], R[i, j - 1])

Every element is written before it is read and never again, so what the reverse sweep reads is what the forward
sweep read, and nothing need be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    NewAxis,
    Slice,
    Stmt,
    Store,
    While,
    blocks,
    children,
    stmt_exprs,
    walk_stmts,
)
from .activity import flows


@dataclass(frozen=True)
class Access:
    items: tuple[Item, ...] | None  # None: the whole array
    loops: tuple[For | While, ...]  # outermost first
    position: int  # in the order of the text
    plain: bool = True  # a write that overwrites (not +=)


def final_when_read(array: str, body: Sequence[Stmt]) -> bool:
    """Whether each read of the array sees what its element holds at the very end."""
    writes, reads = _accesses(array, body)
    outside = _loops_around_making(array, body)
    return all(_settled(write, read, outside) for write in writes for read in reads)


def written_once(body: Sequence[Stmt], varied: set[str]) -> set[str]:
    """Arrays made constant and then written by one statement, at a place of its own in every iteration."""
    makers: dict[str, list[tuple[Stmt, int]]] = {}
    for stmt, depth in _with_depth(body, 0):
        if isinstance(stmt, Assign):
            makers.setdefault(stmt.name, []).append((stmt, depth))
    found = set()
    for name, made in makers.items():
        writes, _ = _accesses(name, body)
        if len(made) != 1 or len(writes) != 1 or not writes[0].plain:
            continue
        maker, depth = made[0]
        assert isinstance(maker, Assign)
        loops = writes[0].loops[depth:]
        items = writes[0].items
        if items is not None and not flows(maker.value) & varied and apart(items, loops):
            found.add(name)
    return found


def _loops_around_making(array: str, body: Sequence[Stmt]) -> int:
    """In how many loops an array is made, if one statement makes it: each of their iterations has one of its own."""
    depths = [depth for stmt, depth in _with_depth(body, 0) if isinstance(stmt, Assign) and stmt.name == array]
    return depths[0] if len(depths) == 1 else 0


def _settled(write: Access, read: Access, outside: int) -> bool:
    shared = [w for w, r in zip(write.loops, read.loops, strict=False) if w is r][outside:]
    if not shared:
        return write.position < read.position
    if read.items is None or not write.plain:
        return False
    for loop in shared:
        if isinstance(loop, While):
            return False
        place = place_of(write.items, loop.var, [other.var for other in write.loops if isinstance(other, For)])
        if place is None:
            return False
        axis, offset = place
        first, last = _reach(read.items[axis]) if axis < len(read.items) else (None, None)
        furthest = last if loop.step > 0 else first
        parts = furthest.split(loop.var) if furthest is not None else None
        if parts is None or parts[0] != Dim.of(1) or (parts[1] - offset).value is None:
            return False
        ahead = ((parts[1] - offset).value or 0) * loop.step
        if first != last and ahead >= 0:
            return False
        if ahead < 0:
            return True
        if ahead > 0:
            return False
    return write.position < read.position


def _reach(item: Item) -> tuple[Dim | None, Dim | None]:
    """The first and the last place that an item of a subscript means."""
    match item:
        case At(index):
            return value_of(index), value_of(index)
        case Slice(step=1, first=first, extent=extent):
            return first, first + extent - 1
    return None, None


def apart(items: Sequence[Item], loops: Sequence[For | While]) -> bool:
    """Whether no two iterations of these loops mean the same place."""
    counters = [loop.var for loop in loops if isinstance(loop, For)]
    return len(counters) == len(loops) and all(place_of(items, var, counters) is not None for var in counters)


def of_axes(items: Sequence[Item]) -> list[Item]:
    """The item of each axis of the array: `y[i, None]` has one."""
    return [item for item in items if not isinstance(item, NewAxis)]


def place_of(items: Sequence[Item] | None, var: str, counters: Sequence[str]) -> tuple[int, Dim] | None:
    """(axis, c) where the axis is indexed by var + c, and c by none of the counters: y[i, j + 1], not y[i + j]."""
    for axis, item in enumerate(of_axes(items or ())):
        index = value_of(item.index) if isinstance(item, At) else None
        parts = index.split(var) if index is not None else None
        if parts is not None and parts[0] == Dim.of(1) and not parts[1].symbols() & set(counters):
            return axis, parts[1]
    return None


def _accesses(array: str, body: Sequence[Stmt]) -> tuple[list[Access], list[Access]]:
    writes: list[Access] = []
    reads: list[Access] = []
    counter = [0]

    def visit(block: Sequence[Stmt], loops: tuple[For | While, ...]) -> None:
        for stmt in block:
            counter[0] += 1
            inner = (*loops, stmt) if isinstance(stmt, (For, While)) else loops
            for expr in stmt_exprs(stmt):
                _reads(expr, array, inner if isinstance(stmt, While) else loops, counter[0], reads)
            if isinstance(stmt, Store) and stmt.base.id == array:
                counter[0] += 1
                writes.append(Access(stmt.items, loops, counter[0], stmt.op is None))
            for part in blocks(stmt):
                visit(part, inner)

    visit(body, ())
    return writes, reads


def _reads(expr: Expr, array: str, loops: tuple[For | While, ...], position: int, found: list[Access]) -> None:
    match expr:
        case Index(base=Name(id=id)) if id == array:
            found.append(Access(expr.items, loops, position))
            for child in children(expr)[1:]:
                _reads(child, array, loops, position, found)
            return
        case Name(id=id) if id == array:
            found.append(Access(None, loops, position))
    for child in children(expr):
        _reads(child, array, loops, position, found)


def _with_depth(body: Sequence[Stmt], depth: int) -> list[tuple[Stmt, int]]:
    found: list[tuple[Stmt, int]] = []
    for stmt in body:
        found.append((stmt, depth))
        for block in blocks(stmt):
            found += _with_depth(block, depth + isinstance(stmt, (For, While)))
    return found


__all__ = ["ZERO", "If", "apart", "final_when_read", "place_of", "walk_stmts", "written_once"]
