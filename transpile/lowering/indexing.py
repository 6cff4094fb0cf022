"""Indices: proven to be in range, or checked before they are used; counted from the end where negative."""

from __future__ import annotations

from .. import construct, ir
from ..construct import value_of
from ..dims import Atom, Dim, Facts, nonnegative, product
from ..program import At, Call, Expr, Gather, Index, Item, Name, Slice, Type, walk
from .context import as_dim, number
from .elements import Elements
from .scalars import both, cast, compare, either

_ZERO = ir.Const(0, "i64")


class Indexing(Elements):
    trusting = False  # what is lowered is a body of the table: its indices are in range, none is negative

    def prepare(self, expr: Expr) -> Expr:
        raise NotImplementedError

    def items(self, base: Expr, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items with every index symbolic (a read of a variable is a symbol too) and in range."""
        done: list[Item] = []
        axis = 0
        for item, extent in zip(items, construct.item_extents(base, items), strict=True):
            match item:
                case At(index):
                    done.append(At(construct.dim(self.position(index, extent, axis))))
                case Gather(index):
                    done.append(Gather(self.gathered(index, extent, axis)))
                case Slice(start, stop):
                    for bound in (start, stop):
                        if bound is not None:
                            self.divisions(bound)
                    done.append(item)
                case _:
                    done.append(item)
                    continue
            axis += 1
        return tuple(done)

    def position(self, index: Expr, extent: Dim, axis: int) -> Dim:
        """A scalar index from the start of the axis."""
        self.divisions(index)
        at = value_of(index)
        if at is None:
            raw = self.element(self.prepare(index), ())
            return self._dynamic(raw, extent, axis)
        from_end = nonnegative(-at - 1, self.facts)
        if not from_end and not nonnegative(at, self.facts):
            return self._dynamic(number(self.dim(at)), extent, axis)
        place = at + extent if from_end else at
        proven = nonnegative(place, self.facts) and nonnegative(extent - 1 - place, self.facts)
        if not proven:
            self.in_range(number(self.dim(at)), extent, axis)
        return place

    def _dynamic(self, raw: ir.Expr, extent: Dim, axis: int) -> Dim:
        """An index that may be negative: wrapped into a variable of its own."""
        raw = cast(raw, "i64")
        if as_dim(raw) is None:
            sure = _is_remainder(raw, extent)
            raw = self.scalar(raw, "at")
            if sure and (at := as_dim(raw)) is not None:
                return at
        if self.trusting and (at := as_dim(raw)) is not None:
            return at
        self.in_range(raw, extent, axis)
        return Dim.of(Atom("load", (self.scalar(self._wrapped(raw, extent), "at"),)))

    def _wrapped(self, raw: ir.Expr, extent: Dim) -> ir.Expr:
        shifted = ir.Op("add", (raw, number(self.dim(extent))), "i64")
        return ir.Op("where", (compare("less", raw, _ZERO), shifted, raw), "i64")

    def in_range(self, index: ir.Expr, extent: Dim, axis: int) -> None:
        """IndexError unless -extent <= index < extent."""
        if self.trusting:
            return
        self.check(*self._range_check(index, extent, axis))

    def _range_check(self, index: ir.Expr, extent: Dim, axis: int) -> tuple[ir.Expr, str, str, tuple[Dim, ...]]:
        size = self.dim(extent)
        known = as_dim(index) if isinstance(index, (ir.Int, ir.Const)) else None
        below = (
            None
            if known is not None and nonnegative(known, self.facts)
            else compare("greater_equal", index, number(-size))
        )
        above = (
            None
            if known is not None and nonnegative(size - 1 - known, self.facts)
            else compare("less", index, number(size))
        )
        cond = both(below, above) if below and above else below or above or ir.Const(True, "bool")
        shown = as_dim(index)
        assert shown is not None
        return (
            cond,
            "IndexError",
            f"index {{0}} is out of range for axis {axis} with size {{1}}",
            (shown, size),
        )

    def gathered(self, index: Expr, extent: Dim, axis: int) -> Expr:
        """An array of indices from the start of the axis, in memory unless it can be proven to be in
        range.
        """
        index = self.prepare(index)
        if self._proven(index, extent):
            return index
        key = ("gather", index, extent)
        if key in self.memo:
            return self.memo[key]
        name, place = self.temp(Type("i64", index.type.shape), "at")

        def make(at: tuple[Dim, ...]) -> list[ir.Stmt]:
            raw = cast(self.element(index, at), "i64")
            stmts: list[ir.Stmt] = []
            if as_dim(raw) is None:  # a number, so that each place is stored once, and not read
                _, asked = self.temp(Type("i64"), "asked")
                stmts.append(ir.Store(asked.buffer, (), raw))
                raw = ir.Load(asked.buffer, (), "i64")
            cond, exception, message, info = self._range_check(raw, extent, axis)
            number = self.errors.number(exception, message, self.span, self.layer)
            return [
                *stmts,
                *([ir.Check(cond, number, info)] if not isinstance(cond, ir.Const) else []),
                ir.Store(place.buffer, at, self._wrapped(raw, extent)),
            ]

        self.nest(place.shape, make)
        self.memo[key] = name
        return name

    def _proven(self, index: Expr, extent: Dim) -> bool:
        """Whether every element is a symbol that is in range, as np.arange's are."""
        if (told := self._element_there(index)) is None:
            return False
        place, facts = told
        return nonnegative(place, facts) and nonnegative(self.dim(extent) - 1 - place, facts)

    def told_by_place(self, array: Expr) -> Expr | None:
        """What a name stands for that is made of places only, `np.arange(n)[:, None] - np.arange(n)`: it is computed
        where it is asked for, as long as that takes no quotient, and tells which places are neighbours."""
        if not self._is_of_places(array):
            return None
        ready = self.prepare(array)
        if (told := self._element_there(ready)) is None:
            return None
        place, facts = told
        counters = {s for d in self.symbols.values() for s in d.symbols()}
        divides = any(isinstance(a, Atom) and Dim.of(a).symbols() & (facts.keys() - self.facts) for a in place.atoms())
        return None if divides or place.symbols() & counters else ready

    def _element_there(self, array: Expr) -> tuple[Dim, Facts] | None:
        """An element of what is made of places only, and what is known of the symbols that it hangs on."""
        if not self._is_of_places(array):
            return None
        trial = {f"<{k}>": (Dim.of(0), self.dim(d) - 1) for k, d in enumerate(array.type.shape)}
        element = self.element(array, tuple(Dim.of(k) for k in trial))
        return (element.dim, {**self.facts, **trial}) if isinstance(element, ir.Int) else None

    def _is_of_places(self, array: Expr) -> bool:
        """Whether it reads no array but those that names stand for."""
        read = (e for e in walk(array) if isinstance(e, Name) and (e.type.rank or value_of(e) is None))
        known = (self.env.get(e.id) for e in read)
        return all(isinstance(e, Call | Index) and self._is_of_places(e) for e in known)

    def divisions(self, expr: Expr) -> None:
        """ZeroDivisionError where a symbolic integer divides by what may be zero."""
        for part in walk(expr):
            if isinstance(part, Call) and part.op in ("floor_divide", "mod") and not part.type.is_float:
                divisor = value_of(part.args[1])
                if divisor is not None:
                    self.nonzero(number(self.dim(divisor)))

    def nonzero(self, divisor: ir.Expr, shape: tuple[Dim, ...] = ()) -> None:
        """ZeroDivisionError where the divisor of all elements of an array is zero, if there are any."""
        if isinstance(divisor, ir.Const) and divisor.value:
            return
        if isinstance(divisor, ir.Int) and (
            nonnegative(divisor.dim - 1, self.facts) or nonnegative(-divisor.dim - 1, self.facts)
        ):
            return
        divides = compare("not_equal", divisor, _ZERO)
        if not all(nonnegative(self.dim(n) - 1, self.facts) for n in shape):
            divides = either(divides, compare("equal", number(self.dim(product(shape))), _ZERO))
        self.check(divides, "ZeroDivisionError", "integer division or modulo by zero")


def _is_remainder(index: ir.Expr, extent: Dim) -> bool:
    """Whether it is a remainder by what is above 0 and no more than the extent: in range, whatever is divided."""
    match index:
        case ir.Op("mod", (_, ir.Const(by)), "i64") if by > 0:
            return nonnegative(extent - int(by))
    return False
