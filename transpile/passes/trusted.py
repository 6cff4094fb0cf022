"""Whether all places that an innermost loop looks up are there is asked before it, in vectors.

    for c in 0..C:                                    fails = 0
        if x[c] < 0:                                  for c in 0..C: ok = x[c] < 0 or 0 <= int(x[c]) < K
            y[c] = 0                                                 fails = max(fails, not ok)
        else:                               ->        if fails: as before
            k = int(x[c]); check 0 <= k < K           else:
            y[c] = t[c,k]                                 for c in 0..C: k = where(x[c] >= 0 and .., int(x[c]), 0)
                                                                         y[c] = where(x[c] < 0, 0, t[c,k])

A check is a way out of the loop, and a branch around it a choice that must be made, so the loop would be scalar. Where
some check fails, the loop as it was finds the first. Places that nobody asks for are 0, so there must be one. What has
been found there, and may be rounded otherwise in the second loop, is held at the end of the array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce

from ..dims import Dim, minimum
from ..ir import (
    FLOATS,
    Buffer,
    Check,
    Comment,
    Const,
    Expr,
    For,
    Grow,
    If,
    Int,
    Kernel,
    Load,
    Op,
    Product,
    Stmt,
    Store,
    While,
)
from ..operations import flops
from .depend import Memory, injective, neighbours
from .guards import margins
from .predicate import conjunction, harmless, is_within, made_each_turn, masked
from .products import step
from .questions import all_of, compared
from .ranges import conjuncts
from .share import dtype_of
from .tree import (
    Body,
    Names,
    accesses,
    anew,
    another,
    bodies,
    dim_loads,
    has,
    loads,
    map_bodies,
    parts,
    rename_buffers,
    symbols,
    walk,
    written,
)

MOST = 400  # flops of all ways of an iteration: a vector makes all of them for each element
FEWEST = 8  # iterations: half a vector
FAILS = "fails?"  # stands for the number that says whether a check fails
_Single = dict[str, tuple[str, tuple[Dim, ...]]]  # array -> the number of its element, and where that is


def trusted(kernel: Kernel) -> Kernel:
    if not has(kernel.body, Check):
        return kernel
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _Stays(Exception):
    """The loop stays as it is."""


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table = {b.name: b for b in kernel.buffers}
        self.names = Names.of(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.made: list[Buffer] = []

    def number(self, base: str, dtype: str) -> str:
        buffer = Buffer(self.names.fresh(base), dtype, (), "temp")
        self.made.append(buffer)
        self.table[buffer.name] = buffer
        return buffer.name

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        inside = memory.inside(stmt) if isinstance(stmt, For) else memory
        if isinstance(stmt, For) and stmt.kind == "map" and _is_innermost(stmt) and has(stmt.body, Check):
            try:
                return self.asked_before(stmt, inside)
            except _Stays:
                return (stmt,)
        return (map_bodies(stmt, lambda inner: self.body(inner, inside)),)

    def asked_before(self, loop: For, memory: Memory) -> Body:
        own = self.numbers(loop)
        if not self.is_along_memory(loop, memory):
            raise _Stays
        one = self.left_at_once(loop)
        flat = _Flat(self, loop, own | {n for n, _ in one.values()}, memory.known)
        flat.of(_as_numbers(loop.body, one), memory, None, None)
        whole = (*flat.done, *(Store(b, i, Load(n, (), self.table[b].dtype)) for b, (n, i) in one.items()))
        if not any(s.buffer == FAILS for s in whole):
            raise _Stays  # what is asked is the same for all: others ask it before
        work = _without_unread(tuple(s for s in whole if s.buffer != FAILS), flat.own)
        if _effort(whole, loop.var) > MOST or neighbours(work, loop.var, memory.root):
            raise _Stays
        first = _leads_to(FAILS, whole)
        if memory.roots(written(work)) & memory.roots(e.buffer for s in first for e in loads(s.value) if e.index):
            raise _Stays
        fails = self.number("fails", "i32")
        ask = self.with_own_numbers(replace(loop, body=first), fails)
        questions = [compared("greater_equal", loop.hi - loop.lo, FEWEST), *dict.fromkeys(flat.questions)]
        some = Op("greater", (Load(fails, (), "i32"), Const(0, "i32")), "bool")
        as_it_was, made = another(loop, self.names, self.uses, self.table)
        self.made += made
        return (
            Store(fails, (), Const(1, "i32")),
            If(all_of(questions), (Store(fails, (), Const(0, "i32")), ask)),
            If(some, (anew(as_it_was, self.names),), (replace(loop, body=work),) if work else ()),
        )

    def with_own_numbers(self, loop: For, fails: str) -> For:
        stored = {s.buffer for s in loop.body if isinstance(s, Store)} - {FAILS}
        fresh = {n: self.number(n, self.table[n].dtype) for n in sorted(stored)}
        return anew(replace(loop, body=rename_buffers(loop.body, {**fresh, FAILS: fails})), self.names)

    def numbers(self, loop: For) -> set[str]:
        """Numbers that each iteration makes anew; all else that it stores must be in arrays that it does not read."""
        stored = {s.buffer for s in walk(loop.body) if isinstance(s, Store)}
        inside = Counter(a.buffer for a in accesses(loop.body))
        own = set()
        for name in sorted(stored):
            b = self.table[name]
            modes = {a.mode for a in accesses(loop.body) if a.buffer == name}
            if b.shape:
                continue
            if b.kind == "temp" and not b.alias and inside[name] == self.uses[name] and _is_made_anew(name, loop):
                own.add(name)
            elif len(modes) > 1 or not modes <= {"add", "max", "min"}:
                raise _Stays
        return own

    def left_at_once(self, loop: For) -> _Single:
        """Arrays of which each way through the loop stores the same element, and a number for it."""
        found = {}
        inside = list(accesses(loop.body))
        for name in sorted({a.buffer for a in inside if a.index}):
            mine = [a for a in inside if a.buffer == name]
            (index, *others) = dict.fromkeys(a.index for a in mine)
            if index and len(mine) > 1 and not others and not any(map(_is_read, index)):
                if all(a.mode == "w" for a in mine) and made_each_turn(name, loop.body, loop):
                    found[name] = (self.number(name, self.table[name].dtype), index)
        return found

    def is_along_memory(self, loop: For, memory: Memory) -> bool:
        """Whether each iteration is beside the one before, but in what is looked up; and what is stored is read in one
        place of an iteration's own, if at all."""
        inside = [a for a in accesses(loop.body) if a.index]
        tables = {a.buffer for a in inside if any(map(_is_read, a.index or ()))}
        own = [a for a in inside if a.buffer not in tables and any(loop.var in d.symbols() for d in a.index or ())]
        beside = all(step(a.index or (), self.table[a.buffer].shape, loop.var) == 1 for a in own)
        stored, read = (memory.roots(a.buffer for a in inside if (a.mode != "r") == way) for way in (True, False))
        both = {(a.buffer, a.index) for a in inside if memory.root[a.buffer] in stored & read}
        alone = len(both) == len(stored & read) and all(loop.var in index[-1].symbols() for _, index in both if index)
        return bool(own) and beside and alone


