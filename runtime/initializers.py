"""How parameters start: `InnerProduct(10, weight_init=He(), bias_init=Constant(0.1))`.

An initializer is anything with `draw(rng, shape, dtype)`; the `init.uniform(...)` of a layer file is one too.
"""

from __future__ import annotations  # numpy.random is loaded when it is used

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from layerc.runtime.fields import check_numbers


class Initializer(Protocol):
    """What the net asks of an initializer."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray: ...


@dataclass(frozen=True)
class Constant:
    """All `value`."""

    value: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self, "value")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.full(shape, self.value, dtype)


@dataclass(frozen=True)
class Xavier:
    """Uniform on ±sqrt(3/n); n: fan-in, or with `fan="avg"` the mean of fan-in and fan-out (Glorot 2010)."""

    fan: str = "in"

    def __post_init__(self) -> None:
        _check_fan(self.fan, "Xavier")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        bound = math.sqrt(3 / fan(shape, self.fan))
        return np.asarray(rng.uniform(-bound, bound, shape)).astype(dtype)


@dataclass(frozen=True)
class He:
    """Normal with standard deviation sqrt(2/n), n as for Xavier (He et al. 2015)."""

    fan: str = "in"

    def __post_init__(self) -> None:
        _check_fan(self.fan, "He")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.asarray(rng.normal(0, math.sqrt(2 / fan(shape, self.fan)), shape)).astype(dtype)


@dataclass(frozen=True)
class Gaussian:
    """Normal."""

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(self, "mean", "std")
        if not self.std >= 0:
            raise ValueError(f"Gaussian: std={self.std!r} is negative")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.asarray(rng.normal(self.mean, self.std, shape)).astype(dtype)


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high)."""

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(self, "low", "high")
        if not self.low <= self.high:
            raise ValueError(f"Uniform: low={self.low!r} is above high={self.high!r}")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.asarray(rng.uniform(self.low, self.high, shape)).astype(dtype)


@dataclass(frozen=True)
class Orthogonal:
    """`gain` times a matrix with orthonormal rows or columns, whichever are fewer (Saxe et al. 2014).

    Of more than two axes, all but the first count as one. ValueError for fewer than two.
    """

    gain: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(self, "gain")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal needs two axes or more, got shape {shape}")
        rows, columns = shape[0], math.prod(shape[1:])
        normal = rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(normal)
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)  # makes the distribution uniform (Mezzadri 2007)
        return (self.gain * (q if rows >= columns else q.T)).reshape(shape).astype(dtype)


class Array:
    """These values."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)
        if self.values.dtype.kind not in "fiub":
            raise ValueError(f"Array: values of type {self.values.dtype} must be numbers")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        if self.values.shape != tuple(shape):
            raise ValueError(f"Array of shape {self.values.shape} cannot start a parameter of shape {tuple(shape)}")
        return self.values.astype(dtype)

    def __repr__(self) -> str:
        return f"Array({'x'.join(map(str, self.values.shape))})"


def fan(shape: tuple[int, ...], which: str = "in") -> float:
    """Fan-in of (in, out) or of a filter (n_filter, C, kh, kw); `avg`: the mean with the fan-out."""
    if len(shape) > 2:
        inside, out = math.prod(shape[1:]), shape[0] * math.prod(shape[2:])
    else:
        inside, out = math.prod(shape[:1]), math.prod(shape[1:])
    return max(inside, 1) if which == "in" else max((inside + out) / 2, 1)


def _check_fan(which: str, owner: str) -> None:
    if which not in ("in", "avg"):
        raise ValueError(f'{owner}: fan={which!r} must be "in" or "avg"')
