"""How fast the machine is just now: a fixed piece of arithmetic, timed on every core at once.

A virtual machine's core shares its physical one with strangers, and has spells in which everything takes up
to twice as long, unseen by /proc/stat. A turn measured in such a spell is measured again. What decides is
this clock alone, never the peer's own time.
"""

import os
import threading
import time

import numpy as np

SLOW = 1.3  # times the usual pace
ELEMENTS = 1 << 18  # 1 MB an array: in a core's own cache


def usual(looks: int = 50) -> float:
    """The pace outside such spells: a low quantile of some looks, spread over a second."""
    found = []
    for _ in range(looks):
        time.sleep(0.02)
        found.append(pace())
    return float(np.quantile(found, 0.1))


def pace() -> float:
    """Seconds of the slowest core, about half a millisecond."""
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
