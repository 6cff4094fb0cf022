"""What a helper says of its own derivative (see runtime/derivatives.py): kept in the typed program for the adjoint.

with_derivative(value, of)                Call("with_derivative", (value, of)): value, for all but the adjoint
with_backward(value, rule, (a, b))        Call("with_backward", (value, a, b), rule): the same; rule is a Function
pull(fn, dy, (a, b))                      Pull((d_a, d_b), fn as a Function, (a, b), dy): the adjoint writes it out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from . import construct
from .construct import const
from .program import (
    Assert,
    Assign,
    Call,
    Const,
    Expr,
    Function,
    Index,
    Name,
    Parameter,
    Pull,
    Result,
    Return,
    Stmt,
    assigned,
    stmt_exprs,
    walk,
    walk_stmts,
)
from .renaming import map_stmt
from .values import Choice, Closure, Tuple, Value, View, leaves, map_leaves


class DerivativeCalls:
    """Mixed into the checker of functions."""

    def call_derivative_with_derivative(self: Any, node: Any) -> Value:
        value, of = self._arguments(node, "with_derivative", 2)
        expr = self.typed(value)
        found, needed = self._aside(of)
        self.out += _without_asserts(needed)  # what makes the value has asserted it all
        return construct.call("with_derivative", expr, self.as_expr(found, of), span=self.span(node))

    def call_derivative_with_backward(self: Any, node: Any) -> Value:
        value_node, rule_node, *nodes = node.args
        value = self._held_name(self.typed(value_node), "y", node)
        target = self._function(rule_node, "with_backward")
        arguments, settings = (*map(self._as_tuple, nodes), Tuple(()))[:2]
        arguments = self._held_items(arguments, node)
        dy = Name(self.fresh("dy"), value.type)
        gradients, body = self._captured(
            lambda: self.inline_on(target, (*arguments.items, *settings.items, value, dy), node)
        )
        owners = [(place, v) for place, v in leaves(arguments) if _has_gradient(v)]
        exprs = tuple(self._gradient_of(v, place, gradients, target, node) for place, v in owners)
        taken = [value, dy, *(v for _, v in owners)]
        body = (*body, Return(exprs, self.span(node)))
        rule = Function(target.name, tuple(map(_parameter, taken)), body, (), False)
        return construct.call("with_backward", value, *taken[2:], rule=rule, span=self.span(node))

    def _gradient_of(self: Any, owner: Name, place: Any, gradients: Value, target: Closure, node: Any) -> Expr:
        """What a rule returned at the place of an argument."""
        found = dict(leaves(gradients)).get(place)
        if found is None:
            raise self.fail(node, "backward", f"{target.name} does not give a gradient for each of its arguments")
        gradient: Expr = self.as_expr(found, node)
        if gradient.type.shape != owner.type.shape:
            shapes = [construct.shape_text(e.type.shape) for e in (gradient, owner)]
            raise self.fail(
                node, "backward", f"{target.name} gives a gradient of shape {shapes[0]} for one of {shapes[1]}"
            )
        return gradient

    def call_derivative_pull(self: Any, node: Any) -> Value:
        fn, dy_node, *nodes = node.args
        target = self._function(fn, "pull")
        dy = self._held_name(self.typed(dy_node), "dy", node)
        given, around = (*map(self._as_tuple, nodes), Tuple(()))[:2]
        given = self._held_items(given, node, [a.id for a in target.node.args.args])
        own, result, body = self._inlined_aside(target, given, node)
        if result.type.shape != dy.type.shape:
            shapes = [construct.shape_text(e.type.shape) for e in (result, dy)]
            raise self.fail(
                node, "shape", f"{target.name} has shape {shapes[0]}, its gradient is asked for {shapes[1]}"
            )
        owners = [v for _, v in (*leaves(given), *leaves(around)) if _has_gradient(v)]
        inner = [v for _, v in (*leaves(own), *leaves(around)) if _has_gradient(v)]
        made = {p.id: Name(self.fresh(f"d_{v.id}"), v.type) for v, p in zip(owners, inner, strict=True)}
        results = (Result("y", "output", dy.type, ""),)
        whole = (*body, Return((result,), self.span(node)))
        function = Function("pulled", tuple(map(_parameter, inner)), whole, results, False, span=self.span(node))
        self.emit(Pull(tuple(made[p.id].id for p in inner), function, tuple(owners), dy, self.span(node)))
        found: Any = map_leaves(own, lambda _, v: made[v.id] if _has_gradient(v) else const(0.0))
        return Tuple((*found.items, *(made[v.id] for _, v in leaves(around) if _has_gradient(v))))

    def call_derivative_captured(self: Any, node: Any) -> Value:
        fn, *nodes = node.args
        target = self._function(fn, "captured")
        own, result, body = self._inlined_aside(target, self._held_items(Tuple(tuple(self.spread(nodes))), node), node)
        body = (*body, Return((result,)))
        inside = assigned(body) | {v.id for _, v in leaves(own) if isinstance(v, Name)}
        exprs = [e for s in walk_stmts(body) for top in stmt_exprs(s) for e in walk(top)]
        free = {e.id: replace(e, span=self.span(node)) for e in exprs if _has_gradient(e) and e.id not in inside}
        return Tuple(tuple(free[id] for id in sorted(free)))

    # -- their parts -------------------------------------------------------------------------------------------
    def _function(self: Any, node: Any, caller: str) -> Closure:
        target = self.value(node)
        if not isinstance(target, Closure):
            raise self.fail(node, "type", f"{caller} takes a function of a layer file here")
        return target

    def _as_tuple(self: Any, node: Any) -> Tuple:
        value = self.value(node)
        if not isinstance(value, Tuple):
            raise self.fail(node, "type", "expected the arguments as a tuple", "a tuple of one is written (a,)")
        return value

    def _inlined_aside(self: Any, target: Closure, given: Tuple, node: Any) -> tuple[Tuple, Expr, tuple[Stmt, ...]]:
        """fn on arguments of its own: these, the result, and aside the statements that make it."""
        own: Any = map_leaves(given, lambda _, v: Name(self.fresh(v.id), v.type) if _has_gradient(v) else v)
        result, body = self._captured(lambda: self.inline_on(target, own.items, node))
        return own, self.as_expr(result, node), body

    def _captured(self: Any, make: Callable[[], Value]) -> tuple[Value, tuple[Stmt, ...]]:
        """A value, and aside the statements that make it."""
        with self.aside() as statements:
            return make(), tuple(statements)

    def _held_items(self: Any, given: Tuple, node: Any, hints: Sequence[str] = ()) -> Tuple:
        """The arguments, those that have a gradient under names. `hints`: what to call them."""

        def held(place: tuple[int, ...], value: Value) -> Value:
            expr = self.as_expr(value, node) if isinstance(value, (Const, Name, Call, Index, View, Choice)) else value
            hint = hints[place[0]] if place[0] < len(hints) else "held"
            return self._held_name(expr, hint, node) if _varies(expr) else expr

        found: Any = map_leaves(given, held)
        return found

    def _held_name(self: Any, expr: Expr, hint: str, node: Any) -> Name:
        if isinstance(expr, Name):
            return expr
        name = self.fresh(hint)
        self.emit(Assign(name, expr, self.span(node)))
        return Name(name, expr.type, None, self.span(node))


def _varies(value: Value) -> bool:
    """Whether it has a gradient: no integer, no number of Python's own, such as configuration."""
    return isinstance(value, (Name, Call, Index)) and value.type.dtype in ("real", "f32", "f64")


def _has_gradient(value: Value) -> TypeGuard[Name]:
    return isinstance(value, Name) and _varies(value)


def _parameter(name: Name) -> Parameter:
    return Parameter(name.id, "input", name.type, "")


def _without_asserts(body: Sequence[Stmt]) -> list[Stmt]:
    return [
        map_stmt(s, lambda e: e, lambda b: tuple(_without_asserts(b)), lambda n: n)
        for s in body
        if not isinstance(s, Assert)
    ]
