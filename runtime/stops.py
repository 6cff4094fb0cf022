"""When training ends: the `max_*`, `target` and `patience` of a solver."""

import math
import time
from typing import Any


def is_low_better(statistic: str) -> bool:
    """Losses and the objective are better low, all else high."""
    return statistic == "obj_val" or statistic.endswith(".loss")


class Stops:
    """The stop criteria of one training, and what they have seen: `watch` goes into snapshots."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.max_iter, self.max_epoch = options["max_iter"], options["max_epoch"]
        self.max_time = options["max_time"]
        self.target, self.patience = options["target"], options["patience"]
        self.started = time.monotonic()
        self.watch: dict[str, Any] = {"best": None, "waited": 0}
        self.reached: str | None = None

    @property
    def given(self) -> bool:
        every = (self.max_iter, self.max_epoch, self.max_time, self.target, self.patience)
        return any(option is not None for option in every)

    def reason(self, it: int, epoch: int) -> str | None:
        """Why to stop now, or None."""
        if self.reached is not None:
            return self.reached
        if self.max_iter is not None and it >= self.max_iter:
            return "max_iter"
        if self.max_epoch is not None and epoch >= self.max_epoch:
            return "max_epoch"
        if self.max_time is not None and time.monotonic() - self.started >= self.max_time:
            return "max_time"
        return None

    def see_target(self, statistics: dict[str, float]) -> None:
        """Note values that may reach the target."""
        if self.target is None:
            return
        name, bound = self.target
        value = statistics.get(name, math.nan)
        if value <= bound if is_low_better(name) else value >= bound:
            self.reached = "target"

    def see_patience(self, statistics: dict[str, float]) -> None:
        """Note a validation: one more without improvement, or a new best."""
        if self.patience is None:
            return
        name, most = self.patience
        value, best = statistics.get(name, math.nan), self.watch["best"]
        if best is None or (value < best if is_low_better(name) else value > best):
            self.watch.update(best=None if math.isnan(value) else value, waited=0)
        else:
            self.watch["waited"] += 1
        if self.watch["waited"] >= most:
            self.reached = "patience"
