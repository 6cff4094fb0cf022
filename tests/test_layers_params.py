"""Layers with parameters: values by NumPy, gradients of bottoms and parameters by central differences."""

import itertools

import numpy as np
import pytest
from layer_checks import check, check_gradients, net_of, run
from nets import SumLoss

from layerc.runtime import (
    GRU,
    LSTM,
    BatchNorm,
    Constant,
    Convolution,
    Embedding,
    Gaussian,
    He,
    InnerProduct,
    Input,
    L2Regu,
    LayerNorm,
    Net,
    Neurons,
    NoRegu,
    TiedInnerProduct,
    TopologyError,
    convolution,
)

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def made(cls, *args, bottoms=("x",), **more):
    return cls(*args, name="y", bottoms=list(bottoms), **more)


def drawn(net):
    """Every parameter different from its start."""
    rng = np.random.default_rng(5)
    for p in net.named_parameters().values():
        p.data[...] = rng.normal(size=p.shape) * 0.7


# -- convolution ------------------------------------------------------------------------------------------


def convolved(x, weight, bias, stride, pad, groups, dilation):
    (n, _, h, w), (f, depth, kh, kw) = x.shape, weight.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    rows = (h + 2 * pad[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    columns = (w + 2 * pad[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, f, rows, columns))
    for k, i, j, a, b in itertools.product(range(f), range(rows), range(columns), range(kh), range(kw)):
        g = k // (f // groups)
        patch = x[:, g * depth : (g + 1) * depth, i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]]
        y[:, k, i, j] += patch @ weight[k, :, a, b]
    return y + np.reshape(bias, (1, -1, 1, 1))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 4, 5), {"n_filter": 2, "kernel": 3, "pad": 1}),
        ((1, 2, 5, 4), {"n_filter": 4, "kernel": (2, 3), "stride": (2, 1), "pad": (0, 1), "n_group": 2}),
        ((3, 1, 6, 5), {"n_filter": 1, "kernel": 2, "dilation": (2, 3), "stride": 2}),
        ((2, 4, 3, 3), {"n_filter": 8, "kernel": 3, "n_group": 4, "pad": 2, "bias": False}),
        ((1, 1, 1, 1), {"n_filter": 1}),
        ((0, 2, 3, 3), {"n_filter": 3, "kernel": 2}),
    ],
)
def test_convolution(shape, options):
    def value(x, weight, bias=0.0):
        two = lambda key, d: (options.get(key, d),) * 2 if np.isscalar(options.get(key, d)) else options[key]  # noqa: E731
        return convolved(
            x, weight, bias, two("stride", 1), two("pad", 0), options.get("n_group", 1), two("dilation", 1)
        )

    check(made(Convolution, **options), {"x": normal(*shape)}, value, fill=drawn)


@pytest.mark.parametrize(("depth", "filters"), [(1, 1), (27, 64), (1152, 256)])
def test_strips_are_equal_and_no_narrower_than_vectors(depth, filters):
    for rows, columns in itertools.product((0, 1, 7, 28, 56, 61, 224), (1, 7, 56, 224)):
        strips = convolution._strips(rows, columns, depth, filters)
        assert strips == 1 or (rows % strips == 0 and rows // strips * columns >= 32)
        whole = rows * columns * depth <= convolution.CACHED and rows * columns * depth * filters < convolution.WORTH
        assert not (whole and strips > 1), "there is no reason to cut a small image"


def test_convolution_shares_its_filters():
    layer = Convolution(2, 2, name="y", bottoms=["x", "z"], tops=["a", "b"], neuron=Neurons.Tanh())
    check(layer, {"x": normal(2, 2, 3, 3), "z": normal(2, 2, 4, 2)}, fill=drawn)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"n_filter": 0}, "n_filter"),
        ({"n_filter": 3, "n_group": 2}, "n_filter"),
        ({"n_filter": 1, "dilation": 0}, "dilation"),
        ({"n_filter": 1, "kernel": "3"}, "kernel"),
    ],
)
def test_convolution_fields(bad, field):
    with pytest.raises(ValueError, match=rf"Convolution 'y'.*{field}"):
        made(Convolution, **bad)


