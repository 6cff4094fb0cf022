"""A tape of fixed length in place of the list that a `while` fills: arrays can cross from the forward to the pullback.

How often a `while` runs is not known before, so no array holds all of what its iterations leave; but most loops to
convergence run a few times. In a pullback the list lies on the tape where all is on it; else the loop runs again, as
often as it did: rounded in another order, what it asks could end it sooner or later.

    before:  saved = []                          after:  tape = np.empty((8, N))
             while far(E):                               while far(E):
                 saved.append(E)                             tape[trips % 8] = E
                 E = step(E)                                 E = step(E)
             ...                                         ...
                                                         if trips <= 8:
                                                             saved = list(tape[:trips])
                                                         else:
                                                             saved = []
                                                             for _ in range(trips):
                                                                 saved.append(E)
                                                                 E = step(E)
             for _ in range(trips):                      for _ in range(trips):
                 E = saved.pop()                             E = saved.pop()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.dims import Dim
from ..transpile.program import (
    Assign,
    At,
    Call,
    Expr,
    For,
    If,
    Name,
    Pop,
    Push,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    stored,
    walk_stmts,
)
from ..transpile.renaming import rename_block

LENGTH = 8  # iterations: more of them are run again; what is not written to is no memory


@dataclass(frozen=True)
class Taped:
    forward: list[Stmt]  # the sweep, which writes tapes
    read: list[Stmt]  # what comes after the cut, as if it read them: it tells what else it needs
    rest: list[Stmt]  # the same with its lists
    names: set[str]  # the tapes, and how often their loops ran
    lists: dict[str, Call]  # what they stand for, and what it is where they hold all
    ran: dict[str, Name]  # the counters of loops, and what they came to
    fits: Expr  # whether they do


@dataclass(frozen=True)
class _Tape:
    array: Name
    trips: Name  # a counter, 0 before the loop
    ran: Name  # what it is after

    @property
    def element(self) -> Type:
        return Type(self.array.type.dtype, self.array.type.shape[1:])

    def place(self, position: Expr) -> tuple[construct.Item, ...]:
        return construct.complete(self.array, [At(position)])


def taped(forward: Sequence[Stmt], rest: Sequence[Stmt], fresh: Callable[[str], str]) -> Taped | None:
    """None where no list that `rest` takes from is filled by a `while` of the outermost level."""
    found: dict[str, _Tape] = {}
    ran: dict[str, Name] = {}
    for loop in forward:
        if isinstance(loop, While) and (trips := _counter(loop)) is not None:
            for stmt in loop.body:
                if isinstance(stmt, Push) and _only_saves(stmt.list, trips, forward, rest):
                    count = ran.setdefault(trips.id, Name(fresh(f"{trips.id}_kept"), Type("i64")))
                    found[stmt.list.id] = _Tape(_array(stmt.list, fresh), trips, count)
    if not found:
        return None
    sweep = [_written(s, found) for s in forward]
    sweep += [Assign(name.id, construct.cast(Name(trips, Type("int")), "i64")) for trips, name in ran.items()]
    least = [construct.call("less_equal", name, const(LENGTH)) for name in ran.values()]
    names = {name.id for name in ran.values()} | {tape.array.id for tape in found.values()}
    fits = reduce(partial(construct.call, "logical_and"), least)
    counted = {trips: name.id for trips, name in ran.items()}
    read = rename_block([_taken(s, found) for s in rest], counted)
    lists = {name: Call("list", (tape.array, tape.ran), (), tape.element) for name, tape in found.items()}
    return Taped(sweep, list(read), list(rename_block(rest, counted)), names, lists, ran, fits)


def _counter(loop: While) -> Name | None:
    """The number of its iterations, which its last statement counts."""
    match loop.body[-1]:
        case Assign(name=name, value=Call(op="add", args=[Name(id=same) as trips, one])) if name == same:
            return trips if one == const(1) else None
    return None


def _only_saves(list: Name, trips: Name, forward: Sequence[Stmt], rest: Sequence[Stmt]) -> bool:
    """Whether it is filled in one place, and emptied in one only, by the loop back."""
    times = [
        sum(isinstance(s, kind) and s.list.id == list.id for s in walk_stmts(tuple(body)))
        for kind, body in ((Push, forward), (Pop, forward), (Pop, rest))
    ]
    return times == [1, 0, 1] and any(isinstance(s, For) and _pops(s, list, trips) for s in rest)


def _pops(stmt: For, list: Name, trips: Name) -> bool:
    """Whether it is the loop back."""
    back = stmt.start == const(0) and stmt.stop == trips and stmt.step == 1
    return back and any(isinstance(s, Pop) and s.list.id == list.id for s in stmt.body)


def _array(list: Name, fresh: Callable[[str], str]) -> Name:
    return Name(
        fresh(f"{list.id.removesuffix('_saved')}_tape"), Type(list.type.dtype, (Dim.of(LENGTH), *list.type.shape))
    )


def _written(stmt: Stmt, tapes: dict[str, _Tape]) -> Stmt:
    match stmt:
        case Assign(name=name) if name in tapes:
            array = tapes[name].array
            made = construct.call("empty", shape=array.type.shape, dtype=array.type.dtype, unset=True)
            return replace(stmt, name=array.id, value=made)
        case Push(list=Name(id=id), value=value) if id in tapes:
            tape = tapes[id]
            place = construct.call("mod", tape.trips, const(LENGTH))
            return Store(tape.array, tape.place(place), value, span=stmt.span)
        case While(body=body):
            return replace(stmt, body=tuple(_written(s, tapes) for s in body))
    return stmt


def _taken(stmt: Stmt, tapes: dict[str, _Tape]) -> Stmt:
    if not isinstance(stmt, For):
        return stmt
    changed = stored(stmt.body)
    counter = Name(stmt.var, Type("int"), Dim.of(stmt.var))
    back = construct.call("subtract", stmt.stop, construct.call("add", counter, const(1)))

    def taken(inner: Stmt) -> Stmt:
        if not isinstance(inner, Pop) or inner.list.id not in tapes:
            return inner
        tape = tapes[inner.list.id]
        part = construct.index(tape.array, tape.place(back))
        return Assign(inner.name, construct.call("copy", part) if inner.name in changed else part, inner.span)

    return replace(stmt, body=tuple(map(taken, stmt.body)))


def lists(tape: Taped, head: Sequence[Stmt], fresh: Callable[[str], str]) -> Stmt:
    """The lists, from the tapes or, by what made them first, again."""
    lent = tuple(Assign(name, value) for name, value in tape.lists.items())
    counters = {s.var for s in walk_stmts(tuple(head)) if isinstance(s, For)}  # which extents and indices name
    own = assigned(tuple(head)) - set(tape.lists) - counters  # no value of a register shall be an array for their sake
    again = [_as_often(s, tape.ran, fresh) for s in head]
    return If(tape.fits, lent, tuple(rename_block(again, {n: fresh(n) for n in sorted(own)})))


def _as_often(loop: Stmt, ran: dict[str, Name], fresh: Callable[[str], str]) -> Stmt:
    """A `while` whose iterations are counted, as a loop of so many. At the begin of each, what it asks holds."""
    if not isinstance(loop, While) or (trips := _counter(loop)) is None or trips.id not in ran:
        return loop
    held = [Assign(n.id, const(True)) for n in _asked(loop.cond) if n.id in assigned(loop.body)]
    return For(fresh("_"), const(0), ran[trips.id], 1, (*held, *loop.body[:-1]), loop.span)


def _asked(cond: Expr) -> list[Name]:
    """The variables that hold where a condition does."""
    match cond:
        case Name():
            return [cond]
        case Call(op="logical_and", args=args):
            return [name for arg in args for name in _asked(arg)]
    return []
