"""Dependence by exact comparison of indices: may two accesses meet in one place, and in which order of
iterations?

Two accesses of one buffer `conflict` if one of them writes; two accumulations with the same operation do
not: they commute. Loops have their own names (see tidy), so the variables inside two nests are apart, and
all others mean the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from ..dims import ANY, Atom, Dim, Facts, nonnegative
from ..ir import Buffer, Check, For, Kernel, Load, Stmt, Store
from .tree import Access, Body, accesses, has, roots, touched, walk, written

EVERY = frozenset({-1, 0, 1})
NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Memory:
    """What is known of a kernel's buffers, and the ranges of the integers known at a place."""

    root: Mapping[str, str]
    shape: Mapping[str, tuple[Dim, ...]]
    facts: Facts
    named: frozenset[str] = frozenset()  # the variables that extents of buffers name
    known: tuple[Dim, ...] = ()  # what else is not negative

    @staticmethod
    def of(kernel: Kernel) -> Memory:
        # A configuration integer may be negative; a symbol without a fact is an extent.
        facts = {s.name: ANY for s in kernel.scalars}
        return Memory(roots(kernel), {}, facts).beside(kernel.buffers)

    def beside(self, made: Iterable[Buffer]) -> Memory:
        """With more buffers, none of them an alias of those that are known."""
        shape = {b.name: b.shape for b in made}
        named = self.named.union(name for extents in shape.values() for d in extents for name in d.symbols())
        return replace(self, root={**{n: n for n in shape}, **self.root}, shape={**self.shape, **shape}, named=named)

    def inside(self, loop: For) -> Memory:
        return replace(self, facts={**self.facts, loop.var: (loop.lo, loop.hi - 1)})

    def where(self, margins: Iterable[Dim]) -> Memory:
        """Where these are not negative."""
        return replace(self, known=(*self.known, *margins))

    def natural(self, dim: Dim) -> bool:
        return nonnegative(dim, self.facts) or any(nonnegative(dim - k, self.facts) for k in self.known)

    def roots(self, names: Iterable[str]) -> set[str]:
        """The memory that these buffers are of."""
        return {self.root.get(name, name) for name in names}

    def same_place(self, a: Access, b: Access) -> bool:
        return self.root.get(a.buffer, a.buffer) == self.root.get(b.buffer, b.buffer)

    def in_range(self, place: Dim, extent: Dim) -> bool:
        return self.natural(place) and self.natural(extent - 1 - place)

    def in_bounds(self, load: Load) -> bool:
        """Whether a load is proven to stay inside its buffer, wherever in its loops it is made."""
        return all(self.in_range(i, n) for i, n in zip(load.index, self.shape[load.buffer]))


def conflict(a: Access, b: Access) -> bool:
    return (a.writes or b.writes) and not (a.mode == b.mode and a.mode not in ("r", "w"))


def independent(first: Iterable[Stmt], second: Iterable[Stmt], memory: Memory) -> bool:
    """Whether the two may change places. Nothing passes a check upwards or downwards: what follows relies
    on it."""
    first, second = tuple(first), tuple(second)
    if has(first, Check) or has(second, Check):
        return False
    return not any(conflict(a, b) and may_meet(a, b, memory) for a, b in _pairs(first, second, memory))


def _pairs(first: Body, second: Body, memory: Memory) -> Iterable[tuple[Access, Access]]:
    """Two accesses of one memory, of which one may write there."""
    changed = memory.roots(written(first)) | memory.roots(written(second))
    both = memory.roots(touched(first)) & memory.roots(touched(second)) & changed
    if not both:
        return
    by_root: dict[str, list[Access]] = {}
    for b in accesses(second):
        by_root.setdefault(memory.root.get(b.buffer, b.buffer), []).append(b)
    for a in set(accesses(first)):
        if (root := memory.root.get(a.buffer, a.buffer)) in both:
            for b in by_root[root]:
                yield a, b


def _ranges(memory: Memory, *loops: tuple[For, ...]) -> dict[str, tuple[Dim, Dim]]:
    facts = dict(memory.facts)
    for nest in loops:
        for loop in nest:
            facts[loop.var] = (loop.lo, loop.hi - 1)
    return facts


