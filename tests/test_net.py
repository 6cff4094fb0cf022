"""Nets: values, sums over consumers, gradients against differences, inference without a trace, texts,
files."""

import copy

import numpy as np
import pytest
from nets import Double, Negate, Shift, Stopper, SumLoss, check_gradients, data, differences, load_package

from layerc.runtime import (
    Accuracy,
    Argmax,
    Array,
    Blob,
    CompiledLayer,
    Constant,
    Dropout,
    ElementWise,
    FunctionLayer,
    Gaussian,
    Identity,
    Index2Onehot,
    InnerProduct,
    Input,
    L1Regu,
    L2Regu,
    MemoryData,
    Net,
    Neurons,
    NonNeg,
    NullBlob,
    RandomNormal,
    Softmax,
    SoftmaxLoss,
    Split,
    SquareLoss,
    TopologyError,
)
from layerc.runtime.layer import CHARACTERISTICS
from layerc.runtime.streams import Stream, generator

X, T = data()


@pytest.fixture(scope="session")
def L(tmp_path_factory):
    import handmade

    folder = tmp_path_factory.mktemp("built") / "net_layers"
    handmade.build(folder)
    return load_package(folder, "net_layers")


def source(**more):
    return MemoryData(name="data", **{"data": [X, T], "batch_size": 8, **more})


def ip(name, bottom, dim=3, **more):
    return InnerProduct(name=name, bottoms=[bottom], output_dim=dim, **more)


def mlp(*more, **keywords):
    layers = [
        source(),
        ip("ip1", "data", 5, neuron=Neurons.Tanh()),
        ip("ip2", "ip1"),
        SoftmaxLoss(name="loss", bottoms=["ip2", "label"]),
        Accuracy(name="accuracy", bottoms=["ip2", "label"]),
        *more,
    ]
    return Net("mlp", layers, **keywords)


def placed(*layers, **keywords):
    """A float64 net fed by hand."""
    return Net("n", [Input([(6,), ()], name="in", tops=["x", "t"]), *layers], dtype=np.float64, **keywords)


FEED = {"x": X[:5], "t": T[:5]}

# -- gradients of every layer ------------------------------------------------------------------------------

ONE = {
    "inner product": [ip("y", "x")],
    "no bias": [InnerProduct(3, bias=False, name="y", bottoms=["x"])],
    "multi": [
        InnerProduct(3, name="m", bottoms=["x", "x"], tops=["a", "b"]),
        ElementWise("multiply", name="y", bottoms=["a", "b"]),
    ],
    "softmax": [Softmax(name="y", bottoms=["x"])],
    "identity": [Identity(name="y", bottoms=["x"])],
    "add": [ip("a", "x"), ip("b", "x"), ElementWise("add", name="y", bottoms=["a", "b", "a"])],
    "subtract": [ip("a", "x"), ip("b", "x"), ElementWise("subtract", name="y", bottoms=["a", "b"])],
    "multiply": [ip("a", "x"), ip("b", "x"), ElementWise("multiply", name="y", bottoms=["a", "b", "a"])],
    "divide": [
        ip("a", "x"),
        ip("b", "x", bias_init=Constant(4)),
        ElementWise("divide", name="y", bottoms=["a", "b"]),
    ],
    "same bottom twice": [ElementWise("multiply", name="y", bottoms=["x", "x"])],
    "dropout": [Dropout(0.3, name="y", bottoms=["x"], tops=["y"])],
    "dropout unscaled": [Dropout(0.3, False, name="y", bottoms=["x"], tops=["y"])],
    "dropout in place": [ip("y", "x"), Dropout(name="d", bottoms=["y"])],
    "by hand": [Double(name="y", bottoms=["x"])],
    "by hand, parameter and neuron": [Shift(name="y", bottoms=["x"], neuron=Neurons.Sigmoid())],
    "by hand, in place": [ip("y", "x"), Negate(name="d", bottoms=["y"])],
    "function": [FunctionLayer(lambda x: np.sin(x), lambda x, dy: np.cos(x) * dy, name="y", bottoms=["x"])],
}
for neuron in ("ReLU", "LReLU", "Sigmoid", "Tanh", "Exponential", "ELU", "GELU", "Swish", "Softplus"):
    ONE[neuron] = [ip("y", "x", neuron=getattr(Neurons, neuron)())]


@pytest.mark.parametrize("case", ONE)
def test_gradients(case):
    net = placed(*ONE[case], SumLoss(name="loss", bottoms=["y"]))
    check_gradients(net, FEED)


