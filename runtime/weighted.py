"""Base of the layers that apply one compiled function of parameters to each of their bottoms."""

from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.axes import Shape
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float
from layerc.runtime.parameters import Parameter


class Weighted(Builtin):
    """top k = function(bottom k, parameters). Several bottoms share the parameters.

    A subclass says what parameters a bottom asks for, which function serves a bottom of a shape, and how that sees
    bottom (`argument`), top and parameters.
    """

    has_param = has_neuron = can_do_bp = is_multi = is_per_example = True
    bottom_counts: ClassVar[tuple[int, int | None]] = (1, None)
    argument: ClassVar[str] = "x"

    def make_parameters(self, shape: Shape) -> list[Parameter]:
        """For bottoms of that shape. BadInput for what cannot be taken."""
        raise NotImplementedError

    def top_shape(self, shape: Shape, state: LayerState) -> Shape:
        """BadInput if the parameters do not fit."""
        raise NotImplementedError

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        """Address and configuration for a bottom of that shape."""
        raise NotImplementedError

    def view(self, x: np.ndarray) -> np.ndarray:
        return x

    def view_top(self, y: np.ndarray, config: dict[str, Any]) -> np.ndarray:
        """The top, or its gradient, as the function of that configuration makes it."""
        return y

    def parameter_arrays(self, state: LayerState, dtype: np.dtype) -> dict[str, np.ndarray]:
        """The function's parameters; those that the layer does without included."""
        return {p.name: p.data for p in state.parameters}

    def check_bottoms(self, inputs: list[Blob]) -> None:
        require_float(inputs)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        self.check_bottoms(inputs)
        first, *others = (self.make_parameters(x.shape) for x in inputs)
        for x, other in zip(inputs[1:], others):
            if [p.shape for p in other] != [p.shape for p in first]:
                raise BadInput(f"its bottoms share parameters, but {inputs[0].shape} and {x.shape} need different ones")
        state = LayerState(self, parameters=first)
        state.blobs = [Blob.empty(self.top_shape(x.shape, state), self.top_dtype(x, backend)) for x in inputs]
        return state

    def top_dtype(self, x: Blob, backend: Any) -> np.dtype:
        return x.dtype

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        for x, y in zip(inputs, state.blobs):
            shape = self.top_shape(x.shape, state)
            address, config = self.function(x.shape)
            arrays = self._arrays(state, x, y.dtype)
            y.resize(shape)
            made = self.view_top(y.data, config)
            if np.shares_memory(made, y.data):
                builtin.run(address, arrays, out={"y": made}, **config)
            else:
                y.adopt(builtin.run(address, arrays, **config)["y"].reshape(shape))

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        learning = [p for p in state.learned if not p.frozen]
        for x, y, dy, dx in zip(inputs, state.blobs, state.blobs_diff, diffs):
            address, config = self.function(x.shape)
            tops = {"y": self.view_top(y.data, config), "dy": self.view_top(dy.data, config)}
            arrays = {**self._arrays(state, x, y.dtype), **tops}
            want = "params" if isinstance(dx, NullBlob) else "all" if learning else "inputs"
            found = builtin.pull(address, arrays, want, **config)
            if isinstance(dx, Blob):
                dx.adopt(found[self.argument].reshape(x.shape))
            for p in learning:
                p.gradient[...] += self.gradient(p, found)

    def gradient(self, p: Parameter, found: dict[str, np.ndarray]) -> np.ndarray:
        """That of a parameter, in its shape."""
        return found[p.name].reshape(p.shape)

    def _arrays(self, state: LayerState, x: Blob, dtype: np.dtype) -> dict[str, np.ndarray]:
        parameters = self.parameter_arrays(state, dtype)
        for p in state.learned:
            if dtype != p.data.dtype:
                self.check_bottoms([x])
                raise BadInput(f"{p.name} is {p.data.dtype}, the bottom {x.dtype}")
        return {self.argument: self.view(x.data), **parameters}
