"""The rest of the catalogue's layers against torch in float64: values, and gradients of every bottom and parameter."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from layer_checks import net_of
from nets import load_package
from oracles.side_by_side import compare, made, normal

from layerc.build import driver
from layerc.runtime import (
    ODE,
    Accuracy,
    Argmax,
    BinaryAccuracy,
    ChannelPooling,
    CompiledLayer,
    Concat,
    Crop,
    Dropout,
    ElementWise,
    FunctionLayer,
    GaussianKLLoss,
    HingeLoss,
    Identity,
    Index2Onehot,
    InnerProduct,
    Input,
    Net,
    Neurons,
    Power,
    RandomMask,
    Reshape,
    SoftlabelSoftmaxLoss,
    Split,
    SquareLoss,
    Subnet,
    TiedInnerProduct,
    WassersteinLoss,
)

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(0)

NEURONS = {
    "Identity": (Neurons.Identity(), lambda x: x),
    "ReLU": (Neurons.ReLU(), F.relu),
    "ReLU from 0.3": (Neurons.ReLU(0.3), lambda x: torch.clamp(x, min=0.3)),
    "LReLU": (Neurons.LReLU(0.2), lambda x: F.leaky_relu(x, 0.2)),
    "Sigmoid": (Neurons.Sigmoid(), torch.sigmoid),
    "Tanh": (Neurons.Tanh(), torch.tanh),
    "Exponential": (Neurons.Exponential(), torch.exp),
    "ELU": (Neurons.ELU(0.7), lambda x: F.elu(x, 0.7)),
    "GELU": (Neurons.GELU(), F.gelu),
    "Swish": (Neurons.Swish(), F.silu),
    "Softplus": (Neurons.Softplus(), F.softplus),
}


@pytest.mark.parametrize("name", NEURONS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (2, 3, 4, 1)])
def test_neurons(name, shape):
    neuron, function = NEURONS[name]
    compare(made(Identity, neuron=neuron), {"x": 3 * normal(*shape)}, lambda x: function(1.0 * x))


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (2, 1, 3, 5)])
def test_element_wise(operation, shape):
    feed = {"a": normal(*shape), "b": 1.5 + np.abs(normal(*shape))}
    function = {"add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div}[operation]
    compare(made(ElementWise, operation, bottoms=feed), feed, function)
    if operation in ("add", "multiply"):
        feed["c"] = normal(*shape)
        compare(made(ElementWise, operation, bottoms=feed), feed, lambda a, b, c: function(function(a, b), c))


@pytest.mark.parametrize(("scale", "shift", "power"), [(0.5, 2.0, 3.0), (1.0, 0.1, -1.5), (2.0, 0.0, 1.0), (0.3, 1, 0)])
def test_power(scale, shift, power):
    feed = {"x": np.abs(normal(3, 4)) + 0.1}
    compare(made(Power, scale, shift, power), feed, lambda x: (scale * x + shift) ** power)


@pytest.mark.parametrize(
    ("axis", "kernel", "stride", "pad"), itertools.product([1, 2, -1], [1, 3], [1, 2], [0, (1, 0)])
)
def test_channel_pooling(axis, kernel, stride, pad):
    front, end = (pad, pad) if isinstance(pad, int) else pad
    if kernel <= front:
        return
    shape = (2, 5, 4, 6)

    def windows(x, edge):
        moved = F.pad(x.movedim(axis, -1), (front, end), value=edge)
        return moved.unfold(-1, kernel, stride)

    for kind, edge, reduce in (("max", -torch.inf, torch.amax), ("mean", 0.0, torch.mean)):
        layer = made(ChannelPooling, kind, kernel, stride, pad, axis)
        compare(layer, {"x": normal(*shape)}, lambda x: reduce(windows(x, edge), -1).movedim(-1, axis))  # noqa: B023


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_concat_and_reshape(axis):
    shapes = [(3, 4, 2, 5) for _ in range(3)]
    shapes = [(*s[:axis], k + 1, *s[axis + 1 :]) if axis != -1 else (*s[:-1], k + 1) for k, s in enumerate(shapes)]
    feed = {f"x{k}": normal(*s) for k, s in enumerate(shapes)}
    compare(made(Concat, axis, bottoms=feed), feed, lambda *x: torch.cat(x, axis))
    compare(made(Reshape, (5, -1)), {"x": normal(3, 2, 10)}, lambda x: x.reshape(3, 5, 4) * 1.0)
    compare(made(Crop, (2, 3)), {"x": normal(2, 3, 5, 8)}, lambda x: x[:, :, 1:3, 2:5] * 1.0)


def test_split():
    feed = {"x": normal(4, 3)}
    net = net_of(Split(name="s", bottoms=["x"], tops=["a", "b"]), feed)
    net.forward(data=feed)
    seeds = {"a": normal(4, 3), "b": normal(4, 3)}
    net.backward(seed=seeds)
    x = torch.tensor(feed["x"], requires_grad=True)
    (x * torch.tensor(seeds["a"])).sum().add((x * torch.tensor(seeds["b"])).sum()).backward()
    np.testing.assert_allclose(net.blobs["x"].diff, x.grad.numpy())


@pytest.mark.parametrize(("cls", "more"), [(Dropout, {}), (Dropout, {"auto_scale": False}), (RandomMask, {})])
@pytest.mark.parametrize("phase", ["train", "predict"])
def test_masks(cls, more, phase):
    """torch has no way to draw the same: the mask is seen in what becomes of ones."""
    feed = {"x": normal(50, 7)}

    def layer():
        return cls(0.4, name="y", bottoms=["x"], tops=["y"], **more)

    first = net_of(layer(), feed)
    first.forward(data={"x": np.ones((50, 7))}, phase=phase)
    mask = torch.tensor(first.blobs["y"].data.copy())
    scale = 1 / 0.6 if cls is Dropout and not more and phase == "train" else 1.0
    assert set(mask.flatten().tolist()) == ({0.0, scale} if phase == "train" else {1.0})
    compare(layer(), feed, lambda x: x * mask, phase)


@pytest.mark.parametrize("normalize", ["mean", "sum"])
@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("n", [1, 6])
def test_losses(normalize, weight, n):
    options = {"normalize": normalize, "weight": weight}
    over = weight / (n if normalize == "mean" else 1)
    kl = {"mu": normal(n, 4), "sigma": np.abs(normal(n, 4)) + 0.1}
    compare(
        made(GaussianKLLoss, bottoms=kl, **options),
        kl,
        lambda mu, sigma: over / 2 * torch.sum(mu**2 + sigma**2 - 2 * torch.log(sigma) - 1),
    )
    hinge = {"p": normal(n, 3), "t": np.where(normal(n, 3) > 0, 1.0, -1.0)}
    compare(made(HingeLoss, bottoms=hinge, **options), hinge, lambda p, t: over * torch.clamp(1 - t * p, min=0).sum())
    soft = {"p": normal(n, 5), "t": np.abs(normal(n, 5))}
    compare(
        made(SoftlabelSoftmaxLoss, bottoms=soft, **options),
        soft,
        lambda p, t: -over * torch.sum(t * F.log_softmax(p, 1)),
    )
    cost = np.abs(normal(4, 5))
    mass = {k: RNG.dirichlet(np.ones(d), n) for k, d in (("a", 4), ("b", 5))}
    compare(
        made(WassersteinLoss, cost, 2.0, 7, bottoms=mass, **options),
        mass,
        lambda a, b: over * torch.sum(sinkhorn(a, b, torch.tensor(cost), 2.0, 7)),
    )


def sinkhorn(a, b, cost, lam, count):
    kernel = torch.exp(-lam * cost)
    u = torch.full_like(a, 1 / a.shape[1])
    for _ in range(count):
        u = a / ((b / (u @ kernel)) @ kernel.T)
    v = b / (u @ kernel)
    return (u * (v @ (kernel * cost).T)).sum(1)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n", [1, 5])
def test_tied_products(bias, n):
    layers = [
        Input([(4,), (4,)], ["x", "t"], name="in"),
        InnerProduct(3, name="code", bottoms=["x"], neuron=Neurons.Tanh()),
        TiedInnerProduct("code", name="back", bottoms=["code"], bias=bias),
        SquareLoss(name="loss", bottoms=["back", "t"]),
    ]
    net = Net("tied", layers, dtype=np.float64, force_backward=True)
    params = {k: torch.tensor(normal(*p.shape), requires_grad=True) for k, p in net.named_parameters().items()}
    for key, p in net.named_parameters().items():
        p.data[...] = params[key].detach().numpy()
    x, t = (torch.tensor(normal(n, 4), requires_grad=True) for _ in range(2))
    code = torch.tanh(x @ params["code.weight"] + params["code.bias"])
    y = code @ params["code.weight"].T + (params["back.bias"] if bias else 0)
    expected = F.mse_loss(y, t, reduction="sum") / (2 * n)
    expected.backward()
    assert net.forward(data={"x": x.detach().numpy(), "t": t.detach().numpy()}) == pytest.approx(expected.item())
    net.backward()
    for key, p in net.named_parameters().items():
        np.testing.assert_allclose(p.gradient, params[key].grad.numpy(), rtol=1e-10, err_msg=key)
    for key, a in (("x", x), ("t", t)):
        np.testing.assert_allclose(net.blobs[key].diff, a.grad.numpy(), rtol=1e-10, err_msg=key)


def test_what_has_no_gradient():
    x, label = normal(40, 6), RNG.integers(0, 6, 40)
    found = net_of(made(Argmax), {"x": x})
    found.forward(data={"x": x})
    np.testing.assert_array_equal(np.ravel(found.blobs["y"].data), torch.tensor(x).argmax(1).numpy())
    hot = net_of(made(Index2Onehot, 6), {"x": label})
    hot.forward(data={"x": label})
    np.testing.assert_array_equal(hot.blobs["y"].data, F.one_hot(torch.tensor(label), 6).numpy())
    for k in (1, 3):
        layer = Accuracy(k, name="a", bottoms=["x", "t"])
        net = net_of(layer, {"x": x, "t": label})
        net.forward(data={"x": x, "t": label})
        hit = (torch.tensor(x).topk(k, 1).indices == torch.tensor(label)[:, None]).any(1).double().mean().item()
        assert net.statistics()["a.accuracy"] == pytest.approx(hit)
    sign = np.where(normal(40, 1) > 0, 1.0, -1.0)
    net = net_of(BinaryAccuracy(0.0, name="a", bottoms=["x", "t"]), {"x": x[:, :1], "t": sign})
    net.forward(data={"x": x[:, :1], "t": sign})
    assert net.statistics()["a.accuracy"] == pytest.approx(np.mean((x[:, :1] > 0) == (sign > 0)))


def test_nets_and_functions_as_layers():
    inner = Net("inner", [Input([(4,)], ["u"], name="in"), InnerProduct(3, name="ip", bottoms=["u"])], dtype=np.float64)
    params = {k: p.data for k, p in inner.named_parameters().items()}
    weight, bias = (torch.tensor(params[k].copy()) for k in ("ip.weight", "ip.bias"))
    feed = {"x": normal(5, 4)}
    net = net_of(Subnet(inner, name="s", bottoms=["x"], tops=["y"]), feed)
    net.forward(data=feed)
    dy = normal(5, 3)
    net.backward(seed={"y": dy})
    x = torch.tensor(feed["x"], requires_grad=True)
    y = x @ weight + bias
    y.backward(torch.tensor(dy))
    np.testing.assert_allclose(net.blobs["y"].data, y.detach().numpy())
    np.testing.assert_allclose(net.blobs["x"].diff, x.grad.numpy())
    layer = FunctionLayer(lambda x: np.tanh(x) * x, lambda x, dy: dy * (np.tanh(x) + x / np.cosh(x) ** 2), name="y",
                          bottoms=["x"], tops=["y"])  # fmt: skip
    compare(layer, feed, lambda x: torch.tanh(x) * x)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rates")
    (folder / "more_rates.py").write_text(
        """
