"""Functions that few layers call, in the ways NumPy lets them be called."""

import math

import numpy as np

from layerc import Param, layer, real


@layer
def stacks(x: real["N M"], y: real["N M"]):  # N=3 M=2 edge=1
    a = np.hstack((x, y))
    b = np.vstack([x, 2 * y])
    c = np.hstack([x[0], y[0]])
    d = np.vstack((x[0], y[0]))
    return a, b, c, d


@layer
def vdots(x: real["N M"], y: real["N M"]):  # N=3 M=2
    return np.vdot(x, y), np.vdot(x[:, 0], y[:, 1] * 2)


@layer
def shapes_as_values(x: real["N M"]):  # N=3 M=2 edge=1
    rows, columns = np.shape(x)
    scale = np.size(x) + x.ndim
    return x * scale + np.tri(rows, columns), np.asarray(x) * math.trunc(rows / 2)


def applied(f, x):
    return f(x) if callable(f) else x * f


@layer
def callables(x: real["N"], w: Param[real["N"]]):  # N=3
    return applied(np.tanh, x) + applied(lambda v: v * w, x) + applied(2.0, w)


@layer
def any_extent(x: real["N M"]) -> real["_ M"]:  # N=2 M=3
    return np.concatenate([x, x * x])


@layer
def numbers_of_truths(x: real["N"], flag: bool = True, n: int = 4):  # N=4
    """Python's own truth values are numbers."""
    k = -(n > 3) + (-flag) + (flag + flag) - (not x[0] > 0) * flag
    for i in range(x.shape[0]):
        k += (i > 2) - (i < 1)
        x[i] *= 1 + ~(i > 1) + (flag << (i > 0))
    return x * k, x * (flag / (n > 2))


@layer
def truths_of_either(x: real["N"], flag: bool = True, n: int = 4):  # N=4
    """True + True is 2 of Python's own truth values, and True of NumPy's: on every path, in lists, of functions."""
    first = n > 5
    if n > 2:
        first = True
    second = True if x[0] > 0 else flag
    third, steps = flag, 0
    while steps < 4:
        third, steps = not third, steps + 1
    grown = []
    for i in range(4):
        grown.append(i > 1)
    stacked = np.stack(grown)
    picked = 0.0
    for i in range(3):
        t = (True, flag, n > 9)[i]
        picked += t + t
    numpys = (np.equal(n, 4) + np.equal(n, 4)) * 1.0 + (np.logical_and(flag, n > 3) + flag)
    numpys += stacked[2] + stacked[3]
    most = max(flag, n > 3)
    pythons = (first + first) + (second + second) + (third + third) + (grown[2] + grown[3]) + (most + most)
    pythons += (n in (1, 4)) + (x.shape == x.shape) + (1 < n < 9) + (n > 2 and n > 3) + abs(n > 2)
    pythons += sum([n > 2, n > 3]) + sum([x[0] > 0, x[0] > -9]) + bool(x[0] > 0) + bool(x[1] > -9)
    chosen = 1.0 if x[0] > 0 else 2.0
    chosen += x
    return x * numpys, x * pythons, x * picked, chosen * round(2.0 if n > 2 else 3.5)


@layer
def longer_than_a_tape(x: real["N"], w: Param[real["N"]], most: int = 11, few: int = 3):  # N=4
    """Two loops: of one the training forward can keep all, of the other it cannot."""
    y, s, k = 1.0 * x, np.sum(w), 0
    while k < most:
        y[0] += np.sum(y) * 0.01
        y = np.sin(y * w) + x
        k += 1
    while k > most - few:
        s = np.cos(s) * y[0]
        k -= 1
    return y * s


@layer
def shorter_than_a_tape(x: real["N"], w: Param[real["N"]]):  # N=4
    y, step, k = 1.0 * x, np.ones_like(x), 0
    while np.max(np.abs(step)) > 1e-2 and k < 50:
        step = y - np.tanh(y * w) - x
        y = y - 0.7 * step
        k += 1
    return y


@layer
def bound_in_a_loop_inside(a: real["N"], b: real["N"]):  # N=4
    """From the second iteration on the name is another array, and so in what follows."""
    u = b
    for i in range(3):
        u[0] = 0.4 * i + np.sum(b)
        for j in range(2):
            u = a
    v, k = b, 0
    while k < 2:
        v[1] *= 0.5
        while v[1] > 100.0 or k < 1:
            v = a
            k += 1
        k += 1
    return a * 2, b * 3


@layer
def angles(x: real["N M"], w: Param[real["M"]]):  # N=4 M=70
    """Some are far, and some computed before their sine is taken."""
    y = np.sin(x * w) + np.cos(x + 1.0) * np.sin(np.exp(x))
    turns = np.arange(x.shape[1]) * 30000.0
    far = np.sin(turns) + np.cos(turns * 0.5)
    x[1:] += np.sin(x[:-1])
    return y + np.sin(x), far * y


@layer
def uneven_blocks(x: real["N"], block: int = 3, c: int = 2):  # N=7 edge=1
    """Temporaries of an extent that depends on the block, times a number of any sign."""
    y = np.zeros_like(x)
    for a in range(0, x.shape[0], block):
        b = min(x.shape[0], a + block)
        t = np.empty((b - a, c))
        for i in range(b - a):
            for j in range(c):
                t[i, j] = x[a + i] * (j + 1)
        y[a:b] = np.sum(np.sort(t, axis=1)[:, ::-1] * t, axis=1)
    return y
