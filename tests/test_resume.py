"""What a snapshot is gone on from: any last batch, and only data and options that fit. A refusal changes nothing."""

import numpy as np
import pytest

from layerc.runtime import GRU, LBFGS, SGD, InnerProduct, Net, Snapshot, SoftmaxLoss, Subnet


def net_of(n: int = 23, inner: bool = False, name: str = "data") -> Net:
    recurrent = GRU(4, stateful=True, sequence=False)
    if inner:
        net = Net.chain("inner", [recurrent])
        net.predict(np.ones((1, 5, 2)))
        recurrent = Subnet(net, name="sub")
    x = np.random.default_rng(1).standard_normal((n, 5, 2)).astype(np.float32)
    return Net.chain(name, [recurrent, InnerProduct(3), SoftmaxLoss()], data=[x, np.arange(n) % 3], batch_size=5)


def arrays(net: Net) -> dict[str, np.ndarray]:
    return {name: p.data.copy() for name, p in net.named_parameters().items()}


@pytest.mark.parametrize("inner", [False, True])
def test_states_of_a_smaller_last_batch(tmp_path, inner) -> None:
    whole, part = net_of(inner=inner), net_of(inner=inner)
    SGD(max_epoch=2).solve(whole)
    solver = SGD(max_epoch=1)
    solver.add(Snapshot(tmp_path / "s", every_n_epoch=1))
    solver.solve(part)
    again = net_of(inner=inner)
    SGD(max_epoch=2, load_from=tmp_path / "s").solve(again)
    for name, expected in arrays(whole).items():
        np.testing.assert_array_equal(arrays(again)[name], expected)
    part.save(tmp_path / "w.safetensors")
    net_of(inner=inner).load(tmp_path / "w.safetensors")


def snapshot_of(tmp_path, solver) -> Net:
    solver.add(Snapshot(tmp_path / "s", every_n_iter=3))
    net = net_of()
    solver.solve(net)
    return net


def refused(net: Net, solver, text: str) -> None:
    before = arrays(net)
    with pytest.raises(ValueError, match=text):
        solver.init(net)
    for name, expected in before.items():
        np.testing.assert_array_equal(arrays(net)[name], expected)


def test_fewer_samples_than_the_snapshot_has_seen(tmp_path) -> None:
    snapshot_of(tmp_path, SGD(max_iter=3))
    refused(net_of(10), SGD(max_iter=5, load_from=tmp_path / "s"), "stands at sample 15 of layer 'data', which has 10")


def test_other_data_layers(tmp_path) -> None:
    snapshot_of(tmp_path, SGD(max_iter=3))
    x, y = np.ones((23, 5, 2), np.float32), np.arange(23) % 3
    fed = Net.chain("n", [GRU(4, stateful=True, sequence=False), InnerProduct(3), SoftmaxLoss()])
    fed.predict(x)
    fed.forward(data={"data": x, "label": y})
    refused(fed, SGD(max_iter=5, load_from=tmp_path / "s"), "place in the data of layer 'data'; .*: none")


def test_a_longer_history_than_the_snapshots(tmp_path) -> None:
    snapshot_of(tmp_path, LBFGS(history_size=3, max_iter=3))
    solver = LBFGS(history_size=5, max_iter=9, load_from=tmp_path / "s")
    refused(net_of(), solver, "history s0, s1, s2, y0, y1, y2 of LBFGS, and lacks s3, s4, y3, y4")


def test_a_snapshot_is_a_file_of_weights_too(tmp_path) -> None:
    net = snapshot_of(tmp_path, SGD(max_iter=3, momentum=0.5))
    other = net_of()
    other.load(max((tmp_path / "s").iterdir()))
    for name, expected in arrays(net).items():
        np.testing.assert_array_equal(arrays(other)[name], expected)
