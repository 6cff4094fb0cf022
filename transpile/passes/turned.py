"""Loops that make rows of columns: `turn.h` turns squares of them in registers.

    for i in 0..S: for c in 0..C: y[i,c] = x[c,i]    ->    lc_columns_f32(y, C, x, S, S, C)

gcc goes number by number through one of the two, each in a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dims import ONE, Dim
from ..ir import FLOATS, Buffer, For, Load, Store
from .products import stride

SIDE = 16  # iterations: two squares


def turned_of(loop: For, table: Mapping[str, Buffer]) -> tuple[Store, Load, For, For] | None:
    """What a loop in a loop stores and loads, if it makes rows of columns: what is stored and read, the loop along
    memory where it reads, and the one along memory where it stores."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(inner, For) or len(inner.body) != 1 or not isinstance(store := inner.body[0], Store):
        return None
    source = store.value
    if any(x.kind != "map" or x.parallel for x in (loop, inner)) or store.op or not isinstance(source, Load):
        return None
    pair = (table[store.buffer], table[source.buffer])
    kinds = {b.dtype for b in pair}
    if len(kinds) > 1 or not kinds <= set(FLOATS) or len({b.alias or b.name for b in pair}) < 2:
        return None
    if any(loop.var in d.symbols() for d in (inner.lo, inner.hi)):
        return None
    for read, stored in ((loop, inner), (inner, loop)):
        if (_along(store, stored, table), _along(source, read, table)) == (ONE, ONE):
            if None not in (_along(store, read, table), _along(source, stored, table)):
                return store, source, read, stored
    return None


def _along(place: Store | Load, loop: For, table: Mapping[str, Buffer]) -> Dim | None:
    """By how many elements the place moves with the loop; None where that is none that is known."""
    if any(d.split(loop.var) is None for d in place.index):
        return None
    return stride(place.index, table[place.buffer].shape, loop.var)
