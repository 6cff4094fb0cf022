"""What makes a function or class a layer: `@layer`, `class A(Layer)`, `@NAME.backward`; and marks that would change the
meaning of a function under Python, or are misspelt, and so must not be passed over."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import gast

from .errors import Mistake, span_of
from .source import Source
from .suggestions import nearest


# -- layers ----------------------------------------------------------------------------------------------------
def is_layer(source: Source, node: Any) -> bool:
    return node.name in source.layers or _decorator(source, node) is not None


def _is_mark(source: Source, decorator: Any) -> bool:
    target = decorator.func if isinstance(decorator, gast.Call) else decorator
    return source.resolve(target) == "layerc.layer"


def _decorator(source: Source, node: Any) -> Any:
    return next((d for d in node.decorator_list if _is_mark(source, d)), None)


def is_layer_class(source: Source, node: Any, seen: tuple[Any, ...] = ()) -> bool:
    """Whether it derives from Layer, maybe through a class of this file or of an imported one."""
    for base in node.bases:
        if source.resolve(base) == "layerc.Layer":
            return True
        known = source.defined(base.id) if isinstance(base, gast.Name) else source.member(base)
        if known is not None and known[1] in known[0].classes and node not in seen:
            if is_layer_class(known[0], known[0].classes[known[1]], (*seen, node)):
                return True
    return False


_OPTIONS = {"batched": ((True, False), "True or False"), "backward": ((None,), "None")}
_OPTIONS_HELP = "batched=True, backward=None"


def options(source: Source, node: Any) -> dict[str, Any]:
    """What `@layer(...)` says of a function."""
    decorator = _decorator(source, node)
    found: dict[str, Any] = {}
    if not isinstance(decorator, gast.Call):
        return found
    for argument in decorator.args:
        raise Mistake(span_of(argument, source.path), "layer", "@layer takes options by name", "batched=True")
    for keyword in decorator.keywords:
        where = span_of(keyword.value, source.path)
        if keyword.arg not in _OPTIONS:
            raise Mistake(where, "layer", f"@layer has no option {keyword.arg}", _OPTIONS_HELP)
        if not isinstance(keyword.value, gast.Constant):
            raise Mistake(where, "layer", f"{keyword.arg} must be written out", _OPTIONS_HELP)
        allowed, text = _OPTIONS[keyword.arg]
        if not any(keyword.value.value is value for value in allowed):
            help = f"one of your own is marked @{node.name}.backward" if keyword.arg == "backward" else ""
            raise Mistake(where, "layer", f"{keyword.arg} must be {text}", help)
        found[keyword.arg] = keyword.value.value
    return found


# -- backwards -------------------------------------------------------------------------------------------------
def backwards(source: Source, name: str) -> list[Any]:
    """The functions marked as the backward of a layer."""
    return [
        n
        for n in source.definitions
        if isinstance(n, gast.FunctionDef) and any(_backward_of(d) == name for d in n.decorator_list)
    ]


def _backward_of(decorator: Any) -> str | None:
    match decorator:
        case gast.Attribute(value=gast.Name(id=id), attr="backward"):
            return id
    return None


# -- mistakes --------------------------------------------------------------------------------------------------
def mistakes(source: Source) -> Iterator[Mistake]:
    """Marks that are not layerc's, on whatever a layer needs; and near misses elsewhere."""
    nodes = source.definitions
    layers = [n for n in nodes if _is_whole_layer(source, n)]
    roots = layers + [n for n in nodes if any(_owner(source, d) for d in n.decorator_list)]
    used = _used(source, roots)
    for home, node in used:
        if isinstance(node, gast.FunctionDef):
            yield from _unknown(home, node)
    seen = {id(node) for _, node in used}
    for node in nodes:
        if isinstance(node, gast.ClassDef):
            yield from _class_marks(source, node)
        elif id(node) not in seen:
            yield from (_unknown_mark(source, d) for d in node.decorator_list if _meant_layer(source, d))
    yield from _doubled(source, layers)


def _is_whole_layer(source: Source, node: Any) -> bool:
    return is_layer_class(source, node) if isinstance(node, gast.ClassDef) else is_layer(source, node)


def _used(source: Source, roots: list[Any]) -> list[tuple[Source, Any]]:
    """The functions and classes that layers name, and those that these name, of imported files too."""
    found = [(source, node) for node in roots]
    for home, node in found:  # grows
        for inner in gast.walk(node):
            known = home.defined(inner.id) if isinstance(inner, gast.Name) else home.member(inner)
            if known is None or known[0].shipped:
                continue
            other = known[0].functions.get(known[1], known[0].classes.get(known[1]))
            if other is not None and all(other is not n for _, n in found):
                found.append((known[0], other))
    return found


def _owner(source: Source, decorator: Any) -> str | None:
    """f, of @f.backward and of what was meant so: a function or class of the file with whatever behind it."""
    match decorator:
        case gast.Call(func=func):
            return _owner(source, func)
        case gast.Attribute(value=gast.Name(id=id)) if id in source.functions or id in source.classes:
            return id
    return _backward_of(decorator)


def _unknown(source: Source, node: Any) -> Iterator[Mistake]:
    marks = 0
    for decorator in node.decorator_list:
        where = span_of(decorator, source.path)
        if _is_mark(source, decorator):
            marks += 1
            if marks > 1:
                yield Mistake(where, "layer", f"{node.name} is marked as a layer twice", "remove one")
        elif (owner := _owner(source, decorator)) is not None:
            yield from _backward_mark(source, node, decorator, owner)
        elif not source.is_lost(_text(decorator).partition(".")[0].removesuffix("(...)")):
            yield _unknown_mark(source, decorator)


