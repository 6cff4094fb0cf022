"""Was the machine ours during a turn? Two clocks that know nothing of what was measured decide.

Other processes: the kernel's running time of every task that is not this process's. Strangers on the same
hardware: a virtual machine's core has spells in which everything takes up to twice as long, unseen by /proc;
a fixed piece of arithmetic, timed on every core at once, sees them. A disturbed turn is measured again, and
the least disturbed is kept.
"""

import contextlib
import os
import threading
import time
from typing import NamedTuple

import numpy as np

SLOW = 1.3  # times the usual pace
FOREIGN = 0.05  # share of the cores that other processes may take
ELEMENTS = 1 << 18  # 1 MB an array: in a core's own cache


class Disturbance(NamedTuple):
    pace: float  # seconds of the fixed piece of arithmetic
    foreign: float  # share of the cores taken by other processes

    def score(self, usual: float) -> float:
        """Above 1 the turn is disturbed."""
        return max(self.pace / usual / SLOW, self.foreign / FOREIGN)


class Foreign:
    """The share of the cores that other processes took since this object was made."""

    def __init__(self):
        self.before, self.begin = _others(), time.perf_counter()

    def share(self) -> float:
        seconds, after = time.perf_counter() - self.begin, _others()
        ran = sum(now - self.before.get(task, 0) for task, now in after.items())
        return ran / 1e9 / (seconds * (os.cpu_count() or 1))


def _others() -> dict[str, int]:
    """Nanoseconds that every task of another process has run; nothing where the kernel does not say."""
    mine, found = str(os.getpid()), {}
    for process in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if process.isdigit() and process != mine:
            with contextlib.suppress(OSError):  # it ended while we looked
                for task in os.listdir(f"/proc/{process}/task"):
                    with open(f"/proc/{process}/task/{task}/schedstat") as file:
                        found[task] = int(file.read().split()[0])
    return found


def wait(patience: float) -> float:
    """Until other processes leave the machine alone, `patience` seconds at most; the seconds waited."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < patience:
        foreign = Foreign()
        time.sleep(0.25)
        if foreign.share() < FOREIGN:
            break
    return time.perf_counter() - begin


def usual_pace(looks: int = 50) -> float:
    """The pace outside slow spells: a low quantile of some looks, spread over a second."""
    found = []
    for _ in range(looks):
        time.sleep(0.02)
        found.append(pace())
    return float(np.quantile(found, 0.1))


def pace() -> float:
    """Seconds of the slowest core, about half a millisecond in all."""
    cpus = sorted(os.sched_getaffinity(0))
    seconds = [0.0] * len(cpus)
    threads = [threading.Thread(target=_work, args=(cpu, i, seconds)) for i, cpu in enumerate(cpus)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(seconds)


def _work(cpu: int, i: int, seconds: list[float]) -> None:
    os.sched_setaffinity(0, [cpu])  # of this thread only
    x, y, best = np.linspace(0.1, 1, ELEMENTS, dtype=np.float32), np.empty(ELEMENTS, np.float32), float("inf")
    for _ in range(4):  # the best of a few: waking up and being interrupted are not the machine's pace
        begin = time.perf_counter()
        np.exp(x, out=y)  # one long call: NumPy lets the GIL go meanwhile
        best = min(best, time.perf_counter() - begin)
    seconds[i] = best
