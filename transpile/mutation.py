"""What the statements of a function bind and write into, read off its text: before anything is typed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import gast

from .values import DRAWS

# Methods of arrays and lists, which keep their arguments as they are.
_METHODS = {
    "append",
    "extend",
    "pop",
    "dot",
    "reshape",
    "transpose",
    "astype",
    "clip",
    "take",
    "repeat",
    "sum",
    "mean",
    "max",
    "min",
    "swapaxes",
}


_HARMLESS = {
    "range",
    "len",
    "abs",
    "min",
    "max",
    "sum",
    "round",
    "int",
    "float",
    "bool",
    "enumerate",
    "zip",
    "reversed",
    "callable",
}


def _harmless(func: Any, libraries: Collection[str]) -> bool:
    """Whether a call writes into none of its arguments: one of NumPy, of Python's own, or a method of
    arrays or of random generators."""
    if isinstance(func, gast.Name):
        return func.id in _HARMLESS or func.id in libraries
    if isinstance(func, gast.Attribute) and isinstance(func.value, gast.Name):
        of_values = func.value.id != "self" and (func.attr in _METHODS or func.attr in DRAWS)
        return bool({func.value.id, f"{func.value.id}.{func.attr}"} & {*libraries}) or of_values
    return True


def mutated_names(function: Any, libraries: Collection[str] = ("np", "math", "special")) -> set[str]:
    """Names that a function may write into in place: x[...] = v, x += v, np.add.at(x, ...), and arguments of
    calls that might. `libraries`: names of what writes into none of its arguments."""
    inner = _inner_functions(function)
    known = set(libraries) - _bound_names(function)
    return _mutated(function, known | harmless_functions(inner, known))


def harmless_functions(functions: Mapping[str, Any], libraries: Collection[str]) -> set[str]:
    """Those that write into nothing that they are given, nor into what they see, as far as their text tells."""
    found = set(functions)

    def writes(function: Any) -> bool:
        return bool(_mutated(function, {*libraries, *found} - _bound_names(function)))

    while writing := {name for name in found if writes(functions[name])}:
        found -= writing
    return found


def _inner_functions(function: Any) -> dict[str, Any]:
    """Functions and lambdas that have one name each in a function."""
    found: dict[str, Any] = {}
    bound: list[str] = []
    for node in gast.walk(function):
        match node:
            case gast.FunctionDef(name=name) if node is not function:
                found[name] = node
                bound.append(name)
            case gast.Assign(targets=[gast.Name(id=id)], value=gast.Lambda() as value):
                found[id] = value
        if isinstance(node, gast.Name) and not isinstance(node.ctx, gast.Load):
            bound.append(node.id)
    return {name: node for name, node in found.items() if bound.count(name) == 1}


def _bound_names(function: Any) -> set[str]:
    """Its parameters, and those of the functions in it, and what they assign: these names may mean anything."""
    return {n.id for n in gast.walk(function) if isinstance(n, gast.Name) and not isinstance(n.ctx, gast.Load)}


def _mutated(function: Any, libraries: Collection[str]) -> set[str]:
    found: set[str] = set()
    for node in gast.walk(function):
        match node:
            case gast.Subscript(value=base, ctx=gast.Store()):
                found |= base_names(base)
            case gast.AugAssign(target=target):
                found |= base_names(target)
            case gast.Call(func=gast.Attribute(attr="at"), args=[first, _, *_]):
                found |= base_names(first)
            case gast.Call(func=func, args=args, keywords=keywords) if not _harmless(func, libraries):
                for arg in [*args, *(k.value for k in keywords)]:
                    found |= base_names(arg)
    return found


def target_names(nodes: list[Any], in_place: Callable[[str], bool] = lambda id: False) -> list[str]:
    """The names that statements bind, in order; for self.x: "self.x". in_place: whether `+=` does not bind a name."""
    found: list[str] = []
    updated: set[Any] = set()
    for node in nodes:
        for child in _own_nodes(node):
            match child:
                case gast.AugAssign(target=gast.Name() as target):
                    updated.add(target)
                case gast.Name(id=id, ctx=gast.Store() | gast.Del()) if not (child in updated and in_place(id)):
                    found.append(id)
                case gast.Attribute(value=gast.Name(id="self"), attr=attr, ctx=gast.Store()):
                    found.append(f"self.{attr}")
                case gast.FunctionDef(name=name) | gast.ClassDef(name=name):
                    found.append(name)
    return found


def _own_nodes(node: Any) -> Iterator[Any]:
    """All nodes in a statement, without those of functions, classes and comprehensions in it: these have names of their
    own."""
    yield node
    if isinstance(node, (gast.FunctionDef, gast.ClassDef, gast.Lambda, gast.ListComp, gast.GeneratorExp)):
        return
    for child in gast.iter_child_nodes(node):
        yield from _own_nodes(child)


def base_names(node: Any) -> set[str]:
    while isinstance(node, (gast.Subscript, gast.Attribute)):
        node = node.value
    return {node.id} if isinstance(node, gast.Name) else set()


def as_load(node: Any) -> Any:
    if isinstance(node, gast.Name):
        return gast.copy_location(gast.Name(id=node.id, ctx=gast.Load(), annotation=None, type_comment=None), node)
    return gast.copy_location(gast.Attribute(value=node.value, attr=node.attr, ctx=gast.Load()), node)
