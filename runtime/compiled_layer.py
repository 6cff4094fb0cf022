"""Compiled layers in a net: `CompiledLayer(L.mish)` for functions; class layers (`L.SReLU(...)`) as they
are."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import REQUIRED, Field, field, integer
from layerc.runtime.given_parameters import GivenParameters
from layerc.runtime.initializers import Xavier
from layerc.runtime.layer import BadInput, Builtin, Layer, LayerState
from layerc.runtime.parameters import Parameter
from layerc.runtime.ports import Ports
from layerc.runtime.shapes import bind


class _Compiled(Builtin):
    """What both kinds share. `self.ports` says what goes in and out; `self._pull` gives the gradients."""

    has_neuron = True

    ports: Ports

    def _derive(self, ports: Ports, can_do_bp: bool) -> None:
        """Characteristics, from the signature."""
        self._set("ports", ports)
        self._set("has_param", bool(ports.params))
        self._set("can_do_bp", can_do_bp)
        self._set("has_neuron", ports.makes_floats())
        self._set("bottom_counts", (len(ports.inputs), len(ports.inputs)))
        self._set("is_source", not ports.inputs)
        self._set("top_count", len(ports.outputs))
        if len(ports.outputs) > 1 and "tops" not in self._given:
            self._set("tops", ())

    def bottom_kind(self, k: int) -> str | None:
        return self.ports.input_kind(k) if k < len(self.ports.inputs) else None

    def _parameters(self, inputs: list[Blob]) -> list[Parameter]:
        raise NotImplementedError

    def _first_states(self, inputs: list[Blob], dtype: np.dtype) -> dict[str, np.ndarray]:
        return {}

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        arrays = self.ports.arrays(inputs)
        dtype = getattr(backend, "dtype", np.dtype(np.float32))
        parameters = self._parameters(inputs)
        states = self._first_states(inputs, dtype)
        blank = {p.name: np.zeros(p.shape, dtype) for p in parameters}
        specs = self.ports.output_specs("forward", {**arrays, **blank, **states})
        for shape, _ in specs:
            if inputs and (not shape or shape[0] != inputs[0].shape[0]):
                raise BadInput(f"it makes shape {shape}: axis 0 is not the batch")
        blobs = [Blob.empty(shape, kind) for shape, kind in specs]
        return LayerState(self, blobs=blobs, parameters=parameters, states=states, random=None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        ports = self.ports
        arrays = {**ports.arrays(inputs), **{p.name: p.data for p in state.parameters}, **state.states}
        training = state.phase == "train"
        if ports.random:
            state.random = state.rng.next_seed()
        # The shapes and types are checked first: a ValueError of the function's own is not the bottoms'
        # fault.
        ports.output_specs("forward" if training else "predict", arrays)
        made = ports.run("forward" if training else "predict", arrays, state.random)
        state.arrays = {**made, **arrays}  # states as they were before, inputs that are called like outputs
        for blob, name in zip(state.blobs, ports.outputs):
            blob.adopt(made[name])
        if training:
            state.states = {**state.states, **{s: made[o] for o, s in ports.new_states.items() if o in made}}

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        learns = any(not p.frozen for p in state.parameters)
        want = "params" if not any(diffs) else "all" if learns else "inputs"
        arrays = dict(state.arrays)
        for name, blob, dy in zip(self.ports.outputs, state.blobs, state.blobs_diff):
            carrier = self.ports.cotangents.get(name)
            if carrier is not None and blob.dtype.kind == "f":
                arrays[carrier] = dy.data if isinstance(dy, Blob) else np.zeros(blob.shape, blob.dtype)
        found = self._pull(arrays, want, state.random)
        for name, blob, dx in zip(self.ports.inputs, inputs, diffs):
            if isinstance(dx, Blob):
                if name in found:
                    dx.data = found[name].reshape(blob.shape)
                else:
                    dx.fill(0)
        for p in state.parameters:
            if not p.frozen and p.name in found:
                p.gradient[...] += found[p.name]

    def _pull(self, arrays: Mapping[str, np.ndarray], want: str, seed: int | None) -> dict[str, np.ndarray]:
        return self.ports.pull(arrays, want, seed)


class CompiledLayer(GivenParameters, _Compiled):
    """A compiled function as a layer; its ports are those of the signature.

    backward: "auto"; another compiled function, whose argument names say what it gets (`x`, `y`, `dy`) and
    which gives
    the gradients in the signature's order; None: cannot do bp.
    input: Wolfram's rank rule: the shape of one example; of the declared rank: the function describes one
    example;
    of one less: it takes the batch.  params: {name: array or (shape, initializer)}, each with its `p_regu, p_cons,
    p_lr, p_decay`.  config: {name: value}.
    """

    positional = ("fn", "backward", "input", "params", "config")

    fn: Any = field()
    backward_fn: Any = None
    input: Any = field(None, convert=lambda shapes: _example_shapes(shapes))
    config: Any = field({}, convert=dict)

    @classmethod
    def _keywords(cls) -> dict[str, tuple[Any, Any]]:
        known = super()._keywords()
        known["backward"] = (None, Field("auto"))
        return known

    def _set(self, key: str, value: Any) -> None:
        super()._set("backward_fn" if key == "backward" else key, value)  # `backward` is the method

    @property
    def chain_name(self) -> str:
        return self.ports.name.lower()

    def check_fields(self, owner: str) -> None:
        if not (hasattr(self.fn, "run") and hasattr(self.fn, "manifest")):
            raise ValueError(f"{owner}: field fn={self.fn!r} must be a compiled function (FunctionLayer takes others)")
        ports = Ports(self.fn, self.config, self._maps_batch(owner))
        configs = {p["name"]: p for p in self.fn.manifest["parameters"] if p["role"] == "config"}
        for key in self.config:
            if key not in configs:
                raise ValueError(
                    f"{owner}: field config names {key!r}; {ports.name} takes {', '.join(configs) or 'none'}"
                )
        for key in self.params:
            if key not in ports.params:
                raise ValueError(
                    f"{owner}: field params names {key!r}; {ports.name} has {', '.join(ports.params) or 'none'}"
                )
        missing = [p for p in ports.params if p not in self.params]
        if missing:
            raise ValueError(f"{owner}: field params must give {', '.join(missing)}: an array or (shape, initializer)")
        given = self.backward_fn
        if not (given is None or given == "auto" or hasattr(given, "manifest")):
            raise ValueError(f'{owner}: field backward={given!r} must be "auto", a compiled function or None')
        if hasattr(given, "manifest"):
            self._check_backward(owner, ports)
        self._derive(ports, given is not None and (given != "auto" or bool(ports.differentiable)))

    def _maps_batch(self, owner: str) -> bool:
        """Whether the function describes one example; by the ranks of `input=` where that is given."""
        manifest = self.fn.manifest
        if manifest["batched"] or self.input is None:
            return True
        inputs = [p for p in manifest["parameters"] if p["role"] == "input"]
        answers = set()
        for shape, p in zip(self.input, inputs):
            declared = p["shape"].split()
            if any(word.startswith("*") for word in declared):
                continue  # a group takes any rank
            if len(shape) not in (len(declared), len(declared) - 1):
                raise ValueError(
                    f"{owner}: field input={self.input!r}: rank {len(shape)} is neither that of {p['name']} "
                    f'"{p["shape"]}" nor one less'
                )
            answers.add(len(shape) == len(declared))
        if len(answers) > 1:
            raise ValueError(f"{owner}: field input={self.input!r}: some inputs are examples, some whole batches")
        return answers != {False}

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        self._check_examples(inputs)
        return super().setup(backend, inputs, diffs)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._check_examples(inputs)
        super().forward(backend, state, inputs)

    def _check_examples(self, inputs: list[Blob]) -> None:
        """BadInput for bottoms whose examples are not of the shapes that `input=` says."""
        for name, shape, blob in zip(self.ports.inputs, self.input or (), inputs):
            if tuple(blob.shape[1:]) != shape:
                raise BadInput(
                    f"field input={self.input!r} says {shape} for an example of {name}, not {blob.shape[1:]}"
                )

    def _check_backward(self, owner: str, ports: Ports) -> None:
        wanted = self.backward_fn.manifest["parameters"]
        cotangents = set(ports.cotangents.values())
        known = {*ports.inputs, *ports.params, *ports.states, *ports.outputs, *cotangents, *ports.config}
        unknown = [p["name"] for p in wanted if p["name"] not in known and p.get("required")]
        if unknown:
            raise ValueError(f"{owner}: field backward: argument {unknown[0]!r} is none of {', '.join(sorted(known))}")
        made = self.backward_fn.manifest["methods"]["predict"]["outputs"]
        if len(made) != len(self._slots(ports)):
            raise ValueError(
                f"{owner}: field backward makes {len(made)} gradients for the {len(self._slots(ports))} of {ports.name}"
            )

    @staticmethod
    def _slots(ports: Ports) -> list[str]:
        """What has a gradient, in the signature's order."""
        return [n for n in (*ports.inputs, *ports.params) if ports.dtypes[n] in ("real", "f32", "f64")]

    def _parameters(self, inputs: list[Blob]) -> list[Parameter]:
        return self.given_parameters()

    def _pull(self, arrays: Mapping[str, np.ndarray], want: str, seed: int | None) -> dict[str, np.ndarray]:
        given = self.backward_fn
        if given == "auto":
            return super()._pull(arrays, want, seed)
        manifest = given.manifest
        known = {**self.config, **arrays}
        chosen = {p["name"]: known[p["name"]] for p in manifest["parameters"] if p["name"] in known}
        settings = {p["name"] for p in manifest["parameters"] if p["role"] == "config"}
        config = {k: v for k, v in chosen.items() if k in settings}
        chosen = {k: v for k, v in chosen.items() if k not in settings}
        batch = len(arrays[self.ports.inputs[0]])
        mapped = self.ports.batched and not manifest["batched"]
        if mapped:  # a plain argument is mapped over the batch, so what all examples share is repeated
            roles = {p["name"]: p["role"] for p in manifest["parameters"]}
            for k in (*self.ports.params, *self.ports.states):
                if roles.get(k) == "input":
                    chosen[k] = np.broadcast_to(chosen[k], (batch, *chosen[k].shape)).copy()
        found = list(given.run("predict", chosen, config, self.ports.batched).values())
        named = dict(zip(self._slots(self.ports), found))
        if mapped:
            named |= {p: named[p].sum(axis=0) for p in self.ports.params if p in named}
        return named


