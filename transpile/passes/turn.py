"""A matrix that products in a loop read across is turned once, before the loop.

    for t: d_h[b,i] = product d[b,t,j] w[i,j]    ->    for j: for i: w_turned[j,i] = w[i,j]
                                                       for t: d_h[b,i] = product d[b,t,j] w_turned[j,i]

A product wants vectors along its columns; where memory goes along the depth it would turn the matrix in each iteration:
the weights of a recurrence at every step.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import ONE, Dim
from ..ir import Buffer, For, Kernel, Load, Product, Stmt, Store, While
from .tree import Body, Names, buffers, map_bodies, walk

Corner = tuple[str, Dim, Dim, Dim, Dim]  # a part of a matrix: where it begins, and its extents


def turn(kernel: Kernel) -> Kernel:
    names, table = Names.of(kernel), buffers(kernel)
    variables = {s.var for s in walk(kernel.body) if isinstance(s, For)}
    turned: dict[Corner, tuple[Buffer, Stmt]] = {}

    def within(body: Body, looped: bool) -> Body:
        return tuple(change(s, looped) for s in body)

    def change(stmt: Stmt, looped: bool) -> Stmt:
        if not isinstance(stmt, Product):
            looped = looped or isinstance(stmt, (For, While))
            return map_bodies(stmt, lambda body: within(body, looped))
        corner = _read_across(stmt, table) if looped else None
        if corner is None or any(d.symbols() & variables for d in corner[1:]):
            return stmt
        if corner not in turned:
            turned[corner] = _turned(corner, table[corner[0]].dtype, names)
        index = (Dim.of(stmt.depth[0]), Dim.of(stmt.columns[0]))
        return replace(stmt, right=Load(turned[corner][0].name, index, stmt.right.dtype))

    body = within(kernel.body, looped=False)
    if not turned:
        return kernel
    made, fills = zip(*turned.values())
    return replace(kernel, buffers=(*kernel.buffers, *made), body=(*fills, *body))


def _read_across(product: Product, table: dict[str, Buffer]) -> Corner | None:
    """The part of an input that is the product's right operand, if memory goes along the depth."""
    (column, columns), (deep, depth) = product.columns, product.depth
    matrix = product.right
    if table[matrix.buffer].kind != "in" or len(matrix.index) != 2:
        return None
    across, along = matrix.index[0].split(column), matrix.index[1].split(deep)
    if across is None or along is None or (across[0], along[0]) != (ONE, ONE):
        return None
    if any({column, deep, product.rows[0]} & d.symbols() for d in (across[1], along[1])):
        return None
    return matrix.buffer, across[1], along[1], columns, depth


def _turned(corner: Corner, dtype: str, names: Names) -> tuple[Buffer, Stmt]:
    """The array that the part is turned into, and the loops that do it."""
    name, across, along, columns, depth = corner
    made = Buffer(names.fresh(f"{name}_turned"), dtype, (depth, columns), "temp")
    j, i = names.fresh("j"), names.fresh("i")
    value = Load(name, (across + Dim.of(i), along + Dim.of(j)), dtype)
    store = Store(made.name, (Dim.of(j), Dim.of(i)), value)
    return made, For(j, Dim.of(0), depth, (For(i, Dim.of(0), columns, (store,)),))
