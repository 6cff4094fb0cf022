"""How a net is wired: which layer makes, reads or changes which blob, in what order; and what is wrong
about it.

A blob that is changed in place has several versions; each version is a `Wire`, made once. After that
nothing need
be known of in-place layers: wires and steps are a plain graph.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from layerc.runtime.activation import Activation
from layerc.runtime.layer import Layer
from layerc.runtime.neurons import Identity


class TopologyError(ValueError):
    """A wiring mistake; the message names the layers and blobs."""


@dataclass
class Wire:
    """One version of a blob. `maker`, `readers`: indices of steps."""

    name: str
    maker: int
    top: int
    readers: list[int] = field(default_factory=list)


@dataclass
class Step:
    """One layer in running order. `bottoms`, `tops`: indices of wires."""

    layer: Layer
    bottoms: list[int]
    tops: list[int] = field(default_factory=list)
    in_place: bool = False

    @property
    def is_hidden(self) -> bool:
        """The neuron of another layer."""
        return isinstance(self.layer, Activation)


@dataclass
class Graph:
    """Steps in running order and their wires; `last` is the wire of each blob's final version."""

    steps: list[Step]
    wires: list[Wire]
    last: dict[str, int]

    def maker(self, wire: int) -> Layer:
        """The layer that made it, as the user knows it: for a neuron, its owner."""
        step = self.steps[self.wires[wire].maker]
        return step.layer.owner if isinstance(step.layer, Activation) else step.layer

    def ancestors(self, wires: Sequence[int], given: set[int]) -> set[int]:
        """The steps that must run to make these wires, where those in `given` are there already."""
        needed: set[int] = set()
        todo = [w for w in wires if w not in given]
        while todo:
            step = self.wires[todo.pop()].maker
            if step not in needed:
                needed.add(step)
                todo += [w for w in self.steps[step].bottoms if w not in given]
        return needed


def titled(layer: Layer) -> str:
    """How messages call a layer."""
    return f"layer {layer.name!r} ({type(layer).__name__})"


def analyse(layers: Sequence[Layer]) -> Graph:
    """Check the wiring of these layers and sort them. TopologyError for every mistake."""
    _check_names(layers)
    for layer in layers:
        _check_ports(layer)
    makers = _makers(layers)
    _check_bottoms(layers, makers)
    _check_in_place(layers)
    return _sorted(*_wired(layers, makers))


def is_in_place(layer: Layer) -> bool:
    return layer.is_inplace and layer.tops in ((), layer.bottoms)


def _check_names(layers: Sequence[Layer]) -> None:
    seen: dict[str, Layer] = {}
    for layer in layers:
        if layer.name in seen:
            raise TopologyError(
                f"two layers are called {layer.name!r}: a {type(seen[layer.name]).__name__} and a "
                f"{type(layer).__name__}; give one another name="
            )
        seen[layer.name] = layer


def _check_ports(layer: Layer) -> None:
    """Numbers of bottoms and tops."""
    who = titled(layer)
    if layer.is_source and layer.bottoms:
        raise TopologyError(f"{who} is a source and cannot have bottoms {list(layer.bottoms)}")
    if layer.is_sink and layer.tops:
        raise TopologyError(f"{who} is a sink and cannot have tops {list(layer.tops)}")
    if not layer.is_source:
        low, high = layer.bottom_counts
        count = len(layer.bottoms)
        if count < low or (high is not None and count > high):
            wanted = str(low) if low == high else f"{low} or more" if high is None else f"{low} to {high}"
            raise TopologyError(f"{who} takes {wanted} bottoms, got {list(layer.bottoms)}")
        if not layer.bottoms:
            raise TopologyError(f"{who} has no bottoms and is no source")
    if is_in_place(layer):
        if len(set(layer.bottoms)) != len(layer.bottoms):
            raise TopologyError(f"{who} changes a blob in place twice: {list(layer.bottoms)}")
        return
    wanted_tops = len(layer.bottoms) if layer.is_multi else layer.top_count
    if wanted_tops is not None and not layer.is_sink and len(layer.tops) != wanted_tops:
        raise TopologyError(
            f"{who} makes {wanted_tops} tops of bottoms {list(layer.bottoms)}, got tops {list(layer.tops)}"
        )


def _makers(layers: Sequence[Layer]) -> dict[str, int]:
    makers: dict[str, int] = {}
    for i, layer in enumerate(layers):
        for top in () if is_in_place(layer) else layer.tops:
            if top in makers:
                other = layers[makers[top]]
                twice = "twice" if other is layer else f"by {titled(other)} and"
                raise TopologyError(f"blob {top!r} is made {twice} by {titled(layer)}")
            makers[top] = i
    return makers


