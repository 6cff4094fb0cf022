"""Sums of rows are carried over many of them: each lane of a vector adds up on its own, and lanes are joined once for
all rows of a block.

    for j in 0..H:                          rows = max(1, 1024 // W); wide = 0                              (float64)
        for k in 0..W: g += f(j, k)    ->   for q in 0..(H + rows - 1)//rows:
                                                part = 0                                      (one for each lane)
                                                for j in q*rows .. min(H, q*rows + rows):
                                                    for k in 0..W: part += f(j, k)
                                                wide += part
                                            g += real(wide)

As in `accumulate`, a lane adds at most a block of numbers, and blocks are added in double. A row that is longer is cut
into blocks itself, and joins what it has between two of them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from ..dims import ANY, Dim, Facts, largest, maximum, minimum, nonnegative
from ..ir import FLOATS, Buffer, Cast, Comment, Const, For, If, Int, Kernel, Load, Op, Stmt, Store
from .accumulate import BLOCK, Place, innermost, redirected, still
from .depend import Memory
from .tree import Body, Names, accesses, buffers, dim_loads, map_bodies, walk
from .work import work

SHORTEST = 8  # iterations of a loop that is worth vectors


def carry(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts, False)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


@dataclass(frozen=True)
class _Sum:
    """What is added up at a place: in lanes, and in double."""

    place: Place
    part: Buffer
    wide: Buffer

    @property
    def start(self) -> Store:
        return Store(self.part.name, (), Const(0.0, self.part.dtype))

    @property
    def joined(self) -> Store:
        value = Load(self.part.name, (), self.part.dtype)
        return Store(self.wide.name, (), Cast(value, "f64"), "add")

    @property
    def begun(self) -> Store:
        return Store(self.wide.name, (), Const(0.0, "f64"))

    @property
    def added(self) -> Store:
        buffer, index, op = self.place
        return Store(buffer, index, Cast(Load(self.wide.name, (), "f64"), self.part.dtype), op)


class _State:
    def __init__(self, kernel: Kernel):
        self.table, self.names = buffers(kernel), Names.of(kernel)
        self.root = Memory.of(kernel).root
        self.made: list[Buffer] = []

    def body(self, body: Body, facts: Facts, within: bool) -> Body:
        """`within`: whether it is that of a loop. What runs at once is the outermost loop, which stays whole."""
        found: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, For):
                found.append(map_bodies(stmt, lambda inner: self.body(inner, facts, within)))
                continue
            inside = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
            trips = self.trips(stmt.body, inside) if within and not innermost(stmt) else None
            if trips is not None and (places := self.places(stmt, facts)):
                found += self.carried(stmt, trips, places, facts)
            else:
                inner = self.body(stmt.body, inside, True)
                found.append(replace(stmt, body=inner))
        return tuple(found)

    # -- where -------------------------------------------------------------------------------------------------
    def trips(self, body: Body, facts: Facts) -> Dim | None:
        """How often one of its statements runs, at most; None where that cannot be told before, or it does more than
        store."""
        most = Dim.of(1)
        for stmt in body:
            match stmt:
                case Store() | Comment():
                    continue
                case If(_, then, orelse):
                    found = [self.trips(then, facts), self.trips(orelse, facts)]
                case For(var, lo, hi, inner, parallel=False):
                    each, times = self.trips(inner, {**facts, var: (lo, hi - 1)}), _most(hi - lo, facts)
                    if times is None or not (innermost(stmt) or times.value is not None):
                        return None  # many rows are a block of their own
                    found = [each * times if each is not None else None]
                case _:
                    return None
            for trips in found:
                if trips is None:
                    return None
                most = trips if most.value == 1 else maximum(most, trips)
        return most

    def places(self, nest: For, facts: Facts) -> list[Place]:
        """The places that stay where they are all through a nest, are added to in loops along memory, and are not
        otherwise touched; none, if such a loop adds up anything else."""
        varying = {loop.var for loop in walk((nest,)) if isinstance(loop, For)}
        touched: dict[str, set[tuple[str, str]]] = {}
        for a in accesses((nest,)):
            touched.setdefault(self.root[a.buffer], set()).add((a.buffer, a.mode))
        found: dict[Place, None] = {}
        for row in walk((nest,)):
            if not isinstance(row, For) or not innermost(row) or ((row.hi - row.lo).value or SHORTEST) < SHORTEST:
                continue
            for place in still(row, self.root):
                buffer, index, _ = place
                alone = touched[self.root[buffer]] == {(buffer, "add")} and self.table[buffer].dtype in FLOATS
                if not alone or any(d.symbols() & varying or any(dim_loads(d)) for d in index):
                    return []
                shape = self.table[buffer].shape
                if not all(nonnegative(i, facts) and nonnegative(n - 1 - i, facts) for i, n in zip(index, shape)):
                    return []
                found[place] = None
        return list(found)

    # -- how ---------------------------------------------------------------------------------------------------
    def carried(self, loop: For, trips: Dim, places: list[Place], facts: Facts) -> Body:
        sums = [self.sum(place) for place in places]
        body = loop.body
        for s in sums:
            body = redirected(body, s.place, s.part.name)
        body = self.in_blocks(body, sums, facts)
        start, finish = tuple(s.start for s in sums), tuple(s.joined for s in sums)
        rows = maximum(Dim.of(1), Dim.of(BLOCK) // maximum(Dim.of(1), trips))
        count = loop.hi - loop.lo
        if nonnegative(rows - count, facts):
            inside: Body = (*start, replace(loop, body=body), *finish)
        else:
            q = self.names.fresh("q")
            first = loop.lo + Dim.of(q) * rows
            block = replace(loop, lo=first, hi=minimum(loop.hi, first + rows), body=body)
            blocks = (count + (rows - 1)) // rows
            inside = (For(q, Dim.of(0), blocks, (*start, block, *finish), loop.kind, work=work(loop, self.table)),)
        return (*(s.begun for s in sums), *inside, *(s.added for s in sums))

    def sum(self, place: Place) -> _Sum:
        part = Buffer(self.names.fresh("part"), self.table[place[0]].dtype, (), "temp", lanes=True)
        wide = Buffer(self.names.fresh("wide"), "f64", (), "temp")
        self.made += [part, wide]
        return _Sum(place, part, wide)

    def in_blocks(self, body: Body, sums: list[_Sum], facts: Facts) -> Body:
        """With rows cut that may be longer than a block."""

        def cut(stmt: Stmt) -> Stmt:
            if not isinstance(stmt, For) or not innermost(stmt):
                return map_bodies(stmt, lambda inner: tuple(cut(s) for s in inner))
            own = {s.buffer for s in walk(stmt.body) if isinstance(s, Store)}
            here = [s for s in sums if s.part.name in own]
            if not here or nonnegative(BLOCK - (stmt.hi - stmt.lo), facts):
                return stmt
            p = self.names.fresh("p")
            first = stmt.lo + Dim.of(p) * BLOCK
            between = Op("less", (Const(0, "i64"), Int(Dim.of(p))), "bool")
            join = If(between, tuple(x for s in here for x in (s.joined, s.start)))
            block = replace(stmt, lo=first, hi=minimum(stmt.hi, first + BLOCK))
            count = (stmt.hi - stmt.lo + (BLOCK - 1)) // BLOCK
            return For(p, Dim.of(0), count, (join, block), "map", work=work(stmt, self.table))

        return tuple(cut(s) for s in body)


def _most(dim: Dim, facts: Facts) -> Dim | None:
    """The largest that it can be, whatever the loops outside are at."""
    with suppress(ValueError):
        most = largest(dim, facts)
        loops = {name for name, bounds in facts.items() if bounds != ANY}
        return None if most.symbols() & loops or any(dim_loads(most)) else most
    return None


__all__ = ["carry"]
