"""Statements: every form that SPEC 1 lists, and the ways they are combined."""

import math

import numpy as np

from layerc import bool_, i64, layer, real

SCALE = 1.5
WEIGHTS = np.array([0.25, 0.5, 0.25])
TABLE = [[1.0, 2.0], [3.0, 4.0]]
SHIFTS = (0, 1, 2)
N_STEPS = 3


@layer
def constants(x: real["N"]):  # N=5
    y = np.zeros_like(x)
    for k in range(N_STEPS):
        y = y + WEIGHTS[k] * np.roll(x, SHIFTS[k]) * SCALE
    return y, x * TABLE[1][0], np.sum(WEIGHTS) * x, x * math.pi + math.e * math.sqrt(2)


@layer
def chained_assignment(x: real["N"]):  # N=4
    a = b = x * 2
    c = d = 0.0
    for i in range(x.shape[0]):
        c += x[i]
        d = c * d + a[i]
    return a * c + b * d


@layer
def chained_same_array(x: real["N"]):  # N=4 edge=1
    a = b = x * 2
    a[0] = 5
    return a + b


@layer
def unpacking(x: real["3 N"], p: real["2"]):  # N=4
    a, b, c = x
    u, v = p
    (d, e), f = (a, b), c
    a, b = b, a
    return a * u + b * v, d * e + f


@layer
def unpack_items(x: real["N"]):  # N=4 edge=1
    y = np.zeros(3)
    y[0], y[1] = x[0], x[-1]
    y[2] = y[0] = y[0] * y[1]
    x[0], x[-1] = x[-1], x[0]
    return x, y


@layer
def star_of_shape(x: real["A B C"]):  # A=2 B=3 C=2
    a, b, c = x.shape
    n, *rest = x.shape
    y = np.zeros((c, a))
    for i in range(c):
        for j in range(a):
            for k in range(b):
                y[i, j] += x[j, k, i] * (k + 1)
    return y * n * len(rest)


@layer
def in_place_operators(x: real["N M"], v: real["M"]):  # N=3 M=4 low=0.5 high=2
    y = x.copy()
    y += v
    y *= 2
    y -= x[0] if x.shape[0] > 0 else v
    y /= v
    y **= 2
    z = np.ones_like(v)
    z += y.sum(axis=0)
    return y, z


@layer
def integer_operators(i: i64["N"], j: i64["N"]):  # N=6 ints=1:9
    a = i.copy()
    a += j
    a *= 3
    a //= j
    b = a % j
    b -= i
    c = (i & j) | (i ^ j)
    d = a**2
    return a, b, c, d, -i, ~(i > j), abs(-i), i / j


@layer
def boolean_algebra(a: bool_["N"], b: bool_["N"], x: real["N"]):  # N=5
    c = (a & ~b) | (b ^ a)
    d = np.logical_and(a, x > 0) | np.logical_or(b, x < -1)
    e = np.logical_not(a)
    return c, d, np.logical_xor(e, c), np.where(c & (x > 0), x, 0.0), np.any(a), np.all(b), a.sum()


@layer
def loops_over_rows(x: real["T D"], w: real["T"]):  # T=4 D=3
    s = np.zeros(x.shape[1])
    for row in x:
        s = s + row * row
    for k, row in enumerate(x):
        s += row * k
    for row, a in zip(x, w):
        s = s + row * a
    for a in reversed(w):
        s = s * 0.5 + a
    for k, (row, a) in enumerate(zip(x, w)):
        s += row * a * k
    for k in reversed(range(1, x.shape[0], 2)):
        s = s + x[k] * s
    return s


@layer
def enumerate_start(x: real["T"]):  # T=4
    s = 0.0
    for k, v in enumerate(x, 1):
        s += v / k
    for k, v in enumerate(x, start=2):
        s += v * k
    return s


@layer
def loop_over_tuple(x: real["N"]):  # N=4
    y = x * 0
    for k in (1, 2, 5):
        y = y + x**k / k
    for a, b in ((1.0, 2.0), (3.0, 0.5)):
        y = y * a + b * x
    for name in [0.25, 0.75]:
        y += name
    return y


@layer
def while_true_break(x: real[""]):  # low=1.5 high=40
    n = 0
    y = x
    while True:
        y = y * 0.5
        n += 1
        if y < 1:
            break
    return y * x, n


