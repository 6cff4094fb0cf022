"""Statements that only some lanes do: their stores keep what is there in the others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..ir import Buffer, Expr, For, Load, Op, Store
from .accumulate import neutral
from .depend import Memory
from .tree import Body, accesses, own_accesses, parts

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


def _first_stores(body: Body, name: str) -> bool:
    for stmt in body:
        modes = [mode for n, _, mode in own_accesses(stmt) if n == name]
        if modes:
            return modes == ["w"]
    return False


def harmless(expr: Expr, memory: Memory, ends: Collection[str] = ()) -> bool:
    """Whether it may be computed for nobody. `ends`: lists that are read at their end only, where there is room."""
    for part in parts(expr):
        match part:
            case Load(buffer) if buffer not in ends and not memory.in_bounds(part):
                return False
            case Op("floor_divide" | "mod" | "power", _, dtype) if dtype in INTEGERS:
                return False
    return True


__all__ = ["conjunction", "harmless", "masked", "only_within"]
