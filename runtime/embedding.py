"""`Embedding`: rows of a table by their index."""

from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.initializers import Gaussian
from layerc.runtime.labels import check_range
from layerc.runtime.layer import BadType, Builtin, LayerState
from layerc.runtime.regularizers import L2Regu


class Embedding(Builtin):
    """y (N, *S, output_dim) = weight[index] for integers (N, *S); an index outside 0..input_dim-1 is an
    IndexError."""

    has_param = has_neuron = can_do_bp = True
    bottom_counts = (1, 1)
    top_count = 1
    param_names = ("weight",)
    param_inits = {"weight": Gaussian(0, 1)}  # noqa: RUF012
    param_regus = {"weight": L2Regu(1)}  # noqa: RUF012

    input_dim: int = field(check=lambda n: n > 0, convert=integer)
    output_dim: int = field(check=lambda n: n > 0, convert=integer)

    def bottom_kind(self, k: int) -> str | None:
        return "int"

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        (index,) = inputs
        if index.dtype.kind not in "iu":
            raise BadType(f"indices must be integers, not {index.dtype}")
        weight = self.parameter("weight", (self.input_dim, self.output_dim))
        dtype = getattr(backend, "dtype", np.dtype(np.float32))
        return LayerState(self, blobs=[Blob.empty((*index.shape, self.output_dim), dtype)], parameters=[weight])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        (index,), (y,) = inputs, state.blobs
        check_range(index.data, self.input_dim, "index")
        state.arrays = {"index": index.data.astype(np.int64).reshape(-1), "weight": state.parameters[0].data}
        y.adopt(builtin.run("embedding.embedding", state.arrays)["y"].reshape(*index.shape, self.output_dim))

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (weight,), (y,), (dy,) = state.parameters, state.blobs, state.blobs_diff
        if weight.frozen:
            return
        rows = {name: b.data.reshape(-1, self.output_dim) for name, b in (("y", y), ("dy", dy))}
        weight.gradient[...] += builtin.pull("embedding.embedding", {**state.arrays, **rows})["weight"]
