"""The manifest: all that the runtime knows of a package. Its form is the contract between `build` and
`runtime`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from layerc.transpile import emit
from layerc.transpile.annotations import groups_of
from layerc.transpile.backwards import cotangents_of
from layerc.transpile.dims import Dim
from layerc.transpile.ir import Kernel
from layerc.transpile.lower import is_scalar, sizes
from layerc.transpile.passes.overwrite import overwrites
from layerc.transpile.passes.tree import unread
from layerc.transpile.program import Expr, Function, Layer, Module, Parameter, Result, Return, Type

FORMAT = 1
_ANONYMOUS = ("_", "...")


def manifest(
    module: Module, version: str, layers: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "layerc": version,
        "source": module.path,
        "sha256": hashlib.sha256(module.source.encode()).hexdigest(),
        "module": "_native",
        "errors": list(errors),
        "layers": list(layers),
    }


def layer_entry(layer: Layer, backward: str, methods: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "line": layer.span.line,
        "doc": layer.doc,
        "batched": layer.predict.batched,
        "backward": backward,
        "signature": signature(layer),
        "parameters": [_parameter(p) for p in layer.params],
        "methods": dict(methods),
        "sources": dict(sources),
        **({"by_hand": list(layer.by_hand)} if layer.by_hand else {}),
    }


def _parameter(param: Parameter) -> dict[str, Any]:
    init = None if param.init is None else {"name": param.init[0], "args": list(param.init[1])}
    return {
        "name": param.name,
        "role": param.role,
        "dtype": "random" if param.role == "random" else param.type.dtype,
        "shape": parameter_shape(param),
        "default": list(param.default) if isinstance(param.default, tuple) else param.default,
        "required": param.required,
        "init": init,
        "check": param.check,
    }


def method_entry(function: Function, kernel: Kernel, dtypes: Sequence[str]) -> dict[str, Any]:
    """A METHOD: how its kernels are called. `unread`: the arguments of which they take nothing but the shape."""
    final = function.body[-1]
    assert isinstance(final, Return)
    groups = groups_of([p.shape_text for p in function.params] + [r.shape_text for r in function.results])
    carriers = {result.name: parameter.name for result, parameter in cotangents_of(function)}
    arguments = [p.name for p in function.params if not is_scalar(p)]
    over, left = overwrites(kernel), unread(kernel)
    entry = {
        "kernels": {dtype: emit.symbol(kernel, dtype) for dtype in dtypes},
        "dims": list(sizes(function)),
        "config": [p.name for p in function.params if is_scalar(p)],
        "arguments": arguments,
        "outputs": [_output(r, v, groups, carriers, over) for r, v in zip(function.results, final.values, strict=True)],
    }
    # A buffer has a name of its own where the argument is called like an extent: by place.
    ins = [b.name for b in kernel.buffers if b.kind == "in"]
    names = [name for name, buffer in zip(arguments, ins, strict=True) if buffer in left]
    return {**entry, "unread": names} if names else entry


def _output(
    result: Result, value: Expr, groups: frozenset[str], carriers: Mapping[str, str], over: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """`cotangent`: the argument of a backward that carries the gradient of this output; `of`: what it is that of;
    `over`: the arguments in whose memory it may lie."""
    entry: dict[str, Any] = {
        "name": result.name,
        "role": result.role,
        "dtype": result.type.dtype,
        "shape": result_shape(result, value.type, groups),
    }
    if result.name in carriers:
        entry["cotangent"] = carriers[result.name]
    if names := [read for out, read in over if out == result.name]:
        entry["over"] = names
    return entry if result.of is None else {**entry, "of": result.of}


# -- shapes -----------------------------------------------------------------------------------------------
def parameter_shape(param: Parameter) -> str:
    """The shape as the user wrote it, but every axis has a name: the results may be made of it."""
    words = param.shape_text.split()
    return " ".join(_dim_text(d) if w in _ANONYMOUS else w for w, d in zip(words, param.type.shape, strict=True))


def result_shape(result: Result, type: Type, groups: frozenset[str]) -> str:
    words = result.shape_text.split()
    return " ".join(
        ("*" if d.symbol in groups else "") + _dim_text(d) if w in _ANONYMOUS else w
        for w, d in zip(words, type.shape, strict=True)
    )


def _dim_text(dim: Dim) -> str:
    return str(dim).replace(" ", "")


def signature(layer: Layer) -> str:
    """What it takes and gives: SReLU(x: real['C *S']) -> real['C *S']"""
    shown = [p for p in layer.params if layer.kind == "function" or p.role in ("input", "random")]
    outputs = [r for r in (layer.forward or layer.predict).results if r.role in ("output", "param")]
    results = [_type_text(r.type.dtype, r.shape_text) for r in outputs]
    gives = results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
    return f"{layer.name}({', '.join(_argument_text(p) for p in shown)}) -> {gives}"


def _argument_text(param: Parameter) -> str:
    if param.role == "random":
        return f"{param.name}: Random"
    text = param.type.dtype if param.role == "config" else _type_text(param.type.dtype, param.shape_text)
    text = {"param": f"Param[{text}]", "state": f"State[{text}]"}.get(param.role, text)
    return f"{param.name}: {text}" + ("" if param.required or param.role != "config" else f" = {param.default!r}")


def _type_text(dtype: str, shape: str) -> str:
    dtype = "bool_" if dtype == "bool" else dtype
    return f"{dtype}['{shape}']" if shape else dtype
