"""Reductions along the innermost loop run in a register, and in blocks.

    for s: g[c] += f(x[c,s])      ->     wide = 0                                  (float64)
                                         for q in 0..(S + 1023)//1024:
                                             part = 0
                                             for s in q*1024 .. min(S, q*1024 + 1024): part += f(x[c,s])
                                             wide += part
                                         g[c] += real(wide)

A vector lane adds at most 64 numbers of a block, blocks are added in double: the error of a float32 sum
stays that of NumPy's pairwise one, whatever the length. Loops known to be short, and operations that do not
round, need no blocks. A place that only some steps ask for is added to if there is such a place:

    for s: if s != at: g[at] += f(s)      ->      part = 0
                                                  for s: if s != at: part += f(s)
                                                  if 0 <= at < G: g[at] += part
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile

from ..dims import Dim, Facts, minimum, nonnegative
from ..ir import FLOATS, Buffer, Cast, Check, Comment, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .aside import if_there
from .depend import Memory, distinct
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    dim_loads,
    loads,
    map_bodies,
    own_accesses,
    roots,
    symbols,
    walk,
    written,
)
from .work import work

BLOCK = 1024
NEUTRAL: dict[str, float] = {
    "add": 0.0,
    "mul": 1.0,
    "max": float("-inf"),
    "min": float("inf"),
    "or": 0,
    "and": 1,
}
Place = tuple[str, tuple[Dim, ...], str]  # buffer, index, operation


def neutral(op: str, dtype: str) -> Const:
    if dtype == "bool":
        return Const(op in ("and", "min", "mul"), "bool")
    if dtype in ("i32", "i64"):
        bits = 31 if dtype == "i32" else 63
        return Const({"add": 0, "mul": 1, "max": -(2**bits), "min": 2**bits - 1, "or": 0, "and": -1}[op], dtype)
    return Const(NEUTRAL[op], dtype)


def accumulate(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


class _State:
    def __init__(self, kernel: Kernel):
        self.table = {b.name: b for b in kernel.buffers}
        self.root = roots(kernel)
        self.names = Names.of(kernel)
        self.made: list[Buffer] = []

    def temp(self, base: str, dtype: str) -> str:
        name = self.names.fresh(base)
        self.made.append(Buffer(name, dtype, (), "temp"))
        return name

    def body(self, body: Body, facts: Facts) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For) and (places := self.in_a_register(stmt, facts)):
                for new in self.loop(stmt, places, facts):
                    found.append(self.begun(found, new))
            else:
                inner = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)} if isinstance(stmt, For) else facts
                found.append(map_bodies(stmt, partial(self.body, facts=inner)))
        return tuple(found)

    def in_a_register(self, loop: For, facts: Facts) -> list[Place]:
        """What an innermost loop accumulates in one place, and the one place of nested loops: a largest or a count of
        rows is that of all of them, where a sum would be rounded in another way."""
        if innermost(loop):
            return self.still(loop, facts)
        place = of_all(loop)
        if place is None or self.rounds(place) or place not in self.still(loop, facts):
            return []
        return [place] if self.is_there(place, facts) else []

    def still(self, loop: For, facts: Facts) -> list[Place]:
        """What is accumulated in a loop, but for what is carried over more loops than this, and for places of which
        nobody can tell behind the loop whether they are there."""
        found = [place for place in still(loop, self.root) if not self.table[place[0]].lanes]
        return [p for p in found if self.is_there(p, facts) or self.asked(loop, p)[1] or self.is_told(p, facts)]

    def is_there(self, place: Place, facts: Facts) -> bool:
        shape = self.table[place[0]].shape
        return all(nonnegative(i, facts) and nonnegative(n - 1 - i, facts) for i, n in zip(place[1], shape))

    def is_told(self, place: Place, facts: Facts) -> bool:
        """Whether the index can be asked: what it is looked up in has it, if nobody adds there, too."""
        looked = [load for d in place[1] for load in dim_loads(d)]
        there = all(self.is_there((load.buffer, load.index, "r"), facts) for load in looked)
        return there and self.table[place[0]].kind != "list"

    def asked(self, loop: For, place: Place) -> tuple[list[Expr], bool]:
        """What branches in a loop ask at each step before they accumulate, and whether they ask nothing else."""
        ways = list(_conditions(loop.body, place))
        changed = {self.root[name] for name in written(loop.body)}

        def varies(e: Expr) -> bool:
            return loop.var in symbols(e) or any(self.root[x.buffer] in changed for x in loads(e))

        common = [w[0] for w in takewhile(lambda w: w.count(w[0]) == len(w) and not varies(w[0]), zip(*ways))]
        return common, any(len(w) == len(common) for w in ways)

    def loop(self, loop: For, places: list[Place], facts: Facts) -> Body:
        blocked = not nonnegative(BLOCK - (loop.hi - loop.lo), facts) and any(self.rounds(p) for p in places)
        before: list[Stmt] = []
        start: list[Stmt] = []
        finish: list[Stmt] = []
        after: list[Stmt] = []
        inside = loop.body
        for place in places:
            buffer, index, op = place
            dtype = self.table[buffer].dtype
            part = self.temp("part", dtype)
            inside = redirected(inside, place, part)
            if blocked and self.rounds(place):
                wide = self.temp("wide", "f64")
                before.append(Store(wide, (), Const(0.0, "f64")))
                start.append(Store(part, (), neutral(op, dtype)))
                finish.append(Store(wide, (), _cast(Load(part, (), dtype), "f64"), op))
                after.append(self.if_any(loop, Store(buffer, index, _cast(Load(wide, (), "f64"), dtype), op), facts))
            else:
                before.append(Store(part, (), neutral(op, dtype)))
                after.append(self.if_any(loop, Store(buffer, index, Load(part, (), dtype), op), facts))
        inner: Stmt = replace(loop, body=inside)
        if blocked:
            inner = self.in_blocks(replace(loop, body=inside), tuple(start), tuple(finish))
        return (*before, inner, *after)

    def if_any(self, loop: For, store: Store, facts: Facts) -> Stmt:
        """Where no step asks for a place, there may be no such place."""
        place: Place = (store.buffer, store.index, store.op or "")
        if self.is_there(place, facts):
            return store
        asked, always = self.asked(loop, place)
        guarded: Stmt = store
        if not always:
            guarded = if_there(store, self.table[store.buffer], facts)
        elif not nonnegative(loop.hi - loop.lo - 1, facts):
            asked = [*asked, Op("less", (Int(loop.lo), Int(loop.hi)), "bool")]
        for cond in reversed(asked):
            guarded = If(cond, (guarded,))
        return guarded

    def begun(self, before: list[Stmt], new: Stmt) -> Stmt:
        """t = 0; ...; t += sum    ->    t = sum"""
        match new:
            case Store(buffer, (), value, str(op)) if self.table[buffer].kind == "temp":
                for k in range(len(before) - 1, -1, -1):
                    if before[k] == Store(buffer, (), neutral(op, self.table[buffer].dtype)):
                        del before[k]
                        return Store(buffer, (), value)
                    if any(a.buffer == buffer for a in accesses((before[k],))):
                        break
        return new

    def rounds(self, place: Place) -> bool:
        return place[2] == "add" and self.table[place[0]].dtype in FLOATS

    def in_blocks(self, loop: For, start: Body, finish: Body) -> For:
        q = self.names.fresh("q")
        first = loop.lo + Dim.of(q) * BLOCK
        inner = replace(loop, lo=first, hi=minimum(loop.hi, first + BLOCK))
        count = (loop.hi - loop.lo + (BLOCK - 1)) // BLOCK
        return For(q, Dim.of(0), count, (*start, inner, *finish), "map", work=work(loop, self.table))


def _conditions(body: Body, place: Place) -> Iterator[list[Expr]]:
    """What has been asked at each store to a place."""
    for stmt in body:
        match stmt:
            case Store(buffer, index, _, op) if (buffer, index, op) == place:
                yield []
            case If(cond, then, orelse):
                yield from ([cond, *more] for more in _conditions(then, place))
                yield from ([Op("logical_not", (cond,), "bool"), *more] for more in _conditions(orelse, place))


def innermost(loop: For) -> bool:
    return loop.kind == "map" and all(isinstance(s, (Store, If, Comment, Check)) for s in walk(loop.body))


def of_all(loop: For) -> Place | None:
    """The place where nested loops accumulate, if they do nothing else."""
    around: set[str] = set()
    stmt: Stmt = loop
    while isinstance(stmt, For) and stmt.kind == "map" and not stmt.parallel and len(stmt.body) == 1:
        around.add(stmt.var)
        stmt = stmt.body[0]
    if not isinstance(stmt, Store) or stmt.op is None:
        return None
    varies = any(d.symbols() & around or any(dim_loads(d)) for d in stmt.index)
    return None if varies else (stmt.buffer, stmt.index, stmt.op)


def still(loop: For, root: Mapping[str, str]) -> list[Place]:
    """What is accumulated into one place all through the loop, and not otherwise touched in it. Rank-0
    temporaries that begin beside the loop are registers already, unless they need blocks."""
    found: dict[Place, None] = {}
    changed = {root[name] for name in written(loop.body)}
    for stmt in walk(loop.body):
        if isinstance(stmt, Store) and stmt.op and not any(_varies(d, loop, changed, root) for d in stmt.index):
            found[(stmt.buffer, stmt.index, stmt.op)] = None
    touched: dict[str, list[tuple[Index | None, str]]] = {}
    for stmt in walk(loop.body):
        for buffer, index, mode in own_accesses(stmt):
            touched.setdefault(buffer, []).append((index, mode))

    def is_alone(place: Place) -> bool:
        name, index, op = place
        others = [there for there, mode in touched[name] if mode != op]
        return all(there is not None and distinct(index, there, loop.var) for there in others)

    return [place for place in found if is_alone(place)]


def _varies(dim: Dim, loop: For, changed: Collection[str], root: Mapping[str, str]) -> bool:
    return loop.var in dim.symbols() or any(root[load.buffer] in changed for load in dim_loads(dim))


def redirected(body: Body, place: Place, part: str) -> Body:
    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store) and (stmt.buffer, stmt.index, stmt.op) == place:
            return Store(part, (), stmt.value, stmt.op)
        return map_bodies(stmt, lambda inner: tuple(change(s) for s in inner))

    return tuple(change(s) for s in body)


def _cast(value: Expr, dtype: str) -> Expr:
    return value if not isinstance(value, Load) or value.dtype == dtype else Cast(value, dtype)
