"""Loops that run through memory without a gap become one.

    for b in 0..batch:                            for n in 0..batch*S:
        for s in 0..S: y[b,s] = f(x[b,s])    ->       y_flat[n] = f(x_flat[n])

So an elementwise kernel is one long vector loop, whether there are many short examples or a single long
one. `x_flat` is the memory of `x`, in another shape. Loops over elements that have a recurrence each, or a row, become
one before they get lanes (`flat_elements`): rows of an image are not as long as all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..dims import Dim, product
from ..ir import Buffer, Check, For, Grow, Int, Kernel, Product, Stmt
from .alike import is_recurrence
from .once import own_temporaries
from .order import perfect, rebuild, stores
from .tree import (
    Body,
    Names,
    accesses,
    buffers,
    map_bodies,
    map_places,
    own_dims,
    own_exprs,
    parts,
    symbols,
    walk,
)

# buffer -> the axes that are the run of loops (empty: it is not indexed by them), and whether they are one already
Digits = dict[str, tuple[int, int, bool]]
Nest = tuple[list[For], Body] | None


def flatten(kernel: Kernel) -> Kernel:
    return flat(kernel, stores)


def flat_elements(kernel: Kernel) -> Kernel:
    """Of nests around recurrences and rows; the loop over examples stays."""

    def recurring(stmt: Stmt) -> Nest:
        if not isinstance(stmt, For) or stmt.kind != "map" or stmt.hi.symbol == kernel.batch:
            return None
        loops, inside = perfect(stmt)
        have_lanes = any(is_recurrence(s) for s in inside) or _go_along_rows(loops, inside, kernel)
        return (loops, inside) if have_lanes else None

    return flat(kernel, recurring)


def _go_along_rows(loops: Sequence[For], inside: Body, kernel: Kernel) -> bool:
    """Whether loops inside go along rows of an element's own, and along nothing else that hangs on which it is."""
    inner = [s for s in walk(inside) if isinstance(s, For)]
    own = own_temporaries(kernel, loops[0]) if inner else set()
    outer = {loop.var for loop in loops}
    along = [a for s in inner for a in accesses((s,)) if any(s.var in d.symbols() for d in a.index or ())]
    shared = all(a.buffer in own or not any(d.symbols() & outer for d in a.index or ()) for a in along)
    return shared and any(a.buffer in own for a in along)


def flat(kernel: Kernel, nests: Callable[[Stmt], Nest]) -> Kernel:
    state = Flat(kernel, nests)
    body = state.body(kernel.body)
    return replace(kernel, body=body, buffers=state.buffers)


class Flat:
    """What nests of a kernel are as they become one loop, and the buffers that they see in other shapes. `nests`: the
    loops that may, and what is inside."""

    def __init__(self, kernel: Kernel, nests: Callable[[Stmt], Nest] = stores):
        self.nests, self.table = nests, buffers(kernel)
        self.names = Names.of(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.single = {b.name for b in kernel.buffers if b.kind == "temp" and not b.alias}
        self.single -= {b.alias for b in kernel.buffers if b.alias and self.uses[b.name]}
        self.made: dict[tuple[str, tuple[int, int]], str] = {}

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return tuple(self.table.values())

    def body(self, body: Body) -> Body:
        return tuple(self.stmt(s) for s in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        if (nest := self.nests(stmt)) is not None:
            loops, inside = nest
            for length in range(len(loops), 1, -1):
                if (flat := self.nest(loops, length, inside)) is not None:
                    return flat
        return map_bodies(stmt, self.body)

    def nest(self, loops: Sequence[For], length: int, inside: Body) -> Stmt | None:
        """The nest with its last loops, as many as `length`, in one; None where there is a gap."""
        run = loops[-length:]
        if (found := digits(run, inside, self.table)) is None:
            return None
        n = For(self.names.fresh("n"), Dim.of(0), product(loop.hi for loop in run), (), "map")
        return rebuild([*loops[:-length], n], self.reshaped(inside, Dim.of(n.var), found))

    def reshaped(self, inside: Body, n: Dim, found: Digits) -> Body:
        own = Counter(a.buffer for a in accesses(inside))

        def place(name: str, index: tuple[Dim, ...]) -> tuple[str, tuple[Dim, ...]]:
            first, last, flat = found[name]
            if first == last:
                return name, index
            index = (*index[:first], n, *index[last:])
            return name if flat else self.alias(name, first, last, own[name] == self.uses[name]), index

        return map_places(inside, place)

    def alias(self, name: str, first: int, last: int, own: bool) -> str:
        """The buffer in its flat shape; under its name, if it is this nest's `own`."""
        if (name, (first, last)) not in self.made:
            b = self.table[name]
            shape = (*b.shape[:first], product(b.shape[first:last]), *b.shape[last:])
            if own and name in self.single:
                self.table[name] = replace(b, shape=shape)
                self.made[(name, (first, last))] = name
            else:
                flat = Buffer(self.names.fresh(f"{name}_flat"), b.dtype, shape, "temp", alias=b.alias or name)
                self.table[flat.name] = flat
                self.made[(name, (first, last))] = flat.name
        return self.made[(name, (first, last))]


def digits(run: Sequence[For], inside: Body, table: Mapping[str, Buffer]) -> Digits | None:
    """Where the loops' variables stand in every access, if always side by side, in order, over whole axes, or
    counted along one axis."""
    variables = [Dim.of(loop.var) for loop in run]
    names = {loop.var for loop in run}
    if any(loop.lo.terms or loop.hi.symbols() & names for loop in run):
        return None
    count = Dim.of(0)
    for loop in run:
        count = count * loop.hi + Dim.of(loop.var)
    found: Digits = {}
    for stmt in walk(inside):
        if any(isinstance(p, Int) and symbols(p) & names for expr in own_exprs(stmt) for p in parts(expr)):
            return None
        if isinstance(stmt, (For, Product, Grow, Check)) and any(d.symbols() & names for d in own_dims(stmt)):
            return None
    for a in accesses(inside):
        index, shape = a.index or (), table[a.buffer].shape
        used = [axis for axis, d in enumerate(index) if d.symbols() & names]
        flat = len(used) == 1 and index[used[0]] == count
        where = (used[0], used[-1] + 1, flat) if used else (0, 0, False)
        if used and not flat and [index[k] for k in range(*where[:2])] != variables:
            return None
        if used and not flat and list(shape[where[0] + 1 : where[1]]) != [loop.hi for loop in run[1:]]:
            return None
        if index and not used and a.mode == "w" and table[a.buffer].kind != "temp":
            return None
        if found.setdefault(a.buffer, where) != where:
            return None
    return found
