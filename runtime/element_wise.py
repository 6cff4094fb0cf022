"""`ElementWise`: sums, differences, products and quotients of blobs of one shape."""

from typing import Any

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, one_of
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float


class ElementWise(Builtin):
    """a + b, a - b, a * b or a / b; add and multiply take more bottoms too."""

    has_neuron = can_do_bp = is_per_example = True
    bottom_counts = (2, None)
    top_count = 1

    operation: str = field(convert=one_of("add", "subtract", "multiply", "divide"))

    def check_fields(self, owner: str) -> None:
        if self.operation in ("subtract", "divide"):
            self._set("bottom_counts", (2, 2))

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        self._check_shapes(inputs)
        return LayerState(self, blobs=[Blob.empty(inputs[0].shape, inputs[0].dtype)])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._check_shapes(inputs)
        partial = [inputs[0].data]  # partial[k]: the first k + 1 bottoms combined
        for x in inputs[1:]:
            partial.append(builtin.run(self._address, {"a": partial[-1], "b": x.data})["y"])
        state.partial = partial
        state.blobs[0].adopt(partial[-1])

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        dy = state.blobs_diff[0].data
        for k in range(len(inputs) - 1, 0, -1):
            arrays = {"a": state.partial[k - 1], "b": inputs[k].data, "y": state.partial[k], "dy": dy}
            found = builtin.pull(self._address, arrays)
            if diffs[k]:
                diffs[k].adopt(found["b"])
            dy = found["a"]
        if diffs[0]:
            diffs[0].adopt(dy)

    @staticmethod
    def _check_shapes(inputs: list[Blob]) -> None:
        if any(x.shape != inputs[0].shape for x in inputs):
            raise BadInput("the shapes must be the same")

    @property
    def _address(self) -> str:
        return f"standard.{self.operation}"
