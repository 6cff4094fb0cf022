"""LBFGS: converges as scipy's, leaves no trace but the parameters, resumes bit for bit."""

import numpy as np
import pytest
from scipy import optimize

from layerc.runtime import (
    LBFGS,
    SGD,
    Dropout,
    FunctionLayer,
    InnerProduct,
    Input,
    MemoryData,
    Net,
    Neurons,
    Snapshot,
    SoftmaxLoss,
    SquareLoss,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
T = RNG.integers(0, 3, 40)


def net_of(dtype=np.float64, extra=()):
    layers = [
        MemoryData([X.astype(dtype), T], 40, name="data"),
        *extra,
        InnerProduct(5, name="a", bottoms=["drop" if extra else "data"], neuron=Neurons.Tanh()),
        InnerProduct(3, name="b", bottoms=["a"]),
        SoftmaxLoss(name="loss", bottoms=["b", "label"]),
    ]
    return Net("n", layers, seed=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reaches_the_minimum(dtype):
    net = net_of(dtype)
    LBFGS(max_iter=150, regu_coef=1e-3).solve(net)
    found = net.forward(1e-3)
    other = net_of()

    def objective(w):
        other.buffer.data[...] = w
        value = other.forward_backward(1e-3)
        return value, other.buffer.gradient.copy()

    best = optimize.minimize(objective, net_of().buffer.data, jac=True, method="L-BFGS-B", options={"maxiter": 500}).fun
    assert found <= best * 1.02 + 1e-4


def test_rosenbrock():
    """To the end of a curved valley, in no more iterations than scipy's needs twice."""

    def rosenbrock(w):
        return np.stack([10 * (w[:, 1] - w[:, 0] ** 2), 1 - w[:, 0]], axis=1)

    def back(w, dy):
        return np.stack([-20 * w[:, 0] * dy[:, 0] - dy[:, 1], 10 * dy[:, 0]], axis=1)

    data = MemoryData([np.ones((1, 1)), np.zeros((1, 2))], 1, name="data")
    w = InnerProduct(2, bias=False, name="w", bottoms=["data"])
    f = FunctionLayer(rosenbrock, back, name="f", bottoms=["w"])
    net = Net("n", [data, w, f, SquareLoss(name="loss", bottoms=["f", "label"])])
    net.params["w"]["weight"].data[...] = [[-1.2, 1.0]]
    solver = LBFGS(max_iter=80)
    solver.solve(net)
    np.testing.assert_allclose(net.params["w"]["weight"].data, [[1, 1]], atol=1e-6)
    assert solver.state.stop_reason == "tolerance"
    assert solver.state.iter < 80


def test_descends_with_draws_kept():
    drop = Dropout(0.3, name="drop", bottoms=["data"], tops=["drop"])
    net = net_of(extra=[drop])
    solver = LBFGS(max_iter=3)
    solver.init(net)
    for count in range(3):
        before = net.layer_states["drop"].rng.count
        solver.step(net)
        assert net.layer_states["drop"].rng.count == before + 1 == count + 1
        assert net.epoch == count + 1


def test_statistics_count_each_batch_once():
    net = net_of()
    solver = LBFGS(max_iter=1)
    solver.init(net)
    objective = solver.step(net)
    assert net.statistics()["loss.loss"] == pytest.approx(objective)
    assert net.forward() < objective


def test_frozen_parameters_stay():
    net = net_of()
    net.freeze("a.weight")
    before = net.params["a"]["weight"].data.copy()
    LBFGS(max_iter=5).solve(net)
    assert np.array_equal(net.params["a"]["weight"].data, before)


def test_resuming_is_the_same_training(tmp_path):
    def train(**options):
        net = net_of()
        solver = LBFGS(history_size=3, **options)
        solver.add(Snapshot(tmp_path, every_n_iter=4))
        solver.solve(net)
        return net.buffer.data.copy()

    whole = train(max_iter=10)
    assert np.array_equal(train(max_iter=10, load_from=tmp_path / "snapshot-000004.safetensors"), whole)


def test_infinite_steps_are_taken_back():
    layers = [
        Input([(1,), (1,)], name="in", tops=["x", "t"]),
        InnerProduct(1, bias=False, name="w", bottoms=["x"], neuron=Neurons.Exponential()),
        SquareLoss(name="loss", bottoms=["w", "t"]),
    ]
    layers[0] = MemoryData([np.full((1, 1), 9.0), np.full((1, 1), 2.0)], 1, name="in", tops=["x", "t"])
    net = Net("n", layers)
    net.params["w"]["weight"].data[...] = -0.5
    LBFGS(max_iter=100, lr=1e6).solve(net)
    assert net.forward() < 1e-6


def test_options():
    for bad in ({"history_size": -1}, {"tolerance": -1}, {"lr": "x"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            LBFGS(max_iter=1, **bad)
    with pytest.raises(TypeError, match="momentum"):
        LBFGS(max_iter=1, momentum=0.9)
    net, other = net_of(), net_of()
    LBFGS(max_iter=2, history_size=0).solve(net)
    assert net.forward() < other.forward()
    assert SGD(max_iter=1).slots == ("v",)
