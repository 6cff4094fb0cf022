"""Wiring: every mistake is a TopologyError that names the layers and blobs."""

import numpy as np
import pytest
from nets import Double, Negate, Shift, Stopper, SumLoss, data

from layerc import config
from layerc.runtime import (
    Accuracy,
    Blob,
    Dropout,
    ElementWise,
    Identity,
    InnerProduct,
    Input,
    Layer,
    LayerState,
    MemoryData,
    Net,
    Neurons,
    NullBlob,
    Parameter,
    Softmax,
    SoftmaxLoss,
    SquareLoss,
    TopologyError,
)

X, T = data()


def source(**more):
    return MemoryData(name="data", data=[X, T], batch_size=8, **more)


def ip(name, bottom, dim=3, **more):
    return InnerProduct(name=name, bottoms=[bottom], output_dim=dim, **more)


def refuse(layers, *words, error=TopologyError):
    with pytest.raises(error) as caught:
        Net("n", layers)
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))


class NoForward(Layer):
    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[Blob(np.zeros(3))])


class NoBackward(Stopper):
    can_do_bp = True


class NoStatistics(Stopper):
    has_stats = True


class NoParameters(Stopper):
    has_param = True


class SecretParameters(Shift):
    has_param = False


class TwoOfAName(Stopper):
    has_param = True

    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[Blob(np.zeros(3))], parameters=[Parameter("p", (3,)), Parameter("p", (3,))])


class Silent(SumLoss):
    def forward(self, backend, state, inputs):
        pass


class BadSource(Layer):
    is_source = True


class TwoBlobs(Stopper):
    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[Blob(np.zeros(3)), Blob(np.zeros(3))])


