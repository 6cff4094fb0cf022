"""The hidden layer that applies a layer's `neuron` to one of its tops."""

from typing import Any

from layerc.runtime.blob import Blob
from layerc.runtime.layer import BadType, Builtin, Layer, LayerState


class Activation(Builtin):
    """y = neuron(x), in place of `top`, made by `owner`."""

    can_do_bp = True
    is_inplace = True

    owner: Layer

    @property
    def is_per_example(self) -> bool:  # type: ignore[override]
        return bool(self.neuron.is_per_element)

    def __init__(self, owner: Layer, top: str) -> None:
        super().__init__(name=f"{owner.name}.neuron", bottoms=[top], tops=[top])
        self._set("owner", owner)
        self._set("neuron", owner.neuron)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        self._check(inputs[0])
        return LayerState(self, blobs=[Blob.empty(inputs[0].shape, inputs[0].dtype)])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._check(inputs[0])
        state.blobs[0].adopt(self.neuron.apply(inputs[0].data))

    def _check(self, x: Blob) -> None:
        if x.dtype.kind != "f":
            raise BadType(f"its neuron {self.neuron!r} computes with floats, not {x.dtype}")

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (dy,) = state.blobs_diff
        diffs[0].adopt(self.neuron.pull(inputs[0].data, state.blobs[0].data, dy.data))
