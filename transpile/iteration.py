"""`for` loops: over range, an array's first axis, enumerate, zip and reversed, all as one counted loop."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gast

from . import construct
from .construct import const, value_of
from .dims import ZERO, Atom, Dim, nonnegative
from .mutation import target_names
from .program import Assert, Assign, At, Const, Expr, For, Name, Type, names
from .values import LOOPED, Broken, Tuple, Value, leaves

MOST_APART = 8  # iterations of a loop that are typed one by one, because sizes depend on what it counts


@dataclass(frozen=True)
class Range:
    """Counts from start by step to before stop; `item(i)` is what the loop's target gets."""

    start: Expr
    stop: Expr
    step: int
    item: Callable[[Expr], Value]
    hint: str = "i"


class Iteration:
    """Mixed into the checker of functions."""

    def for_loop(self: Any, node: Any) -> None:
        if node.orelse:
            raise self.fail(
                node,
                "statement",
                "else on a loop is not part of the subset",
                "set a variable before the loop, and test it after",
            )
        targets = {n.id for n in gast.walk(node.target) if isinstance(n, gast.Name)}
        items = self.items_over(node.iter)
        apart = builtins.id(node) in self.apart
        if items is not None and (apart or targets & self.mutated or not _alike(items)):
            self.again.clear()
            self._one_by_one(node, items)
            return
        loop, before = self._range(node.iter), len(self.reporter.mistakes)
        numbers = _numbers(loop)
        if apart and numbers:
            self._one_by_one(node, numbers)
            return
        direct = isinstance(node.target, gast.Name) and loop.hint == "="
        var = self.fresh(_counter(node.target.id) if direct else "i" if loop.hint == "=" else loop.hint)
        counter = Name(var, Type("int", pythons=True), Dim.of(var), self.span(node.target))
        for id in targets:
            self.env.pop(id, None)
        self.counters.add(var)
        loop = self._with_own_bounds(loop, node)

        def body() -> tuple[None, list[Any]]:
            self.env = dict(self.env)
            self.facts[var] = bounds_of(loop)
            try:
                with self.aside(node.body) as inside:
                    if direct:
                        self.env[node.target.id] = counter
                    else:
                        self.assign(node.target, loop.item(counter), node.target)
                    self.block(node.body)
                return None, inside
            finally:
                del self.facts[var]

        # What is looped over is what it was before the loop, also where the body gives its name to something else.
        held = f"{LOOPED} {var}"
        self.env[held] = loop.item(counter)
        _, statements = self.carried(node, body, _number(loop, var), construct.trips(loop.start, loop.stop, loop.step))
        del self.env[held]
        for id in targets:
            self.env[id] = Broken(
                f"{id} counts the loop, which may not run", "keep it under another name, given a value before the loop"
            )
        self.emit(For(var, loop.start, loop.stop, loop.step, tuple(statements), self.span(node)))
        if len(self.reporter.mistakes) > before and 0 < len(items or numbers) <= MOST_APART:
            self.few.add(builtins.id(node))

    def _one_by_one(self: Any, node: Any, items: Sequence[Value]) -> None:
        """A loop over a tuple whose items are no array together, or are written into, or one whose items sizes depend
        on: its body for each of them."""
        path = self.path
        for number, item in enumerate(items):
            self.path = (*path, id(node), number)
            self.assign(node.target, item, node.target)
            self.block(node.body)
        self.path = path

    def _with_own_bounds(self: Any, loop: Range, node: Any) -> Range:
        """Bounds are what they are before the loop, also where its body gives their names to something else."""
        assigned = set(target_names(node.body))
        written = {v.id for k, v in self.env.items() if k in assigned and isinstance(v, Name)}

        def own(bound: Expr, hint: str) -> Expr:
            if not names(bound) & written:
                return bound
            if (known := value_of(bound)) is not None and not known.symbols() & written:
                return construct.dim(known)
            name = self.fresh(hint)
            self.emit(Assign(name, bound, self.span(node)))
            return Name(name, bound.type, value_of(bound), self.span(node))

        return replace(loop, start=own(loop.start, "start"), stop=own(loop.stop, "stop"))

    def _range(self: Any, node: Any) -> Range:
        if isinstance(node, gast.Call) and all(k.arg == "start" for k in node.keywords):
            dotted = self._called(node.func)
            if dotted == "enumerate":
                node = gast.copy_location(
                    gast.Call(func=node.func, args=[*node.args, *(k.value for k in node.keywords)], keywords=[]), node
                )
            if dotted == "range" and not node.keywords and 1 <= len(node.args) <= 3:
                return self._counted(node)
            if dotted == "reversed" and len(node.args) == 1:
                return _reverse(self._range(node.args[0]))
            if dotted == "enumerate" and len(node.args) in (1, 2):
                start = self.typed(node.args[1]) if len(node.args) == 2 else const(0)
                if not start.type.is_integer or start.type.rank:
                    raise self.fail(node.args[1], "type", f"enumerate counts from an integer, got {start.type}")
                inner = self._range(node.args[0])
                return Range(
                    inner.start, inner.stop, inner.step, lambda i: Tuple((_offset(i, inner, start), inner.item(i))), "i"
                )
            if dotted == "zip" and node.args:
                return self._zipped([self._range(a) for a in node.args], node)
        array = self.unlisted(self.value_or_list(node), node)
        if isinstance(array, Tuple):
            if (counted := _progression(array)) is not None:
                return counted
            array = self.stacked_items(array, node)
        expr = self.as_expr(array, node)
        if not expr.type.rank:
            raise self.fail(node, "type", "cannot loop over a scalar", "loop over range(n)")
        stop = construct.call("extent", expr, axis=0)
        return Range(const(0), stop, 1, lambda i: construct.index(expr, [At(i)]), "i")

    def _counted(self: Any, node: Any) -> Range:
        bounds = [self.typed(a) for a in node.args]
        for bound, arg in zip(bounds, node.args, strict=True):
            if not bound.type.is_integer or bound.type.rank:
                raise self.fail(arg, "type", f"range takes integers, got {bound.type}")
        start, stop = (const(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = 1
        if len(bounds) == 3:
            known = value_of(bounds[2])
            if known is not None and known.value is None:
                return self._strided(start, stop, known, node)
            if known is None:
                raise self.fail(
                    node.args[2],
                    "type",
                    "the step of a range must be known from shapes and configuration",
                    "count by 1 in a while loop: i = 0; while i < n: ...; i += step",
                )
            step = known.value or 0
            if step == 0:
                raise self.fail(node.args[2], "type", "the step of a range cannot be zero")
        return Range(start, stop, step, lambda i: i, "=")

    def _strided(self: Any, start: Expr, stop: Expr, step: Dim, node: Any) -> Range:
        """By a step from shapes or configuration, which must be positive: i = start + step * k for k from 0."""
        first, last = value_of(start), value_of(stop)
        if first is None or last is None:
            raise self.fail(node, "unsupported", "with such a step, range needs bounds known from shapes")
        if not nonnegative(step - 1, self.facts):
            positive = construct.call("greater", construct.dim(step), const(0))
            self.emit(Assert(positive, f"the step {step} of a range is not positive", self.span(node), "ValueError"))
        number = construct.dim((last - first + step - 1) // step)
        place = construct.dim(step)

        def item(k: Expr) -> Expr:
            scaled = construct.call("multiply", k, place)
            return scaled if first == ZERO else construct.call("add", start, scaled)

        return Range(const(0), number, 1, item, "k")

    def _zipped(self: Any, parts: list[Range], node: Any) -> Range:
        """All parts by one counter from 0; the shortest ends the loop."""
        counts = [c for p in parts if (c := construct.trips(p.start, p.stop, p.step)) is not None]
        if len(counts) < len(parts):
            raise self.fail(node, "unsupported", "zip needs lengths known from shapes")
        shortest = counts[0]
        for count in counts[1:]:
            shortest = construct.minimum(shortest, count, self.facts)
        return Range(
            const(0),
            construct.dim(shortest),
            1,
            lambda i: Tuple(tuple(p.item(_nth(p, i)) for p in parts)),
            "i",
        )


def _numbers(loop: Range) -> list[Value]:
    """What a range counts, if it is known at build time and not much."""
    count = construct.trips(loop.start, loop.stop, loop.step)
    start = value_of(loop.start)
    if loop.hint != "=" or count is None or count.value is None or start is None or start.value is None:
        return []
    return [const(start.value + k * loop.step) for k in range(min(count.value, MOST_APART + 1))]


def _progression(items: Tuple) -> Range | None:
    """What a range would count: (0, 1), (-1, 1), (4, 2, 0)."""
    numbers = [v.value for v in items.items if isinstance(v, Const) and type(v.value) is int and v.type.is_integer]
    if not 2 <= len(numbers) == len(items.items):
        return None
    first, step, count = numbers[0], numbers[1] - numbers[0], len(numbers)
    if step == 0 or numbers != [first + k * step for k in range(count)]:
        return None
    return Range(const(first), const(first + count * step), step, lambda i: i, "=")


def _alike(items: tuple[Value, ...]) -> bool:
    """Whether the items can be the rows of one array."""
    kinds = {tuple((path, getattr(v, "type", None)) for path, v in leaves(item)) for item in items}
    return len(kinds) == 1 and all(type is not None for _, type in next(iter(kinds)))


def _number(loop: Range, var: str) -> Dim | None:
    """The number of the iteration, from 0."""
    start = value_of(loop.start)
    if start is None:
        return None
    passed = Dim.of(var) - start if loop.step > 0 else start - Dim.of(var)
    return passed // abs(loop.step)


def _nth(loop: Range, i: Expr) -> Expr:
    scaled = i if loop.step == 1 else construct.call("multiply", i, const(loop.step))
    return scaled if loop.start == const(0) else construct.call("add", loop.start, scaled)


def _offset(i: Expr, loop: Range, start: Expr) -> Expr:
    if loop.step != 1 or loop.start != const(0):
        i = construct.call("floor_divide", construct.call("subtract", i, loop.start), const(loop.step))
    return i if start == const(0) else construct.call("add", i, start)


def _reverse(loop: Range) -> Range:
    """The same numbers from the last to the first."""
    one = const(abs(loop.step))
    if loop.step in (1, -1):
        last = construct.call("subtract" if loop.step > 0 else "add", loop.stop, one)
    else:
        count = construct.trips(loop.start, loop.stop, loop.step)
        start = value_of(loop.start)
        if count is None or start is None:
            raise construct.TypingError("unsupported", "reversed needs bounds known from shapes")
        last = construct.dim(start + (count - 1) * loop.step)
    stop = construct.call("subtract" if loop.step > 0 else "add", loop.start, const(1))
    return Range(_folded(last), _folded(stop), -loop.step, loop.item, loop.hint)


def _folded(expr: Expr) -> Expr:
    value = value_of(expr)
    return const(value.value) if value is not None and value.value is not None else expr


def bounds_of(loop: Range | For) -> tuple[Dim, Dim]:
    """The lowest and highest value of the counter, where they are known."""
    start, stop = value_of(loop.start), value_of(loop.stop)
    unknown = Dim.of(Atom("unknown", (id(loop),)))
    if loop.step > 0:
        return (start if start is not None else unknown, stop - 1 if stop is not None else unknown)
    return (stop + 1 if stop is not None else unknown, start if start is not None else unknown)


def _counter(id: str) -> str:
    """What a loop counter is called: for y in range(h): for dy in range(-1, 2) leave their names to the output and its
    cotangent."""
    return f"{id}_2" if re.fullmatch(r"d?y\d*", id) else id


__all__ = ["Iteration", "bounds_of", "nonnegative"]
