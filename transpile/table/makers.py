"""Arrays made from nothing: each element is a function of its index."""

from __future__ import annotations

from typing import Any

from .. import ir
from ..dims import Dim
from ..operations import ZERO, Row, add
from ..program import Type

_SHAPE = "shape: shape, dtype: dtype = None"
_LIKE = "a, dtype: dtype = None"


def _filled(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(static["dtype"] or "real", tuple(static["shape"]))


def _like(args: list[Type], static: dict[str, Any]) -> Type:
    dtype = static["dtype"] or {"float": "real", "int": "i64"}.get(args[0].dtype, args[0].dtype)
    return Type(dtype, args[0].shape)


def _full(args: list[Type], static: dict[str, Any]) -> Type:
    dtype = {"float": "real", "int": "i64"}.get(args[0].dtype, args[0].dtype)
    return Type(static["dtype"] or dtype, tuple(static["shape"]))


def _full_like(args: list[Type], static: dict[str, Any]) -> Type:
    return _like(args[:1], static)


def _range(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(static["dtype"] or "i64", (static["stop"] - static["start"],))


def _identity(args: list[Type], static: dict[str, Any]) -> Type:
    return Type(static["dtype"] or "real", (static["n"], static["m"] if static["m"] is not None else static["n"]))


def _constant(value: int) -> Any:
    return lambda index, args, static: ir.Const(value, "real")


def _count(index: tuple[Dim, ...], args: list[ir.Expr], static: dict[str, Any]) -> ir.Expr:
    return ir.Int(index[0] + static["start"])


def _diagonal(index: tuple[Dim, ...], args: list[ir.Expr], static: dict[str, Any]) -> ir.Expr:
    return ir.Op("equal", (ir.Int(index[0] + static["k"]), ir.Int(index[1])), "bool")


add(
    Row("zeros", "np.zeros", _SHAPE, "make", _filled, ZERO, make=_constant(0)),
    Row("ones", "np.ones", _SHAPE, "make", _filled, ZERO, make=_constant(1)),
    Row("empty", "np.empty", _SHAPE, "make", _filled, ZERO, make=_constant(0)),
    Row("full", "np.full", "shape: shape, value, dtype: dtype = None", "make", _full, ("unbroadcast(dy)",), make=lambda index, args, static: args[0]),
    Row("zeros_like", "np.zeros_like", _LIKE, "make", _like, ZERO, make=_constant(0)),
    Row("ones_like", "np.ones_like", _LIKE, "make", _like, ZERO, make=_constant(1)),
    Row("empty_like", "np.empty_like", _LIKE, "make", _like, ZERO, make=_constant(0)),
    Row("full_like", "np.full_like", "a, value, dtype: dtype = None", "make", _full_like, (None, "unbroadcast(dy)"), make=lambda index, args, static: args[1]),
    Row("arange", "np.arange", "start: extent, stop: extent = None, dtype: dtype = None", "make", _range, ZERO, make=_count),
    Row("eye", "np.eye np.identity", "n: extent, m: extent = None, k: int = 0, dtype: dtype = None", "make", _identity, ZERO, make=_diagonal),
    Row("dim", "dim", "dim: extent", "special", lambda args, static: Type("int"), ZERO),
    Row("list", "list", "type: value", "special", lambda args, static: static["type"], ZERO),
)
