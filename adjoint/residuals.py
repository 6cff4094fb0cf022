"""What the loops of an iteration make, and its reverse reads: a number for each iteration crosses the cut.

before:  for t: top = ...; for j: s += np.exp(x[t, j] - top)         after:  for t: ...; s_kept[t] = s
         y[t] = top + np.log(s)                                              y[t] = top + np.log(s)
         -- the cut --                                                       -- the cut --
         for t: top = ...; for j: s += np.exp(x[t, j] - top)                 for t: s = s_kept[t]
                d_s = dy[t] / s; ...                                                d_s = dy[t] / s; ...

A row is gone over once or twice less, for a number that takes the place of one element of it. So it is with a `while`
that has no derivative, but leaves what has one, or where to look: bisection, and a search in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ..transpile import construct
from ..transpile.clean import clean
from ..transpile.program import (
    Assign,
    At,
    For,
    If,
    Name,
    Pop,
    Return,
    Stmt,
    Store,
    Type,
    While,
    assigned,
    read,
    walk_stmts,
)
from .rooms import most_trips, position, room
from .versions import name_types


@dataclass(frozen=True)
class Residuals:
    before: list[Stmt]  # the sweep, which leaves them
    head: list[Stmt]  # the gradient before the cut, as if it made them
    rest: list[Stmt]  # behind it, which reads them
    names: set[str]  # the arrays of them


def with_residuals(
    before: Sequence[Stmt], head: Sequence[Stmt], rest: Sequence[Stmt], config: Set[str], fresh: Callable[[str], str]
) -> Residuals | None:
    """None where no loop of the outermost level makes such a number twice, forward and for its reverse."""
    types = name_types(before, {})
    loops = [s for s in before if isinstance(s, For)]
    forward: dict[int, For] = {}
    back: dict[int, Stmt] = {}
    made: list[tuple[Name, Stmt]] = []
    for reverse in rest:
        same = [s for s in loops if isinstance(reverse, For) and s.var == reverse.var]
        if not isinstance(reverse, For) or len(same) != 1 or (count := most_trips(same[0])) is None:
            continue
        loop = forward.get(id(same[0]), same[0])
        filled, back_again = loop.body, reverse.body
        walked = list(_walked(loop, reverse))
        for name in (*_numbers(reverse, config), *walked):
            if name not in types or types[name].rank or not (types[name].is_float or name in walked):
                continue
            if _made(loop.body, name) != _made(reverse.body, name):
                continue
            kept, make = room(fresh(f"{name}_kept"), Type(_strong(types[name].dtype)), [count])
            made.append((kept, make))
            place = [At(position(loop))]
            store = Store(kept, construct.complete(kept, place), Name(name, types[name]))
            last = max(k for k, s in enumerate(filled) if name in assigned((s,)))
            filled = (*filled[: last + 1], store, *filled[last + 1 :])
            last = max(k for k, s in enumerate(back_again) if name in assigned((s,)))
            taken = Assign(name, construct.index(kept, place))
            back_again = (*back_again[: last + 1], taken, *back_again[last + 1 :])
        if filled is not loop.body:
            forward[id(same[0])], back[id(reverse)] = replace(loop, body=filled), replace(reverse, body=back_again)
    if not made:
        return None
    sweep = [*(s for _, s in made), *(forward.get(id(s), s) for s in before)]
    *leaving, _ = clean([*sweep, Return(tuple(kept for kept, _ in made))])
    leaving = [s for s in leaving if s not in head]
    return Residuals(sweep, [*head, *leaving], [back.get(id(s), s) for s in rest], {kept.id for kept, _ in made})


def _numbers(loop: For, config: Set[str]) -> Iterator[str]:
    """Names that each iteration begins, and one loop in it finishes; those over windows cost next to nothing."""
    unsure = {n for s in walk_stmts(loop.body) if isinstance(s, While) for n in assigned(s.body)}
    makers: dict[str, list[Stmt]] = {}
    for stmt in loop.body:
        for name in assigned((stmt,)) - unsure:
            makers.setdefault(name, []).append(stmt)
    for name, stmts in sorted(makers.items()):
        match stmts:
            case [Assign(), For() as inside]:
                count = most_trips(inside)
                if count is None or count.symbols() - config:
                    yield name


def _walked(loop: For, reverse: For) -> Iterator[str]:
    """Of a `while` of each iteration that the reverse only runs again, what the reverse goes on with: a number that is
    made of what it leaves, or the one number that it leaves."""
    popped = {s.name for s in walk_stmts(reverse.body) if isinstance(s, Pop)}
    for at, stmt in enumerate(reverse.body):
        behind = reverse.body[at + 1 :]
        left = assigned((stmt,)) & read(behind) if isinstance(stmt, While) else set()
        if not left or left & popped or any(_made(loop.body, name) != _made(reverse.body, name) for name in left):
            continue
        asking = [s for s in behind if read((s,)) & left]
        match asking:
            case [Assign(name=name)] if (
                name not in popped and _times(name, loop.body) == _times(name, reverse.body) == 1
            ):
                yield name
            case _ if len(left) == 1:
                yield from left


def _times(name: str, body: Sequence[Stmt]) -> int:
    return sum(isinstance(s, Assign) and s.name == name for s in walk_stmts(tuple(body)))


def _strong(dtype: str) -> str:
    """As what a number is left: a Python float, all of it."""
    return "f64" if dtype == "float" else dtype


def _made(body: Sequence[Stmt], name: str) -> tuple[Stmt, ...]:
    """What makes a number, and the loops and branches that it is made in."""
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, (For, While)) and (inside := _made(stmt.body, name)):
            found.append(replace(stmt, body=inside))
        elif isinstance(stmt, If) and (name in assigned((stmt,))):
            found.append(replace(stmt, then=_made(stmt.then, name), orelse=_made(stmt.orelse, name)))
        elif isinstance(stmt, Assign) and stmt.name == name:
            found.append(stmt)
    return tuple(found)


__all__ = ["Residuals", "with_residuals"]