def test_convolution_shapes():
    for options, shape in (({}, (2, 3)), ({"kernel": 4}, (1, 1, 3, 3)), ({"n_group": 2}, (1, 3, 2, 2))):
        with pytest.raises(ValueError, match=r"'y'.*'x'"):
            net_of(made(Convolution, 2, **options), {"x": np.zeros(shape)})
    net = net_of(made(Convolution, 2, 3), {"x": np.zeros((1, 2, 5, 5))})
    with pytest.raises(ValueError, match="'x'"):
        net.predict(np.zeros((1, 3, 5, 5)))
    net = Net("n", [Input([(2, None, None)], name="in", tops=["x"]), made(Convolution, 2, 3)])
    for size in (3, 7, 4):
        assert net.predict(np.zeros((2, 2, size, size))).shape == (2, 2, size - 2, size - 2)


def test_fan_in_of_filters():
    net = net_of(made(Convolution, 64, 3, n_group=2, weight_init=He()), {"x": np.zeros((1, 32, 3, 3))})
    assert net.params["y"]["weight"].data.std() == pytest.approx(np.sqrt(2 / (16 * 9)), rel=0.05)


# -- products and tables ----------------------------------------------------------------------------------


def tied(n=3, **more):
    layers = [
        Input([(4,)], name="in", tops=["x"]),
        InnerProduct(2, name="enc", bottoms=["x"], neuron=Neurons.Tanh(), param_key=more.pop("key", "enc")),
        TiedInnerProduct(more.pop("tied", "enc"), name="dec", bottoms=["enc"], **more),
        SumLoss(name="loss", bottoms=["dec"]),
    ]
    return Net("n", layers, dtype=np.float64, force_backward=True)


@pytest.mark.parametrize("more", [{}, {"bias": False}, {"key": "k", "tied": "k"}, {"key": "k"}])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_tied_inner_product(more, n):
    net = tied(**more)
    drawn(net)
    x = normal(n, 4)
    net.forward(data={"x": x})
    weight = net.params["enc"]["weight"].data
    bias = net.params["dec"]["bias"].data if "bias" not in more else 0
    np.testing.assert_allclose(net.blobs["dec"].data, net.blobs["enc"].data @ weight.T + bias)
    check_gradients(net, {"x": x})
    assert len(net.named_parameters()) == (3 if "bias" not in more else 2)


def test_tied_weight_alone():
    net = tied(bias=False)
    net.freeze("enc.bias")
    net.forward_backward(data={"x": normal(3, 4)})
    assert net.params["enc"]["weight"].gradient.any()
    assert list(net.params) == ["enc"]


def test_tied_errors():
    for wrong in ("nobody", "dec"):
        with pytest.raises(TopologyError, match=rf"'dec'.*{wrong}"):
            tied(tied=wrong)
    layers = [
        Input([(4,)], name="in", tops=["x"]),
        TiedInnerProduct("enc", name="dec", bottoms=["x"]),
        InnerProduct(4, name="enc", bottoms=["dec"]),
    ]
    with pytest.raises(TopologyError, match=r"'dec'.*'enc'"):
        Net("n", layers)
    before = [Input([(4,), (3,)], name="in", tops=["x", "z"]), layers[1], InnerProduct(4, name="enc", bottoms=["z"])]
    assert Net("n", before).blobs["dec"].shape == (1, 3)


@pytest.mark.parametrize("shape", [(3,), (1, 1), (2, 3), (0,), (2, 2, 2)])
def test_embedding(shape):
    index = RNG.integers(0, 5, shape)
    net = check(made(Embedding, 5, 3), {"x": index}, lambda x, weight: weight[x])
    assert net.params["y"]["weight"].shape == (5, 3)


def test_embedding_defaults_and_errors():
    layer = made(Embedding, 5, 3)
    assert (layer.weight_init, layer.weight_regu) == (Gaussian(0, 1), L2Regu(1))
    for bad in (5, -1):
        with pytest.raises(IndexError, match=rf"'y'.*'x'.*{bad}"):
            run(layer, {"x": np.array([0, bad])})
    with pytest.raises(ValueError, match="input_dim"):
        made(Embedding, 0, 3)


