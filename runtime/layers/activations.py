"""The neurons: elementwise functions that any layer may end with. Stable for every x; NaN stays NaN."""

import numpy as np

from layerc import layer, real


@layer
def relu(x: real["*S"], epsilon: float = 0.0) -> real["*S"]:
    """max(epsilon, x); its derivative at epsilon is 0."""
    return np.where(x <= epsilon, epsilon, x)


@layer
def leaky_relu(x: real["*S"], slope: float = 0.01) -> real["*S"]:
    """x where x > 0, else slope x."""
    return np.where(x <= 0, slope * x, x)


@layer
def sigmoid(x: real["*S"]) -> real["*S"]:
    """1 / (1 + exp(-x)), by exp(-|x|), which cannot overflow."""
    e = np.exp(np.where(x >= 0, -x, x))  # not -|x|: its derivative at 0 would be 0
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


@layer
def tanh(x: real["*S"]) -> real["*S"]:
    """Hyperbolic tangent."""
    return np.tanh(x)


@layer
def exponential(x: real["*S"]) -> real["*S"]:
    """exp(x)."""
    return np.exp(x)


@layer
def elu(x: real["*S"], alpha: float = 1.0) -> real["*S"]:
    """x where x > 0, else alpha (exp(x) - 1) (Clevert et al. 2016)."""
    return np.where(x <= 0, alpha * np.expm1(np.where(x <= 0, x, 0.0)), x)  # exp of large x is never asked for


@layer
def swish(x: real["*S"]) -> real["*S"]:
    """x sigmoid(x) (Ramachandran et al. 2017)."""
    e = np.exp(np.where(x >= 0, -x, x))
    return x * np.where(x >= 0, 1 / (1 + e), e / (1 + e))


@layer
def softplus(x: real["*S"]) -> real["*S"]:
    """log(1 + exp(x)), without overflow."""
    return np.where(x <= 0, 0.0, x) + np.log1p(np.exp(np.where(x <= 0, x, -x)))
