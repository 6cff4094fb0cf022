"""Axes that a layer works along: numbered with the batch, which is none of them."""

import math

import numpy as np

from layerc.runtime.arrays import contiguous
from layerc.runtime.layer import BadInput

Shape = tuple[int, ...]


def channel_axis(axis: int, shape: Shape) -> int:
    """The axis counted from 0, which must not be the batch's."""
    found = axis + len(shape) if axis < 0 else axis
    if not 0 < found < len(shape):
        raise BadInput(f"axis {axis} is none of the axes 1..{len(shape) - 1} of shape {shape}")
    return found


def as_channels(array: np.ndarray, axis: int) -> np.ndarray:
    """The array as (outer, C, inner), C along `axis`."""
    axis = channel_axis(axis, array.shape)
    shape = array.shape
    return array.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


def as_rows(array: np.ndarray, axis: int) -> np.ndarray:
    """The array as (rows, C), C along `axis`: kernels of rows are far faster than those with C in between, so a
    copy pays."""
    axis = channel_axis(axis, array.shape)
    count = math.prod(array.shape[:axis]) * math.prod(array.shape[axis + 1 :])
    return contiguous(np.moveaxis(array, axis, -1)).reshape(count, array.shape[axis])


def from_rows(rows: np.ndarray, axis: int, shape: Shape) -> np.ndarray:
    """What `as_rows` made of an array of that shape, as it was."""
    axis = channel_axis(axis, shape)
    without = (*shape[:axis], *shape[axis + 1 :])
    return np.moveaxis(rows.reshape(*without, shape[axis]), -1, axis)