@layer
def loop_else_paths(x: real["N"]):  # N=6
    found = -1
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] < -1:
            continue
        if s > 2:
            found = i
            break
        s += abs(x[i])
    return s, found


@layer
def return_in_loops(x: real["N M"]):  # N=3 M=4
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = s + x[i, j] ** 2
            if s > 6:
                return s * x[i, j]
    return s


@layer
def return_early(x: real["N"], k: i64[""]):  # N=4 ints=-1:3
    if k < 0:
        return x * 2
    if k == 0:
        return np.sin(x)
    y = x * k
    return y * y


@layer
def elif_ladder(x: real[""], n: i64[""]):  # ints=0:5
    if n == 0:
        y = x
    elif n == 1:
        y = x * x
    elif n in (2, 3):
        y = x**3
    else:
        y = np.exp(x)
    return y


@layer
def ternaries(x: real["N"], s: real[""]):  # N=4
    a = x if s > 0 else -x
    b = 1.0 if s > 1 else 2.0 if s > -1 else s
    return a * b + (s if s > 0 else 0)


@layer
def comparisons_chained(x: real["N"], s: real[""]):  # N=5
    if -1 < s <= 1 and not s == 0:
        return np.where((x > -1) & (x < 1), x * s, 0.5 * x)
    return x


@layer
def asserts(x: real["N"]):  # N=3 low=0.5 high=2
    assert x.shape[0] >= 0
    assert np.all(x > 0), "x must be positive"
    return np.log(x)


@layer
def assert_of_sizes(x: real["N"], y: real["M"]):  # N=4 M=3 edge=1
    assert y.shape[0] <= x.shape[0], "y is no longer than x"
    whole = np.concatenate([x, np.zeros(y.shape[0] - 1)])  # fails without elements of y, which its gradient must know
    return x[: y.shape[0]] * y, whole[0]


@layer
def appended(x: real["T D"]):  # T=4 D=3 edge=1
    rows = []
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = np.tanh(h + x[t])
        rows.append(h)
    return np.stack(rows), np.stack(rows, axis=1), np.array(rows)


@layer
def comprehensions(x: real["T D"]):  # T=4 D=3 edge=1
    a = np.stack([row * row for row in x])
    b = np.array([np.sum(x[t]) * t for t in range(x.shape[0])])
    c = np.concatenate([x[t : t + 1] * 2 for t in range(x.shape[0])])
    d = np.stack([r * w for r, w in zip(x, b)])
    return a, b, c, d


@layer
def list_of_scalars(x: real["N"]):  # N=4 edge=1
    out = []
    s = 0.0
    for v in x:
        s = s + v * v
        out.append(s)
    return np.array(out) * 2, out[0], out[-1]


@layer
def list_started(x: real["N"]):  # N=5
    out = [x, x * 2]
    out.append(np.sin(x))
    y, z = out[0], out[-1]
    return np.stack(out), y * z, len(out) * x


def double(v):
    return 2 * v


def norm_and_unit(v, eps=1e-3):
    n = np.sqrt(np.sum(v * v) + eps)
    return n, v / n


def fill(y, v):
    for i in range(y.shape[0]):
        y[i] = v * i
    y[0] += 1


def bump_row(m, k, by):
    m[k] += by
    return m


@layer
def helpers(x: real["N"]):  # N=4 edge=1
    y = np.zeros_like(x)
    fill(y, x[0])
    n, u = norm_and_unit(double(x))
    m, w = norm_and_unit(x, eps=0.5)
    return y * n + u * m * w


@layer
def helpers_write(x: real["N M"]):  # N=3 M=2 edge=1
    y = x * 1
    for i in range(x.shape[0]):
        bump_row(y, i, x[i] * x[0])
    bump_row(y, 0, 1.0)
    fill(y[:, 0], x[0, 0])
    return y


@layer
def nested_functions(x: real["N"], s: real[""]):  # N=4
    def scaled(v, by=2.0):
        return v * by * s

    square = lambda v: v * v  # noqa: E731

    def both(v):
        return scaled(square(v)) + square(scaled(v, by=0.5))

    return both(x) + (lambda a, b: a * b)(x, s)


@layer
def closures_see_later_values(x: real["N"]):  # N=3
    k = 2.0

    def f(v):
        return v * k

    a = f(x)
    k = 5.0
    return a + f(x)


@layer
def function_as_argument(x: real["N"]):  # N=3
    def twice(g, v):
        return g(g(v))

    return twice(np.sin, x) + twice(lambda v: v * 2, x) + twice(double, x)


