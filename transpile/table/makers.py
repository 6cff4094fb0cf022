"""Arrays made from nothing: each element is a function of its index."""

from __future__ import annotations

from typing import Any

from .. import ir
from ..dims import ONE, Dim, maximum
from ..dims import ZERO as NONE
from ..operations import ZERO, Row, add
from ..program import Type
from ..typing import TypingError, must_stretch

_SHAPE = "shape: shape, dtype: dtype = None"
_LIKE = "a, dtype: dtype = None"


def _filled(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(static["dtype"] or "real", tuple(static["shape"]))


def _like(args: list[Type], static: dict[str, Any]) -> Type:
    dtype = static["dtype"] or {"float": "real", "int": "i64"}.get(args[0].dtype, args[0].dtype)
    return Type(dtype, args[0].shape)


def _full(args: list[Type], static: dict[str, Any]) -> Type:
    dtype = {"float": "real", "int": "i64"}.get(args[0].dtype, args[0].dtype)
    must_stretch(args[0].shape, tuple(static["shape"]))
    return Type(static["dtype"] or dtype, tuple(static["shape"]))


def _full_like(args: list[Type], static: dict[str, Any]) -> Type:
    must_stretch(args[1].shape, args[0].shape)
    return _like(args[:1], static)


def _range(args: list[Type], static: dict[str, Any]) -> Type:
    step = static["step"]
    if step == 0:
        raise TypingError("type", "the step of np.arange cannot be zero")
    span = static["stop"] - static["start"] if step > 0 else static["start"] - static["stop"]
    return Type(static["dtype"] or "i64", (maximum((span + (abs(step) - 1)) // abs(step), NONE, {}),))


def _identity(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(static["dtype"] or "real", (static["N"], static["M"] if static["M"] is not None else static["N"]))


def _constant(value: int) -> Any:
    return lambda index, args, static: ir.Const(value, "real")


def _count(index: tuple[Dim, ...], args: list[ir.Expr], static: dict[str, Any]) -> ir.Expr:
    return ir.Int(index[0] * static["step"] + static["start"])


def _diagonal(index: tuple[Dim, ...], args: list[ir.Expr], static: dict[str, Any]) -> ir.Expr:
    return ir.Op("equal", (ir.Int(index[0] + static["k"]), ir.Int(index[1])), "bool")


def _spaced_type(args: list[Type], static: dict[str, Any]) -> Type:
    if any(a.rank for a in args):
        raise TypingError("shape", "np.linspace goes from a scalar to a scalar")
    return Type(static["dtype"] or "real", (Dim.of(static["num"]),))


def _spaced(index: tuple[Dim, ...], args: list[ir.Expr], static: dict[str, Any]) -> ir.Expr:
    """In double precision, as NumPy's; the last is `stop` itself."""
    start, stop = (ir.Const(float(a.value), "f64") if isinstance(a, ir.Const) else ir.Cast(a, "f64") for a in args)
    last = maximum(Dim.of(static["num"]) - (1 if static["endpoint"] else 0), ONE, {})
    step = ir.Op("divide", (ir.Op("subtract", (stop, start), "f64"), ir.Cast(ir.Int(last), "f64")), "f64")
    here = ir.Op("add", (start, ir.Op("multiply", (ir.Cast(ir.Int(index[0]), "f64"), step), "f64")), "f64")
    return ir.Op("where", (ir.Op("equal", (ir.Int(index[0]), ir.Int(last)), "bool"), stop, here), "f64")


add(
    Row("zeros", "np.zeros", _SHAPE, "make", _filled, ZERO, make=_constant(0)),
    Row("ones", "np.ones", _SHAPE, "make", _filled, ZERO, make=_constant(1)),
    Row("empty", "np.empty", _SHAPE, "make", _filled, ZERO, make=_constant(0)),
    Row("full", "np.full", "shape: shape, value, dtype: dtype = None", "make", _full, ("unbroadcast(dy)",), make=lambda index, args, static: args[0]),
    Row("zeros_like", "np.zeros_like", _LIKE, "make", _like, ZERO, make=_constant(0)),
    Row("ones_like", "np.ones_like", _LIKE, "make", _like, ZERO, make=_constant(1)),
    Row("empty_like", "np.empty_like", _LIKE, "make", _like, ZERO, make=_constant(0)),
    Row("full_like", "np.full_like", "a, value, dtype: dtype = None", "make", _full_like, (None, "unbroadcast(dy)"), make=lambda index, args, static: args[1]),
    Row("arange", "np.arange", "start: extent, stop: extent = None, step: int = 1, dtype: dtype = None", "make", _range, ZERO, make=_count),
    Row("eye", "np.eye np.identity", "N: extent, M: extent = None, k: int = 0, dtype: dtype = None", "make", _identity, ZERO, make=_diagonal),
    Row(
        "linspace", "np.linspace", "start, stop, num: extent = 50, endpoint: flag = True, dtype: dtype = None", "make", _spaced_type,
        ("np.sum(dy * np.linspace(1, 0, num, endpoint=endpoint))", "np.sum(dy * np.linspace(0, 1, num, endpoint=endpoint))"), make=_spaced,
    ),
    Row("dim", "dim", "dim: extent", "special", lambda args, static: Type("int"), ZERO),
    Row("list", "list", "type: value", "special", lambda args, static: static["type"], ZERO),
)
