"""Scalar recurrences are vectorised across the batch, sixteen examples at a time, or along the elements of an example
that have one each, 64 at a time: they walk through the loops together.

    for b in 0..batch:                         for g in 0..batch//16:
        h = 0                                      for l in 0..16: h[l] = 0
        for t seq:                     ->          for t seq:
            h = a * h + x[b,t]                         for l in 0..16: h[l] = a * h[l] + x[16*g + l, t]
        y[b] = h                                   for l in 0..16: y[16*g + l] = h[l]
                                               for b in 16*(batch//16)..batch: as before

A loop that runs until a condition fails runs until it has failed for all: examples that are done keep their
values.

    loop:                                          loop:
        leave unless h < 1             ->              any = 0; for l: live[l] &= h[l] < 1; any |= live[l]
        h = 2 * h                                      leave unless any
                                                       for l: h[l] = where(live[l], 2 * h[l], h[l])

Map loops inside a recurrence are walked by the sixteen together, if its scalar work is what takes the time; what each
example reads again and again is laid out with the lanes innermost before. Where there is nothing but long map loops,
those are vectorised as they are. Elements that are left over walk together, too, as many as there are. So do examples,
from FEWEST on, as sixteen: lanes behind the last example repeat it, and neither store nor add for others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import takewhile

from ..dims import Dim, largest, maximum, minimum, product
from ..ir import FLOATS, Buffer, Const, For, If, Int, Kernel, Load, Op, Product, Stmt, Store, While
from ..operations import flops
from .alike import LANES, MANY_LANES, NARROW, asks_of_some, is_recurrence
from .asking import asking
from .depend import Memory
from .flatten import flat_elements
from .in_blocks import MOST_TERMS, InBlocks
from .in_hand import in_hand
from .once import own_temporaries
from .products import step
from .side_by_side import Mixed
from .together import Together
from .tree import (
    Body,
    Index,
    Names,
    accesses,
    bodies,
    dim_loads,
    has,
    map_bodies,
    map_stmts,
    named,
    own_accesses,
    own_exprs,
    parts,
    rename_buffers,
    roots,
    spelled_out,
    walk,
)
from .work import work

FEW_APART = 16  # numbers of an element: its neighbour's lie behind them
FEWEST = 4  # examples of a group: fewer go one by one
MOST_BYTES = 2**26  # of a thread's arrays with an axis of lanes
SEARCHING = 4  # flops of an iteration that only looks for something
MOST_BLOCKS = 4  # of a sum: rows that are longer are vectors as they are
MAP_SHARE = 16  # flops in map loops that one flop in a chain of dependent ones is worth


def lanes(kernel: Kernel) -> Kernel:
    kernel = asking(flat_elements(kernel))
    body: list[Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, For) and stmt.kind == "map" and not _only_searches(stmt) and not _only_moves(stmt):
            if kernel.batch is None:
                made = _along_elements(stmt, kernel, None) or _split(stmt, kernel)
            else:
                made = _split(stmt, kernel) if kernel.batch in stmt.hi.symbols() else None
                made = _along_elements(stmt, kernel, made) or made
            if made is not None:
                loops, kernel = made
                body += loops
                continue
        body.append(stmt)
    return replace(kernel, body=tuple(body))


def _only_searches(nest: For) -> bool:
    """Whether all that recurs in it are loops that end somewhere, and compute next to nothing on the way: what lanes
    ask, and keep of those that are done, takes longer than such loops one by one."""
    found = [s for s in walk((nest,)) if is_recurrence(s)]
    return bool(found) and all(isinstance(s, While) and _float_flops(s) < SEARCHING for s in found)


def _only_moves(nest: For) -> bool:
    """Whether all that recurs in it moves numbers to and from places that are looked up: of sixteen examples each
    place is looked up for itself, and the arrays would be turned for nothing."""
    found = [s for s in walk((nest,)) if is_recurrence(s)]
    looks_up = any(any(dim_loads(d)) for loop in found for a in accesses((loop,)) for d in a.index or ())
    return looks_up and not any(map(_float_flops, found))


def _float_flops(loop: Stmt) -> int:
    """Of one iteration."""
    inside = list(walk((loop,)))
    ops = (e for s in inside for own in own_exprs(s) for e in parts(own) if isinstance(e, Op))
    added = sum(isinstance(s, Store) and s.op is not None and bool(s.index) for s in inside)
    return sum(flops(e.op) for e in ops if e.dtype in FLOATS) + added


def _split(loop: For, kernel: Kernel) -> tuple[list[Stmt], Kernel] | None:
    if not any(map(is_recurrence, walk(loop.body))):
        return None
    alone, given = loop, kernel
    loop, kernel, exact = _with_blocks(alone, given)
    recurrences = [s for s in walk(loop.body) if is_recurrence(s)]
    mixed = any(isinstance(s, For) and s.kind == "map" for s in walk(tuple(recurrences)))
    batch = loop.hi
    if loop.lo != Dim.of(0) or any(dim_loads(batch)) or (batch.value is not None and batch.value < LANES):
        return None
    opened = _opened(loop, recurrences, Names.of(kernel)) if mixed else loop
    known = kernel if opened is loop else replace(kernel, body=_in_place_of(loop, (opened,), kernel.body))
    try:
        state, body = _grouped(known, opened, recurrences, mixed, batch - 1)
    except Mixed:
        state, body = _grouped(known, opened, recurrences, mixed, None)
    if not body:
        return None
    groups = (batch + (LANES - FEWEST if state.last is not None else 0)) // LANES
    worth = _worth(state, exact) if mixed or _has_rows_beside(loop.body) else Dim.of(1)
    if worth is None or worth.value == 0:
        return None
    name = state.names.fresh("groups")
    count = groups if worth.value is not None else Dim.of(name)
    pair: list[Stmt] = [For(state.group, Dim.of(0), count, body, "map"), replace(alone, lo=count * LANES)]
    if worth.value is None:  # told by the extents of a call
        pair = [named(name, groups * worth, tuple(pair))]
    return pair, replace(given, buffers=(*given.buffers, *state.made))


def _with_blocks(loop: For, kernel: Kernel) -> tuple[For, Kernel, set[str]]:
    """With its long sums in blocks; and what these are added to."""
    blocks = InBlocks({b.name: b for b in kernel.buffers}, roots(kernel), Names.of(kernel))
    body = blocks.body(loop.body)
    if not blocks.made:
        return loop, kernel, set()
    new = replace(loop, body=body)
    buffers = (*kernel.buffers, *blocks.made)
    return new, replace(kernel, buffers=buffers, body=_in_place_of(loop, (new,), kernel.body)), blocks.wide


def _has_rows_beside(body: Body) -> bool:
    """Whether iterations of a map loop each have a recurrence and rows besides: those are vectors as they are, which
    lanes would pick from sixteen examples number by number."""
    for stmt in (s for s in body if isinstance(s, For) and s.kind == "map"):
        recurs = [any(map(is_recurrence, walk((s,)))) for s in stmt.body]
        rows = any(isinstance(s, For) and s.kind == "map" and not r for s, r in zip(stmt.body, recurs, strict=True))
        if (rows and any(recurs)) or _has_rows_beside(stmt.body):
            return True
    return False


def _opened(loop: For, recurrences: list[Stmt], names: Names) -> For:
    """With products of matrices as loops, if they go as far as the recurrences do."""
    extents = {s.hi - s.lo for s in walk(recurrences) if isinstance(s, For)}

    def opened(stmt: Stmt) -> Iterator[Stmt]:
        fits = isinstance(stmt, Product) and all(n in extents or (n.value or NARROW) < NARROW for _, n in stmt.axes)
        yield spelled_out(stmt, names) if fits else stmt  # type: ignore[arg-type]

    return replace(loop, body=map_stmts(loop.body, opened)) if has(loop.body, Product) else loop


def _grouped(
    kernel: Kernel, loop: For, recurrences: list[Stmt], mixed: bool, last: Dim | None
) -> tuple[Together, Body]:
    """The statements of a group, or none. `last`: see Alike."""
    state = Together(kernel, loop, last=last)
    state.lay_out(recurrences, mixed)
    if not state.possible():
        return state, ()
    inside = state.body(loop.body, None) if mixed else state.mostly_own(loop.body)
    whole = (*state.own(), *state.arrive(), *state.empty_stacks(), *inside, *state.leave())
    return state, rename_buffers(whole, state.same)


def _along_elements(
    nest: For, kernel: Kernel, batched: tuple[list[Stmt], Kernel] | None
) -> tuple[list[Stmt], Kernel] | None:
    """The nest with lanes along the loops over elements in it that have a `while` or a recurrence for each: neighbours
    in memory, where there are as many; else what `batched` is."""
    table = {b.name: b for b in kernel.buffers}
    found = list(_elements(nest, (), kernel))
    others: Body = (nest,) if batched is None else tuple(batched[0])
    kernel = kernel if batched is None else batched[1]
    if not found and (held := in_hand(nest, kernel)) is not None:
        nest, kernel = held
        table = {b.name: b for b in kernel.buffers}
        found = list(_elements(nest, (), kernel))
    if (
        not found
        or (batched is not None and found[0][0] is nest and not _is_along_memory(nest, table, 1))
        or sum(_recurrences(loop) for loop, _ in found) != _recurrences(nest)
    ):
        return None
    extents = {loop.hi for loop, _ in found}
    variables = {s.var for s in walk((nest,)) if isinstance(s, For)}
    if len(extents) > 1 or any(d.symbols() & variables or any(dim_loads(d)) for d in extents):
        return None
    (extent,) = extents
    if extent.value is not None and extent.value < LANES:
        return None
    terms = _terms((loop for loop, _ in found), kernel)
    if terms.symbols() & variables or (terms.value or 0) > MOST_TERMS:
        return None  # what a counter says is not known before its loop
    both = batched is not None and extent.value is None and found[0][0] is not nest
    if both or terms.value is None:
        apart = Together(kernel, nest)
        nest = apart.alone(nest)
        kernel = replace(kernel, buffers=(*kernel.buffers, *apart.made), body=(*others, nest))
        found = list(_elements(nest, (), kernel))
    body: Body = (nest,)
    for loop, around in found:
        groups: list[For] = []
        full = maximum(Dim.of(0), extent // MANY_LANES, Memory.of(kernel).facts)  # it may be less than none
        for lo, hi, count in ((Dim.of(0), full, None), (full, _up(extent, MANY_LANES), extent % MANY_LANES)):
            state = Together(kernel, loop, around, MANY_LANES, count)
            if not state.possible():
                return None
            inside = rename_buffers((*state.empty_stacks(), *state.body(loop.body, None)), state.same)
            groups += [For(state.group, lo, hi, inside, "map")] if lo != hi else []
            kernel = replace(kernel, buffers=(*kernel.buffers, *state.made))
        body = _in_place_of(loop, tuple(groups), body)
    asked = [Op("greater", (Int(extent), Const(LANES - 1, "i64")), "bool")] if both else []
    asked += [Op("less_equal", (Int(terms), Const(MOST_TERMS, "i64")), "bool")] if terms.value is None else []
    if asked:
        return [If(reduce(lambda a, b: Op("logical_and", (a, b), "bool"), asked), body, others)], kernel
    return list(body), kernel


def _up(extent: Dim, lanes: int) -> Dim:
    return (extent + (lanes - 1)) // lanes


def _elements(nest: For, around: tuple[For, ...], kernel: Kernel) -> Iterator[tuple[For, tuple[For, ...]]]:
    """The map loops inside a nest of them that have a `while` for each iteration, or a recurrence, or a row, along
    whose elements memory lies, and no map loop inside, but for those over what all of them ask; with those around."""
    inside = [s for s in walk(nest.body) if isinstance(s, For) and s.kind == "map"]
    table = {b.name: b for b in kernel.buffers}
    own = own_temporaries(kernel, nest) | _own_lists(nest, table) if inside else set()
    if all(_is_asked_by_all(s, nest, own, table) for s in inside) and nest.lo == Dim.of(0):
        rows = any(a.index and a.buffer in own for a in accesses(inside))
        apart = rows or any(is_recurrence(s) or asks_of_some(s) for s in nest.body)
        apart = apart and _is_along_memory(nest, table)
        if apart or any(isinstance(s, While) for s in nest.body):
            yield nest, around
    for stmt in nest.body:
        if isinstance(stmt, For) and stmt.kind == "map":
            yield from _elements(stmt, (*around, nest), kernel)


def _own_lists(nest: For, table: Mapping[str, Buffer]) -> set[str]:
    """Lists, which each iteration begins anew: whether they may have lanes `Alike.is_stack` asks."""
    return {a.buffer for a in accesses((nest,)) if table[a.buffer].kind == "list"}


def _is_asked_by_all(loop: For, nest: For, own: Collection[str], table: Mapping[str, Buffer]) -> bool:
    """Whether it reads, and adds to, memory that iterations of the nest share, or that lies beside what the iteration
    before has of it, and sets none but what is their `own`: numbers, and rows."""
    if _moves_a_row(loop, own):
        return True
    along = [a for a in accesses((loop,)) if any(loop.var in d.symbols() for d in a.index or ())]
    beside = {a for a in along if a.index and step(a.index, table[a.buffer].shape, nest.var) == 1}
    shared = not any(nest.var in d.symbols() for a in along if a not in beside for d in a.index or ())
    shared = shared and not any(
        any(dim_loads(d)) for a in along if table[a.buffer].kind != "list" for d in a.index or ()
    )
    alone = not any(isinstance(s, For) for s in walk(loop.body)) and not any(dim_loads(loop.hi))
    sets = any(a.mode not in ("r", "add") for a in along if a.buffer not in own)
    return alone and shared and nest.var not in loop.hi.symbols() and not sets


def _moves_a_row(loop: For, own: Collection[str]) -> bool:
    """Whether it does nothing but fetch a row, or leave one."""
    match loop.body:
        case (Store(buffer, index, Load(other, place), None),):
            if any(map(any, map(dim_loads, (*index, *place, loop.hi)))):
                return False
            return (buffer in own and index == (Dim.of(loop.var),)) or (other in own and place == (Dim.of(loop.var),))
    return False


def _terms(loops: Iterable[For], kernel: Kernel) -> Dim:
    """How many numbers at most a lane adds one by one to another in map loops inside these, or has of a row that is
    fetched, left, or on a list."""
    facts, table = Memory.of(kernel).facts, {b.name: b for b in kernel.buffers}
    counts = [
        s.hi - s.lo
        for loop in loops
        for s in walk(loop.body)
        if isinstance(s, For) and s.kind == "map" and any(_adds_or_moves(x, table) for x in s.body)
    ]
    most = Dim.of(0)
    for count in dict.fromkeys(counts):
        most = maximum(most, count, facts)
    return most


def _adds_or_moves(stmt: Stmt, table: Mapping[str, Buffer]) -> bool:
    if not isinstance(stmt, Store):
        return False
    moved = {stmt.buffer, stmt.value.buffer} if isinstance(stmt.value, Load) and stmt.op is None else set()
    return stmt.op == "add" or table[stmt.buffer].kind == "list" or any(table[n].kind in ("in", "out") for n in moved)


def _is_along_memory(loop: For, table: Mapping[str, Buffer], most: int = FEW_APART) -> bool:
    """Whether each iteration reads and writes beside the one before, wherever it does so in places of its own; what is
    done once may be some places further."""
    steps = [(step(i, table[n].shape, loop.var) or MANY_LANES, often) for n, i, often in _own_places(loop)]
    return bool(steps) and all(s == 1 or (not often and 0 < s <= most) for s, often in steps)


def _own_places(loop: For) -> Iterator[tuple[str, Index, bool]]:
    """Of an iteration, and whether each turn of a recurrence goes there."""
    for stmt in loop.body:
        for a in accesses((stmt,)):
            if a.index and any(loop.var in d.symbols() for d in a.index):
                yield a.buffer, a.index, is_recurrence(stmt)


def _in_place_of(loop: For, new: Body, body: Body) -> Body:
    return tuple(
        s for stmt in body for s in (new if stmt is loop else (map_bodies(stmt, partial(_in_place_of, loop, new)),))
    )


def _recurrences(nest: For) -> int:
    return sum(is_recurrence(s) for s in walk(nest.body))


def _worth(state: Together, exact: Collection[str]) -> Dim | None:
    """More than 0 where lanes are faster, and add as exactly, or to one of those; None where nothing is known."""
    alone, together = Dim.of(0), Dim.of(0)
    groups = (state.loop.hi + (LANES - FEWEST)) // LANES
    narrow = Dim.of(NARROW) - _flag(
        Dim.of(1) - groups
    )  # one group is one thread's: not where examples fill vectors on several
    try:
        counted = _ranges(walk(state.loop.body))
        own = [b for b in state.made if b.kind != "list" and not b.alias]
        room = sum((largest(product(b.shape), counted) * 8 for b in own), Dim.of(0))
        good = [_flag(MOST_BYTES - room)]
        for stmt, loops in _nested(state.loop.body):
            if loops and loops[-1].kind == "map" and _looks_up_rows(stmt, loops[-1].var, state.wide.keys()):
                return None
            facts = _ranges(loops)
            times = [Dim.of(1) if any(dim_loads(x.hi)) else largest(x.hi - x.lo, facts) for x in loops]
            effort = product(times) * work(stmt, state.table)
            in_map = bool(loops) and loops[-1].kind == "map"
            short = not in_map or (times[-1].value or NARROW) < NARROW
            few = Dim.of(1) if short else _flag(narrow - times[-1])  # iterations: no vector's worth
            alone, together = alone + effort * few, together + effort * (Dim.of(1) - few)
            if stmt.op in ("add", "mul"):
                used = set().union(*(d.symbols() for d in stmt.index)) if stmt.index else set()
                maps = takewhile(partial(_goes_on, stmt), zip(loops[::-1], times[::-1]))
                terms = [t for loop, t in maps if loop.var not in used]  # others are added one by one anyway
                good.append(_flag((MOST_BLOCKS if stmt.buffer in exact else MOST_TERMS) - product(terms)))
    except ValueError:
        return None
    if alone.terms:
        # A group does as much for few as for sixteen, and on one thread: it pays with the square of how many there are.
        some = minimum(state.loop.hi, Dim.of(LANES))
        good.append(_flag(alone * MAP_SHARE * some * some - together * (LANES * LANES)))
    told = product(dict.fromkeys(good))
    inside = {state.loop.var, *(s.var for s in walk(state.loop.body) if isinstance(s, For))}
    return None if told.symbols() & inside else told


def _goes_on(add: Store, known: tuple[For, Dim]) -> bool:
    """Whether a loop is a map whose iterations add to one number, which does not begin anew in each."""
    loop, _ = known
    begun = (s for s in loop.body if isinstance(s, Store) and not s.op)
    return loop.kind == "map" and not any((s.buffer, s.index) == (add.buffer, add.index) for s in begun)


def _ranges(body: Iterable[Stmt]) -> dict[str, tuple[Dim, Dim]]:
    """How far the counters of loops go at most, the outer ones first."""
    facts: dict[str, tuple[Dim, Dim]] = {}
    for loop in (s for s in body if isinstance(s, For) and not any(dim_loads(s.hi))):
        facts[loop.var] = (largest(loop.lo, facts), largest(loop.hi - 1, facts))
    return facts


def _looks_up_rows(stmt: Store, var: str, private: Collection[str]) -> bool:
    """Whether the loop goes along rows that numbers in memory name: of sixteen examples it would go along sixteen, all
    over an array. (Of one that is private they lie side by side.)"""
    places = [index for name, index, _ in own_accesses(stmt) if index and name not in private]
    return any(
        any(dim_loads(d) for d in p if var not in d.symbols()) and any(var in d.symbols() for d in p) for p in places
    )


def _nested(body: Body, loops: tuple[For, ...] = ()) -> Iterator[tuple[Store, tuple[For, ...]]]:
    """Every store, with the loops around it."""
    for stmt in body:
        if isinstance(stmt, Store):
            yield stmt, loops
        for inner in bodies(stmt):
            yield from _nested(inner, (*loops, stmt) if isinstance(stmt, For) else loops)


def _flag(dim: Dim) -> Dim:
    """1 where it is 0 or more, else 0."""
    return minimum(Dim.of(1), maximum(Dim.of(0), dim + 1))
