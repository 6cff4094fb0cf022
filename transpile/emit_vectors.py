"""A loop over vectors in C: four at a time if it adds up, then one at a time, then what is left, as a part of one.

for (i = 0; i < i_abreast; i += 4 * lanes)    four vectors, each with sums of its own, as one addition waits for the
                                              last; written out where there is nothing else to do meanwhile
for (; i < i_whole; i += lanes)               whole vectors
if (i_rest)                                   a part of one, through masks
s += lc_add_lanes_f32(s_lanes)                what all of them have added up in each lane

Behind each block of a long sum the lanes are joined as well (see `emit_blocks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from .dims import Dim
from .emit_blocks import Blocks
from .emit_tails import ABREAST, Tail, is_long, sums_up, truths_of, waits
from .emit_text import C_OPS, Speller, bare, extreme
from .ir import For, Load, Stmt, Store
from .passes.accumulate import BLOCK, neutral
from .passes.rows import step_of
from .passes.tree import Names

_JOINED = ("add", "mul", "max", "min")  # parts.h joins the lanes
Own = dict[str, tuple[str, str]]  # variable -> its lanes, and how they are joined


@dataclass(frozen=True)
class Mask:
    """Lanes in which what is stored counts. `kept`: what stays as it is in the others; `zeros`: the places of arrays
    that are 0 there."""

    lanes: str
    kept: Set[str]
    zeros: Set[Load]


class Writer(Protocol):
    """What writes the lines of a function. `mask`: where what is stored counts, if not in all lanes; `carried`: the
    lanes of variables that more loops than one add up in."""

    spell: Speller
    fresh: Names
    dtype: str
    depth: int
    mask: Mask | None
    carried: dict[str, str]

    def put(self, text: str) -> None: ...
    def inside(self, body: tuple[Stmt, ...], path: tuple) -> None: ...
    def body(self, body: tuple[Stmt, ...], path: tuple) -> None: ...
    def declare(self, body: tuple[Stmt, ...], path: tuple) -> set[str]: ...
    def store(self, stmt: Store, waiting: set[str]) -> None: ...
    def close(self) -> None: ...
    def address(self, place: Load) -> str: ...
    def fetch(self, loop: For, at: Dim, count: str) -> None: ...
    def fetch_all(self, loop: For) -> None: ...


@dataclass
class Vectors:
    """`line`: the pragma of the loop; `tail`: None where what is left is done element by element; `sums`: what it
    accumulates in variables from outside of it; `blocks`: what there is to do between the blocks of its sums."""

    to: Writer
    loop: For
    path: tuple
    line: str
    tail: Tail | None
    sums: set[str]
    blocks: Blocks | None = None

    def __post_init__(self) -> None:
        self.spell, self.lanes = self.to.spell, f"lc_wide_{self.to.dtype}"
        self.lo = self.spell.dim(self.loop.lo)

    def are_worth(self) -> bool:
        """Whether the loop is written so: where it ends in a part of a vector, adds up, or reads truths."""
        if self.tail:
            return not self.tail.long or sums_up(self.loop, self.sums, self.spell.table)
        flat = all(isinstance(s, Store) for s in self.loop.body) and not is_long(self.loop.hi)
        return flat and ((bool(self.sums) and self.can_join()) or self.by_words())

    def by_words(self) -> bool:
        """Whether it adds nothing up, but reads truths: gcc takes as many numbers at a time as there are bytes in a
        vector, and would take the rest, of up to 63, one by one."""
        return not self.sums and bool(truths_of(self.loop, self.spell.table))

    def has_blocks(self) -> bool:
        """Whether it can be written with something to do between blocks."""
        return self.blocks is not None and self.tail is not None and self.can_join() and self.blocks.sums <= self.sums

    def write(self) -> None:
        to, spell, tail, loop = self.to, self.spell, self.tail, self.loop
        spell.names.add(loop.var)
        count, whole = (self.name(f"{loop.var}_{n}") for n in ("count", "whole"))
        long = tail is not None and tail.long and not self.can_join()
        spell.facts[loop.var] = spell.facts[whole] = (loop.lo, loop.hi - 1)
        to.put(f"const int64_t {count} = lc_larger({bare(spell.dim(loop.hi - loop.lo))}, 0);")
        vectors = f"const int64_t {whole} = {self.behind(count if long else f'({count} & -{self.lanes})')};"
        own = {} if long else self.in_lanes()
        if self.blocks:
            to.put(vectors)
            self.in_vectors(count, whole, own)
        elif own or self.by_words():
            to.put("#if LC_LANES")
            to.put(vectors)
            self.in_vectors(count, whole, own)
            to.put("#else")
            self.by_element(self.lo, f"{self.behind(count)}", self.line)
            to.put("#endif")
        else:
            to.put(vectors)
            first = self.lo
            if tail and sums_up(loop, self.sums, spell.table):
                first = self.abreast(count, own, waits(tail))
            else:
                to.fetch_all(loop)
            self.by_element(first, whole, self.line)
            if tail and not long:
                self.part(tail, whole, count, own)
        del spell.facts[loop.var], spell.facts[whole]

    def in_vectors(self, count: str, whole: str, own: Own) -> None:
        """All of it, accumulated in lanes that are joined at the end; what only reads truths, from where gcc's own
        vectors end."""
        to, tail = self.to, self.tail
        self.begin(self.new(own), 1)
        if self.blocks:
            self.block = self.name(f"{self.loop.var}_block")
            to.put(f"int64_t {self.block} = {self.behind(str(BLOCK))};")
        first = self.lo
        if abreast := tail is not None and sums_up(self.loop, self.sums, self.spell.table):
            first = self.abreast(count, own, waits(tail))
        else:
            to.fetch_all(self.loop)
        if self.by_words():
            first = self.name(f"{self.loop.var}_bytes")
            to.put(f"const int64_t {first} = {self.behind(f'({count} & -(int64_t)sizeof(lc_part_{to.dtype}))')};")
            self.by_element(self.lo, first, self.line)
        at = self.name(f"{self.loop.var}_at")
        to.put(f"for (int64_t {at} = {first}; {at} < {whole}; {at} += {self.lanes}) {{")
        to.depth += 1
        self.vector(at, "lc_lane", own)
        if not abreast:
            self.between(f"{at} + {self.lanes}", own, {})
        to.close()
        if tail:
            self.part(tail, whole, count, own)
        self.join(own)
        if not tail:
            self.by_element(whole, self.behind(count), None)

    def between(self, end: str, own: Own, sums: Own) -> None:
        """Behind a block, if that is where a vector ends and more follow: adds what its lanes have, or its `sums`."""
        to, blocks = self.to, self.blocks
        if not blocks:
            return
        to.put(f"if (__builtin_expect({end} == {self.block}, 0) && {self.block} < {self.spell.dim(self.loop.hi)}) {{")
        to.depth += 1
        mine, four = ({s: lanes for s, lanes in some.items() if s in blocks.sums} for some in (own, sums))
        self.gather(four, own)
        self.join(mine)
        for store in (*blocks.added, *blocks.begun):
            to.store(store, set())
        self.clear(mine, 1)
        self.clear(four, ABREAST)
        to.put(f"{self.block} += {BLOCK};")
        to.close()

    def join(self, own: Own) -> None:
        """What all lanes have: of four sums at once, of what is left one by one."""
        to, left = self.to, self.new(own)
        while len(sums := [s for s, (_, op) in left.items() if op == "add"][:4]) == 4:
            four = self.name("four")
            to.put(f"{self.spell.ctype(self.spell.table[sums[0]].dtype)} {four}[4];")
            to.put(f"lc_add_four_{to.dtype}({', '.join([four, *(left.pop(s)[0] for s in sums)])});")
            for k, s in enumerate(sums):
                to.put(f"{self.accumulated(s, 'add', f'{four}[{k}]')};")
        for s, (name, op) in left.items():
            to.put(f"{self.accumulated(s, op, f'lc_{op}_lanes_{to.dtype}({name})')};")

    def by_element(self, first: str, end: str, line: str | None) -> None:
        var = self.spell.names[self.loop.var]
        if line:
            self.to.put(line)
        self.to.put(f"for (int64_t {var} = {first}; {var} < {end}; {var}++) {{")
        self.iteration()
        self.to.put("}")

    def can_join(self) -> bool:
        """Whether all that is accumulated can have lanes of its own through the whole loop: they are joined once, two
        by two, where gcc would add one after the other behind each of the three loops."""
        dtypes = {self.spell.table[s].dtype for s in self.sums}
        return dtypes <= {"real", self.to.dtype} and all(s.op in _JOINED for s in self.accumulations())

    def in_lanes(self) -> Own:
        """The names of the lanes of what is accumulated."""
        stores = self.accumulations() if self.can_join() else []
        return {s.buffer: (self.to.carried.get(s.buffer) or self.name(f"{s.buffer}_lanes"), s.op or "") for s in stores}

    def new(self, own: Own) -> Own:
        """Those that begin and are joined with the loop: others are carried over many such loops."""
        return {s: lanes for s, lanes in own.items() if s not in self.to.carried}

    def name(self, base: str) -> str:
        """A variable of C, which places may be told by as well."""
        name = self.spell.names.add(self.to.fresh.fresh(base))
        self.spell.names.table.setdefault(name, name)
        return name

    def behind(self, count: str) -> str:
        """The place that is so many iterations behind the first."""
        return count if self.lo == "0" else f"{self.lo} + {count}"

    def part(self, tail: Tail, whole: str, count: str, own: Own) -> None:
        """A part of a vector, masked."""
        to, spell, kind, rest = self.to, self.spell, self.to.dtype, self.name(f"{self.loop.var}_rest")
        to.put(f"const int {rest} = (int)({count} & ({self.lanes} - 1));")
        to.put(f"if ({rest}) {{")
        to.depth += 1
        lent, back = {}, []
        for place in tail.places:
            if place.dtype == "bool":
                continue
            part = self.name(f"{place.buffer}_part")
            there = to.address(place.subs({self.loop.var: Dim.of(whole)}))
            to.put(f"{spell.ctype(place.dtype)} {part}[{self.lanes}] __attribute__((aligned(64)));")
            step = step_of(place.index, spell.table[place.buffer].shape, self.loop.var)
            take, give, by = ("some", "put", "") if step == 1 else ("pick", "lay", f" {step},")
            if place in tail.read:
                to.put(f"lc_{take}_{kind}({part}, {there},{by} {rest});")
            if place in tail.stored:
                back.append(f"lc_{give}_{kind}({there}, {part},{by} {rest});")
            lent[spell.place(place.buffer, place.index)] = f"{part}[lc_lane]"
        to.mask = Mask(f"lc_lane < {rest}", self.sums, tail.read - tail.stored)
        self.vector(whole, "lc_lane", own, lent, tail.counts, None if own else self.line, rest)
        to.mask = None
        for text in back:
            to.put(text)
        to.close()

    def abreast(self, count: str, lanes_of: Own, waiting: bool) -> str:
        """ABREAST vectors at a time, each with sums of its own, joined in `lanes_of`. Returns where that ends."""
        to, lanes = self.to, self.lanes
        at, end = (self.name(f"{self.loop.var}_{n}") for n in ("at", "abreast"))
        own = {store.buffer: (self.name(f"{store.buffer}_sums"), store.op or "") for store in self.accumulations()}
        to.put(f"const int64_t {end} = {self.behind(f'({count} & -lc_abreast_{to.dtype})')};")
        to.put(f"if ({end} > {self.lo}) {{")
        to.depth += 1
        self.begin(own, ABREAST)
        to.put(f"for (int64_t {at} = {self.lo}; {at} < {end}; {at} += {ABREAST} * {lanes}) {{")
        to.depth += 1
        to.fetch(self.loop, Dim.of(at), f"lc_abreast_{to.dtype}")
        if waiting:
            for k in range(ABREAST):
                self.vector(at, f"{k} * {lanes} + lc_lane", own)
        else:
            first = self.name("first")
            to.put(f"#pragma GCC unroll {ABREAST}")
            to.put(f"for (int {first} = 0; {first} < {ABREAST} * {lanes}; {first} += {lanes}) {{")
            to.depth += 1
            self.vector(at, f"{first} + lc_lane", own)
            to.close()
        self.between(f"{at} + {ABREAST} * {lanes}", lanes_of, own)
        to.close()
        self.gather(own, lanes_of)
        to.close()
        return end

    def gather(self, sums: Own, lanes_of: Own) -> None:
        """What ABREAST vectors have of each lane, in one vector, or in the variable itself."""
        if not sums:
            return
        to, lanes = self.to, self.lanes
        each = self.spread({s: lanes_of[s] for s in sums if s in lanes_of})
        to.put("#pragma omp simd" if lanes_of else self.line)
        to.put(f"for (int lc_lane = 0; lc_lane < {lanes}; lc_lane++) {{")
        for s, (name, op) in sums.items():
            parts = [f"{name}[{k} * {lanes} + lc_lane]" for k in range(ABREAST)]
            place = f"{each[s][0]}[lc_lane]" if lanes_of else None
            to.put(f"    {self.accumulated(s, op, self.joined(s, op, parts), place)};")
        to.put("}")
        self.collect(each, lanes_of)

    def accumulations(self) -> list[Store]:
        """One for each of the sums."""
        return list({s.buffer: s for s in self.loop.body if isinstance(s, Store) and s.buffer in self.sums}.values())

    def begin(self, own: Own, vectors: int) -> None:
        """Lanes to accumulate in: of a vector, which can stay in a register, or of so many."""
        for s, (name, _) in own.items():
            if vectors > 1:
                self.to.put(f"{self.array(s, name, f'{vectors} * {self.lanes}')};")
            else:
                self.to.put(f"lc_part_{self.to.dtype} {name};")
        self.clear(own, vectors)

    def array(self, s: str, name: str, lanes: str) -> str:
        """The declaration of an array of lanes."""
        return f"{self.spell.ctype(self.spell.table[s].dtype)} {name}[{lanes}] __attribute__((aligned(64)))"

    def clear(self, own: Own, vectors: int) -> None:
        """Lanes that have accumulated nothing."""
        values = {name: bare(self.spell.expr(neutral(op, self.spell.table[s].dtype))) for s, (name, op) in own.items()}
        if own and vectors > 1:
            self.to.put("#pragma omp simd")
            self.to.put(f"for (int lc_lane = 0; lc_lane < {vectors} * {self.lanes}; lc_lane++) {{")
            for name, value in values.items():
                self.to.put(f"    {name}[lc_lane] = {value};")
            self.to.put("}")
        elif own:
            for name, value in values.items():
                self.to.put(f"{name} = (lc_part_{self.to.dtype}){{0}} + {value};")

    def spread(self, own: Own) -> Own:
        """Vectors as arrays, for a loop over their lanes: gcc makes vectors of those again."""
        each = {s: (self.name(f"{s}_each"), op) for s, (_, op) in own.items()}
        for s, (name, _) in own.items():
            array = each[s][0]
            self.to.put(f"{self.array(s, array, self.lanes)}; *(lc_part_{self.to.dtype} *){array} = {name};")
        return each

    def collect(self, each: Own, own: Own) -> None:
        for s, (array, _) in each.items():
            self.to.put(f"{own[s][0]} = *(lc_part_{self.to.dtype} *){array};")

    def vector(
        self,
        at: str,
        lane: str,
        own: Own,
        lent: Mapping[str, str] = MappingProxyType({}),
        counts: bool = True,
        line: str | None = None,
        width: str = "",
    ) -> None:
        """A vector, accumulated in lanes of its own. `lent`: what stands for places; `counts`: whether it asks for the
        loop's counter, which is `at` in the first lane; `width`: how many lanes count, if not all."""
        to, spell = self.to, self.spell
        alone = lane == "lc_lane"  # else they are several vectors, which an array holds
        each = self.spread(own) if alone else own
        truths = self.truths(at, lane.removesuffix("lc_lane"), width or self.lanes)
        spell.lent = {**lent, **truths, **{spell.place(s, ()): f"{name}[{lane}]" for s, (name, _) in each.items()}}
        to.put(line or "#pragma omp simd")
        to.put(f"for (int lc_lane = 0; lc_lane < {self.lanes}; lc_lane++) {{")
        if counts:
            to.put(f"    const int64_t {spell.names[self.loop.var]} = {at} + {lane};")
        self.iteration()
        to.put("}")
        spell.lent = {}
        if alone:
            self.collect(each, own)

    def truths(self, at: str, before: str, width: str) -> dict[str, str]:
        """What stands for truths in memory: words, as wide as the numbers beside them."""
        to, lent = self.to, {}
        for place in truths_of(self.loop, self.spell.table):
            words = self.name(f"{place.buffer}_words")
            there = to.address(place.subs({self.loop.var: Dim.of(at)}))
            to.put(f"lc_word_{to.dtype} {words}[{self.lanes}] __attribute__((aligned(64)));")
            to.put(f"lc_truths_{to.dtype}({words}, {before}{there}, {width});")
            lent[self.spell.place(place.buffer, place.index)] = f"{words}[lc_lane]"
        return lent

    def iteration(self) -> None:
        """What one does, in lanes or alone."""
        self.to.inside(self.loop.body, self.path)

    def joined(self, s: str, op: str, parts: list[str]) -> str:
        """What the vectors have of a lane."""
        a, b, c, d = parts
        if op in ("max", "min"):
            of = extreme(op, self.spell.ctype(self.spell.table[s].dtype))
            return f"{of}({of}({a}, {b}), {of}({c}, {d}))"
        sign = C_OPS[op][0]
        return f"({a} {sign} {b}) {sign} ({c} {sign} {d})"

    def accumulated(self, s: str, op: str, value: str, place: str | None = None) -> str:
        """A statement that accumulates a value, in the variable itself if in no other place."""
        place = place or self.spell.place(s, ())
        if op in ("max", "min"):
            return f"{place} = {extreme(op, self.spell.ctype(self.spell.table[s].dtype))}({place}, {value})"
        return f"{place} {C_OPS[op]} {value}"
