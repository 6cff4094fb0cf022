"""Schedules of random nets, run in Python: what `tidied` and the arena do changes no bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from nets_ahead import SCRIPTS

from layerc.runtime import (
    SGD,
    Adam,
    BatchNorm,
    Concat,
    Convolution,
    Dropout,
    ElementWise,
    Embedding,
    FunctionLayer,
    Identity,
    InnerProduct,
    Input,
    Net,
    Neurons,
    Pooling,
    Power,
    Reshape,
    Softmax,
    SoftmaxLoss,
    Split,
    SquareLoss,
)
from layerc.runtime.rehearse import schedule
from layerc.runtime.replay import Bound, Failed, Replay

_NEURONS = [Neurons.Identity(), Neurons.ReLU(), Neurons.Tanh(), Neurons.Softplus()]


def random_net(rng):
    """A net of some ten layers on vectors of 6 and images 2 x 3 x 1, wired at random."""
    layers = [Input([(6,), (6,), ()], ["x", "t", "label"], name="in")]
    blobs = ["x"]

    def blob():
        return str(rng.choice(blobs))

    def image(k, make):
        layers.append(Reshape((2, 3, 1), name=f"image{k}", bottoms=[blob()]))
        layers.append(make(name=f"conv{k}", bottoms=[f"image{k}"]))
        layers.append(Reshape((6,), name=f"l{k}", bottoms=[f"conv{k}"]))

    def shared(k):
        layers.append(InnerProduct(6, name=f"l{k}", bottoms=[blob()], param_key="k", neuron=_neuron(rng)))

    def split(k):
        layers.append(Split(name=f"s{k}", bottoms=[blob()], tops=[f"l{k}", f"also{k}"]))
        blobs.append(f"also{k}")

    def concat(k):
        layers.append(Concat(name=f"c{k}", bottoms=[blob(), blob()]))
        layers.append(InnerProduct(6, name=f"l{k}", bottoms=[f"c{k}"]))

    kinds = [
        lambda k: layers.append(InnerProduct(6, name=f"l{k}", bottoms=[blob()], neuron=_neuron(rng))),
        lambda k: layers.append(Softmax(name=f"l{k}", bottoms=[blob()], neuron=_neuron(rng))),
        lambda k: layers.append(Power(0.7, 0.1, 1.0, name=f"l{k}", bottoms=[blob()])),
        lambda k: layers.append(ElementWise("add", name=f"l{k}", bottoms=[blob(), blob()])),
        lambda k: layers.append(ElementWise("multiply", name=f"l{k}", bottoms=[blob(), blob(), blob()])),
        lambda k: layers.append(Identity(name=f"l{k}", bottoms=[blob()], neuron=_neuron(rng))),
        lambda k: layers.append(BatchNorm(name=f"l{k}", bottoms=[blob()])),
        lambda k: layers.append(Dropout(0.4, name=f"l{k}", bottoms=[blob()], tops=[f"l{k}"])),
        lambda k: image(k, lambda **w: Convolution(2, kernel=(3, 1), pad=(1, 0), **w)),
        lambda k: image(k, lambda **w: Pooling("mean", kernel=(3, 1), pad=(1, 0), **w)),
        *(shared, split, concat),
    ]
    for k in range(int(rng.integers(2, 9))):
        kinds[int(rng.integers(len(kinds)))](k)
        blobs.append(f"l{k}")
    layers.append(InnerProduct(6, name="last", bottoms=[blob()]))
    blobs.append("last")
    read = {b for layer in layers for b in layer.bottoms}
    ends = [b for b in blobs[1:] if b not in read] or [blobs[-1]]
    for k, end in enumerate(ends):  # several losses, of which some read what the others do
        layers.append(SquareLoss(name=f"square{k}", bottoms=[end, "t"], weight=float(rng.uniform(0.1, 1))))
        if rng.random() < 0.4:
            layers.append(SoftmaxLoss(name=f"soft{k}", bottoms=[end, "label"]))
    return Net("random", layers, seed=int(rng.integers(99)), force_backward=bool(rng.random() < 0.3))


def _neuron(rng):
    return _NEURONS[int(rng.integers(len(_NEURONS)))]


def kept(net, made, solver=None):
    """The memory that lives from call to call, with the net's values."""
    arrays = {name: np.zeros(size, dtype) for name, (size, dtype) in made.buffers.items()}
    arrays["parameters"][...] = net.buffer.data
    for state in net.track.states:
        for name, value in state.states.items():
            arrays[f"{state.layer.name}.{name}"][...] = value.reshape(-1)
    return arrays


def compare(net, solver, given, batches):
    made = schedule(net, solver)
    memory = kept(net, made)
    replay = Replay(made.predict)
    for n in batches:
        feed = {p.name: given[p.name][:n] for p in made.predict.inputs}
        bound = Bound(replay, n, memory)
        for name, array in feed.items():
            bound.inputs[name][...] = array
        bound.run()
        (found,) = bound.outputs.values()
        np.testing.assert_array_equal(found, net.predict(feed))
    if made.train is None:
        return
    replay = Replay(made.train)
    forward = net.forward
    solver.init(net)
    for step, n in enumerate(batches):
        bound = Bound(replay, n, memory)
        bound.names = {"iteration": step, "learning_rate": np.nan, "momentum": np.nan}
        for name, array in bound.inputs.items():
            array[...] = given[name][:n]
        feed = {name: given[name][:n] for name in given if name in net.blobs}
        net.forward = lambda regu=0.0, feed=feed: forward(regu, data=feed)
        try:
            bound.run()
        except Failed:
            with pytest.raises(FloatingPointError):
                solver.step(net)
            return
        expected = solver.step(net)
        assert bound.result() == expected
        np.testing.assert_array_equal(memory["parameters"], net.buffer.data)
        for state in net.track.states:
            for name, value in state.states.items():
                np.testing.assert_array_equal(memory[f"{state.layer.name}.{name}"], value.reshape(-1))


