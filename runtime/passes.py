"""The forward and the backward of a training step as one record: a `Hold` after each names what it leaves to be seen.

What `repeat` runs in the place of the layers' Python, once a net has done the same a few times.
"""

from dataclasses import dataclass
from typing import Any

from layerc.runtime.execution import Track
from layerc.runtime.net import Net
from layerc.runtime.rehearse import SIZES, Rehearsal, Twin, check_same, find_least
from layerc.runtime.schedules import Draws, Function
from layerc.runtime.statistics import RunningMeans
from layerc.runtime.symbolic import Node, Unrecordable, as_scalar
from layerc.runtime.tape import Hold, View


@dataclass
class Passes:
    """function: its inputs are blobs, their wires in `wires`; names of its holds: ("blob", wire), ("diff", wire),
    ("state", step, name). steps: those that it stands for; by step: the number of a loss, what a statistic's sum and
    weight grow by, the stream of random numbers."""

    function: Function
    wires: list[int]
    steps: frozenset[int]
    losses: dict[int, Node]
    totals: dict[int, dict[str, tuple[Node, Node]]]
    draws: dict[int, Draws]


def passes(net: Net) -> Passes:
    """The record of a net that is set up. Unrecordable, ValueError, TopologyError."""
    one, other = (_Rehearsal(net, n).passes() for n in SIZES)
    check_same(net, one.function, other.function)
    find_least(one.function, lambda n: _Rehearsal(net, n).passes())
    return one


class _Rehearsal(Rehearsal):
    def passes(self) -> Passes:
        return self.record(self._passes)

    def _passes(self, twin: Twin) -> Passes:
        graph, track = self.net.graph, twin.track
        if any(isinstance(value, Track) for state in track.states for value in vars(state).values()):
            raise Unrecordable("a net within a net has blobs of its own")
        steps = self.towards_losses()
        ports = self.feed_all(twin, steps)
        for state in track.states:
            names = state.layer.statistic_names() if isinstance(state.layer, RunningMeans) else ()
            state.totals = dict.fromkeys(names, (as_scalar(0.0), as_scalar(0)))  # what they grow by
        track.forward("train", twin.fed, twin.steps)
        losses = {i: as_scalar(track.states[i].loss).node for i in twin.steps if graph.steps[i].layer.has_loss}
        totals = {i: _nodes(state.totals) for i, state in enumerate(track.states) if state.totals}
        draws = {i: state.rng.draws for i, state in enumerate(track.states) if state.rng.draws.each}
        drawn = sum(d.each for d in draws.values())
        tops = [w for i in sorted(twin.steps) for w in graph.steps[i].tops]
        blobs = {("blob", w): _view(track.blobs[w]) for w in tops}
        self._hold({**blobs, **self._new_states(), "gradients": self.persistent["gradients"]})
        analysis = twin.analysis()
        analysis.check()
        track.backward(analysis.plan, {}, twin.buffer)
        if sum(d.each for d in draws.values()) != drawn:
            raise Unrecordable("a backward draws random numbers")
        diffs = {("diff", w): _view(track.diffs[w]) for w in analysis.needed}
        self._hold({**blobs, **diffs})
        function = Function(ports, [], self.tape.ops, self.tape.makers)
        return Passes(function, list(twin.fed), frozenset(twin.steps), losses, totals, draws)

    def _new_states(self) -> dict[Any, View]:
        """Of the states that the forward changes, the new values."""
        found: dict[Any, View] = {}
        for i, (state, before) in enumerate(self.first):
            for name, array in before.items():
                new: Any = state.states[name]
                if new is not array:
                    if new.shape != array.shape:
                        raise Unrecordable(f"its state {name!r} has the size of the batch")
                    found["state", i, name] = new.view
        return found

    def _hold(self, views: dict[Any, View]) -> None:
        self.tape.where = "what it leaves"
        for name, view in views.items():
            if not view.contiguous or (view.buffer.kind not in ("arena", "input") and name != "gradients"):
                raise Unrecordable(f"{name} lies where nobody may write")
        self.tape.put(Hold(tuple(views), tuple(views.values())))


def _view(blob: Any) -> View:
    view: View = blob.data.view
    return view


def _nodes(totals: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Node, Node]]:
    return {name: (as_scalar(total).node, as_scalar(weight).node) for name, (total, weight) in totals.items()}


__all__ = ["Passes", "passes"]
