"""Functions that move elements, in every way NumPy lets them be called."""

import numpy as np

from layerc import Array, Bool, Float, Float32, Int64, Param, bool_, f32, f64, i32, i64, layer, real


@layer
def reshape_forms(x: real["A B C"]):  # A=2 B=3 C=4 edge=1
    a = np.reshape(x, (x.shape[0], -1))
    b = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
    c = x.reshape((-1,))
    d = np.reshape(x, -1)
    e = x.ravel()
    f = np.ravel(x)
    return a * 2, b * 3, c + d * e - f


@layer
def transposes(x: real["A B C"]):  # A=2 B=3 C=4
    a = np.transpose(x)
    b = x.T
    c = x.transpose(2, 0, 1)
    d = np.transpose(x, (2, 0, 1))
    e = x.transpose((1, 0, 2))
    f = np.swapaxes(x, 0, -1)
    g = x.swapaxes(-1, 1)
    h = np.moveaxis(x, 0, -1)
    k = np.moveaxis(x, -1, 0)
    m = np.transpose(x, axes=(0, 2, 1))
    return a * b + f, c * d, e * e, g * 2 + m, h * h, k * 1.5


@layer
def move_several(x: real["A B C D"]):  # A=2 B=3 C=4 D=2
    return np.moveaxis(x, (0, 1), (-1, -2)) * 2, np.moveaxis(x, [0, 2], [2, 0])


@layer
def extra_axes(x: real["A B"]):  # A=2 B=3
    a = np.expand_dims(x, 0)
    b = np.expand_dims(x, -1)
    c = np.expand_dims(x, axis=(0, 2))
    d = x[None, :, None, ..., None]
    e = np.squeeze(a, 0)
    f = np.squeeze(c, axis=(0, 2))
    g = np.squeeze(d, axis=(0, -1))
    h = b.squeeze(-1)
    return a * 1, b * 2, c * 3, d * 4, e + h * f, g * x[:, None, :]


@layer
def squeeze_declared(x: real["1 N 1"]):  # N=3 edge=0
    return x.squeeze((0, 2)), np.squeeze(x, axis=-1), x.squeeze(axis=0)


@layer
def spread_out(x: real["N"], s: real[""]):  # N=3
    a = np.broadcast_to(x, (2, x.shape[0]))
    b = np.broadcast_to(s, x.shape)
    c = np.broadcast_to(x[:, None], (x.shape[0], 4))
    return a * 2, b + x, c


@layer
def concatenated(x: real["A B"], y: real["C B"]):  # A=2 B=3 C=4
    a = np.concatenate([x, y])
    b = np.concatenate((x, x * 2), axis=1)
    c = np.concatenate([x, y, x], axis=0)
    d = np.concatenate((x.T, y.T), -1)
    return a, b, c * c, d


@layer
def stacked(x: real["A B"], y: real["A B"]):  # A=2 B=3
    return np.stack([x, y]), np.stack((x, y, x * y), axis=1), np.stack([x, y], axis=-1), np.stack([x[0], y[1]])  # noqa


@layer
def stacked_pairs(x: real["A B"], y: real["A B"]):  # A=2 B=3
    a = np.stack([x, y], -1)
    b, c = np.split(np.concatenate([x, y], axis=1), 2, axis=1)
    return a * 2 + np.stack((y, x), axis=2), b - c


@layer
def split_fixed(x: real["N 6"]):  # N=2
    a, b, c = np.split(x, 3, axis=1)
    d, e = np.split(x, [2], axis=-1)
    f, g, h = np.split(x, [1, 4], axis=1)
    return a + b * c, d * e[:, :2], f * h[:, :1] + g[:, :1]


@layer
def split_names(x: real["3*H"]):  # H=4
    i, f, o = np.split(x, 3)
    return i * f + o


@layer
def tiled(x: real["A B"]):  # A=2 B=3
    return np.tile(x, 2), np.tile(x, (2, 1)), np.tile(x, (2, 1, 3))


@layer
def repeated(x: real["A B"]):  # A=2 B=3
    return np.repeat(x, 2), np.repeat(x, 3, axis=0), np.repeat(x, 2, axis=-1), x.repeat(2, axis=1) * 2


@layer
def padded(x: real["A B"]):  # A=2 B=3
    a = np.pad(x, 1)
    b = np.pad(x, (1, 2))
    c = np.pad(x, ((1, 2), (0, 1)))
    d = np.pad(x, ((0, 1), (2, 0)), constant_values=1.5)
    return a * 2, b, c * c, d


@layer
def padded_modes(x: real["A B"]):  # A=3 B=4 edge=-
    return np.pad(x, 1, mode="edge"), np.pad(x, ((1, 2), (1, 1)), mode="reflect"), np.pad(x, (2, 1), mode="wrap"), np.pad(x, 2, "symmetric")


