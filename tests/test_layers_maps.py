"""Layers without parameters: values by NumPy, gradients by central differences, options, sizes, errors."""

import itertools

import numpy as np
import pytest
from layer_checks import check, net_of, run

from layerc.runtime import (
    LRN,
    Argmax,
    ChannelPooling,
    Convolution,
    Crop,
    Index2Onehot,
    Input,
    Net,
    Neurons,
    Pooling,
    Power,
    RandomMask,
    Softmax,
    get_num_threads,
    set_num_threads,
)

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape)


def made(cls, *args, bottoms=("x",), **more):
    return cls(*args, name="y", bottoms=list(bottoms), **more)


# -- pooling ----------------------------------------------------------------------------------------------


def windows(size, kernel, stride, pad, ceil):
    """(start, stop) of each window, padding included, as PyTorch counts them."""
    room = size + 2 * pad - kernel
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= size + pad:
        count -= 1
    return [(k * stride - pad, k * stride - pad + kernel) for k in range(count)]


def pooled(x, pooling, kernel, stride, pad, ceil, count_pad):
    rows, columns = (windows(x.shape[2 + d], kernel[d], stride[d], pad[d], ceil) for d in (0, 1))
    y = np.empty((*x.shape[:2], len(rows), len(columns)))
    for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(rows), enumerate(columns)):
        part = x[:, :, max(a, 0) : b, max(c, 0) : d]
        if pooling == "max":
            y[:, :, i, j] = part.max((2, 3))
            continue
        ends = [min(e, n + p) for e, n, p in zip((b, d), x.shape[2:], pad)]
        count = (ends[0] - a) * (ends[1] - c) if count_pad else part.shape[2] * part.shape[3]
        y[:, :, i, j] = part.sum((2, 3)) / count
    return y


@pytest.mark.parametrize("pooling", ["max", "mean"])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "pad"),
    [
        ((2, 2, 4, 5), (2, 2), (2, 2), (0, 0)),
        ((1, 2, 5, 4), (3, 2), (2, 1), (1, 1)),
        ((2, 1, 7, 6), (3, 4), (2, 3), (1, 2)),
        ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0)),
        ((3, 1, 5, 5), (2, 2), (4, 3), (1, 0)),
        ((0, 2, 4, 4), (2, 2), (1, 1), (0, 0)),
        ((1, 1, 2, 9), (2, 2), (5, 5), (1, 1)),
        ((1, 1, 2, 2), (3, 3), (2, 2), (0, 0)),
    ],
)
def test_pooling(pooling, shape, kernel, stride, pad):
    x = normal(*shape)
    fits = all(
        n + 2 * p >= k for n, k, p in zip(shape[2:], kernel, pad)
    )  # with ceil, a window may reach over both ends
    for ceil, count_pad in itertools.product(
        (False, True)[not fits :], (False, True) if pooling == "mean" else (True,)
    ):
        options = (pooling, kernel, stride, pad, ceil, count_pad)
        check(made(Pooling, *options), {"x": x}, lambda x, options=options: pooled(x, *options))


def test_pooling_ties_share():
    net = run(made(Pooling, "max", 2, 2), {"x": np.array([[[[1.0, 1, 0, 0], [1, 0, 0, 2]]]])})
    net.backward(seed={"y": np.array([[[[3.0, 4.0]]]])})
    np.testing.assert_allclose(net.blobs["x"].diff[0, 0], [[1, 1, 0, 0], [1, 0, 0, 4]])


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"pooling": "min"}, "pooling"),
        ({"kernel": 0}, "kernel"),
        ({"kernel": (1, 2, 3)}, "kernel"),
        ({"kernel": 2.0}, "kernel"),
        ({"stride": 0}, "stride"),
        ({"pad": -1}, "pad"),
        ({"kernel": 2, "pad": 2}, "pad"),
        ({"ceil": 1}, "ceil"),
    ],
)
def test_pooling_fields(bad, field):
    with pytest.raises(ValueError, match=rf"Pooling 'y'.*{field}"):
        made(Pooling, **bad)


def test_pooling_shapes():
    for layer, shape in (
        (made(Pooling, kernel=3), (1, 1, 2, 5)),
        (made(Pooling), (2, 3)),
        (made(Pooling), (1, 2, 3)),
        (made(Pooling, kernel=4, stride=2, ceil=True), (1, 1, 1, 5)),
    ):
        with pytest.raises(ValueError, match=r"'y'.*'x'"):
            net_of(layer, {"x": np.zeros(shape)})


def test_images_of_other_sizes():
    net = net_of(made(Pooling, "max", 2, 2), {"x": np.zeros((1, 3, 4, 4))})
    with pytest.raises(ValueError, match="'x'"):
        net.forward(data={"x": np.zeros((1, 3, 1, 1))})