# -- normalisation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 2), (4, 3, 2), (2, 1, 3, 2), (5, 1), (1, 3, 2)])
@pytest.mark.parametrize("phase", ["train", "predict"])
def test_batch_norm(shape, phase):
    x = normal(*shape)
    axes = (0, *range(2, len(shape)))
    wide = (1, -1) + (1,) * (len(shape) - 2)
    mean, var = (x.mean(axes), x.var(axes)) if phase == "train" else (np.zeros(shape[1]), np.ones(shape[1]))

    def value(x, weight, bias):
        y = (x - mean.reshape(wide)) / np.sqrt(var.reshape(wide) + 1e-3)
        return y * weight.reshape(wide) + bias.reshape(wide)

    net = check(made(BatchNorm, 0.3, 1e-3), {"x": x}, value, fill=drawn, phase=phase, tol=2e-6)
    count = x.size // shape[1]
    states = net_of(made(BatchNorm, 0.3), {"x": x})
    states.forward(data={"x": x}, phase=phase)
    if phase == "train":
        np.testing.assert_allclose(states.states["y"]["mean"], 0.3 * mean)
        np.testing.assert_allclose(states.states["y"]["var"], 0.7 + 0.3 * var * count / (count - 1))
    else:
        assert states.states["y"]["var"].tolist() == [1] * shape[1]
    assert net.layers[-1].weight_regu == NoRegu()
    states.reset_states()
    assert states.states["y"]["mean"].tolist() == [0] * shape[1]


def test_batch_norm_leaves_no_trace_in_inference():
    net = run(made(BatchNorm), {"x": normal(8, 2)})
    before = net.states["y"]["mean"].copy()
    x = 5 + normal(4, 2)
    y = net.predict(x)
    expected = (x - before) / np.sqrt(net.states["y"]["var"] + 1e-5)
    np.testing.assert_allclose(y, expected)
    assert np.array_equal(net.states["y"]["mean"], before)
    net.backward(seed={"y": np.ones((8, 2))})
    np.testing.assert_allclose(net.params["y"]["bias"].gradient, [8, 8])


def test_batch_norm_of_too_little():
    net = net_of(made(BatchNorm), {"x": np.zeros((1, 2))})
    with pytest.raises(ValueError, match=r"'y'.*'x'"):
        net.forward(data={"x": np.zeros((1, 2))})
    assert net.predict(np.ones((1, 2))).shape == (1, 2)
    net.forward(data={"x": np.zeros((0, 2))})
    assert np.isfinite(net.states["y"]["var"]).all()
    with pytest.raises(ValueError, match="'x'"):
        net_of(made(BatchNorm), {"x": np.zeros(3)})


@pytest.mark.parametrize(("shape", "axis"), [((3, 4), -1), ((2, 3, 4), 2), ((2, 3, 2), 1), ((1, 1), 1), ((0, 3), -1)])
def test_layer_norm(shape, axis):
    axes = tuple(range(axis % len(shape), len(shape)))

    def value(x, weight, bias):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-2) * weight + bias

    net = check(made(LayerNorm, axis, 1e-2), {"x": normal(*shape)}, value, fill=drawn)
    assert net.params["y"]["weight"].shape == shape[axis:]


def test_normalisation_starts_neutral():
    for cls in (BatchNorm, LayerNorm):
        net = net_of(made(cls), {"x": np.zeros((2, 3))})
        assert net.params["y"]["weight"].data.tolist() == [1, 1, 1]
        assert net.params["y"]["bias"].data.tolist() == [0, 0, 0]
        with pytest.raises(ValueError, match="eps"):
            made(cls, eps=0)


# -- recurrent layers -------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, weight_ih, weight_hh, bias_ih, bias_hh):
    size, ys = len(weight_hh), []
    for t in range(x.shape[1]):
        a, b = x[:, t] @ weight_ih + bias_ih, h @ weight_hh + bias_hh
        r, z = (sigmoid((a + b)[:, k * size : (k + 1) * size]) for k in range(2))
        n = np.tanh(a[:, 2 * size :] + r * b[:, 2 * size :])
        h = (1 - z) * n + z * h
        ys.append(h)
    return ys, (h,)