@layer
def flipped(x: real["A B C"]):  # A=2 B=3 C=4
    return np.flip(x), np.flip(x, 1), np.flip(x, axis=(0, -1)), x[::-1, ::2] * 2, np.flip(x, axis=-1)


@layer
def rolled(x: real["A B"]):  # A=3 B=4
    return np.roll(x, 1), np.roll(x, -2, axis=1), np.roll(x, 5, axis=0), np.roll(x, (1, 2), axis=(0, 1))


@layer
def taken(x: real["A B"], i: i64["K"]):  # A=3 B=3 K=4 edge=1
    return np.take(x, i, axis=0), np.take(x, i, axis=1), np.take(x, i), x.take(i, axis=-1), x[i] * 2, x[:, i], x[i, i]


@layer
def taken_along(x: real["A B"], i: i64["A K"]):  # A=3 B=4 K=2 ints=-4:4 edge=-
    return np.take_along_axis(x, i, axis=1) * 2, np.take_along_axis(x, i, -1)


@layer
def sorted_by_another(x: real["A B"], y: real["A B"]):  # A=3 B=4
    order = np.argsort(x, axis=-1)
    return np.take_along_axis(y, order, axis=-1) * np.sort(x, axis=-1)


@layer
def diagonals(x: real["N N"], y: real["N M"]):  # N=3 M=4
    return np.diagonal(x), x.diagonal() * 2, np.diagonal(x, 1), np.diagonal(x, offset=-1), np.trace(x)


@layer
def diagonals_of_rectangle(y: real["3 4"]):  #
    return np.diagonal(y), np.diagonal(y, 1), np.diagonal(y, -1), np.trace(y), np.trace(y, offset=1)


@layer
def diagonals_of_stack(y: real["A N N"]):  # A=2 N=3
    return np.diagonal(y, axis1=1, axis2=2), np.diagonal(y, 0, 1, 2) * 2, np.trace(y, axis1=1, axis2=2)


@layer
def triangles(x: real["N M"]):  # N=3 M=4
    return np.tril(x), np.triu(x), np.tril(x, -1), np.triu(x, k=1), np.tril(x, k=2) * 2


@layer
def triangles_of_stack(x: real["A N N"]):  # A=2 N=3
    return np.tril(x), np.triu(x, 1)


@layer
def made(x: real["N M"]):  # N=3 M=4
    n = x.shape[0]
    a = np.zeros((n, 2)) + np.ones(2) * np.sum(x)
    b = np.full((n,), 2.5) * np.sum(x, axis=1)
    c = np.eye(n) * np.sum(x)
    d = np.zeros_like(x) + np.ones_like(x) * x
    e = np.full_like(x, 3) * x
    f = np.arange(n) * np.sum(x, axis=1)
    g = np.linspace(0, 1, 5) * np.sum(x)
    h = np.empty_like(x)
    h[...] = x * 2
    return a, b, c, d, e, f, g, h


@layer
def aranges(x: real["N"]):  # N=5
    n = x.shape[0]
    return np.arange(n) * x, np.arange(1, n + 1) * x, np.arange(0, 2 * n, 2) * x, np.arange(n - 1, -1, -1) * x


@layer
def eyes(x: real["N"]):  # N=3
    n = x.shape[0]
    return np.eye(n, n + 1) * 2, np.eye(n, k=1) + x, np.eye(n, dtype=np.float64), np.identity(n) * x


@layer
def linspaces(lo: real[""], hi: real[""]):  #
    return np.linspace(lo, hi, 7), np.linspace(lo, 1, 3), np.linspace(-1.0, 1.0, 5, endpoint=False)


@layer
def empties(x: real["N"]):  # N=4
    y = np.empty(x.shape)
    for i in range(x.shape[0]):
        y[i] = x[i] * i
    z = np.empty((x.shape[0], 2), dtype=x.dtype)
    z[:, 0] = x
    z[:, 1] = y
    return z


@layer
def typed_makers(x: real["N"]):  # N=4
    a = np.zeros(x.shape[0], dtype=np.int64)
    b = np.ones(x.shape, dtype=bool)
    c = np.arange(x.shape[0], dtype=np.int32)
    d = np.zeros(x.shape, dtype=x.dtype)
    e = np.full(x.shape[0], 2, dtype=np.float32)
    return a, b, c, d + x, e, np.zeros_like(x, dtype=np.int64), np.zeros_like(a, dtype=x.dtype) + x


@layer
def facts(x: real["A B C"]):  # A=2 B=3 C=4
    return x * x.ndim + x.size, len(x) * x, x * x.shape[-1] + len(x.shape), x.shape[0] * x.shape[1]


