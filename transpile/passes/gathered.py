"""What the places of a grid give to their neighbours lies at their own place first; then each takes what it is given.

    for i in 0..H: for j in 0..W:                        for i: for j:
        d = dy[i, j] * c                                     e[i, j] = dy[i, j] * c
        dx[i, j] += d * a                        ->          dx[i, j] += dy[i, j] * c * a
        dx[(i - 1)%H, j] += d                            for i: for j:
        dx[(i + 1)%H, j] += d                                dx[i, j] += e[(i + 1)%H, j] + e[(i - 1)%H, j]

The gradient of a step that looks at neighbours. Iterations that add to one place are no vectors, and need an array for
each thread; those that take are both. Where a grid does not go around, its places have zeros beside them. Equal numbers
for several neighbours lie there once. Along a row alone that is left to `overlap`, where the row does not go around.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import reduce

from ..dims import Atom, Dim, Facts, maximum, minimum, settled
from ..ir import (
    FLOATS,
    Buffer,
    Check,
    Comment,
    Const,
    Expr,
    For,
    Grow,
    Kernel,
    Load,
    Op,
    Product,
    Stmt,
    Store,
    While,
)
from .depend import Memory
from .tree import Body, Index, Names, accesses, buffers, dim_loads, has, loads, map_bodies, walk, written
from .whole import inside

MOST = 8  # how far neighbours are from each other, at most
MOST_TOLD = 6  # different numbers for one array: each is an array to write and to read


def gathered(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made)) if state.made else kernel


@dataclass(frozen=True)
class _Line:
    """Where along an axis: `by` places from a counter, around the axis if that is `around`. Without a counter: `at`."""

    counter: str = ""
    by: int = 0
    around: Dim | None = None
    at: Dim | None = None


@dataclass
class _Given:
    """One number that is given to neighbours, and the stores that give it. Without a value: what branches give to one
    place, added up in a variable."""

    value: Expr | None
    lines: list[tuple[_Line, ...]] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    name: str = ""


@dataclass(frozen=True)
class _Axis:
    """Of a nest's counter: its loop, and the least and the most that places are from it."""

    loop: For
    low: int
    high: int
    around: Dim | None

    @property
    def beside(self) -> int:
        """Zeros on each side."""
        return 0 if self.around else self.high - self.low


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.names = buffers(kernel), Names.of(kernel)
        self.made: list[Buffer] = []
        self.sizes = {*kernel.dims, *(s.name for s in kernel.scalars), kernel.batch}

    def is_known(self, extent: Dim) -> bool:
        """Whether it is where memory is reserved."""
        return extent.symbols() <= self.sizes and not any(dim_loads(extent))

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        if not isinstance(stmt, For):
            return (map_bodies(stmt, lambda inner: self.body(inner, memory)),)
        if (loops := _nest(stmt)) and (found := self.apart(stmt, loops, memory)):
            return found
        facts = inside(stmt, memory.facts)
        return (replace(stmt, body=self.body(stmt.body, replace(memory, facts=facts))),)

    def apart(self, nest: For, loops: list[For], memory: Memory) -> Body | None:
        """The nest without what it gives to neighbours, and what takes that; None where it gives nothing."""
        facts = memory.facts
        for loop in loops:
            facts = inside(loop, facts)
        body = loops[-1].body
        before: list[Stmt] = []
        behind: list[Stmt] = []
        for name in dict.fromkeys(s.buffer for s in walk(body) if isinstance(s, Store) and s.op == "add" and s.index):
            lines = self.lines(name, body, loops, memory, facts)
            axes = _axes(lines, loops) if lines else None
            if lines is None or axes is None or not _is_worth(lines, axes):
                continue
            if not all(self.is_known(_room(x, memory.facts)) for x in axes):
                continue
            center = _center(lines)
            given = [g for g in self.given(name, body, lines) if g.lines != [center] * len(g.lines)]
            if not given or len(given) > MOST_TOLD or _mixed(given):
                continue
            body = self.left(body, given, lines, axes, center, memory)
            before += [s for g in given for s in self.cleared(g, axes, memory)]
            behind.append(self.taken(name, given, axes, memory))
        if not behind:
            return None
        nest = reduce(
            lambda inner, loop: replace(loop, body=(inner,)), reversed(loops[:-1]), replace(loops[-1], body=body)
        )
        return (*before, *self.stmt(nest, memory), *behind)

    # -- what is given -------------------------------------------------------------------------------------------
    def lines(
        self, name: str, body: Body, loops: list[For], memory: Memory, facts: Facts
    ) -> dict[Index, tuple[_Line, ...]] | None:
        """Where the nest adds to an array; None where it does anything else with it, or is elsewhere."""
        if self.table[name].dtype not in FLOATS:
            return None
        found: dict[Index, tuple[_Line, ...]] = {}
        for a in accesses(body):
            if memory.root.get(a.buffer) != memory.root[name]:
                continue
            if a.buffer != name or a.mode != "add" or a.index is None:
                return None
            if a.index not in found:
                lines = tuple(_line(d, loops, facts) for d in a.index)
                counters = [x.counter for x in lines if x is not None and x.counter]
                if None in lines or sorted(counters) != sorted(x.var for x in loops):
                    return None
                found[a.index] = lines  # type: ignore[assignment]
        return found

    def given(self, name: str, body: Body, lines: dict[Index, tuple[_Line, ...]]) -> list[_Given]:
        """Numbers that are told once, and what branches tell: of each place, one."""
        found: list[_Given] = []
        now: list[_Given] = []  # whose numbers are still what they were
        for stmt in body:
            if isinstance(stmt, Store) and stmt.buffer == name:
                same = next((g for g in now if g.value == stmt.value), None)
                if same is None:
                    same = _Given(stmt.value)
                    found.append(same)
                    now.append(same)
                same.lines.append(lines[stmt.index])
                same.stores.append(stmt)
                continue
            changed = written((stmt,))
            now = [g for g in now if g.value and not changed & {e.buffer for e in loads(g.value)}]
            for inner in walk((stmt,)):
                if isinstance(inner, Store) and inner.buffer == name:
                    of = next((g for g in found if g.value is None and g.lines == [lines[inner.index]]), None)
                    if of is None:
                        found.append(of := _Given(None, [lines[inner.index]]))
                    of.stores.append(inner)
        return found

    def left(
        self,
        body: Body,
        given: list[_Given],
        lines: dict[Index, tuple[_Line, ...]],
        axes: list[_Axis],
        center: tuple[_Line, ...],
        memory: Memory,
    ) -> Body:
        """The body, which leaves what it gives in arrays, or adds it up in variables first."""
        place = tuple(Dim.of(x.loop.var) - x.loop.lo + x.beside for x in axes)
        first: list[Stmt] = []
        last: list[Stmt] = []
        instead: dict[int, Body] = {}
        for g in given:
            old = self.table[g.stores[0].buffer]
            shape = tuple(_room(x, memory.facts) for x in axes)
            g.name = self.names.fresh(f"{old.name}_given")
            self.made.append(Buffer(g.name, old.dtype, shape, "temp"))
            instead |= {id(s): () for s in g.stores}
            own = [s for s in g.stores if lines[s.index] == center]  # what a place gives itself, it has at once
            if g.value is not None:
                instead[id(g.stores[0])] = (Store(g.name, place, g.value),)
                instead |= {id(s): (*(instead[id(s)]), s) for s in own}
                g.lines = [x for x in g.lines if x != center]
                continue
            number = self.names.fresh(f"{old.name}_one")
            self.made.append(Buffer(number, old.dtype, (), "temp"))
            first.append(Store(number, (), Const(0.0, old.dtype)))
            last.append(Store(g.name, place, Load(number, (), old.dtype)))
            instead |= {id(s): (Store(number, (), s.value, "add"),) for s in g.stores}

        def kept(inner: Body) -> Body:
            found: list[Stmt] = []
            for s in inner:
                found += instead[id(s)] if id(s) in instead else (map_bodies(s, kept),)
            return tuple(found)

        return (*first, *kept(body), *last)

    # -- who takes it --------------------------------------------------------------------------------------------
    def cleared(self, given: _Given, axes: list[_Axis], memory: Memory) -> Body:
        """Zeros beside the places of a grid that ends."""
        if not any(x.beside for x in axes):
            return ()
        here = [Dim.of(self.names.fresh("l")) for _ in axes]
        dtype = self.table[given.stores[0].buffer].dtype
        body: Stmt = Store(given.name, tuple(here), Const(0.0, dtype))
        for var, axis in reversed(list(zip(here, axes, strict=True))):
            body = For(str(var), Dim.of(0), _room(axis, memory.facts), (body,))
        return (body,)

    def taken(self, name: str, given: list[_Given], axes: list[_Axis], memory: Memory) -> Stmt:
        buffer = self.table[name]
        some = given[0].lines[0]
        here = {x.loop.var: Dim.of(self.names.fresh(x.loop.var)) for x in axes}
        terms: list[Expr] = []
        for g in given:
            for lines in g.lines:
                by = {x.counter: x.by for x in lines if x.counter}
                terms.append(
                    Load(g.name, tuple(_source(here[x.loop.var], by[x.loop.var], x) for x in axes), buffer.dtype)
                )
        index = tuple(here[x.counter] if x.counter else x.at for x in some)
        total = reduce(lambda a, b: Op("add", (a, b), buffer.dtype), terms)
        body: Stmt = Store(name, index, total, "add")  # type: ignore[arg-type]
        extents = {x.counter: n for x, n in zip(some, buffer.shape, strict=True) if x.counter}
        for axis in reversed(axes):
            low, high = axis.loop.lo, axis.loop.hi
            if not axis.around:
                low = maximum(Dim.of(0), low + axis.low, memory.facts)
                high = minimum(high + axis.high, extents[axis.loop.var], memory.facts)
            body = For(str(here[axis.loop.var]), low, high, (body,))
        return body


