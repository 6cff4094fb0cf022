"""Binding the arguments of a call to the parameters of a row of the table."""

from __future__ import annotations

from typing import Any

import gast

from . import construct
from .array_calls import flattened
from .construct import const, known_truth, value_of
from .dims import ZERO, Dim, maximum
from .errors import Mistake, Suppressed
from .operations import Argument, Row
from .program import (
    Expr,
)
from .special_calls import gast_text
from .suggestions import UNSUPPORTED
from .table.rearrange import diagonal_axes, diagonal_start
from .typing import BUILTIN_DTYPES, DTYPES, promote
from .values import (
    Static,
    Tuple,
    Value,
)

_SORTS = (None, "quicksort", "mergesort", "heapsort", "stable")

# What NumPy calls the first array, if not a.
_FIRST_ARRAY = {
    **dict.fromkeys(("norm", "softmax", "log_softmax"), "x"),
    **dict.fromkeys(("tril", "triu", "flip"), "m"),
    "empty_like": "prototype",
    "tile": "A",
}
_PLACED = ("cholesky", "concatenate", "matmul", "inner")


def _by_place(row: Row) -> set[str]:
    """Arguments that NumPy does not take by these names: functions of elements take arrays by their places."""
    if (row.kind == "elementwise" and row.name != "clip") or row.name in _PLACED:
        return {a.name for a in row.signature if a.kind in ("array", "arrays")}
    return {"a"} if row.name in _FIRST_ARRAY else {"value"} if row.name in ("full", "full_like") else set()


