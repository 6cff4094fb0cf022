"""What loops would compute again and again of the same elements is computed once, in a table before them.

    for i: for j:                                        for r in 0..H: for s in 0..W: t[r,s] = pow(x[r,s], p)
        for a in 0..3: for b in 0..3:              ->    for i: for j:
            y[i,j] += pow(x[i + a, j + b], p)                for a in 0..3: for b in 0..3: y[i,j] += t[i + a, j + b]

An expression of one element of each array, at the same place i + a, j + b in all of them, is a function of that place:
here four loops ask for what two axes hold. So is exp(c[j]) in loops over i and j, and exp(-t * t) where t is a variable
of an iteration, t = x[j] - k, in loops over i, j and k. Only what is dear has a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from types import MappingProxyType

from ..dims import Atom, Dim
from ..ir import Buffer, Cast, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store, While
from .depend import Memory
from .order import rebuild
from .predicate import harmless
from .tree import Body, Names, accesses, bodies, dim_loads, loads, map_all, map_bodies, map_expr, parts, roots, written
from .work import effort

TURNS = For("turn of a while", Dim.of(0), Dim.of("turns of a while"), (), "seq")  # no names of a program
EMPTY: Mapping[str, Expr] = MappingProxyType({})
LONGEST = 200  # parts of an expression that is told in full
LONG = 8  # iterations
DEAR = 10  # flops: a function of the mathematical library


def tables(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body, ())
    return replace(kernel, body=body, buffers=(*kernel.buffers, *state.made))


@dataclass(frozen=True)
class _Candidate:
    """An expression in a nest; what it is in full, without variables of an iteration; the places that this is a
    function of, with the extents of their axes; and the loops around it."""

    expr: Expr
    full: Expr
    axes: dict[Dim, Dim]
    loops: tuple[For, ...]


@dataclass
class _State:
    kernel: Kernel
    made: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names, self.root = Names.of(self.kernel), roots(self.kernel)
        self.memory = Memory.of(self.kernel)
        self.uses = Counter(a.buffer for a in accesses(self.kernel.body))

    def body(self, body: Body, around: tuple[For, ...]) -> Body:
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, (For, While)):
                before, stmt = self.tabulated(stmt, around)
                found += before
            inside = (*around, stmt) if isinstance(stmt, For) else around
            found.append(map_bodies(stmt, partial(self.body, around=inside)))
        return tuple(found)

    def tabulated(self, stmt: Stmt, around: tuple[For, ...]) -> tuple[list[Stmt], Stmt]:
        """The loops that fill tables, and the nest that reads them."""
        known: dict[Expr, Expr] = {}
        filled: dict[Expr, str] = {}
        before: list[Stmt] = []
        changed = {self.root[name] for name in written((stmt,))}
        for found in self.candidates((stmt,), around, len(around), changed):
            if found.expr in known or not self.belongs(found, len(around)):
                continue
            key = _at(found.full, {d: Dim.of(f"axis {k}") for k, d in enumerate(found.axes)})
            if key not in filled:
                made = self.table(found, around)
                if made is None:
                    continue
                filled[key], loops = made
                before.append(loops)
            known[found.expr] = Load(filled[key], tuple(found.axes), _type(found.expr))
        if not known:
            return [], stmt
        (nest,) = map_all((stmt,), lambda e: known.get(e, e))
        return before, nest

    def table(self, found: _Candidate, around: tuple[For, ...]) -> tuple[str, Stmt] | None:
        """Its name, and the loops that fill it: for every place that there is."""
        fresh = {d: self.names.fresh("r") for d in found.axes}
        value = _at(found.full, {d: Dim.of(v) for d, v in fresh.items()})
        loops = [For(fresh[d], Dim.of(0), extent, (), "map") for d, extent in found.axes.items()]
        memory = self.memory
        for loop in (*around, *loops):
            memory = memory.inside(loop)
        if not harmless(value, memory):
            return None
        table = Buffer(self.names.fresh("table"), _type(found.expr), tuple(found.axes.values()), "temp")
        self.made.append(table)
        self.root[table.name], self.memory = table.name, self.memory.beside((table,))
        place = tuple(Dim.of(v) for v in fresh.values())
        return table.name, rebuild(loops, (Store(table.name, place, value),))

    def belongs(self, found: _Candidate, level: int) -> bool:
        """Whether the loops from here inwards ask for a place more often than those further in would."""
        further = range(level + 1, len(found.loops))
        inner = [_again(c, k) for k in further if (c := self.candidate(found.expr, found.full, found.loops, k))]
        return _again(found, level) > max(inner, default=0)

    def candidates(
        self,
        body: Body,
        loops: tuple[For, ...],
        level: int,
        changed: set[str],
        told: Mapping[str, Expr] = EMPTY,
        seldom: bool = False,
    ) -> Iterator[_Candidate]:
        """The dear expressions of a nest that the loops from `level` inwards name in places only, of what it does not
        change. `told`: variables that stand for such, too. `seldom`: perhaps not asked for each time; still, where
        whole grids come to one place, asking costs more than its value does."""
        told = dict(told)
        for k, stmt in enumerate(body):
            if isinstance(stmt, Store):
                found = self.of_expr(stmt.value, loops, level, changed, told)
                yield from (c for c in found if not seldom or _of_a_grid(c, level))
                if self.is_own(stmt, body[k:]) and _may_be_told(full := _in_full(stmt.value, told)):
                    told[stmt.buffer] = full
            some = seldom or (isinstance(stmt, If) and any(True for _ in loads(stmt.cond)))
            inner = (*loops, stmt if isinstance(stmt, For) else TURNS) if isinstance(stmt, (For, While)) else loops
            for block in bodies(stmt):
                yield from self.candidates(block, inner, level, changed, told, some)

    def is_own(self, stmt: Store, rest: Body) -> bool:
        """Whether it sets a variable that is set nowhere else, and nothing reads but what follows it."""
        if stmt.index or stmt.op is not None or self.root[stmt.buffer] != stmt.buffer:
            return False
        following = [a for a in accesses(rest) if a.buffer == stmt.buffer]
        return len(following) == self.uses[stmt.buffer] and sum(a.writes for a in following) == 1

    def of_expr(
        self, expr: Expr, loops: tuple[For, ...], level: int, changed: set[str], told: Mapping[str, Expr]
    ) -> Iterator[_Candidate]:
        if effort(expr) < DEAR:
            return
        full = _in_full(expr, told)
        found = self.candidate(expr, full, loops, level)
        stays = not any(self.root[x.buffer] in changed for x in loads(full))
        if found is not None and stays and _again(found, level):
            yield found
        elif isinstance(expr, Op):
            for arg in expr.args:
                yield from self.of_expr(arg, loops, level, changed, told)
        elif isinstance(expr, Cast):
            yield from self.of_expr(expr.value, loops, level, changed, told)

    def candidate(self, expr: Expr, full: Expr, loops: tuple[For, ...], level: int) -> _Candidate | None:
        own = {loop.var: loop for loop in loops[level:]}
        axes: dict[Dim, Dim] = {}
        for part in parts(full):
            if isinstance(part, Int):
                for var in sorted(part.dim.symbols() & own.keys()):
                    loop, counter = own[var], Dim.of(var)
                    if loop.lo != Dim.of(0) or loop.hi.symbols() & own.keys() or any(dim_loads(loop.hi)):
                        return None
                    if axes.setdefault(counter, loop.hi) != loop.hi:
                        return None
            if not isinstance(part, Load):
                continue
            for dim, extent in zip(part.index, self.memory.shape[part.buffer], strict=True):
                if any(True for _ in dim_loads(dim)):
                    return None
                if dim.symbols() & own.keys() and axes.setdefault(dim, extent) != extent:
                    return None
        named = Counter(var for dim in axes for var in dim.symbols() & own.keys())
        if any(count > 1 for count in named.values()):
            return None  # of a pair, x[i + a] and x[i], all pairs would have places
        return _Candidate(expr, full, axes, loops) if any(isinstance(p, Load) for p in parts(full)) and axes else None


def _again(found: _Candidate, level: int) -> int:
    """How many of the loops from `level` inwards come to places where others have been. What the innermost one does not
    change is left out of it anyway."""
    loops = found.loops[level:]
    named = set().union(*(d.symbols() for d in found.axes))
    if loops[-1].var not in named:
        return 0
    return sum(loop.var not in named for loop in loops) + sum(_overlap(d, loops) for d in found.axes)


def _of_a_grid(found: _Candidate, level: int) -> bool:
    """Whether two loops or more, none known to be short, come to each place again and again."""
    named = set().union(*(d.symbols() for d in found.axes))
    others = [loop.hi - loop.lo for loop in found.loops[level:] if loop.var not in named and loop.kind == "map"]
    return sum(n.value is None or n.value >= LONG for n in others) >= 2


def _overlap(place: Dim, loops: Sequence[For]) -> bool:
    """i + a with three a's: each place is come to three times. 2*i + a with two a's: once."""
    steps = []
    for loop in loops:
        if loop.var in place.symbols():
            split, trips = place.split(loop.var), _most(loop.hi - loop.lo)
            if split is None or split[0].value is None:
                return False
            steps.append((abs(split[0].value), trips))
    steps.sort(key=lambda step: step[0])
    return len(steps) > 1 and any(n is None or n * step > steps[-1][0] for step, n in steps[:-1])


def _most(trips: Dim) -> int | None:
    """Of the last strip, min(64, n - 64*strip), as many as of any."""
    match trips.symbol:
        case Atom("min", (Dim() as p, Dim() as q)):
            return min((n for n in (_most(p), _most(q)) if n is not None), default=None)
    return trips.value


def _at(expr: Expr, places: dict[Dim, Dim]) -> Expr:
    """The expression of an element at other places."""
    counters = {str(d.symbol): new for d, new in places.items() if isinstance(d.symbol, str)}

    def moved(e: Expr) -> Expr:
        if isinstance(e, Int):
            return Int(e.dim.subs(counters))
        return Load(e.buffer, tuple(places.get(d, d) for d in e.index), e.dtype) if isinstance(e, Load) else e

    return map_expr(expr, moved)


def _in_full(expr: Expr, told: Mapping[str, Expr]) -> Expr:
    return map_expr(expr, lambda e: told.get(e.buffer, e) if isinstance(e, Load) else e)


def _may_be_told(full: Expr) -> bool:
    """Whether it is short: of numbers that are each made of two of the one before, the last would be told in full
    for ever."""
    return sum(1 for _ in islice(parts(full), LONGEST + 1)) <= LONGEST


def _type(expr: Expr) -> str:
    return "i64" if isinstance(expr, Int) else expr.dtype
