"""A small array of which only known places are touched is so many variables.

    e[0] = exp(x[2*j]); e[1] = exp(x[2*j + 1]); s = e[0] + e[1]    ->    e_0 = ...; e_1 = ...; s = e_0 + e_1

What windows that are written out leave. gcc has vectors for variables of an iteration, and none for its arrays.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Buffer, Kernel
from .tree import Index, Names, accesses, map_places

MOST = 16  # elements


def elements(kernel: Kernel) -> Kernel:
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    small = {b.name: b for b in kernel.buffers if b.kind == "temp" and b.shape and _size(b) <= MOST}
    found = [a for a in accesses(kernel.body) if a.buffer in small]
    loose = {a.buffer for a in found if a.index is None or not _is_known(a.index, small[a.buffer])}
    names, made = Names.of(kernel), dict[tuple[str, Index], Buffer]()
    for name, place in dict.fromkeys((a.buffer, a.index) for a in found):
        if place is not None and name not in loose | aliased:
            made[name, place] = replace(small[name], name=names.fresh(f"{name}_{_digits(place)}"), shape=())
    if not made:
        return kernel
    gone = {name for name, _ in made}
    body = map_places(kernel.body, lambda n, i: (made[n, i].name, ()) if n in gone else (n, i))
    return replace(kernel, body=body, buffers=(*(b for b in kernel.buffers if b.name not in gone), *made.values()))


def _size(buffer: Buffer) -> int:
    size = 1
    for dim in buffer.shape:
        size *= MOST + 1 if dim.value is None else dim.value
    return size


def _is_known(place: Index, buffer: Buffer) -> bool:
    return all(0 <= (-1 if d.value is None else d.value) < (n.value or 0) for d, n in zip(place, buffer.shape))


def _digits(place: Index) -> str:
    return "_".join(str(d) for d in place)


__all__ = ["elements"]