LOSSES = {
    "square": lambda **more: [ip("p", "x", 6), SquareLoss(name="loss", bottoms=["p", "x"], **more)],
    "softmax": lambda **more: [ip("p", "x"), SoftmaxLoss(name="loss", bottoms=["p", "t"], **more)],
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("more", [{}, {"weight": -0.3}, {"normalize": "sum"}, {"weight": 0.0}])
def test_loss_gradients(loss, more):
    check_gradients(placed(*LOSSES[loss](**more)), FEED)


@pytest.mark.parametrize("normalize", ["mean", "sum", "weights"])
def test_softmax_loss_options(normalize):
    weights = [0.5, 2.0, 1.0]
    loss = SoftmaxLoss(class_weights=weights, ignore_label=1, normalize=normalize, name="loss", bottoms=["p", "t"])
    net = placed(ip("p", "x"), loss)
    feed = {"x": X[:7], "t": np.array([0, 1, 2, 2, 1, 0, 0])}
    check_gradients(net, feed)
    p = net.blobs["p"].data
    log_p = p - np.log(np.exp(p).sum(1, keepdims=True))
    kept = feed["t"] != 1
    terms = -np.array([weights[t] * log_p[n, t] for n, t in enumerate(feed["t"])])[kept]
    divisor = {"mean": kept.sum(), "sum": 1, "weights": np.take(weights, feed["t"][kept]).sum()}[normalize]
    assert net.objective() == pytest.approx(terms.sum() / divisor)


def test_all_labels_ignored():
    net = placed(ip("p", "x"), SoftmaxLoss(ignore_label=9, name="loss", bottoms=["p", "t"]))
    assert net.forward_backward(data={"x": X[:2], "t": np.array([9, 9])}) == 0
    assert not net.params["p"]["weight"].gradient.any()


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_softmax_loss_at_positions(axis):
    shape = {1: (4, 3, 2), 2: (4, 2, 3), -1: (4, 2, 3)}[axis]
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=shape), rng.integers(0, 3, (4, 2))
    layers = [
        Input([shape[1:], (2,)], name="in", tops=["p", "t"]),
        SoftmaxLoss(axis, name="loss", bottoms=["p", "t"]),
    ]
    layers.append(Accuracy(axis=axis, name="acc", bottoms=["p", "t"]))
    net = Net("n", layers, dtype=np.float64)
    value = net.forward(data={"p": scores, "t": labels})
    log_p = scores - np.log(np.exp(scores).sum(axis, keepdims=True))
    one = np.expand_dims(labels, axis)
    assert value == pytest.approx(-np.take_along_axis(log_p, one, axis).mean())
    assert net.statistics()["acc.accuracy"] == pytest.approx((scores.argmax(axis) == labels).mean())
    kept = Net("n", [Input([shape[1:], one.shape[1:]], name="in", tops=["p", "t"]), *layers[1:]], dtype=np.float64)
    assert kept.forward(data={"p": scores, "t": one}) == pytest.approx(value)
    np.testing.assert_allclose(
        net.gradient("p"),
        differences(lambda: net.forward(data={"p": scores, "t": labels}), scores),
        atol=1e-8,
    )


@pytest.mark.parametrize("label", [-1, 3])
def test_wrong_labels(label):
    net = placed(ip("p", "x"), SoftmaxLoss(name="loss", bottoms=["p", "t"]))
    with pytest.raises(IndexError, match=rf"'loss'.*'t'.*{label}"):
        net.forward(data={"x": X[:2], "t": np.array([0, label])})


def test_softmax_is_stable():
    net = placed(Softmax(name="y", bottoms=["x"]), SoftmaxLoss(name="loss", bottoms=["x", "t"]), force_backward=True)
    x = np.array([[1e4, 0, -1e4, 0, 0, 0], [-np.inf, 0, 0, 0, 0, 0.0]])
    with np.errstate(all="raise"):
        assert net.forward_backward(data={"x": x, "t": np.array([0, 1])}) == pytest.approx(np.log(5) / 2)
    assert np.isfinite(net.blobs["y"].data).all()
    assert np.isfinite(net.blobs["x"].diff).all()


def test_neurons_are_stable_and_exact():
    x = np.array([[-1e4, -1.0, 0.0, 1.0, 1e4, 3.0]])

    def run(neuron):
        net = placed(Identity(name="y", bottoms=["x"], neuron=neuron), force_backward=True)
        net.forward(data={"x": x})
        net.backward(seed={"y": np.ones((1, 6))})
        return net.blobs["y"].data[0], net.blobs["x"].diff[0]

    y, dx = run(Neurons.ReLU(0.5))
    assert y.tolist() == [0.5, 0.5, 0.5, 1, 1e4, 3]
    assert dx.tolist() == [0, 0, 0, 1, 1, 1]
    assert run(Neurons.ReLU())[1].tolist() == [0, 0, 0, 1, 1, 1]
    y, dx = run(Neurons.Sigmoid())
    assert y[[0, 2, 4]].tolist() == [0, 0.5, 1]
    assert dx[2] == pytest.approx(0.25)
    y, dx = run(Neurons.Softplus())
    assert y[[0, 4]].tolist() == [0, 1e4]
    assert dx[2] == pytest.approx(0.5)
    y, dx = run(Neurons.Swish())
    assert y[0] == 0
    assert dx[2] == pytest.approx(0.5)
    for name in ("ELU", "GELU", "LReLU"):
        assert np.isfinite(run(getattr(Neurons, name)())).all()


def test_top_k_accuracy():
    net = placed(Accuracy(2, name="a", bottoms=["x", "t"]), Accuracy(name="b", bottoms=["x", "t"]))
    x = np.array([[3, 2, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0], [np.nan] * 6, [0, np.nan, 1, 0, 0, 0]], float)
    net.forward(data={"x": x[:2], "t": np.array([1, 2])})
    assert net.statistics() == {"a.accuracy": 0.5, "b.accuracy": 0.0}
    net.reset_statistics()
    net.forward(data={"x": x, "t": np.array([0, 0, 0, 2])})
    assert net.statistics() == {"a.accuracy": 0.75, "b.accuracy": 0.5}


# -- sums, weights, regularizers ---------------------------------------------------------------------------


def test_several_consumers_are_summed():
    net = placed(
        ip("a", "x", 4),
        Double(name="b", bottoms=["a"]),
        Double(name="c", bottoms=["a"], factor=3.0),
        ElementWise("add", name="d", bottoms=["b", "c", "a"]),
        SumLoss(name="l1", bottoms=["d"]),
        SumLoss(name="l2", bottoms=["a"]),
    )
    net.forward_backward(data=FEED)
    np.testing.assert_allclose(net.blobs["a"].diff, 37 * net.blobs["a"].data)
    check_gradients(net, FEED)


def test_losses_add_with_their_weights():
    layers = [
        ip("a", "x", 6),
        SquareLoss(weight=0.5, name="l1", bottoms=["a", "x"]),
        SquareLoss(weight=2.0, name="l2", bottoms=["a", "x"]),
    ]
    net = placed(*layers)
    both = net.forward(data=FEED)
    stats = net.statistics()
    assert both == pytest.approx(stats["l1.loss"] + stats["l2.loss"])
    assert stats["l2.loss"] == pytest.approx(4 * stats["l1.loss"])


