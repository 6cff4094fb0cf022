"""Views: names for part of an array, or for the array in another shape or order, through which NumPy writes into it.

    t = y.T; t[0] = v          ->    y[:, 0] = v
    f = y.reshape(-1)          ->    f_2 = np.copy(np.reshape(y, -1)); f_2[1:] += v; y[...] = np.reshape(f_2, y.shape)
    f[1:] += v

A store goes through one view after the other down to the array itself. Where its place is no subscript of what the view
shows, the view is copied, written into and stored back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import construct
from .construct import const, value_of
from .dims import ZERO, Dim, nonnegative, product, unclamped
from .operations import ROWS
from .program import Assert, Assign, At, Call, Expr, Gather, Index, Item, Mask, Name, NewAxis, Slice, Type, walk
from .values import View

# An operation that shows an array in another way -> the operation that shows its result as the array was.
_BACK: dict[str, Callable[[Call, Expr], Expr]] = {
    "transpose": lambda view, new: construct.call("transpose", new, axes=_inverse(view)),
    "swapaxes": lambda view, new: construct.call("swapaxes", new, axis1=view.get("axis1"), axis2=view.get("axis2")),
    "moveaxis": lambda view, new: construct.call(
        "moveaxis", new, source=view.get("destination"), destination=view.get("source")
    ),
    "flip": lambda view, new: construct.call("flip", new, axis=view.get("axis")),
    "expand_dims": lambda view, new: _reshaped(view, new),
    "squeeze": lambda view, new: _reshaped(view, new),
    "reshape": lambda view, new: _reshaped(view, new),
    "ravel": lambda view, new: _reshaped(view, new),
}
_READ_ONLY = {  # views that NumPy does not write into: why, and what does
    "broadcast_to": ("one element of it may stand in several places", "take a copy first: .copy()"),
    "diagonal": (
        "NumPy's is read-only",
        "by positions: k = np.arange(n); x[k, k] = v; .copy() makes an array of its own",
    ),
}
_REORDERING = ("transpose", "swapaxes", "moveaxis", "einsum")  # what comes of these may not lie in C order
_RESHAPING = ("expand_dims", "squeeze", "reshape", "ravel")


def _inverse(view: Call) -> tuple[int, ...] | None:
    axes = view.get("axes")
    if axes is None:
        return None
    rank = len(axes)
    return tuple([a % rank for a in axes].index(k) for k in range(rank))


def _reshaped(view: Call, new: Expr) -> Expr:
    return construct.call("reshape", new, shape=view.args[0].type.shape)


def root_of(expr: Expr) -> str | None:
    """The array that a view shows."""
    while True:
        match expr:
            case Index(base=base):
                expr = base
            case Call(op=op, args=(base,)) if op in _BACK or op in _READ_ONLY:
                expr = base
            case Name(id=id):
                return id
            case _:
                return None


def _picks(expr: Index) -> bool:
    """Whether it makes an array of elements that it picks, and shows none."""
    return any(isinstance(i, (Gather, Mask)) for i in expr.items)


class Views:
    """Mixed into the checker of functions. `unordered`: arrays that may not lie in C order under NumPy."""

    def _is_view(self: Any, expr: Expr) -> bool:
        """Whether NumPy would give another name, or a part, of an array that exists: not for scalars, which are
        copied."""
        return bool(expr.type.rank) and self._shows(expr)

    def _shows(self: Any, expr: Expr) -> bool:
        match expr:
            case Name():
                return True
            case Index(base=base):
                return not _picks(expr) and self._shows(base)
            case Call(op="reshape" | "ravel", args=(base,)):
                return self._in_order(base) and self._shows(base)
            case Call(op=op, args=(base,)) if op in _BACK or op in _READ_ONLY:
                return self._shows(base)
        return False

    def _in_order(self: Any, expr: Expr) -> bool:
        """Whether its elements lie one after the other, so that NumPy reshapes without a copy."""
        match expr:
            case Name(id=id):
                return id not in self.unordered
            case Index(base=base, items=items) if not _picks(expr):
                rest = [i for i in zip(items, construct.item_extents(base, items)) if not isinstance(i[0], NewAxis)]
                while rest and isinstance(rest[0][0], At):
                    rest.pop(0)
                first = rest.pop(0)[0] if rest else None
                whole = all(construct.is_full(item, extent) for item, extent in rest)
                return whole and (first is None or _steps(first)) and self._in_order(base)
            case Call(op=op, args=(base,)) if op in _RESHAPING:
                return self._in_order(base)
            case Call(op=op) if op in _BACK or op in _READ_ONLY:
                return False
        return self._is_made_in_order(expr)

    def _note_order(self: Any, name: str, value: Expr) -> None:
        if not self._in_order(value):
            self.unordered.add(name)

    def _is_made_in_order(self: Any, value: Expr) -> bool:
        """The same of what is computed: NumPy gives a result the order of its operands."""
        for part in walk(value):
            match part:
                case Name(id=id) if id in self.unordered:
                    return False
                case Call(op=op) if op in _REORDERING:
                    return False
                case Index(items=(first, *_)) if _picks(part) and not isinstance(first, Gather):
                    return False  # x[:, j]: NumPy goes along j first
        return True

    def _root_mutated(self: Any, expr: Expr) -> bool:
        """Whether a name that is written into shows the same array."""
        root, values = root_of(expr), (self.env.get(k) for k in self.mutated)
        shown = (v.base if isinstance(v, View) else v for v in values if isinstance(v, (Name, View)))
        return root is not None and any(root_of(v) == root for v in shown)

    def _as_view(self: Any, expr: Expr, node: Any) -> View:
        """The view with its index values fixed now, and looked at: nobody may ever read or write through it."""
        settled = self._settled(expr, node)
        if not self._surely_inside(settled):
            self.emit(Assign(self.fresh("view"), settled, self.span(node)))
        return view_of(settled)

    def _surely_inside(self: Any, view: Expr) -> bool:
        """Whether no index of the view can be out of range."""
        match view:
            case Index(base=base, items=items):
                extents = construct.item_extents(base, items)
                places = [(i, extent) for i, extent in zip(items, extents, strict=True) if isinstance(i, At)]
                return all(self._within(i.index, extent) for i, extent in places) and self._surely_inside(base)
            case Call(args=(base,)):
                return self._surely_inside(base)
        return True

    def _within(self: Any, index: Expr, extent: Dim) -> bool:
        place = value_of(index)
        if place is not None and place.value is not None and place.value < 0:
            place = place + extent
        return place is not None and nonnegative(place, self.facts) and nonnegative(extent - 1 - place, self.facts)

    def _settled(self: Any, expr: Expr, node: Any) -> Expr:
        match expr:
            case Index(base=base):
                return construct.index(self._settled(base, node), self._settled_items(expr, node), expr.span)
            case Call(args=(base,)):
                return construct.replace(expr, args=(self._settled(base, node),))
        return expr

    def _settled_items(self: Any, expr: Index, node: Any) -> tuple[Item, ...]:
        return tuple(At(self._fixed(i.index, node)) if isinstance(i, At) else i for i in expr.items)

    def _fixed(self: Any, expr: Expr, node: Any) -> Expr:
        if value_of(expr) is not None:
            return expr
        name = self.fresh("i")
        self.emit(Assign(name, expr, self.span(node)))
        return Name(name, expr.type)

    # -- stores --------------------------------------------------------------------------------------------------
    def through(
        self: Any, array: Expr, items: tuple[Item, ...], value: Expr, op: str | None, node: Any, scatter: bool
    ) -> tuple[Expr, tuple[Item, ...], Expr] | None:
        """array[items] op= value as a store into what the view shows; None if it was stored by way of a copy."""
        if isinstance(array, Index):
            items = self._inside(array, items, node)
            joined = composed(array, items)
            if joined is not None:
                return array.base, joined, value
        elif isinstance(array, Call) and array.op in _READ_ONLY:
            why, help = _READ_ONLY[array.op]
            raise self.fail(node, "unsupported", f"what np.{array.op} gives is not written into: {why}", help)
        elif isinstance(array, Call) and self._shows(array):
            there = None if scatter else moved(array, items, value) or _element(array, items, value)
            if there is not None:
                return array.args[0], *there
        elif isinstance(array, Call) and array.op in ("reshape", "ravel") and root_of(array) is not None:
            why = "this may be a copy: of what does not lie in one piece, or in this order, NumPy reshapes a copy"
            raise self.fail(node, "unsupported", why, "take the copy before: b = b.copy()")
        else:
            raise self.fail(node, "unsupported", "this writes into a temporary array", "give the array a name first")
        name = self.fresh("view")
        self.emit(Assign(name, construct.call("copy", array), self.span(node)))
        self.born[name] = self.loops
        copy = Name(name, array.type)
        self.store_items(copy, items, value, node, op, scatter)
        if isinstance(array, Index):
            self.store_items(array.base, array.items, copy, node)
        else:
            shown = array.args[0]
            self.store_items(shown, construct.complete(shown, ()), _BACK[array.op](array, copy), node)
        return None

    def _inside(self: Any, view: Index, items: tuple[Item, ...], node: Any) -> tuple[Item, ...]:
        """The items with every index counted from the start. One that the view does not have may still be one of the
        array: it is checked here."""
        found: list[Item] = []
        for item, extent in zip(items, construct.item_extents(view, items), strict=True):
            if isinstance(item, At) and not self._within(item.index, extent):
                item = At(self._from_start(item.index, extent, node))
            found.append(item)
        return tuple(found)

    def _from_start(self: Any, index: Expr, extent: Dim, node: Any) -> Expr:
        """An index of an axis, counted from its start and checked."""
        size = construct.dim(extent)
        back = construct.call("less", index, const(0))
        name = self.fresh("i")
        self.emit(
            Assign(name, construct.call("where", back, construct.call("add", index, size), index), self.span(node))
        )
        place = Name(name, Type("int"))
        low, high = construct.call("greater_equal", place, const(0)), construct.call("less", place, size)
        test = construct.call("logical_and", low, high)
        self.emit(Assert(test, "index out of range of the view", self.span(node), "IndexError"))
        return place


def _steps(item: Item) -> bool:
    return isinstance(item, Slice) and item.step == 1


def view_of(settled: Expr) -> View:
    """What a part of an array, or one seen in another way, is a view of; x[:] is x."""
    while isinstance(settled, Index) and _shows_all(settled):
        settled = settled.base
    return View(settled.base, settled.items) if isinstance(settled, Index) else View(settled, None)


def _shows_all(part: Index) -> bool:
    """x[:]"""
    extents = construct.item_extents(part.base, part.items)
    return all(construct.is_full(item, extent) for item, extent in zip(part.items, extents, strict=True))


def composed(outer: Index, items: tuple[Item, ...]) -> tuple[Item, ...] | None:
    """outer.base[outer.items][items] as one subscript of outer.base, if it is one."""
    result: list[Item] = []
    rest = list(items)
    for item, extent in zip(outer.items, construct.item_extents(outer.base, outer.items), strict=True):
        match item:
            case At():
                result.append(item)
            case NewAxis():
                taken = rest.pop(0)
                if not (isinstance(taken, At) and taken.index in (const(0), const(-1))):
                    return None
            case Slice():
                while rest and isinstance(rest[0], NewAxis):
                    result.append(rest.pop(0))
                inner = _slice_item(item, rest.pop(0), extent)
                if inner is None:
                    return None
                result.append(inner)
            case _:
                return None
    result.extend(rest)
    return tuple(result)


_DIVISIONS = ("floor_divide", "mod")


def _slice_item(item: Slice, inner: Item, extent: Dim) -> Item | None:
    """axis[item][inner] as one item of the axis."""
    # What an index divides by may be zero: that is asked where its text says so.
    divides = isinstance(inner, At) and any(isinstance(p, Call) and p.op in _DIVISIONS for p in walk(inner.index))
    if isinstance(inner, At) and not divides and (position := value_of(inner.index)) is not None:
        if position.value is not None and position.value < 0:
            position = position + item.extent
        return At(construct.dim(item.first + position * item.step))
    if construct.is_full(item, extent) and not isinstance(inner, Mask):
        return inner
    if isinstance(inner, At):
        stride = construct.dim(Dim.of(item.step))
        along = construct.call("multiply", inner.index, stride) if item.step != 1 else inner.index
        return At(along if item.first == ZERO else construct.call("add", along, construct.dim(item.first)))
    if isinstance(inner, Slice) and construct.is_full(inner, item.extent):
        return item
    return _forwards(item, inner, extent) if isinstance(inner, Slice) else None


def _forwards(item: Slice, inner: Slice, extent: Dim) -> Item | None:
    """One slice of two that go forwards."""
    own, more = item.step, inner.step
    if any(isinstance(step, int) and step < 0 for step in (own, more)):
        return None
    start, stride = item.first + inner.first * own, Dim.of(own) * more
    end = construct.dim(start + inner.extent * stride)
    if isinstance(own, Dim) or isinstance(more, Dim):
        return Slice(construct.dim(start), end, stride, start, inner.extent, construct.dim(stride))
    step = own * more
    if (left := _left_at_end(item)) is not None and (after := _left_at_end(inner)) is not None:
        left += after * own  # in steps of 3 from anywhere, y[::3][:-1] ends where y[:-3] does
        return Slice(construct.dim(start), const(-left) if left else None, step, start, inner.extent)
    behind = extent - (start + unclamped(inner.extent) * step)
    if behind.value is not None and behind.value > 0:  # y[1:][:-1] is y[1:-1], however short y is
        return Slice(construct.dim(start), construct.const(-behind.value), step, start, inner.extent)
    return Slice(construct.dim(start), end, step, start, inner.extent)


def _left_at_end(item: Slice) -> int | None:
    """How many elements it leaves at the end of its axis, where that is said by a number."""
    if item.stop is None:
        return 0
    stop = value_of(item.stop)
    return -stop.value if stop is not None and stop.value is not None and stop.value < 0 else None


def moved(view: Call, items: tuple[Item, ...], value: Expr) -> tuple[tuple[Item, ...], Expr] | None:
    """A store into an array whose axes are permuted, or some of extent one left out: the value's axes move along."""
    pull, shown = ROWS[view.op].pull, view.args[0]
    if pull is None or any(not isinstance(i, (At, Slice)) for i in items):
        return None
    axes = {f"<{k}>": k for k in range(len(items))}
    source = pull(tuple(Dim.of(a) for a in axes), shown.type, dict(view.static))
    if any(d != ZERO and d.symbol not in axes for d in source):
        return None
    order = [None if d == ZERO else axes[str(d.symbol)] for d in source]
    for k in set(axes.values()) - set(order):  # an axis of extent one, which the array does not have
        item = items[k]
        if not isinstance(item, At) or item.index not in (const(0), const(-1)):
            return None
    stored = tuple(At(const(0)) if k is None else items[k] for k in order)
    kept = [k for k, item in enumerate(items) if isinstance(item, Slice)]
    moved = [k for k in order if k in kept]
    if value.type.rank and moved != kept:
        shape = tuple(item.extent for item in items if isinstance(item, Slice))
        if value.type.shape != shape:
            value = construct.call("broadcast_to", value, shape=shape)
        value = construct.call("transpose", value, axes=tuple(kept.index(k) for k in moved if k is not None))
    return stored, value


def _element(view: Call, items: tuple[Item, ...], value: Expr) -> tuple[tuple[Item, ...], Expr] | None:
    """A store of one element: where the view takes it from."""
    places = [value_of(i.index) if isinstance(i, At) else None for i in items]
    if any(p is None for p in places):
        return None
    index = tuple(
        p + extent if p.value is not None and p.value < 0 else p
        for p, extent in zip(places, view.type.shape, strict=True)
        if p is not None
    )
    shown = view.args[0].type
    pull = ROWS[view.op].pull
    if pull is not None:
        source = pull(index, shown, dict(view.static))
    else:
        linear = Dim.of(0)
        for place, extent in zip(index, view.type.shape, strict=True):
            linear = linear * extent + place
        behind = [product(shown.shape[k + 1 :]) for k in range(shown.rank)]
        source = tuple(linear // b if k == 0 else (linear // b) % shown.shape[k] for k, b in enumerate(behind))
    return tuple(At(construct.dim(d)) for d in source), value


__all__ = ["Views", "composed", "moved", "root_of", "view_of"]
