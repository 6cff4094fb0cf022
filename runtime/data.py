"""Sources: `Input`, `MemoryData`, `RandomNormal`, and what all data layers share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field, integer, one_of
from layerc.runtime.layer import Builtin, LayerState
from layerc.runtime.streams import generator
from layerc.runtime.workers import Workers


@dataclass(frozen=True)
class SubMean:
    """x - mean; `mean` broadcasts against one batch."""

    mean: Any

    def __call__(self, x: np.ndarray) -> np.ndarray:
        mean = np.asarray(self.mean, dtype=x.dtype if x.dtype.kind == "f" else None)
        _check_spread("SubMean: mean", mean, x)
        return x - mean


@dataclass(frozen=True)
class Scale:
    """x * scale."""

    scale: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        scale = np.asarray(self.scale, dtype=x.dtype if x.dtype.kind == "f" else None)
        _check_spread("Scale: scale", scale, x)
        return x * scale


def _check_spread(what: str, values: np.ndarray, batch: np.ndarray) -> None:
    """ValueError unless the values broadcast to the batch's shape."""
    tail = batch.shape[batch.ndim - values.ndim :] if values.ndim <= batch.ndim else None
    if tail is None or any(n not in (1, m) for n, m in zip(values.shape, tail)):
        raise ValueError(f"{what} of shape {values.shape} does not broadcast against a batch of shape {batch.shape}")


class DataTransformers:
    """The namespace of the ready-made transformers."""

    SubMean, Scale = SubMean, Scale


class DataLayer(Builtin):
    """A source that goes through a data set, epoch after epoch.

    state.epoch: epochs completed; state.index: samples of the present one already fetched. Order and
    position are
    a function of these two, so they are all that a snapshot needs.
    """

    is_source = True
    default_top_names: ClassVar[tuple[str, ...]] = ("data", "label")

    def divide(self, state: LayerState, workers: Workers) -> None:
        state.workers = workers  # all go through the samples in one order

    def position(self, state: LayerState) -> dict[str, int]:
        return {"epoch": state.epoch, "index": state.index}

    def samples(self, state: LayerState) -> int | None:
        """How many the data set has; None: not known."""
        return None

    def seek(self, state: LayerState, position: dict[str, int]) -> None:
        state.epoch, state.index = int(position["epoch"]), int(position["index"])

    def rewind(self, state: LayerState) -> None:
        """Back to the start of the present epoch."""
        state.index = 0

    def order(self, state: LayerState, epoch: int, n: int) -> np.ndarray | None:
        """The permutation of that epoch; None: as it is."""
        if not self.shuffle:  # type: ignore[attr-defined]
            return None
        if getattr(state, "shuffled", (None,))[0] != (epoch, n):
            permutation = generator(state.rng.seed, self.name, "epoch", epoch).permutation(n)
            state.shuffled = ((epoch, n), permutation)
        return state.shuffled[1]

    def next_samples(self, state: LayerState, n: int, batch_size: int, last: str) -> list[tuple[int, int, int]]:
        """Advance by one batch: (epoch, start, stop) ranges, two where a batch wraps around."""
        size = min(batch_size, n)
        epoch, start = state.epoch, state.index
        stop = min(start + size, n)
        parts = [(epoch, start, stop)]
        state.index = stop
        if stop == n or (last == "drop" and n - stop < size):
            state.epoch, state.index = epoch + 1, 0
            lacking = size - (stop - start)
            if last == "wrap" and lacking:
                parts.append((epoch + 1, 0, lacking))
                state.index = lacking
        return parts


def _arrays(value: Any) -> tuple[np.ndarray, ...]:
    """One array per top; a lone array is one."""
    if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__") or hasattr(value, "iloc"):
        value = [value]
    arrays = tuple(np.asarray(a) for a in value)
    if not arrays:
        raise ValueError("needs an array")
    for a in arrays:
        if a.ndim == 0 or a.dtype.kind not in "fiub":
            raise TypeError(f"takes arrays of numbers with the samples along axis 0, got {a.dtype} {a.shape}")
        if len(a) != len(arrays[0]):
            raise ValueError(f"arrays of different lengths: {[len(a) for a in arrays]}")
    if not len(arrays[0]):
        raise ValueError("has no samples")
    return arrays


def as_transformers(value: Any) -> tuple[tuple[str, Any], ...]:
    pairs = tuple(value)
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str) and callable(pair[1])):
            raise TypeError("is a list of (top, transformer) pairs")
    return tuple((top, t) for top, t in pairs)