def _nest(loop: For) -> list[For] | None:
    """A box of map loops, each alone in the one around it, around statements without loops."""
    found = [loop]
    while True:
        if found[-1].kind != "map" or any(x.var in d.symbols() for x in found for d in (found[-1].lo, found[-1].hi)):
            return None
        match [s for s in found[-1].body if not isinstance(s, Comment)]:
            case [For() as inner]:
                found.append(inner)
            case body:
                return None if has(body, For, While, Check, Grow, Product) else found


def _line(dim: Dim, loops: list[For], facts: Facts) -> _Line | None:
    """None where it is no neighbour of a counter."""
    counters = {x.var: x for x in loops}
    own = dim.symbols() & counters.keys()
    if any(dim_loads(dim)) or len(own) > 1:
        return None
    if not own:
        return _Line(at=dim)
    (var,) = own
    around = None
    match dim.symbol:
        case Atom("mod", (place, extent)):
            loop = counters[var]
            if loop.lo != Dim.of(0) or settled(extent, facts) != loop.hi:
                return None
            dim, around = place, loop.hi
    by = (dim - Dim.of(var)).value
    return None if by is None else _Line(var, by, around)


def _axes(lines: dict[Index, tuple[_Line, ...]], loops: list[For]) -> list[_Axis] | None:
    """One for each counter, in their order; None where places along an axis are not all of one kind."""
    found = []
    if len({tuple((x.counter, x.at) for x in one) for one in lines.values()}) > 1:
        return None
    for loop in loops:
        mine = [x for one in lines.values() for x in one if x.counter == loop.var]
        around = next((x.around for x in mine if x.around), None)
        if any(x.around != around and (x.around or x.by) for x in mine):
            return None
        found.append(_Axis(loop, min(x.by for x in mine), max(x.by for x in mine), around))
    return found


