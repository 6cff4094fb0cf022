"""What is the same all along an axis has no such axis.

    for i: for j: m[i,j] = f(x[i])                        for i: m[i] = f(x[i])
    for i: for j: d_w[i,j] += m[i,j] * w[i,j]     ->      for i: for j: d_w[i,j] += m[i] * w[i,j]

A gradient spreads what it hands back over all that was summed up. Without the axis it is as much as one number a sum,
that `summed` adds up over all examples, and `once` makes for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ..dims import ZERO, Dim
from ..ir import FLOATS, Buffer, For, Kernel, Stmt, Store
from .order import rebuild, stores
from .tree import Body, Index, accesses, bodies, dim_loads, map_bodies, map_places, symbols


def narrow(kernel: Kernel) -> Kernel:
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    found = list(accesses(kernel.body))
    writes = Counter(a.buffer for a in found if a.writes)
    ours = {
        b.name: b
        for b in kernel.buffers
        if b.kind == "temp" and b.dtype in FLOATS and writes[b.name] == 1 and b.name not in aliased
    }
    while axes := _spread(kernel.body, {n: b for n, b in ours.items() if b.shape and not any(map(dim_loads, b.shape))}):

        def place(buffer: str, index: Index, axes: Mapping[str, int] = axes) -> tuple[str, Index]:
            return buffer, _without(index, axes[buffer]) if buffer in axes else index

        body = map_places(_made_once(kernel.body, axes), place)
        ours |= {n: replace(ours[n], shape=_without(ours[n].shape, axis)) for n, axis in axes.items()}
        kernel = replace(kernel, body=body, buffers=tuple(ours.get(b.name, b) for b in kernel.buffers))
    return kernel


def _without(index: Index, axis: int) -> Index:
    return (*index[:axis], *index[axis + 1 :])


def _spread(body: Body, ours: Mapping[str, Buffer]) -> dict[str, int]:
    """For each such buffer an axis along which it is the same."""
    found: dict[str, int] = {}
    for stmt in body:
        nest = stores(stmt)
        if nest is None:
            for inner in bodies(stmt):
                found |= _spread(inner, ours)
            continue
        loops, inside = nest
        for store in inside:
            if isinstance(store, Store) and store.buffer in ours and len(inside) == 1 and store.op is None:
                axis = _axis(loops, store, ours[store.buffer])
                if axis is not None:
                    found[store.buffer] = axis
    return found


def _axis(loops: list[For], store: Store, buffer: Buffer) -> int | None:
    told = symbols(store.value) | {n for x in loops for d in (x.lo, x.hi) for n in d.symbols()}
    for axis, (place, extent) in enumerate(zip(store.index, buffer.shape, strict=True)):
        loop = next((x for x in loops if Dim.of(x.var) == place), None)
        others = {n for k, d in enumerate(store.index) if k != axis for n in d.symbols()}
        if loop is not None and loop.var not in told | others and (loop.lo, loop.hi) == (ZERO, extent):
            return axis
    return None


def _made_once(body: Body, axes: Mapping[str, int]) -> Body:
    """Without the loops along these axes where the buffers are made."""

    def made(stmt: Stmt) -> Stmt:
        nest = stores(stmt)
        if nest is None:
            return map_bodies(stmt, lambda inner: tuple(map(made, inner)))
        loops, inside = nest
        match inside:
            case [Store(buffer, index, _, None)] if buffer in axes:
                return rebuild([x for x in loops if Dim.of(x.var) != index[axes[buffer]]], inside)
        return stmt

    return tuple(map(made, body))