@pytest.mark.parametrize("pooling", ["max", "mean"])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "pad", "axis"),
    [
        ((2, 5), 2, 2, (0, 0), 1),
        ((2, 6, 2), 3, 2, (2, 1), 1),
        ((2, 2, 5), 3, 1, (1, 1), -1),
        ((1, 3, 2, 2), 3, 3, (0, 0), 1),
        ((0, 3), 1, 1, (0, 0), 1),
    ],
)
def test_channel_pooling(pooling, shape, kernel, stride, pad, axis):
    def value(x):
        x = np.moveaxis(x, axis, 0)
        starts = [k * stride - pad[0] for k in range((len(x) + sum(pad) - kernel) // stride + 1)]
        parts = [x[max(a, 0) : a + kernel] for a in starts]
        y = np.stack([p.max(0) if pooling == "max" else p.sum(0) / kernel for p in parts])
        return np.moveaxis(y, 0, axis)

    check(made(ChannelPooling, pooling, kernel, stride, pad, axis), {"x": normal(*shape)}, value)


def test_channel_pooling_errors():
    with pytest.raises(ValueError, match=r"'y'.*pad"):
        made(ChannelPooling, kernel=2, pad=(0, 2))
    for layer in (made(ChannelPooling, kernel=4), made(ChannelPooling, axis=0)):
        with pytest.raises(ValueError, match=r"'y'.*'x'"):
            net_of(layer, {"x": np.zeros((2, 3))})


@pytest.mark.parametrize("mode", ["across", "within"])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("shape", [(2, 4, 3, 2), (1, 1, 1, 1), (0, 2, 2, 2), (1, 2, 6, 7)])
def test_lrn(mode, kernel, shape):
    half = kernel // 2

    def value(x):
        sides = (
            ((0, 0), (half, half), (0, 0), (0, 0)) if mode == "across" else ((0, 0), (0, 0), (half,) * 2, (half,) * 2)
        )
        squares = np.pad(x**2, sides)
        near = np.zeros_like(x)
        for k in itertools.product(range(kernel), repeat=1 if mode == "across" else 2):
            at = (k[0], 0, 0) if mode == "across" else (0, *k)
            near += squares[(slice(None), *(slice(a, a + n) for a, n in zip(at, x.shape[1:])))]
        return x / (1.5 + 0.7 / kernel ** (1 if mode == "across" else 2) * near) ** 0.6

    check(made(LRN, kernel, 0.7, 1.5, 0.6, mode), {"x": normal(*shape)}, value)


def test_lrn_fields():
    for bad in ({"kernel": 4}, {"kernel": 0}, {"mode": "near"}):
        with pytest.raises(ValueError, match="LRN 'y'"):
            made(LRN, **bad)


# -- elements and axes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "shift", "power", "low"),
    [(1, 0, 1, -2), (2, 1, 2, -2), (-1, 0, 3, -2), (1, 0.5, 0.5, 0.1), (1, 3, -1.5, 0), (2, 1, 0, -2)],
)
def test_power(scale, shift, power, low):
    x = RNG.uniform(low, 2, (3, 2, 2))
    check(made(Power, scale, shift, power), {"x": x}, lambda x: (scale * x + shift) ** float(power))


def test_power_at_zero():
    for power, expected in ((1, 1), (2, 0), (0, 0)):
        net = run(made(Power, power=power), {"x": np.zeros((1, 1))})
        net.backward(seed={"y": np.ones((1, 1))})
        assert net.blobs["x"].diff.tolist() == [[expected]]


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 4), 1), ((2, 3, 4), 1), ((2, 3, 4), -1), ((2, 3, 2, 2), 2), ((0, 3), 1)]
)
def test_softmax(shape, axis):
    def value(x):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    check(made(Softmax, axis), {"x": normal(*shape)}, value)
    both = Softmax(axis, name="y", bottoms=["x", "z"], tops=["a", "b"])
    check(both, {"x": normal(*shape), "z": 9 * normal(*shape)}, lambda x, z: (value(x), value(z)))


@pytest.mark.parametrize(("shape", "axis"), [((3, 4), 1), ((2, 3, 4), 1), ((2, 3, 4), -1), ((0, 3), 1)])
def test_argmax(shape, axis):
    x = RNG.integers(0, 3, shape).astype(float)
    net = run(made(Argmax, axis), {"x": x})
    assert np.array_equal(net.blobs["y"].data, x.argmax(axis))
    assert net.blobs["y"].dtype == np.int64
    with pytest.raises(TypeError, match="neuron"):
        made(Argmax, neuron=Neurons.ReLU())


