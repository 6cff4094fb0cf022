"""`Dropout`, `RandomMask`: in training, elements are zeroed at random."""

from typing import Any

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field
from layerc.runtime.layer import Builtin, LayerState, require_float


class Zeroing(Builtin):
    """Base: in phase train, elements are zeroed with probability `ratio`, the others scaled; else the identity.

    Which ones is a function of a seed, so that backward zeroes the same without their being stored.
    """

    has_neuron = can_do_bp = is_per_example = True
    ratio: float

    @property
    def scale(self) -> float:
        return 1.0

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        return LayerState(self, blobs=[Blob.empty(x.shape, x.dtype) for x in inputs], seeds=None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        is_zeroing = state.phase == "train" and self.ratio > 0
        state.seeds = [state.rng.next_seed() for _ in inputs] if is_zeroing else None
        self._apply(state.seeds, inputs, state.blobs)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        self._apply(state.seeds, state.blobs_diff, diffs)  # it is linear: what it does to x it does to gradients

    def _apply(self, seeds: list[int] | None, sources: list[Blob], targets: list[Any]) -> None:
        """target = what becomes of the source, for those that are wanted."""
        for k, (source, target) in enumerate(zip(sources, targets)):
            if not target:
                continue
            if seeds is None:
                target.data = source.data
            else:
                config = {"ratio": self.ratio, "scale": self.scale}
                zeroing = builtin.function("standard.dropout")
                target.adopt(zeroing.run("predict", {"x": source.data}, config, seed=seeds[k])["y"])


class Dropout(Zeroing):
    """In phase train each element is 0 with probability `ratio`, the others times 1/(1-ratio) (unless
    `auto_scale=False`); else the identity. Without tops it works in place."""

    is_inplace = True
    bottom_counts = (1, 1)
    top_count = 1

    ratio: float = field(0.5, check=lambda r: 0 <= r < 1)
    auto_scale: bool = field(True, convert=boolean)

    @property
    def scale(self) -> float:
        return 1 / (1 - self.ratio) if self.auto_scale else 1.0


class RandomMask(Zeroing):
    """In phase train each element is 0 with probability `ratio`, the others unchanged; else the identity."""

    is_multi = True
    bottom_counts = (1, None)

    ratio: float = field(0.5, check=lambda r: 0 <= r <= 1)
