"""Arrays that a caller hands to a net: for a forward, for `predict`, as seeds. All errors name the blob."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.data import DataLayer, Input

if TYPE_CHECKING:
    from layerc.runtime.net import Net

Given = dict[int, np.ndarray]


def wire_of(net: "Net", blob: str, first: bool = False) -> int:
    """The wire of a blob's last (or first) version; KeyError for a blob that is not there."""
    if blob not in net.graph.last:
        raise KeyError(f"no blob {blob!r}; there is {', '.join(map(repr, net.graph.last)) or 'none'}")
    if first:
        return next(w for w, wire in enumerate(net.graph.wires) if wire.name == blob)
    return net.graph.last[blob]


def for_forward(net: "Net", data: Mapping[str, Any] | None) -> Given:
    """Arrays for all tops of the data layers that something reads; none without `data`."""
    graph = net.graph
    if data is None:
        empty = [w for w in _fed(net) if isinstance(graph.steps[graph.wires[w].maker].layer, Input)]
        if empty:
            raise ValueError(f"blob {graph.wires[empty[0]].name!r} is a placeholder: give it data={{blob: array}}")
        return {}
    given: Given = {}
    for blob, array in _by_blob("data", data).items():
        w = wire_of(net, blob, first=True)
        if not graph.steps[graph.wires[w].maker].layer.is_source:
            raise ValueError(f"blob {blob!r} is made by layer {graph.maker(w).name!r}; data= is for sources")
        given[w] = _accepted(net, w, array)
    missing = [graph.wires[w].name for w in _fed(net) if w not in given]
    if missing:
        raise ValueError(f"data= lacks an array for blob {', '.join(map(repr, missing))}")
    return given


def _by_blob(argument: str, value: Any) -> Mapping[str, Any]:
    """TypeError for arrays without the names of their blobs."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument}= takes {{blob: array}}, not {type(value).__name__}")
    return value


def _fed(net: "Net") -> list[int]:
    """Wires of data layers and placeholders that something reads."""
    return [
        w
        for step in net.graph.steps
        if step.layer.is_source and isinstance(step.layer, DataLayer | Input)
        for w in step.tops
        if net.graph.wires[w].readers
    ]


def for_predict(net: "Net", x: Any, wire: int) -> Given:
    """Arrays for the sources that `wire` is made of: `x` is that of the only one, or a dict by blob."""
    graph = net.graph
    given: Given = {}
    if isinstance(x, Mapping):
        for blob, array in x.items():
            w = wire_of(net, blob, first=True)
            if not graph.steps[graph.wires[w].maker].layer.is_source:
                w = graph.last[blob]
            given[w] = _accepted(net, w, array)
    needed = _needed_sources(net, wire, given)
    if not isinstance(x, Mapping):
        if len(needed) != 1:
            names = ", ".join(repr(graph.wires[w].name) for w in needed) or "none"
            raise ValueError(f"blob {graph.wires[wire].name!r} is made of the blobs {names}: give {{blob: array}}")
        return {needed[0]: _accepted(net, needed[0], x)}
    missing = [graph.wires[w].name for w in needed if w not in given]
    if missing:
        raise ValueError(f"predict needs an array for blob {', '.join(map(repr, missing))} too")
    return given


def _needed_sources(net: "Net", wire: int, given: Given) -> list[int]:
    """Tops of sources, other than random ones, that reach `wire` other than through `given`."""
    graph = net.graph
    found: list[int] = []
    todo, seen = [wire], set()
    while todo:
        w = todo.pop()
        if w in seen or w in given:
            continue
        seen.add(w)
        step = graph.steps[graph.wires[w].maker]
        if step.layer.is_source and isinstance(step.layer, DataLayer | Input):
            found.append(w)
        todo += step.bottoms
    return sorted(found)


def batches(net: "Net", data: Sequence[Any], batch_size: int | None) -> Iterator[Given]:
    """One pass over arrays for the tops of the first data layer, in its batch size or another."""
    if batch_size is not None and (
        isinstance(batch_size, bool) or not isinstance(batch_size, Integral) or batch_size < 1
    ):
        raise ValueError(f"batch_size={batch_size!r} must be a positive integer")
    step = next((s for s in net.graph.steps if isinstance(s.layer, DataLayer | Input)), None)
    if step is None:
        raise ValueError(f"net {net.name!r} has no data layer or placeholder to feed")
    tops = step.tops
    if len(data) != len(tops):
        names = [net.graph.wires[w].name for w in tops]
        raise ValueError(f"got {len(data)} arrays for the blobs {names}")
    arrays = {w: _accepted(net, w, array) for w, array in zip(tops, data)}
    n = len(arrays[tops[0]])
    if not n:
        raise ValueError(f"there is no sample to evaluate: blob {net.graph.wires[tops[0]].name!r} has 0 examples")
    for w, array in arrays.items():
        if len(array) != n:
            raise ValueError(f"blob {net.graph.wires[w].name!r} has {len(array)} examples instead of {n}")
    size = int(batch_size or getattr(step.layer, "batch_size", None) or n)
    return ({w: array[i : i + size] for w, array in arrays.items()} for i in range(0, n, size))


def seed_wires(net: "Net", seed: Mapping[str, Any] | None) -> list[int]:
    return [wire_of(net, blob) for blob in _by_blob("seed", {} if seed is None else seed)]


def seeds(net: "Net", seed: Mapping[str, Any] | None) -> Given:
    """Gradients imposed on blobs, each of its blob's shape."""
    found: Given = {}
    for blob, dy in _by_blob("seed", {} if seed is None else seed).items():
        w = wire_of(net, blob)
        target = net.track.blobs[w]
        if target.dtype.kind != "f":
            raise ValueError(f"blob {blob!r} holds integers; it takes no seed")
        array = _numeric(blob, dy)
        if array.shape != target.shape:
            raise ValueError(f"seed for blob {blob!r} has shape {array.shape}, but the blob has {target.shape}")
        found[w] = array.astype(target.dtype)
    return found


