"""Mean small programs: each forward and gradient, as text under NumPy against finite differences, and compiled against the text.

A block of PROGRAMS is a layer (with the helpers before it, whose names begin with _); the comment at its head gives the extents of its
named dimensions and the range its arguments are drawn from. Each is here because it broke something once, or nearly did.
"""

from __future__ import annotations
import __future__

import importlib.util
import inspect
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layerc.adjoint.gradient import gradient_file
from layerc.build.driver import build
from layerc.transpile.layers import check_file

PROGRAMS = r"""
# -- what random programs brought ---------------------------------------------------------------------------------
def clipped_below(a: real["N"]):  # N=4
    return a.clip(0.5) * np.clip(a, None, 1.5) * np.clip(a, max=0.7)


def changing_places(x: real["T N"]):  # T=4 N=3
    a, b = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        b[1:] = a[:-1] * 0.5 + x[t, 1:]
        b[0] = x[t, 0]
        a, b = b, a
    return a + b


def turned_in_a_loop(w: real["N N"]):  # N=3
    v = w * 2
    for _ in range(3):
        v = np.moveaxis(v, 1, 0)
    return v[0]


def summed_at_a_read_place(b: real["N M N"]):  # N=4 M=3
    k = 0
    while 1 >= 0.0:
        k += 1
        if k > 0:
            break
        b += 1.0
    return b @ b[:, k % b.shape[1]]


def dear_at_the_end(w: real["K M"], a: real["N"]):  # K=3 M=2 N=4
    rows = []
    for i in range(w.shape[0]):
        row = w[i] * 1.5
        rows.append(np.cos(np.tensordot(np.linspace(row[-1], 1.5, a.shape[0]), np.ones((a.shape[0], 1)), 1)))
    return np.stack(rows)


def made_with_what_is_kept(g: real["1"], a: real["K"]):  # K=4
    h = 0.5
    y = np.zeros(a.shape)
    for t in range(a.shape[0]):
        h = 0.8 * np.sin(g[0])
        y[t] = h
    k = 0
    while np.isinf(g[0]):
        k += 1
        if k > 1:
            break
        y = a
    h -= y @ y
    return h, np.cos(h)


def largest_of_one_number(x: real["K"]):  # K=3
    return np.tanh(math.sinh(x[0])).max() * np.min(x[1])


def minus_zero(z: real["K"]):  # K=3
    z[1] += -0.0
    return z * -0.0, special.erfc(z)


def divided_by_extent(a: real["K"]):  # K=3
    return a[np.arange(a.shape[0]) % a.shape[0]] * 2


def sorted_places_of_one(y: real["1 1"]):
    return y * np.take_along_axis(y, np.argsort(np.zeros((1, 1)), axis=1), axis=1)


def shortened_twice(y: real["K"]):  # K=4
    u = y[1:]
    u[:-1] += np.ones(y.shape[0] - 2) * y[0]
    return y * y


def whole_quotient(y: real["K"], a: real["M"]):  # K=3 M=2
    z = np.reshape(np.ones(y.shape[0] * a.shape[0] + y.shape[0]), (a.shape[0] + 1, -1))
    return y * np.sum(z, axis=0)


def made_anew_and_listed(x: real["N"]):  # N=3
    rows = []
    for i in range(3):
        y = np.zeros(4)
        for t in range(2):
            y[t] = x[0] * x[i]
        rows.append(y)
    return np.stack(rows)


def diagonal_of_a_scalar(x: real[""]):
    s = 1.0
    s *= x
    return np.einsum("xx,x->", np.broadcast_to(s, (2, 2)), np.linspace(1.0, 1.5, 2))


def real_without_arrays(q: real[""]):
    rows = []
    for i in range(2):
        rows.append(q * i)
    v = np.stack(rows)
    for i in range(2):
        v = v[0] * np.broadcast_to(1, (2, 2))[0]
    for i in range(2):
        v = np.broadcast_to(0, (2, 2))[0]
    return np.sum(v) * q


def while_in_while(z: real["K"], a: real["K"]):  # K=3
    k = 0
    while k < 2 and z[k] <= 30:
        k += 1
        j = 0
        while j < 1 and np.any(a > z):
            j += 1
        a[-2:] *= np.arctan(np.sum(a))
    return z * a[0]


def _halved_first(p):
    p[0] *= 0.5
    return p[0]


def operands_before_a_write(x: real["K"]):  # K=3
    x = x * 1.0
    return np.sin(x) + _halved_first(x), x[0] * 3 - _halved_first(x), np.maximum(x * x, _halved_first(x))


def _rebound(p):
    for _ in range(2):
        p = np.tanh(p) * 2
    return p[0]


def callers_array(q: real["M"]):  # M=3
    v = q * 0.75
    return v, _rebound(v), v * q


def turned_once(x: real["N N"], y: real["K N"]):  # N=3 K=2
    for i in range(2):
        y = y.transpose(0, 1)
    return np.transpose(x, (0, 1)).T * x, y * 2


def added_to_itself(w: real["M K"]):  # M=3 K=2
    w -= w[0] - w
    w[0, 0] += w[0, 0] * w[1, 1]
    w[1] += w[1] * w[2] * w[1]
    return w * 2


def kept_past_a_loop(z: real["M N"], g: real[""]):  # M=3 N=2
    h = np.exp(z[0] @ z.T)
    y = np.zeros((z.shape[0], z.shape[1]))
    for t in range(z.shape[0]):
        y[t] = h[t] * z[t]
    k = 0
    while k < 1:
        k += 1
        if g <= 0.3:
            y = np.arctan(z)
    return y * g


def named_on_a_branch(x: real["N"], y: real["N"]):  # N=3
    y -= 1.0
    if x[0] > 0:
        z = y
    else:
        z = x * 2
    return z * y


# -- overlapping places -------------------------------------------------------------------------------------------
def conv1(x: real["N"], w: real["K"]):  # N=6 K=3
    y = np.zeros(x.shape[0] - w.shape[0] + 1)
    for i in range(x.shape[0] - w.shape[0] + 1):
        for j in range(w.shape[0]):
            y[i] += x[i + j] * w[j]
    return y


def spread(x: real["N"], w: real["K"]):  # N=4 K=3
    y = np.zeros(x.shape[0] + w.shape[0])
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            y[i + j] = np.sin(x[i]) * w[j]
    return y * y


def spread_linear(x: real["N"], w: real["K"]):  # N=4 K=3
    y = np.zeros(x.shape[0] + w.shape[0])
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            y[i + j] = x[i] * w[j]
    return y


def conv2(x: real["H W"], w: real["P Q"]):  # H=5 W=4 P=2 Q=3
    y = np.zeros((x.shape[0] - w.shape[0] + 1, x.shape[1] - w.shape[1] + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for p in range(w.shape[0]):
                for q in range(w.shape[1]):
                    y[i, j] += x[i + p, j + q] * w[p, q]
    return y


def convolve_full(x: real["N"], w: real["K"]):  # N=4 K=3
    y = np.zeros(x.shape[0] + w.shape[0] - 1)
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            y[i + j] += x[i] * w[j]
    return y * y


def same_place(x: real["N"]):  # N=5
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[0] = x[i] * x[i] + 0.5 * y[0]
    return y


def last_wins(x: real["N"]):  # N=5
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[2] = x[i] * x[i]
    return y


def inner_overwrites(x: real["N M"]):  # N=3 M=4
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i] = x[i, j] * x[i, j]
    return y


def diagonal_index(x: real["N"]):  # N=4
    y = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        y[i, i] = x[i] ** 2
        y[i, 0] = np.sin(x[i])
    return y


def difference_index(x: real["N"]):  # N=4
    y = np.zeros((2 * x.shape[0],))
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            y[i - j + x.shape[0]] = x[i] * x[j] * x[j]
    return y


def written_before_loop(x: real["N"]):  # N=5
    y = x * 3
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * x[i]
    return y


def skips(x: real["N"]):  # N=7
    y = x * x
    for i in range(0, x.shape[0], 3):
        y[i] = 2 * x[i] * y[i]
    return y * x


def reads_ahead(x: real["N"]):  # N=6
    y = x * x
    for i in range(x.shape[0] - 1):
        y[i] = y[i + 1] * x[i] + y[i]
    return y


def reads_behind_and_ahead(x: real["N"]):  # N=6
    y = np.sin(x)
    for i in range(1, x.shape[0] - 1):
        y[i] = y[i - 1] * y[i + 1] + y[i] * y[i]
    return y


def gauss_seidel(b: real["N"], x: real["N"]):  # N=5
    for sweep in range(3):
        for i in range(1, b.shape[0] - 1):
            x[i] = 0.5 * (x[i - 1] + x[i + 1] - b[i] * x[i])
    return x


def jacobi(b: real["N"], x: real["N"]):  # N=5
    for sweep in range(3):
        x[1:-1] = 0.5 * (x[:-2] + x[2:] - b[1:-1] * x[1:-1])
    return x


# -- several carried values ----------------------------------------------------------------------------------------
def swap_in_loop(x: real["N"], y: real["N"]):  # N=4
    for k in range(3):
        x, y = y * y, x
    return x - y * x


def fibonacci(x: real[""], y: real[""]):  #
    a, b = x, y
    for k in range(5):
        a, b = b, a + b * a
    return a * b


def rotate_three(a: real["N"], b: real["N"], c: real["N"]):  # N=3
    for k in range(4):
        a, b, c = b, c * a, a
    return a + 2 * b + 3 * c


def carried_many(x: real["T D"], w: real["D"]):  # T=4 D=3
    h = np.zeros_like(w)
    c = np.ones_like(w)
    s = 0.0
    n = 0
    for t in range(x.shape[0]):
        c = c * 0.5 + h * x[t]
        h = np.tanh(c + w * h)
        s = s + np.sum(h * c) * (n + 1)
        n += 2
    return h * s, c


def delay(x: real["N"]):  # N=5
    before = x[0]
    s = 0.0
    for i in range(x.shape[0]):
        s = s + before * x[i]
        before = x[i] * x[i]
    return s


def previous_two(x: real["N"]):  # N=6
    a, b = 0.3, 0.7
    for i in range(x.shape[0]):
        a, b = b, a * x[i] + b
    return a * b


def array_carried_alias(x: real["T D"]):  # T=4 D=3
    h = x[0] * 1.0
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        g = h
        h = np.sin(h) + g * x[t]
        y[t] = g * h
    return y


def nested_three(x: real["N M"], w: real["K"]):  # N=2 M=3 K=2
    s = 1.0
    h = np.zeros_like(w)
    for i in range(x.shape[0]):
        h = h * 0.5 + s
        for j in range(x.shape[1]):
            for k in range(w.shape[0]):
                s = s + np.sin(s * w[k]) * x[i, j]
                h[k] = h[k] * x[i, j] + s * w[k]
            s = s * 0.9
    return h * s


def inner_reset(x: real["N M"]):  # N=3 M=4
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        acc = 1.0
        for j in range(x.shape[1]):
            acc *= x[i, j]
        y[i] = acc * acc
    return y


def inner_array_reset(x: real["N M"]):  # N=3 M=4
    total = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        row = np.zeros(x.shape[1])
        for j in range(1, x.shape[1]):
            row[j] = row[j - 1] * x[i, j] + x[i, j - 1]
        total += row * row
    return total


def triangle_loops(x: real["N N"]):  # N=4
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            s = s + x[i, j] * x[j, i] * (s + 1)
    return s


def triangle_upper(x: real["N N"]):  # N=4
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(i, x.shape[1]):
            y[i, j] = x[i, j] * x[j, i]
    return y * y


def triangle_carried(x: real["N N"]):  # N=4
    h = 0.5
    for i in range(x.shape[0]):
        for j in range(i + 1):
            h = np.sin(h) * x[i, j] + h
        h = h * x[i, i]
    return h


# -- while -----------------------------------------------------------------------------------------------------------
def while_in_for(x: real["N"]):  # N=4 low=1.0 high=3.0
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        r = x[i] * 1.0
        n = 0
        while n < 4:
            r = 0.5 * (r + x[i] / r)
            n += 1
        y[i] = r * r * x[i]
    return y


def while_value_in_for(x: real["N"]):  # N=4 low=1.0 high=3.0
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        r = x[i] * 1.0
        while r > 0.6:
            r = r * 0.7 - 0.01 * x[i] * r
        y[i] = r
    return y


def for_in_while(x: real["N"]):  # N=4 low=0.2 high=0.6
    s = 0.1
    while s < 3.0:
        for i in range(x.shape[0]):
            s = s + x[i] * s + 0.1
    return s


def if_in_while(x: real[""], a: real[""]):  # low=0.3 high=2.0
    n = 0
    while n < 6:
        if x > 1.0:
            x = x * 0.6 * a
        else:
            x = x + a * a
        n += 1
    return x


def while_two_arrays(x: real["N"], y: real["N"]):  # N=3 low=0.1 high=0.5
    n = 0
    while np.sum(x) < 4.0 and n < 30:
        x, y = x + y * y + 0.1, y * 1.05
        n += 1
    return x * y, n


def while_zero(x: real["N"]):  # N=3
    while np.sum(x) > 1e9:
        x = x * 0.5
    return x * x


def while_nested(x: real[""]):  # low=0.5 high=2.0
    s = 0.0
    i = 0
    while i < 3:
        j = 0
        t = x * 1.0
        while j <= i:
            t = t * x + 0.1
            j += 1
        s = s + t * s + t
        i += 1
    return s


def while_array_write(x: real["N"]):  # N=5
    y = x * 1.0
    i = 1
    while i < x.shape[0]:
        y[i] = y[i - 1] * x[i] + y[i]
        i += 1
    return y


def collatz_weight(x: real[""]):  # low=0.5 high=1.5
    n = 6
    s = x
    while n != 1:
        if n % 2 == 0:
            n = n // 2
            s = s * x
        else:
            n = 3 * n + 1
            s = s + x
    return s


# -- branches --------------------------------------------------------------------------------------------------------
def branch_arrays(x: real["N"], a: real[""]):  # N=4
    if a > 0.2:
        y = x * a
        z = np.sin(y)
    elif a > -0.5:
        y = x + a
        z = y * y
    else:
        y = np.zeros_like(x)
        z = x * 1.0
    return y * z


def branch_one_active(x: real["N"], a: real[""]):  # N=4
    y = np.ones_like(x)
    if a > 0:
        y = x * x
    else:
        y = np.ones_like(x) * 2
    return y * a


def branch_store(x: real["N"]):  # N=6
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] > 0.3:
            y[i] = x[i] * x[i]
        elif x[i] > -0.5:
            y[i] = 5.0
        else:
            y[i] += x[i - 1] * x[i]
    return y * x


def branch_on_changed(x: real["N"]):  # N=5
    s = x[0]
    for i in range(1, x.shape[0]):
        if s > 0:
            s = s * x[i] - 0.5
        else:
            s = x[i] - s * s
    return s


def branch_nested(x: real["N"], a: real[""]):  # N=5
    y = x * 1.0
    for i in range(x.shape[0]):
        if a > 0:
            if x[i] > 0:
                y[i] = y[i] * a
            else:
                y[i] = a * a
        else:
            y[i] -= a * x[i]
        a = a * 0.8 + 0.1 * x[i]
    return y, a


def branch_loop_inside(x: real["N"], a: real[""]):  # N=5
    s = a * 1.0
    if a > 0:
        for i in range(x.shape[0]):
            s = s * x[i] + a
    else:
        for i in range(x.shape[0] - 1, -1, -1):
            s = s + x[i] * s
    return s * s


def early_in_else(x: real["N"], a: real[""]):  # N=4
    if a > 0.5:
        return x * a
    y = x + a
    if a < -0.5:
        return y * y
    y = y * 2
    return y * x


def chained_compare(x: real["N"]):  # N=6
    s = 0.0
    for i in range(x.shape[0]):
        if -0.5 < x[i] <= 1.0:
            s = s + x[i] * x[i]
        else:
            s = s * x[i]
    return s


def ternary_index(x: real["N"]):  # N=6
    s = 0.0
    for i in range(x.shape[0]):
        left = x[i - 1] if i > 0 else 0.5
        right = x[i + 1] if i + 1 < x.shape[0] else x[0]
        s = s + left * right * (x[i] if x[i] > 0 else -2 * x[i])
    return s


def and_or(x: real["N"], a: real[""]):  # N=5
    y = x * 1.0
    for i in range(1, x.shape[0]):
        if x[i] > 0 and x[i - 1] > 0 or a > 1:
            y[i] = x[i] * y[i - 1]
        elif not (x[i] > 0):
            y[i] = a * y[i - 1]
    return y


def swap_on_branch(x: real["N"], y: real["N"]):  # N=4
    if x[0] > y[0]:
        x, y = y, x
    return x * x - y * 3 * x


def bubble(x: real["N"]):  # N=5
    for i in range(x.shape[0]):
        for j in range(x.shape[0] - 1):
            if x[j] > x[j + 1]:
                a = x[j]
                x[j] = x[j + 1]
                x[j + 1] = a
    return x * np.arange(x.shape[0])


# -- views and partial writes ----------------------------------------------------------------------------------------
def view_write(x: real["3 4"]):  #
    y = x * x
    v = y[1]
    v[1:3] = x[0, :2] * 2
    v *= x[2]
    return y * y


def view_of_column(x: real["N M"]):  # N=3 M=4
    y = x * x
    c = y[:, 1]
    c += x[:, 0] * y[:, 1]
    c[0] = y[2, 2] * x[0, 0]
    return y * x


def transpose_write(x: real["N M"], w: real["M"]):  # N=3 M=4
    y = x * x
    t = y.T
    z = t * 2
    y[0] = w * z[:, 1]
    return y.T * z


def view_sees_write(x: real["N"]):  # N=5
    y = x * x
    v = y[1:]
    y[2] = x[0] * 3
    w = v * x[1:]
    y[3] = 7.0
    return w + v


def view_in_loop(x: real["N M"]):  # N=3 M=4
    y = np.ones_like(x)
    for i in range(x.shape[0]):
        r = y[i]
        r += x[i] * x[i]
        r[0] = r[1] * r[2]
        r *= x[i]
    return y


def row_from_row(x: real["N M"]):  # N=4 M=3
    y = x * 1.0
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * x[i] + y[i]
    return y


def negative_step(x: real["6"]):  #
    y = np.zeros_like(x)
    y[::-1] = x * x
    y[::2] *= 2
    y[4::-2] += x[:3] * x[3:]
    return y * x


def reversed_view(x: real["N"]):  # N=5
    y = x[::-1]
    z = y[1:] * x[:-1]
    return z[::-2]


def overlap_forward(x: real["N"]):  # N=6
    x[1:] = x[:-1] * x[1:]
    return x * x


def overlap_backward(x: real["N"]):  # N=6
    x[:-1] = x[1:] * x[:-1]
    x[2:] += x[:-2]
    return x * x


def partial_then_reuse(x: real["6"]):  #
    y = x * x
    a = np.sum(y * y)
    y[:3] = np.sin(y[3:])
    b = np.sum(y * y * y)
    y[1] = a
    y *= b
    return y


def copy_then_write(x: real["N"]):  # N=5
    y = x.copy()
    z = y.copy()
    y[0] = z[1] * 2
    z *= y
    return y * z


def self_store(x: real["N"]):  # N=5
    y = x * x
    y[0] = y[0] * y[1]
    y[1] = y[0] * y[0]
    y[0] = y[0] + y[1]
    return y


def broadcast_store(x: real["N M"], b: real["M"], s: real[""]):  # N=3 M=4
    y = np.zeros_like(x)
    y[:] = b
    y[1] = s
    y[:, 2] = s * s
    y[2, 1:3] = b[0]
    return y * x


def store_twice(x: real["N"]):  # N=5
    y = np.zeros_like(x)
    y[1:4] = x[1:4] ** 2
    y[2:5] = x[2:5] ** 3
    return y


def augmented_all(x: real["N"], w: real["N"]):  # N=5 low=0.5 high=2.0
    y = x * w
    y += w
    y -= x * x
    y *= y
    y /= w
    y **= 2
    return y


def augmented_items(x: real["N"], w: real["N"]):  # N=5 low=0.5 high=2.0
    y = x * w
    for i in range(1, x.shape[0]):
        y[i] += y[i - 1]
        y[i - 1] *= w[i]
        y[i] /= x[i - 1]
        y[0] -= y[i] * x[i]
    return y


def argument_rows(x: real["N M"]):  # N=3 M=4
    for i in range(x.shape[0]):
        x[i] -= np.mean(x[i])
        x[i] /= np.sqrt(np.mean(x[i] ** 2) + 1e-3)
    return x


def masked_store(x: real["N"]):  # N=6
    y = x * x
    y[x > 0] = 1.5
    y[x < -1] *= 3
    return y * x


def masked_by_itself(x: real["N"]):  # N=6
    x[x < 0] *= 0.1
    x[x > 1] = 0
    return x * x


# -- helpers and closures --------------------------------------------------------------------------------------------
def _bump(v, k):
    v[0] += k * v[1]
    v *= k


def helper_writes(x: real["N"], a: real[""]):  # N=4
    y = x * x
    _bump(y, a)
    _bump(y[1:], y[0])
    return y * x


def _update(state, row):
    for j in range(state.shape[0]):
        state[j] = np.sin(state[j]) * row[j] + state[j - 1]
    return np.sum(state)


def helper_in_loop(x: real["N M"]):  # N=3 M=3
    h = np.ones(x.shape[1])
    s = 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + _update(h, x[i])
    return h * s


def _step(state, u):
    p, q = state
    return (p * q + u, q - p * u), p - q


def tuples_in_loop(x: real["N"]):  # N=5
    p, q = 0.5, 0.2
    s = 0.0
    for i in range(x.shape[0]):
        (p, q), d = _step((p, q), x[i])
        s = s + d * p
    return s * q


def closure_counter(x: real["N"], a: real["N"]):  # N=4
    s = 0.0
    for i in range(x.shape[0]):
        def f(u):
            return u * a[i] + x[i] * (i + 1)
        s = s + f(s) * f(x[i])
    return s


def closure_sees_new_value(x: real["N"], a: real[""]):  # N=4
    def f(u):
        return u * a
    y = f(x)
    a = a * a + 1
    return y + f(x) * x


def closure_in_while(x: real[""]):  # low=0.3 high=1.2
    scale = x * 2
    n = 0
    while n < 3:
        g = lambda u: u * scale + x
        x = g(x) * 0.5
        scale = scale - 0.1 * x
        n += 1
    return x * scale


def _clampy(v, low=0.0, *, high=1.0):
    return low if v < low else (high * v if v > high else v * v)


def helper_branches(x: real["N"]):  # N=6
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = _clampy(x[i], high=0.9) + _clampy(x[i] * 2, -1.0)
    return y


def _deep(u):
    return _deeper(u) * u


def _deeper(u):
    if np.sum(u) > 0:
        return u * u
    return np.sin(u)


def helper_early(x: real["N"]):  # N=4
    return _deep(x) + _deep(x * 2)


def loop_variable_assigned(x: real["N"]):  # N=6
    s = 1.0
    for i in range(x.shape[0]):
        i = i // 2
        s = s * x[i] + x[i + 1]
    return s


def shadowed_loop_variable(x: real["N M"]):  # N=3 M=2
    s = 0.0
    for i in range(x.shape[0]):
        k = i
        for i in range(x.shape[1]):
            s = s + x[k, i] * s + x[k, i]
    return s


# -- integer arithmetic in indices ----------------------------------------------------------------------------------
def index_arithmetic(x: real["N"]):  # N=6
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[(i * 5 + 2) % x.shape[0]] = x[i] * x[i // 2]
    return y


def colliding_modulo(x: real["N"]):  # N=6
    y = np.zeros(3)
    for i in range(x.shape[0]):
        y[i % 3] = x[i] * x[i] + 0.5 * y[(i + 1) % 3]
    return y


def colliding_sum(x: real["N"]):  # N=6
    y = np.ones(3)
    for i in range(x.shape[0]):
        y[i // 2] *= x[i]
    return y


def reversed_index(x: real["N"]):  # N=5
    y = x * x
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i] = y[i] * x[i]
    return y


def negative_index(x: real["N"]):  # N=5
    y = x * x
    for i in range(1, x.shape[0]):
        y[-i] = y[i - 1] * x[-1]
    return y


def down_by_two(x: real["7"]):  #
    y = x * 1.0
    for i in range(6, 1, -2):
        y[i - 2] = y[i] * x[i - 1] + y[i - 2]
    return y


def down_to_zero(x: real["N"]):  # N=5
    s = np.zeros_like(x)
    for i in range(x.shape[0] - 1, -1, -1):
        s[i] = x[i] * (s[i + 1] if i + 1 < x.shape[0] else 1.0)
    return s


def up_from_two(x: real["N"]):  # N=7
    h = 1.0
    for i in range(2, x.shape[0], 2):
        h = h * x[i] + x[i - 2] * h * h
    return h


def gathered(x: real["N M"], i: i64["K"]):  # N=4 M=3 K=6
    y = x[i] * 2
    return y * y + x[i, 0][:, None]


def gather_in_loop(x: real["N"], i: i64["K"]):  # N=4 K=6
    s = 1.0
    for k in range(i.shape[0]):
        s = s * 0.5 + x[i[k]] * s
    return s


def scatter_in_loop(x: real["N"], i: i64["K"], w: real["K"]):  # N=4 K=6
    y = x * 1.0
    for k in range(i.shape[0]):
        y[i[k]] += w[k] * w[k]
    return y * y


def scatter_overwrite_in_loop(x: real["N"], i: i64["K"], w: real["K"]):  # N=4 K=6
    y = x * 1.0
    for k in range(i.shape[0]):
        y[i[k]] = w[k] * y[i[k]] + w[k]
    return y * y


def add_at(x: real["N"], i: i64["K"], w: real["K"]):  # N=4 K=6
    y = x * x
    np.add.at(y, i, w * w)
    return y * y


def gather_two(x: real["N M"], i: i64["K"], j: i64["K"]):  # N=4 M=4 K=6
    return x[i, j] * x[j, i]


def gather_middle(x: real["P N Q"], i: i64["K"]):  # P=2 N=4 Q=3 K=5
    return x[:, i] * x[:, i, :]


def embedding(table: real["V D"], i: i64["T"], w: real["D"]):  # V=4 D=3 T=5
    e = table[i]
    return np.tanh(e @ w)


def argmax_select(x: real["N M"]):  # N=4 M=3
    k = np.argmax(x, axis=1)
    s = 0.0
    for i in range(x.shape[0]):
        s = s + x[i, k[i]] * x[i, 0]
    return s


# -- broadcasting and reductions -------------------------------------------------------------------------------------
def broadcasts(a: real["N 1 M"], b: real["K 1"], c: real[""], d: real["M"]):  # N=2 K=3 M=4 low=0.5 high=2.0
    return (a / b) ** c + np.maximum(a * d, b) - d / (c + b)


def divide_chain(a: real["N 1"], b: real["1 M"], c: real["N M"]):  # N=3 M=4 low=0.5 high=2.0
    return a / b / c - c / a + b ** a


def reductions_in_loop(x: real["T N M"]):  # T=3 N=4 M=2
    s = np.ones(x.shape[2])
    for t in range(x.shape[0]):
        m = np.max(x[t], axis=0)
        s = s * m + np.mean(x[t] * s, axis=0) + np.std(x[t], axis=0)
    return s


def reductions_axes(x: real["A B C D"]):  # A=2 B=3 C=2 D=3
    u = np.mean(x * x, axis=(-1, 1))
    v = np.var(x, axis=(0, 2), keepdims=True)
    w = np.max(x, axis=-2)
    return u * np.sum(v) + np.sum(w, axis=(1, -1))[:, None], np.sum(x * v, axis=(3, 0, 1))


def softmax_by_hand(x: real["N M"]):  # N=3 M=4
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def norms(x: real["N M"]):  # N=3 M=4
    n = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
    return x / n, np.sum(x / np.linalg.norm(x))


def shared_everywhere(x: real["N"]):  # N=4
    t = np.exp(-x * x)
    u = t + t * t
    return (u - t) * (t / (1 + u)) + u


def outer_sum(x: real["N"], y: real["M"]):  # N=3 M=4
    d = x[:, None] - y[None, :]
    k = np.exp(-d * d)
    return k @ y, np.sum(k, axis=0) * y


def pieces(x: real["4 3"]):  #
    a = np.concatenate([x[1:], x[:1] * 2], axis=0)
    b = np.concatenate([a[:, ::-1], x * a], axis=-1)
    return b[:, 1:5] * b[:, :4]


def shape_moves(x: real["A B C"]):  # A=2 B=3 C=4
    y = np.transpose(x, (1, 2, 0)).reshape(x.shape[1], x.shape[2] * x.shape[0])
    z = np.swapaxes(x, 0, 1).reshape(x.shape[1], -1)
    return y * z + np.flip(y, axis=1)


def einsums(a: real["B N K"], b: real["B K M"], v: real["M"]):  # B=2 N=3 K=2 M=3
    return np.einsum("bnk,bkm,m->nb", a, b, v), np.einsum("bnk->kb", a)


def bilinear_form(x: real["N D"], w: real["D D"]):  # N=3 D=3
    return np.einsum("ni,ij,nj->n", x, w, x)


def quadratic(x: real["N"], a: real["N N"]):  # N=4
    return x @ a @ x + np.sum((a @ a.T) * np.outer(x, x))


# -- layers ----------------------------------------------------------------------------------------------------------
def batchnorm(x: real["N C"], g: real["C"], b: real["C"]):  # N=5 C=3
    m = x.mean(axis=0)
    v = x.var(axis=0)
    return g * (x - m) / np.sqrt(v + 1e-5) + b


def groupnorm(x: real["2*G N"], g: real["2*G"]):  # G=2 N=3
    y = x.reshape(2, x.shape[0] // 2 * x.shape[1])
    y = (y - np.mean(y, axis=1, keepdims=True)) / (np.std(y, axis=1, keepdims=True) + 1e-3)
    return y.reshape(x.shape[0], x.shape[1]) * g[:, None]


def attention(x: real["T D"], q: real["D D"], k: real["D D"], v: real["D D"]):  # T=4 D=3
    s = (x @ q) @ (x @ k).T / np.sqrt(x.shape[1])
    a = special.softmax(s, axis=-1)
    return a @ (x @ v)


def causal_attention(q: real["T D"], k: real["T D"], v: real["T D"]):  # T=4 D=3
    y = np.zeros_like(v)
    for t in range(q.shape[0]):
        s = np.zeros(q.shape[0])
        for u in range(t + 1):
            s[u] = np.exp(np.sum(q[t] * k[u]) * 0.3)
        for u in range(t + 1):
            y[t] += s[u] / np.sum(s) * v[u]
    return y


def gru(x: real["T D"], h: real["D"], wz: real["D D"], uz: real["D D"], wh: real["D D"], uh: real["D D"]):  # T=3 D=2
    for t in range(x.shape[0]):
        z = special.expit(x[t] @ wz + h @ uz)
        r = special.expit(h @ wz - x[t] @ uz)
        c = np.tanh(x[t] @ wh + (r * h) @ uh)
        h = (1 - z) * h + z * c
    return h


def lstm(x: real["T D"], w: real["D 4*D"], u: real["D 4*D"], b: real["4*D"]):  # T=3 D=2
    D = x.shape[1]
    h = np.zeros(D)
    c = np.zeros(D)
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        g = x[t] @ w + h @ u + b
        i, f, o = special.expit(g[:D]), special.expit(g[D : 2 * D]), special.expit(g[2 * D : 3 * D])
        c = f * c + i * np.tanh(g[3 * D :])
        h = o * np.tanh(c)
        y[t] = h
    return y, c


def soft_dtw(c: real["N M"], gamma: real[""]):  # N=3 M=4 low=0.3 high=2.0
    n, m = c.shape
    r = np.full((n + 1, m + 1), 1e3)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, d = -r[i - 1, j] / gamma, -r[i, j - 1] / gamma, -r[i - 1, j - 1] / gamma
            top = max(a, b, d)
            r[i, j] = c[i - 1, j - 1] - gamma * (top + np.log(np.exp(a - top) + np.exp(b - top) + np.exp(d - top)))
    return r[n, m]


def crf(e: real["T K"], trans: real["K K"]):  # T=4 K=3
    a = e[0]
    for t in range(1, e.shape[0]):
        a = special.logsumexp(a[:, None] + trans, axis=0) + e[t]
    return special.logsumexp(a)


def crf_loops(e: real["T K"], trans: real["K K"]):  # T=4 K=3
    a = np.zeros_like(e)
    a[0] = e[0]
    for t in range(1, e.shape[0]):
        for k in range(e.shape[1]):
            top = np.max(a[t - 1] + trans[:, k])
            s = 0.0
            for j in range(e.shape[1]):
                s += np.exp(a[t - 1, j] + trans[j, k] - top)
            a[t, k] = top + np.log(s) + e[t, k]
    return special.logsumexp(a[-1])


def viterbi_score(e: real["T K"], trans: real["K K"]):  # T=4 K=3
    a = e[0] * 1.0
    for t in range(1, e.shape[0]):
        a = np.max(a[:, None] + trans, axis=0) + e[t]
    return np.max(a)


def kalman(z: real["T"], q: real[""], r: real[""]):  # T=5 low=0.3 high=1.5
    m, p = 0.0, 1.0
    y = np.zeros_like(z)
    for t in range(z.shape[0]):
        p = p + q * q
        k = p / (p + r * r)
        m = m + k * (z[t] - m)
        p = (1 - k) * p
        y[t] = m
    return y, p


def kalman_matrix(z: real["T"], a: real["2 2"], q: real["2 2"]):  # T=4 low=0.1 high=0.9
    m = np.zeros(2)
    p = np.eye(2)
    ll = 0.0
    for t in range(z.shape[0]):
        m = a @ m
        p = a @ p @ a.T + q @ q.T
        s = p[0, 0] + 0.5
        g = p[:, 0] / s
        e = z[t] - m[0]
        m = m + g * e
        p = p - np.outer(g, p[0])
        ll = ll - 0.5 * (np.log(s) + e * e / s)
    return ll, m


def sinkhorn(c: real["N M"]):  # N=3 M=4 low=0.1 high=2.0
    k = np.exp(-c)
    u = np.ones(c.shape[0])
    v = np.ones(c.shape[1])
    for it in range(4):
        u = 1.0 / (k @ v)
        v = 1.0 / (k.T @ u)
    return np.sum(u[:, None] * k * v[None, :] * c)


def bilinear_warp(img: real["H W"], flow: real["P 2"]):  # H=5 W=6 P=4 low=0.6 high=2.9
    y = np.zeros(flow.shape[0])
    for p in range(flow.shape[0]):
        r, c = flow[p, 0], flow[p, 1]
        i, j = int(np.floor(r)), int(np.floor(c))
        a, b = r - i, c - j
        y[p] = (1 - a) * ((1 - b) * img[i, j] + b * img[i, j + 1]) + a * ((1 - b) * img[i + 1, j] + b * img[i + 1, j + 1])
    return y


def bilinear_vector(img: real["H W"], r: real["P"], c: real["P"]):  # H=5 W=6 P=4 low=0.6 high=2.9
    i = np.floor(r).astype(np.int64)
    j = np.floor(c).astype(np.int64)
    a, b = r - i, c - j
    return (1 - a) * ((1 - b) * img[i, j] + b * img[i, j + 1]) + a * ((1 - b) * img[i + 1, j] + b * img[i + 1, j + 1])


def ctc(logits: real["T K"]):  # T=4 K=3
    lp = special.log_softmax(logits, axis=1)
    a = np.full(3, -50.0)
    a[0] = lp[0, 0]
    a[1] = lp[0, 1]
    for t in range(1, logits.shape[0]):
        b = np.full(3, -50.0)
        b[0] = a[0] + lp[t, 0]
        b[1] = np.logaddexp(a[1], a[0]) + lp[t, 1]
        b[2] = np.logaddexp(a[2], a[1]) + lp[t, 0]
        a = b
    return -np.logaddexp(a[2], a[1])


def ema(x: real["T D"], d: real["D"]):  # T=5 D=3 low=0.1 high=0.9
    y = np.zeros_like(x)
    h = x[0]
    for t in range(x.shape[0]):
        h = d * h + (1 - d) * x[t]
        y[t] = h
    return y


def leapfrog(q: real["D"], p: real["D"], eps: real[""]):  # D=3 low=0.1 high=0.6
    for k in range(4):
        p = p - 0.5 * eps * q * np.cos(q)
        q = q + eps * p
        p = p - 0.5 * eps * q * np.cos(q)
    return q, p


def runge_kutta(y: real["D"], a: real["D D"], h: real[""]):  # D=3 low=-0.6 high=0.6
    def f(u):
        return np.tanh(a @ u)
    for k in range(3):
        k1 = f(y)
        k2 = f(y + 0.5 * h * k1)
        k3 = f(y + 0.5 * h * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def cholesky_by_hand(b: real["N N"]):  # N=3 low=0.2 high=1.2
    a = b @ b.T + np.eye(b.shape[0])
    l = np.zeros_like(a)
    for j in range(a.shape[0]):
        s = a[j, j]
        for k in range(j):
            s = s - l[j, k] * l[j, k]
        l[j, j] = np.sqrt(s)
        for i in range(j + 1, a.shape[0]):
            t = a[i, j]
            for k in range(j):
                t = t - l[i, k] * l[j, k]
            l[i, j] = t / l[j, j]
    return l


def forward_substitution(l: real["N N"], b: real["N"]):  # N=4 low=0.5 high=1.5
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - np.sum(l[i, :i] * x[:i])) / l[i, i]
    return x


def elimination(a: real["N N"], b: real["N"]):  # N=3 low=0.1 high=0.5
    m = a + 2 * np.eye(b.shape[0])
    for k in range(b.shape[0]):
        for i in range(k + 1, b.shape[0]):
            f = m[i, k] / m[k, k]
            m[i] -= f * m[k]
            b[i] -= f * b[k]
    for i in range(b.shape[0] - 1, -1, -1):
        b[i] = (b[i] - np.sum(m[i, i + 1 :] * b[i + 1 :])) / m[i, i]
    return b


def prefix_means(x: real["N"]):  # N=5
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = np.mean(x[: i + 1]) * np.max(x[i:])
    return y


def max_pool(x: real["H W"]):  # H=4 W=6
    y = np.zeros((x.shape[0] // 2, x.shape[1] // 2))
    for i in range(x.shape[0] // 2):
        for j in range(x.shape[1] // 2):
            y[i, j] = np.max(x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])
    return y


def power_iteration(a: real["N N"], v: real["N"]):  # N=3 low=0.2 high=1.0
    for k in range(4):
        w = a @ v
        v = w / np.sqrt(np.sum(w * w))
    return v @ a @ v


def two_loops_one_array(x: real["N"]):  # N=5
    y = x * 1.0
    for i in range(1, x.shape[0]):
        y[i] = y[i] * y[i - 1]
    for i in range(x.shape[0] - 2, -1, -1):
        y[i] = y[i] + y[i + 1] * x[i]
    return y


def matrix_product_loop(a: real["N K"], b: real["K M"]):  # N=3 K=4 M=2
    y = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                y[i, j] = y[i, j] + a[i, k] * b[k, j]
    return y


def horner(c: real["K"], x: real["N"]):  # K=4 N=3
    y = np.zeros_like(x)
    for k in reversed(range(c.shape[0])):
        y = y * x + c[k]
    return y


def zip_targets(x: real["N M"], y: real["N M"], w: real["N"]):  # N=4 M=3
    s = np.zeros(x.shape[1])
    for p, q, a in zip(x, reversed(y), w):
        s = s * a + p * q * s + q
    return s


def enumerate_from(x: real["N"]):  # N=5
    s = 0.0
    for k, v in enumerate(x[1:], 1):
        s = s * v + k * v * x[k - 1]
    return s


def row_written_while_looped(x: real["N M"]):  # N=4 M=3
    y = x * 1.0
    for i, r in enumerate(x):
        y[i] = r * r
        y[0] += r
    return y * x


def stays_constant(x: real["N"], w: real["N"]):  # N=4
    y = np.ones_like(x)
    for i in range(x.shape[0]):
        y[i] = 2.0 * y[i - 1]
    return y * x


def forgotten(x: real["N"], w: real["N"]):  # N=4
    y = w * w
    y[:] = x
    z = np.sin(w)
    z = x * y
    return z


def twins(x: real["N"], c: real[""]):  # N=4
    if c > 0:
        a = b = x * 2
    else:
        a = x
        b = x * x
    return a * b


def twins_loop(x: real["N"]):  # N=4
    a = 1.0
    b = 2.0
    for i in range(x.shape[0]):
        a = b = a * x[i] + b
    return a * b


def call_it_dy(x: real["N"], y: real["N"]):  # N=4
    dy = x * y
    d_x = dy * dy
    d_dy = np.sin(d_x)
    return d_dy * x


def call_it_y2(x: real["N"], y: real["N"]):  # N=4
    y2 = x * y
    y1 = np.sum(y2)
    return y1 * y2, y2 * x[0]


def repeated_letters(x: real["N N"], v: real["N"]):  # N=3
    return np.einsum("ii->", x) * np.einsum("ii,i->i", x * x, v)


def scatter_duplicates(x: real["N"], i: i64["K"], w: real["K"]):  # N=3 K=6
    y = x * x
    y[i] = w * w
    return y * x


def branch_stores_then_read(x: real["N"], a: real[""]):  # N=4
    y = x * x
    if a > 0:
        z = y * a
        y[0] = z[1] * a
        y[1] = y[0] * y[0]
        z = z * y
    else:
        z = y + a
        y[2] = z[2] * z[3]
    return y * z


def branch_stores_in_loop(x: real["N"], a: real[""]):  # N=4
    y = x * x
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] * x[i] + 0.1
        if y[i] > a:
            y[i - 1] = y[i] * y[i - 1]
            if x[i] > 0:
                y[0] = y[i] * x[0]
        y[i] += x[i - 1] * y[0]
    return y * a


def while_stores(x: real["N"]):  # N=4 low=0.2 high=0.9
    y = x * 1.0
    k = 0
    while y[0] < 3.0 and k < 6:
        y[0] = y[0] * 1.5 + y[1]
        y[1:] = y[:-1] * x[1:]
        k += 1
    return y * y


def loops_in_branches(x: real["N"], a: real[""]):  # N=4
    y = x * x
    if a > 0.3:
        for i in range(1, x.shape[0]):
            y[i] *= y[i - 1]
    elif a > -0.8:
        k = 0
        while k < 2:
            y[k] = y[k + 1] * y[k] * a
            k += 1
    return y * a


def _exchange(v, i, j):
    t = v[i]
    v[i] = v[j] * 2
    v[j] = t


def helper_swaps(x: real["N"]):  # N=4
    y = x * x
    for i in range(x.shape[0] // 2):
        _exchange(y, i, x.shape[0] - 1 - i)
    return y * x


def state_machine(x: real["N"]):  # N=8
    mode = 0
    s = 0.5
    for i in range(x.shape[0]):
        if mode == 0:
            s = s * x[i]
            mode = 1 if x[i] > 0 else 2
        elif mode == 1:
            s = s + x[i] * x[i]
            mode = 2
        else:
            s = np.sin(s) - x[i]
            mode = 0 if s > 0 else 1
    return s * s


def running_max(x: real["N"]):  # N=6
    m = x[0]
    k = 0
    for i in range(1, x.shape[0]):
        if x[i] > m:
            m, k = x[i], i
    return m * x[k] + x[k] * x


def three_outputs(x: real["N"], w: real["N"]):  # N=4
    y = x * w
    y[0] = 2.0
    z = y * y
    y[1] = z[0] * w[0]
    return y, np.sum(z), x * 2


def output_is_input(x: real["N"], w: real["N"]):  # N=4
    return x, w[::-1], x


def one_iteration_window(x: real["N"]):  # N=1
    s = 0.3
    for i in range(x.shape[0]):
        s = s * x[i] + x[i]
    for i in range(1, x.shape[0]):
        s = s * 100
    return s * s


def nobody(x: real["N M"]):  # N=0 M=3
    h = np.ones(x.shape[1]) * 2
    for i in range(x.shape[0]):
        h = h * x[i]
    return h, np.sum(x * x), np.sum(x, axis=1), x * 2


def deep_nest(x: real["N"]):  # N=3
    y = np.ones_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if i != j:
                for k in range(2):
                    n = 0
                    while n < 2:
                        y[i] = y[i] * 0.5 + np.sin(y[j] * x[k])
                        n += 1
    return y


def flip_in_loop(x: real["N"], w: real["N"]):  # N=4
    for k in range(3):
        x = x[::-1] * w
        x[0] = x[1] * x[2]
    return x


def roll_by_hand(x: real["N"]):  # N=5
    y = x * 1.0
    for k in range(2):
        t = y[0]
        for i in range(x.shape[0] - 1):
            y[i] = y[i + 1] * x[i]
        y[x.shape[0] - 1] = t * t
    return y


def levinson(r: real["N"]):  # N=4 low=0.1 high=0.4
    a = np.zeros_like(r)
    e = 1.0
    for k in range(r.shape[0]):
        acc = r[k]
        for j in range(k):
            acc = acc - a[j] * r[k - 1 - j]
        g = acc / e
        b = a.copy()
        for j in range(k):
            a[j] = b[j] - g * b[k - 1 - j]
        a[k] = g
        e = e * (1 - g * g)
    return a * e


def gram_schmidt(a: real["N K"]):  # N=4 K=3
    q = np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j].copy()
        for k in range(j):
            v -= np.sum(q[:, k] * a[:, j]) * q[:, k]
        q[:, j] = v / np.sqrt(np.sum(v * v) + 1e-6)
    return q


def edit_distance(a: real["N"], b: real["M"]):  # N=4 M=3
    d = np.zeros((a.shape[0] + 1, b.shape[0] + 1))
    for i in range(a.shape[0] + 1):
        d[i, 0] = i * 0.7
    for j in range(b.shape[0] + 1):
        d[0, j] = j * 0.6
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            d[i + 1, j + 1] = min(d[i, j + 1] + 1.0, d[i + 1, j] + 1.0, d[i, j] + np.abs(a[i] - b[j]))
    return d[-1, -1] * np.sum(d)


def cumulative_axis(x: real["N M"]):  # N=3 M=4
    y = x * 1.0
    for j in range(1, x.shape[1]):
        y[:, j] += y[:, j - 1] * y[:, j]
    for i in range(x.shape[0] - 2, -1, -1):
        y[i, ::2] *= y[i + 1, ::2]
    return y


def weighted_sum_of_rows(x: real["N D"], i: i64["K"]):  # N=4 D=3 K=5
    h = np.zeros(x.shape[1])
    for k in range(i.shape[0]):
        h = np.tanh(h + x[i[k]]) * x[i[k], 0]
        x[i[k]] = h * 0.5
    return h, x
"""

