"""`Net.chain`: names and wires for a plain sequence of layers."""

from collections.abc import Sequence
from typing import Any

from layerc.runtime.data import Input, MemoryData
from layerc.runtime.layer import Layer
from layerc.runtime.topology import TopologyError, titled

DATA, LABEL = "data", "label"


def wired(layers: Sequence[Layer], data: Sequence[Any] | None, batch_size: int, shuffle: bool) -> list[Layer]:
    """The layers with names and wires, behind a source of `data` (None: placeholders)."""
    reads_label = any(map(_reads_label, layers))
    if data is None:
        tops = [DATA, LABEL] if reads_label else [DATA]
        source: Layer = Input([None] * len(tops), name=DATA, tops=tops)
    else:
        tops = [DATA, LABEL][: len(data)]
        source = MemoryData(data, batch_size, shuffle, name=DATA, tops=tops)
    chained = [source]
    counts: dict[str, int] = {}
    last = DATA
    for layer in layers:
        kind = type(layer).__name__.lower() if not hasattr(layer, "chain_name") else layer.chain_name
        counts[kind] = counts.get(kind, 0) + 1
        name = layer.name if layer.is_named else f"{kind}{counts[kind]}"
        if layer.is_source:
            raise TopologyError(f"{titled(layer)} is a source; a chain has its own")
        bottoms = layer.bottoms or ((last, LABEL) if _reads_label(layer) else (last,))
        sinks = layer.is_sink
        one = layer.replace(name=name, bottoms=bottoms, **({} if sinks or layer.tops_given else {"tops": [name]}))
        chained.append(one)
        if one.tops:
            last = one.tops[0]
    return chained


def _reads_label(layer: Layer) -> bool:
    """A loss or a statistic of prediction and label."""
    return (layer.has_loss or layer.has_stats) and layer.is_sink and layer.bottom_counts[0] != 1
