"""Normalisation over the batch or over an example."""

import numpy as np

from layerc import Layer, Param, State, init, layer, real


class BatchNorm(Layer):
    """(x - mean) / sqrt(var + eps) * weight + bias, of each channel over batch and positions (Ioffe and Szegedy
    2015)."""

    batched = True
    weight: Param[real["C"]] = init.ones()
    bias: Param[real["C"]] = init.zeros()
    mean: State[real["C"]] = init.zeros()
    var: State[real["C"]] = init.ones()
    momentum: float = 0.1
    eps: float = 1e-5

    def predict(self, x: real["N C S"]) -> real["N C S"]:
        scale = self.weight / np.sqrt(self.var + self.eps)
        return x * scale[:, None] + (self.bias - self.mean * scale)[:, None]

    def forward(self, x: real["N C S"]) -> real["N C S"]:
        count = x.shape[0] * x.shape[2]
        mean = np.sum(x, axis=(0, 2)) / count
        centred = x - mean[:, None]
        var = np.sum(centred * centred, axis=(0, 2)) / count
        self.mean = (1 - self.momentum) * self.mean + self.momentum * mean
        self.var = (1 - self.momentum) * self.var + self.momentum * var * (count / (count - 1))
        return centred * (self.weight / np.sqrt(var + self.eps))[:, None] + self.bias[:, None]


@layer
def batch_norm_inference(
    x: real["C S"],
    weight: Param[real["C"]],
    bias: Param[real["C"]],
    mean: State[real["C"]],
    var: State[real["C"]],
    eps: float = 1e-5,
) -> real["C S"]:
    """BatchNorm with given moments, to be differentiated as what it is."""
    scale = weight / np.sqrt(var + eps)
    return (x - mean[:, None]) * scale[:, None] + bias[:, None]


@layer
def layer_norm(x: real["D"], weight: Param[real["D"]], bias: Param[real["D"]], eps: float = 1e-5) -> real["D"]:
    """(x - mean) / sqrt(var + eps) * weight + bias over an example's features (Ba et al. 2016)."""
    centred = x - np.mean(x)
    return centred / np.sqrt(np.mean(centred * centred) + eps) * weight + bias
