"""`LBFGS`: quasi-Newton steps with a strong Wolfe line search, on one batch each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from layerc.runtime.solvers import Solver

if TYPE_CHECKING:
    from layerc.runtime.net import Net

# Of the line search: enough decrease, enough flattening, most evaluations (Nocedal and Wright 2006, section 3.5).
_DECREASE, _FLATTEN, _MOST = 1e-4, 0.9, 25

Point = tuple[float, float, np.ndarray, float]  # step, value, gradient, slope along the direction


class LBFGS(Solver):
    """Limited-memory BFGS (Liu and Nocedal 1989): one iteration is one direction, with a strong Wolfe line search.

    The batch, and what random layers draw, are kept during an iteration; meant for full batches. lr scales the first
    trial step. A gradient within `tolerance` of 0 everywhere stops it ("tolerance"). lr factors but 0 have no
    effect.
    """

    defaults: ClassVar[dict[str, Any]] = {"lr": 1.0, "history_size": 10, "tolerance": 1e-9}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        pairs = range(self.options["history_size"])
        # The steps s and changes of gradient y of the last iterations, latest first; zeros where there are none.
        self.slots = tuple(f"{name}{k}" for name in "sy" for k in pairs)  # type: ignore[misc]

    def iterate(self, net: "Net", regu: float) -> float:
        batch = _Batch(net, regu)
        objective = net.forward(regu)
        self.check_objective(objective)
        net.backward(regu)
        self._clip(net)
        self._show_rates()
        start, gradient = net.buffer.data.copy(), net.buffer.gradient.astype(np.float64)
        if np.max(np.abs(gradient), initial=0.0) <= self.options["tolerance"]:
            self.stop("tolerance")
            return objective
        direction = self._direction(gradient)

        def at(step: float) -> Point:
            net.buffer.data[...] = start + step * direction
            value = batch.evaluate(net, self._clip)
            found = net.buffer.gradient.astype(np.float64)
            return step, value, found, float(found @ direction)

        first = self.state.learning_rate
        if not self._pairs():
            first *= min(1.0, 1.0 / float(np.sum(np.abs(gradient))))
        slope = float(gradient @ direction)
        step, _, end, _ = _wolfe(at, (0.0, objective, gradient, slope), first)
        net.buffer.data[...] = start + step * direction
        self._remember(net.buffer.data.astype(np.float64) - start, end - gradient)
        for p in net.buffer.parameters:
            if not p.frozen:
                self.updates[id(p)] += 1
        return objective

    def _pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(s, y) of the last iterations, latest first."""
        found = []
        for k in range(self.options["history_size"]):
            s, y = (self.history[f"{name}{k}"].astype(np.float64) for name in "sy")
            if s @ y > 0:
                found.append((s, y))
        return found

    def _direction(self, gradient: np.ndarray) -> np.ndarray:
        """-H gradient, by the two loops of Nocedal (1980)."""
        pairs = self._pairs()
        q = -gradient
        factors = []
        for s, y in pairs:
            factor = (s @ q) / (s @ y)
            q = q - factor * y
            factors.append(factor)
        if pairs:
            s, y = pairs[0]
            q = q * ((s @ y) / (y @ y))
        for (s, y), factor in zip(reversed(pairs), reversed(factors)):
            q = q + (factor - (y @ q) / (s @ y)) * s
        return q if q @ gradient < 0 else -gradient

    def _remember(self, s: np.ndarray, y: np.ndarray) -> None:
        """The pair becomes the latest; without curvature all are dropped."""
        size = self.options["history_size"]
        if not size:
            return
        if s @ y <= 1e-10 * (y @ y):
            for flat in self.history.values():
                flat.fill(0)
            return
        for name, latest in (("s", s), ("y", y)):
            for k in range(size - 1, 0, -1):
                self.history[f"{name}{k}"][...] = self.history[f"{name}{k - 1}"]
            self.history[f"{name}0"][...] = latest


class _Batch:
    """The batch of one iteration, to be run again with other parameters and leave no trace."""

    def __init__(self, net: "Net", regu: float) -> None:
        self.regu = regu
        self.before = [(s.rng.count, dict(s.states)) for s in net.track.states]

    def evaluate(self, net: "Net", clip: Callable[["Net"], None]) -> float:
        """The objective; the gradient is then in the net's buffer."""
        main = net.track
        given = {w: main.blobs[w].data for step in net.graph.steps if step.layer.is_source for w in step.tops}
        net.track = main.fork()
        try:
            for state, (count, states) in zip(net.track.states, self.before):
                state.rng.count, state.states = count, states
            net.track.forward("train", given)
            value = net.objective(self.regu)
            net.backward(self.regu)
            clip(net)
        finally:
            net.track = main
        return value


def _wolfe(at: Callable[[float], Point], start: Point, first: float) -> Point:
    """A point that satisfies the strong Wolfe conditions, or the lowest seen (algorithms 3.5 and 3.6 of Nocedal and
    Wright). A value that is no number counts as too high."""
    _, low_value, _, slope = start
    before, best = start, start
    step, bracket = first, None
    evaluations = 0
    while evaluations < _MOST and bracket is None:
        here = at(step)
        evaluations += 1
        if here[1] < best[1]:
            best = here
        if not here[1] <= low_value + _DECREASE * step * slope or (evaluations > 1 and here[1] >= before[1]):
            bracket = (before, here)
        elif abs(here[3]) <= -_FLATTEN * slope:
            return here
        elif here[3] >= 0:
            bracket = (here, before)
        else:
            before, step = here, 2 * step
    while evaluations < _MOST and bracket is not None:
        low, high = bracket
        here = at(_between(low, high))
        evaluations += 1
        if here[1] < best[1]:
            best = here
        if not here[1] <= low_value + _DECREASE * here[0] * slope or here[1] >= low[1]:
            bracket = (low, here)
        else:
            if abs(here[3]) <= -_FLATTEN * slope:
                return here
            bracket = (here, low if here[3] * (high[0] - low[0]) >= 0 else high)
        if abs(bracket[1][0] - bracket[0][0]) * abs(slope) <= 1e-12 * (1 + abs(low_value)):
            break
    return best


def _between(a: Point, b: Point) -> float:
    """The minimum of the cubic through both, kept away from the ends."""
    low, high = sorted((a[0], b[0]))
    middle = (low + high) / 2
    if not (np.isfinite(b[1]) and np.isfinite(b[3])):
        return middle
    d1 = a[3] + b[3] - 3 * (a[1] - b[1]) / (a[0] - b[0])
    square = d1 * d1 - a[3] * b[3]
    if square < 0:
        return middle
    d2 = np.sign(b[0] - a[0]) * np.sqrt(square)
    below = b[3] - a[3] + 2 * d2
    if below == 0 or not np.isfinite(below):
        return middle
    step = b[0] - (b[0] - a[0]) * (b[3] + d2 - d1) / below
    margin = 0.1 * (high - low)
    return float(np.clip(step, low + margin, high - margin)) if np.isfinite(step) else middle