HEAD = "import math\nimport numpy as np\nfrom scipy import special\nfrom layerc import layer, real, i64\n\n\n"
SEEDS = (0, 1, 2)

# Compiled by `make test`; all of them are where `slow` tests run.
QUICK = """
conv1 spread inner_overwrites gauss_seidel swap_in_loop nested_three array_carried_alias triangle_carried while_in_for while_nested
while_stores branch_arrays branch_stores_in_loop early_in_else ternary_index bubble view_in_loop negative_step broadcast_store
augmented_items helper_in_loop tuples_in_loop closure_counter colliding_modulo scatter_duplicates gather_in_loop soft_dtw kalman
elimination twins call_it_dy nobody
""".split()


@dataclass(frozen=True)
class Program:
    name: str
    source: str
    params: tuple[tuple[str, str, str], ...]  # name, element type, dimensions
    sizes: tuple[tuple[str, int], ...]
    low: float
    high: float

    def arguments(self, seed: int, dtype: str = "f8") -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        sizes = dict(self.sizes)
        found = {}
        for name, kind, dims in self.params:
            shape = tuple(eval(d, {}, sizes) for d in dims.split())
            if kind == "i64":
                found[name] = rng.integers(0, sizes.get("N", sizes.get("V", 3)), shape)
            else:
                found[name] = rng.uniform(self.low, self.high, shape).astype(dtype)
        return found


