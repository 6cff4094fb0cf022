"""What a net holds: layers, states, blobs, parameters, statistics, each by name."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from layerc.runtime.activation import Activation
from layerc.runtime.blob import Blob, NullBlob
from layerc.runtime.execution import Track
from layerc.runtime.layer import Layer, LayerState
from layerc.runtime.parameters import Parameter, ParameterBuffer
from layerc.runtime.setup import Assembly
from layerc.runtime.topology import Graph


class Named(dict[str, Any]):
    """A dictionary whose KeyError says what there is."""

    def __init__(self, what: str, items: Iterable[tuple[str, Any]]) -> None:
        super().__init__(items)
        self.what = what

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError(f"a {self.what} cannot be replaced: [{key!r}].data[...] = v sets the values of its array")

    def __missing__(self, key: str) -> Any:
        raise KeyError(f"no {self.what} {key!r}; there is {', '.join(map(repr, self)) or 'none'}")


class Holdings:
    """The part of `Net` that looks things up and sets them."""

    name: str
    graph: Graph
    track: Track
    buffer: ParameterBuffer
    _assembly: Assembly
    _repeats: Any
    _closed: bool

    @property
    def is_set_up(self) -> bool:
        """False while the shape of an `Input` is not known."""
        return not self._assembly.missing

    @property
    def knows_arrays(self) -> bool:
        """Whether every layer that may hold parameters or states is set up."""
        return not any(_may_hold_arrays(self.graph.steps[i].layer) for i in self._assembly.missing)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"net {self.name!r} is shut down")

    def _check_set_up(self) -> None:
        self._check_open()
        if not self.is_set_up:
            raise RuntimeError(f"net {self.name!r} learns its shapes at its first call; there has been none yet")
        self._put_pending()

    def _put_pending(self) -> None:
        raise NotImplementedError

    def _link_diffs(self) -> None:
        raise NotImplementedError

    # -- what it holds -------------------------------------------------------------------------------------

    @property
    def layers(self) -> list[Layer]:
        """In running order."""
        return [step.layer for step in self.graph.steps if not step.is_hidden]

    @property
    def layer_states(self) -> dict[str, LayerState]:
        self._check_arrays()
        self._repeats.settle()
        return Named("layer", [(s.layer.name, s) for s in self._states if not isinstance(s.layer, Activation)])

    @property
    def blobs(self) -> dict[str, Blob]:
        """Each blob in its last version."""
        self._check_arrays()
        blobs = [(name, self.track.blobs[w]) for name, w in self.graph.last.items()]
        return Named("blob", [(name, blob) for name, blob in blobs if blob is not None])

    @property
    def params(self) -> dict[str, dict[str, Parameter]]:
        self._check_arrays()
        pairs = [
            (s.layer.name, Named(f"parameter of layer {s.layer.name!r}", [(p.name, p) for p in s.parameters]))
            for s in self._states
            if s.parameters
        ]
        return Named("layer with parameters", pairs)

    @property
    def states(self) -> dict[str, dict[str, np.ndarray]]:
        self._check_arrays()
        return Named("layer with states", [(s.layer.name, s.states) for s in self._states if s.states])

    @property
    def _states(self) -> list[LayerState]:
        """Of the steps that are set up."""
        return [s for s in self.track.states if s is not None]

    def _check_arrays(self) -> None:
        self._check_open()
        if not self.knows_arrays:
            raise RuntimeError(f"net {self.name!r} learns its shapes at its first call; there has been none yet")

    def reset_states(self) -> None:
        """Every state as it was at first."""
        self._check_set_up()
        for state in self.track.states:
            reset = getattr(state.layer, "reset_states", None)
            if state.states and reset is not None:
                reset(state)

    @property
    def epoch(self) -> int:
        """Epochs completed by the first data layer."""
        for layer, state in zip((s.layer for s in self.graph.steps), self.track.states):
            if layer.is_source and hasattr(state, "epoch"):
                return int(state.epoch)
        return 0

    # -- parameters ----------------------------------------------------------------------------------------

    def named_parameters(self) -> dict[str, Parameter]:
        """{"layer.param": Parameter}; one that is shared, under each of its names."""
        return {f"{layer}.{name}": p for layer, ps in self.params.items() for name, p in ps.items()}

    def _parameter(self, name: str) -> Parameter:
        known = self.named_parameters()
        if name not in known:
            have = ", ".join(map(repr, [*self.graph.last, *known]))
            raise KeyError(f"no blob or parameter {name!r}; there is {have}")
        return known[name]

    def match(self, pattern: str) -> list[Parameter]:
        """Parameters whose layer, or `layer.param`, the pattern matches; ValueError if there are none."""
        if not isinstance(pattern, str):
            raise TypeError(f"a pattern of parameters is a text, not {pattern!r}")
        found = {
            id(p): p
            for name, p in self.named_parameters().items()
            if fnmatchcase(name, pattern) or fnmatchcase(name[: -len(p.name) - 1], pattern)
        }
        if not found:
            raise ValueError(f"pattern {pattern!r} matches no layer with parameters and no parameter")
        return list(found.values())

    def freeze(self, *patterns: str) -> None:
        """No gradient and no update for what matches (`fnmatch` on `layer` or `layer.param`)."""
        self._set_frozen(patterns, True)

    def unfreeze(self, *patterns: str) -> None:
        """The reverse."""
        self._set_frozen(patterns, False)

    def refresh(self) -> None:
        """Take note of what was changed in parameters: which are frozen, hence which gradients are needed."""
        self._check_open()
        for p in self.buffer.parameters:
            if p.frozen:
                p.lend_gradient(NullBlob())
        self._link_diffs()

    def _set_frozen(self, patterns: Sequence[str], frozen: bool) -> None:
        self._check_set_up()
        for p in [p for found in [self.match(pattern) for pattern in patterns] for p in found]:
            p.is_frozen_by_user = frozen
        self.refresh()

    def set_learn_rate_factor(self, pattern: str, factor: float) -> None:
        """Multiplies the solver's rate for what matches; 0 freezes."""
        self._check_set_up()
        for p in self.match(pattern):
            p.lr = factor
        self.refresh()

    def set_l2_factor(self, pattern: str, factor: float) -> None:
        """Multiplies the regularizer of what matches."""
        self._check_set_up()
        for p in self.match(pattern):
            p.decay = factor

    # -- statistics ----------------------------------------------------------------------------------------

    def statistics(self) -> dict[str, float]:
        """{"<layer>.<statistic>": value}: sample-weighted means over the forwards since the reset."""
        self._check_set_up()
        return read_statistics(self.track.states)

    def reset_statistics(self) -> None:
        self._check_set_up()
        reset_statistics(self.track.states)

    def dump_statistics(self, lounge: Any, show: bool = False) -> None:
        """Give every statistic to `lounge.update_statistics(name, value)`; `show` prints them."""
        self._check_set_up()
        for name, value in read_statistics(self.track.states, show).items():
            lounge.update_statistics(name, value)
            if show:
                print(f"{name:<40} {value:.6g}")


def reset_statistics(states: Sequence[LayerState]) -> None:
    for state in states:
        if state.layer.has_stats:
            state.layer.reset_statistics(state)


def read_statistics(states: Sequence[LayerState], show: bool = False) -> dict[str, float]:
    """Of all layers, under their names. `show` is passed to layers by hand."""
    found: dict[str, float] = {}
    for state in states:
        if state.layer.has_stats:
            storage = _Storage(state.layer.name, found)
            state.layer.dump_statistics(storage, state, show and not state.layer.is_builtin)
    return found


class _Storage:
    """Collects a layer's statistics; a key without the layer's name gets it."""

    def __init__(self, layer: str, found: dict[str, float]) -> None:
        self.layer, self.found = layer, found

    def update_statistics(self, key: str, value: float, iter: int | None = None) -> None:
        self.found[key if key.startswith(f"{self.layer}.") else f"{self.layer}.{key}"] = float(value)


def _may_hold_arrays(layer: Layer) -> bool:
    ports = getattr(layer, "ports", None)
    return layer.has_param or bool(ports and ports.states) or not (layer.is_builtin or layer.is_sink)
