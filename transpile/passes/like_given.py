"""An array that is made for a product has its axes in the order of the steps that read it, then of a given matrix.

    for b: for o: for k: for d: z[b,o,k] += x[b,d] * w[k,d,o]   ->   ... z[b,k,o] += x[b,d] * w[k,d,o]
    for b: for o: for k seq: h = f(h, z[b,o,k])                      for b: for o: for k seq: h = f(h, z[b,k,o])

Loops of the user gave it the order of their own. Now recurrences beside each other lie so in memory; what lies along it
in the matrix that the layer is given does so here, too, and neighbours in both can be one axis of the product (see
deepen). Part of fission, which makes those arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ..ir import For, Kernel, Stmt, Store
from .order import perfect
from .tree import Index, accesses, buffers, map_places, walk

Order = tuple[int, ...]


def like_given(kernel: Kernel, names: Collection[str]) -> Kernel:
    """`names`: arrays that may be turned."""
    table = buffers(kernel)
    given = {n for n, b in table.items() if b.kind == "in"}
    orders: dict[str, Order] = {}
    for of in (_of_steps, _of_given):
        for stmt in walk(kernel.body):
            orders = {**{n: order for n, order in of(stmt, given) if n in names}, **orders}

    def place(name: str, index: Index) -> tuple[str, Index]:
        return name, tuple(index[k] for k in orders[name]) if name in orders else index

    made = (replace(b, shape=place(b.name, b.shape)[1]) for b in table.values())
    return replace(kernel, body=map_places(kernel.body, place), buffers=tuple(made))


def _of_steps(stmt: Stmt, given: Collection[str]) -> Iterator[tuple[str, Order]]:
    """Arrays in a recurrence, with the axis first along which it goes."""
    if isinstance(stmt, For) and stmt.kind == "seq":
        for a in accesses(stmt.body):
            along = [k for k, d in enumerate(a.index or ()) if stmt.var in d.symbols()]
            if len(along) == 1:
                yield a.buffer, (*along, *(k for k in range(len(a.index or ())) if k not in along))


def _of_given(stmt: Stmt, given: Collection[str]) -> Iterator[tuple[str, Order]]:
    """Arrays in a sum of products all of whose axes an array that is given has, in its order."""
    match perfect(stmt)[1] if isinstance(stmt, For) and stmt.kind == "map" else ():
        case [Store(op="add") as term]:
            found = [a for a in accesses((term,)) if a.index is not None]
            for a in found:
                for b in (b for b in found if b.buffer in given):
                    order = _order(a.index or (), b.index or ())
                    if len(order) == len(a.index or ()):
                        yield a.buffer, tuple(order)


def _order(own: Index, other: Index) -> list[int]:
    return [own.index(d) for d in dict.fromkeys(other) if isinstance(d.symbol, str) and d in own]
