"""Whole numbers that every turn of a loop makes larger by as much: what they are follows from the turn.

    k = 0                                      for i in range(n):
    for i in range(n):                             for j in range(3):
        for j in range(3):           ->                y[3 * i + j] = x[i, j]
            y[k] = x[i, j]
            k += 1

So each turn is its own, its places are known, and a gradient keeps no numbers. The user's own are those that a body
does nothing else with, and how many random numbers have been drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from . import construct
from .construct import value_of
from .dims import ZERO, Dim, maximum, nonnegative
from .mutation import target_names
from .program import Call, Const, Expr, Name
from .values import Value

DRAWN = "<draws "  # begins the name of a count that no user has


class Strides:
    """Mixed into the checker of functions."""

    def drawn(self: Any) -> dict[str, Value]:
        """The count of every generator, by its name in the environment."""
        return {id: value for id, value in self.env.items() if id.startswith(DRAWN)}

    def counts(
        self: Any, names: Sequence[str], body: Sequence[Any], position: Dim | None, trips: Dim | None
    ) -> list[str]:
        """Those among the names a loop's body binds that may only count."""
        if position is None or trips is None or _leaves(body):
            return []
        return [id for id in names if _is_known(self.env[id]) and _only_adds(id, body)]

    def stride(self: Any, entry: dict[str, Value], strides: dict[str, Dim], position: Dim | None) -> None:
        """The counts at the start of the iteration `position` of a loop that adds `strides` to them in each."""
        for id, each in strides.items():
            assert position is not None
            self.env[id] = advanced(entry[id], self.added(each, position, position))

    def strode(
        self: Any,
        start: dict[str, Value],
        strides: dict[str, Dim],
        counts: list[str],
        reassigned: list[str],
        position: Dim | None,
        trips: Dim | None,
    ) -> bool:
        """Whether the body counted more or less often than assumed; then what to assume is put right: as much in every
        iteration, or as its counter says, or, where that is not so, a variable."""
        wrong = False
        for id in [*self.drawn(), *counts]:
            each = _difference(start[id], self.env[id])
            if id in reassigned or each == strides.get(id, ZERO):
                continue
            wrong = True
            if (
                each is not None
                and position is not None
                and trips is not None
                # As much in each turn, or, with what another one is by then, as the turn says.
                and (id not in strides or (_follows(each, position) and not _follows(strides[id], position)))
                and self.added(each, position, trips) is not None
            ):
                strides[id] = each
            else:
                strides.pop(id, None)
                reassigned.append(id)
                if id in counts:
                    counts.remove(id)
        return wrong

    def after_strides(
        self: Any, entry: dict[str, Value], strides: dict[str, Dim], position: Dim | None, trips: Dim | None
    ) -> None:
        """The counts after the loop."""
        for id, each in strides.items():
            assert position is not None
            assert trips is not None
            count = trips if nonnegative(trips, self.facts) else maximum(trips, ZERO, self.facts)
            self.env[id] = advanced(entry[id], self.added(each, position, count))

    def added(self: Any, each: Dim, position: Dim, count: Dim) -> Dim | None:
        """What `count` iterations add, each of them `each`; None if only the run can tell. `position`: the number of
        the iteration, from which it may follow."""
        own = each.symbols() & (self.counters - self.facts.keys())
        if not own:
            return each * count
        (counter, *others) = sorted(own)
        start, parted = Dim.of(counter) - position, each.split(counter)
        if others or parted is None or (start.symbols() | parted[0].symbols() | parted[1].symbols()) & own:
            return None
        slope, first = parted[0], parted[1] + parted[0] * start
        return first * count + slope * ((count * (count - 1)) // 2)


def _follows(each: Dim, position: Dim) -> bool:
    return bool(each.symbols() & position.symbols())


def _is_known(value: Value) -> bool:
    return isinstance(value, (Const, Name, Call)) and _is_whole(value) and value_of(value) is not None


def _is_whole(value: Const | Name | Call) -> bool:
    return value.type.dtype == "int" and not value.type.rank


def _leaves(body: Sequence[Any]) -> bool:
    """Whether a turn may end before its end."""
    for node in body:
        match node:
            case gast.Break() | gast.Continue() | gast.Return():
                return True
            case gast.For(body=inner) | gast.While(body=inner):
                if any(isinstance(n, gast.Return) for s in inner for n in gast.walk(s)):
                    return True
            case gast.If(body=then, orelse=orelse):
                if _leaves(then) or _leaves(orelse):
                    return True
    return False


def _only_adds(id: str, body: Sequence[Any]) -> bool:
    """Whether each turn does nothing with a name but add to it, as often as loops in it run."""
    bound = [node for node in body if id in target_names([node])]
    return bool(bound) and all(_adds(id, node) for node in bound)


def _adds(id: str, node: Any) -> bool:
    match node:
        case gast.AugAssign(target=gast.Name(id=name), op=gast.Add() | gast.Sub()):
            return name == id
        case gast.Assign(targets=[gast.Name(id=name)], value=gast.BinOp(left=gast.Name(id=old), op=op)):
            return name == old == id and isinstance(op, (gast.Add, gast.Sub))
        case gast.For(target=target, body=inner, orelse=[]):
            counters = {n.id for n in gast.walk(target) if isinstance(n, gast.Name)}
            return id not in counters and not _leaves(inner) and _only_adds(id, inner)
    return False


def advanced(count: Value, by: Dim) -> Expr:
    """A count that much further: a symbolic integer, or a variable and a symbolic integer."""
    base, offset = _split(count)
    offset = offset + by
    if base is None:
        return construct.dim(offset)
    return base if offset == ZERO else construct.call("add", base, construct.dim(offset))


def _difference(before: Value, after: Value) -> Dim | None:
    """How much further a count is; None if only the run can tell."""
    if not isinstance(after, (Const, Name, Call)) or not _is_whole(after):
        return None
    (a, x), (b, y) = _split(before), _split(after)
    return y - x if a == b else None


def _split(count: Value) -> tuple[Expr | None, Dim]:
    match count:
        case Call(op="add", args=(Name() as base, rest)) if (
            value_of(count) is None and (by := value_of(rest)) is not None
        ):
            return base, by
        case Const() | Name() | Call():
            known = value_of(count)
            return (count, ZERO) if known is None else (None, known)
    raise AssertionError(count)


__all__ = ["DRAWN", "Strides", "advanced"]
