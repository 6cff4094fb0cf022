"""Makes an expression one whose elements can be computed where they are needed: what cannot is stored first.

Reductions, products and other operations that need loops of their own become temporaries, made by nests that
stand before;
so does what broadcasting would compute again and again. Elementwise operations, views and makers stay as
they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import construct, ir
from ..construct import value_of
from ..dims import ONE, ZERO, Dim
from ..operations import ROWS
from ..passes.tree import loads
from ..program import Call, Const, Expr, Index, Item, Name, NewAxis, Slice, Type, children, map_children, walk
from ..table.moves import pull_broadcast
from ..templates import definition, definition_text, names_in
from .context import Place
from .elements import same_but_units
from .indexing import Indexing
from .scalars import cast

# Flops from which computing an operand once, into memory, is cheaper than repeating it along a broadcast
# axis.
COSTLY = 4


class Prepare(Indexing):
    # -- expressions that can be pulled ---------------------------------------------------------------------
    def prepare(self, expr: Expr) -> Expr:
        if expr.type.is_integer and not expr.type.rank and value_of(expr) is not None:
            self.divisions(expr)
            return expr
        match expr:
            case Const() | Name():
                return expr
            case Index(base, items):
                base, items = _cut(base, items)
                base = self.prepare(base)
                return replace(expr, base=base, items=self.items(base, items))
            case Call(op):
                match ROWS[op].kind:
                    case "elementwise" | "draw":
                        return self._prepared_elementwise(expr)
                    case "move":
                        return replace(expr, args=tuple(self._once(self.prepare(a), expr.type) for a in expr.args))
                    case "make":
                        wanted = ROWS[op].arrays
                        return replace(
                            expr,
                            args=tuple(
                                a if n == "a" else self.prepare(a) for n, a in zip(wanted, expr.args, strict=True)
                            ),
                        )
                    case "alias":
                        return self.prepare(definition(expr, dict(zip(ROWS[op].arrays, expr.args, strict=True))))
                if op == "cast":
                    return replace(expr, args=(self.prepare(expr.args[0]),))
                if op in ("reshape", "ravel"):
                    return self._reshaped(expr)
                if ROWS[op].kind != "compose" and self.maker(expr) is None:
                    raise self.fail(f"{op} has no loops")
                return self.stored(expr)
        raise self.fail(f"cannot prepare {expr}")

    def _prepared_elementwise(self, expr: Call) -> Expr:
        args = tuple(self._once(self.prepare(a), expr.type) for a in expr.args)
        if expr.op in ("floor_divide", "mod") and not expr.type.is_float and not args[1].type.rank:
            self.nonzero(self.element(args[1], ()), expr.type.shape)
        return replace(expr, args=args)

    def _once(self, arg: Expr, result: Type) -> Expr:
        """The operand, computed before if it is costly and broadcasting repeats it."""
        if same_but_units(arg.type, result) or self.cost(arg) < COSTLY:
            return arg
        return self.stored(arg)

    def cost(self, expr: Expr) -> int:
        """Rough flops of one element of a prepared expression."""
        row = ROWS[expr.op] if isinstance(expr, Call) else None
        moved = row is not None and row.kind == "move" and row.flops > 1
        own = row.flops if row is not None and (row.kind in ("elementwise", "draw") or moved) else 0
        if (
            isinstance(expr, Call)
            and expr.op == "power"
            and isinstance(expr.args[1], Const)
            and expr.args[1].value in (1, 2, 3)
        ):
            own = 2
        if expr.type.is_integer and not expr.type.rank and value_of(expr) is not None:
            return 0
        return own + sum(self.cost(c) for c in children(expr))

    def stored(self, expr: Expr, hint: str = "") -> Name:
        """The value of the expression in a temporary, computed here."""
        if expr in self.memo:
            return self.memo[expr]
        name, place = self.temp(expr.type, hint or _hint(expr))
        self.compute(place, expr)
        self.memo[expr] = name
        return name

    def _reshaped(self, expr: Call) -> Expr:
        """The same memory under another shape, if the source is a whole array in memory; or it is put
        there.
        """
        source = self.prepare(expr.args[0])
        if same_but_units(source.type, expr.type):
            return replace(expr, args=(source,))
        place = self.env.get(source.id) if isinstance(source, Name) else None
        if not (isinstance(place, Place) and place.whole):
            name = self.stored(source)
            found = self.env[name.id]
            assert isinstance(found, Place)
            place = found
        return self._alias(place, expr)

    def _alias(self, place: Place, expr: Expr) -> Name:
        shape, whole = self.dims(expr.type.shape), self.buffers[place.buffer]
        key = (place.buffer, shape)
        if key not in self.aliases:
            lead = whole.shape[: len(place.prefix)]
            buffer = self.buffer(
                self.fresh(f"{place.buffer}_flat"), place.dtype, (*lead, *shape), "temp", self.root(place.buffer)
            )
            self.env[f"%{buffer}"] = Place(buffer, shape, place.dtype, place.prefix)
            self.aliases[key] = Name(f"%{buffer}", expr.type, None, self.span)
        return self.aliases[key]

    # -- computing into memory -----------------------------------------------------------------------------
    def compute(self, place: Place, expr: Expr) -> None:
        """place[...] = expr, of the same shape."""
        if isinstance(expr, Call):
            kind = ROWS[expr.op].kind
            into: Callable[[Place, Any], None] | None = self.maker(expr)
            if into is not None:
                if self.reads(expr) & {self.root(place.buffer)}:
                    self.copy(place, self.stored(expr))
                else:
                    into(place, expr)
                return
            if kind == "compose":
                self.compute(place, self.expanded(expr))
                return
        self.copy(place, self.prepare(expr))

    def maker(self, expr: Call) -> Callable[[Place, Any], None] | None:
        """What computes this operation with loops of its own; None for what is pulled."""
        raise NotImplementedError

    def copy(self, place: Place, expr: Expr, op: str | None = None, seq: frozenset[int] = frozenset()) -> None:
        """place[...] = expr (or op=), a prepared expression that broadcasts to it; by way of a temporary
        where elements
        would be overwritten before they are read."""
        if self._clobbers(place, expr):
            expr = self.apart(expr)
        self.nest(place.shape, lambda i: (self.store(place, i, expr, op),), seq)

    def apart(self, expr: Expr) -> Name:
        """A prepared expression in a temporary."""
        name, place = self.temp(expr.type, "new")
        self.nest(place.shape, lambda i: (self.store(place, i, expr, None),))
        return name

    def store(self, place: Place, index: tuple[Any, ...], expr: Expr, op: str | None) -> ir.Store:
        value = cast(self.element(expr, pull_broadcast(index, expr.type)), place.dtype)
        return ir.Store(place.buffer, place.at(index), value, op)

    def _clobbers(self, place: Place, expr: Expr) -> bool:
        """Whether the expression reads the place's memory at another index than the one written at that
        moment.
        """
        if self.root(place.buffer) not in self.reads(expr):
            return False
        index = tuple(ZERO if d == ONE else Dim.of(f"<{k}>") for k, d in enumerate(place.shape))
        written = ir.Load(place.buffer, place.at(index), place.dtype)
        root = self.root(place.buffer)
        value = self.element(expr, pull_broadcast(index, expr.type))
        return any(self.root(load.buffer) == root and load != written for load in loads(value))

    def reads(self, expr: Expr) -> set[str]:
        """The buffers whose memory an expression reads."""
        found: set[str] = set()
        for part in walk(expr):
            if isinstance(part, Name) and (bound := self.env.get(part.id)) is not None:
                if isinstance(bound, Place):
                    found.add(self.root(bound.buffer))
                elif not isinstance(bound, ir.Scalar):
                    found |= self.reads(bound)
        return found

    # -- composed operations -------------------------------------------------------------------------------
    def expanded(self, call: Call) -> Expr:
        """A composed operation spelled out; an argument that is used more than once is computed once."""
        row = ROWS[call.op]
        used = names_in(definition_text(call))
        args = {}
        for name, arg in zip(row.arrays, call.args, strict=True):
            if used.count(name) > 1 and not isinstance(arg, (Name, Const)):
                arg = self.prepare(arg)
                if self.cost(arg) or not isinstance(arg, (Name, Index)):
                    arg = self.stored(arg)
            args[name] = arg
        return self._shared(definition(call, args))

    def _shared(self, expr: Expr) -> Expr:
        """Costly parts that occur twice are computed once."""
        counts: dict[Call, int] = {}
        for part in walk(expr):
            if isinstance(part, Call):
                counts[part] = counts.get(part, 0) + 1
        twice = [e for e, n in counts.items() if n > 1 and ROWS[e.op].kind == "elementwise" and self.cost(e) >= COSTLY]
        for part in sorted(twice, key=lambda e: -sum(1 for _ in walk(e)))[:1]:
            expr = _replaced(expr, part, self.stored(part))
        return expr


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    return new if expr == old else map_children(expr, lambda e: _replaced(e, old, new))


def _cut(base: Expr, items: tuple[Item, ...]) -> tuple[Expr, tuple[Item, ...]]:
    """What is taken of an expression: of an argsort of which the head is taken no more is computed."""
    if not isinstance(base, Call) or base.op != "argsort":
        return base, items
    axis = base.get("axis") % base.type.rank
    at = [k for k, item in enumerate(items) if not isinstance(item, NewAxis)]
    match items[at[axis]] if axis < len(at) else None:
        case Slice(step=1, first=first, extent=extent) if first == ZERO and extent != base.type.shape[axis]:
            head = construct.call("argleast", *base.args, axis=axis, count=extent)
            whole = Slice(None, None, 1, ZERO, extent)
            return head, (*items[: at[axis]], whole, *items[at[axis] + 1 :])
    return base, items


def _hint(expr: Expr) -> str:
    match expr:
        case Call(op):
            return {"einsum": "product", "matmul": "product", "dot": "product"}.get(op, op)
    return "part"
