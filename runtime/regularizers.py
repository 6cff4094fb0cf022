"""What is added to the objective for a parameter; scaled by `regu_coef` and the parameter's `decay`."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from layerc.runtime.fields import check_numbers
from layerc.runtime.symbolic import number


class Regularizer(Protocol):
    """What the net asks of a regularizer: a value, and its gradient with respect to w."""

    def value(self, w: np.ndarray) -> float: ...

    def gradient(self, w: np.ndarray) -> np.ndarray | None: ...


@dataclass(frozen=True)
class NoRegu:
    """Nothing."""

    def value(self, w: np.ndarray) -> float:
        return 0.0

    def gradient(self, w: np.ndarray) -> np.ndarray | None:
        return None


@dataclass(frozen=True)
class L2Regu:
    """c ||w||², gradient 2 c w. PyTorch's `weight_decay=d` is `regu_coef=d/2`."""

    c: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(self, "c")

    def value(self, w: np.ndarray) -> float:
        return self.c * number(np.sum(np.square(w, dtype=np.float64)))

    def gradient(self, w: np.ndarray) -> np.ndarray | None:
        return (2 * self.c) * w


@dataclass(frozen=True)
class L1Regu:
    """c ||w||_1, gradient c sign(w)."""

    c: float = 1.0

    def __post_init__(self) -> None:
        check_numbers(self, "c")

    def value(self, w: np.ndarray) -> float:
        return self.c * number(np.sum(np.abs(w), dtype=np.float64))

    def gradient(self, w: np.ndarray) -> np.ndarray | None:
        return self.c * np.sign(w)
