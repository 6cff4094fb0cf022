"""`AsyncData`: a data layer whose batches are fetched ahead, by a thread."""

import queue
import threading
import weakref
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.data import DataLayer
from layerc.runtime.fields import field, integer
from layerc.runtime.layer import LayerState


class AsyncData(DataLayer):
    """The very batches of `inner`, fetched by a thread, `prefetch` of them ahead. Name and tops are inner's.

    Epoch and position are those of the batch that the net was given, not of the thread; where they are set, the
    thread begins anew. What goes wrong in the thread is raised by the forward whose batch it was.
    """

    inner: Any = field(check=lambda inner: isinstance(inner, DataLayer) and not isinstance(inner, AsyncData))
    prefetch: int = field(2, check=lambda n: n > 0, convert=integer)

    def _default_tops(self) -> tuple[str, ...]:
        return self.inner.tops

    def check_fields(self, owner: str) -> None:
        for key in ("name", "tops"):
            mine, inners = self._given.get(key), getattr(self.inner, key)
            if mine is not None and getattr(self, key) != inners:
                raise ValueError(f"{owner}: field {key}={mine!r}: name and tops are those of {self.inner!r}")
            self._set(key, inners)

    @property
    def is_named(self) -> bool:
        return self.inner.is_named

    @property
    def batch_size(self) -> Any:
        return getattr(self.inner, "batch_size", None)

    @property
    def float_types(self) -> list[np.dtype]:
        return getattr(self.inner, "float_types", [])

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        source = self.inner.setup(backend, inputs, diffs)
        blobs = [Blob.empty(b.shape, b.dtype) for b in source.blobs]
        return LayerState(self, blobs=blobs, epoch=0, index=0, single_epoch=False, source=source, ahead=None)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        wanted = (state.epoch, state.index, state.single_epoch, state.phase, state.workers)
        if state.ahead is None or state.ahead.next != wanted:
            self._stop(state)
            source = state.source
            source.epoch, source.index, source.single_epoch, source.phase, source.workers = wanted
            source.rng = state.rng
            state.ahead = Prefetcher(self.inner, backend, source, self.prefetch)
            weakref.finalize(state, state.ahead.stop)
        arrays, state.epoch, state.index = state.ahead.take()
        for blob, array in zip(state.blobs, arrays):
            blob.data = array

    def samples(self, state: LayerState) -> int | None:
        return self.inner.samples(state.source)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        pass

    def shutdown(self, backend: Any, state: LayerState) -> None:
        self._stop(state)
        self.inner.shutdown(backend, state.source)

    def _stop(self, state: LayerState) -> None:
        if state.ahead is not None:
            state.ahead.stop()
            state.ahead = None


class Prefetcher:
    """A thread that runs a data layer ahead. `next`: the position that the next batch was fetched at."""

    def __init__(self, layer: DataLayer, backend: Any, source: LayerState, prefetch: int) -> None:
        self.next: tuple[Any, ...] = (source.epoch, source.index, source.single_epoch, source.phase, source.workers)
        self._is_over = threading.Event()
        self._queue: queue.Queue[Any] = queue.Queue(prefetch)
        self._thread = threading.Thread(
            target=_fetch, args=(layer, backend, source, self._queue, self._is_over), daemon=True, name=layer.name
        )
        self._thread.start()

    def take(self) -> tuple[list[np.ndarray], int, int]:
        """A batch, and the position after it. Raises what fetching it raised."""
        found = self._queue.get()
        if isinstance(found, BaseException):
            self.next = ()  # the thread has ended; whoever comes next begins anew
            raise found
        arrays, epoch, index = found
        self.next = (epoch, index, *self.next[2:])
        return arrays, epoch, index

    def stop(self) -> None:
        self._is_over.set()
        while self._thread.is_alive():
            try:
                self._queue.get_nowait()  # it may be waiting for room
            except queue.Empty:
                self._thread.join(0.01)


def _fetch(layer: DataLayer, backend: Any, source: LayerState, into: Any, is_over: threading.Event) -> None:
    """What the thread does. It must not hold the net's own state, or nobody would ever stop it."""
    while not is_over.is_set():
        try:
            layer.forward(backend, source, [])
            found: Any = ([b.to_array() for b in source.blobs], source.epoch, source.index)
        except BaseException as error:
            into.put(error)
            return
        into.put(found)
