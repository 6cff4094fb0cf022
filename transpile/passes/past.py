"""What is written once and not read again goes past the caches, where a kernel moves more than they hold.

    for i in 0..n: y[b,i] = f(x[b,i])             for strip: at, end = 1024*strip, min(1024*strip + 1024, n)
    y[b,j] += v                           ->          for i in at..end: row[i - at] = f(x[b,i])
                                                      if at <= j < end: row[j - at] += v
                                                      for k in 0..end - at: y[b,at + k] = row[k]   past the caches

A processor reads a line before it writes a part of it: memory moves twice for what is written, and what the caches had
of the inputs makes way. A strip of results is made in the first cache, and goes to memory in whole lines (`past.h`).
Whether much is moved shows when the kernel runs: both ways are in it. Last: no loop is asked for its form any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, count

from ..dims import ZERO, Dim, minimum, nonnegative, product
from ..ir import FLOATS, Buffer, Comment, For, If, Int, Kernel, Load, Stmt, Store
from .depend import Memory, may_meet
from .overwrite import overwrites
from .questions import all_of, compared
from .rows import STRIP, moves_by_one
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    another,
    buffers,
    degree,
    dim_loads,
    in_vectors,
    map_bodies,
    map_places,
    named,
    own_accesses,
    parts,
    symbols,
    touched,
    walk,
    written,
)

MUCH = 5 << 20  # elements of all arguments: 20 MB, of which a last cache keeps little for what follows
LONG = 256  # elements of a row: of fewer, both ends are too much
MOST_ROWS = 4  # of one result that a loop stores: strips of all of them stay in the first cache

Row = tuple[str, Index]  # a result, and where in it


def past(kernel: Kernel) -> Kernel:
    search = _Search(Memory.of(kernel))
    arrays = [b for b in kernel.buffers if b.kind in ("in", "out") and not b.alias]
    most = max((degree(b) for b in arrays), default=0)
    for b in arrays:
        seen = [x for x in kernel.buffers if b.name in (x.name, x.alias) and x.name in touched(kernel.body)]
        if b.kind == "out" and b.dtype in FLOATS and len(seen) == 1 and 0 < most == degree(b):
            search.body(seen[0], kernel.body, (), ())
    if not search.found:
        return kernel
    made = _Strips(kernel, search.found, sum((product(b.shape) for b in arrays), ZERO))
    body, over = made.body(kernel.body, ()), overwrites(kernel)
    return replace(kernel, body=body, buffers=(*kernel.buffers, *made.buffers), over=over)


Path = tuple[int, ...]  # which statement of a body, which body of it, and so on
Stored = tuple[Buffer, Store | None]  # a result, and what happens to one place of a row after the loop that stores it


class _Search:
    """Looks for the loops that store a result: one alone touches it, whichever way a kernel takes, or each stores to
    places of its own. `around`: the loops it is in. `found`: by the path to a loop, as two ways of a kernel may share
    one."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.found: dict[Path, list[Stored]] = {}

    def body(self, result: Buffer, body: Body, around: tuple[For, ...], path: Path) -> None:
        places = [k for k, s in enumerate(body) if result.name in touched((s,))]
        if len(places) == 1:
            self.stmt(result, body[places[0]], around, (*path, places[0]))
        elif self.are_apart(result, [body[k] for k in places], around):
            for k in places:
                self.stmt(result, body[k], around, (*path, k))
        elif len(places) == 2:
            first, then = places
            loop, between, store = body[first], body[first + 1 : then], body[then]
            if _is_row(loop, result, around) and isinstance(store, Store) and _is_of_row(store, loop):
                if _passes((loop,), between, store):
                    self.found.setdefault((*path, first), []).append((result, store))

    def are_apart(self, result: Buffer, body: Sequence[Stmt], around: tuple[For, ...]) -> bool:
        """Whether all only store to it, and no two of them to one place."""
        memory = self.memory
        for loop in around:
            memory = memory.inside(loop)
        each = [[a for a in accesses((stmt,)) if a.buffer == result.name] for stmt in body]
        return all(a.mode == "w" for found in each for a in found) and not any(
            may_meet(a, b, memory) for one, other in combinations(each, 2) for a in one for b in other
        )

    def stmt(self, result: Buffer, stmt: Stmt, around: tuple[For, ...], path: Path) -> None:
        if isinstance(stmt, If):
            self.body(result, stmt.then, around, (*path, 0))
            self.body(result, stmt.orelse, around, (*path, 1))
        elif _is_row(stmt, result, around):
            self.found.setdefault(path, []).append((result, None))
        elif isinstance(stmt, For):
            self.body(result, stmt.body, (*around, stmt), (*path, 0))


def _is_row(loop: Stmt, result: Buffer, around: Sequence[For]) -> bool:
    """Whether the loop stores the result along memory, each iteration around it elsewhere, and threads share one of
    them."""
    if not in_vectors(loop) or not all(isinstance(s, (Store, Comment)) for s in loop.body):
        return False
    short = nonnegative(Dim.of(LONG - 1) - (loop.hi - loop.lo))
    own = [(index, mode) for s in loop.body for name, index, mode in own_accesses(s) if name == result.name]
    if short or {mode for _, mode in own} != {"w"} or len(own) > MOST_ROWS:
        return False
    if not all(_are_apart(a or (), b or ()) for (a, _), (b, _) in combinations(own, 2)):
        return False
    index = own[0][0] or ()
    known = loop.lo.symbols() | loop.hi.symbols() | {s for d in index for s in d.symbols()}
    for outer in reversed(around):
        if outer.var not in known:
            return False
        known |= outer.lo.symbols() | outer.hi.symbols()
    along = all(moves_by_one(place or (), result.shape, loop.var) for place, _ in own)
    return any(outer.parallel for outer in around) and along


