"""A compiled function or class seen as a layer: which arrays go in and out, by the manifest, and calls on
blobs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.kernel import is_public
from layerc.runtime.layer import BadInput, BadType
from layerc.runtime.shapes import parse

_INTEGERS: dict[str, np.dtype] = {
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}


class Ports:
    """inputs, params, states: names; outputs: names of what it makes; new_states: {output: state}.

    batched: whether axis 0 of inputs is mapped over (else the function itself takes the whole batch).
    """

    def __init__(self, compiled: Any, config: Mapping[str, Any], batched: bool = True) -> None:
        self.compiled, self.config, self.batched = compiled, dict(config), batched
        manifest = compiled.manifest
        parameters = manifest["parameters"]
        self.inputs, self.params, self.states = (
            tuple(p["name"] for p in parameters if p["role"] == role) for role in ("input", "param", "state")
        )
        self.random = next((p["name"] for p in parameters if p["role"] == "random"), None)
        self.dtypes = {p["name"]: p["dtype"] for p in parameters}
        self.shapes = {p["name"]: parse(p["shape"]) for p in parameters if p["role"] in ("input", "param", "state")}
        methods = manifest["methods"]
        made = (methods.get("forward") or methods["predict"])["outputs"]
        self.made = made
        self.outputs = tuple(o["name"] for o in made if is_public(o))
        self.cotangents = {o["name"]: o["cotangent"] for o in made if is_public(o)}
        self.new_states = {o["name"]: o.get("of") or o["name"] for o in made if o["role"] == "state"}
        self.differentiable = tuple(o["of"] for o in methods["backward"]["outputs"]) if "backward" in methods else ()

    @property
    def name(self) -> str:
        return str(self.compiled.manifest["name"])

    def makes_floats(self) -> bool:
        return any(o["dtype"] not in _INTEGERS for o in self.made if is_public(o))

    def input_kind(self, k: int) -> str:
        return "int" if self.dtypes[self.inputs[k]] in _INTEGERS else "float"

    def example_shapes(self, blobs: Sequence[Blob]) -> list[tuple[int, ...]]:
        """What the function is told of the blobs' shapes: without the batch where that is mapped over."""
        mapped = self.batched and not self.compiled.manifest["batched"]
        return [b.shape[1:] if mapped else b.shape for b in blobs]

    def arrays(self, blobs: Sequence[Blob]) -> dict[str, np.ndarray]:
        """The bottoms by name; integers in the declared width. BadType for floats where integers are
        declared, and
        the reverse."""
        found = {}
        for name, blob in zip(self.inputs, blobs):
            declared = _INTEGERS.get(self.dtypes[name])
            if (declared is None) != (blob.dtype.kind == "f"):
                raise BadType(f"argument {name!r} of {self.name} is {self.dtypes[name]}, not {blob.dtype}")
            found[name] = blob.data if declared is None else blob.data.astype(declared, copy=False)
        return found

    def output_specs(self, method: str, arrays: Mapping[str, np.ndarray]) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Shape and type of each output for inputs, params and states like these."""
        core = getattr(self.compiled, "core", None)
        try:
            if core is None:
                made = {k: (a.shape, a.dtype) for k, a in self.run(method, arrays, None).items()}
            else:
                names = core.array_names
                case = core.by_name(names, [arrays[n] for n in names], self.config, self.batched)
                made = {name: (shape, dtype) for name, shape, dtype in case.launch(method).specs}
        except ValueError as error:
            raise BadInput(str(error)) from None
        except TypeError as error:
            raise BadType(str(error)) from None
        return [made[name] for name in self.outputs]

    def run(self, method: str, arrays: Mapping[str, np.ndarray], seed: int | None) -> dict[str, np.ndarray]:
        """Everything the method makes, by name. BadInput, BadType for bottoms that do not fit."""
        found: dict[str, np.ndarray] = self.compiled.run(method, arrays, self.config, self.batched, seed=seed)
        return found

    def pull(self, arrays: Mapping[str, np.ndarray], want: str, seed: int | None) -> dict[str, np.ndarray]:
        """Gradients by the names of what they are of."""
        found: dict[str, np.ndarray] = self.compiled.pull(arrays, self.config, want, self.batched, seed=seed)
        return found
