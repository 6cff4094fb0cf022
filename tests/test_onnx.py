"""`net.to_onnx`: ONNX's reference evaluator computes what `net.predict` does."""

import importlib

import numpy as np
import pytest

from layerc.runtime import (
    GRU,
    LRN,
    LSTM,
    Accuracy,
    Adam,
    Argmax,
    BatchNorm,
    ChannelPooling,
    Concat,
    Convolution,
    Crop,
    Dropout,
    ElementWise,
    Embedding,
    FunctionLayer,
    Gaussian,
    Identity,
    Index2Onehot,
    InnerProduct,
    Input,
    LayerNorm,
    MemoryData,
    Net,
    Neurons,
    Pooling,
    Power,
    RandomMask,
    Reshape,
    Softmax,
    SoftmaxLoss,
    Split,
    Subnet,
    TiedInnerProduct,
)

onnx = pytest.importorskip("onnx")
reference = importlib.import_module("onnx.reference")
RNG = np.random.default_rng(0)


def exported(net, tmp_path, top=None):
    """The model in the file, and its evaluator."""
    path = tmp_path / "net.onnx"
    net.to_onnx(path, top)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model, reference.ReferenceEvaluator(model)


def check(layers, feed, tmp_path, dtype=np.float32, top=None, sizes=(3, 1)):
    """Both compute the same, for batches of all these sizes."""
    net = Net("exported", layers, seed=3, dtype=dtype)
    net.forward(data=feed, phase="predict")
    for p in net.named_parameters().values():  # biases and norms start at values that hide mistakes
        p.data[...] = RNG.normal(size=p.shape)
    model, evaluator = exported(net, tmp_path, top)
    names = [port.name for port in model.graph.input]
    for n in sizes:
        given = {name: feed[name][:n] for name in names}
        wanted = net.predict(given, top)
        (found,) = evaluator.run(None, given)
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=2e-5 if dtype == np.float32 else 1e-10, atol=1e-5)
    return model


def test_a_missing_folder(tmp_path):
    net = Net("n", [Input([(3,)], ["x"], name="in"), InnerProduct(2, name="ip", bottoms=["x"])])
    with pytest.raises(FileNotFoundError, match="no/net.onnx cannot be written: there is no folder .*/no$"):
        net.to_onnx(tmp_path / "no" / "net.onnx")


def images(*shape):
    return RNG.normal(size=shape).astype(np.float32)


SEQUENCE, IMAGE, ROW = images(3, 5, 4), images(3, 4, 7, 6), images(3, 6)

# name: layers of one bottom x, and x
CASES = {
    "inner product": (InnerProduct(5), IMAGE),
    "no bias": (InnerProduct(5, bias=False), ROW),
    "convolution": (Convolution(6, kernel=(3, 2), stride=(2, 1), pad=(1, 0), n_group=2), IMAGE),
    "dilated": (Convolution(2, kernel=3, dilation=(2, 1), bias=False), IMAGE),
    "max pooling": (Pooling("max", kernel=3, stride=2, pad=1), IMAGE),
    "max pooling, ceil": (Pooling("max", kernel=2, stride=2, ceil=True), IMAGE),
    "mean pooling": (Pooling("mean", kernel=3, stride=2, pad=1), IMAGE),
    "mean pooling, elements": (Pooling("mean", kernel=(2, 3), stride=2, pad=1, count_pad=False, ceil=True), IMAGE),
    "batch norm": (BatchNorm(eps=1e-3), IMAGE),
    "layer norm": (LayerNorm(axis=2), IMAGE),
    "last axis": (LayerNorm(), ROW),
    "softmax": (Softmax(), IMAGE),
    "softmax of rows": (Softmax(axis=-1), IMAGE),
    "power": (Power(scale=2.0, shift=9.0, power=1.5), ROW),
    "nothing to do": (Power(), ROW),
    "reshape": (Reshape((6, -1, 4)), IMAGE),
    "crop": (Crop((4, 3), random_crop=True), IMAGE),
    "dropout": (Dropout(0.5, tops=["y"]), ROW),
    "mask": (RandomMask(0.5), ROW),
    "identity": (Identity(), ROW),
    "argmax": (Argmax(axis=2), IMAGE),
    "one hot": (Index2Onehot(7, axis=-1), RNG.integers(0, 7, (3, 2))),
    "embedding": (Embedding(7, 4), RNG.integers(0, 7, (3, 2))),
    "gru": (GRU(3), SEQUENCE),
    "gru, last": (GRU(3, sequence=False), SEQUENCE),
    "lstm": (LSTM(3), SEQUENCE),
    "lstm, last": (LSTM(3, sequence=False), SEQUENCE),
}
NEURONS = ("Identity", "ReLU", "LReLU", "Sigmoid", "Tanh", "Exponential", "ELU", "GELU", "Swish", "Softplus")


