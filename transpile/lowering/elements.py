"""One element of an expression: index maps are composed, nothing is stored.

    element(np.exp(x.T[1:] - c), (i, j))   ->   exp(x[j, i + 1] - c[j])

The expression must be prepared (see prepare.py): all it reads is in memory, its integer indices are symbolic.
"""

from __future__ import annotations

from typing import Any

from .. import ir
from ..construct import value_of
from ..dims import ONE, ZERO, Dim, is_thin
from ..operations import ROWS
from ..passes.tree import subst_expr
from ..program import At, Call, Const, Expr, Gather, Index, Name, NewAxis, Slice, Type
from ..table.moves import pull_broadcast
from .context import Context, Place, as_dim, number
from .scalars import cast, compare, ir_dtype, operand_dtype

_BOOLEAN = {"add": "logical_or", "multiply": "logical_and", "maximum": "logical_or", "minimum": "logical_and"}
_EXACT = {"add": Dim.__add__, "subtract": Dim.__sub__, "multiply": Dim.__mul__}
_UNUSED = ir.Const(0, "real")
# What NumPy makes of a constant exponent.


class Elements(Context):
    def element(self, expr: Expr, index: tuple[Dim, ...]) -> ir.Expr:
        if expr.type.is_integer and not expr.type.rank and (symbolic := value_of(expr)) is not None:
            return number(self.dim(symbolic))
        match expr:
            case Const(value, type):
                return ir.Const(value, ir_dtype(type))
            case Name(id):
                return self._named(id, index)
            case Index(base, items):
                return self.element(base, self.pulled(base.type, items, index))
            case Call():
                return self._called(expr, index)
        raise self.fail(f"no element of {expr}")

    def _named(self, id: str, index: tuple[Dim, ...]) -> ir.Expr:
        match self.env.get(id):
            case Place() as place:
                return ir.Load(place.buffer, place.at(index), place.dtype)
            case ir.Scalar() as scalar:
                return scalar
            case None:
                raise self.fail(f"{id} has no value here")
            case view:
                return self.element(view, index)

    def pulled(self, base: Type, items: tuple[Any, ...], index: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The index into an array that an index into array[items] means."""
        source: list[Dim] = []
        position, gathered = 0, None
        rank = max((i.index.type.rank for i in items if isinstance(i, Gather)), default=0)
        for item in items:
            match item:
                case NewAxis():
                    position += 1
                case At(at):
                    value = value_of(at)
                    assert value is not None, at
                    source.append(self.dim(value))
                case Slice(step=step, first=first, extent=extent):
                    source.append(self.dim(first) + (ZERO if is_thin(extent) else index[position] * step))
                    position += 1
                case Gather(array):
                    if gathered is None:
                        gathered = index[position : position + rank]
                        position += rank
                    read = as_dim(self.element(array, pull_broadcast(gathered, array.type)))
                    if read is None:
                        raise self.fail("an index array that is not in memory")
                    source.append(read)
        return tuple(source)

    def _called(self, expr: Call, index: tuple[Dim, ...]) -> ir.Expr:
        row, static = ROWS[expr.op], dict(expr.static)
        match row.kind:
            case "elementwise":
                return self._elementwise(expr, index)
            case "draw":
                return self._drawn(expr, index)
            case "move":
                assert row.pull is not None
                a = expr.args[0]
                return self.element(a, self.dims(row.pull(index, a.type, static)))
            case "make":
                assert row.make is not None
                args = [
                    _UNUSED
                    if name == "a"
                    else self.element(a, pull_broadcast(index, a.type))  # of `a` only the shape counts
                    for name, a in zip(row.arrays, expr.args, strict=True)
                ]
                return cast(subst_expr(row.make(index, args, static), self.symbols), ir_dtype(expr.type))
        match expr.op:
            case "cast":
                return cast(self.element(expr.args[0], index), ir_dtype(expr.type))
            case "reshape" | "ravel":
                return self.element(expr.args[0], unit_axes(index, expr.type, expr.args[0].type))
        raise self.fail(f"{expr.op} in an expression that was not prepared")

    def _elementwise(self, expr: Call, index: tuple[Dim, ...]) -> ir.Expr:
        op, result = expr.op, ir_dtype(expr.type)
        args = [self.element(a, pull_broadcast(index, a.type)) for a in expr.args]
        if op == "where":
            return ir.Op("where", (cast(args[0], "bool"), cast(args[1], result), cast(args[2], result)), result)
        wanted = operand_dtype(op, [a.type for a in expr.args], expr.type)
        args = [a if wanted is None else cast(a, wanted) for a in args]
        if op in _EXACT and any(isinstance(a, ir.Int) for a in args) and all(map(_is_integer, args)):
            a, b = (dim for arg in args if (dim := as_dim(arg)) is not None)
            return ir.Int(_EXACT[op](a, b))
        if result == "bool":
            op = _BOOLEAN.get(op, op)
        if op in ("floor_divide", "mod") and result not in ir.FLOATS:
            return divided(op, args[0], args[1], result, by_array=expr.args[1].type.rank > 0)
        return ir.Op(op, tuple(args), result)

    def _drawn(self, expr: Call, index: tuple[Dim, ...]) -> ir.Expr:
        """A random number: by its seed and draw, the example, its place in the array, and what it is drawn from."""
        rng, draw, *rest = (self.element(a, pull_broadcast(index, a.type)) for a in expr.args)
        place = ZERO
        for i, extent in zip(index, self.dims(expr.type.shape), strict=True):
            place = place * extent + i
        wanted = "f64" if expr.type.dtype == "bool" else "i64"  # a probability; limits
        args = (rng, draw, number(self.row or ZERO), number(place), *(cast(a, wanted) for a in rest))
        return ir.Op(expr.op, args, ir_dtype(expr.type))


def _is_integer(arg: ir.Expr) -> bool:
    return isinstance(arg, ir.Int) or (isinstance(arg, ir.Const) and arg.dtype == "i64")


def divided(op: str, a: ir.Expr, b: ir.Expr, dtype: str, by_array: bool) -> ir.Expr:
    """Integer division. By a scalar, zero has been ruled out; by an array's zero it is 0, as NumPy's."""
    if not by_array or (isinstance(b, ir.Const) and b.value):
        return ir.Op(op, (a, b), dtype)
    zero, one = ir.Const(0, dtype), ir.Const(1, dtype)
    none = compare("equal", b, zero)
    return ir.Op("where", (none, zero, ir.Op(op, (a, ir.Op("where", (none, one, b), dtype)), dtype)), dtype)


def same_but_units(a: Type, b: Type) -> bool:
    """Whether two shapes differ in axes of extent 1 only."""
    return [d for d in a.shape if d != ONE] == [d for d in b.shape if d != ONE]


def unit_axes(index: tuple[Dim, ...], result: Type, source: Type) -> tuple[Dim, ...]:
    """The index before a reshape that only adds or drops axes of extent 1."""
    rest = iter([i for i, d in zip(index, result.shape, strict=True) if d != ONE])
    return tuple(ZERO if d == ONE else next(rest) for d in source.shape)


__all__ = ["Elements", "divided", "same_but_units", "unit_axes"]