def test_regularizers():
    net = placed(
        ip("a", "x", 6, bias_regu=L1Regu(0.3), bias_init=Gaussian(), weight_decay=0.5),
        SumLoss(name="l", bottoms=["a"]),
    )
    check_gradients(net, FEED, regu_coef=0.7)
    w, b = (net.params["a"][k].data for k in ("weight", "bias"))
    extra = net.forward(0.7, data=FEED) - net.forward(data=FEED)
    assert extra == pytest.approx(0.7 * (0.5 * (w**2).sum() + 0.3 * abs(b).sum()))


def test_sharing_is_one_parameter():
    layers = [
        ip("a", "x", 6, param_key="k"),
        ip("b", "a", 6, param_key="k"),
        SumLoss(name="l", bottoms=["b"]),
    ]
    net = placed(*layers)
    assert net.params["a"]["weight"] is net.params["b"]["weight"]
    assert net.info("arrays_total_count") == 42
    check_gradients(net, FEED, regu_coef=0.1)


def test_frozen_parameters():
    net = placed(ip("a", "x", 6), ip("b", "a", 6), SumLoss(name="l", bottoms=["b"]))
    net.freeze("a", "b.bias")
    net.forward_backward(data=FEED)
    assert net.params["a"]["weight"].gradient is NullBlob()
    assert net.params["b"]["bias"].gradient is NullBlob()
    assert isinstance(net.params["b"]["weight"].gradient, np.ndarray)
    assert net.blobs["a"].diff is NullBlob()
    check_gradients(net, FEED)
    net.unfreeze("*")
    check_gradients(net, FEED)
    with pytest.raises(ValueError, match="'c'"):
        net.freeze("c")
    net.set_learn_rate_factor("a.*", 0)
    assert net.params["a"]["bias"].frozen


def test_frozen_parameters_of_layers_by_hand():
    net = placed(Shift(name="a", bottoms=["x"]), ip("b", "a"), SumLoss(name="l", bottoms=["b"]), force_backward=True)
    net.freeze("a")
    net.forward_backward(data=FEED)
    assert net.params["a"]["shift"].gradient is NullBlob()
    assert net.blobs["x"].diff.shape == (5, 6)


def test_backward_starts_from_zero():
    net = mlp()
    net.forward()
    net.backward()
    first = net.params["ip1"]["weight"].gradient.copy()
    net.backward()
    assert np.array_equal(first, net.params["ip1"]["weight"].gradient)


def test_seeds_add_to_the_objective():
    net = placed(ip("a", "x", 4), ip("b", "a", 2), SumLoss(name="l", bottoms=["b"]))
    rng = np.random.default_rng(1)
    seed = {"a": rng.normal(size=(5, 4)), "x": rng.normal(size=(5, 6))}
    objective = lambda: net.forward(data=FEED) + (seed["a"] * net.blobs["a"].data).sum()  # noqa: E731
    net.forward(data=FEED)
    net.backward(seed=seed)
    found = net.params["a"]["weight"].gradient.copy()
    np.testing.assert_allclose(found, differences(objective, net.params["a"]["weight"].data), atol=1e-7)
    assert net.blobs["x"].diff is NullBlob()
    net.forward(data=FEED)
    np.testing.assert_allclose(
        net.gradient("x", seed) - net.gradient("x"), seed["x"] + seed["a"] @ net.params["a"]["weight"].data.T
    )
    with pytest.raises(ValueError, match=r"'a'.*\(3, 3\)"):
        net.backward(seed={"a": np.ones((3, 3))})
    with pytest.raises(ValueError, match="'t'"):
        net.backward(seed={"t": np.ones(5)})
    with pytest.raises(KeyError, match="'zz'"):
        net.backward(seed={"zz": np.ones(5)})


def test_gradient_leaves_the_others():
    net = mlp()
    net.freeze("ip1")
    net.forward_backward(regu_coef=0.1)
    before = net.params["ip2"]["weight"].gradient.copy()
    assert net.gradient("ip1.weight").shape == (6, 5)
    assert net.gradient("data").any()
    net.gradient("ip2.weight")[...] = 7
    assert np.array_equal(net.params["ip2"]["weight"].gradient, before)
    assert net.params["ip1"]["weight"].gradient is NullBlob()
    assert net.params["ip1"]["weight"].frozen
    assert net.blobs["data"].diff is NullBlob()
    for name in ("nothing", "ip1.nothing"):
        with pytest.raises(KeyError, match=name):
            net.gradient(name)


class NoPullback(Shift):
    can_do_bp = False


def test_gradient_says_what_stands_between():
    net = placed(
        ip("b", "x", 3),
        Argmax(name="am", bottoms=["b"]),
        Index2Onehot(3, name="oh", bottoms=["am"]),
        SumLoss(name="l", bottoms=["oh"]),
        ip("side", "x", 2),
    )
    net.forward(data=FEED)
    for name, what in (("x", "blob 'x'"), ("b", "blob 'b'"), ("b.weight", "parameter 'b.weight'")):
        with pytest.raises(TopologyError, match=rf"'am' \(Argmax\) cannot do bp, but stands between {what} and a loss"):
            net.gradient(name)
    assert not net.gradient("side.weight").any()  # no loss reaches it, and nothing stands in between
    net = placed(NoPullback(name="s", bottoms=["x"]), SumLoss(name="l", bottoms=["s"]))
    net.forward(data=FEED)
    with pytest.raises(TopologyError, match=r"'s' \(NoPullback\) has parameters \('shift'\) but cannot do bp"):
        net.gradient("s.shift")


