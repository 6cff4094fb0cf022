"""Calls whose arguments do not follow the table's pattern: einsum, stack, array, len, and Python's min and max of
several values."""

from __future__ import annotations

import string
from functools import partial, reduce
from typing import Any

import gast

from . import construct, pairwise
from .array_calls import ArrayCalls
from .construct import const
from .dims import of_either, same_extent
from .operations import BY_SPELLING, ROWS
from .program import Const, Expr, Name, Span
from .typing import TypingError, as_float, normal_axes, promote
from .values import Closure, ListValue, Static, Tuple, Value

_BY_STEPS = "in steps: y = np.eye(a.shape[0]), then for _ in range(n): y = y @ a"


def gast_text(func: Any) -> str:
    """math.floor, as it is called."""
    return func.id if isinstance(func, gast.Name) else f"{gast_text(func.value)}.{func.attr}"


class SpecialCalls(ArrayCalls):
    """Mixed into the checker of expressions: `call_<name>` is found by the name that is called."""

    def call_len(self: Any, node: Any) -> Value:
        (argument,) = self._arguments(node, "len", 1)
        value = self.value(argument)
        if isinstance(value, Tuple):
            return const(len(value.items))
        if isinstance(value, ListValue):
            raise self.fail(node, "type", "the length of this list depends on values", "count what is appended: n += 1")
        expr = self.as_expr(value, argument)
        if not expr.type.rank:
            raise self.fail(node, "type", "a scalar has no length")
        return construct.call("extent", expr, axis=0)

    def call_callable(self: Any, node: Any) -> Value:
        (argument,) = self._arguments(node, "callable", 1)
        value = self.value(argument)
        named = isinstance(value, Static) and value.value in BY_SPELLING
        return const(isinstance(value, Closure) or named)

    def call_np_shape(self: Any, node: Any) -> Value:
        """The shape of an array, or of a scalar, whose own .shape Python numbers do not have."""
        expr = self.typed(*self._arguments(node, "np.shape", 1))
        return Tuple(tuple(construct.call("extent", expr, axis=i) for i in range(expr.type.rank)))

    def call_math_floor(self: Any, node: Any) -> Value:
        return self._whole(node, "floor")

    def call_math_ceil(self: Any, node: Any) -> Value:
        return self._whole(node, "ceil")

    def call_math_trunc(self: Any, node: Any) -> Value:
        return self._whole(node, "trunc")

    def call_round(self: Any, node: Any) -> Value:
        return self._whole(node, "rint")

    def _whole(self: Any, node: Any, op: str) -> Value:
        """Python's own roundings give an integer."""
        name = gast_text(node.func)
        if name == "round" and (len(node.args) > 1 or node.keywords):
            raise self.fail(node, "unsupported", "round takes one argument here", "np.round(v, 2)")
        value = self.typed(*self._arguments(node, name, 1))
        if value.type.rank:
            raise self.fail(node, "type", f"{name} takes a scalar", f"np.{op} rounds arrays")
        if name in ("round", "math.trunc") and self.is_box(value):
            raise self.fail(node, "type", f"Python's {name} takes a number, not an array without axes", f"np.{op}")
        if not value.type.is_float:
            return value
        return construct.cast(construct.call(op, value, span=self.span(node)), "i64")

    def call_math_pow(self: Any, node: Any) -> Value:
        return self._float_power(node, "math.pow")

    def call_np_float_power(self: Any, node: Any) -> Value:
        return self._float_power(node, "np.float_power")

    def _float_power(self: Any, node: Any, name: str) -> Value:
        """A power of floats, also where integers are given."""
        pair = [self.as_expr(v, node) for v in self.values(self._arguments(node, name, 2))]
        return self.apply(ROWS["power"], [_as_float(e) for e in pair], {}, node)

    def call_math_log(self: Any, node: Any) -> Value:
        if len(node.args) != 2:
            return self.call_row(BY_SPELLING["math.log"], node.args, node.keywords, node)
        given = self.values(self._arguments(node, "math.log", 2))
        value, base = (construct.call("log", self.as_expr(v, node)) for v in given)
        return construct.call("divide", value, base, span=self.span(node))

    def call_np_einsum(self: Any, node: Any) -> Value:
        if not node.args or not isinstance(node.args[0], gast.Constant) or not isinstance(node.args[0].value, str):
            raise self.fail(node, "type", "einsum takes its subscripts as a string first")
        operands = [self.as_expr(v, node) for v in self.values(node.args[1:])]
        text = node.args[0].value.replace(" ", "")
        left, arrow, out = text.partition("->")
        if not arrow:
            letters = left.replace(",", "").replace("...", "")
            out = "..." * ("..." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
        specs, out = _without_dots(left.split(","), out, [a.type.rank for a in operands])
        left = ",".join(specs)
        if (
            not set(out) <= set(left)
            or len(set(out)) != len(out)
            or (not left.replace(",", "").isalpha() and left.replace(",", ""))
        ):
            help = "a letter an axis, those of the result once each and among the operands': 'ij,jk->ik'"
            raise self.fail(node.args[0], "type", f"cannot read the subscripts {text!r}", help)
        operands = self._agreeing(operands, specs, node)
        made = pairwise.einsum(specs, out, operands, self.span(node))
        if len(operands) == 1 and set(out) == set(left):  # nothing is summed: NumPy gives a view
            return _seen_as(operands[0], left, out, self.span(node))
        return made

    def call_np_array(self: Any, node: Any) -> Value:
        return self._new_array(node, "np.array")

    def call_np_asarray(self: Any, node: Any) -> Value:
        """An array stays what it is, under another name."""
        return self._new_array(node, "np.asarray")

    def _new_array(self: Any, node: Any, name: str) -> Value:
        given = self._given(node, name, "a dtype" if name == "np.asarray" else "object dtype", 1)
        values, wanted = given.values() if len(given) == 2 else (*given.values(), None)
        value = self.value(values)
        dtype = self.dtype(self.value(wanted), wanted) if wanted is not None else None
        if isinstance(value, Tuple):
            return self._typed_array(self.stacked(value, node), dtype)
        expr = self.as_expr(value, node)
        if name == "np.asarray" and self._is_view(expr) and self.mutating:
            if dtype in (None, expr.type.dtype):
                return expr
            if {dtype, expr.type.dtype} in ({"real", "f32"}, {"real", "f64"}):
                what = "whether this is a copy or the array itself depends on the type of the arrays at the call"
                raise self.fail(node, "aliasing", what, "np.array(...) or .astype(...) is a copy always")
        return self._typed_array(construct.call("copy", expr), dtype)

    def _typed_array(self: Any, expr: Expr, dtype: str | None) -> Expr:
        """An array, also one of no axes, has a type, and nothing of Python's own."""
        expr = construct.pythons(expr, False)
        if expr.type.is_weak:
            expr = construct.cast(expr, "real" if expr.type.is_float else "i64")
        return expr if dtype is None else construct.cast(expr, dtype)

    def call_np_fabs(self: Any, node: Any) -> Value:
        """The absolute value, of integers too as a float."""
        expr = self.typed(*self._arguments(node, "np.fabs", 1))
        whole = not expr.type.is_float
        return self.apply(ROWS["abs"], [construct.cast(expr, as_float(expr.type.dtype)) if whole else expr], {}, node)

    def call_math_fabs(self: Any, node: Any) -> Value:
        return self.call_np_fabs(node)

    def call_np_identity(self: Any, node: Any) -> Value:
        given = self._given(node, "np.identity", "n dtype", 1)
        rows = self.extent(self.value(given["n"]), given["n"])
        dtype = self.dtype(self.value(given["dtype"]), given["dtype"]) if "dtype" in given else None
        return self.apply(ROWS["eye"], [], {"N": rows, "M": None, "k": 0, "dtype": dtype}, node)

    def call_np_diff(self: Any, node: Any) -> Value:
        """x[1:] - x[:-1] along an axis, n times."""
        given = self._given(node, "np.diff", "a n axis", 1)
        array = self.typed(given["a"])
        self._no_number(array, node, "has no axis to take differences along")
        times = self._static_int(given["n"], "n") if "n" in given else 1
        (axis,) = normal_axes(self._static_int(given["axis"], "axis") if "axis" in given else -1, array.type.rank)
        if times < 0:
            raise self.fail(node, "type", f"np.diff takes differences {times} times", "n is 0 or more")
        for _ in range(times):
            items = [construct.full_slice(d) for d in array.type.shape]
            extent, proofs, one = array.type.shape[axis], self.proofs(node), const(1)
            later = construct.slice_of(one, None, one, extent, proofs)
            earlier = construct.slice_of(None, const(-1), one, extent, proofs)
            parts = [construct.index(array, [*items[:axis], s, *items[axis + 1 :]]) for s in (later, earlier)]
            array = self.apply(ROWS["subtract"], parts, {}, node)
        return array

    def call_np_diag(self: Any, node: Any) -> Value:
        """The diagonal of a matrix, or a matrix with a vector along its diagonal."""
        array = self.typed(*self._arguments(node, "np.diag", 1))
        if array.type.rank not in (1, 2):
            raise self.fail(node, "shape", f"np.diag takes a vector or a matrix, got {array.type}", "np.diagonal(x)")
        if array.type.rank == 2:
            return self.apply(ROWS["diagonal"], [array], {"axis1": 0, "axis2": 1}, node)
        column = construct.call("expand_dims", array, axis=1)
        on = construct.call("eye", N=array.type.shape[0], M=None, k=0, dtype="bool")
        return self.apply(ROWS["where"], [on, column, const(0)], {}, node)

    def call_np_linalg_matrix_power(self: Any, node: Any) -> Value:
        """By squaring."""
        given = self._given(node, "np.linalg.matrix_power", "a n", 2)
        power, n = self.typed(given["a"]), self._static_int(given["n"], "n", _BY_STEPS)
        if power.type.rank < 2 or not same_extent(*power.type.shape[-2:]):
            shown = construct.shape_text(power.type.shape)
            raise self.fail(node, "shape", f"np.linalg.matrix_power takes square matrices, got shape {shown}")
        if n < 0:
            power, n = self.apply(ROWS["inv"], [power], {}, node), -n
        if n == 0:
            one = construct.call("eye", N=power.type.shape[-1], M=None, k=0, dtype=power.type.dtype)
            return construct.call("copy", construct.call("broadcast_to", one, shape=power.type.shape))
        made: Expr | None = None
        while True:
            n, is_odd = divmod(n, 2)
            power = self._held_name(power, "power", node)
            if is_odd:
                made = power if made is None else self.apply(ROWS["matmul"], [made, power], {}, node)
            if made is not None and not n:
                return construct.call("copy", made) if isinstance(made, Name) else made
            power = self.apply(ROWS["matmul"], [power, power], {}, node)

    def call_np_count_nonzero(self: Any, node: Any) -> Value:
        given = self._given(node, "np.count_nonzero", "a axis", 1)
        hits = self.apply(ROWS["not_equal"], [self.typed(given["a"]), const(0)], {}, node)
        axis = self._static_int(given["axis"], "axis") if "axis" in given else None
        return self.apply(ROWS["sum"], [hits], {"axis": axis, "keepdims": False}, node)

    def call_np_clip(self: Any, node: Any) -> Value:
        """Both limits or none, as NumPy has it: one alone has the name `min` or `max`."""
        given = {k.arg for k in node.keywords}
        low, high = len(node.args) > 1 or "a_min" in given, len(node.args) > 2 or "a_max" in given
        if not (node.args[1:] or node.keywords):
            return self.apply(ROWS["positive"], [self.typed(*node.args)], {}, node)
        if low != high and not given & {"min", "max"}:
            raise self.fail(node, "type", f"np.clip needs {'a_max' if low else 'a_min'} as well", "it may be None")
        return self.call_row(ROWS["clip"], node.args, node.keywords, node)

    def call_np_stack(self: Any, node: Any) -> Value:
        given = self._given(node, "np.stack", "arrays axis", 1)
        items = self._sequence(given["arrays"])
        axis = self._static_int(given["axis"], "axis") if "axis" in given else 0
        rank = items[0].type.rank + 1
        if not -rank <= axis < rank:
            raise TypingError("shape", f"axis {axis} is out of range")
        return construct.call(
            "concatenate",
            *(construct.call("expand_dims", i, axis=axis % rank) for i in items),
            axis=axis % rank,
            span=self.span(node),
        )

    def call_np_vstack(self: Any, node: Any) -> Value:
        items = self._sequence(*self._arguments(node, "np.vstack", 1))
        items = [construct.call("expand_dims", i, axis=0) if i.type.rank == 1 else i for i in items]
        return construct.call("concatenate", *items, axis=0, span=self.span(node))

    def call_np_hstack(self: Any, node: Any) -> Value:
        items = self._sequence(*self._arguments(node, "np.hstack", 1))
        return construct.call("concatenate", *items, axis=0 if items[0].type.rank == 1 else 1, span=self.span(node))

    def call_max(self: Any, node: Any) -> Value:
        return self._extreme(node, "maximum", "max")

    def call_min(self: Any, node: Any) -> Value:
        return self._extreme(node, "minimum", "min")

    def _extreme(self: Any, node: Any, pairwise: str, reduction: str) -> Value:
        if len(node.args) == 1 and not node.keywords:
            value = self.value(node.args[0])
            if not isinstance(value, Tuple):
                array = self.as_expr(value, node)
                if not array.type.rank:
                    raise self.fail(node, "type", f"{reduction} takes an array, or two and more scalars")
                if array.type.rank > 1:
                    raise self.fail(
                        node, "type", f"{reduction} of rows asks for the truth of arrays", f"use np.{reduction}(x)"
                    )
                return construct.call(reduction, array, span=self.span(node))
            items = [self.as_expr(v, node) for v in value.items]
        else:
            items = [self.as_expr(v, node) for v in self.values(node.args)]
        if not items or node.keywords:
            raise self.fail(node, "type", f"{reduction} takes an array, or two and more scalars")
        if any(i.type.rank for i in items):
            raise self.fail(node, "type", f"{reduction} of several arrays is ambiguous", f"use np.{pairwise}(a, b)")
        result: Expr = items[0]
        for item in items[1:]:
            result = construct.pythons(self.apply(ROWS[pairwise], [result, item], {}, node), construct.owner(items))
        return result if len(items) < 3 or not result.type.is_float else self._evenly(result, items, node)

    def _evenly(self: Any, extreme: Expr, items: list[Expr], node: Any) -> Expr:
        """The extreme of three and more: two by two, the last of equal ones would have half of the gradient."""
        hits = [construct.call("equal", item, extreme) for item in items]
        count, total = (
            reduce(partial(construct.call, "add"), [construct.call("where", hit, v, const(0)) for hit, v in pairs])
            for pairs in ([(hit, const(1)) for hit in hits], list(zip(hits, items, strict=True)))
        )
        shared = construct.call("divide", total, count)
        return construct.call("with_derivative", extreme, shared, span=self.span(node))

    # -- arguments ---------------------------------------------------------------------------------------------
    def _arguments(self: Any, node: Any, name: str, count: int) -> list[Any]:
        if len(node.args) != count or node.keywords:
            raise self.fail(node, "type", f"{name} takes {count} argument{'s' if count > 1 else ''}")
        return list(node.args)

    def _sequence(self: Any, node: Any) -> list[Expr]:
        value = self.value(node)
        if isinstance(value, ListValue) or not isinstance(value, Tuple) or not value.items:
            raise self.fail(node, "type", "expected a list or tuple of arrays")
        items = list(self._halves([self.as_expr(v, node) for v in value.items], node))
        if any(of_either(i.type.shape, items[0].type.shape) is None for i in items):
            raise self.fail(
                node,
                "shape",
                "the arrays must have one shape: " + ", ".join(construct.shape_text(i.type.shape) for i in items),
                "np.concatenate joins arrays that differ along one axis",
            )
        dtype = promote([i.type for i in items])
        return [construct.cast(i, {"float": "real", "int": "i64"}.get(dtype, dtype)) for i in items]


def _as_float(expr: Expr) -> Expr:
    return const(float(expr.value)) if isinstance(expr, Const) else construct.cast(expr, as_float(expr.type.dtype))


def _seen_as(array: Expr, letters: str, out: str, span: Span) -> Expr:
    """The view that einsum makes of one array: diagonals where a letter stands twice, in the order of `out`."""
    while twice := next((c for c in letters if letters.count(c) > 1), None):
        first = letters.index(twice)
        second = letters.index(twice, first + 1)
        array = construct.call("diagonal", array, axis1=first, axis2=second, span=span)
        letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + twice
    return construct.call("transpose", array, axes=tuple(map(letters.index, out)), span=span)


def _without_dots(specs: list[str], out: str, ranks: list[int]) -> tuple[list[str], str]:
    """einsum subscripts with letters for `...`: all axes without one, the last ones in line."""
    if not any("..." in spec for spec in [*specs, out]) or len(specs) != len(ranks):
        return specs, out
    counts = [max(rank - len(spec.replace("...", "")), 0) for spec, rank in zip(specs, ranks, strict=True)]
    free = [c for c in string.ascii_letters if c not in "".join(specs)]
    letters = "".join(free[: max((n for n, spec in zip(counts, specs, strict=True) if "..." in spec), default=0)])
    named = [spec.replace("...", letters[len(letters) - n :]) for spec, n in zip(specs, counts, strict=True)]
    return named, out.replace("...", letters)
