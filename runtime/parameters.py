"""`Parameter`: what a layer learns; `ParameterBuffer`: all parameters of a net side by side in one array."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from layerc.runtime.blob import NullBlob
from layerc.runtime.constraints import Constraint, NoCons
from layerc.runtime.initializers import Initializer, Xavier
from layerc.runtime.regularizers import NoRegu, Regularizer


class Parameter:
    """A learnable array with its gradient, and how it starts, is regularized, constrained and updated.

    `data`        the array; `data[...] = v` sets it
    `gradient`    an array, or `NullBlob` while frozen and before the first backward
    `lr`, `decay` factors of the solver's rate and of the regularizer; lr = 0 freezes
    Parameters that layers share are one object.
    """

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        init: Initializer = Xavier(),
        regu: Regularizer = NoRegu(),
        cons: Constraint = NoCons(),
        lr: float = 1.0,
        decay: float = 1.0,
    ) -> None:
        self.name, self.shape = name, tuple(int(n) for n in shape)
        self.init, self.regu, self.cons = init, regu, cons
        self.lr, self.decay = lr, decay
        self.is_frozen_by_user = False
        self.is_bound = False
        self._data: np.ndarray | None = None
        self._gradient: np.ndarray | NullBlob = NullBlob()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def data(self) -> np.ndarray:
        if self._data is None:
            self._data = np.zeros(self.shape, np.float32)
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        self.data[...] = self._fitting(value, "data")

    @property
    def gradient(self) -> Any:
        return self._gradient

    @gradient.setter
    def gradient(self, value: Any) -> None:
        if isinstance(self._gradient, NullBlob):
            self._gradient = np.zeros(self.shape, self.data.dtype)
        self._gradient[...] = self._fitting(value, "gradient")

    @property
    def lr(self) -> float:
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._lr = self._factor("lr", value)

    @property
    def decay(self) -> float:
        return self._decay

    @decay.setter
    def decay(self, value: float) -> None:
        self._decay = self._factor("decay", value)

    def _factor(self, what: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
            raise ValueError(f"{what} of parameter {self.name!r} must be a number, 0 or more, not {value!r}")
        return float(value)

    @property
    def frozen(self) -> bool:
        """No gradient and no update: frozen by `net.freeze`, or by a learning rate factor of 0."""
        return self.is_frozen_by_user or self.lr == 0

    def bind(self, data: np.ndarray) -> None:
        """Live in this memory, a net's, from now on."""
        self._data = data.reshape(self.shape)
        self.is_bound = True

    def lend_gradient(self, gradient: np.ndarray | NullBlob) -> np.ndarray | NullBlob:
        """Replace the gradient's memory; returns the one before."""
        before, self._gradient = self._gradient, gradient
        return before

    def _fitting(self, value: Any, what: str) -> np.ndarray:
        value = np.asarray(value)
        if value.shape != self.shape:
            raise ValueError(f"{what} of parameter {self.name!r} has shape {self.shape}, not {value.shape}")
        return value

    def __repr__(self) -> str:
        return f"Parameter({self.name!r}, {self.shape}{', frozen' if self.frozen else ''})"


class ParameterBuffer:
    """The distinct parameters of a net, contiguous in `data`, their gradients in `gradient`.

    One array each, so that a solver updates a whole net with one kernel call.
    """

    def __init__(self, parameters: Sequence[Parameter], dtype: Any) -> None:
        self.parameters = list(parameters)
        ends = np.cumsum([0] + [p.size for p in self.parameters])
        self.places = {id(p): slice(int(a), int(b)) for p, a, b in zip(self.parameters, ends[:-1], ends[1:])}
        self.data = np.zeros(int(ends[-1]), dtype)
        self.gradient = np.zeros(int(ends[-1]), dtype)
        for p in self.parameters:
            p.bind(self.data[self.places[id(p)]])

    def of(self, flat: np.ndarray, parameter: Parameter) -> np.ndarray:
        """The part of a flat array (this one, or a solver's history) that belongs to a parameter."""
        return flat[self.places[id(parameter)]].reshape(parameter.shape)

    def segments(self, key: Any) -> list[tuple[slice, Any]]:
        """Neighbours with an equal `key(parameter)`, joined: (place, key) pairs, frozen parameters left
        out."""
        joined: list[tuple[slice, Any]] = []
        for p in self.parameters:
            if p.frozen or p.size == 0:
                continue
            place, value = self.places[id(p)], key(p)
            if joined and joined[-1][1] == value and joined[-1][0].stop == place.start:
                joined[-1] = (slice(joined[-1][0].start, place.stop), value)
            else:
                joined.append((place, value))
        return joined
