"""Calls: of what, and by which name. What does not follow the table's pattern is in `special_calls`."""

from __future__ import annotations

from typing import Any

import gast

from . import construct
from .errors import Mistake, Suppressed
from .libraries import exists
from .operations import BY_SPELLING, ROWS, Row
from .program import (
    Call,
    NewAxis,
)
from .source import Source, shipped
from .suggestions import LOOPED, METHODS, UNDEFINED, UNSUPPORTED, nearest
from .typing import BUILTIN_DTYPES, DTYPES
from .values import (
    Broken,
    Closure,
    Collected,
    Generator,
    ListValue,
    Static,
    Value,
)

# Methods that NumPy's arrays have; sort, which works in place, is left to np.sort.
_OF_ARRAYS = frozenset(
    "all any argmax argmin argsort astype clip conj copy cumprod cumsum diagonal dot flatten item max mean min prod"
    " ravel repeat reshape round squeeze std sum swapaxes take trace transpose var".split()
)
# Where their name is not that of the function.
_METHODS = {"flatten": "ravel", "astype": "cast"}

# Arguments that functions have and the methods of their names have not, and what to write.
_NOT_OF_METHODS = {"clip": (("a_min", "a_max"), "min=, max="), "transpose": (("axes",), "x.transpose(1, 0)")}


