"""`GRU`, `LSTM`: recurrent layers over (N, T, D).

All of it is one compiled function (runtime/layers/recurrent.py), over arrays with the time first; what its gradient
needs of the forward is kept by its pullback.
"""

from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.arrays import contiguous
from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field, integer
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float
from layerc.runtime.parameters import Parameter

Arrays = dict[str, np.ndarray]


class Recurrent(Builtin):
    """Base: (N, T, D) -> (N, T, H), or (N, H) of the last step (`sequence=False`).

    More bottoms: what it carries at first, (N, H) each; else zeros, or if `stateful` what the batch before
    ended with (no gradient across; another N starts from zeros). The state changes in phase train only.
    """

    has_param = has_neuron = can_do_bp = True
    has_common_states = False
    top_count = 1
    param_names = ("weight", "bias")
    address: ClassVar[str]
    gates: ClassVar[int]
    carried: ClassVar[tuple[str, ...]]  # h first, as the function's outputs

    output_dim: int = field(check=lambda n: n > 0, convert=integer)
    sequence: bool = field(True, convert=boolean)
    stateful: bool = field(False, convert=boolean)

    def check_fields(self, owner: str) -> None:
        if len(self.bottoms) not in (0, 1, 1 + len(self.carried)):
            raise ValueError(f"{owner}: bottoms={list(self.bottoms)}: x alone, or x, {', '.join(self.carried)}")
        if self.stateful and len(self.bottoms) > 1:
            raise ValueError(f"{owner}: a stateful layer carries its own {', '.join(self.carried)}; give it x alone")

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        self._check(inputs)
        x, size = inputs[0], self.gates * self.output_dim
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (x.shape[2], size), "weight_hh": (self.output_dim, size)}
        shapes |= {"bias_ih": (size,), "bias_hh": (size,)}
        state = LayerState(self, blobs=[Blob.empty(self._top_shape(x.shape), x.dtype)])
        state.parameters = [self._parameter(name, shape) for name, shape in shapes.items()]
        if self.stateful:
            state.states = self._zeros(x)
        return state

    def _parameter(self, name: str, shape: tuple[int, ...]) -> Parameter:
        """`weight_*` holds for all matrices, `bias_*` for all biases."""
        kind = name.partition("_")[0]
        return Parameter(
            name, shape, *(getattr(self, f"{kind}_{key}") for key in ("init", "regu", "cons", "lr", "decay"))
        )

    def _top_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:2], self.output_dim) if self.sequence else (shape[0], self.output_dim)

    def _zeros(self, x: Blob) -> Arrays:
        return {name: x.zeros((x.shape[0], self.output_dim)) for name in self.carried}

    def _check(self, inputs: list[Blob]) -> None:
        require_float(inputs)
        if len(inputs[0].shape) != 3:
            raise BadInput("sequences are (N, T, D)")
        for name, first in zip(self.carried, inputs[1:]):
            if first.shape != (inputs[0].shape[0], self.output_dim):
                raise BadInput(f"the initial {name} is (N, {self.output_dim})")

    def reset_states(self, state: LayerState) -> None:
        state.states = {name: np.zeros_like(a) for name, a in state.states.items()}

    def _first(self, state: LayerState, inputs: list[Blob]) -> list[np.ndarray]:
        """What is carried into the first step."""
        if len(inputs) > 1:
            return [b.data for b in inputs[1:]]
        if self.stateful and len(state.states["h"]) == inputs[0].shape[0]:
            return list(state.states.values())
        return list(self._zeros(inputs[0]).values())

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._check(inputs)
        (x, *_), (y,) = inputs, state.blobs
        weight = state.parameters[0].data
        if x.shape[2] != len(weight):
            raise BadInput(f"weight_ih {weight.shape} takes {len(weight)} features")
        function = builtin.function(self.address)
        given = (x.data, *self._first(state, inputs), *(p.data for p in state.parameters))
        if state.phase == "train":
            found, state.pullback = function.vjp(*given)
        else:
            found, state.pullback = function(*given), None
        carried = found if isinstance(found, tuple) else (found,)
        if self.stateful and state.phase == "train":
            state.states = {name: c[-1].copy() for name, c in zip(self.carried, carried)}
        h = carried[0]
        y.adopt(contiguous(h[1:].swapaxes(0, 1)) if self.sequence else h[-1].copy())

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (x, *_), (dy,) = inputs, state.blobs_diff
        pullback = state.pullback
        if pullback is None:  # the gradient of an inference
            given = (x.data, *self._first(state, inputs), *(p.data for p in state.parameters))
            _, pullback = builtin.function(self.address).vjp(*given)
        shape = (x.shape[1] + 1, x.shape[0], self.output_dim)
        dh, *others = (x.zeros(shape) for _ in self.carried)
        if self.sequence:
            dh[1:] = dy.data.swapaxes(0, 1)
        else:
            dh[-1] = dy.data
        dx, *found = pullback(dh, *others)
        first, of_parameters = found[: len(self.carried)], found[len(self.carried) :]
        for diff, gradient in zip(diffs, [dx, *first]):
            if diff:
                diff.adopt(gradient)
        for p, gradient in zip(state.parameters, of_parameters):
            if not p.frozen:
                p.gradient[...] += gradient


class GRU(Recurrent):
    """Gated recurrent unit, gates r, z, n as `torch.nn.GRU`: n = tanh(x W_n + b_n + r (h U_n + c_n)), h = (1-z) n +
    z h (Cho et al. 2014). Optional second bottom: the initial h."""

    address = "recurrent.gru"
    bottom_counts = (1, 2)
    gates = 3
    carried = ("h",)


class LSTM(Recurrent):
    """Long short-term memory, gates i, f, g, o as `torch.nn.LSTM` (Hochreiter and Schmidhuber 1997). Optional bottoms:
    the initial h, c."""

    address = "recurrent.lstm"
    bottom_counts = (1, 3)
    gates = 4
    carried = ("h", "c")