def may_meet(a: Access, b: Access, memory: Memory) -> bool:
    """Whether they may touch one place while the variables around both stand still."""
    b = _by_itself(a, b)
    if a.index is None or b.index is None or a.buffer != b.buffer:
        return True
    facts = _ranges(memory, a.loops, b.loops)
    return not any(nonnegative(x - y - 1, facts) or nonnegative(y - x - 1, facts) for x, y in zip(a.index, b.index))


def in_order(first: Body, second: Body, var: str, memory: Memory, allowed: set[int]) -> bool:
    """Whether iterations of `second` meet those of `first` only where (the one of first) - (the one of second) has an
    allowed sign: {0, -1}: nothing is needed before it is made, in one loop or in two."""
    left: dict[str, set[Access]] = {}
    for a in accesses(first):
        left.setdefault(memory.root.get(a.buffer, a.buffer), set()).add(a)
    for b in set(accesses(second)):
        for a in left.get(memory.root.get(b.buffer, b.buffer), ()):
            if conflict(a, b) and not directions(a, b, var, memory) <= allowed:
                return False
    return True


def directions(a: Access, b: Access, var: str, memory: Memory) -> frozenset[int]:
    """The signs that (iteration of a) - (iteration of b) of the loop `var` may have where they touch one
    place."""
    b = _by_itself(a, b)
    facts = _ranges(memory, a.loops, b.loops)
    inner = {loop.var for loop in a.loops + b.loops} - {var}
    signs = EVERY
    for x, y in _along(a, b, memory):
        signs &= _axis(x, y, var, inner, facts)
        if len(signs) > 1 and (block := _block(x, a, var, facts)) and block == _block(y, b, var, facts):
            signs &= frozenset({0})
    return signs


def _block(place: Dim, access: Access, var: str, facts: Facts) -> tuple[Dim, Dim] | None:
    """Where the block begins that an iteration of the loop `var` has of an axis, and how long it is at most, if the
    block ends where that of the next iteration begins: of the place i + 1, for i in 8*var..min(n, 8*var + 8)."""
    for loop in access.loops:
        rest, parts = place - Dim.of(loop.var), loop.lo.split(var)
        if parts is None or var in rest.symbols() or not rest.symbols().isdisjoint(x.var for x in access.loops):
            continue
        size, first = parts
        if nonnegative(size - 1, facts) and nonnegative(loop.lo + size - loop.hi, facts):
            return first + rest, size
    return None


def _axis(x: Dim, y: Dim, var: str, inner: set[str], facts: Facts) -> frozenset[int]:
    left, right = x.split(var), y.split(var)
    if left is None or right is None or left[0] != right[0]:
        return EVERY
    step, apart = left[0], right[1] - left[1]  # step * (va - vb) = apart
    if _reads_memory(x) or _reads_memory(y):
        return EVERY
    if not step.terms:
        never = nonnegative(apart - 1, facts) or nonnegative(-apart - 1, facts)
        return NONE if never else EVERY
    if not _positive(step, facts):
        if not _positive(-step, facts):
            return frozenset({0}) if _is_digit(apart, step, facts) else EVERY
        step, apart = -step, -apart
    if not apart.terms:
        return frozenset({0})
    if apart.value is not None and step.value is not None and apart.value % step.value:
        return NONE
    if _is_digit(apart, step, facts):
        return frozenset({0})
    reach = step * (facts[var][1] - facts[var][0]) if var in facts else None  # from the first iteration to the last
    for sign, distance in ((1, apart), (-1, -apart)):
        if reach is not None and nonnegative(distance - reach - 1, facts):
            return NONE
        if nonnegative(distance - 1, facts):
            return frozenset({sign})
    return EVERY


def _is_digit(apart: Dim, step: Dim, facts: Facts) -> bool:
    """Whether the rest is less than one step; the step is one at least, then."""
    return nonnegative(step - 1 - apart, facts) and nonnegative(step - 1 + apart, facts)


def _reads_memory(dim: Dim) -> bool:
    return any(isinstance(a, Atom) and a.kind == "load" for a in dim.atoms())


def _positive(step: Dim, facts: Facts) -> bool:
    """Sure to be positive wherever there is memory to speak of: a product of extents is. Loop variables and
    configuration, of which facts tell, may be zero."""
    if nonnegative(step - 1, facts):
        return True
    return bool(step.terms) and all(
        c > 0 and all(isinstance(a, str) and a not in facts for a in m) for m, c in step.terms
    )


