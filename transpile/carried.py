"""What loops carry: names that a body binds anew become variables that go from one iteration to the next, and mean one
thing before, in and after the loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import construct
from .choices import bound_by
from .dims import Dim, of_either
from .joins import OBJECTS, deliver, is_array, is_object, joined, read_by_others, reads, value_names
from .mutation import target_names
from .program import (
    Assign,
    Const,
    Expr,
    Name,
    Stmt,
    Type,
)
from .typing import TypingError, broadcast
from .values import (
    Broken,
    Choice,
    Later,
    Tuple,
    Value,
    View,
    leaves,
    map_leaves,
    shown,
)
from .views import root_of

# What a loop's body gives names, by the name and its place in a tuple; None: an array that is made there.
Offered = dict[tuple[str, tuple[int, ...]], tuple[View | None, ...]]


class Carried:
    """Mixed into the checker of functions."""

    def carried(
        self: Any, node: Any, body: Any, position: Dim | None = None, trips: Dim | None = None
    ) -> tuple[Any, list[Stmt]]:
        """Runs `body` with the names it reassigns turned into variables that the loop carries. `position`: the
        number of the iteration, `trips`: how many there are, where these follow from shapes.

        The body is typed again as long as a variable turns out wider than it was before the loop, or a list to grow.
        """
        entry, lists = dict(self.env), dict(self.lists)
        bound_anew = [n for n in dict.fromkeys(target_names(node.body, self._written_in_place)) if n in entry]
        counts = self.counts(bound_anew, node.body, position, trips)
        reassigned = [n for n in bound_anew if n not in counts]
        promoted: dict[tuple[str, tuple[int, ...]], Type] = {}
        offered: Offered = {}
        growth: dict[Any, Dim] = {}
        strides: dict[str, Dim] = {}
        unstable: set[str] = set()
        while True:
            mark, used, shown = len(self.out) - self.inserted, set(self.fresh.used), dict(self.shown_by)
            self.env, self.lists = dict(entry), dict(lists)
            for id in unstable:
                self.env[id] = _unstable(id)
                self.undecided.add(id)
            self.stride(entry, strides, position)
            variables: set[str] = set()
            held = {id: self._carry_all(id, promoted, offered, variables, node) for id in reassigned}
            start = dict(self.env)
            self.grow(growth, position)
            self.loops += 1
            mistakes = len(self.reporter.mistakes)
            try:
                result, statements = body()
            finally:
                self.loops -= 1
            self._own(self.env, [id for id in reassigned if self.env.get(id) != start[id]], statements, node)
            more = self.grown(lists, growth, position, trips)
            if len(self.reporter.mistakes) != mistakes:
                if not counts:
                    break
                del self.reporter.mistakes[mistakes:]  # of a turn that is not any turn
                strides, counts, reassigned = {id: n for id, n in strides.items() if id not in counts}, [], bound_anew
                self._again(mark, used, shown)
                continue
            bound = self._bound_in_loop(statements, held, variables)
            if self._offers(start, reassigned, bound, offered):
                self._again(mark, used, shown)
                continue
            if self._disordered(held):
                self._again(mark, used, shown)
                continue
            wider = self._wider(start, reassigned, node)
            changed = {id for id in reassigned if self._object_changed(id, start[id], self.env.get(id))} - unstable
            drew = self.strode(start, strides, counts, reassigned, position, trips)
            if not (wider or more or changed or drew):
                break
            promoted |= wider
            growth |= more
            unstable |= changed
            self._again(mark, used, shown)
        self._deliver_choices(held, statements, self._bound_in_loop(statements, held, variables), node)
        for id, value in held.items():
            self._deliver_carried(id, value, statements, node)
        self._leave_loop(start)
        self.after_strides(entry, strides, position, trips)
        self.lists = self.after_loop(lists, growth, trips)
        return result, statements

    def _again(self: Any, mark: int, used: set[str], shown: dict[str, Choice]) -> None:
        """Back to before the loop: its body is typed again."""
        del self.out[mark + self.inserted :]
        self.fresh.used, self.shown_by = used, shown

    def _disordered(self: Any, held: dict[str, Value]) -> bool:
        """Whether the body leaves a variable an array that may not lie in C order, which it was not known to be."""
        found: set[str] = set()
        for id, value in held.items():
            now = dict(leaves(self.env.get(id, Broken())))
            for path, variable in leaves(value):
                name = getattr(variable.own if isinstance(variable, Choice) else variable, "id", None)
                after = now.get(path, Broken())
                if name is not None and is_array(after) and not all(map(self._in_order, self._shown_as(after))):
                    found.add(name)
        more = found - self.unordered
        self.unordered |= found
        return bool(more)

    def _shown_as(self: Any, value: Value) -> list[Expr]:
        """The arrays that a value may be."""
        views = value.options if isinstance(value, Choice) else (value,)
        return [self.as_expr(view, self.current) for view in views]

    def _offers(self: Any, start: dict[str, Value], reassigned: list[str], bound: set[str], offered: Offered) -> bool:
        """Whether the body leaves a name an array that it was not known to be."""
        before = dict(offered)
        for id in reassigned:
            after = self.env.get(id)
            if after is None or isinstance(after, Broken):
                continue
            now = dict(leaves(after))
            was = dict(leaves(start[id]))
            for path in (path for path in now if path in was):
                more = self.offer(id, was[path], now[path], bound)
                known = offered.get((id, path), ())
                offered[id, path] = (*known, *(view for view in more if view not in known))
        return offered != before

    def _bound_in_loop(self: Any, statements: list[Stmt], held: dict[str, Value], variables: set[str]) -> set[str]:
        """Names that mean something else after a loop than in an iteration: its counter too, and what is bound at the
        end of its body, the variables that it carries and the memory of choices."""
        found = (choice for value in held.values() for _, choice in leaves(value))
        own = set().union(*(choice.variables for choice in found if isinstance(choice, Choice)))
        return bound_by(statements) | variables | own | (self.counters - self.facts.keys())

    def _deliver_choices(self: Any, held: dict[str, Value], statements: list[Stmt], bound: set[str], node: Any) -> None:
        made = []
        for id, value in held.items():
            after = self.env.get(id)
            if after is None or isinstance(after, Broken):
                continue
            now = dict(leaves(after))
            for path, choice in leaves(value):
                if isinstance(choice, Choice) and path in now and now[path] != choice:
                    made.append(self.selected(now[path], choice, bound, node))
        statements += [s for selection in made for s in selection.read]
        statements += [s for selection in made for s in selection.bind]

    def _written_in_place(self: Any, id: str) -> bool:
        """Whether `+=` on this name changes an array, and leaves the name what it is."""
        value = self.env.get(id)
        if isinstance(value, (View, Choice)):
            return True
        return value is not None and not isinstance(value, (*OBJECTS, Tuple, Later, Broken)) and bool(value.type.rank)

    def _leave_loop(self: Any, start: dict[str, Value]) -> None:
        left = self.env
        self.env = start
        for id in (id for id in left if id not in start):
            self.env[id] = Broken(
                f"{shown(id)} is assigned in the loop only, which may not run", "assign it before the loop"
            )
        for id, value in left.items():
            if isinstance(value, Broken):
                self.env[id] = value

    def _carry_all(
        self: Any,
        id: str,
        promoted: dict[tuple[str, tuple[int, ...]], Type],
        offered: Offered,
        variables: set[str],
        node: Any,
    ) -> Value:
        """Makes the variables for one name of the program: one, or one for each item of a tuple. They are added to
        `variables`, but for choices."""

        def carry(path: tuple[int, ...], value: Value) -> Value:
            if (choice := self.carried_choice(id, value, offered.get((id, path), ()), node)) is not None:
                return choice
            if isinstance(value, View) and id not in self.mutated:  # it is never written through
                value = self.as_expr(value, node)
            if is_object(value):
                return value
            variable = self._carry(id, path, value, promoted.get((id, path)), node)
            variables.add(variable.id)
            return variable

        value = self.env[id]
        if isinstance(value, Later):
            if (choice := self.carried_choice(id, value, offered.get((id, ()), ()), node)) is not None:
                self.env[id] = choice
                return choice
            found = {path: type for (name, path), type in promoted.items() if name == id}
            if not found:
                return value
            value = self._blank(id, _nested(found), self.out, node)
            self.env[id] = value
        self.env[id] = map_leaves(value, carry)
        return self.env[id]

    def _carry(self: Any, id: str, path: tuple[int, ...], value: Expr, promoted: Type | None, node: Any) -> Name:
        type = promoted or value.type
        others = set().union(*(value_names(v) for v in [*self.around(), *(v for k, v in self.env.items() if k != id)]))
        made_here = isinstance(value, Name) and any(isinstance(s, Assign) and s.name == value.id for s in self.out)
        shared = bool(path) or not isinstance(value, Name) or value.id in others or not made_here
        if not shared and isinstance(value, Name) and type == value.type:
            name = value.id
        else:
            name = (None if path else self._retyped(value, type)) or self.called(id)
            if name != getattr(value, "id", None):
                self.emit(Assign(name, construct.convert(value, type), self.span(node)))
        return Name(name, type, None, self.span(node))

    def _retyped(self: Any, value: Expr, type: Type) -> str | None:
        """`s = 0.0` before a loop that makes s an array's scalar: the constant itself takes the wider type."""
        for position in reversed(range(len(self.out))):
            stmt = self.out[position]
            if isinstance(value, Name) and isinstance(stmt, Assign) and stmt.name == value.id:
                if (
                    isinstance(stmt.value, Const)
                    and not type.rank
                    and not any(value.id in reads(s) for s in self.out[position + 1 :])
                ):
                    self.out[position] = replace(stmt, value=Const(stmt.value.value, type, stmt.value.span))
                    return stmt.name
                return None
        return None

    def _wider(
        self: Any, start: dict[str, Value], reassigned: list[str], node: Any
    ) -> dict[tuple[str, tuple[int, ...]], Type]:
        """Carried variables whose type after the body is not the one before: the type that holds both."""
        wider: dict[tuple[str, tuple[int, ...]], Type] = {}
        for id in reassigned:
            before, after = start[id], self.env.get(id)
            if after is None or isinstance(after, Broken):
                continue
            if isinstance(before, Choice):
                continue
            if isinstance(before, Later):
                wider |= {
                    (id, path): self._lasting(id, self.as_expr(v, node).type, node)
                    for path, v in leaves(after)
                    if is_array(v)
                }
                continue
            was, now = dict(leaves(before)), dict(leaves(after))
            if was.keys() != now.keys():
                continue
            for path, value in was.items():
                if isinstance(value, Name) and is_array(now[path]):
                    type = self._holding_both(id, value.type, self.as_expr(now[path], node).type, node)
                    if type != value.type or type.pythons is not value.type.pythons:
                        wider[id, path] = type
        return wider

    def _object_changed(self: Any, id: str, before: Value, after: Value | None) -> bool:
        """Whether a name that no variable stands for means something else after the body: its meaning would
        depend on the iteration."""
        if after is None or isinstance(before, (Later, Broken)):
            return False
        if isinstance(after, Broken):  # as a loop inside leaves what is another array there
            return after.message is not None
        was, now = dict(leaves(before)), dict(leaves(after))
        if was.keys() != now.keys():
            return True
        for path, value in was.items():
            other = now[path]
            if isinstance(value, Choice) and is_array(other):
                continue
            if isinstance(value, Name) and isinstance(other, View) and other == View(value, None):
                continue
            if isinstance(other, View) and not is_object(value):
                root = root_of(other.base)
                if (
                    id in self.mutated and self.born.get(root, 0) <= self.loops
                ):  # part of an array that outlives the iteration
                    return True
            elif (is_object(value) or is_object(other)) and value is not other and value != other:
                return True
        return False

    def _holding_both(self: Any, id: str, before: Type, after: Type, node: Any) -> Type:
        if after == before and after.pythons is before.pythons:
            return before
        try:
            scalar = joined(before, after, shown(id))
            shape = of_either(before.shape, after.shape)
            if shape is None:
                shape = broadcast([before.shape, after.shape])
                if before.rank or shape != after.shape:
                    raise TypingError("type", "")
        except TypingError:
            raise self.fail(
                node,
                "type",
                f"{shown(id)} is {before} before the loop and {after} after its body",
                "give it its final type before the loop",
            ) from None
        return self._lasting(id, replace(scalar, shape=shape), node)

    def _lasting(self: Any, id: str, type: Type, node: Any) -> Type:
        """A type that a variable can have after a loop as well: its shape does not name the loop's counter."""
        gone = {s for d in type.shape for s in d.symbols()} & (self.counters - self.facts.keys())
        if gone:
            raise self.fail(
                node,
                "shape",
                f"{shown(id)} has another shape in every iteration: {construct.shape_text(type.shape)}",
                "shapes may depend on other shapes and on config only; allocate the largest and use part of it",
            )
        return type

    def _deliver_carried(self: Any, id: str, held: Value, statements: list[Stmt], node: Any) -> None:
        after = self.env.get(id)
        if after is None or isinstance(after, (Broken, Later)):
            return
        now = dict(leaves(after))
        for path, name in leaves(held):
            if isinstance(name, Name) and path in now and is_array(now[path]):
                expr = self.as_expr(now[path], node)
                if expr != name:
                    kept = read_by_others(self.env, id) | (value_names(after) if path else set())
                    deliver(
                        statements,
                        name.id,
                        construct.convert(expr, name.type),
                        self.span(node),
                        carried=True,
                        kept=kept,
                    )


def _unstable(id: str) -> Broken:
    return Broken(
        f"{shown(id)} is one thing before the loop and another after its body", "use a name of its own inside the loop"
    )


def _nested(found: dict[tuple[int, ...], Type]) -> Value:
    """Values of these types, nested as their places say."""
    if () in found:
        return Name("", found[()])
    parts: dict[int, dict[tuple[int, ...], Type]] = {}
    for path, type in found.items():
        parts.setdefault(path[0], {})[path[1:]] = type
    return Tuple(tuple(_nested(parts[k]) for k in sorted(parts)))


__all__ = ["Carried"]
