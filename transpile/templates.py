"""Subset source with holes: the `define` and `grad` texts of the table of operations as typed expressions.

    instantiate("np.sum(a, axis=axis) / count", {"a": x, "axis": 0, "count": n})
    instantiate("unreduce(dy) * np.exp(a - unreduce(y))", {"a": x, "dy": dy, "y": y, "unreduce": spread})

A name of the text is in `env` a typed expression, a build-time value (None, bool, int, float, Dim, a tuple
of these), a dtype
`Static("dtype:f32")`, or a Python function: called with what its arguments are (expressions, or plain
values), giving the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import gast

from . import construct
from .construct import const
from .dims import Dim
from .errors import InternalError, Mistake, Suppressed
from .expressions import Expressions
from .operations import ROWS
from .program import NOWHERE, Call, Const, Expr, Index, Name, Span
from .source import Source
from .typing import TypingError, normal_axes
from .values import Closure, Static, Tuple, Value

_SOURCE = Source("<template>", "", None, {"np": "np", "special": "special", "math": "math"})


def instantiate(text: str, env: Mapping[str, Any], span: Span = NOWHERE) -> Expr:
    """The text as a typed expression, every node of it at `span`. TypingError where it breaks a rule of the
    language.
    """
    found = _Template(text, env, span)
    try:
        return found.typed(_parsed(text))
    except Mistake as mistake:
        raise TypingError(mistake.kind, f"{mistake.message} (in {text})", mistake.help) from None
    except Suppressed:
        raise InternalError("templates", f"a broken name in {text}", span) from None


@cache
def names_in(text: str) -> tuple[str, ...]:
    """The names a text reads, as often as it does."""
    return tuple(n.id for n in gast.walk(_parsed(text)) if isinstance(n, gast.Name) and n.id not in _SOURCE.imports)


@cache
def _parsed(text: str) -> Any:
    return gast.parse(text, mode="eval").body


class _Template(Expressions):
    def __init__(self, text: str, env: Mapping[str, Any], span: Span) -> None:
        self.source = _SOURCE
        self.facts = {}
        self.held: list[Dim] = []
        self.env: dict[str, Value] = {}
        self.functions: dict[str, Any] = {}
        self.place = span
        for name, value in env.items():
            if callable(value) and not isinstance(value, (Closure, Static)):
                self.functions[name] = value
            else:
                self.env[name] = _lifted(value)

    def span(self, node: Any) -> Span:
        return self.place

    def _call(self, node: Any) -> Value:
        function = self.functions.get(node.func.id) if isinstance(node.func, gast.Name) else None
        if function is None:
            return super()._call(node)
        return _lifted(function(*(_lowered(self.value(a)) for a in node.args)))


def _lifted(value: Any) -> Value:
    """What a name or a function's result means to the checker of expressions."""
    if isinstance(value, (Const, Name, Call, Index, Tuple, Static)):
        return value
    if isinstance(value, (bool, int, float)):
        return const(value)
    if isinstance(value, Dim):
        return construct.dim(value)
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(_lifted(v) for v in value))
    return Static(value)


def _lowered(value: Value) -> Any:
    """What a Python function gets: arrays and scalars as expressions; None, and tuples of integers, as
    Python has them.
    """
    match value:
        case Static(inner):
            return inner
        case Tuple(items):
            return tuple(v.value if isinstance(v, Const) else _lowered(v) for v in items)
    return value


def reduction_axes(call: Call) -> tuple[int, ...]:
    """The axes that a reduction, or what is composed of reductions, reduces, as sorted nonnegative
    numbers.
    """
    return normal_axes(call.get("axis"), call.args[0].type.rank)


def definition(call: Call, args: Mapping[str, Expr]) -> Expr:
    """A composed operation spelled out by its `define`, over the given expressions for its array
    arguments.
    """
    static = dict(call.static)
    if "axis" in static:
        shape = call.args[0].type.shape
        static["count"] = construct.product(shape[a] for a in reduction_axes(call))
    found = instantiate(definition_text(call), {**static, **args}, call.span)
    same = found.type.dtype == call.type.dtype or found.type.is_weak or call.type.is_weak
    return found if same else construct.cast(found, call.type.dtype)


def definition_text(call: Call) -> str:
    define = ROWS[call.op].define
    return define if isinstance(define, str) else define([a.type for a in call.args], dict(call.static))
