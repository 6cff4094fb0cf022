"""Where branches join: the versions of a variable meet again in one name, which both branches assign."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import Any

from . import construct
from .dims import of_either
from .program import (
    Assign,
    Call,
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
from .typing import TypingError, promote
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
    map_leaves,
    plain,
    shown,
)

OBJECTS = (Static, Closure, Generator, ListValue, Collected, View, Choice)


class Joins:
    """Mixed into the checker of functions."""

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
        sums: list[Stmt] = []
        for id in dict.fromkeys([*then_env, *else_env]):
            a, b = then_env.get(id), else_env.get(id)
            if a is None or b is None:
                where = "when the condition is true" if b is None else "when the condition is false"
                env[id] = Broken(f"{shown(id)} is assigned only {where}", "assign it before the if")
            elif a is b or a == b:
                env[id] = a
            elif (farther := _farther(cond, a, b)) is not None:
                env[id] = farther
            else:
                try:
                    kept = (read_by_others(then_env, id), read_by_others(else_env, id))
                    env[id] = self._sum_of(id, a, b, then_out, else_out, node, kept, sums) or self._meet(
                        id, a, b, then_out, else_out, node, kept
                    )
                except TypingError as error:
                    self.reporter.add(self.fail(node, error.kind, error.message, error.help))
                    env[id] = Broken()
        self.emit(If(cond, tuple(then_out), tuple(else_out), self.span(node)))
        for stmt in sums:
            self.emit(stmt)
        self.env.clear()
        self.env.update(env)

    def _sum_of(
        self: Any,
        id: str,
        a: Value,
        b: Value,
        then_out: list[Stmt],
        else_out: list[Stmt],
        node: Any,
        kept: tuple[set[str], set[str]],
        sums: list[Stmt],
    ) -> Value | None:
        """What both branches add to a number is what they choose; it is added behind them:

            if c: total = total + x                  if c: term = x
            else: total = total + y      becomes     else: term = y
                                                     total = total + term

        so that a sum stays a sum, whose order is free and whose cotangent no branch touches."""
        written = assigned((*then_out, *else_out))
        for x in _added(a, then_out, kept[0]):
            for y in _added(b, else_out, kept[1]):
                if (x.op, x.base, x.term.type) == (y.op, y.base, y.term.type) and x.base.id not in written:
                    ends = self._put_term(then_out, x), self._put_term(else_out, y)
                    term = self._meet("term", *ends, then_out, else_out, node)
                    total = self.called(id)
                    sums.append(Assign(total, construct.call(x.op, x.base, term), self.span(node)))
                    return Name(total, x.base.type, None, self.span(node))
        return None

    def _put_term(self: Any, out: list[Stmt], added: _Added) -> Expr:
        """The term alone, in the place of the sum."""
        name = self.fresh("term")
        out[added.place] = Assign(name, added.term, out[added.place].span)
        return Name(name, added.term.type)

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
            kept = (kept[0] | value_names(a), kept[1] | value_names(b))
            return Tuple(
                tuple(
                    self._meet(id, x, y, then_out, else_out, node, kept) for x, y in zip(a.items, b.items, strict=True)
                )
            )
        # A view of another array on each branch, or on one only, is a value from here on: `hidden_writes` sees to it
        # that nobody could tell.
        a, b = self._in_branch(a, then_out, node), self._in_branch(b, else_out, node)
        if isinstance(a, (*OBJECTS, Tuple)) or isinstance(b, (*OBJECTS, Tuple)):
            return Broken(f"{shown(id)} is a different kind of thing after each branch", "give it one kind")
        x, y = self.as_expr(a, node), self.as_expr(b, node)
        shape = of_either(x.type.shape, y.type.shape)
        if shape is None:
            raise TypingError(
                "type",
                f"{shown(id)} has shape {construct.shape_text(x.type.shape)} on one branch"
                f" and {construct.shape_text(y.type.shape)} on the other",
            )
        type = replace(joined(x.type, y.type, shown(id)), shape=shape)
        name = self.called(id)
        self._note_order(name, x)
        self._note_order(name, y)
        deliver(then_out, name, construct.convert(x, type), self.span(node), kept=kept[0])
        deliver(else_out, name, construct.convert(y, type), self.span(node), kept=kept[1])
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

        known = {n for v in [*self.env.values(), *self.around()] for n in value_names(v)}

        def blank(path: tuple[int, ...], value: Value) -> Value:
            if isinstance(value, Choice):
                return Later()
            foreign = isinstance(value, View) and not value_names(value) <= known  # of what only the other branch has
            if isinstance(value, (*OBJECTS, Later, Broken)) and not foreign:
                return value
            with self.aside():
                type = self.as_expr(value, node).type
            name = self.fresh(plain(id))
            out.append(Assign(name, construct.zeros(type), self.span(node)))
            return Name(name, type, None, self.span(node))

        return map_leaves(like, blank)

    def around(self: Any) -> Iterator[Value]:
        """What the variables of the calling functions hold, which these may still read."""
        return (v for _, outer in self.frames for v in outer.values())

    def _own(self: Any, env: dict[str, Value], ids: list[str], out: list[Stmt], node: Any) -> None:
        """A whole array that goes by one name only, as after `a, b = b, a`, is a value: nothing else sees writes into
        it."""
        for id in ids:
            match env.get(id):
                case View(base=Name() as array, items=None) if id not in self.chosen:
                    others = [*self.around(), *(v for k, v in env.items() if k != id)]
                    if not any(array.id in value_names(v) for v in others):
                        name = self.called(id)
                        out.append(Assign(name, array, self.span(node)))
                        env[id] = Name(name, array.type, None, self.span(node))


def _farther(cond: Expr, a: Value, b: Value) -> Expr | None:
    """`if k < 0: k = 0` leaves max(k, 0), whose range is known."""
    match a, b:
        case (Name() | Const() | Call() as p, Name() | Const() | Call() as q) if p.type == q.type and p.type.pythons:
            place = construct.farther(cond, p, q)
            return None if place is None else construct.dim(place)
    return None


@dataclass(frozen=True)
class _Added:
    """`base + term`, or `-`, made at a place of a branch."""

    place: int
    op: str
    base: Name
    term: Expr


def _added(value: Value, out: list[Stmt], kept: set[str]) -> list[_Added]:
    """How a branch made a number by adding to another one: two ways for a sum of two names. None where something else
    needs it."""
    if not isinstance(value, Name) or value.id in kept or value.type.rank or value.type.is_integer:
        return []
    makers = [i for i, s in enumerate(out) if value.id in assigned((s,))]
    if len(makers) != 1 or value.id in read(tuple(out)):
        return []
    match out[makers[0]]:
        case Assign(value=Call(op="add", args=[a, b])):
            ways = [_Added(makers[0], "add", x, y) for x, y in ((a, b), (b, a)) if isinstance(x, Name)]
        case Assign(value=Call(op="subtract", args=[Name() as a, b])):
            ways = [_Added(makers[0], "subtract", a, b)]
        case _:
            return []
    return [w for w in ways if w.base.type == value.type == w.term.type]


def joined(a: Type, b: Type, what: str) -> Type:
    """A scalar's type for a variable that is of one type here and of another there: only weak scalars give way."""
    return Type(_dtype(a, b, what), pythons=construct.either(a, b))