class Binding:
    """Mixed into the checker of expressions."""

    def call_row(
        self: Any, row: Row, args: list[Any], keywords: list[Any], node: Any, first: Expr | None = None
    ) -> Value:
        bound = self._bind(row, args, keywords, node, first)
        kinds = {argument.name: argument for argument in row.signature}
        found: dict[str, list[Expr]] = {}
        static = {a.name: a.default for a in row.signature if a.kind not in ("array", "arrays")}
        failed = False
        for name, given in bound.items():  # in the order in which they are written
            mark = len(self.out)
            try:
                match kinds[name].kind:
                    case "array":
                        found[name] = [self._array(row, kinds[name], given, node)]
                    case "arrays":
                        found[name] = self._arrays(given, node)
                    case _:
                        static[name] = self.static(kinds[name], given, node)
                for other in [o for o in found if o != name]:
                    found[other] = [self.as_expr(self._before(v, mark, node), node) for v in found[other]]
            except Mistake as mistake:  # the other arguments may have mistakes of their own
                self.keep(mistake)
                failed = True
            except Suppressed:
                failed = True
        if failed:
            raise Suppressed
        for argument in row.signature:  # those left out
            if argument.kind == "array" and argument.name not in bound:
                found[argument.name] = [self._array(row, argument, None, node)]
        arrays = [expr for name in kinds for expr in found.get(name, ())]
        self._adjust(row, arrays, static, node)
        if row.kind in ("reduce", "compose", "body") and (dtype := static.pop("dtype", None)) is not None:
            arrays[0] = construct.cast(arrays[0], dtype)
            return construct.cast(self.apply(row, arrays, static, node), dtype)
        return self.apply(row, arrays, static, node)

    def _bind(
        self: Any, row: Row, args: list[Any], keywords: list[Any], node: Any, first: Expr | None
    ) -> dict[str, Any]:
        names = [a.name for a in row.signature]
        given: list[Any] = ([first] if first is not None else []) + args
        written = gast_text(node.func) if first is None else f".{node.func.attr}"
        if len(given) > len(names):
            most = f"{len(names)} argument{'s' * (len(names) > 1)}"
            raise self.fail(node, "type", f"{written} takes at most {most}: {row.takes}")
        bound: dict[str, Any] = dict(zip(names, given, strict=False))
        alias = {"min": "a_min", "max": "a_max", "fill_value": "value"}
        first_array, by_place = _FIRST_ARRAY.get(row.name), _by_place(row)
        for keyword in keywords:
            name = alias.get(keyword.arg, keyword.arg)
            name = "a" if name == first_array else None if keyword.arg in by_place else name
            if keyword.arg == "out":
                raise self.fail(
                    node, "unsupported", "out= is not part of the subset", "assign the result: y[...] = np.f(x)"
                )
            if name not in names:
                what = f"{written} has no argument {keyword.arg}{' by name' if keyword.arg in names else ''} here"
                raise self.fail(node, "type", what, f"it takes: {row.takes}")
            if name in bound:
                raise self.fail(node, "type", f"{written} gets {name} twice")
            bound[name] = keyword.value
        if len(bound) == 1 and (alone := f"{row.python} of one argument") in UNSUPPORTED:
            raise self._unknown(node, alone)
        for argument in row.signature:
            needed = argument.required or (row.name == "arange" and argument.name == "stop" and not given)
            if needed and argument.name not in bound:
                raise self.fail(node, "type", f"{written} needs {argument.name}", f"it takes: {row.takes}")
        return bound

    def _array(self: Any, row: Row, argument: Argument, given: Any, node: Any) -> Expr:
        if given is not None and not isinstance(given, gast.AST):
            return given
        value = self.value(given) if given is not None else Static(argument.default)
        if row.name == "clip" and isinstance(value, Static) and value.value is None:
            return const(float("-inf") if argument.name == "a_min" else float("inf"))
        if isinstance(value, Tuple):
            return self.stacked(value, given)
        return self.as_expr(value, given)

    def stacked(self: Any, value: Tuple, node: Any) -> Expr:
        """np.array([a, b, c]) and the like: equal shapes along a new first axis."""
        items = [self.stacked(v, node) if isinstance(v, Tuple) else self.as_expr(v, node) for v in value.items]
        if not items:
            raise self.fail(node, "type", "an empty list has no element type", "use np.zeros(0)")
        dtype = promote([i.type for i in items])
        dtype = {"float": "real", "int": "i64"}.get(dtype, dtype)
        return construct.call(
            "concatenate", *(construct.call("expand_dims", construct.cast(i, dtype), axis=0) for i in items), axis=0
        )

    def stacked_items(self: Any, value: Tuple, node: Any) -> Expr:
        """The same of what stays a tuple: an item is Python's own, if all are."""
        items = [v for v in value.items if not isinstance(v, (Tuple, Static))]
        return construct.pythons(self.stacked(value, node), construct.owner([self.as_expr(v, node) for v in items]))

    def _arrays(self: Any, given: Any, node: Any) -> list[Expr]:
        value = self.value(given)
        if not isinstance(value, Tuple) or not value.items:
            raise self.fail(given, "type", "expected a list or tuple of arrays")
        items = [self.stacked(v, given) if isinstance(v, Tuple) else self.as_expr(v, given) for v in value.items]
        if any(not i.type.rank for i in items):
            raise self.fail(
                given, "shape", "scalars cannot be joined along an axis", "np.array([a, b]) makes an array of scalars"
            )
        dtype = promote([i.type for i in items])
        return [construct.cast(i, dtype) for i in items]

    def static(self: Any, argument: Argument, given: Any, node: Any) -> Any:
        value = self.value(given) if isinstance(given, gast.AST) else given
        match argument.kind:
            case "axis" | "int" | "axes":
                return self._axes(value, given, argument)
            case "flag":
                flag = self.as_expr(value, given)
                known = known_truth(flag)
                if known is None or flag.type.is_float:
                    raise self.fail(given, "type", f"{argument.name} must be True or False at build time")
                return known
            case "shape":
                return self.shape(value, given)
            case "extent":
                if not (isinstance(value, Static) and value.value is None):
                    return self.extent(value, given)
                if argument.required or argument.default is not None:
                    raise self.fail(given, "type", f"{argument.name} must be an integer, not None")
                return None
            case "offset":
                number = None if isinstance(value, Static) else value_of(self.as_expr(value, given))
                if number is None:
                    what = f"{argument.name} must be an integer known from shapes and configuration"
                    raise self.fail(given, "type", what, "by positions: i = np.arange(m); x[i, i + k]")
                return number if number.value is None else number.value
            case "dtype":
                return self.dtype(value, given)
            case "text" if isinstance(value, Static) and isinstance(value.value, str):
                return value.value
            case "value" if isinstance(value, Static):
                return value.value
            case "value" if isinstance(value, Tuple):
                return value
            case "value" if isinstance(number := self.as_expr(value, given), construct.Const):
                return number.value
        raise self.fail(given, "type", f"{argument.name} must be known at build time")

    def _axes(self: Any, value: Value, node: Any, argument: Argument) -> Any:
        is_none = isinstance(value, Static) and value.value is None
        if is_none and argument.kind == "axes" and argument.required:
            raise self.fail(node, "type", f"{argument.name} must be an integer, not None")
        if is_none and (argument.default is None or argument.name == "axis"):
            return None
        if isinstance(value, Tuple) and argument.kind == "axes":
            axes = tuple(self._axes(v, node, argument) for v in value.items)
            if any(not isinstance(a, int) for a in axes):
                raise self.fail(node, "type", f"one {argument.name} among several is an integer")
            return axes
        number = None if isinstance(value, Static) else value_of(self.as_expr(value, node))
        if number is None or number.value is None:
            raise self.fail(node, "type", f"{argument.name} must be an integer known at build time")
        return number.value

    def extent(self: Any, value: Value, node: Any) -> Dim:
        expr = self.as_expr(value, node)
        size = value_of(expr)
        if size is None:
            if not expr.type.is_integer:
                raise self.fail(node, "type", "an extent must be an integer")
            raise self.fail(
                node,
                "shape",
                "the shape would depend on values",
                "shapes may depend on other shapes and on config only; allocate the largest and use part of it",
            )
        return size

    def shape(self: Any, value: Value, node: Any) -> tuple[Dim, ...]:
        items = value.items if isinstance(value, Tuple) else (value,)
        found = tuple(self.extent(v, node) for v in items)
        if any(d is None for d in found):
            raise self.fail(node, "type", "a shape is a tuple of integers")
        return tuple(d for d in found if d is not None)

    def dtype(self: Any, value: Value, node: Any) -> str | None:
        if isinstance(value, Static):
            text = value.value
            if text is None:
                return None
            if isinstance(text, str):
                if text.startswith("dtype:"):
                    return text[6:]
                found = DTYPES.get(text) or BUILTIN_DTYPES.get(text) or DTYPES.get(f"np.{text}")
                if found:
                    return found
        raise self.fail(
            node,
            "type",
            "this dtype is not part of the subset",
            "np.float32, np.float64, np.int32, np.int64, bool, x.dtype",
        )

    def _or_none(self: Any, count: Dim) -> Dim:
        """Of a count that may be below zero: none then."""
        is_some = self.proofs(None).proven(count)
        return count if is_some else maximum(count, ZERO, self.facts)

    def _adjust(self: Any, row: Row, arrays: list[Expr], static: dict[str, Any], node: Any) -> None:
        """Python's conventions that are not in the table: arange(stop), axis=None of the flat array."""
        if row.name == "arange" and static["stop"] is None:
            static["start"], static["stop"] = Dim.of(0), static["start"]
        if row.name == "cast" and arrays[0].type.pythons:
            raise self.fail(node, "type", "np.astype takes an array", "float(v), int(v), bool(v)")
        if row.name == "arange" and None in (static["start"], static["stop"]):
            raise self.fail(
                node, "type", "np.arange takes integers, not None", "np.arange(stop), np.arange(start, stop)"
            )
        if row.name == "arange":  # with an end before the start it is empty, which for extents cannot be
            start, stop, sign = static["start"], static["stop"], 1 if static["step"] > 0 else -1
            static["stop"] = start + self._or_none((stop - start) * sign) * sign
        if row.name == "tri":  # so is np.tri(-1)
            static |= {a: self._or_none(static[a]) for a in ("N", "M") if static[a] is not None}
        if any(a.name == "axis" and a.kind == "axis" for a in row.signature) and static["axis"] is None:
            flat = len(arrays) if row.signature[0].kind == "arrays" else 1  # of take, the indices keep their shape
            arrays[:flat], static["axis"] = [flattened(a) for a in arrays[:flat]], 0
        if row.name == "outer":
            arrays[:] = [flattened(a) for a in arrays]
        if isinstance(static.get("offset"), Dim):
            arrays[0], static["offset"] = self._beginning_at(arrays[0], static, node), 0
        if row.name == "transpose" and isinstance(static["axes"], int):
            static["axes"] = (static["axes"],)
        if row.name == "transpose" and static["axes"] is not None:
            rank = arrays[0].type.rank
            if sorted(a + rank if a < 0 else a for a in static["axes"]) != list(range(rank)):
                raise self.fail(node, "shape", f"the axes of a transpose are each of 0 to {rank - 1} once")
        if static.get("kind") not in _SORTS:
            help = ", ".join(map(repr, _SORTS[1:]))
            raise self.fail(node, "type", f"{static['kind']!r} is no kind of sort", help)
        if row.name in ("softmax", "log_softmax") and arrays[0].type.dtype == "bool":
            message = f"{row.python} subtracts, and NumPy has no - for booleans"
            raise self.fail(node, "type", message, "m.astype(np.float64)")
        if row.name == "logsumexp" and arrays[0].type.dtype == "bool":
            arrays[0] = construct.cast(arrays[0], "i64")
        if row.name == "norm":
            self._only_the_2_norm(static["ord"], static["axis"], arrays[0].type.rank, node)

    def _beginning_at(self: Any, array: Expr, static: dict[str, Any], node: Any) -> Expr:
        """A diagonal beside the main one, by what sizes say, is the main one of the columns or rows from there on."""
        items = [construct.full_slice(d) for d in array.type.shape]
        for axis, start in zip(diagonal_axes(array.type.rank, static), diagonal_start(static, self.facts), strict=True):
            if start != ZERO:
                first, extent = construct.dim(start), array.type.shape[axis]
                items[axis] = construct.slice_of(first, None, const(1), extent, self.proofs(node))
        return construct.index(array, items)

    def _only_the_2_norm(self: Any, ord: Any, axis: Any, rank: int, node: Any) -> None:
        axes = rank if axis is None else len(axis) if isinstance(axis, tuple) else 1
        if axis == ():
            raise self.fail(node, "shape", "np.linalg.norm needs an axis", "np.abs(x) is the norm of each element")
        if ord not in (None, 2, "fro"):
            raise self.fail(
                node, "unsupported", "np.linalg.norm has the 2-norm only", "np.sum(np.abs(x)), np.max(np.abs(x))"
            )
        if ord == 2 and axes == 2:
            what = "the 2-norm of a matrix is its largest singular value, which is not part of the subset"
            raise self.fail(node, "unsupported", what, "np.linalg.norm(x) is the root of the sum of all squares")
        if (ord is not None and axes != (2 if ord == "fro" else 1)) or (axis is not None and axes > 2):
            raise self.fail(node, "shape", f"np.linalg.norm: {ord!r} is no norm along {axes} axes")


__all__ = ["Binding"]
