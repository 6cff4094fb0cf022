"""Statements that only some lanes do: their stores keep what is there in the others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..dims import Atom, Dim
from ..ir import Buffer, Const, Expr, For, If, Load, Op, Store
from .accumulate import neutral
from .depend import Memory
from .tree import Body, accesses, loads, own_accesses, parts, touched

INTEGERS = ("i32", "i64")


def conjunction(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else Op("logical_and", (a, b), "bool")


def masked(stmt: Store, mask: Expr | None, table: dict[str, Buffer]) -> Store:
    if mask is None:
        return stmt
    dtype = table[stmt.buffer].dtype
    other = neutral(stmt.op, dtype) if stmt.op else Load(stmt.buffer, stmt.index, dtype)
    return replace(stmt, value=Op("where", (mask, stmt.value, other), dtype))


def only_within(name: str, inside: Body, loop: For) -> bool:
    """Stored by a plain store in the body, then used in it only."""
    uses = sum(a.buffer == name for a in accesses(loop.body))
    own = [(n, mode) for s in inside for n, _, mode in own_accesses(s) if n == name and isinstance(s, Store)]
    return len(own) == uses and bool(own) and _first_stores(inside, name)


def stays_within(name: str, inside: Body, loop: For) -> bool:
    """The same, but that branches and loops in the body may read it, too."""
    uses = sum(a.buffer == name for a in accesses(loop.body))
    mine = [a for a in accesses(inside) if a.buffer == name]
    stores = [s for s in inside if isinstance(s, Store) and s.buffer == name]
    if not mine or len(mine) != uses or len({a.index for a in mine}) > 1:
        return False
    return sum(a.writes for a in mine) == len(stores) and _first_stores(inside, name)


def made_each_turn(name: str, inside: Body, loop: For) -> bool:
    """Stored by a plain store on each way through the body before it is read there, then used in it only."""
    uses = sum(a.buffer == name for a in accesses(loop.body))
    return uses > 0 and uses == sum(a.buffer == name for a in accesses(inside)) and _stored_on_each_way(inside, name)


def _stored_on_each_way(body: Body, name: str) -> bool:
    touching = [s for s in body if name in touched((s,))]
    match touching:
        case [Store(), *_]:
            return _first_stores(body, name)
        case [If(cond, then, orelse), *_] if not any(e.buffer == name for e in loads(cond)):
            return _stored_on_each_way(then, name) and _stored_on_each_way(orelse, name)
    return False


def _first_stores(body: Body, name: str) -> bool:
    for stmt in body:
        modes = [mode for n, _, mode in own_accesses(stmt) if n == name]
        if modes:
            return modes == ["w"]
    return False


def harmless(expr: Expr, memory: Memory, ends: Collection[str] = (), safe: Collection[str] = ()) -> bool:
    """Whether it may be computed for nobody. `ends`: lists that are read at their end only, where there is room.
    `safe`: see `is_within`."""
    for part in parts(expr):
        match part:
            case Load(buffer, index) if index and buffer not in ends and not is_within(buffer, index, memory, safe):
                return False
        if may_trap(part):
            return False
    return True


def may_trap(part: Expr) -> bool:
    """Whether it divides integers by what may be 0 where the program would not: the processor stops at that."""
    match part:
        case Op("floor_divide" | "mod", (_, Const(value)), _) if value > 0:
            return False
        case Op("floor_divide" | "mod" | "power", _, dtype):
            return dtype in INTEGERS
    return False  # what a Dim divides by is never 0 in C


def is_within(buffer: str, index: tuple[Dim, ...], memory: Memory, safe: Collection[str]) -> bool:
    """Whether it is a place of the array for sure. `safe`: variables that are such a place where somebody asks for it,
    else 0."""
    return all(_is_safe(i, safe) or memory.in_range(i, n) for i, n in zip(index, memory.shape[buffer]))


def _is_safe(dim: Dim, safe: Collection[str]) -> bool:
    match dim.symbol:
        case Atom("load", (Load(name, ()),)):
            return name in safe
    return False


__all__ = ["conjunction", "harmless", "is_within", "masked", "may_trap", "only_within", "stays_within"]
