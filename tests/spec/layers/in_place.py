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


# -- what a rule reads of a result is the result as it was made ----------------------------------------------------
@layer
def raised(x: real["N"]):  # N=4
    y = np.exp(x)
    y += 1
    return y


@layer
def first_of_all(x: real["N"]):  # N=4
    y = np.exp(x)
    y[0] += x[1]
    return np.sum(y * y)


@layer
def tail_of_tanh(x: real["N"]):  # N=4
    y = np.tanh(x)
    y[1:] += x[1:]
    return y


@layer
def running_roots(x: real["N"]):  # N=4 low=0.5 high=2
    y = np.sqrt(x)
    for i in range(1, len(x)):
        y[i] += y[i - 1]
    return y


@layer
def quotient_written(x: real["N"], a: real):  # N=4 low=0.5 high=2
    y = x / a
    y[0] -= x[1]
    return y


@layer
def view_of_sigmoid(x: real["N"]):  # N=4
    y = 1 / (1 + np.exp(-x))
    z = y[1:]
    z += x[1:]
    return y


@layer
def doubled_where_positive(x: real["N"]):  # N=4
    y = np.exp(x)
    if x[0] > 0:
        y[0] *= 2.0
    return y * y


@layer
def softened_but_one(x: real["N M"]):  # N=3 M=4
    s = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        e = np.exp(x[i])
        e[0] = 0
        e /= np.sum(e)
        s[i] = np.max(e)
    return s


@layer
def chain_in_place(x: real["N"]):  # N=4 low=0.5 high=2
    y = np.maximum(x, 0.1)
    y = np.log(y)
    y[0] += 2 * x[1]
    y = np.exp(y)
    y *= x
    return y


@layer
def normalised_by_first(a: real["3"]):  # low=0.5 high=2
    return a / a[0]


@layer
def sizes_of_each_round(x: real["N"], w: real["N"]):  # N=4
    d_c = w * 1
    d_x = np.zeros_like(x)
    for i in reversed(range(len(x) - 1)):
        part = d_c[i + 1 :].copy()
        d_c[i + 1 :] = 0
        d_x[i] += np.sum(part * x[i + 1 :])
        d_x[i + 1 :] += part * x[i]
    part = d_x * 1
    d_x[...] = 0
    return part * x + d_x


@layer
def correlation(data: real["N M"]):  # N=4 M=3
    n, m = data.shape
    x = data - data.mean(axis=0)
    x /= np.sqrt(float(n)) * data.std(axis=0)
    c = np.eye(m)
    for i in range(m - 1):
        c[i + 1 :, i] = c[i, i + 1 :] = x[:, i] @ x[:, i + 1 :]
    return c


@layer
def scaled_but_the_last(z: real["K M"]):  # K=4 M=3 edge=1
    z[:-1] *= np.concatenate([np.full((z.shape[0] - 1, 1), 0.5), np.tri(z.shape[0] - 1, 1)], axis=1)[:, :1]
    return z


@layer
def element_on_a_path(w: real[""], g: real["1"], on: bool = True):  # low=0.5 high=2
    if on:
        g[0] = w * w
    return np.concatenate([g, np.reshape(w, 1)])


def second_set(p):
    p[1] = 1.0
    return p


# einsum of one array without a sum is a view of it, conj of real numbers is the array
@layer
def einsum_shows(b: real["N"], c: real["N N"]):  # N=3
    v = np.einsum("a->a", b) / second_set(b)
    d = np.einsum("ij->ji", c)
    d[0] = d[1] * 2
    e = c.conj()
    e[1] = 3.0
    return v, b, np.einsum("ii->i", c) * c, np.einsum("ii", c)