@pytest.mark.parametrize("name", CASES)
def test_layer(name, tmp_path):
    layer, x = CASES[name]
    layer = layer.replace(name="layer", bottoms=["x"], tops=["y"])
    model = check([Input([x.shape[1:]], tops=["x"], name="in"), layer], {"x": x}, tmp_path)
    assert [port.name for port in model.graph.output] == ["y"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NEURONS)
def test_neuron(name, dtype, tmp_path):
    layer = InnerProduct(4, name="layer", bottoms=["x"], tops=["y"], neuron=getattr(Neurons, name)())
    check([Input([(6,)], tops=["x"], name="in"), layer], {"x": ROW.astype(dtype)}, tmp_path, dtype)


def test_neuron_with_a_floor(tmp_path):
    layer = Identity(name="layer", bottoms=["x"], tops=["y"], neuron=Neurons.ReLU(0.25))
    check([Input([(6,)], tops=["x"], name="in"), layer], {"x": ROW}, tmp_path)


def test_lrn(tmp_path):
    """The evaluator of onnx 1.23 takes the number of examples for that of channels, so here they are equal."""
    layer = LRN(kernel=3, scale=0.5, shift=2.0, name="layer", bottoms=["x"], tops=["y"])
    check([Input([(4, 7, 6)], tops=["x"], name="in"), layer], {"x": images(4, 4, 7, 6)}, tmp_path, sizes=[4])


@pytest.mark.parametrize("shape", [(4,), (4, 5), (4, 2, 3, 2)])
def test_lrn_of_what_is_no_image(shape, tmp_path):
    """ONNX's takes (N, C, H, W) alone."""
    layer = LRN(kernel=3, scale=0.5, shift=2.0, name="layer", bottoms=["x"], tops=["y"])
    model = check([Input([shape], tops=["x"], name="in"), layer], {"x": images(4, *shape)}, tmp_path, sizes=[4])
    assert [node.op_type for node in model.graph.node] == ["Reshape", "LRN", "Shape", "Reshape", "Identity"]


def test_the_layers_of_a_subnet(tmp_path):
    """Also where names inside are those outside, with states, sharing, and a subnet in a subnet."""
    inner = [
        Input([(6,)], tops=["x"], name="in"),
        InnerProduct(4, name="ip", bottoms=["x"], neuron=Neurons.Tanh()),
        BatchNorm(name="bn", bottoms=["ip"]),
        InnerProduct(4, name="other", bottoms=["x"], param_key="ip"),
        ElementWise("add", name="sum", bottoms=["bn", "other"]),
    ]
    middle = [Input([(6,)], tops=["a"], name="in"), Subnet(Net("inner", inner), name="ip", bottoms=["a"])]
    layers = [
        Input([(6,)], tops=["x"], name="in"),
        Subnet(Net("middle", middle), name="sub", bottoms=["x"], neuron=Neurons.ReLU()),
        InnerProduct(6, name="ip", bottoms=["sub"]),
        Subnet(Net("middle", middle, seed=5), name="again", bottoms=["ip"]),
    ]
    check(layers, {"x": ROW}, tmp_path)
    odd = [Input([(6,)], tops=["x"], name="in"), FunctionLayer(np.sin, name="sine", bottoms=["x"])]
    net = Net("n", [Input([(6,)], tops=["x"], name="in"), Subnet(Net("odd", odd), name="sub", bottoms=["x"])])
    with pytest.raises(ValueError, match=r"'sub' \(Subnet\): layer 'sine' \(FunctionLayer\)$"):
        net.to_onnx(tmp_path / "odd.onnx")


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
def test_element_wise(operation, tmp_path):
    more = ["c"] if operation in ("add", "multiply") else []
    names = ["a", "b", *more]
    layers = [Input([(6,)] * len(names), tops=names, name="in"), ElementWise(operation, name="y", bottoms=names)]
    check(layers, {name: images(3, 6) for name in names}, tmp_path)


def test_carried_values_of_a_recurrent_layer(tmp_path):
    layers = [
        Input([(5, 4), (3,), (3,)], tops=["x", "h", "c"], name="in"),
        LSTM(3, name="lstm", bottoms=["x", "h", "c"]),
    ]
    check(layers, {"x": SEQUENCE, "h": images(3, 3), "c": images(3, 3)}, tmp_path)


