"""Whether sixteen examples, or elements, may walk through loops together: all take the same way, or what is computed
for one that is done does no harm. `together` does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from ..dims import Atom, Dim, largest, minimum
from ..ir import (
    Buffer,
    Check,
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
from .depend import Memory
from .guards import margins
from .predicate import harmless, is_within, made_each_turn, only_within
from .ranges import conjuncts
from .spans import places
from .tree import (
    Body,
    Names,
    accesses,
    bodies,
    dim_loads,
    has,
    in_dims,
    loads,
    own_dims,
    own_exprs,
    parts,
    symbols,
    touched,
    walk,
    written,
)

LANES = 16
# Along elements: several vectors, as each turn of a `while` waits for the one before.
MANY_LANES = 64
NONE = Const(0, "i64")
# What counts the turns of a loop -> those of each lane, what it began with, and the mask of lanes that count.
Turns = dict[str, tuple[str, Const, Expr | None]]
MUCH = 6  # statements, and more: something dear
NARROW = 32  # a loop known to be this short fills few vectors, and what comes before and after it costs as much


@dataclass
class Alike:
    """A loop that several iterations may walk through. `around`: the loops it is in; `made`: new buffers; `lanes`: how
    many iterations an array has room for; `count`: how many there are, if not as many; `last`: the last iteration of
    all, which lanes behind it repeat: what they make is theirs alone."""

    kernel: Kernel
    loop: For
    around: tuple[For, ...] = ()
    lanes: int = LANES
    count: Dim | None = None
    last: Dim | None = None
    made: list[Buffer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = Names.of(self.kernel)
        self.extent = Dim.of(self.lanes) if self.count is None else self.count
        self.group = self.names.fresh("group")
        self.valid = self.extent  # lanes that repeat nothing
        if self.last is not None:
            self.valid = minimum(self.extent, self.last + 1 - Dim.of(self.group) * self.lanes)
        self.table = {b.name: b for b in self.kernel.buffers}
        self.memory = Memory.of(self.kernel).where(places(self.kernel))
        for loop in (*self.around, self.loop):
            self.memory = self.memory.inside(loop)
        self.each_turn: dict[str, Expr] = {}  # numbers made anew in each turn of a loop -> the mask of those in a turn
        self.taken: dict[Expr, dict[Expr, Expr | None]] = {}  # that -> a mask in the turn -> who of those; None: all
        self.free: set[str] = set()  # used in one iteration only: may hold anything for an example that is done
        self.zero: set[str] = set()  # places: 0 for an example that has none
        self.maps = 0  # map loops around a statement
        self.level: dict[str, Dim] = {}  # list -> where it ends for every lane that goes on
        self.of_all: set[str] = set()  # of those, the ones that no lane has another end of: behind it nobody reads
        self.turns: Turns = {}
        self.packed: dict[str, str] = {}  # input or output -> its wide copy
        self.wide: dict[str, str] = {}  # private temporary -> its copy with an axis of lanes
        root = self.memory.root
        self.outside = Counter(root[a.buffer] for a in accesses(self.kernel.body))
        self.outside.subtract(root[a.buffer] for a in accesses(self.loop.body))
        self.same: dict[str, str] = {}  # integers that are one for all lanes -> their copies, without an axis
        self.same = {n: self.add(n, "i64", ()) for n in self._of_all()}
        for name in sorted({a.buffer for a in accesses(self.loop.body)} - self.same.keys()):
            buffer = self.table[name]
            own = buffer.kind == "temp" and self.table[root[name]].kind == "temp" and not self.outside[root[name]]
            if buffer.kind == "list" or own:
                self.wide[name] = self.add_wide(name, buffer.dtype, buffer.shape, buffer.kind)
        kept = self.memory.roots(written(self.loop.body))
        # Places that are known before the loop, one for all lanes.
        self.given = {n for n in touched(self.loop.body) if not self.table[n].shape and root[n] not in kept}

    def _of_all(self) -> list[str]:
        """Integers of recurrences that each turn makes anew, the same for all lanes: places that counters tell."""
        inside = list(walk(self.loop.body))
        counted = {e.buffer for s in inside if isinstance(s, (For, Grow)) for d in own_dims(s) for e in dim_loads(d)}
        counted |= {e.buffer for b in self.table.values() for d in b.shape for e in dim_loads(d)}
        counted |= touched(s for s in self.loop.body if not any(map(is_recurrence, walk((s,)))))
        stores = Counter(s.buffer for s in inside if isinstance(s, Store))
        found: list[str] = []
        for store, around in self._by_all(self.loop.body):
            name, b = store.buffer, self.table[store.buffer]
            ours = b.kind == "temp" and not b.shape and not b.alias and not self.outside[name] and b.dtype == "i64"
            if ours and stores[name] == 1 and name not in counted and made_each_turn(name, around, self.loop):
                told = all(e.buffer in found or self.table[e.buffer].kind == "in" for e in loads(store.value))
                found += [name] if told and self.loop.var not in symbols(store.value) else []
        return found

    def _by_all(self, body: Body) -> Iterator[tuple[Store, Body]]:
        """What all lanes store, whatever they hold, with the statements it is among."""
        for stmt in body:
            match stmt:
                case Store(op=None):
                    yield stmt, body
                case For(lo=lo, hi=hi, body=inner) if not any(True for d in (lo, hi) for _ in dim_loads(d)):
                    yield from self._by_all(inner)
                case If(cond, then, orelse) if self.same_for_all(cond):
                    yield from self._by_all(then)
                    yield from self._by_all(orelse)

    def add(self, base: str, dtype: str, shape: tuple[Dim, ...], kind: str = "temp") -> str:
        name = self.names.fresh(base)
        self.made.append(Buffer(name, dtype, shape, kind))
        self.table[name] = self.made[-1]
        return name

    def add_wide(self, base: str, dtype: str, shape: tuple[Dim, ...], kind: str = "temp") -> str:
        """With an axis of lanes. Truths are as wide as numbers: a loop over sixteen bytes and floats fills a quarter of
        a vector."""
        return self.add(base, "i32" if dtype == "bool" else dtype, (*shape, Dim.of(self.lanes)), kind)

    def _steady(self, index: tuple[Dim, ...]) -> bool:
        return not names_in(index, self.loop.var)

    def possible(self) -> bool:
        """All examples take the same way through the loops, and what is computed for one that is done does
        no harm."""
        if has(self.loop.body, Product) or not all(
            self.is_stack(s) for s in walk(self.loop.body) if isinstance(s, Grow)
        ):
            return False
        own = {n for n in self.wide if self.table[n].kind in ("temp", "list")}
        if any(self.table[n].alias or (self.table[n].kind == "list" and self.outside[n]) for n in own):
            return False
        if any(isinstance(s, Store) and self.lives_on(s) for s in walk(self.loop.body)):
            return False
        return self.uniform(self.loop.body, self.memory, masked=False)

    def lives_on(self, stmt: Store) -> bool:
        """Whether it sets a variable that is, behind the loop, that of the last iteration."""
        b = self.table[stmt.buffer]
        return b.kind == "temp" and not b.shape and stmt.op is None and self.outside[self.memory.root[b.name]] > 0

    def uniform(
        self, body: Body, memory: Memory, masked: bool, safe: frozenset[str] = frozenset(), few: bool = False
    ) -> bool:
        """`masked`: not for all lanes, `few`: perhaps for few of them. `safe`: places that are 0 for an example to
        which the branch does not apply."""
        for stmt in body:
            if any(True for d in own_dims(stmt) for _ in dim_loads(d)) and not self.is_counted(stmt):
                return False
            if masked and isinstance(stmt, Store) and stmt.buffer not in self.stacks():
                if any(any(dim_loads(d)) for d in stmt.index) and not is_within(stmt.buffer, stmt.index, memory, safe):
                    return False
            for expr in own_exprs(stmt):
                if any(isinstance(p, Int) and any(True for _ in dim_loads(p.dim)) for p in parts(expr)):
                    return False
                if masked and not harmless(expr, memory, self.stacks(), safe):
                    return False
            match stmt:
                case Check(_, _, info) if not self._steady(info):
                    return False
                case For(lo=lo, hi=hi):
                    for_each = any(dim_loads(hi))
                    long = not for_each and _most(hi - lo, memory) is None
                    rare = few or (masked and self.lanes == LANES)  # long loops of examples are vectors already
                    if (rare and long) or self.loop.var in lo.symbols() | hi.symbols():
                        return False
                    inside, there = memory.inside(stmt), frozenset() if for_each else safe
                    if not self.uniform(stmt.body, inside, masked or for_each, there, few):
                        return False
                case If() if not masked and self.is_of_one(stmt):
                    pass
                case Store(op=None) if masked and self.is_shared(stmt):
                    return False  # the others would store what was there, perhaps before it is stored
                case If(cond, then, orelse) if self.same_for_all(cond):
                    known = memory.where(margin for part in conjuncts(cond) for margin in margins(part))
                    ways = (then, known), (orelse, memory)
                    if not all(self.uniform(way, told, masked, safe, few) for way, told in ways):
                        return False
                case If():
                    if not all(self.uniform(b, memory, True, safe | self.places(b), True) for b in bodies(stmt)):
                        return False
                case While(cond=cond):
                    some = masked or not self.same_for_all(cond)
                    if not all(self.uniform(b, memory, some, few=few) for b in bodies(stmt)):
                        return False
        return True

    def places(self, body: Body) -> frozenset[str]:
        """Integers that statements of a branch, and no others, have for themselves: places, mostly."""
        names = {s.buffer for s in body if isinstance(s, Store) and not s.index and s.buffer in self.wide}
        return frozenset(n for n in names if self.table[n].dtype == "i64" and only_within(n, body, self.loop))

    def stacks(self) -> set[str]:
        return {name for name in self.wide if self.table[name].kind == "list"}

    def is_stack(self, stmt: Grow) -> bool:
        """Whether a list holds numbers, or arrays of one extent, and only its end is touched: a lane that is done has
        an end, too."""
        list_ = self.table[stmt.buffer]
        end = list_.shape[0]
        mine = [a for a in accesses(self.loop.body) if a.buffer == stmt.buffer and a.index is not None]
        if stmt.lent or any(any(dim_loads(n)) for n in list_.shape[1:]) or stmt.count != end + 1:
            return False
        return all(a.index[:1] == (end,) for a in mine if a.index) and all(
            load.buffer in self.wide for load in dim_loads(end)
        )

    def is_counted(self, stmt: Stmt) -> bool:
        """Whether what it reads of memory to know a place, or an end, each lane can have for itself."""
        match stmt:
            case Grow():
                return True
            case Check(_, _, info):
                return all(self.is_own(load) for d in info for load in dim_loads(d))
            case Store(buffer, index, _, op):
                mine = buffer in self.wide or index[:1] == (Dim.of(self.loop.var),) or op is not None
                return buffer in self.stacks() or (mine and all(self.is_own(x) for d in index for x in dim_loads(d)))
            case For(lo=lo, hi=hi, kind="seq"):
                return not any(dim_loads(lo)) and all(x.buffer in self.wide for x in dim_loads(hi))
        return False

    def is_own(self, load: Load) -> bool:
        """Whether each lane has a number of its own for it, or all have one."""
        return not load.index and (load.buffer in self.wide or self.is_of_all(load))

    def is_of_all(self, load: Load) -> bool:
        return load.buffer in self.same or load.buffer in self.given

    def same_for_all(self, cond: Expr) -> bool:
        """Whether all examples go the same way."""
        return self.loop.var not in symbols(cond) and not any(
            load.buffer in self.wide or self.table[load.buffer].kind != "in" for load in loads(cond)
        )

    def even(self, loop: While, before: Body) -> dict[str, Const]:
        """The lists that each turn of a loop makes longer by one, with the length that all have before it: they end
        at the same place for all that go on."""
        found = {}
        for name in sorted(self.stacks() & touched(loop.body)):
            end = next(load.buffer for load in dim_loads(self.table[name].shape[0]))
            start = next((s for s in reversed(before) if end in touched((s,))), None)
            match start, [s for s in loop.body if touched((s,)) & {name, end}]:
                case Store(op=None, value=Const() as length), [Grow(), (Store() | For()) as kept, Store() as longer]:
                    uses = [a.mode for a in accesses((kept,)) if a.buffer == name]
                    ends = sum(a.buffer == end for a in accesses((kept,)))
                    once = longer == Store(end, (), Const(1, "i64"), "add") and end not in touched(loop.before)
                    if uses == ["w"] and ends == 1 and once:
                        found[name] = length
        return found

    def counters(self, loop: While, before: Body) -> dict[str, Const]:
        """Integers that each turn of a loop makes larger by one, no places, with what they are before it: they are the
        same for all that go on."""
        found = {}
        stores = [s.buffer for s in walk((loop,)) if isinstance(s, Store)]
        for stmt in loop.body:
            match stmt:
                case Store(name, (), Const(1, "i64"), "add") if name in self.wide and stores.count(name) == 1:
                    start = next((s for s in reversed(before) if name in touched((s,))), None)
                    if name not in in_dims(loop) and isinstance(start, Store) and start.buffer == name and not start.op:
                        if isinstance(start.value, Const):
                            found[name] = start.value
        return found

    def popped(self, loop: For) -> dict[str, str]:
        """Lists that each turn of a loop takes the last entry from, with where they end, if that is all that it does
        with either."""
        found = {}
        for name in sorted(self.stacks()):
            end = next(load.buffer for load in dim_loads(self.table[name].shape[0]))
            mine = [s for s in loop.body if touched((s,)) & {name, end}]
            if (
                mine
                and isinstance(mine[0], Check)
                and mine[0].cond == Op("greater", (Load(end, (), "i64"), NONE), "bool")
            ):
                mine = mine[1:]
            if mine[:1] != [Store(end, (), Const(-1, "i64"), "add")]:
                continue
            read = [a for s in mine[1:] for a in accesses((s,)) if a.buffer in (name, end)]
            places = sum(a.buffer == name for a in read)
            last = (Dim.of(Atom("load", (Load(end, (), "i64"),))),)
            if len(read) == 2 * places and all((a.index or last)[:1] == last and a.mode == "r" for a in read):
                found[name] = end
        return found

    def is_shared(self, stmt: Store) -> bool:
        """Whether all lanes accumulate into one place: that is a loop of its own, or it would keep others scalar."""
        return stmt.buffer not in self.wide and self._steady(stmt.index)

    def is_of_one(self, stmt: If) -> bool:
        """Whether it only stores to places that no example has for itself: the states that the first one leaves."""
        stores = (*stmt.then, *stmt.orelse)
        return all(isinstance(s, Store) and s.op is None and self.is_shared(s) for s in stores)


def _most(turns: Dim, memory: Memory) -> int | None:
    """Of a loop, if that is a number."""
    try:
        return largest(turns, memory.facts).value
    except ValueError:
        return None


def is_recurrence(stmt: Stmt) -> bool:
    """A sequential loop that does something besides running map loops; or whose map loops are short."""
    if not (isinstance(stmt, While) or (isinstance(stmt, For) and stmt.kind == "seq")) or has((stmt,), Product):
        return False
    maps = [s for s in walk((stmt,)) if isinstance(s, For) and s.kind == "map"]
    return _chain(bodies(stmt)) or all((s.hi - s.lo).value is not None and (s.hi - s.lo).value <= NARROW for s in maps)


def asks_of_some(stmt: Stmt) -> bool:
    """Whether it is a branch with a check, which no choice of values can be."""
    return isinstance(stmt, If) and has((stmt,), Check)


def over(loop: For) -> Load | None:
    """A truth by which a loop does something dear, or next to nothing: a variable that nothing sets in the loop but to
    say no, or an array of which each turn has one."""
    for stmt in loop.body:
        match stmt:
            case If(Load(name, index) as flag, then) if sum(1 for _ in walk(then)) >= MUCH:
                stores = [s for s in walk(loop.body) if isinstance(s, Store) and s.buffer == name]
                told = all(s.value == Const(False, "bool") and not index and not s.op for s in stores)
                steady = not any(True for d in index for _ in dim_loads(d)) and name not in in_dims(loop)
                return flag if told and steady and {x for d in index for x in d.symbols()} <= {loop.var} else None
    return None


def asks(stmt: Stmt, flag: Load) -> TypeGuard[If]:
    return isinstance(stmt, If) and stmt.cond == flag


def _chain(lists: tuple[Body, ...]) -> bool:
    """Whether something is stored outside of all map loops."""
    return any(
        isinstance(s, Store) or (not (isinstance(s, For) and s.kind == "map") and _chain(bodies(s)))
        for body in lists
        for s in body
    )


def names_in(index: tuple[Dim, ...], var: str) -> bool:
    return any(var in d.symbols() for d in index)
