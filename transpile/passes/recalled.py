"""What is looked up at a place that is told step by step is kept beside the place: it is known where the place is set.

    k = 2*i                                               k = 2*i; v = x[2*i]
    for r in ..: if x[r] > x[k]: k = r             ->     for r in ..: if x[r] > v: k = r; v = x[r]
    y[i] = x[k]                                           y[i] = v

A largest that is kept as the place where it is then is one that is kept as it is: nothing waits for a lookup, whoever
does not ask for the place need not have it, and steps may be done side by side. Of arguments only, which nobody
changes; where loops ask again and again, and set all numbers of the place at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..dims import Dim
from ..ir import Buffer, Expr, For, If, Int, Kernel, Load, Stmt, Store, While
from .depend import Memory
from .spans import numbers_of, within
from .strips import set_first
from .tree import (
    Body,
    Names,
    accesses,
    bodies,
    dim_loads,
    loads,
    map_all,
    map_bodies,
    map_expr,
    own_dims,
    own_exprs,
    roots,
    symbols,
    touched,
    walk,
    written,
)


def recalled(kernel: Kernel) -> Kernel:
    numbers, root = numbers_of(kernel), roots(kernel)
    given = {b.name for b in kernel.buffers if b.kind == "in"}
    names, fixed = Names.of(kernel), frozenset({*kernel.dims, *(s.name for s in kernel.scalars)})
    for load in dict.fromkeys(x for s in walk(kernel.body) for e in own_exprs(s) for x in loads(e)):
        place = {x.buffer for d in load.index for x in dim_loads(d)}
        if place and place <= numbers and root[load.buffer] in given:
            made = Buffer(names.fresh(f"{load.buffer}_there"), load.dtype, (), "temp")
            body = _inside(kernel.body, _Lookup(load, frozenset(place), made), Memory.of(kernel), fixed)
            if body is not None:
                kernel = replace(kernel, body=_asked_for(body, place), buffers=(*kernel.buffers, made))
    return kernel


@dataclass
class _Lookup:
    load: Load
    place: frozenset[str]  # the numbers that it is looked up by
    value: Buffer

    def asks(self, expr: Expr) -> bool:
        return any(x == self.load for x in loads(expr))


class _Unknown(Exception):
    """The value is not known at some place where it would have to be."""


def _inside(body: Body, found: _Lookup, memory: Memory, known: frozenset[str]) -> Body | None:
    """With the value beside the place, in the list of statements that is the only one to know of the place."""
    knowing = [k for k, s in enumerate(body) if found.place & touched((s,))]
    if not knowing:
        return None
    stmt = body[knowing[0]]
    if len(knowing) == 1 and (isinstance(stmt, If) or (isinstance(stmt, For) and not _sets(stmt, found))):
        return None
    if len(knowing) == 1 and isinstance(stmt, For):
        inner = _inside(stmt.body, found, memory.inside(stmt), known | {stmt.var})
        return None if inner is None else (*body[: knowing[0]], replace(stmt, body=inner), *body[knowing[0] + 1 :])
    if symbols(found.load) - known or not all(set_first(name, body) for name in found.place):
        return None
    if not any(isinstance(s, (For, While)) and _asks(s, found) and found.place & written((s,)) for s in body):
        return None
    try:
        body = _Kept(found).body(body, memory)
    except _Unknown:
        return None
    value = Load(found.value.name, (), found.value.dtype)
    return map_all(body, lambda e: value if e == found.load else e)


def _sets(loop: For, found: _Lookup) -> bool:
    return not any(x.buffer in found.place for d in own_dims(loop) for x in dim_loads(d))


def _asks(stmt: Stmt, found: _Lookup) -> bool:
    return any(found.asks(e) for s in walk((stmt,)) for e in own_exprs(s))


@dataclass
class _Kept:
    """Statements with the value stored wherever all numbers of the place have been."""

    found: _Lookup
    told: dict[str, Dim] = field(default_factory=dict)  # of a place that is being set

    def body(self, body: Body, memory: Memory) -> Body:
        self.none_is_open()
        done = tuple(new for stmt in body for new in self.stmt(stmt, memory))
        self.none_is_open()
        return done

    def none_is_open(self) -> None:
        if self.told:
            raise _Unknown

    def stmt(self, stmt: Stmt, memory: Memory) -> Iterator[Stmt]:
        place = self.found.place
        match stmt:
            case Store(name, (), Int(dim), None) if name in place and not any(dim_loads(dim)):
                self.told[name] = dim
                yield stmt
                if self.told.keys() == place:
                    yield Store(self.found.value.name, (), self.value(memory))
                    self.told = {}
                return
            case If(cond, then, orelse):
                self.reads_none(stmt)
                yield If(cond, self.body(then, within(cond, memory)), self.body(orelse, memory))
            case For():
                self.reads_none(stmt)
                yield replace(stmt, body=self.body(stmt.body, memory.inside(stmt)))
            case _ if bodies(stmt):
                self.reads_none(stmt)
                yield map_bodies(stmt, lambda inner: self.body(inner, memory))
            case _:
                if place & written((stmt,)):
                    raise _Unknown
                self.reads_none(stmt)
                yield stmt

    def reads_none(self, stmt: Stmt) -> None:
        """Between the stores of a place nothing asks for it."""
        if self.told and any(a.buffer in self.found.place for a in accesses((stmt,))):
            raise _Unknown

    def value(self, memory: Memory) -> Load:
        def known(e: Expr) -> Expr:
            return Int(self.told[e.buffer]) if isinstance(e, Load) and e.buffer in self.told else e

        load = map_expr(self.found.load, known)
        if not isinstance(load, Load) or not memory.in_bounds(load):
            raise _Unknown
        return load


def _asked_for(body: Body, place: set[str]) -> Body:
    """Without the numbers that nothing asks for any more."""
    idle = place - {a.buffer for a in accesses(body) if not a.writes}

    def kept(inner: Body) -> Body:
        left = (s for s in inner if not (isinstance(s, Store) and s.buffer in idle))
        return tuple(map_bodies(s, kept) for s in left)

    return kept(body) if idle else body
