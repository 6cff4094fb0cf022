"""`Softmax`: exp(x) / sum exp(x) along one axis."""

import math
from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float


class Softmax(Builtin):
    """exp(x) / sum exp(x) along `axis`, stable for any scores."""

    has_neuron = can_do_bp = is_multi = True
    bottom_counts = (1, None)

    axis: int = field(1, convert=integer)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        for x in inputs:
            channel_axis(self.axis, x.shape)
        return LayerState(self, blobs=[Blob.empty(x.shape, x.dtype) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            rows = as_channels(x.data, self.axis)
            y.adopt(builtin.run("standard.softmax", {"x": rows})["y"].reshape(x.shape))

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        for x, y, dy, dx in zip(inputs, state.blobs, state.blobs_diff, diffs):
            if dx:
                arrays = {k: as_channels(a.data, self.axis) for k, a in (("x", x), ("y", y), ("dy", dy))}
                dx.adopt(builtin.pull("standard.softmax", arrays)["x"].reshape(x.shape))


def channel_axis(axis: int, shape: tuple[int, ...]) -> int:
    """The axis counted from 0, which must not be the batch's."""
    found = axis + len(shape) if axis < 0 else axis
    if not 0 < found < len(shape):
        raise BadInput(f"axis {axis} is none of the axes 1..{len(shape) - 1} of shape {shape}")
    return found


def as_channels(array: np.ndarray, axis: int) -> np.ndarray:
    """The array as (outer, C, inner), C along `axis`."""
    axis = channel_axis(axis, array.shape)
    shape = array.shape
    return array.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