@layer
def calls_another_layer(x: real["N"]):  # N=4
    a, b = unpack_two(x)
    return a * b + constants(x)[1]


@layer
def unpack_two(x: real["N"]):  # N=4
    return x * 2, np.cos(x)


@layer
def shadowed(x: real["N"]):  # N=3
    sum = x * 2
    max = sum + 1
    len = 3.0
    return sum * max * len


@layer
def builtins_plain(x: real["N"], k: i64[""]):  # N=4 edge=1
    a = max(x[0], x[-1], 0.5)
    b = min(x[0], 1.0)
    c = sum([a, b, x[0] * 2])
    d = abs(x[0]) + float(k) + int(k) * 2 + round(2.5) + int(3.7) + bool(k) * 1
    e = sum(v * v for v in x)
    return a * b, c + d, e, len(x) * x, round(x[0]), abs(x), max(k, 2), pow(x[0], 2)


@layer
def docstrings_and_pass(x: real["N"]):  # N=3
    """A docstring."""
    if x.shape[0] > 2:
        pass
    y: float = 2.0
    "a string that stands alone"
    return x * y


@layer
def views_see_writes(x: real["N M"]):  # N=3 M=4 edge=1
    y = x * 1
    row = y[0]
    col = y[:, 1:]
    row[0] = 7.0
    col += 1
    part = col[0]
    part *= 2
    y[0] = y[0] * 3
    return y + row, col * 2


@layer
def writes_through_transpose(x: real["N M"]):  # N=3 M=4 edge=1
    y = x * 1
    t = y.T
    t[0] = x[:, 1] if x.shape[1] > 1 else x[:, 0]
    t[-1, 0] += 3
    y[0, 0] *= 2
    return y, t * 2


@layer
def writes_through_reshape(x: real["N M"]):  # N=3 M=4 edge=1
    y = x * 1
    f = y.reshape(-1)
    f[1:] = f[1:] * 2 + x.ravel()[:-1]
    f[0] = 3
    y[-1] += 1
    return y + f.sum(), f


@layer
def writes_through_ravel(x: real["N M"]):  # N=3 M=4 edge=1
    y = x * 1
    f = y.ravel()
    for i in range(f.shape[0]):
        f[i] = f[i] * i
    return y


@layer
def writes_through_axes(x: real["A B C"]):  # A=2 B=3 C=4 edge=1
    y = x * 1
    s = np.swapaxes(y, 0, 2)
    s[0, 0] = 1.5
    m = np.moveaxis(y, 0, -1)
    m[..., 0] *= 2
    e = y[:, None, :, :]
    e[0, 0, 0] = x[-1, -1]
    q = np.squeeze(y[:1], axis=0)
    return y + s.sum() + m.sum() + e.sum() + q.sum()


@layer
def writes_reversed_view(x: real["N"]):  # N=5 edge=1
    y = x * 1
    r = y[::-1]
    r[0] = 9
    r[1:] += x[:-1]
    y[0] = 2
    return y * 2, r


@layer
def writes_in_loop_through_view(x: real["N M"]):  # N=3 M=4 edge=1
    y = x * 1
    for i in range(y.shape[0]):
        row = y[i]
        row[0] = row[-1] * x[i, 0]
        row += i
    for row in y:
        row *= 2
        row[0] = 1
    return y


@layer
def arguments_overwritten(x: real["N"], y: real["N"]):  # N=4 edge=1
    x += y
    y[0] = x[0]
    x[:] = x * y
    return x, y


@layer(backward=None)
def walrus_free_powers(x: real[""], n: i64[""]):  # low=0.5 high=2 ints=0:5
    s = 1.0
    for k in range(n):
        s = s * x + k
    return s, x**n, x**-1, 2.0**x, (-2) ** n


@layer
def loop_var_after(x: real["N"]):  # N=4 edge=1
    last = 0
    for i in range(x.shape[0]):
        x[i] = x[i] * i
        last = i
    return x * 2 + x[last]


@layer(backward=None)
def range_forms(x: real["N"], a: i64[""], b: i64[""]):  # N=9 ints=0:9 edge=-
    s = 0.0
    for i in range(a, b):
        s += x[i]
    for i in range(b, a, -2):
        s += x[i] * 2
    for i in range(b):
        for j in range(i, b, 3):
            s += x[i] * x[j]
    return s


