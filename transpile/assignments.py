"""Assignments: what a name, an item or a field becomes, and what of a view stays one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gast

from . import construct
from .construct import const, value_of
from .exits import LATER
from .program import (
    Assign,
    At,
    Call,
    Expr,
    Index,
    Name,
    Type,
)
from .values import (
    Broken,
    Choice,
    Closure,
    Collected,
    Generator,
    Later,
    ListValue,
    Static,
    Tuple,
    Value,
    View,
    plain,
)

# What is an array without axes where others give a number.
_BOXES = frozenset("where zeros ones full empty copy broadcast_to reshape squeeze transpose asarray array".split())

_UNPACK = "as many names as items; a name with * takes the rest; of an array, index it: a, b = x[0], x[1]"


class Assignments:
    """Mixed into the checker of functions."""

    def _assigned_value(self: Any, node: Any, target: Any) -> Value:
        name = target.id if isinstance(target, gast.Name) else ""
        hint = plain(name) if name else "items"
        if isinstance(node, gast.Name) and node.id == LATER:
            return Later()
        if (
            isinstance(node, gast.Tuple)
            and isinstance(target, (gast.Tuple, gast.List))
            and len(node.elts) == len(target.elts)
            and not any(isinstance(e, gast.Starred) for e in (*node.elts, *target.elts))
        ):
            targets = {id(v): t for v, t in zip(node.elts, target.elts, strict=True)}
            return Tuple(tuple(self.values(node.elts, lambda v: self._assigned_value(v, targets[id(v)]))))
        if isinstance(node, gast.List) and name in self.popped:
            if node.elts:
                raise self.fail(
                    node, "unsupported", "a list that is popped from begins empty here", "append its first items"
                )
            return self.new_stack()
        if isinstance(node, gast.List) and (not node.elts or name in self.appending):
            return self.new_list(node, hint, tuple(zip(self.values(node.elts), node.elts, strict=True)))
        if isinstance(node, gast.ListComp):
            return self.comprehension(node, hint)
        return self.value_or_list(node)

    def assign(self: Any, target: Any, value: Value, node: Any) -> Value:
        """Binds a target; returns what a further target of the same statement should get."""
        match target:
            case gast.Name(id=id):
                return self._bind_name(id, value, node, target)
            case gast.Tuple(elts=elts) | gast.List(elts=elts):
                items = self._unpack(self.unlisted(value, node), elts, target)
                # All values are taken before any target is assigned: a, b = b, a.
                if any(not isinstance(e, gast.Name) for e in elts):
                    items = tuple(self._held(v, node) for v in items)
                for element, item in zip(elts, items, strict=True):
                    self.assign(element, item, node)
                return value
            case gast.Subscript(value=base, slice=slice):
                value = self._held(self.unlisted(value, node), node)
                self.store(base, slice, self.as_expr(value, node), None, node)
                return value
            case gast.Attribute(value=gast.Name(id="self"), attr=attr):
                return self._assign_field(attr, value, target, node)
            case gast.Starred(value=inner):
                return self.assign(inner, value, node)
        raise self.fail(target, "unsupported", "cannot assign to this")

    def _held(self: Any, value: Value, node: Any) -> Value:
        """A value as it is now, before an assignment into an array changes what it is read from. Parts of arrays
        are views."""
        if isinstance(value, (Index, Call)) and not self._is_view(value) and (isinstance(value, Index) or value.args):
            if isinstance(node, gast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], gast.Subscript):
                return value  # nothing else is assigned
            name = self.fresh("held")
            self.emit(Assign(name, value, self.span(node)))
            return Name(name, value.type, value_of(value), self.span(node))
        return value

    def _assign_field(self: Any, attr: str, value: Value, target: Any, node: Any) -> Value:
        known = self.env.get(f"self.{attr}")
        if attr not in self.states:
            what = (
                "is not a State of the layer" if known is None else "is a Param or config, which a layer cannot assign"
            )
            # The field keeps its value, so that what follows is checked too.
            self.keep(
                self.fail(
                    target, "role", f"self.{attr} {what}", "only State fields are assigned; solvers change Params"
                )
            )
            return value
        type = self.states[attr]
        expr = construct.convert(self._fitting(self.as_expr(value, node), type, attr, node), type)
        return self._bind_name(f"self.{attr}", expr, node, target, base=attr)

    def _fitting(self: Any, expr: Expr, type: Type, attr: str, node: Any) -> Expr:
        if expr.type.shape != type.shape:
            found, declared = construct.shape_text(expr.type.shape), construct.shape_text(type.shape)
            raise self.fail(
                node,
                "shape",
                f"the state {attr} has shape {declared}, this is {found}",
                "assign a value of the declared shape"
                if expr.type.rank
                else f"np.full_like(self.{attr}, value) fills it",
            )
        if expr.type.is_float and not type.is_float:
            raise self.fail(
                node, "type", f"the state {attr} is {type.dtype}, this is {expr.type.dtype}", "convert it: .astype(...)"
            )
        return expr

    def _unpack(self: Any, value: Value, elts: list[Any], target: Any) -> tuple[Value, ...]:
        if isinstance(value, Tuple):
            items: tuple[Value, ...] = value.items
        else:
            expr = self.as_expr(value, target)
            extent = expr.type.shape[0].value if expr.type.rank else None
            if extent is None:
                raise self.fail(
                    target, "type", "only tuples, and arrays with a known first extent, can be unpacked", _UNPACK
                )
            items = tuple(construct.index(expr, [At(const(i))]) for i in range(extent))
        starred = [k for k, e in enumerate(elts) if isinstance(e, gast.Starred)]
        if starred and len(items) >= len(elts) - 1:  # a, *b, c = items
            first, after = starred[0], len(items) - (len(elts) - starred[0] - 1)
            items = (*items[:first], Tuple(items[first:after]), *items[after:])
        if len(items) != len(elts):
            raise self.fail(target, "type", f"expected {len(elts)} values to unpack, got {len(items)}", _UNPACK)
        return items

    def _bind_name(self: Any, id: str, value: Value, node: Any, target: Any, base: str = "") -> Value:
        if isinstance(value, Tuple):
            value = replace(value, items=tuple(self._named_item(id, v, node, target) for v in value.items))
        if isinstance(value, ListValue) and value.type is None and value.name.startswith("saved"):
            value.name = self.fresh(id)
        if isinstance(value, (Tuple, Static, Closure, Generator, Later, Broken, View, Collected, ListValue)):
            self.env[id] = value
            return value
        if isinstance(value, Choice):
            self.env[id] = self.settled_choice(value, node)
            return self.env[id]
        if isinstance(value, Name) and value.value is not None:  # a loop counter or config integer, which never changes
            self.env[id] = value
            return value
        if (choice := self.choice_of_parts(value, node)) is not None:
            self.env[id] = choice
            return choice
        if self._is_view(value) and (id in self.mutated or self._root_mutated(value) or id in self.chosen):
            view: Value = self._as_view(value, node)
            self.env[id] = view
            return view
        if id in self.mutated and not value.type.rank and isinstance(value, Call) and self._shows(value):
            raise self.fail(
                node, "aliasing", f"{plain(id)} shows an element of an array, and is updated in place", "index it: x[0]"
            )
        name = self.fresh(base or plain(id))
        self.meant[name] = id
        self.emit(Assign(name, value, self.span(node)))
        self.born[name] = self.loops
        if not value.type.rank and self.is_box(value):
            self.boxes[name] = self.boxes[value.id] if isinstance(value, Name) else name
        bound = Name(name, value.type, value_of(value), self.span(target))
        self.env[id] = bound
        return bound

    def is_box(self: Any, value: Expr) -> bool:
        """Whether a scalar is an array without axes, which is no number to Python."""
        match value:
            case Name(id=id):
                return id in self.boxes
            case Call(op=op, span=span):
                return op in _BOXES and span not in self.ternaries
        return False

    def _named_item(self: Any, id: str, value: Value, node: Any, target: Any) -> Value:
        """An item of a tuple that gets a name: computed now, once."""
        if isinstance(value, Tuple):
            return replace(value, items=tuple(self._named_item(id, v, node, target) for v in value.items))
        if isinstance(value, Choice):
            return self.settled_choice(value, node)
        if not isinstance(value, (Index, Call)) or self._is_view(value) or value_of(value) is not None:
            return value
        name = self.fresh(plain(id))
        self.emit(Assign(name, value, self.span(node)))
        return Name(name, value.type, None, self.span(target))

    # -- small statements --------------------------------------------------------------------------------------


__all__ = ["Assignments"]
