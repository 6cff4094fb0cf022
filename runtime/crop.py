"""`Crop`: a rectangle of images."""

from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field
from layerc.runtime.layer import BadInput, LayerState
from layerc.runtime.mapped import Mapped, Shape
from layerc.runtime.pooling import check_image, pair


class Crop(Mapped):
    """The rectangle `crop_size=(h, w)` of images (N, C, H, W): the centre, offset (H-h)//2.

    In phase train random_crop draws the place, random_mirror whether left and right are exchanged, for each
    example; an example is cropped at the same relative place in all bottoms.
    """

    address = "standard.crop"

    crop_size: Any = field(convert=pair(1))
    random_crop: bool = field(False, convert=boolean)
    random_mirror: bool = field(False, convert=boolean)

    def top_shape(self, shape: Shape) -> Shape:
        check_image(shape)
        if any(n < wanted for n, wanted in zip(shape[2:], self.crop_size)):
            raise BadInput(f"images {shape[2:]} are smaller than crop_size {self.crop_size}")
        return (*shape[:2], *self.crop_size)

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        return self.address, {"height": self.crop_size[0], "width": self.crop_size[1]}

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        # Places in [0, 1) for each example, drawn even where they are not used, so that one choice does not
        # change the other's numbers.
        is_random = state.phase == "train" and (self.random_crop or self.random_mirror)
        state.draws = state.rng.next().random((3, inputs[0].shape[0])) if is_random else None
        super().forward(backend, state, inputs)

    def more(self, state: LayerState, x: Blob) -> dict[str, np.ndarray]:
        n = x.shape[0]
        places = {}
        for k, name in enumerate(("top", "left")):
            free = x.shape[2 + k] - self.crop_size[k]
            drawn = state.draws is not None and self.random_crop
            places[name] = (
                (state.draws[k] * (free + 1)).astype(np.int64) if drawn else x.zeros((n,)).astype(np.int64) + free // 2
            )
        mirrored = state.draws is not None and self.random_mirror
        return {**places, "is_mirrored": state.draws[2] < 0.5 if mirrored else x.zeros((n,)).astype(bool)}