@pytest.mark.parametrize(("shape", "axis"), [((4,), 1), ((3, 2), 1), ((3, 2), 2), ((3, 2), -1), ((0,), 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_hot(shape, axis, dtype):
    index = RNG.integers(0, 5, shape)
    net = run(made(Index2Onehot, 5, axis), {"x": index}, dtype)
    assert np.array_equal(net.blobs["y"].data, np.moveaxis(np.eye(5)[index], -1, axis))
    assert net.blobs["y"].dtype == dtype


def test_one_hot_errors():
    for bad in (5, -1):
        with pytest.raises(IndexError, match=rf"'y'.*'x'.*{bad}"):
            run(made(Index2Onehot, 5), {"x": np.array([0, bad])})
    with pytest.raises(ValueError, match="axis"):
        net_of(made(Index2Onehot, 5, 0), {"x": np.array([0])})


# -- crop and masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 2, 5, 6), (3, 3)), ((1, 1, 4, 4), 4), ((0, 1, 3, 3), 2), ((2, 1, 4, 5), (1, 2))]
)
def test_crop(shape, size):
    h, w = (size, size) if isinstance(size, int) else size
    top, left = (shape[2] - h) // 2, (shape[3] - w) // 2
    check(made(Crop, size), {"x": normal(*shape)}, lambda x: x[:, :, top : top + h, left : left + w])
    layer = made(Crop, size, True, True)
    check(layer, {"x": normal(*shape)}, lambda x: x[:, :, top : top + h, left : left + w], phase="predict")
    check(layer, {"x": normal(*shape)})


def test_random_crops():
    x = np.arange(36.0).reshape(1, 1, 6, 6).repeat(400, axis=0)
    layer = Crop((2, 3), True, True, name="y", bottoms=["x", "z"], tops=["a", "b"])
    net = run(layer, {"x": x, "z": x + 100})
    a = net.blobs["a"].data[:, 0]
    assert np.array_equal(net.blobs["b"].data[:, 0], a + 100)
    corners = {(int(one.min()) // 6, int(one.min()) % 6, bool(one[0, 0] > one[0, 1])) for one in a}
    assert corners == set(itertools.product(range(5), range(4), (False, True)))


def test_crop_errors():
    with pytest.raises(ValueError, match=r"'y'.*'x'.*smaller"):
        net_of(made(Crop, (3, 5)), {"x": np.zeros((1, 1, 4, 4))})
    with pytest.raises(ValueError, match="crop_size"):
        made(Crop, 0)


def test_random_mask():
    x = np.ones((2000, 3))
    layer = RandomMask(0.3, name="y", bottoms=["x", "z"], tops=["a", "b"])
    net = run(layer, {"x": x, "z": x})
    a, b = net.blobs["a"].data, net.blobs["b"].data
    assert set(np.unique(a)) == {0, 1}
    assert abs(a.mean() - 0.7) < 0.02
    assert not np.array_equal(a, b)
    net.backward(seed={"a": 2 * x, "b": x})
    assert np.array_equal(net.blobs["x"].diff, 2 * a)
    assert np.array_equal(run(layer, {"x": x, "z": x}, phase="predict").blobs["a"].data, x)
    check(made(RandomMask), {"x": normal(3, 2)})
    assert not run(made(RandomMask, 1.0), {"x": x}).blobs["y"].data.any()


@pytest.mark.parametrize("layer", [Pooling, ChannelPooling, Power, LRN, RandomMask])
def test_neurons_and_integers(layer):
    net = run(made(layer, neuron=Neurons.Tanh()), {"x": normal(2, 2, 3, 3)}, phase="predict")
    assert abs(net.blobs["y"].data).max() <= 1
    net.backward(seed={"y": np.ones(net.blobs["y"].shape)})
    assert net.blobs["x"].diff.shape == (2, 2, 3, 3)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_few_large_examples(threads):
    """Small batches share the threads inside of an example, large ones deal out the examples: all are one sum."""
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((6, 16, 14, 14)), rng.standard_normal((6, 24, 14, 14))
    layers = [Input([(16, 14, 14)], ["x"], name="in"), Convolution(24, kernel=3, pad=1, name="y", bottoms=["x"])]
    net, before = Net("n", layers, dtype=np.float64, force_backward=True), get_num_threads()

    def gradients(part):
        net.forward(data={"x": x[part]})
        net.backward(seed={"y": dy[part]})
        return net.blobs["y"].to_array(), net.blobs["x"].diff.copy(), net.buffer.gradient.copy()

    try:
        set_num_threads(threads)
        whole = gradients(slice(None))
        for size in (1, 2, 3):
            ys, dxs, sums = zip(*(gradients(slice(k, k + size)) for k in range(0, 6, size)), strict=True)
            np.testing.assert_allclose(np.concatenate(ys), whole[0], rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(np.concatenate(dxs), whole[1], rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(sum(sums), whole[2], rtol=1e-10, atol=1e-10)
    finally:
        set_num_threads(before)
