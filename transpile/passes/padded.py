"""What windows look up at places that are held at an edge, or go around it, lies in an array of its own.

    for i: for k in -r..r + 1:                        for l in 0..n + 2*r: p[l] = x[min(max(l - r, 0), n - 1)]
        y[i] += x[min(max(i + k, 0), n - 1)]     ->   for i: for k in -r..r + 1:
                                                          y[i] += p[i + k + r]

A place that is a function of i + k is asked for by many windows, and is no place along memory for any of them. What
windows add to such places is added to an array, and from there to its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from ..dims import Atom, Dim, largest, maximum, minimum, settled
from ..ir import Buffer, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store
from .depend import Memory
from .predicate import conjunction
from .tree import Access, Body, Index, Names, accesses, buffers, dim_loads, map_bodies, map_dim, map_places, roots, walk

LINE = "<line"  # stands for a place before it is held; no kernel has such a name
HELD = ("min", "max", "mod")
FEWEST = 2  # counters of a window's place


def padded(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, Memory.of(kernel))
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made)) if state.made else kernel


@dataclass(frozen=True)
class _Held:
    """A place along an axis: `place` says it by LINE, which is `line`, linear in counters of the nest."""

    place: Dim
    line: Dim


Axis = _Held | Dim | None  # None: any place of the axis; a Dim: this one, wherever the nest is


@dataclass
class _Array:
    """What windows of a nest look into, or add to. `low`, `high`: how far the lines of held axes go."""

    name: str
    of: Buffer
    axes: tuple[Axis, ...]
    low: list[Dim]
    high: list[Dim]
    mode: str
    uses: dict[Index, tuple[Dim, ...]] = field(default_factory=dict)  # index -> lines, and places along whole axes
    asked: list[Dim] | None = None  # what must be positive so that there is a place for each of a line; None: never


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.table, self.root, self.names = buffers(kernel), roots(kernel), Names.of(kernel)
        self.counters = {s.var for s in walk(kernel.body) if isinstance(s, For)}
        self.numbers = _numbers(kernel, self.table)
        self.made: list[Buffer] = []

    def body(self, body: Body, memory: Memory) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt, memory))

    def stmt(self, stmt: Stmt, memory: Memory) -> Body:
        if isinstance(stmt, For):
            arrays = self.arrays(stmt, memory)
            if arrays:
                return self.with_arrays(stmt, arrays, memory)
            memory = memory.inside(stmt)
        return (map_bodies(stmt, lambda inner: self.body(inner, memory)),)

    # -- which ---------------------------------------------------------------------------------------------------
    def arrays(self, loop: For, memory: Memory) -> list[_Array]:
        mine = [a for a in accesses((loop,)) if a.index is not None]
        modes: dict[str, set[str]] = {}
        for access in accesses((loop,)):
            modes.setdefault(self.root[access.buffer], set()).add(access.mode)
        found: dict[object, _Array] = {}
        spoiled: set[str] = set()
        for access in mine:
            if modes[self.root[access.buffer]] not in ({"r"}, {"add"}):
                continue
            axes = self.axes(access, loop, memory)
            if axes is None or (any(isinstance(a, _Held) for a in axes) and not self.joined(found, access, axes)):
                spoiled.add(access.buffer)
        kept = [a for a in found.values() if a.of.name not in spoiled and self.is_worth(a, loop)]
        for array in kept:
            array.asked = self.stays_inside(array, memory)
        return [a for a in kept if a.asked is not None]

    def axes(self, access: Access, loop: For, memory: Memory) -> tuple[Axis, ...] | None:
        """None where a place is told by other things than counters around the access."""
        inner, known = {x.var for x in access.loops}, {x.var for x in access.loops} | memory.facts.keys()
        found: list[Axis] = []
        for d in self.resolved(access.index or ()):
            if any(dim_loads(d)) or (d.symbols() & self.counters) - known:
                return None
            own = d.symbols() & inner
            if not own:
                found.append(d)
            elif all(d.split(v) is not None for v in own):
                found.append(None)
            elif (held := _held(d, own, self.counters)) is not None:
                found.append(held)
            else:
                return None
        return tuple(found)

    def joined(self, found: dict[object, _Array], access: Access, axes: tuple[Axis, ...]) -> bool:
        """Whether how far it goes is known where the nest begins; then the access is one of its array."""
        assert access.index is not None
        facts = {x.var: (x.lo, x.hi - 1) for x in access.loops}
        lines = [a.line for a in axes if isinstance(a, _Held)]
        try:
            low, high = [-largest(-x, facts) for x in lines], [largest(x, facts) for x in lines]
        except ValueError:
            return False
        if any(d.symbols() & self.counters or any(dim_loads(d)) for d in (*low, *high)):
            return False
        key = (access.buffer, tuple(a.place if isinstance(a, _Held) else a for a in axes))
        array = found.setdefault(key, _Array("", self.table[access.buffer], axes, low, high, access.mode))
        array.low = [minimum(a, b) for a, b in zip(array.low, low, strict=True)]
        array.high = [maximum(a, b) for a, b in zip(array.high, high, strict=True)]
        places = zip(axes, self.resolved(access.index), strict=True)
        array.uses[access.index] = tuple(
            a.line if isinstance(a, _Held) else d for a, d in places if not isinstance(a, Dim)
        )
        return True

    def is_worth(self, array: _Array, loop: For) -> bool:
        """Whether windows overlap: their places are told by several counters, the nest's own among them."""
        counters = [a.line.symbols() & self.counters for a in array.axes if isinstance(a, _Held)]
        return any(len(c) >= FEWEST for c in counters) and any(loop.var in c for c in counters)

    def stays_inside(self, array: _Array, memory: Memory) -> list[Dim] | None:
        """What `_Array.asked` says."""
        asked: list[Dim] = []
        lines = iter(zip(array.low, array.high, strict=True))
        for axis, extent in zip(array.axes, array.of.shape, strict=True):
            if isinstance(axis, _Held):
                low, high = next(lines)
                if not replace(memory, facts={**memory.facts, LINE: (low, high)}).in_range(axis.place, extent):
                    asked.append(extent)
                    some = {s: Dim.of(s) + 1 for s in (extent.symbol,) if isinstance(s, str)}  # it is 1 or more
                    known = replace(memory, facts={**memory.facts, LINE: (low.subs(some), high.subs(some))})
                    if not known.in_range(axis.place.subs(some), extent.subs(some)):
                        return None
        return asked

    def resolved(self, index: Index) -> Index:
        return tuple(map_dim(d, lambda e: self.numbers.get(e.buffer, e) if isinstance(e, Load) else e) for d in index)

    # -- how -----------------------------------------------------------------------------------------------------
    def with_arrays(self, loop: For, arrays: list[_Array], memory: Memory) -> Body:
        before: list[Stmt] = []
        after: list[Stmt] = []
        moved: dict[tuple[str, Index], tuple[str, Index]] = {}
        for array in arrays:
            extents = [maximum(Dim.of(0), b - a + 1, memory.facts) for a, b in zip(array.low, array.high, strict=True)]
            rest = iter(extents)
            axes = zip(array.axes, array.of.shape, strict=True)
            shape = tuple(next(rest) if isinstance(a, _Held) else n for a, n in axes if not isinstance(a, Dim))
            array.name = self.names.fresh(f"{array.of.name}_held")
            self.made.append(Buffer(array.name, array.of.dtype, shape, "temp"))
            asked = array.asked or []
            if array.mode == "r":
                before += _where(asked, self.copied(array, shape))
            else:
                before += self.cleared(array, shape)
                after += _where(asked, self.added(array, shape))
            for index, places in array.uses.items():
                moved[array.of.name, index] = (array.name, self.place(array, places))
        return (*before, *map_places((loop,), lambda name, index: moved.get((name, index), (name, index))), *after)

    def place(self, array: _Array, places: tuple[Dim, ...]) -> Index:
        low = iter(array.low)
        axes = (a for a in array.axes if not isinstance(a, Dim))
        return tuple(d - next(low) if isinstance(a, _Held) else d for a, d in zip(axes, places, strict=True))

    def copied(self, array: _Array, shape: Index) -> Body:
        def copy(here: Index, there: Index) -> Stmt:
            return Store(array.name, here, Load(array.of.name, there, array.of.dtype))

        return self.everywhere(array, shape, copy)

    def added(self, array: _Array, shape: Index) -> Body:
        def add(here: Index, there: Index) -> Stmt:
            return Store(array.of.name, there, Load(array.name, here, array.of.dtype), "add")

        return self.everywhere(array, shape, add)

    def cleared(self, array: _Array, shape: Index) -> Body:
        here = tuple(Dim.of(self.names.fresh("l")) for _ in shape)
        return _nest(here, [(Dim.of(0), n) for n in shape], Store(array.name, here, Const(0, array.of.dtype)))

    def everywhere(self, array: _Array, shape: Index, inside: Callable[[Index, Index], Stmt]) -> Body:
        """A statement for all places in the array, and where those are in the one that it is of. Along the last axis
        what is not held runs along memory, in a loop of its own."""
        ranges = [(Dim.of(0), n) for n in shape]
        last, extent = array.axes[-1], array.of.shape[-1]
        if not isinstance(last, _Held) or settled(last.place, {LINE: (Dim.of(0), extent - 1)}) != Dim.of(LINE):
            return self.part(array, ranges, inside, last)
        first, end = -array.low[-1], extent - array.low[-1]
        low, high = minimum(maximum(Dim.of(0), first), shape[-1]), maximum(Dim.of(0), minimum(end, shape[-1]))
        before = self.part(array, [*ranges[:-1], (Dim.of(0), low)], inside, last)
        along = self.part(array, [*ranges[:-1], (low, high)], inside, replace(last, place=Dim.of(LINE)))
        return (*before, *along, *self.part(array, [*ranges[:-1], (maximum(low, high), shape[-1])], inside, last))

    def part(
        self, array: _Array, ranges: list[tuple[Dim, Dim]], inside: Callable[[Index, Index], Stmt], last: Axis
    ) -> Body:
        here = tuple(Dim.of(self.names.fresh("l")) for _ in ranges)
        variables, low = iter(here), iter(array.low)

        def there(axis: Axis) -> Dim:
            if isinstance(axis, Dim):
                return axis
            if axis is None:
                return next(variables)
            return axis.place.subs({LINE: next(variables) + next(low)})

        return _nest(here, ranges, inside(here, tuple(map(there, (*array.axes[:-1], last)))))


