"""What to write instead of x[mask], whose length depends on values: the same with np.where, for the statement that it
stands in.

    np.sum(x[m])    np.sum(np.where(m, x, 0))            y[m] = 2 * x[m]    y[...] = np.where(m, 2 * x, y)
"""

from __future__ import annotations

import ast
import copy
from typing import Any

import gast

from .errors import Mistake

MESSAGE = "x[mask] has a result whose shape depends on values"
_NEUTRAL = {"sum": "0", "prod": "1", "max": "-np.inf", "amax": "-np.inf", "min": "np.inf", "amin": "np.inf"}
_NEUTRAL |= {"any": "False", "all": "True"}
_IN_PLACE = {"Add": ("+=", "0"), "Sub": ("-=", "0"), "Mult": ("*=", "1"), "Div": ("/=", "1")}


def explained(mistake: Mistake, statement: Any) -> Mistake:
    """The mistake with the form that fits the statement."""
    if mistake.message != MESSAGE:
        return mistake
    place = (mistake.span.line, mistake.span.column, mistake.span.end_column)
    for node in gast.walk(statement):
        if isinstance(node, gast.Subscript) and (node.lineno, node.col_offset, node.end_col_offset) == place:
            help = _form(statement, _text(node.value), _text(node.slice))
            return Mistake(mistake.span, mistake.kind, mistake.message, help)
    return mistake


def _form(statement: Any, array: str, mask: str) -> str:
    match statement:
        case gast.Assign(targets=[gast.Subscript(value=base, slice=at)], value=value) if _text(at) == mask:
            return f"write: {_text(base)}[...] = np.where({mask}, {_bare(value, mask)}, {_text(base)})"
        case gast.AugAssign(target=gast.Subscript(value=base, slice=at), op=op, value=value) if _text(at) == mask:
            if (form := _IN_PLACE.get(type(op).__name__)) is not None:
                return f"write: {_text(base)} {form[0]} np.where({mask}, {_bare(value, mask)}, {form[1]})"
    for node in gast.walk(statement):
        reduced = _reduced(node, mask)
        if reduced is None:
            continue
        name, given = reduced
        if name == "len":
            return f"write: np.sum({mask})"
        if name == "mean":
            return f"write: np.sum(np.where({mask}, {_bare(given, mask)}, 0)) / np.sum({mask})"
        return f"write: np.{name}(np.where({mask}, {_bare(given, mask)}, {_NEUTRAL[name]}))"
    return f"keep the shape: np.where({mask}, {array}, 0), or store a scalar where the mask holds: {array}[{mask}] = 0"


def _reduced(node: Any, mask: str) -> tuple[str, Any] | None:
    """The reduction and its argument, if it reduces what the mask selects."""
    match node:
        case gast.Call(func=gast.Name(id="len" | "sum" | "max" | "min" as name), args=[array]):
            pass
        case gast.Call(func=gast.Attribute(value=gast.Name(id="np"), attr=name), args=[array]):
            pass
        case gast.Call(func=gast.Attribute(value=array, attr=name), args=[]):
            pass
        case gast.Attribute(value=array, attr="size"):
            name = "len"
        case _:
            return None
    selects = any(isinstance(n, gast.Subscript) and _text(n.slice) == mask for n in gast.walk(array))
    return (name, array) if selects and (name in _NEUTRAL or name in ("len", "mean")) else None


def _bare(node: Any, mask: str) -> str:
    """The text with every a[mask] as a."""

    class Bare(gast.NodeTransformer):
        def visit_Subscript(self, node: Any) -> Any:
            self.generic_visit(node)
            return node.value if _text(node.slice) == mask else node

    return _text(Bare().visit(copy.deepcopy(node)))


def _text(node: Any) -> str:
    return ast.unparse(gast.gast_to_ast(copy.deepcopy(node)))
