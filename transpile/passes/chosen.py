"""What two ways compute alike is computed once, of an argument that is chosen.

    if x >= 0: z = exp(-x)                          z = exp(where(x >= 0, -x, x))
    else: z = exp(x)                    ->          y = where(x >= 0, 1, z) / (1 + z)
    if x >= 0: y = 1 / (1 + z)
    else: y = z / (1 + z)

So of `where(c, f(a), f(b))`, where all would compute both. Only of what is dear: a quotient, an exponential.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..ir import FLOATS, Cast, Check, Comment, Const, Expr, For, If, Kernel, Load, Op, Stmt, Store, While
from ..node import remembered
from ..operations import flops
from .depend import Memory
from .predicate import harmless
from .share import dtype_of
from .tree import (
    Body,
    accesses,
    has,
    loads,
    map_all,
    map_bodies,
    map_expr,
    map_stmts,
    own_exprs,
    parts,
)

DEAR = 8  # flops of one operation
MOST = 8  # that are made one, of two ways
MOST_PARTS = 1000  # of what a store is told to store: what is told twice doubles with each store
MOST_PAIRS = 400  # of dear operations that are compared


def chosen(kernel: Kernel) -> Kernel:
    uses = Counter(a.buffer for a in accesses(kernel.body))
    own = {b.name for b in kernel.buffers if b.kind == "temp" and not b.alias}
    own -= {b.alias for b in kernel.buffers if b.alias}
    body = map_all(map_all(kernel.body, _one_where), _made_once)
    body = _body(body, Memory.of(kernel), {n: uses[n] for n in own})
    return kernel if body == kernel.body else replace(kernel, body=_asked_for(body, own))


def _asked_for(body: Body, own: set[str]) -> Body:
    """Without stores that nobody reads any more."""
    idle = own & {a.buffer for a in accesses(body)} - {a.buffer for a in accesses(body) if a.mode == "r"}
    if not idle:
        return body
    rest = map_stmts(body, lambda s: () if isinstance(s, Store) and s.buffer in idle else (s,))
    return body if rest == body else _asked_for(rest, own)


def _of_expr(expr: Expr) -> Expr:
    return map_expr(map_expr(expr, _one_where), _made_once)


def _one_where(expr: Expr) -> Expr:
    """where(c, a, 0) + where(c, 0, b)    ->    where(c, a, b)"""
    match expr:
        case Op("add", (Op("where", (c, a, b)), Op("where", (same, a2, b2))), dtype) if c == same and dtype in FLOATS:
            a, b = _sum(a, a2, dtype), _sum(b, b2, dtype)
            return Op("where", (c, a, b), dtype) if _dear(a) and _dear(b) else expr
    return expr


def _made_once(expr: Expr) -> Expr:
    match expr:
        case Op("where", (c, a, b), dtype) if dtype in FLOATS and (one := _one(c, a, b)) is not None:
            return one
    return expr


def _sum(a: Expr, b: Expr, dtype: str) -> Expr:
    zeros = [isinstance(e, Const) and e.value == 0 for e in (a, b)]
    return b if zeros[0] else a if zeros[1] else Op("add", (a, b), dtype)


def _body(body: Body, memory: Memory, own: Mapping[str, int]) -> Body:
    """`own`: temporaries, and how often they are used."""
    return tuple(new for stmt in body for new in _stmt(stmt, memory, own))


def _stmt(stmt: Stmt, memory: Memory, own: Mapping[str, int]) -> Body:
    match stmt:
        case For(kind="map") if not has(stmt.body, For, While, Check, If):
            return (replace(stmt, body=_all_told(stmt.body, memory, own)),)
        case For():
            return (replace(stmt, body=_body(stmt.body, memory.inside(stmt), own)),)
        case If():
            ways = map_bodies(stmt, lambda inner: _body(inner, memory, own))
            assert isinstance(ways, If)
            return _one_way(ways, memory, own)
    return (map_bodies(stmt, lambda inner: _body(inner, memory, own)),)


def _all_told(body: Body, memory: Memory, own: Mapping[str, int]) -> Body:
    """The body of a loop, where what is chosen is told by what was stored before, if less is dear then."""
    if not any(isinstance(p, Op) and p.op == "where" for s in body for e in own_exprs(s) for p in parts(e)):
        return body
    told = _told(body, memory, own)
    if told is None:
        return body
    found = [_of_expr(e) for e in told]
    stores = [s for s in body if isinstance(s, Store)]
    changed = [s if old == new else replace(s, value=new) for s, old, new in zip(stores, told, found, strict=True)]
    here = Counter(a.buffer for a in accesses(body))
    alive = _alive(changed, {n for n in here if own.get(n) == here[n]})
    before = {d for e in told for d in _dear(e)}
    after = {d for e, yes in zip(found, alive, strict=True) if yes for d in _dear(e)}
    return tuple(changed) if len(after) < len(before) else body


def _alive(stores: Sequence[Store], inside: set[str]) -> list[bool]:
    """Of each store whether somebody reads it: nobody else knows of those inside."""
    asked: set[str] = set()
    found: list[bool] = []
    for s in reversed(stores):
        found.append(s.buffer not in inside or s.buffer in asked)
        asked |= {e.buffer for e in loads(s.value)} if found[-1] else set()
    return found[::-1]


def _told(body: Body, memory: Memory, own: Iterable[str]) -> list[Expr] | None:
    """What each of some stores stores, told by what was there before them. None where there are other statements, or
    that is too long."""
    known: dict[Expr, Expr] = {}
    found: list[Expr] = []
    for s in body:
        if isinstance(s, Comment):
            continue
        if not isinstance(s, Store):
            return None
        value = map_expr(s.value, partial(_instead, known))
        if len(parts(value)) > MOST_PARTS:
            return None
        root = memory.root[s.buffer]
        known = {
            place: e
            for place, e in known.items()
            if root not in {memory.root[load.buffer] for load in (*loads(place), *loads(e))}
        }
        if s.buffer in own and not s.op and not any(load.buffer == s.buffer for load in loads(value)):
            known[Load(s.buffer, s.index, dtype_of(value))] = value
        found.append(value)
    return found


def _instead(known: Mapping[Expr, Expr], expr: Expr) -> Expr:
    return known.get(expr, expr)


def _one_way(stmt: If, memory: Memory, own: Mapping[str, int]) -> Body:
    """if c: s = f(a) else: s = f(b)    ->    s = f(where(c, a, b))"""
    here = Counter(a.buffer for a in accesses((stmt,)))
    inside = {n for n in here if own.get(n) == here[n]}
    then, orelse = _left(stmt.then, memory, inside), _left(stmt.orelse, memory, inside)
    if then is None or orelse is None or len(then) != len(orelse):
        return (stmt,)
    found: list[Store] = []
    made = False
    for a, b in zip(then, orelse, strict=True):
        if replace(a, value=b.value) != b or not dtype_of(a.value) == dtype_of(b.value) in FLOATS:
            return (stmt,)
        one = _one(stmt.cond, a.value, b.value)
        made = made or one is not None
        found.append(replace(a, value=_leaf(stmt.cond, a.value, b.value) if one is None else one))
    costs = [_cost(*(s.value for s in way)) for way in (then, orelse, found)]
    if not made or 4 * costs[2] > 5 * max(costs[:2]) + 16:
        return (stmt,)
    targets = {memory.root[s.buffer] for s in found}
    if len(found) > 1 and targets & {memory.root[e.buffer] for e in loads(stmt.cond)}:
        return (stmt,)
    return tuple(found) if all(harmless(s.value, memory) for s in (*then, *orelse)) else (stmt,)


def _left(way: Body, memory: Memory, inside: set[str]) -> list[Store] | None:
    """What a way stores for others, told by what was there before."""
    values = _told(way, memory, inside)
    if values is None:
        return None
    stores = [replace(s, value=e) for s, e in zip((s for s in way if isinstance(s, Store)), values, strict=True)]
    if any(e.buffer in inside for s in stores if s.buffer not in inside for e in loads(s.value)):
        return None
    left = [s for s in stores if s.buffer not in inside]
    targets = {memory.root[s.buffer] for s in left[:-1]}
    return None if targets & {memory.root[e.buffer] for s in left[1:] for e in loads(s.value)} else left


def _one(cond: Expr, a: Expr, b: Expr) -> Expr | None:
    """The choice, with what is dear in both made once; None: nothing is."""
    made = 0
    while made < MOST and (pair := _alike(cond, a, b)) is not None:
        (p, q), one = pair
        a, b = map_expr(a, partial(_instead, {p: one})), map_expr(b, partial(_instead, {q: one}))
        made += 1
    return _leaf(cond, a, b) if made else None


def _alike(cond: Expr, a: Expr, b: Expr) -> tuple[tuple[Expr, Expr], Expr] | None:
    """What is dear, on either way, that one of a chosen argument is; the innermost first."""
    ours, theirs = _dear(a), _dear(b)
    both = set(ours) & set(theirs)
    if len(ours) * len(theirs) > MOST_PAIRS:
        return None
    for p in ours:
        if p in theirs:
            continue
        for q in theirs:
            if q in ours or (p.op, p.dtype, len(p.args)) != (q.op, q.dtype, len(q.args)):
                continue
            args = [_merged(cond, x, y, both) for x, y in zip(p.args, q.args, strict=True)]
            if not any(arg is None for arg in args):
                return (p, q), Op(p.op, tuple(arg for arg in args if arg is not None), p.dtype)
    return None


def _merged(cond: Expr, a: Expr, b: Expr, both: set[Op]) -> Expr | None:
    """One expression, with choices in it; None where a way is dear that the other one is not. `both`: what is dear and
    computed anyway."""
    if a == b:
        return a
    if isinstance(a, Op) and isinstance(b, Op) and (a.op, a.dtype, len(a.args)) == (b.op, b.dtype, len(b.args)):
        if a.op != "where":
            args = [_merged(cond, x, y, both) for x, y in zip(a.args, b.args, strict=True)]
            return None if any(x is None for x in args) else Op(a.op, tuple(x for x in args if x is not None), a.dtype)
    if isinstance(a, Cast) and isinstance(b, Cast) and a.dtype == b.dtype and dtype_of(a.value) == dtype_of(b.value):
        inner = _merged(cond, a.value, b.value, both)
        return None if inner is None else Cast(inner, a.dtype)
    if dtype_of(a) != dtype_of(b) or dtype_of(a) not in FLOATS or not set(_dear(a)) ^ set(_dear(b)) <= both:
        return None
    return Op("where", (cond, a, b), dtype_of(a))


def _leaf(cond: Expr, a: Expr, b: Expr) -> Expr:
    return a if a == b else Op("where", (cond, a, b), dtype_of(a))


@remembered
def _dear(expr: Expr) -> tuple[Op, ...]:
    """The dear operations, the innermost first."""
    return tuple(dict.fromkeys(p for p in reversed(parts(expr)) if isinstance(p, Op) and flops(p.op) >= DEAR))


def _cost(*exprs: Expr) -> int:
    """Of what is computed once, wherever it stands."""
    return sum(flops(p.op) for p in dict.fromkeys(p for e in exprs for p in parts(e)) if isinstance(p, Op))


__all__ = ["chosen"]
