"""From a graph of layers to states: sets each layer up as soon as its bottoms are known, and checks what
it made."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.data import DataLayer, Input
from layerc.runtime.execution import Track
from layerc.runtime.feeding import reads_as
from layerc.runtime.layer import Backend, Layer, LayerState, implements, setup_layer
from layerc.runtime.parameters import Parameter, ParameterBuffer
from layerc.runtime.streams import Stream, generator
from layerc.runtime.topology import Graph, TopologyError, titled


class Assembly:
    """A net being set up. `track` is complete once `missing` is empty.

    A source whose shapes are not known yet (`Input` with `None`) leaves all that follows it for the first
    call. That says N for the whole net: what was set up for another N is set up again.
    """

    def __init__(self, graph: Graph, backend: Any, seed: int) -> None:
        self.graph, self.backend, self.seed = graph, backend, seed
        nobody: Any = None
        self.track = Track(graph, backend, [nobody] * len(graph.steps), [nobody] * len(graph.wires))
        self.parameters: dict[tuple[str, str], Parameter] = {}  # by (param_key, name)
        self.users: dict[tuple[str, str], Layer] = {}  # who made each
        self._held: dict[str, Layer] = {}  # by the full name of a parameter or state, as files have it
        self._needed: set[int] = set()
        self._batch: int | None = None
        self._former: dict[str, dict[str, np.ndarray]] = {}  # states of layers that are set up again

    @property
    def missing(self) -> list[int]:
        """Steps that are not set up."""
        return [i for i, state in enumerate(self.track.states) if state is None]

    def advance(self, given: Mapping[int, np.ndarray]) -> None:
        """Set up every step whose bottoms are known; `given`: arrays for wires. Where that fails, all stays as it
        was."""
        track = self.track
        before = [*track.states], [*track.blobs], {*self._needed}, self._batch
        names = {**self.parameters}, {**self.users}, {**self._held}
        try:
            if any(track.blobs[w] is None for w in given):
                self._begin_again(given)
            self._advance(given)
        except BaseException:
            track.states[:], track.blobs[:], self._needed, self._batch = before
            self.parameters, self.users, self._held = names
            raise

    def _begin_again(self, given: Mapping[int, np.ndarray]) -> None:
        """Forget what was set up without these arrays; data layers go on where they are, parameters and states are
        kept."""
        track: Any = self.track
        self._batch = next(iter(given.values())).shape[0]
        self._needed.clear()
        self._former = {state.layer.name: state.states for state in track.states if state is not None}
        for i, (step, state) in enumerate(zip(self.graph.steps, track.states)):
            goes_on = state is not None and isinstance(step.layer, DataLayer)
            for k, w in enumerate(step.tops):
                blob = state.blobs[k] if goes_on else None
                track.blobs[w] = blob and Blob.empty((self._batch, *blob.shape[1:]), blob.dtype)
            if not goes_on:
                track.states[i] = None
        for w, array in given.items():
            track.blobs[w] = Blob.empty(array.shape, array.dtype)

    def _advance(self, given: Mapping[int, np.ndarray]) -> None:
        blobs = self.track.blobs
        before = -1
        while len(self.missing) != before:  # again: who borrows may come before the owner
            before = len(self.missing)
            for i in self.missing:
                step = self.graph.steps[i]
                if step.layer.is_source and not self._source_is_known(i, given):
                    continue
                if all(blobs[w] is not None for w in step.bottoms) and self._lender_is_known(i):
                    self._setup(i)

    def _lender(self, i: int) -> int | None:
        """The step whose parameters step i borrows. TopologyError if there is none."""
        layer = self.graph.steps[i].layer
        if layer.borrows is None:
            return None
        key = getattr(layer, layer.borrows)
        for k, step in enumerate(self.graph.steps):
            if step.layer is not layer and key in (step.layer.name, getattr(step.layer, "param_key", None)):
                return k
        raise TopologyError(f"{titled(layer)} needs the parameters of layer or key {key!r}, which is not there")

    def _lender_is_known(self, i: int) -> bool:
        k = self._lender(i)
        if k is not None and i in self.graph.ancestors(self.graph.steps[k].bottoms, set()):
            lender, borrower = (titled(self.graph.steps[n].layer) for n in (k, i))
            raise TopologyError(f"{borrower} borrows parameters of {lender}, which itself reads what it makes")
        return k is None or self.track.states[k] is not None

    def _borrow(self, i: int, name: str) -> Parameter:
        """The parameter of that name of step i's lender."""
        k = self._lender(i)
        state = None if k is None else self.track.states[k]
        for p in () if state is None else state.parameters:
            if p.name == name:
                return p
        lender = "nobody" if k is None else titled(self.graph.steps[k].layer)
        raise TopologyError(f"{titled(self.graph.steps[i].layer)} borrows {name!r} of {lender}, which has none")

    def _source_is_known(self, i: int, given: Mapping[int, np.ndarray]) -> bool:
        """Whether a placeholder has its shapes: declared, or those of the arrays given."""
        step = self.graph.steps[i]
        shapes = getattr(step.layer, "placeholder_shapes", None)
        if shapes is None:
            return True
        return all(s is not None for s in shapes()) or all(w in given for w in step.tops)

    def _setup(self, i: int) -> None:
        step, track = self.graph.steps[i], self.track
        layer = step.layer
        _check_methods(layer)
        inputs = [track.blobs[w] for w in step.bottoms]
        own = step.in_place and not layer.is_builtin
        if own:  # what it writes into must not be its producer's output
            inputs = [Blob(b.to_array()) for b in inputs]
        diffs = [
            Blob.empty(b.shape, b.dtype) if w in self._needed else NullBlob() for w, b in zip(step.bottoms, inputs)
        ]
        try:
            state = setup_layer(self._backend_for(i), layer, inputs, diffs)
        except Exception as error:
            track.blame(i, "setup", error)
        if not isinstance(state, LayerState):
            raise TypeError(f"{titled(layer)}: setup returned {type(state).__name__}, not a LayerState")
        if own:
            state.own_inputs = inputs
            state.blobs = state.blobs or list(inputs)
        state.rng = Stream(self.seed, layer.name)
        former = self._former.get(layer.name, {})
        state.states |= {k: former[k] for k, a in state.states.items() if k in former and former[k].shape == a.shape}
        _check_made(layer, state, len(step.tops))
        self._hold(layer, state)
        self._share(layer, state)
        track.states[i] = state
        learns = any(not p.frozen for p in state.learned)
        if layer.is_source:
            self._complete_source(step.tops, state)
        for w, blob in zip(step.tops, state.blobs):
            track.blobs[w] = blob
            is_float = blob.dtype.kind == "f"
            if layer.can_do_bp and is_float and (learns or any(b in self._needed for b in step.bottoms)):
                self._needed.add(w)

    def _backend_for(self, i: int) -> Any:
        """The backend; for a layer that borrows, one that lends."""
        if self.graph.steps[i].layer.borrows is None:
            return self.backend
        dtype = getattr(self.backend, "dtype", np.dtype(np.float32))
        return Backend(dtype, borrow=lambda name: self._borrow(i, name))

    def _complete_source(self, tops: list[int], state: LayerState) -> None:
        """What a source alone cannot know: N, which all sources have in common, and the type of a
        placeholder."""
        if isinstance(state.layer, Input):
            for k, w in enumerate(tops):
                known = self.track.blobs[w]
                if known is not None:  # its array came first
                    state.blobs[k] = known
                    continue
                shape = state.blobs[k].shape if self._batch is None else (self._batch, *state.blobs[k].shape[1:])
                dtype = np.dtype(np.int64) if reads_as(self.graph, w) == "int" else state.blobs[k].dtype
                state.blobs[k] = Blob.empty(shape, dtype)
        elif state.layer.follows_batch and self._batch is not None:
            for blob in state.blobs:
                blob.resize((self._batch, *blob.shape[1:]))
        if self._batch is None and state.blobs:
            self._batch = state.blobs[0].shape[0]

    def _hold(self, layer: Layer, state: LayerState) -> None:
        """Note the names of what the layer holds. A name of two arrays would lose one of them in every file."""
        own = [p.name for p in state.parameters] + list(state.states)
        for name in own:
            if own.count(name) > 1:
                raise TopologyError(f"{titled(layer)} has two parameters or states called {name!r}")
            other = self._held.get(f"{layer.name}.{name}", layer)
            if other is not layer:
                raise TopologyError(
                    f"{titled(layer)} and {titled(other)} both have a parameter or state with the full name "
                    f"'{layer.name}.{name}'; give one of the layers another name"
                )
        self._held |= {f"{layer.name}.{name}": layer for name in own}

    def _share(self, layer: Layer, state: LayerState) -> None:
        """Parameters of one key are one object: that of the layer that came first."""
        for k, p in enumerate(state.parameters):
            key = getattr(p, "key", None) or (getattr(layer, "param_key", layer.name), p.name)
            known = self.parameters.get(key)
            if known is None:
                self.parameters[key], self.users[key] = p, layer
            elif known is not p:
                if known.shape != p.shape:
                    raise TopologyError(
                        f"{titled(layer)} and {titled(self.users[key])} share parameter {p.name!r} by "
                        f"the key {key[0]!r}, but need shapes {p.shape} and {known.shape}"
                    )
                state.parameters[k] = known

    def buffer(self, dtype: np.dtype) -> ParameterBuffer:
        """All parameters side by side. New ones are drawn, each layer's from its own stream; others keep
        their
        values."""
        values = {}
        for key, p in self.parameters.items():
            if p.is_bound:
                values[key] = p.data.copy()
            else:
                layer = self.users[key]
                try:
                    values[key] = p.init.draw(generator(self.seed, layer.name, "init", p.name), p.shape, dtype)
                except ValueError as error:
                    raise ValueError(f"{titled(layer)}, parameter {p.name!r}: {error}") from None
        buffer = ParameterBuffer(list(self.parameters.values()), dtype)
        for key, p in self.parameters.items():
            p.data[...] = values[key]
        return buffer


