"""Which gradients a net computes: what needs one, what a loss or seed reaches, and what forbids it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from layerc.runtime.layer import LayerState
from layerc.runtime.parameters import Parameter
from layerc.runtime.topology import Graph, Step, TopologyError, titled


@dataclass(frozen=True)
class Plan:
    """steps: to be run, last first; needed: wires whose gradient is computed, in the order of the run."""

    steps: tuple[int, ...]
    needed: frozenset[int]


class Analysis:
    """The flow of gradients through a graph whose layers are set up.

    is_float: per wire; seeds: wires that a gradient is imposed on; force: float blobs need gradients too;
    wanted: wires that do anyhow.
    """

    def __init__(
        self,
        graph: Graph,
        states: Sequence[LayerState],
        is_float: Callable[[int], bool],
        *,
        seeds: Collection[int] = (),
        force: bool = False,
        wanted: Collection[int] = (),
    ) -> None:
        self.graph, self.states, self.is_float, self.seeds = graph, states, is_float, seeds
        # A wire is `felt` if a gradient can flow to it, `used` if a loss depends on it at all.
        self.felt: set[int] = set(seeds)
        self.used: set[int] = set(seeds)
        self.live: set[int] = set()  # steps that a gradient flows into
        self._is_checked = False
        self._walk_back()
        self.cause: dict[int, int] = {}  # needed wire -> the step whose parameters need it, or -1
        self._walk_forward(force, set(wanted))

    def _walk_back(self) -> None:
        for i in reversed(range(len(self.graph.steps))):
            step = self.graph.steps[i]
            layer = step.layer
            if self._matters(step):
                self.used.update(step.bottoms)
            if layer.can_do_bp and (layer.has_loss or any(w in self.felt for w in step.tops)):
                self.live.add(i)
                self.felt.update(w for w in step.bottoms if self.is_float(w))

    def _matters(self, step: Step) -> bool:
        """Whether a loss depends on what the step makes."""
        return step.layer.has_loss or any(w in self.used for w in step.tops)

    def _walk_forward(self, force: bool, wanted: set[int]) -> None:
        for i, step in enumerate(self.graph.steps):
            learns = self.learns(i)
            causes = [self.cause[w] for w in step.bottoms if w in self.cause]
            for w in step.tops:
                if not self.is_float(w):
                    continue
                if step.layer.can_do_bp and (learns or causes):
                    self.cause[w] = i if learns else max(causes)
                elif w in wanted or (force and w in self.felt):
                    self.cause[w] = -1

    def learns(self, i: int) -> bool:
        """Whether the step has parameters that are not frozen."""
        return any(not p.frozen for p in self.states[i].learned)

    @property
    def needed(self) -> frozenset[int]:
        return frozenset(self.cause)

    @cached_property
    def plan(self) -> Plan:
        """The steps of a backward pass."""
        steps = [
            i
            for i in reversed(range(len(self.graph.steps)))
            if i in self.live and (self.learns(i) or any(w in self.cause for w in self.graph.steps[i].bottoms))
        ]
        return Plan(tuple(steps), self.needed)

    def check(self) -> None:
        """TopologyError if there is nothing to differentiate, or a parameter whose gradient cannot be had."""
        if not self._is_checked:
            self._check()
            self._is_checked = True

    def _check(self) -> None:
        steps = self.graph.steps
        if not self.seeds and not any(s.layer.has_loss for s in steps):
            raise TopologyError("the net has no loss layer, and backward was given no seed")
        for i in range(len(steps)):
            self._check_blocked(i)  # first: it is the reason for what follows
        for i, step in enumerate(steps):
            if not self.learns(i):
                continue
            if not step.layer.can_do_bp:
                raise TopologyError(self._unlearnable(i))
            names = self._learned_names(i)
            if i not in self.live:
                blobs = ", ".join(repr(self.graph.wires[w].name) for w in step.tops)
                raise TopologyError(
                    f"no loss and no seed is reached from {titled(step.layer)}, hence none from its "
                    f"parameters {names}: nothing trains blob {blobs}; freeze the layer or take it out"
                )

    def _learned_names(self, i: int) -> str:
        return ", ".join(repr(p.name) for p in self.states[i].learned if not p.frozen)

    def _unlearnable(self, i: int) -> str:
        layer = self.graph.steps[i].layer
        return f"{titled(layer)} has parameters ({self._learned_names(i)}) but cannot do bp; freeze them"

    def _check_blocked(self, i: int) -> None:
        """A layer that cannot do bp must not stand between a parameter and a loss."""
        step = self.graph.steps[i]
        if step.layer.can_do_bp or not self._matters(step):
            return
        for w in step.bottoms:
            source = self.cause.get(w, -1)
            if source >= 0:
                raise TopologyError(
                    f"{titled(step.layer)} cannot do bp, but stands between the parameters of "
                    f"{titled(self.graph.steps[source].layer)} and a loss: it reads blob "
                    f"{self.graph.wires[w].name!r}"
                )

    def check_parameter(self, name: str, parameter: Parameter) -> None:
        """TopologyError if a layer that cannot do bp stands between this parameter and a loss, or is its own."""
        users = [i for i, state in enumerate(self.states) if any(p is parameter for p in state.learned)]
        for i in users:
            if not self.graph.steps[i].layer.can_do_bp and self._matters(self.graph.steps[i]):
                raise TopologyError(self._unlearnable(i))
        self.check_wires(f"parameter {name!r}", [w for i in users for w in self.graph.steps[i].tops])

    def check_wires(self, subject: str, wires: Collection[int]) -> None:
        """TopologyError if a layer that cannot do bp stands between these wires, those of `subject`, and a loss."""
        after = set(wires)
        for step in self.graph.steps:
            read = next((w for w in step.bottoms if w in after), None)
            if read is None or not self._matters(step):
                continue
            # A layer that can do bp passes the question on: if no gradient comes as far, one behind it is to blame.
            is_felt = step.layer.has_loss or any(w in self.used and self.is_float(w) for w in step.tops)
            if step.layer.can_do_bp and is_felt:
                after.update(step.tops)
            else:
                raise TopologyError(
                    f"{titled(step.layer)} cannot do bp, but stands between {subject} and a loss: it reads blob "
                    f"{self.graph.wires[read].name!r}"
                )
