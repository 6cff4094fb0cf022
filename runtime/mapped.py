"""Base of the layers that apply one compiled function to each of their bottoms."""

from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.layer import Builtin, LayerState, require_float

Shape = tuple[int, ...]


class Mapped(Builtin):
    """top k = function(bottom k), the same for all.

    `address`: the compiled function, of an argument `x` with the gradient of that name. It sees the arrays as
    `view` gives them; `unview` is the reverse. `top_shape` raises BadInput for what cannot be taken.
    """

    has_neuron = can_do_bp = is_multi = is_per_example = True
    bottom_counts = (1, None)
    address: ClassVar[str]

    def top_shape(self, shape: Shape) -> Shape:
        return shape

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        """The function's address and configuration for a bottom of that shape."""
        return self.address, {}

    def view(self, array: np.ndarray) -> np.ndarray:
        return array

    def unview(self, array: np.ndarray, shape: Shape) -> np.ndarray:
        return array.reshape(shape)

    def more(self, state: LayerState, x: Blob) -> dict[str, np.ndarray]:
        """Other arrays that the function takes, for one forward."""
        return {}

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(self.top_shape(x.shape), x.dtype) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        state.arrays = []
        for x, y in zip(inputs, state.blobs):
            shape = self.top_shape(x.shape)
            address, config = self.function(x.shape)
            arrays = {"x": self.view(x.data), **self.more(state, x)}
            y.adopt(self.unview(builtin.run(address, arrays, **config)["y"], shape))
            state.arrays.append(arrays)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        for arrays, x, y, dy, dx in zip(state.arrays, inputs, state.blobs, state.blobs_diff, diffs):
            if dx:
                address, config = self.function(x.shape)
                given = {**arrays, "y": self.view(y.data), "dy": self.view(dy.data)}
                dx.adopt(self.unview(builtin.pull(address, given, **config)["x"], x.shape))