def test_diffs_only_where_needed():
    net = mlp()
    net.forward_backward()
    assert net.blobs["data"].diff is NullBlob()
    assert net.blobs["label"].diff is NullBlob()
    assert net.blobs["ip1"].diff.shape == (8, 5)
    forced = mlp(force_backward=True)
    forced.forward_backward()
    assert forced.blobs["data"].diff.any()
    assert forced.blobs["label"].diff is NullBlob()


# -- shapes, phases, random numbers ------------------------------------------------------------------------


def test_batches_of_different_sizes():
    net = placed(ip("y", "x"), SumLoss(name="l", bottoms=["y"]))
    blob = net.blobs["y"]
    for n in (8, 3, 1, 8):
        net.forward_backward(data={"x": X[:n], "t": T[:n]})
        assert net.blobs["y"].shape == net.blobs["y"].diff.shape == (n, 3)
    assert net.blobs["y"] is blob
    assert net.predict(X[:0], "y").shape == (0, 3)


def test_other_features_than_before():
    net = mlp()
    with pytest.raises(ValueError, match=r"'ip1'.*'data'.*made by layer 'data'"):
        net.predict(np.ones((4, 7)))
    with pytest.raises(ValueError, match="'data'"):
        net.forward(data={"data": X[:4], "label": T[:3]})
    with pytest.raises(ValueError, match="'label'"):
        net.forward(data={"data": X[:4]})
    with pytest.raises(KeyError, match="'dat'"):
        net.forward(data={"dat": X[:4]})
    with pytest.raises(ValueError, match="'data'"):
        net.predict(np.array(["a"]))
    with pytest.raises(ValueError, match="'data'"):
        net.predict(np.float32(1))
    with pytest.raises(KeyError, match="'nix'"):
        net.predict(X, top="nix")
    with pytest.raises(ValueError, match="'label'"):
        net.forward(data={"data": X[:4], "label": np.array([0.5, 1, 1, 1])})


def test_dropout_phases():
    net = placed(Dropout(0.25, name="d", bottoms=["x"], tops=["y"]), SumLoss(name="l", bottoms=["y"]))
    big = {"x": np.ones((4000, 6)), "t": np.zeros(4000, int)}
    net.forward(data=big)
    y = net.blobs["y"].data
    assert set(np.unique(y)) == {0.0, 1 / 0.75}
    assert abs((y == 0).mean() - 0.25) < 0.02
    first = y.copy()
    net.forward(data=big)
    assert not np.array_equal(first, net.blobs["y"].data)
    net.forward(data=big, phase="predict")
    assert (net.blobs["y"].data == 1).all()
    assert (net.predict({"x": big["x"]}, "y") == 1).all()
    with pytest.raises(ValueError, match="phase"):
        net.forward(data=big, phase="test")


def test_random_draws_depend_on_seed_and_name_only():
    def first(seed, *more):
        net = placed(*more, Dropout(name="d", bottoms=["x"], tops=["y"]), ip("z", "y"), seed=seed)
        net.forward(data=FEED)
        return net.blobs["y"].data.copy(), net.params["z"]["weight"].data.copy()

    a, b, c = first(1), first(1, ip("other", "x")), first(2)
    assert np.array_equal(a[0], b[0])
    assert np.array_equal(a[1], b[1])
    assert not np.array_equal(a[0], c[0])
    assert not np.array_equal(a[1], c[1])


def test_random_normal():
    layers = [RandomNormal(4, name="noise"), ip("y", "noise")]
    net = placed(*layers)
    net.forward(data={"x": X[:5], "t": T[:5]} | {})
    first = net.blobs["noise"].data.copy()
    assert first.shape == (5, 4)
    net.forward(data=FEED)
    assert not np.array_equal(first, net.blobs["noise"].data)


# -- predict -----------------------------------------------------------------------------------------------


def trace(net):
    """All that predict must leave alone."""
    return [
        net.statistics(),
        {
            name: (b.data.copy(), np.array(b.diff) if isinstance(b.diff, np.ndarray) else None)
            for name, b in net.blobs.items()
        },
        net.epoch,
        [(s.rng.count, getattr(s, "index", None)) for s in net.track.states],
        {name: p.gradient.copy() for name, p in net.named_parameters().items()},
    ]


def test_predict_leaves_no_trace():
    net = mlp(Dropout(name="d", bottoms=["ip1"], tops=["dropped"]), Identity(name="i", bottoms=["dropped"]))
    net.forward_backward()
    before = trace(net)
    out = net.predict(X[:11].tolist())
    assert out.shape == (11, 3)
    out[...] = 0
    assert net(X[:2], top="dropped").shape == (2, 5)
    assert net.predict({"ip1": np.zeros((2, 5))}).shape == (2, 3)
    np.testing.assert_equal(trace(net), before)
    gradient = net.params["ip1"]["weight"].gradient.copy()
    net.predict(X)
    net.evaluate([X, T])
    net.backward()
    assert np.array_equal(gradient, net.params["ip1"]["weight"].gradient)


def test_predict_of_layers_by_hand_leaves_no_trace():
    class Counts(Double):
        def forward(self, backend, state, inputs):
            super().forward(backend, state, inputs)
            state.calls = getattr(state, "calls", 0) + 1
            state.log = [*getattr(state, "log", []), 1]
            state.log.append(2)

    net = placed(Counts(name="a", bottoms=["x"]), ip("b", "a"), SumLoss(name="l", bottoms=["b"]))
    net.forward(data=FEED)
    state = net.layer_states["a"]
    held = state.log
    net.predict(X)
    assert state.calls == 1
    assert held == [1, 2]
    assert net.layer_states["a"] is state


