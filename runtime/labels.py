"""Labels: integers (N, *positions) for scores with the classes along one axis."""

import numpy as np

from layerc.runtime.axes import as_rows, channel_axis
from layerc.runtime.layer import BadInput, BadLabel, BadType


def labels_of(label: np.ndarray, shape: tuple[int, ...], axis: int, ignore: int | None) -> np.ndarray:
    """The labels as int64, one for each row of the scores (`as_rows`), -1 where they are ignored.

    shape: of the scores. Labels have it without the class axis, or with 1 there. IndexError (as
    `BadLabel`) for
    one outside 0..C-1.
    """
    at = channel_axis(axis, shape)
    if label.dtype.kind not in "iu":
        raise BadType(f"labels must be integers, not {label.dtype}")
    without = (*shape[:at], *shape[at + 1 :])
    with_one = (*shape[:at], 1, *shape[at + 1 :])
    if label.shape not in (without, with_one):
        raise BadInput(f"labels for scores {shape} with the classes along axis {at} have shape {without}")
    wide = label.astype(np.int64)
    ignored = wide == ignore if ignore is not None else np.zeros(wide.shape, bool)
    bad = ((wide < 0) | (wide >= shape[at])) & ~ignored
    if bad.any():
        raise BadLabel(f"label {wide[bad][0]} is outside 0..{shape[at] - 1}")
    wide[ignored] = -1
    return as_rows(wide.reshape(with_one), at).reshape(-1)
