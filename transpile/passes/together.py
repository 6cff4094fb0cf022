"""Statements for sixteen examples at once: every variable has an axis of lanes, branches and loops have masks.

What `lanes` decides to do is done here; `alike` says whether it may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..dims import Atom, Dim, minimum
from ..ir import (
    FLOATS,
    Cast,
    Check,
    Comment,
    Const,
    Expr,
    For,
    Grow,
    If,
    Int,
    Load,
    Op,
    Stmt,
    Store,
    While,
)
from .alike import LANES, NONE, Turns, asks, is_recurrence, over
from .predicate import conjunction, made_each_turn, masked, stays_within
from .side_by_side import SideBySide
from .tree import (
    Body,
    Index,
    accesses,
    anew,
    dim_loads,
    has,
    map_all,
    map_dim,
    rename_buffers,
    symbols_of,
    touched,
    walk,
    written,
)

STRIP = 16  # turns


class Together(SideBySide):
    """A loop that several iterations walk through side by side."""

    def alone(self, loop: For) -> For:
        """The loop as it was, with temporaries of its own."""
        mine = touched(loop.body) & {*self.wide, *self.same}
        temporaries = sorted(n for n in mine if self.table[n].kind in ("temp", "list"))
        own: dict[str, str] = {}

        def renamed(e: Expr) -> Expr:
            return replace(e, buffer=own[e.buffer]) if isinstance(e, Load) and e.buffer in own else e

        for n in sorted(temporaries, key=lambda n: self.table[n].kind == "list"):  # a list's end is a temporary, too
            buffer = self.table[n]
            own[n] = self.add(n, buffer.dtype, tuple(map_dim(d, renamed) for d in buffer.shape), buffer.kind)
        return replace(loop, body=rename_buffers(loop.body, own))

    def empty_stacks(self) -> Body:
        """A lane that never comes to its list has an end of it nevertheless."""
        ends = {load.buffer for name in self.stacks() for load in dim_loads(self.table[name].shape[0])}
        return self.joined(tuple(self.lane(Store(end, (), Const(0, "i64"))) for end in sorted(ends)))

    # -- doing it --------------------------------------------------------------------------------------------
    def mostly_own(self, body: Body) -> Body:
        """Nests that are vectorised along their own axes stay so: one example after another."""
        inside: list[Stmt] = []
        for stmt in body:
            apart = isinstance(stmt, For) and stmt.kind == "map" and not any(is_recurrence(s) for s in walk((stmt,)))
            if apart and not self.clears(stmt):
                inside.append(self.lane(stmt))
            else:
                inside += self.body((stmt,), None)
        return self.joined(tuple(inside))

    def clears(self, nest: Stmt) -> bool:
        """Whether it does nothing but fill arrays of the lanes, some with one number: that is a matter of memory, along
        which the lanes lie."""
        inside = [s for s in walk((nest,)) if not isinstance(s, For)]
        fills = [s for s in inside if isinstance(s, Store) and s.index and not s.op and s.buffer in self.wide]
        return len(fills) == len(inside) and any(isinstance(s.value, Const) for s in fills)

    def body(self, body: Body, mask: Expr | None) -> Body:
        found: list[Stmt] = []
        for k, stmt in enumerate(body):
            same, known = self.turns_of(stmt, mask), self.turns
            self.turns = {n: counted for n, counted in known.items() if n not in written((stmt,))}
            if isinstance(stmt, While) and not self.same_for_all(stmt.cond):
                found += self.loop_until_all_done(stmt, mask, self.even(stmt, body[:k]), self.counters(stmt, body[:k]))
            elif isinstance(stmt, For) and any(dim_loads(stmt.hi)):
                found += self.as_often_as_any(stmt, mask, known)
            else:
                found += self.stmt(stmt, mask)
            self.turns |= same
        return self.joined(tuple(found))

    def turns_of(self, stmt: Stmt, mask: Expr | None) -> Turns:
        """A copy of what counts turns counts them, too."""
        match stmt:
            case Store(buffer, (), Load(name, ()), None) if name in self.turns and self.turns[name][2] == mask:
                return {buffer: self.turns[name]}
        return {}

    def stmt(self, stmt: Stmt, mask: Expr | None) -> Body:
        match stmt:
            case Comment():
                return (stmt,)
            case Check(cond):
                return (stmt,) if self.same_for_all(cond) else self.checked_for_all(stmt, mask)
            case Grow(buffer) if buffer in self.level:
                return (Grow(self.wide[buffer], self.level[buffer] + 2),)  # the end is room, too
            case Grow(buffer, count):
                before, most = self.extreme(Int(count + 1), "max", Const(0, "i64"))  # the end is room, too
                return (*before, Grow(self.wide[buffer], Dim.of(Atom("load", (most,)))))
            case Store(buffer) if buffer in self.same:
                return (stmt,)
            case Store(buffer, index, value, op) if op and buffer not in self.wide and self.is_looked_up(index):
                dtype = self.table[buffer].dtype
                part = self.fresh(buffer, dtype)
                whole: Stmt = Store(buffer, index, Load(part, (), dtype), op)
                whole = whole if mask is None else If(mask, (whole,))
                # Lanes may add at one place: a loop of its own, or it would keep others scalar.
                return (self.lane(Store(part, (), value)), replace(self.lane(whole), kind="seq"))
            case Store(buffer, index, _, op) if op and index and self.is_shared(stmt):
                part = self.fresh(buffer, self.table[buffer].dtype)
                term = masked(stmt, self.of_own(mask), self.table).value
                whole = Store(buffer, index, Load(part, (), self.table[buffer].dtype), op)
                return (self.lane(Store(part, (), term)), self.all_lanes(whole))
            case Store(buffer, value=value) if buffer in self.zero and mask is not None:
                value = Op("where", (mask, value, Const(0, "i64")), "i64")
                return (self.lane(replace(stmt, value=value)),)
            case Store(buffer) if buffer in self.level:
                mask = None if buffer in self.of_all else mask
                return (self.lane(masked(self.at_level(stmt), mask, self.table)),)
            case Store(buffer) if buffer in self.stacks():
                return (
                    replace(self.lane(masked(stmt, mask, self.table)), kind="seq"),
                )  # ends differ: no vector of stores
            case Store(buffer):
                return (self.lane(stmt if buffer in self.free else self.chosen(stmt, mask)),)
            case For(body=inside, kind="map"):
                self.maps += 1
                inside = self.body(inside, mask)
                self.maps -= 1
                return (replace(stmt, body=inside),)
            case For(body=inside):
                flag = over(stmt) if mask is None and self.lanes > LANES else None
                return self.in_strips(stmt, flag) if flag else (replace(stmt, body=self.body(inside, mask)),)
            case If(cond, then, orelse) if self.same_for_all(cond):
                return (If(cond, self.body(then, mask), self.body(orelse, mask)),)
            case While(before, cond, inside) if self.same_for_all(cond):
                return (While(self.body(before, mask), cond, self.body(inside, mask)),)
            case If() if self.is_of_one(stmt):
                return (self.lane(stmt),)
            case If(cond, then, orelse):
                taken = self.flag("taken")
                asked = Load(taken, (), "bool")
                ways = [self.way(then, mask, asked), self.way(orelse, mask, Op("logical_not", (asked,), "bool"))]
                return (self.lane(Store(taken, (), cond)), *ways[0], *ways[1])
        raise TypeError(stmt)

    def turns_begin(self, body: Body, running: Expr) -> None:
        """What a loop's turns make anew."""
        self.free |= {n for n in self.wide if stays_within(n, body, self.loop)}
        numbers = {n for n in self.wide if not self.table[n].shape}
        self.each_turn |= {n: running for n in numbers if made_each_turn(n, body, self.loop)}
        self.taken[running] = {running: None}

    def at_level(self, stmt: Store) -> Store:
        return replace(stmt, index=(self.level[stmt.buffer], *stmt.index[1:]))

    def chosen(self, stmt: Store, mask: Expr | None) -> Store:
        """A store for those that are concerned. Of a sum the others keep what they have, rather than add 0: as where
        there is no mask, a product is fused with the sum. (What map loops add up is left to those that order sums.)"""
        if mask is not None and stmt.buffer in self.each_turn:
            mask = self.taken[self.each_turn[stmt.buffer]].get(mask, mask)
        dtype = self.table[stmt.buffer].dtype
        if mask is not None and stmt.op == "add" and dtype in FLOATS and not self.maps:
            value = Op("add", (Load(stmt.buffer, stmt.index, dtype), stmt.value), dtype)
            stmt = Store(stmt.buffer, stmt.index, value)
        return masked(stmt, mask, self.table)

    def way(self, body: Body, around: Expr | None, asked: Expr) -> Body:
        """What some examples do. With places that are read from memory it is done if there are any: then an array has
        a place 0, where the others look. So is what is asked of all alike: it may fail where nobody comes."""
        mask = conjunction(around, asked)
        for known in self.taken.values():
            if around is not None and around in known:
                known[mask] = conjunction(known[around], asked)
        self.free |= {n for n in self.wide if stays_within(n, body, self.loop)}
        places = self.places(body)
        read = {load.buffer for a in accesses(body) for d in a.index or () for load in dim_loads(d)}
        if not places & read and not has(body, Check):
            return self.body(body, mask)
        self.zero |= places
        before, some = self.extreme(Cast(mask, "i64"), "max", Const(0, "i64"))
        return (*before, If(Op("greater", (some, Const(0, "i64")), "bool"), self.body(body, mask)))

    def loop_until_all_done(
        self, loop: While, mask: Expr | None, even: dict[str, Const], counters: dict[str, Const]
    ) -> Body:
        """What is asked before each turn is asked behind the one before, in one loop over the lanes with it."""
        kind = "i32" if even else "i64"  # of turns that leave an entry each, memory holds no more
        live, turns = self.flag("live"), self.fresh("turns", kind)
        running = Load(live, (), "bool")
        self.turns_begin(loop.body, running)
        level = self.add("level", "i64", ())
        start = (self.lane(Store(live, (), mask or Const(True, "bool"))), self.lane(Store(turns, (), Const(0, kind))))
        for name, length in even.items():
            self.level[name] = Dim.of(Atom("load", (Load(level, (), "i64"),))) + int(length.value)
            if mask is None:
                self.of_all.add(name)
        ends = {self.end(name): length for name, length in even.items()}
        turn = Load(level, (), "i64")
        loop = _counted(loop, {**counters, **ends}, turn)
        none, any_left, some = self.any_of(live)

        def test(cond: Expr) -> Body:
            return (*self.body(loop.before, running), self.lane(Store(live, (), conjunction(running, cond))), any_left)

        def later(e: Expr) -> Expr:
            return Int(Dim.of(Atom("load", (turn,))) + 1) if e == turn else e

        before, behind = test(loop.cond), map_all(test(loop.cond), later)
        ends_of = {d + 2 for d in self.level.values()}
        body = self.body(loop.body, running)
        grown = [s for s in body if isinstance(s, Grow) and s.count in ends_of]  # first: they would part what lanes do
        inside = (
            *grown,
            none,
            *(s for s in body if s not in grown),
            self.lane(self.chosen(Store(turns, (), Const(1, kind), "add"), running)),
            *behind,
            Store(level, (), Const(1, "i64"), "add"),
        )
        for name in even:
            del self.level[name]
            self.of_all.discard(name)
        after = []
        for name, first in {**counters, **ends}.items():
            total: Expr = Load(turns, (), kind) if kind == "i64" else Cast(Load(turns, (), kind), "i64")
            count = Store(name, (), Op("add", (total, first), "i64") if first.value else total)
            after.append(self.lane(self.chosen(count, mask)))
            self.turns[name] = (turns, first, mask)
        return (Store(level, (), NONE), none, *start, *before, While((), some, self.joined(inside)), *after)

    def as_often_as_any(self, loop: For, mask: Expr | None, known: Turns) -> Body:
        """A loop that each lane runs as often as it has to: the last turns of all that are made, if none knows its
        number. Lanes that take from a list what earlier turns left there then are at one place of it."""
        none = Const(-(2**63), "i64")
        times = Int(loop.hi) if mask is None else Op("where", (mask, Int(loop.hi), none), "i64")
        before, most = self.extreme(times, "max", none)
        live = self.flag("live")
        turn = Dim.of(loop.var)
        after: list[Stmt] = []
        if loop.lo == Dim.of(0) and loop.var not in symbols_of(loop.body):
            turn = Dim.of(Atom("load", (most,))) - 1 - turn
            for name, end in self.popped(loop).items():
                if _has_turns(known, loop.hi, end, mask):
                    taken = self.fresh(name, self.table[name].dtype)
                    self.free.add(taken)
                    loop = replace(loop, body=_without_end(loop.body, name, end, turn, taken))
                    after.append(self.lane(self.chosen(Store(end, (), NONE), mask)))
        running = self.lane(Store(live, (), conjunction(mask, self.once_more(turn, loop.hi, known, mask))))
        self.turns_begin(loop.body, Load(live, (), "bool"))
        inside = self.body(loop.body, Load(live, (), "bool"))
        loop = replace(loop, hi=Dim.of(Atom("load", (most,))), body=self.joined((running, *inside)))
        return (*before, loop, *after)

    def once_more(self, turn: Dim, times: Dim, known: Turns, mask: Expr | None) -> Expr:
        """Whether a lane has so many turns: asked of what has counted them, where that is half as wide."""
        match times.symbol:
            case Atom("load", (Load(name, ()),)) if name in known and known[name][1:] == (NONE, mask):
                turns = known[name][0]
                if self.table[turns].dtype == "i32":
                    return Op("less", (Cast(Int(turn), "i32"), Load(turns, (), "i32")), "bool")
        return Op("less", (Int(turn), Int(times)), "bool")

    def in_strips(self, loop: For, flag: Load) -> Body:
        """A loop that elements leave by a truth that is kept: where all of them have, its turns do nothing. That is
        asked before a few turns at once."""
        strip, dtype = self.names.fresh("strip"), "i32"
        lo = loop.lo + Dim.of(strip) * STRIP
        some, turns = self.add("some", dtype, ()), replace(loop, lo=lo, hi=minimum(loop.hi, lo + STRIP))
        asked: Stmt = Store(some, (), Cast(flag, dtype), "max")
        asked = self.all_lanes(asked)
        if flag.index:
            asked = anew(replace(turns, body=(asked,)), self.names)
        others = tuple(s for stmt in loop.body for s in (stmt.orelse if asks(stmt, flag) else (stmt,)))
        turned = replace(turns, body=self.body(loop.body, None))
        idle = anew(replace(turns, body=others), self.names)
        idle = replace(idle, body=self.body(idle.body, None))
        any_left = Op("greater", (Load(some, (), dtype), Const(0, dtype)), "bool")
        if_any = If(any_left, (turned,), (idle,) if others else ())
        count = (loop.hi - loop.lo + (STRIP - 1)) // STRIP
        return (For(strip, Dim.of(0), count, (Store(some, (), Const(0, dtype)), asked, if_any), "seq"),)

    def end(self, stack: str) -> str:
        return next(load.buffer for load in dim_loads(self.table[stack].shape[0]))

    def checked_for_all(self, stmt: Check, mask: Expr | None) -> Body:
        """Of those that fail the first is named, as where they go one by one: but not if it would fail later."""
        none = Const(2**63 - 1, "i64")
        cond = stmt.cond
        if mask is not None:
            cond = Op("logical_or", (cond, Op("logical_not", (mask,), "bool")), "bool")
        failing = Op("where", (cond, none, Int(Dim.of(self.loop.var))), "i64")
        before, first = self.extreme(failing, "min", none)
        lane = Dim.of(Atom("load", (first,))) - Dim.of(self.group) * self.lanes

        def there(load: Expr) -> Expr:
            if isinstance(load, Load) and load.buffer in self.wide:
                assert load.buffer not in self.packed
                return Load(self.wide[load.buffer], (*load.index, lane), load.dtype)
            return load

        info = tuple(map_dim(d, there) for d in stmt.info)
        return (*before, replace(stmt, cond=Op("equal", (first, none), "bool"), info=info))

    def any_of(self, flag: str) -> tuple[Stmt, Stmt, Expr]:
        """What clears a variable, sets it where a flag of some lane is set, and asks whether it is."""
        name = self.add("some", "i32", ())
        own = Store(name, (), Cast(Load(flag, (), "bool"), "i32"), "max")
        given = self.all_lanes(own)  # what repeats is as its model
        asked = Op("greater", (Load(name, (), "i32"), Const(0, "i32")), "bool")
        return Store(name, (), Const(0, "i32")), given, asked

    def extreme(self, value: Expr, op: str, start: Const) -> tuple[Body, Load]:
        """The largest or the least of what the lanes have, and of `start`."""
        name = self.add("some", "i64", ())
        return (Store(name, (), start), self.lane(Store(name, (), value, op))), Load(name, (), "i64")

    def is_looked_up(self, index: Index) -> bool:
        """Whether it is another place for each lane."""
        return not all(self.is_of_all(load) for d in index for load in dim_loads(d))


