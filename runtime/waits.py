"""What a solver is told to wait for must be able to come: asked before the training."""

from typing import TYPE_CHECKING

from layerc.runtime.policies import decays

if TYPE_CHECKING:
    from layerc.runtime.net import Net
    from layerc.runtime.solvers import Solver


def check_waits(solver: "Solver", net: "Net") -> None:
    """ValueError for epochs, or statistics, that nothing makes."""
    _check_watched(solver, net)
    if solver.options["max_epoch"] is not None and not _has_epochs(net):
        raise ValueError(f"{solver.kind}: max_epoch never comes: net {net.name!r} has no data layer")


def _check_watched(solver: "Solver", net: "Net") -> None:
    """ValueError for what would wait for a statistic that nothing makes: `target`, `patience`, a decay."""
    known = set(net.statistics())
    by_hand = [f"{layer.name}." for layer in net.layers if layer.has_stats and not layer.is_builtin]
    if solver.validates:
        known |= {f"validation.{name}" for name in known}
        by_hand += [f"validation.{name}" for name in by_hand]
    watched = [
        (f"option {o}={solver.options[o]!r}", solver.options[o][0], {"obj_val"})
        for o in ("target", "patience")
        if solver.options[o]
    ]
    for policy in decays(solver.lr):
        if not solver.validates:
            raise ValueError(f"{solver.kind}: lr={policy!r} would never act: add ValidationPerformance to the solver")
        watched.append((f"lr={policy!r}", policy.statistic, set()))
    for what, name, more in watched:
        if name not in known | more and not name.startswith(tuple(by_hand)):
            there = ", ".join(sorted(known | more))
            raise ValueError(f"{solver.kind}: {what}: no statistic {name!r}; there is {there}")


def _has_epochs(net: "Net") -> bool:
    return any(s.layer.is_source and hasattr(s, "epoch") for s in net.track.states)
