"""What is taken or 0 is masked by its bits: gcc would join the conditions of several choices, and move masks about.

    for i: y[i] = where(x[i] > t, v, 0)        ->        for i: y[i] = or_zero(x[i] > t, v)
    for i: h[i] = where(c[i], v, h[i])         ->        for i: h[i] = either(c[i], v, h[i])
    for i: b[i] = where(c[i], v > t, b[i])     ->        for i: b[i] = c[i] & (v > t) | ~c[i] & b[i]

So is what is taken or stays as it is: gcc would store it in some lanes only, for which some processors (AMD's, with
AVX2) take many times as long as for a store. A choice between conditions would be a branch, and the loop no vectors.

In loops that are vectorised; elsewhere a comparison and a choice are one instruction each. Last: no other pass need
know what `or_zero` and `either` are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import copysign

from ..ir import FLOATS, Const, Expr, For, Kernel, Load, Op, Stmt, Store
from .tree import Body, in_vectors, map_all, map_stmts


def bits(kernel: Kernel) -> Kernel:
    shapes = {b.name: [d.value for d in b.shape] for b in kernel.buffers if b.kind == "temp"}
    small = {name for name, extents in shapes.items() if None not in extents}
    return replace(kernel, body=map_stmts(kernel.body, partial(_masked, small)))


def _masked(small: set[str], stmt: Stmt) -> Body:
    """`small`: arrays of a function's own, which gcc stores as a whole, unless what is taken is read from elsewhere."""
    if not in_vectors(stmt) or not isinstance(stmt, For):
        return (stmt,)
    known: dict[Expr, Expr] = {}  # numbers of an iteration -> the place that they were read from
    body: list[Stmt] = []
    for s in stmt.body:
        if isinstance(s, Store) and not s.op:
            if not s.index and isinstance(s.value, Load):
                known[Load(s.buffer, (), s.value.dtype)] = s.value
            elif s.index:
                s = replace(s, value=_or_what_is_there(s, known, s.buffer in small))
        body.append(s)
    return (replace(stmt, body=map_all(tuple(body), _by_bits)),)


def _or_what_is_there(store: Store, known: Mapping[Expr, Expr], small: bool) -> Expr:
    match store.value:
        case Op("where", (asked, *ways), dtype):
            read = [known.get(way, way) for way in ways]
            there = [isinstance(e, Load) and (e.buffer, e.index) == (store.buffer, store.index) for e in read]
            taken = (e for e, stays in zip(read, there, strict=True) if not stays)
            if any(there) and (not small or any(isinstance(e, Load) and e.index for e in taken)):
                return Op("either", (asked, *ways), dtype)
    return store.value


def _by_bits(expr: Expr) -> Expr:
    match expr:
        case Op("where", (asked, taken, other), dtype) if dtype in FLOATS:
            if _is_zero(other):
                return Op("or_zero", (asked, taken), dtype)
            if _is_zero(taken):
                return Op("or_zero", (_not(asked), other), dtype)
        case Op("where", (asked, taken, other), "bool"):
            return _any(_all(asked, taken), _all(_not(asked), other))
    return expr


def _not(a: Expr) -> Expr:
    return Op("logical_not", (a,), "bool")


def _all(a: Expr, b: Expr) -> Expr:
    if isinstance(b, Const):
        return a if b.value else b
    return Op("logical_and", (a, b), "bool")


def _any(a: Expr, b: Expr) -> Expr:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Const):
            return one if one.value else other
    return Op("logical_or", (a, b), "bool")


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0 and copysign(1, float(expr.value)) > 0