class CompiledClassLayer(_Compiled):
    """A compiled class layer of a package, as the net runs it: made by `as_layer` of the user's object.

    Beside its own fields it takes what `net_keywords` says; its Params start with the file's `init`.
    """

    origin: Any

    def __init__(self, origin: Any, **changes: Any) -> None:
        given = {"name": origin.name, "bottoms": origin.bottoms, "tops": origin.tops or None}
        given |= origin.net_options
        self._set("origin", origin)
        super().__init__(**{**given, **changes})

    @classmethod
    def _param_fields(cls, p: str) -> dict[str, Field]:
        known = super()._param_fields(p)
        return {
            **known,
            "init": Field(None, None, known["init"].convert),
            "regu": Field(_no_regu(), known["regu"].check),
        }

    def check_fields(self, owner: str) -> None:
        ports = Ports(self.origin.compiled, self.origin.config)
        self._derive(ports, bool(ports.differentiable))

    @property
    def is_named(self) -> bool:
        return self.name != type(self.origin).__name__.lower()

    def replace(self, **changes: Any) -> Layer:
        return type(self)(self.origin, **{**self._given, **changes})

    def _fresh(self, shapes: Sequence[tuple[int, ...]], seed: int, dtype: Any) -> Any:
        """The user's layer anew, with first values."""
        layer = type(self.origin)(name=self.name, **self.origin.config)
        try:
            layer.initialize(*shapes, seed=seed, dtype=dtype)
        except ValueError as error:
            raise BadInput(str(error)) from None
        return layer

    def _parameters(self, inputs: list[Blob]) -> list[Parameter]:
        ports = self.ports
        if not ports.params:
            return []
        shapes = ports.example_shapes(inputs)
        first = dict(self._fresh(shapes, 0, np.float32).params)
        made = []
        for p in ports.params:
            if p in first:
                shape = first[p].shape
            else:  # the file gives it no start
                declared = [(n, ports.shapes[n], s) for n, s in zip(ports.inputs, shapes)]
                shape = ports.shapes[p].evaluate(bind(declared, ports.config, self.name))
            start = getattr(self, f"{p}_init") or (_FileInit(self, shapes, p) if p in first else Xavier())
            rest = (getattr(self, f"{p}_{key}") for key in ("regu", "cons", "lr", "decay"))
            made.append(Parameter(p, shape, start, *rest))
        return made

    def _first_states(self, inputs: list[Blob], dtype: np.dtype) -> dict[str, np.ndarray]:
        if not self.ports.states:
            return {}
        states = self._fresh(self.ports.example_shapes(inputs), 0, dtype).states
        return {name: np.array(states[name]) for name in self.ports.states}

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        state = super().setup(backend, inputs, diffs)
        state.first_states = dict(state.states)
        return state

    def reset_states(self, state: LayerState) -> None:
        state.states = {name: value.copy() for name, value in state.first_states.items()}


