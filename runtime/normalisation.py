"""`BatchNorm`, `LayerNorm`."""

import math
from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.axes import Shape, as_channels, channel_axis
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.initializers import Constant
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float
from layerc.runtime.parameters import Parameter
from layerc.runtime.weighted import Weighted

_NEUTRAL = {"weight": Constant(1), "bias": Constant(0)}


class BatchNorm(Builtin):
    """(x - mean) / sqrt(var + eps) * weight + bias over all axes but 1, as `torch.nn.BatchNorm` (Ioffe and Szegedy
    2015).

    In phase train mean and (biased) variance are the batch's, and the states become (1 - momentum) state + momentum
    batch, with the unbiased variance; in phase predict they are the states. One number per channel cannot be
    trained on: ValueError.
    """

    has_param = has_neuron = can_do_bp = is_per_example = True
    bottom_counts = (1, 1)
    top_count = 1
    param_names = ("weight", "bias")
    param_inits = _NEUTRAL

    momentum: float = field(0.1, check=lambda m: 0 <= m <= 1)
    eps: float = field(1e-5, check=lambda e: e > 0 and math.isfinite(e))

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        (x,) = inputs
        channels = x.shape[channel_axis(1, x.shape)]
        state = LayerState(self, blobs=[Blob.empty(x.shape, x.dtype)], arrays={})
        state.parameters = [self.parameter(p, (channels,)) for p in self.param_names]
        state.states = {"mean": np.zeros(channels, x.dtype), "var": np.ones(channels, x.dtype)}
        return state

    def reset_states(self, state: LayerState) -> None:
        state.states = {name: np.full_like(a, name == "var") for name, a in state.states.items()}

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        (x,), (y,) = inputs, state.blobs
        require_float(inputs)
        if x.shape[1:2] != state.parameters[0].shape:
            raise BadInput(f"weight {state.parameters[0].shape} takes {state.parameters[0].shape[0]} channels")
        rows = as_channels(x.data, 1)
        state.arrays = {"x": rows, **{p.name: p.data for p in state.parameters}, **state.states}
        state.trains = state.phase == "train" and rows.size > 0
        if not state.trains:
            made = builtin.run("normalisation.batch_norm_inference", state.arrays, eps=self.eps)
        elif rows.shape[0] * rows.shape[2] == 1:
            raise BadInput("the variance of one number per channel is not known: train on more")
        else:
            made = self._trained.run("forward", state.arrays, self._config)
            names = {o.get("of") or o["name"]: o["name"] for o in self._made if o["role"] == "state"}
            state.states = {name: made[names[name]] for name in state.states}
        state.arrays["y"] = made["y"]
        y.adopt(made["y"].reshape(x.shape))

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (x,), (dy,), (dx,) = inputs, state.blobs_diff, diffs
        learning = [p for p in state.parameters if not p.frozen]
        want = "params" if not dx else "all" if learning else "inputs"
        arrays = {**state.arrays, "dy": as_channels(dy.data, 1)}
        if state.trains:
            found = self._trained.pull(arrays, self._config, want)
        else:
            found = builtin.pull("normalisation.batch_norm_inference", arrays, want, eps=self.eps)
        if dx:
            dx.adopt(found["x"].reshape(x.shape))
        for p in learning:
            p.gradient[...] += found[p.name]

    @property
    def _trained(self) -> Any:
        return builtin.function("normalisation.BatchNorm").compiled

    @property
    def _made(self) -> Any:
        return self._trained.manifest["methods"]["forward"]["outputs"]

    @property
    def _config(self) -> dict[str, Any]:
        return {"momentum": self.momentum, "eps": self.eps}


class LayerNorm(Weighted):
    """(x - mean) / sqrt(var + eps) * weight + bias over the axes `axis`..last, biased variance (Ba et al. 2016)."""

    param_names = ("weight", "bias")
    param_inits = _NEUTRAL
    is_multi = False
    bottom_counts = (1, 1)
    top_count = 1

    axis: int = field(-1, convert=integer)
    eps: float = field(1e-5, check=lambda e: e > 0 and math.isfinite(e))

    def _features(self, shape: Shape) -> Shape:
        return shape[channel_axis(self.axis, shape) :]

    def make_parameters(self, shape: Shape) -> list[Parameter]:
        return [self.parameter(p, self._features(shape)) for p in self.param_names]

    def top_shape(self, shape: Shape, state: LayerState) -> Shape:
        if self._features(shape) != state.parameters[0].shape:
            raise BadInput(f"weight {state.parameters[0].shape} does not fit {self._features(shape)}")
        return shape

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        return "normalisation.layer_norm", {"eps": self.eps}

    def view(self, x: np.ndarray) -> np.ndarray:
        size = math.prod(self._features(x.shape))
        return x.reshape(math.prod(x.shape[: channel_axis(self.axis, x.shape)]), size)

    def view_top(self, y: np.ndarray, config: dict[str, Any]) -> np.ndarray:
        return self.view(y)

    def parameter_arrays(self, state: LayerState, dtype: np.dtype) -> dict[str, np.ndarray]:
        return {p.name: p.data.reshape(-1) for p in state.parameters}
