"""Applies the derivative of a row: the cotangents of a call's arguments from the cotangent of its result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..transpile import construct
from ..transpile.construct import dim
from ..transpile.dims import ONE, product
from ..transpile.errors import Mistake
from ..transpile.operations import MISSING, ROWS, ZERO
from ..transpile.program import At, Call, Expr, Index, NewAxis, Slice, Type
from ..transpile.templates import instantiate
from ..transpile.typing import normal_axes
from .simplify import simplify


def differentiable(call: Call) -> tuple[bool, ...]:
    """Which arguments a derivative can flow to."""
    row = ROWS[call.op]
    if row.grad == ZERO or not call.type.is_float:
        return (False,) * len(call.args)
    if isinstance(row.grad, str):
        return tuple(a.type.is_float for a in call.args)
    return tuple(a.type.is_float and rule is not None for a, rule in zip(call.args, row.grad, strict=True))


def mentions(call: Call, argument: int, name: str) -> bool:
    """Whether the rule for an argument reads `name`: an argument's name, y or dy."""
    grad = ROWS[call.op].grad
    if isinstance(grad, str):
        return grad == "einsum" and name in ("dy", "a")
    rule = grad[argument]
    return rule is not None and re.search(rf"\b{name}\b", rule) is not None


def count_dy(call: Call, wanted: Sequence[bool]) -> int:
    """How often the rules for the wanted arguments read the cotangent."""
    grad = ROWS[call.op].grad
    if isinstance(grad, str):
        return sum(wanted)
    return sum(len(re.findall(r"\bdy\b", rule)) for rule, w in zip(grad, wanted, strict=True) if w and rule)


def pullback(call: Call, args: Sequence[Expr], y: Expr, dy: Expr, argument: int) -> Expr:
    """The cotangent of one argument, in the shape of that argument or, for an elementwise operation, of the result.

    args, y: expressions for the values of the arguments and the result. Raises Mistake where there is no derivative.
    """
    row = ROWS[call.op]
    if row.grad == MISSING:
        raise Mistake(call.span, "derivative", f"{row.python} has no derivative here", "write a backward for this layer, or backward=None")
    if row.grad == "pieces":
        return _piece(call, args, dy, argument)
    if row.grad == "einsum":
        return _einsum(call, args, dy, argument)
    names = dict(zip(row.arrays, args, strict=True))
    env = {**dict(call.static), **names, **_macros(call, args), "y": y, "dy": dy}
    assert not isinstance(row.grad, str)
    rule = row.grad[argument]
    assert rule is not None
    return simplify(instantiate(rule, env))


def unbroadcast(expr: Expr, type: Type) -> Expr:
    """Sums expr over the axes along which a value of this type was repeated."""
    if expr.type.shape == type.shape:
        return expr
    lead = expr.type.rank - type.rank
    if not type.rank:
        return simplify(construct.call("sum", expr, axis=None))
    repeated = tuple(lead + k for k, d in enumerate(type.shape) if d == ONE and expr.type.shape[lead + k] != ONE)
    if repeated:
        expr = construct.call("sum", expr, axis=repeated if len(repeated) > 1 else repeated[0], keepdims=True)
    if lead:
        expr = construct.call("sum", expr, axis=tuple(range(lead)) if lead > 1 else 0)
    return simplify(expr)


# -- what rules may call ---------------------------------------------------------------------------------------
def _macros(call: Call, args: Sequence[Expr]) -> dict[str, Any]:
    a = args[0].type if args else Type("real")
    static = dict(call.static)
    macros: dict[str, Any] = {
        "like": lambda e: construct.call("reshape", e, shape=a.shape) if e.type.shape != a.shape else e,
        "unbroadcast": lambda e: unbroadcast(e, args[-1].type),
        "inverse": lambda axes: None if axes is None else tuple(sorted(range(len(axes)), key=lambda k: axes[k] % len(axes))),
        "matmul_left": lambda dy, b: _matmul_left(dy, args[0], b),
        "matmul_right": lambda a, dy: _matmul_right(a, dy, args[1]),
        "outer_left": lambda dy, b: construct.call("matmul", dy, b),
        "outer_right": lambda a, dy: construct.call("matmul", a, dy),
    }
    for name in ("dot", "inner"):
        macros[f"{name}_left"] = lambda dy, b: _by_einsum(call, args, dy, 0)
        macros[f"{name}_right"] = lambda a, dy: _by_einsum(call, args, dy, 1)
    if "axis" in static and (static["axis"] is None or isinstance(static["axis"], (int, tuple))) and ROWS[call.op].kind in ("reduce", "compose"):
        axes = normal_axes(static["axis"], a.rank)
        macros["unreduce"] = lambda e: _unreduce(e, a, axes)
        macros["rereduce"] = lambda e: construct.call("sum", e, axis=static["axis"], keepdims=static.get("keepdims", False))
        macros["count"] = dim(product(a.shape[k] for k in axes))
    return macros


