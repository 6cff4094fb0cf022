"""Where an inner loop jumps through memory that the outer one runs along, they change places, a strip at a time.

    for j in 0..W:                                      for s in 0..(W + 63)//64:
        at = floor(x[j]); f = x[j] - at                     for j in the strip: at = ...; f = ...; at_row[j] = at; ...
        for c in 0..C:                            ->        for c in 0..C:
            check at < W                                        for j in the strip:
            y[c,j] = (1 - f) * a[c,at] + f * ...                    y[c,j] = (1 - f_row[j]) * a[c,at_row[j]] + ...

A stride that is a multiple of 4096 bytes, as the channels of an image have it, puts every element into the same few
lines of the first cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..dims import Facts
from ..ir import For, Kernel, Stmt, Store
from .depend import Memory
from .strips import Nest, Strip, Strips, nest_of
from .tree import Body, map_bodies


def interchange(kernel: Kernel) -> Kernel:
    strips = Strips(kernel)

    def change(stmt: Stmt, facts: Facts) -> Stmt:
        if isinstance(stmt, For):
            facts = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)}
            nest = nest_of(stmt)
            if nest is not None and strips.jumps(nest) and strips.keeps_order(nest, facts):
                return _changed(strips.numbered(nest), strips)
        return map_bodies(stmt, lambda inner: tuple(change(s, facts) for s in inner))

    facts = Memory.of(kernel).facts
    body = tuple(change(s, facts) for s in kernel.body)
    return replace(kernel, body=body, buffers=tuple(strips.table.values()))


def _changed(nest: Nest, strips: Strips) -> For:
    pieces = (nest.before, *_pieces((nest.middle,)), nest.after)
    return strips.cut(nest, pieces, lambda strip: _spread((nest.middle,), strip))


def _spread(body: Body, strip: Strip) -> Body:
    """Each piece in a loop over the strip, inside the inner loops."""
    found: list[Stmt] = []
    for run in _runs(body):
        if isinstance(run[0], For):
            found.append(replace(run[0], body=_spread(run[0].body, strip)))
        else:
            found += strip.over(run)
    return tuple(found)


def _runs(body: Body) -> Iterator[Body]:
    """Loops alone, and what stands together between them."""
    run: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            yield from ((tuple(run),) if run else ())
            yield (stmt,)
            run = []
        elif isinstance(stmt, Store):
            run.append(stmt)
    yield from ((tuple(run),) if run else ())


def _pieces(body: Body) -> Iterator[Body]:
    for run in _runs(body):
        if isinstance(run[0], For):
            yield from _pieces(run[0].body)
        else:
            yield run
