"""Custom backwards: what their parameters may name, and that they return the gradients that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import gast

from . import construct
from .annotations import parse_annotation
from .bodies import check_function
from .errors import Mistake, Reporter, Suppressed, span_of
from .program import (
    Call,
    Expr,
    Function,
    Parameter,
    Result,
    Return,
    Span,
)
from .signatures import attempt, broken
from .source import Source
from .values import Fresh


def possible_mode(mode: str, function: Function) -> str:
    """No gradient is derived for a layer that takes nothing differentiable."""
    return (
        mode
        if mode != "auto" or any(p.role in ("input", "param") and p.type.is_float for p in function.params)
        else "none"
    )


def cotangents_of(function: Function) -> list[tuple[Result, Parameter]]:
    """The differentiable outputs of a function and the parameters that carry their cotangents.

    An output that is shared by the batch (a gradient function has them: gradients of Params) has a shared cotangent.
    """
    taken = {p.name for p in function.params} | {r.name for r in function.results}  # a backward may ask for either
    found = []
    for result in function.results:
        if result.role in ("output", "param"):
            name = "dy" if result.name == "y" else f"d{result.name}"
            while name in taken:
                name = f"d{name}"
            taken.add(name)
            role = "param" if result.role == "param" else "cotangent"
            found.append((result, Parameter(name, role, result.type, result.shape_text)))
    return found


def backward_inputs(function: Function) -> dict[str, Parameter]:
    """What a backward may name: the forward's arguments, its outputs, and the cotangents of its outputs."""
    known = {p.name: p for p in function.params}
    for result in function.results:
        if result.role == "memory":
            known.setdefault(result.name, Parameter(result.name, "memory", result.type, result.shape_text))
    for result, cotangent in cotangents_of(function):
        if result.role == "output":
            known.setdefault(result.name, Parameter(result.name, "output", result.type, result.shape_text))
        known[cotangent.name] = cotangent
    return known


def checked_backward(
    source: Source,
    node: Any,
    function: Function,
    reporter: Reporter,
    skip: int,
    fields: list[Parameter] | None = None,
    methods: dict[str, tuple[Source, Any]] | None = None,
) -> Function:
    _check_form(source, node, function)
    known = backward_inputs(function)
    taken = []
    for arg in node.args.args[skip:]:
        if arg.id not in known:
            raise Mistake(
                span_of(arg, source.path),
                "backward",
                f"a backward of {function.name} cannot ask for {arg.id}",
                "it may name: " + ", ".join(known),
            )
        _check_annotated(source, arg, known[arg.id])
        taken.append(known[arg.id])
    configs = [p for p in function.params if p.role == "config" and p not in taken and p not in (fields or [])]
    assigned = list(_assigned_states(source, node, fields or []))
    for mistake in assigned:
        reporter.add(mistake)
    stripped = replace_returns(node)
    used_fields = [f for f in fields or [] if f not in taken]
    checked = check_function(
        source,
        stripped,
        [*taken, *configs],
        reporter,
        function.batched,
        f"{function.name}.backward",
        used_fields,
        methods,
    )
    if assigned:
        raise Suppressed
    return _as_gradient(source, node, checked, function.params)


def check_unsettled(
    source: Source,
    node: Any,
    params: list[Parameter],
    reporter: Reporter,
    skip: int,
    fields: list[Parameter] | None = None,
    methods: dict[str, tuple[Source, Any]] | None = None,
) -> None:
    """A backward whose forward has a mistake: what of its own does not come from that one's results."""
    known = {p.name: p for p in [*params, *(fields or [])]}
    args = node.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))][skip:]
    taken = [known.get(arg.id) or broken(arg.id, span_of(arg, source.path)) for arg in named]
    configs = [p for p in params if p.role == "config" and p not in taken]
    unused = [f for f in fields or [] if f not in taken]
    stripped = replace_returns(node)
    attempt(
        reporter,
        lambda: check_function(source, stripped, [*taken, *configs], reporter, False, node.name, unused, methods),
    )


def _check_form(source: Source, node: Any, function: Function) -> None:
    """A backward names what it needs, and returns gradients only."""
    args = node.args
    strange = [(a, f"{a.id} stands before a /", "leave the / out") for a in args.posonlyargs]
    strange += [(a, f"{a.id} stands after a *", "leave the * out") for a in args.kwonlyargs]
    for many, stars in ((args.vararg, "*"), (args.kwarg, "**")):
        if many:
            help = "name each: " + ", ".join(backward_inputs(function))
            strange.append((many, f"a backward names what it needs, without {stars}{many.id}", help))
    for arg, message, help in strange:
        raise Mistake(span_of(arg, source.path), "backward", message, help)
    for item in _returned_items(node.body):
        if isinstance(item, gast.Constant) and item.value is None:
            slots = ", ".join(p.name for p in function.params if p.role in ("input", "param") and p.type.is_float)
            message = "None has no place here: what is not a float array or scalar has no slot in a backward"
            raise Mistake(span_of(item, source.path), "backward", message, f"one each for: {slots}")


def _returned_items(nodes: list[Any]) -> Iterator[Any]:
    """The items of the tuples that a function returns, on whatever path; those kept for its end (`exits`) too."""
    for node in nodes:
        match node:
            case gast.Return(value=gast.Tuple(elts=elts)):
                yield from elts
            case gast.Assign(targets=[gast.Name(id=id)], value=gast.Tuple(elts=elts)) if id.startswith("<result"):
                yield from elts
            case gast.If() | gast.For() | gast.While():
                yield from _returned_items([*node.body, *node.orelse])


