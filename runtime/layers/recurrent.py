"""Recurrent layers over whole sequences: the loop over time, its steps and its products are one function each.

The product with the inputs is one for all steps. The products with what is carried are kept in an array over time, so
that the gradient need not compute them again.
"""

import numpy as np

from layerc import Param, layer, real

# They take whole batches, but give time first, as the steps are computed: none of this is called but by their layers.
__batched__ = ("gru", "lstm")


def _sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


@layer(batched=True)
def gru(
    x: real["N T D"],
    first_h: real["N H"],
    weight_ih: Param[real["D 3*H"]],
    weight_hh: Param[real["H 3*H"]],
    bias_ih: Param[real["3*H"]],
    bias_hh: Param[real["3*H"]],
) -> real["T+1 N H"]:
    """Gated recurrent unit, gates r, z, n (Cho et al. 2014), as PyTorch's: h before each step and after the last."""
    n, steps, _ = x.shape
    size = first_h.shape[1]
    a = np.swapaxes(x, 0, 1) @ weight_ih + bias_ih
    b = np.empty((steps, n, 3 * size))
    h = np.empty((steps + 1, n, size))
    h[0] = first_h
    for t in range(steps):
        b[t] = h[t] @ weight_hh + bias_hh
        r = _sigmoid(a[t, :, :size] + b[t, :, :size])
        z = _sigmoid(a[t, :, size : 2 * size] + b[t, :, size : 2 * size])
        new = np.tanh(a[t, :, 2 * size :] + r * b[t, :, 2 * size :])
        h[t + 1] = (1 - z) * new + z * h[t]
    return h


@layer(batched=True)
def lstm(
    x: real["N T D"],
    first_h: real["N H"],
    first_c: real["N H"],
    weight_ih: Param[real["D 4*H"]],
    weight_hh: Param[real["H 4*H"]],
    bias_ih: Param[real["4*H"]],
    bias_hh: Param[real["4*H"]],
) -> tuple[real["T+1 N H"], real["T+1 N H"]]:
    """Long short-term memory, gates i, f, g, o (Hochreiter and Schmidhuber 1997), as PyTorch's: h and c."""
    n, steps, _ = x.shape
    size = first_h.shape[1]
    a = np.swapaxes(x, 0, 1) @ weight_ih + (bias_ih + bias_hh)
    s = np.empty((steps, n, 4 * size))
    h = np.empty((steps + 1, n, size))
    c = np.empty((steps + 1, n, size))
    h[0] = first_h
    c[0] = first_c
    for t in range(steps):
        s[t] = a[t] + h[t] @ weight_hh
        i = _sigmoid(s[t, :, :size])
        f = _sigmoid(s[t, :, size : 2 * size])
        g = np.tanh(s[t, :, 2 * size : 3 * size])
        o = _sigmoid(s[t, :, 3 * size :])
        c[t + 1] = f * c[t] + i * g
        h[t + 1] = o * np.tanh(c[t + 1])
    return h, c
