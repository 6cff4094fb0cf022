"""A layer file to its typed module: decorated functions and Layer classes, their roles, methods and custom
backwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gast

from . import extents, marks
from .backwards import check_memory, check_unsettled, checked_backward, possible_mode
from .bodies import check_function
from .classes import class_layer
from .depth import deep
from .errors import InternalError, Mistake, Reporter, Suppressed, span_of
from .program import (
    Layer,
    Module,
    Span,
    stored,
)
from .signatures import attempt, parameters_of
from .source import Source, loose_exit, read
from .typing import TypingError
from .values import Fresh, Static


@deep()
def check_file(path: Path, text: str | None = None) -> Module:
    """Reads and types a layer file. Raises InvalidFile with every mistake drawn; OSError if it cannot be read."""
    reporter = Reporter()
    source = read(path, reporter, text)
    if source is None:
        reporter.raise_if_any()
        raise AssertionError
    for mistake in marks.mistakes(source):
        reporter.add(mistake)
    layers = [
        _guarded(_function_layer, source, node, reporter)
        for node in source.functions.values()
        if marks.is_layer(source, node)
    ]
    layers += [
        _guarded(class_layer, source, node, reporter)
        for node in source.classes.values()
        if marks.is_layer_class(source, node)
    ]
    if not reporter.mistakes:
        for mistake in filter(None, map(loose_exit, (source, *source.imported()))):
            reporter.add(mistake)
    found = sorted((layer for layer in layers if layer is not None), key=lambda layer: layer.span.line)
    if len(found) < len(layers) and not reporter.mistakes:
        raise InternalError("the check of a layer", "it came to nothing, and no mistake says why")
    files = {s.path: s.text for s in source.imported()}
    if not layers and not reporter.mistakes:
        reporter.add(
            Mistake(
                Span(1, 0, 1, 1, source.path),
                "layer",
                "there is no layer in this file",
                "mark a function with @layer, or derive a class from Layer",
            )
        )
    reporter.raise_if_any()
    return Module(source.path, source.text, tuple(found), tuple(sorted(files.items())))


def _guarded(make: Any, source: Source, node: Any, reporter: Reporter) -> Layer | None:
    return attempt(reporter, lambda: make(source, node, reporter))


def _function_layer(source: Source, node: Any, reporter: Reporter) -> Layer:
    options = attempt(reporter, lambda: marks.options(source, node)) or {}
    fresh = Fresh()
    params = parameters_of(source, node, fresh, reporter, skip=0)
    for mistake in extents.mistakes(params, params):
        reporter.add(mistake)
    custom_node = next(iter(marks.backwards(source, node.name)), None)
    batched = bool(options.get("batched")) or node.name in source.batched
    function = attempt(reporter, lambda: check_function(source, node, params, reporter, batched, node.name))
    if function is None:
        if custom_node is not None:
            check_unsettled(source, custom_node, params, reporter, skip=0)
        raise Suppressed
    # The files that layerc writes say themselves which functions take whole batches: also gradients, whose results may
    # be of Params.
    for mistake in extents.unbatched(function) if function.batched and node.name not in source.batched else ():
        reporter.add(mistake)
    mode = "none" if "backward" in options else "auto"
    custom = None
    if custom_node is not None:
        custom, mode = checked_backward(source, custom_node, function, reporter, skip=0), "custom"
    check_memory(span_of(node, source.path), function, custom)
    mode = possible_mode(mode, function)
    doc = gast.get_docstring(node) or ""
    text = source.excerpt(node)
    return Layer(
        node.name, "function", function.params, function, None, mode, custom, doc, text, span_of(node, source.path)
    )


__all__ = ["Static", "TypingError", "check_file", "stored"]
