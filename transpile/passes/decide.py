"""What a kernel's decisions hang on: values that are compared, made integers, or rounded to some.

for i: r[i] = x[i] / s;  m max= r[i]              r and m decide, to the last bit: which element is the largest?
for i: d[i] = where(r[i] == m, dy[i] / s, 0)      d does not: it is as good with an error of one unit more
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import FLOATS, Cast, Check, Expr, If, Kernel, Load, Op, Product, Stmt, Store, While
from ..operations import jumps
from .tree import own_exprs, parts, read_from_dims, roots, walk


def deciding(kernel: Kernel) -> set[str]:
    """The buffers, by their roots, whose values decide something, at once or through others."""
    root = roots(kernel)
    found = {root[name] for name in read_from_dims(kernel)}
    statements = tuple(walk(kernel.body))
    while True:
        seen = {root[name] for stmt in statements for name in _asked(stmt, root, found)}
        if seen <= found:
            return found
        found |= seen


def _asked(stmt: Stmt, root: dict[str, str], found: set[str]) -> Iterator[str]:
    """The buffers that a statement decides by, or that lead to some of `found`."""
    if isinstance(stmt, Product):
        yield from (stmt.left.buffer, stmt.right.buffer) if root[stmt.buffer] in found else ()
    whole = isinstance(stmt, While | If | Check) or (isinstance(stmt, Store) and root[stmt.buffer] in found)
    for expr in own_exprs(stmt):
        for part in parts(expr) if whole else decisions(expr):
            yield from _loaded(part)


def decisions(expr: Expr) -> set[Expr]:
    """All parts of an expression that it decides something by."""
    return {part for op in parts(expr) if _decides(op) for part in parts(op)}


def _decides(expr: Expr) -> bool:
    match expr:
        case Op(op, _, dtype):
            return jumps(op) or dtype not in FLOATS
        case Cast(_, dtype):
            return dtype not in FLOATS
    return False


def _loaded(part: Expr) -> tuple[str, ...]:
    return (part.buffer,) if isinstance(part, Load) else ()