def _unknown_mark(source: Source, decorator: Any) -> Mistake:
    text = _text(decorator)
    where = span_of(decorator, source.path)
    if text.removesuffix("(...)") in ("layer", "layerc.layer"):
        return Mistake(where, "layer", f"@{text} is not imported", "from layerc import layer")
    help = "did you mean @layer?" if _meant_layer(source, decorator) else "call it in the body: y = helper(x)"
    return Mistake(where, "layer", f"@{text} is not a mark that layerc knows", help)


def _meant_layer(source: Source, decorator: Any) -> bool:
    """Whether it is @layer misspelt, or Layer for layer."""
    target = decorator.func if isinstance(decorator, gast.Call) else decorator
    if source.resolve(target) == "layerc.Layer":
        return True
    if _text(target) == "layerc.layer" and not source.is_lost("layerc"):
        return True
    if isinstance(target, gast.Attribute):
        return (source.resolve(target) or "").startswith("layerc.") and bool(nearest(target.attr, ["layer"]))
    return isinstance(target, gast.Name) and _close(source, target.id, "layer")


def _close(source: Source, id: str, word: str) -> bool:
    """Whether a name that nothing defines is nearly that word."""
    if source.defined(id) is not None or id in source.imports or id in source.modules:
        return False
    if source.is_lost(id):
        return False
    return bool(difflib.get_close_matches(id.lower(), [word.lower()], n=1, cutoff=0.7))


def _text(decorator: Any) -> str:
    match decorator:
        case gast.Call(func=func):
            return f"{_text(func)}(...)"
        case gast.Attribute(value=value, attr=attr):
            return f"{_text(value)}.{attr}"
        case gast.Name(id=id):
            return id
    return "this"


def _backward_mark(source: Source, node: Any, decorator: Any, owner: str) -> Iterator[Mistake]:
    where, kind = span_of(decorator, source.path), "backward"
    if owner in source.classes:
        help = "define a method: def backward(self, dy)"
        yield Mistake(where, kind, f"{owner} is a class, whose backward stands in it", help)
    elif owner not in source.functions or not is_layer(source, source.functions[owner]):
        layers = [n.name for n in source.functions.values() if is_layer(source, n)]
        yield Mistake(where, kind, f"{owner} is not a layer function of this file", nearest(owner, layers))
    elif isinstance(decorator, gast.Call) or _backward_of(decorator) is None:
        yield Mistake(where, kind, f"@{_text(decorator)} marks nothing", f"did you mean @{owner}.backward?")
    else:
        layer = source.functions[owner]
        if backwards(source, owner)[0] is not node:
            yield Mistake(where, kind, f"{owner} has two backwards", "remove one")
        if "backward=None" in _option_texts(layer):
            yield Mistake(where, kind, f"{owner} has backward=None and this backward", "remove one")


def _option_texts(node: Any) -> list[str]:
    calls = [d for d in node.decorator_list if isinstance(d, gast.Call)]
    return [f"{k.arg}={k.value.value}" for c in calls for k in c.keywords if isinstance(k.value, gast.Constant)]


def _class_marks(source: Source, node: Any) -> Iterator[Mistake]:
    is_known = is_layer_class(source, node)
    for decorator in node.decorator_list:
        if is_known or _is_mark(source, decorator) or _meant_layer(source, decorator):
            help = f"class {node.name}(Layer):"
            what = "a layer class has no decorators" if is_known else "@layer is for functions"
            yield Mistake(span_of(decorator, source.path), "layer", what, "" if is_known else help)
    for base in [] if is_known else node.bases:
        if source.resolve(base) == "layerc.layer" or (isinstance(base, gast.Name) and _close(source, base.id, "Layer")):
            what, help = f"{base.id} is no layer class", "did you mean Layer?"
            if base.id == "Layer":
                what, help = "Layer is not imported", "from layerc import Layer"
            yield Mistake(span_of(base, source.path), "layer", what, help)


def _doubled(source: Source, layers: list[Any]) -> Iterator[Mistake]:
    """Of two meanings of one name, the last would win, and a layer or a helper be missed. Only the backwards of layers
    need no names of their own."""
    names = {n.name for n in layers}
    seen: dict[str, tuple[int, bool]] = {}
    for name, node, defines in _meanings(source):
        line, defined = seen.get(name, (0, False))
        if line and (defines or defined):
            message = f"{name} is defined twice, also in line {line}"
            yield Mistake(span_of(node, source.path), "layer", message, "give each a name of its own")
        if not defines or name in names or not any(_backward_of(d) for d in node.decorator_list):
            seen[name] = (node.lineno, defines or defined)


def _meanings(source: Source) -> Iterator[tuple[str, Any, bool]]:
    """What the file gives a name to, in order, and whether it is a function or a class."""
    assignments = [n for n in source.tree.body if isinstance(n, (gast.Assign, gast.AnnAssign)) and n.value is not None]
    for node in sorted([*source.definitions, *assignments], key=lambda n: n.lineno):
        if isinstance(node, (gast.FunctionDef, gast.ClassDef)):
            yield node.name, node, True
            continue
        for target in node.targets if isinstance(node, gast.Assign) else [node.target]:
            for name in (n for n in gast.walk(target) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)):
                yield name.id, name, False
