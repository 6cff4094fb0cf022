"""Loops that copy or add the rows of an array: a few elements each, as of a window in an image.

gcc leaves what does not fill a vector to a loop by element; `rows.h` has masks for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from .dims import ONE, Dim
from .ir import Buffer, For, Load, Store


def row_of(loop: For, table: Mapping[str, Buffer]) -> tuple[Store, Load] | None:
    """What the loop stores and loads, if that is all it does, from neighbour to neighbour in memory, and if its length
    is a size: not a product of sizes, which is long."""
    if len(loop.body) != 1 or not isinstance(store := loop.body[0], Store):
        return None
    source = store.value
    if not isinstance(source, Load):
        return None
    length = loop.hi - loop.lo
    if loop.kind != "map" or loop.parallel or length.value is not None or store.op not in (None, "add"):
        return None
    if any(len(monomial) > 1 for monomial, _ in length.terms) or length.symbols() != {str(a) for a in length.atoms()}:
        return None
    kinds = {table[name].dtype for name in (store.buffer, source.buffer)}
    beside = all(_moves_by_one(place.index, table[place.buffer].shape, loop.var) for place in (store, source))
    return (store, source) if beside and len(kinds) == 1 and kinds <= {"real", "f32", "f64"} else None


def _moves_by_one(index: tuple[Dim, ...], shape: tuple[Dim, ...], var: str) -> bool:
    """Whether the next element in memory is that of the next iteration."""
    if not index or len(index) != len(shape):
        return False
    last = index[-1].split(var)
    return last is not None and last[0] == ONE and not any(var in dim.symbols() for dim in index[:-1])
