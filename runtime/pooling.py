"""Layers over neighbourhoods: `Pooling`, `ChannelPooling`, `LRN`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from layerc.runtime.axes import as_channels, channel_axis
from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field, integer, one_of
from layerc.runtime.layer import BadInput, LayerState
from layerc.runtime.mapped import Mapped, Shape


def pair(least: int) -> Callable[[Any], tuple[int, int]]:
    """A converter to two integers, at least `least`; one stands for both."""

    def convert(value: Any) -> tuple[int, int]:
        values = (value, value) if isinstance(value, int | np.integer) else tuple(value)
        if len(values) != 2:
            raise ValueError("must be an integer or a pair of them")
        first, second = (integer(v) for v in values)
        if min(first, second) < least:
            raise ValueError(f"must be {least} or more")
        return first, second

    return convert


def as_planes(array: np.ndarray) -> np.ndarray:
    """(N, C, H, W) as (N C, H, W)."""
    n, c, height, width = array.shape
    return array.reshape(n * c, height, width)


def check_image(shape: Shape) -> None:
    if len(shape) != 4:
        raise BadInput(f"takes images (N, C, H, W), not shape {shape}")


class Pooling(Mapped):
    """Maximum or mean over windows of each channel of (N, C, H, W), as PyTorch's.

    ceil: also the windows that reach over the end, if they begin inside or in the front padding. A maximum pads with
    -inf and equal elements share the gradient; a mean divides by the elements and the padding (count_pad), or
    by the elements alone.
    """

    pooling: str = field("max", convert=one_of("max", "mean"))
    kernel: Any = field((1, 1), convert=pair(1))
    stride: Any = field((1, 1), convert=pair(1))
    pad: Any = field((0, 0), convert=pair(0))
    ceil: bool = field(False, convert=boolean)
    count_pad: bool = field(True, convert=boolean)

    def check_fields(self, owner: str) -> None:
        if any(2 * p > k for p, k in zip(self.pad, self.kernel)):
            raise ValueError(f"{owner}: field pad={self.pad} must be at most half of the kernel {self.kernel}")

    def _windows(self, size: int, d: int) -> int:
        """Their number in direction d."""
        kernel, stride, pad = self.kernel[d], self.stride[d], self.pad[d]
        room = size + 2 * pad - kernel
        count = (-(-room // stride) if self.ceil else room // stride) + 1
        if count < 1 or not size:
            raise BadInput(f"size {size} with padding {pad} is too small for a window of the kernel {kernel}")
        # A last window that begins in the end padding is none.
        return count - 1 if self.ceil and (count - 1) * stride >= size + pad else count

    def top_shape(self, shape: Shape) -> Shape:
        check_image(shape)
        return (*shape[:2], self._windows(shape[2], 0), self._windows(shape[3], 1))

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        top = self.top_shape(shape)
        ends = [max((top[2 + d] - 1) * self.stride[d] + self.kernel[d] - self.pad[d] - shape[2 + d], 0) for d in (0, 1)]
        config: dict[str, int] = {}
        for key, values in (("kernel", self.kernel), ("stride", self.stride), ("pad", self.pad), ("end", ends)):
            config |= {f"{key}_h": values[0], f"{key}_w": values[1]}
        if self.pooling == "mean":
            return "pooling.mean_plane", config
        if self.kernel == self.stride == (2, 2) and self.pad == (0, 0) and not any(ends):
            return "pooling.max_pairs", {}
        return "pooling.max_plane", {**config, "rows": top[2], "columns": top[3]}

    def view(self, array: np.ndarray) -> np.ndarray:
        return as_planes(array)

    def more(self, state: LayerState, x: Blob) -> dict[str, np.ndarray]:
        if self.pooling == "max":
            return {}
        return {name: self._shares(x.shape[2 + d], d).astype(x.dtype) for d, name in enumerate(("share_h", "share_w"))}

    def _shares(self, size: int, d: int) -> np.ndarray:
        """One over the number of elements that count in each window of direction d."""
        pad = self.pad[d]
        start = np.arange(self._windows(size, d)) * self.stride[d] - pad
        first, last = (-pad, size + pad) if self.count_pad else (0, size)
        return 1 / (np.minimum(start + self.kernel[d], last) - np.maximum(start, first))


class ChannelPooling(Mapped):
    """Maximum or mean over windows along one axis; `pad`: in front and at the end. Equal maxima share the
    gradient; a mean divides by the whole kernel."""

    pooling: str = field("max", convert=one_of("max", "mean"))
    kernel: int = field(1, check=lambda k: k > 0, convert=integer)
    stride: int = field(1, check=lambda s: s > 0, convert=integer)
    pad: Any = field((0, 0), convert=pair(0))
    axis: int = field(1, convert=integer)

    def check_fields(self, owner: str) -> None:
        if max(self.pad) >= self.kernel:
            raise ValueError(f"{owner}: field pad={self.pad} must be smaller than the kernel {self.kernel}")

    def top_shape(self, shape: Shape) -> Shape:
        axis = channel_axis(self.axis, shape)
        room = shape[axis] + sum(self.pad) - self.kernel
        if room < 0 or not shape[axis]:
            raise BadInput(f"axis {axis} of shape {shape} with padding {self.pad} is smaller than the kernel")
        return (*shape[:axis], room // self.stride + 1, *shape[axis + 1 :])

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        count = self.top_shape(shape)[channel_axis(self.axis, shape)]
        config = {"count": count, "kernel": self.kernel, "stride": self.stride, "pad": self.pad[0]}
        return f"pooling.{self.pooling}_channels", config

    def view(self, array: np.ndarray) -> np.ndarray:
        return as_channels(array, self.axis)


class LRN(Mapped):
    """x / (shift + scale/n sum x²)^power over n neighbours, zero padded: `kernel` channels (mode "across"), or
    kernel² places of (N, C, H, W) ("within") (Krizhevsky et al. 2012)."""

    kernel: int = field(5, check=lambda k: k > 0 and k % 2 == 1, convert=integer)
    scale: float = field(1.0, check=math.isfinite)
    shift: float = field(1.0, check=math.isfinite)
    power: float = field(0.75, check=math.isfinite)
    mode: str = field("across", convert=one_of("across", "within"))

    def top_shape(self, shape: Shape) -> Shape:
        if self.mode == "within":
            check_image(shape)
        else:
            channel_axis(1, shape)
        return shape

    def function(self, shape: Shape) -> tuple[str, dict[str, Any]]:
        across = self.mode == "across"
        count = self.kernel if across else self.kernel**2
        config = {"kernel": self.kernel, "pad": self.kernel // 2, "scale": self.scale / count}
        config |= {"shift": self.shift, "power": self.power}
        return "pooling.normalise_channels" if across else "pooling.normalise_plane", config

    def view(self, array: np.ndarray) -> np.ndarray:
        return as_channels(array, 1) if self.mode == "across" else as_planes(array)
