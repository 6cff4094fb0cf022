"""Methods that are run as they are, by NumPy: initialize and reset_state. All of NumPy is open to them, so they are not
typed; what is looked for is what fails there for certain."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

import gast

from . import construct
from .defaults import Unknown, known
from .errors import Mistake, span_of
from .libraries import has, module_of
from .program import Parameter
from .source import Source
from .suggestions import UNDEFINED, nearest

METHODS = ("initialize", "reset_state")
_MAKERS = ("np.zeros", "np.ones", "np.empty", "np.full")


def mistakes(source: Source, node: Any, fields: Sequence[Parameter]) -> Iterator[Mistake]:
    """Of one such method of a class with these fields."""
    bound = _bound(node)
    anywhere = _bound(source.tree)
    for inner in gast.walk(node):
        match inner:
            case gast.Attribute(value=value, attr=attr) if _first(value) not in bound:
                if (module := module_of(source.resolve(value))) is not None and not has(module, attr):
                    message = f"{source.resolve(value)} has no {attr}"
                    yield Mistake(span_of(inner, source.path), "name", message, nearest(attr, dir(module)))
            case gast.Name(id=id, ctx=gast.Load()) if not (id in anywhere or hasattr(builtins, id) or id[0] == "<"):
                if not source.is_lost(id):
                    yield Mistake(span_of(inner, source.path), "name", f"{id} is not defined", UNDEFINED)
            case gast.Attribute(value=gast.Name(id="self"), attr=attr, ctx=gast.Store()):
                yield from _assigned(source, node, inner, fields)
            case gast.Assign(targets=[gast.Attribute(value=gast.Name(id="self"), attr=attr)], value=value):
                yield from _shaped(source, value, next((f for f in fields if f.name == attr), None), bound)


def _bound(node: Any) -> set[str]:
    """All names that a tree binds, at whatever depth."""
    found = set()
    for inner in gast.walk(node):
        match inner:
            case gast.Name(id=id) if not isinstance(inner.ctx, gast.Load):
                found.add(id)
            case gast.FunctionDef(name=name) | gast.ClassDef(name=name):
                found.add(name)
            case gast.alias(name=name, asname=asname):
                found.add(asname or name.partition(".")[0])
            case gast.ExceptHandler(name=gast.Name(id=name)):
                found.add(name)
    return found


def _first(node: Any) -> str:
    while isinstance(node, gast.Attribute):
        node = node.value
    return node.id if isinstance(node, gast.Name) else ""


def _assigned(source: Source, method: Any, target: Any, fields: Sequence[Parameter]) -> Iterator[Mistake]:
    roles = ("param", "state", "broken") if method.name == "initialize" else ("state", "broken")
    role = next((f.role for f in fields if f.name == target.attr), None)
    if role in roles:
        return
    what = {None: "is no field of the layer", "config": "is configuration, which a layer cannot assign"}
    message = f"self.{target.attr} {what.get(role, f'is a Param, which {method.name} cannot assign')}"
    names = [f.name for f in fields if f.role in roles]
    help = "it may assign: " + ", ".join(names) if names else "declare it: State[...]"
    yield Mistake(span_of(target, source.path), "role", message, help)


def _shaped(source: Source, value: Any, field: Parameter | None, bound: set[str]) -> Iterator[Mistake]:
    """`self.w = np.zeros((3, 4))`, of a shape that is written out."""
    if field is None or field.role not in ("param", "state") or "*" in field.shape_text:
        return
    if not isinstance(value, gast.Call) or _first(value.func) in bound or source.resolve(value.func) not in _MAKERS:
        return
    written = next(iter([*value.args, *(k.value for k in value.keywords if k.arg == "shape")]), None)
    if written is None or any(isinstance(n, gast.Name) and n.id in bound for n in gast.walk(written)):
        return
    try:
        shape = known(written, source, {})
    except Unknown:
        return
    shape = shape if isinstance(shape, tuple) else (shape,)
    declared = field.type.shape
    if len(shape) == len(declared) and all(d.value in (None, n) for d, n in zip(declared, shape, strict=True)):
        return
    shown = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    message = f"{field.name} has shape {construct.shape_text(declared)}, this is {shown}"
    yield Mistake(span_of(value, source.path), "shape", message, "assign a value of the declared shape")


__all__ = ["METHODS", "mistakes"]
