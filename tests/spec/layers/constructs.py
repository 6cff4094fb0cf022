"""Small functions of every construct, as different people would write them."""

import math

import numpy as np
from scipy import special

from layerc import Param, bool_, i32, i64, layer, real

EPS = 1e-3
KERNEL = ((1.0, 2.0, 1.0), (0.0, 0.5, 0.0), (-1.0, -2.0, -1.0))
OFFSETS = [(-1, 0), (1, 0), (0, -1), (0, 1)]
ORDERS = np.array([2, 0, 1])


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def bump(a, amount=0.5, *, twice=False):
    a += amount
    if twice:
        a += amount
    return a


@layer
def annotated_locals(x: real["N"]):  # N=4
    s: float = 0.0
    n: int = x.shape[0]
    for i in range(n):
        s += x[i] ** 2
    return s / max(n, 1)


@layer
def passes_and_docs(x: real["N"], s: real):  # N=3
    """Doc."""
    if s > 0:
        pass
    else:
        x = x * 2
    "a string that is a comment"
    for _ in range(2):
        pass
    return x


@layer
def deleted(x: real["N"]):  # N=3
    t = x * x
    y = t + 1
    del t
    return y


@layer
def keyword_only(x: real["N"], *, scale: float = 2.0, shift: float = 0.5, on: bool = True):  # N=3
    return x * scale + shift if on else x


@layer
def default_helpers(x: real["N"]):  # N=3
    return bump(x.copy()), bump(x.copy(), 0.1), bump(x.copy(), amount=1.0, twice=True), bump(x, twice=True), x


@layer
def closures(x: real["N"], a: real):  # N=3
    def scale(v, by=2.0):
        def inner(u):
            return u * by * a

        return inner(v) + a

    twice = lambda f, v: f(f(v))
    return twice(scale, x), twice(lambda v: v * a, x)


@layer
def closure_writes(x: real["N"], y: real["N"]):  # N=4
    def push(i, v):
        y[i] += v
        y[i - 1] -= 0.5 * v

    for i in range(x.shape[0]):
        push(i, x[i])
    return y


@layer
def chained(x: real["N"], lo: real, hi: real):  # N=6 kink
    total = 0.0
    for v in x:
        if lo < v <= hi:
            total += v
        elif not (lo < v):
            total -= 2 * v
    return total


@layer
def and_or_values(x: real["N"]):  # N=6
    c = 0.0
    for i in range(x.shape[0]):
        if i > 0 and x[i - 1] > x[i] or i == 0:
            c += x[i] * x[i]
        if not (i + 1 < x.shape[0] and x[i + 1] > 0):
            c -= 0.1 * x[i]
    return c


@layer
def early_return(x: real["N"], t: real):  # N=5
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
        if total > t + 2.5:
            return total * i, x * total
    return total, x


@layer
def early_return_nested(x: real["N M"]):  # N=3 M=3
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1.2:
                return x[i] * x[i, j]
            if x[i, j] < -1.8:
                break
        else_value = x[i, 0]
        if else_value > 1.9:
            continue
    return x[0] * 0.5 if x.shape[0] > 0 else np.zeros(x.shape[1])


@layer
def appended_in_while(x: real["N"]):  # N=4
    states = []
    i = 0
    h = 0.0
    while i < x.shape[0]:
        h = np.tanh(h + x[i])
        states.append(h)
        i += 1
    total = 0.0
    while i > 0:
        total = total * 0.5 + states.pop()
        i -= 1
    return total


@layer
def stacked_states(x: real["T D"], w: Param[real["D D"]]):  # T=4 D=2 edge=1
    h = np.zeros(x.shape[1])
    hs = [h]
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + w @ h)
        hs.append(h)
    return np.stack(hs[1:]), np.array(hs).sum(axis=0)


@layer
def comprehension_sum(x: real["N"], w: real["3"]):  # N=4
    return sum(w[k] * x**k for k in range(3)), np.array([np.sum(x * k) for k in range(4)])


@layer
def horner(x: real["N"], c: real["K"]):  # N=4 K=4
    y = np.zeros_like(x)
    for a in reversed(c):
        y = y * x + a
    return y


@layer
def horner_scalar(x: real, c: real["K"]):  # K=4
    y = 0.0
    for k in range(len(c) - 1, -1, -1):
        y = y * x + c[k]
    return y


