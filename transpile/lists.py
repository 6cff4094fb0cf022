"""Lists that arrays are collected in: `ys = []`, `ys.append(v)`, comprehensions; then np.stack(ys), ys[i],
len(ys), a loop over it.

    ys = []                              ys = np.empty((T, D))
    for t in range(T):          ->       for t in range(T):
        ys.append(x[t] * h)                  ys[t] = x[t] * h

A list that only straight lines append to is a tuple of its items. One that a loop appends to is an array with a
leading axis for its items, made where the list is. How many there will be is known after the function has been
typed once, so then it is typed again: `plans` hands that on. A list that is also popped from is a stack
(`ListValue`), whose length nobody needs to know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import gast

from . import construct
from .construct import value_of
from .dims import ONE, ZERO, Dim, maximum, nonnegative, of_either
from .errors import Suppressed
from .joins import joined
from .program import Assign, At, Call, Expr, Index, Name, Pop, Push, Slice, Type
from .typing import TypingError
from .values import Collected, ListValue, Static, Tuple, Value

Key = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What an earlier typing of the function found out about a list."""

    length: Dim
    element: Type | None
    looped: bool


@dataclass(frozen=True)
class Items:
    """A list as far as it is filled."""

    name: str
    depth: int  # in how many loops it was made
    items: tuple[Value, ...] = ()
    length: Dim = ZERO
    element: Type | None = None
    looped: bool = False  # is (or will be) an array
    broken: str = ""  # why its length is not known
    scope: frozenset[str] = frozenset()  # the counters of loops around its making, among others


