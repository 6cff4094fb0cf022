"""One layer between placeholders and seeds: values against a reference, gradients against central differences."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from nets import differences

from layerc.runtime import Input, Layer, Net

Arrays = Mapping[str, np.ndarray]


def net_of(layer: Layer, feed: Arrays, dtype: Any = np.float64, **keywords: Any) -> Net:
    """The layer alone, fed by hand; every float bottom has a gradient."""
    shapes = [a.shape[1:] for a in feed.values()]
    return Net("n", [Input(shapes, name="in", tops=list(feed)), layer], dtype=dtype, force_backward=True, **keywords)


def run(layer: Layer, feed: Arrays, dtype: Any = np.float64, phase: str = "train", **keywords: Any) -> Net:
    """A net of it after one forward."""
    net = net_of(layer, feed, dtype, **keywords)
    net.forward(data=feed, phase=phase)
    return net


def check(
    layer: Layer,
    feed: Arrays,
    reference: Callable[..., Any] | None = None,
    *,
    tol: float = 1e-6,
    phase: str = "train",
    fill: Callable[[Net], None] | None = None,
) -> Net:
    """Values in both float types, gradients of all float bottoms and parameters in float64.

    reference: of the bottoms and the parameters by name, giving the top (or a tuple), or the loss.
    """
    feed = {k: np.array(a, dtype=np.float64 if a.dtype.kind == "f" else a.dtype) for k, a in feed.items()}
    for dtype, rtol in ((np.float64, 1e-10), (np.float32, 3e-4)):
        net = net_of(layer, feed, dtype)
        if fill:
            fill(net)
        loss = net.forward(data=feed, phase=phase)
        if reference is not None:
            params = {p.name: p.data.astype(float) for ps in net.params.values() for p in ps.values()}
            expected = reference(*feed.values(), **params)
            found = loss if not layer.tops else [net.blobs[t].data for t in layer.tops]
            expected = expected if not layer.tops or isinstance(expected, tuple) else (expected,)
            if not layer.tops:
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
                continue
            for f, e in zip(found, expected, strict=True):
                assert f.shape == np.shape(e)
                np.testing.assert_allclose(f, e, rtol=rtol, atol=rtol)
                assert f.dtype.kind != "f" or f.dtype == dtype
    net = net_of(layer, feed)
    if fill:
        fill(net)
    check_gradients(net, feed, tol, phase)
    return net


def check_gradients(net: Net, feed: dict[str, np.ndarray], tol: float = 1e-6, phase: str = "train") -> None:
    rng = np.random.default_rng(7)
    net.forward(data=feed, phase=phase)
    tops = [t for layer in net.layers if not layer.is_source for t in layer.tops]
    seeds = {t: rng.normal(size=net.blobs[t].shape) for t in tops if net.blobs[t].dtype.kind == "f"}
    counts = {id(s): s.rng.count for s in net.track.states}
    states = {id(s): dict(s.states) for s in net.track.states}

    def objective() -> float:
        for s in net.track.states:
            s.rng.count, s.states = counts[id(s)] - 1 if counts[id(s)] else 0, dict(states[id(s)])
        loss = net.forward(data=feed, phase=phase)
        return loss + sum(float(np.sum(dy * net.blobs[t].data)) for t, dy in seeds.items())

    objective()
    net.backward(seed=seeds or None)
    found = {
        k: np.array(net.blobs[k].diff) for k, a in feed.items() if a.dtype.kind == "f" and net.blobs[k].diff is not None
    }
    params = {name: p.gradient.copy() for name, p in net.named_parameters().items()}
    for name, gradient in params.items():
        expected = differences(objective, net.named_parameters()[name].data)
        np.testing.assert_allclose(gradient, expected, rtol=tol, atol=tol, err_msg=name)
    for name, gradient in found.items():
        expected = differences(objective, feed[name])
        np.testing.assert_allclose(gradient, expected, rtol=tol, atol=tol, err_msg=name)
