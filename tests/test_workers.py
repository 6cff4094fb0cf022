"""Several workers train a net as one process does with the whole batch. Here they are threads, so that no MPI is
needed; tests/oracles has real processes."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from layerc.bridges import mpi
from layerc.runtime import (
    GRU,
    LBFGS,
    SGD,
    AsyncData,
    BatchNorm,
    Dropout,
    InnerProduct,
    Input,
    L2Regu,
    Layer,
    LayerState,
    MemoryData,
    Net,
    Neurons,
    SoftmaxLoss,
    SquareLoss,
    Subnet,
)
from layerc.runtime.workers import Workers, share

rng = np.random.default_rng(5)
X, LABELS, TARGETS = rng.normal(size=(50, 6)), rng.integers(0, 4, 50), rng.normal(size=(50, 3))


class Threads(Workers):
    """Worker `rank` of those that share `lists`; sums are in the order of the ranks."""

    def __init__(self, rank: int, size: int, lists: list, barrier: threading.Barrier) -> None:
        self.rank, self.size, self.lists, self.barrier = rank, size, lists, barrier

    def _all(self, value):
        self.lists[self.rank] = value
        self.barrier.wait(20)
        found = list(self.lists)
        self.barrier.wait(20)
        return found

    def total(self, number):
        return sum(self._all(float(number)))

    def add_up(self, array):
        array[...] = sum(self._all(array.copy()))

    def from_first(self, array):
        array[...] = self._all(array.copy())[0]


def together(size, work):
    """What `work(workers)` gives in each of so many workers."""
    lists, barrier = [None] * size, threading.Barrier(size)
    with ThreadPoolExecutor(size) as pool:
        jobs = [pool.submit(work, Threads(rank, size, lists, barrier)) for rank in range(size)]
        return [job.result() for job in jobs]


def source(**options):
    return MemoryData([X, LABELS, TARGETS], 16, name="data", tops=["x", "label", "target"], **options)


def digits(data=None, dtype=np.float64, seed=3):
    """Two losses, one of them ignoring some labels, one a sum."""
    layers = [
        source(shuffle=True) if data is None else data,
        InnerProduct(8, name="a", bottoms=["x"], neuron=Neurons.Tanh(), weight_regu=L2Regu(1)),
        InnerProduct(4, name="b", bottoms=["a"]),
        InnerProduct(3, name="c", bottoms=["a"]),
        SoftmaxLoss(name="loss", bottoms=["b", "label"], ignore_label=2),
        SquareLoss(name="other", bottoms=["c", "target"], normalize="sum", weight=0.1),
    ]
    return Net("digits", layers, seed=seed, dtype=dtype)


def trained(net, solver=None, workers=None):
    if workers is not None:
        share(net, workers)
    solver = solver or SGD(max_epoch=2, lr=0.1, momentum=0.9, regu_coef=0.01)
    solver.init(net)
    values = []
    while solver.state.stop_reason is None:
        values.append(solver.step(net))
    return values, net.buffer.data.copy(), solver.state.stop_reason


@pytest.mark.parametrize("size", [2, 3, 7])
def test_workers_do_what_one_does_with_the_whole_batch(size):
    """Batches of 16, the last of an epoch of 2: of seven workers five have nothing to do then."""
    values, parameters, reason = trained(digits())
    for mine in together(size, lambda workers: trained(digits(), workers=workers)):
        np.testing.assert_allclose(mine[0], values, 1e-11)
        np.testing.assert_allclose(mine[1], parameters, 1e-9, 1e-12)
        assert mine[2] == reason == "max_epoch"


def test_a_batch_that_is_fetched_ahead_is_divided_too():
    expected = trained(digits())
    for mine in together(2, lambda workers: trained(digits(AsyncData(source(shuffle=True))), workers=workers)):
        np.testing.assert_allclose(mine[1], expected[1], 1e-9, 1e-12)


def test_lbfgs_takes_the_same_steps():
    def solver():
        return LBFGS(max_iter=5)

    expected = trained(digits(), solver())
    for mine in together(2, lambda workers: trained(digits(), solver(), workers)):
        np.testing.assert_allclose(mine[0], expected[0], 1e-9)
        np.testing.assert_allclose(mine[1], expected[1], 1e-7, 1e-9)


def test_all_begin_with_the_parameters_of_the_first():
    """Though each was made from another seed."""
    first = digits(seed=0)

    def work(workers):
        net = digits(seed=workers.rank)
        share(net, workers)
        return net.buffer.data.copy()

    for mine in together(3, work):
        np.testing.assert_array_equal(mine, first.buffer.data)


def test_in_a_net_within_a_net():
    def net():
        inner = [
            Input([(6,), ()], tops=["h", "t"], name="in"),
            InnerProduct(4, name="b", bottoms=["h"]),
            SoftmaxLoss(name="l", bottoms=["b", "t"]),
        ]
        subnet = Subnet(Net("inner", inner, dtype=np.float64), name="sub", bottoms=["x", "label"])
        return Net("outer", [source(), subnet], dtype=np.float64)

    expected = trained(net())
    for mine in together(2, lambda workers: trained(net(), workers=workers)):
        np.testing.assert_allclose(mine[0], expected[0], 1e-11)
        np.testing.assert_allclose(mine[1], expected[1], 1e-9, 1e-12)


def test_means_of_normalisation_are_those_of_all():
    """The mean is exactly that of the whole batch; the variance lacks what lies between the parts."""

    def net():
        layers = [
            MemoryData([X[:48], TARGETS[:48]], 16, name="data", tops=["x", "target"]),
            BatchNorm(name="bn", bottoms=["x"]),
            InnerProduct(3, name="c", bottoms=["bn"]),
            SquareLoss(name="loss", bottoms=["c", "target"]),
        ]
        return Net("normed", layers, dtype=np.float64)

    def work(workers):
        made = net()
        trained(made, workers=workers)
        return {k: v.copy() for k, v in made.states["bn"].items()}

    alone = net()
    trained(alone)
    first, second = together(2, work)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    np.testing.assert_allclose(first["mean"], alone.states["bn"]["mean"], 1e-9, 1e-12)


def test_what_is_drawn_differs():
    def work(workers):
        layers = [
            source(),
            Dropout(0.5, bottoms=["x"], tops=["d"], name="drop"),
            InnerProduct(3, name="c", bottoms=["d"]),
            SquareLoss(name="loss", bottoms=["c", "target"]),
        ]
        net = Net("drops", layers, dtype=np.float64)
        share(net, workers)
        net.forward()
        return net.blobs["d"].data == 0

    first, second = together(2, work)
    assert first.shape == second.shape
    assert not np.array_equal(first, second)


def test_what_a_stateful_layer_carries_is_its_own():
    def work(workers):
        layers = [
            MemoryData([rng.normal(size=(8, 5, 3)), TARGETS[:8]], 8, name="data", tops=["x", "target"]),
            GRU(3, name="gru", bottoms=["x"], sequence=False, stateful=True),
            SquareLoss(name="loss", bottoms=["gru", "target"]),
        ]
        net = Net("sequences", layers, dtype=np.float64)
        share(net, workers)
        SGD(max_iter=2, lr=0.1).solve(net)
        return net.states["gru"]["h"].copy()

    first, second = together(2, work)
    assert first.shape == (4, 3)
    assert not np.array_equal(first, second)


def test_validation_sees_all_of_its_data():
    data = [X[:20], LABELS[:20], TARGETS[:20]]

    def work(workers):
        net = digits()
        share(net, workers)
        return net.evaluate(data), net.forward_epoch()

    net = digits()
    expected = net.evaluate(data), net.forward_epoch()
    for found in together(2, work):
        assert found == expected


def test_statistics_are_of_a_workers_own_part():
    """The mean over its own terms, though they weigh less than one together."""

    def net(rows):
        layers = [
            MemoryData([X[rows], LABELS[rows]], 8, name="data", tops=["x", "label"]),
            InnerProduct(4, name="b", bottoms=["x"]),
            SoftmaxLoss(name="loss", bottoms=["b", "label"], class_weights=[0.01, 0.02, 0.03, 0.01]),
        ]
        return Net("weighted", layers, dtype=np.float64, seed=2)

    def work(workers):
        made = net(slice(8))
        share(made, workers)
        made.forward()
        return made.statistics()["loss.loss"]

    for found, rows in zip(together(2, work), (slice(4), slice(4, 8))):
        alone = net(rows)
        alone.forward()
        np.testing.assert_allclose(found, alone.statistics()["loss.loss"], 1e-12)


def test_they_stop_together():
    """Though only one of them is told to."""

    def work(workers):
        net = digits()
        share(net, workers)
        solver = SGD(max_iter=50, lr=0.1)
        solver.init(net)
        while solver.state.stop_reason is None:
            if workers.rank == 1 and solver.state.iter == 3:
                solver.stop("enough")
            solver.step(net)
        return solver.state.iter, solver.state.stop_reason

    assert together(2, work) == [(4, "worker"), (4, "enough")]


def test_nan_is_told_in_all():
    def work(workers):
        data = [X.copy(), LABELS, TARGETS]
        data[0][15] = np.nan  # in the part of the second worker
        net = digits(MemoryData(data, 16, name="data", tops=["x", "label", "target"]))
        share(net, workers)
        with pytest.raises(FloatingPointError):
            SGD(max_iter=1).solve(net)
        return True

    assert together(2, work) == [True, True]


class Own(Layer):
    is_sink = has_loss = can_do_bp = True
    bottom_counts = (1, 1)

    def setup(self, backend, inputs, diffs):
        return LayerState(self)

    def forward(self, backend, state, inputs):
        state.loss = float(np.mean(inputs[0].data))

    def backward(self, backend, state, inputs, diffs):
        diffs[0].data = np.full_like(inputs[0].data, 1 / inputs[0].data.size)


def test_a_loss_by_hand_does_not_say_what_it_divides_by():
    def work(workers):
        net = Net("own", [source(), InnerProduct(2, name="c", bottoms=["x"]), Own(name="mine", bottoms=["c"])])
        with pytest.raises(ValueError, match="'mine' .Own. is a loss of its own"):
            share(net, workers)
        return net.workers.size

    assert together(2, work) == [1, 1]


def test_what_cannot_be_shared_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="pip install mpi4py mpich"):
        mpi.share(digits())
    unknown = Net.chain("later", [InnerProduct(3), SoftmaxLoss()])
    with pytest.raises(RuntimeError, match="learns its shapes"):
        share(unknown, Workers())
    assert unknown.workers.size == 1


def test_parts_of_a_batch():
    class One(Workers):
        def __init__(self, rank, size):
            self.rank, self.size = rank, size

    batch = [(0, 10, 13), (1, 0, 4)]
    for size in (1, 2, 3, 7, 9):
        parts = [One(rank, size).part(batch) for rank in range(size)]
        rows = [(e, i) for part in parts for e, start, stop in part for i in range(start, stop)]
        assert rows == [(0, 10), (0, 11), (0, 12), (1, 0), (1, 1), (1, 2), (1, 3)]
        counts = [sum(stop - start for _, start, stop in part) for part in parts]
        assert max(counts) - min(counts) <= 1
