"""An array of few sheets that loops go over element by element is an array for each.

    for k in 0..3: for i: p[k,i] = power(x[i], k)               for i: p_0[i] = 1; for i: p_1[i] = x[i]
    for i: for k in 0..3: y[i] += w[k] * p[k,i]          ->     for i: p_2[i] = square(x[i])
                                                                for i: y[i] += w[0] * p_0[i]; ...

What is stacked to be summed up again (powers, the branches of a mixture) is then what any other temporary is: computed
where it is read. A loop over sheets is written out, and what it asks of its counter is known. An array that a loop goes
over beside the places (`y[n,o] += w[o,k] * p[k,n]`), again and again, is an operand of a product of matrices: it stays.
So does one whose sheets lie side by side in memory as those of an argument do: loops run along both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..dims import Dim
from ..ir import Buffer, Comment, For, If, Kernel, Op, Product, Stmt, Store
from .elements import MOST
from .fold import fold_body
from .tree import (
    Access,
    Body,
    Names,
    accesses,
    bodies,
    dim_loads,
    map_bodies,
    map_places,
    nest_anew,
    read_from_dims,
    substitute,
    symbols,
    touched,
    walk,
)

MOST_SHEETS = 8
MOST_STATEMENTS = 48  # of a loop that is written out

Axes = dict[str, int]


def sheets(kernel: Kernel) -> Kernel:
    if not (axes := _axes(kernel)):
        return kernel
    names, table = Names.of(kernel), {b.name: b for b in kernel.buffers}
    loops = {loop.var for a in accesses(kernel.body) if a.buffer in axes for loop in _over(a, axes)}
    if any(loops & d.symbols() for b in kernel.buffers for d in b.shape):
        return kernel  # an array is as long as such a loop says
    made = {
        name: [
            replace(b, name=names.fresh(f"{name}_{k}"), shape=_without(b.shape, axis))
            for k in range(_extent(b.shape[axis]))
        ]
        for name, axis in axes.items()
        for b in [table[name]]
    }

    def place(name: str, index: tuple[Dim, ...]) -> tuple[str, tuple[Dim, ...]]:
        if name not in axes:
            return name, index
        return made[name][_extent(index[axes[name]])].name, _without(index, axes[name])

    body = map_places(fold_body(_written_out(kernel.body, loops, names)), place)
    kept = [b for b in kernel.buffers if b.name not in axes]
    return replace(kernel, body=body, buffers=(*kept, *(b for sheet in made.values() for b in sheet)))


def _axes(kernel: Kernel) -> Axes:
    """The axis of sheets of each array that is taken apart."""
    whole = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)} | read_from_dims(kernel)
    whole |= {n for s in walk(kernel.body) if isinstance(s, Product) for n in touched((s,))}
    found: dict[str, list[Access]] = {}
    for a in accesses(kernel.body):
        found.setdefault(a.buffer, []).append(a)
    axes = {
        b.name: axis
        for b in kernel.buffers
        if b.kind == "temp" and b.name not in whole and b.name in found and not _is_small(b)
        for axis in range(len(b.shape))
        if 1 < _extent(b.shape[axis]) <= MOST_SHEETS and _is_of_sheets(found[b.name], b, axis)
    }
    while beside := {name for name, axis in axes.items() if any(_lies_beside(a, axes) for a in found[name])}:
        axes = {name: axis for name, axis in axes.items() if name not in beside}
    return axes


def _is_of_sheets(found: list[Access], buffer: Buffer, axis: int) -> bool:
    """Whether all places are on sheets that are known once loops are written out, and loops go over the places only."""
    apart = _common(found)
    for a in found:
        if a.index is None or any(any(dim_loads(d)) for d in a.index):
            return False
        told = {n for d in a.index for n in d.symbols()}
        along = [loop for loop in a.loops[apart:] if loop.var not in a.index[axis].symbols()]
        if any(loop.var not in told or loop.kind == "seq" for loop in along):
            return False  # what a recurrence leaves at each step goes with the lanes of it
        if not _is_known(a, axis, apart, _extent(buffer.shape[axis])):
            return False
    return True


def _is_known(a: Access, axis: int, apart: int, extent: int) -> bool:
    assert a.index is not None
    sheet = a.index[axis]
    loops = [loop for loop in a.loops[apart:] if loop.var in sheet.symbols()]
    if len(loops) > 1 or sheet.symbols() - {loop.var for loop in loops}:
        return False
    if not loops:
        return 0 <= _extent(sheet) < extent
    places = [_extent(sheet.subs({loops[0].var: Dim.of(k)})) for k in _range(loops[0])]
    return bool(places) and all(0 <= k < extent for k in places) and _is_short(loops[0])


def _is_short(loop: For) -> bool:
    """Whether it is little to write out, and holds no products with a matrix: those may be one for all."""
    stmts = list(walk(loop.body))
    if _stores(loop) > MOST_STATEMENTS or not all(isinstance(s, (Store, If, For, Comment)) for s in stmts):
        return False
    counters = {s.var for s in stmts if isinstance(s, For)}
    return not any(_is_of_matrix(s, counters) for s in stmts)


def _is_of_matrix(stmt: Stmt, counters: set[str]) -> bool:
    match stmt:
        case Store(_, index, Op("multiply", (one, other)), "add"):
            target = {n for d in index for n in d.symbols()}
            left, right = symbols(one) & counters, symbols(other) & counters
            return bool(target & (left ^ right)) and bool(left & right - target)
    return False


def _stores(stmt: Stmt) -> int:
    """How many there are once all short loops are written out."""
    inside = sum(_stores(s) for body in bodies(stmt) for s in body)
    times = len(_range(stmt)) if isinstance(stmt, For) else 1
    return isinstance(stmt, Store) + inside * (times if 0 < times <= MOST_SHEETS else 1)


def _lies_beside(a: Access, axes: Mapping[str, int]) -> bool:
    """Whether a loop over sheets runs along the memory of another array with as many elements, which stays whole."""
    told = {n for d in a.index or () for n in d.symbols()} & {loop.var for loop in a.loops}
    return any(
        other.index and other.buffer not in axes and loop.var in other.index[-1].symbols()
        for loop in _over(a, axes)
        for other in accesses(loop.body)
        if told <= {n for d in other.index or () for n in d.symbols()}
    )


def _over(a: Access, axes: Mapping[str, int]) -> Iterator[For]:
    sheet = (a.index or ())[axes[a.buffer]]
    return (loop for loop in a.loops if loop.var in sheet.symbols())


def _common(found: list[Access]) -> int:
    """How many loops are around all of them."""
    least = min(len(a.loops) for a in found)
    same = (len({a.loops[k].var for a in found}) == 1 for k in range(least))
    return next((k for k, all_one in enumerate(same) if not all_one), least)


def _written_out(body: Body, loops: set[str], names: Names) -> Body:
    done: list[Stmt] = []
    for stmt in body:
        stmt = map_bodies(stmt, lambda inner: _written_out(inner, loops, names))
        if isinstance(stmt, For) and stmt.var in loops:
            for k in _range(stmt):
                done += (nest_anew(s, names) for s in substitute(stmt.body, {stmt.var: Dim.of(k)}))
        else:
            done.append(stmt)
    return tuple(done)


def _is_small(buffer: Buffer) -> bool:
    """Whether it is so many variables anyway (`elements`)."""
    size = 1
    for dim in buffer.shape:
        size *= MOST + 1 if dim.value is None else dim.value
    return size <= MOST


def _range(loop: For) -> range:
    low, high = loop.lo.value, loop.hi.value
    return range(0) if low is None or high is None else range(low, high)


def _extent(dim: Dim) -> int:
    return -1 if dim.value is None else dim.value


def _without(index: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    return (*index[:axis], *index[axis + 1 :])


__all__ = ["sheets"]
