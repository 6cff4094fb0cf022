"""`net.forward` and `net.backward` without the Python of their layers, once the same has been done a few times.

The third training forward on inputs of one kind rehearses both passes (`passes`); from then on the kernels run alone
(`replay`), on memory that stays. Blobs, gradients, states, losses and random streams are then what they are the long
way, bit for bit. What else a layer keeps of a forward is made up for when it is asked for (`settle`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import acceleration
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.shortcut import States, is_known, is_plain
from layerc.runtime.workers import ALONE

if TYPE_CHECKING:
    from layerc.runtime.backprop import Analysis
    from layerc.runtime.layer import LayerState
    from layerc.runtime.net import Net
    from layerc.runtime.passes import Passes
    from layerc.runtime.symbolic import Node

_CALLS = 3  # before a rehearsal pays
_MOST_SIZES = 2  # batch sizes whose memory is kept: the usual and the last of an epoch
_MOST_KINDS = 8

Given = Mapping[int, np.ndarray]


class Repeats:
    """Those of one net, by the kind of its inputs."""

    def __init__(self) -> None:
        self._known: dict[Any, _Repeat] = {}
        self._last: _Repeat | None = None  # whose forward was the last
        self._fetched = 0  # forwards for which the net's sources made the inputs

    def forward(self, net: "Net", phase: str, given: Given) -> bool:
        """Whether the forward has been done."""
        self._last = None
        if phase != "train" or not _may(net):
            return False
        if given:
            return self._repeated(net, given)
        self._fetched += 1
        if self._fetched < _CALLS:
            return False
        track = net.track
        sources = {i for i, step in enumerate(net.graph.steps) if step.layer.is_source}
        track.forward(phase, {}, sources)
        made = {w: track.blobs[w].data for i in sources for w in net.graph.steps[i].tops if net.graph.wires[w].readers}
        if not self._repeated(net, made):
            track.forward(phase, {}, set(range(len(net.graph.steps))) - sources)
        return True

    def _repeated(self, net: "Net", given: Given) -> bool:
        key = tuple((w, a.shape[1:], a.dtype) for w, a in given.items())
        known = self._known.get(key)
        if known is None or not known.fits(net):
            if len(self._known) >= _MOST_KINDS:
                self._known.clear()
            known = self._known[key] = _Repeat(net)
        if not known.forward(net, given):
            return False
        self._last = known
        return True

    def backward(self, net: "Net", flow: "Analysis") -> bool:
        """Whether the backward has been done."""
        known = self._last
        if known is None:
            return False
        if known.fits(net) and known.backward(net, flow):
            return True
        self.settle()
        self._known.clear()  # another flow of gradients: something was frozen, say
        return False

    def settle(self) -> None:
        """Give the layers all that they have after a forward the long way."""
        if self._last is not None:
            self._last.settle()
            self._last = None


def _may(net: "Net") -> bool:
    return net.workers is ALONE and net.backend.acceleration == acceleration.AUTO and not acceleration.is_none()


class _Repeat:
    def __init__(self, net: "Net") -> None:
        self.track, self.parameters, self.gradients = net.track, net.buffer.data, net.buffer.gradient
        self.calls = 0
        self.passes: Passes | None = None
        self.bound: dict[int, _Run] = {}
        self.run: _Run | None = None  # the last

    def fits(self, net: "Net") -> bool:
        """Whether the arrays that the kernels know are still the net's."""
        buffer = net.buffer
        return self.track is net.track and self.parameters is buffer.data and self.gradients is buffer.gradient

    def forward(self, net: "Net", given: Given) -> bool:
        self.calls += 1
        if self.calls == _CALLS:
            self._prepare(net, given)
        sizes = {len(a) for a in given.values()}
        if self.passes is None or len(sizes) != 1:
            return False
        (n,) = sizes
        if n < self.passes.function.least:
            return False
        run = self.bound.get(n)
        if run is None:
            while len(self.bound) >= _MOST_SIZES:
                del self.bound[next(iter(self.bound))]
            run = self.bound[n] = _Run(self, self.passes, n)
        if not run.forward([given[w] for w in self.passes.wires]):
            return False
        for w, array in given.items():  # what no loss depends on
            if w not in self.passes.wires:
                self.track.put(w, array)
        for i, state in enumerate(self.track.states):
            if i not in self.passes.steps and not state.layer.is_source:
                state.batch_size = n
                self.track.run(i, "train")
        self.run = run
        return True

    def backward(self, net: "Net", flow: "Analysis") -> bool:
        assert self.run is not None
        return flow is self.flow and self.run.backward(net)

    def settle(self) -> None:
        assert self.run is not None
        self.run.again_at_length()

    def _prepare(self, net: "Net", given: Given) -> None:
        """There are no passes where the layers cannot do without their Python, or where something is wrong: the long
        way says what."""
        from layerc.runtime.passes import passes
        from layerc.runtime.replay import Replay

        if not is_known(self.track, given):
            return
        try:
            made, self.flow = passes(net), net.analysis()
        except Exception:
            return
        if all(is_plain(net.graph.steps[i].layer) for i in made.steps) and set(made.wires) <= set(given):
            self.passes, self.replay = made, Replay(made.function)


