"""Long sums of an iteration in blocks, before several iterations are lanes: each adds its own one by one.

    for i: s += f(i)      ->      wide = 0                                     (float64)
                                  for q in 0..(N + 63)//64:
                                      part = 0
                                      for i in 64*q .. min(N, 64*q + 64): part += f(i)
                                      wide += part
                                  s += real(wide)

The error of a float32 sum stays that of NumPy's pairwise one, as in `accumulate`, whose blocks are those of a vector.
Sums that a recurrence makes at each turn are short (the features of a cell), or rows that are vectors as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..dims import Dim, minimum
from ..ir import Buffer, Cast, Const, For, Load, Stmt, Store
from .alike import is_recurrence
from .tree import Body, Index, Names, dim_loads, map_bodies, own_accesses, walk

MOST_TERMS = 64  # a lane adds one by one: more would round worse than NumPy's sums in pairs
Place = tuple[str, Index]


@dataclass
class InBlocks:
    """`made`: new buffers; `wide`: those in double, to which blocks are added."""

    table: dict[str, Buffer]
    root: dict[str, str]
    names: Names
    made: list[Buffer] = field(default_factory=list)
    wide: set[str] = field(default_factory=set)

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self._stmt(stmt))

    def _stmt(self, stmt: Stmt) -> Iterator[Stmt]:
        sums: list[Place] = []
        if isinstance(stmt, For) and stmt.kind == "map":
            sums = [place for place in self._sums(stmt, ()) if self._is_alone(place, stmt)]
        if not isinstance(stmt, For) or not sums:
            yield stmt if is_recurrence(stmt) else map_bodies(stmt, self.body)
            return
        wides = {place: self._add(place[0], "wide", "f64") for place in sums}
        self.wide |= set(wides.values())
        for wide in wides.values():
            yield Store(wide, (), Const(0.0, "f64"))
        yield from self.body((self._in_blocks(stmt, wides),))
        for (name, index), wide in wides.items():
            yield Store(name, index, Cast(Load(wide, (), "f64"), self.table[name].dtype), "add")

    def _sums(self, loop: For, around: tuple[For, ...]) -> Iterator[Place]:
        """What the loop, or map loops in it, add to at one place, more than a few times."""
        around = (*around, loop)
        for stmt in loop.body:
            match stmt:
                case For(kind="map"):
                    yield from self._sums(stmt, around)
                case Store(name, index, _, "add") if self.table[name] not in self.made and self._rounds(name):
                    moves = {s for d in index for s in d.symbols()} & {x.var for x in around}
                    if not moves and not any(True for d in index for _ in dim_loads(d)) and _are_many(around):
                        yield name, index

    def _is_alone(self, place: Place, nest: Stmt) -> bool:
        """Whether nothing else in the nest has to do with what is added to."""
        root = self.root[place[0]]
        found = [s for s in walk((nest,)) if any(self.root[n] == root for n, _, _ in own_accesses(s))]
        return len(found) == 1 and not any(
            mode == "r" and self.root[n] == root for n, _, mode in own_accesses(found[0])
        )

    def _rounds(self, name: str) -> bool:
        return self.table[name].dtype in ("real", "f32")

    def _in_blocks(self, loop: For, wides: dict[Place, str]) -> For:
        mine = {
            (s.buffer, s.index): self._add(s.buffer, "part", self.table[s.buffer].dtype)
            for s in loop.body
            if isinstance(s, Store) and (s.buffer, s.index) in wides
        }
        body = tuple(
            self._in_blocks(s, wides)
            if isinstance(s, For) and s.kind == "map"
            else replace(s, buffer=mine[s.buffer, s.index], index=())
            if isinstance(s, Store) and (s.buffer, s.index) in mine
            else s
            for s in loop.body
        )
        if not mine:
            return replace(loop, body=body)
        block = self.names.fresh("q")
        start = loop.lo + Dim.of(block) * MOST_TERMS
        inner = replace(loop, lo=start, hi=minimum(loop.hi, start + MOST_TERMS), body=body)
        begun = tuple(Store(part, (), Const(0.0, self.table[part].dtype)) for part in mine.values())
        ended = tuple(
            Store(wides[place], (), Cast(Load(part, (), self.table[part].dtype), "f64"), "add")
            for place, part in mine.items()
        )
        return For(
            block, Dim.of(0), (loop.hi - loop.lo + (MOST_TERMS - 1)) // MOST_TERMS, (*begun, inner, *ended), "map"
        )

    def _add(self, of: str, base: str, dtype: str) -> str:
        made = Buffer(self.names.fresh(f"{of}_{base}"), dtype, (), "temp")
        self.made.append(made)
        self.table[made.name], self.root[made.name] = made, made.name
        return made.name


def _are_many(loops: tuple[For, ...]) -> bool:
    times = Dim.of(1)
    for loop in loops:
        times = times * (loop.hi - loop.lo)
    return times.value is None or times.value > MOST_TERMS


__all__ = ["MOST_TERMS", "InBlocks"]
