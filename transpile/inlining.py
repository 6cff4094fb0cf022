"""Calls of helpers: functions of the file or of an imported one, nested functions and lambdas become part of
their caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gast

from .construct import value_of
from .errors import Suppressed
from .lists import appended_names, popped_names
from .mutation import mutated_names, target_names
from .program import Assign, Const, Name
from .suggestions import nearest
from .values import RETURN, Broken, Choice, Closure, Collected, Generator, Later, ListValue, Static, Tuple, Value, View

# What is known of the function that is being typed.
_OF_A_FUNCTION = ("env", "source", "mutated", "mutating", "path", "calling", "frame", "popped", "appending", "assigned")


class Inlining:
    """Mixed into the checker of functions."""

    def inline(self: Any, target: Closure, node: Any) -> Value:
        self._not_calling(target, node)
        return self.inlined(target, self._bind_arguments(target, node), node)

    def inline_on(self: Any, target: Closure, values: Sequence[Value], node: Any) -> Value:
        """The same on values, not on the arguments of the node."""
        self._not_calling(target, node)
        return self.inlined(target, self._bound(target, values, {}, node), node)

    def _not_calling(self: Any, target: Closure, node: Any) -> None:
        # Layerc's own functions do not call themselves: one within the other is of a function given to it.
        if (target.node in self.calling and not target.source.shipped) or target.node is self.own_node:
            raise self.fail(node, "unsupported", f"{target.name} calls itself", "write the recursion as a loop")

    def inlined(self: Any, target: Closure, bound: dict[str, Value], node: Any) -> Value:
        function = target.node
        outer = {name: getattr(self, name) for name in _OF_A_FUNCTION}
        called_at, self.called_at = self.called_at, self.span(node)
        seen = self._seen_by(target)
        written = mutated_names(function, target.source.harmless)
        own = {RETURN, *_own_names(function)}  # what it assigns is its own from its first line on
        env: dict[str, Value] = {name: value for name, value in seen.items() if name not in own}
        if target.method:
            env |= {name: value for name, value in self.env.items() if name.startswith("self.")}
        env |= {name: self._argument(name, value, written, node) for name, value in bound.items()}
        env |= self.drawn()
        self.frames.append((self.frame, self.env))
        self.enter(function, target.source)
        self.env, self.path, self.calling = env, (*self.path, id(node)), (*self.calling, function)
        try:
            if isinstance(function, gast.Lambda):
                return self.value(function.body)
            self.block(function.body)
            result = self.env.get(RETURN, Static(None))
            if target.method:  # it may have assigned states
                outer["env"].update({name: value for name, value in self.env.items() if name.startswith("self.")})
        finally:
            outer["env"].update(self.drawn())
            self.called_at = called_at
            for name, value in outer.items():
                setattr(self, name, value)
            self.frames.pop()
        if isinstance(result, Broken):
            if result.message is not None:
                raise self.fail(
                    node,
                    "type",
                    f"{target.name}: {result.message.replace('is assigned', 'is returned')}",
                    "return on every path",
                )
            raise Suppressed
        return result

    def self_call(self: Any, node: Any, attr: str) -> Value:
        """self.helper(x): another method of the class."""
        if attr not in self.methods:
            fields = {name[5:] for name in self.env if name.startswith("self.")}
            what = "is a field, not a method" if attr in fields else "is no method of the layer"
            raise self.fail(node, "name", f"self.{attr} {what}", nearest(attr, self.methods))
        source, method = self.methods[attr]
        return self.inline(Closure(method, source, None, attr, method=True), node)

    def class_call(self: Any, node: Any, source: Any, name: str) -> Value:
        """Base.predict(self, x): the method of another layer class, on the fields of this one."""
        attr = node.func.attr
        method = next(
            (m for m in source.classes[name].body if isinstance(m, gast.FunctionDef) and m.name == attr), None
        )
        if method is None:
            raise self.fail(node, "name", f"{name} has no method {attr}")
        if not node.args or not (isinstance(node.args[0], gast.Name) and node.args[0].id == "self"):
            raise self.fail(
                node,
                "type",
                f"{name}.{attr} takes the layer first",
                f"{name}.{attr}(self, ...), in a class with the same fields",
            )
        call = gast.copy_location(gast.Call(func=node.func, args=node.args[1:], keywords=node.keywords), node)
        return self.inline(Closure(method, source, None, attr, method=True), call)

    def _seen_by(self: Any, target: Closure) -> dict[str, Value]:
        """The variables around a nested function, as they are now."""
        if target.frame is None:
            return {}
        if target.frame is self.frame:
            return self.env
        for frame, env in reversed(self.frames):
            if frame is target.frame:
                return env
        return target.env or {}

    def _argument(self: Any, id: str, value: Value, mutated: set[str], node: Any) -> Value:
        if isinstance(value, (Tuple, Static, Closure, Generator, ListValue, Collected, Later, Broken, View, Choice)):
            return value
        if id in mutated and self._is_view(value):
            return self._as_view(value, node)
        if isinstance(value, (Name, Const)):
            return value
        name = self.fresh(id)
        self.emit(Assign(name, value, self.span(node)))
        return Name(name, value.type, value_of(value), self.span(node))

    def _bind_arguments(self: Any, target: Closure, node: Any) -> dict[str, Value]:
        nodes = [a.value if isinstance(a, gast.Starred) else a for a in node.args]
        found = self.values([*nodes, *(k.value for k in node.keywords)], self.value_or_list)
        given: list[Value] = []
        for arg, value in zip(node.args, found, strict=False):
            given += self.taken_apart(value, arg) if isinstance(arg, gast.Starred) else [value]
        named = dict(zip([k.arg for k in node.keywords], found[len(nodes) :], strict=True))
        return self._bound(target, given, named, node)

    def _bound(
        self: Any, target: Closure, given: Sequence[Value], keywords: dict[str, Value], node: Any
    ) -> dict[str, Value]:
        args = target.node.args
        if args.kwarg:
            raise self.fail(node, "unsupported", f"{target.name} takes ** arguments", "write the arguments out")
        positional = [a.id for a in [*args.posonlyargs, *args.args]][target.method :]
        ids = positional + [a.id for a in args.kwonlyargs]
        if len(given) > len(positional) and not args.vararg:
            raise self.fail(node, "type", f"{target.name} takes {len(positional)} arguments, got {len(given)}")
        bound = dict(zip(positional, given, strict=False))
        if args.vararg:
            bound[args.vararg.id] = Tuple(tuple(given[len(positional) :]))
        for name, value in keywords.items():
            if name not in ids or name in bound:
                message = f"{target.name} has no argument {name} left to give"
                raise self.fail(node, "type", message, f"it takes: {', '.join(ids)}")
            bound[name] = value
        defaults = _defaults(target.node)
        for id in ids:
            if id not in bound:
                if id not in defaults:
                    raise self.fail(node, "type", f"{target.name} needs {id}")
                self._not_kept(target, id, defaults[id], node)
                kept = target.defaults
                bound[id] = kept[id] if kept is not None else self._default(target, defaults[id])
        return bound

    def _not_kept(self: Any, target: Closure, id: str, default: Any, node: Any) -> None:
        """Python makes a default once: a list that the function changes would be the same at every call."""
        if not isinstance(default, (gast.List, gast.ListComp)):
            return
        written = mutated_names(target.node, target.source.harmless)
        if id in appended_names(target.node) | popped_names(target.node) | written:
            message = f"the default of {id} is one list for all calls of {target.name}, which changes it"
            raise self.fail(node, "unsupported", message, f"make it in the function: {id} = []")

    def closure(self: Any, node: Any, name: str) -> Closure:
        """A nested function or a lambda. Its defaults are what they are here."""
        defaults = {id: self._named_item(id, self.value(d), d, d) for id, d in _defaults(node).items()}
        return Closure(node, self.source, self.env, name, self.frame, defaults=defaults)

    def _default(self: Any, target: Closure, node: Any) -> Value:
        """A default belongs to the file where the function is defined."""
        outer, drawn = (self.env, self.source, self.assigned), self.drawn()
        self.env, self.source, self.assigned = {**self._seen_by(target), **drawn}, target.source, set()
        try:
            value = self.value(node)
            if self.drawn() != drawn:
                raise self.fail(node, "unsupported", "a default that is drawn at random", "draw it in the function")
            return value
        finally:
            self.env, self.source, self.assigned = outer

    def enter(self: Any, function: Any, source: Any) -> None:
        """Begins with the body of a function: what is known of it before its statements are read."""
        self.source, self.frame = source, object()
        self.mutated = mutated_names(function, source.harmless)
        self.mutating = self.mutating or bool(self.mutated)
        self.popped, self.appending = popped_names(function), appended_names(function)
        self.assigned = _own_names(function)


def _defaults(function: Any) -> dict[str, Any]:
    """By parameter: the expression of its default."""
    args = function.args
    positional = [a.id for a in [*args.posonlyargs, *args.args]]
    found = dict(zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True))
    return found | {a.id: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}


def _own_names(function: Any) -> set[str]:
    """What a function assigns; a lambda nothing."""
    return (
        set(target_names(function.body)) | getattr(function, "bound", set())
        if isinstance(function.body, list)
        else set()
    )
