"""Running the steps of a net forwards and backwards over one set of layer states.

The net trains on one `Track`; inference and validation run on forks of it, so that they leave no trace.
"""

import copy
from collections.abc import Collection, Mapping
from numbers import Number
from typing import Any, NoReturn

import numpy as np

from layerc.runtime.acceleration import accelerated
from layerc.runtime.backprop import Plan
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.layer import BadInput, BadLabel, BadType, Layer, LayerState
from layerc.runtime.parameters import Parameter, ParameterBuffer
from layerc.runtime.topology import Graph, Step, TopologyError, titled

_NOTHING = NullBlob()


class Track:
    """States and blobs of a net. `blobs[w]` holds wire w, `diffs[w]` its gradient."""

    def __init__(self, graph: Graph, backend: Any, states: list[LayerState], blobs: list[Blob]) -> None:
        self.graph, self.backend, self.states, self.blobs = graph, backend, states, blobs
        self.diffs: dict[int, Blob] = {}

    def fork(self, steps: Collection[int] | None = None) -> "Track":
        """A track whose runs leave this one as it is; parameters are the same objects.

        steps: the only ones that will be run.
        """
        states = list(self.states)
        blobs = [b and Blob.empty((0,) * b.data.ndim, b.dtype) for b in self.blobs]
        for i in range(len(states)) if steps is None else steps:
            states[i] = fork_state(self.states[i])
            for w, blob in zip(self.graph.steps[i].tops, states[i].blobs):
                blobs[w] = blob
        return Track(self.graph, self.backend, states, blobs)

    # -- forward -------------------------------------------------------------------------------------------

    def forward(self, phase: str, given: Mapping[int, np.ndarray], steps: Collection[int] | None = None) -> None:
        """Run the steps (default: all) in order. Wires in `given` are not made but set to these arrays."""
        self.check_batch(given)
        for w, array in given.items():
            self.put(w, array)
        batch = next((array.shape[0] for array in given.values()), None)
        fed = {self.graph.wires[w].maker for w in given}
        with accelerated(getattr(self.backend, "acceleration", "auto")):
            for i, step in enumerate(self.graph.steps):
                if (steps is not None and i not in steps) or (i in fed and self._is_given(step, given)):
                    continue
                self.states[i].batch_size = batch
                self.run(i, phase, keep=given)
                if step.layer.is_source and batch is None and step.tops:
                    batch = self.blobs[step.tops[0]].shape[0]

    def put(self, w: int, array: np.ndarray) -> None:
        """Sets what the caller makes."""
        if self.blobs[w].dtype != array.dtype:
            self.blobs[w] = Blob.empty(array.shape, array.dtype)
        self.blobs[w].data = array

    def _is_given(self, step: Step, given: Collection[int]) -> bool:
        """Whether the caller gave all that is read of what the step makes."""
        return any(w in given for w in step.tops) and all(
            w in given or not self.graph.wires[w].readers for w in step.tops
        )

    def run(self, i: int, phase: str, keep: Collection[int] = ()) -> None:
        """Run one step."""
        step, state = self.graph.steps[i], self.states[i]
        layer = step.layer
        state.phase = phase
        state.loss = None
        inputs = self.inputs(i)
        try:
            layer.forward(self.backend, state, inputs)
        except Exception as error:
            self.blame(i, "forward", error)
        if layer.has_loss and not isinstance(state.loss, Number):
            raise TopologyError(f"{titled(layer)} has_loss, but forward set no state.loss (it is {state.loss!r})")
        if len(state.blobs) != len(step.tops):
            raise TopologyError(f"{titled(layer)} has {len(step.tops)} tops, but {len(state.blobs)} blobs")
        for w, blob in zip(step.tops, state.blobs):
            if w not in keep:
                self.blobs[w] = blob

    def inputs(self, i: int) -> list[Blob]:
        """The bottoms as the layer sees them: in place, a layer by hand gets a copy that it may write
        into."""
        step, state = self.graph.steps[i], self.states[i]
        inputs = [self.blobs[w] for w in step.bottoms]
        if step.in_place and not step.layer.is_builtin:
            for own, blob in zip(state.own_inputs, inputs):
                own.data = blob.data
            return state.own_inputs
        return inputs

    def check_batch(self, given: Mapping[int, np.ndarray]) -> None:
        first: tuple[str, int] | None = None
        for w, array in given.items():
            name = self.graph.wires[w].name
            first = first or (name, array.shape[0])
            if array.shape[0] != first[1]:
                raise ValueError(f"blob {name!r} has {array.shape[0]} examples, but blob {first[0]!r} has {first[1]}")

    # -- backward ------------------------------------------------------------------------------------------

    def backward(self, plan: Plan, seeds: Mapping[int, np.ndarray], buffer: ParameterBuffer) -> None:
        """Run the plan. Gradients of wires go to `diffs`, those of parameters to `buffer.gradient`."""
        diffs = _Sums(self.diffs, self.blobs)
        buffer.gradient.fill(0)
        for p in buffer.parameters:
            p.lend_gradient(NullBlob() if p.frozen else buffer.of(buffer.gradient, p))
        for w, dy in seeds.items():
            if w in plan.needed:
                diffs.add(w, dy)
        touched: set[int] = set()
        with accelerated(getattr(self.backend, "acceleration", "auto")):
            for i in plan.steps:
                self._pull(i, plan, diffs, touched)
        for w in plan.needed:
            diffs.complete(w)

    def _pull(self, i: int, plan: Plan, diffs: "_Sums", touched: set[int]) -> None:
        """The backward of one step."""
        step, state = self.graph.steps[i], self.states[i]
        layer = step.layer
        needed, is_builtin = plan.needed, layer.is_builtin
        tops = [diffs.complete(w) if w in needed else _NOTHING for w in step.tops]
        if state.owns_diffs:
            for own, top in zip(state.blobs_diff, tops):
                if isinstance(own, Blob) and isinstance(top, Blob):
                    own.data = top.data
        else:
            state.blobs_diff = tops
        targets: list[Any] = []
        for w in step.bottoms:
            targets.append(diffs.target(w, targets, not is_builtin) if w in needed else _NOTHING)
        if step.in_place and not is_builtin:  # it may change the top's gradient into the bottom's
            for target, top in zip(targets, tops):
                if isinstance(target, Blob) and isinstance(top, Blob):
                    target.data = top.data
        inputs = state.own_inputs if step.in_place and not is_builtin else [self.blobs[w] for w in step.bottoms]
        lent = _lend_own(state.learned, touched, is_builtin)
        try:
            layer.backward(self.backend, state, inputs, targets)
        except Exception as error:
            self.blame(i, "backward", error)
        finally:
            _take_own(lent)
        for w, target in zip(step.bottoms, targets):
            if target is not _NOTHING:
                if target.shape != self.blobs[w].shape:
                    raise ValueError(
                        f"{titled(layer)}: backward gave blob {self.graph.wires[w].name!r} a gradient "
                        f"of shape {target.shape}, but the blob has {self.blobs[w].shape}"
                    )
                diffs.settle(w, target)

    # -- errors --------------------------------------------------------------------------------------------

    def blame(self, i: int, doing: str, error: Exception) -> NoReturn:
        """Raise the error of a layer, saying which layer it was; about bottoms, also who made them."""
        layer = self.graph.steps[i].layer
        for kind, told in ((BadInput, ValueError), (BadType, TypeError), (BadLabel, IndexError)):
            if isinstance(error, kind):
                raise told(self._both_ends(i, error)) from None
        note = f"in {titled(getattr(layer, 'owner', layer))}, {doing}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise error

    def _both_ends(self, i: int, error: Exception) -> str:
        step = self.graph.steps[i]
        owner: Layer = getattr(step.layer, "owner", step.layer)
        ends = []
        for w in dict.fromkeys(step.bottoms):
            blob, name = self.blobs[w], self.graph.wires[w].name
            ends.append(f"blob {name!r} {blob.shape} {blob.dtype}, made by {titled(self.graph.maker(w))}")
        return f"{titled(owner)} cannot take {'; '.join(ends)}: {error}"


