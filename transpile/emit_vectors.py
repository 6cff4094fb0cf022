"""A loop over vectors in C: four at a time if it adds up, then one at a time, then what is left, as a part of one.

for (i = 0; i < i_abreast; i += 4 * lanes)    four vectors, each with sums of its own, as one addition waits for the
                                              last; written out where there is nothing else to do meanwhile
for (; i < i_whole; i++)                      whole vectors
if (i_rest)                                   a part of one, through masks
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .dims import Dim
from .emit_tails import ABREAST, Tail, sums_up, waits
from .emit_text import C_OPS, Speller, bare, extreme
from .ir import For, Load, Stmt, Store
from .passes.accumulate import neutral
from .passes.tree import Names


class Writer(Protocol):
    """What writes the lines of a function. `sums`: the variables to which a lane beyond `rest` adds nothing."""

    spell: Speller
    fresh: Names
    dtype: str
    depth: int
    sums: set[str]
    rest: str

    def put(self, text: str) -> None: ...
    def inside(self, body: tuple[Stmt, ...], path: tuple) -> None: ...
    def close(self) -> None: ...
    def address(self, place: Load) -> str: ...
    def fetch(self, loop: For, at: Dim, count: str) -> None: ...
    def fetch_all(self, loop: For) -> None: ...


@dataclass
class Vectors:
    """`line`: the pragma of the loop; `sums`: what it accumulates in variables from outside of it."""

    to: Writer
    loop: For
    path: tuple
    line: str
    tail: Tail
    sums: set[str]

    def __post_init__(self) -> None:
        self.spell, self.lanes = self.to.spell, f"lc_wide_{self.to.dtype}"
        self.lo = self.spell.dim(self.loop.lo)

    def write(self) -> None:
        to, spell, tail, loop = self.to, self.spell, self.tail, self.loop
        var = spell.names.add(loop.var)
        count, whole = (self.name(f"{loop.var}_{n}") for n in ("count", "whole"))
        spell.facts[loop.var] = spell.facts[whole] = (loop.lo, loop.hi - 1)
        to.put(f"const int64_t {count} = lc_larger({bare(spell.dim(loop.hi - loop.lo))}, 0);")
        to.put(f"const int64_t {whole} = {self.behind(count if tail.long else f'({count} & -{self.lanes})')};")
        if sums_up(loop, self.sums, spell.table):
            first = self.abreast(count)
        else:
            first = self.lo
            to.fetch_all(loop)
        to.put(self.line)
        to.put(f"for (int64_t {var} = {first}; {var} < {whole}; {var}++) {{")
        to.inside(loop.body, self.path)
        to.put("}")
        if not tail.long:
            self.part(whole, count)
        del spell.facts[loop.var], spell.facts[whole]

    def name(self, base: str) -> str:
        return self.spell.names.add(self.to.fresh.fresh(base))

    def behind(self, count: str) -> str:
        """The place that is so many iterations behind the first."""
        return count if self.lo == "0" else f"{self.lo} + {count}"

    def part(self, whole: str, count: str) -> None:
        """A part of a vector, masked."""
        to, spell, kind, rest = self.to, self.spell, self.to.dtype, self.name(f"{self.loop.var}_rest")
        to.put(f"const int {rest} = (int)({count} & ({self.lanes} - 1));")
        to.put(f"if ({rest}) {{")
        to.depth += 1
        back = []
        for place in self.tail.places:
            part = self.name(f"{place.buffer}_part")
            there = to.address(place.subs({self.loop.var: Dim.of(whole)}))
            to.put(f"{spell.ctype(place.dtype)} {part}[{self.lanes}] __attribute__((aligned(64)));")
            if place in self.tail.read:
                to.put(f"lc_some_{kind}({part}, {there}, {rest});")
            if place in self.tail.stored:
                back.append(f"lc_put_{kind}({there}, {part}, {rest});")
            spell.lent[spell.place(place.buffer, place.index)] = f"{part}[lc_lane]"
        to.put(self.line)
        to.put(f"for (int lc_lane = 0; lc_lane < {self.lanes}; lc_lane++) {{")
        if self.tail.counts:
            to.put(f"    const int64_t {spell.names[self.loop.var]} = {whole} + lc_lane;")
        to.sums, to.rest = self.sums, rest
        to.inside(self.loop.body, self.path)
        to.sums, spell.lent = set(), {}
        to.put("}")
        for text in back:
            to.put(text)
        to.close()

    def abreast(self, count: str) -> str:
        """ABREAST vectors at a time, each with sums of its own. Returns where that ends."""
        to, lanes = self.to, self.lanes
        at, end = (self.name(f"{self.loop.var}_{n}") for n in ("at", "abreast"))
        own = {store.buffer: (self.name(f"{store.buffer}_sums"), store.op or "") for store in self.accumulations()}
        to.put(f"const int64_t {end} = {self.behind(f'({count} & -lc_abreast_{to.dtype})')};")
        to.put(f"if ({end} > {self.lo}) {{")
        to.depth += 1
        for s, (name, op) in own.items():
            self.begin(s, name, op)
        to.put(f"for (int64_t {at} = {self.lo}; {at} < {end}; {at} += {ABREAST} * {lanes}) {{")
        to.depth += 1
        to.fetch(self.loop, Dim.of(at), f"lc_abreast_{to.dtype}")
        if waits(self.tail):
            for k in range(ABREAST):
                self.vector(at, f"{k} * {lanes} + lc_lane", own)
        else:
            first = self.name("first")
            to.put(f"for (int {first} = 0; {first} < {ABREAST} * {lanes}; {first} += {lanes}) {{")
            to.depth += 1
            self.vector(at, f"{first} + lc_lane", own)
            to.close()
        to.close()
        to.put(self.line)
        to.put(f"for (int lc_lane = 0; lc_lane < {lanes}; lc_lane++) {{")
        for s, (name, op) in own.items():
            to.put(f"    {self.joined(s, op, [f'{name}[{k} * {lanes} + lc_lane]' for k in range(ABREAST)])};")
        to.put("}")
        to.close()
        return end

    def accumulations(self) -> list[Store]:
        """One for each of the sums."""
        return list({s.buffer: s for s in self.loop.body if isinstance(s, Store) and s.buffer in self.sums}.values())

    def begin(self, s: str, name: str, op: str) -> None:
        ctype, value = self.spell.ctype(self.spell.table[s].dtype), neutral(op, self.spell.table[s].dtype)
        self.to.put(f"{ctype} {name}[{ABREAST} * {self.lanes}] __attribute__((aligned(64)));")
        self.to.put("#pragma omp simd")
        self.to.put(f"for (int lc_lane = 0; lc_lane < {ABREAST} * {self.lanes}; lc_lane++) {{")
        self.to.put(f"    {name}[lc_lane] = {bare(self.spell.expr(value))};")
        self.to.put("}")

    def vector(self, at: str, lane: str, own: dict[str, tuple[str, str]]) -> None:
        """A vector of those abreast, accumulated in lanes of its own."""
        to, spell = self.to, self.spell
        spell.lent = {spell.place(s, ()): f"{name}[{lane}]" for s, (name, _) in own.items()}
        to.put("#pragma omp simd")
        to.put(f"for (int lc_lane = 0; lc_lane < {self.lanes}; lc_lane++) {{")
        to.put(f"    const int64_t {spell.names[self.loop.var]} = {at} + {lane};")
        to.inside(self.loop.body, self.path)
        to.put("}")
        spell.lent = {}

    def joined(self, s: str, op: str, parts: list[str]) -> str:
        """A statement that accumulates what the vectors have of a lane."""
        place, (a, b, c, d) = self.spell.place(s, ()), parts
        if op in ("max", "min"):
            of = extreme(op, self.spell.ctype(self.spell.table[s].dtype))
            return f"{place} = {of}({place}, {of}({of}({a}, {b}), {of}({c}, {d})))"
        sign = C_OPS[op][0]
        return f"{place} {C_OPS[op]} ({a} {sign} {b}) {sign} ({c} {sign} {d})"
