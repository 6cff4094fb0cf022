"""Seeds of random layers: each evaluation has its own, so backward can draw the same numbers again."""

import hashlib
import os
from typing import Any

_MOST = 2**63 - 1


def seed_of(where: str, name: str, value: Any) -> int:
    """The seed of one evaluation. value: None for a fresh one, an integer, or a generator to ask for one."""
    if value is None:
        return fresh()
    if hasattr(value, "next_seed"):  # layerc.Random
        return int(value.next_seed())
    if hasattr(value, "integers"):  # np.random.Generator
        return int(value.integers(0, _MOST))
    return checked(where, name, value)


def fresh() -> int:
    """A seed that nobody knows."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def checked(where: str, name: str, value: Any) -> int:
    """An integer as a seed of 63 bits. TypeError for anything else."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return int(value) & _MOST
    raise TypeError(f"{where}: argument {name!r}: expected a seed or a generator, got {type(value).__name__}")


def whole(where: str, value: Any) -> int:
    """An integer that all numbers of a layer come from. TypeError for anything else."""
    if hasattr(value, "__index__"):
        return int(value)
    raise TypeError(f"{where}: seed must be an integer, not {value!r}")


def root(seed: int, name: str) -> int:
    """Where the evaluations of the layer of that name start."""
    digest = hashlib.blake2b(repr((int(seed), name)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def nth(seed: int, count: int) -> int:
    """The seed of evaluation `count` of a layer: splitmix64, which is one to one in `count`."""
    mask = 2**64 - 1
    z = (seed + 0x9E3779B97F4A7C15 * (count + 1)) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) & _MOST
