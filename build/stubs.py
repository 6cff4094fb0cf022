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
    imports = ["from typing import Any, Literal, TypeVar", ""]
    if "class" in kinds:
        imports.insert(0, "from collections.abc import Iterable")
    if "function" in kinds:
        imports.append("from layerc.runtime.call import Described, Pullback")
    if "class" in kinds:
        imports.append("from layerc.runtime.compiled import ClassPullback, CompiledClass")
    head = [
        f'"""{_headline(manifest)}"""',
        "",
        *imports,
        "",
        '_Array = TypeVar("_Array")  # NumPy, or any with __dlpack__',
    ]
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
    result = _result(layer)
    called = [*arrays, "*", "out: Any = None", _BATCH, _ACCELERATION, *_options(layer)]
    private = f"_{layer['name']}"
    return "\n".join(
        [
            f"class {private}(Described):",
            _docstring(layer),
            _method("__call__", called, result),
            _method("vjp", called, f"tuple[{result}, Pullback]"),
            _method("reference", [*arrays, "*", _BATCH, *_options(layer)], "Any"),
            "",
            f"{layer['name']}: {private}",
        ]
    )


def _class_stub(layer: Layer) -> str:
    inputs = [_annotated(p) for p in layer["parameters"] if p["role"] == "input"]
    result = _result(layer)
    called = [*inputs, "*", "out: Any = None", _BATCH, _ACCELERATION]
    wiring = ["name: str | None = None", "bottoms: Iterable[str] = ()", "tops: Iterable[str] = ()"]
    settings = [option for option in _options(layer) if not option.endswith("...")]
    named = [*settings, *_net_options(layer)]
    return "\n".join(
        [
            f"class {layer['name']}(CompiledClass):",
            _docstring(layer),
            *(f"    {field.partition(' =')[0]}" for field in settings),
            "",
            _method("__init__", [*wiring, *(["*", *named] if named else [])], "None"),
            _method("__call__", called, result, _NARROWER),
            _method("vjp", called, f"tuple[{result}, ClassPullback]", _NARROWER),
        ]
    )


_BATCH = "batch: bool | None = None"
_ACCELERATION = 'acceleration: Literal["auto", "none"] = "auto"'
_NARROWER = "  # type: ignore[override]"  # than the base's, which takes any inputs


def _method(name: str, arguments: list[str], result: str, remark: str = "") -> str:
    """One line, or one line an argument where that would be too long."""
    line = f"    def {name}({', '.join(['self', *arguments])}) -> {result}: ...{remark}"
    if len(line) <= 100:
        return line
    inner = [f"        {argument}," for argument in ["self", *arguments]]
    return "\n".join([f"    def {name}({remark}", *inner, f"    ) -> {result}: ..."])


def _annotated(parameter: Mapping[str, Any]) -> str:
    scalar = parameter["role"] == "input" and not parameter["shape"]
    number = {"i32": "int", "i64": "int", "bool": "bool"}.get(parameter["dtype"], "float")
    return f"{parameter['name']}: {f'_Array | {number}' if scalar else '_Array'}"


def _options(layer: Layer) -> list[str]:
    options = []
    for p in layer["parameters"]:
        if p["role"] == "config":
            default = "" if p.get("required") else f" = {p.get('default')!r}"
            options.append(f"{p['name']}: {_PYTHON_TYPES.get(p['dtype'], 'Any')}{default}")
        elif p["role"] == "random":
            options.append(f"{p['name']}: Any = ...")
    return options


def _net_options(layer: Layer) -> list[str]:
    """What a net reads; a field of the layer's own may be called so, and comes first."""
    own = {p["name"] for p in layer["parameters"] if p["role"] == "config"}
    params = [p["name"] for p in layer["parameters"] if p["role"] == "param"]
    options = {"param_key": "str | None = None"} if params else {}
    for p in params:
        options |= {f"{p}_{key}": "Any = ..." for key in ("init", "regu", "cons")}
        options |= {f"{p}_{key}": "float = 1.0" for key in ("lr", "decay")}
    made = [o for o in layer["methods"]["predict"]["outputs"] if o["role"] == "output"]
    if any(o["dtype"] not in ("i32", "i64", "bool") for o in made) and any(
        p["role"] == "input" for p in layer["parameters"]
    ):
        options["neuron"] = "Any = ..."
    return [f"{name}: {kind}" for name, kind in options.items() if name not in own]


def _result(layer: Layer) -> str:
    outputs = [o for o in layer["methods"]["predict"]["outputs"] if o["role"] in ("output", "param")]
    return "_Array" if len(outputs) == 1 else f"tuple[{', '.join(['_Array'] * len(outputs))}]"
