"""`WassersteinLoss`: the cost of moving one histogram onto another."""

import math
from typing import Any

import numpy as np

from layerc.runtime.blob import Blob
from layerc.runtime.fields import field, integer
from layerc.runtime.layer import BadInput, require_float
from layerc.runtime.losses import TermLoss


def _cost(value: Any) -> np.ndarray:
    cost = np.array(value, dtype=np.float64)
    if cost.ndim != 2 or not cost.size or not np.all(np.isfinite(cost)):
        raise ValueError("must be a matrix (C, D) of finite costs")
    cost.flags.writeable = False
    return cost


class WassersteinLoss(TermLoss):
    """Mean over N of sum u * ((K * M) v), K = exp(-lam M), by Sinkhorn's iteration from u = 1/C: `sinkhorn_iter`
    times u = a / (K (b / (K.T u))), then v = b / (K.T u) (Cuturi 2013; Frogner et al. 2015).

    Bottoms: a (N, C), b (N, D), histograms; M (C, D). Exact gradients of that value to both.
    """

    address = "transport.wasserstein"
    positional = ("M", "lam", "sinkhorn_iter")

    M: Any = field(convert=_cost)
    lam: float = field(check=lambda lam: lam > 0 and math.isfinite(lam))
    sinkhorn_iter: int = field(50, check=lambda n: n > 0, convert=integer)

    def arrays(self, inputs: list[Blob]) -> dict[str, np.ndarray]:
        require_float(inputs)
        a, b = inputs
        if (a.shape[1:], b.shape[1:]) != ((self.M.shape[0],), (self.M.shape[1],)) or a.shape[0] != b.shape[0]:
            raise BadInput(f"for M {self.M.shape} the bottoms are (N, {self.M.shape[0]}) and (N, {self.M.shape[1]})")
        return {"a": a.data, "b": b.data, "cost": self.M.astype(a.dtype)}

    def config(self) -> dict[str, Any]:
        return {"lam": self.lam, "n_iter": self.sinkhorn_iter}
