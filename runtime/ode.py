"""`ODE`: the solution of a differential equation whose right side is a compiled function."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, number, one_of
from layerc.runtime.given_parameters import GivenParameters
from layerc.runtime.layer import BadInput, LayerState, require_float
from layerc.runtime.ode45 import ERRORS, FIRST, NODES, WEIGHTS, attempt, error_size, growth
from layerc.runtime.ports import Ports

Rate = Callable[[float, np.ndarray], np.ndarray]
Gradients = dict[str, np.ndarray]

_MOST = 100_000


def _times(value: Any) -> tuple[float, float]:
    first, last = (number(t) for t in value)
    if not (math.isfinite(first) and math.isfinite(last)):
        raise ValueError("must be two finite times")
    return first, last


class ODE(GivenParameters):
    """y(t1) for dy/dt = fn(t, y, *params), y(t0) the bottom; `fn` compiled, steps by Dormand and Prince, chosen for the
    whole batch.

    gradient="direct": of the steps that were taken, one y kept for each; "adjoint": by integrating backwards
    (Pontryagin; Chen et al. 2018), nothing kept, exact to the tolerances. params: as `CompiledLayer`.
    FloatingPointError where the solution cannot be followed.
    """

    has_neuron = can_do_bp = True
    bottom_counts = (1, 1)
    top_count = 1
    positional = ("fn", "t", "solver", "gradient", "rtol", "atol", "params")

    fn: Any = field(check=lambda fn: hasattr(fn, "run") and hasattr(fn, "manifest"))
    t: Any = field((0.0, 1.0), convert=_times)
    solver: str = field("dopri45", convert=one_of("dopri45"))
    gradient: str = field("direct", convert=one_of("direct", "adjoint"))
    rtol: float = field(1e-6, check=lambda tol: tol > 0)
    atol: float = field(1e-8, check=lambda tol: tol > 0)

    def check_fields(self, owner: str) -> None:
        ports = Ports(self.fn, {})
        self._set("ports", ports)
        if len(ports.inputs) != 2 or ports.shapes[ports.inputs[0]].dims or len(ports.outputs) != 1 or ports.states:
            raise ValueError(
                f"{owner}: field fn must be of (t, y, *params), t a scalar, not {ports.name}{ports.inputs}"
            )
        if set(self.params) != set(ports.params):
            raise ValueError(f"{owner}: field params must give {list(ports.params)}, got {list(self.params)}")
        self._set("has_param", bool(ports.params))
        self._set("can_do_bp", bool(ports.differentiable))

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        (y,) = inputs
        parameters = self.given_parameters()
        blank = {p.name: np.zeros(p.shape, y.dtype) for p in parameters}
        made = self.ports.output_specs("predict", {**self._point(0.0, y.data), **blank})
        if made[0][0] != y.shape:
            raise BadInput(f"{self.ports.name} makes {made[0][0]} of it: dy/dt has the shape of y")
        return LayerState(self, blobs=[Blob.empty(y.shape, y.dtype)], parameters=parameters)

    def _point(self, t: float, y: np.ndarray) -> Gradients:
        names = self.ports.inputs
        times = np.asarray(t, y.dtype) if self.fn.manifest["batched"] else np.full(len(y), t, y.dtype)
        return {names[0]: times, names[1]: y}

    def _rate(self, state: LayerState) -> Rate:
        parameters = {p.name: p.data for p in state.parameters}
        (top,) = self.ports.outputs
        return lambda t, y: self.ports.run("predict", {**self._point(t, y), **parameters}, None)[top]

    def _pull(
        self, state: LayerState, t: float, y: np.ndarray, dy: np.ndarray, made: np.ndarray | None = None
    ) -> Gradients:
        """dy times the derivatives of fn there, by argument. made: fn there, if it is known."""
        (top,) = self.ports.outputs
        arrays = {**self._point(t, y), **{p.name: p.data for p in state.parameters}}
        if made is None:
            made = self.ports.run("predict", arrays, None)[top]
        # An input may have the output's name; it is then the input that the gradient asks for.
        return self.ports.pull({top: made, **arrays, f"d{top}": dy}, "all", None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        steps: list[tuple[float, float, np.ndarray]] = []
        y = self._solve(self._rate(state), self.t[0], self.t[1], inputs[0].data, steps)
        state.steps = steps if self.gradient == "direct" else None
        state.blobs[0].adopt(y.copy())

    def _solve(self, rate: Rate, start: float, end: float, y: np.ndarray, steps: list | None = None) -> np.ndarray:
        rtol = max(self.rtol, 8 * float(np.finfo(y.dtype).eps))
        return integrate(rate, start, end, y, rtol, self.atol, steps)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        dy = state.blobs_diff[0].data
        pull = self._direct if self.gradient == "direct" else self._adjoint
        found, gradients = pull(state, dy)
        if diffs[0]:
            diffs[0].data = found
        for p in state.parameters:
            if not p.frozen:
                p.gradient[...] += gradients[p.name]

    def _direct(self, state: LayerState, dy: np.ndarray) -> tuple[np.ndarray, Gradients]:
        """Back through the steps, the stages of each computed again."""
        rate, total = self._rate(state), {p.name: np.zeros_like(p.data) for p in state.parameters}
        y_name = self.ports.inputs[1]
        for t, h, y in reversed(state.steps):
            stages, points = _stages(rate, t, h, y)
            dk = [(h * b) * dy for b in WEIGHTS[-1]]
            for k in reversed(range(len(stages))):
                found = self._pull(state, t + NODES[k] * h, points[k], np.ascontiguousarray(dk[k], y.dtype), stages[k])
                du = found[y_name]
                dy = dy + du
                for j, a in zip(range(k), WEIGHTS[k]):
                    dk[j] = dk[j] + (h * a) * du
                for name in total:
                    total[name] += found[name]
        return dy, total

    def _adjoint(self, state: LayerState, dy: np.ndarray) -> tuple[np.ndarray, Gradients]:
        """y, its gradient and those of the parameters, as one equation integrated from t1 back to t0."""
        y1, shapes = state.blobs[0].data, [p.shape for p in state.parameters]
        names = [p.name for p in state.parameters]
        ends = np.cumsum([y1.size, y1.size, *(math.prod(s) for s in shapes)])
        rate, y_name = self._rate(state), self.ports.inputs[1]

        def whole(t: float, z: np.ndarray) -> np.ndarray:
            y, a = (part.reshape(y1.shape) for part in np.split(z, ends)[:2])
            found = self._pull(state, t, y, a)
            return np.concatenate([rate(t, y).ravel(), *(-found[name].ravel() for name in (y_name, *names))])

        z = np.concatenate([y1.ravel(), dy.ravel(), *(np.zeros(math.prod(s), y1.dtype) for s in shapes)])
        z = self._solve(whole, self.t[1], self.t[0], z)
        _, found, *gradients = np.split(z, ends)[: 2 + len(shapes)]
        return found.reshape(y1.shape), {n: g.reshape(s) for n, g, s in zip(names, gradients, shapes)}


def _stages(rate: Rate, t: float, h: float, y: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The rates of one step, and the points that they are taken at."""
    stages: list[np.ndarray] = []
    points = []
    for c, row in zip(NODES[:-1], WEIGHTS):
        points.append(_moved(y, h, row, stages))
        stages.append(rate(t + c * h, points[-1]))
    return stages, points


