"""Makes typed expressions: applies the type rule of an operation's row, computes symbolic integer values.

The checker, the adjoint and the lowering all build expressions here, so an ill-typed one cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .dims import (
    ONE,
    ZERO,
    Atom,
    Dim,
    Facts,
    exact_quotient,
    maximum,
    minimum,
    nonnegative,
    nonnegative_beside,
    product,
    unclamped,
)
from .operations import ROWS
from .program import NOWHERE, At, Call, Const, Expr, Gather, Index, Item, Mask, Name, NewAxis, Slice, Span, Type
from .typing import TypingError, shape_text


def const(value: bool | int | float) -> Const:
    dtype = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
    return Const(value, Type(dtype, pythons=True))


def dim(value: Dim) -> Expr:
    """A symbolic integer as an expression."""
    if value.value is not None:
        return const(value.value)
    return Call("dim", (), (("dim", value),), Type("int", pythons=True), value)


def value_of(expr: Expr) -> Dim | None:
    """The symbolic value of an integer expression, if it has one."""
    if isinstance(expr, Const):
        return Dim.of(expr.value) if isinstance(expr.value, int) and not isinstance(expr.value, bool) else None
    return expr.value


def call(op: str, *args: Expr, span: Span = NOWHERE, **static: Any) -> Expr:
    row = ROWS[op]
    for argument in row.signature:
        if argument.kind not in ("array", "arrays"):
            static.setdefault(argument.name, argument.default)
    type = row.type([a.type for a in args], static)
    return Call(op, args, tuple(sorted(static.items())), type, _value(op, args, static, type), span)


def _value(op: str, args: Sequence[Expr], static: dict[str, Any], type: Type) -> Dim | None:
    if not type.is_integer or type.rank:
        return None
    if op == "extent":
        return args[0].type.shape[static["axis"]]
    if op == "size":
        return product(args[0].type.shape)
    if op == "where":
        return farther(*args)
    values = [value_of(a) for a in args]
    if not values or any(v is None for v in values):
        return None
    match op, values:
        case "add", [Dim() as a, Dim() as b]:
            return a + b
        case "subtract", [Dim() as a, Dim() as b]:
            return a - b
        case "multiply", [Dim() as a, Dim() as b]:
            return a * b
        case "negative", [Dim() as a]:
            return -a
        case "positive" | "cast", [Dim() as a]:
            return a
        case "floor_divide", [Dim() as a, Dim() as b] if b.value != 0:
            return a // b
        case "mod", [Dim() as a, Dim() as b] if b.value != 0:
            return a % b
        case "power", [Dim() as a, Dim() as b] if b.value is not None and 0 <= b.value <= 8:
            return product([a] * b.value)
        case "left_shift", [Dim() as a, Dim() as b] if b.value is not None and 0 <= b.value < 63:
            return a * 2**b.value
        case "right_shift", [Dim() as a, Dim() as b] if b.value is not None and 0 <= b.value < 63:
            return a // 2**b.value
        case "maximum", [Dim() as a, Dim() as b]:
            return maximum(a, b)
        case "minimum", [Dim() as a, Dim() as b]:
            return minimum(a, b)
        case "clip", [Dim() as a, Dim() as low, Dim() as high]:
            return minimum(maximum(a, low), high)
    return None


_NEAR = {"less": (1, 1), "less_equal": (1, 0), "greater": (-1, 1), "greater_equal": (-1, 0)}


def farther(cond: Expr, a: Expr, b: Expr) -> Dim | None:
    """The larger or the smaller of two integers, where that is what a condition chooses: `if k < 0: k = 0`, and
    `if k >= n: k = n - 1`."""
    match cond:
        case Call(op=op, args=[left, right]) if op in _NEAR:
            p, q, u, v = (value_of(x) for x in (a, b, left, right))
            if p is None or q is None or u is None or v is None:
                return None
            sign, least = _NEAR[op]
            holds = (v - u) * sign - least  # where it is not negative
            if holds in (p - q, p - q - 1):
                return maximum(p, q)
            if holds in (q - p, q - p - 1):
                return minimum(p, q)
    return None


# -- indexing --------------------------------------------------------------------------------------------------
@dataclass
class Proofs:
    """What is known at a slice: facts, and what a check at the call makes sure of. `guard(dim, message)` emits such a
    check: dim >= 0."""

    facts: Facts
    guard: Callable[[Dim, str], None]
    held: list[Dim] = field(default_factory=list)  # not negative

    def proven(self, dim: Dim) -> bool:
        if nonnegative(dim, self.facts) or any(nonnegative(dim - h, self.facts) for h in self.held):
            return True
        return isinstance(least := dim.symbol, Atom) and least.kind == "min" and all(map(self.proven, least.args))

    def check(self, dim: Dim, message: str) -> None:
        self.guard(dim, message)
        self.held.append(dim)

    def presumed(self, dim: Dim, what: str) -> bool:
        """Proven, or so once configuration is not negative: nobody means a stride or a width below zero."""
        if self.proven(dim):
            return True
        unknown = {s for s in dim.symbols() if s in self.facts and is_unknown(self.facts[s][0])}
        facts = {s: f for s, f in self.facts.items() if s not in unknown}
        if not unknown or not any(nonnegative(dim - h, facts) for h in (ZERO, *self.held)):
            return False
        for name in sorted(unknown):
            self.check(Dim.of(name), f"the slice {what} needs {name} >= 0")
        self.facts = facts
        return True

    def bound(self, given: Expr | None, extent: Dim, default: Dim, step: int) -> Dim:
        """A slice bound counted from the front."""
        if given is None:
            return default
        value = value_of(given)
        if value is None:
            raise TypingError(
                "shape",
                "the bound of a slice depends on values, and the shape of the result with it",
                "for a known length, x[k + np.arange(n)]; else mask: np.where(np.arange(n) < k, x, 0)",
            )
        if self.proven(-value - 1):
            return value + extent
        # x[:n - 1] is x[:-1], also where n is 0; further from the end, too few elements would count from the end again.
        before = (extent - value).value
        if self.proven(value) or before == 1 or (before == 2 and step > 0):
            return value
        config = {s: f for s, f in self.facts.items() if is_unknown(f[0])}
        if nonnegative(-value - 1, {**self.facts, **{s: (ONE, high) for s, (_, high) in config.items()}}):
            self.check(-value - 1, f"the slice bound {value} is not negative: it would count from the front")
            return value + extent
        self.check(value, f"the slice bound {value} is negative")
        return value


def any_config(name: str) -> tuple[Dim, Dim]:
    """The range of a configuration integer: it may be negative, as far as proofs go."""
    unknown = Dim.of(Atom("config", (name,)))
    return unknown, unknown


def is_unknown(bound: Dim) -> bool:
    """Of a configuration integer, or of a counter whose range only running the program tells."""
    return isinstance(bound.symbol, Atom) and bound.symbol.kind in ("config", "unknown")


def slice_of(start: Expr | None, stop: Expr | None, by: Expr, extent: Dim, known: Proofs) -> Slice:
    """start:stop:by on an axis, with Python's clamping. A step that is no number is positive."""
    stride = value_of(by)
    assert stride is not None
    step = 1 if stride.value is None else stride.value
    if step == 0:
        raise TypingError("index", "a slice step cannot be zero")
    positive = {s: f for s, f in known.facts.items() if s not in stride.symbols() or not is_unknown(f[0])}
    stride = stride if step > 0 else -stride
    wider = [h * stride for h in known.held] if stride != ONE else []
    known = Proofs(positive, known.guard, [extent, *known.held, *wider])  # an array has no negative extent
    whole = None
    if step > 0:  # a start beyond the end, or an end before the start, makes an empty slice: no need to clamp those
        first = begin = known.bound(start, extent, ZERO, step)
        end = known.bound(stop, extent, extent, step)
        first = first if known.proven(first) else maximum(first, ZERO, known.facts)
        whole = exact_quotient(end - first, stride) if stride != ONE else None
        inside = nonnegative_beside(extent, extent - end, known.facts) or known.presumed(extent - end, f":{end}")
        end = end if inside else minimum(end, unclamped(extent), known.facts)  # below 0 it is as empty
        span = end - first
        behind = extent - begin
        if end == extent and first != begin and known.proven(behind):
            span = minimum(behind, extent, known.facts)  # x[-3:] has min(3, n) elements
    else:
        last = extent - 1
        first = known.bound(start, extent, last, step)
        end = known.bound(stop, extent, Dim.of(-1), step)
        first = first if known.presumed(last - first, f"{first}:") else minimum(first, last, known.facts)
        end = end if known.proven(end + 1) else maximum(end, Dim.of(-1), known.facts)
        span = first - end
    count = (span + stride - 1) // stride
    if whole is not None and known.proven(extent - 1 - first - stride * (whole - 1)):
        count = whole  # x[i : i + s*n : s], of which the last is there, has n, however far its end is behind
    if not known.proven(count) and not known.proven(span):
        count = maximum(count, ZERO, known.facts)
    return Slice(start, stop, step if stride.value else stride, first, count, None if stride.value else by)