def _has_turns(known: Turns, times: Dim, end: str, mask: Expr | None) -> bool:
    """Whether a list has an entry for each time that a loop is run."""
    match times.symbol:
        case Atom("load", (Load(name, ()),)) if name in known and end in known:
            return known[name] == known[end] and known[end][1:] == (NONE, mask)
    return False


def _counted(loop: While, counters: dict[str, Const], turn: Load) -> While:
    """The loop with a turn's number in the place of what counts turns."""

    def known(done: set[str]) -> Callable[[Expr], Expr]:
        def value(e: Expr) -> Expr:
            if not (isinstance(e, Load) and e.buffer in counters):
                return e
            first = int(counters[e.buffer].value) + (e.buffer in done)
            return Op("add", (turn, Const(first, "i64")), "i64") if first else turn

        return value

    done: set[str] = set()
    body: list[Stmt] = []
    for stmt in loop.body:
        if isinstance(stmt, Store) and stmt.buffer in counters:
            done.add(stmt.buffer)
        else:
            body += map_all((stmt,), known(done))
    (start,) = map_all((While(loop.before, loop.cond, ()),), known(set()))
    assert isinstance(start, While)
    return replace(start, body=tuple(body))


def _without_end(body: Body, name: str, end: str, place: Dim, taken: str) -> Body:
    """A list is read at a place that is known, by all lanes at once, and its end is not asked for. `taken`: a variable
    for what is there."""
    dtypes: list[str] = []

    def there(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.buffer != name:
            return e
        if len(e.index) > 1:
            return replace(e, index=(place, *e.index[1:]))
        dtypes.append(e.dtype)
        return Load(taken, (), e.dtype)

    own = [s for s in body if isinstance(s, (Check, Store)) and end in touched((s,)) and name not in touched((s,))]
    rest = map_all(tuple(s for s in body if s not in own), there)
    return (*(Store(taken, (), Load(name, (place,), t)) for t in dtypes[:1]), *rest)
