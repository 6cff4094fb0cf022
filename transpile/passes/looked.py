"""What is looked up at places that are the same for all examples is looked up once, before the loop over them.

    for b in 0..batch:                                    if batch > 0:
        for k: for l:                                         for k: for l: looked[k,l] = table[at[k,l]]
            y[b,k,l] = x[b,k] * x[b,l] + table[at[k,l]]  ->  for b in 0..batch:
                                                              for k: for l: y[b,k,l] = x[b,k] * x[b,l] + looked[k,l]

Numbers that lie beside each other are a vector; those that are looked up are loaded one by one, for each example. It
takes as much memory as the places do. Where places come with the call, each may be looked up once anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from ..dims import Dim
from ..ir import Buffer, For, If, Kernel, Load, Stmt, Store
from .depend import Memory
from .questions import all_of, compared
from .tree import Body, Names, dim_loads, loads, map_all, over_examples, own_exprs, substitute, symbols, written


def looked(kernel: Kernel) -> Kernel:
    body: list[Stmt] = []
    made: list[Buffer] = []
    names = Names.of(kernel)
    table = {b.name: b for b in kernel.buffers}
    for stmt in kernel.body:
        if over_examples(stmt, kernel):
            changed = Memory.of(kernel).roots(written(stmt.body))
            root = Memory.of(kernel).root
            for load, around in dict.fromkeys(_lookups(stmt.body, (stmt,))):
                read = [load, *(x for d in load.index for x in dim_loads(d))]
                own = [x for x in read[1:] if x.index and table[x.buffer].kind == "temp"]
                if not own or any(root[x.buffer] in changed for x in read):
                    continue
                if (axes := _axes(load, around)) is None:
                    continue
                buffer = Buffer(names.fresh("looked"), load.dtype, tuple(loop.hi for loop in axes), "temp")
                made.append(buffer)
                body.append(_before(load, axes, around, buffer, names))
                there = Load(buffer.name, tuple(Dim.of(loop.var) for loop in axes), load.dtype)
                (stmt,) = map_all((stmt,), lambda e, load=load, there=there: there if e == load else e)  # type: ignore
        body.append(stmt)
    return replace(kernel, body=tuple(body), buffers=(*kernel.buffers, *made))


def _lookups(body: Body, around: tuple[For, ...]) -> Iterator[tuple[Load, tuple[For, ...]]]:
    """What is read at places that are read, whatever the values are, and the loops around."""
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind == "map":
            yield from _lookups(stmt.body, (*around, stmt))
        elif isinstance(stmt, Store):
            for expr in own_exprs(stmt):
                for load in loads(expr):
                    if any(x.index for d in load.index for x in dim_loads(d)):
                        yield load, around


def _axes(load: Load, around: tuple[For, ...]) -> tuple[For, ...] | None:
    """The loops, from 0 to a number that none of them tells, that say which place it is, the innermost among them."""
    variables = {loop.var for loop in around}
    axes = tuple(loop for loop in around if loop.var in symbols(load))
    if around[0] in axes or around[-1] not in axes:
        return None
    told = any(d.symbols() & variables or any(dim_loads(d)) for x in around for d in (x.lo, x.hi))
    return None if told or any(x.lo != Dim.of(0) for x in axes) else axes


def _before(load: Load, axes: tuple[For, ...], around: tuple[For, ...], buffer: Buffer, names: Names) -> Stmt:
    """Nobody looks anything up where some loop around does not run: there may be nothing then."""
    store = Store(buffer.name, tuple(Dim.of(loop.var) for loop in axes), load)
    nest = reduce(lambda inner, loop: For(loop.var, loop.lo, loop.hi, (inner,)), reversed(axes), store)  # type: ignore
    fresh = {loop.var: names.fresh(loop.var) for loop in axes}
    (nest,) = substitute((nest,), {var: Dim.of(new) for var, new in fresh.items()})  # type: ignore
    ends = [loop.hi - loop.lo for loop in around if loop not in axes]
    return If(all_of(compared("greater_equal", n, 1) for n in ends), (_named(nest, fresh),))


def _named(nest: Stmt, fresh: dict[str, str]) -> Stmt:
    if not isinstance(nest, For):
        return nest
    return replace(nest, var=fresh[nest.var], body=tuple(_named(s, fresh) for s in nest.body))


__all__ = ["looked"]
