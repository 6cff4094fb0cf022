"""One update of each solver, elementwise over flat parameters `w` with gradient `g` and history `v`, `m`,
`s`.

`lr` is the iteration's rate times the parameter's factor. None of this is differentiated.
"""

import numpy as np

from layerc import layer, real


@layer(batched=True, backward=None)
def sgd(
    w: real["P"], g: real["P"], v: real["P"], lr: float = 0.01, momentum: float = 0.0
) -> tuple[real["P"], real["P"]]:
    """v = m v - lr g;  w += v."""
    v = momentum * v - lr * g
    return w + v, v


@layer(batched=True, backward=None)
def nesterov(
    w: real["P"], g: real["P"], v: real["P"], lr: float = 0.01, momentum: float = 0.0
) -> tuple[real["P"], real["P"]]:
    """v = m v - lr g;  w += m v - lr g (Sutskever et al. 2013, in terms of the point where g is taken)."""
    v = momentum * v - lr * g
    return w + (momentum * v - lr * g), v


@layer(batched=True, backward=None)
def adam(
    w: real["P"],
    g: real["P"],
    m: real["P"],
    s: real["P"],
    step_size: float = 0.001,
    root_correction: float = 1.0,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    shrink: float = 1.0,
) -> tuple[real["P"], real["P"], real["P"]]:
    """m, s decay to the mean of g and g²;  w = shrink w - step_size m / (sqrt(s) / root_correction +
    epsilon).

    step_size: lr / (1 - beta1^t); root_correction: sqrt(1 - beta2^t); shrink: AdamW's decoupled decay.
    """
    m = beta1 * m + (1 - beta1) * g
    s = beta2 * s + (1 - beta2) * g * g
    return shrink * w - step_size * m / (np.sqrt(s) / root_correction + epsilon), m, s


@layer(batched=True, backward=None)
def rmsprop(
    w: real["P"],
    g: real["P"],
    s: real["P"],
    v: real["P"],
    lr: float = 0.01,
    momentum: float = 0.0,
    alpha: float = 0.99,
    epsilon: float = 1e-8,
) -> tuple[real["P"], real["P"], real["P"]]:
    """s = alpha s + (1 - alpha) g²;  v = m v + g / (sqrt(s) + epsilon);  w -= lr v."""
    s = alpha * s + (1 - alpha) * g * g
    v = momentum * v + g / (np.sqrt(s) + epsilon)
    return w - lr * v, s, v


@layer(batched=True, backward=None)
def adagrad(
    w: real["P"], g: real["P"], s: real["P"], lr: float = 0.01, epsilon: float = 1e-10
) -> tuple[real["P"], real["P"]]:
    """s += g²;  w -= lr g / (sqrt(s) + epsilon)."""
    s = s + g * g
    return w - lr * g / (np.sqrt(s) + epsilon), s


@layer(batched=True, backward=None)
def adadelta(
    w: real["P"],
    g: real["P"],
    s: real["P"],
    u: real["P"],
    lr: float = 1.0,
    rho: float = 0.95,
    epsilon: float = 1e-6,
) -> tuple[real["P"], real["P"], real["P"]]:
    """s decays to the mean of g², u to that of the steps²;  step = g sqrt(u + eps) / sqrt(s + eps)."""
    s = rho * s + (1 - rho) * g * g
    step = np.sqrt(u + epsilon) / np.sqrt(s + epsilon) * g
    u = rho * u + (1 - rho) * step * step
    return w - lr * step, s, u
