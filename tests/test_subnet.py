"""A net as a layer, and the layers that only move or keep values."""

import h5py
import numpy as np
import pytest
from layer_checks import check, check_gradients, net_of, run
from nets import SumLoss

from layerc.runtime import (
    SGD,
    Argmax,
    BatchNorm,
    Concat,
    Dropout,
    ElementWise,
    HDF5Output,
    InnerProduct,
    Input,
    MemoryData,
    MemoryOutput,
    Net,
    Neurons,
    NullBlob,
    Reshape,
    Split,
    SquareLoss,
    Subnet,
    TopologyError,
    ValidationPerformance,
)

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def made(cls, *args, bottoms=("x",), **more):
    return cls(*args, name="y", bottoms=list(bottoms), **more)


# -- moving values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "given"), [((2, 6), (3, 2)), ((3, 2, 2), -1), ((1, 4), (2, -1)), ((0, 4), (2, 2)), ((2, 0), (0, 3))]
)
def test_reshape(shape, given):
    want = given if isinstance(given, tuple) else (given,)
    size = int(np.prod(shape[1:]))
    known = -int(np.prod(want)) if -1 in want else 1
    top = tuple(size // known if n == -1 else n for n in want)
    check(made(Reshape, given), {"x": normal(*shape)}, lambda x: x.reshape(len(x), *top))


def test_reshape_errors():
    for bad in ((-1, -1), (-2,), (1.5,), "ab"):
        with pytest.raises(ValueError, match=r"Reshape 'y'.*shape"):
            made(Reshape, bad)
    for bad in ((4,), (-1, 4), (0, -1)):
        with pytest.raises(ValueError, match=r"'y'.*'x'"):
            net_of(made(Reshape, bad), {"x": np.zeros((2, 6))})


def test_integers_may_be_moved():
    net = run(made(Reshape, (1, 3)), {"x": np.arange(6).reshape(2, 3)})
    assert net.blobs["y"].dtype == np.int64
    net = run(made(Concat, bottoms=["x", "z"]), {"x": np.ones((2, 1), int), "z": np.zeros((2, 2), int)})
    assert net.blobs["y"].data.tolist() == [[1, 0, 0]] * 2


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(2, 3), (2, 1)], 1), ([(2, 3, 2), (2, 3, 1), (2, 3, 4)], -1), ([(0, 1), (0, 2)], 1), ([(2, 2)], 1)],
)
def test_concat(shapes, axis):
    feed = {f"x{k}": normal(*s) for k, s in enumerate(shapes)}
    check(made(Concat, axis, bottoms=list(feed)), feed, lambda *xs: np.concatenate(xs, axis))


def test_concat_errors():
    feed = {"x": np.zeros((2, 3, 2)), "z": np.zeros((2, 2, 2))}
    for axis in (2, 0, 3):
        with pytest.raises(ValueError, match=r"'y'.*'x'.*'z'"):
            net_of(made(Concat, axis, bottoms=["x", "z"]), feed)
    with pytest.raises(TypeError, match="'z'"):
        run(made(Concat, bottoms=["x", "z"]), {"x": np.zeros((2, 3)), "z": np.zeros((2, 3), int)})


def test_split():
    layer = made(Split, tops=["a", "b", "c"], neuron=Neurons.Tanh())
    check(layer, {"x": normal(3, 2)}, lambda x: (np.tanh(x),) * 3)
    net = run(layer, {"x": normal(3, 2)})
    net.backward(seed={"b": np.ones((3, 2))})
    assert np.isfinite(net.blobs["x"].diff).all()
    net.blobs["a"].data[...] = 7
    assert not (net.blobs["b"].data == 7).any()


# -- keeping values ---------------------------------------------------------------------------------------


def keeping(layer, **more):
    data = MemoryData([np.arange(10.0)[:, None], np.arange(10)], 4, name="data")
    return Net(
        "n",
        [data, InnerProduct(1, name="y", bottoms=["data"]), SquareLoss(name="l", bottoms=["y", "data"]), layer],
        **more,
    )


def test_memory_output():
    net = keeping(MemoryOutput(name="out", bottoms=["data", "label"]))
    solver = SGD(max_epoch=1, lr=0.0)
    solver.add(ValidationPerformance(data=[np.zeros((5, 1)), np.zeros(5, int)], every_n_iter=1))
    solver.solve(net)
    net.predict(np.ones((1, 1)))
    kept = net.layer_states["out"].outputs
    assert [len(a) for a in kept[0]] == [4, 4, 2]
    assert np.concatenate(kept[1]).tolist() == list(range(10))
    kept[0][0][...] = -1
    assert net.blobs["data"].data.min() >= 0


