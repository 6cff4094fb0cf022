"""`FunctionLayer`: a plain NumPy function on whole batches as a layer."""

from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import Field, field
from layerc.runtime.layer import Builtin, LayerState
from layerc.runtime.stand_in import StandIn
from layerc.runtime.topology import titled


class FunctionLayer(Builtin):
    """tops = fn(*bottoms), an array or a tuple of them.

    backward(*bottoms, *dys): one gradient or a tuple, one for each bottom (None: zeros); without it the layer
    cannot do bp. At set-up `fn` is called once, on zeros, for the shapes.
    """

    has_neuron = True
    is_builtin = False  # its backward may leave a gradient out
    is_recordable = True
    bottom_counts = (1, None)
    positional = ("fn", "backward")

    fn: Any = field(check=callable)
    backward_fn: Any = None

    @classmethod
    def _keywords(cls) -> dict[str, tuple[Any, Any]]:
        known = super()._keywords()
        known["backward"] = (None, Field(None, callable))
        return known

    def _set(self, key: str, value: Any) -> None:
        super()._set("backward_fn" if key == "backward" else key, value)  # `backward` is the method

    def check_fields(self, owner: str) -> None:
        self._set("can_do_bp", self.backward_fn is not None)

    def bottom_kind(self, k: int) -> str | None:
        return None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        made = self._call(inputs)
        return LayerState(self, blobs=[Blob(a.copy()) for a in made])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        made = self._call(inputs)
        if len(made) != len(state.blobs):
            raise ValueError(f"{titled(self)}: fn gave {len(made)} arrays, and {len(state.blobs)} before")
        for blob, array in zip(state.blobs, made):
            blob.data = array

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        dys = [d.data if d else b.zeros(b.shape) for d, b in zip(state.blobs_diff, state.blobs)]
        found = self.backward_fn(*(x.data for x in inputs), *dys)
        found = tuple(found) if isinstance(found, tuple | list) else (found,)
        if len(found) != len(inputs):
            raise ValueError(f"{titled(self)}: backward gave {len(found)} gradients for {len(inputs)} bottoms")
        for dx, gradient in zip(diffs, found):
            if dx and gradient is not None:
                dx.data = self._numbers("backward", gradient)

    def _call(self, inputs: list[Blob]) -> tuple[np.ndarray, ...]:
        """fn's arrays, floats in the float type of the bottoms. The bottoms are handed out read-only."""
        arrays = []
        for x in inputs:
            view = x.data
            if isinstance(view, np.ndarray):
                view = view.view()
                view.flags.writeable = False
            arrays.append(view)
        made = self.fn(*arrays)
        floats = [x.dtype for x in inputs if x.dtype.kind == "f"] or [np.dtype(np.float32)]
        made = tuple(made) if isinstance(made, tuple | list) else (made,)
        made = tuple(self._numbers("fn", a) for a in made)
        return tuple(a if a.dtype.kind in "iu" else a.astype(floats[0], copy=False) for a in made)

    def _numbers(self, what: str, value: Any) -> Any:
        """An array that the user's function gave. TypeError for what is none."""
        array = value if isinstance(value, StandIn) else np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{titled(self)}: {what} gave {value!r}, which is no array of numbers")
        return array
