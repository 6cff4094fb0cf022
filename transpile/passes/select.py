"""What two cheap branches store in the same numbers is chosen between, so that a loop has no branch in it.

    if e <= delta: term = 0.5 * e * e                        term = where(e <= delta, 0.5 * e * e, delta * (e - h))
    else: t = e - h; term = delta * t              ->        total += term
    total += term

A number that only one way has is told where that asks for it. Only what does no harm where nobody asked for it: numbers
of arithmetic, of places that are in range for sure. Asked by `free`, of loops whose iterations are independent by it:
others keep their branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import replace
from functools import partial

from ..ir import FLOATS, Buffer, Check, Expr, For, If, Kernel, Load, Op, Stmt, Store, While
from ..operations import flops
from .depend import Memory
from .predicate import INTEGERS, harmless, masked
from .share import dtype_of
from .tree import Body, accesses, buffers, dim_loads, has, loads, map_all, map_bodies, map_expr, parts, written
from .work import effort

MOST_ADDED = 100  # flops of what a branch adds: a few functions, which lanes that did not ask for them compute, too
MOST_INNERMOST = 400  # ... where that makes vectors of a loop, of which sixteen are computed in the time of one or two
DEAR = 8  # of one operation, and of a number that is told where it is asked for: a quotient, an exponential

_Values = dict[str, Expr]


def selected(body: Body, memory: Memory, uses: Counter[str]) -> Body:
    """The body of a loop with choices in place of branches where that is so. `uses`: accesses of each buffer in the
    kernel."""
    most = MOST_ADDED if has(body, For, While) else MOST_INNERMOST
    return tuple(new for stmt in body for new in _stmt(stmt, memory, uses, most))


def select(kernel: Kernel) -> Kernel:
    """What a branch of an innermost loop adds is chosen, or nothing; what it stores, or what is there: what it reads is
    then read anyway, in vectors."""
    return replace(kernel, body=_innermost(kernel.body, Memory.of(kernel), buffers(kernel)))


def _innermost(body: Body, memory: Memory, table: dict[str, Buffer], safe: frozenset[str] = frozenset()) -> Body:
    found: list[Stmt] = []
    for stmt in body:
        found.append(_of_loop(stmt, memory, table, safe))
        safe = safe | _places(stmt)
    return tuple(found)


def _places(stmt: Stmt) -> set[str]:
    """at = where(k < 0, k + n, k): a place that has been asked for, of which it is known by now that it is one."""
    match stmt:
        case Store(name, (), Op("where", (Op("less", (k, _), _), Op("add", (again, _), _), same), "i64"), None):
            return {name} if k == again == same else set()
    return set()


def _of_loop(stmt: Stmt, memory: Memory, table: dict[str, Buffer], safe: frozenset[str]) -> Stmt:
    inside = memory.inside(stmt) if isinstance(stmt, For) else memory
    if isinstance(stmt, For) and stmt.kind == "map" and not has(stmt.body, For, While, Check):
        body: list[Stmt] = []
        for s in stmt.body:
            begun = frozenset(s.buffer for s in body if isinstance(s, Store) and not s.index)
            body += masked_adds(s, inside, table, safe, begun, MOST_INNERMOST)
        return replace(stmt, body=tuple(body))
    return map_bodies(stmt, lambda inner: _innermost(inner, inside, table, safe))


def _may_be_masked(store: Store, begun: frozenset[str] = frozenset()) -> bool:
    """`begun`: numbers that each iteration has by now."""
    return store.op in ("add", "max", "min") or (not store.op and (bool(store.index) or store.buffer in begun))


def masked_adds(
    stmt: Stmt,
    memory: Memory,
    table: dict[str, Buffer],
    safe: frozenset[str],
    begun: frozenset[str],
    most: int = MOST_ADDED,
) -> Iterable[Stmt]:
    """if c: s += a; z[i] = b    ->    s += where(c, a, 0); z[i] = where(c, b, z[i])"""
    if not isinstance(stmt, If):
        return (stmt,)
    then, orelse = (
        tuple(new for s in way for new in masked_adds(s, memory, table, safe, begun, most))
        for way in (stmt.then, stmt.orelse)
    )
    stmt = replace(stmt, then=then, orelse=orelse)
    ways = [(s, stmt.cond) for s in then] + [(s, Op("logical_not", (stmt.cond,), "bool")) for s in orelse]
    added = [s for s, _ in ways if isinstance(s, Store) and _may_be_masked(s, begun)]
    added = [s for s in added if table[s.buffer].dtype in FLOATS]
    places = [Load(s.buffer, s.index, table[s.buffer].dtype) for s in added if s.index]
    if len(added) < len(ways) or sum(effort(s.value) for s in added) > most:
        return (stmt,)
    if len(added) > 1 and {memory.root[s.buffer] for s in added} & {memory.root[e.buffer] for e in loads(stmt.cond)}:
        return (stmt,)
    if not all(harmless(e, memory, safe=safe) for e in (stmt.cond, *places, *(s.value for s in added))):
        return (stmt,)
    return tuple(masked(s, cond, table) for s, cond in ways if isinstance(s, Store))


def _stmt(stmt: Stmt, memory: Memory, uses: Counter[str], most: int) -> Body:
    own = Counter(a.buffer for a in accesses((stmt,)))
    limit = most if isinstance(stmt, If) else MOST_ADDED
    stmt = map_bodies(stmt, lambda inner: tuple(new for s in inner for new in _stmt(s, memory, uses, limit)))
    if not isinstance(stmt, If):
        return (stmt,)
    left = Counter(a.buffer for a in accesses((stmt,)))
    only = {n: left[n] for n in own if uses[n] == own[n] and memory.root[n] == n}
    then, orelse = (_told_where_used(way, memory, only) for way in (stmt.then, stmt.orelse))
    stmt = replace(stmt, then=then, orelse=orelse)
    local = {name for name in own if uses[name] <= own[name]}
    chosen = _chosen(stmt, memory, local, most) or _chosen_before(stmt, memory, most)
    if chosen is not None or all(map(_is_number, (*then, *orelse))):
        return chosen or (stmt,)
    return _numbers_before(stmt, memory, only, most)


def _is_number(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and not stmt.index and not stmt.op


def _chosen(stmt: If, memory: Memory, local: Container[str], most: int) -> Body | None:
    """Choices in place of a branch that only has numbers: those that one way has for itself stand before it. `local`:
    those that nothing else asks for."""
    both = written(stmt.then) & written(stmt.orelse)
    way, other = (_numbers(body, both, memory, most) for body in (stmt.then, stmt.orelse))
    if not both or way is None or other is None:
        return None
    (first, found), (second, others) = way, other
    own = (*first, *second)
    if any(s.buffer not in local for s in own):
        return None
    asked = [_asked((*(s.value for s in made), *told.values())) for made, told in (way, other)]
    if asked[0] & written(second) or asked[1] & written(first) or _asked((stmt.cond,)) & (both | written(own)):
        return None  # what another iteration has left
    if _asked((*found.values(), *others.values())) & both:
        return None
    values = [*(s.value for s in own), *found.values(), *others.values()]
    if any(map(_is_dear, values)) and effort(*values) > most:
        return None
    pairs = [(found[n], others[n]) for n in found]
    if any(dtype_of(a) != dtype_of(b) for a, b in pairs):
        return None
    chosen = (Op("where", (stmt.cond, *p), dtype_of(p[0])) for p in pairs)
    return (*own, *(Store(n, (), value) for n, value in zip(found, chosen, strict=True)))


def _asked(values: Iterable[Expr]) -> set[str]:
    return {e.buffer for value in values for e in loads(value)}


def _chosen_before(stmt: If, memory: Memory, most: int) -> Body | None:
    """if c: n = v; else: n = w; s += w    ->    n = where(c, v, w); if not c: s += w"""
    adds = tuple(tuple(s for s in way if _only_adds(s)) for way in (stmt.then, stmt.orelse))
    numbers = tuple(tuple(s for s in way if not _only_adds(s)) for way in (stmt.then, stmt.orelse))
    if not any(adds) or not all(numbers):
        return None
    made, changed = written((*numbers[0], *numbers[1])), {memory.root[n] for way in adds for n in written(way)}
    asked = {memory.root[a.buffer] for way in numbers for a in accesses(way) if a.mode == "r"}
    if changed & asked or made & {a.buffer for way in adds for a in accesses(way)}:
        return None
    chosen = _chosen(replace(stmt, then=numbers[0], orelse=numbers[1]), memory, (), most)
    return (*chosen, replace(stmt, then=adds[0], orelse=adds[1])) if chosen is not None else None


def _numbers_before(stmt: If, memory: Memory, only: Container[str], most: int) -> Body:
    """if c: n = v; s += n; z[i] = -n    ->    n = v; if c: s += n; z[i] = -n

    Where the ways do nothing else than to add and to store, so that they may be masked (`select`)."""
    numbers: list[Store] = []
    added: tuple[list[Stmt], list[Stmt]] = [], []
    for way, adds in zip((stmt.then, stmt.orelse), added, strict=True):
        for s in way:
            if _only_adds(s):
                adds.append(s)
                continue
            changed = {memory.root[name] for name in written(adds)}
            if not isinstance(s, Store) or s.buffer not in only:
                return (stmt,)
            if changed & {memory.root[e.buffer] for e in loads(s.value)}:
                return (stmt,)
            numbers.append(s)
    if len({s.buffer for s in numbers}) < len(numbers) or sum(effort(s.value) for s in numbers) > most:
        return (stmt,)
    if not all(dtype_of(s.value) not in INTEGERS and harmless(s.value, memory) for s in numbers):
        return (stmt,)
    return (*numbers, replace(stmt, then=tuple(added[0]), orelse=tuple(added[1])))


def _only_adds(stmt: Stmt) -> bool:
    if isinstance(stmt, If):
        return all(_only_adds(s) for s in (*stmt.then, *stmt.orelse))
    return isinstance(stmt, Store) and _may_be_masked(stmt)


def _told_where_used(body: Body, memory: Memory, only: dict[str, int]) -> Body:
    """A branch without cheap numbers of its own: what they are stands where they are asked for. `only`: how often the
    two ways use what nothing else does."""
    for k, stmt in enumerate(body):
        if not isinstance(stmt, Store) or stmt.index or stmt.op or dtype_of(stmt.value) in INTEGERS:
            continue  # places may be told of a whole number
        rest, name = body[k + 1 :], stmt.buffer
        asked = sum(a.buffer == name for a in accesses(rest))
        changed = {memory.root[n] for n in written(rest)}
        if asked + 1 == only.get(name) and not changed & {name, *(memory.root[e.buffer] for e in loads(stmt.value))}:
            if effort(stmt.value) < DEAR:
                told: _Values = {name: stmt.value}
                rest = map_all(rest, partial(_told, found=told))
                return (*body[:k], *_told_where_used(rest, memory, only))
    return body


def _numbers(body: Body, both: set[str], memory: Memory, most: int) -> tuple[list[Store], _Values] | None:
    """What a branch has for itself, and what it leaves in the numbers that `both` ways set, told by what was there
    before; None: where it does anything else, or much."""
    own: list[Store] = []
    found: _Values = {}
    asked: set[str] = set()
    for stmt in body:
        if not isinstance(stmt, Store) or stmt.index or stmt.op or not harmless(stmt.value, memory):
            return None
        if any(e.buffer in found for part in loads(stmt.value) for d in part.index for e in dim_loads(d)):
            return None
        value = map_expr(stmt.value, lambda e: _told(e, found))
        if effort(value) > most:
            return None
        asked |= {e.buffer for e in loads(value)}
        if stmt.buffer in both:
            found[stmt.buffer] = value
        elif stmt.buffer in asked or any(s.buffer == stmt.buffer for s in own):
            return None  # it is another one by then
        else:
            own.append(replace(stmt, value=value))
    return own, found


def _told(expr: Expr, found: _Values) -> Expr:
    return found[expr.buffer] if isinstance(expr, Load) and not expr.index and expr.buffer in found else expr


def _is_dear(value: Expr) -> bool:
    return any(isinstance(p, Op) and flops(p.op) >= DEAR for p in parts(value))
