"""Random numbers by name: every layer draws from its own stream, a function of (seed, name, counter).

Counter-based (Philox): nothing but an integer has to be saved to go on exactly where one was, and what one
layer draws never shifts another's.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

import hashlib

import numpy as np

from layerc.runtime import seeds


def _key(seed: int, *names: str | int) -> bytes:
    return hashlib.blake2b(repr((int(seed), *names)).encode(), digest_size=16).digest()


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of that place: the same arguments, the same numbers, on every machine."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_key(seed, *names), "little")))


class Stream:
    """A layer's generators, one for each draw: `stream.next()`. `count` is all of its state."""

    def __init__(self, seed: int, name: str, count: int = 0) -> None:
        self.seed, self.name, self.count = seed, name, count
        self._philox: np.random.Philox | None = None

    def next(self) -> np.random.Generator:
        """The generator of the next draw; the one before is this one from now on.

        The numbers are those of `generator(seed, name, "draw", count)`. Making a Philox takes a hundred times as long
        as telling one its key: whatever it is given, NumPy first asks the system for entropy.
        """
        self.count += 1
        if self._philox is None:
            self._philox = np.random.Philox(key=0)
            self._generator = np.random.Generator(self._philox)
        key = np.frombuffer(_key(self.seed, self.name, "draw", self.count), "<u8").astype(np.uint64)
        self._philox.state = {  # of one that has drawn nothing
            "bit_generator": "Philox",
            "state": {"counter": np.zeros(4, np.uint64), "key": key},
            "buffer": np.zeros(4, np.uint64),
            "buffer_pos": 4,
            "has_uint32": 0,
            "uinteger": 0,
        }
        return self._generator

    def __copy__(self) -> Stream:
        return Stream(self.seed, self.name, self.count)

    def next_seed(self) -> int:
        """A seed for compiled code, which draws on its own."""
        self.count += 1
        return seeds.nth(seeds.root(self.seed, self.name), self.count)
