"""Operations whose meaning is a function of the subset: typed for these arguments, and lowered where the
call stands.

    y = np.cumsum(x, axis=1)      for b: y[b, 0] = x[b, 0]
                                         for i in 1..n: y[b, i] = y[b, i - 1] + x[b, i]
"""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import Any

from .. import construct, ir
from ..dims import ZERO, Dim, is_thin
from ..errors import InternalError, Reporter
from ..functions import FunctionChecker
from ..operations import ROWS
from ..program import Assert, At, Call, Expr, Name, Span, Stmt, Type
from ..source import Source, read
from ..table import bodies
from ..values import Fresh, Static, Value
from .aliases import Writes, is_view
from .context import Place
from .prepare import Prepare
from .scalars import ir_dtype


class Inlined(Prepare):
    writes: Writes
    trapping: bool

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        raise NotImplementedError

    def by_body(self, place: Place, expr: Call) -> None:
        """place = the operation, its body run for every index of the axes that it does not see."""
        row = ROWS[expr.op]
        args = [self._seen(a, row.each, expr) for a in expr.args]
        order = _order(row.each, expr)
        shape = tuple(expr.type.shape[k] for k in order)
        lead = _lead(row.each, expr)
        core = Type(place.dtype, shape[lead:])

        def make(outer: tuple[Dim, ...]) -> list[ir.Stmt]:
            def at(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
                moved = (*outer, *index)
                return place.at(tuple(moved[order.index(k)] for k in range(len(order))))

            inside: list[ir.Stmt] = []
            ranges = {v.symbol: (ZERO, extent - 1) for v, extent in zip(outer, shape, strict=False)}
            known = self.facts
            self.facts = {**known, **{v: r for v, r in ranges.items() if isinstance(v, str)}}
            with self.block(inside):
                parts = [self.prepare(_part(a, outer, _core(row.each, expr, a))) for a in args]
                target = Place(place.buffer, self.dims(core.shape), place.dtype, (), at)
                self._inline(expr, parts, target, core)
            self.facts = known
            return inside

        self.nest(self.dims(shape[:lead]), make)

    def _seen(self, arg: Expr, each: str, expr: Call) -> Expr:
        """An argument in memory, the axis that a vector runs along last."""
        arg = self.prepare(arg)
        if self.cost(arg) or not is_view(arg):
            arg = self.stored(arg)
        axis = expr.get("axis") % arg.type.rank if each == "vector" else -1
        if axis in (-1, arg.type.rank - 1):
            return arg
        return construct.call("moveaxis", arg, source=axis, destination=-1)

    def _inline(self, expr: Call, parts: list[Expr], target: Place, core: Type) -> None:
        row, source = ROWS[expr.op], _source()
        assert row.body is not None
        node = source.functions[row.body.__name__]
        checker = _BodyChecker(source, self.fresh, expr.span, dict(self.facts))
        arrays = dict(zip(row.arrays, parts, strict=True))
        for argument in node.args.args:
            name = argument.id
            if name not in arrays and name != "y":
                checker.env[name] = _static(expr.get(name))
                continue
            id = self.fresh(f"{expr.op}_{name}")
            if name == "y":
                self.env[id], type = target, core
            else:
                part = arrays[name]
                self.env[id], type = part, Type(ir_dtype(part.type), part.type.shape)
            checker.env[name] = Name(id, type, None, expr.span)
        statements = checker.checked(node)
        outside = self.writes, self.trapping, self.trusting, self.span
        self.writes, self.trapping, self.trusting = Writes.of(statements), False, True
        self.body(statements)
        self.writes, self.trapping, self.trusting, self.span = outside


class _BodyChecker(FunctionChecker):
    """Types a body: whatever it does stands where its call does."""

    scalars_are_places = True  # the result that a body writes may be one

    def __init__(self, source: Source, fresh: Fresh, span: Span, facts: dict[str, tuple[Dim, Dim]]) -> None:
        super().__init__(source, Reporter(), fresh)
        self.standing, self.facts = span, facts

    def span(self, node: Any) -> Span:
        return self.standing

    def checked(self, node: Any) -> tuple[Stmt, ...]:
        self.enter(node, self.source)
        self.block(node.body)
        if self.reporter.mistakes:
            mistake = self.reporter.mistakes[0]
            raise InternalError("bodies", f"{mistake.message} in the body of {node.name}", self.standing)
        return tuple(self.out)

    def _assert(self, node: Any, test: Any, msg: Any) -> None:
        """`assert c, "ValueError: text"` raises that."""
        kind, _, text = msg.value.partition(": ")
        self.emit(Assert(self.condition(test), text, self.standing, kind))


@cache
def _source() -> Source:
    found = read(Path(bodies.__file__), Reporter(), inspect.getsource(bodies))
    assert found is not None
    return found


def _static(value: Any) -> Value:
    if isinstance(value, Dim):
        return construct.dim(value)
    return construct.const(value) if isinstance(value, (bool, int, float)) else Static(value)


# -- which axes a body sees --------------------------------------------------------------------------------
def _order(each: str, expr: Call) -> tuple[int, ...]:
    """The axes of the result, those that the body sees last."""
    axes = list(range(expr.type.rank))
    if each == "vector":
        axes.append(axes.pop(expr.get("axis") % expr.type.rank))
    return tuple(axes)


def _lead(each: str, expr: Call) -> int:
    """How many axes of the result the body does not see."""
    if each == "rest":
        return int(expr.get("axis") % expr.type.rank)
    return max(a.type.rank - _core(each, expr, a) for a in expr.args)


def _core(each: str, expr: Call, arg: Expr) -> int:
    """How many axes of an argument the body sees."""
    if each == "rest":
        return arg.type.rank - _lead(each, expr)
    return min(arg.type.rank, 2 if each == "matrix" else 1)


def _part(arg: Expr, outer: tuple[Dim, ...], core: int) -> Expr:
    """What the body sees of an argument at an index of the leading axes, along which it may be repeated."""
    lead = arg.type.rank - core
    if not lead:
        return arg
    places = outer[len(outer) - lead :]
    items = [At(construct.dim(ZERO if is_thin(d) else at)) for d, at in zip(arg.type.shape, places, strict=False)]
    return construct.index(arg, items)


__all__ = ["Inlined"]