@layer
def augmented_views(x: real["N M"]):  # N=4 M=3 edge=-
    top, rest = x[:2], x[2:]
    top *= 2
    rest[:, ::2] -= top[0, ::2]
    column = x[:, 1]
    column += x[:, 0]
    column[1:] *= column[:-1]
    x.T[2] /= 2
    return x


@layer
def augmented_all(x: real["N"], y: real["N"]):  # N=4 low=0.5 high=2
    a = x.copy()
    a += y
    a -= 0.5 * y
    a *= x
    a /= y
    a **= 2
    a[1:] **= 2
    b = x.copy()
    b[...] -= a
    b[::-1] += y
    return a, b


@layer
def floor_and_mod(x: real["N"], k: i64["N"]):  # N=6 ints=1:5
    return x // 0.7, x % 0.7, np.mod(x, k), k // 2, k % 3, -k // 2, -k % 3


@layer
def bits(k: i64["N"], m: i32["N"], b: bool_["N"]):  # N=5 ints=0:9
    return k & 3, k | m, k ^ 5, ~k, k << 2, k >> 1, b & (k > 2), b | ~b, b ^ (m > 3)


@layer
def crc_table(data: i64["N"]):  # N=6 ints=0:256
    crc = 0xFFFF
    for i in range(data.shape[0]):
        crc ^= data[i]
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
    return crc ^ 0xFFFF


@layer
def int_reductions(k: i64["N M"]):  # N=3 M=4 edge=1
    return k.sum(), k.max(axis=0), np.prod(k, axis=1), np.cumsum(k), k.argmax(), np.any(k > 1, axis=1), np.sort(k, axis=1)


@layer
def weak_scalars(x: real["N"], k: i32["N"]):  # N=3
    return 2 * x, 0.1 + x, x / 3, x * math.pi, True * x, k + 1, k * 2.5


@layer
def casts_between(x: real["N"], k: i64["N"]):  # N=4
    return x.astype(np.int64) + k, k.astype(x.dtype) * x, (x > 0).astype(x.dtype) * x, np.float64(k), x.astype(int)


@layer
def mixing_integers(x: real["N"], k: i64["N"], b: bool_["N"]):  # N=4
    return x * k + b, np.where(b, x, k), x / (k + 1), x**k


@layer
def broadcasting(x: real["A 1 C"], y: real["B C"], z: real["B 1"]):  # A=2 B=3 C=2
    return x + y * z, x * z, x[:, 0] * 2, np.maximum(x, y), np.where(y > z, y, z)


@layer
def einsum_forms(a: real["N M"], b: real["M K"], c: real["N M"], v: real["N"], w: real["M"]):  # N=3 M=2 K=4
    return (
        np.einsum("ij,jk->ik", a, b),
        np.einsum("ij,ij->", a, c),
        np.einsum("ij,ij->i", a, c),
        np.einsum("i,ij,j->", v, a, w),
        np.einsum("ij->ji", a),
        np.einsum("ij->j", a),
        np.einsum("i,j->ij", v, w),
        np.einsum("ij,jk", a, b),
        np.einsum("...j,jk->...k", a, b),
    )


@layer
def einsum_traces(a: real["N N"], t: real["B N N"]):  # N=3 B=2
    return np.einsum("ii->i", a), np.einsum("ii", a), np.einsum("bii->b", t), np.einsum("bij,bjk,kl->bil", t, t, a)


@layer
def products(a: real["N K"], b: real["K M"], v: real["K"], t: real["B N K"]):  # N=2 K=3 M=2 B=2
    return a @ b, a @ v, v @ b, v @ v, t @ b, np.matmul(t, v), np.dot(t, v), np.inner(a, v), np.tensordot(t, b, 1), np.outer(v, v)


@layer
def products_in_place(a: real["N N"], v: real["N"]):  # N=3
    for _ in range(2):
        v = a @ v / (1 + np.linalg.norm(v))
        a = 0.5 * (a + np.outer(v, v)) @ a.T
    a -= a.T @ a * 0.01
    return a, v


@layer
def reductions(x: real["A B C"]):  # A=2 B=3 C=2 edge=1
    return (
        x.sum(axis=(0, -1)),
        x.mean(axis=-2, keepdims=True),
        np.var(x, axis=0),
        np.std(x, axis=(1, 2)),
        x.min(),
        np.amax(x, axis=(0, 2), keepdims=True),
        np.prod(x, axis=1),
        np.linalg.norm(x, axis=-1),
        np.linalg.norm(x),
        np.max(x, axis=1) - np.min(x, axis=1),
    )


