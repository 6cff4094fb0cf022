"""Types of scalars: what the typed program's dtypes are in the IR, and conversions between them."""

from __future__ import annotations

from .. import ir
from ..program import Type
from ..typing import as_float, promote

INTEGERS = ("i32", "i64", "bool")
_TESTS = ("isnan", "isinf", "isfinite")
_LOGIC = ("logical_and", "logical_or", "logical_xor", "logical_not")


def ir_dtype(type: Type) -> str:
    """A weak float is a double, as Python's: it gives way where it meets an array. An array of them is
    `real`.
    """
    if type.dtype == "float":
        return "real" if type.rank else "f64"
    return "i64" if type.dtype == "int" else type.dtype


def dtype_of(expr: ir.Expr) -> str:
    return "i64" if isinstance(expr, ir.Int) else expr.dtype


def cast(expr: ir.Expr, dtype: str) -> ir.Expr:
    """expr as a dtype; constants are converted here and now, a select in its branches."""
    if dtype_of(expr) == dtype:
        return expr
    match expr:
        case ir.Const(value):
            return ir.Const(_constant(value, dtype), dtype)
        case ir.Int(dim) if dim.value is not None:
            return ir.Const(_constant(dim.value, dtype), dtype)
        case ir.Op("where", (test, a, b), _):
            return ir.Op("where", (test, cast(a, dtype), cast(b, dtype)), dtype)
    return ir.Cast(expr, dtype)


def _constant(value: bool | int | float, dtype: str) -> bool | int | float:
    if dtype == "bool":
        return bool(value)
    return float(value) if dtype in ir.FLOATS else int(value)


def operand_dtype(op: str, args: list[Type], result: Type) -> str | None:
    """The dtype that the arguments of an elementwise operation are converted to; None: each stays as it
    is.
    """
    if result.dtype != "bool":
        return ir_dtype(result)
    if op in _LOGIC:
        return None
    rank = max(a.rank for a in args)
    dtype = promote(args)
    if op in _TESTS:
        dtype = as_float(dtype)
    shape = max((a.shape for a in args), key=len)
    return ir_dtype(Type(dtype, shape if rank else ()))


def neutral(element: object, dtype: str) -> ir.Const:
    """The neutral element of a reduction: a number, or "lowest" and "highest" of the dtype."""
    if element in ("lowest", "highest"):
        low = element == "lowest"
        if dtype in ir.FLOATS:
            return ir.Const(float("-inf") if low else float("inf"), dtype)
        if dtype == "bool":
            return ir.Const(not low, dtype)
        bits = 31 if dtype == "i32" else 63
        return ir.Const(-(2**bits) if low else 2**bits - 1, dtype)
    assert isinstance(element, (bool, int, float))
    return ir.Const(_constant(element, dtype), dtype)


def compare(op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Op(op, (a, b), "bool")


def both(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Op("logical_and", (a, b), "bool")


def either(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Op("logical_or", (a, b), "bool")
