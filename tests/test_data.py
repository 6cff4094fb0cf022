"""Sources: batches, epochs, order, transformers, positions."""

import numpy as np
import pytest
from nets import Double

from layerc.runtime import DataTransformers, MemoryData, Net, RandomNormal

N = np.arange(10.0)[:, None]


def make(*, n=10, size=4, last="keep", shuffle=False, transformers=(), seed=0, **more):
    x = np.arange(float(n))[:, None]
    layer = MemoryData([x, np.arange(n)], size, shuffle, last, transformers, name="d", **more)
    return Net("n", [layer, Double(name="y", bottoms=["data"])], seed=seed)


def batches(net, count):
    """(samples, epochs completed after) of the next batches."""
    found = []
    for _ in range(count):
        net.forward()
        assert net.blobs["data"].data[:, 0].tolist() == net.blobs["label"].data.tolist()
        found.append((net.blobs["label"].data.tolist(), net.epoch))
    return found


LAST = {
    "keep": [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0), ([8, 9], 1), ([0, 1, 2, 3], 1)],
    "drop": [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 1), ([0, 1, 2, 3], 1), ([4, 5, 6, 7], 2)],
    "wrap": [
        ([0, 1, 2, 3], 0),
        ([4, 5, 6, 7], 0),
        ([8, 9, 0, 1], 1),
        ([2, 3, 4, 5], 1),
        ([6, 7, 8, 9], 2),
        ([0, 1, 2, 3], 2),
    ],
}


@pytest.mark.parametrize("last", LAST)
def test_last_batch(last):
    assert batches(make(last=last), len(LAST[last])) == LAST[last]


@pytest.mark.parametrize("last", LAST)
def test_sizes_that_divide(last):
    assert batches(make(n=8, last=last), 3) == [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 1), ([0, 1, 2, 3], 1)]


@pytest.mark.parametrize("last", LAST)
def test_batch_larger_than_the_data(last):
    assert batches(make(n=3, last=last), 2) == [([0, 1, 2], 1), ([0, 1, 2], 2)]


@pytest.mark.parametrize("last", ["keep", "wrap"])
def test_shuffled_epochs_have_every_sample_once(last):
    """Mocha's wrapped last batch counts samples twice."""
    net = make(last=last, shuffle=True)
    seen = [i for samples, _ in batches(net, 15) for i in samples]
    epochs = [seen[i : i + 10] for i in range(0, 50, 10)]
    assert all(sorted(e) == list(range(10)) for e in epochs)
    assert len({tuple(e) for e in epochs}) == 5


def test_order_is_a_function_of_seed_and_name():
    first = batches(make(shuffle=True), 5)
    assert first == batches(make(shuffle=True), 5)
    assert first != batches(make(shuffle=True, seed=1), 5)


def test_dropped_samples_differ_when_shuffled():
    seen = {i for samples, _ in batches(make(last="drop", shuffle=True), 20) for i in samples}
    assert seen == set(range(10))


@pytest.mark.parametrize("last", LAST)
def test_position_is_all_there_is(last):
    one, two = (make(last=last, shuffle=True) for _ in range(2))
    batches(one, 5)
    layer = one.layers[0]
    layer.seek(two.layer_states["d"], layer.position(one.layer_states["d"]))
    assert batches(one, 4) == batches(two, 4)


def test_transformers_in_order():
    log = []

    def double(x):
        log.append(x.shape[0])
        x *= 2
        return x

    net = make(
        transformers=[
            ("data", DataTransformers.SubMean(np.array([1.0]))),
            ("data", double),
            ("data", DataTransformers.Scale(10)),
        ]
    )
    net.forward()
    assert net.blobs["data"].data[:, 0].tolist() == [-20, 0, 20, 40]
    assert net.blobs["label"].data.tolist() == [0, 1, 2, 3]
    assert set(log) == {4}


def test_transformers_may_change_the_shape_not_the_batch():
    net = Net(
        "n",
        [
            MemoryData([N], 4, transformers=[("data", lambda x: np.hstack([x, x]))], name="d"),
            Double(name="y", bottoms=["data"]),
        ],
    )
    net.forward()
    assert net.blobs["y"].shape == (4, 2)
    with pytest.raises(ValueError, match="'data'"):
        Net("n", [MemoryData([N], 4, transformers=[("data", lambda x: x[:1])], name="d")])


def test_errors_of_transformers_name_the_layer():
    def fail(x):
        if x[0, 0] > 0:
            raise LookupError("lost")
        return x

    net = make(transformers=[("data", fail)])
    net.forward()
    with pytest.raises(LookupError, match="lost") as caught:
        net.forward()
    assert any("'d'" in note for note in caught.value.__notes__)


def test_the_users_arrays_are_safe():
    x = N.copy()

    def spoil(batch):
        batch[...] = -1
        return batch

    net = Net(
        "n",
        [MemoryData([x], 10, transformers=[("data", spoil)], name="d"), Double(name="y", bottoms=["data"])],
    )
    net.forward()
    assert np.array_equal(x, N)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (bool, np.float32),
        (np.uint8, np.uint8),
    ],
)
def test_types(given, found):
    net = Net("n", [MemoryData([N.astype(given)], 4, name="d"), Double(name="y", bottoms=["data"])])
    assert net.blobs["data"].dtype == found
    net.forward()
    assert net.blobs["data"].dtype == found


def test_forward_epoch_counts_each_sample_once():
    for last, expected in (("keep", 10), ("wrap", 10), ("drop", 8)):
        net = make(last=last, shuffle=True)
        net.forward()
        before = net.layers[0].position(net.layer_states["d"])
        seen = []
        forward = net.track.forward
        net.track.forward = lambda *a, f=forward, n=net, s=seen: (
            f(*a),
            s.extend(n.blobs["label"].data.tolist()),
        )
        net.forward_epoch()
        assert len(seen) == len(set(seen)) == expected
        assert net.layers[0].position(net.layer_states["d"]) == before


def test_data_for_one_call_does_not_move_the_position():
    net = make()
    net.forward()
    net.forward(data={"data": N[:2]} | {"label": np.arange(2)})
    assert batches(net, 1) == [([4, 5, 6, 7], 0)]


def test_random_normal():
    net = Net("n", [RandomNormal((2, 3), 5, name="z"), Double(name="y", bottoms=["z"])], dtype=np.float64)
    net.forward()
    first = net.blobs["z"].data.copy()
    assert first.shape == (5, 2, 3)
    net.forward()
    assert not np.array_equal(first, net.blobs["z"].data)
    with pytest.raises(ValueError, match="batch_size"):
        RandomNormal(3, 0)
