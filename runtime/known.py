"""How a class layer recognises a call: its own arrays are looked at when they change, not at every call."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from layerc.runtime.core import Call, Core, is_plain, key_of
from layerc.runtime.kernel import Case
from layerc.runtime.named_arrays import NamedArrays

_MOST_CASES = 256


class Known:
    """The calls of one class layer so far, by its inputs' shapes and types; and its own arrays."""

    def __init__(self, core: Core, *own: NamedArrays) -> None:
        self._core, self._own = core, own
        self._version = -1
        self._keys: Any = None
        self._held: tuple[np.ndarray, ...] = ()
        self._cases: dict[Any, Case] = {}
        self.last: Case | None = None  # of the plain call before

    def forget(self) -> None:
        """The layer has been initialised again: what its inputs' ranks mean may have changed."""
        self._cases.clear()
        self.last = None

    def now(self) -> tuple[np.ndarray, ...]:
        """The layer's own arrays, as `arrays` gives them; looked at again if there are others than before."""
        version = 0
        for arrays in self._own:
            version += arrays.version
        if version != self._version:
            self._look(version)
        return self._held

    def find(self, inputs: Sequence[Any], batch: bool | None) -> tuple[Case, list[Any]] | None:
        """A call like one before: its case, and the addresses of the inputs and the layer's own arrays."""
        try:
            own = self.now()
            key = key_of(inputs[0]) if len(inputs) == 1 else tuple(map(key_of, inputs))
            case = self._cases[key if batch is None else (key, batch)]
            if batch is None:
                self.last = case
            return case, list(map(self._core.library.from_buffer, (*inputs, *own)))
        except (KeyError, AttributeError, TypeError, ValueError):  # ValueError: an array is not contiguous
            return None

    def learn(self, inputs: Sequence[Any], batch: bool | None, call: Call) -> None:
        """Let `find` find calls like this one, if nothing was converted in it but the order in memory."""
        core = self._core
        if core.random is not None or len(inputs) != len(core.input_names):
            return
        if all(map(is_plain, (*inputs, *self.arrays()), call.arrays)):
            if len(self._cases) >= _MOST_CASES:
                self._cases.clear()
            key: Any = key_of(inputs[0]) if len(inputs) == 1 else tuple(map(key_of, inputs))
            self._cases[key if batch is None else (key, batch)] = call.case

    def arrays(self) -> list[np.ndarray]:
        """The layer's own arrays in the order that the kernels take them in: that of the fields."""
        held = {name: array for arrays in self._own for name, array in arrays.items()}
        return [held[name] for name in self._core.array_names if name in held]

    def _look(self, version: int) -> None:
        """At the layer's own arrays: there are others than at the last call."""
        arrays = self.arrays()
        keys = list(map(key_of, arrays))
        if keys != self._keys:
            self.forget()
        self._keys, self._held = keys, tuple(arrays)
        self._version = version
