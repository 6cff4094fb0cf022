"""Applies the derivative of a row: the cotangents of a call's arguments from the cotangent of its result."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from ..transpile import construct
from ..transpile.construct import dim
from ..transpile.dims import is_thin, product
from ..transpile.errors import Mistake
from ..transpile.operations import BACKWARD, DEFINED, MISSING, ROWS, ZERO
from ..transpile.program import At, Call, Expr, Index, NewAxis, Slice, Type
from ..transpile.table.rearrange import diagonal_axes
from ..transpile.templates import instantiate
from ..transpile.typing import normal_axes
from .macros import column, matrix_macros, move_macros, swapped
from .simplify import simplify


def differentiable(call: Call) -> tuple[bool, ...]:
    """Which arguments a derivative can flow to."""
    row = ROWS[call.op]
    if row.grad == ZERO or not call.type.is_float:
        return (False,) * len(call.args)
    if row.grad == BACKWARD:
        return (False, *(a.type.is_float for a in call.args[1:]))
    if isinstance(row.grad, str):
        return tuple(a.type.is_float for a in call.args)
    return tuple(a.type.is_float and rule is not None for a, rule in zip(call.args, row.grad, strict=True))


def defined(call: Call) -> bool:
    """Whether the derivative is that of the definition. For a diagonal beside that of a square, too: it needs a
    scatter."""
    if call.op == "diagonal":
        i, j = diagonal_axes(call.args[0].type.rank, dict(call.static))
        return bool(call.get("offset")) or call.args[0].type.shape[i] != call.args[0].type.shape[j]
    return ROWS[call.op].grad == DEFINED


def _rules(call: Call) -> tuple[str | None, ...] | str:
    """The rules of its row, for as many elements as it has."""
    row = ROWS[call.op]
    if row.few:
        a = call.args[0].type
        count = product(a.shape[k] for k in normal_axes(call.get("axis"), a.rank)).value
        if count is not None and 1 <= count <= len(row.few):
            return (row.few[count - 1],)
    return row.grad


def mentions(call: Call, argument: int, name: str) -> bool:
    """Whether the rule for an argument reads `name`: an argument's name, y or dy."""
    grad = _rules(call)
    if isinstance(grad, str):
        return grad == "einsum" and name in ("dy", "a")
    rule = grad[argument]
    return rule is not None and (reads(rule, name) or (_shares(call, rule) and reads(_shared(call)[1], name)))


def reads_result(expr: Expr) -> bool:
    """Whether the rule of what an expression ends with reads its value: d_x of y = np.exp(x) is dy * y."""
    if not isinstance(expr, Call) or defined(expr):
        return False
    return ROWS[expr.op].grad == BACKWARD or any(mentions(expr, k, "y") for k in range(len(expr.args)))


def asks_which(call: Call) -> bool:
    """Whether its rule asks which elements equal the result."""
    grad = _rules(call)
    return not isinstance(grad, str) and any("== unreduce(y)" in rule for rule in grad if rule)


def _shared(call: Call) -> tuple[str, str]:
    """The name by which rules read what they share, and what it is."""
    name, _, text = ROWS[call.op].shared.partition(" = ")
    return name, text


def _shares(call: Call, rule: str) -> bool:
    return bool(ROWS[call.op].shared) and reads(rule, _shared(call)[0])