def _numeric(blob: str, value: Any) -> np.ndarray:
    try:
        if isinstance(value, Blob):
            array = value.data
        elif hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            array = np.from_dlpack(value)
        else:
            array = np.asarray(value)
    except Exception as error:
        raise ValueError(f"blob {blob!r} cannot take this {type(value).__name__}: {error}") from None
    if array.dtype.kind not in "fiub":
        raise ValueError(f"blob {blob!r} cannot take an array of {array.dtype}")
    return array


def _accepted(net: "Net", w: int, value: Any) -> np.ndarray:
    """The array in the blob's type. A net that has not seen the blob yet tells by who reads it."""
    wire = net.graph.wires[w]
    array = _numeric(wire.name, value)
    if array.ndim == 0:
        raise ValueError(f"blob {wire.name!r} cannot take a scalar: axis 0 is the batch")
    source = net.graph.steps[wire.maker].layer
    if isinstance(source, Input) and not source.accepts(wire.top, array.shape):
        raise ValueError(
            f"blob {wire.name!r} has shape {source.shapes[wire.top]} without the batch, so cannot take {array.shape}"
        )
    dtype = _wanted_type(net, w, array.dtype)
    return _as_integers(wire.name, array, dtype) if dtype.kind in "iu" else array.astype(dtype, copy=False)


def _wanted_type(net: "Net", w: int, given: np.dtype) -> np.dtype:
    """What an array of that type becomes as this wire: a data layer has made it, or its readers say, or,
    where
    neither is so, integers stay what they are."""
    blob, reader = net.track.blobs[w], reads_as(net.graph, w)
    is_placeholder = isinstance(net.graph.steps[net.graph.wires[w].maker].layer, Input)
    if blob is not None and not (is_placeholder and reader is None):
        return blob.dtype
    if reader == "int":
        return given if given.kind in "iu" else np.dtype(np.int64)
    return given if reader is None and given.kind in "iu" else net.dtype


def _as_integers(name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.dtype.kind in "iu":
        return array.astype(dtype, copy=False)
    whole = array.astype(dtype)
    if not np.array_equal(whole, array):
        raise ValueError(f"blob {name!r} holds integers and cannot take {array.dtype} values that are none")
    return whole


def reads_as(graph: Any, w: int) -> str | None:
    """ "int" or "float" if that is how a layer reads the wire, None if none says so."""
    kinds = []
    for r in graph.wires[w].readers:
        step = graph.steps[r]
        kinds += [step.layer.bottom_kind(k) for k, b in enumerate(step.bottoms) if b == w]
    kinds = [k for k in kinds if k]
    return kinds[0] if kinds else None