def _check_methods(layer: Layer) -> None:
    needed = ["setup", "forward"]
    needed += ["backward"] if layer.can_do_bp else []
    needed += ["dump_statistics", "reset_statistics"] if layer.has_stats else []
    for method in needed:
        if not implements(layer, method):
            why = " (it can_do_bp)" if method == "backward" else " (it has_stats)" if "stat" in method else ""
            raise TopologyError(f"{titled(layer)} has no method {method}, which it needs{why}")


def _check_made(layer: Layer, state: LayerState, tops: int) -> None:
    who = titled(layer)
    if layer.has_param and not state.learned:
        raise TopologyError(f"{who} has_param, but setup made no parameters")
    if state.parameters and not layer.has_param:
        raise TopologyError(f"{who} made parameters, but does not say has_param")
    if len(state.blobs) != tops:
        raise TopologyError(f"{who} has {tops} tops {list(layer.tops)}, but setup made {len(state.blobs)} blobs")
    if not all(isinstance(b, Blob) for b in state.blobs):
        raise TypeError(f"{who}: setup must make Blobs, got {state.blobs}")
    if state.owns_diffs and len(state.blobs_diff) != tops:
        raise TopologyError(f"{who} has {tops} tops, but setup made {len(state.blobs_diff)} blobs_diff")
