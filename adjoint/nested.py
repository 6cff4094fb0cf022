"""A part of what a subscript or a transpose shows, as a part of the array itself.

    d_part = np.zeros((T - 1, K))
    d_part[i] += d_v                ->    d_x[i + 1] += d_v        of x[1:][i]
    d_x[1:] += d_part

Otherwise each step of `for xt in x[1:]` fills and adds an array of all steps, and a gradient takes as long as their
square. An index that may be negative is counted from the start; that it is one, the forward has checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..transpile import construct
from ..transpile.construct import const, value_of
from ..transpile.dims import Dim, Facts, nonnegative
from ..transpile.program import Assign, At, Call, Expr, Index, Item, Name, NewAxis, Slice, Span, Stmt, Type
from ..transpile.views import composed, moved


@dataclass(frozen=True)
class Nested:
    """At one statement that is reversed."""

    facts: Facts
    new: Callable[[str, Type], Name]
    emit: Callable[[Stmt], None]
    span: Span

    def inner(self, part: Index, cotangent: Expr) -> tuple[Index, Expr] | None:
        """A part of what its base shows as one of that array, and its cotangent with that one's axes; None where there
        is no such part."""
        if not all(map(_is_plain, part.items)) or not any(isinstance(i, At) for i in part.items):
            return None
        match part.base:
            case Call(args=args) as view:
                there = moved(view, part.items, cotangent)
                inner = construct.index(args[0], there[0]) if there else None
                return (inner, there[1]) if there and isinstance(inner, Index) else None
            case Index(base=array, items=outer) as view if all(map(_is_plain, outer)):
                if composed(view, part.items) is None:
                    return None
                joined = composed(view, self._counted(view, part.items))
                inner = construct.index(array, joined) if joined else None
                return (inner, cotangent) if isinstance(inner, Index) else None
        return None

    def _counted(self, view: Index, items: tuple[Item, ...]) -> tuple[Item, ...]:
        extents = construct.item_extents(view, items)
        return tuple(
            At(self._from_start(item.index, extent)) if isinstance(item, At) else item
            for item, extent in zip(items, extents, strict=True)
        )

    def _from_start(self, index: Expr, extent: Dim) -> Expr:
        """An index of an axis, counted from its start."""
        place = value_of(index)
        if place is not None and (place.value is not None or nonnegative(place, self.facts)):
            return index
        at = self.new("at", Type("int"))
        back = construct.call("less", index, const(0))
        counted = construct.call("where", back, construct.call("add", index, construct.dim(extent)), index)
        self.emit(Assign(at.id, counted, self.span))
        return at


def _is_plain(item: Item) -> bool:
    return isinstance(item, (At, NewAxis)) or (isinstance(item, Slice) and isinstance(item.step, int))


__all__ = ["Nested"]
