"""Sinks that keep what they are given: `MemoryOutput`, `HDF5Output`. Forks (predict, validation) add nothing."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import boolean, field, names
from layerc.runtime.layer import Builtin, LayerState
from layerc.runtime.weights import need
from layerc.runtime.whole_files import check_folder


class MemoryOutput(Builtin):
    """`net.layer_states[name].outputs`: for each bottom a list of arrays, one of each forward; copies."""

    is_sink = True
    bottom_counts = (1, None)

    def bottom_kind(self, k: int) -> str | None:
        return None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        return LayerState(self, outputs=[[] for _ in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        if not state.is_fork:
            for kept, x in zip(state.outputs, inputs):
                kept.append(x.to_array())


class HDF5Output(Builtin):
    """Appends its bottoms to a file, along axis 0: a dataset for each, called like the blob (or as in
    `datasets`).

    The file is made by the first forward and complete after `net.shutdown()`. FileExistsError at `Net(...)` if it is
    there already, unless force_overwrite.
    """

    is_sink = True
    bottom_counts = (1, None)

    filename: Any = field(convert=Path)
    datasets: Any = field(None, convert=names)
    force_overwrite: bool = field(False, convert=boolean)

    def bottom_kind(self, k: int) -> str | None:
        return None

    def check_fields(self, owner: str) -> None:
        called = self.datasets or self.bottoms
        if len(called) != len(self.bottoms) or len(set(called)) != len(called):
            raise ValueError(
                f"{owner}: field datasets={list(called)} must be one name for each of {list(self.bottoms)}"
            )

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        need("h5py", "h5py", "all")
        if self.filename.exists() and not self.force_overwrite:
            raise FileExistsError(f"{self.filename} exists; force_overwrite=True replaces it")
        check_folder(self.filename)
        return LayerState(self, file=None, firsts=[(x.shape, x.dtype) for x in inputs])

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        if state.is_fork:
            return
        if state.file is None:
            self._open(state, [(x.shape, x.dtype) for x in inputs])
        for key, x in zip(self.datasets or self.bottoms, inputs):
            dataset = state.file[key]
            if dataset.shape[1:] != x.shape[1:]:
                raise ValueError(f"dataset {key!r} of {self.filename} holds {dataset.shape[1:]}, not {x.shape[1:]}")
            dataset.resize(len(dataset) + x.shape[0], axis=0)
            if x.shape[0]:
                dataset[-x.shape[0] :] = x.data

    def _open(self, state: LayerState, kinds: list[tuple[tuple[int, ...], np.dtype]]) -> None:
        mode = "w" if self.force_overwrite else "w-"
        state.file = need("h5py", "h5py", "all").File(os.fspath(self.filename), mode)
        for key, (shape, dtype) in zip(self.datasets or self.bottoms, kinds):
            state.file.create_dataset(key, (0, *shape[1:]), dtype, maxshape=(None, *shape[1:]), chunks=True)

    def shutdown(self, backend: Any, state: LayerState) -> None:
        if state.file is None:  # no batch came: a file with empty datasets
            self._open(state, state.firsts)
        state.file.close()