@layer
def tied_extremes(x: real["N"]):  # N=5 kink
    y = np.round(x)
    return np.max(y), np.min(y), np.maximum(y, 0), np.clip(y, -1, 1), np.abs(y), np.sort(y)


@layer
def scanning(x: real["N M"]):  # N=3 M=4
    return np.cumsum(x), np.cumsum(x, axis=1), np.cumprod(x, axis=0), x.cumsum(axis=-1)[:, ::-1]


@layer
def negative_steps(x: real["N M"]):  # N=5 M=4
    return x[::-1], x[:, ::-2], x[::-1, ::-1], x[3:0:-1], x[-1::-1, 1:-1], x[-2::-2]


@layer
def negative_step_stores(x: real["N"], y: real["N"]):  # N=6
    y[::-1] = x
    y[::2] += 1.0
    y[::-1][1:] *= 2
    return y


@layer
def ellipses(x: real["A B C"]):  # A=2 B=3 C=2 edge=1
    y = np.zeros_like(x)
    y[..., 0] = x[..., -1]
    y[0, ...] += x[-1]
    y[..., None][:, 0, ..., 0] *= 3.0
    return y, x[..., None, :].sum(axis=-1), x[:, None][:, 0], x[..., ::-1]


@layer
def gathers_more(x: real["N M"], i: i64["K"], j: i64["K"]):  # N=4 M=3 K=5
    return x[i], x[i, j], x[:, j], x[i][:, j], np.take(x, i, axis=0), x[i, 0], x[i[0], j] if i.shape[0] > 0 else x[0, j]


@layer
def scatter_more(x: real["K"], i: i64["K"], y: real["N"]):  # K=5 N=4
    np.add.at(y, i, x)
    y[i] += 1.0
    z = np.zeros((3, y.shape[0]))
    np.add.at(z, (0, i), x * x)
    for k in range(x.shape[0]):
        z[1, i[k]] += x[k]
        z[2, i[k]] = x[k]
    return y, z


@layer
def take_along(x: real["N M"]):  # N=3 M=4 edge=1
    order = np.argsort(x, axis=1)
    best = np.argmax(x, axis=1)
    return np.take_along_axis(x, order, axis=1), np.take_along_axis(x, best[:, None], axis=1)[:, 0], x[np.arange(x.shape[0]), best]


@layer
def where_and_masks(x: real["N M"], m: bool_["N M"]):  # N=3 M=4
    y = np.where(m, x, -np.inf)
    z = np.where(m, 1 / x, 0)
    x[m] = 0.0
    x[x > 1] = 1.0
    x[~m & (x < 0)] *= 2
    return np.max(np.where(np.isinf(y), 0, y)), z, x


@layer
def safe_where(x: real["N"]):  # N=6
    return np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0), np.where(x > 0, np.log(x), x), np.where(x == 0, 0, np.sin(x) / x)


@layer
def shapes_more(x: real["A B C"]):  # A=2 B=3 C=2 edge=1
    A, B, C = x.shape
    return (
        x.reshape(A, -1),
        x.transpose(2, 0, 1),
        np.moveaxis(x, 0, -1),
        x.swapaxes(0, 2).reshape(-1),
        np.concatenate([x, x[:, :1]], axis=1),
        np.stack([x, 2 * x], axis=-1),
        np.repeat(x, 2, axis=1),
        np.tile(x[0], (2, 1)),
        np.roll(x, 1, axis=2),
        np.flip(x, (0, 2)),
        np.pad(x, ((0, 0), (1, 2), (0, 0))),
        np.broadcast_to(x[:, :1], (A, B, C)),
        x[None].squeeze(0),
        np.expand_dims(x, (0, 2)),
    )


@layer
def splits(x: real["N M"]):  # N=4 M=6 edge=-
    a, b = np.split(x, 2, axis=1)
    c, d, e = np.split(x, [1, 3])
    return a * b, c, d, e


@layer
def split_gates(x: real["4*H"]):  # H=3
    i, f, g, o = np.split(x, 4)
    return sigmoid(i) * np.tanh(g) + sigmoid(f) * sigmoid(o)


