"""What only asks for the largest or least of neighbours in memory is a loop of its own: `rows.h` has such loops.

    for j: e[j] = exp(x[j] - m); top max= e[j]    ->        for j: e[j] = exp(x[j] - m)
                                                            for j: top max= e[j]

gcc compares the lanes of a vector one after the other at the end of a loop: in a row of 64 that takes longer than the
row. What is in no array is put into one, a strip at a time. Sums stay: in which order they are added up must not hang
on what else a loop does. Last, beside `bits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims import ZERO, Dim, minimum, nonnegative
from ..ir import FLOATS, Buffer, Const, For, Kernel, Load, Op, Stmt, Store
from .tree import Body, Names, in_vectors, map_stmts, own_accesses, substitute

STRIP = 1024  # elements
SHORT = 64  # elements: no more of them are rather compared one by one


def rows(kernel: Kernel) -> Kernel:
    names = Names.of(kernel)
    table = {b.name: b for b in kernel.buffers}
    made: list[Buffer] = []

    def apart(stmt: Stmt) -> Body:
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.parallel:
            return (stmt,)
        asked = [s for s in stmt.body if _is_made_here(s, stmt, table)]
        if asked:
            left = replace(stmt, body=tuple(s for s in stmt.body if s not in asked))
            return (left, *(_own(replace(stmt, body=(s,), work=None), names) for s in asked))
        asked = [s for s in stmt.body if _is_made_nowhere(s, stmt, table)]
        return (_in_strips(stmt, asked, names, made),) if asked else (stmt,)

    return replace(kernel, body=map_stmts(kernel.body, apart), buffers=(*kernel.buffers, *made))


def _in_strips(loop: For, asked: list[Stmt], names: Names, made: list[Buffer]) -> For:
    """With rows for what is asked, which loops of their own go over."""
    strip = names.fresh("strip")
    lo = loop.lo + Dim.of(strip) * STRIP
    part = replace(loop, lo=lo, hi=minimum(lo + STRIP, loop.hi), work=None)
    at = (Dim.of(loop.var) - lo,)
    body: list[Stmt] = []
    asks: list[For] = []
    for stmt in loop.body:
        if stmt in asked:
            assert isinstance(stmt, Store)
            dtype = stmt.value.dtype  # type: ignore[union-attr]
            row = Buffer(names.fresh("row"), dtype, (Dim.of(STRIP),), "temp")
            made.append(row)
            body.append(Store(row.name, at, stmt.value))
            asks.append(_own(replace(part, body=(replace(stmt, value=Load(row.name, at, dtype)),)), names))
        else:
            body.append(stmt)
    return For(strip, ZERO, (loop.hi - loop.lo + (STRIP - 1)) // STRIP, (replace(part, body=tuple(body)), *asks), "seq")


def _own(loop: For, names: Names) -> For:
    var = names.fresh(loop.var)
    return replace(loop, var=var, body=substitute(loop.body, {loop.var: Dim.of(var)}))


def _is_made_here(stmt: Stmt, loop: For, table: Mapping[str, Buffer]) -> bool:
    """Whether it asks what the loop stores, and nothing else in the loop knows of the answer."""
    if (source := extreme_of(stmt, loop, table)) is None:
        return False
    assert isinstance(stmt, Store)
    others = [s for s in loop.body if s is not stmt]
    if not all(isinstance(s, Store) for s in others):
        return False
    makers = [s for s in others if isinstance(s, Store) and s.buffer == source.buffer]
    used = {name for s in others for name, _, _ in own_accesses(s)}
    return [(s.index, s.op) for s in makers] == [(source.index, None)] and stmt.buffer not in used


def _is_made_nowhere(stmt: Stmt, loop: For, table: Mapping[str, Buffer]) -> bool:
    """Whether it asks what is in no array, in a loop over vectors that knows nothing of the answer. Not a share of a
    long row, beside which the last vector does not count."""
    if not isinstance(stmt, Store) or stmt.index or stmt.op not in ("max", "min") or extreme_of(stmt, loop, table):
        return False
    if loop.lo != ZERO:
        return False
    size = loop.hi - loop.lo
    long = size.value > SHORT if size.value is not None else not nonnegative(Dim.of(STRIP) - size)  # no strip itself
    others = [s for s in loop.body if s is not stmt]
    asked = (
        isinstance(stmt.value, (Op, Load))
        and stmt.value.dtype in FLOATS
        and stmt.value.dtype == table[stmt.buffer].dtype
    )
    alone = not any(name == stmt.buffer for s in others for name, _, _ in own_accesses(s))
    return asked and alone and long and in_vectors(loop)


def extreme_of(stmt: Stmt, loop: For, table: Mapping[str, Buffer]) -> Load | None:
    """What a statement reads that asks for the largest, the least or the farthest from zero of neighbours in memory, in
    one variable."""
    if not isinstance(stmt, Store) or stmt.index or stmt.op not in ("max", "min"):
        return None
    match stmt.value:
        case Load() as source:
            pass
        case Op("abs", [Load() as source]) if stmt.op == "max":
            pass
        case Op("above" | "below", [Load() as source, Const()]):
            pass
        case _:
            return None
    if source.dtype not in FLOATS or table[stmt.buffer].dtype != source.dtype:
        return None
    return source if moves_by_one(source.index, table[source.buffer].shape, loop.var) else None


def moves_by_one(index: tuple[Dim, ...], shape: tuple[Dim, ...], var: str) -> bool:
    """Whether the next element in memory is that of the next iteration."""
    return step_of(index, shape, var) == 1


def step_of(index: tuple[Dim, ...], shape: tuple[Dim, ...], var: str) -> int | None:
    """How many elements of its row an iteration is from the next; None where that is not known, or it is in another."""
    if not index or len(index) != len(shape) or any(var in dim.symbols() for dim in index[:-1]):
        return None
    last = index[-1].split(var)
    return last[0].value if last is not None else None
