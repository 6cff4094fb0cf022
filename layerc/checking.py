"""`layerc check`: the validity suite of the runtime, on a package built for the purpose."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from layerc.runtime.check import Report
from layerc.runtime.shapes import parse
from layerc.timing import imported, manifest_of

Shapes = Mapping[str, tuple[int, ...]]


def reports(package: Path, names: list[str], shapes: Shapes, config: Mapping[str, Any]) -> Iterator[Report]:
    """One report after the other. ValueError and TypeError for shapes and configuration that do not fit.

    shapes: of inputs with the batch axis, where a layer takes single examples. Of several layers, each takes
    the shapes and the configuration that it knows.
    """
    module = imported(package)
    for name in names:
        layer: Any = getattr(module, name)
        manifest = manifest_of(layer)
        known = {p["name"]: p for p in manifest["parameters"]}
        settings = {n: v for n, v in config.items() if n in known and known[n]["role"] == "config"}
        examples, observations = _examples(manifest, {n: s for n, s in shapes.items() if n in known})
        if manifest["kind"] == "class":
            yield _made(layer, name, settings).check(observations=observations, **examples)
        else:
            yield layer.check(observations=observations, **examples, **settings)


def _made(layer: Any, name: str, settings: Mapping[str, Any]) -> Any:
    try:
        return layer(name=name, **settings)
    except TypeError as error:
        raise TypeError(f"{error}; for a check, give it as --config NAME=VALUE") from None


def _examples(manifest: Mapping[str, Any], shapes: Shapes) -> tuple[dict[str, tuple[int, ...]], int]:
    """The shapes of one example, and how many examples there are."""
    if manifest["batched"]:
        return dict(shapes), 3
    declared = {p["name"]: parse(p["shape"]) for p in manifest["parameters"] if p["role"] == "input"}
    inputs = [n for n in shapes if n in declared]
    if not inputs or not all(len(shapes[n]) > declared[n].rank - (declared[n].group is not None) for n in inputs):
        return dict(shapes), 3
    lead = {shapes[n][0] for n in inputs}
    if len(lead) > 1:
        given = ", ".join(f"{n}={','.join(map(str, shapes[n]))}" for n in inputs)
        raise ValueError(f"{manifest['name']}: axis 0 is the batch, and {given} do not agree in it")
    return {n: s[1:] if n in declared else s for n, s in shapes.items()}, max(lead.pop(), 2)
