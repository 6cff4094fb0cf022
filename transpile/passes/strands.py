"""A recurrence of rows that do not touch each other is several recurrences, of a few rows each.

    for t seq:                                      for r in 0..(N + 7)//8:
        p[i,j] = product h[i,k] w[k,j] for i, j, k      for t seq:
        for i in 0..N: h[i] = f(p[i])          ->           p[8r + i,j] = product h[8r + i,k] w[k,j] for i, j, k
                                                            for i in 0..min(8, N - 8r): h[8r + i] = f(p[8r + i])

So threads meet once, not after every product of every step, and what a step leaves to the next stays in cache. All
rows may add to an array that none of them reads, as gradients of weights are. Of recurrences with products, whose rows
are a batch; others run one example at a time anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..dims import Dim, minimum
from ..ir import Comment, For, Kernel, Product, Stmt
from .tree import Access, Body, Index, Names, accesses, buffers, map_bodies, map_places, roots, substitute

ROWS = 8  # in a strand: so many share what a product loads


def strands(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    return replace(kernel, body=state.body(kernel.body), buffers=tuple(state.table.values()))


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.uses = Counter(self.root[a.buffer] for a in accesses(kernel.body))

    def body(self, body: Body) -> Body:
        return tuple(self.stmt(s) for s in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == "seq" and any(isinstance(s, Product) for s in stmt.body):
            for extent in dict.fromkeys(_extents(stmt.body)):
                rows = [_row(s, extent) for s in stmt.body]
                if extent.value is None and stmt.var not in extent.symbols():
                    if (axes := self.axes(stmt, rows)) is not None:
                        return self.split(stmt, extent, rows, axes)
        if isinstance(stmt, For) and stmt.kind == "map":
            return stmt  # threads share its iterations; inside, a product of all rows is the faster one
        return map_bodies(stmt, self.body)

    def axes(self, loop: For, rows: list[str | None]) -> dict[str, int] | None:
        """Where the row stands in what the loop writes; None where a row may read what another one writes."""
        if any(row is None and not isinstance(s, Comment) for s, row in zip(loop.body, rows, strict=True)):
            return None
        touching: dict[str, list[tuple[int, Access]]] = {}
        for k, stmt in enumerate(loop.body):
            for a in accesses((stmt,)):
                touching.setdefault(self.root[a.buffer], []).append((k, a))
        found: dict[str, int] = {}
        for name, places in touching.items():
            if all(a.mode == "r" for _, a in places):
                continue
            if any(a.index is None for _, a in places):
                return None
            axes = {_axis(a, rows[k]) for k, a in places}
            modes = {a.mode for _, a in places}
            named = any(rows[k] in d.symbols() for k, a in places for d in a.index or ())
            if axes == {None} and modes == {"add"} and not named:
                continue  # all rows add to it, and none reads it
            axis = axes.pop()
            of_one = self.uses[name] == len(places) and len({k for k, _ in places}) == 1
            if axes or (axis is None and not of_one) or len({a.buffer for _, a in places}) > 1:
                return None
            if axis is not None and self.uses[name] == len(places) and self.table[name].kind == "temp":
                found[name] = axis
        return found

    def split(self, loop: For, extent: Dim, rows: list[str | None], axes: dict[str, int]) -> For:
        """The loop over strands; what only lives in the loop has room for one of them."""
        r = self.names.fresh("strand")
        first, count = Dim.of(r) * ROWS, minimum(Dim.of(ROWS), extent - Dim.of(r) * ROWS)
        body: list[Stmt] = []
        for stmt, row in zip(loop.body, rows, strict=True):
            if row is not None:
                body += substitute((_of_rows(stmt, row, count),), {row: first + Dim.of(row)})
        for name, axis in axes.items():
            shape = self.table[name].shape
            self.table[name] = replace(self.table[name], shape=(*shape[:axis], Dim.of(ROWS), *shape[axis + 1 :]))

        def place(name: str, index: Index) -> tuple[str, Index]:
            if name not in axes:
                return name, index
            axis = axes[name]
            return name, (*index[:axis], index[axis] - first, *index[axis + 1 :])

        inside = map_places(tuple(body), place)
        return For(r, Dim.of(0), (extent + (ROWS - 1)) // ROWS, (replace(loop, body=inside),), "map")


def _extents(body: Body) -> Iterator[Dim]:
    """What the rows may be as many as."""
    for stmt in body:
        if isinstance(stmt, For):
            yield stmt.hi
        elif isinstance(stmt, Product):
            yield from (stmt.rows[1], stmt.columns[1])


def _row(stmt: Stmt, extent: Dim) -> str | None:
    """The variable with which a statement goes over rows, independent of each other."""
    match stmt:
        case For(var, lo, hi, _, "map") if (lo, hi) == (Dim.of(0), extent):
            return var
        case Product(rows=(var, n)) if n == extent:
            return var
        case Product(columns=(var, n)) if n == extent:
            return var
        case Product(depth=(var, n), op="add") if n == extent:
            return var
    return None


def _of_rows(stmt: Stmt, row: str, count: Dim) -> Stmt:
    if isinstance(stmt, For):
        return replace(stmt, hi=count)
    assert isinstance(stmt, Product)
    rows, columns, depth = ((var, count if var == row else n) for var, n in stmt.axes)
    return replace(stmt, rows=rows, columns=columns, depth=depth, asked=())


def _axis(a: Access, row: str | None) -> int | None:
    """The axis that is the row alone."""
    found = [k for k, d in enumerate(a.index or ()) if row in d.symbols()]
    return found[0] if len(found) == 1 and a.index and a.index[found[0]] == Dim.of(row or "") else None
