"""Rows that add to one place from shifted windows are one row over what they share.

    for b in 0..3:                                                  for k in 0..1: y[k] += x[k] * w[1]; ...
        for k in max(0, 1 - b)..min(W, W + 1 - b):      ->          for k in 1..W - 1:
            y[k] += x[k + b - 1] * w[b]                                 y[k] += x[k - 1] * w[0]; ... += x[k + 1] * w[2]
                                                                    for k in W - 1..W: ...

What is added up stays in a register, and one loop fills vectors where each of three left a rest. Where what is added to
moves with the window (`d_x[k + b - 1] += dy[k] * w[b]`), each row is counted from there. Every place is added to in the
order it was; sums of a whole row come in another order. What several statements of any loop along memory add to one
place is summed first, and added once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby, takewhile

from ..dims import Atom, Dim, Facts, maximum, minimum, nonnegative
from ..ir import FLOATS, Buffer, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .depend import Memory, distinct
from .predicate import may_trap
from .products import stride
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    anew,
    buffers,
    dim_loads,
    map_bodies,
    map_expr,
    parts,
    substitute,
    symbols,
)
from .windows import FARTHEST, STRIP

MOST_ROWS = 20  # that are written out
NEAR = 8  # elements
_OPS = (None, "add", "max", "min")
_Place = tuple[str, Index]


def overlap(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


@dataclass(frozen=True)
class _Row:
    """A loop along memory, and what has to hold for it."""

    conds: tuple[Expr, ...]
    loop: For


@dataclass(frozen=True)
class _Range:
    """Where a row is: from lo to before hi."""

    lo: Dim
    hi: Dim


@dataclass(frozen=True)
class _Target:
    """Places of an array that a row may go along: every `step`-th from `phase` on."""

    buffer: str
    outer: Index
    step: int
    phase: int


@dataclass(frozen=True)
class _Part:
    where: _Range
    stmt: Store


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.names, self.memory = buffers(kernel), Names.of(kernel), Memory.of(kernel)
        self.made: list[Buffer] = []

    def body(self, body: Body, facts: Facts) -> Body:
        found: list[Stmt] = []
        rest = list(body)
        while rest:
            if (made := self.regrouped(rest, facts)) is not None:
                found += made
                continue
            stmt = rest.pop(0)
            if isinstance(stmt, For) and self.windows(stmt, found, rest, facts):
                continue
            if isinstance(stmt, For) and stmt.kind == "map" and all(isinstance(s, Store) for s in stmt.body):
                found.append(self.summed_first(stmt))
            elif isinstance(stmt, For):
                found.append(replace(stmt, body=self.body(stmt.body, {**facts, stmt.var: (stmt.lo, stmt.hi - 1)})))
            else:
                found.append(map_bodies(stmt, lambda inner: self.body(inner, facts)))
        return tuple(found)

    def windows(self, stmt: For, found: list[Stmt], rest: list[Stmt], facts: Facts) -> bool:
        """Whether a loop was rows of windows, which now are at the end of `found`; with the rows beside it that what is
        added to begins with or ends in, taken from there and from `rest`."""
        plain = None if self.is_row(stmt) else self.rows(stmt, ())
        rows = plain or self.whole(stmt)
        if not rows or not 1 < len(rows) <= MOST_ROWS:
            return False
        stored = {s.buffer for row in rows for s in row.loop.body if isinstance(s, Store)}
        steps = any(self.goes_by_steps(row.loop) for row in rows)

        def beside(stmts: list[Stmt]) -> list[_Row]:
            near = [s for s in stmts if isinstance(s, For) and self.is_beside(s, stored)]
            return [_Row((), s) for s in near if steps or not self.goes_by_steps(s)]

        before, behind = beside(found[-1:]), beside(rest[:1])
        made, joined = self.joined([*before, *rows, *behind], facts)
        if not joined and not plain:
            before, behind = [], []
            made, joined = self.joined(rows, facts)
        if not joined and not plain:
            return False
        found[len(found) - len(before) :] = made
        del rest[: len(behind)]
        return True

    # -- rows that add to several others -----------------------------------------------------------------------
    def regrouped(self, rest: list[Stmt], facts: Facts) -> list[Stmt] | None:
        """One loop for each row that those at the beginning of `rest` add to, and takes them from there; None where no
        two of them add to one row."""
        loops = [s for s in takewhile(self.adds, rest) if isinstance(s, For)]
        if len(loops) < 2:
            return None
        groups: dict[tuple[str, Index, int, int], list[For]] = {}
        var = self.names.fresh("k")
        for loop in loops:
            for stmt in loop.body:
                assert isinstance(stmt, Store)
                last = stmt.index[-1].subs({loop.var: Dim.of(var)})
                rows = groups.setdefault((stmt.buffer, stmt.index[:-1], *_phase(last, var)), [])
                if rows and rows[-1].var == loop.var:
                    rows[-1] = replace(rows[-1], body=(*rows[-1].body, stmt))
                else:
                    rows.append(replace(loop, body=(stmt,)))
        added = self.memory.roots({name for name, *_ in groups})
        read = self.memory.roots({a.buffer for a in accesses(loops) if a.mode == "r"})
        if added & read or not any(1 < len(rows) <= MOST_ROWS for rows in groups.values()):
            return None
        made: list[Stmt] = []
        joined = False
        for rows in groups.values():
            one = self.one(rows, facts, "apart") if 1 < len(rows) <= MOST_ROWS else None
            made += one or [self.summed_first(anew(row, self.names)) for row in rows]
            joined = joined or one is not None
        if not joined:
            return None
        del rest[: len(loops)]
        return made

    def adds(self, stmt: Stmt) -> bool:
        """Whether it is a row that does nothing but add along memory."""
        if not isinstance(stmt, For) or not self.is_row(stmt):
            return False
        return all(isinstance(s, Store) and s.op == "add" and stmt.var in s.index[-1].symbols() for s in stmt.body)

    # -- the rows of a window ----------------------------------------------------------------------------------
    def rows(self, stmt: Stmt, conds: tuple[Expr, ...]) -> list[_Row] | None:
        """Those of a loop over a window, written out; None where there is anything else."""
        match stmt:
            case For() if self.is_row(stmt):
                return [_Row(conds, stmt)]
            case For(var, lo, hi, body, "map", False) if 1 < ((hi - lo).value or 0) <= MOST_ROWS:
                written = [s for k in range((hi - lo).value or 0) for s in substitute(body, {var: lo + k})]
                return self.all_rows(tuple(written), conds)
            case If(cond, then, ()) if not any(isinstance(part, Load) or may_trap(part) for part in parts(cond)):
                return self.all_rows(then, (*conds, cond))
        return None

    def all_rows(self, body: Body, conds: tuple[Expr, ...]) -> list[_Row] | None:
        found: list[_Row] = []
        for stmt in body:
            if (rows := self.rows(stmt, conds)) is None:
                return None
            found += rows
        return found

    def is_row(self, loop: Stmt) -> bool:
        """Whether it is a loop along memory, or by few elements, of an extent that is not known, that stores or
        accumulates."""
        if not isinstance(loop, For) or loop.kind != "map" or loop.parallel:
            return False
        if (loop.hi - loop.lo).value is not None or any(any(dim_loads(d)) for d in (loop.lo, loop.hi)):
            return False
        if not all(isinstance(s, Store) and s.op in _OPS and s.index for s in loop.body):
            return False
        places = [a for a in accesses(loop.body) if a.index]
        if any(d.split(loop.var) is None for a in places for d in a.index or ()):
            return False
        steps = [stride(a.index or (), self.table[a.buffer].shape, loop.var).value for a in places]
        return all(s is not None and 0 <= s <= FARTHEST for s in steps)

    def is_beside(self, stmt: Stmt, stored: set[str]) -> bool:
        """Whether it is the row that what is added to begins with, or ends in."""
        return self.is_row(stmt) and any(a.buffer in stored for a in accesses((stmt,)))

    def whole(self, strips: For) -> list[_Row] | None:
        """The rows of all strips at once: what goes over a row several times does so in strips, but not what is one."""
        rows = self.all_rows(strips.body, ()) if not self.is_row(strips) and strips.lo.value == 0 else None
        found = [_unstripped(row, strips) for row in rows or []]
        whole = [row for row in found if row is not None]
        ends, count = [row.loop.hi for row in whole], strips.hi
        last = next((end for end in ends if (end + (STRIP - 1)) // STRIP == count), None)
        if last is None or len(whole) < len(found) or not all(nonnegative(last - end) for end in ends):
            return None
        return whole

    # -- one row of them ---------------------------------------------------------------------------------------
    def joined(self, rows: list[_Row], facts: Facts) -> tuple[Body, bool]:
        """All as one where all conditions hold, which they do but at the edges of an array; else those that hang on the
        same. And whether they are one."""
        apart: list[Stmt] = []
        rest = rows
        while rest:
            count = next((n for n, row in enumerate(rest) if row.conds != rest[0].conds), len(rest))
            first, rest = rest[:count], rest[count:]
            loops = [row.loop for row in first]
            told = "alone" if count == len(rows) else "apart"
            alone = self.one(loops, facts, told)
            body: Body = alone or tuple(anew(loop, self.names) for loop in loops)
            for cond in reversed(first[0].conds):
                body = (If(cond, body),)
            apart += body
        conds = list(dict.fromkeys(cond for row in rows for cond in row.conds))
        together = (
            self.one([row.loop for row in rows], facts, "together")
            if any(row.conds != rows[0].conds for row in rows)
            else None
        )
        if together is None:
            return tuple(apart), count == len(rows) and alone is not None
        for cond in conds[1:]:
            conds[0] = Op("logical_and", (conds[0], cond), "bool")
        return (If(conds[0], together, tuple(apart)),), True

    def one(self, loops: list[For], facts: Facts, told: str) -> Body | None:
        """One loop over all of their ranges, which are nearly the same; at its ends not every row is there. `told`: how
        loops outside are told what is added to. "alone": by the loops as they are, beside it; "apart": by adding one
        sum; "together": by those that are apart."""
        var = self.names.fresh(loops[0].var)
        loops = [replace(loop, lo=_told(loop.lo, facts), hi=_told(loop.hi, facts)) for loop in loops]
        loops = self.counted_from_targets(loops, var)
        if len(loops) < 2 or not self.may_join(loops, var):
            return None
        low, high = loops[0].lo, loops[0].hi
        for loop in loops[1:]:
            low, high = maximum(low, loop.lo, facts), minimum(high, loop.hi, facts)
        share = Op("less_equal", (Int(low), Int(high)), "bool")
        parts = [_Part(_Range(r.lo, r.hi), s) for r in loops for s in r.body if isinstance(s, Store)]  # as all are
        ends = _hull([_Range(row.lo, row.hi) for row in loops], facts)
        apart = tuple(anew(loop, self.names) for loop in loops)

        def whole() -> tuple[For, bool]:
            body, within = self.in_registers(parts, var, facts, told)
            return For(var, ends.lo, ends.hi, _guarded(body, ends, var), "map"), within

        if (low, high) == (ends.lo, ends.hi) or not any(self.goes_by_steps(loop) for loop in loops):
            loop, within = whole()
            return (loop,) if within else (If(share, (loop,), apart),)
        # No masks go by steps: what all rows have is a loop without a branch. (Loops outside are told by `apart`.)
        every = tuple(p.stmt for p in self.in_registers(parts, var, facts, told)[0])
        begin, end = replace(whole()[0], hi=low), replace(whole()[0], lo=high)
        return (If(share, (anew(begin, self.names), For(var, low, high, every, "map"), anew(end, self.names)), apart),)

    def goes_by_steps(self, loop: For) -> bool:
        """Whether something that it touches is not neighbour by neighbour in memory."""
        places = ((a.index, self.table[a.buffer].shape) for a in accesses(loop.body) if a.index)
        return any((stride(index, shape, loop.var).value or 0) > 1 for index, shape in places)

    def counted_from_targets(self, loops: list[For], var: str) -> list[For]:
        """By one variable that is at the same place of what is stored as that of other rows, where they walk along it:
        the middle one of the places, which what stands still is near, too."""
        targets: dict[_Target, list[Dim]] = {}
        for loop in loops:
            for key, last in self.targets(loop, var):
                targets.setdefault(key, []).append(last)
        return [self.counted(loop, var, {key: _middle(lasts) for key, lasts in targets.items()}) for loop in loops]

    def targets(self, loop: For, var: str) -> list[tuple[_Target, Dim]]:
        """The rows that it stores to, and where. Of a row of steps of two, the even and the odd places are apart."""
        stores = [s for s in loop.body if isinstance(s, Store)]
        places = [(s.buffer, s.index[:-1], s.index[-1].subs({loop.var: Dim.of(var)})) for s in stores]
        return [
            (_Target(name, outer, *_phase(last, var)), last) for name, outer, last in places if var in last.symbols()
        ]

    def counted(self, loop: For, var: str, middle: dict[_Target, Dim]) -> For:
        steps = [(last - middle[row]) // row.step for row, last in self.targets(loop, var)]
        shift = next((s for s in steps if s.value is not None), Dim.of(0))
        body = substitute(loop.body, {loop.var: Dim.of(var) - shift})
        return replace(loop, var=var, lo=loop.lo + shift, hi=loop.hi + shift, body=body)

    def may_join(self, loops: list[For], var: str) -> bool:
        """Whether iterations of different rows meet only where they are of one place, or all add to one."""
        stored = {(s.buffer, s.index, s.op) for loop in loops for s in loop.body if isinstance(s, Store)}
        touched = {(a.buffer, a.index, a.mode) for loop in loops for a in accesses(loop.body)}
        if not self.are_near([(name, index) for name, index, _ in touched if index], var):
            return False
        for name, index, op in stored:
            moves = any(var in d.symbols() for d in index)
            if not moves and op is None:
                return False
            for other, there, mode in touched:
                if self.memory.root.get(name, name) != self.memory.root.get(other, other):
                    continue
                if there is None or other != name or any(var in d.symbols() for d in there) != moves:
                    return False
                if mode == "r" and (there != index or not moves):
                    return False
                if not moves and mode != op:
                    return False  # sums and extremes do not change places
                if moves and there != index and not distinct(there, index, var):
                    return False
        return True

    def are_near(self, places: list[tuple[str, Index]], var: str) -> bool:
        """Whether windows are close by, so that the rows share nearly all of their ranges."""
        ends: dict[tuple[str, Index], list[Dim]] = {}
        for name, index in places:
            if var in index[-1].symbols():
                ends.setdefault((name, index[:-1]), []).append(index[-1])
        apart = [(a - own[0]).value for own in ends.values() for a in own]
        return all(a is not None and abs(a) <= NEAR for a in apart)

    def several(self, loop: For) -> list[tuple[str, Index]]:
        """The places along memory that several statements store to, where no other is the same in any iteration."""
        places = [(s.buffer, s.index) for s in loop.body if isinstance(s, Store)]
        touched = [(a.buffer, a.index) for a in accesses(loop.body)]

        def alone(name: str, index: Index) -> bool:
            root = self.memory.root
            mine = [(n, i) for n, i in touched if root.get(n, n) == root.get(name, name)]
            return all(n == name and i is not None and (i == index or distinct(i, index, loop.var)) for n, i in mine)

        return [
            place
            for place in dict.fromkeys(places)
            if places.count(place) > 1 and any(loop.var in d.symbols() for d in place[1]) and alone(*place)
        ]

    def summed_first(self, loop: For) -> For:
        """With a variable for what several statements add to one place, which is added there at once: as before, loops
        outside may add there too. Or stored, where the first of them stores."""
        table = self.table
        first: dict[_Place, str | None] = {}
        for place in self.several(loop):
            begins, *more = [a.mode for a in accesses(loop.body) if (a.buffer, a.index) == place]
            if table[place[0]].dtype in FLOATS and begins in ("w", "add") and set(more) == {"add"}:
                first[place] = None if begins == "w" else "add"
        made = {place: self.variable(place[0]) for place in first}
        begun: set[str] = set()
        body: list[Stmt] = []
        for stmt in loop.body:
            assert isinstance(stmt, Store)
            own = made.get((stmt.buffer, stmt.index))
            body.append(replace(stmt, buffer=own, index=(), op="add" if own in begun else None) if own else stmt)
            begun |= {own} if own else set()
        body += [Store(*place, Load(name, (), table[place[0]].dtype), first[place]) for place, name in made.items()]
        return replace(loop, body=tuple(body))

    def in_registers(self, parts: list[_Part], var: str, facts: Facts, told: str) -> tuple[list[_Part], bool]:
        """With a variable for each place that several statements add to; whether this may stand for them wherever they
        run. It may where one of them goes wherever the place is read and stored: then none is touched which was not,
        even where the others share nothing. And loops outside must see that it is added to, or they would run at once
        what meets in one place: a sum of its own is added, but a load and a store look like any others."""
        loop = For(var, Dim.of(0), Dim.of(0), tuple(p.stmt for p in parts), "map")
        made = {place: self.variable(place[0]) for place in self.several(loop)}

        def held(expr: Expr) -> Expr:
            place = (expr.buffer, expr.index) if isinstance(expr, Load) else None
            return Load(made[place], (), expr.dtype) if place in made else expr  # type: ignore[union-attr]

        before: list[_Part] = []
        behind: list[_Part] = []
        within = True
        for place, name in made.items():
            there = [p for p in parts if place in ((a.buffer, a.index) for a in accesses((p.stmt,)))]
            modes = [{a.mode for a in accesses((p.stmt,)) if (a.buffer, a.index) == place} for p in there]
            where, mine = _hull([p.where for p in there], facts), Load(name, (), self.table[place[0]].dtype)
            sums = told == "apart" and mine.dtype in FLOATS and all(m == {"add"} for m in modes)
            begins = modes[0] == {"w"} and there[0].where == where
            within = within and (sums or begins or told == "together") and where in [p.where for p in there]
            if not begins:
                start = Const(0.0, mine.dtype) if sums else Load(*place, mine.dtype)
                before.append(_Part(where, Store(name, (), start)))
            behind.append(_Part(where, Store(*place, mine, "add" if sums else None)))
        for part in parts:
            stmt = replace(part.stmt, value=map_expr(part.stmt.value, held))
            own = made.get((stmt.buffer, stmt.index))
            before.append(replace(part, stmt=replace(stmt, buffer=own, index=()) if own else stmt))
        return before + behind, within

    def variable(self, buffer: str) -> str:
        name = self.names.fresh(f"{buffer}_sum")
        self.made.append(Buffer(name, self.table[buffer].dtype, (), "temp"))
        return name


def _unstripped(row: _Row, strips: For) -> _Row | None:
    """The row of all strips, counted from the beginning of the first; None where it is not the same in all of them."""
    loop, start = row.loop, Dim.of(strips.var) * STRIP
    first = [d + start for d in _choices(loop.lo, "max") if d.value != 0]
    end = [d + start for d in _choices(loop.hi, "min") if d.value != STRIP]
    if len(first) == len(_choices(loop.lo, "max")) or not end or len(end) == len(_choices(loop.hi, "min")):
        return None
    ends = [reduce(maximum, first, Dim.of(0)), reduce(minimum, end)]
    body = substitute(loop.body, {loop.var: Dim.of(loop.var) - start})
    dims = [*ends, *(d for a in accesses(body) for d in a.index or ())]
    values = [*row.conds, *(s.value for s in body if isinstance(s, Store))]
    if any(strips.var in d.symbols() for d in dims) or any(strips.var in symbols(e) for e in values):
        return None
    return replace(row, loop=replace(loop, lo=ends[0], hi=ends[1], body=body))


def _choices(bound: Dim, kind: str) -> list[Dim]:
    """What it is the largest (`max`) or the least (`min`) of."""
    match bound.symbol:
        case Atom(k, (Dim() as p, Dim() as q)) if k == kind:
            return [*_choices(p, kind), *_choices(q, kind)]
    return [bound]


def _phase(last: Dim, var: str) -> tuple[int, int]:
    """(the step, and which of the places within a step it is)."""
    coefficient, rest = last.split(var) or (Dim.of(1), last)
    step = coefficient.value or 1
    return step, sum(c for monomial, c in rest.terms if not monomial) % step


def _middle(lasts: list[Dim]) -> Dim:
    """The one in the middle; the first, where it is not known how far they are apart."""
    apart = {(last - lasts[0]).value for last in lasts}
    known = sorted(n for n in apart if n is not None)
    return lasts[0] + known[len(known) // 2] if len(known) == len(apart) else lasts[0]


def _hull(ranges: list[_Range], facts: Facts) -> _Range:
    """From the first of them to the last: all of it is in one of them, as they share something."""
    lo, hi = ranges[0].lo, ranges[0].hi
    for other in ranges[1:]:
        lo, hi = minimum(lo, other.lo, facts), maximum(hi, other.hi, facts)
    return _Range(lo, hi)


def _guarded(parts: list[_Part], ends: _Range, var: str) -> Body:
    """Each statement where it is, in a loop that goes over all."""
    found: list[Stmt] = []
    for where, group in groupby(parts, lambda p: p.where):
        body: Body = tuple(p.stmt for p in group)
        if where.hi != ends.hi:
            body = (If(Op("less", (Int(Dim.of(var)), Int(where.hi)), "bool"), body),)
        if where.lo != ends.lo:
            body = (If(Op("greater_equal", (Int(Dim.of(var)), Int(where.lo)), "bool"), body),)
        found += body
    return tuple(found)


def _told(dim: Dim, facts: Facts) -> Dim:
    """Without what is never the smallest or the largest."""
    match dim.symbol:
        case Atom("min", (Dim() as p, Dim() as q)):
            return minimum(_told(p, facts), _told(q, facts), facts)
        case Atom("max", (Dim() as p, Dim() as q)):
            return maximum(_told(p, facts), _told(q, facts), facts)
    return dim


__all__ = ["overlap"]
