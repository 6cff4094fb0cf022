"""`Subnet`: a net as a layer of another."""

from typing import Any

import numpy as np

from layerc.runtime.backprop import Analysis
from layerc.runtime.blob import Blob
from layerc.runtime.data import DataLayer, Input
from layerc.runtime.execution import Track
from layerc.runtime.fields import field
from layerc.runtime.initializers import Array
from layerc.runtime.layer import BadInput, Builtin, LayerState
from layerc.runtime.parameters import Parameter, ParameterBuffer
from layerc.runtime.setup import Assembly
from layerc.runtime.streams import Stream
from layerc.runtime.symbolic import number


class Subnet(Builtin):
    """The layers of `net`: bottoms feed its `Input` tops in order, tops are its unread blobs in order.

    Parameters and states are called `ip1.weight`; they start with the values that the net has now. The net itself
    stays as it is, and may stand in several places, with arrays of their own unless they share a `param_key`.
    """

    has_neuron = is_summed = True
    has_common_states = False  # they are those of the layers inside
    has_param = True  # so that `param_key` is taken; the net decides
    net: Any = field(check=lambda net: hasattr(net, "graph"))

    def check_fields(self, owner: str) -> None:
        graph = self.net.graph
        layers = [step.layer for step in graph.steps]
        for layer in layers:
            if isinstance(layer, DataLayer):
                raise ValueError(f"{owner}: field net={self.net.name!r}: data layer {layer.name!r} must be an Input")
        self._set("feeds", [w for s in graph.steps if isinstance(s.layer, Input) for w in s.tops])
        self._set("makes", [w for w in graph.last.values() if not graph.wires[w].readers and w not in self.feeds])
        self._set("has_param", any(layer.has_param for layer in layers))
        self._set("has_loss", any(layer.has_loss for layer in layers))
        self._set("can_do_bp", all(la.can_do_bp or la.is_source or (la.is_sink and not la.has_loss) for la in layers))
        self._set("is_source", not self.feeds)
        self._set("is_sink", not self.makes)
        self._set("bottom_counts", (len(self.feeds), len(self.feeds)))
        self._set("top_count", len(self.makes))
        if not self.tops_given:
            self._set("tops", (self.name,) if len(self.makes) == 1 else ())

    feeds: list[int]  # wires of the net, in the order of the bottoms
    makes: list[int]  # and of the tops

    def bottom_kind(self, k: int) -> str | None:
        from layerc.runtime.feeding import reads_as

        return reads_as(self.net.graph, self.feeds[k]) if k < len(self.feeds) else None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        assembly = Assembly(self.net.graph, backend, 0)
        assembly.advance(self._feed(inputs))
        if assembly.missing:
            raise BadInput(f"net {self.net.name!r} cannot be set up for these shapes")
        track = assembly.track
        state = LayerState(self, track=track, inner=list(assembly.parameters.values()))
        state.buffer = ParameterBuffer(state.inner, backend.dtype)
        state.parameters = [
            self._outer(f"{assembly.users[key].name}.{p.name}", p) for key, p in assembly.parameters.items()
        ]
        state.blobs = [Blob.empty(track.blobs[w].shape, track.blobs[w].dtype) for w in self.makes]
        known = _states_of(self.net.track)
        state.states = {k: known[k].copy() if _fits(known.get(k), a) else a for k, a in _states_of(track).items()}
        return state

    def _outer(self, name: str, p: Parameter) -> Parameter:
        """The parameter as the net around sees it, with the settings and the value that it has in `net` now."""
        known = self.net.named_parameters().get(name) if self.net.knows_arrays else None
        present, start = p, p.init
        if known is not None and known.shape == p.shape:
            present, start = known, Array(known.data.copy())
        outer = Parameter(name, p.shape, start, p.regu, p.cons, present.lr, present.decay)
        outer.is_frozen_by_user = present.is_frozen_by_user
        return outer

    def _feed(self, inputs: list[Blob]) -> dict[int, np.ndarray]:
        graph = self.net.graph
        for w, x in zip(self.feeds, inputs):
            source = graph.steps[graph.wires[w].maker].layer
            if isinstance(source, Input) and not source.accepts(graph.wires[w].top, x.shape):
                raise BadInput(f"input {graph.wires[w].name!r} of net {self.net.name!r} cannot take {x.shape}")
        return {w: x.data for w, x in zip(self.feeds, inputs)}

    def present_track(self, state: LayerState) -> Track:
        """The layers inside, with the parameters and states that this layer has now."""
        for inner, outer in zip(state.inner, state.parameters):
            inner.bind(outer.data)
        _set_states(state.track, state.states)
        track: Track = state.track
        return track

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        track = self.present_track(state)
        given = self._feed(inputs)
        # One draw of this layer's own stream holds for all inside: nothing else has to be saved.
        seed = state.rng.next_seed()
        for one in track.states:
            one.rng = Stream(seed, one.layer.name)
            one.is_fork = state.is_fork
        track.forward(state.phase, given)
        for w, y in zip(self.makes, state.blobs):
            y.data = track.blobs[w].data
        if state.phase == "train":
            state.states = _states_of(track)
        if self.has_loss:
            state.loss = sum(number(s.loss) for s in track.states if s.layer.has_loss and s.loss is not None)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        track: Track = state.track
        for inner, outer in zip(state.inner, state.parameters):
            inner.is_frozen_by_user = outer.frozen
        seeds = {w: dy.data for w, dy in zip(self.makes, state.blobs_diff) if dy}
        wanted = [w for w, dx in zip(self.feeds, diffs) if dx]
        is_float = [blob.dtype.kind == "f" for blob in track.blobs]
        plan = Analysis(self.net.graph, track.states, is_float.__getitem__, seeds=seeds, wanted=wanted).plan
        track.backward(plan, seeds, state.buffer)
        for w, dx in zip(self.feeds, diffs):
            if dx:
                dx.data = track.diffs[w].data
        for inner, outer in zip(state.inner, state.parameters):
            if not outer.frozen:
                outer.gradient[...] += state.buffer.of(state.buffer.gradient, inner)

    def states_of_examples(self, state: LayerState) -> frozenset[str]:
        inner = (s for s in state.track.states if s is not None)
        return frozenset(f"{s.layer.name}.{name}" for s in inner for name in s.layer.states_of_examples(s))

    def reset_states(self, state: LayerState) -> None:
        _set_states(state.track, state.states)
        for one in state.track.states:
            reset = getattr(one.layer, "reset_states", None)
            if one.states and reset is not None:
                reset(one)
        state.states = _states_of(state.track)

    def shutdown(self, backend: Any, state: LayerState) -> None:
        for one in state.track.states:
            one.layer.shutdown(backend, one)


def _states_of(track: Track) -> dict[str, np.ndarray]:
    """All states inside, as `bn.mean`."""
    return {f"{s.layer.name}.{name}": a for s in track.states if s is not None for name, a in s.states.items()}


def _set_states(track: Track, states: dict[str, np.ndarray]) -> None:
    for s in track.states:
        s.states = {name: states[f"{s.layer.name}.{name}"] for name in s.states}


def _fits(known: np.ndarray | None, a: np.ndarray) -> bool:
    return known is not None and known.shape == a.shape and known.dtype == a.dtype
