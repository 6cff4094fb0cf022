"""Last touches on a gradient: values that have a name are read by it, and what is written once is not added to zeros.

before: c = np.cos(E); d = np.zeros_like(x); for t ...: d[t] += np.cos(E) * g
after:  c = np.cos(E); d = np.empty_like(x); for t ...: d[t] = c * g
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import ZERO
from ..transpile.program import (
    Assign,
    Call,
    Const,
    Expr,
    For,
    If,
    Mask,
    Name,
    Pop,
    Stmt,
    Store,
    While,
    assigned,
    blocks,
    map_children,
    names,
    stmt_exprs,
    walk_stmts,
)
from ..transpile.renaming import map_stmt
from .finality import apart, of_axes, place_of
from .values import CHEAP, cost

Chain = tuple[For, ...]


def tidy(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    return tuple(_written_once(_reuse(_spread_by_stores(body), {})))


def _spread_by_stores(body: Sequence[Stmt]) -> list[Stmt]:
    """d[i:j] += np.broadcast_to(v, (j - i,))    ->    d[i:j] += v"""
    done: list[Stmt] = []
    for stmt in body:
        if blocks(stmt):
            stmt = map_stmt(stmt, lambda e: e, lambda b: tuple(_spread_by_stores(b)), lambda n: n)
        while isinstance(stmt, Store) and isinstance(stmt.value, Call) and stmt.value.op == "broadcast_to":
            stmt = replace(stmt, value=stmt.value.args[0])
        if done and isinstance(stmt, Store) and _adds_to_cleared(done[-1], stmt):
            stmt = replace(stmt, op=None)
            done.pop()
        if done and isinstance(stmt, Store) and _gives_back(done[-1], stmt):
            continue
        done.append(stmt)
    return done


def _adds_to_cleared(first: Stmt, second: Store) -> bool:
    """d[i] = 0; d[i] += v    ->    d[i] = v"""
    return (
        isinstance(first, Store)
        and (first.base, first.items, first.op, first.value) == (second.base, second.items, None, const(0))
        and second.op == "add"
        and not second.scatter
        and second.base.id not in names(second.value)
        and not any(isinstance(i, Mask) for i in second.items)
    )


def _gives_back(first: Stmt, second: Store) -> bool:
    """part = d[i]; d[i] = part    ->    part = d[i]"""
    return (
        isinstance(first, Assign)
        and second.op is None
        and second.value == Name(first.name, second.value.type)
        and first.value == construct.index(second.base, second.items)
    )


# -- names for values that have one ----------------------------------------------------------------------------
def _reuse(body: list[Stmt], known: dict[Expr, Name]) -> list[Stmt]:
    """Replaces costly expressions whose value a name holds at that point."""
    known = dict(known)
    done: list[Stmt] = []
    for stmt in body:
        if blocks(stmt):
            changed = assigned((stmt,))
            known = {e: n for e, n in known.items() if not (names(e) | {n.id}) & changed}
            stmt = map_stmt(stmt, partial(_by_name, known=known), partial(_reused_in, known), lambda n: n)
        else:
            stmt = map_stmt(stmt, partial(_by_name, known=known), tuple, lambda n: n)
            changed = assigned((stmt,))
            known = {e: n for e, n in known.items() if not (names(e) | {n.id}) & changed}
            if isinstance(stmt, Assign) and cost(stmt.value) > CHEAP and stmt.name not in names(stmt.value):
                known[stmt.value] = Name(stmt.name, stmt.value.type)
        done.append(stmt)
    return done


def _reused_in(known: dict[Expr, Name], body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    return tuple(_reuse(list(body), known))


def _by_name(expr: Expr, known: dict[Expr, Name]) -> Expr:
    if expr in known:
        return known[expr]
    return map_children(expr, lambda e: _by_name(e, known))


# -- zeros that are written once -------------------------------------------------------------------------------
def _written_once(body: list[Stmt]) -> list[Stmt]:
    """`d = zeros; for t: d[t] += v` stores instead, where each place is added to at most once."""
    done = list(body)
    for position, stmt in enumerate(done):
        for block in blocks(stmt):
            replaced = tuple(_written_once(list(block)))
            done[position] = _with_block(done[position], block, replaced)
    for position, stmt in enumerate(done):
        if isinstance(stmt, Assign) and _is_zeros(stmt.value) and stmt.value.type.rank:
            found = _sole_addition(stmt.name, done[position + 1 :])
            if found is None:
                continue
            store, chain, always = found
            if not chain or store.scatter or not apart(store.items, store.base.type.shape, chain):
                continue
            rest = _swap(done[position + 1 :], store, replace(store, op=None))
            maker = _empty(stmt.value) if always and _covers(store, chain) else stmt.value
            done[position:] = [replace(stmt, value=maker), *rest]
    return done


def _with_block(stmt: Stmt, old: tuple[Stmt, ...], new: tuple[Stmt, ...]) -> Stmt:
    return map_stmt(stmt, lambda e: e, lambda b: new if b is old else tuple(b), lambda n: n)


def _swap(body: Sequence[Stmt], old: Stmt, new: Stmt) -> list[Stmt]:
    def at(stmt: Stmt) -> Stmt:
        if stmt is old:
            return new
        return map_stmt(stmt, lambda e: e, lambda b: tuple(at(s) for s in b), lambda n: n) if blocks(stmt) else stmt

    return [at(s) for s in body]


def _is_zeros(value: Expr) -> bool:
    return isinstance(value, Call) and value.op in ("zeros", "zeros_like")


def _empty(value: Expr) -> Expr:
    assert isinstance(value, Call)
    return construct.call(value.op.replace("zeros", "empty"), *value.args, **dict(value.static))


def _sole_addition(array: str, following: Sequence[Stmt]) -> tuple[Store, Chain, bool] | None:
    """The only write into the array, if it adds, no loop of its own reads the array, and nothing rebinds it."""
    writes = [s for s in walk_stmts(tuple(following)) if isinstance(s, Store) and s.base.id == array]
    rebound = any(isinstance(s, (Assign, Pop)) and s.name == array for s in walk_stmts(tuple(following)))
    if len(writes) != 1 or writes[0].op != "add" or rebound:
        return None
    for stmt in following:
        inside = list(walk_stmts((stmt,)))
        if not any(s is writes[0] for s in inside):
            if any(array in names(e) for s in inside for e in stmt_exprs(s)):
                return None  # read before it is written
            continue
        if any(array in names(e) for s in inside for e in stmt_exprs(s)):
            return None
        chain = _chain(stmt, writes[0])
        return None if chain is None else (writes[0], chain[0], chain[1])
    return None


def _chain(stmt: Stmt, target: Store) -> tuple[Chain, bool] | None:
    """The loops around the target, and whether it is reached in every iteration of them; None below a while."""
    if stmt is target:
        return (), True
    for block in blocks(stmt):
        for inner in block:
            found = _chain(inner, target)
            if found is None:
                continue
            if isinstance(stmt, While):
                return None
            loops, always = found
            return ((stmt, *loops) if isinstance(stmt, For) else loops), always and not isinstance(stmt, If)
    return None


def _covers(store: Store, chain: Chain) -> bool:
    """Whether the loops run over all of the array."""
    by_axis: dict[int, For] = {}
    for loop in chain:
        place = place_of(store.items, loop.var, [other.var for other in chain])
        if place is None or place[1] != ZERO or place[0] in by_axis:
            return False
        by_axis[place[0]] = loop
    for axis, (item, extent) in enumerate(zip(of_axes(store.items), store.base.type.shape, strict=True)):
        if axis not in by_axis:
            if not construct.is_full(item, extent):
                return False
            continue
        loop = by_axis[axis]
        start, stop = value_of(loop.start), value_of(loop.stop)
        if loop.step == -1 and start is not None and stop is not None:
            start, stop = stop + 1, start + 1
        if abs(loop.step) != 1 or start != ZERO or stop != extent:
            return False
    return True


__all__ = ["Const", "tidy"]