import numpy as np
from layerc import Param, layer, real

@layer
def rate(t: real, y: real["D"], w: Param[real["D D"]], b: Param[real["D"]]) -> real["D"]:
    return np.tanh(y @ w + b) * np.cos(2 * t)

@layer
def gated(x: real["D"], w: Param[real["D K"]]) -> real["K"]:
    return np.tanh(x @ w) / (1 + np.exp(-np.sum(x * x)))
"""
    )
    driver.build(folder / "more_rates.py", folder / "more_rates_compiled")
    return load_package(folder / "more_rates_compiled", "more_rates_compiled")


@pytest.mark.parametrize("n", [1, 4])
def test_compiled_layer(compiled, n):
    layer = made(CompiledLayer, compiled.gated, params={"w": ((3, 5), 0.0)})
    compare(layer, {"x": normal(n, 3)}, lambda x, w: torch.tanh(x @ w) / (1 + torch.exp(-(x * x).sum(1)))[:, None])


@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
def test_ode(compiled, gradient):
    """Against torch's derivative of Runge and Kutta's fourth order in 400 steps."""
    x, w, b = normal(4, 3), normal(3, 3), normal(3)
    layer = made(ODE, compiled.rate, (0.5, 2.0), gradient=gradient, rtol=1e-10, atol=1e-12, params={"w": w, "b": b})
    net = net_of(layer, {"x": x})
    net.forward(data={"x": x})
    dy = normal(4, 3)
    net.backward(seed={"y": dy})
    leaves = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]

    def rate(t, y):
        return torch.tanh(y @ leaves[1] + leaves[2]) * np.cos(2 * t)

    y, h = leaves[0], 1.5 / 400
    for k in range(400):
        t = 0.5 + k * h
        k1 = rate(t, y)
        k2 = rate(t + h / 2, y + h / 2 * k1)
        k3 = rate(t + h / 2, y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(t + h, y + h * k3))
    y.backward(torch.tensor(dy))
    np.testing.assert_allclose(net.blobs["y"].data, y.detach().numpy(), rtol=1e-8)
    np.testing.assert_allclose(net.blobs["x"].diff, leaves[0].grad.numpy(), rtol=1e-7)
    for name, leaf in (("w", leaves[1]), ("b", leaves[2])):
        np.testing.assert_allclose(net.params["y"][name].gradient, leaf.grad.numpy(), rtol=1e-7, err_msg=name)