@layer
def split_gates_columns(x: real["N 3*H"]):  # N=2 H=2
    H = x.shape[1] // 3
    return x[:, :H] * x[:, H : 2 * H] + x[:, 2 * H :]


@layer
def heads(x: real["T D"], w: Param[real["D 3*D"]], *, h: int = 2):  # T=3 D=4 edge=-
    T, D = x.shape
    d = D // h
    q, k, v = np.split(x @ w, 3, axis=-1)
    q, k, v = (a.reshape(T, h, d).transpose(1, 0, 2) for a in (q, k, v))
    p = special.softmax(q @ k.transpose(0, 2, 1) / np.sqrt(d), axis=-1)
    return (p @ v).transpose(1, 0, 2).reshape(T, D)


@layer
def linear_algebra(a: real["N N"], b: real["N"], c: real["N K"]):  # N=3 K=2 edge=1
    m = a @ a.T + 2 * np.eye(a.shape[0])
    return np.linalg.solve(m, b), np.linalg.solve(m, c), np.linalg.inv(m), np.linalg.det(m), np.linalg.cholesky(m), np.trace(m)


@layer
def specials(x: real["N"]):  # N=4 low=0.2 high=0.8
    return special.erf(x), special.expit(x), special.logit(x), special.gammaln(x), special.logsumexp(x) if x.size else 0.0, special.xlogy(x, x)


@layer
def math_scalars(x: real):  #
    return math.sin(x) + math.exp(-x * x), math.floor(x), math.hypot(x, 1.0), math.sqrt(abs(x) + 1), math.tanh(x) ** 3, math.atan2(x, 2)


@layer
def builtins_more(x: real["N"]):  # N=4 edge=1
    return max(x[0], x[-1]), min(x[0], 0.0, x[1 % x.shape[0]]), abs(x[0]), sum(x), len(x), round(2.4), int(x[0] * 3), float(x.shape[0]), bool(x[0] > 0)


@layer
def loops_all(x: real["N M"], y: real["N"]):  # N=3 M=4
    total = 0.0
    for row in x:
        total += row.max() if row.shape[0] > 0 else 0.0
    for i, row in enumerate(x):
        total += i * np.sum(row)
    for i, (row, s) in enumerate(zip(x, y)):
        total += s * np.sum(row * row) / (i + 1)
    for a, b in zip(y[1:], y[:-1]):
        total += a * b
    for k in (1, 2, 5):
        total += k * y.sum()
    for di, dj in OFFSETS:
        total += di * y.sum() + dj
    for r in reversed(y):
        total = total * 0.9 + r
    return total


@layer
def while_values(x: real, target: real):  # low=0.5 high=3
    n = 0
    guess = x
    while abs(guess * guess - target) > 1e-2 and n < 50:
        guess = 0.5 * (guess + target / guess)
        n += 1
    return guess, n


@layer
def while_break(x: real["N"]):  # N=5
    i, s = 0, 0.0
    while True:
        if i >= x.shape[0]:
            break
        if x[i] < -1.5:
            i += 2
            continue
        s += np.sin(x[i]) * i
        i += 1
    return s


@layer
def tuples(x: real["N"]):  # N=4
    pair = (x, x * 2)
    (a, b), c = pair, 3.0
    a, b = b, a
    first, *others = (a, b, c)
    return first * others[1] + others[0], pair[1]


@layer
def ternary_arrays(x: real["N"], s: real):  # N=3
    y = x * 2 if s > 0 else x / 2
    z = s if s > 1 else (-s if s < -1 else s * s)
    return y * z


@layer
def stencil_constants(x: real["H W"]):  # H=5 W=4 edge=-
    y = np.zeros_like(x)
    for di in range(3):
        for dj in range(3):
            y[1:-1, 1:-1] += KERNEL[di][dj] * x[di : di + x.shape[0] - 2, dj : dj + x.shape[1] - 2]
    return y, x[ORDERS]


@layer
def neighbours(x: real["H W"]):  # H=4 W=3
    H, W = x.shape
    y = np.zeros_like(x)
    for i in range(H):
        for j in range(W):
            for di, dj in OFFSETS:
                if 0 <= i + di < H and 0 <= j + dj < W:
                    y[i, j] += x[i + di, j + dj]
    return y


@layer
def wrapped_neighbours(x: real["H W"]):  # H=4 W=3
    H, W = x.shape
    y = np.zeros_like(x)
    for i in range(H):
        for j in range(W):
            y[i, j] = x[(i + 1) % H, j] - x[i - 1, j] + x[i, (j + 1) % W] * x[i, j - 1]
    return y


