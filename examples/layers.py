"""Five layers no framework ships: what `make demo` builds, shows and trains."""

import numpy as np

from layerc import Layer, Param, init, layer, real


class SReLU(Layer):
    """S-shaped rectifier with learnable thresholds and slopes per channel.

    y = tl + al (x - tl)  where x <= tl,   tr + ar (x - tr)  where x >= tr,   x between.
    Jin et al., "Deep Learning with S-shaped Rectified Linear Activation Units", AAAI 2016.
    """

    left_threshold: Param[real["C"]] = init.uniform(-1, 0)
    left_slope: Param[real["C"]] = init.uniform(0, 1)
    right_threshold: Param[real["C"]] = init.uniform(0, 1)
    right_slope: Param[real["C"]] = init.uniform(0, 1)

    def predict(self, x: real["C *S"]) -> real["C *S"]:
        tl, al = self.left_threshold[:, None], self.left_slope[:, None]
        tr, ar = self.right_threshold[:, None], self.right_slope[:, None]
        return np.where(x <= tl, tl + al * (x - tl), np.where(x >= tr, tr + ar * (x - tr), x))


@layer
def mish(x: real["*S"]) -> real["*S"]:
    """x tanh(softplus(x)): Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019."""
    return x * np.tanh(np.log1p(np.exp(x)))


@layer(batched=True)
def rbf(x: real["N D"], centers: Param[real["K D"]], gamma: Param[real["K"]]) -> real["N K"]:
    """Gaussian radial basis functions: exp(-gamma_k |x_n - c_k|^2)."""
    d = x[:, None, :] - centers
    return np.exp(-gamma * np.sum(d * d, axis=-1))


@layer
def ema(x: real["T D"], decay: Param[real["D"]]) -> real["T D"]:
    """Exponential moving average over time, with a learnable decay for each feature."""
    y = np.zeros_like(x)
    h = np.zeros_like(decay)
    for t in range(x.shape[0]):
        h = decay * h + (1 - decay) * x[t]
        y[t] = h
    return y


@layer
def kepler(mean: real["*S"], e: real["*S"]) -> real["*S"]:
    """Eccentric anomaly: solves E - e sin(E) = mean by Newton's method, until every element has converged."""
    E = mean + e * np.sin(mean)
    step = np.ones_like(mean)
    count = 0
    while np.max(np.abs(step)) > 1e-5 and count < 50:
        step = (E - e * np.sin(E) - mean) / (1 - e * np.cos(E))
        E = E - step
        count += 1
    return E
