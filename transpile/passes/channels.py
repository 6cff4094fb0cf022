"""What is looked up for every channel lies turned meanwhile: the channels of one place side by side.

    for i in 0..H:                                for p in 0..H*W: for c in 0..C: image_turned[p,c] = image[c,p]
        for j in 0..W:                            for i in 0..H:
            at = ...; f = ...                         for strip in 0..(W + 63)//64:
            for c in 0..C:                ->              for j in the strip: at_row[j] = ...; f_row[j] = ...
                y[c,i,j] = f * image[c,at]                for j in the strip: for c in 0..C:
                                                              y_turned[j,c] = f_row[j] * image_turned[at_row[j],c]
                                                          for c in 0..C: for j in the strip: y[c,i,j] = y_turned[j,c]

A vector of channels is one load, one of places that are looked up is a load for each, and a scatter into them knows no
vectors at all. What is looked up, or scattered, is turned as a whole, around the loops that do not change which example
it is; what lies beside the loop, a strip at a time. Where there are few channels, or few places are looked up, both
would take longer: then loops are left to `interchange`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..dims import ONE, ZERO, Dim, Facts, nonnegative, product
from ..ir import FLOATS, Buffer, Check, Const, Expr, For, If, Kernel, Load, Stmt, Store
from .depend import Memory
from .products import step
from .questions import all_of, compared
from .strips import STRIP, Nest, Strip, Strips, nest_of
from .tree import Access, Body, Index, accesses, another, dim_loads, map_bodies, map_places, touched

LEAST = 8  # channels that pay


def channels(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel).facts)
    used = {*touched(body), *(b.name for b in kernel.buffers)}
    used |= {b.alias for b in state.table.values() if b.alias and b.name in used}
    return replace(kernel, body=body, buffers=tuple(b for b in state.table.values() if b.name in used))


@dataclass
class _Turned:
    """An array, or a part of it, with the axis of the channels last."""

    buffer: Buffer
    source: str
    before: Index  # the index in front of the channels
    rest: tuple[For, ...]  # loops over the axes behind them
    index: Index  # where these loops are, in the source
    there: Index  # and in the turned array, without the channel
    read: bool = False
    written: bool = False
    fill: Expr | None = None  # what all of it is before

    def copies(self, channels: For, out: bool) -> Body:
        """The loops that turn it, or turn it back."""
        c = Dim.of(channels.var)
        here, there = (*self.before, c, *self.index), (*self.there, c)
        pair = ((self.source, here), (self.buffer.name, there))
        (to, at), (source, place) = pair if out else pair[::-1]
        loops = (channels, *self.rest) if out else (*self.rest, channels)
        value = Load(source, place, self.buffer.dtype) if out or self.fill is None else self.fill
        stmt: Stmt = Store(to, at, value)
        for loop in reversed(loops):
            stmt = replace(loop, body=(stmt,))
        return (stmt,)


@dataclass
class _Plan:
    """What is turned for one nest."""

    nest: Nest
    whole: dict[tuple, _Turned] = field(default_factory=dict)
    strip: dict[tuple, _Turned] = field(default_factory=dict)
    lookups: int = 0  # in one iteration of the nest, for each channel


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.strips = Strips(kernel)
        self.table, self.names = self.strips.table, self.strips.names
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.known = {*kernel.dims, *(s.name for s in kernel.scalars), kernel.batch or ""}

    def body(self, body: Body, facts: Facts) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            found = self.stmt(stmt, found, facts)
        return tuple(found)

    def stmt(self, stmt: Stmt, before: list[Stmt], facts: Facts) -> list[Stmt]:
        """What comes before a statement in a body, and what becomes of it."""
        if isinstance(stmt, For):
            if (made := self.turned(stmt, before, facts)) is not None:
                return made
            facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
        return [*before, map_bodies(stmt, lambda inner: self.body(inner, facts))]

    # -- whether -------------------------------------------------------------------------------------------------
    def turned(self, loop: For, before: list[Stmt], facts: Facts) -> list[Stmt] | None:
        """Both ways to run a loop with a nest in it, or the one that is known to be better; None: as it is."""
        if not any(self.looks_up(around[-1]) for around in _chains(loop)):
            return None
        copy, made = another(loop, self.names, self.uses, self.table)
        self.table.update((b.name, b) for b in made)
        for around in _chains(copy):
            if self.looks_up(around[-1]) and (plan := self.plan(around, facts)) is not None:
                pays = self.pays(plan, around, facts)
                return None if pays is None else self.either(pays, copy, plan, loop, before)
        return None

    def looks_up(self, loop: For) -> bool:
        """Whether it is a nest that jumps through memory, to places that are known only when it runs."""
        nest = nest_of(loop)
        if nest is None:
            return False
        var, places = nest.inner.var, [a for a in accesses(nest.inner.body) if a.index]
        along = (step(a.index or (), self.table[a.buffer].shape, var) in (1, -1) for a in places)
        return not any(along) and any(_is_looked_up(a, var) for a in places)

    def plan(self, around: Sequence[For], facts: Facts) -> _Plan | None:
        """What is to be turned, if all that the channels run over can be."""
        facts = {**facts, **{x.var: (x.lo, x.hi - 1) for x in around}}
        nest = nest_of(around[-1])
        if nest is None or not self.strips.keeps_order(nest, facts):
            return None
        nest = self.strips.numbered(_with_places_before(nest))
        plan = _Plan(nest)
        for a in accesses(nest.inner.body):
            if a.index and not self.is_planned(a, plan, {x.var for x in around}):
                return None
        return plan if all(self.is_alone(t, plan, around[0]) for t in self.all_of(plan)) else None

    def is_planned(self, a: Access, plan: _Plan, inside: set[str]) -> bool:
        """Whether the access runs along memory, does not run at all, or in a turned array."""
        var, outer, b = plan.nest.inner.var, plan.nest.loop.var, self.table[a.buffer]
        assert a.index is not None
        axes = [k for k, d in enumerate(a.index) if var in d.symbols()]
        if not axes or (axes == [len(a.index) - 1] and a.index[-1].split(var) is not None):
            return True
        k = axes[0]
        if len(axes) > 1 or a.index[k] != Dim.of(var) or b.dtype not in FLOATS or b.kind == "list":
            return False
        before, rest = a.index[:k], a.index[k + 1 :]
        plan.lookups += (1 + (a.mode not in ("r", "w"))) * _is_looked_up(a, var)
        if _is_along(outer, before, rest):
            found = plan.strip.setdefault((a.buffer, a.index), self.of_strip(b, before, rest, outer))
        elif any(d.symbols() & inside or any(dim_loads(d)) for d in before):
            return False
        else:
            found = plan.whole.setdefault((a.buffer, before), self.of_whole(b, before))
        found.read |= a.mode != "w"
        found.written |= a.writes
        return True

    def is_alone(self, turned: _Turned, plan: _Plan, loop: For) -> bool:
        """Whether nothing else of the loop changes what is turned, or sees it change."""
        memory = self.memory(turned.source)
        same = [a for a in accesses((loop,)) if self.memory(a.buffer) == memory]
        others = [t for t in self.all_of(plan) if self.memory(t.source) == memory]
        if not any(a.writes for a in same):
            return True
        inside = sum(self.memory(a.buffer) == memory for a in accesses(plan.nest.inner.body))
        return len(others) == 1 and inside == len(same)

    def memory(self, name: str) -> str:
        return self.table[name].alias or name

    @staticmethod
    def all_of(plan: _Plan) -> list[_Turned]:
        return [*plan.whole.values(), *plan.strip.values()]

    def pays(self, plan: _Plan, around: Sequence[For], facts: Facts) -> Expr | None:
        """When turning takes less than it saves; None: never."""
        lo, hi = plan.nest.range
        rounds = product(x.hi - x.lo for x in around)
        copied = sum((product(x.hi - x.lo for x in t.rest) * (1 + t.written) for t in plan.whole.values()), ZERO)
        copied += rounds * sum(t.read + t.written for t in plan.strip.values())
        asked: list[Expr] = []
        for much, less in ((hi - lo, Dim.of(LEAST)), (2 * rounds * plan.lookups, copied)):
            if any(not d.symbols() <= self.known or any(dim_loads(d)) for d in (much, less)):
                return None
            if nonnegative(less - much - 1, facts):
                return None
            if not nonnegative(much - less, facts):
                asked.append(compared("greater_equal", much, less))
        return all_of(asked) if asked else Const(True, "bool")

    # -- how -----------------------------------------------------------------------------------------------------
    def either(self, pays: Expr, copy: For, plan: _Plan, loop: For, before: list[Stmt]) -> list[Stmt]:
        fills: list[Stmt] = []
        for turned in plan.whole.values():
            if (
                turned.written
                and self.has_all(turned, plan.nest)
                and (fill := self.fill_of(turned, before)) is not None
            ):
                filling, turned.fill = fill
                before = [s for s in before if s is not filling]
                fills.append(filling)
        made = self.changed(copy, plan)
        return [*before, *made] if isinstance(pays, Const) else [*before, If(pays, made, (*fills, loop))]

    @staticmethod
    def has_all(turned: _Turned, nest: Nest) -> bool:
        """Whether the inner loop goes over all channels that there are."""
        return nest.range == (ZERO, turned.buffer.shape[-1])

    def fill_of(self, turned: _Turned, before: list[Stmt]) -> tuple[For, Expr] | None:
        """The loop that gives one value to all that is turned, and the value, if nothing touches it since."""
        memory = self.memory(turned.source)
        for stmt in reversed(before):
            if not any(self.memory(a.buffer) == memory for a in accesses((stmt,))):
                continue
            match stmt:
                case For(var, lo, hi, (Store(name, index, Const() as value, None),)):
                    whole = lo == ZERO and index == (*turned.before, Dim.of(var)) and hi == self.table[name].shape[-1]
                    return (stmt, value) if whole else None
            return None
        return None

    def of_whole(self, b: Buffer, before: Index) -> _Turned:
        """All of an array behind the channels."""
        extents = b.shape[len(before) + 1 :]
        rest = tuple(For(self.names.fresh("p"), ZERO, extent, ()) for extent in extents)
        index = tuple(Dim.of(x.var) for x in rest)
        return _Turned(self.array(b, len(before), extents), b.name, before, rest, index, index)

    def of_strip(self, b: Buffer, before: Index, rest: Index, outer: str) -> _Turned:
        """A strip of a row of an array."""
        loop = For(self.names.fresh(outer), ZERO, ZERO, ())  # how long it is the strip tells
        return _Turned(self.array(b, len(before), (Dim.of(STRIP),)), b.name, before, (loop,), rest, (Dim.of(loop.var),))

    def array(self, b: Buffer, axis: int, extents: Index) -> Buffer:
        return Buffer(self.names.fresh(f"{b.alias or b.name}_turned"), b.dtype, (*extents, b.shape[axis]), "temp")

    def changed(self, loop: For, plan: _Plan) -> Body:
        self.table.update((t.buffer.name, t.buffer) for t in self.all_of(plan))
        nest = plan.nest
        pieces = (nest.before, (nest.middle,), nest.after)
        cut = self.strips.cut(nest, pieces, lambda strip: self.of_channels(plan, strip))

        def swap(stmt: Stmt) -> Stmt:
            if isinstance(stmt, For) and stmt.var == nest.loop.var:
                return cut
            return map_bodies(stmt, lambda inner: tuple(swap(s) for s in inner))

        first = [s for t in plan.whole.values() for s in t.copies(self.channel(nest), False)]
        last = [s for t in plan.whole.values() if t.written for s in t.copies(self.channel(nest), True)]
        return (*first, swap(loop), *last)

    def channel(self, nest: Nest) -> For:
        lo, hi = nest.range
        return For(self.names.fresh(nest.inner.var), lo, hi, ())

    def of_channels(self, plan: _Plan, strip: Strip) -> Body:
        """The inner loop for each iteration of a strip, over turned arrays; what they are copied from and to."""
        nest = plan.nest
        c, here = Dim.of(nest.inner.var), (Dim.of(nest.loop.var) - strip.start,)

        def place(name: str, index: Index) -> tuple[str, Index]:
            if (found := plan.strip.get((name, index))) is not None:
                return found.buffer.name, (*here, c)
            axis = next((k for k, d in enumerate(index) if d == c), len(index))
            if (found := plan.whole.get((name, index[:axis]))) is not None:
                return found.buffer.name, (*index[axis + 1 :], c)
            return name, index

        first: list[Stmt] = []
        last: list[Stmt] = []
        for turned in plan.strip.values():
            (loop,) = turned.rest
            at = strip.start + Dim.of(loop.var)
            part = replace(
                turned,
                rest=(replace(loop, hi=strip.count),),
                index=tuple(d.subs({nest.loop.var: at}) for d in turned.index),
            )
            first += part.copies(self.channel(nest), False) if turned.read else ()
            last += part.copies(self.channel(nest), True) if turned.written else ()
        return (*first, *strip.over(map_places(_unasked((nest.middle,)), place)), *last)


def _chains(loop: For, around: tuple[For, ...] = ()) -> Iterator[tuple[For, ...]]:
    """The loops of loops in a loop, each with those around it; no others stand between them."""
    around = (*around, loop)
    yield around
    for stmt in loop.body:
        if isinstance(stmt, For):
            yield from _chains(stmt, around)


def _with_places_before(nest: Nest) -> Nest:
    """The nest with names that the inner loop gives to variables given before it."""
    inside = accesses(nest.middle.body)
    stores = Counter(a.buffer for a in inside if a.writes)
    moved = [
        s
        for s in nest.inner.body
        if isinstance(s, Store)
        and isinstance(s.value, Load)
        and not (s.index or s.value.index or s.op or stores[s.value.buffer])
        and stores[s.buffer] == 1
    ]
    if not moved:
        return nest
    inner = replace(nest.inner, body=tuple(s for s in nest.inner.body if s not in moved))
    middle = inner if nest.middle is nest.inner else replace(nest.middle, body=_with(nest.middle.body, inner))
    return replace(nest, before=(*nest.before, *moved), middle=middle)


def _with(body: Body, inner: For) -> Body:
    return tuple(inner if isinstance(s, For) else s for s in body)


def _unasked(body: Body) -> Body:
    """Without checks: they are asked before."""
    return tuple(map_bodies(s, _unasked) for s in body if not isinstance(s, Check))


def _is_along(var: str, before: Index, rest: Index) -> bool:
    """Whether memory lies along a loop, and nothing else depends on it."""
    split = rest[-1].split(var)
    others = (*before, *rest[:-1])
    return split is not None and split[0] == ONE and not any(var in d.symbols() or any(dim_loads(d)) for d in others)


def _is_looked_up(a: Access, var: str) -> bool:
    """Whether it is a place of a channel that is read from memory."""
    index = a.index or ()
    return any(var in d.symbols() for d in index[:-1]) and any(any(dim_loads(d)) for d in index)


__all__ = ["channels"]