class Lists:
    """Mixed into the checker of functions, which starts with `lists` and `found` empty."""

    lists: dict[Key, Items]
    found: dict[Key, Plan]  # what this typing learns
    plans: dict[Key, Plan]  # what the one before has learned
    path: Key  # the calls of helpers that led here

    # -- making ------------------------------------------------------------------------------------------------
    def new_list(self: Any, node: Any, hint: str, items: tuple[tuple[Value, Any], ...] = ()) -> Value:
        key = (*self.path, id(node))
        plan = self.plans.get(key)
        made = Items(
            self.fresh(hint),
            self.loops,
            looped=plan is not None and plan.looped,
            element=plan and plan.element,
            scope=frozenset(self.facts),
        )
        if plan is not None and plan.looped and plan.element is not None:
            shape = (plan.length, *plan.element.shape)
            self.emit(
                Assign(made.name, construct.call("empty", shape=shape, dtype=plan.element.dtype), self.span(node))
            )
        self._keep(key, made)
        for value, item in items:
            self._append(key, value, item)
        return Collected(key)

    def new_stack(self: Any) -> ListValue:
        made = ListValue(self.fresh("saved"))
        made.position = (self.out, len(self.out))
        return made

    def comprehension(self: Any, node: Any, hint: str = "items") -> Value:
        """[f(i) for i in range(n)]: a loop that appends; over a tuple, the tuple of the results."""
        first = node.generators[0]
        if any(g.is_async for g in node.generators):
            raise self.fail(node, "unsupported", "async is not part of the subset")
        outer = dict(self.env)
        try:
            over = self.items_over(first.iter) if len(node.generators) == 1 and not first.ifs else None
            if over is not None:
                return Tuple(tuple(self._one(first.target, v, node) for v in over))
            made = self.new_list(node, hint)
            self.env["<list>"] = made
            self._run([_nest(node)])
        finally:
            self.env = {**outer, **self.drawn()}
        return self.unlisted(made, node)

    def items_over(self: Any, node: Any) -> tuple[Value, ...] | None:
        """The items of a tuple, or those of tuples zipped, counted or reversed; None for all else, which a loop runs
        over."""
        if isinstance(node, gast.Call):
            called = self._called(node.func)
            if called not in ("zip", "enumerate", "reversed") or not node.args or node.keywords:
                return None
            parts = [self.items_over(a) for a in (node.args if called == "zip" else node.args[:1])]
            if None in parts:
                return None
            if called == "reversed":
                return tuple(reversed(parts[0]))
            if called == "enumerate":
                start = value_of(self.typed(node.args[1])) if len(node.args) == 2 else ZERO
                if start is None:
                    return None
                parts.insert(0, [construct.dim(start + k) for k in range(len(parts[0]))])
            return tuple(map(Tuple, zip(*parts, strict=False)))
        if not isinstance(node, (gast.Name, gast.Tuple, gast.List)):
            return None
        over = self.value(node)
        if isinstance(node, (gast.Tuple, gast.List)):
            self.again[id(node)] = over
        return over.items if isinstance(over, Tuple) else None

    def _one(self: Any, target: Any, item: Value, node: Any) -> Value:
        if isinstance(target, gast.Tuple) and isinstance(item, Tuple) and len(target.elts) == len(item.items):
            for part, value in zip(target.elts, item.items, strict=True):
                self._counted_off(part, value, node)
        else:
            self._counted_off(target, item, node)
        return self.value(node.elt)

    def _counted_off(self: Any, target: Any, item: Value, node: Any) -> None:
        """Binds a name that the comprehension alone sees: a value that has a name needs no other."""
        if isinstance(target, gast.Name) and isinstance(item, Name) and target.id not in self.mutated:
            self.env[target.id] = item
        else:
            self.assign(target, item, node)

    def _run(self: Any, nodes: list[Any]) -> None:
        mistakes = len(self.reporter.mistakes)
        self.block(nodes)
        if len(self.reporter.mistakes) > mistakes:
            raise Suppressed

    # -- growing -----------------------------------------------------------------------------------------------
    def list_call(self: Any, receiver: Any, node: Any, attr: str) -> Value:
        if isinstance(receiver, ListValue):
            return self._stack_call(receiver, node, attr)
        if node.keywords or attr not in ("append", "extend") or len(node.args) != 1:
            raise self.fail(
                node,
                "unsupported",
                f"lists have no method {attr} here",
                "append and extend; pop for lists that a while loop fills",
            )
        value = self.value_or_list(node.args[0])
        if attr == "append":
            self._append(receiver.key, value, node.args[0])
            return Static(None)
        value = self.unlisted(value, node.args[0])
        if not isinstance(value, Tuple):
            raise self.fail(
                node, "unsupported", "extend takes a list or tuple written out", "append the items in a loop"
            )
        for item in value.items:
            self._append(receiver.key, item, node.args[0])
        return Static(None)

    def _append(self: Any, key: Key, value: Value, node: Any) -> None:
        state: Items = self.lists[key]
        value = self.unlisted(value, node)
        looped = state.looped or self.loops > state.depth
        if not looped:
            self._keep(
                key, replace(state, items=(*state.items, self._kept_item(state, value, node)), length=state.length + 1)
            )
            return
        if state.items and not self.plans.get(key):  # it was taken for a tuple; the next typing knows better
            for item in state.items:
                state = replace(state, element=self._element(state, item, node))
            state = replace(state, items=())
        element = self._element(state, value, node)
        whole = Name(state.name, Type(element.dtype, (self._total(key, state), *element.shape)))
        target = construct.index(whole, [At(construct.dim(state.length))])
        assert isinstance(target, Index)
        self.store_items(whole, target.items, construct.convert(self.as_expr(value, node), element), node, binds=True)
        self._keep(key, replace(state, length=state.length + 1, element=element, looped=True))

    def _kept_item(self: Any, state: Items, value: Value, node: Any) -> Value:
        """What a tuple holds: the value now, not the expression."""
        if isinstance(value, (Tuple, Static)) or not isinstance(value, (Index, Call)) or self._is_view(value):
            return value
        name = self.fresh(f"{state.name}_item")
        self.emit(Assign(name, value, self.span(node)))
        return Name(name, value.type, construct.value_of(value), self.span(node))

    def _element(self: Any, state: Items, value: Value, node: Any) -> Type:
        expr = self.as_expr(value, node)
        dtype = {"float": "real", "int": "i64"}.get(expr.type.dtype, expr.type.dtype)
        type = Type(dtype, expr.type.shape, expr.type.pythons)
        before = state.element
        if {s for d in type.shape for s in d.symbols()} & (self.facts.keys() - state.scope):
            raise self.fail(
                node,
                "shape",
                "the items of a list must have one shape:"
                f" {construct.shape_text(type.shape)} differs from one to the next",
                "make all of the largest size and store into parts: row[:i] = ...",
            )
        if before is None or before == type:
            return type
        shape = of_either(before.shape, type.shape)
        if shape is None:
            raise self.fail(
                node,
                "shape",
                "the items of a list must have one shape:"
                f" {construct.shape_text(before.shape)} and {construct.shape_text(type.shape)}",
            )
        return replace(joined(before, expr.type, f"an item of {state.name}"), shape=shape)

    def _keep(self: Any, key: Key, state: Items) -> None:
        self.lists[key] = state
        before = self.found.get(key)
        looped = state.looped or (before is not None and before.looped)
        self.found[key] = Plan(state.length, state.element or (before and before.element), looped)

    def _total(self: Any, key: Key, state: Items) -> Dim:
        plan = self.plans.get(key)
        return plan.length if plan is not None and plan.looped else Dim.of(f"len {state.name}")

    # -- loops and branches ------------------------------------------------------------------------------------
    def grow(self: Any, growth: dict[Key, Dim], position: Dim | None) -> None:
        """The lengths at the start of an iteration."""
        for key, each in growth.items():
            if position is not None:
                self.lists[key] = replace(self.lists[key], length=self.lists[key].length + each * position)

    def grown(
        self: Any, before: dict[Key, Items], growth: dict[Key, Dim], position: Dim | None, trips: Dim | None
    ) -> dict[Key, Dim]:
        """How much each list grows in an iteration, where that is not what was assumed."""
        found = {}
        for key, was in before.items():
            start = was.length + (growth.get(key, ZERO) * position if position is not None else ZERO)
            each = self.lists[key].length - start
            if each != growth.get(key, ZERO):
                if position is None or trips is None or each.symbols() & (self.counters - self.facts.keys()):
                    self._spoil(key, "is appended to a number of times that depends on values")
                    continue
                found[key] = each
        return found

    def after_loop(self: Any, before: dict[Key, Items], growth: dict[Key, Dim], trips: Dim | None) -> dict[Key, Items]:
        left = {}
        for key, now in self.lists.items():
            if key in before and not now.broken and now.length != before[key].length and trips is not None:
                count = trips if nonnegative(trips, self.facts) else maximum(trips, ZERO, self.facts)
                now = replace(now, length=before[key].length + growth.get(key, ZERO) * count)
            left[key] = now
            self._keep(key, now)
        return left

    def join_lists(self: Any, then: dict[Key, Items], orelse: dict[Key, Items]) -> None:
        """The lists after an `if`: they must have grown alike."""
        self.lists = dict(orelse)
        for key, a in then.items():
            b = orelse.get(key)
            if b is None or a == b:
                self._keep(key, a)
            elif a.length != b.length or a.broken or b.broken:
                self._keep(key, b)
                self._spoil(key, "is appended to under a condition")
            else:
                self._keep(key, replace(b, element=a.element or b.element, looped=True))

    def _spoil(self: Any, key: Key, why: str) -> None:
        self._keep(key, replace(self.lists[key], broken=why, looped=True))

    # -- using -------------------------------------------------------------------------------------------------
    def unlisted(self: Any, value: Value, node: Any) -> Value:
        """A list as the tuple or the array that it is."""
        if not isinstance(value, Collected):
            return value
        state: Items = self.lists[value.key]
        if state.broken:
            raise self.fail(
                node,
                "shape",
                f"the list {state.name} {state.broken}, so the shape of its items together would",
                "make an array of the largest size and store into it: ys = np.zeros((n, d)); ys[i] = v",
            )
        if not state.looped:
            return Tuple(state.items)
        if state.element is None:
            raise self.fail(node, "type", f"nothing was appended to {state.name} yet", "begin with an item: [first]")
        total = self._total(value.key, state)
        known = value.key in self.plans
        shape = (total if known else state.length, *state.element.shape)
        whole = Name(state.name, replace(state.element, shape=shape))  # an item is Python's own if it was
        if not known or total == state.length:
            return whole
        return construct.index(
            whole, [Slice(None, construct.dim(state.length), 1, ZERO, state.length)], self.span(node)
        )

    def value_or_list(self: Any, node: Any) -> Value:
        """The value of a node, where a list may stand for itself."""
        if isinstance(node, gast.Name) and isinstance(self.env.get(node.id), (Collected, ListValue)):
            return self.env[node.id]
        return self.value(node)

    def is_array_list(self: Any, node: Any) -> bool:
        """Whether Python would see a list where an array stands for it: arithmetic then means something else."""
        if isinstance(node, (gast.ListComp, gast.GeneratorExp)):
            return True
        value = self.env.get(node.id) if isinstance(node, gast.Name) else None
        return isinstance(value, Collected) and self.lists[value.key].looped

    def call_np_stack(self: Any, node: Any) -> Value:
        axis = self._only_axis(node, "np.stack")
        expr = self._whole_list(node)
        if expr is None:
            return super().call_np_stack(node)  # type: ignore[misc]
        rank = expr.type.rank
        if not -rank <= axis < rank:
            raise TypingError("shape", f"axis {axis} is out of range")
        if axis % rank:
            order = [*range(1, rank)]
            order.insert(axis % rank, 0)
            return construct.call("transpose", expr, axes=tuple(order), span=self.span(node))
        return construct.pythons(expr, False)

    def call_np_concatenate(self: Any, node: Any) -> Value:
        expr = self._whole_list(node)
        if expr is None:
            return self.plain_call(node, "np.concatenate")
        return self._joined_items(expr, self._only_axis(node, "np.concatenate"), node)

    def _joined_items(self: Any, expr: Expr, axis: int, node: Any) -> Expr:
        """What the items of a list are along one of their axes."""
        rank = expr.type.rank - 1
        if not -rank <= axis < rank:
            raise TypingError("shape", f"axis {axis} is out of range")
        axis %= rank
        count, *shape = expr.type.shape
        if axis:
            order = [*range(1, rank + 1)]
            order.insert(axis, 0)
            expr = construct.call("transpose", expr, axes=tuple(order))
        merged = (*shape[:axis], count * shape[axis], *shape[axis + 1 :])
        return construct.call("reshape", expr, shape=merged, span=self.span(node))

    def call_np_vstack(self: Any, node: Any) -> Value:
        expr = self._whole_list(node)
        if expr is None:
            return super().call_np_vstack(node)  # type: ignore[misc]
        return expr if expr.type.rank == 2 else self._joined_items(expr, 0, node)

    def call_sum(self: Any, node: Any) -> Value:
        """Python's sum: over the items, that is over the first axis."""
        if node.keywords or len(node.args) not in (1, 2):
            raise self.fail(node, "type", "sum takes a sequence, and a start")
        value = self.unlisted(self.value_or_list(node.args[0]), node.args[0])
        start = self.typed(node.args[1]) if len(node.args) == 2 else None
        if isinstance(value, Tuple):
            items = [self.as_expr(item, node) for item in value.items]
            if start is not None or not items or items[0].type.dtype == "bool":
                items.insert(0, start or construct.const(0))
            return construct.pythons(reduce(partial(construct.call, "add"), items), construct.owner(items))
        expr = self.as_expr(value, node)
        if not expr.type.rank:
            raise self.fail(node, "type", "sum takes a sequence, got a scalar")
        total = construct.call("sum", expr, axis=0, span=self.span(node))
        return total if start is None else construct.call("add", total, start, span=self.span(node))

    def _whole_list(self: Any, node: Any) -> Expr | None:
        """The argument of np.stack and the like, if it is a list that is an array."""
        if not node.args:
            return None
        value = self.unlisted(self.value_or_list(node.args[0]), node.args[0])
        if isinstance(value, Tuple) and not isinstance(node.args[0], gast.Name):
            self.again[id(node.args[0])] = value
            return None
        if isinstance(value, ListValue):
            raise self.fail(
                node,
                "shape",
                "the length of this list depends on values, and the shape of its items together with it",
                "make an array of the largest size and store into it: ys = np.zeros((n, d)); ys[i] = v",
            )
        if isinstance(value, (Tuple, Static)):
            return None
        whole = self.as_expr(value, node)
        if whole.type.rank and not nonnegative(whole.type.shape[0] - 1, self.facts):
            some = construct.call("greater", construct.dim(whole.type.shape[0]), construct.const(0))
            self.require(some, "need at least one array to put together", node)
        return construct.call("copy", whole) if self.mutating else whole

    def _only_axis(self: Any, node: Any, name: str) -> int:
        given = self._given(node, name, "arrays axis", 1)
        return (
            self._static_int(given["axis"], "axis", f"several arrays are one tuple: {name}((x, y))")
            if "axis" in given
            else 0
        )

    # -- stacks: what a while loop saves -----------------------------------------------------------------------
    def _stack_call(self: Any, receiver: ListValue, node: Any, attr: str) -> Value:
        if attr == "append" and len(node.args) == 1:
            value = self.typed(node.args[0])
            if receiver.type is None:
                receiver.type = Type(
                    {"float": "real", "int": "i64"}.get(value.type.dtype, value.type.dtype), value.type.shape
                )
                assert receiver.position is not None
                out, position = receiver.position
                self.inserted += 1
                out.insert(position, Assign(receiver.name, Call("list", (), (("type", receiver.type),), receiver.type)))
            self.emit(
                Push(Name(receiver.name, receiver.type), construct.convert(value, receiver.type), self.span(node))
            )
            return Static(None)
        if attr == "pop" and not node.args:
            if receiver.type is None:
                raise self.fail(node, "type", "pop from a list that nothing was appended to")
            name = self.fresh(f"{receiver.name}_last")
            self.emit(Pop(name, Name(receiver.name, receiver.type), receiver.type, self.span(node)))
            return Name(name, receiver.type)
        raise self.fail(node, "unsupported", f"lists have no method {attr} here", "append and pop")


