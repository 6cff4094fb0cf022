"""Writing into arrays: names that are views of one array, subscripts as targets, `+=`, masks, np.add.at and others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import gast

from . import construct
from .construct import const
from .dims import ZERO, Dim
from .mutation import as_load
from .operations import BY_SPELLING, ROWS
from .program import Assign, At, Const, Expr, For, Gather, Item, Mask, Name, Slice, Span, Store, Type, names
from .typing import broadcast, shape_text
from .values import Static, Tuple, Value, plain


class Writes:
    """Mixed into the checker of functions."""

    # -- in-place writes ---------------------------------------------------------------------------------------
    def _augmented(self: Any, node: Any, target: Any, op: Any, value: Any) -> None:
        row = BY_SPELLING.get(type(op).__name__)
        if row is None:
            raise self.fail(node, "unsupported", f"{type(op).__name__} in place is not part of the subset")
        if isinstance(target, gast.Subscript):
            array = self._places(target.value)
            items = self.items(array, target.slice)
            mark = len(self.out)
            addend = self.typed(value)
            if all(isinstance(i, At) for i in items):  # a number is read before what is added to it
                part = construct.index(array, items)
                if (before := self._before(part, mark, node)) is not part:
                    self.store_items(array, items, self.apply(row, [before, addend], {}, node), node)
                    return
            self.store_items(array, items, addend, node, row.name)
            return
        self.no_lists([as_load(target)])
        right = self.value(value)
        left = self.value(as_load(target))
        if isinstance(left, Tuple):
            self.assign(target, self._tuple_arithmetic(type(op).__name__, [left, right], node), node)
            return
        current = self.as_expr(left, target)
        addend = self.as_expr(right, value)
        if addend.type.rank and not current.type.rank and self.is_box(current):
            what = f"an array without axes, which this changes in place, cannot hold {shape_text(addend.type.shape)}"
            raise self.fail(node, "shape", what, "v = v + x makes another")
        if current.type.rank:
            self.store_items(current, construct.complete(current, ()), addend, node, row.name)
        else:
            self.assign(target, self.apply(row, [current, addend], {}, node), node)
            self._only_name(current, target, node)

    def _only_name(self: Any, before: Expr, target: Any, node: Any) -> None:
        """What np.where and their like give of numbers is an array without axes: += changes it in place, for all of its
        names. Compiled code has numbers only."""
        root = self.boxes.get(before.id) if isinstance(before, Name) and isinstance(target, gast.Name) else None
        if root is None:
            return
        shown = {k: v for k, v in self.env.items() if isinstance(v, Name) and self.boxes.get(v.id) == root}
        if others := shown.keys() - {target.id}:
            what = f"{plain(target.id)} and {plain(min(others))} are one array without axes, which is updated in place"
            raise self.fail(node, "aliasing", what, "take a copy for one of them: np.copy(...)")
        if isinstance(after := self.env[target.id], Name):
            self.boxes[after.id] = root

    scalars_are_places = False  # in NumPy they are numbers

    def store(self: Any, base: Any, slice: Any, value: Expr, op: str | None, node: Any) -> None:
        array = self._places(base)
        items = self._items_of(array, base, slice)
        binds = self.is_array_list(base) and len(items) == 1 and isinstance(items[0], At)
        self.store_items(array, items, value, node, op, binds=binds)

    def store_items(
        self: Any,
        array: Expr,
        items: tuple[Item, ...],
        value: Expr,
        node: Any,
        op: str | None = None,
        scatter: bool = False,
        binds: bool = False,
    ) -> None:
        """array[items] op= value, through views down to the array itself."""
        span = self.span(node)
        if op == "matmul":
            value, op = self._product_in_place(construct.index(array, items), value, node), None
        is_given = isinstance(array, Name)
        while not isinstance(array, Name):
            shown = self.through(array, items, value, op, node, scatter)
            if shown is None:
                return
            array, items, value = shown
        if array.id in self.shown_by:
            self.store_choice(self.shown_by[array.id], items, value, op, node, scatter)
            return
        if not array.type.rank and not self.scalars_are_places:
            if is_given:
                raise self.fail(node, "type", "a scalar has no places to store into", "assign the name itself")
            message = "this shows a scalar: NumPy stores into that, or into a copy, by what made it"
            raise self.fail(node, "type", message, "make an array of the value: np.full(1, v)")
        if any(isinstance(i, Mask) for i in items):
            self._store_masked(array, items, value, op, span, node)
            return
        part = construct.index(array, items)
        if scatter:
            self._fits(part, value, node)
            self.emit(Store(array, items, value, op, True, span))
            return
        if op not in (None, "add", "subtract"):
            value, op = self.apply(ROWS[op], [part, value], {}, node), None
        if op == "subtract":
            value = construct.cast(value, array.type.dtype) if value.type.dtype == "bool" else value
            value, op = construct.call("negative", value), "add"
        value = self.like_halves(value, part.type.shape, node)
        self._fits(part, value, node)
        if value.type.is_float and not array.type.is_float:
            raise self.fail(
                node,
                "type",
                f"cannot store {value.type.dtype} into an array of {array.type.dtype}",
                "convert it: .astype(...)",
            )
        if op == "add" and any(isinstance(i, Gather) for i in items):
            value, op = construct.call("add", part, value), None
        self.emit(
            Store(
                array,
                items,
                value if value.type.dtype == array.type.dtype else construct.cast(value, array.type.dtype),
                op,
                False,
                span,
                binds,
            )
        )

    def _product_in_place(self: Any, part: Expr, value: Expr, node: Any) -> Expr:
        """part @= value, which NumPy takes of matrices only, and where the product has the shape of the part."""
        product = self.apply(ROWS["matmul"], [part, value], {}, node)
        if value.type.rank < 2:
            help = "np.dot(x, y) is the sum of the products of two vectors"
            raise self.fail(node, "shape", "@= takes a matrix on its right, or a stack of them", help)
        if product.type.shape != part.type.shape:
            shown = construct.shape_text(product.type.shape), construct.shape_text(part.type.shape)
            help = "give the product a name of its own: z = x @ y"
            raise self.fail(node, "shape", f"@= keeps the shape: the product is {shown[0]}, not {shown[1]}", help)
        return product

    def _places(self: Any, base: Any) -> Expr:
        """What is written into, of target[...]."""
        value = self.value(base)
        if isinstance(value, Tuple):
            what = "an item of a list or tuple that is written out has a value, not a place to write into"
            help = "y = ys[0]; y += 1 changes an array that is an item; for another item, make an array: np.stack(ys)"
            raise self.fail(base, "unsupported", what, help)
        return self.as_expr(value, base)

    def _fits(self: Any, part: Expr, value: Expr, node: Any) -> None:
        place, shape = part.type.shape, value.type.shape
        if broadcast([place, shape]) != place:
            raise self.fail(
                node, "shape", f"cannot store shape {construct.shape_text(shape)} into {construct.shape_text(place)}"
            )

    def _store_masked(
        self: Any, array: Name, items: tuple[Item, ...], value: Expr, op: str | None, span: Span, node: Any
    ) -> None:
        """A select over the part that the mask is laid on."""
        (mask,) = (i.condition for i in items if isinstance(i, Mask))
        if value.type.rank or not all(isinstance(i, (At, Slice, Mask)) for i in items):
            raise self.fail(node, "unsupported", "x[mask] = v takes a scalar v", "use np.where(mask, v, x)")
        whole: list[Item] = []
        for item in items:
            axes = array.type.shape[len(whole) : len(whole) + mask.type.rank]
            whole += [construct.full_slice(d) for d in axes] if isinstance(item, Mask) else [item]
        part = construct.index(array, whole)
        after = itertools.dropwhile(lambda i: not isinstance(i, Mask), items)
        for _ in [i for i in after if isinstance(i, Slice)]:
            mask = construct.call("expand_dims", mask, axis=mask.type.rank)
        new = self.apply(ROWS[op], [part, value], {}, node) if op else value
        chosen = construct.cast(construct.call("where", mask, new, part), array.type.dtype)
        self.emit(Store(array, tuple(whole), chosen, None, False, span))

    # -- in place, index by index ------------------------------------------------------------------------------
    def call_np_add_at(self: Any, node: Any) -> Value:
        array, items, value = self._at("add", node)
        self.store_items(array, items, construct.cast(value, array.type.dtype), node, "add", scatter=True)
        return Static(None)

    def call_np_maximum_at(self: Any, node: Any) -> Value:
        return self._one_after_the_other("maximum", node)

    def call_np_minimum_at(self: Any, node: Any) -> Value:
        return self._one_after_the_other("minimum", node)

    def _at(self: Any, op: str, node: Any) -> tuple[Expr, tuple[Item, ...], Expr]:
        if len(node.args) != 3 or node.keywords:
            raise self.fail(node, "type", f"np.{op}.at takes an array, an index and values")
        self.no_lists(node.args[:1])
        array = self.typed(node.args[0])
        items = self.items(array, node.args[1])
        return array, items, self.typed(node.args[2])

    def _one_after_the_other(self: Any, op: str, node: Any) -> Value:
        """np.maximum.at(a, i, v) is the loop that it stands for: a[i[e]] = np.maximum(a[i[e]], v[e])."""
        array, items, value = self._at(op, node)
        gathers = [i for i in items if isinstance(i, Gather)]
        if any(isinstance(i, Mask) for i in items) or not gathers:  # places that differ
            self.store_items(array, items, value, node, op)
            return Static(None)
        part = construct.index(array, items)
        self._fits(part, value, node)
        turns = broadcast([g.index.type.shape for g in gathers])
        before = sum(not isinstance(i, At) for i in itertools.takewhile(lambda i: not isinstance(i, Gather), items))
        loop = [self._counter_of(extent) for extent in turns]
        axes = [*[None] * before, *loop, *[None] * (part.type.rank - before - len(loop))]
        value = _along(self._held_beside(array, value, node), part.type.shape, axes)
        held = [Gather(self._held_beside(array, i.index, node)) if isinstance(i, Gather) else i for i in items]
        here = [At(_along(i.index, turns, loop)) if isinstance(i, Gather) else i for i in held]
        self.facts |= {var.id: (ZERO, extent - 1) for var, extent in zip(loop, turns, strict=True)}
        with self.aside() as body:
            self.store_items(array, tuple(here), value, node, op)
        for var, extent in reversed(list(zip(loop, turns, strict=True))):
            del self.facts[var.id]
            body = [For(var.id, const(0), construct.dim(extent), 1, tuple(body), self.span(node))]
        self.out += body
        return Static(None)

    def _counter_of(self: Any, extent: Dim) -> Name:
        var = self.fresh("e")
        self.counters.add(var)
        return Name(var, Type("int", pythons=True), Dim.of(var))

    def _held_beside(self: Any, array: Expr, value: Expr, node: Any) -> Expr:
        """A value as it is before the array is written into; computed once."""
        reads = bool(names(value) & names(array))
        if isinstance(value, (Name, Const)) and not reads:
            return value
        name = self.fresh("held")
        copy = construct.call("copy", value) if reads and value.type.rank else value
        self.emit(Assign(name, copy, self.span(node)))
        return Name(name, value.type)


def _along(value: Expr, shape: Sequence[Dim], axes: Sequence[Name | None]) -> Expr:
    """An element, or a row, of what broadcasts to the shape: at the counters of the axes that have one."""
    items: list[Item] = []
    rank = value.type.rank
    for own, extent, var in zip(value.type.shape, shape[len(shape) - rank :], axes[len(axes) - rank :], strict=True):
        items.append(construct.full_slice(own) if var is None else At(var if own == extent else const(0)))
    return construct.index(value, items) if any(isinstance(i, At) for i in items) else value