def _assigned_states(source: Source, node: Any, fields: list[Parameter]) -> Iterator[Mistake]:
    states = {f.name for f in fields if f.role == "state"}
    for inner in gast.walk(node):
        if not isinstance(inner, (gast.Attribute, gast.Subscript)) or not isinstance(inner.ctx, gast.Store):
            continue
        target = inner
        while isinstance(target, gast.Subscript):
            target = target.value
        match target:
            case gast.Attribute(value=gast.Name(id="self"), attr=attr) if attr in states:
                message = f"a backward cannot assign the state {attr}"
                yield Mistake(span_of(inner, source.path), "role", message, "assign it in forward")


def _check_annotated(source: Source, arg: Any, known: Parameter) -> None:
    """What a backward takes has the types that it has in the forward; saying so again is allowed."""
    if arg.annotation is not None:
        help = "leave the annotation out: the forward says it"
        _check_declared(source, arg.annotation, arg, arg.id, known, help)


def _check_returned(source: Source, node: Any, owners: list[Parameter], states: list[Parameter]) -> None:
    """A gradient has the type of what it belongs to; saying so is allowed."""
    match node.returns:
        case None:
            return
        case gast.Dict(values=declared):
            pass
        case gast.Subscript(value=gast.Name(id="tuple" | "Tuple"), slice=inner):
            declared = inner.elts if isinstance(inner, gast.Tuple) else [inner]
        case one:
            declared = [one]
    where, help = span_of(node.returns, source.path), "leave the annotation out: the gradients have the types of these"
    if len(declared) not in (len(owners), len(owners) + len(states)):
        message = f"{len(declared)} gradients are declared, {len(owners)} are needed"
        raise Mistake(where, "backward", message, "one each for: " + ", ".join(p.name for p in owners))
    for annotation, owner in zip(declared, [*owners, *states], strict=False):
        _check_declared(source, annotation, annotation, f"the gradient of {owner.name}", owner, help)


def _check_declared(source: Source, annotation: Any, at: Any, name: str, known: Parameter, help: str) -> None:
    found = parse_annotation(annotation, source, Fresh())
    pairs = zip(found.text.split(), known.shape_text.split(), found.type.shape, known.type.shape, strict=False)
    same = all("_" in (a, b) or x == y for a, b, x, y in pairs) and found.type.rank == known.type.rank
    if not same or found.type.dtype != known.type.dtype:
        shape = construct.shape_text(known.type.shape)
        raise Mistake(span_of(at, source.path), "backward", f"{name} is {known.type.dtype} of shape {shape} here", help)


def check_memory(where: Span, function: Function, custom: Function | None) -> None:
    """Memory is for a backward, and for nobody else."""
    held = [r.name for r in function.results if r.role == "memory"]
    if held and not any(p.name in held for p in (custom.params if custom else ())):
        raise Mistake(
            where,
            "backward",
            f"no backward of {function.name} asks for its {held[0]}",
            f"define one that does, backward(dy, {held[0]}), or return no Memory",
        )


def replace_returns(node: Any) -> Any:
    copied = gast.FunctionDef(**{f: getattr(node, f, None) for f in node._fields})
    gast.copy_location(copied, node)
    copied.returns = None
    return copied


def _is_number(expr: Expr) -> bool:
    """Whether it is one of Python's own integers, as 0 is, which fits what is real."""
    while isinstance(expr, Call) and expr.op == "cast":
        expr = expr.args[0]
    return expr.type.dtype == "int"


def _as_gradient(source: Source, node: Any, checked: Function, owners: Sequence[Parameter]) -> Function:
    """The backward with its results named. Gradients of states may come last; nobody asks for them."""
    differentiable = [p for p in owners if p.role in ("input", "param") and p.type.is_float]
    states = [p for p in owners if p.role == "state" and p.type.is_float]
    _check_returned(source, node, differentiable, states)
    final = checked.body[-1]
    assert isinstance(final, Return)
    values = list(final.values)
    where = span_of(node, source.path)
    if len(values) not in (len(differentiable), len(differentiable) + len(states)):
        raise Mistake(
            where,
            "backward",
            f"the backward returns {len(values)} gradients, {len(differentiable)} are needed",
            "one each for: " + ", ".join(p.name for p in differentiable),
        )
    results = []
    for k, (owner, value) in enumerate(zip([*differentiable, *states], values, strict=False)):
        if value.type.shape != owner.type.shape:
            raise Mistake(
                where,
                "backward",
                f"the gradient of {owner.name} has shape {construct.shape_text(value.type.shape)},"
                f" not {construct.shape_text(owner.type.shape)}",
                f"it has the shape of {owner.name}: sum over the other axes, or broadcast",
            )
        whole = {"bool": "boolean", "i32": "an integer", "i64": "an integer"}.get(value.type.dtype)
        if whole is not None and not _is_number(value):
            help = "convert it: .astype(real)"
            raise Mistake(where, "type", f"the gradient of {owner.name} is {whole}, not {owner.type.dtype}", help)
        values[k] = construct.cast(value, owner.type.dtype)
        results.append(Result(f"d_{owner.name}", owner.role, owner.type, owner.shape_text, of=owner.name))
    asked = len(differentiable)
    final = replace(final, values=tuple(values[:asked]))
    return replace(checked, body=(*checked.body[:-1], final), results=tuple(results[:asked]))


__all__ = [
    "backward_inputs",
    "check_memory",
    "check_unsettled",
    "checked_backward",
    "cotangents_of",
    "possible_mode",
    "replace_returns",
]
