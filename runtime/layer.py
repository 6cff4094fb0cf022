"""`Layer`: immutable configuration of one step of a net; `LayerState`: what it holds while it runs.

A layer by hand is a subclass:

    class Scale(Layer):
        can_do_bp = True
        factor: float = config(2.0, check=lambda f: f > 0)

        def setup(self, backend, inputs, diffs):
            return LayerState(self, blobs=[Blob.empty(inputs[0].shape, inputs[0].dtype)])

        def forward(self, backend, state, inputs):
            state.blobs[0].data = self.factor * inputs[0].data

        def backward(self, backend, state, inputs, diffs):
            if diffs[0]:
                diffs[0].data = self.factor * state.blobs_diff[0].data
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from layerc.runtime import fields
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.constraints import NoCons
from layerc.runtime.fields import REQUIRED, Field, checked
from layerc.runtime.initializers import Array, Constant, Xavier
from layerc.runtime.parameters import Parameter
from layerc.runtime.regularizers import L2Regu, NoRegu
from layerc.runtime.streams import Stream
from layerc.runtime.workers import ALONE, Workers

if TYPE_CHECKING:
    from layerc.runtime.check_report import Report

CHARACTERISTICS = (
    *("is_source", "is_sink", "has_param", "has_neuron"),
    *("can_do_bp", "is_inplace", "has_loss", "has_stats"),
)
Diff = Blob | NullBlob


@dataclass(frozen=True)
class Backend:
    """Where a net computes. `dtype`: the net's float type, for layers that no bottom tells it."""

    dtype: np.dtype
    name: str = "cpu"
    borrow: Any = None  # at set-up, for layers with `borrows`: name -> Parameter of the lender
    acceleration: str = "auto"  # "none": compiled layers run as the NumPy that they mean


class BadInput(ValueError):
    """A bottom of a shape that the layer cannot take; the net adds who made it."""


class BadType(TypeError):
    """A bottom of a type that the layer cannot take; the net adds who made it."""


class BadLabel(IndexError):
    """A label or index out of range; the net adds the layer's and the blob's name."""


class LayerState(SimpleNamespace):
    """Blobs and diffs of a layer in a net. `state.anything = ...` is the layer's own.

    blobs, blobs_diff  one per top (the net makes blobs_diff where it is left out); parameters; loss; states
    borrowed           parameters of another layer that this one adds gradients to
    phase              "train" or "predict";   rng: the layer's own `Stream`;   workers: who trains with this one
    """

    def __init__(
        self,
        layer: "Layer",
        blobs: Sequence[Blob] = (),
        parameters: Sequence[Parameter] = (),
        loss: float | None = None,
        blobs_diff: Sequence[Diff] | None = None,
        states: dict[str, np.ndarray] | None = None,
        **anything: Any,
    ) -> None:
        super().__init__(**anything)
        self.layer = layer
        self.blobs: list[Blob] = list(blobs)
        self.parameters: list[Parameter] = list(parameters)
        self.borrowed: list[Parameter] = list(anything.get("borrowed", ()))
        self.loss = loss
        self.blobs_diff: list[Any] = [] if blobs_diff is None else list(blobs_diff)
        self.owns_diffs = blobs_diff is not None
        self.states: dict[str, np.ndarray] = {} if states is None else states
        self.phase = "train"
        self.rng: Any = None
        self.workers = ALONE
        self.is_fork = False  # a copy for inference or validation, which must leave no trace

    @property
    def learned(self) -> list[Parameter]:
        """All that this layer gives gradients to."""
        return [*self.parameters, *self.borrowed]

    def __repr__(self) -> str:
        return f"LayerState({self.layer.name!r}, blobs={self.blobs}, parameters={self.parameters})"


