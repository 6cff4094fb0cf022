"""Layers that move values and compute nothing: `Reshape`, `Concat`, `Split`. Copies are NumPy's."""

import math
from typing import Any

import numpy as np

from layerc.runtime.axes import Shape, channel_axis
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.layer import BadInput, BadType, Builtin, LayerState


def _shape(value: Any) -> Shape:
    shape = (integer(value),) if isinstance(value, int | np.integer) else tuple(integer(n) for n in value)
    if shape.count(-1) > 1 or any(n < -1 for n in shape):
        raise ValueError("must be sizes of 0 or more, at most one of them -1")
    return shape


class Reshape(Builtin):
    """The same values in shape (N, *shape); one -1 stands for what is left."""

    has_neuron = can_do_bp = is_multi = is_per_example = True
    bottom_counts = (1, None)

    shape: Any = field(convert=_shape)

    def bottom_kind(self, k: int) -> str | None:
        return None

    def _top_shape(self, shape: Shape) -> Shape:
        have, known = math.prod(shape[1:]), math.prod(n for n in self.shape if n != -1)
        if -1 in self.shape and (not known or have % known):
            raise BadInput(f"{have} numbers per example do not fit shape {self.shape}")
        top = tuple(have // known if n == -1 else n for n in self.shape)
        if math.prod(top) != have:
            raise BadInput(f"{have} numbers per example do not fit shape {self.shape}")
        return (shape[0], *top)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        return LayerState(self, blobs=[Blob.empty(self._top_shape(x.shape), x.dtype) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            y.copy_in(x.data.reshape(self._top_shape(x.shape)))

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        for dx, dy, x in zip(diffs, state.blobs_diff, inputs):
            if dx:
                dx.data = dy.data.reshape(x.shape)


class Concat(Builtin):
    """Several bottoms along `axis`; the other axes must agree."""

    has_neuron = can_do_bp = is_per_example = True
    bottom_counts = (1, None)
    top_count = 1

    axis: int = field(1, convert=integer)

    def bottom_kind(self, k: int) -> str | None:
        return None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        return LayerState(self, blobs=[Blob.empty(self._top_shape(inputs), inputs[0].dtype)])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._top_shape(inputs)
        state.blobs[0].adopt(np.concatenate([x.data for x in inputs], axis=self.axis))

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        ends = np.cumsum([x.shape[self.axis] for x in inputs])[:-1]
        for dx, part in zip(diffs, np.split(state.blobs_diff[0].data, ends, axis=self.axis)):
            if dx:
                dx.data = part

    def _top_shape(self, inputs: list[Blob]) -> Shape:
        shape = inputs[0].shape
        axis = channel_axis(self.axis, shape)
        for x in inputs:
            if x.dtype != inputs[0].dtype:
                raise BadType(f"its bottoms must have one type, not {inputs[0].dtype} and {x.dtype}")
            if (*x.shape[:axis], *x.shape[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]):
                raise BadInput(f"all shapes must agree but along axis {axis}")
        return (*shape[:axis], sum(x.shape[axis] for x in inputs), *shape[axis + 1 :])


class Split(Builtin):
    """One bottom to several tops; their gradients are summed."""

    has_neuron = can_do_bp = is_per_example = True
    bottom_counts = (1, 1)

    def bottom_kind(self, k: int) -> str | None:
        return None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        return LayerState(self, blobs=[Blob.empty(inputs[0].shape, inputs[0].dtype) for _ in self.tops])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for y in state.blobs:
            y.copy_in(inputs[0].data)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        given = [dy.data for dy in state.blobs_diff if dy]
        if not diffs[0]:
            return
        diffs[0].data = given[0]
        for dy in given[1:]:
            diffs[0].data += dy
