"""The places of an array that a statement reads or writes, in any iteration: as linear inequalities.

A loop counter is one variable for the write and another for the read: ("write", "i") and ("read", "i").
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..transpile.construct import value_of
from ..transpile.dims import Atom, Dim
from ..transpile.program import NOWHERE, At, Call, Expr, For, Item, Mask, NewAxis, Slice, Span, While
from .linear import Form, contradictory

Guards = tuple[tuple[Expr, bool], ...]  # conditions around, and whether they hold
Range = tuple[Form | None, Form | None]  # the first and the last place on an axis, where they are linear


@dataclass(frozen=True)
class Access:
    items: tuple[Item, ...] | None  # None: the whole array
    shape: tuple[Dim, ...]  # of the array
    loops: tuple[For | While, ...]  # outermost first
    guards: Guards
    position: int  # in the order of the text
    plain: bool = True  # a write that overwrites (not +=)
    span: Span = NOWHERE


@dataclass(frozen=True)
class Case:
    """One reading of a subscript, an index from the start or a negative one from the end, and of the conditions around:
    i != j is i < j or i > j."""

    axes: tuple[Range, ...]
    forms: tuple[Form, ...]  # that must be >= 0


def cases(access: Access, side: str) -> list[Case]:
    counters = {loop.var for loop in access.loops if isinstance(loop, For)}

    def form(dim: Dim | None) -> Form | None:
        return linear(dim, side, counters) if dim is not None else None

    ranges = bounds(access.loops)
    held = [
        tuple(f for dim in (*ranges, *some) for part in _each(dim) if (f := form(part)) is not None)
        for some in _held(access.guards)
    ]
    found = [Case((), around) for around in held if not contradictory(around)]
    items = access.items or ()
    if any(isinstance(i, Mask) for i in items):
        return found
    for item, extent in zip(of_axes(items), access.shape, strict=False):
        options = [((form(first), form(last)), form(condition)) for first, last, condition in _meanings(item, extent)]
        found = [
            Case((*c.axes, axis), (*c.forms, *([] if extra is None else [extra])))
            for c in found
            for axis, extra in options
            if extra is None or not contradictory([*c.forms, extra])
        ]
    return found


def _meanings(item: Item, extent: Dim) -> list[tuple[Dim | None, Dim | None, Dim | None]]:
    """What an item may mean: the first and last place, and what is >= 0 then."""
    match item:
        case At(index):
            place = value_of(index)
            if place is None:
                return [(None, None, None)]
            end = place + extent
            if place.value is not None:
                return [(place, place, None) if place.value >= 0 else (end, end, None)]
            return [(place, place, place), (end, end, -place - 1)]
        case Slice(step=1, first=first, extent=count):  # an empty part reads and writes nothing
            return [(first, first + count - 1, count - 1)]
    return [(None, None, None)]


def bounds(loops: Sequence[For | While]) -> list[Dim]:
    """What is >= 0 of the counters."""
    found = []
    for loop in loops:
        if isinstance(loop, For):
            start, stop, var = value_of(loop.start), value_of(loop.stop), Dim.of(loop.var)
            up = loop.step > 0
            found += [var - start if up else start - var] if start is not None else []
            found += [stop - var - 1 if up else var - stop - 1] if stop is not None else []
    return found


_DIFFERENCES = {"less": (-1, 1), "less_equal": (0, 1), "greater": (-1, -1), "greater_equal": (0, -1)}
_OPPOSITE = {"less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less"}


_MOST = 8  # readings of conditions: beyond, they are taken to say nothing


def _each(dim: Dim) -> list[Dim]:
    """What is >= 0 where this is: both, of the lesser of two."""
    for monomial, c in dim.terms:
        match monomial:
            case (Atom("min" | "max" as kind, (p, q)),) if (c > 0) == (kind == "min"):
                rest = dim - Dim(((monomial, c),))
                return [part for one in (p, q) for part in _each(one * c + rest)]
    return [dim]


def _held(guards: Guards) -> list[list[Dim]]:
    """What is >= 0 by the conditions around, comparisons of integers: one of these lists, all of it."""
    found: list[list[Dim]] = [[]]
    for condition, holds in guards:
        both = [[*some, *more] for some in found for more in _alternatives(condition, holds)]
        found = both if len(both) <= _MOST else found
    return found


def _alternatives(condition: Expr, holds: bool) -> list[list[Dim]]:
    match condition:
        case Call(op="logical_and" | "logical_or" as op, args=(a, b)):
            if holds == (op == "logical_and"):
                return _held(((a, holds), (b, holds)))
            return [*_alternatives(a, holds), *_alternatives(b, holds)]
        case Call(op="logical_not", args=(a,)):
            return _alternatives(a, not holds)
        case Call(op=op, args=(a, b)) if a.type.is_integer and b.type.is_integer:
            x, y = value_of(a), value_of(b)
            if x is not None and y is not None:
                return _compared(op, y - x, holds)
    return [[]]


def _compared(op: str, more: Dim, holds: bool) -> list[list[Dim]]:
    """`more`: by how much the second is larger."""
    if op in _DIFFERENCES:
        constant, sign = _DIFFERENCES[op if holds else _OPPOSITE[op]]
        return [[more * sign + constant]]
    if op in ("equal", "not_equal"):
        return [[more, -more]] if holds == (op == "equal") else [[more - 1], [-more - 1]]
    return [[]]


def later(loop: For | While, this: str, other: str) -> list[Form]:
    """That `this` is in a later iteration than `other`. A `while` counts nothing."""
    if isinstance(loop, While):
        return []
    one = Fraction(1 if loop.step > 0 else -1)
    return [{(this, loop.var): one, (other, loop.var): -one, None: Fraction(-1)}]


def alike(loop: For | While, this: str, other: str) -> list[Form]:
    """That both are in one iteration."""
    if isinstance(loop, While):
        return []
    one, a, b = Fraction(1), (this, loop.var), (other, loop.var)
    return [{a: one, b: -one}, {a: -one, b: one}]


def linear(dim: Dim, side: str, counters: set[str]) -> Form | None:
    """The dimension as a linear form; None if a counter is in more than a sum."""
    form: Form = {}
    for monomial, c in dim.terms:
        variable: Hashable = monomial or None
        if len(monomial) == 1 and monomial[0] in counters:
            variable = (side, monomial[0])
        elif Dim(((monomial, c),)).symbols() & counters:
            return None
        form[variable] = form.get(variable, Fraction(0)) + c
    return form


def of_axes(items: Sequence[Item]) -> list[Item]:
    """The item of each axis of the array: `y[i, None]` has one."""
    return [item for item in items if not isinstance(item, NewAxis)]


__all__ = ["Access", "Case", "Guards", "alike", "bounds", "cases", "later", "linear", "of_axes"]
