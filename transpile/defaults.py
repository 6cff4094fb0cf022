"""What a declaration starts with, from its text alone: defaults and checks of configuration, initial values of fields.
Nothing of the file is run: `known` works out numbers and comparisons, and gives up on all else."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gast

from .errors import Mistake, span_of
from .program import Parameter
from .source import CONSTANTS, Source

_BINARY: dict[type, Any] = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
    gast.Div: operator.truediv,
    gast.FloorDiv: operator.floordiv,
    gast.Mod: operator.mod,
    gast.Pow: operator.pow,
}
_COMPARE: dict[type, Any] = {
    gast.Lt: operator.lt,
    gast.LtE: operator.le,
    gast.Gt: operator.gt,
    gast.GtE: operator.ge,
    gast.Eq: operator.eq,
    gast.NotEq: operator.ne,
    gast.In: lambda a, b: a in b,
    gast.NotIn: lambda a, b: a not in b,
    gast.Is: operator.is_,
    gast.IsNot: operator.is_not,
}
_CALLS: dict[str, Any] = {
    "abs": abs,
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "bool": bool,
    "round": round,
    "len": len,
}
_LARGEST = 4096  # bits of a power: more is not a number that somebody meant


class Unknown(Exception):
    """No value that the text alone gives."""


def known(node: Any, source: Source, names: Mapping[str, Any]) -> Any:
    """The value of numbers, comparisons and constants of the file. Unknown where it is none of them."""
    try:
        return _known(node, source, names)
    except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise Unknown from error


def _known(node: Any, source: Source, names: Mapping[str, Any]) -> Any:
    def of(inner: Any) -> Any:
        return _known(inner, source, names)

    match node:
        case gast.Constant(value=value):
            return value
        case gast.Name(id=id) if id in names:
            return names[id]
        case gast.Name(id=id) if (home := source.defined(id)) is not None and home[1] in home[0].constants:
            return _known(home[0].constants[home[1]], home[0], {})
        case gast.Name() | gast.Attribute() if source.resolve(node) in CONSTANTS:
            return CONSTANTS[source.resolve(node) or ""]
        case gast.Tuple(elts=elts) | gast.List(elts=elts) | gast.Set(elts=elts):
            return tuple(of(e) for e in elts)
        case gast.UnaryOp(op=gast.USub(), operand=operand):
            return -of(operand)
        case gast.UnaryOp(op=gast.UAdd(), operand=operand):
            return +of(operand)
        case gast.UnaryOp(op=gast.Not(), operand=operand):
            return not of(operand)
        case gast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _binary(_BINARY[type(op)], of(left), of(right))
        case gast.BoolOp(op=gast.And(), values=values):
            return all(of(v) for v in values)
        case gast.BoolOp(values=values):
            return any(of(v) for v in values)
        case gast.Compare(left=left, ops=ops, comparators=comparators):
            items = [of(left), *map(of, comparators)]
            return all(_COMPARE[type(op)](a, b) for a, op, b in zip(items, ops, items[1:], strict=False))
        case gast.Call(func=gast.Name(id=id), args=args, keywords=[]) if id in _CALLS and source.defined(id) is None:
            return _CALLS[id](*map(of, args))
        case gast.Call(func=func, args=args, keywords=[]) if (source.resolve(func) or "").startswith("math."):
            found = getattr(math, (source.resolve(func) or "")[5:], None)
            if callable(found):
                return found(*map(of, args))
    raise Unknown


def _binary(operation: Any, a: Any, b: Any) -> Any:
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    if not numbers or (operation is operator.pow and abs(b) * math.log2(abs(a) + 2) > _LARGEST):
        raise Unknown
    return operation(a, b)


# -- configuration -----------------------------------------------------------------------------------------------
_FITS = {
    "float": ((int, float), "a number"),
    "int": ((int,), "an integer"),
    "bool": ((bool,), "True or False"),
}


def default(node: Any, dtype: str, id: str, source: Source) -> Any:
    """The default of a configuration scalar, "float", "int" or "bool": a constant of that type."""
    where = span_of(node, source.path)
    fits, kind = _FITS[dtype]
    try:
        value = known(node, source, {})
    except Unknown:
        value = None
    if not isinstance(value, fits) or (dtype != "bool" and isinstance(value, bool)):
        raise Mistake(where, "type", f"the default of {id} is not {kind}", f"write {kind} there")
    if dtype == "float":
        try:
            float(value)
        except OverflowError:
            raise Mistake(where, "type", f"the default of {id} is beyond what a float holds", "") from None
    if dtype == "int" and not -(2**63) <= value < 2**63:
        raise Mistake(where, "type", f"the default of {id} does not fit 64 bits", "")
    return value


def config_field(source: Source, node: Any, parameter: Parameter) -> Parameter:
    """`k: int = 3`, `k: int = config(3, check=lambda k: k > 0)`, `k: int = config(check=...)`."""
    value, check = node.value, None
    if isinstance(value, gast.Call) and source.resolve(value.func) == "layerc.config":
        for keyword in value.keywords:
            where = span_of(keyword.value, source.path)
            if keyword.arg == "check":
                check = _check(source, keyword.value, parameter.name)
            elif keyword.arg != "default":
                raise Mistake(where, "type", f"config has no argument {keyword.arg}", "config(default, check=...)")
        given = [*value.args, *(k.value for k in value.keywords if k.arg == "default")]
        if len(given) > 1:
            raise Mistake(span_of(given[1], source.path), "type", "config takes one default", "config(3, check=...)")
        if not given:
            return replace(parameter, check=check and _segment(source, check))
        value = given[0]
    first = default(value, parameter.type.dtype, parameter.name, source)
    if check is not None and _refused(source, check, first):
        raise Mistake(
            span_of(value, source.path),
            "type",
            f"the default of {parameter.name}, {first!r}, fails its own check",
            "give another default, or none: it is required then",
        )
    return replace(parameter, default=first, required=False, check=check and _segment(source, check))


def _check(source: Source, node: Any, id: str) -> Any:
    """A check is kept as text, which a package evaluates with `math` and `np` at hand."""
    where = span_of(node, source.path)
    help = f"check=lambda {id}: {id} > 0, with math and np at most"
    if not isinstance(node, gast.Lambda) or len(node.args.args) != 1:
        raise Mistake(where, "layer", f"the check of {id} is not a lambda of its value", help)
    bound = {n.id for n in gast.walk(node) if isinstance(n, gast.Name) and not isinstance(n.ctx, gast.Load)}
    for name in (n for n in gast.walk(node.body) if isinstance(n, gast.Name) and n.id not in bound):
        if source.defined(name.id) is not None or name.id in source.modules or _another_module(source, name.id):
            raise Mistake(
                span_of(name, source.path), "layer", f"the check of {id} uses {name.id}, which a package has not", help
            )
    return node


def _another_module(source: Source, id: str) -> bool:
    return id in source.imports and source.imports[id] != id


def _refused(source: Source, check: Any, value: Any) -> bool:
    try:
        return not known(check.body, source, {check.args.args[0].id: value})
    except Unknown:
        return False


def _segment(source: Source, node: Any) -> str:
    lines = source.lines[node.lineno - 1 : node.end_lineno]
    if len(lines) == 1:
        return lines[0].encode()[node.col_offset : node.end_col_offset].decode()
    first = lines[0].encode()[node.col_offset :].decode()
    return "\n".join([first, *lines[1:-1], lines[-1].encode()[: node.end_col_offset].decode()])


# -- initial values ----------------------------------------------------------------------------------------------
# The initializers of layerc.init, with their arguments and defaults (which a test compares); None: required.
INITIALIZERS: dict[str, dict[str, float | None]] = {
    "uniform": {"lo": -1.0, "hi": 1.0},
    "normal": {"mean": 0.0, "std": 1.0},
    "zeros": {},
    "ones": {},
    "constant": {"value": None},
    "xavier": {},
    "he": {},
}
_INIT_HELP = "init.uniform(-1, 0), init.normal(0, 1), init.zeros(), init.ones()"


def initial(source: Source, node: Any, id: str) -> tuple[str, tuple[Any, ...]]:
    """`init.uniform(-1, 0)` as its name and arguments."""
    dotted = (source.resolve(node.func) or "") if isinstance(node, gast.Call) else ""
    if not dotted.startswith("layerc.init."):
        raise Mistake(
            span_of(node, source.path), "layer", f"the initial value of {id} is not an initializer", _INIT_HELP
        )
    name = dotted[12:]
    if name not in INITIALIZERS:
        raise Mistake(span_of(node, source.path), "layer", f"there is no init.{name}", _INIT_HELP)
    takes = INITIALIZERS[name]
    text = f"init.{name}({', '.join(a if d is None else f'{a}={d}' for a, d in takes.items())})"
    pairs = [*zip(takes, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
    given = dict(pairs)
    if len(node.args) > len(takes) or len(given) < len(pairs) or given.keys() - takes.keys():
        raise Mistake(span_of(node, source.path), "layer", f"init.{name} does not take these arguments", text)
    values = {a: _number(source, value, id) for a, value in given.items()}
    missing = [a for a, d in takes.items() if d is None and a not in values]
    if missing:
        raise Mistake(span_of(node, source.path), "layer", f"init.{name} needs {missing[0]}", text)
    if (why := _impossible(name, {**takes, **values})) is not None:
        raise Mistake(span_of(node, source.path), "layer", f"init.{name} of {id}: {why}", text)
    last = max((k for k, a in enumerate(takes) if a in values), default=-1)
    return name, tuple(values.get(a, d) for a, d in list(takes.items())[: last + 1])


def _impossible(name: str, given: Mapping[str, Any]) -> str | None:
    """Why nothing can be drawn so, which layerc.init says when it is called."""
    if name == "uniform" and not given["lo"] <= given["hi"]:
        return f"lo={given['lo']!r} is above hi={given['hi']!r}"
    if name == "normal" and not given["std"] >= 0:
        return f"std={given['std']!r} is negative"
    return None


def _number(source: Source, node: Any, id: str) -> float:
    try:
        value = known(node, source, {})
    except Unknown:
        value = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise Mistake(
        span_of(node, source.path), "layer", f"the initial value of {id} is not a number", "init.uniform(-1, 0)"
    )