def test_predict_default_top():
    assert mlp().predict(X[:2]).shape == (2, 3)
    net = placed(ip("a", "x", 4), Softmax(name="p", bottoms=["a"]))
    assert net.predict(X[:2]).sum() == pytest.approx(2)
    several = placed(Split(name="s", bottoms=["x"], tops=["b", "c", "a"]), ip("y", "b", 4))
    assert several.predict(X[:2]).shape == (2, 4)
    several = placed(ip("y", "x", 4), Split(name="s", bottoms=["y"], tops=["b", "c"]), Double(name="d", bottoms=["b"]))
    assert np.array_equal(several.predict(X[:2]), several.predict(X[:2], "d"))
    several = placed(FunctionLayer(lambda x: (x, 2 * x), name="f", bottoms=["x"], tops=["z", "a"]))
    assert np.array_equal(several.predict(X[:2]), 2 * X[:2])  # of one layer's tops, too, the last
    two = placed(Input([(2,)], ["z"], name="in2"), ip("a", "x", 2), ElementWise("add", name="y", bottoms=["a", "z"]))
    with pytest.raises(ValueError, match=r"'x', 'z'"):
        two.predict(X)
    with pytest.raises(ValueError, match="'z'"):
        two.predict({"x": X})
    assert two.predict({"x": X[:3], "z": np.ones((3, 2))}).shape == (3, 2)


def test_predict_casts_integers():
    assert mlp().predict(np.ones((2, 6), int)).dtype == np.float64


def test_evaluate_weighs_samples():
    net = mlp()
    whole = net.evaluate([X, T], batch_size=20)
    parts = net.evaluate([X, T], batch_size=7)
    assert whole["loss.loss"] == pytest.approx(parts["loss.loss"])
    assert whole["accuracy.accuracy"] == pytest.approx(parts["accuracy.accuracy"])
    with pytest.raises(ValueError, match="arrays"):
        net.evaluate([X])


# -- compiled layers ---------------------------------------------------------------------------------------


def test_compiled_function(L):
    net = placed(CompiledLayer(L.mish, name="y", bottoms=["x"]), SumLoss(name="l", bottoms=["y"]))
    check_gradients(net, FEED)
    assert net.layers[1].can_do_bp
    assert not net.layers[1].has_param


def test_compiled_function_with_params(L):
    centers = np.random.default_rng(0).normal(size=(4, 6))
    layer = CompiledLayer(L.rbf, name="y", bottoms=["x"], params={"centers": centers, "gamma": ((4,), Constant(0.2))})
    net = placed(layer, ip("z", "y"), SumLoss(name="l", bottoms=["z"]))
    assert np.array_equal(net.params["y"]["centers"].data, centers)
    assert net.params["y"]["gamma"].data.tolist() == [0.2] * 4
    check_gradients(net, FEED)
    with pytest.raises(ValueError, match="gamma"):
        CompiledLayer(L.rbf, params={"centers": centers})
    with pytest.raises(ValueError, match="beta"):
        CompiledLayer(L.rbf, params={"beta": centers})
    layer = CompiledLayer(L.rbf, name="y", bottoms=["x"], params={"centers": centers, "gamma": ((4,), 0.2)})
    assert np.all(Net("n", [Input([(6,)], ["x"], name="in"), layer]).params["y"]["gamma"].data == np.float32(0.2))
    layer = layer.replace(params={"centers": centers, "gamma": ((4,), "zero")})
    with pytest.raises(ValueError, match=r"params\['gamma'\]=.*initializer"):
        Net("n", [Input([(6,)], ["x"], name="in"), layer])
    layer = layer.replace(params={"centers": centers, "gamma": [1.0] * 4}, gamma_lr=0, centers_regu=L2Regu(3))
    layer = layer.replace(centers_decay=2, centers_lr=0.5, centers_cons=NonNeg())
    held = Net("n", [Input([(6,)], ["x"], name="in"), layer]).params["y"]
    assert held["gamma"].frozen
    assert not held["centers"].frozen
    assert (held["centers"].lr, held["centers"].decay, held["centers"].regu) == (0.5, 2.0, L2Regu(3))
    assert held["centers"].cons == NonNeg()
    with pytest.raises(TypeError, match="unknown keyword 'beta_lr'; it takes .*gamma_lr"):
        layer.replace(beta_lr=1)
    with pytest.raises(ValueError, match="'y': field gamma_lr=-1"):
        layer.replace(gamma_lr=-1)
    with pytest.raises(ValueError, match="rate"):
        CompiledLayer(L.mish, config={"rate": 1})
    with pytest.raises(ValueError, match="fn"):
        CompiledLayer(np.sin)


def test_compiled_class(L):
    net = placed(ip("a", "x", 4), L.SReLU(name="y", bottoms=["a"], tops=["y"]), SumLoss(name="l", bottoms=["y"]))
    check_gradients(net, FEED, tol=1e-5)
    start = net.params["y"]["left_threshold"].data
    assert start.shape == (4,)
    assert ((start >= -1) & (start <= 0)).all()
    assert net.params["y"]["left_slope"].regu.value(start) == 0
    assert net.predict(X[:3]).shape == (3, 4)


def test_characteristics_of_a_compiled_class(L):
    layer = L.SReLU(name="y", bottoms=["x"], tops=["y"])
    run = placed(layer).layers[1]
    true = {"has_param", "has_neuron", "can_do_bp"}
    for name in CHARACTERISTICS:
        assert getattr(L.SReLU, name) is getattr(layer, name) is getattr(run, name) is (name in true), name


def srelu(L, name, bottom, **options):
    return L.SReLU(name=name, bottoms=[bottom], tops=[name], **options)


@pytest.mark.parametrize("of_layer", [{}, {"left_slope_init": Constant(0.5)}])
def test_compiled_classes_share(L, of_layer):
    shared = [srelu(L, "y", "a", param_key="k", **of_layer), srelu(L, "z", "y", param_key="k", **of_layer)]
    net = placed(ip("a", "x", 4), *shared, SumLoss(name="l", bottoms=["z"]))
    assert net.params["y"]["left_slope"] is net.params["z"]["left_slope"]
    check_gradients(net, FEED, tol=1e-5)


