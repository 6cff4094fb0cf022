"""The parameters of functions and methods, from their annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from . import defaults
from .annotations import Annotation, parse_annotation
from .dims import Dim
from .errors import Mistake, Reporter, Suppressed, span_of
from .program import Name, Parameter, Span, Type
from .source import Source
from .values import Broken, Fresh, Value

_T = TypeVar("_T")
_OF_A_CALL = {  # options of every call of a compiled layer
    "out": "out=array, which it writes its result to",
    "batch": "batch=True or False, whether axis 0 counts examples",
    "acceleration": 'acceleration="none", to run under NumPy',
}


def attempt(reporter: Reporter, make: Callable[[], _T]) -> _T | None:
    """What is made; None after a mistake, which is kept: the others of the file are to be found as well."""
    try:
        return make()
    except Mistake as mistake:
        reporter.add(mistake)
    except Suppressed:
        pass
    return None


def broken(name: str, span: Span) -> Parameter:
    """Stands for an argument or field whose declaration has a mistake: what uses it makes no other one."""
    return Parameter(name, "broken", Type("real"), "", span=span)


def parameters_of(source: Source, node: Any, fresh: Fresh, reporter: Reporter, skip: int) -> list[Parameter]:
    args = node.args
    found = []
    for many in (args.vararg, args.kwarg):
        if many:
            where = span_of(node, source.path)
            reporter.add(Mistake(where, "annotation", "a layer takes no * or ** arguments", "name every argument"))
            found.append(broken(many.id, where))
    for arg in args.posonlyargs:
        where = span_of(arg, source.path)
        message = f"{arg.id} stands before a /: the arguments of a layer have names"
        reporter.add(Mistake(where, "annotation", message, "leave the / out"))
        found.append(broken(arg.id, where))
    values: list[Any] = [None] * (len(args.args) - len(args.defaults)) + list(args.defaults)
    pairs = list(zip(args.args, values, strict=True))[skip:] + list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    for arg, default in pairs:
        parameter = attempt(reporter, lambda: _parameter(source, arg, default, fresh))  # noqa: B023 (called at once)
        found.append(parameter or broken(arg.id, span_of(arg, source.path)))
    generators = [p for p in found if p.role == "random"]
    if len(generators) > 1:
        raise Mistake(
            generators[1].span,
            "annotation",
            "a layer takes one random generator",
            f"draw all numbers from {generators[0].name}",
        )
    return found


def _parameter(source: Source, arg: Any, default: Any, fresh: Fresh) -> Parameter:
    span = span_of(arg, source.path)
    if arg.annotation is None:
        raise Mistake(span, "annotation", f"the argument {arg.id} has no type", f'annotate it: {arg.id}: real["N C"]')
    annotation = parse_annotation(arg.annotation, source, fresh)
    if annotation.role == "config" and arg.id in _OF_A_CALL:
        message = f"no configuration is called {arg.id}: every call of a compiled layer takes {_OF_A_CALL[arg.id]}"
        raise Mistake(span, "annotation", message, "rename it")
    value = None
    if default is not None:
        if annotation.role != "config":
            raise Mistake(span, "annotation", *_has_a_default(arg.id, annotation, getattr(default, "value", ...)))
        value = defaults.default(default, annotation.type.dtype, arg.id, source)
    fresh(arg.id)
    return Parameter(arg.id, annotation.role, annotation.type, annotation.text, value, default is None, span=span)


def _has_a_default(name: str, annotation: Annotation, default: object) -> tuple[str, str]:
    """What is wrong, and what to write."""
    if annotation.role == "random":
        return f"the generator {name} has a default", "only configuration (float, int, bool) has defaults"
    if annotation.type.shape:
        return f"the array {name} has a default", "only configuration (float, int, bool) has defaults"
    python = {"bool": "bool", "i32": "int", "i64": "int"}.get(annotation.type.dtype, "float")
    return (
        f"{name}, of which each example has its own, has a default",
        f"configuration, the same for all, has defaults: {name}: {python} = {'...' if default is ... else default}",
    )


def entering(param: Parameter) -> Value:
    """What a parameter is in the body."""
    if param.role == "broken":
        return Broken()
    if param.role == "config":
        return Name(param.name, param.type, Dim.of(param.name) if param.type.dtype == "int" else None, param.span)
    return Name(param.name, param.type, None, param.span)


__all__ = ["attempt", "broken", "entering", "parameters_of"]
