"""What counts few things, to divide by their number, counts in the numbers it divides.

    count = 0                                             count = 0.0
    for k in 0..3: count += i64(x[j + k] == y[j])   ->    for k in 0..3: count += real(x[j + k] == y[j])
    e = dy[j] / real(count)                               e = dy[j] / count

How many share the largest of a window: most processors have no vectors for i64 to float, and 64 bits are twice as wide.
Only where loops say how many there may be: a float32 counts exactly up to 2^24.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..ir import Cast, Const, Expr, For, Int, Kernel, Load, Stmt, Store, While
from .share import dtype_of
from .tree import Body, accesses, bodies, map_all, map_stmts, own_exprs, parts, read_from_dims, walk

MOST = 2**20  # things


def tally(kernel: Kernel) -> Kernel:
    integers = [b for b in kernel.buffers if b.kind == "temp" and b.dtype == "i64" and not b.shape and not b.alias]
    variables = {b.name for b in integers} - {b.alias for b in kernel.buffers} - read_from_dims(kernel)
    touched = Counter(a.buffer for a in accesses(kernel.body))
    asked = Counter(_asked(part) for s in walk(kernel.body) for e in own_exprs(s) for part in parts(e))
    found: set[str] = set()
    for name, rest in _begun(kernel.body):
        mine = Counter(a.mode for a in accesses(rest) if a.buffer == name)
        whole = mine.total() + 1 == touched[name] and mine["r"] == asked[name]
        if name in variables and whole and (_most(rest, name) or MOST) < MOST:
            found.add(name)
    return _counted(kernel, found) if found else kernel


def _begun(body: Body) -> Iterator[tuple[str, Body]]:
    """The variables that begin with 0, and what comes behind that."""
    for at, stmt in enumerate(body):
        match stmt:
            case Store(name, (), value, None) if _is_zero(value):
                yield name, body[at + 1 :]
        for inner in bodies(stmt):
            yield from _begun(inner)


def _most(body: Body, name: str) -> int | None:
    """How many things are counted at most; None where that is not known, or where it is no count."""
    found = 0
    for stmt in body:
        counts: list[int | None] = [_most(inner, name) for inner in bodies(stmt)]
        match stmt:
            case Store(buffer, _, Cast(value), "add") if buffer == name:
                counts = [1 if dtype_of(value) == "bool" else None]
            case Store(buffer) if buffer == name:
                return None
            case For(lo=lo, hi=hi) if counts != [0]:
                trips = (hi - lo).value
                counts = [None if n is None or trips is None else n * max(trips, 0) for n in counts]
            case While() if counts != [0]:
                return None
        if None in counts:
            return None
        found += sum(n or 0 for n in counts)
    return found


def _counted(kernel: Kernel, names: set[str]) -> Kernel:
    def expr(e: Expr) -> Expr:
        name = _asked(e)
        return Load(name, (), "real") if name in names else e

    def stmt(s: Stmt) -> tuple[Stmt, ...]:
        match s:
            case Store(name, (), Cast(value), "add") if name in names:
                return (replace(s, value=Cast(value, "real")),)
            case Store(name, (), _, None) if name in names:
                return (replace(s, value=Const(0.0, "real")),)
        return (s,)

    table = tuple(replace(b, dtype="real") if b.name in names else b for b in kernel.buffers)
    return replace(kernel, buffers=table, body=map_stmts(map_all(kernel.body, expr), stmt))


def _is_zero(value: Expr) -> bool:
    return value == Const(0, "i64") or (isinstance(value, Int) and value.dim.value == 0)


def _asked(expr: Expr) -> str:
    """The variable that it is as a real number; "" where it is anything else."""
    match expr:
        case Cast(Load(name, ()), "real"):
            return name
    return ""


__all__ = ["tally"]
