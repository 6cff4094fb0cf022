"""What Python and NumPy do first, and which names stand for one array."""

import numpy as np

from layerc import Param, layer, real


def bump(v):
    v += 1
    return v[0]


def doubled(v):
    v *= 2
    return v


def two(a, b):
    return a + 10 * b


def step(v):
    return np.tanh(v) * 2


def scaled(v, *rest):
    for r in rest:
        v = v * r
    return v


@layer
def beside_writes(x: real["N"]):  # N=3
    a, b = x[0], bump(x)
    c, d = bump(x), bump(x)
    x[0] += bump(x)
    e = two(x[0], bump(x)) + two(bump(x), x[1])
    f = min(x[0], bump(x)) + (1.0 if x[0] < bump(x) else 2.0)
    x[0], x[-1] = bump(x), bump(x)
    return a, b, c, d, e, f, x


@layer
def lists_beside_writes(x: real["N"]):  # N=3
    p = np.stack([x * 1, doubled(x)])
    q = np.concatenate([x * 1, doubled(x)])
    r = np.vstack([x * 1, doubled(x)])
    return p, q, r, np.array([x[0], bump(x), x[0]])


@layer
def bounds_of_loops(x: real["N"]):  # N=5
    s, n = 1.0, x.shape[0]
    for i in range(n):
        s = s * x[i]
        n = 1
    t, a = 0.0, 1
    for i in range(a, x.shape[0] - a):
        t += x[i] * s
        a += 1
    m, u = 0, 1.0
    while m < 3:
        m = m + 1
        for i in range(m):
            u = u * x[i]
            m = m + 1
    return s, t, u


@layer
def defaults(x: real["N"]):  # N=3
    k = 2.0

    def inner(v, w=x[0], z=k):
        return v * w + z

    g = lambda v, m=k: v * m  # noqa: E731
    k = 5.0
    x[0] = 9.0
    return g(x) * inner(x) + k


@layer
def tuples_written(x: real["N"], y: real["N"]):  # N=3
    for a in (x, y):
        a *= 2
    for k, a in enumerate([x, y]):
        a[0] += k * x[1]
    for a, b in zip((x, y), (y, x)):
        a[1] += b[0] * b[1]
    for a in reversed((x, y)):
        a -= y[2] * x[0]
    return x, y


@layer
def rest(x: real["N"], w: Param[real["N"]]):  # N=3
    return scaled(x) + scaled(x, 3.0, w) + scaled(x, w, w, x[0])


@layer
def stepped(x0: real["N"], *, n: int = 3):  # N=3
    x, h, m = x0, x0[0], x0
    for _ in range(n):
        x = step(x)
        h, m = step(h), m * step(x)
    return x, h, m


@layer
def kept_as_copies(x: real["N M"], y: real["N M"]):  # N=2 M=3
    a, b, c = x.flatten(), np.asarray(y), np.array(x)
    a += 1
    b *= x
    c[0] = 5.0
    d = np.tile(x, (2, 1))
    d -= 1
    return a, x * b, y * c, d * d, x * y


@layer
def small_places(x: real["2 2"]):  # edge=-
    ys = [x[0] * 2]
    for _ in range(2):
        ys.append(ys[-1] + 1.0)
        ys[-1] *= 2.0
    z = np.zeros(2)
    for i in range(2):
        part = np.zeros((i + 1, 2))
        part[-1] += x[i]
        z += np.sum(part * part, axis=0)
    return np.stack(ys), z


@layer
def booleans_taken_away(x: real["N"]):  # N=3
    i = np.arange(x.shape[0])
    i -= x > 0
    return x * i
@layer
def parts_in_a_branch(x: real["N"], g: real):  # N=5
    s = 0.0 * g
    if g < 2.0:
        for i in range(x.shape[0]):
            if x[i] > 0:
                part = np.tanh(x[i:] * g)
                s += np.sum(part * part)
    return s
