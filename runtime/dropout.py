"""`Dropout`, `RandomMask`: in training, elements are zeroed at random."""

from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field
from layerc.runtime.layer import Builtin, LayerState, require_float


class Dropout(Builtin):
    """In phase train each element is 0 with probability `ratio`, the others times 1/(1-ratio) (unless
    `auto_scale=False`); else the identity. Without tops it works in place."""

    has_neuron = can_do_bp = is_inplace = True
    bottom_counts = (1, 1)
    top_count = 1

    ratio: float = field(0.5, check=lambda r: 0 <= r < 1)
    auto_scale: bool = field(True, convert=boolean)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(inputs[0].shape, inputs[0].dtype)], mask=None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        (x,), (y,) = inputs, state.blobs
        if state.phase != "train" or self.ratio == 0:
            state.mask = None
            y.data = x.data
            return
        state.mask = _mask(state, x, self.ratio, 1 / (1 - self.ratio) if self.auto_scale else 1)
        y.adopt(builtin.run("standard.masked", {"x": x.data, "mask": state.mask})["y"])

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        (dy,), (dx,) = state.blobs_diff, diffs
        if state.mask is None:
            dx.data = dy.data
        else:  # the gradient is masked as the value was
            dx.adopt(builtin.run("standard.masked", {"x": dy.data, "mask": state.mask})["y"])


class RandomMask(Builtin):
    """In phase train each element is 0 with probability `ratio`, the others unchanged; else the identity."""

    has_neuron = can_do_bp = is_multi = True
    bottom_counts = (1, None)

    ratio: float = field(0.5, check=lambda r: 0 <= r <= 1)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(x.shape, x.dtype) for x in inputs], masks=None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        is_masking = state.phase == "train" and self.ratio > 0
        state.masks = [_mask(state, x, self.ratio, 1) for x in inputs] if is_masking else None
        _apply(state.masks, inputs, state.blobs)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        _apply(state.masks, state.blobs_diff, diffs)


def _mask(state: LayerState, x: Blob, ratio: float, scale: float) -> np.ndarray:
    """What x is multiplied by."""
    kept = state.rng.next().random(x.shape, dtype=np.float32) >= ratio
    return kept * x.dtype.type(scale)


def _apply(masks: list[np.ndarray] | None, sources: list[Blob], targets: list[Any]) -> None:
    """target = source times mask, for those that are wanted."""
    for k, (source, target) in enumerate(zip(sources, targets)):
        if not target:
            continue
        if masks is None:
            target.data = source.data
        else:
            target.adopt(builtin.run("standard.masked", {"x": source.data, "mask": masks[k]})["y"])