def lstm(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    size, ys = len(weight_hh), []
    for t in range(x.shape[1]):
        a = x[:, t] @ weight_ih + bias_ih + h @ weight_hh + bias_hh
        i, f, g, o = (a[:, k * size : (k + 1) * size] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        ys.append(h)
    return ys, (h, c)


REFERENCE = {GRU: (gru, 1), LSTM: (lstm, 2)}


@pytest.mark.parametrize("cls", REFERENCE)
@pytest.mark.parametrize("sequence", [True, False])
@pytest.mark.parametrize(("n", "t", "d", "h"), [(2, 3, 4, 3), (1, 1, 1, 1), (3, 4, 2, 5), (0, 2, 3, 2)])
@pytest.mark.parametrize("given", [False, True])
def test_recurrent(cls, sequence, n, t, d, h, given):
    function, carried = REFERENCE[cls]
    feed = {"x": normal(n, t, d)} | ({f"h{k}": normal(n, h) for k in range(carried)} if given else {})

    def value(x, *first, **params):
        ys, _ = function(x, *(first or [np.zeros((n, h))] * carried), **params)
        return np.stack(ys, 1) if sequence else ys[-1]

    check(made(cls, h, sequence, bottoms=list(feed)), feed, value, fill=drawn)


@pytest.mark.parametrize("cls", REFERENCE)
def test_recurrent_states(cls):
    function, carried = REFERENCE[cls]
    layers = [Input([(None, 2)], name="in", tops=["x"]), made(cls, 3, stateful=True)]
    net = Net("n", layers, dtype=np.float64, force_backward=True)
    net.predict(np.zeros((2, 4, 2)))
    drawn(net)
    params = {p.name: p.data for p in net.params["y"].values()}
    first = [np.zeros((2, 3))] * carried
    for t in (4, 2, 1):
        x = normal(2, t, 2)
        net.forward(data={"x": x})
        ys, first = function(x, *first, **params)
        np.testing.assert_allclose(net.blobs["y"].data, np.stack(ys, 1))
        for name, value in zip(("h", "c"), first):
            np.testing.assert_allclose(net.states["y"][name], value)
        check_gradients(net, {"x": x})
        for name, value in zip(("h", "c"), first):
            net.layer_states["y"].states[name] = value
    x = normal(2, 1, 2)
    np.testing.assert_allclose(net.predict(x), np.stack(function(x, *first, **params)[0], 1))
    np.testing.assert_allclose(net.states["y"]["h"], first[0])
    x = normal(3, 1, 2)
    net.forward(data={"x": x})
    np.testing.assert_allclose(
        net.blobs["y"].data, np.stack(function(x, *[np.zeros((3, 3))] * carried, **params)[0], 1)
    )
    net.reset_states()
    assert not net.states["y"]["h"].any()


@pytest.mark.parametrize("cls", REFERENCE)
def test_recurrent_keywords_and_errors(cls):
    layer = made(cls, 3, weight_init=Constant(0.5), bias_init=Constant(2), weight_lr=0.3, bias_decay=0.4)
    net = net_of(layer, {"x": np.zeros((1, 2, 2))})
    params = net.params["y"]
    assert params["weight_hh"].data[0, 0] == 0.5
    assert params["bias_ih"].data[0] == 2
    assert (params["weight_ih"].lr, params["bias_hh"].decay) == (0.3, 0.4)
    assert isinstance(params["weight_ih"].regu, L2Regu)
    with pytest.raises(ValueError, match=r"'y'.*'x'"):
        net_of(layer, {"x": np.zeros((1, 2))})
    with pytest.raises(ValueError, match="bottoms"):
        made(cls, 3, bottoms=["x", "h", "c", "d"])
    with pytest.raises(ValueError, match="stateful"):
        made(cls, 3, stateful=True, bottoms=["x", *"hc"[: REFERENCE[cls][1]]])
    with pytest.raises(ValueError, match="'x'"):
        net.predict(np.zeros((1, 2, 3)))
    net.freeze("y.weight_*")
    net.forward(data={"x": normal(2, 2, 2)})
    net.backward(seed={"y": np.ones((2, 2, 3))})
    assert not net.params["y"]["weight_hh"].gradient
    assert net.params["y"]["bias_hh"].gradient.any()
