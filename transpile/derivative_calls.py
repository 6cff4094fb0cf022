"""What a helper says of its own derivative (see runtime/derivatives.py): kept in the typed program for the adjoint.

    with_derivative(value, of)                Call("with_derivative", (value, of)): value, for all but the adjoint
    with_backward(value, rule, (a, b))        Call("with_backward", (value, a, b), rule): the same; rule is a Function
    pull(fn, dy, (a, b))                      Pull((d_a, d_b), fn as a Function, (a, b), dy): the adjoint writes it out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from .values import Closure, Tuple, Value, View, leaves, map_leaves


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
        arguments, settings = (*self.spread(nodes), Tuple(()))[:2]
        arguments = map_leaves(arguments, lambda _, v: self._held_leaf(v, node))
        dy = Name(self.fresh("dy"), value.type)
        gradients, body = self._captured(lambda: self.inline_on(target, (*arguments.items, *settings.items, value, dy), node))
        found = dict(leaves(gradients))
        owners = [(place, v) for place, v in leaves(arguments) if _varies(v)]
        results, values = [], []
        for place, owner in owners:
            if place not in found:
                raise self.fail(node, "backward", f"{target.name} gives no gradient for each of its arguments")
            gradient = self.as_expr(found[place], node)
            if gradient.type.shape != owner.type.shape:
                raise self.fail(
                    node,
                    "backward",
                    f"{target.name} gives a gradient of shape {construct.shape_text(gradient.type.shape)}"
                    f" for one of {construct.shape_text(owner.type.shape)}",
                )
            values.append(gradient)
            results.append(Result(f"d_{owner.id}", "input", owner.type, "", of=owner.id))
        taken = [value, dy, *(v for _, v in owners)]
        body = (*body, Return(tuple(values), self.span(node)))
        rule = Function(target.name, tuple(map(_parameter, taken)), body, tuple(results), False)
        return construct.call("with_backward", value, *taken[2:], rule=rule, span=self.span(node))

    def call_derivative_pull(self: Any, node: Any) -> Value:
        fn, dy_node, *nodes = node.args
        target = self._function(fn, "pull")
        dy = self._held_name(self.typed(dy_node), "dy", node)
        given, around = (*self.spread(nodes), Tuple(()))[:2]
        given = map_leaves(given, lambda _, v: self._held_leaf(v, node))
        own = map_leaves(given, lambda _, v: Name(self.fresh(v.id), v.type) if _varies(v) else v)
        result, body = self._captured(lambda: self.inline_on(target, own.items, node))
        expr = self.as_expr(result, node)
        if expr.type.shape != dy.type.shape:
            raise self.fail(
                node,
                "shape",
                f"{target.name} has shape {construct.shape_text(expr.type.shape)},"
                f" its gradient is asked for {construct.shape_text(dy.type.shape)}",
            )
        pairs = [(v, p) for (_, v), (_, p) in zip(leaves(given), leaves(own), strict=True) if _varies(v)]
        pairs += [(v, v) for _, v in leaves(around) if _varies(v)]
        inner = [p for _, p in pairs]
        function = Function(
            "pulled",
            tuple(map(_parameter, inner)),
            (*body, Return((expr,), self.span(node))),
            (Result("y", "output", dy.type, ""),),
            False,
            span=self.span(node),
        )
        made = {p.id: Name(self.fresh(f"d_{v.id}"), v.type) for v, p in pairs}
        gradients = tuple(made[p.id].id for p in inner)
        self.emit(Pull(gradients, function, tuple(v for v, _ in pairs), dy, self.span(node)))
        found = map_leaves(own, lambda _, v: made[v.id] if _varies(v) else const(0.0))
        return Tuple((*found.items, *(made[v.id] for _, v in leaves(around))))

    def call_derivative_captured(self: Any, node: Any) -> Value:
        fn, *nodes = node.args
        target = self._function(fn, "captured")
        given = map_leaves(Tuple(tuple(self.spread(nodes))), lambda _, v: self._held_leaf(v, node))
        own = map_leaves(given, lambda _, v: Name(self.fresh(v.id), v.type) if _varies(v) else v)
        result, body = self._captured(lambda: self.inline_on(target, own.items, node))
        body = (*body, Return(tuple(v for _, v in leaves(result) if _is_array(v))))
        inside = assigned(body) | {v.id for _, v in leaves(own) if isinstance(v, Name)}
        exprs = (e for s in walk_stmts(body) for top in stmt_exprs(s) for e in walk(top))
        free = {e.id: replace(e, span=self.span(node)) for e in exprs if isinstance(e, Name) and _varies(e)}
        return Tuple(tuple(v for id, v in sorted(free.items()) if id not in inside))

    # -- their parts -------------------------------------------------------------------------------------------
    def _function(self: Any, node: Any, caller: str) -> Closure:
        target = self.value(node)
        if not isinstance(target, Closure):
            raise self.fail(node, "type", f"{caller} takes a function of a layer file here")
        return target

    def _captured(self: Any, make: Any) -> tuple[Value, tuple[Stmt, ...]]:
        """A value, and aside the statements that make it."""
        outer, self.out = self.out, []
        try:
            return make(), tuple(self.out)
        finally:
            self.out = outer

    def _held_name(self: Any, expr: Expr, hint: str, node: Any) -> Name:
        if isinstance(expr, Name):
            return expr
        name = self.fresh(hint)
        self.emit(Assign(name, expr, self.span(node)))
        return Name(name, expr.type, None, self.span(node))

    def _held_leaf(self: Any, value: Value, node: Any) -> Value:
        """An argument under a name, if it has a gradient."""
        if not _is_array(value):
            return value
        expr = self.as_expr(value, node)
        return self._held_name(expr, "held", node) if _varies(expr) else expr


def _is_array(value: Value) -> bool:
    return isinstance(value, (Const, Name, Call, Index, View))


def _varies(value: Value) -> bool:
    """Whether it has a gradient: no integer, no number of Python's own, such as configuration."""
    return isinstance(value, (Name, Call, Index)) and value.type.dtype in ("real", "f32", "f64")


def _parameter(name: Name) -> Parameter:
    return Parameter(name.id, "input", name.type, "")


def _without_asserts(body: Sequence[Stmt]) -> list[Stmt]:
    return [
        map_stmt(s, lambda e: e, lambda b: tuple(_without_asserts(b)), lambda n: n)
        for s in body
        if not isinstance(s, Assert)
    ]
