"""What is only ever set to counters is in their range, and is not checked again.

    p = k                                                      p = k
    for i in k + 1..n:                                         for i in k + 1..n:
        check (p >= -n) & (p < n)                     ->           if x[i] > x[p]: p = i
        at = where(p < 0, p + n, p)                            y = x[p]
        if x[i] > x[at]: p = i

The place of a largest, a pivot, the state that a path goes through: variables of the user, and what a gradient saves
of them in arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..dims import Atom, Dim, Facts, nonnegative
from ..ir import Const, Expr, For, Int, Kernel, Load, Op, Store
from .copies import copies
from .depend import Memory
from .fold import fold_body
from .guards import margins, without_places
from .ranges import as_dim
from .tree import Body, accesses, bodies, dim_loads, map_all, map_expr


@dataclass(frozen=True)
class _Leaf:
    """What a variable is set to, and what is known of it there."""

    dim: Dim
    facts: Facts


Spans = Mapping[str, tuple[_Leaf, ...]]


def spans(kernel: Kernel) -> Kernel:
    if not (found := _found(kernel)):
        return kernel
    sizes = {*kernel.dims, *(s.name for s in kernel.scalars)}
    body = fold_body(map_all(kernel.body, lambda e: map_expr(e, lambda part: _answer(part, found, sizes))))
    kept = copies(replace(kernel, body=without_places(body)))
    return kernel if kept.body == kernel.body else kept


def places(kernel: Kernel) -> tuple[Dim, ...]:
    """What is not negative, as such variables are places of the arrays that they are places of."""
    found, sizes = _found(kernel), {*kernel.dims, *(s.name for s in kernel.scalars)}
    shape = {b.name: b.shape for b in kernel.buffers}
    asked: dict[Dim, None] = {}
    for access in accesses(kernel.body) if found else ():
        for dim, extent in zip(access.index or (), shape[access.buffer]):
            if isinstance(dim.symbol, Atom) and dim.symbol.kind == "load":
                asked |= dict.fromkeys((dim, extent - 1 - dim))
    return tuple(m for m in asked if _holds(m, found, sizes))


def _found(kernel: Kernel) -> Spans:
    """The integers that are set to counters only, or to others of them."""
    aliased = {n for b in kernel.buffers if b.alias for n in (b.name, b.alias)}
    own = {b.name for b in kernel.buffers if b.kind == "temp" and b.dtype == "i64"} - aliased
    leaves: dict[str, set[int]] = {name: set() for name in own}  # by number: facts have no hash
    known: list[_Leaf] = []
    copied: dict[str, set[str]] = {name: set() for name in own}
    told: dict[str, int] = dict.fromkeys(own, 0)
    for stmt, facts in _stores(kernel.body, Memory.of(kernel).facts):
        if stmt.buffer not in own or stmt.op is not None:
            continue
        value = as_dim(stmt.value)
        if value is not None and not any(dim_loads(value)):
            leaves[stmt.buffer].add(len(known))
            known.append(_Leaf(value, facts))
        elif isinstance(stmt.value, Load) and stmt.value.buffer in own:
            copied[stmt.buffer].add(stmt.value.buffer)
        else:
            continue
        told[stmt.buffer] += 1
    writes = [a.buffer for a in accesses(kernel.body) if a.writes and a.buffer in own]
    good = {name for name in own if told[name] and told[name] == writes.count(name)}
    while stale := {name for name in good if not copied[name] <= good}:
        good -= stale
    for _ in good:
        for name in good:
            leaves[name] |= set().union(*(leaves[other] for other in copied[name]))
    return {name: tuple(known[k] for k in sorted(leaves[name])) for name in good if leaves[name]}


def _stores(body: Body, facts: Facts) -> Iterator[tuple[Store, Facts]]:
    for stmt in body:
        if isinstance(stmt, Store):
            yield stmt, facts
        inside = {**facts, stmt.var: (stmt.lo, stmt.hi - 1)} if isinstance(stmt, For) else facts
        for inner in bodies(stmt):
            yield from _stores(inner, inside)


def _answer(expr: Expr, found: Spans, sizes: set[str]) -> Expr:
    """A comparison of such a variable with what no loop changes, if it is the same whatever the variable is."""
    if not isinstance(expr, Op) or len(expr.args) != 2:
        return expr
    asked = Op(expr.op, tuple(map(_as_integer, expr.args)), expr.dtype)
    for wanted in (True, False):
        needed = margins(asked, wanted)
        if needed and all(_holds(m, found, sizes) for m in needed):
            return Const(wanted, "bool")
    return expr


def _as_integer(arg: Expr) -> Expr:
    return Int(Dim.of(Atom("load", (arg,)))) if isinstance(arg, Load) and arg.dtype == "i64" else arg


def _holds(margin: Dim, found: Spans, sizes: set[str]) -> bool:
    read = set(dim_loads(margin))
    if len(read) != 1 or (load := next(iter(read))).buffer not in found:
        return False
    place = Atom("load", (load,))
    others = margin.rebuilt(lambda atom: Dim.of(0) if atom == place else Dim.of(atom))
    if not others.symbols() <= sizes or any(dim_loads(others)):
        return False
    return all(
        nonnegative(margin.rebuilt(lambda atom: leaf.dim if atom == place else Dim.of(atom)), leaf.facts)  # noqa: B023
        for leaf in found[load.buffer]
    )
