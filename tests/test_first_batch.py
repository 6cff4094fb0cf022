"""Nets whose shapes the first batch says: it holds for all sources, and a refused one is forgotten."""

import numpy as np
import pytest

from layerc.runtime import (
    BatchNorm,
    Concat,
    Convolution,
    ElementWise,
    Embedding,
    InnerProduct,
    Input,
    MemoryData,
    Net,
    RandomNormal,
    SoftmaxLoss,
    SquareLoss,
)

ONES = np.ones((3, 4), np.float32)


def test_a_declared_source_beside_one_that_is_not() -> None:
    scores = Input([(None,)], tops=["x"], name="scores")
    labels = Input([()], tops=["label"], name="labels")
    net = Net("n", [scores, labels, SoftmaxLoss(name="loss", bottoms=["x", "label"])])
    assert net.forward(data={"x": ONES, "label": [0, 1, 2]}) == pytest.approx(np.log(4))
    assert net.forward(data={"x": ONES[:2], "label": [0, 1]}) == pytest.approx(np.log(4))


def test_noise_and_data_layers_take_the_first_batchs_size() -> None:
    layers = [
        MemoryData([np.ones((6, 3))], tops=["m"], batch_size=2),
        Input([(None,)], tops=["x"], name="given"),
        InnerProduct(4, name="product", bottoms=["m"], tops=["p"]),
        RandomNormal((4,), tops=["noise"], name="normal"),
        ElementWise("add", name="sum", bottoms=["p", "noise"], tops=["s"]),
        Concat(name="both", bottoms=["s", "x"], tops=["y"]),
    ]
    net = Net("n", layers)
    before = net.params["product"]["weight"].data.copy()
    assert net.predict({"x": ONES, "m": np.ones((3, 3))}).shape == (3, 8)
    np.testing.assert_array_equal(net.params["product"]["weight"].data, before)
    net.forward(data={"x": ONES[:1], "m": np.ones((1, 3))})
    assert net.blobs["y"].shape == (1, 8)


def test_parameters_and_states_that_were_set_stay() -> None:
    layers = [
        Input([(4,)], tops=["x"], name="known"),
        Input([(None,)], tops=["t"], name="unknown"),
        BatchNorm(name="bn", bottoms=["x"], tops=["b"]),
        SquareLoss(name="loss", bottoms=["b", "t"]),
    ]
    net = Net("n", layers)
    weight = net.params["bn"]["weight"]
    weight.data[...] = 3
    net.states["bn"]["mean"][...] = 7
    assert not net.is_set_up
    net.forward(data={"x": ONES, "t": ONES}, phase="predict")
    assert net.params["bn"]["weight"] is weight and (weight.data == 3).all()
    assert (net.states["bn"]["mean"] == 7).all()


@pytest.mark.parametrize(
    ("layers", "bad", "good"),
    [
        ([Convolution(4, kernel=3), InnerProduct(3)], np.ones((2, 5)), np.ones((2, 1, 5, 5))),
        ([Embedding(5, 3), InnerProduct(3)], np.full((2, 4), 0.5), np.ones((2, 4), int)),
    ],
)
def test_a_refused_first_input_is_forgotten(layers, bad, good) -> None:
    net = Net.chain("c", [*layers, SoftmaxLoss()])
    with pytest.raises(ValueError):
        net.predict(bad)
    assert net.predict(good).shape == (2, 3)


@pytest.mark.parametrize("label", [np.ones((2, 5), int), np.ones(3, int), np.full(2, 7)])
def test_refused_first_labels_are_forgotten(label) -> None:
    net = Net.chain("c", [InnerProduct(3), SoftmaxLoss()])
    with pytest.raises((ValueError, IndexError)):
        net.forward(data={"data": ONES[:2], "label": label})
    assert net.forward(data={"data": ONES[:2], "label": [0, 1]}) > 0