def test_sharing_branches_and_blobs_changed_in_place(tmp_path):
    """One array for shared weights; a tied layer; several bottoms; dropout in place; only what the top needs."""
    layers = [
        Input([(6,), (6,), ()], tops=["a", "b", "label"], name="in"),
        InnerProduct(4, name="both", bottoms=["a", "b"], tops=["fa", "fb"], neuron=Neurons.Tanh()),
        InnerProduct(4, name="again", bottoms=["a"], tops=["fc"], param_key="both"),
        Dropout(name="drop", bottoms=["fa"]),
        Split(name="split", bottoms=["fa"], tops=["s1", "s2"]),
        Concat(name="all", bottoms=["s1", "fb", "fc", "s2"]),
        TiedInnerProduct("both", name="back", bottoms=["fb"]),
        InnerProduct(3, name="scores", bottoms=["all"]),
        SoftmaxLoss(name="loss", bottoms=["scores", "label"]),
    ]
    feed = {"a": images(3, 6), "b": images(3, 6), "label": np.array([0, 1, 2])}
    model = check(layers, feed, tmp_path)
    assert {port.name for port in model.graph.input} == {"a", "b"}
    assert [one.name for one in model.graph.initializer].count("both.weight") == 1
    check(layers, feed, tmp_path, top="back")
    check(layers, feed, tmp_path, top="fa")


def test_a_trained_net(tmp_path):
    """Convolutions, norms and all, after training; read again it classifies the same."""
    x, t = images(40, 1, 8, 8), RNG.integers(0, 3, 40)
    layers = [
        MemoryData([x, t], 10, name="data"),
        Convolution(4, kernel=3, pad=1, name="c1", bottoms=["data"]),
        BatchNorm(name="norm", bottoms=["c1"], neuron=Neurons.ReLU()),
        Pooling("max", kernel=2, stride=2, name="p1", bottoms=["norm"]),
        InnerProduct(3, name="ip", bottoms=["p1"], weight_init=Gaussian(0, 0.1)),
        SoftmaxLoss(name="loss", bottoms=["ip", "label"]),
        Accuracy(name="accuracy", bottoms=["ip", "label"]),
    ]
    net = Net("trained", layers, seed=1)
    Adam(max_epoch=3).solve(net)
    model, evaluator = exported(net, tmp_path)
    assert [port.name for port in model.graph.input] == ["data"]
    np.testing.assert_allclose(evaluator.run(None, {"data": x})[0], net.predict(x), rtol=1e-4, atol=1e-5)
    again, _ = exported(net, tmp_path)
    assert again.SerializeToString() == model.SerializeToString()


def test_sequences_of_any_length(tmp_path):
    net = Net("n", [Input([(None, 4)], tops=["x"], name="in"), GRU(3, name="y", bottoms=["x"])])
    with pytest.raises((RuntimeError, ValueError)):
        net.to_onnx(tmp_path / "early.onnx")
    net.predict(SEQUENCE)
    _, evaluator = exported(net, tmp_path)
    longer = images(2, 9, 4)
    np.testing.assert_allclose(evaluator.run(None, {"x": longer})[0], net.predict(longer), rtol=1e-5, atol=1e-6)


def test_all_that_has_no_form_is_named_and_nothing_written(tmp_path):
    layers = [
        Input([(4, 6, 6)], tops=["x"], name="in"),
        FunctionLayer(np.sin, name="sine", bottoms=["x"]),
        LRN(mode="within", name="near", bottoms=["sine"]),
        ChannelPooling(kernel=2, name="across", bottoms=["near"]),
        Pooling("mean", kernel=3, stride=2, ceil=True, name="mean", bottoms=["across"]),
    ]
    net = Net("strange", layers)
    net.forward(data={"x": images(2, 4, 6, 6)}, phase="predict")
    (tmp_path / "net.onnx").write_text("an older one")
    with pytest.raises(ValueError, match=r"'sine' \(FunctionLayer\).*'near' \(LRN\): mode=.*'across'.*'mean'.*ceil"):
        net.to_onnx(tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").read_text() == "an older one"
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]
    stateful = Net("s", [Input([(5, 4)], tops=["x"], name="in"), GRU(3, stateful=True, name="y", bottoms=["x"])])
    with pytest.raises(ValueError, match="stateful"):
        stateful.to_onnx(tmp_path / "net.onnx")
    with pytest.raises(KeyError, match="nowhere"):
        net.to_onnx(tmp_path / "net.onnx", top="nowhere")
