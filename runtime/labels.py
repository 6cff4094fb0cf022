"""Labels: integers (N, *positions) for scores with the classes along one axis."""

import numpy as np

from layerc.runtime.axes import as_rows, channel_axis
from layerc.runtime.layer import BadInput, BadLabel, BadType
from layerc.runtime.stand_in import StandIn


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
    check_range(wide, shape[at], "label", ignore)
    if ignore is not None:
        wide = np.where(wide == ignore, -1, wide)
    return as_rows(wide.reshape(with_one), at).reshape(-1)


def check_range(
    index: np.ndarray,
    bound: int,
    what: str,
    ignore: int | None = None,
    error: type[Exception] = BadLabel,
    shown: np.ndarray | None = None,
) -> None:
    """An error for an index outside 0..bound-1 that is not `ignore`. what: words before the number and, after {0},
    behind it. shown: where the number stands, if not in `index`."""
    message = f"{what if '{0}' in what else what + ' {0} is'} outside 0..{bound - 1}"
    _require(index, 0, bound, ignore, message, error, index if shown is None else shown)


def check_signs(label: np.ndarray) -> None:
    """BadLabel for an integer that is neither -1 nor 1."""
    wide = label.astype(np.int64)
    _require(wide, 1, 2, -1, "label {0} is neither -1 nor 1", BadLabel, wide)


def _require(
    index: np.ndarray,
    low: int,
    high: int,
    skip: int | None,
    message: str,
    error: type[Exception],
    shown: np.ndarray,
) -> None:
    """All within low..high-1, or `skip`."""
    if isinstance(index, StandIn):
        return index.require_range(low, high, skip, message)
    bad = (index < low) | (index >= high)
    if skip is not None:
        bad &= index != skip
    if bad.any():
        raise error(message.format(shown[bad][0]))
