"""The loop over the batch is distributed around products of a vector with a matrix that all examples share.

    for b:                                                 for b: for k: for j: h[b,j] += x[b,k] * w[k,j]
        for k: for j: h[j] += x[b,k] * w[k,j]      ->      for b: for j: y[b,j] = tanh(h[b,j])
        for j: y[j] = tanh(h[j])

Each of them is then one product of matrices (see products), and so is the gradient of w, whose depth is the batch.
Iterations of the batch loop are independent, so any of its statements may run for all examples before the next
one does; a temporary that is alive in between gets an axis for the batch.
"""

from __future__ import annotations

from dataclasses import replace

from ..dims import Dim
from ..ir import Check, Const, For, Grow, Kernel, Stmt, Store
from .inline import inline_summands
from .order import perfect
from .products import State
from .tree import Body, Names, has, map_places, read_from_dims, substitute, touched


def distribute(kernel: Kernel) -> Kernel:
    if kernel.batch is None:
        return kernel
    batch = Dim.of(kernel.batch)
    kernel = inline_summands(kernel)
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, For) and stmt.kind == "map" and stmt.hi == batch:
            loops, kernel = _distributed(stmt, kernel)
            body += loops
        else:
            body.append(stmt)
    return replace(kernel, body=tuple(body))


def _distributed(loop: For, kernel: Kernel) -> tuple[Body, Kernel]:
    if has(loop.body, Check, Grow):
        return (loop,), kernel
    outside = {n for s in kernel.body if s is not loop for n in touched((s,))}
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    inside = touched(loop.body)
    private = {
        b.name for b in kernel.buffers if b.kind in ("temp", "list") and b.name in inside and b.name not in outside
    }
    # The loop as it would be with the batch as an axis of every temporary shows which statements are products.
    wide, widened = _widened(kernel, loop, private)
    state = State.of(widened)
    made = [state.recognised(replace(wide, body=(s,)), {}) for s in wide.body]
    made = [None if state.recognised(s, {}) is not None else m for s, m in zip(wide.body, made)]
    targets = {m[1].buffer for m in made if m is not None}
    if not targets:
        return (loop,), kernel
    alone = [m is not None or _clears(s, targets) for s, m in zip(wide.body, made)]
    pieces: list[list[Stmt]] = [[]]
    for stmt, apart in zip(loop.body, alone):
        pieces += [[stmt], []] if apart else []
        if not apart:
            pieces[-1].append(stmt)
    pieces = [p for p in pieces if p]
    shared = {n for n in private if sum(n in touched(p) for p in pieces) > 1}
    table = {b.name: b for b in kernel.buffers}
    if shared & (aliased | read_from_dims(kernel)) or any(
        table[n].kind == "list" or len(table[n].shape) > 1 for n in shared
    ):
        return (loop,), kernel
    wide, kernel = _widened(kernel, loop, shared)
    loops: list[For] = []
    names, at = Names.of(kernel), 0
    for piece in pieces:
        body = wide.body[at : at + len(piece)]
        at += len(piece)
        var = loop.var if not loops else names.fresh(loop.var)
        loops.append(replace(loop, var=var, body=substitute(body, {loop.var: Dim.of(var)})))
    return tuple(loops), kernel


def _clears(stmt: Stmt, targets: set[str]) -> bool:
    """Whether it sets to a constant what a product is added to."""
    inside = perfect(stmt)[1] if isinstance(stmt, For) else (stmt,)
    return all(isinstance(s, Store) and s.buffer in targets and isinstance(s.value, Const) for s in inside)


def _widened(kernel: Kernel, loop: For, names: set[str]) -> tuple[For, Kernel]:
    """The loop and the kernel's buffers with the batch as the first axis of some temporaries."""
    row = Dim.of(loop.var)
    body = map_places(loop.body, lambda name, index: (name, (row, *index) if name in names else index))
    extent = (Dim.of(kernel.batch or ""),)
    wide = tuple(replace(b, shape=(*extent, *b.shape)) if b.name in names else b for b in kernel.buffers)
    return replace(loop, body=body), replace(kernel, buffers=wide)