@layer
def copies(x: real["N"]):  # N=4
    y = x.copy()
    y[0:1] = 0
    z = np.copy(x)
    z[:2] *= 3
    return x * y * z


@layer
def casts(x: real["N"], i: i64["N"], b: bool_["N"]):  # N=4
    return x.astype(np.int64), i.astype(x.dtype) * x, b.astype(float), i.astype(np.float32), x.astype(np.float64), b.astype(int) + i, x.astype(bool), i.astype(bool)


@layer
def jaxtyping_spelling(x: Float[Array, "C *S"], y: Float32[Array, "C"], i: Int64[Array, "C"], b: Bool[Array, "C"]):  # C=3 S=2x2 kink
    return x * np.where(b, i, 1)[:, None], y + 1


@layer
def group_is_flat(x: real["C *S"], w: Param[real["C"]]) -> real["C *S"]:  # C=3 S=2x4
    return x * w[:, None] + x.ndim + x.shape[1]


@layer
def two_of_one_group(x: real["*S"], y: real["*S"]) -> real["*S"]:  # S=2x3
    return x * y + x.shape[0]


@layer
def group_reduced(x: real["C *S"]) -> real["C"]:  # C=2 S=2x3
    return np.mean(x, axis=1) + np.sum(x * x, -1)


@layer
def group_in_front(x: real["*S C"], w: real["C K"]) -> real["*S K"]:  # S=2x3 C=3 K=2
    return x @ w


@layer
def any_extents(x: real["_ _"], y: real["_"]):  #
    return x * 2, y * y


@layer
def expression_extents(x: real["H"], w: real["K"]) -> real["H-K+1"]:  # H=6 K=3
    y = np.zeros(x.shape[0] - w.shape[0] + 1)
    for i in range(x.shape[0] - w.shape[0] + 1):
        y[i] = x[i : i + w.shape[0]] @ w
    return y


@layer
def strided_extents(x: real["H"], *, k: int = 3, s: int = 2, pad: int = 1) -> real["(H+2*pad-k)//s+1"]:  # H=7 edge=1
    p = np.pad(x, pad)
    n = (x.shape[0] + 2 * pad - k) // s + 1
    y = np.zeros(n)
    for i in range(n):
        y[i] = np.max(p[i * s : i * s + k])
    return y


@layer
def fixed_and_doubled(x: real["3 N"], y: real["2*N"]) -> real["2*N"]:  # N=2
    return y * np.concatenate([x[0], x[2]])


@layer
def named_outputs(x: real["N"]) -> {"double": real["N"], "total": real[""]}:  # N=3
    return x * 2, np.sum(x)


@layer
def tuple_outputs(x: real["N"], k: i64["N"]) -> tuple[real["N"], i64["N"], bool_["N"], real[""]]:  # N=3
    return x * k, k + 1, x > 0, x.sum()


@layer
def own_types(a: f32["N"], b: f64["N"], c: i32["N"], d: i64["N"]):  # N=3 kink
    return a * 2, b * 2, c * 2, d * 2, a + b, c + d, a + c, b + c


@layer
def ones_of_a_part_of_a_part(q: real["N M"]):  # N=4 M=3
    n = q.shape[0]
    u = q[:-1]
    if n >= 2:
        u[1:] = np.ones((n - 2, q.shape[1]))
    return u * 2 + q[1:]


# N - 1 and the length of x[1:], which is never below 0, are one extent
@layer
def shorter_by_one_on_a_branch(x: real["N"], s: real[""]):  # N=4
    if s > 0:
        y = np.ones(x.shape[0] - 1) * s
        z = x[1:]
    else:
        y = x[1:] * x[:-1]
        z = np.zeros(x.shape[0] - 1)
    return y * s + y * y, z * z


@layer
def shorter_by_one_in_a_loop(x: real["N"], s: real["K"]):  # N=4 K=3
    y = x[1:] * 2
    z = np.zeros(x.shape[0] - 1)
    for a in s:
        y = np.ones(x.shape[0] - 1) * a + y * x[0]
        if a > 0:
            y = x[:-1]
        z = z * 0.5 + x[1:] * y
    return y * z


@layer
def shorter_by_one_joined(x: real["N K"], s: real["K"]):  # N=4 K=3
    zs = [np.zeros(x.shape[0] - 1)]
    for a in s:
        zs.append(x[1:, 0] * a * zs[0])
        zs.append(np.ones(x.shape[0] - 1) * a)
    both = np.concatenate([x[1:], np.ones((x.shape[0] - 1, 2)) * s[0]], axis=1)
    return np.stack(zs), both * both, np.tensordot(np.ones(x.shape[0] - 1), x[1:], axes=([0], [0]))
