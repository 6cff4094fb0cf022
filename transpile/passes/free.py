"""Finds user loops whose iterations are independent: `seq` becomes `map`.

    for i in 0..N seq: y[i] = f(x[i])    ->    for i in 0..N map: y[i] = f(x[i])
    for i in 0..N seq: s = s + x[i]      ->    for i in 0..N map: s += x[i]
    t = s + x[i]; ...; s = t + z[i]      ->    s += x[i]; ...; s += z[i]

Two iterations are independent if what one writes the other does not touch. Accumulation with one operation
does not count: it commutes (up to rounding). Nor does a temporary of the loop that each iteration stores
before it reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ..dims import ANY, Dim
from ..ir import FLOATS, Buffer, Const, Expr, For, If, Int, Kernel, Load, Op, Stmt, Store, While
from .alike import asks_of_some
from .contract import stored_first
from .depend import Memory, conflict, directions, elsewhere
from .select import selected
from .share import dtype_of
from .strips import set_first
from .tree import (
    Access,
    Body,
    accesses,
    buffers,
    dim_loads,
    has,
    loads,
    map_all,
    map_bodies,
    map_expr,
    roots,
    substitute,
    touched,
    written,
)

_ACCUMULATE = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}


def free(kernel: Kernel) -> Kernel:
    uses = Counter(a.buffer for a in accesses(kernel.body))
    between = {b.name for b in kernel.buffers if b.kind == "temp" and not b.shape and uses[b.name] == 2}
    root = roots(kernel)
    between -= {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    kernel = replace(kernel, body=accumulations(kernel.body, between, root))
    kernel = replace(kernel, body=_body(kernel.body, kernel, Memory.of(kernel)))
    return replace(kernel, body=_of_elements(kernel.body, kernel, Memory.of(kernel)))


def accumulations(body: Body, between: set[str], root: Mapping[str, str]) -> Body:
    body = tuple(map_bodies(s, lambda inner: accumulations(inner, between, root)) for s in body)
    for k, stmt in enumerate(body):
        if isinstance(stmt, Store) and stmt.buffer in between and not stmt.op:
            body = _in_one_place(body, k, stmt, root)
    return tuple(_extreme(_accumulation(s)) for s in body)


def _in_one_place(body: Body, k: int, first: Store, root: Mapping[str, str]) -> Body:
    """The body, where its k-th statement stores s + v in a temporary that only a later one reads, which stores that and
    more in s: with s in its place."""
    m = next((m for m in range(k + 1, len(body)) if first.buffer in touched(body[m : m + 1])), None)
    last = body[m] if m is not None else None
    if m is None or not isinstance(last, Store) or any(any(dim_loads(d)) for d in last.index):
        return body  # a place that is read from memory may be another one by then
    if root[last.buffer] in {root[name] for name in touched(body[k + 1 : m])}:
        return body
    one = _accumulation(replace(first, buffer=last.buffer, index=last.index))
    other = _accumulation(replace(last, value=map_expr(last.value, partial(_instead, first, last))))
    if isinstance(one, Store) and isinstance(other, Store) and one.op and one.op == other.op:
        return (*body[:k], one, *body[k + 1 : m], other, *body[m + 1 :])
    return body


def _instead(first: Store, last: Store, e: Expr) -> Expr:
    return Load(last.buffer, last.index, e.dtype) if isinstance(e, Load) and e.buffer == first.buffer else e


def _accumulation(stmt: Stmt) -> Stmt:
    """s = s + v    ->    s += v"""
    match stmt:
        case Store(buffer, index, Op(op, (a, b), _), None) if op in _ACCUMULATE:
            for old, value in ((a, b), (b, a)):
                if _is(old, buffer, index) and not any(x.buffer == buffer for x in loads(value)):
                    return Store(buffer, index, value, _ACCUMULATE[op])
        case Store(buffer, index, Op("subtract", (a, value), dtype), None) if dtype in ("real", "f32", "f64"):
            if _is(a, buffer, index) and not any(x.buffer == buffer for x in loads(value)):
                return Store(buffer, index, Op("negative", (value,), dtype), "add")
    return stmt


def _extreme(stmt: Stmt) -> Stmt:
    """if x[i] > m: m = x[i]    ->    m max= x[i]; a NaN is not greater than any number, and left out. Of what is worked
    out for each step, which others may do side by side, nothing is added up in a row."""
    match stmt:
        case If(Op(op, (a, b)), (Store(m, (), value, None),), ()) if op in _LARGER:
            kind, other = _LARGER[op], a if _is(b, m, ()) else b
            if not _is(a if other is b else b, m, ()) or other != value or any(e.buffer == m for e in loads(value)):
                return stmt
            if (dtype := dtype_of(value)) not in FLOATS or not (isinstance(value, Load) and value.index):
                return stmt
            if other is b:  # m < v
                kind = "min" if kind == "max" else "max"
            name, none = ("above", -math.inf) if kind == "max" else ("below", math.inf)
            return Store(m, (), Op(name, (value, Const(none, dtype)), dtype), kind)
    return stmt


_LARGER = {"greater": "max", "greater_equal": "max", "less": "min", "less_equal": "min"}


def _is(expr: Expr, buffer: str, index: tuple[Dim, ...]) -> bool:
    return isinstance(expr, Load) and (expr.buffer, expr.index) == (buffer, index)


def _body(body: Body, kernel: Kernel, memory: Memory) -> Body:
    return tuple(_stmt(s, kernel, memory) for s in body)


def _stmt(stmt: Stmt, kernel: Kernel, memory: Memory) -> Stmt:
    if not isinstance(stmt, For):
        return map_bodies(stmt, lambda inner: _body(inner, kernel, memory))
    inside = memory.inside(stmt)
    found = replace(stmt, body=_body(stmt.body, kernel, inside))
    if stmt.kind != "seq":
        return found
    tries = [(found, False)]
    if has(found.body, If):  # without branches, where that can be
        tries += [(_with_choices(found, kernel, inside), False), (found, True)]
    ways = [(tried, of_branches, False) for tried, of_branches in tries]
    if has(found.body, If) and has(found.body, While):
        ways.append((found, True, True))
    if has(found.body, If) and any(isinstance(s, For) for s in found.body) and _gives_to_neighbours(found.body):
        ways.append((_with_rows(found, stmt, kernel, inside), True, True))
    for tried, of_branches, each_way in ways:
        if independent_iterations(tried, kernel, inside, stmt, of_branches, each_way):
            return forwards(replace(tried, kind="map"))
    return found


def _with_rows(loop: For, was: For, kernel: Kernel, memory: Memory) -> For:
    """A loop over a grid, with loops along its rows whose iterations have numbers that each way of a branch sets. (A
    row of a recurrence keeps its order: examples have lanes there.)"""

    def row(stmt: Stmt, was: Stmt) -> Stmt:
        if not (isinstance(stmt, For) and isinstance(was, For) and stmt.kind == "seq"):
            return stmt
        free = independent_iterations(stmt, kernel, memory.inside(stmt), was, True, True)
        return forwards(replace(stmt, kind="map")) if free else stmt

    return replace(loop, body=tuple(map(row, loop.body, was.body)))


def _gives_to_neighbours(body: Body) -> bool:
    """Whether iterations add to several places of one array, which then take what they are given (`gathered`)."""
    places = {(a.buffer, a.index) for a in accesses(body) if a.mode == "add" and a.index}
    return any(n > 1 for n in Counter(name for name, _ in places).values())


def _of_elements(body: Body, kernel: Kernel, memory: Memory) -> Body:
    """Loops that ask something of some elements only: outside of recurrences, these have their lanes."""
    found = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.kind == "seq" and any(map(asks_of_some, stmt.body)):
            if independent_iterations(stmt, kernel, memory.inside(stmt), stmt, True, True):
                stmt = forwards(replace(stmt, kind="map"))
        if isinstance(stmt, For) and stmt.kind == "map":
            stmt = replace(stmt, body=_of_elements(stmt.body, kernel, memory.inside(stmt)))
        found.append(stmt)
    return tuple(found)


def _with_choices(loop: For, kernel: Kernel, memory: Memory) -> For:
    uses = Counter(a.buffer for a in accesses(kernel.body))
    uses.update(b.name for b in kernel.buffers if b.kind not in ("temp", "list"))  # the caller's
    return replace(loop, body=selected(loop.body, memory, uses))


def forwards(loop: For) -> For:
    """`reversed(range(n))` may as well be `range(n)`: along memory, not against it."""
    steps = [d.split(loop.var) for a in accesses(loop.body) for d in a.index or () if loop.var in d.symbols()]
    backwards = sum(1 if step.value < 0 else -1 for step, _ in filter(None, steps) if step.value)
    if backwards <= 0:
        return loop
    return replace(loop, body=substitute(loop.body, {loop.var: loop.lo + loop.hi - 1 - Dim.of(loop.var)}))


def independent_iterations(
    loop: For, kernel: Kernel, memory: Memory, was: For, of_branches: bool, each_way: bool = False
) -> bool:
    """`was`: what the loop is in the kernel, before what is inside changed. `of_branches`: whether a variable that only
    one way of a branch knows of is an iteration's own; `each_way`: or one that each way sets."""
    table, private = buffers(kernel), set[str]()
    outside = Counter(a.buffer for a in accesses(kernel.body))
    outside.subtract(a.buffer for a in accesses(was.body))
    loop, memory = _with_known(loop, memory)
    first: dict[str, set[Access]] = {}
    for a in accesses(loop.body):
        if a.buffer not in private and _is_private(table[a.buffer], loop, table, outside, (of_branches, each_way)):
            private.add(a.buffer)
        if a.buffer not in private:
            first.setdefault(memory.root[a.buffer], set()).add(a)
    for b in {elsewhere(a) for a in accesses(loop.body)}:
        for a in first.get(memory.root[b.buffer], ()):
            if b.buffer not in private and conflict(a, b) and not directions(a, b, loop.var, memory) <= {0}:
                return False
    return True


