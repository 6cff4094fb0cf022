"""A loop whose statements are not all there at its ends, in C: vectors that have all of them run without a question.

for (i_at = lo; i_at < hi; i_at += lanes)
    if (i_at >= i_low && i_at + lanes <= i_high)      every statement, for all lanes
    else                                              each for its own lanes: masks, so that the others touch no memory

    for k in 0..W:                                    windows of a row: the filter's left weight is not there at the
        if (k >= 1): y[k] += x[k - 1] * w[0]          first place, the right one not at the last
        y[k] += x[k] * w[1]
        if (k < W - 1): y[k] += x[k + 1] * w[2]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .dims import Dim
from .emit_tails import Tail, part_of
from .emit_text import bare
from .emit_vectors import Mask, Own, Vectors, Writer
from .ir import Buffer, Expr, For, If, Load, Stmt, Store
from .passes.guards import margins
from .passes.ranges import conjuncts
from .passes.tree import dim_loads, own_accesses


@dataclass(frozen=True)
class Range:
    """Where a statement is there: behind or at each of `first`, before each of `end`."""

    first: frozenset[Dim] = frozenset()
    end: frozenset[Dim] = frozenset()


def edges_of(loop: For, table: Mapping[str, Buffer], root: Mapping[str, str], real: str) -> Tail | None:
    """Of a vectorised loop, if all that its branches ask is where the counter is, and vectors can have masks."""
    stores = _ranged(loop.body, loop.var, Range())
    if stores is None or all(where == Range() for where, _ in stores):
        return None
    return part_of(replace(loop, body=tuple(s for _, s in stores)), table, root, real)


def _ranged(body: tuple[Stmt, ...], var: str, where: Range) -> list[tuple[Range, Store]] | None:
    """The stores of a body and where they are; None where it has anything else."""
    found: list[tuple[Range, Store]] = []
    for stmt in body:
        match stmt:
            case Store():
                found.append((where, stmt))
            case If(cond, then, ()) if (own := _within(cond, var, where)) is not None:
                if (inside := _ranged(then, var, own)) is None:
                    return None
                found += inside
            case _:
                return None
    return found


def _within(cond: Expr, var: str, where: Range) -> Range | None:
    """The part of a range where a condition holds, if it asks for nothing but the place in it."""
    for part in conjuncts(cond):
        asked = margins(part)
        if not asked:
            return None
        for margin in asked:
            split = margin.split(var)
            if split is None or split[0].value not in (1, -1) or any(True for _ in dim_loads(margin)):
                return None
            step, rest = split
            if step.value == 1:
                where = replace(where, first=where.first | {-rest})
            else:
                where = replace(where, end=where.end | {rest + 1})
    return where


class Edges(Vectors):
    """`tail`: what `edges_of` says."""

    tail: Tail

    def __init__(self, to: Writer, loop: For, path: tuple, line: str, tail: Tail, sums: set[str]) -> None:
        self.whole, self.ranges = loop, _ranged(loop.body, loop.var, Range()) or []
        self.marks: _Marks | None = None  # the lanes of ranges, while there are some
        super().__init__(to, replace(loop, body=tuple(s for _, s in self.ranges)), path, line, tail, sums)

    def are_worth(self) -> bool:
        return self.can_join()

    def write(self) -> None:
        to, spell, loop = self.to, self.spell, self.whole
        spell.names.add(loop.var)
        at, low, high, end = (self.name(f"{loop.var}_{n}") for n in ("at", "low", "high", "end"))
        spell.facts[loop.var] = spell.facts[at] = (loop.lo, loop.hi - 1)
        to.put(f"const int64_t {end} = {bare(spell.dim(loop.hi))};")
        firsts = [self.lo, *self.bounds(b for where, _ in self.ranges for b in where.first)]
        ends = [end, *self.bounds(b for where, _ in self.ranges for b in where.end)]
        to.put(f"const int64_t {low} = {_nested('lc_larger', firsts)};")
        to.put(f"const int64_t {high} = lc_larger({_nested('lc_smaller', ends)}, {low});")
        to.fetch_all(loop)
        to.put("#if LC_LANES")
        self.in_masks(at, low, high, end)
        to.put("#else")
        self.by_ranges(low, high, end)
        to.put("#endif")
        del spell.facts[loop.var], spell.facts[at]

    def bounds(self, dims: Iterator[Dim]) -> list[str]:
        return [bare(self.spell.dim(d)) for d in sorted(set(dims), key=str)]

    def by_ranges(self, low: str, high: str, end: str) -> None:
        """Element by element: its ends, and what is between them."""
        self.asking(self.lo, f"lc_smaller({low}, {end})")
        self.by_element(low, high, self.line)
        self.asking(high, end)

    def asking(self, first: str, end: str) -> None:
        to, var = self.to, self.spell.names[self.loop.var]
        to.put(f"for (int64_t {var} = {first}; {var} < {end}; {var}++) {{")
        to.inside(self.whole.body, self.path)
        to.put("}")

    def in_masks(self, at: str, low: str, high: str, end: str) -> None:
        to, own = self.to, self.in_lanes()
        self.begin(self.new(own), 1)
        to.put(f"for (int64_t {at} = {self.lo}; {at} < {end}; {at} += {self.lanes}) {{")
        to.depth += 1
        to.put(f"if ({at} >= {low} && {at} + {self.lanes} <= {high}) {{")
        to.depth += 1
        self.vector(at, "lc_lane", own)
        to.depth -= 1
        to.put("} else {")
        to.depth += 1
        self.masked(at, end, own)
        to.close()
        to.close()
        self.join(own)

    def iteration(self) -> None:
        self.to.depth += 1
        self.statements(self.whole.body, self.path, Range())
        self.to.depth -= 1

    def statements(self, body: tuple, path: tuple, where: Range) -> None:
        """Without their branches, and with what they ask as a mask instead, if there are marks."""
        to = self.to
        waiting = to.declare(body, path)
        for position, stmt in enumerate(body):
            if isinstance(stmt, If):
                within = _within(stmt.cond, self.loop.var, where)
                assert within is not None, "edges_of has seen it"
                self.statements(stmt.then, (*path, (position, 0)), within)
            else:
                to.mask = self.mask(where, stmt.buffer in self.sums)
                to.store(stmt, waiting)
        to.mask = None

    def mask(self, where: Range, is_sum: bool) -> Mask | None:
        """In which lanes a statement counts; None: in all, or in all that are stored."""
        lanes = self.marks.condition(where, is_sum) if self.marks else ""
        kept = {self.spell.root(s.buffer).name for _, s in self.ranges}
        zeros = {p for p in self.tail.places if self.where(p) == [where] and p not in self.tail.stored}
        return Mask(lanes, kept, zeros) if lanes else None

    def masked(self, at: str, end: str, own: Own) -> None:
        """A vector of which each statement has its own lanes."""
        to, spell, kind = self.to, self.spell, self.to.dtype
        marks = self.marks = _Marks(self, at, end)
        lent, back = {}, []
        for place in self.tail.places:
            part, mask = self.name(f"{place.buffer}_part"), marks.mask(self.where(place))
            there = to.address(place.subs({self.loop.var: Dim.of(at)}))
            to.put(f"{spell.ctype(place.dtype)} {part}[{self.lanes}] __attribute__((aligned(64)));")
            if self.is_read(place):
                to.put(f"lc_among_{kind}({part}, {there}, {mask});")
            if place in self.tail.stored:
                back.append(f"lc_back_{kind}({there}, {part}, {mask});")
            lent[spell.place(place.buffer, place.index)] = f"{part}[lc_lane]"
        self.vector(at, "lc_lane", own, lent, self.tail.counts)
        self.marks = None
        for text in back:
            to.put(text)

    def where(self, place: Load) -> list[Range]:
        found = [where for where, s in self.ranges if (place.buffer, place.index) in _places(s)]
        return [Range()] if Range() in found else list(dict.fromkeys(found))

    def is_read(self, place: Load) -> bool:
        """Anywhere: what was stored before in other lanes is not what these ask for."""
        return any(
            mode != "w" and (name, index) == (place.buffer, place.index)
            for _, s in self.ranges
            for name, index, mode in own_accesses(s)
        )


class _Marks:
    """The lanes of ranges, in one vector."""

    def __init__(self, edges: Edges, at: str, end: str) -> None:
        self.edges, self.at, self.made = edges, at, dict[str, str]()
        self.rest = self.lane(end)

    def lane(self, bound: str) -> str:
        """The name of the lane where a bound is, at least 0, at most the number of lanes."""
        if bound not in self.made:
            name = self.made[bound] = self.edges.name(f"{self.edges.loop.var}_lane")
            self.edges.to.put(f"const int {name} = lc_lane_at({bound} - {self.at}, {self.edges.lanes});")
        return self.made[bound]

    def lanes(self, where: Range) -> tuple[list[str], list[str]]:
        spell = self.edges.spell
        firsts = [self.lane(spell.dim(d)) for d in sorted(where.first, key=str)]
        return firsts, [self.rest, *(self.lane(spell.dim(d)) for d in sorted(where.end, key=str))]

    def condition(self, where: Range, is_sum: bool) -> str:
        """In which lanes a statement is. What is behind the end counts in sums only: it is not stored."""
        firsts, ends = self.lanes(where)
        ends = ends if is_sum else ends[1:]
        return " & ".join([*(f"(lc_lane >= {f})" for f in firsts), *(f"(lc_lane < {e})" for e in ends)])

    def mask(self, ranges: list[Range]) -> str:
        texts, before = [], f"lc_before_{self.edges.to.dtype}"
        for where in ranges:
            firsts, ends = self.lanes(where)
            texts.append(" & ".join([*(f"{before}({e})" for e in ends), *(f"~{before}({f})" for f in firsts)]))
        return " | ".join(f"({t})" for t in texts) if len(texts) > 1 else texts[0]


def _places(stmt: Store) -> set[tuple[str, tuple[Dim, ...]]]:
    return {(name, index) for name, index, _ in own_accesses(stmt) if index is not None}


def _nested(function: str, texts: list[str]) -> str:
    text = texts[0]
    for other in texts[1:]:
        text = f"{function}({text}, {other})"
    return text
