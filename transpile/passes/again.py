"""What has been asked is not asked again: a check, where a number leads to, which way a branch goes.

    check 0 <= k < K; at = place(k)                  check 0 <= k < K; at = place(k)
    s += x[at]                                       s += x[at]
    check 0 <= k < K; at_2 = place(k)        ->      d_x[at] += g
    d_x[at_2] += g

    if c: r = f(x)                                   if c: r = f(x); t = g(r)
    if c: t = g(r)                           ->

    if c: r = exp(x)                                 if c: r = exp(x)
    s += h(x)                                ->      s += h(x)
    if c: r = exp(x); t = g(r)                       if c: t = g(r)

    for i: at[i] = dst[i]; check ..; ..              for i: at[i] = dst[i]; check ..; ..
    .. top[at[i]]                            ->      .. top[at[i]]
    for i: at_2[i] = dst[i]; check ..; ..            .. total[at[i]]
    .. total[at_2[i]]

A gradient goes where its function went, and would ask the same of each number that it looks up. What one way of a
branch leaves in a variable that only the other reads is not stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from ..dims import Dim
from ..ir import Check, Expr, For, If, Kernel, Op, Stmt, Store
from ..operations import flops
from .strips import set_first
from .tree import (
    Body,
    accesses,
    bodies,
    dim_loads,
    has,
    loads,
    map_bodies,
    parts,
    rename_buffers,
    roots,
    substitute,
    touched,
    walk,
    written,
)

DEAR = 8  # flops of one operation


def again(kernel: Kernel) -> Kernel:
    if not has(kernel.body, If, Check):
        return kernel
    state = _Asked(kernel)
    body = state.body(kernel.body, _Known())
    return replace(kernel, body=body) if body != kernel.body else kernel


@dataclass
class _Known:
    holds: set[Expr] = field(default_factory=set)
    values: dict[Expr, str] = field(default_factory=dict)  # and the variable that has it
    places: dict[Stmt, str] = field(default_factory=dict)  # what makes an array of places, and that array
    made: set[Store] = field(default_factory=set)  # dear numbers, which variables have
    by_ways: set[tuple[Expr, bool, Store]] = field(default_factory=set)  # ... if a branch went one way

    def without(self, buffers: set[str], root: Mapping[str, str]) -> _Known:
        """After something has been written."""
        changed = {root[name] for name in buffers}

        def stays(expr: Expr) -> bool:
            return not any(root[load.buffer] in changed for load in loads(expr))

        def is_still(store: Store) -> bool:
            return store.buffer not in changed and stays(store.value)

        values = {e: name for e, name in self.values.items() if name not in changed and stays(e)}
        by_ways = {(c, way, s) for c, way, s in self.by_ways if stays(c) and is_still(s)}
        places = {s: n for s, n in self.places.items() if not {root.get(r, r) for r in (n, *touched((s,)))} & changed}
        return _Known({e for e in self.holds if stays(e)}, values, places, set(filter(is_still, self.made)), by_ways)

    def on(self, cond: Expr, way: bool) -> _Known:
        """On one way of a branch."""
        return replace(self, made=self.made | {s for c, w, s in self.by_ways if (c, w) == (cond, way)})


class _Asked:
    def __init__(self, kernel: Kernel) -> None:
        self.root = roots(kernel)
        aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
        asked = {load.buffer for b in kernel.buffers for d in b.shape for load in dim_loads(d)}
        numbers = (b for b in kernel.buffers if b.kind == "temp" and not b.shape)
        self.numbers = {b.name: b.dtype for b in numbers if b.name not in aliased | asked}
        self.arrays = {
            b.name: b.shape
            for b in kernel.buffers
            if b.kind == "temp" and b.shape and b.dtype == "i64" and b.name not in aliased | asked
        }
        found = list(accesses(kernel.body))
        self.uses = Counter(a.buffer for a in found)
        self.stores = Counter(a.buffer for a in found if a.writes)

    def body(self, body: Body, known: _Known) -> Body:
        done: list[Stmt] = []
        rest = self.joined(body)
        while rest:
            stmt, rest = rest[0], rest[1:]
            match stmt:
                case Check(cond) if cond in known.holds:
                    continue
                case Store() if stmt in known.made:
                    continue
                case Store(name, (), value, None) if self.is_place(name) and self.all_in(name, (stmt, *rest)):
                    if value in known.values:
                        rest = rename_buffers(rest, {name: known.values[value]})
                        continue
            if (made := self.places(stmt)) is not None:
                name, how = made
                if how in known.places and self.all_in(name, (stmt, *rest)):
                    rest = rename_buffers(rest, {name: known.places[how]})
                    continue
                known = known.without({name}, self.root)
                known = replace(known, places={**known.places, how: name})
            elif isinstance(stmt, If):
                stmt, known = self.branch(stmt, known)
            elif bodies(stmt):
                known = known.without(written((stmt,)), self.root)
                stmt = map_bodies(stmt, partial(self.body, known=known))
            else:
                known = self.behind(stmt, known)
            done.append(stmt)
        return tuple(done)

    def branch(self, stmt: If, known: _Known) -> tuple[If, _Known]:
        """The branch, and what is known behind it: of what a way leaves, whoever asks the same has it."""
        changed = written((stmt,))
        behind = known.without(changed, self.root)
        same = not {self.root[e.buffer] for e in loads(stmt.cond)} & {self.root[n] for n in changed}
        ways = []
        for way, inner in ((True, stmt.then), (False, stmt.orelse)):
            first = known.on(stmt.cond, way)
            ways.append(self.body(inner, replace(first, holds=behind.holds, values=behind.values)))
            last = reduce(lambda left, s: self.behind(s, left), inner, first)
            behind.by_ways.update((stmt.cond, way, s) for s in last.made - known.made if same)
        return self.without_idle(If(stmt.cond, *ways)), behind

    def behind(self, stmt: Stmt, known: _Known) -> _Known:
        known = known.without(written((stmt,)), self.root)
        match stmt:
            case Check(cond):
                return replace(known, holds=known.holds | {cond})
            case Store(name, (), value, None) if self.is_place(name):
                return replace(known, values={**known.values, value: name})
            case Store(name, (), value, None) if name in self.numbers and _is_dear(value):
                if not any(load.buffer == name for load in loads(value)):
                    return replace(known, made=known.made | {stmt})
        return known

    def places(self, stmt: Stmt) -> tuple[str, Stmt] | None:
        """An array of places that is made here and nowhere else, and how: the same whatever its name, and those of
        counters."""
        if not isinstance(stmt, For) or len(names := written((stmt,))) != 1:
            return None
        (name,) = names
        inner = list(walk((stmt,)))
        if name not in self.arrays or sum(isinstance(s, Store) for s in inner) != self.stores[name]:
            return None
        if not all(
            (isinstance(s, For) and s.kind == "map") or (isinstance(s, Store) and s.op is None) or isinstance(s, Check)
            for s in inner
        ):
            return None
        counters = [s.var for s in inner if isinstance(s, For)]
        plain = {var: f"<{k}>" for k, var in enumerate(counters)}

        def renamed(s: Stmt) -> Stmt:
            match s:
                case For(var=var):
                    return replace(s, var=plain[var], body=tuple(map(renamed, s.body)))
                case Check():
                    return replace(s, number=0)
            return s

        (how,) = substitute(rename_buffers((stmt,), {name: "<places>"}), {v: Dim.of(p) for v, p in plain.items()})
        return name, renamed(how)

    def is_place(self, name: str) -> bool:
        return self.numbers.get(name) == "i64" and self.stores[name] == 1

    def all_in(self, name: str, body: Body) -> bool:
        return sum(a.buffer == name for a in accesses(body)) == self.uses[name]

    def joined(self, body: Body) -> Body:
        """Neighbours that ask the same are one branch, if the first does not change what they ask."""
        found: list[Stmt] = []
        for stmt in body:
            last = found[-1] if found else None
            if isinstance(stmt, If) and isinstance(last, If) and stmt.cond == last.cond:
                changed = {self.root[name] for name in written((last,))}
                if not any(self.root[load.buffer] in changed for load in loads(stmt.cond)):
                    found[-1] = If(stmt.cond, (*last.then, *stmt.then), (*last.orelse, *stmt.orelse))
                    continue
            found.append(stmt)
        return tuple(found)

    def without_idle(self, stmt: If) -> If:
        """Without what one way stores in variables that, if anywhere, are read in the other."""
        own = {name for name in touched((stmt,)) & self.numbers.keys() if self.all_in(name, (stmt,))}
        own -= {load.buffer for load in loads(stmt.cond)}

        def kept(way: Body, other: Body) -> Body:
            """But for what the other way is asked for before it is set there: an earlier turn of a loop left it."""
            return _without(way, {n for n in own - _read(way) if set_first(n, other)})

        return If(stmt.cond, kept(stmt.then, stmt.orelse), kept(stmt.orelse, stmt.then))


def _is_dear(value: Expr) -> bool:
    return any(isinstance(p, Op) and flops(p.op) >= DEAR for p in parts(value))


def _read(body: Body) -> set[str]:
    return {a.buffer for a in accesses(body) if not a.writes}


def _without(body: Body, names: set[str]) -> Body:
    kept = (s for s in body if not (isinstance(s, Store) and s.buffer in names))
    return tuple(map_bodies(s, lambda inner: _without(inner, names)) for s in kept)
