"""Arrays that are worked on in place: what each place is left with serves the gradient, unless it is read before."""

import numpy as np

from layerc import Param, layer, real


@layer
def filtered(x: real["T"], a: Param[real["K"]]):  # T=7 K=3
    y = np.zeros_like(x)
    for n in range(len(x)):
        acc = x[n]
        for k in range(1, len(a)):
            if n >= k:
                acc -= a[k] * y[n - k]
        y[n] = acc / (1.5 + np.abs(a[0]))
    return y


@layer
def from_the_end(x: real["T"]):  # T=6
    y = np.zeros_like(x)
    for n in reversed(range(x.shape[0])):
        y[n] = np.sin(x[n] + y[(n + 1) % x.shape[0]] * y[-1])
    return y


@layer
def wraps(x: real["T"]):  # T=6
    y = np.ones_like(x)
    for n in range(x.shape[0]):
        y[n] = np.sin(x[n]) * y[n - 2] * y[n - 1]
    return y


@layer
def overwritten(x: real["T"]):  # T=6
    y = x * 1
    for n in range(1, x.shape[0]):
        y[n] = y[n] * y[n - 1]
    for n in range(x.shape[0] - 1):
        y[n] = y[n] * y[n + 1]
    for n in range(x.shape[0]):
        y[0] = np.sqrt(1.0 + y[0] ** 2) * y[n]
    return y


@layer
def chosen(x: real["N N"], *, k: int = 2):  # N=5 edge=2
    y = x * 1
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if i > j and j < k:
                y[i, j] = y[i - 1, j] * y[j, i]
            elif i == j:
                y[i, j] = np.exp(-y[i, j] * y[0, 0])
            else:
                y[j, i] += y[i, j] * x[j, i]
    return y


@layer
def whole_rows(x: real["N M"]):  # N=4 M=3
    y = x * 1
    for i in range(1, x.shape[0]):
        y[i] = y[i] / (1 + y[i - 1] ** 2)
        y[i, 1:] = np.tanh(y[i, 1:] * y[i, :-1])
    y[::2] = np.sqrt(1 + y[::2] ** 2)
    return y


@layer
def made_anew(z: real["N"], *, k: int = 1):  # N=4 edge=1
    for _ in range(1):
        z[0] -= k
        z = np.exp(z)
    y = z * 1
    for i in range(2):
        y[i % 2 : 1] += z[0] * y[0]
        y = np.sin(y) * y[0]
    return z * y
