"""`HDF5Data`: batches out of HDF5 files that need not fit into memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.data import BatchedData, as_transformers
from layerc.runtime.fields import boolean, field, integer, one_of
from layerc.runtime.layer import LayerState
from layerc.runtime.streams import generator
from layerc.runtime.weights import need

_KEPT = 2  # blocks in memory for each column


def _source(value: Any) -> tuple[Path, ...]:
    paths = (Path(value),) if isinstance(value, str | Path) else tuple(Path(v) for v in value)
    if not paths:
        raise ValueError("must name a file")
    return paths


class HDF5Data(BatchedData):
    """Batches of the datasets that are called like the tops, in a .h5 file, a list of them, or a .txt file that lists
    them (one a line, relative to itself).

    Read in blocks of `chunk_size` samples, two of which are in memory. shuffle: the blocks come in a random order, and
    so do the samples of each. A missing file is an OSError, a missing dataset a ValueError, at `Net(...)`.
    """

    source: Any = field(convert=_source)
    batch_size: int = field(check=lambda n: n > 0, convert=integer)
    shuffle: bool = field(False, convert=boolean)
    last: str = field("keep", convert=one_of("keep", "drop", "wrap"))
    transformers: Any = field((), convert=as_transformers)
    chunk_size: int = field(4096, check=lambda n: n > 0, convert=integer)

    def _default_tops(self) -> tuple[str, ...]:
        return self.default_top_names

    def _paths(self) -> list[Path]:
        found: list[Path] = []
        for path in self.source:
            if path.suffix == ".txt":
                if not path.is_file():
                    raise FileNotFoundError(self._told(f"there is no file {path}"))
                lines = [line.strip() for line in path.read_text().splitlines()]
                found += [path.parent / line for line in lines if line]
            else:
                found.append(path)
        if not found:
            raise ValueError(self._told(f"{self.source[0]} lists no file"))
        return found

    def _open(self) -> list[Any]:
        """The files. OSError for one that is missing or is none."""
        file = need("h5py", "h5py", "all").File
        opened: list[Any] = []
        try:
            for path in self._paths():
                if not path.is_file():
                    raise FileNotFoundError(self._told(f"there is no file {path}"))
                try:
                    opened.append(file(path, "r"))
                except OSError as error:
                    raise OSError(self._told(f"{path} cannot be read: {error}")) from None
        except BaseException:
            _close(opened)
            raise
        return opened

    @property
    def float_types(self) -> list[np.dtype]:
        files = self._open()
        try:
            found = [getattr(files[0].get(top), "dtype", None) for top in self.tops]
            return [dtype for dtype in found if dtype is not None and dtype.kind == "f"]
        finally:
            _close(files)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        files = self._open()
        try:
            columns = self._columns(files)
            state = self.first_state(backend, columns)
        except BaseException:
            _close(files)
            raise
        state.opened, state.files = columns, files
        return state

    def _columns(self, files: Sequence[Any]) -> list["Column"]:
        """One for each top. ValueError for files that do not hold them, all of one length."""
        try:
            columns = [Column([_dataset(file, top) for file in files], self.chunk_size) for top in self.tops]
        except ValueError as error:
            raise ValueError(self._told(str(error))) from None
        for file, *sizes in zip(files, *(column.sizes for column in columns)):
            if len(set(sizes)) != 1:
                text = f"the datasets {list(self.tops)} of {file.filename} have different lengths: {sizes}"
                raise ValueError(self._told(text))
        if not len(columns[0]):
            raise ValueError(self._told(f"no samples in {', '.join(file.filename for file in files)}"))
        return columns

    def _told(self, text: str) -> str:
        return f"layer {self.name!r} (HDF5Data): {text}"

    def columns(self, state: LayerState) -> Sequence[Any]:
        return state.opened

    def order(self, state: LayerState, epoch: int, n: int) -> np.ndarray | None:
        if not self.shuffle or n <= self.chunk_size:
            return super().order(state, epoch, n)
        if getattr(state, "shuffled", (None,))[0] != (epoch, n):
            rng = generator(state.rng.seed, self.name, "epoch", epoch)
            starts = rng.permutation(np.arange(0, n, self.chunk_size))
            parts = [start + rng.permutation(min(self.chunk_size, n - start)) for start in starts]
            state.shuffled = ((epoch, n), np.concatenate(parts))
        return state.shuffled[1]

    def shutdown(self, backend: Any, state: LayerState) -> None:
        _close(state.files)


class Column:
    """The rows of one dataset after the other, read a block at a time."""

    def __init__(self, datasets: Sequence[Any], block: int) -> None:
        self.datasets, self.block = datasets, block
        self.sizes = [len(d) for d in datasets]
        self.ends = np.cumsum(self.sizes)
        for d in datasets[1:]:
            if d.shape[1:] != datasets[0].shape[1:] or d.dtype != datasets[0].dtype:
                raise ValueError(
                    f"dataset {d.name!r} is {d.dtype} {d.shape[1:]} in {d.file.filename}, but {datasets[0].dtype} "
                    f"{datasets[0].shape[1:]} in {datasets[0].file.filename}"
                )
        self._blocks: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        index = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        found = np.empty((len(index), *self.datasets[0].shape[1:]), self.datasets[0].dtype)
        of = index // self.block
        for k in dict.fromkeys(of.tolist()):
            mine = of == k
            found[mine] = self._read(k)[index[mine] - k * self.block]
        return found

    def _read(self, k: int) -> np.ndarray:
        """Block k."""
        if k not in self._blocks:
            while len(self._blocks) >= _KEPT:
                self._blocks.pop(next(iter(self._blocks)))
            start, stop = k * self.block, min((k + 1) * self.block, len(self))
            parts = []
            for d, end in zip(self.datasets, self.ends):
                first = int(end) - len(d)
                low, high = max(start - first, 0), min(stop - first, len(d))
                if low < high:
                    parts.append(d[low:high])
            self._blocks[k] = np.concatenate(parts)
        return self._blocks[k]


def _dataset(file: Any, name: str) -> Any:
    """ValueError if the file has no such dataset of numbers."""
    found = file.get(name)
    if found is None or not hasattr(found, "dtype"):
        raise ValueError(f"{file.filename} has no dataset {name!r}; it has {', '.join(file) or 'none'}")
    if not found.shape or found.dtype.kind not in "fiub":
        raise ValueError(f"dataset {name!r} of {file.filename} is no array of numbers with the samples along axis 0")
    return found


def _close(files: Sequence[Any]) -> None:
    for file in files:
        file.close()
