"""`layerc bench`: how long a layer's forward and backward take on given shapes."""

import importlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from layerc.runtime.shapes import bind, parse
from layerc.runtime.threads import set_num_threads

_ENOUGH = 0.3  # seconds of measuring
_DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "bool": "bool"}


def time_layer(
    package: Path,
    name: str,
    shapes: Mapping[str, tuple[int, ...]],
    config: Mapping[str, Any],
    dtype: str,
    threads: int,
) -> list[str]:
    """Lines of a report on one layer of a built package. ValueError for shapes that are missing or do not
    fit.
    """
    set_num_threads(threads)
    layer = getattr(imported(package), name)
    manifest = manifest_of(layer)
    arrays, batched = _arrays(manifest, shapes, config, np.dtype(dtype))
    if manifest["kind"] == "class":
        settings = {p["name"]: config[p["name"]] for p in manifest["parameters"] if p["name"] in config}
        made = layer(name=name, **settings)
        inputs = [p["name"] for p in manifest["parameters"] if p["role"] == "input"]
        drop = 1 if batched and not manifest["batched"] else 0
        made.initialize(*(arrays[n].shape[drop:] for n in inputs), dtype=np.dtype(dtype))
        values, options, call = [arrays[n] for n in inputs], {}, made
    else:
        values, call = list(arrays.values()), layer
        options = {p["name"]: config[p["name"]] for p in manifest["parameters"] if p["name"] in config}
        if batched and not manifest["batched"]:
            options["batch"] = True
    forward = _seconds(lambda: call(*values, **options))
    lines = [
        f"{name}  {', '.join(f'{n} {a.shape}' for n, a in arrays.items())}  {dtype}, threads: {threads}",
        f"  forward   {_shown(forward)}",
    ]
    if "backward" in manifest["methods"]:
        result, pullback = call.vjp(*values, **options)
        seeds = [np.ones_like(y) for y in (result if isinstance(result, tuple) else (result,))]
        both = _seconds(lambda: call.vjp(*values, **options)[1](*seeds))
        lines += [f"  backward  {_shown(_seconds(lambda: pullback(*seeds)))}", f"  both      {_shown(both)}"]
    return lines


def manifest_of(layer: Any) -> Mapping[str, Any]:
    """Of a function or class of a built package."""
    described = getattr(layer, "compiled", layer)
    manifest: Mapping[str, Any] = described.manifest
    return manifest


def imported(package: Path) -> Any:
    """The package in that directory, as a module."""
    sys.modules.pop(package.name, None)  # another one, of a command before in this process
    sys.path.insert(0, str(package.parent))
    try:
        return importlib.import_module(package.name)
    finally:
        sys.path.remove(str(package.parent))


def _arrays(
    manifest: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    config: Mapping[str, Any],
    dtype: np.dtype,
) -> tuple[dict[str, np.ndarray], bool]:
    """Random arrays for the arguments; and whether the inputs have a batch axis before what is declared."""
    wanted = [
        p
        for p in manifest["parameters"]
        if p["role"] in ("input", *(("param", "state") if manifest["kind"] == "function" else ()))
    ]
    missing = [p["name"] for p in wanted if p["role"] == "input" and p["name"] not in shapes]
    if missing:
        raise ValueError(
            f"{manifest['name']}: give --shapes {' '.join(f'{n}=...' for n in missing)}; declared: "
            + ", ".join(f"{p['name']} {p['shape']!r}" for p in wanted)
        )
    inputs = {p["name"]: parse(p["shape"]) for p in wanted if p["role"] == "input"}
    batched = not manifest["batched"] and all(
        len(shapes[n]) > shape.rank or (shape.group is not None and len(shapes[n]) > 1) for n, shape in inputs.items()
    )
    own = {n: shapes[n][1:] if batched else shapes[n] for n in inputs}
    known = [(n, shape, own[n]) for n, shape in inputs.items()]
    known += [(p["name"], parse(p["shape"]), shapes[p["name"]]) for p in wanted if p["name"] in {*shapes} - {*inputs}]
    binding = bind(known, config, manifest["name"])
    random = np.random.default_rng(0)
    arrays = {}
    for p in wanted:
        try:
            shape = shapes.get(p["name"]) or parse(p["shape"]).evaluate(binding)
        except KeyError as error:
            raise ValueError(
                f"{manifest['name']}: nothing says what {error.args[0]} of {p['name']} {p['shape']!r} is; "
                f"give --shapes {p['name']}=..."
            ) from None
        kind = dtype if p["dtype"] == "real" else np.dtype(_DTYPES[p["dtype"]])
        values = random.uniform(0.1, 0.9, shape)
        arrays[p["name"]] = values.astype(kind) if kind.kind == "f" else np.zeros(shape, kind)
    return arrays, batched


def _seconds(run: Callable[[], object]) -> float:
    """The best of some runs: what the machine can do undisturbed."""
    run()
    best, spent = float("inf"), 0.0
    while spent < _ENOUGH:
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


def _shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:8.2f} {unit}"
    return f"{seconds * 1e9:8.0f} ns"
