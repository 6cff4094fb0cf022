"""Optimal transport."""

import numpy as np

from layerc import State, layer, real


@layer
def wasserstein(a: real["C"], b: real["D"], cost: State[real["C D"]], lam: float, n_iter: int) -> real[""]:
    """Entropy-smoothed cost of transport between a and b, by `n_iter` Sinkhorn iterations (Cuturi 2013)."""
    kernel = np.exp(-lam * cost)
    u = np.full_like(a, 1 / a.shape[0])
    for _ in range(n_iter):
        u = a / (kernel @ (b / (u @ kernel)))
    v = b / (u @ kernel)
    return np.sum(u * ((kernel * cost) @ v))
