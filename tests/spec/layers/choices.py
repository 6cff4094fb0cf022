"""Names that are one array or another, as a branch or an iteration decides: writes reach the one that it is."""

import numpy as np

from layerc import layer, real


@layer
def one_of_two(a: real["N"], b: real["N"]):  # N=4
    if a[0] > 0:
        v = a
    else:
        v = b
    v[0] = 3.0
    return a * b


@layer
def by_expression(a: real["N"], b: real["N"]):  # N=4
    v = a if a[0] > 0 else b
    v += 1
    return a * b


@layer
def same_on_both(g: real["N"]):  # N=4
    if g[0] > 1:
        v = g
    else:
        v = g
    g[-1] = 2
    return v * g


@layer
def array_or_new(w: real["N"]):  # N=4
    u = w if w[0] > 0 else np.sin(w)
    u[1:] = np.tanh(w[1:])
    return w * u


@layer
def parts_of_two(a: real["N"], b: real["N"]):  # N=4
    v = a[1:] if a[0] > 0 else b[:-1]
    v *= 2
    return a - b * 3


@layer
def views_and_new(a: real["N N"], b: real["N N"]):  # N=3
    if a[0, 0] > 0:
        v = a.T
    elif a[1, 1] > 0:
        v = b[::-1]
    else:
        v = a @ b
    v[0] = 2 * a[1]
    v += 1
    return a - b * v


@layer
def parts_of_a_choice(a: real["N N"], b: real["N N"]):  # N=3
    u = a if a[0, 0] > 0 else b
    t = u.T
    r = u[1]
    a += 1
    t[0] *= 2
    r[2:] = 0.5 * b[0, 2:]
    u[-1] += t[1]
    return a - b * t, r


@layer
def chain(a: real["N"], b: real["N"], c: real["N"]):  # N=4
    v = a
    if a[0] > 0:
        v = b
    elif a[1] > 0:
        v = c * 2
    v[1] *= 3
    w = v
    w[0] = a[1]
    return a + b * c + v


def larger(x, y):
    if x[0] > y[0]:
        return x
    return y


@layer
def from_a_helper(a: real["N"], b: real["N"]):  # N=4
    m = larger(a, b)
    m -= 1
    return a * b


@layer
def in_a_tuple(a: real["N"], b: real["N"]):  # N=4
    t = (a, b)
    if a[0] > 0:
        t = (b, a)
    x, y = t
    x[0] = 5
    return a * 2 + b + y


@layer
def doubled_once(a: real["N"]):  # N=4
    big = a
    for i in range(3):
        if big[i % 2] > 1:
            big = a * 2
    big[0] = 1
    return a + big


@layer
def written_or_doubled(a: real["N"]):  # N=4
    big = a
    for i in range(3):
        if big[i % 2] > 1:
            big = a * 2
        else:
            big[i] = 0.5
    big[0] = 1
    return a + big


@layer
def new_in_every_round(a: real["N"], q: real["N"]):  # N=4
    y = np.zeros_like(a)
    for i in range(3):
        y[0] = a[-1] + y[1]
        y = q[:]
        q[1] = y[0] * 2
    return y * q


@layer
def part_then_new(w: real["N"]):  # N=4
    u = w[1:]
    for i in range(w.shape[0]):
        u[:1] = 3.0 * w[0]
        u = np.tanh(u)
    return w, u


@layer
def in_loops_in_loops(a: real["N"]):  # N=4
    u = a
    for t in range(2):
        for i in range(3):
            u[t] = 0.5 * a[i]
            u = np.sin(u)
    return a


@layer
def exchanged_or_not(a: real["N"], b: real["N"], *, k: int = 4):  # N=4
    c = a
    for i in range(k):
        if b[i % 2] > 0:
            a = a * 2
        a, b = b, a
        a[0] += 1
        b[1] *= 0.5
    c[1] += 3
    return a - 2 * b + c


