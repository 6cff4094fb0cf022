"""Solvers: `SGD(max_iter=2000, lr=0.01, momentum=0.9).solve(net)`.

Each update is one compiled kernel over the parameters, which lie side by side in one array.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from layerc.runtime import builtin, snapshot
from layerc.runtime.lounge import CoffeeLounge
from layerc.runtime.parameters import Parameter
from layerc.runtime.policies import Policy, acting, as_policy, decays
from layerc.runtime.solver_options import COMMON, check_options
from layerc.runtime.stops import Stops
from layerc.runtime.symbolic import Scalar, choose, number, sqrt
from layerc.runtime.waits import check_waits

if TYPE_CHECKING:
    from layerc.runtime.coffee import CoffeeBreak
    from layerc.runtime.net import Net


@dataclass
class SolverState:
    """iter: updates done; epoch: of the net; obj_val: of the last iteration (NaN before the first); rate and
    momentum of the last update (before the first: of iteration 0); stop_reason: why `solve` ended."""

    iter: int = 0
    epoch: int = 0
    obj_val: float = math.nan
    learning_rate: float = math.nan
    momentum: float = 0.0
    stop_reason: str | None = None


class Solver:
    """Base of the solvers.

    A subclass has `defaults`, its options; `slots`, the names of its history arrays; and `update`, which
    runs the
    kernel on one stretch of the parameters. TypeError for an unknown option, ValueError for a bad value.
    """

    defaults: ClassVar[dict[str, Any]] = {}
    slots: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **options: Any) -> None:
        known = {**self.defaults, **COMMON}
        for key in options:
            if key not in known:
                raise TypeError(f"{self.kind}: unknown option {key!r}; it takes {', '.join(known)}")
        self.options = {**known, **options}
        check_options(self.kind, self.options)
        self.lr: Policy = as_policy(self.options["lr"], f"{self.kind}: lr")
        self.momentum: Policy | None = None
        if "momentum" in known:
            self.momentum = as_policy(self.options["momentum"], f"{self.kind}: momentum")
            if decays(self.momentum):
                raise ValueError(f"{self.kind}: momentum={self.momentum!r}: DecayOnValidation is for learning rates")
        self.state = SolverState()
        self._show_rates()
        self.breaks: list[CoffeeBreak] = []
        self.lounge = CoffeeLounge()
        self.stops = Stops(self.options)
        self.history: dict[str, np.ndarray] = {}
        self.updates: dict[int, int] = {}  # by id of the parameter
        self.has_begun = False

    @property
    def kind(self) -> str:
        return type(self).__name__

    def add(self, coffee_break: "CoffeeBreak") -> None:
        """Have this break from time to time."""
        if not hasattr(coffee_break, "enjoy"):
            raise TypeError(f"{self.kind}.add takes a coffee break, not {type(coffee_break).__name__}")
        self.breaks.append(coffee_break)

    @property
    def lounge(self) -> CoffeeLounge:
        """Where the statistics are kept."""
        return self._lounge

    @lounge.setter
    def lounge(self, value: CoffeeLounge) -> None:
        if not isinstance(value, CoffeeLounge):
            raise TypeError(f"{self.kind}: lounge={value!r} must be a CoffeeLounge")
        self._lounge = value

    def stop(self, text: str) -> None:
        """End `solve` after this iteration, for this reason."""
        self.stops.reached = str(text)

    # -- training ------------------------------------------------------------------------------------------

    def solve(self, net: "Net") -> None:
        """init, step until a criterion stops it, finalize. ValueError if there is no criterion."""
        if not self.stops.given:
            raise ValueError(
                f"{self.kind}: nothing would stop it; give max_iter, max_epoch, max_time, target or patience"
            )
        self.init(net)
        try:
            while self.state.stop_reason is None:
                self.step(net)
        finally:
            self.finalize(net)

    def init(self, net: "Net") -> None:
        """Begin training: fresh history, or that of `load_from`. TopologyError for a net that cannot be
        trained."""
        self._check_net(net)
        net.check_trainable()
        check_waits(self, net)
        self._set_factors(net)
        self.state = SolverState(epoch=net.epoch)
        self.stops = Stops(self.options)
        self.history = {slot: np.zeros_like(net.buffer.data) for slot in self.slots}
        self.updates = {id(p): 0 for p in net.buffer.parameters}
        for policy in decays(self.lr):
            policy.reset()
        self._show_rates()
        resumed = self.options["load_from"] is not None and snapshot.restore(self, net, self.options["load_from"])
        self.lounge.open(self.state.iter)
        for one in self.breaks:
            one.init(self, net)
        if not resumed:
            self._have_breaks(net, lambda b: b.every_n_iter is not None)
        self.state.stop_reason = self.stops.reason(self.state.iter, self.state.epoch)
        self.has_begun = True

    def _check_net(self, net: "Net") -> None:
        if not hasattr(net, "check_trainable"):
            raise TypeError(f"{self.kind}: a solver trains a net, not {type(net).__name__} {net!r}")

    @property
    def validates(self) -> bool:
        """Whether there are validations."""
        from layerc.runtime.coffee import ValidationPerformance

        return any(isinstance(b, ValidationPerformance) for b in self.breaks)

    def step(self, net: "Net") -> float:
        """One iteration; returns its objective, regularizer included, before the update.

        FloatingPointError where that is NaN; the parameters are then as before.
        """
        if not self.has_begun:
            raise RuntimeError(f"{self.kind}: step needs init(net) before it")
        self._check_net(net)
        if not all(id(p) in self.updates for p in net.buffer.parameters):
            raise ValueError(f"{self.kind}: step was given net {net.name!r}, but init another one: init(net) first")
        objective = self.iterate(net, self.options["regu_coef"])
        self._constrain(net)
        epoch = self.state.epoch
        self.state.iter += 1
        self.state.epoch, self.state.obj_val = net.epoch, objective
        self.lounge.iter = self.state.iter
        self._watch(net)
        ended = self.state.epoch > epoch
        self._have_breaks(net, lambda b: b.is_due(self.state.iter, self.state.epoch if ended else None))
        self.lounge.tick()
        self.state.stop_reason = self._reason(net)
        return objective

    def _reason(self, net: "Net") -> str | None:
        """Why to stop now. Workers stop together, though only one may know why: their clocks and breaks differ."""
        mine = self.stops.reason(self.state.iter, self.state.epoch)
        stopping = net.workers.size > 1 and net.workers.total(float(mine is not None)) > 0
        return mine or ("worker" if stopping else None)

    def iterate(self, net: "Net", regu: float) -> float:
        """The objective of the next batch, and one update of the parameters for it."""
        objective = net.forward(regu)
        self.check_objective(objective)
        net.backward(regu)
        self._clip(net)
        self._show_rates()
        self._update(net)
        return objective

    def check_objective(self, objective: float) -> None:
        if math.isnan(objective):
            raise FloatingPointError(f"the objective is NaN at iteration {self.state.iter}")

    def finalize(self, net: "Net") -> None:
        """End training: breaks and lounge finish what they write."""
        for one in self.breaks:
            one.finalize(self, net)
        self.lounge.close()

    def validated(self, net: "Net", statistics: dict[str, float]) -> None:
        """A `ValidationPerformance` has these statistics."""
        seen = {**statistics, **{f"validation.{name}": value for name, value in statistics.items()}}
        self.stops.see_patience({**seen, "obj_val": self.state.obj_val})
        self.stops.see_target(seen)
        decay = acting(self.lr, self.state.iter)
        if decay is not None and decay.statistic in seen:
            better = decay.observe(self.state.iter, seen[decay.statistic])
            folders = [b.folder for b in self.breaks if isinstance(b, snapshot.Snapshot)]
            if better is not None and folders:
                snapshot.go_back(self, net, folders[0], better)

    def _watch(self, net: "Net") -> None:
        """What the criteria see at every iteration."""
        validates = self.validates
        target, patience = self.options["target"], self.options["patience"]
        if target and (target[0] == "obj_val" or not validates):
            self.stops.see_target({**net.statistics(), "obj_val": self.state.obj_val})
        if patience and not validates:
            self.stops.see_patience({**net.statistics(), "obj_val": self.state.obj_val})

    def _have_breaks(self, net: "Net", due: "Callable[[CoffeeBreak], bool]") -> None:
        # Snapshots last: what goes on from one must find what the other breaks did at that iteration.
        for one in sorted(self.breaks, key=lambda b: isinstance(b, snapshot.Snapshot)):
            if due(one):
                one.enjoy(self, net)

    def _show_rates(self) -> None:
        """Rate and momentum of the iteration to come."""
        self.state.learning_rate = number(self.lr(self.state.iter))
        if self.momentum is None:
            return
        momentum = number(self.momentum(self.state.iter))
        if not isinstance(momentum, Scalar) and not 0 <= momentum < 1:
            raise ValueError(
                f"{self.kind}: momentum={momentum!r} at iteration {self.state.iter} must be 0 or more, and below 1"
            )
        self.state.momentum = momentum

    # -- the parameters ------------------------------------------------------------------------------------

    def _set_factors(self, net: "Net") -> None:
        """The first pattern that matches a parameter sets its factor."""
        for option, apply in (("lr_factors", "lr"), ("decay_factors", "decay")):
            done: set[int] = set()
            for pattern, factor in self.options[option]:
                for p in net.match(pattern):
                    if id(p) not in done:
                        done.add(id(p))
                        setattr(p, apply, float(factor))
        net.refresh()

    def _clip(self, net: "Net") -> None:
        """By value, then each gradient's norm, then the norm of all."""
        gradients = [p.gradient for p in net.buffer.parameters if not p.frozen]
        value, norm, all_norm = (self.options[f"clip_{k}"] for k in ("value", "norm", "global_norm"))
        if value is not None:
            for g in gradients:
                np.clip(g, -value, value, out=g)
        if norm is not None:
            for g in gradients:
                _scale_to(norm, [g])
        if all_norm is not None:
            _scale_to(all_norm, gradients)

    def _update(self, net: "Net") -> None:
        buffer = net.buffer
        for place, (factor, decay, count) in buffer.segments(lambda p: (p.lr, p.decay, self.updates[id(p)])):
            arrays = {"w": buffer.data[place], "g": buffer.gradient[place]}
            arrays |= {slot: history[place] for slot, history in self.history.items()}
            self.update(arrays, self.state.learning_rate * factor, decay, count + 1)
        for p in buffer.parameters:
            if not p.frozen:
                self.updates[id(p)] += 1

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        """Update a stretch of parameters. lr: with their factor; decay: their factor; count: of their
        updates,
        this one included."""
        raise NotImplementedError

    def _run(self, kernel: str, arrays: dict[str, np.ndarray], **config: float) -> None:
        """Run a kernel whose outputs replace w and the history, in the order of `slots`."""
        targets = [arrays["w"], *(arrays[slot] for slot in self.slots)]
        out = {f"y{k}": target for k, target in enumerate(targets, 1)}
        builtin.run(f"updates.{kernel}", arrays, out=out, **config)

    def _constrain(self, net: "Net") -> None:
        for p in net.buffer.parameters:
            every = p.cons.every_n_iter
            if not p.frozen and (every == 1 or (self.state.iter + 1) % every == 0):
                p.cons.apply(p.data)

    def __repr__(self) -> str:
        known = {**self.defaults, **COMMON}
        return f"{self.kind}({', '.join(f'{k}={v!r}' for k, v in self.options.items() if v is not known[k])})"


