"""Whether two places in one array are provably different elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..transpile.construct import value_of
from ..transpile.dims import Dim, nonnegative
from ..transpile.program import At, Item, NewAxis, Slice


def are_apart(a: Sequence[Item], b: Sequence[Item]) -> bool:
    """Of items that cover every axis: along one axis they have no index in common."""
    left, right = ([i for i in items if not isinstance(i, NewAxis)] for items in (a, b))
    return any(_never_meet(x, y) for x, y in zip(left, right, strict=False))


def _never_meet(a: Item, b: Item) -> bool:
    first, second = _range(a), _range(b)
    if first is None or second is None:
        return False
    return nonnegative(second[0] - first[1]) or nonnegative(first[0] - second[1])


def _range(item: Item) -> tuple[Dim, Dim] | None:
    """The first index and the one behind the last, of what takes neighbours."""
    match item:
        case At(index):
            value = value_of(index)
            return None if value is None else (value, value + 1)
        case Slice(step=1, first=first, extent=extent):
            return first, first + extent
    return None
