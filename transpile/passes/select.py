"""What two cheap branches store in the same numbers is chosen between, so that a loop has no branch in it.

    if e <= delta: term = 0.5 * e * e                        term = where(e <= delta, 0.5 * e * e, delta * (e - h))
    else: t = e - h; term = delta * t              ->        total += term
    total += term

Only what does no harm where nobody asked for it: numbers of arithmetic, of places that are in range for sure. Asked by
`free`, of loops whose iterations are independent by it: others keep their branches.
"""

from __future__ import annotations

from collections import Counter

from ..ir import Expr, If, Load, Op, Stmt, Store
from ..operations import flops
from .depend import Memory
from .predicate import harmless
from .share import dtype_of
from .tree import Body, accesses, dim_loads, loads, map_bodies, map_expr, parts

CHEAP = 32  # flops of both ways together
DEAR = 8  # of one operation: a quotient, an exponential

_Values = dict[str, Expr]


def selected(body: Body, memory: Memory, uses: Counter[str]) -> Body:
    """The body with choices in place of branches where that is so. `uses`: accesses of each buffer in the kernel."""
    return tuple(new for stmt in body for new in _stmt(stmt, memory, uses))


def _stmt(stmt: Stmt, memory: Memory, uses: Counter[str]) -> Body:
    own = Counter(a.buffer for a in accesses((stmt,)))
    stmt = map_bodies(stmt, lambda inner: selected(inner, memory, uses))
    if not isinstance(stmt, If):
        return (stmt,)
    ways = _values(stmt.then, memory), _values(stmt.orelse, memory)
    if ways[0] is None or ways[1] is None:
        return (stmt,)
    if any(uses[name] > own[name] for name in ways[0].keys() ^ ways[1].keys()):
        return (stmt,)
    both = [name for name in ways[0] if name in ways[1]]
    read = [stmt.cond, *ways[0].values(), *ways[1].values()]
    if {e.buffer for value in read for e in loads(value)} & {*ways[0], *ways[1]}:
        return (stmt,)
    if not both or sum(map(_cost, read[1:])) > CHEAP:
        return (stmt,)
    pairs = [(ways[0][n], ways[1][n]) for n in both]
    if any(dtype_of(a) != dtype_of(b) for a, b in pairs):
        return (stmt,)
    return tuple(Store(n, (), Op("where", (stmt.cond, *p), dtype_of(p[0]))) for n, p in zip(both, pairs, strict=True))


def _values(body: Body, memory: Memory) -> _Values | None:
    """What a branch leaves in numbers, told by what was there before; None: where it does anything else."""
    found: _Values = {}
    for stmt in body:
        if not isinstance(stmt, Store) or stmt.index or stmt.op or not harmless(stmt.value, memory):
            return None
        if any(e.buffer in found for part in loads(stmt.value) for d in part.index for e in dim_loads(d)):
            return None
        found[stmt.buffer] = map_expr(stmt.value, lambda e: _told(e, found))
    return found


def _told(expr: Expr, found: _Values) -> Expr:
    return found[expr.buffer] if isinstance(expr, Load) and not expr.index and expr.buffer in found else expr


def _cost(value: Expr) -> int:
    costs = [flops(p.op) for p in parts(value) if isinstance(p, Op)]
    return CHEAP + 1 if max(costs, default=0) >= DEAR else sum(costs)
