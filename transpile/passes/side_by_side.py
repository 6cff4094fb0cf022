"""Iterations side by side: loops over lanes, and the caller's arrays with the lanes innermost."""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim, minimum, product
from ..ir import Buffer, Cast, Const, Expr, For, If, Int, Load, Op, Stmt, Store
from .alike import LANES, Alike, names_in
from .predicate import conjunction
from .share import dtype_of
from .tree import Access, Body, accesses, map_all, map_bodies, substitute, touched, walk, written


class Mixed(Exception):
    """A statement stores both in what a lane has for itself and in what lanes share: none of them can be repeated."""


class SideBySide(Alike):
    """Lanes: a statement for one iteration becomes a loop over all that go side by side."""

    repeats_nothing = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.flat: dict[str, str] = {}
        self.position = self.names.fresh("lane")  # stands for a lane's place until there is a loop

    # -- arrays of the caller, with the lanes innermost ------------------------------------------------------
    def lay_out(self, recurrences: list[Stmt], mixed: bool) -> None:
        """Give inputs and outputs that have an axis for the batch a wide copy: those that a recurrence walks along, or
        reads at one place at each step; all, where map loops inside of one read them again and again."""
        walked = {a.buffer for stmt in recurrences for a in accesses((stmt,)) if _walks(a, self.table[a.buffer].shape)}
        walked |= {a.buffer for stmt in recurrences for a in accesses((stmt,)) if a.mode == "r" and _stands_still(a)}
        inside, outside = list(accesses(self.loop.body)), [a.buffer for a in accesses(self.kernel.body)]
        for name in sorted({a.buffer for a in inside}):
            buffer, mine = self.table[name], [a for a in inside if a.buffer == name]
            if buffer.kind not in ("in", "out") or not buffer.shape or not (mixed or name in walked):
                continue
            if buffer.kind == "out" and outside.count(name) != len(mine):
                continue
            if all(a.index and a.index[0] == Dim.of(self.loop.var) and self._steady(a.index[1:]) for a in mine):
                wide = self.add_wide(name, buffer.dtype, buffer.shape[1:])
                self.wide[name] = self.packed[name] = wide

    def arrive(self) -> Body:
        return self._moved("in")

    def leave(self) -> Body:
        return self._moved("out")

    def _moved(self, kind: str) -> Body:
        """Between the caller's arrays and their wide copies: each is a matrix of examples and what they have, turned.
        Lanes of a group that is not whole repeat the last example."""
        names = [n for n in self.packed if self.table[n].kind == kind]
        moved = tuple(self._turned(n, kind == "in") for n in names)
        if self.last is None or not moved or kind == "out":
            return moved
        repeated = tuple(self._repeated(n) for n in names)
        return (*moved, If(Op("less", (Int(self.valid), Int(self.extent)), "bool"), repeated))

    def _turned(self, name: str, inward: bool) -> Stmt:
        column, lane = (Dim.of(self.names.fresh(n)) for n in ("n", "l"))
        array, wide = self._in_one_axis(name, 1), self._in_one_axis(self.packed[name], 0)
        here, there = (self.number(lane, True), column), (column, lane)
        if inward:
            move = Store(wide, there, self.as_number(Load(array, here, self.table[array].dtype)))
        else:
            move = Store(array, here, self.load(wide, there, self.table[array].dtype))
        return _map(column, self.table[wide].shape[0], _map(lane, self.valid, move))

    def _repeated(self, name: str) -> Stmt:
        column, lane = (Dim.of(self.names.fresh(n)) for n in ("n", "l"))
        wide = self._in_one_axis(self.packed[name], 0)
        last = Load(wide, (column, self.valid - 1), self.table[wide].dtype)
        repeat = For(str(lane), self.valid, self.extent, (Store(wide, (column, lane), last),), "map")
        return _map(column, self.table[wide].shape[0], repeat)

    def _in_one_axis(self, name: str, first: int) -> str:
        """The buffer with what an example has in one axis, the `first` or behind it, whatever its shape is."""
        buffer = self.table[name]
        last = len(buffer.shape) - 1 + first  # the lanes of a wide one stay as they are
        if last - first == 1:
            return name
        if name in self.flat:
            return self.flat[name]
        shape = (*buffer.shape[:first], product(buffer.shape[first:last]), *buffer.shape[last:])
        flat = Buffer(self.names.fresh(f"{name}_flat"), buffer.dtype, shape, "temp", alias=buffer.alias or name)
        self.table[flat.name] = flat
        self.made.append(flat)
        self.flat[name] = flat.name
        return flat.name

    def load(self, wide: str, index: tuple[Dim, ...], dtype: str) -> Expr:
        there = Load(wide, index, self.table[wide].dtype)
        return Cast(there, "bool") if dtype == "bool" else there

    def as_number(self, value: Expr) -> Expr:
        """As lanes of truths hold it."""
        return Cast(value, "i32") if dtype_of(value) == "bool" else value

    # -- loops over lanes ----------------------------------------------------------------------------------------
    def flag(self, base: str) -> str:
        return self.fresh(base, "bool")

    def fresh(self, base: str, dtype: str) -> str:
        """A variable for each lane."""
        name = self.names.fresh(base)
        self.table[name] = Buffer(name, dtype, (), "temp")
        self.wide[name] = self.add_wide(name, dtype, ())
        return name

    def of_own(self, mask: Expr | None) -> Expr | None:
        """A mask of lanes that repeat nothing, too."""
        if self.last is None:
            return mask
        self.repeats_nothing = self.repeats_nothing or self.flag("own")
        return conjunction(mask, Load(self.repeats_nothing, (), "bool"))

    def own(self) -> Body:
        """What such a mask is, before all else."""
        if not self.repeats_nothing:
            return ()
        value = Op("less", (Int(Dim.of(self.position)), Int(self.valid)), "bool")
        return (self.lane(Store(self.repeats_nothing, (), value)),)

    def lane(self, stmt: Stmt) -> For:
        """For each lane; what it stores in arrays that lanes share, for those alone that repeat nothing."""
        if self.last is None or self.only_wide(stmt):
            return self.all_lanes(stmt)
        var = self.names.fresh("l")
        return For(var, Dim.of(0), self.valid, (self.one(stmt, var, True),), "map")

    def only_wide(self, stmt: Stmt) -> bool:
        stored = {s.buffer in self.wide for s in walk((stmt,)) if isinstance(s, Store)}
        if len(stored) > 1:
            raise Mixed
        return stored == {True}

    def all_lanes(self, stmt: Stmt) -> For:
        var = self.names.fresh("l")
        return For(var, Dim.of(0), self.extent, (self.one(stmt, var),), "map")

    def number(self, lane: Dim, valid: bool) -> Dim:
        """Which iteration a lane is at, among those that repeat nothing, or among all."""
        exact = Dim.of(self.group) * self.lanes + lane
        return exact if valid or self.last is None else minimum(exact, self.last)

    def one(self, stmt: Stmt, var: str, valid: bool = False) -> Stmt:
        """The statement for the example of a lane."""
        lane = Dim.of(var)

        def place(buffer: str, index: tuple[Dim, ...]) -> tuple[Dim, ...]:
            return (*(index[1:] if buffer in self.packed else index), lane)

        def load(e: Expr) -> Expr:
            if not isinstance(e, Load) or e.buffer not in self.wide:
                return e
            return self.load(self.wide[e.buffer], place(e.buffer, e.index), e.dtype)

        def store(s: Stmt) -> Stmt:
            if isinstance(s, Store) and s.buffer in self.wide:
                value = self.as_number(s.value) if self.table[s.buffer].dtype == "bool" else s.value
                s = replace(s, buffer=self.wide[s.buffer], index=place(s.buffer, s.index), value=value)
            return map_bodies(s, lambda inner: tuple(map(store, inner)))

        body = substitute((stmt,), {self.loop.var: self.number(lane, valid), self.position: lane})
        return store(map_all(body, load)[0])

    # -- one loop for many statements --------------------------------------------------------------------------
    def joined(self, body: Body) -> Body:
        """Neighbouring lane loops are one; what is only set between them is set before, and what all lanes add up there
        is added behind."""
        found: list[Stmt] = []
        for stmt in body:
            behind: list[Stmt] = []
            while found and self._is_lane(stmt) and self._may_wait(found[-1], stmt):
                behind.insert(0, found.pop())
            last = found[-1] if found else None
            if self._is_lane(last) and self._is_set(stmt) and not written((stmt,)) & touched(found[-1:]):
                found.insert(-1, stmt)
            elif self._is_lane(stmt) and self._is_lane(last):
                assert isinstance(stmt, For)
                assert isinstance(last, For)
                found[-1] = replace(last, body=last.body + substitute(stmt.body, {stmt.var: Dim.of(last.var)}))
            else:
                found.append(stmt)
            found += behind
        return tuple(found)

    def _may_wait(self, sums: Stmt, lane: Stmt) -> bool:
        """Whether it adds up numbers of lanes, with which a loop over them that follows has nothing to do."""
        if not isinstance(sums, For) or sums.hi != self.extent or self._is_lane(sums):
            return False
        if not all(isinstance(s, Store) and s.op and s.index and s.buffer not in self.wide for s in sums.body):
            return False
        roots = self.memory.roots
        apart = roots(written((sums,))).isdisjoint(roots(touched((lane,))))
        return apart and roots(written((lane,))).isdisjoint(roots(touched((sums,))))

    def _is_set(self, stmt: Stmt) -> bool:
        if not isinstance(stmt, Store) or stmt.index or stmt.op:
            return False
        return isinstance(stmt.value, Const) or stmt.buffer in self.same

    def _is_lane(self, stmt: Stmt | None) -> bool:
        if not isinstance(stmt, For) or stmt.hi != self.extent or stmt.kind != "map":
            return False
        return all(isinstance(s, Store) and (not s.index or names_in(s.index, stmt.var)) for s in stmt.body)


def _map(var: Dim, extent: Dim | int, stmt: Stmt) -> For:
    return For(str(var), Dim.of(0), Dim.of(0) + extent, (stmt,), "map")


def _stands_still(access: Access) -> bool:
    """Whether each step reads the same number: of sixteen examples sixteen, from far apart."""
    turns = {loop.var for loop in access.loops}
    return not any(place.symbols() & turns for place in access.index or ())


def _walks(access: Access, shape: tuple[Dim, ...]) -> bool:
    """Whether neighbours in memory, or small rows of them, come one after the other: sixteen examples would be picked
    from far apart."""
    along = {loop.var for loop in access.loops if loop.kind == "seq"}
    for place, extent in reversed(list(zip(access.index or (), shape))):
        if place.symbols() & along:
            return True
        if extent.value is None or extent.value > LANES:
            return False
    return False