def _dtype(a: Type, b: Type, what: str) -> str:
    if a.dtype == b.dtype:
        return a.dtype
    top = promote([a, b])
    weak = [t for t in (a, b) if t.is_weak]
    if not weak or (a.is_weak and b.is_weak and {a.dtype, b.dtype} != {"int", "float"}):
        raise TypingError("type", f"{what} is {a} on one path and {b} on the other", "give it one type on both")
    if "bool" in (a.dtype, b.dtype):
        raise TypingError("type", f"{what} is {a} on one path and {b} on the other", "give it one type on both")
    return top


def deliver(
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
            good = len(makers) == len(inside) == 1 and not any(name in reads(s) for s in out[makers[0] + 1 :])
        else:
            good = bool(inside) and all(isinstance(s, Assign) for s in inside)
        if good and all(isinstance(s, Assign) and s.value.type == value.type for s in inside):
            out[:] = rename_block(out, {value.id: name})
            return
    out.append(Assign(name, value, span))


def _made_by(stmt: Assign | Pop | Store) -> str:
    return stmt.base.id if isinstance(stmt, Store) else stmt.name


def reads(stmt: Stmt) -> set[str]:
    return read((stmt,)) | assigned((stmt,))


def is_object(value: Value) -> bool:
    return isinstance(value, (*OBJECTS, Later, Broken))


def is_array(value: Value) -> bool:
    return isinstance(value, (View, Choice)) or not is_object(value)


def value_names(value: Value) -> set[str]:
    match value:
        case Tuple(items):
            return set().union(*(value_names(v) for v in items)) if items else set()
        case Choice(options=options):
            return set().union(*(value_names(v) for v in options))
        case View(base, items):
            return names(base) | {n for item in items or () for e in item_exprs(item) for n in names(e)}
        case Static() | Closure() | Generator() | ListValue() | Collected() | Later() | Broken():
            return set()
    return names(value)


def read_by_others(env: dict[str, Value], id: str) -> set[str]:
    return set().union(*(value_names(v) for k, v in env.items() if k != id))