class Layer:
    """Base of all layers. Keywords of every layer: `name`, `bottoms`, `tops`; then its fields.

    ValueError for a field's bad value, TypeError for an unknown keyword; a made layer cannot be changed.
    """

    is_source = is_sink = has_param = has_neuron = can_do_bp = is_inplace = has_loss = has_stats = False
    borrows: ClassVar[str | None] = None  # the field that names the layer, or key, whose parameters it needs
    follows_batch: ClassVar[bool] = False  # a source whose N is that of the data layer
    is_multi: ClassVar[bool] = False  # k bottoms make k tops
    is_builtin: ClassVar[bool] = False  # assigns every diff it is given, so nothing need be zeroed first
    is_recordable: ClassVar[bool] = False  # a function of arrays, states and seeds: `layerc build net.py:net` takes it
    is_summed: ClassVar[bool] = False  # a loss that divides by the terms of all workers
    is_per_example: ClassVar[bool] = False  # predicting, an example of its tops depends on that of its bottoms alone
    has_common_states: ClassVar[bool] = True  # its states belong to the layer, not to examples
    bottom_counts: ClassVar[tuple[int, int | None]] = (0, None)
    top_count: ClassVar[int | None] = None  # None: whatever `setup` makes
    param_names: ClassVar[tuple[str, ...]] = ()
    param_inits: ClassVar[dict[str, Any]] = {}  # where it is not Xavier for a weight, 0 for a bias
    param_regus: ClassVar[dict[str, Any]] = {}  # where a parameter with an init of its own is regularized

    name: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    param_key: str
    neuron: Any
    positional: ClassVar[tuple[str, ...] | None] = None  # fields that may be given so; None: all
    _fields: ClassVar[dict[str, tuple[Any, Any]]] = {}
    _given: dict[str, Any]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._fields = {**cls._fields, **fields.own_fields(cls.__dict__)}

    def __init__(self, *args: Any, **given: Any) -> None:
        cls = type(self)
        kind = cls.__name__
        order = [
            *(cls._fields if cls.positional is None else cls.positional),
            *(["tops"] if cls.is_source else []),
        ]
        if len(args) > len(order):
            raise TypeError(f"{kind}: takes {len(order)} arguments by position, got {len(args)}")
        for key, value in zip(order, args):
            if key in given:
                raise TypeError(f"{kind}: {key} is given twice")
            given[key] = value
        known = self._keywords_of(given)
        for key in given:
            if key not in known:
                raise TypeError(f"{kind}: unknown keyword {key!r}; it takes {', '.join(known)}")
        name = given.get("name")
        if name is not None and not (isinstance(name, str) and name):
            raise ValueError(f"{kind}: field name={name!r} must be a name")
        self._set("_given", dict(given))
        self._set("name", name or kind.lower())
        owner = f"{kind} {self.name!r}"
        for key, (annotation, spec) in known.items():
            if key == "name":
                continue
            if key not in given and fields.is_required(spec):
                raise TypeError(f"{owner}: {key} must be given")
            if key not in given or (given[key] is None and spec.default is None):
                self._set(key, fields.default_of(spec))
            else:
                self._set(key, checked(owner, key, annotation, spec, given[key]))
        self._set("tops", self._default_tops() if self.tops is None else self.tops)
        if "param_key" in known and self.param_key is None:
            self._set("param_key", self.name)
        self.check_fields(owner)

    def check_fields(self, owner: str) -> None:
        """Checks that concern several fields at once; ValueError starting with `owner`."""

    @classmethod
    def _keywords(cls) -> dict[str, tuple[Any, Any]]:
        """(annotation, field) of every keyword that this class takes."""
        known: dict[str, tuple[Any, Any]] = {"name": (str, Field(None))}
        known |= {
            "bottoms": (None, Field((), None, fields.names)),
            "tops": (None, Field(None, None, fields.names)),
        }
        known |= cls._fields
        if cls.has_param:
            known["param_key"] = (str, Field(None))
            for p in cls.param_names:
                known |= {f"{p}_{key}": (None, spec) for key, spec in cls._param_fields(p).items()}
        if cls.has_neuron:
            from layerc.runtime.neurons import Identity, as_neuron

            known["neuron"] = (None, Field(Identity(), None, as_neuron))
        return known

    @classmethod
    def _keywords_of(cls, given: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """Those of a layer that is given these, where they depend on them."""
        return cls._keywords()

    @classmethod
    def _param_fields(cls, p: str) -> dict[str, Field]:
        start = cls.param_inits.get(p) or (Constant(0) if p == "bias" else Xavier())
        is_weight = p == "weight" and p not in cls.param_inits
        return {
            "init": Field(start, None, _initializer),
            "regu": Field(cls.param_regus.get(p) or (L2Regu(1) if is_weight else NoRegu()), _has("value", "gradient")),
            "cons": Field(NoCons(), _has("apply", "every_n_iter")),
            "lr": Field(1.0, lambda f: f >= 0, fields.number),
            "decay": Field(1.0, lambda f: f >= 0, fields.number),
        }

    def divide(self, state: LayerState, workers: Workers) -> None:
        """Train with these workers from now on; what is drawn is this worker's own."""
        state.workers = workers
        if workers.rank and state.rng is not None:
            state.rng = Stream(state.rng.seed, f"{state.rng.name}@{workers.rank}", state.rng.count)

    def states_of_examples(self, state: LayerState) -> frozenset[str]:
        """The states with an axis of examples, which is as long as the last batch was."""
        return frozenset() if self.has_common_states else frozenset(state.states)

    def _default_tops(self) -> tuple[str, ...]:
        one = self.top_count in (1, None) and not (self.is_sink or self.is_inplace)
        return (self.name,) if one and not (self.is_multi and len(self.bottoms) > 1) else ()

    def _set(self, key: str, value: Any) -> None:
        object.__setattr__(self, key, value)

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} {self.name!r} is immutable: {key} cannot be set")

    def __delattr__(self, key: str) -> None:
        raise AttributeError(f"{type(self).__name__} {self.name!r} is immutable: {key} cannot be deleted")

    def __deepcopy__(self, memo: Any) -> "Layer":
        return self  # nothing can change it

    @property
    def is_named(self) -> bool:
        """Whether the user gave the name."""
        return self._given.get("name") is not None

    @property
    def tops_given(self) -> bool:
        """Whether the user gave the tops."""
        return self._given.get("tops") is not None

    def bottom_kind(self, k: int) -> str | None:
        """ "float" or "int" if bottom k must be so, None if it may be both (or the layer does not say)."""
        return None

    def replace(self, **changes: Any) -> "Layer":
        """The same layer with other keywords."""
        return type(self)(**{**self._given, **changes})

    def check(self, *shapes: Any, observations: int = 3) -> "Report":
        """The validity suite, on this layer alone in a net: `print(Mine().check((4, 5)))`.

        shapes: of an example of each bottom; or an array, a batch of values, where random numbers would not do (labels
        are drawn from 0 and 1).
        """
        from layerc.runtime.check_in_net import check_layer

        return check_layer(self, shapes, observations)

    def parameter(self, p: str, shape: Sequence[int]) -> Parameter:
        """A `Parameter` made of this layer's `p_init`, `p_regu`, `p_cons`, `p_lr`, `p_decay`."""
        return Parameter(p, shape, *(getattr(self, f"{p}_{key}") for key in ("init", "regu", "cons", "lr", "decay")))

    def setup(self, backend: Any, inputs: list[Blob], diffs: list[Diff]) -> LayerState:
        raise NotImplementedError

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        raise NotImplementedError

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: list[Diff]) -> None:
        raise NotImplementedError

    def shutdown(self, backend: Any, state: LayerState) -> None:
        """Give back what `setup` took."""

    def dump_statistics(self, storage: Any, state: LayerState, show: bool) -> None:
        raise NotImplementedError

    def reset_statistics(self, state: LayerState) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, bottoms={list(self.bottoms)}, tops={list(self.tops)})"


