"""`InnerProduct`: y = x.reshape(N, -1) @ weight + bias."""

import math
from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.fields import boolean, field, integer
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float


class InnerProduct(Builtin):
    """y (N, output_dim) = x.reshape(N, -1) @ weight (in, output_dim) + bias. Several bottoms, the same
    weight."""

    has_param = has_neuron = can_do_bp = is_multi = True
    bottom_counts = (1, None)
    param_names = ("weight", "bias")

    output_dim: int = field(check=lambda n: n > 0, convert=integer)
    bias: bool = field(True, convert=boolean)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        sizes = {math.prod(x.shape[1:]) for x in inputs}
        if len(sizes) != 1:
            raise BadInput(f"its bottoms have {sorted(sizes)} numbers per example, but share one weight")
        parameters = [self.parameter("weight", (sizes.pop(), self.output_dim))]
        if self.bias:
            parameters.append(self.parameter("bias", (self.output_dim,)))
        blobs = [Blob.empty((x.shape[0], self.output_dim), x.dtype) for x in inputs]
        return LayerState(self, blobs=blobs, parameters=parameters)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            y.resize((x.shape[0], self.output_dim))
            builtin.run("standard.inner_product", self._arrays(state, x), out={"y": y.data})

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        learning = [p for p in state.parameters if not p.frozen]
        for x, y, dy, dx in zip(inputs, state.blobs, state.blobs_diff, diffs):
            arrays = {**self._arrays(state, x), "y": y.data, "dy": dy.data}
            want = "params" if isinstance(dx, NullBlob) else "all" if learning else "inputs"
            found = builtin.pull("standard.inner_product", arrays, want)
            if isinstance(dx, Blob):
                dx.adopt(found["x"].reshape(x.shape))
            for p in learning:
                p.gradient[...] += found[p.name]

    def _arrays(self, state: LayerState, x: Blob) -> dict[str, np.ndarray]:
        weight = state.parameters[0].data
        size = math.prod(x.shape[1:])
        if size != weight.shape[0]:
            raise BadInput(f"weight {weight.shape} takes {weight.shape[0]} numbers per example, got {size}")
        if x.dtype != weight.dtype:
            require_float([x])
            raise BadInput(f"weight is {weight.dtype}, the bottom {x.dtype}")
        arrays = {"x": x.data.reshape(x.shape[0], size), "weight": weight}
        bias = state.parameters[1].data if self.bias else np.zeros(self.output_dim, x.dtype)
        return {**arrays, "bias": bias}
