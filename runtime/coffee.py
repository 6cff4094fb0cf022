"""Coffee breaks: what a solver does from time to time, `every_n_iter` or `every_n_epoch`."""

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerc.runtime import feeding
from layerc.runtime.weights import need

if TYPE_CHECKING:
    from layerc.runtime.net import Net
    from layerc.runtime.solvers import Solver


class CoffeeBreak:
    """Base of the breaks. Exactly one of: every_n_iter (at iteration 0, and when iter % n == 0),
    every_n_epoch (at
    the end of epochs)."""

    def __init__(self, *, every_n_iter: int | None = None, every_n_epoch: int | None = None) -> None:
        kind = type(self).__name__
        if (every_n_iter is None) == (every_n_epoch is None):
            raise ValueError(f"{kind} takes exactly one of every_n_iter and every_n_epoch")
        for key, n in (("every_n_iter", every_n_iter), ("every_n_epoch", every_n_epoch)):
            if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
                raise ValueError(f"{kind}: {key}={n!r} must be a positive integer")
        self.every_n_iter, self.every_n_epoch = every_n_iter, every_n_epoch

    def is_due(self, it: int, ended_epoch: int | None) -> bool:
        """Whether it is time. ended_epoch: number of epochs, where the iteration completed one."""
        if self.every_n_iter is not None:
            return it % self.every_n_iter == 0
        return ended_epoch is not None and ended_epoch % (self.every_n_epoch or 1) == 0

    def init(self, solver: "Solver", net: "Net") -> None:
        """Training begins."""

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        """It is time."""
        raise NotImplementedError

    def finalize(self, solver: "Solver", net: "Net") -> None:
        """Training is over."""


_STATE_NAMES = ("iter", "epoch", "obj_val", "learning_rate", "momentum")


class TrainingSummary(CoffeeBreak):
    """Prints one line, and records what it prints (but `iter` and NaN) in the lounge.

    statistics: of the solver's state (iter, epoch, obj_val, learning_rate, momentum) or of the net.
    """

    def __init__(
        self, statistics: Sequence[str] = ("iter", "obj_val", "learning_rate", "momentum"), **when: Any
    ) -> None:
        super().__init__(**when)
        self.statistics = (statistics,) if isinstance(statistics, str) else tuple(statistics)

    def init(self, solver: "Solver", net: "Net") -> None:
        known = {*_STATE_NAMES, *net.statistics()}
        for name in self.statistics:
            if name not in known:
                raise ValueError(f"TrainingSummary: no statistic {name!r}; there is {', '.join(sorted(known))}")

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        values = {**net.statistics(), **vars(solver.state)}
        parts = []
        for name in self.statistics:
            value = values[name]
            parts.append(f"{name} {value:06d}" if name == "iter" else f"{name} {value:.6g}")
            if name != "iter" and not math.isnan(value):
                solver.lounge.update_statistics(name, value)
        print("  ".join(parts), flush=True)


class ValidationPerformance(CoffeeBreak):
    """The same net on other data (an array for each top of the first data layer) in phase predict.

    Training is the same as without it. `.statistics`: the last; in the lounge as
    `validation.<layer>.<statistic>`.
    """

    def __init__(self, data: Sequence[Any], batch_size: int | None = None, **when: Any) -> None:
        super().__init__(**when)
        if batch_size is not None and not (isinstance(batch_size, int) and batch_size > 0):
            raise ValueError(f"ValidationPerformance: batch_size={batch_size!r} must be a positive integer")
        self.data, self.batch_size = data, batch_size
        self.statistics: dict[str, float] = {}

    def init(self, solver: "Solver", net: "Net") -> None:
        feeding.batches(net, self.data, self.batch_size)  # says what is wrong with the data before training

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        self.statistics = net.evaluate(self.data, self.batch_size)
        for name, value in self.statistics.items():
            solver.lounge.update_statistics(f"validation.{name}", value)
        solver.validated(net, self.statistics)


class Function(CoffeeBreak):
    """fn(solver, net)."""

    def __init__(self, fn: "Callable[[Solver, Net], Any]", **when: Any) -> None:
        super().__init__(**when)
        if not callable(fn):
            raise ValueError(f"Function: fn={fn!r} cannot be called")
        self.fn = fn

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        self.fn(solver, net)


class ProgressBar(CoffeeBreak):
    """A tqdm bar over the iterations with the objective and the last validation; nothing where the output
    is no
    terminal. Default every_n_iter=1."""

    def __init__(self, total: int | None = None, **when: Any) -> None:
        super().__init__(**(when or {"every_n_iter": 1}))
        self.total = total
        self.bar: Any = None

    def init(self, solver: "Solver", net: "Net") -> None:
        tqdm = need("tqdm", "tqdm", "demo").tqdm
        total = self.total or solver.options["max_iter"]
        disable = not sys.stderr.isatty()
        self.bar = tqdm(total=total, initial=solver.state.iter, unit="it", disable=disable, dynamic_ncols=True)

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        shown = {} if math.isnan(solver.state.obj_val) else {"objective": f"{solver.state.obj_val:.4f}"}
        for one in solver.breaks:
            if isinstance(one, ValidationPerformance):
                best = [f"{v:.4f}" for name, v in one.statistics.items() if not name.endswith(".loss")]
                shown |= {"validation": best[0]} if best else {}
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(solver.state.iter - self.bar.n)

    def finalize(self, solver: "Solver", net: "Net") -> None:
        if self.bar is not None:
            self.bar.close()


class Plot(CoffeeBreak):
    """A picture of the training so far: the objective above, validation statistics below. Default each
    epoch."""

    def __init__(self, path: Any, **when: Any) -> None:
        super().__init__(**(when or {"every_n_epoch": 1}))
        self.path = Path(path)
        self.objective: list[tuple[int, float]] = []

    def init(self, solver: "Solver", net: "Net") -> None:
        need("matplotlib", "matplotlib", "demo")

    def enjoy(self, solver: "Solver", net: "Net") -> None:
        if not math.isnan(solver.state.obj_val):
            self.objective.append((solver.state.iter, solver.state.obj_val))

    def finalize(self, solver: "Solver", net: "Net") -> None:
        """Draw: once, at the end, since that takes longer than many iterations."""
        figure_of = need("matplotlib.figure", "matplotlib", "demo").Figure
        validation = {n: v for n, v in solver.lounge.statistics.items() if n.startswith("validation.")}
        accuracies = {n: v for n, v in validation.items() if not n.endswith(".loss")}
        figure = figure_of(figsize=(8, 6 if accuracies else 4), layout="constrained")
        axes = figure.subplots(2 if accuracies else 1, 1, sharex=True, squeeze=False)[:, 0]
        recorded = solver.lounge.statistics.get("obj_val")
        points = sorted({**dict(self.objective), **(recorded or {})}.items())
        axes[0].plot(*zip(*points) if points else ([], []), color="#8fb4d9", lw=1, label="objective")
        for name, values in validation.items():
            ax = axes[1] if name in accuracies else axes[0]
            ax.plot(list(values), list(values.values()), marker="o", ms=3, lw=1.5, label=name)
        for ax in axes:
            ax.grid(alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
            ax.legend(frameon=False)
        axes[0].set_yscale("log" if points and min(v for _, v in points) > 0 else "linear")
        axes[-1].set_xlabel("iteration")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(self.path, dpi=120)
