"""Fusion over iteration spaces: loops over the same range become one, and then the loops inside them.

    for i: for j: t[i,j] = f(x[i,j])            for i:
    for i: s[i] = 0                                 s[i] = 0
    for i: for j: s[i] += t[i,j]          ->        for j:
    for i: for j: y[i,j] = t[i,j] / s[i]                t[i,j] = f(x[i,j])
                                                        s[i] += t[i,j]
                                                    for j:
                                                        y[i,j] = t[i,j] / s[i]

A loop meets an earlier one by moving up past statements it does not depend on, or by the earlier one moving
down. Fusing is legal if no iteration of the second needs, or disturbs, a later iteration of the first; two
map loops stay a map loop, so there even an earlier iteration may not be needed (`y[i] = t[i-1]`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..dims import Dim
from ..ir import Check, Comment, Const, For, Grow, Kernel, Product, Stmt, Store, While
from .depend import Memory, in_order, independent, neighbours
from .tidy import drop_idle
from .tree import Body, bodies, dim_loads, has, map_bodies, substitute, touched, walk

Legal = Callable[[For, For, Memory], bool]


def fuse(kernel: Kernel) -> Kernel:
    return replace(kernel, body=drop_idle(fuse_body(kernel.body, Memory.of(kernel))))


def fuse_body(body: Body, memory: Memory, legal: Legal | None = None) -> Body:
    legal = legal or fusible
    placed: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store) and isinstance(stmt.value, Const):
            placed.insert(_earliest(placed, stmt, memory), stmt)  # `s = 0` need not keep two loops apart
        elif not (isinstance(stmt, For) and _joined(placed, stmt, memory, legal)):
            placed.append(stmt)
    return tuple(_deeper(s, memory, legal) for s in placed)


def _deeper(stmt: Stmt, memory: Memory, legal: Legal) -> Stmt:
    inside = memory.inside(stmt) if isinstance(stmt, For) else memory
    return map_bodies(stmt, lambda inner: fuse_body(inner, inside, legal))


def _earliest(placed: list[Stmt], stmt: Stmt, memory: Memory) -> int:
    """Where the statement may stand at the earliest; beside the last one if no loop is passed by that."""
    k = len(placed)
    while k and not isinstance(placed[k - 1], Comment) and independent((placed[k - 1],), (stmt,), memory):
        k -= 1
    return k if any(isinstance(s, For) for s in placed[k:]) else len(placed)


def _joined(placed: list[Stmt], second: For, memory: Memory, fusible: Legal) -> bool:
    """Fuses the loop into one that is already placed, if there is one it can meet."""
    for k in range(len(placed) - 1, -1, -1):
        first = placed[k]
        if isinstance(first, For) and fusible(first, second, memory):
            placed[k] = merged(first, second, memory)
            return True
        if (
            isinstance(first, For)
            and (apart := _without_fills(first, second, memory))
            and fusible(apart[1], second, memory)
        ):
            placed[k : k + 1] = [apart[0], merged(apart[1], second, memory)]
            return True
        if not independent((first,), (second,), memory):
            break
    for k in range(len(placed) - 1, -1, -1):
        first = placed[k]
        if (
            isinstance(first, For)
            and fusible(first, second, memory)
            and all(independent((first,), (other,), memory) for other in placed[k + 1 :])
        ):
            del placed[k]
            placed.append(merged(first, second, memory))
            return True
    return False


def _without_fills(first: For, second: For, memory: Memory) -> tuple[For, For] | None:
    """The constants that a nest fills what the second adds to with, in a loop of their own, and the nest without them.

    for i: y[i] = 0; for j: s[i,j] += k[i] * v[j]           for i: y[i] = 0
    for i: for j: y[j] += q[i] * s[i,j]                ->   for i: for j: s[i,j] += ...; y[j] += q[i] * s[i,j]
    """
    filled = {s.buffer for s in first.body if isinstance(s, Store) and isinstance(s.value, Const) and s.op is None}
    filled &= touched((second,))
    fills = tuple(s for s in first.body if isinstance(s, Store) and s.buffer in filled)
    rest = tuple(s for s in first.body if s not in fills)
    # The variable that `merged` does not keep is free for the other loop.
    free = first.var if second.var in memory.named else second.var
    apart = replace(first, var=free, body=substitute(fills, {first.var: Dim.of(free)})), replace(first, body=rest)
    works = fills and any(isinstance(s, For) for s in rest)
    return apart if works and independent((apart[0],), (apart[1],), memory) else None


def merged(first: For, second: For, memory: Memory) -> For:
    """Both under the variable of the first, or of the second if extents of temporaries name that."""
    kind = "seq" if "seq" in (first.kind, second.kind) else "map"
    var = second.var if second.var in memory.named else first.var
    bodies = [substitute(x.body, {x.var: Dim.of(var)}) if x.var != var else x.body for x in (first, second)]
    return replace(first, var=var, body=bodies[0] + bodies[1], kind=kind)


def fusible(first: For, second: For, memory: Memory) -> bool:
    if (first.lo, first.hi) != (second.lo, second.hi) or has((first, second), Check, Grow, While):
        return False
    if {first.var, second.var} <= memory.named:
        return False
    if first.kind != second.kind and not (_is_nest(first) and _is_nest(second)):
        return False  # one of them could be vectorised, the other not
    if _scatters(first) != _scatters(second):
        return False  # threads that own rows go over all that is added, and over nothing else
    renamed = substitute(second.body, {second.var: Dim.of(first.var)})
    inside = memory.inside(first)
    allowed = {0} if first.kind == second.kind == "map" else {0, -1}
    if (
        allowed == {0}
        and not has((*first.body, *renamed), For)
        and neighbours((*first.body, *renamed), first.var, memory.root)
    ):
        return False  # each could be vectorised, both together not
    return in_order(first.body, renamed, first.var, inside, allowed)


def _is_nest(loop: For) -> bool:
    """Whether the work is in loops inside it."""
    return all(isinstance(s, (For, Product, Comment)) for s in loop.body)


def _scatters(loop: For) -> bool:
    """Whether each iteration adds at a row of its own that it looks up, and does nothing else."""
    stores = [s for s in walk(loop.body) if isinstance(s, Store)]
    looked = [{load for d in s.index for load in dim_loads(d)} for s in stores]
    return (
        has(loop.body, For)
        and bool(stores)
        and all(
            s.op == "add" and any(loop.var in d.symbols() for load in found for d in load.index)
            for s, found in zip(stores, looked, strict=True)
        )
    )


def count_loops(body: Body) -> int:
    return sum(isinstance(s, For) + sum(count_loops(b) for b in bodies(s)) for s in body)
