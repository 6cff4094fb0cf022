"""Which innermost loops may be vectorised, and the pragma that says so.

gcc is told, not asked: `omp simd` waives its alias and dependence tests, so the claim must hold here.
Iterations of a map loop are independent but for accumulation: into a variable (a `reduction` clause) or
into memory, where two iterations must not meet in one place (`a[i//2] += x`, or a scatter through an index
array, stays scalar).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .dims import ANY, Dim, Facts
from .ir import Comment, Expr, For, If, Int, Load, Store
from .passes.depend import injective, neighbours
from .passes.tree import Index, dim_loads, map_dim, own_accesses, walk, written

# max and min carry NaN, so they are reductions of our own (declared in the prelude); integers have none to
# carry.
_CLAUSE = {"add": "+", "mul": "*", "or": "|", "and": "&"}


def pragma(loop: For, outer: Callable[[str], str | None], facts: Facts, root: Mapping[str, str]) -> str | None:
    """The line before the loop, or None. `outer` gives the C type of a variable that lives outside it, else
    None; `root`: the buffer whose memory a buffer is."""
    if neighbours(loop.body, loop.var, root):
        return None
    if loop.kind != "map" or loop.parallel or not all(isinstance(s, (Store, If, Comment)) for s in walk(loop.body)):
        return None
    reductions: dict[str, str] = {}
    for stmt in walk(loop.body):
        if not isinstance(stmt, Store):
            continue
        if stmt.index:
            index, known = _settled(stmt.index, loop, root)
            if not injective(index, loop.var, {**facts, **known}):
                return None
        elif outer(stmt.buffer) is not None:
            if stmt.op is None or reductions.setdefault(stmt.buffer, stmt.op) != stmt.op:
                return None
    reads = {b for s in walk(loop.body) for b, _, mode in own_accesses(s) if mode == "r"}
    if reads & reductions.keys():
        return None
    clauses: dict[str, list[str]] = {}
    for name, op in reductions.items():
        clauses.setdefault(_clause(op, outer(name) or ""), []).append(name)
    return "#pragma omp simd" + "".join(f" reduction({c}:{', '.join(names)})" for c, names in clauses.items())


def _settled(index: Index, loop: For, root: Mapping[str, str]) -> tuple[Index, Facts]:
    """A place with names for the whole numbers in it that are read from memory which the loop does not change."""
    changed = {root.get(name, name) for name in written(loop.body)}
    known: dict[str, tuple[Dim, Dim]] = {}

    def number(e: Expr) -> Expr:
        if not isinstance(e, Load) or root.get(e.buffer, e.buffer) in changed or loop.var in e.free():
            return e
        if any(dim_loads(d) for d in e.index):  # read at a place that the loop changes
            return e
        name = f"{e.buffer}{list(map(str, e.index))}'"
        known[name] = ANY
        return Int(Dim.of(name))

    return tuple(map_dim(d, number) for d in index), known


def _clause(op: str, ctype: str) -> str:
    if op in ("max", "min"):
        return f"lc_{op}{'f' if ctype == 'float' else ''}" if ctype in ("float", "double") else op
    return _CLAUSE[op]
