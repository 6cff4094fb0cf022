"""Algebra that makes generated expressions read as written: no * 1, no - -, no broadcast that broadcasting does anyway.

Values stay what they were, up to the order of roundings; NaN and infinity are never cancelled.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..transpile import construct
from ..transpile.construct import const, dim
from ..transpile.dims import ONE
from ..transpile.fold import fold
from ..transpile.operations import ROWS
from ..transpile.program import At, Call, Const, Expr, Gather, Index, Mask, NewAxis, Slice, map_children
from ..transpile.typing import broadcast, normal_axes


def simplify(expr: Expr) -> Expr:
    """Bottom up, until nothing changes at the top."""
    expr = map_children(expr, simplify)
    changed = _step(expr)
    return expr if changed is None else simplify(changed)


def _step(expr: Expr) -> Expr | None:
    if isinstance(expr, Index):
        return _index(expr)
    if not isinstance(expr, Call):
        return None
    known = fold(expr.op, expr.args) if expr.args else None
    if known is not None:
        return known
    if ROWS[expr.op].kind == "elementwise":
        thinner = _without_broadcasts(expr)
        if thinner is not None:
            return thinner
    match expr:
        case Call(
            op="add",
            args=[Call(op="where", args=[c, a, Const(value=0)]), Call(op="where", args=[d, Const(value=0), b])],
        ) if c == d:
            return construct.call("where", c, a, b)
        case Call(op="add", args=[a, Call(op="negative", args=[b])]):
            return construct.call("subtract", a, b)
        case Call(op="add", args=[Call(op="negative", args=[a]), b]):
            return construct.call("subtract", b, a)
        case Call(op="subtract", args=[a, Call(op="negative", args=[b])]):
            return construct.call("add", a, b)
        case Call(op="negative", args=[Call(op="negative", args=[a])]):
            return a
        case Call(op="multiply" | "divide" | "matmul" as op, args=[Call(op="negative", args=[a]), b]):
            return construct.call("negative", construct.call(op, a, b))
        case Call(op="multiply", args=[a, Call(op="negative", args=[b])]):
            return construct.call("negative", construct.call("multiply", a, b))
        case Call(op="sum", args=[Call(op="negative", args=[a])]):
            return construct.call("negative", construct.call("sum", a, **dict(expr.static)))
        case Call(op="sum", args=[Call(op="multiply" | "divide" as op, args=[a, b])]) if _is_steady(b, a, expr):
            return construct.call(op, construct.call("sum", a, **dict(expr.static)), b)
        case Call(op="sum", args=[Call(op="multiply", args=[a, b])]) if _is_steady(a, b, expr):
            return construct.call("multiply", a, construct.call("sum", b, **dict(expr.static)))
        case Call(op="multiply" | "divide", args=[a, Const(value=1)]) if a.type == expr.type:
            return a
        case Call(op="multiply", args=[Const(value=1), a]) if a.type == expr.type:
            return a
        case Call(op="multiply", args=[Const(value=x), Call(op="multiply", args=[Const(value=y), a])]):
            return construct.call("multiply", const(x * y), a)
        case Call(op="multiply", args=[Const() as c, Call(op="multiply", args=[a, b])]):
            return construct.call("multiply", construct.call("multiply", c, a), b)
        case Call(op="multiply", args=[a, Call(op="multiply", args=[Const() as c, b])]) if not isinstance(a, Const):
            return construct.call("multiply", construct.call("multiply", c, a), b)
        case Call(op="multiply", args=[Const() as c, Call(op="divide", args=[a, b])]):
            return construct.call("divide", construct.call("multiply", c, a), b)
        case Call(op="multiply", args=[a, Const() as c]) if not isinstance(a, Const):
            return construct.call("multiply", c, a)
        case Call(op="multiply", args=[a, Call(op="divide", args=[Const(value=1), b])]):
            return construct.call("divide", a, b)
        case Call(op="power", args=[a, Const(value=1)]) if a.type == expr.type:
            return a
        case Call(op="where", args=[Call(op="equal", args=[Const(value=x), Const(value=y)]), a, b]):
            picked = a if x == y else b
            return picked if picked.type == expr.type else None
        case Call(op="where", args=[Const(value=chosen), a, b]):
            picked = a if chosen else b
            return picked if picked.type == expr.type else None
        case Call(op="cast", args=[a]) if a.type.dtype == expr.type.dtype:
            return a
        case Call(op="broadcast_to", args=[a]) if a.type == expr.type:
            return a
        case Call(op="broadcast_to", args=[Call(op="broadcast_to", args=[a])]):
            return construct.call("broadcast_to", a, shape=expr.type.shape)
        case Call(op="reshape", args=[a]) if a.type == expr.type:
            return a
        case Call(op="reshape", args=[Index() as part]):
            place = _picked(part)
            return place if place is not None and place.type == expr.type else None
        case Call(op="transpose", args=[a]) if expr.get("axes") in (
            tuple(range(a.type.rank)),
            list(range(a.type.rank)),
        ):
            return a
        case Call(op="einsum", args=[a, b]) if _scales(expr):
            return construct.call("multiply", a, b)
        case Call(op="transpose", args=[Call(op="matmul", args=[Call(op="transpose", args=[a]) as inner, b])]) if (
            a.type.rank == b.type.rank == 2 and _turns(inner) and _turns(expr)
        ):  # (a.T @ b).T
            return construct.call("matmul", construct.call("transpose", b, axes=None), a)
        case Call(op="transpose", args=[Call(op="transpose", args=[a]) as inner]) if a.type.rank == 2:
            return a if _turns(inner) == _turns(expr) else construct.call("transpose", a, axes=None)
    return None


def _picked(part: Index) -> Expr | None:
    """x[2:] of three elements is x[2], but for its axis."""
    if any(isinstance(i, Gather | Mask) for i in part.items):
        return None
    items = (At(dim(i.first)) if isinstance(i, Slice) and i.extent == ONE else i for i in part.items)
    return construct.index(part.base, tuple(items))


def _is_steady(factor: Expr, other: Expr, total: Call) -> bool:
    """Whether a factor is the same for all that is summed, and stands to the sum as to the other factor."""
    if other.type != total.args[0].type:
        return False
    axes = normal_axes(total.get("axis"), other.type.rank)
    before = other.type.rank - factor.type.rank
    gone = [k for k in axes if k >= before]
    return not gone or bool(total.get("keepdims") and all(factor.type.shape[k - before] == ONE for k in gone))


def _scales(einsum: Call) -> bool:
    """Whether it is a number times an array: ",k->k"."""
    specs, out = einsum.get("spec")
    return tuple(specs) == ("", out)


def _turns(transpose: Call) -> bool:
    """Whether the axes of a matrix change places."""
    return transpose.get("axes") is None or [k % 2 for k in transpose.get("axes")] == [1, 0]


def _without_broadcasts(expr: Call) -> Expr | None:
    """f(broadcast_to(a), b) is f(a, b) where b has the full shape; f(broadcast_to(a), 2) is broadcast_to(f(a, 2))."""
    thinned = [a.args[0] if isinstance(a, Call) and a.op == "broadcast_to" else a for a in expr.args]
    spread = [t is not a for t, a in zip(thinned, expr.args, strict=True)]
    if any(spread) and all(s or not a.type.rank for s, a in zip(spread, expr.args, strict=True)):
        thin = construct.call(expr.op, *thinned, **dict(expr.static))
        if thin.type.dtype == expr.type.dtype:
            return construct.call("broadcast_to", thin, shape=expr.type.shape)
    for k, arg in enumerate(expr.args):
        if isinstance(arg, Call) and arg.op == "broadcast_to":
            args = [*expr.args[:k], arg.args[0], *expr.args[k + 1 :]]
            if broadcast([a.type.shape for a in args]) == expr.type.shape:
                return construct.call(expr.op, *args, **dict(expr.static))
    return None


def _index(expr: Index) -> Expr | None:
    """sum(a, axis=k, keepdims=True)[..., 0 at k, ...] is sum(a, axis=k); a[:, None][:, 0] is a."""
    match expr.base:
        case Call(op="negative", args=[a]):
            return construct.call("negative", construct.index(a, expr.items))
    taken = [k for k, item in enumerate(expr.items) if isinstance(item, At)]
    rest = [item for k, item in enumerate(expr.items) if k not in taken]
    extents = construct.item_extents(expr.base, expr.items)
    full = all(construct.is_full(item, extents[k]) for k, item in enumerate(expr.items) if k not in taken)
    if (
        not taken
        or not full
        or any(extents[k] != ONE for k in taken)
        or (not rest and expr.base.type.rank != len(taken))
    ):
        return None
    match expr.base:
        case Call(op="sum", args=[a]) if expr.base.get("keepdims"):
            axes = normal_axes(expr.base.get("axis"), a.type.rank)
            if list(axes) == taken:
                return construct.call("sum", a, axis=expr.base.get("axis"), keepdims=False)
        case Index(base=inner, items=items) if [k for k, i in enumerate(items) if isinstance(i, NewAxis)] == taken:
            if all(
                isinstance(i, NewAxis) or construct.is_full(i, e)
                for i, e in zip(items, construct.item_extents(inner, items), strict=True)
            ):
                return inner
    return None


# -- sums of contributions -------------------------------------------------------------------------------------
def total(terms: Sequence[Expr]) -> Expr:
    """The sum, with a factor or a divisor that all terms share taken out: a*x + a*y is a * (x + y)."""
    terms = _counted([simplify(t) for t in terms])
    if len(terms) > 1:
        divisor = _shared_divisor(terms)
        if divisor is not None:
            shape = broadcast([t.type.shape for t in terms])
            joined = construct.call("divide", total([_undivided(t) for t in terms]), divisor)
            if joined.type.shape == shape:
                return simplify(joined)
        shared = _shared_factor(terms)
        if shared is not None:
            rest = total([_without(t, shared) for t in terms])
            joined = construct.call("multiply", shared, rest)
            shape = broadcast([t.type.shape for t in terms])
            if joined.type.shape == shape:
                return simplify(joined)
    result = terms[0]
    for term in terms[1:]:
        result = construct.call("add", result, term)
    return simplify(result)


def _counted(terms: Sequence[Expr]) -> list[Expr]:
    """a + b + a is 2 * a + b."""
    counts: dict[Expr, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    return [t if n == 1 else simplify(construct.call("multiply", const(n), t)) for t, n in counts.items()]


def _shared_factor(terms: Sequence[Expr]) -> Expr | None:
    for factor in _factors(terms[0]):
        if not isinstance(factor, Const) and all(factor in _factors(t) for t in terms[1:]):
            return factor
    return None


def _shared_divisor(terms: Sequence[Expr]) -> Expr | None:
    divisors = [_divisor(t) for t in terms]
    return divisors[0] if all(d == divisors[0] for d in divisors) else None


def _divisor(expr: Expr) -> Expr | None:
    match expr:
        case Call(op="negative" | "broadcast_to", args=[a]):
            return _divisor(a)
        case Call(op="divide", args=[_, b]):
            return b
    return None


def _undivided(expr: Expr) -> Expr:
    """expr times its divisor."""
    match expr:
        case Call(op="negative", args=[a]):
            return construct.call("negative", _undivided(a))
        case Call(op="broadcast_to", args=[a]):
            return construct.call("broadcast_to", _undivided(a), shape=expr.type.shape)
        case Call(op="divide", args=[a, _]):
            return a
    raise AssertionError(expr)


def _factors(expr: Expr) -> list[Expr]:
    match expr:
        case Call(op="multiply", args=[a, b]):
            return [*_factors(a), *_factors(b)]
        case Call(op="negative", args=[a]):
            return _factors(a)
        case Call(op="divide", args=[a, _]):
            return _factors(a)
    return [expr]


def _without(expr: Expr, factor: Expr) -> Expr:
    """expr / factor, for a factor of it."""
    if expr == factor:
        return const(1)
    match expr:
        case Call(op="negative", args=[a]):
            return simplify(construct.call("negative", _without(a, factor)))
        case Call(op="divide", args=[a, b]):
            return simplify(construct.call("divide", _without(a, factor), b))
        case Call(op="multiply", args=[a, b]):
            if factor in _factors(a):
                rest = _without(a, factor)
                return b if rest == const(1) else simplify(construct.call("multiply", rest, b))
            rest = _without(b, factor)
            return a if rest == const(1) else simplify(construct.call("multiply", a, rest))
    raise AssertionError(expr)