def _is_worth(lines: dict[Index, tuple[_Line, ...]], axes: list[_Axis]) -> bool:
    """Whether neighbours meet in another row, or around it; else the outer loops are none of a grid."""
    far = [x.high - x.low for x in axes]
    return len(lines) > 1 and far[0] > 0 and max(far) <= MOST and (len(axes) > 1 or axes[-1].around is not None)


def _center(lines: dict[Index, tuple[_Line, ...]]) -> tuple[_Line, ...]:
    """The place that is nearest to all others: its own of what is not given to neighbours."""
    points = list(lines.values())

    def away(one: tuple[_Line, ...]) -> tuple[int, bool]:
        apart = (abs(x.by - y.by) for other in points for x, y in zip(one, other, strict=True))
        return sum(apart), any(x.around for x in one)

    return min(points, key=away)


def _mixed(given: list[_Given]) -> bool:
    """Whether one statement stands in two places: it has one number to give then, or two."""
    often = Counter(id(s) for g in given for s in g.stores)
    return any(n > 1 for n in often.values())


def _room(axis: _Axis, facts: Facts) -> Dim:
    return axis.loop.hi if axis.around else maximum(Dim.of(0), axis.loop.hi - axis.loop.lo, facts) + 2 * axis.beside


def _source(here: Dim, by: int, axis: _Axis) -> Dim:
    """Where lies what is given to a place by the one that it is `by` places from."""
    if axis.around:
        return (here - by) % axis.around if by else here
    return here - by - axis.loop.lo + axis.beside


__all__ = ["gathered"]
