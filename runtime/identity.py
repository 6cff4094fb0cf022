"""`Identity`: a copy; with a neuron, an activation layer."""

from typing import Any

from layerc.runtime import neurons
from layerc.runtime.blob import Blob
from layerc.runtime.layer import Builtin, LayerState, require_float


class Identity(Builtin):
    """y = x. `Identity(neuron=Neurons.ReLU())` is an activation layer."""

    has_neuron = can_do_bp = is_multi = is_per_example = True
    bottom_counts = (1, None)

    def bottom_kind(self, k: int) -> str | None:
        return "float" if self._is_activation else None

    @property
    def _is_activation(self) -> bool:
        return not isinstance(self.neuron, neurons.Identity)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        if self._is_activation:
            require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(x.shape, x.dtype) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            y.copy_in(x.data)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        for dx, dy in zip(diffs, state.blobs_diff):
            if dx:
                dx.data = dy.data