def _numbers(kernel: Kernel, table: Mapping[str, Buffer]) -> dict[str, Expr]:
    """Integers that are set once, to what counters and sizes tell."""
    stores = [s for s in walk(kernel.body) if isinstance(s, Store)]
    often = Counter(s.buffer for s in stores)
    once = [s for s in stores if often[s.buffer] == 1 and not s.index and not s.op and table[s.buffer].kind == "temp"]
    return {s.buffer: s.value for s in once if isinstance(s.value, Int) and not any(dim_loads(s.value.dim))}


def _held(dim: Dim, inner: frozenset[str], counters: set[str]) -> _Held | None:
    """As a function of one place that is linear in the nest's counters, if it is one."""
    atoms = [a for a in dim.atoms() if isinstance(a, Atom) and a.kind in HELD]
    lines = {d for a in atoms for d in a.args if isinstance(d, Dim) and d.symbols() & inner}
    for whole in sorted(lines, key=str):
        splits = {v: whole.split(v) for v in sorted(whole.symbols() & inner)}
        steps = {v: s[0] for v, s in splits.items() if s is not None}
        first = next((v for v, step in steps.items() if step.value in (1, -1)), None)
        if len(steps) < len(splits) or first is None:
            continue
        line = whole
        if (whole.symbols() - steps.keys()) & counters:  # what loops around the nest add stays with the place
            line = sum((step * Dim.of(v) for v, step in steps.items()), Dim.of(0))
        others = line - steps[first] * Dim.of(first)
        place = dim.subs({first: (Dim.of(LINE) - others) * steps[first]})
        if not place.symbols() & inner and not any(_divides(a) for a in place.atoms()):
            return _Held(place, line)
    return None


def _divides(atom: object) -> bool:
    return isinstance(atom, Atom) and atom.kind == "floordiv" and LINE in Dim.of(atom).symbols()


def _nest(variables: Index, ranges: list[tuple[Dim, Dim]], inside: Stmt) -> Body:
    for var, (low, high) in reversed(list(zip(variables, ranges, strict=True))):
        inside = For(str(var), low, high, (inside,), "map")
    return (inside,)


def _where(positive: list[Dim], body: Body) -> Body:
    if not positive:
        return body
    asked: list[Expr] = [Op("greater", (Int(d), Const(0, "i64")), "bool") for d in positive]
    return (If(reduce(conjunction, asked), body, ()),)
