"""Training without the layers' Python: after every step a net is, bit for bit, what it is the long way."""

import copy

import numpy as np
import pytest
from nets_ahead import SCRIPTS
from test_replay import T, X, random_net, small

from layerc.runtime import (
    SGD,
    Accuracy,
    Adam,
    Embedding,
    InnerProduct,
    Input,
    Layer,
    LayerState,
    MemoryData,
    Net,
    NullBlob,
    SoftmaxLoss,
    SquareLoss,
    repeat,
)


class Never(repeat.Repeats):
    """The long way, always."""

    def forward(self, net, phase, given):
        return False


def long_way(net):
    net._repeats = Never()
    return net


def taken(net):
    return net._repeats._last is not None


def same(one, other):
    """All that can be seen of two nets."""
    for name, blob in one.blobs.items():
        np.testing.assert_array_equal(blob.data, other.blobs[name].data, err_msg=name)
        assert isinstance(blob.diff, NullBlob) == isinstance(other.blobs[name].diff, NullBlob), name
        if not isinstance(blob.diff, NullBlob):
            np.testing.assert_array_equal(blob.diff, other.blobs[name].diff, err_msg=name)
    for name, p in one.named_parameters().items():
        q = other.named_parameters()[name]
        np.testing.assert_array_equal(p.data, q.data, err_msg=name)
        assert isinstance(p.gradient, NullBlob) == isinstance(q.gradient, NullBlob), name
        if not isinstance(p.gradient, NullBlob):
            np.testing.assert_array_equal(p.gradient, q.gradient, err_msg=name)
    for s, t in zip(one.track.states, other.track.states, strict=True):
        assert repr(s.loss) == repr(t.loss) and s.rng.count == t.rng.count
        for name, value in s.states.items():
            np.testing.assert_array_equal(value, t.states[name], err_msg=name)
    assert repr(one.statistics()) == repr(other.statistics())


def train(nets, feeds, meddle=lambda net, step: None, solvers=None):
    """The steps of a solver in both nets, with something else before each."""
    solvers = solvers or [SGD(lr=0.01, momentum=0.5, regu_coef=1e-3) for _ in nets]
    for net, solver in zip(nets, solvers, strict=True):
        solver.init(net)
    for step, feed in enumerate(feeds):
        losses = []
        for net, solver in zip(nets, solvers, strict=True):
            meddle(net, step)
            with pytest.MonkeyPatch.context() as patch:
                if feed is not None:
                    whole = net.forward
                    patch.setattr(net, "forward", lambda regu=0.0, whole=whole, feed=feed: whole(regu, data=feed))
                try:
                    losses.append(solver.step(net))
                except FloatingPointError as error:
                    losses.append(str(error))
        assert losses[0] == losses[1]
        same(*nets)


@pytest.mark.parametrize("seed", range(40))
def test_random_nets(seed):
    rng = np.random.default_rng(seed)
    nets = [random_net(np.random.default_rng(seed)), long_way(random_net(np.random.default_rng(seed)))]
    frozen = list(nets[0].named_parameters())[: int(rng.integers(3))]
    data = {"x": rng.standard_normal((9, 6)), "t": rng.standard_normal((9, 6)), "label": rng.integers(0, 6, 9)}
    feeds = [{k: v[:n] for k, v in data.items() if k in nets[0].blobs} for n in (9, 9, 9, 4, 9, 2, 4, 9)]

    def meddle(net, step):
        if step == 5 and len(frozen) < len(net.buffer.parameters):
            net.freeze(*frozen)

    train(nets, feeds, meddle)
    assert taken(nets[0]) or frozen


@pytest.mark.parametrize("name", [n for n in SCRIPTS if n != "compiled"])
def test_nets_with_data_of_their_own(name):
    scopes = [{}, {}]
    for scope in scopes:
        exec(SCRIPTS[name], scope)
    nets = [scopes[0]["net"], long_way(scopes[1]["net"])]
    (source, *_) = [layer for layer in nets[0].layers if isinstance(layer, (Input, MemoryData))]
    batches = [None] * 9
    if isinstance(source, Input):
        batches = [{t: a[:n] for t, a in zip(source.tops, scopes[0]["DATA"], strict=True)} for n in (7, 7, 7, 7, 4, 7)]
    train(nets, batches, solvers=[s["solver"] for s in scopes])


def feed(n=40):
    return {"x": X[:n], "label": T[:n]}


def both():
    nets = [small(seed=2), long_way(small(seed=2))]
    for net in nets:
        for _ in range(4):
            net.forward_backward(data=feed())
    assert taken(nets[0])
    return nets