def full_slice(extent: Dim) -> Slice:
    return Slice(None, None, 1, ZERO, extent)


def is_full(item: Item, extent: Dim) -> bool:
    return isinstance(item, Slice) and item.step == 1 and item.first == ZERO and item.extent == extent


def index(base: Expr, items: Sequence[Item], span: Span = NOWHERE) -> Expr:
    """base[items]; items may leave out the last axes. x[i][j] is x[i, j]."""
    items = complete(base, items)
    if isinstance(base, Index) and (joined := _joined(base, items)) is not None:
        return index(base.base, joined, span)
    shape: list[Dim] = []
    gathered = [i for i in items if isinstance(i, Gather)]
    placed = False
    axis = 0
    for item in items:
        match item:
            case NewAxis():
                shape.append(ONE)
                continue
            case Slice(extent=extent):
                shape.append(extent)
            case Gather():
                if not placed:
                    from .typing import broadcast

                    shape.extend(broadcast([g.index.type.shape for g in gathered]))
                    placed = True
            case Mask():
                raise TypingError(
                    "shape",
                    "x[mask] has a result whose shape depends on values",
                    "use np.where(mask, x, 0), or x[mask] = v to store",
                )
        axis += 1
    return Index(base, tuple(items), replace(base.type, shape=tuple(shape)), None, span)


