"""Annotations: `real["C *S"]`, `Param[...]`, jaxtyping's spelling, and Python's float, int and bool for
configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gast

from .dims import Dim, maximum, minimum, product
from .errors import Mistake, Suppressed, span_of
from .program import Type
from .source import Source
from .values import Fresh

ELEMENTS = {
    "layerc.real": "real",
    "layerc.f32": "f32",
    "layerc.f64": "f64",
    "layerc.i32": "i32",
    "layerc.i64": "i64",
    "layerc.bool_": "bool",
}
_JAXTYPING = {
    "Float": "real",
    "Float32": "f32",
    "Float64": "f64",
    "Int32": "i32",
    "Int64": "i64",
    "Int": "i64",
    "Integer": "i64",
    "Bool": "bool",
}
ROLES = {"layerc.Param": "param", "layerc.State": "state", "layerc.Memory": "memory"}
_HELP = 'write real["N C"], f32, i64["N"], Param[real["C"]], or float, int, bool for configuration'


@dataclass(frozen=True)
class Annotation:
    role: str  # input param state memory config random
    type: Type
    text: str  # the shape string


def parse_annotation(node: Any, source: Source, fresh: Fresh) -> Annotation:
    if isinstance(node, gast.Constant) and isinstance(node.value, str):
        node = _parsed(node, source)
    dotted = source.resolve(node)
    first = node.value if isinstance(node, gast.Subscript) else node
    if dotted is None and isinstance(first, gast.Name) and source.is_lost(first.id):
        raise Suppressed
    if isinstance(node, gast.Name) and node.id in ("float", "int", "bool") and dotted is None:
        return Annotation("config", Type(node.id, pythons=True), "")
    if dotted == "layerc.Random":
        return Annotation("random", Type("i64"), "")
    if dotted in ELEMENTS:
        return Annotation("input", Type(ELEMENTS[dotted]), "")
    if isinstance(node, gast.Subscript):
        base = source.resolve(node.value)
        if base in ROLES:
            inner = parse_annotation(node.slice, source, fresh)
            if inner.role != "input":
                raise Mistake(span_of(node, source.path), "annotation", f"{base[7:]} holds an array type", _HELP)
            return Annotation(ROLES[base], inner.type, inner.text)
        if base in ELEMENTS:
            return _array(node.slice, ELEMENTS[base], source, fresh)
        if (
            base is not None
            and base.startswith(("jaxtyping.", "layerc."))
            and (element := _JAXTYPING.get(base.partition(".")[2])) is not None
            and isinstance(node.slice, gast.Tuple)
        ):
            return _array(node.slice.elts[-1], element, source, fresh)
    raise Mistake(span_of(node, source.path), "annotation", "this annotation is not one of layerc's", _HELP)


def _parsed(node: Any, source: Source) -> Any:
    try:
        inner = gast.parse(node.value, mode="eval").body
    except SyntaxError:
        raise Mistake(
            span_of(node, source.path), "annotation", f"cannot read the annotation {node.value!r}", _HELP
        ) from None
    for child in gast.walk(inner):
        gast.copy_location(child, node)
    return inner


def _array(node: Any, dtype: str, source: Source, fresh: Fresh) -> Annotation:
    if not (isinstance(node, gast.Constant) and isinstance(node.value, str)):
        raise Mistake(span_of(node, source.path), "annotation", "a shape is written as a string", _HELP)
    dims = tuple(_dim(token, node, source, fresh) for token in node.value.split())
    if sum(t.startswith("*") for t in node.value.split()) > 1:
        raise Mistake(span_of(node, source.path), "annotation", "a shape has at most one group *S")
    return Annotation("input", Type(dtype, dims), " ".join(node.value.split()))


MOST_FACTORS = 8  # of a power, whose exponent is a number
_DIMENSION = "a dimension is a name, a number, *S, _ or integer arithmetic such as 2*C, (H-k)//s+1 or k**2"
_MARKS = {  # of jaxtyping's that mean nothing here
    "#": "axes do not broadcast by themselves: give the extent, 1 or a name",
    ".": "any number of axes is a group with a name: *S",
}


def _dim(token: str, node: Any, source: Source, fresh: Fresh) -> Dim:
    if token == "_":
        return Dim.of(fresh("any"))
    where = span_of(node, source.path)
    text = token[1:] if token.startswith("*") else token
    try:
        found = _evaluate(gast.parse(text, mode="eval").body) if not text.startswith("#") else None
    except (SyntaxError, ValueError):
        found = None
    except ZeroDivisionError:
        raise Mistake(where, "annotation", f"the dimension {token!r} divides by zero", "") from None
    if found is None or (text != token and not text.isidentifier()):
        raise Mistake(where, "annotation", f"cannot read the dimension {token!r}", _MARKS.get(token[:1], _DIMENSION))
    if found.value is not None and found.value < 0:
        raise Mistake(where, "annotation", f"the dimension {token!r} is negative", "an extent is 0 or more")
    return found


def _evaluate(node: Any) -> Dim:
    match node:
        case gast.Constant(value=int(value)) if not isinstance(value, bool):
            return Dim.of(value)
        case gast.Name(id=id):
            return Dim.of(id)
        case gast.UnaryOp(op=gast.USub(), operand=operand):
            return -_evaluate(operand)
        case gast.Call(func=gast.Name(id="min" | "max" as name), args=[left, right]):
            a, b = _evaluate(left), _evaluate(right)
            return minimum(a, b) if name == "min" else maximum(a, b)
        case gast.BinOp(left=left, op=op, right=right):
            a, b = _evaluate(left), _evaluate(right)
            if isinstance(op, (gast.FloorDiv, gast.Mod)) and b.value == 0:
                raise ZeroDivisionError
            match op:
                case gast.Add():
                    return a + b
                case gast.Sub():
                    return a - b
                case gast.Mult():
                    return a * b
                case gast.FloorDiv():
                    return a // b
                case gast.Mod():
                    return a % b
                case gast.Pow() if b.value is not None and 0 <= b.value <= MOST_FACTORS:
                    return product([a] * b.value)
    raise ValueError(node)


def shape_string(type: Type, groups: frozenset[str]) -> str:
    """The shape as jaxtyping would write it."""
    return " ".join(("*" if d.symbol in groups else "") + str(d).replace(" ", "") for d in type.shape)


def groups_of(texts: list[str]) -> frozenset[str]:
    return frozenset(token[1:] for text in texts for token in text.split() if token.startswith("*"))
