"""What the shapes of a layer's arguments say: which names they give a value, and which they only use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .dims import Dim, same_extent
from .errors import Mistake
from .program import Function, Parameter

_ARRAYS = ("input", "param", "state")


def mistakes(params: Sequence[Parameter], given: Sequence[Parameter]) -> Iterator[Mistake]:
    """Shapes over configuration that is no integer, and names that no argument gives a value. `given`: the arguments
    whose shapes a call, or `initialize`, knows."""
    scalars = {p.name: p.type.dtype for p in params if p.role == "config"}
    known = _given((p.type.shape for p in given if p.role in _ARRAYS), {n for n, d in scalars.items() if d == "int"})
    for param in params:
        names = {s for dim in param.type.shape for s in dim.symbols()}
        if wrong := sorted(n for n in names if scalars.get(n, "int") != "int"):
            yield Mistake(
                param.span,
                "annotation",
                f'the shape "{param.shape_text}" uses {wrong[0]}, which is a {scalars[wrong[0]]}',
                f"shapes are computed from integers: {wrong[0]}: int",
            )
        elif param.role in _ARRAYS and (missing := sorted(names - known)):
            yield Mistake(
                param.span,
                "annotation",
                f'nothing gives {missing[0]} of the shape "{param.shape_text}" a value',
                f"an argument whose axis is {missing[0]}, or configuration: {missing[0]}: int",
            )


def unbatched(function: Function) -> Iterator[Mistake]:
    """Of a function that takes whole batches: outputs whose axis 0 is that of no input. Params, states and memory have
    no batch; nor has what is without axes: a number for all of the batch, as a loss is."""
    inputs = [p for p in function.params if p.role == "input" and p.type.rank]
    if not inputs:
        return
    batch = inputs[0].type.shape[0]
    firsts = [p.type.shape[0] for p in inputs]
    for result in (r for r in function.results if r.role == "output" and r.type.rank):
        if not any(same_extent(result.type.shape[0], first) for first in firsts):
            message = f"the output {result.name} begins with {result.type.shape[0]}, not {batch}, the batch"
            help = f"keep axis 0 of {batch}; or leave batched=True out: one example goes in, one result comes out"
            yield Mistake(function.span, "batch", message, help)


def _given(shapes: Iterable[Sequence[Dim]], known: set[str]) -> set[str]:
    """Names that stand alone, and those that are the only unknown of a dimension linear in them."""
    waiting = [dim for shape in shapes for dim in shape]
    while True:
        found = {name for dim in waiting for name in _solved(dim, known)}
        if not found:
            return known
        known = known | found


def _solved(dim: Dim, known: set[str]) -> set[str]:
    unknown = dim.symbols() - known
    return set(unknown) if len(unknown) == 1 and dim.split(*unknown) is not None else set()
