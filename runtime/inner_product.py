"""`InnerProduct`: y = x.reshape(N, -1) @ weight + bias; `TiedInnerProduct`: the same with another layer's weight."""

import math
from typing import Any

import numpy as np

from layerc.runtime.arrays import contiguous
from layerc.runtime.axes import Shape
from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field, integer
from layerc.runtime.layer import BadInput, LayerState
from layerc.runtime.parameters import Parameter
from layerc.runtime.weighted import Weighted


class InnerProduct(Weighted):
    """y (N, output_dim) = x.reshape(N, -1) @ weight (in, output_dim) + bias. Several bottoms, the same
    weight."""

    param_names = ("weight", "bias")

    output_dim: int = field(check=lambda n: n > 0, convert=integer)
    bias: bool = field(True, convert=boolean)

    def make_parameters(self, shape: Shape) -> list[Parameter]:
        parameters = [self.parameter("weight", (math.prod(shape[1:]), self.output_dim))]
        return [*parameters, self.parameter("bias", (self.output_dim,))] if self.bias else parameters

    def top_shape(self, shape: Shape, state: LayerState) -> Shape:
        check_features(shape, state.parameters[0].shape)
        return (shape[0], self.output_dim)

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        return "standard.inner_product", {}

    def view(self, x: np.ndarray) -> np.ndarray:
        return rows_of(x)

    def parameter_arrays(self, state: LayerState, dtype: np.dtype) -> dict[str, np.ndarray]:
        return {"bias": np.zeros(self.output_dim, dtype), **super().parameter_arrays(state, dtype)}


class TiedInnerProduct(Weighted):
    """y (N, in) = x @ weight.T + bias, with the `weight` (in, out) of the layer of that name or `param_key`.
    Its gradient is the sum of both layers'."""

    param_names = ("bias",)
    borrows = "tied_param_key"

    tied_param_key: str = field()
    bias: bool = field(True, convert=boolean)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        self.check_bottoms(inputs)
        weight = backend.borrow("weight")
        if len(weight.shape) != 2:
            raise BadInput(f"the weight of {self.tied_param_key!r} is {weight.shape}, not a matrix")
        state = LayerState(self, borrowed=[weight])
        state.parameters = [self.parameter("bias", weight.shape[:1])] if self.bias else []
        state.blobs = [Blob.empty(self.top_shape(x.shape, state), x.dtype) for x in inputs]
        return state

    def top_shape(self, shape: Shape, state: LayerState) -> Shape:
        size, out = state.borrowed[0].shape
        check_features(shape, (out, size))
        return (shape[0], size)

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        return "standard.inner_product", {}

    def view(self, x: np.ndarray) -> np.ndarray:
        return rows_of(x)

    def parameter_arrays(self, state: LayerState, dtype: np.dtype) -> dict[str, np.ndarray]:
        weight = contiguous(state.borrowed[0].data.T)
        bias = state.parameters[0].data if self.bias else np.zeros(weight.shape[1], dtype)
        return {"weight": weight, "bias": bias}

    def gradient(self, p: Parameter, found: dict[str, np.ndarray]) -> np.ndarray:
        return found["weight"].T if p.name == "weight" else found["bias"]


def rows_of(x: np.ndarray) -> np.ndarray:
    """(N, ...) as a matrix of N rows."""
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


def check_features(shape: Shape, weight: Shape) -> None:
    size = math.prod(shape[1:])
    if size != weight[0]:
        raise BadInput(f"weight {weight} takes {weight[0]} numbers per example, got {size}")
