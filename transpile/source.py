"""A layer file as gast sees it: its imports, constants, functions and classes. Nothing in it is executed."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import gast

from . import exits, halting, leftovers
from .depth import too_deep
from .errors import Mistake, Reporter, Suppressed, span_of
from .lines import lines_of
from .mutation import harmless_functions, target_names
from .program import Span
from .suggestions import nearest

# How modules are called in the table of operations.
_CANONICAL = {
    "numpy": "np",
    "scipy.special": "special",
    "scipy": "scipy",
    "math": "math",
    "layerc.runtime.derivatives": "derivative",
    "layerc.stop_gradient": "derivative.stop_gradient",
}
CONSTANTS = {
    "np.pi": math.pi,
    "np.e": math.e,
    "np.inf": math.inf,
    "np.nan": math.nan,
    "np.newaxis": None,
    "math.pi": math.pi,
    "math.e": math.e,
    "math.inf": math.inf,
    "math.nan": math.nan,
    "math.tau": math.tau,
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
    definitions: list[Any] = field(default_factory=list)  # all functions and classes, also those defined again
    lost: set[str] = field(default_factory=set)  # local names whose import is a mistake, told once; "*": any name
    missing: dict[str, str] = field(default_factory=dict)  # local name -> the layer file that was not found for it
    layers: tuple[str, ...] = ()  # __layers__: which undecorated functions are layers (generated gradient files)
    batched: tuple[str, ...] = ()  # __batched__: which of them take whole batches
    modules: dict[str, Source] = field(default_factory=dict)  # local name -> an imported layer file
    borrowed: dict[str, tuple[Source, str]] = field(default_factory=dict)  # local name -> a name in such a file
    shipped: bool = False  # a file of layerc's own: its places mean nothing to a user

    @property
    def lines(self) -> list[str]:
        return lines_of(self.text)

    @cached_property
    def harmless(self) -> set[str]:
        """Names whose calls write into none of their arguments: libraries, layerc's own functions, and those of layer
        files that only read."""
        found = set(self.imports)
        for name, (source, other) in self.borrowed.items():
            if source.shipped or other in source.harmless:
                found.add(name)
        for name, module in self.modules.items():
            found |= {f"{name}.{other}" for other in module.harmless if other in module.functions}
        return found | harmless_functions(self.functions, found)

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

    def is_lost(self, name: str) -> bool:
        return name in self.lost or "*" in self.lost

    def defined(self, name: str) -> tuple[Source, str] | None:
        """Where a function, class or constant is defined: in this file or in one that it imports from."""
        if name in self.functions or name in self.classes or name in self.constants:
            return self, name
        if name in self.borrowed:
            source, other = self.borrowed[name]
            return source.defined(other)
        return None

    def member(self, node: Any) -> tuple[Source, str] | None:
        """Where `mylayers.helper` is defined, mylayers being an imported layer file."""
        if isinstance(node, gast.Attribute) and isinstance(node.value, gast.Name) and node.value.id in self.modules:
            return self.modules[node.value.id].defined(node.attr)
        return None

    def imported(self) -> Iterator[Source]:
        """The layer files that this one needs."""
        for source in [*self.modules.values(), *(s for s, _ in self.borrowed.values())]:
            if not source.shipped:
                yield source
                yield from source.imported()

    def excerpt(self, node: Any) -> str:
        """The text of a statement as the user wrote it, decorators included."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        return "\n".join(self.lines[first - 1 : node.end_lineno])


@dataclass
class Reading:
    """The files of one compilation: those being read, outermost first, and those that have been."""

    folder: Path
    reporter: Reporter
    open: tuple[Path, ...] = ()
    done: dict[Path, Source | None] = field(default_factory=dict)


def read(path: Path, reporter: Reporter, text: str | None = None) -> Source | None:
    """Parses a file, and the layer files that it imports; None (and a mistake reported) if it is not Python.
    OSError and UnicodeError are the caller's."""
    if text is None:
        text = path.read_text(encoding="utf-8-sig")
    return _read(path, text, Reading(path.parent, reporter))


def _read(path: Path, text: str, reading: Reading) -> Source | None:
    reporter = reading.reporter
    name = _shown(path, reading)
    reporter.sources[name] = lines_of(text)
    deepest = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            deepest = too_deep(text)
            if deepest is not None:
                raise RecursionError
            tree = gast.parse(text, filename=name)
            _compiled(text, name)
        leftovers.rewrite(tree)
        exits.rewrite(tree)
        halting.mark(tree)
    except (SyntaxError, ValueError) as error:  # ValueError: a NUL byte
        reporter.add(_no_python(error, name, text))
        return None
    except (RecursionError, MemoryError):
        line, column = deepest or (1, 0)
        where = Span(line, column, line, len(lines_of(text)[line - 1].encode()), name)
        help = "compute parts of it in statements of their own"
        reporter.add(Mistake(where, "syntax", "an expression is nested too deeply", help))
        return None
    source = Source(name, text, tree)
    inside = replace(reading, open=(*reading.open, path.resolve()))
    for node in tree.body:
        _top_level(source, node, path, inside)
    return source


