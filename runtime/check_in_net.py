"""The validity suite for layers of nets, those written by hand above all: each alone in a net of its own.

report = Mine(name="mine").check((4, 5))
assert report.passed, report
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from layerc.runtime import differences, threads
from layerc.runtime.check_report import Report, Row, relative_error
from layerc.runtime.data import Input
from layerc.runtime.layer import Layer
from layerc.runtime.net import Net

Arrays = dict[str, np.ndarray]
Outcome = tuple[str, str]  # figure, note
_TOLERANCE = 1e-4  # of float32 beside float64


class _Fail(Exception):
    def __init__(self, note: str, figure: str = "") -> None:
        super().__init__(note)
        self.figure = figure


def check_layer(layer: Layer, given: Sequence[Any], observations: int) -> Report:
    """Every test on a layer. given: for each bottom the shape of an example, or an array: a batch of its values."""
    started = time.perf_counter()
    if layer.borrows is not None:
        raise ValueError(f"{type(layer).__name__} {layer.name!r} borrows parameters: it cannot be checked alone")
    suite = _Suite(layer, given, observations)
    told = ", ".join(f"{n} {a.shape}" for n, a in suite.arrays.items())
    report = Report(f"{type(layer).__name__} {layer.name!r}  {told}")
    for test, run in suite.tests():
        try:
            report.rows.append(Row(test, "passed", *run()))
        except _Fail as why:
            report.rows.append(Row(test, "FAILED", why.figure, str(why)))
        except Exception as error:  # whatever a layer raises is a result, not the end of the suite
            labels = "; a batch of labels in the place of their shape would do" if isinstance(error, IndexError) else ""
            report.rows.append(Row(test, "FAILED", "", f"{type(error).__name__}: {error}{labels}"))
            if test in ("set up", "forward runs"):  # nothing else could be asked
                break
    report.seconds = time.perf_counter() - started
    return report


class _Suite:
    def __init__(self, layer: Layer, given: Sequence[Any], observations: int) -> None:
        least, most = layer.bottom_counts
        if len(given) < least or (most is not None and len(given) > most):
            wanted = f"{least}" if most == least else f"{least} to {most}" if most is not None else f"{least} or more"
            kind = type(layer).__name__
            raise ValueError(f"{kind} {layer.name!r} takes {wanted} bottoms; check got {len(given)}: a shape for each")
        names = [f"x{k + 1}" if len(given) > 1 else "x" for k in range(len(given))]
        if len(set(layer.bottoms)) == len(given):
            names = list(layer.bottoms)
        self.arrays = {n: _values(layer, k, g, observations) for k, (n, g) in enumerate(zip(names, given))}
        self.whole = any(isinstance(g, np.ndarray) for g in given)  # other batches could not be drawn
        self.layer = layer.replace(bottoms=names, tops=_tops(layer, names))
        self.params: Arrays = {}  # as first drawn
        self.states: dict[str, Arrays] = {}  # by the name of the layer

    def tests(self) -> Iterator[tuple[str, Callable[[], Outcome]]]:
        yield "set up", self.set_up
        yield "forward runs", lambda: self.runs("train")
        yield "predict runs", lambda: self.runs("predict")
        if self.layer.can_do_bp:
            yield "backward runs", self.backward
            for name in self.differentiable():
                yield f"gradient of {name}", lambda name=name: self.gradient(name)  # type: ignore[misc]
            if not self.layer.has_loss:
                yield "gradient linear in dy", self.linear
            yield "backward begins from zero", self.twice
        if not self.whole and not self.layer.is_source:
            yield "one observation", lambda: self.other_batch(1)
            yield "another batch, and back", lambda: self.other_batch(len(next(iter(self.arrays.values()))) + 2)
        yield "bottoms unchanged", self.unchanged
        yield "1 and 2 threads", self.threads
        if not self.layer.is_source:
            yield "float32 and float64", self.types

    # -- running -------------------------------------------------------------------------------------------
    def net(self, dtype: str = "float64") -> Net:
        """A net of the layer alone, with the parameters and states of the first one."""
        shapes = [a.shape[1:] for a in self.arrays.values()]
        source = [Input(shapes, tops=list(self.arrays), name=f"{self.layer.name}_given")] if shapes else []
        net = Net("check", [*source, self.layer], dtype=dtype)
        for name, p in net.named_parameters().items():
            p.data[...] = self.params.setdefault(name, p.data.astype(np.float64))
        return net

    def forward(self, net: Net, arrays: Mapping[str, np.ndarray], phase: str = "train") -> list[np.ndarray]:
        """The tops, or the loss; random numbers and states are the same in every call."""
        for state in net.track.states:
            state.rng.count = 0
            reset = getattr(state.layer, "reset_states", None)
            if state.states:
                kept = self.states.setdefault(state.layer.name, {k: np.array(a) for k, a in state.states.items()})
                state.states = {k: kept[k].astype(a.dtype) for k, a in state.states.items()}
                if reset is not None and state.layer.states_of_examples(state):
                    reset(state)
        loss = net.forward(data=dict(arrays) if arrays else None, phase=phase)
        return [np.array(loss)] if self.layer.has_loss else [net.blobs[top].to_array() for top in self.layer.tops]

    def cotangents(self, tops: Sequence[np.ndarray], draw: int = 0) -> list[np.ndarray]:
        if self.layer.has_loss:
            return [np.array(1.0)]
        rng = np.random.default_rng(100 + draw)
        return [rng.standard_normal(y.shape) if y.dtype.kind == "f" else np.zeros(y.shape) for y in tops]

    def seed(self, tops: Sequence[np.ndarray], dys: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
        if self.layer.has_loss:
            return None
        return {n: dy for n, y, dy in zip(self.layer.tops, tops, dys) if y.dtype.kind == "f"}

    def gradients(self, draw: int = 0, weights: Sequence[float] = (1.0,)) -> Arrays:
        """All gradients for cotangents, or a sum of two of them."""
        net = self.net()
        tops = self.forward(net, self.arrays)
        parts = [self.cotangents(tops, draw + k) for k in range(len(weights))]
        dys = [np.sum([w * part[k] for w, part in zip(weights, parts)], axis=0) for k in range(len(tops))]
        return {n: net.gradient(n, self.seed(tops, dys)) for n in self.differentiable()}

    def differentiable(self) -> list[str]:
        floats = [n for n, a in self.arrays.items() if a.dtype.kind == "f"]
        return [*floats, *self.params]

    # -- tests ---------------------------------------------------------------------------------------------
    def set_up(self) -> Outcome:
        self.net()
        return "", ""

    def runs(self, phase: str) -> Outcome:
        found = self.forward(self.net(), self.arrays, phase)
        named = dict(zip(["loss"] if self.layer.has_loss else self.layer.tops, found))
        bad = [n for n, y in named.items() if y.dtype.kind == "f" and not np.isfinite(y).all()]
        return "", f"not finite: {', '.join(bad)}" if bad else ", ".join(f"{n} {y.shape}" for n, y in named.items())

    def backward(self) -> Outcome:
        bad = [n for n, g in self.gradients().items() if not np.isfinite(g).all()]
        if bad:
            raise _Fail(f"NaN or infinity in the gradient of {', '.join(bad)}")
        return "", ""

    def gradient(self, name: str) -> Outcome:
        net = self.net()
        tops = self.forward(net, self.arrays)
        dys = self.cotangents(tops)
        gradient = net.gradient(name, self.seed(tops, dys))
        parameter = net.named_parameters().get(name)

        def f(x: np.ndarray) -> list[np.ndarray]:
            if parameter is None:
                return self.forward(net, {**self.arrays, name: x})
            parameter.data[...] = x
            return self.forward(net, self.arrays)

        x = self.arrays[name] if parameter is None else np.array(parameter.data)
        found = differences.compare(f, x, dys, gradient, np.random.default_rng(3))
        if not found.passed:
            raise _Fail(found.text, f"{found.error:.1e}")
        return f"{found.error:.1e}", found.text

    def linear(self) -> Outcome:
        one, other, both = self.gradients(0), self.gradients(1), self.gradients(0, (1.0, -2.0))
        return _close({n: one[n] - 2 * other[n] for n in one}, both, 1e-9)

    def twice(self) -> Outcome:
        """A second backward of one forward gives the gradients of the first."""
        net = self.net()
        tops = self.forward(net, self.arrays)
        seed = self.seed(tops, self.cotangents(tops))
        found = []
        for _ in range(2):
            found.append({n: net.gradient(n, seed) for n in self.differentiable()})
        return _close(found[1], found[0], 0.0)

    def other_batch(self, n: int) -> Outcome:
        net = self.net()
        before = self.forward(net, self.arrays)
        others = self.forward(net, {name: np.concatenate([a] * n)[:n] for name, a in self.arrays.items()})
        size = len(next(iter(self.arrays.values())))
        for name, y, other in zip(self.layer.tops, before, others):
            if y.shape[:1] == (size,) and other.shape[:1] != (n,):
                raise _Fail(f"{name} has {other.shape[0]} examples of a batch of {n}")
        after = self.forward(net, self.arrays)
        return _close(_numbered(after), _numbered(before), 0.0)

    def unchanged(self) -> Outcome:
        net = self.net()
        tops = self.forward(net, self.arrays)
        for name, a in self.arrays.items():
            if not np.array_equal(net.blobs[name].to_array(), a):
                raise _Fail(f"forward writes into its bottom {name}")
        if self.layer.can_do_bp:
            for name in self.differentiable():
                net.gradient(name, self.seed(tops, self.cotangents(tops)))
            if any(not np.array_equal(y, net.blobs[t].to_array()) for t, y in zip(self.layer.tops, tops)):
                raise _Fail("backward writes into a top")
        return "", ""

    def threads(self) -> Outcome:
        was = threads.get_num_threads()
        found = []
        try:
            for count in (1, 2):
                threads.set_num_threads(count)
                found.append(_numbered(self.forward(self.net(), self.arrays)))
        finally:
            threads.set_num_threads(was)
        return _close(found[1], found[0], 0.0)

    def types(self) -> Outcome:
        wide, narrow = (self.forward(self.net(dtype), self.arrays) for dtype in ("float64", "float32"))
        return _close(_numbered(narrow), _numbered(wide), _TOLERANCE)


def _values(layer: Layer, k: int, given: Any, observations: int) -> np.ndarray:
    """A batch for bottom k."""
    if isinstance(given, np.ndarray):
        return given.astype(np.float64) if given.dtype.kind == "f" else given
    shape = (given,) if isinstance(given, int) else tuple(given)
    rng = np.random.default_rng(7 + k)
    if layer.bottom_kind(k) == "int":
        return rng.integers(0, 2, (observations, *shape))
    return rng.standard_normal((observations, *shape))


def _tops(layer: Layer, bottoms: Sequence[str]) -> list[str]:
    if layer.is_sink:
        return []
    if layer.tops_given and not set(layer.tops) & set(bottoms):
        return list(layer.tops)
    count = len(bottoms) if layer.is_multi else layer.top_count or 1
    return [f"y{k + 1}" if count > 1 else "y" for k in range(count)]


def _numbered(tops: Sequence[np.ndarray]) -> Arrays:
    return {f"top {k}": y for k, y in enumerate(tops)}


def _close(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float) -> Outcome:
    worst = max(((relative_error(found[n], expected[n]), n) for n in expected), default=(0.0, ""))
    if worst[0] > tolerance:
        raise _Fail(f"{worst[1]} differs", f"{worst[0]:.1e}")
    return f"{worst[0]:.1e}", ""


__all__ = ["check_layer"]