class _Sums:
    """The gradients of a pass: each wire's is the sum of what its consumers (and a seed) give."""

    def __init__(self, diffs: dict[int, Blob], blobs: list[Blob]) -> None:
        self.diffs, self.blobs = diffs, blobs
        self.begun: set[int] = set()

    def blob(self, w: int) -> Blob:
        shape, dtype = self.blobs[w].shape, self.blobs[w].dtype
        blob = self.diffs.get(w)
        if blob is None or blob.dtype != dtype:
            blob = self.diffs[w] = self.blobs[w].fresh(shape)
        if blob.shape != shape:
            blob.resize(shape)
        return blob

    def target(self, w: int, taken: list[Any], clean: bool) -> Blob:
        """Where a consumer writes: the gradient itself if it is the first, else a scratch blob."""
        if w in self.begun:
            return self.diffs[w].fresh(self.diffs[w].shape)
        blob = self.blob(w)
        if taken and any(blob is t for t in taken):
            return blob.fresh(blob.shape)
        if clean:
            blob.fill(0)
        return blob

    def settle(self, w: int, target: Blob) -> None:
        """Take what a consumer wrote to its target."""
        if target is not self.diffs[w]:
            self.add(w, target.data)
        self.begun.add(w)

    def add(self, w: int, dy: np.ndarray) -> None:
        if w in self.begun:
            self.diffs[w].data += dy
        else:
            self.blob(w).data = dy
            self.begun.add(w)

    def complete(self, w: int) -> Blob:
        """The sum; zeros where nobody gave anything."""
        if w not in self.begun:
            self.blob(w).fill(0)
            self.begun.add(w)
        return self.diffs[w]


