"""Expressions of which only a part is evaluated: `a if c else b`, `and`, `or`.

What is harmless to evaluate becomes a select; else it is a branch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import construct
from .construct import known_truth, value_of
from .dims import Dim, product
from .lowering.facts import assumed
from .program import (
    Assign,
    At,
    Call,
    Const,
    Expr,
    Gather,
    If,
    Index,
    Name,
    Stmt,
    children,
    walk,
)
from .values import (
    VALUE,
    Broken,
    Closure,
    Generator,
    ListValue,
    Static,
    Tuple,
    Value,
)

_OF_SOMETHING = ("max", "min", "argmax", "argmin", "logsumexp", "softmax", "log_softmax")  # fail where there is nothing
_OF_REGULAR = ("solve", "inv", "cholesky")  # fail where a matrix is singular


class Lazy:
    """Mixed into the checker of functions."""

    def branch_value(self: Any, node: Any, condition: Expr, body: Any, orelse: Any) -> Value:
        """`a if c else b`: a select where evaluating both is harmless, else a branch."""
        before = self.drawn()
        a, then_out = self._aside(body)
        then = self.drawn()
        self.env.update(before)
        b, else_out = self._aside(orelse)
        if any(isinstance(v, (Static, Closure, Generator, ListValue)) for v in (a, b)):
            raise self.fail(node, "type", "the branches must be arrays or scalars")
        self._draws_meet(then, then_out, self.drawn(), else_out, node)
        harmless = not then_out and not else_out and not isinstance(a, Tuple) and not isinstance(b, Tuple)
        if harmless:
            x, y = self.as_expr(a, node), self.as_expr(b, node)
            shows = self.mutating and (self._is_view(x) or self._is_view(y))  # not a copy, as that of a select
            reads = any(isinstance(e, Index) for e in (*walk(x), *walk(y)))
            if not shows and not reads and not self._may_fail(x, y):
                if x.type.shape == y.type.shape:
                    chosen = construct.call("where", condition, x, y, span=self.span(node))
                    self.ternaries.add(self.span(node))
                    return construct.pythons(chosen, construct.either(x.type, y.type))
        value: Value = self._meet(VALUE, a, b, then_out, else_out, node)
        if isinstance(value, Broken) and value.message is not None:
            raise self.fail(node, "type", value.message, value.help)
        self.emit(If(condition, tuple(then_out), tuple(else_out), self.span(node)))
        return value

    def _draws_meet(
        self: Any,
        then: dict[str, Value],
        then_out: list[Stmt],
        other: dict[str, Value],
        else_out: list[Stmt],
        node: Any,
    ) -> None:
        """The counts of draws after two branches of an expression."""
        for id in then:
            same = then[id] == other[id]
            self.env[id] = then[id] if same else self._meet(id, then[id], other[id], then_out, else_out, node)

    def _aside(self: Any, node: Any) -> tuple[Value, list[Stmt]]:
        """A value and the statements that it needs."""
        with self.aside() as needed:
            return self.value(node), needed

    def _boolean(self: Any, spelling: str, values: list[Any], node: Any, exact: bool = False) -> Value:
        """`a and b`, `a or b`: b is a branch where evaluating it without need could fail, as in `i < n and x[i] >
        0`."""
        result = self.condition(values[0], exact)
        for other in values[1:]:
            known = known_truth(result)
            if known is not None:
                result = self.condition(other, exact) if known == (spelling == "And") else result
                continue
            facts, self.facts = self.facts, assumed(result, spelling == "And", self.facts)
            before = self.drawn()
            try:
                with self.aside() as needed:
                    term = self.condition(other, exact)
            finally:
                self.facts = facts
            # Whether it may fail where the first does not hold.
            if needed or self._may_fail(term) or self.drawn() != before:
                result = self._guarded(spelling, result, term, needed, before, node)
            else:
                result = self._both("logical_and" if spelling == "And" else "logical_or", result, term, node)
        return result

    def _guarded(
        self: Any, spelling: str, first: Expr, second: Expr, needed: list[Stmt], before: dict[str, Value], node: Any
    ) -> Expr:
        """`before`: the counts of draws before the second was looked at."""
        # Two names: the reverse of the branch asks again what the first held.
        names = self.fresh("holds"), self.fresh("holds")
        self.emit(Assign(names[0], first, self.span(node)))
        own = replace(first.type, pythons=construct.either(first.type, second.type))
        holds, both = (Name(name, own, None, self.span(node)) for name in names)
        inner = [*needed, Assign(both.id, second, self.span(node))]
        skipped: list[Stmt] = [Assign(both.id, holds, self.span(node))]
        self._draws_meet(self.drawn(), inner, before, skipped, node)
        then, orelse = (inner, skipped) if spelling == "And" else (skipped, inner)
        self.emit(If(holds, tuple(then), tuple(orelse), self.span(node)))
        return both

    def _may_fail(self: Any, *exprs: Expr) -> bool:
        """Whether evaluating them can raise: an index not proven in range, an integer division, the largest of none."""
        return any(self._one_may_fail(e) for e in exprs)

    def _one_may_fail(self: Any, expr: Expr) -> bool:
        match expr:
            case Index(base=base, items=items):
                for item, extent in zip(items, construct.item_extents(base, items), strict=True):
                    if isinstance(item, Gather) or (isinstance(item, At) and not self._in_range(item.index, extent)):
                        return True
            case Call(op="floor_divide" | "mod") if expr.type.is_integer and not isinstance(expr.args[1], Const):
                return True
            case Call(op=op, args=[a, *_]) if op in _OF_SOMETHING and not self._has_elements(a):
                return True
            case Call(op=op) if op in _OF_REGULAR:
                return True
        return self._may_fail(*children(expr))

    def _has_elements(self: Any, array: Expr) -> bool:
        return construct.nonnegative(product(array.type.shape) - 1, self.facts)

    def _in_range(self: Any, index: Expr, extent: Dim) -> bool:
        value = value_of(index)
        if value is None:
            return False
        if value.value is not None and value.value < 0:
            value = value + extent
        return construct.nonnegative(value, self.facts) and construct.nonnegative(extent - 1 - value, self.facts)


__all__ = ["Lazy"]
