"""`GRU`, `LSTM`: recurrent layers over (N, T, D).

The step is a compiled function (runtime/layers/recurrent.py), and so are the products; the loop over time is here,
over arrays with the time first.
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
_DENSE = "standard.inner_product"


class Recurrent(Builtin):
    """Base: (N, T, D) -> (N, T, H), or (N, H) of the last step (`sequence=False`).

    More bottoms: what it carries at first, (N, H) each; else zeros, or if `stateful` what the batch before
    ended with (no gradient across; another N starts from zeros). The state changes in phase train only.
    """

    has_param = has_neuron = can_do_bp = True
    top_count = 1
    param_names = ("weight", "bias")
    address: ClassVar[str]
    gates: ClassVar[int]
    carried: ClassVar[tuple[str, ...]]  # h first

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

    def _first(self, state: LayerState, inputs: list[Blob]) -> Arrays:
        """What is carried into the first step."""
        x = inputs[0]
        if len(inputs) > 1:
            return {name: b.data for name, b in zip(self.carried, inputs[1:])}
        if self.stateful and len(state.states["h"]) == x.shape[0]:
            return state.states
        return self._zeros(x)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._check(inputs)
        (x, *_), (y,) = inputs, state.blobs
        parameters = {p.name: p.data for p in state.parameters}
        if x.shape[2] != len(parameters["weight_ih"]):
            raise BadInput(f"weight_ih {parameters['weight_ih'].shape} takes {len(parameters['weight_ih'])} features")
        n, steps, features = x.shape
        size = self.gates * self.output_dim
        flat = contiguous(x.data.swapaxes(0, 1)).reshape(steps * n, features)
        a = builtin.run(_DENSE, _dense(flat, parameters, "ih"))["y"].reshape(steps, n, size)
        b = np.empty_like(a)
        carried = {name: x.fresh((steps + 1, n, self.output_dim)).data for name in self.carried}
        for name, first in self._first(state, inputs).items():
            carried[name][0] = first
        for t in range(steps):
            builtin.run(_DENSE, _dense(carried["h"][t], parameters, "hh"), out={"y": b[t]})
            step = {"a": a[t], "b": b[t], self.carried[-1]: carried[self.carried[-1]][t]}
            builtin.run(self.address, step, out=self._outputs({k: c[t + 1] for k, c in carried.items()}))
        state.run = (flat, a, b, carried)
        if self.stateful and state.phase == "train":
            state.states = {name: c[-1].copy() for name, c in carried.items()}
        h = carried["h"]
        y.adopt(contiguous(h[1:].swapaxes(0, 1)) if self.sequence else h[-1].copy())

    def _outputs(self, arrays: Arrays, prefix: str = "") -> Arrays:
        """What is carried, as the step's function names it: y, or y1, y2."""
        if len(self.carried) == 1:
            return {f"{prefix}y": arrays["h"]}
        return {f"{prefix}y{k}": arrays[name] for k, name in enumerate(self.carried, 1)}

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (x, *_), (dy,) = inputs, state.blobs_diff
        flat, a, b, carried = state.run
        parameters = {p.name: p.data for p in state.parameters}
        n, steps = x.shape[:2]
        da, db = np.empty_like(a), np.empty_like(b)
        last = self.carried[-1]
        back = self._zeros(x)  # the gradients of what is carried
        for t in reversed(range(steps)):
            if self.sequence:
                back["h"] = back["h"] + dy.data[:, t]
            elif t == steps - 1:
                back["h"] = back["h"] + dy.data
            step = {
                "a": a[t],
                "b": b[t],
                last: carried[last][t],
                **self._outputs({k: c[t + 1] for k, c in carried.items()}),
            }
            found = builtin.pull(self.address, {**step, **self._outputs(back, "d")})
            da[t], db[t] = found["a"], found["b"]
            through = {**_dense(carried["h"][t], parameters, "hh"), "y": b[t], "dy": db[t]}
            dh = builtin.pull(_DENSE, through, "inputs")["x"]
            back = {last: found[last], "h": dh + found["h"] if last == "h" else dh}
        if not steps and not self.sequence:
            back["h"] = back["h"] + dy.data
        rows = steps * n
        self._learn(state, flat, da.reshape(rows, da.shape[2]), "ih", diffs[0], x)
        self._learn(
            state, carried["h"][:-1].reshape(rows, self.output_dim), db.reshape(rows, db.shape[2]), "hh", None, x
        )
        for name, dx in zip(self.carried, diffs[1:]):
            if dx:
                dx.adopt(back[name])

    def _learn(self, state: LayerState, flat: np.ndarray, dy: np.ndarray, which: str, dx: Any, x: Blob) -> None:
        """Gradients of one product over all steps."""
        own = [p for p in state.parameters if p.name.endswith(which) and not p.frozen]
        if not own and not dx:
            return
        arrays = {**_dense(flat, {p.name: p.data for p in state.parameters}, which), "y": dy, "dy": dy}
        found = builtin.pull(_DENSE, arrays, "all" if own and dx else "inputs" if dx else "params")
        for p in own:
            p.gradient[...] += found[p.name.partition("_")[0]]
        if dx:
            n, steps, features = x.shape
            dx.adopt(contiguous(found["x"].reshape(steps, n, features).swapaxes(0, 1)))


def _dense(x: np.ndarray, parameters: Arrays, which: str) -> Arrays:
    return {"x": x, "weight": parameters[f"weight_{which}"], "bias": parameters[f"bias_{which}"]}


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
