"""Operations with loops of their own: reductions, products, argmax and argmin, concatenation.

s = np.sum(x, axis=0)     for j: s[j] = 0
                          for i: for j: s[j] += x[i, j]        the operand's order, row by row
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ir
from ..dims import ONE, ZERO, Dim, nonnegative, product
from ..operations import ROWS, letters
from ..program import Call, Expr, Type
from ..table.products import einsum_extents
from ..templates import reduction_axes
from .context import Place, number
from .inlined import Inlined
from .scalars import both, cast, compare, neutral

_COMBINE = {
    "add": "add",
    "multiply": "mul",
    "maximum": "max",
    "minimum": "min",
    "logical_or": "or",
    "logical_and": "and",
}


class Reductions(Inlined):
    def maker(self, expr: Call) -> Callable[[Place, Any], None] | None:
        match ROWS[expr.op].kind, expr.op:
            case "reduce", _:
                return self.reduce
            case "product", _:
                return self.product
            case "body", _:
                return self.by_body
            case _, "argmax" | "argmin":
                return self._argument_of_extreme
            case _, "concatenate":
                return self._concatenate
            case _, "pad":
                return self._pad
        return None

    # -- reductions ----------------------------------------------------------------------------------------
    def reduce(self, place: Place, expr: Call, begin: bool = True) -> None:
        """place = the reduction; without `begin` it is added to what is there."""
        row, axes = ROWS[expr.op], reduction_axes(expr)
        assert row.reduce is not None
        start, combine = row.reduce
        source = self.prepare(expr.args[0])
        space = self.dims(source.type.shape)
        if expr.op in ("max", "min"):
            name = {"max": "maximum", "min": "minimum"}[expr.op]
            self._not_empty(space, axes, f"zero-size array to reduction operation {name} which has no identity", True)
        if begin:
            first = neutral(start, place.dtype)
            self.nest(place.shape, lambda i: (ir.Store(place.buffer, place.at(i), first),))

        def step(index: tuple[Dim, ...]) -> tuple[ir.Stmt, ...]:
            value = cast(self.element(source, index), place.dtype)
            return (ir.Store(place.buffer, place.at(_kept(index, axes, expr)), value, _COMBINE[combine]),)

        self.nest(space, step)

    def _not_empty(
        self, space: tuple[Dim, ...], axes: tuple[int, ...], message: str, unless_no_result: bool = False
    ) -> None:
        """As NumPy: where there is nothing to reduce; for max and min only if there is a result to be made
        from it.
        """
        taken = product(space[a] for a in axes)
        if nonnegative(taken - 1, self.facts):
            return
        kept = product(d for a, d in enumerate(space) if a not in axes)
        cond = compare("greater", number(taken), ir.Const(0, "i64"))
        if unless_no_result and not nonnegative(kept - 1, self.facts):
            cond = ir.Op("logical_or", (cond, compare("equal", number(kept), ir.Const(0, "i64"))), "bool")
        self.check(cond, "ValueError", message)

    def _argument_of_extreme(self, place: Place, expr: Call) -> None:
        """Sweeps the operand once, keeping the best value so far; the first of equals wins, and the first
        NaN.
        """
        axes = reduction_axes(expr)
        source = self.prepare(expr.args[0])
        space = self.dims(source.type.shape)
        self._not_empty(space, axes, f"attempt to get {expr.op} of an empty sequence")
        _, best = self.temp(Type(source.type.dtype, expr.type.shape), "best")

        def begin(index: tuple[Dim, ...]) -> tuple[ir.Stmt, ...]:
            rest = iter(d for k, d in enumerate(index) if not (expr.get("keepdims") and k in axes))
            first = self.element(source, tuple(ZERO if a in axes else next(rest) for a in range(len(space))))
            return ir.Store(best.buffer, best.at(index), cast(first, best.dtype)), ir.Store(
                place.buffer, place.at(index), ir.Const(0, place.dtype)
            )

        def step(index: tuple[Dim, ...]) -> tuple[ir.Stmt, ...]:
            kept = _kept(index, axes, expr)
            value = cast(self.element(source, index), best.dtype)
            so_far = ir.Load(best.buffer, best.at(kept), best.dtype)
            better = compare("greater" if expr.op == "argmax" else "less", value, so_far)
            if best.dtype in ir.FLOATS:
                nan = both(compare("not_equal", value, value), compare("equal", so_far, so_far))
                better = ir.Op("logical_or", (better, nan), "bool")
            position = ZERO
            for a in axes:
                position = position * space[a] + index[a]
            old = ir.Load(place.buffer, place.at(kept), place.dtype)
            chosen = ir.Op("where", (better, cast(number(position), place.dtype), old), place.dtype)
            return (
                ir.Store(place.buffer, place.at(kept), chosen),
                ir.Store(best.buffer, best.at(kept), ir.Op("where", (better, value, so_far), best.dtype)),
            )

        self.nest(place.shape, begin)
        self.nest(space, step, frozenset(axes))

    # -- products ------------------------------------------------------------------------------------------
    def product(self, place: Place, expr: Call, begin: bool = True) -> None:
        """An einsum: the axes of the result, then those that are summed. Without `begin` it is added to what
        is there.
        """
        specs, out = letters(expr)
        types = [a.type for a in expr.args]
        extents = {letter: self.dim(d) for letter, d in einsum_extents(specs, types).items()}
        summed = [letter for letter in dict.fromkeys("".join(specs)) if letter not in out]
        operands = [self._operand(a, spec, out) for a, spec in zip(expr.args, specs, strict=True)]
        if begin and summed:
            self.nest(place.shape, lambda i: (ir.Store(place.buffer, place.at(i), neutral(0, place.dtype)),))

        def step(index: tuple[Dim, ...]) -> tuple[ir.Stmt, ...]:
            at = dict(zip([*out, *summed], index, strict=True))
            value: ir.Expr | None = None
            for operand, spec in zip(operands, specs, strict=True):
                axes = tuple(
                    ZERO if d == ONE else at[letter] for letter, d in zip(spec, operand.type.shape, strict=True)
                )
                factor = cast(self.element(operand, axes), place.dtype)
                value = factor if value is None else ir.Op("multiply", (value, factor), place.dtype)
            assert value is not None
            target = place.at(tuple(at[letter] for letter in out))
            return (ir.Store(place.buffer, target, value, "add" if summed or not begin else None),)

        self.nest(tuple(extents[letter] for letter in [*out, *summed]), step)

    def _operand(self, operand: Expr, spec: str, out: str) -> Expr:
        """What every element of is used many times is computed once."""
        operand = self.prepare(operand)
        reused = any(letter not in spec for letter in out)
        return self.stored(operand) if reused and self.cost(operand) else operand

    # -- joining -------------------------------------------------------------------------------------------
    def _concatenate(self, place: Place, expr: Call) -> None:
        axis = expr.get("axis") % expr.type.rank
        offset = ZERO
        for piece in expr.args:
            shape = self.dims(piece.type.shape)

            def shifted(index: tuple[Dim, ...], by: Dim = offset) -> tuple[Dim, ...]:
                return place.at((*index[:axis], index[axis] + by, *index[axis + 1 :]))

            self.compute(Place(place.buffer, shape, place.dtype, (), shifted), piece)
            offset = offset + shape[axis]

    def _pad(self, place: Place, expr: Call) -> None:
        array, value = expr.args
        starts = []
        for before, after in expr.get("pad_width"):
            starts.append(self.dim(before))
            for width in (before, after):
                if not nonnegative(width, self.facts):
                    here = compare("greater_equal", number(self.dim(width)), ir.Const(0, "i64"))
                    self.check(here, "ValueError", "index can't contain negative values")

        def shifted(index: tuple[Dim, ...]) -> tuple[Dim, ...]:
            return place.at(tuple(i + by for i, by in zip(index, starts, strict=True)))

        self.copy(place, self.prepare(value))
        self.compute(Place(place.buffer, self.dims(array.type.shape), place.dtype, (), shifted), array)


def _kept(index: tuple[Dim, ...], axes: tuple[int, ...], expr: Call) -> tuple[Dim, ...]:
    """The index into the result of a reduction at an index of its operand."""
    if expr.get("keepdims"):
        return tuple(ZERO if a in axes else d for a, d in enumerate(index))
    return tuple(d for a, d in enumerate(index) if a not in axes)
