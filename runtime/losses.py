"""Losses: `SoftmaxLoss`, `SquareLoss`, and what all losses share."""

import math
from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer, one_of
from layerc.runtime.labels import labels_of
from layerc.runtime.layer import BadInput, BadType, Builtin, LayerState, require_float
from layerc.runtime.softmax import as_channels, channel_axis
from layerc.runtime.statistics import RunningMeans


class Loss(RunningMeans, Builtin):
    """Base of the losses: bottoms [prediction, target], no tops.

    The value, `weight` times the sum over examples divided by their number (`normalize="sum"`: not
    divided), goes
    to `state.loss`; its running mean is the statistic `<name>.loss`.
    """

    is_sink = can_do_bp = has_loss = has_stats = True
    bottom_counts = (2, 2)
    positional: ClassVar[tuple[str, ...] | None] = ()

    weight: float = field(1.0, check=math.isfinite)
    normalize: str = field("mean", convert=one_of("mean", "sum"))

    def settle(self, state: LayerState, total: float, count: float, samples: float) -> None:
        """Set the loss from the sum over `count` terms; `samples` weighs it in the running mean.

        state.scale: what each term's gradient is multiplied by.
        """
        state.scale = self.weight if self.normalize == "sum" else self.weight / count if count else 0.0
        state.loss = float(total * state.scale)
        self.record(state, "loss", state.loss, samples)

    def term_gradients(self, state: LayerState, n: int, dtype: Any) -> np.ndarray:
        """dy of the kernel: one number for each example."""
        return np.full(n, state.scale, dtype)


class SquareLoss(Loss):
    """1/(2N) sum (p - t)²; gradients to both bottoms."""

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs)
        self._arrays(inputs)
        return LayerState(self)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        terms = builtin.run("standard.square_loss", self._arrays(inputs))["y"]
        state.terms = terms
        n = inputs[0].shape[0]
        self.settle(state, float(np.sum(terms, dtype=np.float64)), n, n)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        dy = self.term_gradients(state, inputs[0].shape[0], inputs[0].dtype)
        found = builtin.pull("standard.square_loss", {**self._arrays(inputs), "y": state.terms, "dy": dy})
        for k, name in enumerate(("p", "t")):
            if diffs[k]:
                diffs[k].adopt(found[name].reshape(inputs[k].shape))

    def _arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        p, t = inputs
        if p.shape != t.shape:
            raise BadInput("prediction and target must have one shape")
        return {"p": p.data, "t": t.data}


def _class_weights(value: Any) -> np.ndarray:
    weights = np.array(value, dtype=np.float64)
    if weights.ndim != 1 or not np.all(weights >= 0):
        raise ValueError("must be one weight, 0 or more, for each class")
    weights.flags.writeable = False
    return weights


class SoftmaxLoss(Loss):
    """-w_t log softmax(p)_t along `axis`, t the label, a mean over the labels.

    class_weights: w, as given; normalize="weights" divides by the sum of the w_t, as PyTorch's mean does.
    ignore_label: labels of that value count nowhere.
    """

    integer_bottoms = (1,)
    positional = ("axis", "class_weights", "ignore_label")

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
        self._arrays([scores, Blob.empty(label.shape, label.dtype)])
        return LayerState(self)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        arrays = self._arrays(inputs)
        state.arrays = arrays
        state.terms = builtin.run("standard.softmax_loss", arrays)["y"]
        counted = arrays["label"][arrays["label"] >= 0]
        count = float(counted.size)
        by_weights = self.normalize == "weights"
        divisor = float(np.sum(arrays["class_weights"][counted], dtype=np.float64)) if by_weights else count
        self.settle(state, float(np.sum(state.terms, dtype=np.float64)), divisor, divisor)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        if not diffs[0]:
            return
        dy = self.term_gradients(state, len(state.terms), inputs[0].dtype)
        arrays = {**state.arrays, "y": state.terms, "dy": dy}
        diffs[0].adopt(builtin.pull("standard.softmax_loss", arrays, "inputs")["scores"].reshape(inputs[0].shape))

    def _arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        scores, label = inputs
        rows = as_channels(scores.data, self.axis)
        classes = rows.shape[1]
        weights = np.ones(classes) if self.class_weights is None else self.class_weights
        labels = labels_of(label.data, scores.shape, self.axis, self.ignore_label)
        return {"scores": rows, "label": labels, "class_weights": weights.astype(scores.dtype)}
