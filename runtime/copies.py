"""`copy.copy`, `copy.deepcopy` and `pickle` of a net: a net of its own, made anew from the layers.

It has the arrays, settings, random streams and place in the data of the first, and has run nothing yet: no gradients.
Layers are never changed, so that both nets have the same ones.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from layerc.runtime import snapshot, weights

if TYPE_CHECKING:
    from layerc.runtime.net import Net


def reduced(net: "Net", keywords: dict[str, Any]) -> tuple[Any, ...]:
    """What `__reduce__` returns."""
    return _remade, (type(net), net.name, net.layers, keywords, _condition(net))


def _condition(net: "Net") -> dict[str, Any]:
    """All that is not said by the layers."""
    found: dict[str, Any] = {"pending": list(net.pending)}
    if net.is_set_up:
        blobs = net.track.blobs
        sources = [w for step in net.graph.steps if step.layer.is_source for w in step.tops]
        found["first"] = {w: (blobs[w].shape, blobs[w].dtype) for w in sources}
    if net.knows_arrays:
        found["arrays"] = weights.collect(net)
        found["settings"] = {n: (p.lr, p.decay, p.is_frozen_by_user) for n, p in net.named_parameters().items()}
    return found | {"place": snapshot.place(net)}


def _remade(kind: type, name: str, layers: list[Any], keywords: dict[str, Any], condition: dict[str, Any]) -> "Net":
    net: Net = kind(name, layers, **keywords)
    if not net.is_set_up and "first" in condition:
        net.set_up({w: np.zeros(shape, dtype) for w, (shape, dtype) in condition["first"].items()})
    net.pending += condition["pending"]
    if "arrays" in condition:
        weights.put(net, condition["arrays"])
        for full_name, p in net.named_parameters().items():
            p.lr, p.decay, p.is_frozen_by_user = condition["settings"][full_name]
    snapshot.put_back(net, condition["place"])
    return net