class SGD(Solver):
    """v = m v - lr f g;  w += v."""

    defaults: ClassVar[dict[str, Any]] = {"lr": 0.01, "momentum": 0.0}
    slots = ("v",)

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        self._run("sgd", arrays, lr=lr, momentum=self.state.momentum)


class Nesterov(Solver):
    """v = m v - lr f g;  w += m v - lr f g."""

    defaults: ClassVar[dict[str, Any]] = {"lr": 0.01, "momentum": 0.0}
    slots = ("v",)

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        self._run("nesterov", arrays, lr=lr, momentum=self.state.momentum)


class Adam(Solver):
    """PyTorch's Adam: epsilon outside the corrected root (Kingma and Ba 2015)."""

    defaults: ClassVar[dict[str, Any]] = {"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    slots = ("m", "s")

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        b1, b2, epsilon = (self.options[k] for k in ("beta1", "beta2", "epsilon"))
        self._run(
            "adam",
            arrays,
            step_size=lr / (1 - b1**count),
            root_correction=sqrt(1 - b2**count),
            beta1=b1,
            beta2=b2,
            epsilon=epsilon,
            shrink=self.shrink(lr, decay),
        )

    def shrink(self, lr: float, decay: float) -> float:
        """What w is multiplied by first."""
        return 1.0


class AdamW(Adam):
    """w -= lr f decay weight_decay w, then Adam (Loshchilov and Hutter 2019)."""

    defaults: ClassVar[dict[str, Any]] = {**Adam.defaults, "weight_decay": 0.01}

    def shrink(self, lr: float, decay: float) -> float:
        return 1.0 - lr * decay * self.options["weight_decay"]


class RMSprop(Solver):
    """PyTorch's RMSprop, not centred (Tieleman and Hinton 2012)."""

    defaults: ClassVar[dict[str, Any]] = {"lr": 0.01, "alpha": 0.99, "epsilon": 1e-8, "momentum": 0.0}
    slots = ("s", "v")

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        alpha, epsilon = self.options["alpha"], self.options["epsilon"]
        self._run("rmsprop", arrays, lr=lr, momentum=self.state.momentum, alpha=alpha, epsilon=epsilon)


class Adagrad(Solver):
    """PyTorch's Adagrad, per element (Duchi et al. 2011)."""

    defaults: ClassVar[dict[str, Any]] = {"lr": 0.01, "epsilon": 1e-10}
    slots = ("s",)

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        self._run("adagrad", arrays, lr=lr, epsilon=self.options["epsilon"])


class Adadelta(Solver):
    """PyTorch's Adadelta (Zeiler 2012)."""

    defaults: ClassVar[dict[str, Any]] = {"lr": 1.0, "rho": 0.95, "epsilon": 1e-6}
    slots = ("s", "u")

    def update(self, arrays: dict[str, np.ndarray], lr: float, decay: float, count: int) -> None:
        self._run("adadelta", arrays, lr=lr, rho=self.options["rho"], epsilon=self.options["epsilon"])


def _scale_to(threshold: float, gradients: list[np.ndarray]) -> None:
    """Scale them together to the threshold where their norm exceeds it."""
    norm = sqrt(sum(number(np.sum(np.square(g, dtype=np.float64))) for g in gradients))
    scale = choose(norm > threshold, lambda: threshold / norm, lambda: 1.0)
    if isinstance(scale, Scalar) or scale != 1.0:
        for g in gradients:
            g *= scale


__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Nesterov",
    "Parameter",
    "RMSprop",
    "Solver",
    "SolverState",
]
