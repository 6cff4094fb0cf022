"""Class layers: fields, methods, and what these must agree in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import gast

from . import by_hand, defaults, extents
from .annotations import parse_annotation
from .backwards import check_memory, check_unsettled, checked_backward, possible_mode
from .bodies import check_function
from .errors import Mistake, Reporter, Suppressed, span_of
from .program import (
    Function,
    Layer,
    Parameter,
    Type,
)
from .signatures import attempt, broken, parameters_of
from .source import Source
from .values import Fresh

_OF_EVERY_LAYER = ("name", "bottoms", "tops", "config", "params", "states")
_CLASS_PARTS = "fields with annotations, batched = True, methods"


@dataclass
class _Class:
    """What a layer class declares, and what it inherits from layer classes that it derives from."""

    fields: dict[str, Parameter] = field(default_factory=dict)
    methods: dict[str, tuple[Source, Any]] = field(default_factory=dict)
    batched: bool = False
    mode: str = "auto"


def _collect(source: Source, node: Any, reporter: Reporter, fresh: Fresh, seen: tuple[Any, ...] = ()) -> _Class:
    found = _Class()
    if node in seen:
        raise Mistake(span_of(node, source.path), "layer", f"{node.name} derives from itself")
    for base in reversed(node.bases):
        known = source.defined(base.id) if isinstance(base, gast.Name) else source.member(base)
        if known is not None and known[1] in known[0].classes:
            above = _collect(known[0], known[0].classes[known[1]], reporter, fresh, (*seen, node))
            found = _Class(
                {**found.fields, **above.fields}, {**found.methods, **above.methods}, above.batched, above.mode
            )
    own: dict[str, Any] = {}
    for child in node.body:
        match child:
            case gast.AnnAssign(target=gast.Name(id=id)):
                _declare_once(source, child, id, own, reporter)
                found.fields.pop(id, None)
                made = attempt(reporter, lambda: _field(source, child, id, fresh))  # noqa: B023 (called at once)
                found.fields[id] = made or broken(id, span_of(child, source.path))
            case gast.Assign(targets=[gast.Name(id="batched")], value=gast.Constant(value=bool(value))):
                found.batched = value
            case gast.Assign(targets=[gast.Name(id="batched")]):
                where = span_of(child.value, source.path)
                reporter.add(Mistake(where, "layer", "batched must be True or False", "batched = True"))
            case gast.Assign(targets=[gast.Name(id="backward")], value=gast.Constant(value=None)):
                found.mode = "none"
            case gast.FunctionDef(name=name):
                _declare_once(source, child, name, own, reporter)
                mistake = _method_mistake(source, child)
                if mistake is None:
                    found.methods[name] = (source, child)
                else:
                    reporter.add(mistake)
            case gast.Expr(value=gast.Constant()) | gast.Pass():
                pass
            case _:
                reporter.add(
                    Mistake(span_of(child, source.path), "layer", "this is not part of a layer class", _CLASS_PARTS)
                )
    return found


def _declare_once(source: Source, node: Any, name: str, own: dict[str, Any], reporter: Reporter) -> None:
    """Of two fields or methods of one name, the last would win."""
    if name in own:
        message = f"{name} is defined twice, also in line {own[name].lineno}"
        reporter.add(Mistake(span_of(node, source.path), "layer", message, "remove one, or rename it"))
    own[name] = node


def _method_mistake(source: Source, node: Any) -> Mistake | None:
    """Why this is no method of a layer class."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if node.name.startswith("__"):
        message, help = f"a layer class has no {node.name}", "fields are declared, initialize(self, *shapes) sets them"
    elif node.decorator_list:
        node = node.decorator_list[0]
        message, help = "a method of a layer has no decorators", "write it as a function outside the class"
    elif not arguments or arguments[0].id != "self":
        message, help = f"the first argument of {node.name} must be self", f"def {node.name}(self, ...)"
    else:
        return None
    return Mistake(span_of(node, source.path), "layer", message, help)


def class_layer(source: Source, node: Any, reporter: Reporter) -> Layer:
    fresh = Fresh()
    mistakes = len(reporter.mistakes)
    found = _collect(source, node, reporter, fresh)
    try:
        return _layer(source, node, found, fresh, reporter, mistakes)
    finally:
        for home, method in (found.methods[name] for name in by_hand.METHODS if name in found.methods):
            for mistake in by_hand.mistakes(home, method, list(found.fields.values())):
                reporter.add(mistake)