@layer
def the_one_before(a: real["N"]):  # N=4
    u = a
    v = a
    for i in range(3):
        u = v
        v = v * 2
        u[0] += v[1]
        v[1] -= 1
    return u + v * a


@layer
def two_buffers(x: real["N"], *, k: int = 3):  # N=6
    a = x.copy()
    b = np.zeros_like(x)
    for t in range(k):
        b[1:-1] = 0.5 * (a[2:] + a[:-2]) - a[1:-1] ** 2
        a, b = b, a
    return a


@layer
def returned_early(b: real["N"], *, k: int = 5):  # N=4
    y = np.zeros_like(b)
    for t in range(k):
        y[0] += b[0] * 0.5
        if y[0] > 1.0:
            return y
        y[1:] = y[1:] * 0.5 + b[1:]
    return y


@layer
def while_it_is(a: real["N"], b: real["N"]):  # N=4
    v = a
    n = 0
    while n < 4 and v[0] < 2:
        v[0] += 0.5 * b[n % 2] ** 2
        if v[0] > 1:
            v = b
        n += 1
    return a * b + v[1]


@layer
def repeated(x: real["N"]):  # N=4
    v = np.broadcast_to(x, (x.shape[0], x.shape[0]))[::-1, :]
    d = np.diagonal(v)
    x += (v * 0.5)[..., -1]
    return v * x, d


@layer
def bound_to_itself(w: real["N M"]):  # N=3 M=2
    for k in range(3):
        w[1:] += np.tanh(w[:-1])
        w = w
    v = w
    for i in range(2):
        w -= w / (1 + np.abs(w))
        w = w
    return v * w


def either(u, w):
    return u if u[0] > w[0] else w


@layer
def from_a_ternary(a: real["N"], b: real["N"]):  # N=4
    m = either(either(a, b), b)
    m[0] -= 3
    t = (lambda p, q: p if p[1] > q[1] else q)(a, b)
    t[1] = m[0] ** 2
    return a, b


@layer
def bound_anew_by_a_loop(a: real["N"], b: real["N"], s: real):  # N=4
    u = b if s > 0 else a
    u += 1
    v = u
    for i in range(2):
        v = a * s
    return v, a, b


def turning(x, y):
    for i in range(2):
        if x[0] > 0:
            x, y = y, x
        x[0] -= 0.5
    return x


@layer
def turned_by_a_helper(a: real["N"], b: real["N"], s: real):  # N=4
    u = b if s > 0 else a
    w = turning(u, b)
    return w, u, b


@layer
def turned_on_a_branch(a: real["N"], b: real["N"], s: real):  # N=4
    v = b
    if s > 0:
        v = a
    if a[0] > 0:
        for i in range(1):
            v, a, b = a, b, v
        b[0] = s
    return v, a, b


@layer
def left_early(a: real["N"], b: real["N"], s: real):  # N=4
    u = a if s > 0 else b
    v = b
    b[...] = u
    if s > 0.5:
        v = b
    else:
        if u[-1] > 0:
            return a, b, v, u
    return a, b, v, u


@layer
def left_earlier(a: real["N"], b: real["N"], c: real["N"]):  # N=4
    u = c
    v = a
    if v[-1] > -0.5:
        if u[-1] > a[0]:
            if a[-1] > 0.5:
                return c, b
        c[0] = c[-1]
    return c, b


@layer
def part_of_one_element(a: real["N"], b: real["N"]):  # N=4
    v = a[::2] if a[0] > 0 else b[::2]
    w = v[::-1]
    w[0] += 2
    v[:1] = w[-1]
    a[0] = 3
    w *= b[0]
    return a * b


@layer
def three_turning(a: real["N"], b: real["N"], c: real["N"], s: real):  # N=4
    u = a[:]
    b = u[::-1]
    i1 = 0
    while i1 < 3 and b[-1] > 0:
        i1 += 1
        if s > 0:
            c += 0.5 * c
        else:
            u[0] += u[0] * 0.5
        for i2 in range(2):
            if b[0] > 0:
                a, u, b = u, b, a
            else:
                u += 0.5 * c
                b += -0.5
            c = u
    a[-1] *= a[-1] * 0.5
    return b, u, c, a