def test_hdf5_output(tmp_path):
    path = tmp_path / "out.h5"
    with keeping(HDF5Output(path, name="out", bottoms=["data", "label"], datasets=["a", "b"])) as net:
        assert not path.exists()
        for _ in range(3):
            net.forward()
        net.evaluate([np.zeros((5, 1)), np.zeros(5, int)])
    with h5py.File(path) as file:
        assert file["a"][:, 0].tolist() == file["b"][()].tolist() == list(range(10))
        assert file["b"].dtype == np.int64
    with pytest.raises(FileExistsError, match=r"out.h5"):
        keeping(HDF5Output(path, name="out", bottoms=["data"]))
    with keeping(HDF5Output(path, force_overwrite=True, name="out", bottoms=["data"])):
        pass
    with h5py.File(path) as file:
        assert file["data"].shape == (0, 1)
    with pytest.raises(FileNotFoundError):
        keeping(HDF5Output(tmp_path / "no" / "out.h5", name="out", bottoms=["data"]))
    with pytest.raises(ValueError, match="datasets"):
        HDF5Output(path, ["a"], name="out", bottoms=["data", "label"])


# -- nets in nets -----------------------------------------------------------------------------------------


def inner(dtype=np.float64, shape=(4,), seed=0, norm=True):
    layers = [
        Input([shape], name="in", tops=["u"]),
        InnerProduct(3, name="ip1", bottoms=["u"], neuron=Neurons.Tanh()),
        *([BatchNorm(name="bn", bottoms=["ip1"])] if norm else []),
        InnerProduct(2, name="ip2", bottoms=["bn" if norm else "ip1"]),
    ]
    return Net("inner", layers, dtype=dtype, seed=seed)


def outer(*layers, **more):
    return Net("outer", [Input([(4,)], name="in", tops=["x"]), *layers], dtype=np.float64, force_backward=True, **more)


def test_subnet_is_its_net():
    net = inner()
    around = outer(made(Subnet, net, neuron=Neurons.Tanh()))
    x = normal(5, 4)
    around.forward(data={"x": x})
    net.forward(data={"u": x})
    np.testing.assert_allclose(around.blobs["y"].data, np.tanh(net.blobs["ip2"].data))
    assert list(around.params["y"]) == ["ip1.weight", "ip1.bias", "bn.weight", "bn.bias", "ip2.weight", "ip2.bias"]
    assert set(around.states["y"]) == {"bn.mean", "bn.var"}
    np.testing.assert_allclose(around.states["y"]["bn.mean"], net.states["bn"]["mean"])
    np.testing.assert_allclose(around.predict(x), np.tanh(net.predict(x)))


@pytest.mark.parametrize("n", [2, 3])
def test_subnet_gradients(n):
    check_gradients(outer(made(Subnet, inner())), {"x": normal(n, 4)}, tol=1e-5)
    twice = outer(
        Subnet(inner(norm=False), name="a", bottoms=["x"], param_key="k"),
        Subnet(inner(norm=False), name="b", bottoms=["x"], param_key="k"),
        ElementWise("multiply", name="y", bottoms=["a", "b"]),
    )
    assert twice.params["a"]["ip1.weight"] is twice.params["b"]["ip1.weight"]
    check_gradients(twice, {"x": normal(n, 4)})


def test_subnet_with_several_ports():
    layers = [
        Input([(2,), (2,)], name="in", tops=["u", "v"]),
        ElementWise("add", name="s", bottoms=["u", "v"]),
        ElementWise("multiply", name="p", bottoms=["u", "v"]),
    ]
    layer = Subnet(Net("two", layers), name="y", bottoms=["x", "z"], tops=["a", "b"])
    check(layer, {"x": normal(3, 2), "z": normal(3, 2)}, lambda x, z: (x + z, x * z))
    net = run(layer, {"x": normal(3, 2), "z": normal(3, 2)})
    net.backward(seed={"a": np.ones((3, 2))})
    assert net.blobs["x"].diff.tolist() == np.ones((3, 2)).tolist()


def test_subnet_freezing_predicting_saving(tmp_path):
    net = outer(made(Subnet, inner()), SumLoss(name="loss", bottoms=["y"]))
    net.freeze("y.ip1.*", "y.bn.bias")
    x = normal(6, 4)
    net.forward(data={"x": x})
    net.predict(normal(2, 4))
    net.backward()
    assert net.params["y"]["ip1.weight"].gradient is NullBlob()
    assert net.params["y"]["ip2.weight"].gradient.any()
    for suffix in ("safetensors", "h5"):
        net.save(tmp_path / f"w.{suffix}")
        other = outer(made(Subnet, inner(seed=3)))
        other.load(tmp_path / f"w.{suffix}")
        assert np.array_equal(other.predict(x, "y"), net.predict(x, "y"))
    net.reset_states()
    assert not net.states["y"]["bn.mean"].any()