def _is_innermost(loop: For) -> bool:
    return not loop.parallel and not has(loop.body, For, While, Grow, Product)


def _without_unread(body: tuple[Store, ...], own: set[str]) -> tuple[Store, ...]:
    """Without numbers of an iteration that nobody asks for."""
    found: list[Store] = []
    read = set[str]()
    for stmt in reversed(body):
        if stmt.buffer in own and stmt.buffer not in read:
            continue
        found.append(stmt)
        read |= {e.buffer for e in loads(stmt.value)} | {e.buffer for d in stmt.index for e in dim_loads(d)}
    return tuple(found[::-1])


def _effort(body: Body, var: str) -> int:
    """The flops of an iteration, if each part is computed once (`share`), and before the loop where it is the same."""
    stores = [s for s in body if isinstance(s, Store)]
    own = {s.buffer for s in stores}
    found = {p for s in stores for p in parts(s.value) if isinstance(p, Op)}
    return sum(flops(p.op) for p in found if var in symbols(p) or any(e.buffer in own for e in loads(p)))


def _is_made_anew(name: str, loop: For) -> bool:
    """Whether each iteration has a number of its own, or one way of it."""
    lists = [loop.body, *(inner for s in walk(loop.body) for inner in bodies(s))]
    return any(made_each_turn(name, inner, loop) for inner in lists)


