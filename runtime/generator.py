"""`Random`: the random numbers of a layer function, under plain NumPy.

Every number is a pure function of five integers: the seed, which draw of the function it is, which example of the
batch, and which element of the array. So it does not matter who computes it, in which order or how often: the
compiled code makes the same numbers on any number of threads, and backward makes them again instead of storing them.

The function is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
`transpile/random.h` is its other implementation; tests/test_random.py holds the two together.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from layerc.runtime import seeds

Shape = int | tuple[int, ...] | None
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter: tuple[ArrayLike, ...], key: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """Four random words for each counter of four 32-bit words; all of them 32 bits in uint64 arrays."""
    c0, c1, c2, c3 = (np.asarray(word, np.uint64) for word in counter)
    k0, k1 = key
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> _HALF) ^ c1 ^ np.uint64(k0), b & _LOW, (a >> _HALF) ^ c3 ^ np.uint64(k1), a & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


class Random:
    """A generator for layer functions. The same seed gives the same numbers, here and in compiled code.

    seed: None takes fresh entropy. example: the position in the batch, which has numbers of its own. dtype: of
    `random` and `standard_normal`; a layer function draws the type of its arrays.

    Given to a layer, it is asked for one seed at every evaluation: for its own first, then for others that follow
    from it, so that numbers are fresh at every evaluation and the sequence is reproducible.
    """

    def __init__(self, seed: int | None = None, *, example: int = 0, dtype: DTypeLike = np.float64) -> None:
        self.seed = seeds.checked("Random", "seed", seeds.fresh() if seed is None else seed)
        self.example, self.dtype = int(example), np.dtype(dtype)
        self._draw = 0
        self._evaluations = 0

    def next_seed(self) -> int:
        """The seed of one more evaluation of a layer."""
        self._evaluations += 1
        return self.seed if self._evaluations == 1 else seeds.nth(self.seed, self._evaluations - 1)

    def at(self, draw: int) -> "Random":
        """The generator as it is before its draw of that number, counted from 0: what gradients replay."""
        found = Random(self.seed, example=self.example, dtype=self.dtype)
        found._draw = int(draw)
        return found

    # -- draws ---------------------------------------------------------------------------------------------

    def random(self, shape: Shape = None, *, size: Shape = None) -> Any:
        """Uniform on [0, 1): a multiple of 2**-53, in float32 of 2**-24."""
        return self._uniform(self._words(_extents(shape, size)))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, shape: Shape = None, *, size: Shape = None) -> Any:
        """low + (high - low) * random(shape). shape: left out, that of low and high."""
        given = _extents(shape, size, low, high)
        return low + (high - low) * self._uniform(self._words(given))

    def standard_normal(self, shape: Shape = None, *, size: Shape = None) -> Any:
        """Normal of mean 0 and variance 1, by Box and Muller: sqrt(-2 log u) cos(2 pi v)."""
        w = self._words(_extents(shape, size))
        if self.dtype == np.float32:  # 31 bits for u: the tail reaches 6.5
            u = ((w[0] >> np.uint64(1)).astype(np.float32) + np.float32(1)) * np.float32(2**-31)
            turns = np.cos((w[2] >> np.uint64(8)).astype(np.float64) * (2 * math.pi * 2.0**-24))
            return np.sqrt(np.float32(-2) * np.log(u)) * turns.astype(np.float32)
        u = (_bits(w[0], w[1]) + 1) * 2.0**-53
        v = _bits(w[2], w[3]) * 2.0**-53
        return np.sqrt(-2 * np.log(u)) * np.cos(2 * math.pi * v)

    def integers(self, low: Any, high: Any = None, shape: Shape = None, *, size: Shape = None) -> Any:
        """int64 of [low, high), or of [0, low) if high is left out; ValueError if there is none.

        The upper half of the product of 64 random bits and high - low: no number is more probable than another by
        more than (high - low) / 2**64.
        """
        low, high = (0, low) if high is None else (low, high)
        if not np.all(np.less(low, high)):
            raise ValueError("rng.integers: low >= high")
        given = _extents(shape, size, low, high)
        w = self._words(given)
        low, high = np.asarray(low, np.int64), np.asarray(high, np.int64)
        with np.errstate(over="ignore"):
            found = low.astype(np.uint64) + _upper(w[0], w[1], high.astype(np.uint64) - low.astype(np.uint64))
        return found.astype(np.int64)[()]

    def bernoulli(self, p: Any = 0.5, shape: Shape = None, *, size: Shape = None) -> Any:
        """True with probability p: 53 random bits are less than p. shape: left out, that of p."""
        w = self._words(_extents(shape, size, p))
        return _bits(w[0], w[1]) * 2.0**-53 < np.asarray(p, np.float64)

    # -- bits ----------------------------------------------------------------------------------------------

    def _words(self, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
        """The four words of every element of the next draw."""
        n = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
        draw, self._draw = self._draw, self._draw + 1
        counter = (n & _LOW, n >> _HALF, draw & 0xFFFFFFFF, self.example & 0xFFFFFFFF)
        with np.errstate(over="ignore"):
            return philox(counter, (self.seed & 0xFFFFFFFF, self.seed >> 32))

    def _uniform(self, w: tuple[np.ndarray, ...]) -> Any:
        if self.dtype == np.float32:
            return (w[0] >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
        return _bits(w[0], w[1]) * 2.0**-53

    def __repr__(self) -> str:
        return f"Random({self.seed})"


def _bits(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The upper 53 of 64 bits, as a float64."""
    return (high << np.uint64(21) | low >> np.uint64(11)).astype(np.float64)


def _upper(high: np.ndarray, low: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The upper 64 bits of a product of 64 bits by 64 bits."""
    a, b = n >> _HALF, n & _LOW
    middle = high * b + (low * b >> _HALF)
    rest = low * a + (middle & _LOW)
    return high * a + (middle >> _HALF) + (rest >> _HALF)


def _extents(shape: Shape, size: Shape, *like: Any) -> tuple[int, ...]:
    """The shape of a draw. TypeError if it is given twice, ValueError if what it is drawn from does not fit."""
    if shape is not None and size is not None:
        raise TypeError("the shape of a draw is given twice, as shape and as size")
    given = size if shape is None else shape
    own = np.broadcast_shapes(*(np.shape(a) for a in like))
    if given is None:
        return own
    found = tuple(int(n) for n in given) if isinstance(given, tuple | list) else (int(given),)
    if any(n < 0 for n in found):
        raise ValueError("negative dimensions are not allowed")
    if np.broadcast_shapes(own, found) != found:
        raise ValueError(f"a draw of shape {found} cannot be made from arguments of shape {own}")
    return found
