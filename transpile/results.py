"""What a function returns, against what its annotation declares."""

from __future__ import annotations

import keyword
from dataclasses import replace
from typing import Any

import gast

from . import construct
from .annotations import Annotation, groups_of, parse_annotation, shape_string
from .dims import same_extent
from .errors import Mistake, Suppressed, span_of
from .functions import FunctionChecker
from .program import (
    Expr,
    Parameter,
    Result,
    Type,
)
from .signatures import entering
from .source import Source
from .values import RETURN, Broken, Tuple, leaves


def results_of(
    source: Source, node: Any, checker: FunctionChecker, params: list[Parameter]
) -> tuple[tuple[Result, ...], tuple[Expr, ...]]:
    declared = _declared(source, node, checker)
    value = checker.env.get(RETURN)
    for _, broken in leaves(value) if value is not None else ():
        if not isinstance(broken, Broken):
            continue
        if broken.message is None:
            raise Suppressed
        raise Mistake(
            span_of(node, source.path),
            "type",
            broken.message.replace("is assigned", "is returned"),
            broken.help if broken is not value else "return on every path",
        )
    if value is None:
        if checker.reporter.mistakes:
            raise Suppressed
        raise Mistake(span_of(node, source.path), "type", f"{node.name} returns nothing", "return its result")
    where = next((n for n in gast.walk(node) if isinstance(n, gast.Return)), node)
    if isinstance(value, Tuple) and value.is_list:
        help = "a tuple for several outputs: return x, y; np.stack([x, y]) for one"
        raise Mistake(span_of(where, source.path), "type", "a layer returns no list", help)
    values = value.items if isinstance(value, Tuple) else (value,)
    exprs = [checker.as_expr(v, where) for v in values]
    groups = groups_of([p.shape_text for p in params] + [a.text for _, a in declared or []])
    if declared is None:
        declared = []
        for position, expr in enumerate(exprs):
            name = "y" if len(exprs) == 1 else f"y{position + 1}"
            dtype = {"float": "real", "int": "i64"}.get(expr.type.dtype, expr.type.dtype)
            type = Type(dtype, expr.type.shape)
            declared.append((name, Annotation("input", type, shape_string(type, groups))))
    if len(declared) != len(exprs):
        raise Mistake(
            span_of(where, source.path),
            "type",
            f"{len(exprs)} values are returned, {len(declared)} are declared",
            "-> tuple[real[...], real[...]] for two; or leave the annotation out: it is inferred",
        )
    results, outputs = [], []
    for (name, annotation), expr in zip(declared, exprs, strict=True):
        if sum(token.startswith("*") for token in annotation.text.split()) > 1:
            raise Mistake(
                span_of(where, source.path),
                "shape",
                f'the result "{annotation.text}" has two groups of axes: nobody could tell where the second begins',
                'name the axes of the arguments: real["N M"] for real["*S"]',
            )
        if expr.type.rank == annotation.type.rank:
            expr = checker.like_halves(expr, annotation.type.shape, where)
        outputs.append(_fitted(source, where, name, annotation, expr))
        if any(_open(annotation)):  # what came is what it is from now on
            found = zip(_open(annotation), annotation.type.shape, expr.type.shape, strict=True)
            type = Type(annotation.type.dtype, tuple(f if is_open else d for is_open, d, f in found))
            annotation = replace(annotation, type=type, text=shape_string(type, groups))
        role = {"input": "output", "param": "param", "memory": "memory"}.get(annotation.role, annotation.role)
        results.append(Result(name, role, annotation.type, annotation.text))
    for state in params:
        current = checker.env.get(f"self.{state.name}")
        if state.role == "state" and current is not None and current != entering(state):
            outputs.append(construct.convert(checker.as_expr(current, where), state.type))
            results.append(Result(state.name, "state", state.type, state.shape_text))
    return tuple(results), tuple(outputs)


def _declared(source: Source, node: Any, checker: FunctionChecker) -> list[tuple[str, Annotation]] | None:
    returns = node.returns
    if returns is None:
        return None
    if isinstance(returns, gast.Dict):
        if not returns.keys or not all(
            isinstance(k, gast.Constant) and isinstance(k.value, str) and k.value.isidentifier() for k in returns.keys
        ):
            raise Mistake(
                span_of(returns, source.path),
                "annotation",
                "the outputs must have names",
                'write -> {"y": real["N"], "z": real[""]}',
            )
        names = [k.value for k in returns.keys]
        for key in (k for n, k in enumerate(returns.keys) if k.value in names[:n] or keyword.iskeyword(k.value)):
            what = "is a word of Python" if keyword.iskeyword(key.value) else "names two outputs"
            raise Mistake(span_of(key, source.path), "annotation", f"{key.value!r} {what}", "take another name")
        return [
            (k.value, parse_annotation(v, source, checker.fresh))
            for k, v in zip(returns.keys, returns.values, strict=True)
        ]
    if (
        isinstance(returns, gast.Subscript)
        and isinstance(returns.value, gast.Name)
        and returns.value.id in ("tuple", "Tuple")
    ):
        elts = returns.slice.elts if isinstance(returns.slice, gast.Tuple) else [returns.slice]
        found = [parse_annotation(e, source, checker.fresh) for e in elts]
        return list(zip(_result_names(found), found, strict=True))
    return [("y", parse_annotation(returns, source, checker.fresh))]


def _result_names(results: list[Annotation]) -> list[str]:
    """y, or y1, y2, ...; and memory, or memory1, ..., for what only a backward gets."""
    names, counts = [], {"y": 0, "memory": 0}
    for result in results:
        base = "memory" if result.role == "memory" else "y"
        counts[base] += 1
        alone = sum((r.role == "memory") == (base == "memory") for r in results) == 1
        names.append(base if alone else f"{base}{counts[base]}")
    return names


def _open(annotation: Annotation) -> list[bool]:
    """Of each extent, whether it was declared as `_`."""
    return [word == "_" for word in annotation.text.split()]


def _fitted(source: Source, where: Any, name: str, annotation: Annotation, expr: Expr) -> Expr:
    """The returned value as the declared type; a declared `_` or a name no input has takes what comes."""
    declared, found = annotation.type, expr.type
    if declared.rank != found.rank or any(
        not same_extent(d, f) and not is_open
        for d, f, is_open in zip(declared.shape, found.shape, _open(annotation), strict=True)
    ):
        raise Mistake(
            span_of(where, source.path),
            "shape",
            f"{name} has shape {construct.shape_text(found.shape)}, declared is {construct.shape_text(declared.shape)}",
            "change the annotation, or leave it out: it is inferred",
        )
    if found.is_float and not declared.is_float:
        raise Mistake(
            span_of(where, source.path),
            "type",
            f"{name} is {found.dtype}, declared is {declared.dtype}",
            "convert it: .astype(...)",
        )
    return construct.cast(expr, declared.dtype)


__all__ = ["results_of"]
