"""How values grow when one that they are computed with grows by c: the laws of sums, products, exp and log.

x - top      by -1 * c                          np.exp(x - top)            by the factor exp(-1 * c)
top + log(s) by c + (-1 * c), so not at all     e / np.sum(e)              by exp(-c) / exp(-c), so not at all

np.where(a, top, 0) grows where a holds: by another c, which is 0 elsewhere. Where the same is asked twice, as in
np.where(s > 0, e / np.where(s > 0, s, 1), 0), the inner answer is that of the outer one.

So do segments, each edge e with the c of its node: x[e] - top[dst[e]] grows by -1 * c[dst[e]], and what is added up at
total[dst[e]] is of one node again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import isinf
from typing import Literal

from ..transpile import construct
from ..transpile.dims import Dim
from ..transpile.node import remembered
from ..transpile.operations import ROWS, letters
from ..transpile.program import (
    At,
    Call,
    Const,
    Expr,
    Gather,
    Index,
    Item,
    Name,
    NewAxis,
    Slice,
    Store,
    map_children,
    names,
)
from ..transpile.typing import normal_axes
from .rules import differentiable
from .stores import is_whole


@dataclass(frozen=True)
class Looked:
    """An axis of c, at the places that an array says. `extent`: of the axis it looks in, `length`: of the array."""

    axis: int
    extent: Dim
    array: str
    length: Dim


@dataclass(frozen=True)
class Place:
    """One place along an axis of c: `at`, or what an array has there."""

    axis: int
    extent: Dim
    at: str
    array: str = ""
    length: Dim | None = None


Axes = tuple[int | Looked | None, ...]


@dataclass(frozen=True)
class Growth:
    """By `times * c`, or by the factor `exp(times * c)`. `times`: None where any will do, as of 0 with a factor and of
    an infinity with both. `axes`: for each axis of the value, along which axis of c it varies. `fixed`: at which place
    of its other axes, where c varies along them. `where`: the choices by which c is 0 in some of its places."""

    kind: Literal["sum", "factor", "unknown"]
    times: float | None
    axes: Axes
    fixed: frozenset[Place] = frozenset()
    where: tuple[Expr, ...] = ()

    def at(self, rank: int) -> Axes:
        """The axes of the value as one of more axes."""
        return (None,) * (rank - len(self.axes)) + self.axes

    @property
    def everywhere(self) -> bool:
        """Whether all elements grow alike, at all places."""
        return all(axis is None for axis in self.axes) and not self.fixed

    def without(self, name: str) -> Growth:
        """Once a name that says places has changed: nothing is known of what grew at them."""
        said = {a.array for a in self.axes if isinstance(a, Looked)}
        said |= {part for place in self.fixed for part in (place.at, place.array)}
        return Growth("unknown", 1, self.axes) if name in said else self


class Lost(Exception):
    """A value grows in some other way."""


_Given = Sequence[Growth | None]
_Law = tuple[Literal["sum", "factor", "unknown"], float | None]  # how a value grows, but for its axes


def growth(expr: Expr, known: Mapping[str, Growth]) -> Growth | None:
    """How a value grows. None: it does not. Lost where that cannot be said."""
    if (kind := _any(expr)) is not None:
        return Growth(kind, None, (None,) * expr.type.rank)
    if not expr.type.is_float or not _read(expr) & known.keys():
        return None
    match expr:
        case Name(id=id):
            return _known(known.get(id))
        case Index(base=base, items=items):
            if (found := growth(base, known)) is None:
                return None
            if found.everywhere:
                return replace(found, axes=(None,) * expr.type.rank)
            return _picked(found, items, base.type.shape)
        case Call(op="where", args=(cond, then, orelse)):
            ways = (growth(_answered(then, cond, 1), known), growth(_answered(orelse, cond, 2), known))
            return _chosen(expr, cond, ways)
        case Call(args=args):
            wanted = differentiable(expr)
            if not any(w and _read(a) & known.keys() for a, w in zip(args, wanted, strict=True)):
                return None
            given = [growth(a, known) if w or _any(a) else None for a, w in zip(args, wanted, strict=True)]
            return _call(expr, given)
    return None


@remembered
def _read(expr: Expr) -> frozenset[str]:
    return frozenset(names(expr))


def stays(found: Growth | None) -> None:
    """Lost, if a value grows."""
    if found is not None and found.times is not None:
        raise Lost


def stored(before: Growth | None, value: Growth | None, store: Store) -> Growth | None:
    """How an array grows of which some elements were written, or changed in place."""
    op = store.op
    _known(before)
    if op in ("add", "subtract") and value is None and (before is None or before.kind == "sum" or before.times is None):
        return before if before is not None and before.kind == "sum" else None
    law = _alike([before, value])
    if law is None:
        return None
    if op is not None and (law[0] == "sum" or op not in ("add", "subtract")):
        raise Lost
    assert before is not None  # else nothing would grow
    assert value is not None
    if value.times is None:
        if not (before.everywhere or before.times is not None):
            raise Lost
        return Growth(*law, before.axes, where=before.where)
    axes = _placed(value, store.items, store.base.type.shape)
    if before.times is not None and (before.axes, before.where) != (axes, value.where):
        raise Lost
    return Growth(*law, axes, where=value.where)


def _known(found: Growth | None) -> Growth | None:
    if found is not None and found.kind == "unknown":
        raise Lost
    return found


def _placed(value: Growth, items: Sequence[Item], shape: Sequence[Dim]) -> Axes:
    """The axes of an array whose elements at `items` grow as the value does."""
    if value.everywhere:
        return (None,) * len(shape)
    rank = sum(not isinstance(item, At) for item in items)
    left, fixed, found = list(value.at(rank)), set(value.fixed), list[int | Looked | None]()
    for item, extent in zip(items, shape, strict=len(items) == len(shape)):
        match item:
            case At(index=index):
                taken, axis = _taken(fixed, _said(index), extent)
                fixed -= taken
                found.append(axis)
            case Gather(index=Name(id=id)) if len(items) == rank and left[0] is not None:
                match left.pop(0):
                    case Looked(axis=axis, extent=e, array=array) if array == id and e == extent:
                        found.append(axis)
                    case _:
                        raise Lost
            case Slice() | Gather() if left[0] is None or is_whole((item,)):
                found.append(left.pop(0))
            case _:
                raise Lost
    if fixed or left:
        raise Lost
    return tuple(found)


def _taken(fixed: Set[Place], said: tuple[str, str] | None, extent: Dim) -> tuple[set[Place], int | Looked | None]:
    """Which place of c a place along an axis is, and how that axis then varies. Of axes of one length: a place may be
    counted from the end."""
    for place in fixed:
        if said == (place.at, place.array) and place.extent == extent:
            return {place}, place.axis
        if said == (place.at, "") and place.length == extent:
            return {place}, Looked(place.axis, place.extent, place.array, extent)
    return set(), None


def _said(index: Expr) -> tuple[str, str] | None:
    match index:
        case Name(id=id):
            return id, ""
        case Const(value=int() as value):
            return str(value), ""
        case Index(base=Name(id=array), items=(At(index=Name(id=id)),)):
            return id, array
    return None


def _any(expr: Expr) -> Literal["sum", "factor"] | None:
    """Of what is 0, or infinite: in which way it grows, as one likes."""
    match expr:
        case Const(value=bool()):
            return None
        case Const(value=int() | float() as value):
            return "factor" if value == 0 else "sum" if isinf(value) else None
        case Call(op="negative", args=[Const(value=float() as value)]) if isinf(value):
            return "sum"
        case Call(op="zeros" | "zeros_like" | "empty" | "empty_like"):
            return "factor"  # of what nothing was written into, nothing is known anyway
    return None


def _picked(value: Growth, items: Sequence[Item], shape: Sequence[Dim]) -> Growth:
    left, found, fixed = list(zip(value.axes, shape, strict=True)), list[int | Looked | None](), set(value.fixed)
    alone = sum(isinstance(item, (At, Gather)) for item in items) == 1
    for item in items:
        if isinstance(item, NewAxis):
            found.append(None)
            continue
        along, extent = left.pop(0)
        match along, item:
            case None, At():
                pass
            case None, Slice():
                found.append(None)
            case _, Slice() if is_whole((item,)):
                found.append(along)
            case int() as axis, At(index=Name(id=id)):
                fixed.add(Place(axis, extent, id))
            case int() as axis, At(index=Const(value=int() as at)):
                fixed.add(Place(axis, extent, str(at)))
            case int() as axis, At(index=Index(base=Name(id=array, type=type), items=(At(index=Name(id=id)),))):
                fixed.add(Place(axis, extent, id, array, type.shape[0]))
            case Looked() as looked, At(index=Name(id=id)):
                fixed.add(Place(looked.axis, looked.extent, id, looked.array, looked.length))
            case int() as axis, Gather(index=Name(id=id, type=type)) if type.rank == 1 and alone:
                found.append(Looked(axis, extent, id, type.shape[0]))
            case _:
                raise Lost
    return replace(value, axes=tuple(found), fixed=frozenset(fixed))


def _call(expr: Call, given: _Given) -> Growth | None:
    rank, grown = expr.type.rank, [g for g in given if g is not None]
    if not grown:
        return None
    if (rule := _RULES.get(expr.op)) is not None:
        law, common = rule(expr, given), _common(grown, rank)  # what cancels must vary in the same places, too
        return None if law is None or law[1] == 0 else replace(common, kind=law[0], times=law[1])
    row = ROWS[expr.op]
    if row.kind == "reduce" or row.name == "mean":
        return _reduced(expr, grown[0])
    if row.kind == "product":
        specs, out = letters(expr)
        return _product(specs, out, given)
    if row.kind == "move" and len(grown) == len(given) == 1 and grown[0].everywhere:
        return replace(grown[0], axes=(None,) * rank)
    raise Lost


def _common(grown: Sequence[Growth], rank: int) -> Growth:
    """Where all of them grow, by whatever: at the same places, and by the same choices."""
    places = {(g.at(rank), g.fixed, g.where) for g in grown if g.times is not None}
    if len(places) > 1:
        raise Lost
    return Growth("sum", None, *places.pop()) if places else Growth("sum", None, (None,) * rank)


def _chosen(expr: Call, cond: Expr, ways: tuple[Growth | None, Growth | None]) -> Growth | None:
    """How a choice grows: as both ways do, or only where the one that grows is chosen."""
    rank, grown = expr.type.rank, [g for g in ways if g is not None and g.times is not None]
    if len(grown) != 1 or any(g is not None and g.kind == grown[0].kind for g in ways if g is not grown[0]):
        law, common = _alike(ways), _common([g for g in ways if g is not None], rank)
        return None if law is None or law[1] == 0 else replace(common, kind=law[0], times=law[1])
    (found,) = grown
    axes, own = found.at(rank), (1,) * (rank - cond.type.rank) + tuple(d.value for d in cond.type.shape)
    if any(own[k] != 1 and not isinstance(axis, int) for k, axis in enumerate(axes)):
        raise Lost  # another choice for elements that c is the same for
    asked = cond if found is ways[0] else construct.call("logical_not", cond)
    return replace(found, axes=axes, where=(*found.where, asked))


def _answered(expr: Expr, cond: Expr, way: int) -> Expr:
    """An expression where the condition is known: to hold (1), or not to (2)."""
    match expr:
        case Call(op="where", args=(asked, *_)) if asked == cond and expr.args[way].type == expr.type:
            return _answered(expr.args[way], cond, way)
    return map_children(expr, lambda e: _answered(e, cond, way))


def _reduced(expr: Call, found: Growth) -> Growth:
    axes = normal_axes(expr.get("axis"), len(found.axes))
    alike = expr.op in ("max", "min", "mean") or (expr.op == "sum" and found.kind == "factor")
    if not alike or any(found.axes[a] is not None for a in axes):
        raise Lost
    kept = expr.get("keepdims")
    left = [None if k in axes else a for k, a in enumerate(found.axes) if kept or k not in axes]
    return replace(found, axes=tuple(left))


def _product(specs: Sequence[str], out: str, given: _Given) -> Growth | None:
    """Of one factor: the sums are over axes along which it is one."""
    left = [(spec, g) for spec, g in zip(specs, given, strict=True) if g is not None]
    if len(left) > 1 or left[0][1].kind == "sum":
        raise Lost
    ((spec, found),) = left
    axis_of = {letter: axis for letter, axis in zip(spec, found.axes, strict=True) if axis is not None}
    if not axis_of.keys() <= set(out) or any(spec.count(letter) > 1 for letter in axis_of):
        raise Lost  # summed up along an axis of c, or along two at once
    return replace(found, axes=tuple(axis_of.get(letter) for letter in out))


# -- the laws ------------------------------------------------------------------------------------------------------
def _as_sum(found: Growth | None) -> float | None:
    if found is None or (found.kind, found.times) == ("factor", None):
        return 0
    if found.kind == "factor":
        raise Lost
    return found.times


def _as_factor(found: Growth | None) -> float | None:
    if found is None:
        return 0
    if found.kind == "sum" and found.times is not None:
        raise Lost
    return found.times


def _alike(given: _Given) -> _Law | None:
    """Of a choice between two, or the larger of them: both must grow alike."""
    strict = {None if g is None else (g.kind, g.times) for g in given if g is None or g.times is not None}
    if not strict:  # what is infinite grows in both ways, what is 0 by a factor
        return ("factor" if any(g is not None and g.kind == "factor" for g in given) else "sum"), None
    if len(strict) != 1:
        raise Lost
    law = strict.pop()
    if law is not None and law[0] == "sum" and any(g is not None and g.kind == "factor" for g in given):
        raise Lost
    return law


def _added(sign: int) -> Callable[[Call, _Given], _Law | None]:
    def rule(expr: Call, given: _Given) -> _Law | None:
        if any(g is not None and g.kind == "factor" and g.times is not None for g in given):
            return _alike(given)
        a, b = (_as_sum(g) for g in given)
        return "sum", None if a is None or b is None else a + sign * b

    return rule


def _multiplied(expr: Call, given: _Given) -> _Law:
    a, b = given
    grown, by = (a, expr.args[1]) if b is None else (b, expr.args[0])
    if grown is not None and grown.kind == "sum" and None in (a, b):
        return _scaled(by, grown, 1)
    times = [_as_factor(g) for g in given]
    return "factor", None if None in times else times[0] + times[1]  # type: ignore[operator]


def _divided(expr: Call, given: _Given) -> _Law:
    a, b = given
    if a is not None and a.kind == "sum" and b is None:
        return _scaled(expr.args[1], a, -1)
    times = [_as_factor(g) for g in given]
    return "factor", None if None in times else times[0] - times[1]  # type: ignore[operator]


def _scaled(by: Expr, found: Growth | None, power: int) -> _Law:
    """A number times what grows by a sum, or by the inverse of the number."""
    times = _as_sum(found)
    if times is None:  # an infinity
        return "sum", None
    if not (isinstance(by, Const) and isinstance(by.value, (int, float)) and by.value):
        raise Lost
    return "sum", by.value**power * times


def _power(by: float) -> Callable[[Call, _Given], _Law]:
    def rule(expr: Call, given: _Given) -> _Law:
        times = _as_factor(given[0])
        return "factor", None if times is None else by * times

    return rule


def _itself(sign: int) -> Callable[[Call, _Given], _Law]:
    def rule(expr: Call, given: _Given) -> _Law:
        (found,) = given
        assert found is not None
        return found.kind, sign * found.times if found.kind == "sum" and found.times is not None else found.times

    return rule


_RULES: dict[str, Callable[[Call, _Given], _Law | None]] = {
    "add": _added(1),
    "subtract": _added(-1),
    "multiply": _multiplied,
    "divide": _divided,
    "negative": _itself(-1),
    "copy": _itself(1),
    "cast": _itself(1),
    "maximum": lambda expr, given: _alike(given),
    "minimum": lambda expr, given: _alike(given),
    "exp": lambda expr, given: ("factor", _as_sum(given[0])),
    "log": lambda expr, given: ("sum", _as_factor(given[0])),
    "square": _power(2),
    "sqrt": _power(0.5),
    "reciprocal": _power(-1),
}
