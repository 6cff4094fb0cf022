"""The axes of a private matrix lie as the loops that use it like best.

    for t:                                              for t:
        for i: for j: s[i,j] += k[t,i] * v[t,j]             for j: for i: s[j,i] += k[t,i] * v[t,j]
        for i: for j: q[t,i] += dy[t,j] * s[i,j]    ->      for j: for i: q[t,i] += dy[t,j] * s[j,i]

A sum along memory ends with the lanes of a vector that are added up, for each row: of short ones, most of the work.
Across memory it is added to a row. Nobody outside sees how a temporary lies, so both of its last axes may change
places; what the nests cost then is asked of `order`, which comes next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..dims import Dim
from ..ir import For, Kernel, Op, Product, Stmt, Store
from .order import dearness, stores
from .tree import Body, accesses, bodies, in_dims, map_places, touched, walk

DEEPER = 64.0  # times as often as around it: what runs inside a loop more


def layout(kernel: Kernel) -> Kernel:
    for names in _together(kernel, _private(kernel)):
        turned = _turned(kernel, names)
        if _cost(turned, names) < _cost(kernel, names):
            kernel = turned
    return kernel


def _together(kernel: Kernel, private: set[str]) -> list[set[str]]:
    """Those that meet in one statement at the same place: they turn at once, or not at all."""
    groups = [{name} for name in sorted(private)]
    for stmt in walk(kernel.body):
        if isinstance(stmt, Store):
            at: dict[tuple[Dim, ...], set[str]] = {}
            for a in accesses((stmt,)):
                if a.buffer in private and a.index:
                    at.setdefault(a.index[-2:], set()).add(a.buffer)
            for met in at.values():
                joined = [g for g in groups if g & met]
                groups = [g for g in groups if not g & met] + [set().union(*joined)]
    return groups


def _private(kernel: Kernel) -> set[str]:
    """Temporaries with two axes or more, all uses of which are in nests of loops that may change places."""
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    inside = [(nest, stmt) for nest, _ in _nests(kernel.body) for stmt in walk((nest,)) if isinstance(stmt, Store)]
    others = touched(s for s in walk(kernel.body) if isinstance(s, Product))
    others |= {name for s in walk(kernel.body) for name in in_dims(s)}
    others |= {name for _, s in inside if s.op and not _is_product(s) for name in touched((s,))}
    uses = [a.buffer for a in accesses(kernel.body)]
    ours = [a.buffer for _, s in inside for a in accesses((s,))]
    return {
        b.name
        for b in kernel.buffers
        if b.kind == "temp"
        and len(b.shape) > 1
        and b.name not in aliased | others
        and 0 < uses.count(b.name) == ours.count(b.name)
    }


def _is_product(stmt: Store) -> bool:
    """A sum of products may be added up in any order, as BLAS does; other sums, NumPy adds up two by two."""
    return stmt.op == "add" and isinstance(stmt.value, Op) and stmt.value.op == "multiply"


def _nests(body: Body, depth: int = 0) -> Iterator[tuple[Stmt, int]]:
    """Nests of loops around nothing but stores, and how deep in others they are."""
    for stmt in body:
        if stores(stmt) is not None:
            yield stmt, depth
            continue
        for inner in bodies(stmt):
            yield from _nests(inner, depth + isinstance(stmt, For))


def _turned(kernel: Kernel, names: set[str]) -> Kernel:
    def swapped(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return (*index[:-2], index[-1], index[-2])

    body = map_places(kernel.body, lambda buffer, index: (buffer, swapped(index) if buffer in names else index))
    made = tuple(replace(b, shape=swapped(b.shape)) if b.name in names else b for b in kernel.buffers)
    return replace(kernel, body=body, buffers=made)


def _cost(kernel: Kernel, names: set[str]) -> float:
    return sum(
        dearness(nest, kernel) * DEEPER**depth for nest, depth in _nests(kernel.body) if names & touched((nest,))
    )