REFUSED = {
    "duplicate top": (
        [source(), ip("a", "data", tops=["y"]), ip("b", "data", tops=["y"])],
        "'y'",
        "'a'",
        "'b'",
    ),
    "a top twice": ([source(tops=["d", "d"])], "'d'", "twice"),
    "missing bottom": ([source(), ip("a", "dat")], "'a'", "'dat'"),
    "duplicate name": (
        [source(), ip("a", "data"), Softmax(name="a", bottoms=["a"], tops=["z"])],
        "'a'",
        "Softmax",
    ),
    "cycle": (
        [source(), ElementWise("add", name="a", bottoms=["data", "c"]), ip("b", "a"), ip("c", "b")],
        *("cycle", "'a'", "'b'", "'c'"),
    ),
    "self cycle": ([source(), ElementWise("add", name="a", bottoms=["data", "a"])], "cycle", "'a'"),
    "cycle through a neuron": (
        [source(), ElementWise("add", name="a", bottoms=["data", "b"]), ip("b", "a", neuron=Neurons.ReLU())],
        *("cycle", "'a'", "'b'"),
    ),
    "too few bottoms": ([source(), SoftmaxLoss(name="loss", bottoms=["data"])], "'loss'", "2"),
    "too many bottoms": ([source(), ElementWise("divide", name="e", bottoms=["data"] * 3)], "'e'", "2"),
    "tops of multi": ([source(), Softmax(name="s", bottoms=["data", "data"], tops=["a"])], "'s'", "2"),
    "no tops of multi": ([source(), Softmax(name="s", bottoms=["data", "data"])], "'s'", "2"),
    "no bottoms": ([source(), Identity(name="i")], "'i'"),
    "in place before a reader": (
        [source(), ip("a", "data"), ip("b", "a"), Dropout(name="d", bottoms=["a"]), ip("c", "a")],
        *("'d'", "'b'", "'a'", "in place"),
    ),
    "not in place": ([source(), Softmax(name="s", bottoms=["data"], tops=["data"])], "'data'", "'s'"),
    "source with bottoms": ([source(), BadSource(name="q", bottoms=["data"])], "'q'", "source"),
    "sink with tops": ([source(), SumLoss(name="q", bottoms=["data"], tops=["t"])], "'q'", "sink"),
    "no forward": ([source(), NoForward(name="q", bottoms=["data"])], "'q'", "forward"),
    "no backward": ([source(), NoBackward(name="q", bottoms=["data"])], "'q'", "backward"),
    "no statistics": ([source(), NoStatistics(name="q", bottoms=["data"])], "'q'", "dump_statistics"),
    "has_param without": ([source(), NoParameters(name="q", bottoms=["data"])], "'q'", "has_param"),
    "without has_param": ([source(), SecretParameters(name="q", bottoms=["data"])], "'q'", "has_param"),
    "parameters of one name": ([source(), TwoOfAName(name="q", bottoms=["data"])], "'q'", "two", "'p'"),
    "blobs and tops": ([source(), TwoBlobs(name="q", bottoms=["data"])], "'q'", "2"),
    "sharing shapes": (
        [source(), ip("a", "data", 3, param_key="k"), ip("b", "data", 4, param_key="k")],
        *("'a'", "'b'", "'k'", "(6, 3)", "(6, 4)"),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    refuse(REFUSED[case][0], *REFUSED[case][1:])


SHAPES = {
    "float labels": ([source(), ip("a", "data"), SoftmaxLoss(name="loss", bottoms=["a", "data"])], TypeError),
    "int data": ([source(), ip("a", "label")], TypeError),
    "shapes of ElementWise": (
        [source(), ip("a", "data"), ElementWise("add", name="e", bottoms=["a", "data"])],
        ValueError,
    ),
    "square loss": ([source(), ip("a", "data"), SquareLoss(name="loss", bottoms=["a", "data"])], ValueError),
    "axis": ([source(), Softmax(axis=2, name="s", bottoms=["data"])], ValueError),
    "the batch is no axis": ([source(), Softmax(axis=0, name="s", bottoms=["data"])], ValueError),
    "class weights": (
        [source(), ip("a", "data"), SoftmaxLoss(class_weights=[1, 2], name="loss", bottoms=["a", "label"])],
        ValueError,
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_name_both_ends(case):
    layers, error = SHAPES[case]
    refuse(layers, f"{layers[-1].name!r}", "'data'", error=error)


def test_listing_order_does_not_matter():
    layers = [SoftmaxLoss(name="loss", bottoms=["b", "label"]), ip("b", "a"), ip("a", "data", 4), source()]
    net = Net("n", layers)
    names = [layer.name for layer in net.layers]
    assert names.index("data") < names.index("a") < names.index("b") < names.index("loss")
    assert np.isfinite(net.forward_backward())


def test_not_a_layer():
    with pytest.raises(TypeError, match="Double"):
        Net("n", [source(), Double])
    with pytest.raises(TypeError, match="int"):
        Net("n", [source(), 3])


def refuse_backward(layers, *words, **call):
    net = Net("n", layers)
    net.forward()
    for attempt in (net.backward, net.forward_backward):
        with pytest.raises(TopologyError) as caught:
            attempt(**call)
        for word in words:
            assert word in str(caught.value)
    return net


def test_a_parameter_that_no_loss_reaches():
    layers = [source(), ip("a", "data"), ip("dead", "a"), SoftmaxLoss(name="loss", bottoms=["a", "label"])]
    net = refuse_backward(layers, "'dead'", "'weight'")
    net.backward(seed={"dead": np.ones(net.blobs["dead"].shape)})
    net.freeze("dead")
    net.backward()
    assert net.params["dead"]["weight"].gradient is NullBlob()


def test_a_layer_that_cannot_do_bp_in_between():
    layers = [source(), ip("a", "data"), Stopper(name="stop", bottoms=["a"]), ip("b", "stop")]
    layers.append(SoftmaxLoss(name="loss", bottoms=["b", "label"]))
    net = refuse_backward(layers, "'stop'", "'a'")
    net.freeze("a")
    net.backward()
    with pytest.raises(TopologyError, match="'stop'"):
        net.gradient("a")


def test_a_statistic_is_not_in_between():
    layers = [source(), ip("a", "data"), SoftmaxLoss(name="loss", bottoms=["a", "label"])]
    net = Net("n", [*layers, Accuracy(name="acc", bottoms=["a", "label"])])
    net.forward_backward()


def test_no_loss_and_no_seed():
    net = refuse_backward([source(), ip("a", "data")], "loss", "seed")
    net.backward(seed={"a": np.ones((8, 3))})
    assert net.params["a"]["bias"].gradient.tolist() == [8, 8, 8]


def test_backward_needs_a_forward():
    net = Net("n", [source(), ip("a", "data"), SoftmaxLoss(name="loss", bottoms=["a", "label"])])
    with pytest.raises(RuntimeError, match="forward"):
        net.backward()


def test_loss_that_sets_none():
    net = Net("n", [source(), Silent(name="q", bottoms=["data"])])
    with pytest.raises(TopologyError, match=r"'q'.*loss"):
        net.forward()


def test_in_place_layers_apply_in_order():
    plain = [source(), Double(name="a", bottoms=["data"], factor=3.0)]
    net = Net(
        "n",
        [*plain, Negate(name="m", bottoms=["a"]), SumLoss(name="loss", bottoms=["a"])],
        force_backward=True,
    )
    net.forward_backward()
    x = net.blobs["data"].data
    np.testing.assert_allclose(net.blobs["a"].data, -3 * x)
    np.testing.assert_allclose(net.blobs["data"].diff, 9 * x)
    assert net.blobs["data"].data is not X


def test_in_place_after_a_neuron_keeps_the_producers_gradient():
    """Mocha's dropout in place after sigmoid gives wrong gradients: the output it needs was overwritten."""
    from nets import check_gradients

    layers = [
        Input([(6,), ()], name="in", tops=["data", "label"]),
        ip("a", "data", 4, neuron=Neurons.Sigmoid()),
        Dropout(name="d", bottoms=["a"], ratio=0.4),
        ip("b", "a"),
        SoftmaxLoss(name="loss", bottoms=["b", "label"]),
    ]
    check_gradients(Net("n", layers, dtype=np.float64), {"data": X[:5], "label": T[:5]})


class Configured(Layer):
    count: int = config(3, check=lambda k: k > 0)
    rate: float = config()


def test_fields():
    layer = Configured(rate=1, count=np.int64(4), bottoms="x")
    assert (layer.count, layer.rate, layer.name, layer.bottoms, layer.tops) == (
        4,
        1.0,
        "configured",
        ("x",),
        ("configured",),
    )
    with pytest.raises(TypeError, match="rate"):
        Configured()
    for bad in (0, "a", 1.5, None, True):
        with pytest.raises(ValueError, match=r"'z'.*count"):
            Configured(rate=1, count=bad, name="z")
    with pytest.raises(TypeError, match=r"unknown.*'cuont'"):
        Configured(rate=1, cuont=3)
    with pytest.raises(AttributeError, match="immutable"):
        layer.rate = 3
    assert layer.replace(rate=2).count == 4


BAD_FIELDS = [
    (lambda: InnerProduct(0), "output_dim"),
    (lambda: InnerProduct(output_dim="3"), "output_dim"),
    (lambda: InnerProduct(3, bias=1), "bias"),
    (lambda: InnerProduct(3, weight_lr=-1), "weight_lr"),
    (lambda: InnerProduct(3, weight_init="xavier"), "weight_init"),
    (lambda: InnerProduct(3, neuron="relu"), "neuron"),
    (lambda: InnerProduct(3, neuron=Neurons.ReLU), "neuron"),
    (lambda: Dropout(ratio=1.0), "ratio"),
    (lambda: Dropout(ratio=-0.1), "ratio"),
    (lambda: ElementWise("power"), "operation"),
    (lambda: SoftmaxLoss(normalize="batch"), "normalize"),
    (lambda: SquareLoss(normalize="weights"), "normalize"),
    (lambda: SoftmaxLoss(weight=float("nan")), "weight"),
    (lambda: Accuracy(top_k=0), "top_k"),
    (lambda: MemoryData([X, T], 0), "batch_size"),
    (lambda: MemoryData([X, T], 4, last="pad"), "last"),
    (lambda: MemoryData([X, T[:3]], 4), "data"),
    (lambda: MemoryData([X, T], 4, tops=["a"]), "data"),
    (lambda: MemoryData([X, T], 4, transformers=[("z", abs)]), "transformers"),
    (lambda: Input([(3,)], ["a", "b"]), "shapes"),
]


@pytest.mark.parametrize(("make", "field"), BAD_FIELDS)
def test_bad_fields(make, field):
    with pytest.raises(ValueError, match=field):
        make()


def test_positions_are_those_of_the_tables():
    assert InnerProduct(5, False).bias is False
    assert SoftmaxLoss(2, None, -1).axis == 2
    assert SoftmaxLoss(2, None, -1).ignore_label == -1
    assert MemoryData([X, T], 4, True, "drop").last == "drop"
    assert MemoryData([X], 4, tops="x").tops == ("x",)
    assert Input([(3,)], ["a"]).tops == ("a",)
    with pytest.raises(TypeError, match="position"):
        SquareLoss(2.0)
