"""The two texts of a package that people and editors read: `__init__.py` and `__init__.pyi`."""

import json
import textwrap
from collections.abc import Mapping
from typing import Any

Layer = Mapping[str, Any]

_PYTHON_TYPES = {"float": "float", "int": "int", "bool": "bool", "str": "str"}


def init_text(manifest: Mapping[str, Any]) -> str:
    """`__init__.py`: one line for each function, one class for each class layer."""
    layers = manifest["layers"]
    lines = [
        f'"""{_headline(manifest)}"""',
        "",
        "from layerc.runtime.package import load as _load",
        "",
        "_package = _load(__name__, __file__)",
    ]
    functions = [layer["name"] for layer in layers if layer["kind"] == "function"]
    if functions:
        lines += ["", *(f'{name} = _package.function("{name}")' for name in functions)]
    for layer in layers:
        if layer["kind"] == "class":
            name = layer["name"]
            lines += ["", "", f'class {name}(_package.layer("{name}")):', _docstring(layer)]
    return "\n".join([*lines, "", *(["", _all(layers)] if layers else [])]).rstrip("\n") + "\n"


def stub_text(manifest: Mapping[str, Any]) -> str:
    """`__init__.pyi`: the types of every call. An array may be of any kind; the same kind comes out."""
    layers = manifest["layers"]
    kinds = {layer["kind"] for layer in layers}
    imports = ["from typing import Any, TypeVar", ""]
    if "function" in kinds:
        imports.append("from layerc.runtime.call import Described, Pullback")
    if "class" in kinds:
        imports.append("from layerc.runtime.compiled import ClassPullback, CompiledClass")
    head = [f'"""{_headline(manifest)}"""', "", *imports, "", '_Array = TypeVar("_Array")  # NumPy, or any with __dlpack__']
    bodies = [_function_stub(layer) if layer["kind"] == "function" else _class_stub(layer) for layer in layers]
    return "\n".join([*head, "", "\n\n".join(bodies), "", _all(layers)]) + "\n"


def _headline(manifest: Mapping[str, Any]) -> str:
    names = ", ".join(layer["name"] for layer in manifest["layers"])
    return f"Compiled by layerc {manifest['layerc']} from {manifest['source']}: {names}. Do not edit."


def _all(layers: list[Layer]) -> str:
    return f"__all__ = {json.dumps([layer['name'] for layer in layers])}"


def _docstring(layer: Layer) -> str:
    """The signature, then the author's own words, safe inside triple quotes."""
    text = "\n\n".join(filter(None, [layer["signature"], textwrap.dedent(layer.get("doc") or "").strip()]))
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if text.endswith('"'):
        text = text[:-1] + '\\"'
    lines = text.splitlines()
    if len(lines) == 1:
        return f'    """{text}"""'
    return "\n".join([f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """'])


def _function_stub(layer: Layer) -> str:
    arrays = [_annotated(p) for p in layer["parameters"] if p["role"] in ("input", "param", "state")]
    result, out = _results(layer, "predict")
    options = ["*", f"out: {out} | None = ...", "batch: bool | None = ...", *_options(layer)]
    call = ", ".join(["self", *arrays, *options])
    private = f"_{layer['name']}"
    return "\n".join(
        [
            f"class {private}(Described):",
            _docstring(layer),
            f"    def __call__({call}) -> {result}: ...",
            f"    def vjp({call}) -> tuple[{result}, Pullback]: ...",
            f"    def reference({', '.join(['self', *arrays, '*', 'batch: bool | None = ...', *_options(layer)])}) -> Any: ...",
            "",
            f"{layer['name']}: {private}",
        ]
    )


def _class_stub(layer: Layer) -> str:
    inputs = [_annotated(p) for p in layer["parameters"] if p["role"] == "input"]
    result, out = _results(layer, "predict")
    call = ", ".join(["self", *inputs, "*", f"out: {out} | None = ...", "batch: bool | None = ..."])
    wiring = ["self", "name: str | None = ...", "bottoms: tuple[str, ...] | list[str] = ...", "tops: tuple[str, ...] | list[str] = ..."]
    return "\n".join(
        [
            f"class {layer['name']}(CompiledClass):",
            _docstring(layer),
            f"    def __init__({', '.join([*wiring, '*', *_options(layer), '**options: Any'])}) -> None: ...",
            f"    def __call__({call}) -> {result}: ...",
            f"    def vjp({call}) -> tuple[{result}, ClassPullback]: ...",
        ]
    )


def _annotated(parameter: Mapping[str, Any]) -> str:
    scalar = parameter["role"] == "input" and not parameter["shape"]
    return f"{parameter['name']}: {'_Array | float' if scalar else '_Array'}"


def _options(layer: Layer) -> list[str]:
    options = []
    for p in layer["parameters"]:
        if p["role"] == "config":
            default = "" if p.get("required") else f" = {p.get('default')!r}"
            options.append(f"{p['name']}: {_PYTHON_TYPES.get(p['dtype'], 'Any')}{default}")
        elif p["role"] == "random":
            options.append(f"{p['name']}: Any = ...")
    return options


def _results(layer: Layer, method: str) -> tuple[str, str]:
    """The types of what a call gives and of what `out=` takes."""
    outputs = [o for o in layer["methods"][method]["outputs"] if o["role"] == "output"]
    if len(outputs) == 1:
        return "_Array", "Any"
    return f"tuple[{', '.join(['_Array'] * len(outputs))}]", "tuple[Any, ...]"
