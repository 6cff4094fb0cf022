"""What the forward made sure of, said again where the slices of a gradient need it.

The first N elements of a cotangent of N + M - 1 are N because the forward made np.zeros(M - 1), which fails for M = 0.
Nothing in the text of the gradient would tell: it says `assert M >= 1` before the slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..transpile import construct
from ..transpile.construct import Proofs, any_config
from ..transpile.dims import Dim, Facts
from ..transpile.iteration import bounds_of
from ..transpile.lowering.facts import at_least
from ..transpile.program import (
    Assert,
    Call,
    For,
    Function,
    Index,
    Slice,
    Stmt,
    Store,
    Type,
    stmt_exprs,
    walk,
    walk_stmts,
)
from ..transpile.renaming import map_stmt


def degree(type: Type) -> int:
    """Extents that are not known at build."""
    return sum(d.value is None for d in type.shape)


def most_axes(function: Function) -> int:
    """The largest degree of an argument or output: of more axes nothing is kept."""
    return max(
        (degree(t) for t in (*(p.type for p in function.params), *(r.type for r in function.results))), default=0
    )


def with_sizes(function: Function) -> Function:
    """The function with an assertion before every statement whose slices, as text, say less than is known of them."""
    extents = {s for p in function.params for d in p.type.shape for s in d.symbols()}
    counts = [p.name for p in function.params if p.role == "config" and p.type.dtype == "int"]
    facts = {name: any_config(name) for name in counts if name not in extents}
    return replace(function, body=tuple(_block(function.body, facts, [])))


def _block(body: Sequence[Stmt], facts: Facts, held: Sequence[Dim]) -> list[Stmt]:
    done: list[Stmt] = []
    held = list(held)
    for stmt in body:
        for item, extent in _slices(stmt):
            for dim in _unsaid(item, extent, Proofs(facts, _unguarded, held)):
                held.append(dim)
                done.append(Assert(_not_negative(dim), "", stmt.span))
        if isinstance(stmt, Assert):
            held += at_least(stmt.cond)
        inside = {**facts, stmt.var: bounds_of(stmt)} if isinstance(stmt, For) else facts
        done.append(_inside(stmt, inside, held))
    return done


def _inside(stmt: Stmt, facts: Facts, held: Sequence[Dim]) -> Stmt:
    return map_stmt(stmt, lambda e: e, lambda block: tuple(_block(block, facts, held)), lambda name: name)


def _slices(stmt: Stmt) -> Iterator[tuple[Slice, Dim]]:
    """Those that a statement takes, with the extents that they are taken of."""
    parts = [(e.base, e.items) for whole in stmt_exprs(stmt) for e in walk(whole) if isinstance(e, Index)]
    if isinstance(stmt, Store):
        parts.append((stmt.base, stmt.items))
    for base, items in parts:
        for item, extent in zip(items, construct.item_extents(base, items), strict=True):
            if isinstance(item, Slice):
                yield item, extent


def _unsaid(item: Slice, extent: Dim, known: Proofs) -> Iterator[Dim]:
    """What must not be negative for the text to mean as many elements as the slice takes."""
    meant = construct.slice_of(item.start, item.stop, construct.const(1), extent, known).extent
    if item.step == 1 and meant != item.extent:
        for dim in (item.extent, extent - item.first - item.extent):
            if not known.proven(dim):
                yield dim


def _unguarded(dim: Dim, message: str) -> None:
    """The reader of the text puts its checks there itself."""


def _not_negative(dim: Dim) -> construct.Expr:
    """M - 1 as M >= 1."""
    more = Dim(tuple(term for term in dim.terms if term[1] > 0))
    return construct.call("greater_equal", construct.dim(more), construct.dim(more - dim))


def extents_of(body: Sequence[Stmt]) -> set[str]:
    """The symbols in what operations are told beside their arrays: the shapes of makers, widths of padding."""

    def symbols(static: Any) -> set[str]:
        if isinstance(static, tuple):
            return set().union(*map(symbols, static))
        return set(static.symbols()) if isinstance(static, Dim) else set()

    exprs = (e for stmt in walk_stmts(tuple(body)) for top in stmt_exprs(stmt) for e in walk(top))
    return set().union(*(symbols(value) for e in exprs if isinstance(e, Call) for _, value in e.static))
