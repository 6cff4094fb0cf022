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
    writes = [s for s in walk(kernel.body) if _begun(s, root)]
    begun = set().union(*(_begun(s, root) for s in writes))  # what nothing begins has what it had
    floats = {b.name for b in kernel.buffers if b.kind in ("out", "temp") and not b.alias and b.dtype in FLOATS}
    found = floats & begun
    while True:
        spoiled = set().union(*(_begun(s, root) for s in writes if not _is_kept(s, root, found)))
        if not spoiled & found:
            return found
        found -= spoiled


def _begun(stmt: Stmt, root: Mapping[str, str]) -> set[str]:
    """What a statement gives values that are no sums with what was there."""
    return {root[name] for name, _, mode in own_accesses(stmt) if mode not in ("r", "add")}


def _is_kept(stmt: Stmt, root: Mapping[str, str], found: Set[str]) -> bool:
    """Whether that is not -0, if none of those found is."""
    return isinstance(stmt, Store) and stmt.op is None and _is_one(stmt.value, root, found)


def _is_one(value: Expr, root: Mapping[str, str], found: Set[str]) -> bool:
    match value:
        case Const(value=number):
            return number != 0 or math.copysign(1.0, number) > 0
        case Load(buffer=name):
            return root[name] in found
        case Cast(value=inner):
            return _is_one(inner, root, found)
    return False


__all__ = ["never_minus_zero"]