def _moved(y: np.ndarray, h: float, row: tuple[float, ...], stages: list[np.ndarray]) -> np.ndarray:
    """y + h sum row_k stage_k."""
    moved = y.copy()
    for a, k in zip(row, stages):
        if a:
            moved += y.dtype.type(h * a) * k
    return moved


def integrate(
    rate: Rate, start: float, end: float, y: np.ndarray, rtol: float, atol: float, steps: list | None = None
) -> np.ndarray:
    """y(end), by the steps of `ode45`, whose estimated error stays within atol + rtol |y|.

    steps: takes (t, h, y) of each. FloatingPointError where steps become too small or too many.
    """
    t, side = start, math.copysign(1.0, end - start)
    if start == end or not y.size:
        return y
    nodes, weights, errors = (np.array(one, y.dtype) for one in (NODES, WEIGHTS, ERRORS))
    h, slope = abs(end - start) * FIRST, rate(start, y)
    for _ in range(_MOST):
        is_last = h >= abs(end - t)
        h = min(h, abs(end - t))
        after, stages = attempt(rate, nodes, weights, t, y.dtype.type(side * h), y, slope, ())
        size = float(error_size(h * np.tensordot(errors, stages, 1), y, after, rtol, atol))
        if size <= 1:
            if steps is not None:
                steps.append((t, side * h, y))
            t, y, slope = end if is_last else t + side * h, after, stages[6]
            if is_last:
                return y
        h *= growth(size)
        if t + side * h * 0.1 == t:
            break
    raise FloatingPointError(f"the solution cannot be followed beyond t = {t:.6g}")
