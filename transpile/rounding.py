"""Whether a C compiler can only round in one way what a kernel computes.

It may contract a product and a sum into one instruction, of a * b + c * d either product, and order the sum of a
vector; what it chooses depends on what it knows of the extents. A kernel that only moves, compares, adds or multiplies
numbers, and leaves matrix products to `product.h`, has the same bits with its sizes as constants.
"""

from __future__ import annotations

import re

from .ir import Kernel, Op, Stmt, Store
from .passes.tree import buffers, own_exprs, parts, walk

MARK = "/* Rounds in one way, whatever is known of its sizes. */\n"  # before such a function

_EXACT = frozenset(
    "negative positive abs sign maximum minimum fmax fmin where or_zero either above below copysign".split()
    + "rint floor ceil trunc sqrt divide".split()
)
_PRODUCTS = frozenset(("multiply", "square"))
_SUMS = frozenset(("add", "subtract"))
_INTEGERS = ("bool", "i32", "i64")


def in_one_way(kernel: Kernel, text: str) -> bool:
    """`text`: the kernel's C."""
    dtypes = {n: b.dtype for n, b in buffers(kernel).items()}
    summed = {n.strip() for names in re.findall(r"reduction\([^:)]*:([^)]*)\)", text) for n in names.split(",")}
    if any(dtypes.get(n) not in _INTEGERS for n in summed):
        return False
    used = {name for stmt in walk(kernel.body) for name in _arithmetic(stmt, dtypes)} - _EXACT
    return used <= _SUMS or used <= _PRODUCTS


def _arithmetic(stmt: Stmt, dtypes: dict[str, str]) -> set[str]:
    """The operations on floats in a statement."""
    found = {p.op for e in own_exprs(stmt) for p in parts(e) if isinstance(p, Op) and p.dtype not in _INTEGERS}
    if isinstance(stmt, Store) and stmt.op is not None and dtypes[stmt.buffer] not in _INTEGERS:
        found.add({"add": "add", "mul": "multiply"}.get(stmt.op, stmt.op))
    return found
