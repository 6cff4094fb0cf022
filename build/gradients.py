"""Where the backward of each layer comes from: written by its author, derived by `layerc.adjoint`, or none.

A derived gradient is printed, and what is compiled is that text read again: what a person sees is what runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from layerc.adjoint.gradient import gradient, gradient_file, gradient_text, kept
from layerc.adjoint.keep import Kept
from layerc.transpile.depth import deep
from layerc.transpile.errors import InternalError, InvalidFile, Mistake, Reporter
from layerc.transpile.layers import check_file
from layerc.transpile.lines import lines_of
from layerc.transpile.program import Function, Layer, Module

FILE = "gradients.py"


@dataclass(frozen=True)
class Gradients:
    """`text`: the gradient file of a package; by the names of the layers: their gradient functions, typed, and
    their source.
    """

    text: str
    functions: dict[str, Function] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)  # the same in two parts, where that saves work


def gradients_of(module: Module, keep: bool = False) -> Gradients:
    """The gradients of a module's layers. InvalidFile where some cannot be derived: all of these are
    reported.
    """
    reporter = Reporter({module.path: lines_of(module.source)})
    derived: dict[str, Function] = {}
    functions: dict[str, Function] = {}
    sources: dict[str, str] = {}
    pairs: dict[str, Kept] = {}
    for layer in module.layers:
        if layer.custom is not None:
            functions[layer.name] = layer.custom
            sources[layer.name] = _excerpt(module, layer.custom)
        elif layer.backward == "auto":
            try:
                derived[layer.name] = gradient(layer, module.source, module.path)
                sources[layer.name] = gradient_text(layer, module.source, module.path)
                if keep and (pair := kept(layer, module.source, module.path)) is not None:
                    pairs[layer.name] = pair
            except Mistake as mistake:
                reporter.add(mistake)
    reporter.raise_if_any()
    if not derived:
        return Gradients(f'"""Gradients of {module.path}: none is generated."""\n', functions, sources)
    text = gradient_file(module)
    functions |= _read_again(text, derived)
    return Gradients(text, functions, sources, pairs)


def _read_again(text: str, derived: dict[str, Function]) -> dict[str, Function]:
    """The functions of a gradient file, with the roles that its annotations do not say."""
    try:
        read: dict[str, Layer] = {layer.name: layer for layer in check_file(Path(FILE), text).layers}
    except InvalidFile as fault:
        raise InternalError("adjoint", f"the gradient source has mistakes:\n{fault}") from fault
    found = {}
    for name, original in derived.items():
        function = read[original.name].predict
        roles = {p.name: p.role for p in original.params}
        params = tuple(replace(p, role=roles[p.name]) for p in function.params)
        results = tuple(
            replace(again, name=first.name, role=first.role, of=first.of)
            for again, first in zip(function.results, original.results, strict=True)
        )
        found[name] = replace(function, params=params, results=results, batched=original.batched)
    return found


def _excerpt(module: Module, function: Function) -> str:
    return "\n".join(lines_of(module.source)[function.span.line - 1 : function.span.end_line])


def _check(module: Module, name: str | None, further: bool) -> None:
    """InvalidFile where there is nothing to differentiate by, or, `further`, no gradient to differentiate in turn."""
    asked = [layer for layer in module.layers if name in (None, layer.name)]
    names = ", ".join(layer.name for layer in asked)
    what = help = ""
    if not any(p.role in ("input", "param") and p.type.is_float for layer in asked for p in layer.predict.params):
        what = f"{names} has no gradient: nothing it takes is a float array or scalar"
        help = "annotate an input as real[...]"
    elif further and not any(layer.backward == "auto" for layer in asked):
        what = f"the gradient of {names} is not derived, so it is not derived again"
        help = "make its backward a layer of its own, with @layer, and ask for the gradient of that"
    if what:
        reporter = Reporter({module.path: lines_of(module.source)})
        reporter.add(Mistake(asked[0].span, "derivative", what, help))
        reporter.raise_if_any()


@deep()
def gradient_source(module: Module, name: str | None = None, order: int = 1) -> str:
    """The text of the gradients of a module, or of one layer; order 2: of those gradients' own gradients,
    and so on.
    """
    for again in range(order):
        if again:
            module = check_file(Path(FILE), gradient_file(module))
            name = name and f"d_{name}"
        if name or order > 1:
            _check(module, name, further=again + 1 < order)
    if name is None:
        gradients_of(module)  # reports all mistakes, not the first
        return gradient_file(module)
    layer = next(layer for layer in module.layers if layer.name == name)
    reporter = Reporter({module.path: lines_of(module.source)})
    try:
        return gradient_text(layer, module.source, module.path)
    except Mistake as mistake:
        reporter.add(mistake)
        reporter.raise_if_any()
        raise
