"""A `while` that shifts what lies in a few places is a `for` that asks whether it still goes: it has no turns to count,
so that neighbours go through it together, and its gradient has no list of them.

    j = k - 1                                 going = True
    while j >= 0 and buf[j] > v:              for j in range(k - 1, -1, -1):
        buf[j + 1] = buf[j]                       if going:
        j -= 1                        ->              if buf[j] > v: buf[j + 1] = buf[j]
    buf[j + 1] = v                                    else: going = False; buf[j + 1] = v
                                              if going: buf[0] = v

`mark` finds such loops by their text, and which statements behind them ask where they have ended. The checker knows how
often they may go at most, and takes them so where numbers and configuration tell it. A loop over a whole array stays:
sorted data would end it at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gast

from .construct import value_of
from .dims import Atom, largest, nonnegative
from .exits import assignment, constant, loaded, placed
from .mutation import target_names
from .program import Call, Const, Index, Name

MOST = 16  # turns, where their number is known
MOST_STATEMENTS = 4  # of a turn, and of what follows: they are asked for in each turn
_STEPS = {gast.Gt: -1, gast.GtE: -1, gast.Lt: 1, gast.LtE: 1}


@dataclass(frozen=True)
class Halting:
    """What stands for a loop and the statements behind it, `ending`; it counts from where `counter` is to `last`."""

    counter: Any
    last: Any
    step: int
    instead: list[Any]
    ending: list[Any]


@dataclass(frozen=True)
class Following:
    """Statements that run next; a loop's body only if it goes on."""

    stmts: list[Any]
    always: bool = True


# -- by the text -----------------------------------------------------------------------------------------------
def mark(tree: Any) -> None:
    """Notes at the loops of a file what may stand for them."""
    for function in gast.walk(tree):
        if isinstance(function, gast.FunctionDef):
            _mark_in(function.body, [])


def _mark_in(block: list[Any], around: list[Following]) -> None:
    """`around`: what may follow the block."""
    for position, node in enumerate(block):
        after = [Following(block[position + 1 :]), *around]
        if isinstance(node, gast.If):
            _mark_in(node.body, after)
            _mark_in(node.orelse, after)
        elif isinstance(node, (gast.For, gast.While)):
            if isinstance(node, gast.While):
                node.halting = _halting(node, after)
            asked = [placed(gast.Expr(value=node.test), node)] if isinstance(node, gast.While) else []
            _mark_in(node.body, [Following([*asked, *node.body], always=False), *after])


def _halting(loop: Any, after: list[Following]) -> Halting | None:
    match loop.test:
        case gast.BoolOp(
            op=gast.And(),
            values=[gast.Compare(left=gast.Name(id=id), ops=[op], comparators=[bound]), *others],
        ) if (step := _STEPS.get(type(op))) and not loop.orelse:
            pass
        case _:
            return None
    *body, count = loop.body
    if not body or len(body) > MOST_STATEMENTS or not all(map(_is_plain, body)) or _counted(count, id) != step:
        return None
    if not any(isinstance(n, gast.Subscript) and isinstance(n.ctx, gast.Store) for s in body for n in gast.walk(s)):
        return None
    if {id, *_names(bound)} & set(target_names(body)) or id in _names(bound):
        return None
    ending = _ending(id, after)
    if ending is None:
        return None
    stop = bound if isinstance(op, (gast.Gt, gast.Lt)) else _plus(bound, step, loop)
    return Halting(loaded(id, loop), stop, step, _instead(loop, id, others, body, ending, stop, step), ending)


def _instead(
    loop: Any, id: str, others: list[Any], body: list[Any], ending: list[Any], stop: Any, step: int
) -> list[Any]:
    going = f"<going halting {loop.lineno} {loop.col_offset}>"

    def if_(test: Any, then: list[Any], orelse: Sequence[Any] = ()) -> Any:
        return placed(gast.If(test=test, body=then, orelse=list(orelse)), loop)

    test = others[0] if len(others) == 1 else placed(gast.BoolOp(op=gast.And(), values=others), loop.test)
    turn = if_(test, body, [assignment(going, constant(False, loop), loop), *ending])
    bounds = [loaded(id, loop), stop, constant(step, loop)]
    counted = placed(gast.Call(func=loaded("range", loop), args=bounds, keywords=[]), loop)
    target = placed(gast.Name(id=id, ctx=gast.Store(), annotation=None, type_comment=None), loop)
    again = [if_(loaded(going, loop), [turn])]
    turns = placed(gast.For(target=target, iter=counted, body=again, orelse=[], type_comment=None), loop)
    behind = [_Place(id, stop).visit(deepcopy(s)) for s in ending]
    asked = [if_(loaded(going, loop), behind)] if behind else []
    return [assignment(going, constant(True, loop), loop), turns, *asked]


class _Place(gast.NodeTransformer):
    """Says for a counter where it has ended."""

    def __init__(self, id: str, place: Any) -> None:
        self.id, self.place = id, place

    def visit_Name(self, node: Any) -> Any:
        return gast.copy_location(deepcopy(self.place), node) if node.id == self.id else node


