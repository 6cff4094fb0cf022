"""What all losses share, and those that compare two float blobs element by element."""

import math
from typing import Any, ClassVar

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, one_of
from layerc.runtime.labels import check_signs
from layerc.runtime.layer import BadInput, Builtin, LayerState, require_float
from layerc.runtime.statistics import RunningMeans
from layerc.runtime.symbolic import choose, number, ratio


class Loss(RunningMeans, Builtin):
    """Base of the losses: bottoms [prediction, target], no tops.

    The value, `weight` times the sum over examples divided by their number (`normalize="sum"`: not
    divided), goes to `state.loss`; its running mean is the statistic `<name>.loss`.
    """

    is_sink = can_do_bp = has_loss = has_stats = is_summed = True
    bottom_counts = (2, 2)
    positional: ClassVar[tuple[str, ...] | None] = ()

    weight: float = field(1.0, check=math.isfinite)
    normalize: str = field("mean", convert=one_of("mean", "sum"))

    def settle(self, state: LayerState, total: float, count: float, samples: float) -> None:
        """Set the loss from the sum over `count` terms; `samples` weighs it in the running mean.

        state.scale: what each term's gradient is multiplied by. Among workers the loss is this one's part of all.
        """
        every = state.workers.total(count) if state.phase == "train" else count
        state.scale = self._scale(every)
        state.loss = _times(total, state.scale)
        mine = state.loss if every is count else _times(total, self._scale(count))
        self.record(state, "loss", mine, samples)

    def _scale(self, count: Any) -> Any:
        """What each of so many terms is multiplied by."""
        shared = choose(count != 0, lambda: ratio(self.weight, count), lambda: 0.0)
        return self.weight if self.normalize == "sum" else shared


def _times(total: Any, scale: Any) -> Any:
    """0 times an infinite total is 0 too."""
    return choose(scale != 0, lambda: number(total * scale), lambda: 0.0)


class TermLoss(Loss):
    """Base of the losses whose compiled function `address` gives one number, a term, for each example.

    A subclass says which arrays the function takes (`arrays`) and how many labels the mean is over
    (`count`).
    """

    address: ClassVar[str]

    def setup(self, backend: Any, inputs: list[Blob], diffs: Any) -> LayerState:
        self.check_bottoms(inputs)
        return LayerState(self)

    def check_bottoms(self, inputs: list[Blob]) -> None:
        """BadInput, BadType for shapes and types that cannot be."""
        self.arrays(inputs)

    def arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        """The function's arguments by name: those of the bottoms first, in their order."""
        raise NotImplementedError

    def config(self) -> dict[str, Any]:
        return {}

    def count(self, state: LayerState, inputs: list[Blob]) -> int:
        return inputs[0].shape[0]

    def gradient(self, k: int, found: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The gradient of the function's argument k as that of bottom k, of that shape."""
        return found.reshape(shape)

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        state.arrays = self.arrays(inputs)
        state.terms = builtin.run(self.address, state.arrays, **self.config())["y"]
        n = self.count(state, inputs)
        samples = inputs[0].shape[0] if self.normalize == "sum" else n
        self.settle(state, number(np.sum(state.terms, dtype=np.float64)), n, samples)

    def backward(self, backend: Any, state: LayerState, inputs: list[Blob], diffs: Any) -> None:
        dy = np.full_like(state.terms, state.scale)
        arrays = {**state.arrays, "y": state.terms, "dy": dy}
        found = builtin.pull(self.address, arrays, "inputs", **self.config())
        for k, name in zip(range(len(inputs)), state.arrays):
            if diffs[k]:
                diffs[k].adopt(self.gradient(k, found[name], inputs[k].shape))


class PairLoss(TermLoss):
    """Base of the losses of two blobs of one shape; gradients to both. `names`: of the function's arguments.

    takes_labels: the target may be integers, which then have no gradient.
    """

    names: ClassVar[tuple[str, str]] = ("p", "t")
    takes_labels: ClassVar[bool] = False

    def bottom_kind(self, k: int) -> str | None:
        return None if k == 1 and self.takes_labels else "float"

    def arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        p, t = inputs
        labels = self.takes_labels and t.dtype.kind in "iu"
        require_float([p] if labels else inputs)
        if p.shape != t.shape:
            raise BadInput("prediction and target must have one shape")
        target = t.data.astype(p.dtype) if labels else t.data
        return dict(zip(self.names, (p.data, target)))


class SquareLoss(PairLoss):
    """1/(2N) sum (p - t)²; gradients to both bottoms."""

    address = "losses.square"


class BinaryCrossEntropyLoss(PairLoss):
    """-1/N sum t log p + (1 - t) log(1 - p) for probabilities p; logarithms are clamped at -100, where the
    gradient is 0."""

    address = "losses.binary_cross_entropy"
    takes_labels = True


class HingeLoss(PairLoss):
    """1/N sum max(1 - t p, 0), t in {-1, 1}; derivative 0 where t p = 1. IndexError for other integers; a float t may
    be anything, as it has a gradient."""

    address = "losses.hinge"
    takes_labels = True

    def forward(self, backend: Any, state: LayerState, inputs: list[Blob]) -> None:
        if inputs[1].dtype.kind in "iu":
            check_signs(inputs[1].data)
        super().forward(backend, state, inputs)


class GaussianKLLoss(PairLoss):
    """1/(2N) sum mu² + sigma² - 2 log sigma - 1, of bottoms [mu, sigma]: the divergence of N(mu, sigma²) from
    N(0, 1) (Kingma and Welling 2014)."""

    address = "losses.gaussian_kl"
    names = ("mu", "sigma")