class BatchedData(DataLayer):
    """Base of the layers that cut a data set of one column per top into batches.

    `last` says what becomes of a last, smaller batch: "keep", "drop", or "wrap", which fills it with the
    first samples of the next epoch. `shuffle`: a new permutation each epoch. `transformers`: (top, function of
    the batch). A column has a length, and gives rows for a slice or an array of indices.
    """

    batch_size: int
    shuffle: bool
    last: str
    transformers: Any

    def columns(self, state: LayerState) -> Sequence[Any]:
        raise NotImplementedError

    def samples(self, state: LayerState) -> int | None:
        return len(self.columns(state)[0])

    def check_fields(self, owner: str) -> None:
        for top, _ in self.transformers:
            if top not in self.tops:
                raise ValueError(f"{owner}: field transformers names {top!r}, which is none of {list(self.tops)}")

    def first_state(self, backend: Any, columns: Sequence[Any]) -> LayerState:
        """The state, with blobs like the first batch of these columns."""
        dtype = getattr(backend, "dtype", np.dtype(np.float32))
        size = min(self.batch_size, len(columns[0]))
        sample = [self._transformed(k, column[:size], dtype) for k, column in enumerate(columns)]
        blobs = [Blob.empty(a.shape, a.dtype) for a in sample]
        return LayerState(self, blobs=blobs, epoch=0, index=0, dtype=dtype, single_epoch=False)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        columns = self.columns(state)
        n = len(columns[0])
        last = "keep" if self.last == "wrap" and state.single_epoch else self.last
        parts = self.next_samples(state, n, self.batch_size, last)
        if state.phase == "train":
            parts = state.workers.part(parts)
        orders = [self.order(state, epoch, n) for epoch, _, _ in parts]
        for k, column in enumerate(columns):
            rows = [
                column[start:stop] if order is None else column[order[start:stop]]
                for (_, start, stop), order in zip(parts, orders)
            ]
            batch = rows[0] if len(rows) == 1 else np.concatenate(rows)
            state.blobs[k].data = self._transformed(k, batch, state.dtype)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        pass

    def _transformed(self, k: int, batch: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Top k's batch in the net's float type, through its transformers."""
        mine = [t for top, t in self.transformers if top == self.tops[k]]
        batch = _in_type(batch, dtype)
        if mine:  # they may write into what they are given
            batch = batch.copy()
        for t in mine:
            n = len(batch)
            batch = _in_type(np.asarray(t(batch)), dtype)
            if batch.ndim == 0 or len(batch) != n:
                raise ValueError(f"a transformer of {self.tops[k]!r} made shape {batch.shape} of {n} samples")
        return batch


class MemoryData(BatchedData):
    """Batches of arrays in memory, one array per top. The arrays are read, never changed, nor do blobs alias
    them."""

    data: Any = field(convert=_arrays)
    batch_size: int = field(check=lambda n: n > 0, convert=integer)
    shuffle: bool = field(False, convert=boolean)
    last: str = field("keep", convert=one_of("keep", "drop", "wrap"))
    transformers: Any = field((), convert=as_transformers)

    def _default_tops(self) -> tuple[str, ...]:
        return self.default_top_names if len(self.data) != 1 else ("data",)

    def check_fields(self, owner: str) -> None:
        if len(self.data) != len(self.tops):
            raise ValueError(f"{owner}: field data has {len(self.data)} arrays for tops {list(self.tops)}")
        super().check_fields(owner)

    @property
    def float_types(self) -> list[np.dtype]:
        return [a.dtype for a in self.data if a.dtype.kind == "f"]

    def columns(self, state: LayerState) -> Sequence[Any]:
        return self.data

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        return self.first_state(backend, self.data)


def _in_type(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats and bools in the net's float type; integers as they are."""
    return array if array.dtype.kind in "iu" else array.astype(dtype, copy=False)


def _shapes(value: Any) -> tuple[tuple[int | None, ...] | None, ...]:
    """One shape per top; a lone shape is one. A shape of None is found at the first call."""
    if isinstance(value, tuple) and all(n is None or isinstance(n, int | np.integer) for n in value):
        value = [value]
    return tuple(None if s is None else tuple(None if n is None else _extent(n) for n in s) for s in value)


def _extent(value: Any) -> int:
    size = integer(value)
    if size < 0:
        raise ValueError("has a negative extent; None is for an axis that varies")
    return size


def _shape(value: Any) -> tuple[int, ...]:
    value = (value,) if isinstance(value, int) else value
    if any(integer(n) < 0 for n in value):
        raise ValueError("has a negative extent")
    return tuple(integer(n) for n in value)


class Input(Builtin):
    """A placeholder: one shape per top, without the batch axis, None for an axis that varies."""

    is_source = True
    shapes: Any = field(convert=_shapes)

    def check_fields(self, owner: str) -> None:
        if len(self.shapes) != len(self.tops):
            raise ValueError(f"{owner}: field shapes={self.shapes} has {len(self.shapes)} for tops {list(self.tops)}")

    def placeholder_shapes(self) -> list[tuple[int, ...] | None]:
        """Shapes of a batch of one; None where not known."""
        return [None if s is None or None in s else (1, *(n for n in s if n is not None)) for s in self.shapes]

    def accepts(self, k: int, shape: Sequence[int]) -> bool:
        """Whether a batch of that shape fits top k."""
        declared = self.shapes[k]
        if declared is None:
            return True
        return len(shape) == 1 + len(declared) and all(d in (None, n) for d, n in zip(declared, shape[1:]))

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        dtype = getattr(backend, "dtype", np.dtype(np.float32))
        return LayerState(self, blobs=[Blob.empty(s or (1,), dtype) for s in self.placeholder_shapes()])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        """Nothing: the net sets what is read of it."""


class RandomNormal(Builtin):
    """Standard normal numbers (N, *shape), fresh at each forward; N of the net's data layer, or
    `batch_size`."""

    is_source = True
    top_count = 1
    shape: Any = field(convert=_shape)
    batch_size: Any = field(None, convert=integer, check=lambda n: n > 0)

    @property
    def follows_batch(self) -> bool:  # type: ignore[override]
        return self.batch_size is None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        dtype = getattr(backend, "dtype", np.dtype(np.float32))
        return LayerState(self, blobs=[Blob.empty((self.batch_size or 1, *self.shape), dtype)])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        n = self.batch_size or state.batch_size or 1
        out = state.blobs[0]
        out.adopt(state.rng.next().standard_normal((n, *self.shape), dtype=out.dtype))
