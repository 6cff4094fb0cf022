"""Batches out of HDF5 files, and batches fetched ahead by a thread."""

import gc
import threading
import time

import numpy as np
import pytest
from nets import Double

from layerc.runtime import SGD, AsyncData, HDF5Data, InnerProduct, MemoryData, Net, Snapshot, SquareLoss

h5py = pytest.importorskip("h5py")
X, T = np.arange(20.0).reshape(10, 2), np.arange(10)


def write(path, start=0, stop=10, **other):
    with h5py.File(path, "w") as file:
        for name, array in {"data": X[start:stop], "label": T[start:stop], **other}.items():
            if array is not None:
                file[name] = array
    return path


def net_of(layer, **more):
    return Net("n", [layer, Double(name="y", bottoms=["data"])], **more)


def batches(net, count):
    found = []
    for _ in range(count):
        net.forward()
        assert (net.blobs["data"].data[:, 0] / 2).tolist() == net.blobs["label"].data.tolist()
        found.append((net.blobs["label"].data.tolist(), net.epoch))
    return found


def memory(**more):
    return MemoryData([X, T], 4, name="d", **more)


SOURCES = {
    "one": lambda folder: write(folder / "a.h5"),
    "text": lambda folder: str(write(folder / "a.h5")),
    "several": lambda folder: [write(folder / "a.h5", 0, 3), write(folder / "b.h5", 3, 3), write(folder / "c.h5", 3)],
    "list": lambda folder: (
        (
            write(folder / "a.h5", 0, 7),
            write(folder / "b.h5", 7),
            (folder / "l.txt").write_text("a.h5\n\nb.h5\n"),
        )
        and folder / "l.txt"
    ),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("last", ["keep", "drop", "wrap"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_memory(tmp_path, source, last, shuffle):
    path = SOURCES[source](tmp_path)
    with net_of(HDF5Data(path, 4, shuffle, last, name="d"), seed=3) as net:
        assert batches(net, 9) == batches(net_of(memory(shuffle=shuffle, last=last), seed=3), 9)


@pytest.mark.parametrize("chunk", [1, 3, 4, 10])
def test_small_chunks(tmp_path, chunk):
    path = [write(tmp_path / "a.h5", 0, 3), write(tmp_path / "b.h5", 3)]
    net = net_of(HDF5Data(path, 4, chunk_size=chunk, name="d"))
    assert batches(net, 4) == batches(net_of(memory()), 4)
    net = net_of(HDF5Data(path, 4, True, chunk_size=chunk, name="d"))
    seen = [k for samples, _ in batches(net, 9) for k in samples]
    epochs = [seen[k : k + 10] for k in (0, 10, 20)]
    assert all(sorted(e) == list(range(10)) for e in epochs)
    assert epochs[0] != epochs[1]


def test_types_and_transformers(tmp_path):
    path = write(tmp_path / "a.h5", data=X.astype(np.float64), flag=np.array([True, False] * 5))
    layer = HDF5Data(path, 3, name="d", tops=["data", "label", "flag"], transformers=[("data", lambda x: x + 1)])
    net = net_of(layer)
    assert net.dtype == np.float64
    net.forward()
    assert net.blobs["data"].data.tolist() == (X[:3] + 1).tolist()
    assert (net.blobs["label"].dtype, net.blobs["flag"].dtype) == (np.int64, np.float64)
    with pytest.raises(ValueError, match="transformers"):
        HDF5Data(path, 3, transformers=[("x", abs)])


def test_errors_at_the_net(tmp_path):
    with pytest.raises(OSError, match=r"none.h5"):
        net_of(HDF5Data(tmp_path / "none.h5", 2))
    with pytest.raises(OSError, match=r"l.txt"):
        net_of(HDF5Data(tmp_path / "l.txt", 2))
    (tmp_path / "bad.h5").write_text("no")
    with pytest.raises(OSError, match=r"bad\.h5|open file"):
        net_of(HDF5Data(tmp_path / "bad.h5", 2))
    cases = [
        (write(tmp_path / "a.h5", label=None), "'label'"),
        (write(tmp_path / "b.h5", label=T[:4]), "lengths"),
        (write(tmp_path / "c.h5", 0, 0), "samples"),
        ([write(tmp_path / "d.h5"), write(tmp_path / "e.h5", data=np.zeros((10, 3)))], "e.h5"),
    ]
    for path, what in cases:
        with pytest.raises(ValueError, match=what):
            net_of(HDF5Data(path, 2))


# -- fetched ahead ----------------------------------------------------------------------------------------


def threads():
    return sum(t.name == "d" for t in threading.enumerate())


@pytest.mark.parametrize("last", ["keep", "drop", "wrap"])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_the_very_batches(last, prefetch):
    make = lambda: memory(shuffle=True, last=last)  # noqa: E731
    with net_of(AsyncData(make(), prefetch)) as net:
        assert [layer.name for layer in net.layers] == ["d", "y"]
        assert batches(net, 9) == batches(net_of(make()), 9)
    assert threads() == 0


def test_positions_are_the_nets(tmp_path):
    def train(wrap, **more):
        layers = [wrap(memory(shuffle=True)), InnerProduct(1, name="ip", bottoms=["data"])]
        layers.append(SquareLoss(name="loss", bottoms=["ip", "ip"]))
        net = Net("n", layers, seed=2)
        solver = SGD(lr=0.01, **more)
        solver.add(Snapshot(tmp_path / wrap.__name__, every_n_iter=5))
        solver.solve(net)
        found = batches(net, 3)
        net.shutdown()
        return found

    plain = lambda layer: layer  # noqa: E731
    whole = train(AsyncData, max_iter=13)
    assert whole == train(plain, max_iter=13)
    train(AsyncData, max_iter=10)
    assert train(AsyncData, max_iter=13, load_from=tmp_path / "AsyncData" / "snapshot-000010.safetensors") == whole


def test_epochs_and_seeking():
    with net_of(AsyncData(memory(last="wrap"))) as net:
        batches(net, 1)
        net.forward_epoch()
        assert net.epoch == 0
        assert batches(net, 2) == [([4, 5, 6, 7], 0), ([8, 9, 0, 1], 1)]


def test_errors_come_out_of_the_call():
    def fail(x):
        if x[0, 0] > 10:
            raise LookupError("lost")
        return x

    with net_of(AsyncData(memory(transformers=[("data", fail)]))) as net:
        batches(net, 2)
        for _ in range(2):
            with pytest.raises(LookupError, match="lost") as caught:
                net.forward()
            assert any("'d'" in note for note in caught.value.__notes__)


def test_a_forgotten_net_ends_its_thread():
    net = net_of(AsyncData(memory()))
    batches(net, 1)
    assert threads() == 1
    del net
    gc.collect()
    for _ in range(100):
        if not threads():
            break
        time.sleep(0.02)
    assert threads() == 0


def test_async_fields(tmp_path):
    for bad in (3, AsyncData(memory())):
        with pytest.raises(ValueError, match="inner"):
            AsyncData(bad)
    with pytest.raises(ValueError, match="prefetch"):
        AsyncData(memory(), 0)
    assert AsyncData(memory()).tops == ("data", "label")
    with net_of(AsyncData(HDF5Data(write(tmp_path / "a.h5"), 4, name="d"))) as net:
        assert batches(net, 4) == batches(net_of(memory()), 4)
