"""One layer between placeholders, beside the same function of torch's tensors."""

import numpy as np
import pytest
from layer_checks import net_of

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


def compare(layer, feed, function, phase="train"):
    """`function(*bottoms, **parameters)` gives the top, or the loss."""
    net = net_of(layer, feed)
    for p in net.named_parameters().values():
        p.data[...] = RNG.normal(size=p.shape) * 0.5
    loss = net.forward(data=feed, phase=phase)
    floats = {k: torch.tensor(a, requires_grad=a.dtype.kind == "f") for k, a in feed.items()}
    params = {
        p.name: torch.tensor(p.data.copy(), requires_grad=True) for ps in net.params.values() for p in ps.values()
    }
    expected = function(*floats.values(), **params)
    if layer.tops:
        dy = RNG.normal(size=expected.shape)
        np.testing.assert_allclose(net.blobs["y"].data, expected.detach().numpy(), rtol=1e-9, atol=1e-11)
        net.backward(seed={"y": dy})
        expected.backward(torch.tensor(dy))
    else:
        assert loss == pytest.approx(expected.item(), rel=1e-10)
        net.backward()
        expected.backward()
    for k, a in floats.items():
        if a.requires_grad:
            np.testing.assert_allclose(net.blobs[k].diff, a.grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=k)
    for name, p in net.named_parameters().items():
        np.testing.assert_allclose(p.gradient, params[p.name].grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=name)


def made(cls, *args, bottoms=("x",), **more):
    return cls(*args, name="y", bottoms=list(bottoms), **more)


def normal(*shape):
    return RNG.normal(size=shape)