@pytest.mark.parametrize(
    "ask",
    [
        lambda net: net.gradient("x"),
        lambda net: net.gradient("a.weight", seed={"bn": np.ones((len(net.blobs["x"].data), 5))}),
        lambda net: net.backward(seed={"b": 0 * net.blobs["b"].data + 2}) or net.params["a"]["weight"].gradient,
        lambda net: net.layer_states["bn"].arrays["x"],
        lambda net: net.predict(X[:7]),
        lambda net: net.evaluate([X, T]) and net.blobs["b"].data,
        lambda net: net.forward(data=feed(), phase="predict"),
    ],
    ids=["gradient", "gradient of a seed", "seeds", "layer states", "predict", "evaluate", "phase predict"],
)
def test_what_else_is_asked_in_between(ask):
    nets = both()
    for _ in range(3):
        np.testing.assert_array_equal(*map(ask, nets))
        for net in nets:
            net.forward_backward(data=feed(31))
        same(*nets)


def test_a_result_stays_while_the_next_forward_runs():
    net = both()[0]
    net.forward_backward(data=feed())
    before = {n: np.array(b.diff) for n, b in net.blobs.items() if not isinstance(b.diff, NullBlob)}
    gradients = net.buffer.gradient.copy()
    net.forward(data={"x": 2 * X, "label": T})
    np.testing.assert_array_equal(net.buffer.gradient, gradients)
    for name, diff in before.items():
        np.testing.assert_array_equal(net.blobs[name].diff, diff)


def test_looking_at_the_layers_after_an_update_changes_nothing():
    nets = both()
    solvers = [SGD(lr=0.5), SGD(lr=0.5)]
    for net, solver in zip(nets, solvers, strict=True):
        whole = net.forward
        net.forward = lambda regu=0.0, whole=whole: whole(regu, data=feed())
        solver.init(net)
        solver.step(net)
        loss = net.layer_states["loss"].loss
        assert loss == solver.state.obj_val
    same(*nets)
    for net, solver in zip(nets, solvers, strict=True):
        net.layer_states
        solver.step(net)
    same(*nets)


def test_the_callers_arrays_stay_their_own():
    net = both()[0]
    x = X.copy()
    net.forward(data={"x": x, "label": T})
    x[...] = 7
    np.testing.assert_array_equal(net.blobs["x"].data, X)


def test_parameters_set_between():
    nets = both()
    for net in nets:
        net.params["a"]["weight"].data[...] *= 2
        net.reset_states()
        net.forward_backward(data=feed())
    same(*nets)


def test_errors_are_those_of_the_long_way():
    layers = [Input([(), (2,)], ["i", "t"], name="in"), Embedding(5, 2, name="e", bottoms=["i"])]
    net = Net("e", [*layers, SquareLoss(name="loss", bottoms=["e", "t"])])
    good = {"i": np.arange(5), "t": np.zeros((5, 2))}
    for _ in range(5):
        net.forward_backward(data=good)
    assert taken(net)
    with pytest.raises(IndexError, match="index 9 is outside 0..4"):
        net.forward(data={"i": np.array([1, 9]), "t": np.zeros((2, 2))})
    with pytest.raises(RuntimeError, match="needs a forward"):
        net.backward()
    net.forward_backward(data=good)


def test_statistics_count_every_step_once():
    def make():
        return Net(
            "s",
            [
                Input([(6,), ()], ["x", "label"], name="in"),
                InnerProduct(3, name="b", bottoms=["x"]),
                SoftmaxLoss(name="loss", bottoms=["b", "label"]),
                Accuracy(name="accuracy", bottoms=["b", "label"]),
            ],
        )

    nets = [make(), long_way(make())]
    for n in (40, 40, 40, 40, 7):
        for net in nets:
            net.forward_backward(data=feed(n))
            net.gradient("b.weight")
        same(*nets)


class Twice(Layer):
    """By hand: it may do more than it returns, so it is always called."""

    can_do_bp = True
    calls = 0

    def setup(self, backend, inputs, diffs):
        return LayerState(self, blobs=[copy.copy(inputs[0])])

    def forward(self, backend, state, inputs):
        Twice.calls += 1
        state.blobs[0].data = 2 * inputs[0].data

    def backward(self, backend, state, inputs, diffs):
        if diffs[0]:
            diffs[0].data = 2 * state.blobs_diff[0].data


def test_layers_by_hand_are_called():
    layers = [Input([(6,), (6,)], ["x", "t"], name="in"), InnerProduct(6, name="a", bottoms=["x"])]
    net = Net("h", [*layers, Twice(name="h", bottoms=["a"], tops=["h"]), SquareLoss(name="loss", bottoms=["h", "t"])])
    before = Twice.calls
    for _ in range(6):
        net.forward_backward(data={"x": X, "t": X})
    assert Twice.calls == before + 6 and not taken(net)


def test_adam_too():
    nets = [small(seed=4), long_way(small(seed=4))]
    train(nets, [feed()] * 6, solvers=[Adam(), Adam()])


def test_a_blob_shows_the_last_pass():
    net = both()[0]
    blob = net.blobs["b"]
    kept, shown = blob.to_array(), blob.data
    net.forward(data={"x": -X, "label": T})
    assert blob.data is shown and not np.array_equal(shown, kept)