def _check_bottoms(layers: Sequence[Layer], makers: dict[str, int]) -> None:
    for layer in layers:
        for bottom in layer.bottoms:
            if bottom not in makers:
                known = ", ".join(sorted(makers)) or "none"
                raise TopologyError(f"{titled(layer)} reads blob {bottom!r}, which no layer makes; blobs: {known}")


def _check_in_place(layers: Sequence[Layer]) -> None:
    """Who changes a blob in place does so after all who read the old values."""
    for i, changer in enumerate(layers):
        if not is_in_place(changer):
            continue
        for reader in layers[:i]:
            both = set(reader.bottoms) & set(changer.bottoms)
            if both and not is_in_place(reader):
                raise TopologyError(
                    f"{titled(changer)} changes blob {min(both)!r} in place, but {titled(reader)}, listed "
                    "before it, reads it: list the reader after it, or give the changing layer its own tops"
                )


def _wired(layers: Sequence[Layer], makers: dict[str, int]) -> tuple[list[Step], list[Wire], dict[str, int]]:
    """Steps in the order of the list, neurons right after their layers."""
    steps: list[Step] = []
    wires: list[Wire] = []
    last: dict[str, int] = {}

    def make(name: str, step: int, top: int) -> int:
        wires.append(Wire(name, step, top))
        last[name] = len(wires) - 1
        return last[name]

    def add_neurons(owner: Layer, step: Step) -> None:
        neuron = getattr(owner, "neuron", Identity())
        if not owner.has_neuron or isinstance(neuron, Identity):
            return
        for wire in step.tops:
            hidden = Step(Activation(owner, wires[wire].name), [wire], in_place=True)
            steps.append(hidden)
            hidden.tops = [make(wires[wire].name, len(steps) - 1, 0)]

    # First everything that makes blobs, then the in-place layers in the order of the list, so that each sees
    # the version before it; at last the readers, who see the final one.
    own: dict[int, Step] = {}
    for i, layer in enumerate(layers):
        if not is_in_place(layer):
            own[i] = Step(layer, [])
            steps.append(own[i])
            own[i].tops = [make(top, len(steps) - 1, k) for k, top in enumerate(layer.tops)]
            add_neurons(layer, own[i])
    for layer in layers:
        if is_in_place(layer):
            step = Step(layer, [last[b] for b in layer.bottoms], in_place=True)
            steps.append(step)
            step.tops = [make(b, len(steps) - 1, k) for k, b in enumerate(layer.bottoms)]
            add_neurons(layer, step)
    for i, step in own.items():
        step.bottoms = [last[b] for b in layers[i].bottoms]
    for i, step in enumerate(steps):
        for wire in dict.fromkeys(step.bottoms):
            wires[wire].readers.append(i)
    return steps, wires, last


def _sorted(steps: list[Step], wires: list[Wire], last: dict[str, int]) -> Graph:
    """Kahn's algorithm; of the steps that could run next, sources first, then the order of the list."""
    rank = [(not s.layer.is_source, s.layer.is_source and s.layer.follows_batch, i) for i, s in enumerate(steps)]
    waits = [len(set(step.bottoms)) for step in steps]
    ready = [rank[i] for i, count in enumerate(waits) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)[-1]
        order.append(i)
        for wire in steps[i].tops:
            for reader in wires[wire].readers:
                waits[reader] -= 1
                if waits[reader] == 0:
                    heapq.heappush(ready, rank[reader])
    if len(order) < len(steps):
        raise TopologyError(_describe_cycle(steps, wires, set(range(len(steps))) - set(order)))
    place = {old: new for new, old in enumerate(order)}
    for one in wires:
        one.maker = place[one.maker]
        one.readers = sorted(place[r] for r in one.readers)
    return Graph([steps[i] for i in order], wires, last)


def _describe_cycle(steps: list[Step], wires: list[Wire], stuck: set[int]) -> str:
    """Follow bottoms backwards among the steps that could not run, until one comes again."""
    path: list[int] = []
    i = min(stuck)
    while i not in path:
        path.append(i)
        i = next(wires[w].maker for w in steps[i].bottoms if wires[w].maker in stuck)
    cycle = [steps[k] for k in reversed(path[path.index(i) :]) if not steps[k].is_hidden]
    links = []
    for one, following in zip(cycle, [*cycle[1:], cycle[0]]):
        blob = next(t for t in (one.layer.tops or one.layer.bottoms) if t in following.layer.bottoms)
        links.append(f"{titled(one.layer)} makes {blob!r} for {titled(following.layer)}")
    return "the layers form a cycle: " + ", ".join(links)
