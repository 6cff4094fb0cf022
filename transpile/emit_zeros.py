"""What is never -0: to add 0 to that changes nothing, so that a lane that does not count may add 0 like the others.

A sum that begins at 0 is one, whatever is added: of two numbers that are not both -0 the sum is not -0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

from .ir import FLOATS, Cast, Const, Expr, Kernel, Load, Stmt, Store
from .passes.tree import own_accesses, walk


def never_minus_zero(kernel: Kernel, root: Mapping[str, str]) -> set[str]:
    """Variables and arrays of floats, by the names of their roots."""
    found = {b.name for b in kernel.buffers if b.kind in ("out", "temp") and not b.alias and b.dtype in FLOATS}
    stmts = list(walk(kernel.body))
    while True:
        others = {root[name] for s in stmts for name, _, mode in own_accesses(s) if mode not in ("r", "add")}
        spoiled = {root[s.buffer] for s in stmts if isinstance(s, Store) and _may_spoil(s, root, found)}
        spoiled |= {n for s in stmts if not isinstance(s, Store) for n in _written(s, root)}
        if not spoiled & found:
            return found & others  # what nothing begins has what it had
        found -= spoiled


def _may_spoil(stmt: Store, root: Mapping[str, str], found: Set[str]) -> bool:
    return stmt.op != "add" and (stmt.op is not None or not _is_one(stmt.value, root, found))


def _is_one(value: Expr, root: Mapping[str, str], found: Set[str]) -> bool:
    match value:
        case Const(value=number):
            return math.copysign(1.0, number) > 0 or number != 0
        case Load(buffer=name):
            return root[name] in found
        case Cast(value=inner):
            return _is_one(inner, root, found)
    return False


def _written(stmt: Stmt, root: Mapping[str, str]) -> set[str]:
    return {root[name] for name, _, mode in own_accesses(stmt) if mode not in ("r", "add")}


__all__ = ["never_minus_zero"]
