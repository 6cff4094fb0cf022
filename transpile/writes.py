"""Writing into arrays: names that are views of one array, subscripts as targets, `+=`, masks, np.add.at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import gast

from . import construct
from .construct import const, value_of
from .dims import Dim, nonnegative
from .operations import BY_SPELLING
from .program import Assert, Assign, At, Expr, Gather, Index, Item, Mask, Name, NewAxis, Slice, Span, Store
from .typing import broadcast
from .values import Static, Tuple, Value, View


class Writes:
    """Mixed into the checker of functions."""

    # -- aliasing ----------------------------------------------------------------------------------------------
    def _is_view(self: Any, expr: Expr) -> bool:
        """Whether NumPy would give another name, or a part, of an array that exists: not for scalars, which are
        copied."""
        if not expr.type.rank:
            return False
        while isinstance(expr, Index) and not any(isinstance(i, (Gather, Mask)) for i in expr.items):
            expr = expr.base
        return isinstance(expr, Name)

    def _root_mutated(self: Any, expr: Expr) -> bool:
        root = root_of(expr)
        return any(isinstance(v, Name) and v.id == root and k in self.mutated for k, v in self.env.items())

    def _as_view(self: Any, expr: Expr, node: Any) -> View:
        """The view with its index values fixed now."""
        if isinstance(expr, Name):
            return View(expr, None)
        assert isinstance(expr, Index)
        items = tuple(At(self._fixed(i.index, node)) if isinstance(i, At) else i for i in expr.items)
        return View(expr.base, items)

    def _fixed(self: Any, expr: Expr, node: Any) -> Expr:
        if value_of(expr) is not None:
            return expr
        name = self.fresh("i")
        self.emit(Assign(name, expr, self.span(node)))
        return Name(name, expr.type)

    # -- in-place writes ---------------------------------------------------------------------------------------
    def _augmented(self: Any, node: Any, target: Any, op: Any, value: Any) -> None:
        row = BY_SPELLING.get(type(op).__name__)
        if row is None:
            raise self.fail(node, "unsupported", f"{type(op).__name__} in place is not part of the subset")
        right = self.value(value)
        if isinstance(target, gast.Subscript):
            self.store(target.value, target.slice, self.as_expr(right, value), row.name, node)
            return
        left = self.value(as_load(target))
        if isinstance(left, Tuple):
            self.assign(target, self._tuple_arithmetic(type(op).__name__, [left, right], node), node)
            return
        current = self.as_expr(left, target)
        addend = self.as_expr(right, value)
        if current.type.rank:
            self.store_items(current, construct.complete(current, ()), addend, node, row.name)
        else:
            self.assign(target, self.apply(row, [current, addend], {}, node), node)

    def store(self: Any, base: Any, slice: Any, value: Expr, op: str | None, node: Any) -> None:
        array = self.typed(base)
        self.store_items(array, self.items(array, slice), value, node, op)

    def store_items(
        self: Any, array: Expr, items: tuple[Item, ...], value: Expr, node: Any, op: str | None = None
    ) -> None:
        """array[items] op= value, through views down to the array itself."""
        span = self.span(node)
        while isinstance(array, Index):
            items = self._composed(array, items, node)
            array = array.base
        if not isinstance(array, Name):
            raise self.fail(node, "unsupported", "this writes into a temporary array", "give the array a name first")
        if array.id in self.appended:
            raise self.fail(
                node,
                "unsupported",
                "this array is in a list already, which would see the write",
                "append a copy of it: .copy()",
            )
        if any(isinstance(i, Mask) for i in items):
            self._store_masked(array, items, value, op, span, node)
            return
        part = construct.index(array, items)
        if op not in (None, "add", "subtract"):
            value, op = construct.call(op, part, value), None
        if op == "subtract":
            value, op = construct.call("negative", value), "add"
        if broadcast([part.type.shape, value.type.shape]) != part.type.shape:
            raise self.fail(
                node,
                "shape",
                f"cannot store shape {construct.shape_text(value.type.shape)}"
                f" into {construct.shape_text(part.type.shape)}",
            )
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
            )
        )

    def _store_masked(
        self: Any, array: Name, items: tuple[Item, ...], value: Expr, op: str | None, span: Span, node: Any
    ) -> None:
        mask = next(i.condition for i in items if isinstance(i, Mask))
        if not isinstance(items[0], Mask) or value.type.rank:
            raise self.fail(
                node,
                "unsupported",
                "x[mask] = v takes a mask over the first axes and a scalar v",
                "use np.where(mask, v, x)",
            )
        for _ in range(array.type.rank - mask.type.rank):
            mask = construct.call("expand_dims", mask, axis=mask.type.rank)
        new = construct.call(op, array, value) if op else value
        chosen = construct.cast(construct.call("where", mask, new, array), array.type.dtype)
        self.emit(Store(array, construct.complete(array, ()), chosen, None, False, span))

    def call_np_add_at(self: Any, node: Any) -> Value:
        if len(node.args) != 3:
            raise self.fail(node, "type", "np.add.at takes an array, an index and values")
        array = self.typed(node.args[0])
        items = self.items(array, node.args[1])
        value = self.typed(node.args[2])
        while isinstance(array, Index):
            items = self._composed(array, items, node)
            array = array.base
        if not isinstance(array, Name):
            raise self.fail(
                node, "unsupported", "np.add.at writes into a temporary array", "give the array a name first"
            )
        self.emit(Store(array, items, construct.cast(value, array.type.dtype), "add", True, self.span(node)))
        return Static(None)

    def _composed(self: Any, outer: Index, items: tuple[Item, ...], node: Any) -> tuple[Item, ...]:
        """outer.base[outer.items][items] as one subscript of outer.base."""

        def inside(position: Dim, extent: Dim) -> None:
            """An index of the view that is none could still be one of the array: it is checked here."""
            low, high = nonnegative(position, self.facts), nonnegative(extent - 1 - position, self.facts)
            if not (low and high):
                tests = [
                    construct.call("greater_equal", construct.dim(position), const(0)),
                    construct.call("less", construct.dim(position), construct.dim(extent)),
                ]
                test = construct.call("logical_and", *tests)
                self.emit(Assert(test, "index out of range of the view", self.span(node), "IndexError"))

        fail = lambda m: self.fail(node, "unsupported", m, "write to the array itself")  # noqa: E731
        return _compose(outer, items, self.facts, fail, inside)


def _compose(outer: Index, items: tuple[Item, ...], facts: Any, fail: Any, inside: Any) -> tuple[Item, ...]:
    result: list[Item] = []
    rest = list(items)
    for item, extent in zip(outer.items, construct.item_extents(outer.base, outer.items), strict=True):
        match item:
            case At():
                result.append(item)
            case NewAxis():
                taken = rest.pop(0) if rest else None
                if not isinstance(taken, At):  # the axis of one would be lost from what is written
                    raise fail("writing through a view with new axes is not part of the subset")
            case Slice(first=first, step=step):
                while rest and isinstance(rest[0], NewAxis):
                    result.append(rest.pop(0))
                inner = rest.pop(0) if rest else None  # None: a mask over several axes
                if isinstance(inner, At) and value_of(inner.index) is not None:
                    position = value_of(inner.index)
                    assert position is not None
                    if nonnegative(-position - 1, facts):
                        position = position + item.extent
                    elif not nonnegative(position, facts):
                        raise fail("writing through this view is not part of the subset, at an index of any sign")
                    inside(position, item.extent)
                    result.append(At(construct.dim(first + position * step)))
                elif isinstance(inner, At) and construct.is_full(item, extent):
                    result.append(inner)
                elif isinstance(inner, Slice):
                    start, stride = first + inner.first * step, inner.step * step
                    end = start + inner.extent * stride
                    stop = construct.dim(end) if stride > 0 else None
                    result.append(Slice(construct.dim(start), stop, stride, start, inner.extent))
                    if stride < 0:
                        raise fail("writing through a reversed view is not part of the subset")
                else:
                    raise fail("writing through this view is not part of the subset")
            case _:
                raise fail("an indexed copy cannot be written through")
    result.extend(rest)
    return tuple(result)


# Methods of arrays and lists, which keep their arguments as they are.
_METHODS = {
    "append",
    "extend",
    "pop",
    "dot",
    "reshape",
    "transpose",
    "astype",
    "clip",
    "take",
    "repeat",
    "sum",
    "mean",
    "max",
    "min",
    "swapaxes",
}


def root_of(expr: Expr) -> str | None:
    while isinstance(expr, Index):
        expr = expr.base
    return expr.id if isinstance(expr, Name) else None


_HARMLESS = {
    "range",
    "len",
    "abs",
    "min",
    "max",
    "sum",
    "round",
    "int",
    "float",
    "bool",
    "enumerate",
    "zip",
    "reversed",
}


def _harmless(func: Any, libraries: Collection[str]) -> bool:
    """Whether a call writes into none of its arguments: one of NumPy, of Python's own, or a method of arrays."""
    if isinstance(func, gast.Name):
        return func.id in _HARMLESS or func.id in libraries
    if isinstance(func, gast.Attribute) and isinstance(func.value, gast.Name):
        return func.value.id in libraries or func.attr in _METHODS
    return True


