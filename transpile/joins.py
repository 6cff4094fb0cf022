"""Where control flow joins: the versions of a variable meet again in one name, the one that both branches of an
`if` assign or that a loop carries from one iteration to the next.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

from . import construct
from .choices import bound_by
from .dims import Dim
from .mutation import target_names
from .program import (
    Assign,
    Const,
    Expr,
    If,
    Name,
    Pop,
    Span,
    Stmt,
    Store,
    Type,
    assigned,
    item_exprs,
    names,
    read,
    walk_stmts,
)
from .renaming import rename_block
from .typing import TypingError, broadcast, promote
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
    leaves,
    map_leaves,
    plain,
    shown,
)
from .views import root_of

# What a loop's body gives names, by the name and its place in a tuple; None: an array that is made there.
Offered = dict[tuple[str, tuple[int, ...]], tuple[View | None, ...]]
_OBJECTS = (Static, Closure, Generator, ListValue, Collected, View, Choice)


class Joins:
    """Mixed into the checker of functions."""

    # -- branches ----------------------------------------------------------------------------------------------
    def _join(
        self: Any,
        node: Any,
        cond: Expr,
        then_out: list[Stmt],
        then_env: dict[str, Value],
        else_out: list[Stmt],
        else_env: dict[str, Value],
    ) -> None:
        env: dict[str, Value] = {}
        differing = [id for id in {**then_env, **else_env} if then_env.get(id) != else_env.get(id)]
        self._own(then_env, differing, then_out, node)
        self._own(else_env, differing, else_out, node)
        for id in dict.fromkeys([*then_env, *else_env]):
            a, b = then_env.get(id), else_env.get(id)
            if a is None or b is None:
                where = "when the condition is true" if b is None else "when the condition is false"
                env[id] = Broken(f"{shown(id)} is assigned only {where}", "assign it before the if")
            elif a is b or a == b:
                env[id] = a
            else:
                try:
                    kept = (_read_by_others(then_env, id), _read_by_others(else_env, id))
                    env[id] = self._meet(id, a, b, then_out, else_out, node, kept)
                except TypingError as error:
                    self.reporter.add(self.fail(node, error.kind, error.message, error.help))
                    env[id] = Broken()
        self.emit(If(cond, tuple(then_out), tuple(else_out), self.span(node)))
        self.env.clear()
        self.env.update(env)

    def _meet(
        self: Any,
        id: str,
        a: Value,
        b: Value,
        then_out: list[Stmt],
        else_out: list[Stmt],
        node: Any,
        kept: tuple[set[str], set[str]] = (set(), set()),
    ) -> Value:
        """One value for what the two branches leave: a name assigned at the end of both. `kept`: names other
        values need as they are."""
        if isinstance(a, Broken) or isinstance(b, Broken):
            return a if isinstance(a, Broken) else b
        if (choice := self.choice_of_branches(id, a, b, then_out, else_out, node)) is not None:
            return choice
        if isinstance(a, Later):
            b = self._settled_in(b, else_out, node)
            a = self._blank(id, b, then_out, node)
        if isinstance(b, Later):
            a = self._settled_in(a, then_out, node)
            b = self._blank(id, a, else_out, node)
        if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
            kept = (kept[0] | _value_names(a), kept[1] | _value_names(b))
            return Tuple(
                tuple(
                    self._meet(id, x, y, then_out, else_out, node, kept) for x, y in zip(a.items, b.items, strict=True)
                )
            )
        # A view of another array on each branch, or on one only, is a value from here on: `hidden_writes` sees to it
        # that nobody could tell.
        a, b = self._in_branch(a, then_out, node), self._in_branch(b, else_out, node)
        if isinstance(a, (*_OBJECTS, Tuple)) or isinstance(b, (*_OBJECTS, Tuple)):
            return Broken(f"{shown(id)} is a different kind of thing after each branch", "give it one kind")
        x, y = self.as_expr(a, node), self.as_expr(b, node)
        if x.type.shape != y.type.shape:
            raise TypingError(
                "type",
                f"{shown(id)} has shape {construct.shape_text(x.type.shape)} on one branch"
                f" and {construct.shape_text(y.type.shape)} on the other",
            )
        type = Type(joined(x.type, y.type, shown(id)), x.type.shape)
        name = self.called(id)
        self._note_order(name, x)
        self._note_order(name, y)
        _deliver(then_out, name, construct.convert(x, type), self.span(node), kept=kept[0])
        _deliver(else_out, name, construct.convert(y, type), self.span(node), kept=kept[1])
        return Name(name, type, None, self.span(node))

    def _in_branch(self: Any, value: Value, out: list[Stmt], node: Any) -> Value:
        """What a branch leaves as an expression after it."""
        if not isinstance(value, (View, Choice)):
            return value
        with self.aside() as read:
            expr = self.as_expr(value, node)
        out += read
        return expr

    def _settled_in(self: Any, value: Value, out: list[Stmt], node: Any) -> Value:
        """A choice that nothing needs as one is an array."""
        return self._in_branch(value, out, node) if isinstance(value, Choice) else value

    def _blank(self: Any, id: str, like: Value, out: list[Stmt], node: Any) -> Value:
        """Zeros of the type of a value: what a variable holds before it is assigned, which nothing reads."""

        def blank(path: tuple[int, ...], value: Value) -> Value:
            if isinstance(value, Choice):
                return Later()
            if isinstance(value, (*_OBJECTS, Later, Broken)):
                return value
            type = self.as_expr(value, node).type
            name = self.fresh(plain(id))
            out.append(Assign(name, construct.zeros(type), self.span(node)))
            return Name(name, type, None, self.span(node))

        return map_leaves(like, blank)

    def _own(self: Any, env: dict[str, Value], ids: list[str], out: list[Stmt], node: Any) -> None:
        """A whole array that goes by one name only, as after `a, b = b, a`, is a value: nothing else sees writes into
        it."""
        around = [v for _, outer in self.frames for v in outer.values()]
        for id in ids:
            match env.get(id):
                case View(base=Name() as array, items=None) if id not in self.chosen:
                    others = [*around, *(v for k, v in env.items() if k != id)]
                    if not any(array.id in _value_names(v) for v in others):
                        name = self.called(id)
                        out.append(Assign(name, array, self.span(node)))
                        env[id] = Name(name, array.type, None, self.span(node))

    # -- loops -------------------------------------------------------------------------------------------------
    def carried(
        self: Any, node: Any, body: Any, position: Dim | None = None, trips: Dim | None = None
    ) -> tuple[Any, list[Stmt]]:
        """Runs `body` with the names it reassigns turned into variables that the loop carries. `position`: the
        number of the iteration, `trips`: how many there are, where these follow from shapes.

        The body is typed again as long as a variable turns out wider than it was before the loop, or a list to grow.
        """
        entry, lists = dict(self.env), dict(self.lists)
        reassigned = [n for n in dict.fromkeys(target_names(node.body, self._written_in_place)) if n in entry]
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
                break
            bound = self._bound_in_loop(statements, held, variables)
            if self._offers(start, reassigned, bound, offered):
                self._again(mark, used, shown)
                continue
            if self._disordered(held):
                self._again(mark, used, shown)
                continue
            wider = self._wider(start, reassigned, node)
            changed = {id for id in reassigned if self._object_changed(id, start[id], self.env.get(id))} - unstable
            drew = self.strode(start, strides, reassigned, position, trips)
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
        self.after_strides(entry, strides, trips)
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
                if name is not None and _is_array(after) and not all(map(self._lies_in_order, self._shown_as(after))):
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
            for path in now.keys() & was.keys():
                more = self.offer(id, was[path], now[path], bound)
                known = offered.get((id, path), ())
                offered[id, path] = (*known, *(view for view in more if view not in known))
        return offered != before

    def _bound_in_loop(self: Any, statements: list[Stmt], held: dict[str, Value], variables: set[str]) -> set[str]:
        """Names that mean something else after a loop than in an iteration: its counter too, and what is bound at the
        end of its body, the variables that it carries and the memory of choices."""
        found = (choice for value in held.values() for _, choice in leaves(value))
        own = {choice.own.id for choice in found if isinstance(choice, Choice) and choice.own is not None}
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
        return value is not None and not isinstance(value, (*_OBJECTS, Tuple, Later, Broken)) and bool(value.type.rank)

    def _leave_loop(self: Any, start: dict[str, Value]) -> None:
        left = self.env
        self.env = start
        for id in left.keys() - start.keys():
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
            if _is_object(value):
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
        around = [v for _, outer in self.frames for v in outer.values()]  # the caller's, who may still read it
        others = set().union(*(_value_names(v) for v in [*around, *(v for k, v in self.env.items() if k != id)]))
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
                    and not any(value.id in _reads(s) for s in self.out[position + 1 :])
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
                    if _is_array(v)
                }
                continue
            was, now = dict(leaves(before)), dict(leaves(after))
            if was.keys() != now.keys():
                continue
            for path, value in was.items():
                if isinstance(value, Name) and _is_array(now[path]):
                    type = self._holding_both(id, value.type, self.as_expr(now[path], node).type, node)
                    if type != value.type:
                        wider[id, path] = type
        return wider

    def _object_changed(self: Any, id: str, before: Value, after: Value | None) -> bool:
        """Whether a name that no variable stands for means something else after the body: its meaning would
        depend on the iteration."""
        if after is None or isinstance(before, (Later, Broken)) or isinstance(after, Broken):
            return False
        was, now = dict(leaves(before)), dict(leaves(after))
        if was.keys() != now.keys():
            return True
        for path, value in was.items():
            other = now[path]
            if isinstance(value, Choice) and _is_array(other):
                continue
            if isinstance(value, Name) and isinstance(other, View) and other == View(value, None):
                continue
            if isinstance(other, View) and not _is_object(value):
                root = root_of(other.base)
                if (
                    id in self.mutated and self.born.get(root, 0) <= self.loops
                ):  # part of an array that outlives the iteration
                    return True
            elif (_is_object(value) or _is_object(other)) and value is not other and value != other:
                return True
        return False

    def _holding_both(self: Any, id: str, before: Type, after: Type, node: Any) -> Type:
        if after == before:
            return before
        try:
            dtype = joined(before, after, shown(id))
            shape = broadcast([before.shape, after.shape])
            if shape != after.shape or (before.rank and shape != before.shape):
                raise TypingError("type", "")
        except TypingError:
            raise self.fail(
                node,
                "type",
                f"{shown(id)} is {before} before the loop and {after} after its body",
                "give it its final type before the loop",
            ) from None
        return self._lasting(id, Type(dtype, shape), node)

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
            if isinstance(name, Name) and path in now and _is_array(now[path]):
                expr = self.as_expr(now[path], node)
                if expr != name:
                    kept = _read_by_others(self.env, id) | (_value_names(after) if path else set())
                    _deliver(
                        statements,
                        name.id,
                        construct.convert(expr, name.type),
                        self.span(node),
                        carried=True,
                        kept=kept,
                    )


def joined(a: Type, b: Type, what: str) -> str:
    """The dtype of a variable that is of one type here and of another there: only weak scalars give way."""
    if a.dtype == b.dtype:
        return a.dtype
    top = promote([a, b])
    weak = [t for t in (a, b) if t.is_weak]
    if not weak or (a.is_weak and b.is_weak and {a.dtype, b.dtype} != {"int", "float"}):
        raise TypingError("type", f"{what} is {a} on one path and {b} on the other", "give it one type on both")
    if "bool" in (a.dtype, b.dtype):
        raise TypingError("type", f"{what} is {a} on one path and {b} on the other", "give it one type on both")
    return top


def _deliver(
    out: list[Stmt], name: str, value: Expr, span: Span, carried: bool = False, kept: Set[str] = frozenset()
) -> None:
    """Makes the block leave `value` in `name`: renames what the block made it in, or appends an assignment.

    A variable that a loop carries takes that name only at the end of the body, not on a branch: the reverse of
    a branch reads what was before it.
    """
    if isinstance(value, Name) and value.id not in kept:
        makers = [i for i, s in enumerate(out) if isinstance(s, Assign) and s.name == value.id]
        inside = [s for s in walk_stmts(tuple(out)) if isinstance(s, (Assign, Pop, Store)) and _made_by(s) == value.id]
        if carried:
            good = len(makers) == len(inside) == 1 and not any(name in _reads(s) for s in out[makers[0] + 1 :])
        else:
            good = bool(inside) and all(isinstance(s, Assign) for s in inside)
        if good and all(isinstance(s, Assign) and s.value.type == value.type for s in inside):
            out[:] = rename_block(out, {value.id: name})
            return
    out.append(Assign(name, value, span))


def _made_by(stmt: Assign | Pop | Store) -> str:
    return stmt.base.id if isinstance(stmt, Store) else stmt.name


def _reads(stmt: Stmt) -> set[str]:
    return read((stmt,)) | assigned((stmt,))


def _is_object(value: Value) -> bool:
    return isinstance(value, (*_OBJECTS, Later, Broken))


def _is_array(value: Value) -> bool:
    return isinstance(value, (View, Choice)) or not _is_object(value)


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


def _value_names(value: Value) -> set[str]:
    match value:
        case Tuple(items):
            return set().union(*(_value_names(v) for v in items)) if items else set()
        case Choice(options=options):
            return set().union(*(_value_names(v) for v in options))
        case View(base, items):
            return names(base) | {n for item in items or () for e in item_exprs(item) for n in names(e)}
        case Static() | Closure() | Generator() | ListValue() | Collected() | Later() | Broken():
            return set()
    return names(value)


def _read_by_others(env: dict[str, Value], id: str) -> set[str]:
    return set().union(*(_value_names(v) for k, v in env.items() if k != id))