def _unreduce(expr: Expr, type: Type, axes: tuple[int, ...]) -> Expr:
    """Spreads a reduced value over the axes it was reduced along."""
    if expr.type.rank and expr.type.rank < type.rank:
        rest = iter(expr.type.shape)
        expr = construct.index(expr, [NewAxis() if k in axes else construct.full_slice(next(rest)) for k in range(type.rank)])
    return construct.call("broadcast_to", expr, shape=type.shape)


def _swapped(expr: Expr) -> Expr:
    if expr.type.rank < 2:
        return expr
    if expr.type.rank == 2:
        return construct.call("transpose", expr, axes=None)
    return construct.call("swapaxes", expr, axis1=-1, axis2=-2)


def _column(expr: Expr) -> Expr:
    return construct.call("expand_dims", expr, axis=expr.type.rank)


def _matmul_left(dy: Expr, a: Expr, b: Expr) -> Expr:
    if b.type.rank == 1:
        full = construct.call("multiply", _column(dy), b) if a.type.rank > 1 else construct.call("multiply", dy, b)
        return unbroadcast(full, a.type)
    if a.type.rank == 1:
        dy = construct.call("expand_dims", dy, axis=dy.type.rank - 1)
        return unbroadcast(construct.call("squeeze", construct.call("matmul", dy, _swapped(b)), axis=dy.type.rank - 2), a.type)
    return unbroadcast(construct.call("matmul", dy, _swapped(b)), a.type)


def _matmul_right(a: Expr, dy: Expr, b: Expr) -> Expr:
    if a.type.rank == 1:
        if b.type.rank == 1:
            return construct.call("multiply", a, dy)
        dy = construct.call("expand_dims", dy, axis=dy.type.rank - 1)
        return unbroadcast(construct.call("multiply", _column(a), dy), b.type)
    if b.type.rank == 1:
        product_ = construct.call("multiply", a, _column(dy))
        return unbroadcast(product_, b.type)
    return unbroadcast(construct.call("matmul", _swapped(a), dy), b.type)


def _by_einsum(call: Call, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    spec = ROWS[call.op].spec
    assert spec is not None
    specs, out = spec([a.type for a in args])
    return _einsum_left(specs, out, args, dy, argument)


def _einsum(call: Call, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    specs, out = call.get("spec")
    return _einsum_left(list(specs), out, args, dy, argument)


def _einsum_left(specs: list[str], out: str, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    """The einsum of the cotangent with the other operands, over what this operand does not index."""
    others = [(s, a) for k, (s, a) in enumerate(zip(specs, args, strict=True)) if k != argument]
    target = specs[argument]
    available = set(out).union(*(set(s) for s, _ in others)) if others else set(out)
    if len(set(target)) != len(target) or not set(target) <= available:
        raise Mistake(getattr(args[argument], "span"), "derivative", "this einsum has no derivative here yet", "write it with @ and np.sum")
    spec = (tuple([out, *(s for s, _ in others)]), target)
    return unbroadcast(construct.call("einsum", dy, *(a for _, a in others), spec=spec), args[argument].type)


def _piece(call: Call, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    """The part of a concatenation that came from one argument."""
    (axis,) = normal_axes(call.get("axis"), call.type.rank)
    start = sum((a.type.shape[axis] for a in args[:argument]), construct.ZERO)
    extent = args[argument].type.shape[axis]
    stop = start + extent
    items: list[Any] = [construct.full_slice(d) for d in dy.type.shape]
    lower = None if start == construct.ZERO else dim(start)
    upper = None if argument == len(args) - 1 else dim(stop)
    items[axis] = Slice(lower, upper, 1, start, extent)
    return construct.index(dy, items)


__all__ = ["At", "Index", "count_dy", "differentiable", "mentions", "pullback", "unbroadcast"]
