"""Statistics: `Accuracy`, `BinaryAccuracy`, and the running means of whatever counts."""

from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.axes import as_rows, channel_axis
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.labels import labels_of
from layerc.runtime.layer import BadInput, BadType, Builtin, LayerState, require_float
from layerc.runtime.symbolic import choose


class RunningMeans:
    """Weighted means since the last reset: of `state.totals`, {statistic: (weighted sum, weight)}.

    The dictionary is replaced, never changed, so that a fork of the state leaves it alone.
    """

    name: str

    def record(self, state: LayerState, statistic: str, value: float, weight: float) -> None:
        totals = getattr(state, "totals", {})
        total, count = totals.get(statistic, (0.0, 0.0))
        # Multiplying by a weight of 0 would turn an infinite value into a NaN.
        sum_ = choose(weight != 0, lambda: total + value * weight, lambda: total)
        state.totals = {**totals, statistic: (sum_, count + weight)}

    def dump_statistics(self, storage: Any, state: LayerState, show: bool) -> None:
        for statistic in self.statistic_names():
            total, count = getattr(state, "totals", {}).get(statistic, (0.0, 0.0))
            storage.update_statistics(f"{self.name}.{statistic}", total / count if count else float("nan"))

    def reset_statistics(self, state: LayerState) -> None:
        state.totals = {}

    def statistic_names(self) -> tuple[str, ...]:
        return ("loss",)


class Accuracy(RunningMeans, Builtin):
    """The share of labels among the `top_k` highest scores along `axis`."""

    is_sink = has_stats = True
    bottom_counts = (2, 2)
    integer_bottoms = (1,)

    top_k: int = field(1, check=lambda k: k > 0, convert=integer)
    axis: int = field(1, convert=integer)

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs[:1])
        self._check_classes(inputs[0].shape)
        if inputs[1].dtype.kind not in "iu":
            raise BadType(f"labels must be integers, not {inputs[1].dtype}")
        labels_of(np.zeros(inputs[1].shape, np.int64), inputs[0].shape, self.axis, None)
        return LayerState(self)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        scores, label = inputs
        self._check_classes(scores.shape)
        labels = labels_of(label.data, scores.shape, self.axis, None)
        rows = as_rows(scores.data, self.axis)
        hits = builtin.run("standard.top_k_hit", {"scores": rows, "label": labels}, k=self.top_k)["y"]
        self.record(state, "accuracy", float(np.sum(hits, dtype=np.float64)) / max(labels.size, 1), labels.size)

    def _check_classes(self, shape: tuple[int, ...]) -> None:
        classes = shape[channel_axis(self.axis, shape)]
        if self.top_k > classes:
            raise BadInput(f"field top_k={self.top_k} is more than its {classes} classes")

    def statistic_names(self) -> tuple[str, ...]:
        return ("accuracy",)


class BinaryAccuracy(RunningMeans, Builtin):
    """The share of elements for which prediction and target are on the same side of `threshold`."""

    is_sink = has_stats = True
    bottom_counts = (2, 2)

    threshold: float = field(0.5)

    def bottom_kind(self, k: int) -> str | None:
        return "float" if k == 0 else None

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        require_float(inputs[:1])
        self._check(inputs)
        return LayerState(self)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        self._check(inputs)
        above = [x.data > self.threshold for x in inputs]
        n = inputs[0].data.size
        self.record(state, "accuracy", float(np.count_nonzero(above[0] == above[1])) / max(n, 1), n)

    def statistic_names(self) -> tuple[str, ...]:
        return ("accuracy",)

    @staticmethod
    def _check(inputs: list[Blob]) -> None:
        if inputs[0].shape != inputs[1].shape:
            raise BadInput("prediction and target must have one shape")