def _are_apart(one: Index, other: Index) -> bool:
    """Whether two rows are never one."""
    return any((a - b).value not in (None, 0) for a, b in zip(one[:-1], other[:-1], strict=True))


def _is_of_row(store: Store, loop: Stmt) -> bool:
    """Whether it changes one place of the row that the loop stores (and does not only read one)."""
    assert isinstance(loop, For)
    alone = [name for name, _, _ in own_accesses(store)].count(store.buffer) == 1
    return alone and store.buffer in written((loop,)) and store.index[:-1] == _place(loop, store.buffer)[:-1]


def _place(loop: For, name: str) -> Index:
    return next(s.index for s in loop.body if isinstance(s, Store) and s.buffer == name)


def _passes(loop: Body, between: Body, store: Store) -> bool:
    """Whether the loop may run behind statements, and what changes its row afterwards beside it, strip by strip."""
    free = not written(loop) & touched(between) and not touched(loop) & written(between)
    return free and written(loop) & touched((store,)) == {store.buffer}


def _outside(stmt: Stmt) -> Stmt:
    """A loop that only has a row in its two ways, in two loops: each iteration would ask the same."""
    match stmt:
        case For(var=var, parallel=False, body=(If(cond, (For() as strips,), orelse),)) if var not in symbols(cond):
            asked = parts(cond)
            memory = any(isinstance(p, Load) or (isinstance(p, Int) and any(dim_loads(p.dim))) for p in asked)
            if not memory and any(isinstance(s, For) and s.past for s in walk((strips,))):
                return If(cond, (replace(stmt, body=(strips,)),), (replace(stmt, body=orelse),))
    return stmt


class _Strips:
    """Puts strips beside the loops that are found. `moved`: elements of all arguments."""

    def __init__(self, kernel: Kernel, found: dict[Path, list[Stored]], moved: Dim) -> None:
        self.found, self.moved = found, moved
        self.names, self.table = Names.of(kernel), buffers(kernel)
        self.uses = Counter(a.buffer for a in accesses(kernel.body))
        self.buffers: list[Buffer] = []

    def body(self, body: Body, path: Path) -> Body:
        found: list[Stmt] = []
        waiting: dict[int, tuple[For, list[Stored]]] = {}  # a store -> the loop that has moved to it
        for k, stmt in enumerate(body):
            here = (*path, k)
            stored = self.found.get(here, [])
            stores = [store for _, store in stored if store]
            if isinstance(stmt, For) and stores:
                waiting[id(stores[0])] = stmt, stored
            elif isinstance(stmt, For) and stored:
                found.append(self.either(stmt, stored, ()))
            elif id(stmt) in waiting:
                found.append(self.either(*waiting[id(stmt)], (stmt,)))
            else:
                which = count()
                found.append(_outside(map_bodies(stmt, partial(self.inside, here, which))))
        return tuple(found)

    def inside(self, path: Path, which: Iterator[int], body: Body) -> Body:
        return self.body(body, (*path, next(which)))

    def either(self, loop: For, stored: list[Stored], after: Body) -> Stmt:
        asked = all_of((compared("greater_equal", loop.hi - loop.lo, LONG), compared("greater", self.moved, MUCH)))
        return If(asked, (self.in_strips(loop, stored),), (loop, *after))

    def in_strips(self, loop: For, stored: list[Stored]) -> For:
        strip, first, behind = (self.names.fresh(n) for n in ("strip", "at", "end"))
        at, end = Dim.of(first), Dim.of(behind)
        own, made = another(loop, self.names, self.uses, self.table)
        results = {b.name: b for b, _ in stored}
        stores = [s for s in loop.body if isinstance(s, Store) and s.buffer in results]
        long = STRIP // len(stores)
        rows, begins = dict[Row, Buffer](), dict[Row, Index]()
        for s in stores:
            row, dtype = (s.buffer, s.index[:-1]), results[s.buffer].dtype
            rows[row] = Buffer(self.names.fresh("row"), dtype, (Dim.of(long),), "temp")
            begins[row] = tuple(d.subs({loop.var: at}) for d in s.index)
        self.buffers += [*made, *rows.values()]

        def place(name: str, index: Index) -> tuple[str, Index]:
            row = name, index[:-1]
            return (rows[row].name, (index[-1] - begins[row][-1],)) if row in rows else (name, index)

        asked = tuple(p for p in loop.ahead if p.buffer not in results)
        body: list[Stmt] = [replace(own, lo=at, hi=end, work=None, ahead=asked)]
        for _, store in stored:
            if store:
                there = store.index[-1] - _place(loop, store.buffer)[-1].subs({loop.var: ZERO})
                inside = all_of((compared("greater_equal", there, at), compared("less", there, end)))
                body.append(If(inside, (store,)))
        leave = [self.leave(results[row[0]], rows[row], begins[row], end - at) for row in rows]
        whole = (*map_places(tuple(body), place), *leave)
        strips = (loop.hi - loop.lo + (long - 1)) // long
        last = named(behind, minimum(at + long, loop.hi), whole)
        return For(strip, ZERO, strips, (named(first, loop.lo + Dim.of(strip) * long, (last,)),))

    def leave(self, result: Buffer, row: Buffer, begin: Index, count: Dim) -> For:
        var = self.names.fresh("k")
        k = Dim.of(var)
        store = Store(result.name, (*begin[:-1], begin[-1] + k), Load(row.name, (k,), row.dtype))
        return For(var, ZERO, count, (store,), past=True)


__all__ = ["past"]
