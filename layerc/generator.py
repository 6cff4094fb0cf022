"""`Random`: the random numbers of a layer function, under plain NumPy."""

import numpy as np


class Random:
    """A generator drawn from inside a layer function; the same seed gives the same numbers.

    seed: None takes fresh entropy. Draws are float64 and take part in arithmetic as NumPy's do; the compiled
    code draws `real`. (The numbers are NumPy's Philox, not yet those of the compiled code.)
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._generator = np.random.Generator(np.random.Philox(seed))

    def random(self, shape: int | tuple[int, ...] = ()) -> np.ndarray:
        """Uniform on [0, 1)."""
        return self._generator.random(shape)

    def uniform(self, low: float = 0.0, high: float = 1.0, shape: int | tuple[int, ...] = ()) -> np.ndarray:
        """Uniform on [low, high)."""
        return self._generator.uniform(low, high, shape)

    def standard_normal(self, shape: int | tuple[int, ...] = ()) -> np.ndarray:
        """Normal of mean 0 and variance 1."""
        return np.asarray(self._generator.standard_normal(shape))

    def integers(self, low: int, high: int | None = None, shape: int | tuple[int, ...] = ()) -> np.ndarray:
        """Integers of [low, high), or of [0, low) if high is left out."""
        return np.asarray(self._generator.integers(low, high, shape))

    def bernoulli(self, p: float, shape: int | tuple[int, ...] = ()) -> np.ndarray:
        """True with probability p."""
        return np.asarray(self._generator.random(shape) < p)
