"""Loops that copy, add or compare the rows of an array: a few elements each, as of a window in an image.

gcc leaves what does not fill a vector to a loop by element, and compares lanes one by one; `rows.h` has masks for the
one, and halves for the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from .ir import FLOATS, Buffer, For, Load, Store
from .passes.products import stride
from .passes.rows import extreme_of, moves_by_one, step_of
from .passes.tree import dim_loads

SHORT = 16  # elements, known to be fewer: gcc writes the loop out


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
    beside = all(moves_by_one(place.index, table[place.buffer].shape, loop.var) for place in (store, source))
    return (store, source) if beside and len(kinds) == 1 and kinds <= {"real", "f32", "f64"} else None


def even_of(loop: For, table: Mapping[str, Buffer]) -> tuple[Store, Load] | None:
    """What a loop that lays every second element of a row beside the next stores and loads. gcc leaves the last vector
    of such a row to a loop by element, as it would read what may not be there."""
    if len(loop.body) != 1 or loop.kind != "map" or loop.parallel or not isinstance(store := loop.body[0], Store):
        return None
    source, size = store.value, (loop.hi - loop.lo).value
    if store.op is not None or not isinstance(source, Load) or (size is not None and size < SHORT):
        return None
    kinds = {table[name].dtype for name in (store.buffer, source.buffer)}
    steps = (step_of(x.index, table[x.buffer].shape, loop.var) for x in (store, source))
    return (store, source) if (*steps,) == (1, 2) and len(kinds) == 1 and kinds <= {*FLOATS} else None


def copied(loop: For) -> tuple[Store, Load]:
    """What a loop that copies a row stores and loads."""
    (store,) = loop.body
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    return store, store.value


def extreme_row_of(loop: For, table: Mapping[str, Buffer]) -> tuple[Store, Load] | None:
    """The one statement of a loop that asks for the largest, the least or the farthest from zero of a row, and what it
    reads."""
    if len(loop.body) != 1 or loop.kind != "map" or loop.parallel:
        return None
    source = extreme_of(loop.body[0], loop, table)
    if source is None:
        return None
    length = (loop.hi - loop.lo).value
    store = loop.body[0]
    assert isinstance(store, Store)
    return (store, source) if length is None or length >= SHORT else None


def extreme_rectangle_of(loop: For, table: Mapping[str, Buffer]) -> tuple[For, Store, Load] | None:
    """The inner loop of two that ask for the largest, the least or the farthest from zero of rows that lie as far apart
    as each other, its statement and what that reads."""
    if loop.kind != "map" or loop.parallel or len(loop.body) != 1 or not isinstance(row := loop.body[0], For):
        return None
    found = extreme_row_of(row, table)
    if found is None or loop.var in row.lo.symbols() | row.hi.symbols():
        return None
    return (row, *found) if is_straight(found[1], loop, row, table) else None


def is_straight(place: Load, rows: For | None, row: For, table: Mapping[str, Buffer]) -> bool:
    """Whether rows are along memory, each as far from the next."""
    shape = table[place.buffer].shape
    if not moves_by_one(place.index, shape, row.var) or any(any(dim_loads(d)) for d in place.index):
        return False
    if rows is None:
        return True
    linear = all(d.split(rows.var) is not None for d in place.index)
    return linear and not {row.var, rows.var} & stride(place.index, shape, rows.var).symbols()
