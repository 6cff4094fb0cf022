"""The largest of a window is the largest of its columns, and neighbours share those.

    for j in 0..W:                                for q in 0..W + 2: column[q] = -inf
        m = -inf                                  for a in 0..3: if i + a < H:
        for a in 0..3: for b in 0..3:       ->        for q in 0..W + 2: column[q] max= x[i + a, q]
            if i + a < H: m max= x[i + a, j + b]  for j in 0..W:
        y[i, j] = m                                   m = -inf
                                                      for b in 0..3: m max= column[j + b]
                                                      y[i, j] = m

Nine looks at an element are six, those at an image go along memory also where windows go by steps, and what a border
asks of columns is where their loop goes: a column that is not there is less than any. In strips, so that columns stay
in the first cache. Not of sums, which would be rounded in another way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..dims import ZERO, Dim, maximum, minimum
from ..ir import Buffer, Expr, For, If, Int, Kernel, Load, Stmt, Store
from .accumulate import neutral
from .guards import margins
from .ranges import conjuncts
from .rows import moves_by_one, step_of
from .tree import (
    Body,
    Names,
    buffers,
    dim_loads,
    loads,
    map_expr,
    map_stmts,
    parts,
    roots,
    subst_expr,
    substitute,
    symbols,
    written,
)

STRIP = 256  # windows
SHORT = 16  # windows: fewer are no row


def separable(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = map_stmts(kernel.body, state.stmt)
    return replace(kernel, body=body, buffers=tuple(state.table.values()))


@dataclass
class _Window:
    """`for row: for column: if ...: m max= value`, of which the value, and each question, is of one column (as many
    steps on as the loop outside has made) or of none."""

    row: For
    column: For
    store: Store
    value: Expr  # with the place of the column in the place of its counter
    asked: tuple[Expr, ...]  # of all columns
    limits: tuple[Dim, ...]  # what is not negative of a column that is there
    step: int


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.names, self.root = buffers(kernel), Names.of(kernel), roots(kernel)

    def stmt(self, stmt: Stmt) -> Body:
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.parallel:
            return (stmt,)
        size = (stmt.hi - stmt.lo).value
        if (size is not None and size < SHORT) or any(any(dim_loads(d)) for d in (stmt.lo, stmt.hi)):
            return (stmt,)
        found = {k: w for k, s in enumerate(stmt.body) if (w := self.window(s, stmt)) is not None}
        return (self.in_strips(stmt, found),) if found else (stmt,)

    # -- whether -------------------------------------------------------------------------------------------------
    def window(self, nest: Stmt, loop: For) -> _Window | None:
        """What a nest in the loop asks for the largest of, if fewer looks do; its loops in either order."""
        if not isinstance(nest, For) or len(nest.body) != 1 or not isinstance(inner := nest.body[0], For):
            return None
        return self.of_columns(nest, inner, inner.body, loop) or self.of_columns(inner, nest, inner.body, loop)

    def of_columns(self, row: For, column: For, body: Body, loop: For) -> _Window | None:
        rows, columns = ((x.hi - x.lo).value or 0 for x in (row, column))
        if any(x.kind != "map" or x.parallel or x.lo.value is None for x in (row, column)):
            return None
        conds: list[Expr] = []
        while len(body) == 1 and isinstance(body[0], If) and not body[0].orelse:
            conds += conjuncts(body[0].cond)
            body = body[0].then
        if len(body) != 1 or not isinstance(store := body[0], Store) or store.op not in ("max", "min"):
            return None
        step = self.step((store.value, *conds), loop, column)
        if step is None or store.index or step > columns:  # what no window has is not looked at
            return None
        look = 1 if step == 1 else 2  # what it costs: no vector of memory is one of windows that go by steps
        if step * rows + columns * look >= rows * columns * look:
            return None
        at = {column.var: Dim.of(column.var) - Dim.of(loop.var) * step}
        value, *conds = (subst_expr(e, at) for e in (store.value, *conds))
        changed = {self.root[name] for name in written((loop,))}
        if any(self.root[x.buffer] in changed for e in (value, *conds) for x in loads(e)):
            return None
        if any(loop.var in symbols(e) for e in (value, *conds)):
            return None
        if not any(moves_by_one(x.index, self.table[x.buffer].shape, column.var) for x in loads(value)):
            return None
        own = [e for e in conds if column.var in symbols(e)]
        limits = [m for e in own for m in margins(e)]
        known = all(margins(e) for e in own) and all(_is_limit(m, row, column) for m in limits)
        asked = tuple(e for e in conds if e not in own)
        return _Window(row, column, store, value, asked, tuple(limits), step) if known else None

    def step(self, exprs: tuple[Expr, ...], loop: For, column: For) -> int | None:
        """By how many columns a window is from the next."""
        found: set[int | None] = set()
        for dim in _dims(exprs):
            if not dim.symbols() & {loop.var, column.var}:
                continue
            mine, other = dim.split(loop.var), dim.split(column.var)
            if mine is None or other is None or not (by := other[0].value) or (mine[0].value or 0) % by:
                return None
            found.add((mine[0].value or 0) // by)
        (step,) = found if len(found) == 1 else (None,)
        return step if step and step > 0 else None

    # -- how -----------------------------------------------------------------------------------------------------
    def in_strips(self, loop: For, found: dict[int, _Window]) -> For:
        strip = self.names.fresh("strip")
        start = loop.lo + Dim.of(strip) * STRIP
        count = minimum(Dim.of(STRIP), loop.hi - start)
        before: list[Stmt] = []
        rest: list[Stmt] = []
        steps = {window.step for window in found.values()}
        for k, stmt in enumerate(loop.body):
            made, left = (
                self.columns(found[k], start, count, loop) if k in found else self.beside(stmt, start, loop, steps)
            )
            before += made
            rest += left
        inside = replace(loop, lo=start, hi=start + count, body=tuple(rest), work=None)
        return For(strip, ZERO, (loop.hi - loop.lo + (STRIP - 1)) // STRIP, (*before, inside))

    def beside(self, stmt: Stmt, start: Dim, loop: For, steps: set[int]) -> tuple[list[Stmt], list[Stmt]]:
        """What else the loop looks up by the steps of windows is laid side by side as well."""
        if not isinstance(stmt, Store):
            return [], [stmt]
        changed = {self.root[name] for name in written((loop,))}
        made: list[Stmt] = []

        def picked(e: Expr) -> Expr:
            step = step_of(e.index, self.table[e.buffer].shape, loop.var) if isinstance(e, Load) else None
            if not isinstance(e, Load) or step not in steps - {1} or self.root[e.buffer] in changed:
                return e
            if any(any(dim_loads(d)) for d in e.index):
                return e
            name, k = self.row(e.dtype, STRIP), self.names.fresh(loop.var)
            source = e.subs({loop.var: start + Dim.of(k)})
            made.append(For(k, ZERO, minimum(Dim.of(STRIP), loop.hi - start), (Store(name, (Dim.of(k),), source),)))
            return Load(name, (Dim.of(loop.var) - start,), e.dtype)

        value = map_expr(stmt.value, picked)
        return made, [replace(stmt, value=value)]

    def row(self, dtype: str, size: int) -> str:
        name = self.names.fresh("column")
        self.table[name] = Buffer(name, dtype, (Dim.of(size),), "temp")
        return name

    def columns(self, window: _Window, start: Dim, count: Dim, loop: For) -> tuple[list[Stmt], list[Stmt]]:
        """The loops that make the columns of a strip, and what is left of the window in its loop: of windows that go by
        steps, the columns of each phase lie side by side."""
        row, column, store, step = window.row, window.column, window.store, window.step
        width = (column.hi - column.lo).value or 0
        dtype, op = self.table[store.buffer].dtype, store.op or ""
        made = self.row(dtype, step * (STRIP - 1) + width)
        first, end = start * step + column.lo, (count - 1) * step + width

        q, low, high = self.names.fresh(column.var), ZERO, end
        for limit in window.limits:
            by, rest = limit.subs({column.var: Dim.of(q) + first}).split(q) or (ZERO, ZERO)
            low, high = (maximum(low, -rest), high) if by.value == 1 else (low, minimum(high, rest + 1))
        low = minimum(low, end) if low != ZERO else low

        def none(lo: Dim, hi: Dim) -> For:
            k = self.names.fresh(column.var)
            return For(k, lo, hi, (Store(made, (Dim.of(k),), neutral(op, dtype)),))

        # Columns that are there, and those that are not, apart: then one loop makes the first from all rows.
        before = [none(ZERO, low)] if low != ZERO else []
        before += [none(maximum(low, high), end)] if high != end else []
        before.append(none(low, high))
        value = subst_expr(window.value, {column.var: Dim.of(q) + first})
        inner: Stmt = For(q, low, high, (Store(made, (Dim.of(q),), value, op),))
        for cond in reversed(window.asked):
            inner = If(cond, (inner,))
        a = self.names.fresh(row.var)
        rows = replace(row, var=a, body=substitute((inner,), {row.var: Dim.of(a)}))

        phases = [made]
        if step > 1:
            phases = [self.row(dtype, STRIP + (width - 1 - phase) // step) for phase in range(step)]
        turned: list[Stmt] = []
        for phase, name in enumerate(phases if step > 1 else ()):
            k = self.names.fresh(loop.var)
            source = Load(made, (Dim.of(k) * step + phase,), dtype)
            turned.append(For(k, ZERO, count + (width - 1 - phase) // step, (Store(name, (Dim.of(k),), source),)))
        at = Dim.of(loop.var) - start
        looks = [Load(phases[b % step], (at + b // step,), dtype) for b in range(width)]
        return [*before, rows, *turned], [replace(store, value=look) for look in looks]


def _dims(exprs: tuple[Expr, ...]) -> Iterator[Dim]:
    """All places and numbers in expressions."""
    for expr in exprs:
        for part in parts(expr):
            if isinstance(part, Load):
                yield from part.index
            elif isinstance(part, Int):
                yield part.dim


def _is_limit(margin: Dim, row: For, column: For) -> bool:
    """Whether it says from where, or up to where, columns are there: the same in all rows."""
    split = margin.split(column.var)
    fixed = split is not None and split[0].value in (1, -1)
    return fixed and row.var not in margin.symbols() and not any(dim_loads(margin))


__all__ = ["separable"]