def apart(a: Access, b: Access, var: str, memory: Memory) -> bool:
    """Whether two accesses in the body of the loop `var` touch one place in the same iteration of it only, whatever the
    loops inside do: y[j + b] and y[j + b] meet, where b runs inside."""
    inner = {loop.var for loop in (*a.loops, *b.loops)}
    same = tuple(x for x, y in _along(a, b, memory) if x == y and not x.symbols() & inner)
    if injective(same, var, memory.facts):
        return True
    return directions(a, elsewhere(b), var, memory) <= {0}


def _along(a: Access, b: Access, memory: Memory) -> list[tuple[Dim, Dim]]:
    """The places of both along each axis. Two names of one memory have their outer axes in common, if any: y[b, i, j]
    and flat[b, n] are of one example b."""
    if a.index is None or b.index is None:
        return []
    pairs = list(zip(a.index, b.index))
    if a.buffer == b.buffer:
        return pairs
    shapes = zip(memory.shape.get(a.buffer, ()), memory.shape.get(b.buffer, ()))
    return [pair for pair, _ in takewhile(lambda of: of[1][0] == of[1][1], zip(pairs, shapes))]


def _by_itself(a: Access, b: Access) -> Access:
    """b with loops of its own: two nests may number their iterations by one name (parts of a nest that was cut do)."""
    return elsewhere(b) if {x.var for x in a.loops} & {x.var for x in b.loops} else b


def elsewhere(access: Access) -> Access:
    """The access in other iterations of the loops inside."""
    other = {loop.var: Dim.of(f"{loop.var}'") for loop in access.loops}
    loops = tuple(
        replace(loop, var=f"{loop.var}'", lo=loop.lo.subs(other), hi=loop.hi.subs(other)) for loop in access.loops
    )
    index = None if access.index is None else tuple(d.subs(other) for d in access.index)
    return replace(access, index=index, loops=loops)


def neighbours(body: Iterable[Stmt], var: str, root: Mapping[str, str]) -> bool:
    """Whether two statements of a map loop add to one place in different iterations: in vectors one of them could undo
    the other."""
    stores = [s for s in walk(body) if isinstance(s, Store) and s.op and s.index]
    places = list(dict.fromkeys((s.buffer, s.index) for s in stores))
    for k, (name, index) in enumerate(places):
        for other, there in places[:k]:
            apart = name == other and (distinct(index, there, var) or _only_at_once(index, there, var))
            if root.get(name, name) == root.get(other, other) and not apart:
                return True
    return False


def _only_at_once(index: tuple[Dim, ...], other: tuple[Dim, ...], var: str) -> bool:
    """Whether two places are one only where both are of the same iteration."""
    steps = (a.split(var) for a, b in zip(index, other, strict=True) if a == b and not _reads_memory(a))
    return any(s is not None and s[0].value for s in steps)


def distinct(index: tuple[Dim, ...], other: tuple[Dim, ...], var: str) -> bool:
    """Whether two places of an array are never one, whatever iterations of the loop `var` they are of."""
    for a, b in zip(index, other, strict=True):
        first, second = a.split(var), b.split(var)
        if first is None or second is None or first[0] != second[0] or (distance := (a - b).value) is None:
            continue
        step = first[0].value
        if step is not None and (distance % step if step else distance):
            return True
    return False


def injective(index: tuple[Dim, ...], var: str, facts: Facts) -> bool:
    """Whether different values of var give different places, while all else stands still. An extent as coefficient
    counts as nonzero: an array with an empty axis has no place at all."""
    for dim in index:
        parts = dim.split(var)
        if parts is not None and not _reads_memory(dim) and any(_positive(c, facts) for c in (parts[0], -parts[0])):
            return True
    return _digits(index, var)


def _digits(index: tuple[Dim, ...], var: str) -> bool:
    """(v // n, v % n): together they are v."""
    for high, low in pairwise(index):
        match high.symbol, low.symbol:
            case Atom("floordiv", (a, n)), Atom("mod", (b, m)) if a == b and n == m:
                parts = a.split(var)
                return parts is not None and parts[0] == Dim.of(1)
    return False