class _FileInit:
    """The start that a layer file gives a Param: its `init`, or what its `initialize` assigns."""

    def __init__(self, layer: CompiledClassLayer, shapes: Sequence[tuple[int, ...]], p: str) -> None:
        self.layer, self.shapes, self.p = layer, shapes, p

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        fresh = self.layer._fresh(self.shapes, int(rng.integers(2**63 - 1)), dtype)
        return np.array(fresh.params[self.p], dtype=dtype)

    def __repr__(self) -> str:
        return f"init of {type(self.layer.origin).__name__}.{self.p}"


def as_layer(layer: Any) -> Any:
    """A compiled class layer as the net runs it; other things as they are."""
    is_class_layer = not isinstance(layer, type | Layer) and hasattr(layer, "compiled") and hasattr(layer, "initialize")
    if not is_class_layer:
        return layer
    kind: Any = type(layer)
    return class_for(kind)(layer)


@cache
def class_for(kind: Any) -> type[CompiledClassLayer]:
    """The net's class for a package's class: it takes the keywords of its Params, and has its characteristics."""
    parameters = kind.compiled.manifest["parameters"]
    names = tuple(p["name"] for p in parameters if p["role"] == "param")
    ports = Ports(kind.compiled, {})
    has = {"has_param": bool(names), "has_neuron": bool(ports.inputs) and ports.makes_floats()}
    has |= {"is_source": not ports.inputs, "can_do_bp": bool(ports.differentiable)}
    return type(kind.__name__, (CompiledClassLayer,), {"param_names": names, **has})


def net_keywords(kind: Any) -> list[str]:
    """What a package's class takes for the net: `param_key` and `p_init, p_regu, p_cons, p_lr, p_decay` of each
    Param `p`; `neuron` where it makes floats."""
    return [key for key in class_for(kind)._keywords() if key not in ("name", "bottoms", "tops")]


def _example_shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    value = tuple(value)
    if all(isinstance(n, int | np.integer) for n in value):
        return (tuple(int(n) for n in value),)
    return tuple(tuple(integer(n) for n in shape) for shape in value)


def _no_regu() -> Any:
    from layerc.runtime.regularizers import NoRegu

    return NoRegu()


__all__ = ["REQUIRED", "CompiledClassLayer", "CompiledLayer", "as_layer", "net_keywords"]
