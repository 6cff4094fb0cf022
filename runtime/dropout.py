"""`Dropout`: in training, elements are zeroed at random."""

from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field
from layerc.runtime.layer import Builtin, LayerState, require_float


class Dropout(Builtin):
    """In phase train each element is 0 with probability `ratio`, the others times 1/(1-ratio) (unless
    `auto_scale=False`); else the identity. Without tops it works in place."""

    has_neuron = can_do_bp = is_inplace = True
    bottom_counts = (1, 1)
    top_count = 1

    ratio: float = field(0.5, check=lambda r: 0 <= r < 1)
    auto_scale: bool = field(True, convert=boolean)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(inputs[0].shape, inputs[0].dtype)], mask=None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        (x,), (y,) = inputs, state.blobs
        if state.phase != "train" or self.ratio == 0:
            state.mask = None
            y.data = x.data
            return
        kept = state.rng.next().random(x.shape, dtype=np.float32) >= self.ratio
        scale = 1 / (1 - self.ratio) if self.auto_scale else 1
        state.mask = kept * x.dtype.type(scale)
        y.adopt(builtin.run("standard.masked", {"x": x.data, "mask": state.mask})["y"])

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (dy,), (dx,) = state.blobs_diff, diffs
        if state.mask is None:
            dx.data = dy.data
        else:  # the gradient is masked as the value was
            dx.adopt(builtin.run("standard.masked", {"x": dy.data, "mask": state.mask})["y"])
