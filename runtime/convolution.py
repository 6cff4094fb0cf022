"""`Convolution` over images."""

from typing import Any

import numpy as np

from layerc.runtime.axes import Shape
from layerc.runtime.fields import boolean, field, integer
from layerc.runtime.layer import BadInput, LayerState
from layerc.runtime.parameters import Parameter
from layerc.runtime.pooling import check_image, pair
from layerc.runtime.weighted import Weighted

CACHED = 1 << 16  # numbers that patches may have, to stay in the cache of a core
WORTH = 1 << 19  # multiplications that are worth a thread


class Convolution(Weighted):
    """`n_filter` filters over images (N, C, H, W), as `torch.nn.Conv2d`: sizes are integers or (h, w).

    weight (n_filter, C/n_group, kh, kw), bias (n_filter,).
    """

    param_names = ("weight", "bias")

    n_filter: int = field(check=lambda n: n > 0, convert=integer)
    kernel: Any = field((1, 1), convert=pair(1))
    stride: Any = field((1, 1), convert=pair(1))
    pad: Any = field((0, 0), convert=pair(0))
    n_group: int = field(1, check=lambda n: n > 0, convert=integer)
    dilation: Any = field((1, 1), convert=pair(1))
    bias: bool = field(True, convert=boolean)

    def check_fields(self, owner: str) -> None:
        if self.n_filter % self.n_group:
            raise ValueError(f"{owner}: field n_filter={self.n_filter} is no multiple of n_group={self.n_group}")

    def make_parameters(self, shape: Shape) -> list[Parameter]:
        check_image(shape)
        if shape[1] % self.n_group:
            raise BadInput(f"{shape[1]} channels are no multiple of n_group={self.n_group}")
        weight = self.parameter("weight", (self.n_filter, shape[1] // self.n_group, *self.kernel))
        return [weight, self.parameter("bias", (self.n_filter,))] if self.bias else [weight]

    def top_shape(self, shape: Shape, state: LayerState) -> Shape:
        check_image(shape)
        depth = state.parameters[0].shape[1] * self.n_group
        if shape[1] != depth:
            raise BadInput(f"weight {state.parameters[0].shape} takes {depth} channels, got {shape[1]}")
        return (shape[0], self.n_filter, *self._size(shape))

    def _size(self, shape: Shape) -> tuple[int, int]:
        sizes = []
        for n, kernel, stride, pad, dilation in zip(shape[2:], self.kernel, self.stride, self.pad, self.dilation):
            room = n + 2 * pad - dilation * (kernel - 1) - 1
            if room < 0:
                raise BadInput(f"size {n} with padding {pad} is smaller than the kernel {kernel} (dilation {dilation})")
            sizes.append(room // stride + 1)
        return sizes[0], sizes[1]

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        (rows, columns), depth = self._size(shape), shape[1] // self.n_group * self.kernel[0] * self.kernel[1]
        strips = _strips(rows, columns, depth, self.n_filter // self.n_group)
        config = {"strips": strips, "rows": rows // strips, "columns": columns}
        for key in ("kernel", "stride", "pad", "dilation"):
            config |= {f"{key}_h": getattr(self, key)[0], f"{key}_w": getattr(self, key)[1]}
        return "convolution.convolution", config

    def view(self, x: np.ndarray) -> np.ndarray:
        n, depth, height, width = x.shape
        return x.reshape(n, self.n_group, depth // self.n_group, height, width)

    def view_top(self, y: np.ndarray, config: dict[str, Any]) -> np.ndarray:
        n, _, rows, columns = y.shape
        strips = config["strips"]
        return y.reshape(n, self.n_group, self.n_filter // self.n_group, strips, rows // strips * columns)

    def parameter_arrays(self, state: LayerState, dtype: np.dtype) -> dict[str, np.ndarray]:
        weight = state.parameters[0].data
        filters = self.n_filter // self.n_group
        bias = state.parameters[1].data if self.bias else np.zeros(self.n_filter, dtype)
        size = weight.shape[1] * weight.shape[2] * weight.shape[3]
        return {
            "weight": weight.reshape(self.n_group, filters, size),
            "bias": bias.reshape(self.n_group, filters),
        }


def _strips(rows: int, columns: int, depth: int, filters: int) -> int:
    """Into how many equal strips of rows the top is cut: enough that the patches under one stay in cache and eight
    threads may share a large image, but none so narrow that its product would not fill vectors."""
    shared = min(8, rows * columns * depth * filters // WORTH)
    found = 1
    for strips in range(2, rows + 1):
        size = rows // strips * columns
        if rows % strips == 0 and size >= 32 and (found < shared or rows // found * columns * depth > CACHED):
            found = strips
    return found
