"""From a net to a schedule: what `predict` and one step of training do, as operations on buffers.

A net is an object: its layers are Python that calls compiled functions. It is run once, through the very code that
trains it, on stand-ins for its arrays (`stand_in`), and what it does is written down (`tape`). As stand-ins have no
values, nothing of the record can depend on them; that nothing depends on the batch size but as a N + b is made
sure of by a second rehearsal with another size. What cannot be written down is an `Unrecordable` that names the layer.
"""

import copy
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from layerc.runtime import seeds
from layerc.runtime.blob import NullBlob
from layerc.runtime.data import DataLayer, Input
from layerc.runtime.execution import Track
from layerc.runtime.layer import LayerState
from layerc.runtime.net import Net
from layerc.runtime.parameters import Parameter, ParameterBuffer
from layerc.runtime.schedules import Draws, Function, Held, Port, Schedule
from layerc.runtime.solvers import Solver
from layerc.runtime.stand_in import StandIn, StandInBlob
from layerc.runtime.symbolic import Extent, Scalar, Unrecordable, as_scalar, choose
from layerc.runtime.tape import Buffer, Op, Tape, Trap, View, row_major
from layerc.runtime.topology import titled

Recorded = TypeVar("Recorded")
SIZES = (1009, 2003)  # batches of the two rehearsals: no extent of a net is likely to be one of them


def schedule(net: Net, solver: Solver | None = None, top: str | None = None) -> Schedule:
    """The schedule of a net. Unrecordable (naming layer and reason); ValueError, KeyError, TopologyError as the net."""
    if not net.is_set_up:
        raise Unrecordable(f"net {net.name!r} does not know its shapes: give its Input all sizes, or its data")
    if not any(step.layer.has_loss for step in net.graph.steps):
        solver = None
    made = [Rehearsal(net, n).schedule(solver, top) for n in SIZES]
    for one, other in ((made[0].predict, made[1].predict), (made[0].train, made[1].train)):
        if one is not None and other is not None:
            check_same(net, one, other)
    for function in filter(None, (made[0].predict, made[0].train)):
        learner = solver if function is made[0].train else None
        find_least(function, partial(_step, net, learner, top))
    return made[0]


def _step(net: Net, solver: Solver | None, top: str | None, n: int) -> Function:
    return Rehearsal(net, n).step(solver, top)


def check_same(net: Net, one: Function, other: Function) -> None:
    """Two batch sizes must give one record."""
    pairs = zip([*map(_told, one.ops), len(one.ops)], [*map(_told, other.ops), len(other.ops)])
    differ = next((k for k, (a, b) in enumerate(pairs) if a != b), None)
    if differ is not None:
        where = one.makers[min(differ, len(one.ops) - 1)] or f"net {net.name!r}"
        raise Unrecordable(f"{where}: it does not work alike for all batch sizes, or grows faster than the batch")


def _told(op: Op) -> str:
    """An operation as text, in which sizes say how they depend on the batch."""
    values = []
    for name, value in vars(op).items():
        views = value if isinstance(value, tuple) else (value,)
        told = [
            (v.buffer.kind, v.buffer.size, v.offset, v.shape, v.strides) if isinstance(v, View) else v for v in views
        ]
        values.append((name, told))
    return repr((type(op).__name__, values))


def find_least(function: Function, record: Callable[[int], Any]) -> None:
    """The smallest batch that the layers take: some refuse a single example in training. `record`: for a batch of n."""
    for n in (1, 2):
        try:
            record(n)
            return
        except Unrecordable:
            raise
        except ValueError as error:
            function.least, function.why = n + 1, str(error)


