"""`CTCLoss`: labels of a sequence without their places."""

from typing import Any

import numpy as np

from layerc.runtime import builtin
from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.labels import check_range
from layerc.runtime.layer import BadInput, BadType, require_float
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
        label = inputs[1].data.astype(np.int64)
        if len(inputs) == 4:
            x_length, label_length = (b.data.astype(np.int64) for b in inputs[2:])
            check_range(x_length, x.shape[1] + 1, "x_length", error=BadInput)
            check_range(label_length, label.shape[1] + 1, "label_length", error=BadInput)
        else:
            found = builtin.run("alignment.spans", {"x": x.data, "label": label})
            x_length, label_length = found["x_length"], found["label_length"]
        given = {"label": label, "label_length": label_length}
        counted = builtin.run("alignment.counted", given, blank=self.blank)["y"]
        check_range(counted, x.shape[2], "label {0} is the blank or", shown=label)
        return {"x": x.data, "label": label, "x_length": x_length, "label_length": label_length}
