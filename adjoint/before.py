"""What a recurrence carries need not be saved where it is an output: before a step it is what the step before gave out.
So is what it takes from an argument at each step, and what it hands on from one name to the next: a filter's delays.

before:  for t in range(T):                          after:  (nothing)
             h_saved[t] = h
             h = decay * h + x[t]
             y[t] = h
         for t in reversed(range(T)):                        for t in reversed(range(T)):
             h = h_saved[t]                                      h = np.where(t > 0, y[max(t - 1, 0)], 0)
             ...                                                 ...

             x2 = x1; x1 = x[t]                                  x2 = np.where(t > 1, x[max(t - 2, 0)], 0)

Done where the loop begins with zeros, and where no product takes h: that one wants an array in a piece.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from math import copysign

from ..transpile import construct
from ..transpile.clean import clean
from ..transpile.construct import const, value_of
from ..transpile.dims import Dim
from ..transpile.operations import ROWS
from ..transpile.program import (
    Assign,
    At,
    Call,
    Const,
    Expr,
    For,
    Function,
    Index,
    Item,
    Name,
    Return,
    Slice,
    Stmt,
    Store,
    Type,
    assigned,
    names,
    stmt_exprs,
    stored,
    walk,
    walk_stmts,
)
from .early import takes_back
from .rules import asks_which


@dataclass(frozen=True)
class _Held:
    """What lies along the loop's axis of an array: at its number, or so many steps before."""

    base: Name
    items: tuple[Item, ...]
    steps: int = 0


