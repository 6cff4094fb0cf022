"""Subscripts: items of tuples, parts of arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gast

from . import construct
from .construct import Proofs, const, number_of, value_of
from .dims import Dim, nonnegative
from .program import (
    Assert,
    At,
    Expr,
    Gather,
    Item,
    Mask,
    NewAxis,
    Slice,
)
from .typing import TypingError
from .values import (
    Closure,
    Static,
    Tuple,
    Value,
    leaves,
)


class Subscripts:
    """Mixed into the checker of expressions."""

    def _subscript(self: Any, node: Any, value: Any, slice: Any) -> Value:
        base = self.value(value)
        if isinstance(base, Tuple):
            return self._pick(node, base, slice)
        expr = self.as_expr(base, value)
        self._no_number(expr, node, "takes no index")
        return self._take(expr, self._items_of(expr, value, slice), node)

    def _items_of(self: Any, expr: Expr, value: Any, slice: Any) -> tuple[Item, ...]:
        """What `value[slice]` asks for, where a list takes less than the array that stands for it."""
        items: tuple[Item, ...] = self.items(expr, slice)
        if self.is_array_list(value) and (_of_arrays(slice) or not isinstance(items[0], (At, Slice))):
            raise self.fail(slice, "type", "a list takes one integer, or a slice", "stack it first: np.stack(ys)")
        return items

    def _take(self: Any, expr: Expr, items: tuple[Item, ...], node: Any) -> Value:
        return construct.index(expr, items, self.span(node))

    def _pick(self: Any, node: Any, base: Tuple, slice: Any) -> Value:
        if isinstance(slice, gast.Slice):
            bounds = [self._static_int(b) if b is not None else None for b in (slice.lower, slice.upper, slice.step)]
            return Tuple(base.items[bounds[0] : bounds[1] : bounds[2]])
        number = self.typed(slice)
        if number.type.rank or number.type.is_float:
            raise self.fail(slice, "type", f"the index of a tuple is one integer, not {number.type}")
        if number_of(number) is None and not any(isinstance(v, (Static, Closure)) for _, v in leaves(base)):
            stacked = self.stacked_items(base, node)  # which item depends on values
            return construct.index(stacked, self.items(stacked, slice), self.span(node))
        position = self._static_int(slice)
        if not -len(base.items) <= position < len(base.items):
            raise self.fail(node, "index", f"index {position} is out of range for {len(base.items)} items")
        return base.items[position]

    def _static_int(self: Any, node: Any, what: str = "the index of a tuple", help: str = "") -> int:
        number = value_of(self.typed(node))
        if number is None or number.value is None:
            raise self.fail(node, "index", f"{what} must be known at build time", help)
        return number.value

    def items(self: Any, base: Expr, node: Any) -> tuple[Item, ...]:
        """What stands in the brackets, one item an axis of base."""
        if isinstance(node, gast.Subscript) and self._called(node.value) == "np.s_":
            node = node.slice
        elements = [
            (e, e if _is_form(e) else self._index(e)) for e in (node.elts if isinstance(node, gast.Tuple) else [node])
        ]
        if sum(isinstance(e, gast.Constant) and e.value is Ellipsis for e, _ in elements) > 1:
            raise self.fail(node, "index", "an index has one ... at most", "write a : for each axis")
        taken = sum(_axes_taken(value) for _, value in elements)
        items: list[Item] = []
        axis = 0
        for element, value in elements:
            if isinstance(element, gast.Constant) and element.value is Ellipsis:
                for extent in base.type.shape[axis : axis + base.type.rank - taken]:
                    items.append(construct.full_slice(extent))
                    axis += 1
                continue
            item = self._item(base, axis, element, value)
            items.append(item)
            axis += item.condition.type.rank if isinstance(item, Mask) else 0 if isinstance(item, NewAxis) else 1
        try:
            return construct.complete(base, items)
        except TypingError as error:
            raise self.fail(node, error.kind, error.message, error.help) from None

    def _index(self: Any, element: Any) -> Expr | None:
        """What stands at one place in the brackets; None is a new axis."""
        value = self.value(element)
        if isinstance(value, Static) and value.value is None:
            return None
        return self.stacked(value, element) if isinstance(value, Tuple) else self.as_expr(value, element)

    def _item(self: Any, base: Expr, axis: int, element: Any, expr: Expr | None) -> Item:
        if isinstance(element, gast.Slice):
            if axis >= base.type.rank:
                raise self.fail(element, "index", f"too many indices for shape {construct.shape_text(base.type.shape)}")
            return self._slice(element, base.type.shape[axis])
        if expr is None:
            return NewAxis()
        if expr.type.dtype == "bool":
            return Mask(expr)
        if not expr.type.is_integer:
            raise self.fail(element, "index", f"an index must be an integer, got {expr.type}", "use int(...)")
        if axis >= base.type.rank:
            raise self.fail(element, "index", f"too many indices for shape {construct.shape_text(base.type.shape)}")
        return Gather(expr) if expr.type.rank else At(expr)

    def _slice(self: Any, node: Any, extent: Dim) -> Slice:
        bounds = []
        for bound in (node.lower, node.upper):
            expr = self.typed(bound) if bound is not None else None
            if expr is not None and not expr.type.is_integer:
                raise self.fail(bound, "index", f"a slice bound must be an integer, got {expr.type}")
            bounds.append(expr)
        by = self._stride(node.step) if node.step is not None else const(1)
        item = construct.slice_of(bounds[0], bounds[1], by, extent, self.proofs(node))
        return replace(item, extent=self.agreed.get(item.extent, item.extent))

    def _stride(self: Any, node: Any) -> Expr:
        """The step of a slice: a number, or positive, of shapes and configuration."""
        expr = self.typed(node)
        value = value_of(expr)
        if expr.type.rank or not expr.type.is_integer:
            raise self.fail(node, "index", f"the step of a slice must be an integer, got {expr.type}")
        if value is None or value.symbols() & self.counters:
            message = "the step of a slice must be known from shapes and configuration"
            raise self.fail(node, "index", message, "take them one by one: for k in range(0, n, step): ... x[k]")
        if value.value is None and not nonnegative(value - 1, self.facts):
            positive = construct.call("greater", construct.dim(value), const(0))
            self.require(positive, f"the step {value} of a slice is not positive", node)
        return expr

    def proofs(self: Any, node: Any) -> Proofs:
        """What is known at a slice. A bound of unknown sign is checked at run time: a negative one means another
        place."""

        def check(bound: Dim, message: str) -> None:
            holds = construct.call("greater_equal", construct.dim(bound), const(0))
            self.emit(Assert(holds, message, self.span(node), "IndexError"))

        return Proofs(self.facts, check, self.held)


def _is_form(element: Any) -> bool:
    """A slice or `...`: no value."""
    return isinstance(element, gast.Slice) or (isinstance(element, gast.Constant) and element.value is Ellipsis)


def _axes_taken(value: Any) -> int:
    """How many axes the value in the brackets stands for."""
    match value:
        case None | gast.Constant():
            return 0
        case gast.Slice():
            return 1
    return value.type.rank if value.type.dtype == "bool" else 1


def _of_arrays(index: Any) -> bool:
    """Whether an index, as it is written, is one that no list takes."""
    return isinstance(index, gast.Tuple) or (isinstance(index, gast.Constant) and index.value is ...)


__all__ = ["Subscripts"]
