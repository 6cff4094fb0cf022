"""Simplifies scalar expressions by identities that hold for every float, NaN and signed zero included.

    x * 1 -> x      x - 0 -> x      -(-x) -> x      where(c, a, a) -> a      where(True, a, b) -> a
    int(n) + 1 -> int(n + 1)        real(2) -> 2.0  3.0 - 1.0 -> 2.0         power(x, 2) -> square(x)

x + 0 stays (it turns -0 into 0), x * 0 stays (it keeps NaN).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ..dims import Dim
from ..ir import FLOATS, Cast, Const, Expr, If, Int, Kernel, Op, Stmt
from .tree import Body, map_expr, map_own, map_stmts

_INTEGER = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b}
_COMPARE = {
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
}


_POWERS: dict[float, Callable[[Expr, str], Expr]] = {
    -1: lambda x, dtype: Op("reciprocal", (x,), dtype),
    0.5: lambda x, dtype: Op("sqrt", (x,), dtype),
    0: lambda x, dtype: Const(1.0, dtype),
    1: lambda x, dtype: Op("positive", (x,), dtype),
    2: lambda x, dtype: Op("square", (x,), dtype),
    3: lambda x, dtype: Op("multiply", (Op("square", (x,), dtype), x), dtype),
}
_WHOLE = frozenset((4, 5, 6))  # products make them
_QUARTERS = frozenset((-1.5, -0.75, -0.5, -0.25, 0.25, 0.75, 1.5))  # square roots make them


def fold(kernel: Kernel) -> Kernel:
    return replace(kernel, body=fold_body(kernel.body))


def fold_body(body: Body) -> Body:
    return map_stmts(body, _stmt)


def _stmt(stmt: Stmt) -> Body:
    stmt = map_own(stmt, lambda d: d, lambda e: map_expr(e, simplify))
    if isinstance(stmt, If) and isinstance(stmt.cond, Const):
        return stmt.then if stmt.cond.value else stmt.orelse
    return (stmt,)


def simplify(expr: Expr) -> Expr:
    """One node, its arguments being simple already."""
    match expr:
        case Op(op, (a, b), "i64") if (
            op in _INTEGER and (x := _integer(a)) is not None and (y := _integer(b)) is not None
        ):
            return _as_integer(_INTEGER[op](x, y))
        case Op("negative", (a,), "i64") if (x := _integer(a)) is not None:
            return _as_integer(-x)
        case Op(op, (a, b), _) if op in _COMPARE and (known := _known(op, a, b)) is not None:
            return Const(known, "bool")
        case Op("greater" | "not_equal", (Cast(a), Const(value)), _) if value == 0 and _type(a) == "bool":
            return a
        case Op("equal", (Cast(a), Const(value)), _) if value == 0 and _type(a) == "bool":
            return Op("logical_not", (a,), "bool")
        case Op("multiply" | "divide", (a, Const(value)), dtype) if value == 1 and _type(a) == dtype:
            return a
        case Op("divide", (a, Const(float(value))), dtype) if dtype in FLOATS and _is_power_of_two(value):
            return Op("multiply", (a, Const(1 / value, dtype)), dtype)  # as exact
        case Op("multiply", (Const(value), b), dtype) if value == 1 and _type(b) == dtype:
            return b
        case Op("subtract", (a, Const(value)), dtype) if _is_zero(value, 1) and _type(a) == dtype:
            return a
        case Op("add", (a, Const(value)), dtype) if _is_zero(value, -1) and _type(a) == dtype:
            return a
        case Op("negative", (Op("negative", (a,), _),), _):
            return a
        case Op("negative", (Const(value, dtype),), _) if dtype != "bool":
            return Const(-value, dtype)
        case Op("add" | "subtract" | "multiply" as op, (Const(a), Const(b)), dtype) if dtype in FLOATS and _are_short(
            a, b
        ):
            return Const(float(_INTEGER[op](a, b)), dtype)
        case Op("power", (base, Const(value)), dtype) if dtype in FLOATS and value in _POWERS:
            return _POWERS[value](base, dtype)
        case Op("power", (_, Const(value)) as args, dtype) if dtype in FLOATS and value in _WHOLE:
            return Op("power_whole", args, dtype)
        case Op("power", (_, Const(value)) as args, dtype) if dtype in FLOATS and value in _QUARTERS:
            return Op("power_quarters", args, dtype)
        case Op("where", (Const(value), a, b), _):
            return a if value else b
        case Op("where", (_, a, b), _) if a == b:
            return a
        case Op("where", (Op("logical_not", (c,), _), a, b), dtype):
            return Op("where", (c, b, a), dtype)
        case Op("logical_not", (Const(value),), _):
            return Const(not value, "bool")
        case Op("logical_and" | "bitwise_and", (Const(value, "bool"), b), _) if _type(b) == "bool":
            return b if value else Const(False, "bool")
        case Op("logical_and" | "bitwise_and", (a, Const(value, "bool")), _) if _type(a) == "bool":
            return a if value else Const(False, "bool")
        case Op("logical_or" | "bitwise_or", (Const(value, "bool"), b), _) if _type(b) == "bool":
            return Const(True, "bool") if value else b
        case Op("logical_or" | "bitwise_or", (a, Const(value, "bool")), _) if _type(a) == "bool":
            return Const(True, "bool") if value else a
        case Cast(value, dtype):
            return _cast(value, dtype, expr)
    return expr


def _cast(value: Expr, dtype: str, whole: Expr) -> Expr:
    if _type(value) == dtype:
        return value
    match value:
        case Const(number, _) if dtype in ("real", "f64"):
            return Const(float(number), dtype)
        case Const(number, _) if dtype == "bool":
            return Const(bool(number), dtype)
        case Int(dim) if dtype in ("real", "f64") and dim.value is not None and abs(dim.value) < 2**24:
            return Const(float(dim.value), dtype)
    return whole


def _type(expr: Expr) -> str:
    return "i64" if isinstance(expr, Int) else expr.dtype


def _integer(expr: Expr) -> Dim | None:
    match expr:
        case Int(dim):
            return dim
        case Const(bool(), _):
            return None
        case Const(int(value), "i64"):
            return Dim.of(value)
    return None


def _as_integer(dim: Dim) -> Expr:
    return Const(dim.value, "i64") if dim.value is not None else Int(dim)


def _known(op: str, a: Expr, b: Expr) -> bool | None:
    x, y = _integer(a), _integer(b)
    if x is not None and y is not None and (apart := (x - y).value) is not None:
        return bool(_COMPARE[op](apart, 0))
    match a, b:
        case Const(u, t), Const(v, s) if t == s:
            return bool(_COMPARE[op](u, v))
    return None


def _is_power_of_two(value: float) -> bool:
    return 2.0**-64 <= abs(value) <= 2.0**64 and abs(math.frexp(value)[0]) == 0.5


def _are_short(*numbers: float) -> bool:
    """Whether sums and products of them are exact in every float type: small ones, whole or halves."""
    return all(abs(n) <= 2**10 and float(2 * n).is_integer() for n in numbers)


def _is_zero(value: float, sign: int) -> bool:
    return value == 0 and math.copysign(1, value) == sign
