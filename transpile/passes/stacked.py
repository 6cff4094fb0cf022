"""What products add to matrices that lie across memory, they add to a stack of matrices that lie along it.

    for k: d_w[i,j,k] += product c[b,i] dy[b,j]           for k: s[k,i,j] += product c[b,i] dy[b,j]
        for i, j, b                               ->          for i, j, b
                                                          for i: for j: for k: d_w[i,j,k] = s[k,i,j]

So it is with weights whose last axes are steps, or places of a window: each product would pick its elements from far
apart, as often as it is made. A temporary lies that way itself.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import ZERO, Dim
from ..ir import FLOATS, Buffer, For, Kernel, Load, Product, Stmt, Store
from .tree import Index, Names, accesses, buffers, in_dims, map_places, over_examples, walk

Order = tuple[int, ...]  # of axes


def stacked(kernel: Kernel) -> Kernel:
    for name, order in _across(kernel).items():
        kernel = _turned(kernel, buffers(kernel)[name], order)
    return kernel


def _across(kernel: Kernel) -> dict[str, Order]:
    """Arrays that are told by places alone, with how their axes would better lie."""
    table = buffers(kernel)
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    whole = {a.buffer for a in accesses(kernel.body) if a.index is None}
    asked = {name for s in walk(kernel.body) for name in in_dims(s)}
    examples = _of_examples(kernel)
    found: dict[str, set[Order | None]] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Product) and stmt.buffer not in aliased | whole | asked:
            buffer = table[stmt.buffer]
            if buffer.kind in ("temp", "out") and buffer.dtype in FLOATS:
                found.setdefault(stmt.buffer, set()).add(_order(stmt, examples))
    orders = {name: next(iter(ways)) for name, ways in found.items() if len(ways) == 1}
    return {name: order for name, order in orders.items() if order is not None}


def _of_examples(kernel: Kernel) -> set[str]:
    """Counters of examples, in loops and products: what each of them has is much to move."""
    batch = Dim.of(kernel.batch or "")
    axes = (axis for s in walk(kernel.body) if isinstance(s, Product) for axis in (s.rows, s.columns))
    counters = {name for name, extent in axes if extent == batch}
    return counters | {s.var for s in walk(kernel.body) if over_examples(s, kernel)}


def _order(product: Product, examples: set[str]) -> Order | None:
    """The axes with those of a product last; None where one of them is, or each example has its own."""
    own = [product.rows[0], product.columns[0]]
    axes = [[k for k, d in enumerate(product.index) if name in d.symbols()] for name in own]
    if any(len(there) != 1 for there in axes):
        return None
    (row,), (column,) = axes
    rest = [k for k in range(len(product.index)) if k not in (row, column)]
    if row == column or not rest or rest[-1] != len(product.index) - 1:
        return None
    if any(d.symbols() & examples for d in product.index):
        return None
    return (*rest, row, column)


def _turned(kernel: Kernel, buffer: Buffer, order: Order) -> Kernel:
    names = Names.of(kernel)
    made = buffer if buffer.kind == "temp" else replace(buffer, name=names.fresh(f"{buffer.name}_stack"), kind="temp")
    made = replace(made, shape=_as(order, buffer.shape))

    def place(name: str, index: Index) -> tuple[str, Index]:
        return (made.name, _as(order, index)) if name == buffer.name else (name, index)

    body = map_places(kernel.body, place)
    if made.name == buffer.name:
        return replace(kernel, body=body, buffers=tuple(made if b.name == made.name else b for b in kernel.buffers))
    counters = [names.fresh("i") for _ in order]
    index = tuple(Dim.of(c) for c in counters)
    copy: Stmt = Store(buffer.name, index, Load(made.name, _as(order, index), buffer.dtype))
    for counter, extent in reversed(list(zip(counters, buffer.shape, strict=True))):
        copy = For(counter, ZERO, extent, (copy,))
    return replace(kernel, body=(*body, copy), buffers=(*kernel.buffers, made))


def _as(order: Order, index: Index) -> Index:
    return tuple(index[k] for k in order)