@layer
def nested_breaks(x: real["N M"]):  # N=4 M=3
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1.5:
                break
            if x[i, j] < -1.5:
                continue
            s += x[i, j] * (i + 1)
        if s > 5:
            break
    return s


@layer
def while_and_conditions(x: real["N"]):  # N=6
    i = 0
    s = 0.0
    while i < x.shape[0] and s < 2.0:
        s += x[i] * x[i]
        i += 1
    return s, i


@layer
def global_function_of_scalars(x: real[""]):  # low=0.2 high=0.9
    return math.sin(x) + math.exp(x) * math.sqrt(x) + math.atan2(x, 2.0) + math.pow(x, 3) + math.log(x, 2) + math.floor(x + 5)


@layer
def fstrings_in_assert(x: real["N"]):  # N=3
    assert x.shape[0] > -1, f"got {x.shape}"
    return x


@layer
def left_by_break(x: real["N"]):  # N=5
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            break
    return x[i] * i


@layer
def last_residual(x: real["N"], *, k: int = 4):  # N=3
    z = x
    for _ in range(k):
        r = z * z * z - x
        if np.max(np.abs(r)) < 1e-3:
            break
        z = z - r / (3 * z * z + 1)
    return z * r


@layer
def last_row(x: real["N M"]):  # N=3 M=4
    for r in x:
        s = np.sum(r)
    return r * s


@layer
def counter_kept(x: real["N"], *, n: int = 3):  # N=4
    i = 7
    for i in range(1, n):
        x = x * np.sin(x)
    for j in range(3, n):
        i = j
    return x * i


@layer
def left_by_while(x: real["N"]):  # N=4
    k = 0
    while k < x.shape[0]:
        v = x[k] * 2
        k += 1
        if v > 1:
            break
    if x[0] > 0:
        return x * v
    return x


@layer
def counters_of_two_loops(x: real["N M"]):  # N=3 M=4
    for i in range(x.shape[0]):
        t = 0.0
        for j in range(x.shape[1]):
            t += x[i, j]
        t = t * j
    for i in range(2):
        x = x * (i + 1)
    return x * t + i


@layer
def returned_after_a_loop(x: real["N"], z: real["M"]):  # N=3 M=4
    u = np.tanh(x)
    for r in z:
        u = u + r * u
    return u


@layer
def number_after_a_loop(x: real, z: real["M"]):  # M=4
    u = np.exp(x * 0.1)
    for r in z:
        u = u + u * r
    return u


@layer
def same_words_in_a_loop(x: real["N"], z: real["N"]):  # N=3
    u = x
    for i in range(z.shape[0]):
        u = u + np.tanh(u) * z[i]
    return np.tanh(u)


@layer
def same_words_of_another(x: real["N"]):  # N=3
    y = np.tanh(x)
    x = x * 2
    q = np.tanh(x)
    x += 1
    return y * q, np.tanh(x)


@layer
def added_to_in_while(x: real["N"], n: i64):  # N=3
    u = np.tanh(x)
    k = 0
    while k < n:
        u = u + 1
        k += 1
    return u


@layer
def added_to_on_a_branch(x: real["N"]):  # N=3
    u = np.exp(x * 0.5)
    if u[0] > 1:
        u = u + 1
        v = u * u
    else:
        v = u
        u = u + 2
    return u, v * x


@layer
def return_from_a_loop_on_a_branch(x: real["N N"], w: real[""]):  # N=3
    if w > 0.0:
        pass
    else:
        y = np.zeros((x.shape[0], x.shape[0]))
        for t in range(x.shape[0]):
            if x[t, t] > 0.0:
                return y
            y[t] = x[t] * w
    return x * 2


def halved(p, i):
    p[i] = p[i] * 0.5 + np.sin(p[0])
    return p[i]


@layer
def written_by_half_a_condition(z: real["N"], s: real[""]):  # N=3
    k = 1.0
    if (s > 0 or halved(z, 1) > 0.2) and (halved(z, 2) < 0 or halved(z, 1) > 0.1):
        k = s
    return z * k * z


@layer
def written_by_half_a_condition_of_while(z: real["N"], s: real[""]):  # N=3
    n = 0
    while n < 4 and (z[1] > 0.3 or halved(z, 1) < 1.1):
        n += 1
        z[1] = z[1] - 0.3 * s
    return z * z