class Calls:
    """Mixed into the checker of expressions."""

    def _call(self: Any, node: Any) -> Value:
        if any(k.arg is None for k in node.keywords):
            raise self.fail(node, "unsupported", "** in calls is not part of the subset", "write the arguments out")
        dotted = self._called(node.func)
        own = shipped(dotted.removeprefix("layerc.")) if dotted is not None and dotted.startswith("layerc.") else None
        spread = dotted is None or own is not None or dotted.startswith("derivative.")
        if any(isinstance(a, gast.Starred) for a in node.args) and not spread:
            raise self.fail(
                node, "unsupported", "* is for calls of functions of a layer file", "write the arguments out"
            )
        if own is not None and dotted is not None:
            return self.inline(Closure(own.functions[dotted[7:]], own, None, dotted[7:]), node)
        if dotted is not None:
            return self._named_call(node, dotted)
        if isinstance(node.func, gast.Attribute) and not self._is_member(node.func):
            return self._method(node)
        target = self.value(node.func)
        if isinstance(target, Closure):
            return self.inline(target, node)
        raise self.fail(node, "type", "this cannot be called")

    def _is_member(self: Any, func: Any) -> bool:
        """Whether it is a function of an imported layer file: mylayers.helper."""
        return (
            isinstance(func.value, gast.Name) and func.value.id in self.source.modules and func.value.id not in self.env
        )

    def _called(self: Any, func: Any) -> str | None:
        """The canonical name of what is called, unless the file itself defines it."""
        if isinstance(func, gast.Name):
            if func.id in self.assigned and func.id not in self.env:
                return None
            if func.id in self.env or self.source.defined(func.id) is not None:
                value = self.env.get(func.id)
                return value.value if isinstance(value, Static) and isinstance(value.value, str) else None
            return self.source.resolve(func) or func.id
        if isinstance(func, gast.Attribute):
            base = func
            while isinstance(base, gast.Attribute):
                base = base.value
            if isinstance(base, gast.Name) and (base.id in self.env or base.id == "self"):
                return None
            return self.source.resolve(func)
        return None

    def _named_call(self: Any, node: Any, dotted: str) -> Value:
        special = getattr(self, "call_" + dotted.replace(".", "_"), None)
        if special is not None:
            return self._of_numbers(dotted, special(node), node)
        if dotted in DTYPES or dotted in BUILTIN_DTYPES:
            return self._convert_call(node, dotted)
        if (outer := BY_SPELLING.get(dotted.removesuffix(".outer"))) is not None and dotted.endswith(".outer"):
            return self._outer(outer, node)
        row = BY_SPELLING.get(dotted)
        if row is None or dotted[0].isupper() or dotted == "list":
            raise self._unknown(node, dotted)
        if row.kind == "elementwise" and "." not in dotted:  # abs(ys), of Python
            self.no_lists(node.args)
        if row.name == "take_along_axis":  # the only one that asks for ys.ndim
            self.no_sequences(node.args)
        made = self._of_numbers(dotted, self.call_row(row, node.args, node.keywords, node), node)
        if "." not in dotted and isinstance(made, Call) and not made.type.rank:  # abs(n), of Python
            return construct.pythons(made, construct.owner(made.args))
        return made

    def _of_numbers(self: Any, dotted: str, made: Value, node: Any) -> Value:
        """What a function of math gives: it takes numbers only, and gives one of Python's."""
        if not dotted.startswith("math."):
            return made
        number = self.as_expr(made, node)
        if number.type.rank:
            raise self.fail(node, "type", f"{dotted} takes a scalar", f"np.{dotted[5:]}")
        return construct.pythons(number)

    def _outer(self: Any, row: Row, node: Any) -> Value:
        """np.add.outer(a, b): the operation on each element of a with each of b."""
        if row.kind != "elementwise" or len(row.arrays) != 2 or len(node.args) != 2 or node.keywords:
            raise self.fail(node, "unsupported", "outer is of operations with two arguments, and takes two arrays")
        a, b = (self.as_expr(v, n) for v, n in zip(self.values(node.args), node.args, strict=True))
        spread = construct.index(a, [*construct.complete(a, []), *[NewAxis()] * b.type.rank])
        return self.apply(row, [spread, b], {}, node)

    def _unknown(self: Any, node: Any, dotted: str) -> Mistake:
        first = node.func
        while isinstance(first, gast.Attribute):
            first = first.value
        if isinstance(first, gast.Name) and self.source.is_lost(first.id) and first.id not in self.source.imports:
            raise Suppressed
        if dotted in ("list", "tuple"):
            return self.fail(
                node,
                "unsupported",
                f"{dotted}() is not part of the subset",
                "arrays are looped over and indexed as they are",
            )
        if dotted in LOOPED and "." not in dotted:
            return self.fail(node, "type", f"{dotted} cannot be called like this here", LOOPED[dotted])
        families = (dotted, dotted.rpartition(".")[0], dotted.partition(".")[0])
        family = next((f for f in families if f in UNSUPPORTED), None)
        if family is not None:
            message, _, help = UNSUPPORTED[family].partition(" -- ")
            return self.fail(node, "shape" if "shape" in message else "unsupported", f"{dotted} {message}", help)
        known = [s for s in BY_SPELLING if not s[0].isupper()]
        if "." in dotted:
            missing = self.source.missing.get(first.id) if isinstance(first, gast.Name) else None
            misspelt = "" if exists(dotted) else nearest(dotted, known)
            help = f"a layer file for it was not found: {missing}" if missing else misspelt
            return self.fail(node, "unsupported", f"{dotted} is not part of the subset", help)
        close = nearest(dotted, [*known, *self.env, *self.source.functions])
        return self.fail(node.func, "name", f"{dotted} is not defined", close or UNDEFINED)

    def _convert_call(self: Any, node: Any, dotted: str) -> Value:
        if len(node.args) != 1 or node.keywords:
            raise self.fail(node, "type", f"{dotted} takes one argument")
        if dotted == "float" and (number := _written(node.args[0])) is not None:
            return construct.const(number)
        expr = self.typed(node.args[0])
        if dotted in BUILTIN_DTYPES and expr.type.rank:
            raise self.fail(node, "type", f"{dotted}() takes a scalar", f"use .astype({dotted}) for arrays")
        same = (dotted == "float" and expr.type.is_float) or (dotted == "int" and expr.type.is_integer)
        made = expr if same else construct.cast(expr, DTYPES.get(dotted) or BUILTIN_DTYPES[dotted])
        return construct.pythons(made, dotted in BUILTIN_DTYPES)

    def _method(self: Any, node: Any) -> Value:
        target, attr = node.func.value, node.func.attr
        if isinstance(target, gast.Name) and target.id == "self":
            return self.self_call(node, attr)
        layer = self._layer_class(target)
        if layer is not None:
            return self.class_call(node, *layer)
        if (replayed := self.replayed(target)) is not None:
            return self.draw(replayed[0], node, replayed[1])
        receiver = self.value_or_list(target)
        if isinstance(receiver, Generator):
            return self.draw(receiver, node)
        if isinstance(receiver, (ListValue, Collected)):
            if attr in ("append", "extend") and (len(node.args) != 1 or node.keywords):
                self.env |= {n.id: Broken() for n in (target,) if isinstance(n, gast.Name)}  # what it holds is unknown
                raise self.fail(node, "type", f"{attr} takes one argument", f"one call for each: ys.{attr}(y)")
            return self.list_call(receiver, node, attr)
        base = self.as_expr(receiver, target)
        self._no_number(base, node.func, f"has no {attr}")
        if (attr == "item" and not base.type.rank) or (attr == "conj" and not node.args and not node.keywords):
            return base  # of real numbers conj is no copy
        if attr == "flatten" and self.mutating:  # a copy, where ravel is a view
            base = construct.call("copy", base, span=self.span(node))
        row = ROWS.get(_METHODS.get(attr, attr)) if attr in _OF_ARRAYS else None
        if row is None and f"np.{attr}" in BY_SPELLING:
            raise self.fail(node, "unsupported", f"arrays have no method {attr} here", f"np.{attr}(...)")
        if row is None or not row.arrays or row.arrays[0] != "a" or row.signature[0].kind != "array":
            raise self.fail(node, "unsupported", f"arrays have no method {attr} here", _instead(attr))
        if attr == "dot" and not base.type.rank:
            raise self.fail(node.func, "type", "NumPy's scalars have no dot", "np.dot(a, b), or a * b")
        missing, help = _NOT_OF_METHODS.get(attr, ((), ""))
        for keyword in node.keywords:
            if keyword.arg in missing:
                raise self.fail(node, "type", f".{attr} has no argument {keyword.arg}", help)
        if attr == "clip" and not (node.args or node.keywords):
            return self.apply(ROWS["positive"], [base], {}, node)
        args = list(node.args)
        if row.name in ("reshape", "transpose") and len(args) > 1:
            args = [gast.Tuple(elts=args, ctx=gast.Load())]
            gast.copy_location(args[0], node)
        return self.call_row(row, args, node.keywords, node, first=base)

    def _layer_class(self: Any, node: Any) -> tuple[Source, str] | None:
        if isinstance(node, gast.Name) and node.id in self.env:
            return None
        found = self.source.defined(node.id) if isinstance(node, gast.Name) else self.source.member(node)
        return found if found is not None and found[1] in found[0].classes else None


def _instead(attr: str) -> str:
    """Of a method that arrays have not here: what to write, or what it misspells."""
    return METHODS.get(attr) or ("" if exists(f"np.ndarray.{attr}") else nearest(attr, _OF_ARRAYS))


def _written(node: Any) -> float | None:
    """The number that float("-inf") means."""
    if not isinstance(node, gast.Constant) or not isinstance(node.value, str):
        return None
    try:
        return float(node.value)
    except ValueError:
        return None


__all__ = ["Calls"]