def test_compiled_class_options(L):
    """lr, init, regularizer and neuron of a compiled class layer act as those of any other."""
    regu, neuron = L2Regu(3.0), Neurons.Tanh()
    first = ip("a", "x", 4, weight_regu=L2Regu(0))
    frozen = srelu(L, "y", "a", left_slope_lr=0, left_slope_init=0.25, right_slope_regu=regu, neuron=neuron)
    net = placed(first, frozen, SumLoss(name="l", bottoms=["y"]))
    left, right = net.params["y"]["left_slope"], net.params["y"]["right_slope"]
    assert left.frozen
    assert (left.data == 0.25).all()
    plain = placed(first, srelu(L, "y", "a", left_slope_init=0.25), SumLoss(name="l", bottoms=["y"]))
    np.testing.assert_allclose(net.predict(X), np.tanh(plain.predict(X)))
    net.forward(data=FEED)
    assert net.forward(regu_coef=0.5, data=FEED) - net.forward(data=FEED) == pytest.approx(1.5 * np.sum(right.data**2))
    check_gradients(net, FEED, tol=1e-5, regu_coef=0.5)
    chained = Net.chain("c", [L.SReLU(param_key=None), L.SReLU(param_key=None)], data=[X])
    assert chained.params["srelu1"]["left_slope"] is not chained.params["srelu2"]["left_slope"]
    with pytest.raises(ValueError, match="SReLU 'y': initialize: 'left_slope': Array of shape"):
        srelu(L, "y", "x", left_slope_init=[1.0, 2.0]).initialize((4,))
    alone = srelu(L, "y", "x", left_slope_init=0.25)
    alone.initialize((4,))
    assert (alone.params["left_slope"] == 0.25).all()


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"left_slope_lr": -1}, ValueError, "SReLU 'y': field left_slope_lr=-1"),
        ({"left_slope_init": Constant}, ValueError, r"SReLU 'y': field left_slope_init=.*write Constant\(\)"),
        ({"left_slope_regu": 3}, ValueError, "SReLU 'y': field left_slope_regu=3"),
        ({"left_slope_cons": 3}, ValueError, "SReLU 'y': field left_slope_cons=3"),
        ({"left_slope_decay": "a"}, ValueError, "SReLU 'y': field left_slope_decay='a'"),
        ({"neuron": 3}, ValueError, "SReLU 'y': field neuron=3"),
        ({"param_key": 3}, ValueError, "SReLU 'y': field param_key=3"),
        ({"slope_lr": 1}, TypeError, "SReLU 'y': no field 'slope_lr'; it takes .*left_slope_lr"),
    ],
)
def test_compiled_class_options_refused(L, options, kind, text):
    with pytest.raises(kind, match=text):
        srelu(L, "y", "x", **options)


def test_compiled_class_states(L):
    net = placed(
        L.Running(name="r", bottoms=["x"], tops=["y"], rate=0.25),
        ip("z", "y"),
        SumLoss(name="l", bottoms=["z"]),
    )
    mean = net.states["r"]["mean"]
    assert mean.tolist() == [0] * 6
    net.forward(data=FEED)
    np.testing.assert_allclose(net.states["r"]["mean"], 0.25 * X[:5].mean(0))
    kept = net.states["r"]["mean"].copy()
    net.forward(data=FEED, phase="predict")
    net.predict(X)
    assert np.array_equal(net.states["r"]["mean"], kept)
    net.reset_states()
    assert net.states["r"]["mean"].tolist() == [0] * 6


def test_compiled_neuron(L):
    check_gradients(placed(ip("y", "x", neuron=L.mish), SumLoss(name="l", bottoms=["y"])), FEED)
    with pytest.raises(ValueError, match="neuron"):
        InnerProduct(3, neuron=L.rbf)


def test_compiled_names_both_ends(L):
    with pytest.raises(TypeError, match=r"'y'.*'label'.*'data'"):
        Net("n", [source(), CompiledLayer(L.mish, name="y", bottoms=["label"])])
    with pytest.raises(ValueError, match=r"'y'.*'data'.*'data'"):
        Net(
            "n",
            [
                source(data=[X[:, None, None, :], T]),
                CompiledLayer(L.rbf, name="y", bottoms=["data"], params={"centers": X[:2], "gamma": [1, 1]}),
            ],
        )


def test_rank_rule(L):
    """Wolfram's: the input's rank is that declared: one example; one less: the function takes the batch."""
    example = CompiledLayer(L.scale, name="y", bottoms=["x", "by"], input=[(6,), ()])
    assert example.ports.batched
    wrong = CompiledLayer(L.mish, name="y", bottoms=["x"], input=(4,))
    with pytest.raises(ValueError, match=r"'y' .*blob 'x' \(1, 6\).*input=\(\(4,\),\) says \(4,\).*not \(6,\)"):
        placed(wrong)
    with pytest.raises(ValueError, match="rank 3"):
        CompiledLayer(L.scale, name="y", bottoms=["x", "by"], input=[(6, 2, 2), ()])


def test_function_layer():
    layer = FunctionLayer(lambda x: (x.sum(1), x[:, :2]), name="f", bottoms=["x"], tops=["a", "b"])
    net = placed(layer)
    net.forward(data=FEED)
    np.testing.assert_allclose(net.blobs["a"].data, X[:5].sum(1))
    assert not layer.can_do_bp
    bad = placed(FunctionLayer(lambda x: x, lambda x, dy: (dy, dy), name="f", bottoms=["x"]), force_backward=True)
    bad.forward(data=FEED)
    with pytest.raises(ValueError, match="2 gradients"):
        bad.backward(seed={"f": np.ones((5, 6))})


# -- by hand -----------------------------------------------------------------------------------------------


def test_errors_keep_their_type_and_name_the_layer():
    def broken(x):
        raise ZeroDivisionError("boom") if x.shape[0] == 5 else None

    class Broken(Double):
        def forward(self, backend, state, inputs):
            raise ZeroDivisionError("boom")

    net = placed(Broken(name="bad", bottoms=["x"]))
    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        net.forward(data=FEED)
    assert any("'bad'" in note for note in caught.value.__notes__)


