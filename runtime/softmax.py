"""Layers along one axis: `Softmax`, `Argmax`, `Index2Onehot`."""

from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.axes import as_rows, channel_axis, from_rows
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.labels import check_range
from layerc.runtime.layer import BadInput, BadType, Builtin, LayerState, require_float
from layerc.runtime.mapped import Mapped, Shape


class Softmax(Mapped):
    """exp(x) / sum exp(x) along `axis`, stable for any scores."""

    address = "standard.softmax"

    axis: int = field(1, convert=integer)

    def top_shape(self, shape: Shape) -> Shape:
        channel_axis(self.axis, shape)
        return shape

    def view(self, array: np.ndarray) -> np.ndarray:
        return as_rows(array, self.axis)

    def unview(self, array: np.ndarray, shape: Shape) -> np.ndarray:
        return from_rows(array, self.axis, shape)


class Argmax(Builtin):
    """The index of the largest along `axis`, the first of equal ones: int64, the axis removed. No bp."""

    is_multi = True
    bottom_counts = (1, None)

    axis: int = field(1, convert=integer)

    def _top_shape(self, shape: Shape) -> Shape:
        axis = channel_axis(self.axis, shape)
        if not shape[axis]:
            raise BadInput(f"there is no largest of no elements along axis {axis}")
        return (*shape[:axis], *shape[axis + 1 :])

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(self._top_shape(x.shape), np.int64) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            shape = self._top_shape(x.shape)
            found = builtin.run("standard.largest", {"x": as_rows(x.data, self.axis)})["y"]
            y.adopt(found.reshape(shape))


class Index2Onehot(Builtin):
    """Integers (N, *S) to floats: 1 at the index, else 0, along a new axis of `n_class`. No bp; an index outside
    0..n_class-1 is an IndexError."""

    has_neuron = is_multi = True
    bottom_counts = (1, None)

    n_class: int = field(check=lambda n: n > 0, convert=integer)
    axis: int = field(1, convert=integer)

    def bottom_kind(self, k: int) -> str | None:
        return "int"

    def _top_shape(self, shape: Shape) -> Shape:
        axis = self.axis + len(shape) + 1 if self.axis < 0 else self.axis
        if not 0 < axis <= len(shape):
            raise BadInput(f"axis {self.axis} is none of the axes 1..{len(shape)} of its top")
        return (*shape[:axis], self.n_class, *shape[axis:])

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        dtype = getattr(backend, "dtype", np.dtype(np.float32))
        for x in inputs:
            if x.dtype.kind not in "iu":
                raise BadType(f"indices must be integers, not {x.dtype}")
        return LayerState(self, blobs=[Blob.empty(self._top_shape(x.shape), dtype) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            shape = self._top_shape(x.shape)
            check_range(x.data, self.n_class, "index")
            index = x.data.astype(np.int64).reshape(-1)
            rows = builtin.run("standard.one_hot", {"index": index}, n_class=self.n_class)["y"]
            y.adopt(from_rows(rows, self.axis, shape).astype(y.dtype))