def by_outputs(function: Function, sweep: Sequence[Stmt], body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body of a gradient of the function, with what outputs and arguments hold in the place of what is saved.
    `sweep`: the forward, with all that is saved in it."""
    done = tuple(body)
    for whole in [s for s in sweep if isinstance(s, For)]:
        search = _Search(function, sweep, whole, assigned(tuple(body)))
        for save in [s for s in whole.body if isinstance(s, Store)]:
            if (held := search.at_start(save)) is not None:
                done = _replaced(done, whole, save, held) or done
    return done


class _Search:
    """Where else the values lie that a loop carries. (What a loop saves lies where it counts from 0, one by one; that
    it is at the loop's own number says that the loop does so, too.)"""

    def __init__(self, function: Function, sweep: Sequence[Stmt], loop: For, own: Set[str]) -> None:
        """`own`: names that the gradient gives values."""
        self.sweep, self.loop = sweep, loop
        taken = own | {p.name for p in function.params}
        returned = sweep[-1]
        assert isinstance(returned, Return)
        stores = Counter(s.base.id for s in walk_stmts(tuple(sweep)) if isinstance(s, Store))
        self.outputs = {
            value.id
            for result, value in zip(function.results, returned.values, strict=True)
            if isinstance(value, Name) and result.role == "output" and value.type == result.type
            if stores[value.id] == 1 and (value.id in own or result.name not in taken)
        }
        changed = assigned(tuple(sweep)) | stored(tuple(sweep))
        self.arguments = {p.name for p in function.params if p.role in ("input", "param")} - changed

    def at_start(self, save: Store) -> _Held | None:
        """What an iteration saves before it changes it."""
        if not isinstance(save.value, Name) or not _whole(save, self.loop.var):
            return None
        if self.loop.body.index(save) > min(self.binds(save.value.id), default=-1):
            return None
        return self.before(save.value, frozenset())

    def before(self, name: Name, seen: frozenset[str]) -> _Held | None:
        """What it holds when an iteration begins: of the iteration before, or zeros."""
        held = self.at_end(name, seen) if _from_zeros(self.sweep, self.loop, name.id) else None
        return None if held is None else replace(held, steps=held.steps + 1)

    def at_end(self, name: Name, seen: frozenset[str]) -> _Held | None:
        """What it holds after an iteration."""
        binds = self.binds(name.id)
        if not binds or name.id in seen:
            return None
        if (held := self.output(name, binds[-1])) is not None:
            return held
        match self.loop.body[binds[-1]]:
            case Assign(value=Name() as other) if len(binds) == 1 and other.id not in stored(self.loop.body):
                others = self.binds(other.id)
                if others and others[0] > binds[0]:  # a delay: what the other held when the iteration began
                    return self.before(other, seen | {name.id})
                return self.output(other, others[0]) if len(others) == 1 else None
            case Assign(value=Index(base=Name() as base, items=items) as part) if base.id in self.arguments:
                if len(binds) == 1 and part.type.dtype == name.type.dtype and _along(base, items, self.loop.var):
                    return _Held(base, items)
        return None

    def output(self, name: Name, bound: int) -> _Held | None:
        """The output that is given its last value."""
        for stmt in self.loop.body[bound + 1 :]:
            if isinstance(stmt, Store) and stmt.base.id in self.outputs and _whole(stmt, self.loop.var):
                if isinstance(stmt.value, Name) and (stmt.value.id, stmt.value.type) == (name.id, name.type):
                    return _Held(stmt.base, stmt.items)
        return None

    def binds(self, name: str) -> list[int]:
        """Where in the loop it changes."""
        return [k for k, s in enumerate(self.loop.body) if name in assigned((s,)) | stored((s,))]


def _whole(stmt: Store, var: str) -> bool:
    """Whether it is stored at the loop's number, along one axis, and at all places of the others, which it has."""
    spread = construct.index(stmt.base, stmt.items).type.shape != stmt.value.type.shape
    return _along(stmt.base, stmt.items, var) and not spread and not stmt.op and not stmt.scatter


def _along(base: Name, items: Sequence[Item], var: str) -> bool:
    places = [item for item in items if not isinstance(item, Slice)]
    full = all(item in construct.complete(base, ()) for item in items if isinstance(item, Slice))
    return full and len(places) == 1 and isinstance(places[0], At) and value_of(places[0].index) == Dim.of(var)


def _from_zeros(sweep: Sequence[Stmt], loop: For, name: str) -> bool:
    """Whether the loop begins with zeros by that name."""
    before = sweep[: list(sweep).index(loop)]
    bound = [s for s in before if name in assigned((s,)) | stored((s,))]
    match bound[-1:]:
        case [Assign(value=Call(op="zeros" | "zeros_like"))]:
            return True
        case [Assign(value=Const(value=float() as number))]:
            return number == 0 and copysign(1, number) > 0
    return False


def _replaced(body: tuple[Stmt, ...], whole: For, save: Store, held: _Held) -> tuple[Stmt, ...] | None:
    """None where something else asks for what is saved, or it is better in a piece."""
    array = save.base.id
    readers = [s for s in walk_stmts(body) if any(array in names(e) for e in stmt_exprs(s))]
    for reverse in [s for s in body if isinstance(s, For)]:
        match readers:
            case [Assign(value=Index(base=Name(id=base), items=items)) as taken] if taken in reverse.body:
                ours = base == array and items == save.items and takes_back(whole, reverse)
                if ours and not any(ROWS[c.op].kind == "product" for c in _calls((reverse,))):
                    if not any(asks_which(c) for c in _calls((whole,))):
                        new = replace(taken, value=_before(whole.var, held))
                        inside = tuple(new if s is taken else s for s in reverse.body)
                        return clean([replace(s, body=inside) if s is reverse else s for s in body])
    return None


def _before(var: str, held: _Held) -> Expr:
    """What the array holds of as many steps before, or zero."""
    step = Name(var, Type("int"), Dim.of(var))
    last = construct.call("maximum", construct.call("subtract", step, const(held.steps)), const(0))
    row = construct.index(held.base, [At(last) if isinstance(item, At) else item for item in held.items])
    begun = construct.call("greater", step, const(held.steps - 1))
    return construct.call("where", begun, row, construct.zeros(Type(row.type.dtype)))


def _calls(body: Sequence[Stmt]) -> Iterator[Call]:
    return (c for s in walk_stmts(tuple(body)) for e in stmt_exprs(s) for c in walk(e) if isinstance(c, Call))


__all__ = ["by_outputs"]