def test_a_gradient_of_another_shape():
    class Wrong(Double):
        def backward(self, backend, state, inputs, diffs):
            diffs[0].data = np.ones((2, 2))

    net = placed(ip("a", "x"), Wrong(name="bad", bottoms=["a"]), SumLoss(name="l", bottoms=["bad"]))
    net.forward(data=FEED)
    with pytest.raises(ValueError, match=r"'bad'.*'a'.*\(2, 2\)"):
        net.backward()


def test_life_cycle():
    net = placed(Double(name="a", bottoms=["x"]))
    state = net.layer_states["a"]
    with net:
        net.forward(data=FEED)
        assert state.phase == "train"
    assert state.is_down
    net.shutdown()
    calls = [
        net.forward,
        net.backward,
        net.statistics,
        net.memory,
        lambda: net.predict(X),
        net.forward_epoch,
        net.info,
    ]
    for call in [
        *calls,
        lambda: net.freeze("a"),
        lambda: net.gradient("x"),
        lambda: net.save("x.safetensors"),
        net.__enter__,
        net.objective,
        net.refresh,
    ]:
        with pytest.raises(RuntimeError, match="shut down"):
            call()


def test_statistics_of_layers_by_hand():
    net = placed(SumLoss(name="l", bottoms=["x"]))
    value = net.forward(data=FEED)
    assert net.statistics() == {"l.square": pytest.approx(value)}
    net.reset_statistics()
    assert np.isnan(net.statistics()["l.square"])


def test_statistics_are_weighted_by_samples(capsys):
    net = placed(ip("p", "x"), SoftmaxLoss(name="loss", bottoms=["p", "t"]))
    a = net.forward(data={"x": X[:6], "t": T[:6]})
    b = net.forward(data={"x": X[6:8], "t": T[6:8]})
    assert net.statistics()["loss.loss"] == pytest.approx((6 * a + 2 * b) / 8)

    class Storage(dict):
        def update_statistics(self, key, value):
            self[key] = value

    storage = Storage()
    net.dump_statistics(storage, True)
    assert list(storage) == ["loss.loss"]
    assert "loss.loss" in capsys.readouterr().out


def test_summed_losses_are_weighted_by_samples():
    loss = SoftmaxLoss(normalize="sum", ignore_label=2, name="loss", bottoms=["p", "t"])
    net = placed(ip("p", "x"), loss)
    batches = [(X[:6], [0, 1, 2, 2, 2, 2]), (X[6:8], [0, 1])]
    a, b = (net.forward(data={"x": x, "t": np.array(t)}) for x, t in batches)
    assert net.statistics()["loss.loss"] == pytest.approx((6 * a + 2 * b) / 8)


# -- placeholders, chain, files, texts ---------------------------------------------------------------------


def test_chain(L):
    layers = [InnerProduct(5), L.SReLU(), InnerProduct(3), SoftmaxLoss(), Accuracy()]
    net = Net.chain("c", layers, data=[X, T], batch_size=8, seed=3)
    assert [layer.name for layer in net.layers] == [
        "data",
        "innerproduct1",
        "srelu1",
        "innerproduct2",
        "softmaxloss1",
        "accuracy1",
    ]
    assert net.forward_backward() > 0
    assert net.predict(X).shape == (20, 3)


def test_chain_without_data(tmp_path):
    full = Net.chain("c", [InnerProduct(5), InnerProduct(3), SoftmaxLoss()], data=[X, T], seed=1)
    full.save(tmp_path / "w.safetensors")
    net = Net.chain("c", [InnerProduct(5), InnerProduct(3), SoftmaxLoss()], dtype=np.float64)
    with pytest.raises(RuntimeError, match="first call"):
        net.params
    net.load(tmp_path / "w.safetensors")
    assert np.array_equal(net.predict(X), full.predict(X)) or not net.is_set_up
    net.forward_backward(data={"data": X, "label": T})
    assert np.array_equal(net.predict(X), full.predict(X))