def _shown(path: Path, reading: Reading) -> str:
    """A file's name in messages: from where the compiled one lies."""
    return Path(os.path.relpath(path, reading.folder)).as_posix()


def report_no_utf8(error: UnicodeDecodeError, name: str, reporter: Reporter) -> None:
    """A byte that ends no character of UTF-8, where it stands."""
    reporter.sources[name] = lines_of(error.object.decode(errors="replace"))
    before = lines_of(error.object[: error.start].decode() + "?")
    line, column = len(before), len(before[-1].encode()) - 1
    where = Span(line, column, line, column + 3, name)
    what = f"the byte {error.object[error.start]:#04x} is not UTF-8: {error.reason}"
    reporter.add(Mistake(where, "syntax", what, f"save {Path(name).name} as UTF-8"))


def _compiled(text: str, name: str) -> None:
    """What Python finds only when it compiles: a name both global and local, an unknown `coding:`. Whether there is a
    loop to break is for the checker to find, with all other mistakes; `loose_exit` is for what it does not look at."""
    try:
        compile(text.encode(), name, "exec", dont_inherit=True)
    except SyntaxError as error:
        if "loop" not in (error.msg or ""):
            raise


def loose_exit(source: Source) -> Mistake | None:
    """A `break` outside of loops, in a function that no layer calls: Python would not load the file."""
    try:
        compile(source.text, source.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return _no_python(error, source.path, source.text)
    return None


def _no_python(error: SyntaxError | ValueError, name: str, text: str) -> Mistake:
    line, offset = getattr(error, "lineno", 1) or 1, max((getattr(error, "offset", 1) or 1) - 1, 0)
    written = [*lines_of(text), ""]
    column = len(written[min(line, len(written)) - 1][:offset].encode())  # offsets count characters, spans bytes
    message = getattr(error, "msg", None) or str(error)
    return Mistake(Span(line, column, line, column + 1, name), "syntax", message)


# -- imports ---------------------------------------------------------------------------------------------------
_LIBRARIES = {"numpy", "scipy", "math", "layerc", "jaxtyping", "typing", "__future__", "collections"}


# What a layer file can import from layerc, as `layerc.__all__` says (which a test compares).
FACE = (
    *("Layer", "Param", "State", "Memory", "Random", "config", "init", "layer"),
    *("real", "f32", "f64", "i32", "i64", "bool_"),
    *("Array", "Float", "Float32", "Float64", "Int32", "Int64", "Bool"),
    *("set_num_threads", "get_num_threads", "runtime", "__version__"),
    *("ode45", "stop_gradient"),
)
# Functions of the face that are written in the subset, by the files they stand in.
_SHIPPED = {"ode45": "ode45.py"}


def shipped(name: str) -> Source | None:
    """The file of layerc's own in which a function of its face is defined; None if the subset does not say it."""
    return _shipped_file(_SHIPPED[name]) if name in _SHIPPED else None


@cache
def _shipped_file(file: str) -> Source:
    path = Path(__file__).resolve().parents[1] / "runtime" / file
    reporter = Reporter()
    source = _read(path, path.read_text(encoding="utf-8"), Reading(path.parent, reporter))
    reporter.raise_if_any()
    assert source is not None
    return replace(source, shipped=True)


def _layer_file(dotted: str, node: Any, source: Source, path: Path, reading: Reading) -> Source | None:
    """The layer file of an imported module, which lies beside the file; None if it is another module."""
    if not dotted or dotted.split(".")[0] in _LIBRARIES:
        return None
    file = _beside(path, dotted)
    if not file.is_file():
        return None
    known = file.resolve()
    if known in reading.open:
        names = ", ".join(p.name for p in reading.open[reading.open.index(known) :])
        raise Mistake(
            span_of(node, source.path),
            "import",
            f"layer files import each other in a circle: {names}, {file.name}",
            "move what both need into a third file",
        )
    if known not in reading.done:
        try:
            text = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise Mistake(span_of(node, source.path), "import", f"cannot read {file.name}: {error}") from None
        except UnicodeDecodeError as error:
            report_no_utf8(error, _shown(file, reading), reading.reporter)
            text = None
        reading.done[known] = None if text is None else _read(file, text, reading)
    if reading.done[known] is None:
        raise Suppressed
    return reading.done[known]


def _beside(path: Path, dotted: str) -> Path:
    return path.parent.joinpath(*dotted.split(".")).with_suffix(".py")


def _note_missing(source: Source, local: str, dotted: str, path: Path) -> None:
    if dotted and dotted.split(".")[0] not in _LIBRARIES:
        source.missing[local] = str(_beside(path, dotted).resolve())


def _import(source: Source, node: Any, path: Path, reading: Reading) -> None:
    for alias in node.names:
        other = _layer_file(alias.name, node, source, path, reading)
        top = alias.name if alias.asname else alias.name.split(".")[0]
        if other is not None and (alias.asname or "." not in alias.name):
            source.modules[alias.asname or top] = other
        else:
            source.imports[alias.asname or top] = _canonical(top)
            _note_missing(source, alias.asname or top, alias.name, path)


def _import_from(source: Source, node: Any, path: Path, reading: Reading) -> None:
    module = node.module or ""
    base = path
    for _ in range((node.level or 0) - 1):
        base = base.parent
    other = _layer_file(module, node, source, base, reading)
    for alias in node.names:
        local = alias.asname or alias.name
        if other is None and node.level and not module:  # from . import mylayers
            found = _layer_file(alias.name, node, source, base, reading)
            if found is not None:
                source.modules[local] = found
                continue
        if alias.name == "*":
            raise Mistake(
                span_of(node, source.path), "import", "import * is not part of a layer file", "name what is imported"
            )
        if module == "layerc" and alias.name not in FACE:
            where = span_of(node, source.path)
            reading.reporter.add(Mistake(where, "import", f"layerc has no {alias.name}", nearest(alias.name, FACE)))
            source.lost.add(local)
            continue
        if module == "layerc" and (own := shipped(alias.name)) is not None:
            source.borrowed[local] = (own, alias.name)
        elif other is None:
            source.imports[local] = _canonical(f"{module}.{alias.name}" if module else alias.name)
            _note_missing(source, local, module or alias.name, base)
        elif other.defined(alias.name) is not None:
            source.borrowed[local] = (other, alias.name)
        elif alias.name in other.imports:
            source.imports[local] = other.imports[alias.name]
        else:
            raise Mistake(
                span_of(node, source.path),
                "import",
                f"{other.path} defines no {alias.name}",
                nearest(alias.name, [*other.functions, *other.classes, *other.constants]),
            )


def _bound(node: Any) -> set[str]:
    """The names that an import gives."""
    return {alias.asname or alias.name.split(".")[0] for alias in node.names}


def _top_level(source: Source, node: Any, path: Path, reading: Reading) -> None:
    reporter = reading.reporter
    match node:
        case gast.Import() | gast.ImportFrom():
            try:
                (_import if isinstance(node, gast.Import) else _import_from)(source, node, path, reading)
            except Mistake as mistake:
                reporter.add(mistake)
                source.lost |= _bound(node)
            except Suppressed:
                source.lost |= _bound(node)
        case gast.FunctionDef(name=name):
            source.functions[name] = node
            source.definitions.append(node)
        case gast.ClassDef(name=name):
            source.classes[name] = node
            source.definitions.append(node)
        case gast.Assign(targets=[gast.Name(id="__layers__")], value=gast.Tuple(elts=elts) | gast.List(elts=elts)):
            source.layers = tuple(e.value for e in elts if isinstance(e, gast.Constant))
        case gast.Assign(targets=[gast.Name(id="__batched__")], value=gast.Tuple(elts=elts) | gast.List(elts=elts)):
            source.batched = tuple(e.value for e in elts if isinstance(e, gast.Constant))
        case gast.Assign(targets=[gast.Name(id=name)], value=value):
            source.constants[name] = value
        case gast.Assign(targets=targets, value=value) if all(isinstance(t, gast.Name) for t in targets):
            source.constants.update({t.id: value for t in targets})
        case gast.Assign(targets=[gast.Tuple(elts=elts)], value=gast.Tuple(elts=values)) if len(elts) == len(
            values
        ) and all(isinstance(e, gast.Name) for e in elts):
            source.constants.update({e.id: v for e, v in zip(elts, values, strict=True)})
        case gast.AnnAssign(target=gast.Name(id=name), value=value):
            if value is not None:
                source.constants[name] = value
        case gast.If(test=test, body=body, orelse=orelse):
            given = target_names([node])
            if given and not _by_itself(source, test):
                message = "a name that an if gives a meaning would have it in one run, and not in another"
                help = f"define {given[0]} without if; configuration is for what changes: k: int = 3"
                reporter.add(Mistake(span_of(node, source.path), "statement", message, help))
                source.lost |= set(given)
            for child in [*body, *orelse]:
                if isinstance(child, (gast.Import, gast.ImportFrom)):
                    _top_level(source, child, path, reading)
        case gast.Try(body=body):
            for child in body:
                _top_level(source, child, path, reading)
        case gast.Expr() | gast.Pass():
            pass
        case _:
            what = type(node).__name__
            reporter.add(
                Mistake(
                    span_of(node, source.path),
                    "statement",
                    f"{what} is not part of a layer file",
                    "at top level: imports, constants, functions and Layer classes",
                )
            )


def _by_itself(source: Source, test: Any) -> bool:
    """Whether it is `if TYPE_CHECKING:` or `if __name__ == "__main__":`, whose blocks are no part of the layers."""
    names = {n.id for n in gast.walk(test) if isinstance(n, gast.Name)}
    return "__name__" in names or "TYPE_CHECKING" in names or source.resolve(test) == "typing.TYPE_CHECKING"


def _canonical(dotted: str) -> str:
    for module, name in _CANONICAL.items():
        if dotted == module or dotted.startswith(module + "."):
            return {"scipy.special": "special"}.get(dotted, name + dotted[len(module) :])
    return dotted
