"""Random numbers by name: every layer draws from its own stream, a function of (seed, name, counter).

Counter-based (Philox): nothing but an integer has to be saved to go on exactly where one was, and what one
layer draws never shifts another's.
"""

import hashlib

import numpy as np

from layerc.runtime import seeds


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of that place: the same arguments, the same numbers, on every machine."""
    digest = hashlib.blake2b(repr((int(seed), *names)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


class Stream:
    """A layer's generators, one for each draw: `stream.next()`. `count` is all of its state."""

    def __init__(self, seed: int, name: str, count: int = 0) -> None:
        self.seed, self.name, self.count = seed, name, count

    def next(self) -> np.random.Generator:
        self.count += 1
        return generator(self.seed, self.name, "draw", self.count)

    def next_seed(self) -> int:
        """A seed for compiled code, which draws on its own."""
        self.count += 1
        return seeds.nth(seeds.root(self.seed, self.name), self.count)