def test_placeholders():
    net = placed(ip("y", "x"), Accuracy(name="a", bottoms=["y", "t"]))
    with pytest.raises(ValueError, match="'x'"):
        net.forward()
    with pytest.raises(ValueError, match=r"'x'.*\(6,\).*\(5, 7\)"):
        net.forward(data={"x": np.ones((5, 7)), "t": T[:5]})
    assert net.blobs["t"].dtype == np.int64
    varying = Net("v", [Input([(None,)], ["x"], name="in"), Double(name="y", bottoms=["x"])])
    assert varying.predict(np.ones((2, 3))).shape == (2, 3)
    assert varying.predict(np.ones((2, 5))).shape == (2, 5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files(tmp_path, dtype, L):
    def make(seed):
        return Net(
            "n",
            [Input([(6,)], ["x"], name="in"), ip("a", "x"), L.Running(name="r", bottoms=["a"], tops=["y"])],
            dtype=dtype,
            seed=seed,
        )

    one, two = make(1), make(2)
    one.forward(data={"x": X})
    one.save(tmp_path / "w.safetensors")
    assert not np.array_equal(one.predict(X), two.predict(X))
    two.load(tmp_path / "w.safetensors")
    assert np.array_equal(one.predict(X), two.predict(X))
    assert np.array_equal(one.states["r"]["mean"], two.states["r"]["mean"])


def test_misfits_are_all_named_and_nothing_is_changed(tmp_path):
    mlp().save(tmp_path / "w.safetensors")
    other = placed(ip("ip1", "x", 5), ip("ip2", "ip1", 4), ip("new", "ip2"))
    before = {name: p.data.copy() for name, p in other.named_parameters().items()}
    with pytest.raises(ValueError) as caught:
        other.load(tmp_path / "w.safetensors")
    for word in ("new.weight", "new.bias", "ip2.weight", "(5, 3)", "(5, 4)"):
        assert word in str(caught.value)
    assert all(np.array_equal(before[n], p.data) for n, p in other.named_parameters().items())
    other.load(tmp_path / "w.safetensors", strict=False)
    assert np.array_equal(other.params["ip1"]["weight"].data, mlp().params["ip1"]["weight"].data)
    assert np.array_equal(other.params["new"]["weight"].data, before["new.weight"])
    with pytest.raises(FileNotFoundError, match="nix"):
        other.load(tmp_path / "nix.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match="bad"):
        other.load(tmp_path / "bad.safetensors")
    with pytest.raises(ValueError, match="txt"):
        other.save(tmp_path / "w.txt")


def test_texts():
    net = mlp()
    net.forward_backward()
    for text in (str(net), net.memory(), net.to_dot(), net.to_mermaid()):
        assert "ip1" in text
    info = net.info()
    assert info["layers_count"] == 5
    assert info["arrays_total_count"] == 6 * 5 + 5 + 5 * 3 + 3
    assert info["arrays_total_byte_count"] == 8 * info["arrays_total_count"]
    assert info["input_ports"] == {"data": (6,), "label": ()}
    with pytest.raises(ValueError, match="weight"):
        net.info("weight")


def test_unknown_names():
    net = mlp()
    for call in (
        lambda: net.blobs["z"],
        lambda: net.params["z"],
        lambda: net.params["ip1"]["z"],
        lambda: net.layer_states["z"],
    ):
        with pytest.raises(KeyError, match="'z'"):
            call()


def test_dtypes():
    assert mlp().dtype == np.float64
    assert mlp(dtype=np.float32).blobs["ip2"].dtype == np.float32
    ints = Net("n", [MemoryData([T], 4, name="d", tops=["t"]), Stopper(name="s", bottoms=["t"])])
    assert ints.dtype == np.float32
    assert ints.blobs["t"].dtype == T.dtype
    with pytest.raises(TypeError, match="float16"):
        mlp(dtype=np.float16)


def test_initial_values():
    net = placed(ip("a", "x", weight_init=Array(np.arange(18.0).reshape(6, 3)), bias_init=Constant(2)))
    assert net.params["a"]["weight"].data[1].tolist() == [3, 4, 5]
    assert net.params["a"]["bias"].data.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match=r"'a'.*'weight'.*\(2,\)"):
        placed(ip("a", "x", weight_init=Array([1, 2])))
    big = placed(InnerProduct(2000, name="a", bottoms=["x"]))
    w = big.params["a"]["weight"].data
    assert abs(w).max() <= np.sqrt(3 / 6)
    assert w.var() == pytest.approx(1 / 6, rel=0.05)


def test_default_settings_of_parameters():
    net = mlp()
    weight, bias = net.params["ip1"]["weight"], net.params["ip1"]["bias"]
    assert weight.regu == L2Regu(1)
    assert bias.regu.value(np.ones(3)) == 0
    assert (bias.lr, bias.decay, weight.lr) == (1.0, 1.0, 1.0)
    assert weight.gradient is NullBlob()


def test_bad_weights_before_the_shapes_are_known(tmp_path):
    chain = lambda n: Net.chain("c", [InnerProduct(n), SoftmaxLoss()])  # noqa: E731
    for classes in (2, 3):
        saved = chain(classes)
        saved.predict(X)
        saved.save(tmp_path / f"{classes}.safetensors")
    net = chain(3)
    net.load(tmp_path / "2.safetensors")
    calls = [lambda: net.predict(X)] * 2 + [lambda: net.forward(data={"data": X, "label": T})]
    for call in [*calls, lambda: net.evaluate([X, T]), lambda: net.save(tmp_path / "x.h5"), net.forward_epoch]:
        with pytest.raises(ValueError, match=r"innerproduct1\.weight \(6, 2\) instead of \(6, 3\)"):
            call()
    net.load(tmp_path / "3.safetensors")
    assert np.array_equal(net.predict(X), saved.predict(X))
    net.forward_backward(data={"data": X, "label": T})
    assert net.blobs["innerproduct1"].diff.any()


def test_no_user_array_is_changed_or_aliased():
    x, t = X.copy(), T.copy()
    net = Net(
        "n",
        [
            MemoryData([x, t], 20, name="data"),
            Negate(name="d", bottoms=["data"]),
            ip("a", "data"),
            SoftmaxLoss(name="l", bottoms=["a", "label"]),
        ],
        force_backward=True,
    )
    net.forward_backward()
    assert np.array_equal(x, X)
    assert not np.shares_memory(net.blobs["data"].data, x)
    w = np.ones((6, 3))
    held = placed(ip("a", "x", weight_init=Array(w)))
    held.params["a"]["weight"].data[...] = 5
    assert w.max() == 1


def test_blob_objects_live_on():
    net = mlp()
    held: Blob = net.blobs["ip2"]
    net.forward_backward()
    assert net.blobs["ip2"] is held
    assert held.diff.any()


def test_topology_error_is_a_value_error():
    assert issubclass(TopologyError, ValueError)


def test_a_stream_draws_what_a_new_generator_would():
    """Also after an odd number of 32-bit draws, which NumPy keeps the other half of."""
    stream = Stream(7, "drop")
    for count in range(1, 5):
        wanted, found = generator(7, "drop", "draw", count), stream.next()
        assert np.array_equal(found.random(3, dtype=np.float32), wanted.random(3, dtype=np.float32))
        assert np.array_equal(found.integers(10, size=5), wanted.integers(10, size=5))
        assert found.standard_normal() == wanted.standard_normal()
    other = copy.copy(stream)
    assert np.array_equal(other.next().random(3), generator(7, "drop", "draw", 5).random(3))
    assert stream.count == 4
