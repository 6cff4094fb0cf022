"""Copies of a net, by `copy` and by `pickle`: they go on as the first would, and share nothing that changes."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from layerc.runtime import (
    SGD,
    Accuracy,
    BatchNorm,
    Dropout,
    InnerProduct,
    Net,
    Neurons,
    Snapshot,
    SoftmaxLoss,
    Subnet,
)

HOW = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda net: pickle.loads(pickle.dumps(net))}
X = np.random.default_rng(0).standard_normal((23, 5)).astype(np.float32)
LABEL = np.arange(23) % 3


def net_of(data: Any = (X, LABEL)) -> Net:
    inner = Net.chain("inner", [InnerProduct(5, neuron=Neurons.Tanh()), BatchNorm()])
    inner.predict(X)
    layers = [Subnet(inner, name="sub"), InnerProduct(4, neuron=Neurons.ReLU()), Dropout(0.3), InnerProduct(3)]
    return Net.chain("n", [*layers, SoftmaxLoss(), Accuracy()], data=data, batch_size=5, shuffle=data is not None)


def same(a: Net, b: Net) -> None:
    for name, p in a.named_parameters().items():
        np.testing.assert_array_equal(p.data, b.named_parameters()[name].data)
    assert a.statistics() == b.statistics()
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("how", HOW)
def test_both_go_on_alike_and_apart(how: str) -> None:
    net = net_of()
    SGD(max_iter=7).solve(net)
    net.freeze("innerproduct1.*")
    net.params["innerproduct2"]["weight"].lr = 0.5
    other = HOW[how](net)
    same(net, other)
    before = net.predict(X)
    SGD(max_iter=6).solve(other)
    np.testing.assert_array_equal(net.predict(X), before)
    SGD(max_iter=6).solve(net)
    same(net, other)


@pytest.mark.parametrize("how", HOW)
def test_before_the_shapes_are_known(how: str, tmp_path: Any) -> None:
    first = HOW[how](net_of(None))
    assert not first.is_set_up
    first.forward(data={"data": X, "label": LABEL})
    again = HOW[how](first)
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    first.save(tmp_path / "w.safetensors")
    waiting = net_of(None)
    waiting.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(HOW[how](waiting).predict(X), first.predict(X))


def test_a_snapshot_of_a_copy_is_one_of_the_first(tmp_path: Any) -> None:
    net = net_of()
    solver = SGD(max_iter=4)
    solver.add(Snapshot(tmp_path / "s", every_n_iter=4))
    solver.solve(copy.deepcopy(net))
    SGD(max_iter=4).solve(net)
    resumed = net_of()
    SGD(max_iter=4, load_from=tmp_path / "s").init(resumed)
    same(net, resumed)


def test_a_net_that_is_shut_down_has_no_copy() -> None:
    net = net_of()
    net.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        copy.copy(net)