def popped_names(function: Any) -> set[str]:
    """Names of lists that a function pops from."""
    return {
        node.func.value.id
        for node in gast.walk(function)
        if isinstance(node, gast.Call)
        and isinstance(node.func, gast.Attribute)
        and node.func.attr == "pop"
        and isinstance(node.func.value, gast.Name)
    }


def appended_names(function: Any) -> set[str]:
    """Names of lists that a function appends to."""
    return {
        node.func.value.id
        for node in gast.walk(function)
        if isinstance(node, gast.Call)
        and isinstance(node.func, gast.Attribute)
        and node.func.attr in ("append", "extend")
        and isinstance(node.func.value, gast.Name)
    }


def _nest(node: Any) -> Any:
    """The loops of a comprehension around `<list>.append(item)`."""

    def at(made: Any) -> Any:
        return gast.copy_location(made, node)

    name = at(gast.Name(id="<list>", ctx=gast.Load(), annotation=None, type_comment=None))
    append = at(gast.Attribute(value=name, attr="append", ctx=gast.Load()))
    body: Any = at(gast.Expr(value=gast.copy_location(gast.Call(func=append, args=[node.elt], keywords=[]), node.elt)))
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            body = at(gast.If(test=test, body=[body], orelse=[]))
        body = at(gast.For(target=generator.target, iter=generator.iter, body=[body], orelse=[], type_comment=None))
    return body


__all__ = ["ONE", "Items", "Lists", "Plan", "appended_names", "popped_names"]