@layer
def product_with_the_one_before(x: real["T N"]):  # T=4 N=3
    now = np.zeros(x.shape[1])
    old = np.zeros(x.shape[1])
    y = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        now += x[t]
        y += old * now
        old = now
    return y


@layer
def rows_into_rows(x: real["N N"]):  # N=3
    for i in range(x.shape[0]):
        for r in x:
            x[i] += r
            x = x
    return x


@layer
def new_or_the_other(x: real["N"], y: real["N"]):  # N=4
    w = x * 2
    v = w if x[0] > 1 else y
    w[0] = 3.0
    y -= 1
    z = y if x[1] > 0 else x * 2
    z[0] = 3
    return v * w, z * y


@layer
def previous_of_a_loop(a: real["N"], b: real["N"], s: real):  # N=4
    v = a
    k = 0
    while k < 3 and s > -0.5:
        k += 1
        v = b * 0.5
        b, v = v, b
    v, b, a = b, a, v
    b[-1] = a[0] * 0.5
    return a, b, v


@layer
def returned_from_a_loop(x: real["N"], b: real["N"]):  # N=4
    v = b
    for k in range(2):
        a = x - v
        if a[0] > 0.5:
            return b, a
        v -= 0.25
    return b, a


def turned_by_sign(p, r):
    for k in range(2):
        if p[0] > 0:
            p, r = r, p
        p[0] -= 0.5
    return p


@layer
def swapped_in_a_helper(a: real["N"], b: real["N"]):  # N=4
    b = turned_by_sign(b, a)
    return a, b


@layer
def three_turned_on_a_branch(a: real["N"], b: real["N"]):  # N=4
    u = a
    for k in range(2):
        if a[0] > 0:
            u, a, b = a, b, u
        b *= 0.5
    return a, u, b


@layer
def two_of_two(a: real["N"], b: real["N"], s: real):  # N=4
    w = b
    if a[0] > 0:
        b, w = (w, a) if s > 0 else (a, b)
    b -= s
    a[-1] -= b[0]
    return w, a


@layer
def all_of_itself(a: real["N"], b: real["N"], s: real):  # N=4
    u = a
    for k in range(2):
        a *= 0.5
        if s > 0:
            u = u[:]
        else:
            a, b, u = b, u, a
    u += 1
    return a, b, u


@layer
def best_row(x: real["N M"]):  # N=4 M=3
    best = x[0]
    for i in range(1, x.shape[0]):
        if x[i].sum() > best.sum():
            best = x[i]
    best[0] = 5.0
    return x * best


@layer
def last_positive_row(y: real["N K"], q: real["K"]):  # N=4 K=3
    for r in y:
        r[1] = 1.0
        if r[0] > 0:
            q = r
    q *= 0.5
    return q, y


@layer
def row_by_value(x: real["N M"], y: real["M"]):  # N=4 M=3
    k = np.argmax(x[:, 0])
    v = x[k] if x[0, 1] > 0 else y
    v += 1.0
    return x, y


@layer
def two_best_rows(x: real["N M"]):  # N=4 M=3
    a, b = x[0], x[1 % x.shape[0]]
    for i in range(2, x.shape[0]):
        if x[i, 0] > a[0]:
            a, b = x[i], a
        elif x[i, 0] > b[0]:
            b = x[i]
        a[1] += 0.5
    a *= 2
    b *= 3
    return x


@layer
def rows_of_either(x: real["N M"], w: real["N M"]):  # N=4 M=3
    p, q = x[0], w[-1]
    for i in range(x.shape[0]):
        m = x if w[i, 0] > 0 else w
        p, q = q, m[i]
        p += 0.5 * q
        while q[0] > 1.5:
            q[0] -= 1.0
            p = m[(i + 1) % x.shape[0]]
    p[-1] = 2.0
    return x * w
