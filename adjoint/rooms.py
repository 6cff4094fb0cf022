"""Arrays in which the iterations of a loop leave what their reverses need: one place for each."""

from __future__ import annotations

from collections.abc import Sequence

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import ZERO, Dim, maximum, nonnegative
from ..transpile.program import Assign, Expr, For, Name, Stmt, Type


def position(stmt: For) -> Expr:
    """The number of the iteration, from 0."""
    counter = Name(stmt.var, Type("int"), Dim.of(stmt.var))
    start = value_of(stmt.start)
    offset = counter if start == ZERO else construct.call("subtract", counter, stmt.start)
    if stmt.step == -1:
        return construct.call("subtract", stmt.start, counter)
    return offset if stmt.step == 1 else construct.call("floor_divide", offset, const(stmt.step))


def room(name: str, type: Type, counts: Sequence[Dim]) -> tuple[Name, Stmt]:
    """An array for values of this type in as many iterations of the loops around, and the statement that makes it."""
    dtype = {"float": "real", "int": "i64"}.get(type.dtype, type.dtype)
    saved = Name(name, Type(dtype, (*map(_places, counts), *type.shape)))
    return saved, Assign(saved.id, construct.call("empty", shape=saved.type.shape, dtype=dtype))


def _places(count: Dim) -> Dim:
    """As many places as a loop may need, and no negative number of them: range(N - 1) is empty for N = 0."""
    constant = sum(c for monomial, c in count.terms if not monomial)
    above = count - constant if constant < 0 else count  # N reads better than max(0, N - 1)
    return above if nonnegative(above) else maximum(count, ZERO)


__all__ = ["position", "room"]
