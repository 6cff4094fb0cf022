"""Calls that become other operations, or whose arguments take several forms: split, roll, pad, tensordot, vdot."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from . import construct
from .construct import const, value_of
from .dims import ONE, ZERO, Dim, is_thin, nonnegative, same_extent
from .operations import BY_SPELLING
from .program import Assert, At, Expr, Gather, Item, Slice, Span
from .typing import TypingError, normal_axes
from .values import Static, Tuple, Value

_LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


class ArrayCalls:
    """Mixed into the checker of expressions: `call_<name>` is found by the name that is called."""

    def call_np_split(self: Any, node: Any) -> Value:
        given = self._given(node, "np.split", "ary indices_or_sections axis", 2)
        array = self.typed(given["ary"])
        (axis,) = normal_axes(self._static_int(given["axis"], "axis") if "axis" in given else 0, array.type.rank)
        extent = array.type.shape[axis]
        where = given["indices_or_sections"]
        sections = self.value(where)
        if isinstance(sections, Tuple):
            cuts = [None, *(self.as_expr(v, where) for v in sections.items), None]
            slices = [construct.slice_of(a, b, const(1), extent, self.proofs(where)) for a, b in pairwise(cuts)]
        else:
            slices = self._equal_parts(node, extent, self._static_int(where))
        parts: list[Value] = []
        for piece in slices:
            items = [construct.full_slice(d) for d in array.type.shape]
            items[axis] = piece
            parts.append(construct.index(array, items, self.span(node)))
        return Tuple(tuple(parts))

    def _equal_parts(self: Any, node: Any, extent: Dim, count: int) -> list[Slice]:
        message = "array split does not result in an equal division"
        if count < 1:
            raise self.fail(node, "type", "number sections must be larger than 0")
        rest = extent % count
        if rest.value:
            raise self.fail(node, "shape", message, "give the places to cut at: np.split(x, (2, 5))")
        if rest != ZERO:
            even = construct.call("equal", construct.dim(rest), const(0))
            self.emit(Assert(even, message, self.span(node), "ValueError"))
        width = extent // count
        starts = [width * k for k in range(count)]
        return [Slice(construct.dim(s), construct.dim(s + width), 1, s, width) for s in starts]

    def call_np_roll(self: Any, node: Any) -> Value:
        given = self._given(node, "np.roll", "a shift axis", 2)
        array = self.typed(given["a"])
        moved = self.value(given["shift"])
        shifts = [self.as_expr(v, given["shift"]) for v in (moved.items if isinstance(moved, Tuple) else (moved,))]
        for shift in shifts:
            if not shift.type.is_integer or shift.type.rank:
                raise self.fail(given["shift"], "type", f"a shift is an integer, got {shift.type}")
        axis = self.value(given["axis"]) if "axis" in given else Static(None)
        if axis == Static(None):
            flat = construct.call("ravel", array) if array.type.rank != 1 else array
            for shift in shifts:
                flat = self._rolled(flat, shift, 0, node)
            return construct.call("reshape", flat, shape=array.type.shape) if array.type.rank != 1 else flat
        axes = [a.value for a in self._each(given["axis"])]
        if len(shifts) == 1:
            shifts = shifts * len(axes)
        if len(axes) == 1:
            axes = axes * len(shifts)
        if len(axes) != len(shifts) or None in axes:
            raise self.fail(node, "type", "np.roll takes as many shifts as axes, the axes known at build time")
        for shift, number in zip(shifts, axes, strict=True):
            array = self._rolled(array, shift, number, node)
        return array

    def _rolled(self: Any, array: Expr, shift: Expr, axis: int, node: Any) -> Expr:
        by = value_of(shift)
        if by is not None:
            return construct.call("roll", array, shift=by, axis=axis, span=self.span(node))
        # How far depends on values: every element is looked up.
        (axis,) = normal_axes(axis, array.type.rank)
        extent = array.type.shape[axis]
        places = construct.call("arange", start=ZERO, stop=extent)
        period = construct.call("maximum", construct.dim(extent), const(1))
        source = construct.call("mod", construct.call("subtract", places, shift), period)
        return _gathered(array, axis, source, self.span(node))

    def call_np_moveaxis(self: Any, node: Any) -> Value:
        given = self._given(node, "np.moveaxis", "a source destination", 3)
        array = self.typed(given["a"])
        ends = [self.value(given[k]) for k in ("source", "destination")]
        if not any(isinstance(e, Tuple) for e in ends):
            return self.call_row(BY_SPELLING["np.moveaxis"], node.args, node.keywords, node)
        source, destination = ([normal_axes(axis, array.type.rank)[0] for axis in self._numbers(e, node)] for e in ends)
        if len(source) != len(destination):
            raise self.fail(node, "shape", "source and destination have as many axes each")
        order = [k for k in range(array.type.rank) if k not in source]
        for to, axis in sorted(zip(destination, source, strict=True)):
            order.insert(to, axis)
        return construct.call("transpose", array, axes=tuple(order), span=self.span(node))

    def _each(self: Any, node: Any) -> list[Dim]:
        value = self.value(node)
        items = value.items if isinstance(value, Tuple) else (value,)
        found = [self.extent(v, node) for v in items]
        if None in found:
            raise self.fail(node, "type", "expected an integer, or a tuple of integers")
        return found

    def call_np_pad(self: Any, node: Any) -> Value:
        given = self._given(node, "np.pad", "array pad_width mode constant_values", 2)
        array = self.typed(given["array"])
        mode = self.value(given["mode"]) if "mode" in given else Static("constant")
        if mode != Static("constant"):
            if not isinstance(mode, Static) or mode.value not in _PADDED_FROM:
                raise self.fail(given["mode"], "unsupported", "np.pad does not pad so here", ", ".join(_PADDED_FROM))
            widths = self._widths(self.value(given["pad_width"]), given["pad_width"], array.type.rank)
            for axis, (before, behind) in enumerate(widths):
                if (before, behind) != (ZERO, ZERO):
                    n = array.type.shape[axis]
                    places = construct.call("arange", start=-before, stop=n + behind)
                    source = _PADDED_FROM[mode.value](places, construct.dim(n))
                    array = _gathered(array, axis, source, self.span(node))
            return array
        value = self.typed(given["constant_values"]) if "constant_values" in given else const(0)
        if value.type.rank:
            raise self.fail(given["constant_values"], "unsupported", "np.pad takes one constant here")
        widths = self._widths(self.value(given["pad_width"]), given["pad_width"], array.type.rank)
        return construct.call("pad", array, value, pad_width=widths, span=self.span(node))

    def _widths(self: Any, value: Value, node: Any, rank: int) -> tuple[tuple[Dim, Dim], ...]:
        """Before and after, for each axis: of 1, (1, 2), ((1, 2),) or ((1, 2), (3, 4))."""
        items = value.items if isinstance(value, Tuple) else (value,)
        pairs = (
            [self.shape(v, node) for v in items]
            if any(isinstance(v, Tuple) for v in items)
            else [self.shape(value, node)]
        )
        if len(pairs) == 1:
            pairs = pairs * rank
        if len(pairs) != rank or any(len(p) not in (1, 2) for p in pairs):
            raise self.fail(node, "shape", f"the widths are no pair for each of the {rank} axes")
        return tuple((p[0], p[-1]) for p in pairs)

    def call_np_tensordot(self: Any, node: Any) -> Value:
        given = self._given(node, "np.tensordot", "a b axes", 2)
        a, b = self.typed(given["a"]), self.typed(given["b"])
        axes = self.value(given["axes"]) if "axes" in given else const(2)
        if isinstance(axes, Tuple):
            if len(axes.items) != 2:
                raise self.fail(node, "type", "axes is an integer, or the axes of a and those of b")
            left, right = (self._numbers(v, node) for v in axes.items)
        else:
            count = self._static_int(given["axes"], "axes") if "axes" in given else 2
            left, right = list(range(a.type.rank - count, a.type.rank)), list(range(count))
        if len(left) != len(right):
            raise TypingError("shape", f"{len(left)} axes of a against {len(right)} of b")
        left = [normal_axes(x, a.type.rank)[0] for x in left]
        right = [normal_axes(x, b.type.rank)[0] for x in right]
        first = _LETTERS[: a.type.rank]
        rest = iter(_LETTERS[a.type.rank :])
        second = "".join(first[left[right.index(k)]] if k in right else next(rest) for k in range(b.type.rank))
        a, b = self._agreeing([a, b], [first, second], node)
        for x, y in zip(left, right, strict=True):  # einsum would broadcast what tensordot does not
            if not same_extent(a.type.shape[x], b.type.shape[y]):
                raise TypingError(
                    "shape", f"axis {x} of a has extent {a.type.shape[x]}, axis {y} of b {b.type.shape[y]}"
                )
        summed = {first[x] for x in left}
        out = "".join(c for c in first + second if c not in summed)
        return construct.call("einsum", a, b, spec=((first, second), out), span=self.span(node))

    def _numbers(self: Any, value: Value, node: Any) -> list[int]:
        numbers = self.shape(value, node)
        if any(n.value is None for n in numbers):
            raise self.fail(node, "type", "axes must be known at build time")
        return [n.value for n in numbers]

    def squeezed(self: Any, a: Expr, axis: Any, node: Any) -> Expr | None:
        """Of x[:, :1], which has min(1, M) columns: the first one, once the call has made sure that there is one.
        Without an axis, those of one element, once it has made sure that no other has."""
        if axis is None:
            axes = tuple(k for k, d in enumerate(a.type.shape) if is_thin(d))
            for k, d in [(k, d) for k, d in enumerate(a.type.shape) if k not in axes and not nonnegative(d - 2)]:
                many = construct.call("not_equal", construct.dim(d), const(1))
                self.require(many, f"np.squeeze would drop axis {k} too, whose extent is 1: name the axes", node)
        else:
            axes = normal_axes(axis, a.type.rank)
        items: list[Item] = [construct.full_slice(d) for d in a.type.shape]
        thin = [k for k in axes if a.type.shape[k] != ONE and is_thin(a.type.shape[k])]
        for k in thin:
            one = construct.call("equal", construct.dim(a.type.shape[k]), const(1))
            self.require(one, f"cannot squeeze axis {k}, its extent is not 1", node)
            items[k] = At(const(0))
        if not thin and axis is not None:
            return None
        rest = tuple(k - sum(t < k for t in thin) for k in axes if k not in thin)
        part = construct.index(a, items, self.span(node)) if thin else a
        return construct.call("squeeze", part, axis=rest, span=self.span(node))

    def call_np_vdot(self: Any, node: Any) -> Value:
        a, b = (self.typed(x) for x in self._arguments(node, "np.vdot", 2))
        return construct.call("dot", flattened(a), flattened(b), span=self.span(node))

    # -- arguments ---------------------------------------------------------------------------------------------
    def _given(self: Any, node: Any, name: str, parameters: str, required: int) -> dict[str, Any]:
        """The nodes of the arguments, by the names of the parameters."""
        names = parameters.split()
        if len(node.args) > len(names):
            raise self.fail(node, "type", f"{name} takes at most {len(names)} arguments: {', '.join(names)}")
        given = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in names or keyword.arg in given:
                raise self.fail(
                    node, "type", f"{name} has no argument {keyword.arg} left to give", f"it takes: {', '.join(names)}"
                )
            given[keyword.arg] = keyword.value
        for missing in [n for n in names[:required] if n not in given]:
            raise self.fail(node, "type", f"{name} needs {missing}", f"it takes: {', '.join(names)}")
        return given


def _gathered(array: Expr, axis: int, source: Expr, span: Span) -> Expr:
    items: list[Item] = [construct.full_slice(d) for d in array.type.shape]
    items[axis] = Gather(source)
    return construct.index(array, items, span)


def _mirrored(places: Expr, period: Expr, end: Expr) -> Expr:
    """There and back: a place beyond the end counts from it."""
    there = construct.call("mod", places, construct.call("maximum", period, const(1)))
    return construct.call("minimum", there, construct.call("subtract", end, there))


def _doubled(n: Expr, less: int) -> Expr:
    return construct.call("subtract", construct.call("multiply", const(2), n), const(less))


# Where the elements of an axis of n come from that is padded, for places that begin below 0.
_PADDED_FROM = {
    "edge": lambda places, n: construct.call("clip", places, const(0), construct.call("subtract", n, const(1))),
    "wrap": lambda places, n: construct.call("mod", places, construct.call("maximum", n, const(1))),
    "reflect": lambda places, n: _mirrored(places, _doubled(n, 2), _doubled(n, 2)),
    "symmetric": lambda places, n: _mirrored(places, _doubled(n, 0), _doubled(n, 1)),
}


def flattened(expr: Expr) -> Expr:
    return expr if expr.type.rank == 1 else construct.call("ravel", expr)


__all__ = ["ArrayCalls", "flattened"]