def _is_read(dim: Dim) -> bool:
    return any(True for _ in dim_loads(dim))


def _as_numbers(body: Body, one: _Single) -> Body:
    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, Store) and s.buffer in one:
            return Store(one[s.buffer][0], (), s.value)
        return map_bodies(s, lambda inner: tuple(map(stmt, inner)))

    return tuple(map(stmt, body))


def _leads_to(name: str, body: tuple[Store, ...]) -> tuple[Store, ...]:
    """The statements that say what a number is, as far as other numbers do."""
    found: list[Store] = []
    needed = {name}
    for stmt in reversed(body):
        if stmt.buffer in needed and not stmt.index:
            found.append(stmt)
            needed |= {e.buffer for e in loads(stmt.value)}
    return tuple(found[::-1])


@dataclass
class _Flat:
    """The body of a loop as stores alone, for all ways. What a check asks is added up in the number FAILS."""

    state: _State
    loop: For
    own: set[str]
    known: tuple[Dim, ...]  # what is not negative before it
    done: list[Store] = field(default_factory=list)
    questions: list[Expr] = field(default_factory=list)  # to be asked before the loop
    begun: set[str] = field(default_factory=set)
    safe: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        inside = [a for a in accesses(self.loop.body) if a.index]
        self.places = {e.buffer for a in inside for d in a.index or () for e in dim_loads(d)}

    def of(self, body: Body, memory: Memory, mask: Expr | None, there: Expr | None) -> None:
        """`mask`: who comes here; `there`: who has found all places so far."""
        for stmt in body:
            match stmt:
                case Comment():
                    pass
                case Check(cond):
                    memory, there = self.check(cond, memory, mask, there)
                case If(cond, then, orelse):
                    self.holds(cond, memory, mask, there)
                    taken = self.truth("taken", cond)
                    self.of(then, memory, conjunction(mask, taken), there)
                    self.of(orelse, memory, conjunction(mask, Op("logical_not", (taken,), "bool")), there)
                case Store():
                    self.store(stmt, body, memory, mask, there)
                case _:
                    raise _Stays

    def truth(self, base: str, value: Expr) -> Expr:
        name = self.state.number(base, "bool")
        self.own.add(name)
        self.done.append(Store(name, (), value))
        return Load(name, (), "bool")

    def check(self, cond: Expr, memory: Memory, mask: Expr | None, there: Expr | None) -> tuple[Memory, Expr | None]:
        self.holds(cond, memory, mask, there)
        if self.is_same_for_all(cond):
            self.questions += conjuncts(cond)
            return memory.where(m for part in conjuncts(cond) for m in margins(part)), there
        ok = self.truth("ok", cond)
        fails = conjunction(mask, Op("logical_not", (ok,), "bool"))
        self.done.append(Store(FAILS, (), Op("where", (fails, Const(1, "i32"), Const(0, "i32")), "i32"), "max"))
        return memory, conjunction(there, ok)

    def is_same_for_all(self, value: Expr) -> bool:
        return self.loop.var not in symbols(value) and not any(loads(value))

    def holds(self, value: Expr, memory: Memory, mask: Expr | None, there: Expr | None) -> None:
        """Nothing but places that are there is read for those who do not come here."""
        if (mask is not None or there is not None) and not harmless(value, memory, safe=self.safe):
            raise _Stays
        self.has_one(e for e in loads(value) if e.index)

    def has_one(self, read: Iterable[Load]) -> None:
        for e in read:
            for place, extent in zip(e.index, self.state.table[e.buffer].shape, strict=True):
                if any(x.buffer in self.safe for x in dim_loads(place)):
                    self.questions.append(compared("greater_equal", extent, 1))

    def store(self, stmt: Store, body: Body, memory: Memory, mask: Expr | None, there: Expr | None) -> None:
        self.holds(stmt.value, memory, mask, there)
        dtype = self.state.table[stmt.buffer].dtype
        who = mask if there is None else conjunction(mask, there)
        if stmt.buffer in self.own:
            self.done.append(self.own_number(stmt, body, mask, there, memory.known != self.known))
            return
        if mask is not None and dtype not in FLOATS:
            raise _Stays
        place = Load(stmt.buffer, stmt.index, dtype)
        self.has_one([place])
        if who is not None and not is_within(stmt.buffer, stmt.index, memory, self.safe):
            raise _Stays
        if mask is not None and not stmt.op and any(map(_is_read, stmt.index)):
            raise _Stays  # who does not come here would store again what was at place 0
        if stmt.index and not injective(stmt.index, self.loop.var, memory.facts):
            raise _Stays
        self.done.append(masked(self.alone(stmt, mask), mask, self.state.table))

    def own_number(self, stmt: Store, body: Body, mask: Expr | None, there: Expr | None, told: bool) -> Store:
        dtype = self.state.table[stmt.buffer].dtype
        who = mask if there is None else conjunction(mask, there)
        within = made_each_turn(stmt.buffer, body, self.loop)
        if stmt.buffer in self.places:
            if not within or dtype != "i64":
                raise _Stays
            self.safe.add(stmt.buffer)
            if told and self.is_same_for_all(stmt.value):
                return stmt  # it is there, whoever reads it: gathered under a mask, what lies in steps is no vector
            if mask is None and there is None:
                raise _Stays
            place = stmt.value
            if there is not None and self.may_be_fused(place):
                place, who = Op("where", (there, place, self.last(stmt.buffer)), "i64"), mask
            return replace(stmt, value=place if who is None else Op("where", (who, place, Const(0, "i64")), "i64"))
        if within or stmt.buffer not in self.begun:
            self.begun.add(stmt.buffer)
            return stmt
        if mask is None:
            return stmt
        stmt = self.alone(stmt, mask)
        return replace(stmt, value=Op("where", (mask, stmt.value, Load(stmt.buffer, (), dtype)), dtype))

    def may_be_fused(self, value: Expr) -> bool:
        """Whether a product and a sum in it may be rounded together in one loop, and apart in another."""
        for part in parts(value):
            match part:
                case Op("add" | "subtract", args, dtype) if dtype in FLOATS:
                    if any(isinstance(self.full(a), Op) for a in args):
                        return True
                case Load() if (full := self.full(part)) != part and self.may_be_fused(full):
                    return True
        return False

    def full(self, value: Expr) -> Expr:
        """What a number of the iteration's own is."""
        if not isinstance(value, Load) or value.index or value.buffer not in self.own:
            return value
        made = [s.value for s in self.done if s.buffer == value.buffer]
        return self.full(made[0]) if len(made) == 1 else value

    def last(self, name: str) -> Expr:
        """The last place of the arrays where a number is one."""
        extents = dict.fromkeys(
            extent
            for a in accesses(self.loop.body)
            for d, extent in zip(a.index or (), self.state.table[a.buffer].shape)
            if any(x.buffer == name for x in dim_loads(d))
        )
        return Int(reduce(minimum, extents) - 1)

    def alone(self, stmt: Store, mask: Expr | None) -> Store:
        """With a number for what is chosen: gcc would read memory only where it is chosen, one by one."""
        if mask is None or not any(e.index for e in loads(stmt.value)):
            return stmt
        dtype = dtype_of(stmt.value)
        value = self.state.number("value", dtype)
        self.own.add(value)
        self.done.append(Store(value, (), stmt.value))
        return replace(stmt, value=Load(value, (), dtype))


__all__ = ["trusted"]
