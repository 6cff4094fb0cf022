"""`Blob`: an n-D array that grows in place, with its gradient; `NullBlob`: a gradient nobody needs.

b = Blob(np.zeros((64, 10), np.float32))
b.data          the array                    b.diff      its gradient: an array, or NullBlob
b.resize((17, 10))   a shorter batch: same memory; a longer one grows it
"""

import math
from typing import Any

import numpy as np

Shape = tuple[int, ...]


class NullBlob:
    """Stands for a gradient that nobody needs. One object, false in a condition."""

    _only: "NullBlob | None" = None

    def __new__(cls) -> "NullBlob":
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NullBlob()"

    def __reduce__(self) -> tuple[type, tuple]:  # copies and pickles stay the one object
        return NullBlob, ()


class Blob:
    """An array float32, float64 or integer, C-contiguous, and beside it `diff`, the gradient of the
    objective.

    A NumPy array is taken as it is, not copied; anything else NumPy can read is. TypeError for other types.
    """

    __slots__ = ("_buffer", "_data", "_diff")
    _buffer: Any  # the array it lies in, flat; None: made when it is needed
    _data: Any  # an array

    def __init__(self, array: Any, diff: Any = NullBlob()) -> None:
        self._diff: Blob | NullBlob = NullBlob()
        self.adopt(as_array(array))
        self.diff = diff
        if isinstance(diff, Blob):
            self._check_diff(diff)

    @classmethod
    def empty(cls, shape: Shape, dtype: Any = np.float32) -> "Blob":
        """A blob of that shape; the values are zeros, so that nothing unset is ever read."""
        return cls(np.zeros(shape, dtype))

    def fresh(self, shape: Shape) -> "Blob":
        """Another blob of this type; its values may be anything."""
        return Blob.empty(shape, self.dtype)

    def zeros(self, shape: Shape) -> np.ndarray:
        """An array of this type."""
        return np.zeros(shape, self.dtype)

    @property
    def shape(self) -> Shape:
        return self._data.shape

    @property
    def dtype(self) -> np.dtype:
        return self._data.dtype

    @property
    def data(self) -> np.ndarray:
        """The array. Assigning copies into the blob, and resizes it if the shape is another."""
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        value = np.asarray(value)
        if value.shape != self.shape:
            self.resize(value.shape)
        np.copyto(self._data, value, casting="same_kind")

    @property
    def diff(self) -> Any:
        """The gradient's array, or `NullBlob`."""
        return self._diff.data if isinstance(self._diff, Blob) else self._diff

    @diff.setter
    def diff(self, value: Any) -> None:
        diff = value if isinstance(value, Blob | NullBlob) else Blob(value)
        if diff is not value:  # a blob that a net lends may have its shape from the next backward only
            self._check_diff(diff)
        self._diff = diff

    def _check_diff(self, diff: "Blob | NullBlob") -> None:
        if isinstance(diff, Blob) and diff.shape != self.shape:
            raise ValueError(f"the diff of a blob of shape {self.shape} cannot have shape {diff.shape}")

    def copy_from(self, x: Any) -> None:
        """Set the values from an array or blob of the same shape; ValueError for another."""
        x = x.data if isinstance(x, Blob) else as_array(x)
        if x.shape != self.shape:
            raise ValueError(f"cannot copy shape {x.shape} into a blob of shape {self.shape}")
        np.copyto(self._data, x, casting="same_kind")

    def fill(self, value: float) -> None:
        self._data.fill(value)

    def to_array(self) -> np.ndarray:
        """A copy of the values."""
        return self._data.copy()

    def reshape(self, shape: Any) -> "Blob":
        """A new Blob on the same memory (and the gradient's likewise); one -1 may stand for what is left."""
        diff = self._diff.reshape(shape) if isinstance(self._diff, Blob) else self._diff
        return Blob(self._data.reshape(shape), diff)

    def resize(self, shape: Any) -> None:
        """Give it another shape, in place. The memory grows where it must and is kept where it shrinks; the
        values are then anything."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if shape == self.shape:
            return
        if any(n < 0 for n in shape):
            raise ValueError(f"cannot resize a blob to {shape}")
        count = math.prod(shape)
        if self._buffer is None:
            self._buffer = self._data.reshape(-1)
        if count > self._buffer.size:
            self._buffer = np.zeros(count, self.dtype)
        self._data = self._buffer[:count].reshape(shape)

    def adopt(self, array: np.ndarray) -> None:
        """Take a freshly made array as the values, without a copy."""
        if type(array) is np.ndarray and array.flags.c_contiguous:
            self._data = array
        else:
            self._data = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes 0-d 1-d
        self._buffer = None

    def copy_in(self, array: np.ndarray) -> None:
        """Take a copy of the values, and the type."""
        if array.dtype == self.dtype:
            self.data = array
        else:
            self.adopt(array.copy())

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._data, dtype=dtype, copy=copy)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Blob({'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype})"


def as_array(x: Any) -> np.ndarray:
    """The NumPy array of whatever holds one, DLPack included; TypeError for types no blob has."""
    if isinstance(x, Blob):
        return x.data
    if not isinstance(x, np.ndarray) and hasattr(x, "__dlpack__"):
        array = np.from_dlpack(x)
    else:
        array = np.asarray(x)
    if array.dtype not in (np.float32, np.float64) and array.dtype.kind not in "iu":
        raise TypeError(f"a blob holds float32, float64 or integers, not {array.dtype}")
    return array
