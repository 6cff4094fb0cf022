"""What a recurrence carries need not be saved where it is an output: before a step it is what the step before gave out.

before:  for t in range(T):                          after:  (nothing)
             h_saved[t] = h
             h = decay * h + x[t]
             y[t] = h
         for t in reversed(range(T)):                        for t in reversed(range(T)):
             h = h_saved[t]                                      h = np.where(t > 0, y[max(t - 1, 0)], 0)
             ...                                                 ...

Done where the loop begins with zeros, and where no product takes h: that one wants an array in a piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..transpile import construct
from ..transpile.clean import clean
from ..transpile.construct import const, value_of
from ..transpile.dims import Dim
from ..transpile.operations import ROWS
from ..transpile.program import (
    Assign,
    At,
    Call,
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


def by_outputs(function: Function, sweep: Sequence[Stmt], body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The body of a gradient of the function, with what outputs hold in the place of what is saved. `sweep`: the
    forward, with all that is saved in it."""
    done = tuple(body)
    for whole in [s for s in sweep if isinstance(s, For)]:
        for save in [s for s in whole.body if isinstance(s, Store)]:
            if (output := _output(function, sweep, whole, save)) is not None:
                done = _replaced(done, whole, save, output) or done
    return done


def _output(function: Function, sweep: Sequence[Stmt], loop: For, save: Store) -> tuple[Name, tuple[Item, ...]] | None:
    """The output, and the place in it, that holds after an iteration what the next one saves. (What a loop saves lies
    where it counts from 0, one by one; that it is at the loop's own number says that the loop does so, too.)"""
    if not isinstance(save.value, Name) or not _whole(save, loop.var) or not _from_zeros(sweep, loop, save.value.id):
        return None
    returned = sweep[-1]
    assert isinstance(returned, Return)
    given = {
        value.id
        for result, value in zip(function.results, returned.values, strict=True)
        if isinstance(value, Name) and result.role == "output" and value.type == result.type
    }
    binds = [k for k, s in enumerate(loop.body) if save.value.id in assigned((s,)) | stored((s,))]
    for position, stmt in enumerate(loop.body):
        if isinstance(stmt, Store) and stmt.base.id in given and stmt.value == save.value and _whole(stmt, loop.var):
            times = sum(isinstance(s, Store) and s.base.id == stmt.base.id for s in walk_stmts(tuple(sweep)))
            if times == 1 and binds and loop.body.index(save) < binds[0] and binds[-1] < position:
                return stmt.base, stmt.items
    return None


def _whole(stmt: Store, var: str) -> bool:
    """Whether it is stored at the loop's number, along one axis, and at all places of the others, which it has."""
    places = [item for item in stmt.items if not isinstance(item, Slice)]
    full = all(item in construct.complete(stmt.base, ()) for item in stmt.items if isinstance(item, Slice))
    alone = len(places) == 1 and isinstance(places[0], At) and value_of(places[0].index) == Dim.of(var)
    spread = construct.index(stmt.base, stmt.items).type.shape != stmt.value.type.shape
    return full and alone and not spread and not stmt.op and not stmt.scatter


def _from_zeros(sweep: Sequence[Stmt], loop: For, name: str) -> bool:
    """Whether the loop begins with zeros by that name."""
    before = sweep[: list(sweep).index(loop)]
    bound = [s for s in before if name in assigned((s,)) | stored((s,))]
    match bound[-1:]:
        case [Assign(value=Call(op="zeros" | "zeros_like"))]:
            return True
    return False


def _replaced(
    body: tuple[Stmt, ...], whole: For, save: Store, output: tuple[Name, tuple[Item, ...]]
) -> tuple[Stmt, ...] | None:
    """None where something else asks for what is saved, or it is better in a piece."""
    array = save.base.id
    readers = [s for s in walk_stmts(body) if any(array in names(e) for e in stmt_exprs(s))]
    for reverse in [s for s in body if isinstance(s, For)]:
        match readers:
            case [Assign(value=Index(base=Name(id=base), items=items)) as taken] if taken in reverse.body:
                ours = base == array and items == save.items and takes_back(whole, reverse)
                if ours and not any(ROWS[c.op].kind == "product" for c in _calls((reverse,))):
                    if not any(asks_which(c) for c in _calls((whole,))):
                        new = replace(taken, value=_before(whole.var, *output))
                        inside = tuple(new if s is taken else s for s in reverse.body)
                        return clean([replace(s, body=inside) if s is reverse else s for s in body])
    return None


def _before(var: str, base: Name, items: tuple[Item, ...]) -> Expr:
    """What the output holds of the step before, or zero."""
    step = Name(var, Type("int"), Dim.of(var))
    last = construct.call("maximum", construct.call("subtract", step, const(1)), const(0))
    row = construct.index(base, [At(last) if isinstance(item, At) else item for item in items])
    return construct.call(
        "where", construct.call("greater", step, const(0)), row, construct.zeros(Type(row.type.dtype))
    )


def _calls(body: Sequence[Stmt]) -> Iterator[Call]:
    return (c for s in walk_stmts(tuple(body)) for e in stmt_exprs(s) for c in walk(e) if isinstance(c, Call))


__all__ = ["by_outputs"]
