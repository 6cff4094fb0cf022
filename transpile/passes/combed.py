"""A row that windows step along is combed into as many rows as a step is long, while the windows go over it.

    for k in 0..K:                                 for m: p[0,m] = 0; p[1,m] = 0; q[0,m] = x[2*m]; q[1,m] = x[2*m + 1]
        for i in 0..n:                             for k in 0..K:
            d_x[2*i + k] += dy[i] * w[k]    ->         for i in 0..n: p[k % 2,k//2 + i] += dy[i] * w[k]
        for i in 0..n:                                 for i in 0..n: d_w[k] += dy[i] * q[k % 2,k//2 + i]
            d_w[k] += dy[i] * x[2*i + k]           for m: d_x[2*m] += p[0,m]; d_x[2*m + 1] += p[1,m]

A vector of what lies two elements apart is gathered, and scattered, element by element. Windows of few places, of a
number that is known, are written out (`overlap`), and have no loop to share such rows. The same is asked of the number
when it runs: windows that are longer than a step leave no place between them that is not theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..dims import ZERO, Atom, Dim
from ..ir import FLOATS, Buffer, Const, For, If, Kernel, Load, Stmt, Store
from .overlap import MOST_ROWS
from .questions import all_of, compared
from .tree import Access, Body, Index, Names, accesses, buffers, dim_loads, map_bodies, map_places, roots
from .windows import FARTHEST

LONG = 2  # steps: so long are windows that are worth rows of their own


@dataclass(frozen=True)
class _Row:
    """Places `step * i + k + start` along the last axis of an array."""

    buffer: str
    outer: Index
    start: Dim
    step: int


def combed(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made)) if state.made else kernel


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars)}
        self.made: list[Buffer] = []

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Body:
        if isinstance(stmt, For) and (rows := self.rows(stmt)):
            return self.apart(stmt, rows)
        return (map_bodies(stmt, self.body),)

    # -- which rows ------------------------------------------------------------------------------------------------
    def rows(self, window: For) -> dict[_Row, bool]:
        """The rows that a loop over windows steps along, and whether it adds to them."""
        inner = [s for s in window.body if isinstance(s, For)]
        if window.kind != "map" or window.parallel or window.lo != ZERO or not inner:
            return {}
        if not all(isinstance(s, Store) for s in (*(x for loop in inner for x in loop.body), *_beside(window))):
            return {}
        if (trips := window.hi.value) is not None and trips <= MOST_ROWS:
            return {}
        if not window.hi.symbols() <= self.sizes or any(dim_loads(window.hi)):
            return {}
        first = inner[0]
        alike = all(loop.kind == "map" and (loop.lo, loop.hi) == (ZERO, first.hi) for loop in inner)
        if not alike or window.var in first.hi.symbols() or self.most(first.hi) is None:
            return {}
        return self.found(window)

    def found(self, window: For) -> dict[_Row, bool]:
        touching = list(accesses(window.body))
        places = [(a, _row(a, window.var)) for a in touching]
        changed = {self.root[a.buffer] for a in touching if a.writes}
        found: dict[_Row, bool] = {}
        for _, row in places:
            if row is None:
                continue
            root = self.root[row.buffer]
            if root in changed and not self.adds_alone(row, [(a, r) for a, r in places if self.root[a.buffer] == root]):
                continue  # what is read is changed meanwhile, or known by another name
            found[row] = root in changed
        return found

    def adds_alone(self, row: _Row, touching: list[tuple[Access, _Row | None]]) -> bool:
        """Whether all that is done with a memory is to add to this row, and to others beside it."""
        return self.table[row.buffer].dtype in FLOATS and all(
            other is not None and a.mode == "add" and (other == row or _are_beside(row, other)) for a, other in touching
        )

    def most(self, extent: Dim) -> Dim | None:
        """No less than the extent, of sizes that are known when memory is reserved."""
        match extent.symbol:
            case Atom("min", (Dim() as p, Dim() as q)):
                known = [most for d in (p, q) if (most := self.most(d)) is not None]
                return min(known, key=lambda d: d.value is None, default=None)
        return extent if extent.symbols() <= self.sizes and not any(dim_loads(extent)) else None

    # -- apart -----------------------------------------------------------------------------------------------------
    def apart(self, window: For, rows: Mapping[_Row, bool]) -> Body:
        count = next(s.hi for s in window.body if isinstance(s, For))
        long = compared("greater_equal", window.hi, LONG * max(row.step for row in rows))
        names = {row: self.buffer(row, window, count) for row in rows}
        clear = tuple(self.cleared(row, names[row], window, count) for row, adds in rows.items() if adds)
        read = tuple(s for row, adds in rows.items() if not adds for s in self.moved(row, names[row], window, count))
        back = tuple(s for row, adds in rows.items() if adds for s in self.moved(row, names[row], window, count, "add"))
        inside = tuple(self.with_rows(s, window.var, names) if isinstance(s, For) else s for s in window.body)
        parts = (*clear, *read, replace(window, body=inside), *back)
        return (If(all_of([long, compared("greater_equal", count, 1)]), parts, (window,)),)

    def buffer(self, row: _Row, window: For, count: Dim) -> str:
        most = self.most(count)
        assert most is not None
        shape = (Dim.of(row.step), most + _reach(row, window) + 1)
        name = self.names.fresh(f"{row.buffer}_combed")
        self.made.append(Buffer(name, self.table[row.buffer].dtype, shape, "temp"))
        return name

    def cleared(self, row: _Row, name: str, window: For, count: Dim) -> For:
        m = self.names.fresh("m")
        zero = Const(0.0, self.table[row.buffer].dtype)
        body = tuple(Store(name, (Dim.of(r), Dim.of(m)), zero) for r in range(row.step))
        return For(m, ZERO, count + _reach(row, window), body)

    def moved(self, row: _Row, name: str, window: For, count: Dim, op: str | None = None) -> Body:
        """All that the windows touch, from an array to its rows; with an operation, from there to the array."""
        length = row.step * (count - 1) + window.hi
        whole = length // row.step
        m, rest = self.names.fresh("m"), self.names.fresh("r")

        def move(at: Dim, phase: Dim) -> Store:
            there, here = (*row.outer, row.start + row.step * at + phase), (phase, at)
            dtype = self.table[row.buffer].dtype
            if op is None:
                return Store(name, here, Load(row.buffer, there, dtype))
            return Store(row.buffer, there, Load(name, here, dtype), op)

        full = For(m, ZERO, whole, tuple(move(Dim.of(m), Dim.of(r)) for r in range(row.step)))
        return (full, For(rest, ZERO, length - row.step * whole, (move(whole, Dim.of(rest)),)))

    def with_rows(self, loop: For, k: str, names: Mapping[_Row, str]) -> For:
        def place(buffer: str, index: Index) -> tuple[str, Index]:
            row = _row(Access(buffer, index, "r", (loop,)), k)
            if row is None or row not in names:
                return buffer, index
            return names[row], (Dim.of(k) % row.step, Dim.of(k) // row.step + Dim.of(loop.var))

        return replace(loop, body=map_places(loop.body, place))


def _row(access: Access, k: str) -> _Row | None:
    """Which one it goes along; None where its places are no windows on a row, or are side by side."""
    if len(access.loops) != 1 or not access.index:
        return None
    *outer, last = access.index
    i = access.loops[0].var
    along = last.split(i)
    across = along[1].split(k) if along is not None else None
    if along is None or across is None:
        return None
    step = along[0].value
    fixed = (*outer, across[1])
    if step is None or not 1 < step <= FARTHEST or across[0].value != 1:
        return None
    if any(d.symbols() & {i, k} or any(dim_loads(d)) for d in fixed):
        return None
    return _Row(access.buffer, tuple(outer), across[1], step)


def _are_beside(row: _Row, other: _Row) -> bool:
    """Whether they are rows of one array that have no place in common."""
    apart = ((a - b).value for a, b in zip(row.outer, other.outer, strict=False))
    return row.buffer == other.buffer and any(apart)


def _reach(row: _Row, window: For) -> Dim:
    """How far the last window begins behind the first, in such a row."""
    return (window.hi - 1) // row.step


def _beside(window: For) -> Body:
    return tuple(s for s in window.body if not isinstance(s, For))


__all__ = ["combed"]
