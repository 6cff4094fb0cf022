"""Sweeps that wait for sums over an outer axis go over one slab after the other, as long as it is in the second cache.

    for i: for j: for k: s[j] += x[i,j,k]                    for j:
    for j: m[j] = s[j] / n                                       for i: for k: s[j] += x[i,j,k]
    for i: for j: for k: y[i,j,k] = x[i,j,k] - m[j]    ->        m[j] = s[j] / n
                                                                 for i: for k: y[i,j,k] = x[i,j,k] - m[j]

A sum over a batch for each channel is complete after all of the batch: `fuse`, with the batch outside as memory has it,
cannot join what asks for it, and each sweep reads all from memory again. Where the arrays are larger than the caches,
the rows of a channel long, and all of them few enough, channels go outside: whatever is computed from them meanwhile
reads a cache. In a cache that holds all, it is the faster way to go along memory. Both versions are in the kernel, as
sizes say which is better. After `fuse`, which joins what it can without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims import Dim, product
from ..ir import Buffer, For, If, Kernel, Stmt
from .depend import Memory
from .fuse import fuse_body
from .questions import all_of, compared
from .tidy import drop_idle, tidy
from .tree import Names, accesses, apart, buffers, has, walk

ROW = 64  # elements in one piece: each piece begins in another page
SLAB = 1 << 15  # elements: 128 KB, of an array or two besides
LEAST = 8  # slabs: they are what threads share
BEYOND = 5 << 19  # elements of an array: 10 MB, which two or three of are more than a last cache keeps

Range = tuple[Dim, Dim]


def slabs(kernel: Kernel) -> Kernel:
    sweeps = {s: space for s in kernel.body if (space := _space(s)) and _has_rows(s)}
    spaces = set(sweeps.values())
    pieces = {piece for s in sweeps for piece in _pieces(s, buffers(kernel))}
    if len(sweeps) < 2 or len(spaces) != 1 or len(pieces) != 1:
        return kernel
    ((batch, channels),) = spaces
    body, made = apart(kernel, Names.of(kernel))
    own = replace(kernel, body=tuple(map(_turned, body)), buffers=(*kernel.buffers, *made))
    joined = drop_idle(fuse_body(own.body, Memory.of(own)))
    if sum(_range(s) == channels and has(s.body, For) for s in walk(joined) if isinstance(s, For)) != 1:
        return kernel
    (piece,), rows, count = pieces, batch[1] - batch[0], channels[1] - channels[0]
    asked = all_of(
        (
            compared("greater_equal", piece, ROW),
            compared("less_equal", rows * piece, SLAB),
            compared("greater_equal", count, LEAST),
            compared("greater", rows * piece * count, BEYOND),
        )
    )
    return tidy(replace(own, body=(If(asked, joined, kernel.body),)))


def _range(loop: For) -> Range:
    return loop.lo, loop.hi


def _space(stmt: Stmt) -> tuple[Range, Range] | None:
    """The ranges of a loop and of the one that is all there is in it."""
    if not isinstance(stmt, For) or len(stmt.body) != 1 or not isinstance(inner := stmt.body[0], For):
        return None
    maps = stmt.kind == inner.kind == "map"
    return (_range(stmt), _range(inner)) if maps and stmt.var not in inner.lo.symbols() | inner.hi.symbols() else None


def _has_rows(nest: Stmt) -> bool:
    return isinstance(nest, For) and isinstance(inner := nest.body[0], For) and has(inner.body, For)


def _turned(stmt: Stmt) -> Stmt:
    """With the inner loop outside."""
    if _space(stmt) is None:
        return stmt
    assert isinstance(stmt, For)
    (inner,) = stmt.body
    assert isinstance(inner, For)
    return replace(inner, body=(replace(stmt, body=inner.body),))


def _pieces(nest: Stmt, table: Mapping[str, Buffer]) -> set[Dim]:
    """The elements in one piece of what a sweep reads or stores, for an iteration of the two outer loops."""
    found = set()
    for a in accesses((nest,)):
        shape, index = table[a.buffer].shape, a.index or ()
        if table[a.buffer].kind in ("in", "out") and len(a.loops) > 2 and len(index) == len(shape) > 2:
            outer = [Dim.of(loop.var) for loop in a.loops[:2]]
            found |= {product(shape[k + 2 :]) for k in range(len(shape) - 2) if list(index[k : k + 2]) == outer}
    return found


__all__ = ["slabs"]
