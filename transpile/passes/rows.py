"""What only asks for the largest or least of neighbours in memory is a loop of its own: `rows.h` has such loops.

    for j: e[j] = exp(x[j] - m); top max= e[j]    ->        for j: e[j] = exp(x[j] - m)
                                                            for j: top max= e[j]

gcc compares the lanes of a vector one after the other at the end of a loop: in a row of 64 that takes longer than the
row. Sums stay: in which order they are added up must not hang on what else a loop does. Last, beside `bits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims import ONE, Dim
from ..ir import FLOATS, Buffer, For, Kernel, Load, Stmt, Store
from .tree import Body, Names, map_stmts, own_accesses, substitute


def rows(kernel: Kernel) -> Kernel:
    names = Names.of(kernel)
    table = {b.name: b for b in kernel.buffers}

    def apart(stmt: Stmt) -> Body:
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.parallel:
            return (stmt,)
        asked = [s for s in stmt.body if _is_made_here(s, stmt, table)]
        if not asked:
            return (stmt,)
        left = replace(stmt, body=tuple(s for s in stmt.body if s not in asked))
        return (left, *(_own(replace(stmt, body=(s,), work=None), names) for s in asked))

    return replace(kernel, body=map_stmts(kernel.body, apart))


def _own(loop: For, names: Names) -> For:
    var = names.fresh(loop.var)
    return replace(loop, var=var, body=substitute(loop.body, {loop.var: Dim.of(var)}))


def _is_made_here(stmt: Stmt, loop: For, table: Mapping[str, Buffer]) -> bool:
    """Whether it asks what the loop stores, and nothing else in the loop knows of the answer."""
    if not is_extreme(stmt, loop, table):
        return False
    assert isinstance(stmt, Store)
    assert isinstance(stmt.value, Load)
    others = [s for s in loop.body if s is not stmt]
    if not all(isinstance(s, Store) for s in others):
        return False
    makers = [s for s in others if isinstance(s, Store) and s.buffer == stmt.value.buffer]
    used = {name for s in others for name, _, _ in own_accesses(s)}
    return [(s.index, s.op) for s in makers] == [(stmt.value.index, None)] and stmt.buffer not in used


def is_extreme(stmt: Stmt, loop: For, table: Mapping[str, Buffer]) -> bool:
    """Whether it is the largest or the least of neighbours in memory, in one variable."""
    if not isinstance(stmt, Store) or stmt.index or stmt.op not in ("max", "min"):
        return False
    source = stmt.value
    if not isinstance(source, Load) or source.dtype not in FLOATS or table[stmt.buffer].dtype != source.dtype:
        return False
    return moves_by_one(source.index, table[source.buffer].shape, loop.var)


def moves_by_one(index: tuple[Dim, ...], shape: tuple[Dim, ...], var: str) -> bool:
    """Whether the next element in memory is that of the next iteration."""
    if not index or len(index) != len(shape):
        return False
    last = index[-1].split(var)
    return last is not None and last[0] == ONE and not any(var in dim.symbols() for dim in index[:-1])
