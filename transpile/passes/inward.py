"""Loops over a window of whole arrays go inside: what a window adds up is added to a row that stays near.

    for i in 0..3: for j in 0..3:                        for p in 0..H - 2:
        for p in 0..H - 2: for q in 0..W - 2:                for i in 0..3: for j in 0..3:
            y[p,q] += x[p + i,q + j] * w[i,j]      ->            for q in 0..W - 2:
                                                                     y[p,q] += x[p + i,q + j] * w[i,j]

Slices of arrays, one for each place of a window, are written like this: `y += x[i : i + h, j : j + w]`. They are now as
if loops over the elements had been written outside. What stands beside such a nest, and is a window's own, gets loops
of its own. All loops of a nest are maps: any order of them is right, and the places of a window keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from ..dims import Dim
from ..ir import Comment, For, Kernel, Stmt, Store
from .fuse import fuse
from .order import perfect, rebuild, stores
from .tidy import tidy
from .tree import Access, Body, accesses, dim_loads, map_bodies, roots, walk

MOST = 16  # places of a window along an axis


def inward(kernel: Kernel) -> Kernel:
    state = _State(kernel)
    body = state.body(kernel.body)
    return fuse(tidy(replace(kernel, body=body))) if body != kernel.body else kernel


class _State:
    def __init__(self, kernel: Kernel) -> None:
        self.root = roots(kernel)

    def body(self, body: Body) -> Body:
        return tuple(new for stmt in body for new in self.stmt(stmt))

    def stmt(self, stmt: Stmt) -> Body:
        if isinstance(stmt, For) and stmt.kind == "map" and (found := self.nest(stmt)) is not None:
            return found
        return (map_bodies(stmt, self.body),)

    def nest(self, stmt: For) -> Body | None:
        """The nests that it is parted into, if there is a window among them."""
        loops, inside = perfect(stmt)
        if stores(stmt) is not None:
            return _moved(loops, inside)
        if (moved := _around_rows(loops, inside)) is not None:
            return moved
        parts = [s for s in inside if not isinstance(s, Comment)]
        nests = [([], (s,)) if isinstance(s, Store) else stores(s) for s in parts]
        whole = [([*loops, *found[0]], found[1]) for found in nests if found]
        if not any(loops[0] in _windows(*nest) and _moved(*nest) for nest in whole):
            return None
        if len(whole) < len(parts) or not all(self.are_apart(a, b, loops) for a, b in combinations(parts, 2)):
            return None
        return tuple(new for s in parts for new in self.stmt(rebuild(loops, (s,))))

    def are_apart(self, one: Stmt, other: Stmt, loops: Sequence[For]) -> bool:
        """Whether they meet only where all the loops stand at the same place."""
        first, second = list(accesses((one,))), list(accesses((other,)))
        meeting = {self.root[a.buffer] for a in first} & {self.root[a.buffer] for a in second}
        changed = {root for a in (*first, *second) if a.writes and (root := self.root[a.buffer]) in meeting}
        where = {_own(a, loops) for a in (*first, *second) if self.root[a.buffer] in changed}
        return len(where) <= len(changed) and all(axes is not None for _, axes in where)


def _own(a: Access, loops: Sequence[For]) -> tuple[str, tuple[int, ...] | None]:
    """The buffer, and the axes along which the loops go; None: others reach such a place, too."""
    index = list(a.index or ())
    axes = [index.index(Dim.of(x.var)) if Dim.of(x.var) in index else None for x in loops]
    return a.buffer, None if None in axes else tuple(axis for axis in axes if axis is not None)


def _moved(loops: list[For], inside: Body) -> Body | None:
    """What is added to rows with the windows next to the row, and before it what adds up all that one place of the
    window sees: a sum stays as it is, as exact as one can be. None where it takes what the others make."""
    *around, row = loops
    windows = _windows(loops, inside)
    moved = [*(x for x in around if x not in windows), *windows, row]
    sums = [s for s in inside if isinstance(s, Store) and s.op and not _along({row.var}, s)]
    others = tuple(s for s in inside if s not in sums)
    made = {a.buffer for a in accesses(others) if a.writes}
    if moved == loops or not any(_along({row.var}, s) for s in others) or made & {a.buffer for a in accesses(sums)}:
        return None
    return (*((rebuild(loops, tuple(sums)),) if sums else ()), rebuild(moved, others))


def _around_rows(loops: list[For], inside: Body) -> Body | None:
    """What goes over several rows in turn, with the windows next to them; None where one place of a window adds up what
    it sees."""
    statements = list(walk(inside))
    windows = _windows([*loops, *(s for s in statements if isinstance(s, For))], inside)
    own = [x for x in loops if x in windows]
    others = [x for x in loops if x not in windows]
    rows = {x.var for x in others if (x.hi - x.lo).value is None}
    plain = all(isinstance(s, (Store, Comment)) or (isinstance(s, For) and s.kind == "map") for s in statements)
    if [*others, *own] == loops or not plain or not any(isinstance(s, For) for s in inside):
        return None
    if not all(_along(rows, s) for s in statements if isinstance(s, Store)):
        return None
    return (rebuild([*others, *own], inside),)


def _along(variables: set[str], stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and any(d.symbols() & variables for d in stmt.index)


def _windows(loops: list[For], inside: Body) -> list[For]:
    """The loops that go over few places, each of them beside one that another loop goes over."""
    own = {x.var for x in loops}
    if any((x.lo.symbols() | x.hi.symbols()) & own or dim_loads(x.lo) or dim_loads(x.hi) for x in loops):
        return []
    places = {d for a in accesses(inside) for d in a.index or ()}
    trips = {x.var: (x.hi - x.lo).value for x in loops}
    long = {name for name, n in trips.items() if n is None}
    few = [x for x in loops[:-1] if (trips[x.var] or MOST + 1) <= MOST]
    return [x for x in few if any(_is_beside(d, x.var, long) for d in places)]


def _is_beside(place: Dim, var: str, others: set[str]) -> bool:
    """Whether it is the sum of the variable and one of the others, each a number of times."""
    beside = place.symbols() & others
    parted = [place.split(name) for name in (var, *beside)] if var in place.symbols() else []
    return len(parted) > 1 and all(p is not None and p[0].value is not None for p in parted)


__all__ = ["inward"]