class _Run:
    """Both passes for batches of n."""

    def __init__(self, owner: _Repeat, made: "Passes", n: int) -> None:
        from layerc.runtime.replay import Bound

        self.passes, self.track = made, owner.track
        self.states = States(self.track)
        memory = {"parameters": owner.parameters, "gradients": owner.gradients, **self.states.memory}
        self.bound = Bound(owner.replay, n, memory)
        self.bound.names["iteration"] = 0  # the streams say how often they were asked
        self.inputs = list(zip(made.wires, self.bound.inputs.values(), strict=True))
        after, last = self.bound.held
        self.blobs = _named(after, "blob")
        self.diffs = _named(last, "diff")
        self.new_states = [(i, name, array) for (i, name), array in _named(after, "state").items()]
        self.lent: list[tuple[Any, Any]] | None = None
        self.counts: list[int] = []
        self.before: list[dict[str, np.ndarray]] = []

    def forward(self, given: list[np.ndarray]) -> bool:
        from layerc.runtime.replay import Failed

        track, bound, made = self.track, self.bound, self.passes
        for (_, memory), array in zip(self.inputs, given):
            if memory is not array:
                np.copyto(memory, array)
        self.states.take(track)
        for i, draws in made.draws.items():
            draws.count = track.states[i].rng.count
        try:
            bound.run()
        except Failed:
            return False
        self.counts = [draws.count for draws in made.draws.values()]
        self.before = [state.states for state in track.states] if self.new_states else []
        self._show()
        return True

    def _show(self) -> None:
        """The net as it is after a forward."""
        track, states = self.track, self.track.states
        for w, memory in self.inputs:
            if track.blobs[w]._data is not memory:
                track.blobs[w].adopt(memory)
        for w, memory in self.blobs.items():
            if track.blobs[w]._data is not memory:
                track.blobs[w].adopt(memory)
        for i, draws in self.passes.draws.items():
            states[i].rng.count += draws.each
        for i, name, array in self.new_states:
            states[i].states = {**states[i].states, name: array.copy()}
        for i, node in self.passes.losses.items():
            states[i].loss = self.bound.number(node)
        for i, totals in self.passes.totals.items():
            states[i].totals = {**getattr(states[i], "totals", {}), **self._grown(states[i], totals)}

    def _grown(self, state: "LayerState", totals: "Mapping[str, tuple[Node, Node]]") -> dict[str, tuple[float, float]]:
        number, known = self.bound.number, getattr(state, "totals", {})
        pairs = [(name, known.get(name, (0.0, 0.0)), more) for name, more in totals.items()]
        return {name: (total + number(t), weight + number(w)) for name, (total, weight), (t, w) in pairs}

    def backward(self, net: "Net") -> bool:
        from layerc.runtime.replay import Failed

        try:
            self.bound.run(1)
        except Failed:
            return False
        track, buffer = self.track, net.buffer
        if self.lent is None:
            self.lent = [(p, NullBlob() if p.frozen else buffer.of(buffer.gradient, p)) for p in buffer.parameters]
        for p, gradient in self.lent:
            p.lend_gradient(gradient)
        for w, memory in self.diffs.items():
            blob = track.diffs.get(w)
            if blob is None:
                blob = track.diffs[w] = Blob(memory)
            elif blob._data is not memory:
                blob.adopt(memory)
        return True

    def again_at_length(self) -> None:
        """The forward of all that was run here, by the layers' Python. What was to be seen stays, also where parameters
        have changed since."""
        track, made = self.track, self.passes
        blobs = {w: track.blobs[w].to_array() for w in self.blobs}
        after = [(s.states, s.rng.count, getattr(s, "totals", {}), s.loss) for s in track.states]
        for i, states in enumerate(self.before):
            track.states[i].states = states
        for i, count in zip(made.draws, self.counts):
            track.states[i].rng.count = count
        given = {w: memory.copy() for w, memory in self.inputs}
        track.forward("train", given, made.steps)
        for state, (states, count, totals, loss) in zip(track.states, after):
            state.states, state.rng.count, state.totals, state.loss = states, count, totals, loss
        for w, values in blobs.items():
            np.copyto(track.blobs[w].data, values)


def _named(held: dict[Any, np.ndarray], kind: str) -> dict[Any, np.ndarray]:
    found = {name[1:]: array for name, array in held.items() if name[0] == kind}
    return {name[0] if len(name) == 1 else name: array for name, array in found.items()}