def test_subnet_takes_the_values_of_now():
    net = inner(norm=False)
    net.params["ip1"]["weight"].data[...] = 0.25
    net.freeze("ip2")
    around = outer(made(Subnet, net))
    assert (around.params["y"]["ip1.weight"].data == 0.25).all()
    assert around.params["y"]["ip2.bias"].frozen
    around.params["y"]["ip1.weight"].data[...] = 1
    assert (net.params["ip1"]["weight"].data == 0.25).all()
    unknown = Net("late", [Input([None], name="in", tops=["u"]), InnerProduct(2, name="ip", bottoms=["u"])])
    assert outer(made(Subnet, unknown)).params["y"]["ip.weight"].shape == (4, 2)


def test_subnet_draws_from_its_own_stream():
    layers = [Input([(4,)], name="in", tops=["u"]), Dropout(0.5, name="d", bottoms=["u"], tops=["v"])]
    around = outer(made(Subnet, Net("drop", layers)))
    x = np.ones((50, 4))
    first, second = (around.forward(data={"x": x}) or around.blobs["y"].data.copy() for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(around.predict(x), x)
    check_gradients(around, {"x": normal(3, 4)})


def test_subnet_with_a_loss():
    layers = [Input([(4,)], name="in", tops=["u"]), InnerProduct(4, name="ip", bottoms=["u"])]
    layers.append(SquareLoss(name="l", bottoms=["ip", "u"], weight=0.5))
    net = outer(made(Subnet, Net("auto", layers)))
    x = normal(3, 4)
    assert net.forward(data={"x": x}) > 0
    check_gradients(net, {"x": x})


def test_subnet_errors():
    with pytest.raises(ValueError, match=r"'y'.*net"):
        made(Subnet, 3)
    with pytest.raises(ValueError, match="'data'"):
        made(Subnet, keeping(MemoryOutput(name="out", bottoms=["data"])))
    with pytest.raises(TopologyError, match=r"'y'.*1 bottoms"):
        outer(made(Subnet, inner(), bottoms=["x", "x"]))
    with pytest.raises(ValueError, match=r"'y'.*'x'.*'u'"):
        outer(made(Subnet, inner(shape=(5,))))
    layers = [Input([(4,)], name="in", tops=["u"]), Argmax(name="a", bottoms=["u"])]
    stop = outer(InnerProduct(4, name="ip", bottoms=["x"]), Subnet(Net("arg", layers), name="y", bottoms=["ip"]))
    assert not stop.layers[-1].can_do_bp


def test_a_picture(tmp_path):
    from xml.etree import ElementTree

    net = keeping(MemoryOutput(name="a<b", bottoms=["data", "y"]))
    net.draw(tmp_path / "net.svg")
    tree = ElementTree.parse(tmp_path / "net.svg")
    texts = ["".join(t.itertext()) for t in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"data MemoryData", "y InnerProduct", "a<b MemoryOutput"} <= set(texts)
    arrows = [p for p in tree.iter("{http://www.w3.org/2000/svg}path") if p.get("marker-end")]
    assert len(arrows) == 5
    with pytest.raises(ValueError, match="svg"):
        net.draw(tmp_path / "net.png")


def test_one_full_name_for_two_arrays():
    inside = Net("inside", [Input([(3,)], ["x"], name="in"), InnerProduct(2, name="ip", bottoms=["x"])])
    normed = Net("inside", [Input([(3,)], ["x"], name="in"), BatchNorm(name="bn", bottoms=["x"])])
    source = Input([(3,)], ["x"], name="in")
    for layers, name in (
        ([Subnet(inside, name="s", bottoms=["x"]), InnerProduct(4, name="s.ip", bottoms=["x"])], "s.ip.weight"),
        ([BatchNorm(name="s.bn", bottoms=["x"]), Subnet(normed, name="s", bottoms=["x"])], "s.bn.weight"),
    ):
        with pytest.raises(TopologyError, match=rf"'s' \(Subnet\).*'{name}'") as caught:
            Net("n", [source, *layers])
        assert repr(name.rpartition(".")[0]) in str(caught.value)
    placeless = Net("n", [Input([None], ["x"], name="in"), *layers])
    for _ in range(2):  # the shapes are known at the first call only
        with pytest.raises(TopologyError, match="'s.bn.weight'"):
            placeless.predict({"x": normal(2, 3)}, "s")