class Builtin(Layer):
    """Base of the layers that come with layerc."""

    is_builtin = is_recordable = True
    integer_bottoms: ClassVar[tuple[int, ...]] = ()

    def bottom_kind(self, k: int) -> str | None:
        return "int" if k in self.integer_bottoms else "float"


def setup_layer(backend: Any, layer: Layer, inputs: list[Blob], diffs: list[Diff]) -> LayerState:
    """`layer.setup(backend, inputs, diffs)`."""
    return layer.setup(backend, inputs, diffs)


def require_float(inputs: Sequence[Blob]) -> None:
    """BadType unless these bottoms are floats of one type, with a batch axis."""
    for x in inputs:
        if x.dtype.kind != "f":
            raise BadType(f"it computes with floats, not {x.dtype}")
        if x.dtype != inputs[0].dtype:
            raise BadType(f"its bottoms must have one float type, not {inputs[0].dtype} and {x.dtype}")


def implements(layer: Layer, method: str) -> bool:
    """Whether the layer's class has a method of its own in place of `Layer`'s."""
    return getattr(type(layer), method) is not getattr(Layer, method)


def _initializer(value: Any) -> Any:
    """An initializer; a number or an array means these values."""
    if isinstance(value, type):
        raise TypeError(f"is a class; write {value.__name__}()")
    if hasattr(value, "draw"):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Constant(value)
    if isinstance(value, np.ndarray | list):
        return Array(value)
    raise TypeError("must be an initializer")


def _has(*methods: str) -> Any:
    return lambda value: not isinstance(value, type) and all(hasattr(value, m) for m in methods)


__all__ = ["REQUIRED", "Backend", "Blob", "Layer", "LayerState", "setup_layer"]
