"""`init.uniform(-1, 0)`, `init.he()`...: how the arrays of a layer start.

An initializer is an object with a name and arguments; the compiler reads the same from the source. The
numbers are drawn by the runtime's initializers: a layer starts alike under NumPy, compiled, and in a Net.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from layerc.runtime import initializers as rules


@dataclass(frozen=True)
class Initializer:
    """A rule for first values: `name` is one of the functions below, `args` its arguments."""

    name: str
    args: tuple[float, ...] = ()

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An array of that shape and type. Numbers are drawn as float64, then rounded: one seed, one net."""
        return _RULES[self.name](*self.args).draw(rng, shape, dtype)

    def __repr__(self) -> str:
        return f"init.{self.name}({', '.join(map(repr, self.args))})"


def uniform(lo: float = -1.0, hi: float = 1.0) -> Initializer:
    """Uniform on [lo, hi)."""
    if not lo <= hi:
        raise ValueError(f"init.uniform: lo={lo!r} is above hi={hi!r}")
    return Initializer("uniform", (lo, hi))


def normal(mean: float = 0.0, std: float = 1.0) -> Initializer:
    """Normal of that mean and standard deviation."""
    if not std >= 0:
        raise ValueError(f"init.normal: std={std!r} is negative")
    return Initializer("normal", (mean, std))


def zeros() -> Initializer:
    """All 0."""
    return Initializer("zeros")


def ones() -> Initializer:
    """All 1."""
    return Initializer("ones")


def constant(value: float) -> Initializer:
    """All `value`."""
    return Initializer("constant", (value,))


def xavier() -> Initializer:
    """Uniform on +-sqrt(3 / fan_in) (Glorot and Bengio 2010, with the fan-in alone)."""
    return Initializer("xavier")


def he() -> Initializer:
    """Normal of standard deviation sqrt(2 / fan_in) (He et al. 2015)."""
    return Initializer("he")


_RULES: dict[str, Callable[..., rules.Initializer]] = {
    "uniform": rules.Uniform,
    "normal": rules.Gaussian,
    "zeros": lambda: rules.Constant(0),
    "ones": lambda: rules.Constant(1),
    "constant": rules.Constant,
    "xavier": rules.Xavier,
    "he": rules.He,
}
