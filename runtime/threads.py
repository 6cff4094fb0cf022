"""How many threads a compiled layer may use: one number for the whole process.

The default is LAYERC_NUM_THREADS, else OMP_NUM_THREADS (torchrun sets it), else the CPUs this process may
run on. A process made by fork keeps to one: GNU's OpenMP hangs when a forked child needs the threads of its
parent.
"""

import os
import warnings
from collections.abc import Callable
from weakref import WeakMethod

# A thread that waits at the end of a parallel loop spins for a moment, then sleeps: on a busy machine a spinning one
# takes the processor from the one it waits for. GNU's OpenMP reads this when a compiled library first loads it.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

_forked = False
_followers: list[WeakMethod[Callable[[int], None]]] = []


def set_num_threads(n: int) -> None:
    """Let every compiled layer use at most `n` threads from its next call on. Results do not depend on it.

    TypeError and ValueError unless `n` is an integer of at least 1.
    """
    global count
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"set_num_threads: expected an integer, got {type(n).__name__}")
    n = int(n)
    if not 1 <= n < 2**31:
        raise ValueError(f"set_num_threads: expected a number of at least 1, got {n}")
    if _forked and n > 1:
        warnings.warn("a forked process keeps to one thread; start it by spawn for more", RuntimeWarning, stacklevel=2)
        n = 1
    count = n
    _tell()


def follow(method: Callable[[int], None]) -> None:
    """Call this bound method with the number of threads, now and whenever it changes."""
    _followers.append(WeakMethod(method))
    method(count)


def _tell() -> None:
    for follower in list(_followers):
        method = follower()
        if method is None:
            _followers.remove(follower)
        else:
            method(count)


def get_num_threads() -> int:
    """The number of threads a compiled layer may use."""
    return count


def _default() -> int:
    for name in ("LAYERC_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdigit() and int(text) >= 1:
            return int(text)
        if text and name.startswith("LAYERC"):
            warnings.warn(f"{name}={text} is no number of threads; it is ignored", RuntimeWarning, stacklevel=2)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _after_fork() -> None:
    global count, _forked
    count, _forked = 1, True
    _tell()


count = _default()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