class Rehearsal:
    """A net on stand-ins, for a batch of n."""

    def __init__(self, net: Net, n: int) -> None:
        self.net, self.n = net, Extent(1, 0, n)
        self.held: list[Held] = []
        self.buffers: dict[str, tuple[int, np.dtype]] = {}
        self.left_out: list[str] = []

    def schedule(self, solver: Solver | None, top: str | None) -> Schedule:
        predict = self.step(None, top)
        train = None if solver is None else self.step(solver, top)
        steps = {d.root: d.each for d in train.draws} if train else {}
        for d in predict.draws:  # what predict draws changes nothing; training goes on
            d.each = steps.get(d.root, 0)
        name = "" if solver is None else repr(solver)
        held, kept = self.held, self.buffers
        return Schedule(self.net.name, self.net.dtype, held, kept, predict, train, name, self.left_out)

    def step(self, solver: Solver | None, top: str | None) -> Function:
        """`predict`, or one step of a solver."""
        return self.record(lambda twin: self._predict(twin, top) if solver is None else self._train(twin, solver))

    def record(self, run: Callable[["Twin"], Recorded]) -> Recorded:
        """What `run` does with the twin of the net, and gives."""
        self.tape = Tape()
        self.persistent: dict[str, View] = {}
        try:
            return run(self._twin())
        except Unrecordable as error:
            raise Unrecordable(f"{self.tape.where or 'the net'}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:  # what a stand-in has no answer to
            raise Unrecordable(
                f"{self.tape.where or 'the net'}: it does what C has not been taught: {error}"
            ) from error

    # -- the twin ------------------------------------------------------------------------------------------

    def _twin(self) -> "Twin":
        """The net with stand-ins for its parameters, gradients and states."""
        net = self.net
        self.held = []
        copies = {id(p): copy.copy(p) for p in net.buffer.parameters}
        data = self._keep("parameters", net.buffer.data.size, net.dtype)
        gradient = self._keep("gradients", net.buffer.data.size, net.dtype)
        buffer = _buffer(net.buffer, copies, data, gradient)
        for name, p in net.named_parameters().items():  # one that is shared has several names
            place = net.buffer.places[id(p)]
            self.held.append(Held(name, p.shape, net.dtype, "parameters", place.start))
        twin: Twin = object.__new__(Twin)
        vars(twin).update(vars(net))
        states = [self._state(state, copies) for state in net.track.states]
        twin.track = _Track(net.graph, net.backend, states, [], self.tape)
        twin.track.blobs = [StandInBlob(self.tape, blob.dtype) for blob in net.track.blobs]
        twin.buffer, twin._analysed, twin._seeded = buffer, {}, frozenset()
        self._keep_states(twin.track)
        return twin

    def _keep(self, name: str, size: int, dtype: Any) -> StandIn:
        """Memory that lives from call to call."""
        self.buffers[name] = (size, np.dtype(dtype))
        view = View(Buffer("kept", size, np.dtype(dtype), name), 0, (size,), (1,))
        self.persistent[name] = view
        return StandIn(self.tape, view)

    def _state(self, state: LayerState, copies: dict[int, Parameter]) -> LayerState:
        made = LayerState(state.layer)
        vars(made).update(vars(state))
        made.parameters = [copies[id(p)] for p in state.parameters]
        made.borrowed = [copies[id(p)] for p in state.borrowed]
        made.blobs = [StandInBlob(self.tape, b.dtype) for b in state.blobs]
        made.blobs_diff = []
        made.rng = _Stream(self, state)
        made.is_fork = True
        for value in list(vars(state).values()):  # a net inside of the layer
            if isinstance(value, Track):
                own = {id(p): copy.copy(p) for s in value.states for p in s.parameters}
                inner = _Track(value.graph, value.backend, [self._state(s, own) for s in value.states], [], self.tape)
                inner.blobs = [StandInBlob(self.tape, b.dtype) for b in value.blobs]
                gradient = StandIn(self.tape, self.tape.fresh((state.buffer.data.size,), state.buffer.data.dtype))
                made.track, made.inner = inner, [own[id(p)] for p in state.inner]
                made.buffer = _buffer(state.buffer, own, None, gradient)
        return made

    def _keep_states(self, track: Track) -> None:
        self.first: list[tuple[LayerState, dict[str, StandIn]]] = []
        for state, known in zip(track.states, self.net.track.states):
            arrays = {}
            for name, array in known.states.items():
                full = f"{state.layer.name}.{name}"
                arrays[name] = self._keep(full, array.size, array.dtype).reshape(array.shape)
                self.held.append(Held(full, array.shape, array.dtype, full, 0))
            state.states = cast(Any, dict(arrays))
            self.first.append((state, arrays))

    # -- the runs ------------------------------------------------------------------------------------------

    def _feed(self, twin: "Twin", wires: Sequence[int]) -> tuple[dict[int, Any], list[Port]]:
        """Stand-ins for tops of sources."""
        given, ports = {}, []
        for w in wires:
            blob, wire = self.net.track.blobs[w], self.net.graph.wires[w]
            source = self.net.graph.steps[wire.maker].layer
            if not isinstance(source, DataLayer | Input):
                raise Unrecordable(
                    f"{titled(source)} makes data of its own: feed blob {wire.name!r} by an Input instead"
                )
            shape = (self.n, *blob.shape[1:])
            ports.append(Port(wire.name, blob.shape[1:], blob.dtype))
            buffer = Buffer("input", _size(shape), blob.dtype, wire.name)
            given[w] = StandIn(self.tape, View(buffer, 0, shape, row_major(shape)))
            twin.track.blobs[w] = StandInBlob(self.tape, blob.dtype, given[w])
        return given, ports

    def _sources(self, steps: set[int]) -> list[int]:
        """Tops of sources that these steps read."""
        graph = self.net.graph
        read = {w for i in steps for w in graph.steps[i].bottoms}
        return [w for s in graph.steps if s.layer.is_source for w in s.tops if w in read]

    def towards_losses(self) -> set[int]:
        """The steps that a loss depends on."""
        graph = self.net.graph
        losses = [i for i, s in enumerate(graph.steps) if s.layer.has_loss]
        return graph.ancestors([w for i in losses for w in graph.steps[i].bottoms], set()) | set(losses)

    def feed_all(self, twin: "Twin", steps: set[int]) -> list[Port]:
        """Gives the twin stand-ins for what these steps read of sources: it runs the others of them."""
        twin.fed, ports = self._feed(twin, self._sources(steps))
        twin.steps = {i for i in steps if not self.net.graph.steps[i].layer.is_source}
        return ports

    def _predict(self, twin: "Twin", top: str | None) -> Function:
        wire = self.net._output(top)
        steps = self.net.graph.ancestors([wire], set())
        sources = self._sources(steps)
        given, ports = self._feed(twin, sources)
        if self.net.graph.steps[self.net.graph.wires[wire].maker].layer.is_source:
            raise Unrecordable(f"blob {self.net.graph.wires[wire].name!r} is an input: there is nothing to compute")
        computing = {i for i in steps if not self.net.graph.steps[i].layer.is_source}
        twin.track.forward("predict", given, computing)
        made: Any = twin.track.blobs[wire].data
        name = self.net.graph.wires[wire].name
        shape = (self.n, *made.shape[1:])
        target = View(Buffer("output", _size(shape), made.dtype, name), 0, shape, row_major(shape))
        self.tape.where = f"the output {name!r}"
        self.tape.copy(made.view, target)
        port = Port(name, tuple(shape[1:]), made.dtype)
        apart = all(self.net.graph.steps[i].layer.is_per_example for i in computing)
        draws = _drawing(twin)
        return Function(ports, [port], self.tape.ops, self.tape.makers, is_per_example=apart, draws=draws)

    def _train(self, twin: "Twin", solver: Solver) -> Function:
        graph = self.net.graph
        steps = self.towards_losses()
        self.left_out = [s.layer.name for i, s in enumerate(graph.steps) if i not in steps and not s.is_hidden]
        ports = self.feed_all(twin, steps)
        self.tape.where = f"solver {solver.kind}"
        learner = self._learner(twin, solver)
        twin.check_trainable()
        objective = learner.iterate(twin, learner.options["regu_coef"])
        learner._constrain(twin)
        self._store_states()
        result = as_scalar(objective).node
        return Function(ports, [], self.tape.ops, self.tape.makers, result=result, draws=_drawing(twin))

    def _learner(self, twin: "Twin", solver: Solver) -> Solver:
        """The solver, with the iteration as a number that is known later."""
        learner = copy.copy(solver)
        learner.state = copy.copy(solver.state)
        it: Any = Scalar("int", ("name", "iteration"))
        learner.state.iter = it
        size, dtype = self.net.buffer.data.size, self.net.dtype
        history: Any = {slot: self._keep(f"history {slot}", size, dtype) for slot in solver.slots}
        learner.history = history
        learner.updates = {id(p): it for p in twin.buffer.parameters}
        for key, name in (("lr", "learning_rate"), ("momentum", "momentum")):
            policy = getattr(solver, key)
            if policy is not None:
                setattr(learner, key, _or_given(policy, name))
        learner.check_objective = self._check_objective  # type: ignore[method-assign]
        for pattern_option, attribute in (("lr_factors", "lr"), ("decay_factors", "decay")):
            done: set[int] = set()
            for pattern, factor in solver.options[pattern_option]:
                for p in self.net.match(pattern):
                    if id(p) not in done:
                        done.add(id(p))
                        setattr(twin.copy_of(self.net.buffer, p), attribute, float(factor))
        return learner

    def _check_objective(self, objective: Any) -> None:
        self.tape.put(Trap(("isnan", as_scalar(objective).node), "nan", "the objective is NaN"))

    def _store_states(self) -> None:
        """New states take the place of the old at the end, when nothing can fail any more."""
        for state, before in self.first:
            for name, array in before.items():
                new: Any = state.states[name]
                if new is not array:
                    if new.shape != array.shape:
                        raise Unrecordable(f"{titled(state.layer)}: its state {name!r} has the size of the batch")
                    self.tape.copy(new.view, array.view)


class Twin(Net):
    """A net on stand-ins. `fed`: its inputs by wire; `steps`: those that are run."""

    fed: dict[int, Any]
    steps: set[int]

    def forward(self, regu_coef: float = 0.0, data: Any = None, phase: str = "train") -> Any:
        self.track.forward("train", self.fed, self.steps)
        self._has_run = True
        return self.objective(regu_coef)

    def objective(self, regu_coef: float = 0.0, phase: str = "train") -> Any:
        self.track.tape.where = "the objective"  # type: ignore[attr-defined]
        return super().objective(regu_coef, phase)

    def backward(self, regu_coef: float = 0.0, seed: Any = None) -> None:
        analysis = self.analysis()
        analysis.check()
        self.track.backward(analysis.plan, {}, self.buffer)
        self.track.tape.where = "the regularizers"  # type: ignore[attr-defined]
        self._add_regularizers(regu_coef)
        self.track.tape.where = "the solver"  # type: ignore[attr-defined]

    @property
    def is_set_up(self) -> bool:
        return True

    def copy_of(self, buffer: ParameterBuffer, p: Parameter) -> Parameter:
        return self.buffer.parameters[next(k for k, q in enumerate(buffer.parameters) if q is p)]


class _Track(Track):
    """Says on the tape which layer is at work."""

    def __init__(self, graph: Any, backend: Any, states: list[LayerState], blobs: list[Any], tape: Tape) -> None:
        super().__init__(graph, backend, states, blobs)
        self.tape = tape

    def run(self, i: int, phase: str, keep: Collection[int] = ()) -> None:
        self._enter(i)
        super().run(i, phase, keep)

    def _pull(self, i: int, *rest: Any) -> None:
        self._enter(i)
        super()._pull(i, *rest)

    def _enter(self, i: int) -> None:
        layer = self.graph.steps[i].layer
        self.tape.where = titled(getattr(layer, "owner", layer))
        if not layer.is_recordable:
            raise Unrecordable("it is written by hand in Python, which C cannot call; compile it with layerc")


class _Stream:
    """A layer's random stream in a rehearsal: seeds that follow from the iteration."""

    def __init__(self, rehearsal: Rehearsal, state: LayerState) -> None:
        rng = state.rng
        self.draws = Draws(seeds.root(rng.seed, rng.name), rng.count)

    def next(self) -> Any:
        raise Unrecordable("it draws random numbers with NumPy, of which C has no twin")

    @property
    def count(self) -> int:
        raise Unrecordable("it goes back to an earlier iteration, which C cannot")

    def next_seed(self) -> Scalar:
        self.draws.each += 1
        return Scalar("int", ("seed", self.draws, self.draws.each))


def _drawing(twin: Twin) -> list[Draws]:
    return [s.rng.draws for s in twin.track.states if s.rng.draws.each]


def _or_given(policy: Any, name: str) -> Any:
    """The policy, or what the caller of the C function has set instead."""

    def rate(it: Any) -> Any:
        given = Scalar("float", ("name", name))
        return choose(Scalar("bool", ("isnan", given.node)), lambda: policy(it), lambda: given)

    return rate


def _buffer(known: ParameterBuffer, copies: dict[int, Parameter], data: Any, gradient: Any) -> ParameterBuffer:
    """A net's buffer with other parameters and arrays."""
    made: ParameterBuffer = object.__new__(ParameterBuffer)
    made.parameters = [copies[id(p)] for p in known.parameters]
    made.places = {id(copies[id(p)]): known.places[id(p)] for p in known.parameters}
    made.data, made.gradient = data, gradient
    for p in made.parameters:
        p._gradient = NullBlob()
        if data is not None:
            p._data = made.of(data, p)
    return made


def _size(shape: Sequence[int]) -> int:
    size: int = 1
    for n in shape:
        size = n * size
    return size


__all__ = ["Rehearsal", "Twin", "check_same", "find_least", "schedule"]
