"""What a parameter must satisfy: applied, in place, after the update of every `every_n_iter`-th iteration."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from layerc.runtime.fields import check_numbers


class Constraint(Protocol):
    """What the solver asks of a constraint."""

    @property
    def every_n_iter(self) -> int: ...

    def apply(self, w: np.ndarray) -> None: ...


@dataclass(frozen=True)
class NoCons:
    """Nothing."""

    every_n_iter: int = 1

    def apply(self, w: np.ndarray) -> None:
        pass


@dataclass(frozen=True)
class L2Cons:
    """Scales each output unit whose norm exceeds `threshold` down to it (Hinton et al. 2012).

    A unit is a column of a `weight (in, out)`, a filter of `(n_filter, C, kh, kw)`, the whole of a bias.
    """

    threshold: float
    every_n_iter: int = 1

    def __post_init__(self) -> None:
        check_numbers(self, "threshold")
        if not self.threshold > 0:
            raise ValueError(f"L2Cons: threshold={self.threshold!r} must be positive")
        _check_every(self.every_n_iter, "L2Cons")

    def apply(self, w: np.ndarray) -> None:
        axes = (0,) if w.ndim == 2 else tuple(range(1, w.ndim)) if w.ndim > 2 else None
        norm = np.sqrt(np.sum(np.square(w, dtype=np.float64), axis=axes, keepdims=True))
        # Units within the threshold are multiplied by exactly 1, hence untouched.
        scale = np.where(norm > self.threshold, self.threshold / np.where(norm > 0, norm, 1), 1)
        w *= scale.reshape(norm.shape).astype(w.dtype)


@dataclass(frozen=True)
class NonNeg:
    """max(w, 0)."""

    every_n_iter: int = 1

    def __post_init__(self) -> None:
        _check_every(self.every_n_iter, "NonNeg")

    def apply(self, w: np.ndarray) -> None:
        np.maximum(w, 0, out=w)


def _check_every(n: int, owner: str) -> None:
    if isinstance(n, bool) or not (isinstance(n, int) and n > 0):
        raise ValueError(f"{owner}: every_n_iter={n!r} must be a positive integer")