@pytest.mark.parametrize("seed", range(60))
def test_random_nets(seed):
    rng = np.random.default_rng(seed)
    net = random_net(rng)
    parameters = list(net.named_parameters())
    if rng.random() < 0.3:
        net.freeze(parameters[int(rng.integers(len(parameters)))])
    if all(p.frozen for p in net.buffer.parameters):
        net.unfreeze("*")
    solver = SGD(lr=0.01, momentum=0.5, regu_coef=1e-3) if seed % 2 else Adam(clip_global_norm=1.0)
    given = {
        "x": rng.standard_normal((9, 6)).astype(np.float32),
        "t": rng.standard_normal((9, 6)).astype(np.float32),
        "label": rng.integers(0, 6, 9),
    }
    compare(net, solver, given, (4, 9, 2, 9))


@pytest.mark.parametrize("name", [n for n in SCRIPTS if n != "compiled"])
def test_the_nets_of_the_compiled_tests(name):
    scope = {}
    exec(SCRIPTS[name], scope)
    net = scope["net"]
    tops = [t for layer in net.layers if layer.is_source for t in layer.tops]
    compare(net, scope["solver"], dict(zip(tops, scope["DATA"])), (4, 7, 2))


# -- predict ------------------------------------------------------------------------------------------------


def small(**keywords):
    return Net(
        "small",
        [
            Input([(6,), ()], ["x", "label"], name="in"),
            InnerProduct(5, name="a", bottoms=["x"], neuron=Neurons.Tanh()),
            BatchNorm(name="bn", bottoms=["a"]),
            InnerProduct(3, name="b", bottoms=["bn"]),
            SoftmaxLoss(name="loss", bottoms=["b", "label"]),
        ],
        **keywords,
    )


X = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
T = np.arange(40) % 3


def long_way(net, x, top=None):
    """predict as if for the first time."""
    net._shortcuts = type(net._shortcuts)()
    return net.predict(x, top)


def taken(net):
    return any(s.replay is not None for s in net._shortcuts._known.values())


def test_predict_takes_the_shortcut_and_gives_the_same():
    net = small()
    first = [net.predict(X[:n]) for n in (5, 5, 5, 5, 17, 40, 1, 5)]
    assert taken(net)
    for n, y in zip((5, 5, 5, 5, 17, 40, 1, 5), first):
        np.testing.assert_array_equal(y, long_way(net, X[:n]))
        assert y.flags.owndata


def test_the_shortcut_sees_new_parameters_and_states():
    net, solver = small(), SGD(lr=0.1)
    for _ in range(4):
        net.predict(X)
    assert taken(net)
    solver.init(net)
    forward = net.forward
    net.forward = lambda regu=0.0: forward(regu, data={"x": X, "label": T})
    for _ in range(3):
        solver.step(net)
        y = net.predict(X)
        shortcuts = net._shortcuts
        np.testing.assert_array_equal(y, long_way(net, X))
        net._shortcuts = shortcuts
    net.reset_states()
    np.testing.assert_array_equal(net.predict(X), long_way(net, X))


def test_the_shortcut_has_a_result_of_its_own():
    net = small()
    ys = [net.predict(X[:4]) for _ in range(5)]
    ys[-1][...] = 7
    np.testing.assert_array_equal(net.predict(X[:4]), ys[0])
    assert not any(np.shares_memory(a, b) for a in ys for b in ys if a is not b)


def test_errors_are_those_of_the_long_way():
    net = Net("e", [Input([()], ["i"], name="in"), Embedding(5, 2, name="e", bottoms=["i"])])
    for _ in range(4):
        net.predict(np.arange(5))
    assert taken(net)
    with pytest.raises(IndexError, match="index 9 is outside 0..4"):
        net.predict(np.array([1, 9]))
    with pytest.raises(ValueError, match="cannot take"):
        net.predict(np.zeros((2, 2), int))
    np.testing.assert_array_equal(net.predict([1, 2]), net.params["e"]["weight"].data[1:3])


def test_what_a_user_wrote_is_called_each_time():
    seen = []

    def fn(x):
        seen.append(1)
        return x * 2

    net = Net("f", [Input([(6,)], ["x"], name="in"), FunctionLayer(fn, name="f", bottoms=["x"])])
    before = len(seen)
    for _ in range(6):
        net.predict(X)
    assert len(seen) == before + 6


def test_other_tops_shapes_and_threads():
    net = small()
    image = Net("i", [Input([(1, None, None)], ["x"], name="in"), Convolution(2, 3, name="c", bottoms=["x"])])
    for size in (5, 7, 5, 7, 5, 7, 9, 5):
        x = np.random.default_rng(size).standard_normal((2, 1, size, size)).astype(np.float32)
        y = image.predict(x)
        fresh = Net("i", image.layers)
        fresh.predict(x)
        fresh.params["c"]["weight"].data[...] = image.params["c"]["weight"].data
        np.testing.assert_array_equal(y, fresh.predict(x))
    for top in ("a", "bn", "b") * 4:
        np.testing.assert_array_equal(net.predict(X, top=top), long_way(small(), X, top))
    expected = long_way(net, X)
    for _ in range(4):
        net.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for y in pool.map(lambda _: net.predict(X), range(200)):
            np.testing.assert_array_equal(y, expected)