def mutated_names(function: Any, libraries: Collection[str] = ("np", "math", "special")) -> set[str]:
    """Names that a function may write into in place: x[...] = v, x += v, np.add.at(x, ...), and arguments of
    calls that might."""
    found: set[str] = set()
    for node in gast.walk(function):
        match node:
            case gast.Subscript(value=base, ctx=gast.Store()):
                found |= base_names(base)
            case gast.AugAssign(target=target):
                found |= base_names(target)
            case gast.Call(func=gast.Attribute(attr="at"), args=[first, *_]):
                found |= base_names(first)
            case gast.Call(func=func, args=args, keywords=keywords) if not _harmless(func, libraries):
                for arg in [*args, *(k.value for k in keywords)]:
                    found |= base_names(arg)
    return found


def target_names(nodes: list[Any], in_place: Callable[[str], bool] = lambda id: False) -> list[str]:
    """The names that statements bind, in order; for self.x: "self.x". in_place: whether `+=` does not bind a name."""
    found: list[str] = []
    updated: set[Any] = set()
    for node in nodes:
        for child in _own_nodes(node):
            match child:
                case gast.AugAssign(target=gast.Name() as target):
                    updated.add(target)
                case gast.Name(id=id, ctx=gast.Store() | gast.Del()) if not (child in updated and in_place(id)):
                    found.append(id)
                case gast.Attribute(value=gast.Name(id="self"), attr=attr, ctx=gast.Store()):
                    found.append(f"self.{attr}")
                case gast.FunctionDef(name=name):
                    found.append(name)
    return found


def _own_nodes(node: Any) -> Iterator[Any]:
    """All nodes in a statement, without those of functions and comprehensions in it, which have names of their own."""
    yield node
    if isinstance(node, (gast.FunctionDef, gast.Lambda, gast.ListComp, gast.GeneratorExp)):
        return
    for child in gast.iter_child_nodes(node):
        yield from _own_nodes(child)


def base_names(node: Any) -> set[str]:
    while isinstance(node, (gast.Subscript, gast.Attribute)):
        node = node.value
    return {node.id} if isinstance(node, gast.Name) else set()


def as_load(node: Any) -> Any:
    if isinstance(node, gast.Name):
        return gast.copy_location(gast.Name(id=node.id, ctx=gast.Load(), annotation=None, type_comment=None), node)
    return gast.copy_location(gast.Attribute(value=node.value, attr=node.attr, ctx=gast.Load()), node)
