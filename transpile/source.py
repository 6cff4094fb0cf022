"""A layer file as gast sees it: its imports, constants, functions and classes. Nothing in it is executed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gast

from . import exits
from .errors import Mistake, Reporter, span_of
from .program import Span

# How modules are called in the table of operations.
_CANONICAL = {"numpy": "np", "scipy.special": "special", "scipy": "scipy", "math": "math"}
CONSTANTS = {
    "np.pi": math.pi, "np.e": math.e, "np.inf": math.inf, "np.nan": math.nan, "np.newaxis": None,
    "math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "math.nan": math.nan, "math.tau": math.tau,
    "np.euler_gamma": 0.5772156649015329,
}


@dataclass
class Source:
    path: str
    text: str
    tree: Any
    imports: dict[str, str] = field(default_factory=dict)  # local name -> dotted canonical name
    constants: dict[str, Any] = field(default_factory=dict)  # name -> expression node
    functions: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, Any] = field(default_factory=dict)
    layers: tuple[str, ...] = ()  # __layers__: which undecorated functions are layers (generated gradient files)
    batched: tuple[str, ...] = ()  # __batched__: which of them take whole batches

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def resolve(self, node: Any) -> str | None:
        """The canonical dotted name of `np.linalg.norm` and the like; None if it does not start at an import."""
        match node:
            case gast.Name(id=name):
                return self.imports.get(name)
            case gast.Attribute(value=value, attr=attr):
                base = self.resolve(value)
                if base is None:
                    return None
                dotted = f"{base}.{attr}"
                return {"scipy.special": "special"}.get(dotted, dotted)
        return None

    def excerpt(self, node: Any) -> str:
        """The text of a statement as the user wrote it, decorators included."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        return "\n".join(self.lines[first - 1 : node.end_lineno])


def read(path: Path, reporter: Reporter, text: str | None = None) -> Source | None:
    """Parses a file; None (and a mistake reported) if it is not Python. OSError and UnicodeError are the caller's."""
    name = str(path.name)
    if text is None:
        text = path.read_text(encoding="utf-8-sig")
    reporter.sources[name] = text.splitlines()
    try:
        tree = gast.parse(text, filename=name)
    except (SyntaxError, ValueError) as error:  # ValueError: a NUL byte
        line, column = getattr(error, "lineno", 1) or 1, max((getattr(error, "offset", 1) or 1) - 1, 0)
        message = getattr(error, "msg", None) or str(error)
        reporter.add(Mistake(Span(line, column, line, column + 1, name), "syntax", message))
        return None
    except RecursionError:
        reporter.add(Mistake(Span(1, 0, 1, 1, name), "syntax", "an expression is nested too deeply"))
        return None
    exits.rewrite(tree)
    source = Source(name, text, tree)
    for node in tree.body:
        _top_level(source, node, reporter)
    return source


def _top_level(source: Source, node: Any, reporter: Reporter) -> None:
    match node:
        case gast.Import(names=aliases):
            for alias in aliases:
                top = alias.name if alias.asname else alias.name.split(".")[0]
                source.imports[alias.asname or top] = _canonical(top)
        case gast.ImportFrom(module=module, names=aliases):
            for alias in aliases:
                source.imports[alias.asname or alias.name] = _canonical(f"{module}.{alias.name}" if module else alias.name)
        case gast.FunctionDef(name=name):
            source.functions[name] = node
        case gast.ClassDef(name=name):
            source.classes[name] = node
        case gast.Assign(targets=[gast.Name(id="__layers__")], value=gast.Tuple(elts=elts) | gast.List(elts=elts)):
            source.layers = tuple(e.value for e in elts if isinstance(e, gast.Constant))
        case gast.Assign(targets=[gast.Name(id="__batched__")], value=gast.Tuple(elts=elts) | gast.List(elts=elts)):
            source.batched = tuple(e.value for e in elts if isinstance(e, gast.Constant))
        case gast.Assign(targets=[gast.Name(id=name)], value=value):
            source.constants[name] = value
        case gast.AnnAssign(target=gast.Name(id=name), value=value) if value is not None:
            source.constants[name] = value
        case gast.If(body=body, orelse=orelse):  # `if TYPE_CHECKING:` and `if __name__ == "__main__":`
            for child in [*body, *orelse]:
                if isinstance(child, (gast.Import, gast.ImportFrom)):
                    _top_level(source, child, reporter)
        case gast.Try(body=body):
            for child in body:
                _top_level(source, child, reporter)
        case gast.Expr() | gast.Pass():
            pass
        case _:
            what = type(node).__name__
            reporter.add(Mistake(
                span_of(node, source.path), "statement", f"{what} is not part of a layer file",
                "at top level: imports, constants, functions and Layer classes",
            ))


def _canonical(dotted: str) -> str:
    for module, name in _CANONICAL.items():
        if dotted == module or dotted.startswith(module + "."):
            return {"scipy.special": "special"}.get(dotted, name + dotted[len(module) :])
    return dotted
