"""What is added at places read from memory, into zeros that are then added elsewhere, is added there.

    for v: for j: t[v,j] = 0
    for i: for j: t[at[i],j] += dy[b,i,j]      ->      for i: for j: d_table[at[i],j] += dy[b,i,j]
    for v: for j: d_table[v,j] += t[v,j]

So is what is put there once, t[at,j] = dy[b,j]. A table is touched where an example says, not as a whole for every
example. Sums along axes stay as they are: what an example adds up first is rounded less often.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..dims import Dim
from ..ir import Const, For, Kernel, Load, Product, Stmt, Store
from .direct import is_whole
from .order import filled, perfect
from .tree import Access, Body, accesses, buffers, dim_loads, map_bodies, roots

Target = tuple[str, tuple[Dim, ...]]  # a buffer, and the index in it by loop variables


def scatter(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Scatter(kernel).body(kernel.body))


class _Scatter:
    def __init__(self, kernel: Kernel):
        self.table = buffers(kernel)
        self.root = roots(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.temps = {b.name for b in kernel.buffers if b.kind == "temp" and not b.alias}
        self.temps -= {b.alias for b in kernel.buffers if b.alias}

    def body(self, body: Body) -> Body:
        found = list(body)
        for stmt in body:
            if (nest := filled(stmt)) is not None and self._is_zeros(*nest):
                found = self.moved(found, found.index(stmt), nest[1].buffer) or found
        return tuple(map_bodies(s, self.body) for s in found)

    def moved(self, body: list[Stmt], start: int, temp: str) -> list[Stmt] | None:
        """The body without a temporary that is zero after `start`."""
        goes = ((k, target) for k in range(start + 1, len(body)) if (target := self._goes(body[k], temp)))
        last, target = next(goes, (None, None))
        if last is None or target is None:
            return None
        between = body[start + 1 : last]
        inside = [a for a in accesses(between) if self.root[a.buffer] == self.root[temp]]
        if len(inside) + 2 != self.uses[temp] or not inside:
            return None
        first = next(s for s in between if any(self.root[a.buffer] == self.root[temp] for a in accesses((s,))))
        if not all(map(_is_scattered, inside[1:] if _is_put(first, temp) else inside)):
            return None
        if any(self.root[a.buffer] == self.root[target[0]] for a in accesses(between)):
            return None
        return [*body[:start], *(_into(s, temp, target) for s in between), *body[last + 1 :]]

    def _goes(self, stmt: Stmt, temp: str) -> Target | None:
        """Where a nest adds all of the temporary: `place[k]` is the target's index for "axis k"."""
        if not isinstance(stmt, For):
            return None
        nest, inside = perfect(stmt)
        match inside:
            case [Store(buffer, index, Load(name, places, dtype), "add")] if name == temp and buffer != temp:
                if self.table[buffer].dtype != dtype or not self._covers(places, nest, temp):
                    return None
                if any(True for d in index for _ in dim_loads(d)):
                    return None  # places that may not be known any earlier
                return buffer, tuple(d.subs({str(p.symbol): _axis(k) for k, p in enumerate(places)}) for d in index)
        return None

    def _is_zeros(self, loops: list[For], store: Store) -> bool:
        """Whether that makes zeros of all of a temporary."""
        zero = isinstance(store.value, Const) and store.value.value == 0
        return zero and store.buffer in self.temps and self._covers(store.index, loops, store.buffer)

    def _covers(self, index: tuple[Dim, ...], nest: list[For], name: str) -> bool:
        """Whether the loops go once over all of the buffer."""
        ranges = {loop.var: (loop.lo, loop.hi) for loop in nest if loop.kind == "map"}
        return len(ranges) == len(nest) and is_whole(index, self.table[name].shape, ranges)


def _is_scattered(access: Access) -> bool:
    return access.mode == "add" and any(dim_loads(d) for d in access.index or ())


def _is_put(stmt: Stmt, temp: str) -> bool:
    """Whether it stores into a place read from memory, and the next ones along the other axes, each once."""
    nest, inside = perfect(stmt) if isinstance(stmt, For) else ([], [stmt])
    match inside:
        case [Store(buffer, index, _, None)] if buffer == temp:
            variables = [loop.var for loop in nest]
            places = [d for d in index if dim_loads(d)]
            along = [str(d.symbol) for d in index if not dim_loads(d) and d.symbols()]
            fixed = not any(d.symbols() & set(variables) for d in places)
            return bool(places) and fixed and sorted(along) == sorted(variables)
    return False


def _axis(k: int) -> Dim:
    return Dim.of(f"axis {k}")


def _into(stmt: Stmt, temp: str, target: Target) -> Stmt:
    if isinstance(stmt, (Store, Product)) and stmt.buffer == temp:
        name, index = target
        places = {f"axis {k}": d for k, d in enumerate(stmt.index)}
        return replace(stmt, buffer=name, index=tuple(d.subs(places) for d in index), op="add")
    return map_bodies(stmt, lambda inner: tuple(_into(s, temp, target) for s in inner))


__all__ = ["scatter"]
