"""One step of recurrent layers, after the products with the weights: a of the step's input, b of the last h.

The runtime keeps the time loop: its products are those of `standard.inner_product`, one for all steps where that can
be.
"""

import numpy as np

from layerc import layer, real


def _sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


@layer
def gru(a: real["3*H"], b: real["3*H"], h: real["H"]) -> real["H"]:
    """Gated recurrent unit, gates r, z, n (Cho et al. 2014), as PyTorch's."""
    size = h.shape[0]
    r = _sigmoid(a[:size] + b[:size])
    z = _sigmoid(a[size : 2 * size] + b[size : 2 * size])
    n = np.tanh(a[2 * size :] + r * b[2 * size :])
    return (1 - z) * n + z * h


@layer
def lstm(a: real["4*H"], b: real["4*H"], c: real["H"]) -> tuple[real["H"], real["H"]]:
    """Long short-term memory, gates i, f, g, o (Hochreiter and Schmidhuber 1997), as PyTorch's: h, c."""
    size = c.shape[0]
    both = a + b
    i = _sigmoid(both[:size])
    f = _sigmoid(both[size : 2 * size])
    g = np.tanh(both[2 * size : 3 * size])
    o = _sigmoid(both[3 * size :])
    c = f * c + i * g
    return o * np.tanh(c), c
