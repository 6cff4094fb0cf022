"""Products of which only a part is asked for: the scores that a mask leaves of an attention.

    s[i, j] = product q[i, k] k[j, k]                     s[i, j] = product q[i, k] k[j, k]   where i - j >= 0
    ... where(i >= j, s[i, j], -inf) ...           ->     ... where(i >= j, s[i, j], -inf) ...

Elements that nobody asks for need not be made: they hold what was there before, which every reader discards. What is a
tile of them is left out (`lc_product` in `gemm.h`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..dims import Dim, maximum, minimum
from ..ir import Cast, Expr, For, Kernel, Load, Op, Product
from .guards import margins
from .ranges import conjuncts
from .tree import Body, accesses, dim_loads, has, map_stmts, own_exprs, walk

Read = tuple[tuple[Dim, ...], list[Dim]]  # the place, and what is not negative where it is asked for


def triangles(kernel: Kernel) -> Kernel:
    if not has(kernel.body, Product):
        return kernel
    return replace(kernel, body=map_stmts(kernel.body, lambda s: (_asked(s, kernel) if isinstance(s, Product) else s,)))


def _asked(stmt: Product, kernel: Kernel) -> Product:
    """The product, knowing what is asked of it."""
    row, column = Dim.of(stmt.rows[0]), Dim.of(stmt.columns[0])
    if stmt.op is not None or stmt.index != (row, column) or not _is_own(stmt, kernel):
        return stmt
    counters = {s.var for s in walk(kernel.body) if isinstance(s, For)}
    found: set[Dim] | None = None
    for (i, j), held in _reads(kernel.body, stmt.buffer):
        apart = [(margin - (j - i) * side, side) for margin in held for side in (1, -1)]
        told = {rest + (column - row) * side for rest, side in apart if _is_known(rest, counters)}
        found = told if found is None else found & told
    return replace(stmt, asked=tuple(sorted(found or (), key=str)))


def _is_own(stmt: Product, kernel: Kernel) -> bool:
    """Whether nothing else is stored in what it makes, and no other product takes it whole."""
    name = stmt.buffer
    if any((b.name == name and (b.kind != "temp" or b.alias)) or b.alias == name for b in kernel.buffers):
        return False
    if any(isinstance(s, Product) and name in (s.left.buffer, s.right.buffer) for s in walk(kernel.body)):
        return False
    return sorted(a.mode for a in accesses(kernel.body) if a.buffer == name and a.mode != "r") == ["w"]


def _is_known(dim: Dim, counters: set[str]) -> bool:
    return not dim.symbols() & counters and not any(dim_loads(dim))


def _reads(body: Body, name: str) -> Iterator[Read]:
    for stmt in walk(body):
        for expr in own_exprs(stmt):
            yield from _in(expr, name, [])


def _in(expr: Expr, name: str, held: list[Dim]) -> Iterator[Read]:
    match expr:
        case Load(buffer, index) if buffer == name:
            yield index, held
        case Op("where", (cond, then, orelse)):
            yield from _in(cond, name, held)
            yield from _in(then, name, [*held, *(m for part in conjuncts(cond) for m in margins(part))])
            yield from _in(orelse, name, [*held, *margins(cond, wanted=False)])
        case Op(args=args):
            for part in args:
                yield from _in(part, name, held)
        case Cast(value):
            yield from _in(value, name, held)


def asked_between(stmt: Product) -> tuple[Dim, Dim]:
    """Where the columns begin and end that are asked for, from that of the row's number on."""
    row, column = Dim.of(stmt.rows[0]), Dim.of(stmt.columns[0])
    low, high = -stmt.rows[1], stmt.columns[1]
    for margin in stmt.asked:
        before, behind = margin - (column - row), margin + (column - row)
        if not before.symbols() & {stmt.rows[0], stmt.columns[0]}:
            low = maximum(low, -before)
        elif not behind.symbols() & {stmt.rows[0], stmt.columns[0]}:
            high = minimum(high, behind + 1)
    return low, high