def _layer(source: Source, node: Any, found: _Class, fresh: Fresh, reporter: Reporter, mistakes: int) -> Layer:
    """`mistakes`: how many there were before this class."""
    fields, methods = list(found.fields.values()), found.methods
    if "predict" not in methods and "forward" not in methods:
        if len(reporter.mistakes) > mistakes:
            raise Suppressed
        raise Mistake(
            span_of(node, source.path),
            "layer",
            f"{node.name} has neither predict nor forward",
            "define predict(self, x)",
        )
    made = {}
    for name in ("predict", "forward"):
        if name in methods:
            home, method = methods[name]
            params = parameters_of(home, method, Fresh(set(fresh.used)), reporter, skip=1)
            for mistake in extents.mistakes(
                [*params, *fields], [*params, *fields] if "initialize" in methods else params
            ):
                reporter.add(mistake)
            whole = f"{node.name}.{name}"
            typed = attempt(
                reporter,
                lambda: check_function(home, method, params, reporter, found.batched, whole, fields, methods),  # noqa: B023
            )
            if typed is not None:
                made[name] = typed
    predict = made.get("predict", made.get("forward"))
    if len(reporter.mistakes) > mistakes or predict is None:  # None: an inherited mistake, reported with its class
        if "backward" in methods:
            home, method = methods["backward"]
            check_unsettled(home, method, params, reporter, skip=1, fields=fields, methods=methods)
        raise Suppressed
    forward = made.get("forward") if "predict" in made else None
    main = forward or predict
    if forward is not None:
        _check_alike(source, node, predict, forward)
    inputs = [p for p in main.params if p not in fields]
    for mistake in extents.unbatched(main) if found.batched else ():
        reporter.add(mistake)
    if "initialize" in methods:
        _check_initialize(*methods["initialize"], inputs)
    custom, mode = None, found.mode
    if "backward" in methods:
        home, method = methods["backward"]
        custom, mode = (
            checked_backward(home, method, main, reporter, skip=1, fields=fields, methods=methods),
            "custom",
        )
    check_memory(span_of(node, source.path), main, custom)
    mode = possible_mode(mode, main)
    return Layer(
        node.name,
        "class",
        tuple(main.params),
        predict,
        forward,
        mode,
        custom,
        gast.get_docstring(node) or "",
        source.excerpt(node),
        span_of(node, source.path),
        tuple(name for name in by_hand.METHODS if name in methods),
    )


def _check_initialize(source: Source, node: Any, params: list[Parameter]) -> None:
    """It gets one shape for each input."""
    inputs = [p.name for p in params if p.role == "input"]
    takes = len(node.args.args) - 1
    if node.args.vararg is None and not takes - len(node.args.defaults) <= len(inputs) <= takes:
        shapes = ", ".join(f"{name}_shape" for name in inputs)
        raise Mistake(
            span_of(node, source.path),
            "layer",
            f"initialize takes {takes} shapes, the layer has {len(inputs)} inputs",
            f"def initialize(self, {shapes})",
        )


def _check_alike(source: Source, node: Any, predict: Function, forward: Function) -> None:
    """predict and forward take the same arguments and give the same outputs: only states and memory may differ."""

    def face(f: Function) -> list[tuple[str, str, Type]]:
        arguments = [(p.name, p.role, p.type) for p in f.params if p.role in ("input", "config")]
        return arguments + [(r.name, r.role, r.type) for r in f.results if r.role == "output"]

    if [(n, r) for n, r, _ in face(predict)] != [(n, r) for n, r, _ in face(forward)] or not all(
        a.dtype == b.dtype and a.rank == b.rank
        for (_, _, a), (_, _, b) in zip(face(predict), face(forward), strict=True)
    ):
        raise Mistake(
            span_of(node, source.path),
            "layer",
            f"predict and forward of {node.name} differ in their arguments or results",
            "give both the same signature",
        )


def _field(source: Source, node: Any, id: str, fresh: Fresh) -> Parameter:
    span = span_of(node, source.path)
    annotation = parse_annotation(node.annotation, source, fresh)
    fresh(id)
    if annotation.role == "config" and id in _OF_EVERY_LAYER:
        raise Mistake(span, "annotation", f"every layer has its own {id}: no configuration is called so", "rename it")
    if annotation.role == "random":
        help = f"a method takes it: forward(self, x, {id}: Random)"
        raise Mistake(span, "annotation", f"the field {id} is a random generator", help)
    if annotation.role == "input":
        raise Mistake(
            span,
            "annotation",
            f"the field {id} has no role",
            f'write {id}: Param[real["C"]] = init.zeros(), State[...] or a configuration type',
        )
    parameter = Parameter(id, annotation.role, annotation.type, annotation.text, span=span)
    if node.value is None:
        return parameter
    if annotation.role == "config":
        return defaults.config_field(source, node, parameter)
    return replace(parameter, init=defaults.initial(source, node.value, id))


__all__ = ["class_layer"]
