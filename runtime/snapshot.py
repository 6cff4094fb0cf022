"""`Snapshot`: all of a training in a file, from which it goes on bit for bit."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import weights
from layerc.runtime.coffee import CoffeeBreak
from layerc.runtime.data import DataLayer
from layerc.runtime.policies import decays

if TYPE_CHECKING:
    from layerc.runtime.net import Net
    from layerc.runtime.solvers import Solver

_NAME = re.compile(r"snapshot-(\d+)\.(safetensors|h5)")
_FORMAT = 1


class Snapshot(CoffeeBreak):
    """Writes `folder/snapshot-000123.safetensors` (`.h5`), whole or not at all; `keep=n`: only the latest
    n stay.

    It holds parameters, states, running statistics, the solver's history, rng, data position, iteration.
    """

    def __init__(self, folder: Any, format: str = "safetensors", keep: int | None = None, **when: Any) -> None:
        super().__init__(**when)
        if format not in ("safetensors", "hdf5"):
            raise ValueError(f'Snapshot: format={format!r} must be "safetensors" or "hdf5"')
        if keep is not None and not (isinstance(keep, int) and keep > 0):
            raise ValueError(f"Snapshot: keep={keep!r} must be a positive integer")
        self.folder, self.format, self.keep = Path(folder), format, keep

    def init(self, solver: "Solver", net: "Net") -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        suffix = "h5" if self.format == "hdf5" else "safetensors"
        path = self.folder / f"snapshot-{solver.state.iter:06d}.{suffix}"
        save(solver, net, path)
        if self.keep is not None:
            for old in found(self.folder)[: -self.keep]:
                old.unlink(missing_ok=True)


def found(folder: Path) -> list[Path]:
    """The snapshots of a folder, oldest first."""
    pairs = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return [path for _, path in sorted((int(m[1]), path) for m, path in pairs if m)]


def save(solver: "Solver", net: "Net", path: Path) -> None:
    tensors = weights.collect(net)
    named = net.named_parameters()
    for slot, flat in solver.history.items():
        tensors |= {f"{weights.HISTORY}{slot}:{name}": net.buffer.of(flat, p).copy() for name, p in named.items()}
    meta = {
        "format": _FORMAT,
        "solver": solver.kind,
        "iter": solver.state.iter,
        "obj_val": solver.state.obj_val,
        "learning_rate": solver.state.learning_rate,
        "momentum": solver.state.momentum,
        "updates": {name: solver.updates[id(p)] for name, p in named.items()},
        **place(net),
        "watch": solver.stops.watch,
        "decays": [[policy.rate, policy.before] for policy in decays(solver.lr)],
    }
    weights.write(path, tensors, meta)


def place(net: "Net") -> dict[str, Any]:
    """Where a net is: in its data, in its random streams, in its running statistics."""
    states = [s for s in net.track.states if s is not None]
    return {
        "positions": {s.layer.name: s.layer.position(s) for s in states if isinstance(s.layer, DataLayer)},
        "rng": {s.layer.name: [s.rng.seed, s.rng.count] for s in states},
        "statistics": {s.layer.name: s.totals for s in states if getattr(s, "totals", None)},
    }


def put_back(net: "Net", place: dict[str, Any]) -> None:
    """Go on from there."""
    for state in (s for s in net.track.states if s is not None):
        name = state.layer.name
        if name in place["positions"] and isinstance(state.layer, DataLayer):
            state.layer.seek(state, place["positions"][name])
        if name in place["rng"]:
            state.rng.seed, state.rng.count = place["rng"][name]
        if state.layer.has_stats and state.layer.is_builtin:
            totals = place["statistics"].get(name, {})
            state.totals = {statistic: tuple(pair) for statistic, pair in totals.items()}


def restore(solver: "Solver", net: "Net", source: Any) -> bool:
    """Go on from a snapshot, the latest of a folder, or (at iteration 0) a weights file; True for a snapshot.

    ValueError for a snapshot of another kind of solver, or of a net that this one is not.
    """
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"load_from={str(source)!r}: there is no file or folder of this name")
    if path.is_dir():
        paths = found(path)
        if not paths:
            raise FileNotFoundError(f"there is no snapshot in {path}")
        path = paths[-1]
    tensors, meta = weights.read_with_meta(path)
    if meta is None:
        weights.put(net, tensors)
        return False
    if meta["solver"] != solver.kind:
        raise ValueError(f"{path} is a snapshot of {meta['solver']}, which {solver.kind} cannot go on from")
    _check_positions(net, meta["positions"], path)
    _put(solver, net, tensors, meta)
    state = solver.state
    state.iter, state.obj_val = meta["iter"], meta["obj_val"]
    state.learning_rate, state.momentum = meta["learning_rate"], meta["momentum"]
    solver.stops.watch.update(meta["watch"])
    for policy, (rate, before) in zip(decays(solver.lr), meta.get("decays", ())):
        policy.rate, policy.before = rate, before and tuple(before)
    put_back(net, meta)
    state.epoch = net.epoch
    return True


def _check_positions(net: "Net", positions: dict[str, dict[str, int]], path: Path) -> None:
    """ValueError where the data layers are not those that the snapshot was in the middle of."""
    states = {s.layer.name: (s.layer, s) for s in net.track.states if isinstance(s.layer, DataLayer)}
    if states.keys() != positions.keys():
        held, own = (", ".join(map(repr, sorted(names))) or "none" for names in (positions, states))
        raise ValueError(
            f"{path} has the place in the data of layer {held}; the data layers of net {net.name!r}: {own}"
        )
    for name, (layer, state) in states.items():
        index, samples = positions[name]["index"], layer.samples(state)
        if samples is not None and not 0 <= index < samples:
            raise ValueError(
                f"{path} stands at sample {index} of layer {name!r}, which has {samples} samples:"
                " go on with the data that it was written with, or load its weights alone by net.load"
            )


def go_back(solver: "Solver", net: "Net", folder: Path, it: int) -> None:
    """Take parameters, states and history from the latest snapshot up to iteration `it`; nothing if none
    is."""
    paths = [path for path in found(folder) if int(_NAME.fullmatch(path.name)[1]) <= it]  # type: ignore[index]
    if paths:
        tensors, meta = weights.read_with_meta(paths[-1])
        if meta is not None:
            _put(solver, net, tensors, meta)


def _put(solver: "Solver", net: "Net", tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """Parameters, states and the solver's history. ValueError, before anything is changed, for a history that lacks
    something."""
    named = net.named_parameters()
    held = sorted(
        {key.removeprefix(weights.HISTORY).partition(":")[0] for key in tensors if key.startswith(weights.HISTORY)}
    )
    lacking = [slot for slot in solver.history if slot not in held]
    if lacking and named:
        raise ValueError(
            f"the snapshot has the history {', '.join(held) or 'of nothing'} of {solver.kind}, and lacks"
            f" {', '.join(lacking)}: go on with the options that it was written with"
        )
    weights.put(net, {name: a for name, a in tensors.items() if not name.startswith(weights.HISTORY)})
    for name, p in named.items():
        for slot, flat in solver.history.items():
            net.buffer.of(flat, p)[...] = tensors[f"{weights.HISTORY}{slot}:{name}"]
        solver.updates[id(p)] = meta["updates"][name]
