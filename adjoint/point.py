"""One statement being reversed: a cotangent is pulled through its expression, rule by rule, to the names in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..transpile import construct
from ..transpile.construct import const
from ..transpile.operations import BACKWARD, ROWS
from ..transpile.program import (
    Assign,
    At,
    Call,
    Const,
    Expr,
    Gather,
    Index,
    Name,
    NewAxis,
    Span,
    Stmt,
    Store,
    map_children,
    stmt_exprs,
    walk,
)
from ..transpile.templates import definition
from .activity import flows
from .cotangents import Cotangents
from .extremes import is_exact
from .nested import Nested
from .own_backward import written_out
from .rules import count_dy, defined, differentiable, mentions, pullback, shared, unbroadcast
from .simplify import simplify
from .values import Values, hint

if TYPE_CHECKING:
    from .reverse import Reverser

# Rows with an infinite derivative somewhere, or an overflow: there, 0 times the derivative is NaN.
_SINGULAR = set(
    "divide reciprocal sqrt cbrt power log log2 log10 log1p logaddexp exp exp2 expm1 sinh cosh tan"
    " arcsin arccos arccosh arctanh arctan2 logit gammaln xlogy".split()
)


def singular(expr: Expr) -> bool:
    return (
        isinstance(expr, Call)
        and expr.op in _SINGULAR
        and not (expr.op == "divide" and isinstance(expr.args[1], Const))
    )


@dataclass(frozen=True)
class Mask:
    """The choices of `where` above an expression, whose cotangent is zero where they pass it by.

    Through elementwise operations the zeros are put in last, so that no derivative multiplies them: where(x >
    0, dy / x, 0), not where(x > 0, dy, 0) / x. `guarded`: the zeros are in the cotangent, and a singular
    derivative must leave them zero.
    """

    choices: tuple[tuple[Expr, bool], ...] = ()  # (condition, whether the expression is chosen where it is true)
    guarded: bool = False

    def under(self, condition: Expr, when: bool) -> Mask:
        return Mask((*self.choices, (condition, when)), self.guarded)

    def inside(self) -> Mask:
        """After the zeros are put in."""
        return Mask((), self.guarded or bool(self.choices))

    def over(self, cotangent: Expr) -> Expr:
        for condition, when in reversed(self.choices):
            cotangent = construct.call("where", condition, *((cotangent, const(0)) if when else (const(0), cotangent)))
        return cotangent


@dataclass
class Point:
    """One statement being reversed: pulls a cotangent through its expression."""

    reverser: Reverser
    cots: Cotangents
    span: Span
    kept: list[Stmt] = field(default_factory=list)  # values given a name for the reverse sweep, in order
    behind: list[Stmt] = field(default_factory=list)  # ... and those that read the result: they stand behind it

    def __post_init__(self) -> None:
        self.values = Values(self.reverser.new, self.span)

    def pull(self, expr: Expr, cotangent: Expr, result: Expr | None, quote: bool = True, guarded: bool = False) -> Expr:
        """Adds the contributions of `expr` to the names in it; returns expr over the values given names."""
        start = len(self.cots.out)
        self._pull(expr, simplify(cotangent), result, mask=Mask(guarded=guarded))
        self.cots.flush()
        if quote:
            self.reverser.quote(self.span, self.cots.out, start)
        for stmt in self.values.kept():
            (self.behind if self._reads(stmt, result) else self.kept).append(stmt)
        return self.values.named(expr)

    def _reads(self, stmt: Stmt, result: Expr | None) -> bool:
        """Whether a named value asks for the result: which of several is the largest."""
        later = {s.name for s in self.behind if isinstance(s, Assign)}
        return any(e == result or (isinstance(e, Name) and e.id in later) for x in stmt_exprs(stmt) for e in walk(x))

    def _pull(
        self, expr: Expr, cotangent: Expr, result: Expr | None = None, role: str = "", mask: Mask = Mask()
    ) -> None:
        active = self.reverser.active
        if not (isinstance(expr, Call) and ROWS[expr.op].kind == "elementwise"):
            cotangent, mask = mask.over(cotangent), mask.inside()
        match expr:
            case Name(id=id):
                if id in active:
                    self.cots.add(id, cotangent)
            case Index():
                self._index(expr, cotangent)
            case Call() if ROWS[expr.op].grad == BACKWARD:
                self._by_rule(expr, cotangent, result)
            case Call(op="with_derivative", args=(value, of)) if result is not None and is_exact(value):
                self._pull(_instead(of, value, result), cotangent, None, role, mask)
            case Call() if defined(expr):
                self._pull(
                    definition(expr, dict(zip(ROWS[expr.op].arrays, expr.args, strict=True))),
                    cotangent,
                    None,
                    role,
                    mask,
                )
            case Call():
                wanted = [w and bool(flows(a) & active) for a, w in zip(expr.args, differentiable(expr), strict=True)]
                if not any(wanted):
                    return
                guarded = mask.guarded and not mask.choices and singular(expr)
                if count_dy(expr, wanted) > 1 or guarded:
                    cotangent = self._once(cotangent, expr, role)
                y = self._result(expr, wanted, result)
                args = [self.values.argument(expr, k, wanted) for k in range(len(expr.args))]
                known = self._shared(expr, wanted, args, y, cotangent)
                for k, arg in enumerate(expr.args):
                    if wanted[k] and expr.op == "where" and any(singular(e) for e in walk(arg)):
                        self._into(arg, cotangent, _role(expr, k), mask.under(args[0], k == 1))
                    elif wanted[k]:
                        contribution = pullback(expr, args, y, cotangent, k, known)
                        if guarded:
                            none = construct.call("equal", cotangent, const(0))
                            contribution = construct.call("where", none, const(0), contribution)
                        self._into(arg, contribution, _role(expr, k), mask)

    def _by_rule(self, expr: Call, cotangent: Expr, result: Expr | None) -> None:
        """The reverse that the call brings along, for all arguments at once."""
        owners = expr.args[1:]
        y = self.reverser.outputs.get(expr) or result or expr.args[0]
        given = [self._held(e) for e in (y, cotangent, *owners)]
        reverser = self.reverser
        body, gradients = written_out(expr.get("rule"), given, reverser.fresh, reverser.types, reverser.derive)
        for stmt in body:
            self.cots.emit(stmt)
        for owner, gradient in zip(owners, gradients, strict=True):
            if flows(owner) & reverser.active:
                self._into(owner, gradient, "", Mask())

    def _held(self, expr: Expr) -> Name:
        """Under a name, which a rule can read."""
        if isinstance(expr, Name):
            return expr
        held = self.reverser.new(f"d_{hint(expr)}", expr.type)
        self.cots.emit(Assign(held.id, expr))
        return held

    def _shared(self, expr: Call, wanted: list[bool], args: list[Expr], y: Expr, cotangent: Expr) -> dict[str, Expr]:
        """What several rules of a row read: under a name, if they read it more than once."""
        found = shared(expr, wanted, args, y, cotangent)
        if found is None:
            return {}
        name, value, uses = found
        if uses == 1 or isinstance(value, (Name, Const)):
            return {name: value}
        held = self.reverser.new(name, value.type)
        self.cots.emit(Assign(held.id, value))
        return {name: held}

    def _into(self, arg: Expr, cotangent: Expr, role: str, mask: Mask) -> None:
        """A contribution to an argument; elementwise operations may have broadcast it."""
        if isinstance(arg, Name):
            if arg.id in self.reverser.active:
                self.cots.add(arg.id, mask.over(cotangent))
            return
        if cotangent.type.shape != arg.type.shape:
            cotangent, mask = unbroadcast(mask.over(cotangent), arg.type), mask.inside()
        self._pull(arg, cotangent, None, role, mask)

    def _once(self, cotangent: Expr, call: Call, role: str) -> Expr:
        """A cotangent that is used more than once gets a name, unless it is as short as one."""
        if isinstance(cotangent, Call) and cotangent.op == "broadcast_to":
            return replace(cotangent, args=(self._once(cotangent.args[0], call, role),))
        if isinstance(cotangent, (Name, Const)) or (isinstance(cotangent, Index) and isinstance(cotangent.base, Name)):
            return cotangent
        if isinstance(cotangent, Call) and cotangent.op == "negative" and isinstance(cotangent.args[0], Name):
            return cotangent
        name = self.reverser.new(f"d_{role or hint(call)}", cotangent.type)
        self.cots.emit(Assign(name.id, cotangent))
        return name

    def _result(self, expr: Call, wanted: list[bool], result: Expr | None) -> Expr:
        """An expression for the value of a call, if a rule reads it."""
        if not any(w and mentions(expr, k, "y") for k, w in enumerate(wanted)):
            return expr
        if expr.op == "logaddexp" and self.reverser.nest:  # the compiler makes shares of the terms, more exactly
            return replace(expr, args=tuple(self.values.value(a) for a in expr.args))
        if expr in self.reverser.outputs:
            return self.reverser.outputs[expr]
        return result if result is not None else self.values.value(expr)

    def _index(self, expr: Index, cotangent: Expr) -> None:
        if not flows(expr.base) & self.reverser.active:
            return
        extents = construct.item_extents(expr.base, expr.items)
        if all(isinstance(i, NewAxis) or construct.is_full(i, e) for i, e in zip(expr.items, extents, strict=True)):
            back = construct.index(
                cotangent,
                [
                    At(const(0)) if isinstance(i, NewAxis) else construct.full_slice(e)
                    for i, e in zip(expr.items, extents, strict=True)
                ],
            )
            self._pull(expr.base, simplify(back))
            return
        items = tuple(
            replace(i, index=self.values.named(i.index)) if isinstance(i, (At, Gather)) else i for i in expr.items
        )
        scatter = any(isinstance(i, Gather) for i in items)
        if isinstance(expr.base, Name):
            self.cots.add_part(expr.base.id, items, cotangent, scatter)
            return
        nested = Nested(self.reverser.facts, self.reverser.new, self.cots.emit, self.span)
        inner = nested.inner(replace(expr, items=items), cotangent)
        if inner is not None:
            self._pull(*inner)
            return
        part = self.reverser.new(f"d_{hint(expr.base)}", expr.base.type)
        self.cots.emit(Assign(part.id, construct.call("zeros", shape=part.type.shape, dtype=part.type.dtype)))
        self.cots.emit(Store(part, items, cotangent, "add", scatter))
        self._pull(expr.base, part)


def _instead(expr: Expr, old: Expr, new: Expr) -> Expr:
    return new if expr == old else map_children(expr, lambda e: _instead(e, old, new))


def _role(call: Call, argument: int) -> str:
    """What an argument is to its call, where that says more than its own operation."""
    return ("", "then", "else")[argument] if call.op == "where" else ""


__all__ = ["Point", "singular"]