def _lend_own(parameters: list[Parameter], touched: set[int], builtin: bool) -> list[tuple[Parameter, Any]]:
    """While a layer runs, each of its gradients starts from zero; then it is added to what others that share
    the parameter gave. A layer by hand may also write the gradient of a frozen parameter: it is dropped."""
    lent: list[tuple[Parameter, Any]] = []
    for p in parameters:
        if (p.frozen and not builtin) or (not p.frozen and id(p) in touched):
            lent.append((p, p.lend_gradient(np.zeros_like(p.data))))
        touched.add(id(p))
    return lent


def _take_own(lent: list[tuple[Parameter, Any]]) -> None:
    for p, before in lent:
        given = p.lend_gradient(before)
        if not p.frozen:
            before += given


def fork_state(state: LayerState) -> LayerState:
    """A copy of a state that may be run without touching this one.

    Built-in layers only ever assign attributes, so a shallow copy will do; others may change what they hold.
    """
    fork = LayerState(state.layer)
    vars(fork).update(vars(state))
    fork.blobs_diff = []
    fork.is_fork = True
    if state.layer.is_builtin:
        fork.blobs = [Blob.empty((0,) * b.data.ndim, b.dtype) for b in state.blobs]
        for key, value in vars(state).items():
            if isinstance(value, Track):  # a net inside of the layer
                setattr(fork, key, value.fork())
        fork.rng = copy.copy(state.rng)
        return fork
    shared = [state.layer, *state.parameters]
    memo: dict[int, Any] = {id(x): x for x in shared}
    for key, value in vars(state).items():
        if key in ("layer", "parameters", "blobs_diff", "workers"):
            continue
        try:
            setattr(fork, key, copy.deepcopy(value, memo))
        except Exception:  # what cannot be copied (a file, a lock) stays the same object
            setattr(fork, key, value)
    return fork