def _with_known(loop: For, memory: Memory) -> tuple[For, Memory]:
    """The loop with names for integers that were computed before it: its iterations know the same, in places, too."""
    changed = {memory.root[name] for name in written((loop,))}
    found: dict[str, tuple[Dim, Dim]] = {}

    def known(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.index or e.dtype != "i64" or memory.root[e.buffer] in changed:
            return e
        found[f"{e.buffer}'"] = ANY
        return Int(Dim.of(f"{e.buffer}'"))

    loop = replace(loop, body=map_all(loop.body, known))
    return loop, replace(memory, facts={**memory.facts, **found})


def _is_private(
    buffer: Buffer, loop: For, table: Mapping[str, Buffer], outside: Counter[str], ways: tuple[bool, bool]
) -> bool:
    """Whether each iteration makes it anew. A list is what its length says: one that begins empty begins anew."""
    if buffer.kind == "list":
        lengths = [table[load.buffer] for load in dim_loads(buffer.shape[0])]
        begun = all(_is_private(length, loop, table, outside, ways) for length in lengths)
    else:
        whole, inside = loop.body, _inside(loop.body, buffer.name)
        begun = buffer.kind == "temp" and any(_is_begun(body, buffer, *ways) for body in (whole, inside))
    return begun and not outside[buffer.name]


def _is_begun(body: Body, buffer: Buffer, of_branches: bool, each_way: bool) -> bool:
    """Whether whoever goes through the body stores it before he reads it."""
    around = _around(body, buffer.name)
    return (
        stored_first(around, buffer, set())
        or (of_branches and _is_of_a_branch(around, buffer))
        or ((around is not body or each_way) and _on_each_way(around, buffer))
    )


def _on_each_way(body: Body, buffer: Buffer) -> bool:
    """Whether the first branch of a turn that touches it stores it first, on each way that leads to where it is read.
    (Of a `while`, which goes element by element anyway, and where branches ask: others have lanes across examples.)"""
    touching = [s for s in body if any(a.buffer == buffer.name for a in accesses((s,)))]
    match touching:
        case [If(cond, then, orelse), *others] if not any(e.buffer == buffer.name for e in loads(cond)):
            ways = [w for w in (then, orelse) if any(a.buffer == buffer.name for a in accesses(w))]
            each = (stored_first(w, buffer, set()) or _on_each_way(w, buffer) for w in ways)
            return (len(ways) == 2 or not others) and all(each)
    return False


def _is_of_a_branch(body: Body, buffer: Buffer) -> bool:
    """Whether one way of one branch, in whatever loops, is all that knows of a variable or array, and sets it first."""
    name = buffer.name
    touching = [s for s in body if any(a.buffer == name for a in accesses((s,)))]
    match touching:
        case [For(body=inner)]:
            return _is_of_a_branch(inner, buffer)
        case [If(cond, then, orelse)] if not any(e.buffer == name for e in loads(cond)):
            ways = [w for w in (then, orelse) if any(a.buffer == name for a in accesses(w))]
            if len(ways) > 1:
                return False
            if buffer.shape:
                return stored_first(ways[0], buffer, set())
            own = _around(ways[0], name)  # what a `while` in it makes anew in each turn, too
            return set_first(name, ways[0]) or (own is not ways[0] and _is_begun(own, buffer, True, True))
    return False


def _inside(body: Body, name: str) -> Body:
    """The body, or that of the one loop in it that knows of the buffer: what each of its turns makes anew, each turn
    around it does."""
    touching = [s for s in body if name in touched((s,))]
    match touching:
        case [For(lo=lo, hi=hi, body=inner)] if not any(e.buffer == name for d in (lo, hi) for e in dim_loads(d)):
            return _inside(inner, name)
    return body


def _around(body: Body, name: str) -> Body:
    """The body, or what is inside the `while` in it that alone knows of the buffer, and of loops in that."""
    touching = [s for s in body if any(a.buffer == name for a in accesses((s,)))]
    match touching:
        case [While(before, cond, inside)] if name not in {a.buffer for a in accesses((While(before, cond, ()),))}:
            inner = _around(inside, name)
            return _inside(inner, name) if inner is inside else inner
    return body