@layer
def asserted(x: real["N"], *, k: int = 2):  # N=4
    assert k > 0, "k must be positive"
    assert x.shape[0] >= 0
    return x / k


@layer
def named_tuple_outputs(x: real["N M"]) -> {"rows": real["N"], "total": real[""], "count": i64[""]}:  # N=2 M=3
    return x.sum(axis=1), x.sum(), x.size


@layer
def group_of_axes(x: real["*S"], y: real["*S"]) -> tuple[real["*S"], real[""]]:  # S=2x3
    return x * y + np.sum(x), np.sum(x * y) / x.shape[0] if x.shape[0] > 0 else 0.0


@layer
def logistic_steps(x: real["N"], r: real):  # N=3 low=0.1 high=0.9
    for _ in range(5):
        x = r * 3 * x * (1 - x)
    return x


@layer
def reused_names(x: real["N"]):  # N=3
    y = x
    y = y * y
    x = y + x
    y[0 if y.shape[0] == 3 else -1] = 0 if y.shape[0] > 0 else 0
    y = y.sum()
    return x * y


@layer
def aliases(x: real["N"]):  # N=4 edge=1
    y = x
    z = y[1:]
    y[0] = 7.0
    z[...] = z * 2
    w = x.copy()
    w[0] = 0
    return x, w, z


@layer
def rows_swapped(a: real["N M"]):  # N=3 M=2 edge=-
    a[0], a[1] = a[1].copy(), a[0].copy()
    t = a[2].copy()
    a[2] = a[0]
    a[0] = t
    return a


@layer
def rows_swapped_fancy(a: real["N M"]):  # N=3 M=2 edge=-
    a[[0, 2]] = a[[2, 0]]
    return a


@layer
def permuted(x: real["N"], p: i64["N"]):  # N=3 ints=0:3
    y = np.empty_like(x)
    y[:] = 0.0
    y[p] = x
    return y


@layer
def overlapping_sums(A: real["N M"]):  # N=3 M=5
    for t in range(2):
        for i in range(1, 2):
            A[i, 1:-1] += A[i - 1, :-2] + A[i, 2:] + A[i, :-2] + A[i + 1, 2:]
    return A


@layer
def overlapping_scaled(A: real["5"], x: real["5"]):  #
    A[1:] += A[:-1] * x[1:]
    A[2:] -= A[:3] * A[1:4] * x[:3]
    return A


@layer
def one_place_twice(A: real["5"], x: real["5"], k: i64[""]):  # ints=0:5
    for i in range(5):
        A[i] += A[i] * x[i]
        A[i] += A[k] * x[k]
        A[k] -= A[k] * A[i]
    return A


@layer
def whole_arrays(A: real["3 3"], x: real["3"]):  #
    A += A.T @ A * 0.1
    A += A * x
    A -= x[:, None] * A[::-1]
    A *= A.T
    return A


@layer
def overlapping_steps(A: real["6"], x: real["6"]):  #
    A[::2] += A[1::2] * x[::2]
    A[::-1] += A * x
    A[1:4] *= A[2:5] * x[0]
    return A


@layer
def overlapping_gathers(A: real["6"], x: real["4"], i: i64["4"], j: i64["4"]):  # ints=0:6
    np.add.at(A, i, A[j] * x)
    A[i] += A[j] * x
    A[1:5] += x * A[i]
    return A


# -- arguments that are called as a dimension is -----------------------------------------------------------------
@layer
def temperature(x: real["T"], T: real):  # T=4 low=0.5 high=2
    h = x
    for _ in range(3):
        h = np.tanh(h / T)
    return h


@layer
def as_many(x: real["N K"], K: real):  # N=2 K=3
    return np.mean(np.exp(x * K), axis=1) * K


@layer
def width(x: real["H W"], W: Param[real["H W"]]):  # H=2 W=3
    return np.mean(x * W)


@layer
def group_scale(x: real["C *S"], S: real["C"]):  # C=2 S=3
    return (x - np.mean(x, axis=1)[:, None]) * S[:, None]


@layer
def own_length(N: real["N"], w: Param[real["N"]]):  # N=3
    h = w
    for _ in range(3):
        h = np.tanh(h * N)
    return h