def reads(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def count_dy(call: Call, wanted: Sequence[bool]) -> int:
    """How often the rules for the wanted arguments read the cotangent."""
    grad = _rules(call)
    if isinstance(grad, str):
        return sum(wanted)
    rules = [rule for rule, w in zip(grad, wanted, strict=True) if w and rule]
    if any(_shares(call, rule) for rule in rules):
        rules.append(_shared(call)[1])
    return sum(len(re.findall(r"\bdy\b", rule)) for rule in rules)


def shared(call: Call, wanted: Sequence[bool], args: Sequence[Expr], y: Expr, dy: Expr) -> tuple[str, Expr, int] | None:
    """What the rules for the wanted arguments share: its name, its value, how often they read it."""
    grad = _rules(call)
    if isinstance(grad, str) or not ROWS[call.op].shared:
        return None
    name, text = _shared(call)
    uses = sum(len(re.findall(rf"\b{name}\b", rule)) for rule, w in zip(grad, wanted, strict=True) if w and rule)
    return (name, simplify(instantiate(text, _environment(call, args, y, dy))), uses) if uses else None


def _environment(call: Call, args: Sequence[Expr], y: Expr, dy: Expr) -> dict[str, Any]:
    names = dict(zip(ROWS[call.op].arrays, args, strict=True))
    return {**dict(call.static), **names, **_macros(call, args), "y": y, "dy": dy}


def pullback(
    call: Call, args: Sequence[Expr], y: Expr, dy: Expr, argument: int, known: dict[str, Expr] | None = None
) -> Expr:
    """The cotangent of one argument, in the shape of that argument or, for an elementwise operation, of the result.

    args, y: expressions for the values of the arguments and the result; known: of what rules share. Raises
    Mistake where there is no derivative.
    """
    row = ROWS[call.op]
    if row.grad == MISSING:
        raise Mistake(
            call.span,
            "derivative",
            f"{row.python} has no derivative here",
            "write a backward for this layer, or backward=None",
        )
    if row.grad == "pieces":
        return _piece(call, args, dy, argument)
    if row.grad == "einsum":
        return _einsum(call, args, dy, argument)
    env = {**_environment(call, args, y, dy), **(known or {})}
    rules = _rules(call)
    assert not isinstance(rules, str)
    rule = rules[argument]
    assert rule is not None
    return simplify(instantiate(rule, env))


def unbroadcast(expr: Expr, type: Type) -> Expr:
    """Sums expr over the axes along which a value of this type was repeated."""
    if expr.type.shape == type.shape:
        return expr
    lead = expr.type.rank - type.rank
    if not type.rank:
        return simplify(construct.call("sum", expr, axis=None))
    repeated = tuple(lead + k for k, d in enumerate(type.shape) if is_thin(d) and expr.type.shape[lead + k] != d)
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
        "inverse": lambda axes: (
            None if axes is None else tuple(sorted(range(len(axes)), key=lambda k: axes[k] % len(axes)))
        ),
        "matmul_left": lambda dy, b: _matmul_left(dy, args[0], b),
        "matmul_right": lambda a, dy: _matmul_right(a, dy, args[1]),
        "outer_left": lambda dy, b: construct.call("matmul", dy, b),
        "outer_right": lambda a, dy: construct.call("matmul", a, dy),
    }
    macros |= matrix_macros(call.op, args, unbroadcast) | move_macros(call, args)
    for name in ("dot", "inner"):
        macros[f"{name}_left"] = lambda dy, b: _by_einsum(call, args, dy, 0)
        macros[f"{name}_right"] = lambda a, dy: _by_einsum(call, args, dy, 1)
    if (
        "axis" in static
        and (static["axis"] is None or isinstance(static["axis"], (int, tuple)))
        and ROWS[call.op].kind in ("reduce", "compose")
    ):
        axes = normal_axes(static["axis"], a.rank)
        macros["unreduce"] = lambda e: _unreduce(e, a, axes)
        macros["rereduce"] = lambda e: construct.call(
            "sum", e, axis=static["axis"], keepdims=static.get("keepdims", False)
        )
        macros["count"] = dim(product(a.shape[k] for k in axes))
    return macros


def _unreduce(expr: Expr, type: Type, axes: tuple[int, ...]) -> Expr:
    """Spreads a reduced value over the axes it was reduced along."""
    if expr.type.rank and expr.type.rank < type.rank:
        rest = iter(expr.type.shape)
        expr = construct.index(
            expr, [NewAxis() if k in axes else construct.full_slice(next(rest)) for k in range(type.rank)]
        )
    return construct.call("broadcast_to", expr, shape=type.shape)


def _matmul_left(dy: Expr, a: Expr, b: Expr) -> Expr:
    if b.type.rank == 1:
        full = construct.call("multiply", column(dy), b) if a.type.rank > 1 else construct.call("multiply", dy, b)
        return unbroadcast(full, a.type)
    if a.type.rank == 1 and b.type.rank > 2:
        dy = construct.call("expand_dims", dy, axis=dy.type.rank - 1)
        return unbroadcast(
            construct.call("squeeze", construct.call("matmul", dy, swapped(b)), axis=dy.type.rank - 2), a.type
        )
    return unbroadcast(construct.call("matmul", dy, swapped(b)), a.type)


def _matmul_right(a: Expr, dy: Expr, b: Expr) -> Expr:
    if a.type.rank == 1:
        if b.type.rank == 1:
            return construct.call("multiply", a, dy)
        if b.type.rank > 2:
            dy = construct.call("expand_dims", dy, axis=dy.type.rank - 1)
        return unbroadcast(construct.call("multiply", column(a), dy), b.type)
    if b.type.rank == 1 and a.type.rank == 2:
        return construct.call("matmul", dy, a)
    if b.type.rank == 1:
        product_ = construct.call("multiply", a, column(dy))
        return unbroadcast(product_, b.type)
    return unbroadcast(construct.call("matmul", swapped(a), dy), b.type)


def _by_einsum(call: Call, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    spec = ROWS[call.op].spec
    assert spec is not None
    specs, out = spec([a.type for a in args])
    return _einsum_left(specs, out, args, dy, argument)


def _einsum(call: Call, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    specs, out = call.get("spec")
    return _einsum_left(list(specs), out, args, dy, argument)


def _einsum_left(specs: list[str], out: str, args: Sequence[Expr], dy: Expr, argument: int) -> Expr:
    """The einsum of the cotangent with the other operands, over what this operand does not index.

    A letter that the operand repeats, as in "ii->i", is spread by an identity matrix; one that only it has, as
    in "ij->i", by ones.
    """
    others = [(s, a) for k, (s, a) in enumerate(zip(specs, args, strict=True)) if k != argument]
    target, unused = "", (c for c in string.ascii_letters if c not in "".join([*specs, out]))
    for letter, extent in zip(specs[argument], args[argument].type.shape, strict=True):
        if letter in target:
            copy = next(unused)
            others.append((letter + copy, construct.call("eye", N=extent, dtype=dy.type.dtype)))
            letter = copy
        target += letter
    available = set("".join([out, *(s for s, _ in others)]))
    for letter, extent in zip(target, args[argument].type.shape, strict=True):
        if letter not in available:
            others.append((letter, construct.call("ones", shape=(extent,), dtype=dy.type.dtype)))
    spec = ((out, *(s for s, _ in others)), target)
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
