"""Custom backwards: what their parameters may name, and that they return the gradients that are needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gast

from . import construct
from .annotations import parse_annotation
from .bodies import check_function
from .errors import Mistake, Reporter, span_of
from .program import (
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
    taken = {p.name for p in function.params}
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
    inputs: list[Parameter],
    reporter: Reporter,
    skip: int,
    fields: list[Parameter] | None = None,
    methods: dict[str, tuple[Source, Any]] | None = None,
) -> Function:
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
    owners = [p for p in function.params if p.role in ("input", "param")]
    return _as_gradient(source, node, checked, owners)


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
    taken = [known.get(arg.id) or broken(arg.id, span_of(arg, source.path)) for arg in node.args.args[skip:]]
    configs = [p for p in params if p.role == "config" and p not in taken]
    unused = [f for f in fields or [] if f not in taken]
    stripped = replace_returns(node)
    attempt(
        reporter,
        lambda: check_function(source, stripped, [*taken, *configs], reporter, False, node.name, unused, methods),
    )


def _check_annotated(source: Source, arg: Any, known: Parameter) -> None:
    """What a backward takes has the types that it has in the forward; saying so again is allowed."""
    if arg.annotation is None:
        return
    found = parse_annotation(arg.annotation, source, Fresh())
    pairs = zip(found.text.split(), known.shape_text.split(), found.type.shape, known.type.shape, strict=False)
    same = all("_" in (a, b) or x == y for a, b, x, y in pairs) and found.type.rank == known.type.rank
    if not same or found.type.dtype != known.type.dtype:
        shape = construct.shape_text(known.type.shape)
        raise Mistake(
            span_of(arg, source.path),
            "backward",
            f"{arg.id} is {known.type.dtype} of shape {shape} here",
            "leave the annotation out: the forward says it",
        )


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


def _as_gradient(source: Source, node: Any, checked: Function, owners: list[Parameter]) -> Function:
    differentiable = [p for p in owners if p.type.is_float]
    final = checked.body[-1]
    assert isinstance(final, Return)
    values = list(final.values)
    where = span_of(node, source.path)
    if len(values) != len(differentiable):
        raise Mistake(
            where,
            "backward",
            f"the backward returns {len(values)} gradients, {len(differentiable)} are needed",
            "one each for: " + ", ".join(p.name for p in differentiable),
        )
    results = []
    for k, (owner, value) in enumerate(zip(differentiable, values, strict=True)):
        if value.type.shape != owner.type.shape:
            raise Mistake(
                where,
                "backward",
                f"the gradient of {owner.name} has shape {construct.shape_text(value.type.shape)},"
                f" not {construct.shape_text(owner.type.shape)}",
                f"it has the shape of {owner.name}: sum over the other axes, or broadcast",
            )
        if value.type.dtype == "bool":
            help = "convert it: .astype(real)"
            raise Mistake(where, "type", f"the gradient of {owner.name} is boolean, not {owner.type.dtype}", help)
        values[k] = construct.cast(value, owner.type.dtype)
        results.append(Result(f"d_{owner.name}", owner.role, owner.type, owner.shape_text, of=owner.name))
    return replace(checked, body=(*checked.body[:-1], replace(final, values=tuple(values))), results=tuple(results))


__all__ = [
    "backward_inputs",
    "check_memory",
    "check_unsettled",
    "checked_backward",
    "cotangents_of",
    "possible_mode",
    "replace_returns",
]
