"""Typing of expressions: a gast expression in, a typed expression (or another build-time value) out."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import gast

from . import construct
from .atoms import Atoms
from .binding import Binding
from .calls import Calls
from .construct import const, value_of
from .dims import Dim
from .errors import Mistake, Suppressed, span_of
from .operators import Operators
from .program import (
    NOWHERE,
    Assign,
    Call,
    Expr,
    Index,
    Name,
    Span,
    Stmt,
    names,
    stored,
)
from .source import Source
from .special_calls import SpecialCalls
from .subscripts import Subscripts
from .suggestions import SYNTAX, UNSUPPORTED
from .typing import TypingError
from .values import (
    Broken,
    Choice,
    Closure,
    Collected,
    Fresh,
    Generator,
    Later,
    ListValue,
    Static,
    Tuple,
    Value,
    View,
    map_leaves,
)


class Expressions(Atoms, Operators, Calls, Binding, Subscripts, SpecialCalls):
    """Mixed into the checker of functions, which supplies `source`, `env`, `facts`, `inline` and `emit`."""

    source: Source
    env: dict[str, Value]
    facts: dict[str, tuple[Dim, Dim]]
    constants_seen: tuple[str, ...] = ()
    called_at: Span = NOWHERE
    agreed: Mapping[Dim, Dim] = {}
    again: dict[int, Value] = {}  # noqa: RUF012 (the checker's own) values of nodes, for who asks for them next

    def emit(self, stmt: Stmt) -> None:
        raise NotImplementedError

    def require(self, cond: Expr, message: str, node: Any) -> None:
        """What NumPy would raise a ValueError for. The text of a derivative asks nothing: the forward has."""

    def agree(self, dim: Dim, plain: Dim, node: Any) -> None:
        """Two extents, D - D // 2 and D // 2, that are one where a division leaves no remainder; else a ValueError."""

    def keep(self, mistake: Mistake) -> None:
        """Called with a mistake where there may be more: the checker of functions goes on."""
        raise mistake

    # -- entry points ------------------------------------------------------------------------------------------
    def span(self, node: Any) -> Span:
        """Where a node stands. What layerc's own files say stands, for a user, where their function is called."""
        return self.called_at if self.source.shipped else span_of(node, self.source.path)

    def fail(self, node: Any, kind: str, message: str, help: str = "") -> Mistake:
        return Mistake(self.span(node), kind, message, help)

    def typed(self, node: Any) -> Expr:
        """The expression, which must be an array or a scalar."""
        return self.as_expr(self.value(node), node)

    def as_expr(self, value: Value, node: Any) -> Expr:
        match value:
            case View(base, items):
                return construct.index(base, items, self.span(node)) if items is not None else base
            case Choice():
                return self.read_choice(value, node)
            case Static(True | False as flag):
                return const(flag)
            case Tuple() | Static() | Closure() | ListValue() | Generator():
                what = {
                    Tuple: "a tuple",
                    Static: "this object",
                    Closure: "a function",
                    ListValue: "a list",
                    Generator: "a random generator",
                }[type(value)]
                raise self.fail(node, "type", f"expected an array or a scalar, got {what}", _object_help(value))
            case Collected():
                return self.as_expr(self.unlisted(value, node), node)
            case Broken() | Later():
                raise Suppressed
        return value

    def value(self, node: Any) -> Value:
        """Types a node; a broken rule becomes a mistake at this node."""
        try:
            return self._value(node)
        except Mistake:
            raise
        except TypingError as error:
            raise self.fail(node, error.kind, error.message, error.help) from None

    def values(self, nodes: Sequence[Any], of: Callable[[Any], Value] | None = None) -> list[Value]:
        """All of them, and the mistakes of all of them. `of`: what gives the value of one."""
        found: list[Value] = []
        failed = False
        for node in nodes:
            mark = len(self.out)
            try:
                found.append((of or self.value)(node))
                found[:-1] = [self._before(v, mark, node) for v in found[:-1]]
            except Mistake as mistake:
                self.keep(mistake)
                failed = True
            except Suppressed:
                failed = True
        if failed:
            raise Suppressed
        return found

    def spread(self, nodes: Sequence[Any]) -> list[Value]:
        """The values of items or arguments, those of `*items` one by one."""
        given = self.values([n.value if isinstance(n, gast.Starred) else n for n in nodes])
        found: list[Value] = []
        for node, value in zip(nodes, given, strict=True):
            found += self.taken_apart(value, node) if isinstance(node, gast.Starred) else [value]
        return found

    def taken_apart(self, value: Value, node: Any) -> tuple[Value, ...]:
        """The items of `*value`."""
        value = self.unlisted(value, node)
        if not isinstance(value, Tuple):
            raise self.fail(node, "type", "only a tuple can be taken apart by *", "write the items out")
        return value.items

    def _before(self, value: Value, mark: int, node: Any) -> Value:
        """A value as it was before what has been emitted since: a call in an expression may write into an array that
        an operand on its left was computed from. An array itself, or a view of it, sees that."""
        written = stored(tuple(self.out[mark:])) if len(self.out) > mark else set()
        if not written:
            return value

        def held(path: tuple[int, ...], v: Value) -> Value:
            if not isinstance(v, (Call, Index)) or self._is_view(v) or not names(v) & written:
                return v
            name = self.fresh("held")
            self.out.insert(mark, Assign(name, v, self.span(node)))
            return Name(name, v.type, value_of(v), self.span(node))

        return map_leaves(value, held)

    def _value(self, node: Any) -> Value:
        if (found := self.again.pop(builtins.id(node), None)) is not None:
            return found
        match node:
            case gast.Constant(value=value):
                return self._constant(node, value)
            case gast.Name(id=id):
                return self._name(node, id)
            case gast.BinOp(left=left, op=op, right=right):
                return self._operator(type(op).__name__, [left, right], node)
            case gast.UnaryOp(op=gast.Not(), operand=operand):
                return construct.pythons(construct.call("logical_not", self.condition(operand), span=self.span(node)))
            case gast.UnaryOp(op=op, operand=operand):
                return self._operator(type(op).__name__, [operand], node)
            case gast.Compare(left=left, ops=ops, comparators=rest):
                return self._comparison(node, left, ops, rest)
            case gast.BoolOp(op=op, values=values):
                return self._boolean(type(op).__name__, values, node, exact=True)
            case gast.IfExp(test=test, body=body, orelse=orelse):
                return self._ternary(node, test, body, orelse)
            case gast.Attribute():
                return self._attribute(node)
            case gast.Call():
                return self._call(node)
            case gast.Subscript(value=value, slice=slice):
                return self._subscript(node, value, slice)
            case gast.Tuple(elts=elts) | gast.List(elts=elts):
                return Tuple(tuple(self.spread(elts)), isinstance(node, gast.List))
            case gast.Lambda():
                return self.closure(node, "lambda")
            case gast.ListComp() | gast.GeneratorExp():
                return self.comprehension(node)
        what = type(node).__name__
        shown, help = SYNTAX.get(what, (what, ""))
        raise self.fail(node, "unsupported", f"{shown} is not part of the subset", help)

    # -- lists: an expression of its own has none, the checker of functions does ----------------------------------
    mutating = False

    def unlisted(self, value: Value, node: Any) -> Value:
        return value

    def value_or_list(self, node: Any) -> Value:
        return self.value(node)

    def read_choice(self, choice: Choice, node: Any) -> Name:
        raise NotImplementedError

    def self_call(self, node: Any, attr: str) -> Value:
        raise NotImplementedError

    def class_call(self, node: Any, source: Source, name: str) -> Value:
        raise NotImplementedError

    def list_call(self, receiver: ListValue | Collected, node: Any, attr: str) -> Value:
        raise NotImplementedError

    def inline(self, target: Closure, node: Any) -> Value:
        raise NotImplementedError

    # -- random numbers: only a function's arguments are generators --------------------------------------------
    def replayed(self, target: Any) -> tuple[Generator, Any] | None:
        return None

    def draw(self, generator: Generator, node: Any, number: Any = None) -> Value:
        raise NotImplementedError

    def drawn(self) -> dict[str, Value]:
        return {}

    methods: Mapping[str, Any] = {}  # of the class of a method
    assigned: Set[str] = frozenset()  # names that the function around assigns
    boxes: Mapping[str, str] = {}
    ternaries: Set[Span] = frozenset()

    # -- lists: only a function's body has them ----------------------------------------------------------------
    frame: object = None
    fresh: Fresh
    out: list[Stmt] = []  # noqa: RUF012 (a template emits nothing)

    def comprehension(self, node: Any) -> Value:
        raise NotImplementedError

    def closure(self, node: Any, name: str) -> Value:
        raise NotImplementedError

    def is_array_list(self, node: Any) -> bool:
        return False

    def _is_view(self, expr: Expr) -> bool:
        return False


def _object_help(value: Value) -> str:
    match value:
        case ListValue():
            return "its length depends on values: store into an array made before, y[i] = v"
        case Tuple():
            return "np.array(...) makes an array of it; one that is written into is made by np.zeros(...)"
        case Generator(name):
            return f"draw from it: {name.id}.random(shape)"
        case Static(str(name)) if name in UNSUPPORTED:
            return UNSUPPORTED[name].partition(" -- ")[2]
    return ""


__all__ = ["Expressions"]
