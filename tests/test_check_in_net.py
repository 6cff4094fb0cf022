"""`check` of layers of nets: those that ship pass, and planted mistakes in layers by hand are found and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layerc import config
from layerc.runtime import (
    GRU,
    Argmax,
    BatchNorm,
    Blob,
    Concat,
    Convolution,
    CTCLoss,
    Dropout,
    ElementWise,
    FunctionLayer,
    HingeLoss,
    InnerProduct,
    Layer,
    LayerState,
    Net,
    Neurons,
    Pooling,
    RandomNormal,
    SoftmaxLoss,
    Split,
    SquareLoss,
    Subnet,
    TiedInnerProduct,
)

SIGNS = np.where(np.arange(9).reshape(3, 3) % 2, 1.0, -1.0)
GOOD = [
    (InnerProduct(3, neuron=Neurons.Tanh()), [(4,)]),
    (InnerProduct(3, bottoms=["a", "b"], tops=["p", "q"]), [(4,), (4,)]),
    (Convolution(4, kernel=3), [(2, 6, 5)]),
    (BatchNorm(), [(3, 2, 2)]),
    (Dropout(0.5), [6]),
    (GRU(4, stateful=True), [(5, 3)]),
    (SoftmaxLoss(), [(2,), ()]),
    (SquareLoss(), [(3,), (3,)]),
    (HingeLoss(), [(3,), SIGNS]),
    (CTCLoss(), [(6, 3), np.ones((3, 2), int)]),
    (Pooling("max", 2, 2), [(2, 6, 6)]),
    (Concat(), [(2,), (3,)]),
    (Split(tops=["p", "q"]), [(4,)]),
    (ElementWise("multiply"), [(4,), (4,)]),
    (Argmax(), [(4,)]),
    (RandomNormal((3,)), []),
    (FunctionLayer(np.sin), [(4,)]),
]


@pytest.mark.parametrize(("layer", "given"), GOOD, ids=[type(layer).__name__ for layer, _ in GOOD])
def test_layers_that_ship_pass(layer: Layer, given: list[Any]) -> None:
    report = layer.check(*given)
    assert report.passed, report


def test_a_net_inside_passes() -> None:
    inner = Net.chain("inner", [BatchNorm(), GRU(3, stateful=True)])
    inner.predict(np.zeros((1, 4, 2)))
    report = Subnet(inner, name="sub").check((4, 2))
    assert report.passed, report


class ByHand(Layer):
    """sin(w x), with a mistake."""

    can_do_bp = has_param = True
    param_names = ("weight",)
    mistake: str = config("")

    def setup(self, backend: Any, inputs: Any, diffs: Any) -> LayerState:
        blobs = [Blob.empty(inputs[0].shape, inputs[0].dtype)]
        return LayerState(self, blobs=blobs, parameters=[self.parameter("weight", inputs[0].shape[1:])])

    def forward(self, backend: Any, state: Any, inputs: Any) -> None:
        x, w = inputs[0].data, state.parameters[0].data
        y = np.sin(w * x)
        if self.mistake == "keeps its batch":
            y = np.resize(y, (3, *y.shape[1:]))
        if self.mistake == "writes into x":
            x *= 2
        state.blobs[0].data = y

    def backward(self, backend: Any, state: Any, inputs: Any, diffs: Any) -> None:
        x, w, dy = inputs[0].data, state.parameters[0].data, state.blobs_diff[0].data
        off = 1.001 if self.mistake == "a thousandth" else 1.0
        dy = abs(dy) if self.mistake == "not linear" else dy
        if diffs[0]:
            dx = off * w * np.cos(w * x) * dy
            diffs[0].data = dx[..., None] if self.mistake == "shape" else dx
        if self.mistake != "no gradient of w":
            state.parameters[0].gradient[...] += (x * np.cos(w * x) * dy).sum(axis=0)


@pytest.mark.parametrize(
    ("mistake", "test"),
    [
        ("a thousandth", "gradient of x"),
        ("no gradient of w", "gradient of byhand.weight"),
        ("shape", "backward runs"),
        ("not linear", "gradient linear in dy"),
        ("keeps its batch", "one observation"),
        ("writes into x", "bottoms unchanged"),
    ],
)
def test_planted_mistakes_are_found(mistake: str, test: str) -> None:
    assert ByHand().check((4,)).passed, ByHand().check((4,))
    report = ByHand(mistake=mistake).check((4,))
    assert test in [row.test for row in report.failures], report


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match="InnerProduct 'innerproduct' takes 1 or more bottoms; check got 0"):
        InnerProduct(3).check()
    with pytest.raises(ValueError, match="borrows parameters"):
        TiedInnerProduct("other").check((3,))
    report = CTCLoss().check((6, 3), (2,))
    assert [row.test for row in report.failures] == ["forward runs"]
    assert "a batch of labels in the place of their shape would do" in str(report)