def _plus(bound: Any, step: int, loop: Any) -> Any:
    match bound:
        case gast.Constant(value=int() as value):
            return constant(value + step, loop)
    one = constant(1, loop)
    return placed(gast.BinOp(left=bound, op=gast.Add() if step > 0 else gast.Sub(), right=one), loop)


def _is_plain(node: Any) -> bool:
    """Whether it only moves and computes: an assignment that calls nothing."""
    calls = (gast.Call, gast.Lambda, gast.ListComp, gast.GeneratorExp, gast.NamedExpr, gast.Slice)
    return isinstance(node, (gast.Assign, gast.AugAssign)) and not any(isinstance(n, calls) for n in gast.walk(node))


def _counted(node: Any, id: str) -> int | None:
    """By how much a statement counts a variable on."""
    match node:
        case gast.AugAssign(target=gast.Name() as target, op=op, value=gast.Constant(value=1)):
            named = [target]
        case gast.Assign(
            targets=[target], value=gast.BinOp(left=gast.Name() as left, op=op, right=gast.Constant(value=1))
        ):
            named = [target, left]
        case _:
            return None
    if any(not isinstance(n, gast.Name) or n.id != id for n in named):
        return None
    return 1 if isinstance(op, gast.Add) else -1 if isinstance(op, gast.Sub) else None


# -- who asks where it has ended -------------------------------------------------------------------------------
def _ending(id: str, after: list[Following]) -> list[Any] | None:
    """The statements behind a loop up to the last that asks for its counter; None where others may, too."""
    following, around = after[0].stmts, after[1:]
    asking = [k for k, s in enumerate(following[:MOST_STATEMENTS]) if _is_plain(s) and id in _read(s)]
    for count in sorted({0, *(k + 1 for k in asking)}):
        ending, others = following[:count], following[count:]
        plain = all(map(_is_plain, ending)) and id not in target_names(ending)
        if plain and not _is_asked(id, [Following(others), *around]):
            return ending
    return None


def _is_asked(id: str, following: list[Following]) -> bool:
    """Whether one of what runs next may read a variable before it is bound."""
    for block in following:
        reads, binds = _first_of(block.stmts, id)
        if reads or (binds and block.always):
            return reads
    return False


def _first(node: Any, id: str) -> tuple[bool, bool]:
    """Whether a statement may read a variable that it has not bound, and whether it binds it in any case."""
    match node:
        case gast.If(test=test, body=body, orelse=orelse):
            ways = [_first_of(body, id), _first_of(orelse, id)]
            reads = id in _names(test) or any(reads for reads, _ in ways)
            return reads, all(binds for _, binds in ways)
        case gast.For(target=gast.Name(id=same), iter=iter) if same == id:
            return id in _names(iter), False  # if it runs
        case gast.For() | gast.While():
            inside = _first_of(node.body, id)[0]
            header = node.iter if isinstance(node, gast.For) else node.test
            return inside or id in _names(header), False
        case gast.Assign(targets=[gast.Name(id=same)], value=value) if same == id:
            reads = id in _names(value)
            return reads, not reads
    return id in _read(node), False


def _first_of(block: list[Any], id: str) -> tuple[bool, bool]:
    for node in block:
        reads, binds = _first(node, id)
        if reads or binds:
            return reads, binds
    return False, False


def _names(node: Any) -> set[str]:
    return {n.id for n in gast.walk(node) if isinstance(n, gast.Name)}


def _read(node: Any) -> set[str]:
    if isinstance(node, gast.AugAssign):
        return _names(node)
    return {n.id for n in gast.walk(node) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Load)}


# -- by how often it goes --------------------------------------------------------------------------------------
class Halts:
    """Mixed into the checker of functions."""

    def halts(self: Any, node: Any) -> bool:
        """Checks a loop that has few turns as one that asks whether it goes, and what follows with it."""
        found: Halting | None = getattr(node, "halting", None)
        if found is None or not self._has_few_turns(found):
            return False
        before = self.env[found.counter.id]
        self.block(found.instead)
        self.env[found.counter.id] = before  # nobody asks
        self.passed |= {id(s) for s in found.ending}
        return True

    def _has_few_turns(self: Any, found: Halting) -> bool:
        value = self.env.get(found.counter.id)
        start = value_of(value) if isinstance(value, (Const, Name, Call, Index)) else None
        with self.aside() as needed:
            last = self.typed(found.last)
        stop = value_of(last)
        if needed or start is None or stop is None or not last.type.is_integer or last.type.rank:
            return False
        trips = (stop - start) * found.step
        if not nonnegative(trips, self.facts):
            return False  # where it has ended is not `last`, if it never went
        most = largest(trips, self.facts)
        if most.value is not None:
            return most.value <= MOST
        told = [a.kind not in ("load", "unknown") if isinstance(a, Atom) else a not in self.sizes for a in most.atoms()]
        return all(told)


__all__ = ["Halting", "Halts", "mark"]
