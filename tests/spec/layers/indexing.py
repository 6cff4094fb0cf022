"""Indexing: ints, slices, ..., None, gather, scatter, masks."""

import numpy as np

from layerc import bool_, i64, layer, real


@layer
def integers(x: real["A B C"]):  # A=2 B=3 C=4 edge=1
    return x[0], x[-1, 0], x[0, -1, -1], x[:, 0], x[..., -1], x[0, ..., 0], x[0][0][0]


@layer
def slices(x: real["N M"]):  # N=7 M=5
    return x[1:], x[:-1], x[::2], x[::-1], x[5:1:-2], x[-3:], x[1:4, ::3], x[:, -2:], x[10:], x[:100], x[3:2]


@layer
def slices_loop_bounds(a: real["N N"]):  # N=5
    n = a.shape[0]
    s = np.zeros(n)
    for i in range(n):
        s[i] += a[i, :i] @ a[:i, i]
        s[i] += np.sum(a[i, i + 1 :]) + np.sum(a[i:, i]) * 2
        for j in range(i + 1):
            s[j] += np.sum(a[i, j : i + 1] * a[j : i + 1, j])
            s[i] += np.sum(a[j, i - j :])
    return s


@layer
def slices_stored(x: real["N N"]):  # N=5
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i, :i] = x[i, :i] * 2
        y[i, i:] += x[i, i:] ** 2
        y[: i + 1, i] += 1
    y[1::2, ::2] = 3.0
    y[::-1][1:] += x[:-1]
    return y


@layer
def empty_slices(x: real["N"]):  # N=4
    s = 0.0
    for i in range(x.shape[0]):
        s += np.sum(x[i:i]) + np.sum(x[i + 1 :]) + np.prod(x[:i])
    return s, x[2:2], np.sum(x[:0])


@layer
def window(x: real["N"], *, k: int = 3, s: int = 2):  # N=9 edge=-
    n = (x.shape[0] - k) // s + 1
    y = np.zeros(n)
    for i in range(n):
        y[i] = np.max(x[i * s : i * s + k])
    return y


@layer
def new_axes(x: real["N"], y: real["M"]):  # N=3 M=4
    return x[:, None] * y[None, :], x[np.newaxis, :, np.newaxis], x[None] * 2, x[..., None] + y, y[None, ..., None][0]


@layer
def gathers(x: real["N M"], i: i64["K"], j: i64["K"]):  # N=3 M=4 K=5 ints=-3:3 edge=-
    return x[i], x[:, j], x[i, j], x[i][:, j], x[i, 0], x[-1, j], x[i, 1:3], x[..., j]


@layer
def gathers_two_dims(x: real["N M"], i: i64["K L"]):  # N=3 M=2 K=2 L=3 edge=-
    return x[i], x[i, :1], x[:, i[0] % 2]


@layer
def gather_grid(x: real["N M"], i: i64["K"], j: i64["L"]):  # N=3 M=3 K=2 L=4 edge=-
    return x[i[:, None], j[None, :]], x[i[:, None], j]


@layer
def gather_literal(x: real["5 M"]):  # M=2 edge=-
    return x[[0, 2, 4]], x[np.array([1, 1, 3])], x[(0, 1)] if x.shape[1] > 1 else x[0, 0]


@layer
def scatters(x: real["N M"], w: real["K M"], i: i64["K"], j: i64["K"]):  # N=4 M=3 K=5 edge=-
    y = np.zeros_like(x)
    np.add.at(y, i, w)
    np.add.at(y, (i, j), w[:, 0] * 2)
    return y


@layer
def scatter_store(x: real["N"], w: real["K"], i: i64["K"]):  # N=5 K=3 edge=-
    y = x * 1
    y[i] = w
    z = x * 1
    z[i] += w
    z[i] *= 2
    return y, z


@layer
def masked_stores(x: real["N M"], v: real[""]):  # N=3 M=4
    y = x * 1
    y[y > 1] = v
    y[x < 0] *= 2
    m = np.isfinite(x) & (x > -1)
    y[m] += 1
    y[~m] = 0
    y[np.sum(x, axis=1) > 0] = v * 2
    return y


@layer
def masked_in_part(x: real["N M"]):  # N=3 M=4 edge=1
    y = x * 1
    row = y[0]
    row[row > 0] = 0.5
    y[1:][y[1:] < 0] = -1
    return y


@layer
def nested_gather(table: real["V D"], i: i64["T"]):  # V=4 D=3 T=5 edge=-
    s = np.zeros(table.shape[1])
    for t in range(i.shape[0]):
        s = np.tanh(s + table[i[t]])
    return s


@layer
def index_arrays_computed(x: real["N"], y: real["N"]):  # N=5 edge=1
    order = np.argsort(x)
    inverse = np.argsort(order)
    return y[order], y[inverse] * x, x[np.arange(x.shape[0])], x[np.clip(np.arange(-1, x.shape[0] + 1), 0, x.shape[0] - 1)]


@layer
def where_three_forms(x: real["N M"], c: bool_["N 1"]):  # N=3 M=4
    return np.where(c, x, 0), np.where(x > 0, 1.0, -1.0) * x, np.where(True, x, 2 * x), np.where(c, 1, 2)


@layer
def best_row(x: real["N M"]):  # N=4 M=3 edge=1
    k = np.argmax(np.sum(x, axis=1))
    j = np.argmin(x, axis=1)
    return x[k], x[np.arange(x.shape[0]), j], k


@layer
def slice_of_slice(x: real["N M"]):  # N=6 M=5
    return x[1:][:-1][::2], x[::-1][1:], x[:, 1:][:, ::-1][2:], x[1:-1, 1:-1].T[1:]


@layer
def ellipsis_store(x: real["A B C"]):  # A=2 B=3 C=4 edge=1
    y = np.zeros_like(x)
    y[..., 0] = x[..., 1] if x.shape[2] > 1 else x[..., 0]
    y[0, ...] += x[-1]
    y[...] = y * 2 + x
    y[:] += 1
    return y


@layer
def arguments_written_through_views(x: real["N M"], y: real["N M"], z: real["N M"]):  # N=3 M=4 edge=1
    def fill(v):
        v[0] = 3.0

    row = x[0]
    row += 1
    flat = y.reshape(-1)
    flat[0] = 7
    for column in z.T:
        column *= 2
    fill(z[-1])
    return x * y * z