def _joined(part: Index, items: Sequence[Item]) -> list[Item] | None:
    """part.base[part.items][items] as one subscript, where the first picks places and leaves the other axes whole."""
    extents = item_extents(part.base, part.items)
    plain = all(isinstance(i, At) or is_full(i, extent) for i, extent in zip(part.items, extents, strict=True))
    if not plain or not any(isinstance(i, At) for i in part.items) or any(isinstance(i, Gather | Mask) for i in items):
        return None
    rest = list(items)
    joined: list[Item] = []
    for item in part.items:
        if isinstance(item, At):
            joined.append(item)
            continue
        while isinstance(rest[0], NewAxis):
            joined.append(rest.pop(0))
        joined.append(rest.pop(0))
    return [*joined, *rest]


def complete(base: Expr, items: Sequence[Item]) -> tuple[Item, ...]:
    """The items with full slices for the axes left out; a mask takes as many axes as it has."""
    taken = sum(i.condition.type.rank if isinstance(i, Mask) else 0 if isinstance(i, NewAxis) else 1 for i in items)
    if taken > base.type.rank:
        raise TypingError("index", f"too many indices: {taken} for an array of shape {shape_text(base.type.shape)}")
    return (*items, *(full_slice(d) for d in base.type.shape[taken:]))


def item_extents(base: Expr, items: Sequence[Item]) -> list[Dim]:
    """The extent of base that each item indexes (ONE for NewAxis)."""
    extents, axis = [], 0
    for item in items:
        if isinstance(item, NewAxis):
            extents.append(ONE)
        else:
            extents.append(base.type.shape[axis])
            axis += item.condition.type.rank if isinstance(item, Mask) else 1
    return extents


def cast(expr: Expr, dtype: str) -> Expr:
    return expr if expr.type.dtype == dtype else call("cast", expr, dtype=dtype)


def pythons(expr: Expr, own: bool | None = True) -> Expr:
    """expr, known to be a number or truth value of Python's own, or of NumPy's, or of either."""
    return expr if expr.type.pythons is own else replace(expr, type=replace(expr.type, pythons=own))


def either(a: Type, b: Type) -> bool | None:
    """Whether one of two is Python's own."""
    return a.pythons if a.pythons is b.pythons else None


def owner(args: Sequence[Expr]) -> bool | None:
    """Whether what Python computes of these is Python's own (`Type.pythons`)."""
    owners = {a.type.pythons for a in args}
    return False if False in owners else None if None in owners else True


def convert(expr: Expr, type: Type) -> Expr:
    """expr as a value of exactly this type; it must broadcast to it."""
    if expr.type.dtype != type.dtype:
        if isinstance(expr, Const) and type.dtype not in ("bool", "int", "float"):
            expr = replace(expr, type=Type(expr.type.dtype))
        expr = cast(expr, type.dtype)
    if expr.type.shape != type.shape:
        expr = call("broadcast_to", expr, shape=type.shape)
    return expr


def name(id: str, type: Type, value: Dim | None = None, span: Span = NOWHERE) -> Name:
    return Name(id, type, value, span)


def at(value: Expr) -> At:
    return At(value)


def trips(start: Expr, stop: Expr, step: int) -> Dim | None:
    """How often range(start, stop, step) gives a number, if it gives any; None where the bounds depend on values."""
    first, last = value_of(start), value_of(stop)
    if first is None or last is None:
        return None
    span = last - first if step > 0 else first - last
    return (span + (abs(step) - 1)) // abs(step)


def known_truth(expr: Expr) -> bool | None:
    """The truth of a condition known at build time."""
    return bool(expr.value) if isinstance(expr, Const) else None


def number_of(expr: Expr) -> int | None:
    """The integer that an expression is known to be."""
    value = value_of(expr)
    return None if value is None else value.value


def zeros(type: Type) -> Expr:
    """Zeros of a type."""
    if type.rank:
        return call("zeros", shape=type.shape, dtype={"float": "real", "int": "i64"}.get(type.dtype, type.dtype))
    return Const(False if type.dtype == "bool" else 0.0 if type.is_float else 0, type)
