"""`CTCLoss`: labels of a sequence without their places."""

from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.layer import BadInput, BadLabel, BadType, require_float
from layerc.runtime.losses import TermLoss


class CTCLoss(TermLoss):
    """-log p(label | softmax(x)) over all alignments, a mean over N, not over lengths (Graves et al. 2006).

    Bottoms: scores x (N, T, C), label (N, S), and optionally x_length (N,), label_length (N,); without lengths
    labels end at the first -1. An impossible labelling costs inf and has gradient 0.
    """

    address = "alignment.ctc"
    bottom_counts = (2, 4)
    integer_bottoms = (1, 2, 3)
    positional = ("blank",)

    blank: int = field(0, check=lambda k: k >= 0, convert=integer)

    def check_bottoms(self, inputs: list[Blob]) -> None:
        self._check(inputs)

    def config(self) -> dict[str, Any]:
        return {"blank": self.blank}

    def _check(self, inputs: list[Blob]) -> None:
        x, label = inputs[:2]
        require_float([x])
        if len(inputs) == 3:
            raise BadInput("x_length comes with label_length")
        if any(b.dtype.kind not in "iu" for b in inputs[1:]):
            raise BadType("labels and lengths must be integers")
        n = x.shape[0]
        if len(x.shape) != 3 or len(label.shape) != 2 or label.shape[0] != n:
            raise BadInput("scores are (N, T, C), labels (N, S)")
        if any(b.shape != (n,) for b in inputs[2:]):
            raise BadInput("lengths are (N,)")
        if self.blank >= x.shape[2]:
            raise BadInput(f"blank {self.blank} is outside 0..{x.shape[2] - 1}")

    def arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        self._check(inputs)
        x = inputs[0]
        n, steps, classes = x.shape
        label = inputs[1].data.astype(np.int64)
        most = label.shape[1]
        if len(inputs) == 4:
            x_length, label_length = (b.data.astype(np.int64) for b in inputs[2:])
        else:
            x_length = np.full(n, steps, np.int64)
            ends = np.concatenate([label == -1, np.ones((n, 1), bool)], axis=1)
            label_length = np.argmax(ends, axis=1).astype(np.int64)
        for what, length, bound in (("x_length", x_length, steps), ("label_length", label_length, most)):
            if np.any((length < 0) | (length > bound)):
                raise BadInput(f"{what} must be in 0..{bound}")
        counts = np.arange(most) < label_length[:, None]
        bad = counts & ((label < 0) | (label >= classes) | (label == self.blank))
        if bad.any():
            raise BadLabel(f"label {label[bad][0]} is the blank or outside 0..{classes - 1}")
        label = np.where(counts, label, self.blank)
        return {"x": x.data, "label": label, "x_length": x_length, "label_length": label_length}
