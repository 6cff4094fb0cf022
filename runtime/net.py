"""`Net`: layers wired by the names of their blobs, run forwards and backwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from layerc.runtime import chain, copies, describe, draw, feeding, weights
from layerc.runtime.acceleration import checked
from layerc.runtime.backprop import Analysis
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.data import DataLayer
from layerc.runtime.execution import Track
from layerc.runtime.holdings import Holdings, read_statistics, reset_statistics
from layerc.runtime.layer import Backend, Layer
from layerc.runtime.net_arguments import check_coefficient, checked_layers, checked_seed, float_type
from layerc.runtime.parameters import Parameter, ParameterBuffer
from layerc.runtime.repeat import Repeats
from layerc.runtime.setup import Assembly
from layerc.runtime.shortcut import Shortcuts
from layerc.runtime.symbolic import number
from layerc.runtime.topology import TopologyError, analyse, titled
from layerc.runtime.workers import ALONE

Arrays = Mapping[str, Any]
_MOST_FLOWS = 8  # that are remembered


class Net(Holdings):
    """A net of layers.

    Net(name, layers, backend=None, seed=0, dtype=None, force_backward=False, acceleration="auto")

    seed: of everything random, each layer from its own stream (seed, layer name). dtype: float type;
    default that
    of the float data arrays, else float32. force_backward: gradients of inputs too. acceleration: "none" runs the
    layers as NumPy, forwards and backwards, for debugging.
    TopologyError for wiring mistakes; ValueError and TypeError for shapes and types, naming both ends.
    """

    def __init__(
        self,
        name: str,
        layers: Sequence[Layer],
        backend: Any = None,
        seed: int = 0,
        dtype: Any = None,
        force_backward: bool = False,
        acceleration: str = "auto",
    ) -> None:
        self.name, self.seed, self.force_backward = name, checked_seed(name, seed), force_backward
        if not isinstance(force_backward, bool | np.bool_):
            raise TypeError(f"net {name!r}: force_backward={force_backward!r} must be True or False")
        self.workers = ALONE
        self._closed = True  # until it stands
        listed = checked_layers(name, layers)
        self.dtype = float_type(listed, dtype)
        choice = checked(f"net {name!r}", acceleration)
        if not isinstance(backend, Backend | None):
            raise TypeError(f"net {name!r}: backend={backend!r} must be a Backend")
        self.backend = Backend(self.dtype, acceleration=choice) if backend is None else backend
        self.graph = analyse(listed)
        self._assembly = Assembly(self.graph, self.backend, self.seed)
        self.track: Track = self._assembly.track
        self.buffer = ParameterBuffer([], self.dtype)
        self._has_run = False
        self._shortcuts, self._repeats = Shortcuts(), Repeats()
        self._analysed: dict[tuple[Any, ...], Analysis] = {}
        self._linked: Analysis | None = None  # whose gradients the blobs show
        self._seeded: frozenset[int] = frozenset()  # wires that the last backward had seeds for
        self.pending: list[tuple[dict[str, np.ndarray], bool]] = []
        self._closed = False
        self.set_up({})

    @classmethod
    def chain(
        cls,
        name: str,
        layers: Sequence[Layer],
        data: Sequence[Any] | None = None,
        batch_size: int = 64,
        shuffle: bool = False,
        **net_keywords: Any,
    ) -> "Net":
        """The plain sequence: names and wires are made; a loss or statistic takes the last top and "label".

        data: [X, labels]; None: placeholders, whose shapes are found at the first call.
        """
        listed = checked_layers(name, layers)
        return cls(name, chain.wired(listed, data, batch_size, shuffle), **net_keywords)

    # -- setting up ----------------------------------------------------------------------------------------

    def set_up(self, given: Mapping[int, np.ndarray]) -> None:
        """Set up what can be; nothing if everything is. Then read the weights that waited for it."""
        before = len(self._assembly.missing)
        if before:
            self.track.check_batch(given)
            self._assembly.advance(given)
            if len(self._assembly.missing) < before:
                self.buffer = self._assembly.buffer(self.dtype)
                self._link_diffs()
        self._put_pending()

    def _put_pending(self) -> None:
        """Weights that do not fit stay, so that no call runs as if they had been read; another `load` replaces them."""
        while self.pending and self.knows_arrays:
            weights.put(self, *self.pending[0])
            self.pending.pop(0)

    def _link_diffs(self) -> None:
        """Show in each blob the gradient it has: an array where one is needed, else NullBlob."""
        if not self.is_set_up:
            return
        needed = self.analysis(self._seeded).needed
        for w in self.graph.last.values():
            blob = self.track.blobs[w]
            if w in needed:
                diff = self.track.diffs.get(w)
                if diff is None:
                    diff = self.track.diffs[w] = Blob.empty(blob.shape, blob.dtype)
                blob.diff = diff
            else:
                blob.diff = NullBlob()

    def analysis(self, seeds: Iterable[int] = (), wanted: Iterable[int] = ()) -> Analysis:
        """The flow of gradients; the same one for the same question."""
        frozen = tuple(p.frozen for p in self.buffer.parameters)
        floats = tuple(blob.dtype.kind == "f" for blob in self.track.blobs)  # a placeholder may take either
        key = (frozenset(seeds), frozenset(wanted), frozen, floats, self.force_backward, id(self.track))
        if key not in self._analysed:
            if len(self._analysed) >= _MOST_FLOWS:
                self._analysed.clear()
            self._analysed[key] = Analysis(
                self.graph,
                self.track.states,
                floats.__getitem__,
                seeds=key[0],
                force=self.force_backward,
                wanted=key[1],
            )
        return self._analysed[key]

    # -- forward and backward ------------------------------------------------------------------------------

    def forward(self, regu_coef: float = 0.0, data: Arrays | None = None, phase: str = "train") -> float:
        """Fetch the next batch (or take `data={blob: array}` for this call); returns the total loss.

        That is the sum of the losses, each with its weight, and `regu_coef` times the regularizers.
        """
        self._check_open()
        if phase not in ("train", "predict"):
            raise ValueError(f'phase={phase!r} must be "train" or "predict"')
        check_coefficient(regu_coef)
        given = feeding.for_forward(self, data)
        self.set_up(given)
        self._has_run = False
        if not self._repeats.forward(self, phase, given):
            self._linked = None
            self.track.forward(phase, given)
        self._has_run = True
        return self.objective(regu_coef, phase)

    def objective(self, regu_coef: float = 0.0, phase: str = "train") -> float:
        """The losses of the last forward, in phase train those of all workers, and `regu_coef` times the
        regularizers."""
        self._check_open()
        total = sum((number(s.loss) for s in self.track.states if s.layer.has_loss and s.loss is not None), 0.0)
        if phase == "train":
            total = self.workers.total(total)
        if regu_coef:
            total += regu_coef * sum(p.decay * p.regu.value(p.data) for p in self.buffer.parameters if p.decay)
        return total

    def backward(self, regu_coef: float = 0.0, seed: Arrays | None = None) -> None:
        """Gradients for the last forward, each from zero. `seed={blob: dy}` adds <dy, blob> to the objective.

        TopologyError where no loss or seed reaches an unfrozen parameter, or a layer in between cannot do bp.
        """
        self._check_ran()
        check_coefficient(regu_coef)
        seeds = feeding.seeds(self, seed)
        analysis = self.analysis(seeds)
        analysis.check()
        if seeds:
            self._repeats.settle()
        repeated = not seeds and self._repeats.backward(self, analysis)
        if not repeated:
            self.track.backward(analysis.plan, seeds, self.buffer)
        self._seeded = frozenset(seeds)
        self.workers.gradients(self)
        self._add_regularizers(regu_coef)
        if not repeated or self._linked is not analysis:
            self._link_diffs()
            self._linked = analysis

    def _check_ran(self) -> None:
        self._check_set_up()
        if not self._has_run:
            raise RuntimeError(f"net {self.name!r}: backward needs a forward before it")

    def _add_regularizers(self, regu_coef: float) -> None:
        if not regu_coef:
            return
        for p in self.buffer.parameters:
            if not p.frozen and p.decay:
                gradient = p.regu.gradient(p.data)
                if gradient is not None:
                    p.gradient[...] += (regu_coef * p.decay) * gradient

    def check_trainable(self) -> None:
        """TopologyError for what would keep `backward` from training this net."""
        self._check_set_up()
        self.analysis().check()

    def forward_backward(self, regu_coef: float = 0.0, seed: Arrays | None = None, data: Arrays | None = None) -> float:
        """Both; returns the loss. What would keep it from training is told before anything is run."""
        self._check_open()
        if self.is_set_up:
            self.analysis(feeding.seed_wires(self, seed)).check()
        loss = self.forward(regu_coef, data)
        self.backward(regu_coef, seed)
        return loss

    def forward_epoch(self) -> dict[str, float]:
        """Reset the statistics, run one epoch from its start in phase "predict", return `statistics()`.

        Each sample counts once; the positions of the data layers are afterwards what they were.
        """
        self._check_set_up()
        layers = [(s.layer, s) for s in self.track.states if isinstance(s.layer, DataLayer)]
        if not layers:
            raise ValueError(f"net {self.name!r} has no data layer, so there is no epoch to run")
        before = [(layer, state, layer.position(state)) for layer, state in layers]
        counts = [(state, state.rng.count) for state in self.track.states]
        self.reset_statistics()
        try:
            for layer, state in layers:
                layer.rewind(state)
                state.single_epoch = True
            start = self.epoch
            while self.epoch == start:
                self.forward(phase="predict")
        finally:
            for layer, state, position in before:
                layer.seek(state, position)
                state.single_epoch = False
            for state, count in counts:
                state.rng.count = count
        return self.statistics()

    # -- inference -----------------------------------------------------------------------------------------

    def predict(self, x: Any, top: str | None = None) -> np.ndarray:
        """What blob `top` is for the input `x`, an array or {blob: array}; a copy. Leaves no trace in the
        net.

        top: default bottom 0 of the first loss, without a loss the last blob that nothing reads.
        """
        self._check_open()
        wire = self._output(top)
        given = feeding.for_predict(self, x, wire)
        if self.is_set_up and not self.pending:
            made = self._shortcuts.predict(self, top, wire, given)
            if made is not None:
                return made
        steps = self.graph.ancestors([wire], set(given))
        self.set_up(given)
        if any(self.track.states[i] is None for i in steps):
            raise ValueError(f"net {self.name!r}: the inputs given do not tell the shape of blob {top!r}")
        track = self.track.fork(steps)
        for w, array in given.items():
            track.blobs[w] = Blob.empty(array.shape, array.dtype)
        track.forward("predict", given, steps)
        return track.blobs[wire].to_array()

    def __call__(self, x: Any, top: str | None = None) -> np.ndarray:
        """`predict`."""
        return self.predict(x, top)

    def _output(self, top: str | None) -> int:
        graph = self.graph
        if top is not None:
            return feeding.wire_of(self, top)
        for step in graph.steps:
            if step.layer.has_loss:
                return step.bottoms[0]
        unread = [w for w in graph.last.values() if not graph.wires[w].readers]
        if not unread:
            raise ValueError(f"net {self.name!r} makes no blob that could be its output; name one: top=")
        return max(unread, key=lambda w: (graph.wires[w].maker, graph.wires[w].top))

    def evaluate(self, data: Sequence[Any], batch_size: int | None = None) -> dict[str, float]:
        """The statistics of one pass over other data, an array for each top of the first data layer, in phase
        "predict". Leaves no trace in the net."""
        self._check_set_up()
        batches = feeding.batches(self, data, batch_size)
        track = self.track.fork()
        reset_statistics(track.states)
        for given in batches:
            track.forward("predict", given)
        return read_statistics(track.states)

    # -- gradients -----------------------------------------------------------------------------------------

    def gradient(self, name: str, seed: Arrays | None = None) -> np.ndarray:
        """Gradient for the last forward of a blob ("data") or a parameter ("ip1.weight"); a copy.

        It is computed anew, where bp was off too; other gradients stay as they were.
        """
        self._check_ran()
        seeds = feeding.seeds(self, seed)
        parameter = None if name in self.graph.last else self._parameter(name)
        self._repeats.settle()
        wires = [] if parameter else [w for w, wire in enumerate(self.graph.wires) if wire.name == name]
        if wires and self.track.blobs[wires[0]].dtype.kind != "f":
            raise TypeError(f"blob {name!r} holds integers; it has no gradient")
        with self._gradients_kept(), _thawed(parameter):
            analysis = self.analysis(seeds, [*seeds, *wires])
            if parameter is None:
                analysis.check_wires(f"blob {name!r}", wires)
            else:
                analysis.check_parameter(name, parameter)
            if not seeds and not any(s.layer.has_loss for s in self.graph.steps):
                raise TopologyError(f"net {self.name!r} has no loss layer; gradient({name!r}) needs a seed")
            self.track.backward(analysis.plan, seeds, self.buffer)
            if parameter is not None:
                return np.array(parameter.gradient)
            return self.track.diffs[self.graph.last[name]].to_array()

    @contextmanager
    def _gradients_kept(self) -> Iterator[None]:
        """Put every gradient back as it was."""
        flat, lent = self.buffer.gradient, [(p, p.gradient) for p in self.buffer.parameters]
        diffs = self.track.diffs
        own = [(s, list(s.blobs_diff), [b.to_array() if b else b for b in s.blobs_diff]) for s in self.track.states]
        self.buffer.gradient, self.track.diffs = np.zeros_like(flat), {}
        try:
            yield
        finally:
            self.buffer.gradient, self.track.diffs = flat, diffs
            for p, gradient in lent:
                p.lend_gradient(gradient)
            for state, blobs, values in own:
                state.blobs_diff = blobs
                for blob, value in zip(blobs, values):
                    if state.owns_diffs and isinstance(blob, Blob):
                        blob.data = value

    # -- files, texts, the end -----------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Parameters and states, to .safetensors (`layer.param`) or .h5 (`layer/param`)."""
        self._check_open()
        self._put_pending()
        weights.write(path, weights.collect(self))

    def load(self, path: Any, strict: bool = True) -> None:
        """Read them by name. ValueError naming all that is missing, unexpected or of another shape, and
        the net
        stays as it was; strict=False loads what fits. A net that knows no shapes yet does it at its first
        call."""
        self._check_open()
        tensors = weights.read(path)
        if self.knows_arrays:
            weights.put(self, tensors, strict)
            self.pending.clear()
        else:
            self.pending.append((tensors, strict))

    def info(self, prop: str | None = None) -> Any:
        """Wolfram's Information properties: one, or a dict of all."""
        self._check_set_up()
        return describe.info(self, prop)

    def memory(self) -> str:
        """The plan of the blobs' memory, and its bytes."""
        self._check_set_up()
        return describe.memory(self)

    def to_dot(self) -> str:
        self._check_open()
        return describe.to_dot(self)

    def to_mermaid(self) -> str:
        self._check_open()
        return describe.to_mermaid(self)

    def draw(self, path: Any) -> None:
        """A picture of the wiring, as .svg."""
        self._check_open()
        draw.draw(self, path)

    def to_onnx(self, path: Any, top: str | None = None) -> None:
        """Inference as an ONNX model: what `predict(x, top)` computes. Needs the package onnx.

        ValueError naming the layers that have no standard form, and nothing is written.
        """
        from layerc.runtime import onnx_export

        self._check_set_up()
        onnx_export.write(self, path, self._output(top))

    def __str__(self) -> str:
        self._check_open()
        return describe.table(self)

    def __repr__(self) -> str:
        return f"Net({self.name!r}, {len(self.layers)} layers)"

    def shutdown(self) -> None:
        """Shut down the layers; after that every call is a RuntimeError. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        for i, state in enumerate(self.track.states):
            if state is not None:
                try:
                    state.layer.shutdown(self.backend, state)
                except Exception as error:
                    self.track.blame(i, "shutdown", error)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of its own: see `copies`."""
        self._check_open()
        self._repeats.settle()
        keywords = {"backend": self.backend, "dtype": self.dtype}
        return copies.reduced(self, {**keywords, "seed": self.seed, "force_backward": self.force_backward})

    def __enter__(self) -> "Net":
        self._check_open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()


@contextmanager
def _thawed(parameter: Parameter | None) -> Iterator[None]:
    """A frozen parameter as if it were not."""
    if parameter is None or not parameter.frozen:
        yield
        return
    before = parameter.is_frozen_by_user, parameter.lr
    parameter.is_frozen_by_user, parameter.lr = False, 1.0
    try:
        yield
    finally:
        parameter.is_frozen_by_user, parameter.lr = before


__all__ = ["Net", "TopologyError", "titled"]
