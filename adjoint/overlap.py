"""Whether two places in one array are provably different elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..transpile.construct import value_of
from ..transpile.dims import Dim, Facts, nonnegative
from ..transpile.program import At, Item, NewAxis, Slice

_Range = tuple[bool, Dim, Dim]  # whether it counts from the end; the first index, and the one behind the last


def are_apart(a: Sequence[Item], b: Sequence[Item], facts: Facts) -> bool:
    """Of items that cover every axis: along one axis they have no index in common. `facts`: the ranges of what may be
    negative."""
    left, right = ([i for i in items if not isinstance(i, NewAxis)] for items in (a, b))
    return any(_never_meet(x, y, facts) for x, y in zip(left, right, strict=False))


def _never_meet(a: Item, b: Item, facts: Facts) -> bool:
    if _are_between(a, b):
        return True
    first, second = _range(a, facts), _range(b, facts)
    if first is None or second is None or first[0] is not second[0]:
        return False  # from which end is not known: of an array of one, y[i - 1] is y[i], where i is 0
    return nonnegative(second[1] - first[2], facts) or nonnegative(first[1] - second[2], facts)


def _are_between(a: Item, b: Item) -> bool:
    """Whether they take each n-th element, and never the same: x[0::2] and x[1::2]."""
    match a, b:
        case Slice(step=int(step), first=first), Slice(step=other, first=second) if step == other and abs(step) > 1:
            between = (first - second).value
            return between is not None and between % step != 0
    return False


def _range(item: Item, facts: Facts) -> _Range | None:
    """Of what takes neighbours, and counts from one end for sure."""
    match item:
        case At(index):
            value = value_of(index)
            if value is not None and nonnegative(value, facts):
                return False, value, value + 1
            if value is not None and nonnegative(-value - 1, facts):
                return True, value, value + 1
        case Slice(step=1, first=first, extent=extent):
            return False, first, first + extent
    return None
