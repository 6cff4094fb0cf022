"""Operators, comparisons, conditions and ternaries; and what a row of the table makes of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gast

from . import construct
from .construct import const, known_truth, number_of, value_of
from .dims import ONE, ZERO, Dim, maximum, may_be_one, minimum, nonnegative, product
from .fold import fold
from .operations import BY_SPELLING, ROWS, Row
from .program import (
    At,
    Call,
    Expr,
    stored,
)
from .values import (
    Closure,
    Static,
    Tuple,
    Value,
)

_MOST_ITEMS = 10000  # of a list whose items are known one by one
_OPERATORS = (gast.UnaryOp, gast.BinOp, gast.AugAssign, gast.Compare)
EITHER = (
    "this truth value is Python's own on one path and NumPy's on another, which have another arithmetic",
    "bool(v) is Python's own on every path",
)


class Operators:
    """Mixed into the checker of expressions."""

    def _operator(self: Any, spelling: str, operands: list[Any], node: Any) -> Value:
        row = BY_SPELLING.get(spelling)
        if row is None:
            raise self.fail(node, "unsupported", f"the operator {spelling} is not part of the subset")
        self.no_lists(operands)
        values = self.values(operands)
        if spelling in ("Add", "Mult") and any(isinstance(v, Tuple) for v in values):
            return self._tuple_arithmetic(spelling, values, node)
        return self.apply(row, [self.as_expr(v, o) for v, o in zip(values, operands, strict=True)], {}, node)

    def _tuple_arithmetic(self: Any, spelling: str, values: list[Value], node: Any) -> Value:
        match spelling, values:
            case "Add", [Tuple(a), Tuple(b)]:
                if isinstance(node, gast.BinOp) and {type(node.left), type(node.right)} == {gast.List, gast.Tuple}:
                    raise self.fail(node, "type", "a list and a tuple cannot be joined", "write both as one kind")
                return Tuple(a + b)
            case "Mult", [Tuple(a), Expr_] if not isinstance(Expr_, (Tuple, Static, Closure)):
                count = value_of(self.as_expr(Expr_, node))
                if count is not None and count.value is not None and len(a) * count.value > _MOST_ITEMS:
                    what = f"a list of {len(a) * count.value} items"
                    raise self.fail(node, "unsupported", what, "make an array: np.full(n, v), np.zeros(n)")
                if count is not None and count.value is not None:
                    return Tuple(a * count.value)
        raise self.fail(node, "type", "this arithmetic on tuples is not part of the subset")

    def apply(self: Any, row: Row, args: Sequence[Expr], static: dict[str, Any], node: Any) -> Expr:
        """An operation, checked. Operators make Python's own numbers of such, functions make NumPy's."""
        made = self._apply(row, args, static, node)
        return construct.pythons(made, isinstance(node, _OPERATORS) and construct.owner(args))

    def _apply(self: Any, row: Row, args: Sequence[Expr], static: dict[str, Any], node: Any) -> Expr:
        numpys = not isinstance(node, _OPERATORS) and any(a.type.dtype == "bool" for a in args)
        folded = None if numpys else fold(row.name, args)
        if folded is not None:
            if (
                isinstance(folded, construct.Const)
                and isinstance(folded.value, int)
                and not -(2**63) <= folded.value < 2**63
            ):
                raise self.fail(node, "type", "the integer does not fit 64 bits", "write a float: 2.0 ** 64")
            return construct.replace(folded, span=self.span(node))
        if row.name in ("max", "min") and not args[0].type.rank:
            if static["axis"] not in (None, 0, -1, ()):
                raise self.fail(node, "shape", "a number has no axes", "leave axis out")
            return args[0]
        if row.name == "squeeze" and (taken := self.squeezed(args[0], static["axis"], node)) is not None:
            return taken
        if all(a.type.dtype == "bool" for a in args):
            args = self._numbers_of_truths(args, node)
        if row.truths and all(a.type.dtype == "bool" for a in args):
            raise self.fail(node, "type", *row.truths)
        if row.name == "bitwise_not" and args[0].type.dtype == "bool":
            row = ROWS["logical_not"]
        if row.name.startswith("bitwise") and any(a.type.is_float for a in args):
            raise self.fail(
                node, "type", "& | ^ ~ take booleans or integers", "compare first, in parentheses: (x > 0) & (y > 0)"
            )
        if row.name.endswith("_shift"):
            self._by_a_number_of_bits(args, node)
        if row.name == "power":
            args = self._whole_power(args, node)
        args = self._agreeing(args, _axes(row, args, static), node)
        made = construct.call(row.name, *args, span=self.span(node), **static)
        if row.name in ("maximum", "minimum") and isinstance(made, Call) and made.value is not None:
            (a, b), choose = map(value_of, args), maximum if row.name == "maximum" else minimum
            made = replace(made, value=choose(a or ZERO, b or ZERO, self.facts))
        if isinstance(made, Call) and any(d.value is not None and d.value < 0 for d in made.type.shape):
            several = row.name == "reshape" and sum(d.value == -1 for d in static["shape"]) > 1
            help = "at most one extent is -1: write the others out" if several else "an extent is 0 or more"
            raise self.fail(node, "shape", "negative dimensions are not allowed", help)
        self._no_less_than_nothing(made, args, node)
        if row.name == "reshape":
            self._fill_the_hole(static["shape"], node)
        if row.name == "reshape" and (size := product(args[0].type.shape)) != product(made.type.shape):
            fits = construct.call("equal", construct.dim(size), construct.dim(product(made.type.shape)))
            message = (
                f"cannot reshape {construct.shape_text(args[0].type.shape)} to {construct.shape_text(made.type.shape)}"
            )
            self.require(fits, message, node)
        return made

    def _numbers_of_truths(self: Any, args: Sequence[Expr], node: Any) -> Sequence[Expr]:
        """True + True is 2 of Python's own truth values, those of counters and configuration and what `not` gives; it
        is True of NumPy's, which have no -."""
        match node:
            case gast.BinOp(op=op) | gast.AugAssign(op=op):
                adds = not isinstance(op, (gast.BitAnd, gast.BitOr, gast.BitXor))
            case gast.UnaryOp(op=op):
                adds = not isinstance(op, gast.Not)
            case _:
                adds = False
        own = adds and construct.owner(args)
        if own is None:
            raise self.fail(node, "type", *EITHER)
        if own:
            return [construct.cast(a, "int") for a in args]
        return args

    def _by_a_number_of_bits(self: Any, args: Sequence[Expr], node: Any) -> None:
        if any(not a.type.is_integer for a in args):
            raise self.fail(node, "type", "<< and >> take integers", "multiply by a power of two: x * 2.0**n")
        if all(isinstance(a, construct.Const) for a in args):  # what Python computes would have been folded
            raise self.fail(node, "type", "negative shift count")

    def _whole_power(self: Any, args: Sequence[Expr], node: Any) -> Sequence[Expr]:
        """An integer to the power of another: a negative one gives a float in Python, and no result in NumPy."""
        base, exponent = args
        if base.type.is_float or not exponent.type.is_integer:
            return args
        power = value_of(exponent)
        if power is not None and nonnegative(power, self.facts):
            return args
        plain = all(a.type.dtype == "int" for a in args)
        below = power is not None and nonnegative(-power - 1, self.facts)
        if plain and below and not isinstance(base, construct.Const):
            return construct.cast(base, "float"), exponent
        message = "Integers to negative integer powers are not allowed"
        if plain:
            message = "an integer to a negative power is a float: write 2.0 ** n"
        if below:
            raise self.fail(node, "type", message, "make it a float: 2.0 ** n, i.astype(np.float64) ** n")
        least = construct.call("greater_equal", exponent, const(0))
        self.require(construct.call("all", least) if least.type.rank else least, message, node)
        return args

    def _no_less_than_nothing(self: Any, made: Expr, args: Sequence[Expr], node: Any) -> None:
        """np.zeros(n - 1) has no result where n is 0."""
        given = {d for a in args for d in a.type.shape}
        for extent in made.type.shape:
            if extent not in given and not nonnegative(extent, self.facts):
                enough = construct.call("greater_equal", construct.dim(extent), const(0))
                self.require(enough, "negative dimensions are not allowed", node)

    def _fill_the_hole(self: Any, shape: Sequence[Dim], node: Any) -> None:
        """-1 beside an extent of 0 could be any."""
        rest = product(d for d in shape if d != -ONE)
        if -ONE in shape and not nonnegative(rest - ONE, self.facts):
            told = construct.shape_text(tuple(shape))
            something = construct.call("greater", construct.dim(rest), const(0))
            message = f"cannot reshape an array of size 0 to {told}: -1 could be any extent"
            self.require(something, message, node)

    def _halves(self: Any, args: Sequence[Expr], node: Any) -> Sequence[Expr]:
        """Arrays of one shape, as far as they have axes."""
        return self._agreeing(args, [range(-a.type.rank, 0) for a in args], node)

    def _agreeing(self: Any, args: Sequence[Expr], axes: Sequence[Sequence[Any]], node: Any) -> Sequence[Expr]:
        """x[:, : D // 2] and x[:, D // 2 :] have one shape where D is even, which is checked at the call. `axes`: of
        each argument; those of one name are of one extent."""
        columns: dict[Any, list[Dim]] = {}
        for arg, names in zip(args, axes, strict=True):
            for name, extent in zip(names, arg.type.shape, strict=False):
                columns.setdefault(name, []).append(extent)
        plain = {
            (name, d): min((d, *(e for e in column if may_be_one(d, e))), key=_length)
            for name, column in columns.items()
            if len(set(column)) > 1
            for d in column
        }
        return [
            self._seen_as(arg, [plain.get((n, d), d) for n, d in zip(names, arg.type.shape, strict=True)], node)
            if len(names) == arg.type.rank
            else arg
            for arg, names in zip(args, axes, strict=True)
        ]

    def like_halves(self: Any, value: Expr, place: Sequence[Dim], node: Any) -> Expr:
        """A value that goes to a place of this shape: y[D // 2 :] takes what has D // 2 elements, and two halves are as
        long as D."""
        axes = list(zip(value.type.shape[::-1], place[::-1], strict=False))[::-1]
        inner = [p if may_be_one(d, p) else d for d, p in axes]
        return self._seen_as(value, [*value.type.shape[: value.type.rank - len(inner)], *inner], node)

    def _seen_as(self: Any, arg: Expr, shape: Sequence[Dim], node: Any) -> Expr:
        """An array with extents that are its own where divisions leave no remainder."""
        for own, other in zip(arg.type.shape, shape, strict=True):
            if own != other:
                self.agree(*sorted((own, other), key=_length, reverse=True), node)
        return arg if arg.type.shape == tuple(shape) else construct.call("reshape", arg, shape=tuple(shape))

    def no_lists(self: Any, operands: list[Any]) -> None:
        for operand in operands:
            if self.is_array_list(operand):
                message = "arithmetic on a list is not that on arrays"
                raise self.fail(operand, "type", message, "stack it first: np.stack(ys)")

    def no_sequences(self: Any, operands: list[Any]) -> None:
        """No tuples either."""
        self.no_lists(operands)
        for operand in operands:
            known = self.env.get(operand.id) if isinstance(operand, gast.Name) else None
            if isinstance(operand, (gast.List, gast.Tuple)) or isinstance(known, Tuple):
                raise self.fail(operand, "type", "this takes arrays, not lists of them", "stack it first: np.stack(ys)")

    def _comparison(self: Any, node: Any, left: Any, ops: list[Any], rest: list[Any]) -> Value:
        if not isinstance(ops[0], (gast.Is, gast.IsNot)):
            self.no_lists([left, *rest])
        terms = self.values([left, *rest[:1]])
        drawn, mark = self.drawn(), len(self.out)
        terms += self.values(rest[1:])
        if self.drawn() != drawn or stored(tuple(self.out[mark:])):
            what = "the end of this comparison is looked at only where its beginning holds: it may not draw or write"
            raise self.fail(node, "unsupported", what, "take its value before: u = ...")
        if len(ops) == 1 and isinstance(ops[0], (gast.Is, gast.IsNot)):
            if isinstance(terms[1], Static) and terms[1].value is None:
                same = isinstance(terms[0], Static) and terms[0].value is None
                return const(same == isinstance(ops[0], gast.Is))
        if all(isinstance(t, Static) for t in terms) and len(ops) == 1 and isinstance(ops[0], (gast.Eq, gast.NotEq)):
            return const((terms[0] == terms[1]) == isinstance(ops[0], gast.Eq))
        if len(ops) == 1 and isinstance(ops[0], (gast.In, gast.NotIn)) and isinstance(terms[1], Tuple):
            return self._membership(terms[0], terms[1], isinstance(ops[0], gast.In), node)
        match terms, ops:
            case [Tuple() as these, Tuple() as those], [gast.Eq() | gast.NotEq()]:
                equal = self._same_items(these, those, node)
                return equal if isinstance(ops[0], gast.Eq) else self.apply(ROWS["logical_not"], [equal], {}, node)
        exprs = [self.as_expr(t, n) for t, n in zip(terms, [left, *rest], strict=True)]
        result: Expr | None = None
        for op, a, b in zip(ops, exprs, exprs[1:], strict=False):
            row = BY_SPELLING.get(type(op).__name__)
            if row is None:
                raise self.fail(node, "unsupported", f"the comparison {type(op).__name__} is not part of the subset")
            test = self.apply(row, [a, b], {}, node)
            if len(ops) > 1 and test.type.rank:
                raise self.fail(
                    node, "type", "a < b < c asks for the truth of an array, which has none", "(a < b) & (b < c)"
                )
            result = test if result is None else self._both("logical_and", result, test, node)
        assert result is not None
        return result

    def _same_items(self: Any, a: Tuple, b: Tuple, node: Any) -> Expr:
        """Whether two tuples, such as shapes, are equal item by item."""
        if {gast.List} < {type(t) for t in (node.left, *node.comparators)} <= {gast.List, gast.Tuple, gast.Attribute}:
            raise self.fail(node, "type", "a list never equals a tuple", "write it in parentheses: x.shape == (2, 3)")
        if any(self._has_axes(v, node) for v in (*a.items, *b.items)):
            raise self.fail(node, "type", "whether arrays in a tuple are equal is ambiguous", "np.all(x == y)")
        result: Expr = const(len(a.items) == len(b.items))
        for x, y in zip(a.items, b.items, strict=False):
            first, second = self.as_expr(x, node), self.as_expr(y, node)
            known = (value_of(first), value_of(second))
            same = const(True) if None not in known and known[0] == known[1] else construct.call("equal", first, second)
            if known_truth(result) is False or known_truth(same) is True:
                continue
            apart = number_of(construct.call("subtract", first, second)) if None not in known else None
            same = same if apart is None else const(apart == 0)
            result = same if known_truth(result) is True else construct.call("logical_and", result, same)
        return construct.pythons(result)

    def _has_axes(self: Any, value: Value, node: Any) -> bool:
        return not isinstance(value, (Static, Closure)) and self.as_expr(value, node).type.rank > 0

    def _membership(self: Any, value: Value, items: Tuple, inside: bool, node: Any) -> Value:
        """`n in (1, 2)`: whether it equals one of them."""
        if any(isinstance(v, Tuple) or self._has_axes(v, node) for v in items.items):
            raise self.fail(node, "type", "whether a number is among arrays is ambiguous", "np.any(x == v)")
        if any(isinstance(v, Static) for v in (value, *items.items)):
            return const((value in items.items) == inside)
        one = self.as_expr(value, node)
        result: Expr = const(False)
        if one.type.rank:
            raise self.fail(
                node, "type", "whether an array is in a list is not part of the subset", "use np.any(x == v)"
            )
        for item in items.items:
            same = self.apply(ROWS["equal"], [one, self.as_expr(item, node)], {}, node)
            known = known_truth(same)
            if known is True:
                return const(inside)
            if known is None:
                result = same if result == const(False) else construct.call("logical_or", result, same)
        result = construct.pythons(result)
        return result if inside else self.apply(ROWS["logical_not"], [result], {}, node)

    def _boolean(self: Any, spelling: str, values: list[Any], node: Any, exact: bool = False) -> Value:
        result = self.condition(values[0], exact)
        for other in values[1:]:
            term = self.condition(other, exact)
            static = known_truth(result)
            if static is not None:
                result = term if static == (spelling == "And") else result
            else:
                result = self._both("logical_and" if spelling == "And" else "logical_or", result, term, node)
        return result

    def _both(self: Any, op: str, a: Expr, b: Expr, node: Any) -> Expr:
        """`a and b` or `a or b`: one of the two."""
        return construct.pythons(construct.call(op, a, b, span=self.span(node)), construct.either(a.type, b.type))

    def condition(self: Any, node: Any, exact: bool = False) -> Expr:
        """A scalar condition. `exact`: not only its truth matters, as of what `and` and `or` give: one of the two."""
        if isinstance(node, gast.BoolOp):
            return self.as_expr(self._boolean(type(node.op).__name__, node.values, node, exact), node)
        expr = self.typed(node)
        if expr.type.rank and expr.type.shape != (construct.ONE,) * expr.type.rank:
            raise self.fail(
                node,
                "type",
                f"the truth of an array of shape {construct.shape_text(expr.type.shape)} is ambiguous",
                "elementwise: np.where, and & | with parentheses: (x > 0) & (y > 0); of them all: np.any, np.all",
            )
        if exact and (expr.type.rank or expr.type.dtype != "bool"):
            what = "`and` and `or` give one of their operands; here these are no truths"
            raise self.fail(node, "type", what, "say which one is meant: k if k else 2")
        if expr.type.rank:
            expr = construct.index(expr, [At(const(0))] * expr.type.rank)
        return expr if expr.type.dtype == "bool" else construct.pythons(construct.call("not_equal", expr, const(0)))

    def _ternary(self: Any, node: Any, test: Any, body: Any, orelse: Any) -> Value:
        condition = self.condition(test)
        known = known_truth(condition)
        if known is not None:
            return self.value(body if known else orelse)
        return self.branch_value(node, condition, body, orelse)

    def branch_value(self: Any, node: Any, condition: Expr, body: Any, orelse: Any) -> Value:
        raise NotImplementedError


def _axes(row: Row, args: Sequence[Expr], static: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Names for the axes of arguments, one for those that have to be of one extent."""
    if row.kind == "elementwise":
        return [range(-a.type.rank, 0) for a in args]
    if row.kind == "product":
        specs = row.spec([a.type for a in args])[0] if row.spec else static["spec"][0]
        if len(specs) == len(args):
            return specs
    return [()] * len(args)


def _length(dim: Dim) -> int:
    return len(str(dim))


__all__ = ["Operators"]
