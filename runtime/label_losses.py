"""Losses of scores or probabilities along one axis: `SoftmaxLoss`, `MultinomialLogisticLoss`,
`SoftlabelSoftmaxLoss`."""

import math
from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.axes import as_rows, channel_axis, from_rows
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer, one_of
from layerc.runtime.labels import labels_of
from layerc.runtime.layer import BadInput, BadType, LayerState, require_float
from layerc.runtime.losses import Loss, TermLoss
from layerc.runtime.symbolic import number


def _class_weights(value: Any) -> np.ndarray:
    weights = np.array(value, dtype=np.float64)
    if weights.ndim != 1 or not np.all(weights >= 0):
        raise ValueError("must be one weight, 0 or more, for each class")
    weights.flags.writeable = False
    return weights


class LabelLoss(Loss):
    """Base of the losses of integer labels. The compiled function `address` gives a row's term for its label.

    class_weights: w, as given; normalize="weights" divides by the sum of the w_t, as PyTorch's mean does.
    ignore_label: labels of that value count nowhere.
    """

    integer_bottoms = (1,)
    positional = ("axis", "class_weights", "ignore_label")
    address: ClassVar[str]
    argument: ClassVar[str]  # what the function calls its row

    axis: int = field(1, convert=integer)
    class_weights: Any = field(None, convert=_class_weights)
    ignore_label: Any = field(None, convert=integer)
    weight: float = field(1.0, check=math.isfinite)
    normalize: str = field("mean", convert=one_of("mean", "sum", "weights"))

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs[:1])
        scores, label = inputs
        if label.dtype.kind not in "iu":
            raise BadType(f"labels must be integers, not {label.dtype}")
        classes = scores.shape[channel_axis(self.axis, scores.shape)]
        if self.class_weights is not None and len(self.class_weights) != classes:
            raise BadInput(f"class_weights has {len(self.class_weights)} weights for {classes} classes")
        labels_of(np.zeros(label.shape, label.dtype), scores.shape, self.axis, None)
        return LayerState(self)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        scores, label = inputs
        labels = labels_of(label.data, scores.shape, self.axis, self.ignore_label)
        state.arrays = {self.argument: as_rows(scores.data, self.axis), "label": labels}
        state.terms = builtin.run(self.address, state.arrays)["y"]
        counted = labels >= 0
        state.weights = counted.astype(np.float64)
        if self.class_weights is not None:
            state.weights = builtin.run("losses.class_weight", {"label": labels, "weights": self.class_weights})["y"]
        terms = np.where(state.weights > 0, state.terms, 0)  # a term that weighs nothing may be infinite
        total = number(np.sum(terms * state.weights))
        if self.normalize == "weights":
            divisor = number(np.sum(state.weights))
        elif self.ignore_label is None:
            divisor = labels.shape[0]
        else:
            divisor = number(np.sum(counted))
        # A mean counts in the running mean as often as there are terms in it, a sum once for each sample.
        self.settle(state, total, divisor, scores.shape[0] if self.normalize == "sum" else divisor)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        if not diffs[0]:
            return
        dy = (state.scale * state.weights).astype(state.terms.dtype)
        found = builtin.pull(self.address, {**state.arrays, "y": state.terms, "dy": dy})
        diffs[0].adopt(from_rows(found[self.argument], self.axis, inputs[0].shape))


class SoftmaxLoss(LabelLoss):
    """-w_t log softmax(p)_t along `axis`, t the label, a mean over the labels."""

    address, argument = "losses.softmax", "scores"


class MultinomialLogisticLoss(LabelLoss):
    """-w_t log max(p_t, 1e-20) of probabilities p along `axis`, t the label, a mean over the labels."""

    address, argument = "losses.multinomial_logistic", "p"


class SoftlabelSoftmaxLoss(TermLoss):
    """-sum_c t_c log softmax(p)_c along `axis`, a mean over N and positions; t, of p's shape, need not sum to
    1. Gradients to both."""

    address = "losses.soft_label_softmax"
    positional = ("axis",)

    axis: int = field(1, convert=integer)

    def arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        require_float(inputs)
        if inputs[0].shape != inputs[1].shape:
            raise BadInput("prediction and target must have one shape")
        return {name: as_rows(x.data, self.axis) for name, x in zip(("scores", "t"), inputs)}

    def count(self, state: LayerState, inputs: list[Blob]) -> int:
        return state.terms.shape[0]

    def gradient(self, k: int, found: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return from_rows(found, self.axis, shape)