def parse(text: str) -> list[Program]:
    found, helpers = [], ""
    for block in re.split(r"\n\n\n", re.sub(r"^# --.*\n", "", text.strip("\n"), flags=re.MULTILINE)):
        head = re.match(r"def (\w+)\((.*?)\):(?:  # ?(.*))?$", block.splitlines()[0])
        assert head is not None, block
        if head[1].startswith("_"):
            helpers += f"{block}\n\n\n"
            continue
        options = dict(o.split("=") for o in (head[3] or "").split())
        low, high = float(options.pop("low", -2)), float(options.pop("high", 2))
        params = tuple(re.findall(r'(\w+): (\w+)\["([^"]*)"\]', head[2]))
        source = f"{helpers}@layer\n{block}\n"
        found.append(Program(head[1], source, params, tuple((k, int(v)) for k, v in options.items()), low, high))
        helpers = ""
    return found


CASES = {p.name: p for p in parse(PROGRAMS)}


# -- under NumPy -------------------------------------------------------------------------------------------------
def namespace(text: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    text = text.replace("from layerc import layer, real, i64", "layer = lambda f: f")
    exec(compile(text, "program", "exec", flags=__future__.annotations.compiler_flag), made)
    return made


@cache
def functions(name: str) -> tuple[Any, Any, str]:
    """The layer, its gradient, and the text of that."""
    program = CASES[name]
    text = gradient_file(check_file(Path("program.py"), HEAD + program.source))
    check_file(Path("gradients.py"), text)  # it is a layer file again
    return namespace(HEAD + program.source)[name], namespace(text)[f"d_{name}"], text


def tupled(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


class Run:
    """One seed of a program in float64: outputs, cotangents (None for an integer output) and the gradients of its text."""

    def __init__(self, program: Program, seed: int, dtype: str = "f8") -> None:
        self.function, gradient, _ = functions(program.name)
        self.given = program.arguments(seed, dtype)
        self.args = {k: v.astype("f8") if v.dtype.kind == "f" else v for k, v in self.given.items()}
        self.ys = [np.asarray(y) for y in tupled(self.function(**self.copies()))]
        rng = np.random.default_rng(seed + 10)
        self.dys = [
            rng.standard_normal(y.shape).astype(dtype).astype("f8") if y.dtype.kind == "f" else None for y in self.ys
        ]
        known = dict(self.args)
        for k, (y, dy) in enumerate(zip(self.ys, self.dys, strict=True)):
            number = "" if len(self.ys) == 1 else str(k + 1)
            known[f"dy{number}"] = dy
            known.setdefault(f"y{number}", y)
        self.gradients = [
            np.asarray(g)
            for g in tupled(gradient(**{k: np.array(known[k]) for k in inspect.signature(gradient).parameters}))
        ]

    def copies(self) -> dict[str, np.ndarray]:
        return {k: v.copy() for k, v in self.args.items()}

    def differences(self, name: str, h: float = 1e-6) -> np.ndarray:
        found = np.zeros_like(self.args[name])
        for index in np.ndindex(found.shape):
            for sign in (1, -1):
                moved = self.copies()
                moved[name][index] += sign * h
                ys = tupled(self.function(**moved))
                found[index] += sign * sum(
                    float(np.sum(y * dy)) for y, dy in zip(ys, self.dys, strict=True) if dy is not None
                )
        return found / (2 * h)


def close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Relative to the largest element; NaN never passes."""
    assert np.shape(found) == np.shape(expected), f"{what}: {np.shape(found)}, expected {np.shape(expected)}"
    scale = 1 + float(np.max(np.abs(expected), initial=0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, equal_nan=False, err_msg=what)


@pytest.mark.parametrize("name", CASES)
def test_the_text_is_the_derivative(name: str) -> None:
    program = CASES[name]
    for seed in SEEDS:
        run = Run(program, seed)
        floats = [n for n, kind, _ in program.params if kind == "real"]
        for argument, gradient in zip(floats, run.gradients, strict=True):
            close(gradient, run.differences(argument), 3e-6, f"d_{argument}, seed {seed}\n{functions(name)[2]}")


# -- compiled ----------------------------------------------------------------------------------------------------
FILES = [QUICK, *([n for n in CASES if n not in QUICK][k::5] for k in range(5))]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The layer of a name; files are built when they are first needed."""
    folder = tmp_path_factory.mktemp("programs")
    modules: dict[int, Any] = {}

    def layer(name: str) -> Any:
        number = next(k for k, names in enumerate(FILES) if name in names)
        if number not in modules:
            source = folder / f"programs_{number}.py"
            source.write_text(HEAD + "\n\n".join(CASES[n].source for n in FILES[number]))
            target = build(source)
            spec = importlib.util.spec_from_file_location(
                target.name, target / "__init__.py", submodule_search_locations=[str(target)]
            )
            assert spec is not None and spec.loader is not None
            modules[number] = sys.modules[target.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(modules[number])
        return getattr(modules[number], name)

    return layer


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_the_library_is_the_text(compiled: Any, name: str) -> None:
    program, layer = CASES[name], compiled(name)
    for dtype, tolerance in (("f8", 1e-10), ("f4", 2e-3)):
        runs = [Run(program, seed, dtype) for seed in SEEDS]
        batch = [np.stack([run.given[n] for run in runs]) for n, _, _ in program.params]
        kept = [a.copy() for a in batch]
        y, pullback = layer.vjp(*batch, batch=True)
        for k, found in enumerate(tupled(y)):
            close(found, np.stack([run.ys[k] for run in runs]), tolerance, f"output {k}, {dtype}")
        dys = []
        for k, run_y in enumerate(runs[0].ys):
            stacked = [run.dys[k] for run in runs]
            dys.append(
                np.zeros((len(runs), *run_y.shape), "i8") if stacked[0] is None else np.stack(stacked).astype(dtype)
            )
        gradients = pullback(*dys)
        assert [g is not None for g in gradients] == [kind == "real" for _, kind, _ in program.params]
        for (argument, *_), found, k in zip(
            [p for p in program.params if p[1] == "real"], [g for g in gradients if g is not None], range(99)
        ):
            assert found.dtype == np.dtype(dtype)
            close(found, np.stack([run.gradients[k] for run in runs]), tolerance, f"d_{argument}, {dtype}")
        for a, b in zip(batch, kept, strict=True):
            assert np.array_equal(a, b), "an argument was changed"


def test_the_tables_agree() -> None:
    assert len(CASES) > 150
    assert set(QUICK) <= set(CASES)
    assert sorted(n for names in FILES for n in names) == sorted(CASES)


@pytest.mark.parametrize(
    "wrong",
    [lambda g: g * 1.001, lambda g: g + np.nan, lambda g: g[:-1], lambda g: g[..., None]],
    ids=["scaled", "nan", "short", "axis"],
)
def test_the_comparison_can_fail(wrong: Any) -> None:
    gradient = np.array([1.0, -2.0, 3.0])
    with pytest.raises(AssertionError):
        close(wrong(gradient), gradient, 2e-4, "")
