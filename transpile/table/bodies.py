"""What operations with loops of their own mean: functions of the subset that fill `y`.

They are parsed, typed for the arguments of each call and lowered where it stands (lowering/inlined.py), once for every index of
the axes that they do not see. They run under NumPy too. Their indices are in range by construction and are not checked, so
none of them may come from the values of an argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


# -- along an axis, which is the first here; the others follow ---------------------------------------------------
def cumsum(a: Array, y: Array) -> None:
    y[:1] = a[:1]
    for i in range(1, a.shape[0]):
        y[i] = y[i - 1] + a[i]


def cumprod(a: Array, y: Array) -> None:
    y[:1] = a[:1]
    for i in range(1, a.shape[0]):
        y[i] = y[i - 1] * a[i]


def roll(a: Array, shift: int, y: Array) -> None:
    n = a.shape[0]
    k = shift % max(n, 1)
    for i in range(k):
        y[i] = a[i + n - k]
    for i in range(k, n):
        y[i] = a[i - k]


# -- of a vector -----------------------------------------------------------------------------------------------
def argsort(a: Array, y: Array) -> None:
    """Runs of 64 are sorted by counting, in vectors, what goes before each element; then a merge sort from the bottom up:
    stable, NaN last. A few elements are counted and chosen at known places: many such rows go side by side."""
    n = a.shape[0]
    if n <= 8:
        for i in range(n):
            y[i] = 0
        for i in range(n):
            q = a[i]
            own: Any = np.where(q != q, i + n, i)  # NaN is behind all that is equal to it
            rank: Any = 0
            for j in range(n):
                p = a[j]
                rank += np.where((p < q) | (~(q < p) & (np.where(p != p, j + n, j) < own)), 1, 0)
            for k in range(n):
                y[k] = np.where(rank == k, i, y[k])
        return
    run = 64
    for i in range(n):
        y[i] = 0  # all of it is stored, if not in order
    place = np.empty(run)
    count = np.empty(run)
    for first in range(0, n, run):
        m = min(run, n - first)
        for i in range(m):
            place[i] = np.where(a[first + i] != a[first + i], i + run, i)  # NaN is behind all that is equal to it
            count[i] = 0.0
        for j in range(m):
            for i in range(m):
                p = a[first + j]
                q = a[first + i]
                count[i] += np.where((p < q) | (~(q < p) & (place[j] < place[i])), 1.0, 0.0)
        for i in range(m):
            y[first + int(count[i])] = first + i
    before = np.empty(n, dtype=np.int64)
    width = run
    while width < n:
        for i in range(n):
            before[i] = y[i]
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            left = start
            right = middle
            for k in range(start, stop):
                from_left = left < middle
                if left < middle:
                    if right < stop:
                        p = a[before[left]]
                        q = a[before[right]]
                        from_left = not (q < p or (p != p and q == q))
                if from_left:
                    y[k] = before[left]
                    left += 1
                else:
                    y[k] = before[right]
                    right += 1
            start = stop
        width = 2 * width


def argleast(a: Array, count: int, y: Array) -> None:
    """The first `count` of argsort: each element takes its place among the least so far, which move up."""
    n = a.shape[0]
    if count <= 8:
        least = np.zeros(count, dtype=a.dtype)
        for j in range(count):
            y[j] = 0
        for i in range(n):
            p = a[i]
            v = p
            at: Any = i
            for j in range(count):
                q = least[j]
                later = y[j]
                ahead: Any = (p < q) | ((q != q) & (p == p)) | (j >= i)  # and so it is ahead of all that follow
                least[j] = np.where(ahead, v, q)
                y[j] = np.where(ahead, at, later)
                v = np.where(ahead, q, v)
                at = np.where(ahead, later, at)
        return
    order = np.argsort(a)
    for j in range(count):
        y[j] = order[j]


def sort(a: Array, y: Array) -> None:
    """A few elements are exchanged with their neighbours: many such rows go side by side. NaN last."""
    n = a.shape[0]
    if n <= 9:
        for i in range(n):
            y[i] = a[i]
        for last in range(n - 1, 0, -1):
            for i in range(last):
                p = y[i]
                q = y[i + 1]
                swap: Any = ~(p <= q) & (q == q)
                y[i] = np.where(swap, q, p)
                y[i + 1] = np.where(swap, p, q)
        return
    order = np.argsort(a)
    for i in range(n):
        y[i] = a[order[i]]


# -- of matrices: small, dense, Gaussian elimination with partial pivoting ---------------------------------------
def solve(a: Array, b: Array, y: Array) -> None:
    n = a.shape[0]
    u = a.astype(y.dtype)
    y[...] = b
    for j in range(n):
        p = j
        for i in range(j + 1, n):
            if abs(u[i, j]) > abs(u[p, j]):
                p = i
        row = u[p].copy()
        assert row[j] != 0, "LinAlgError: Singular matrix"
        right = y[p].copy()
        u[p] = u[j]
        u[j] = row
        y[p] = y[j]
        y[j] = right
        for i in range(j + 1, n):
            f = u[i, j] / row[j]
            u[i, j + 1 :] -= f * row[j + 1 :]
            y[i] -= f * right
    for j in range(n - 1, -1, -1):
        y[j] /= u[j, j]
        right = y[j].copy()
        for i in range(j):
            y[i] -= u[i, j] * right


def solve_lower(a: Array, b: Array, y: Array) -> None:
    n = a.shape[0]
    y[...] = b
    for j in range(n):
        assert a[j, j] != 0, "LinAlgError: Singular matrix"
        y[j] /= a[j, j]
        right = y[j].copy()
        for i in range(j + 1, n):
            y[i] -= a[i, j] * right


def solve_upper(a: Array, b: Array, y: Array) -> None:
    n = a.shape[0]
    y[...] = b
    for j in range(n - 1, -1, -1):
        assert a[j, j] != 0, "LinAlgError: Singular matrix"
        y[j] /= a[j, j]
        right = y[j].copy()
        for i in range(j):
            y[i] -= a[i, j] * right


def inv(a: Array, y: Array) -> None:
    solve(a, np.eye(a.shape[0], dtype=y.dtype), y)


def det(a: Array, y: Array) -> None:
    n = a.shape[0]
    u = a.astype(y.dtype)
    if n == 3:  # what it is by definition has fewer steps, and rounds no worse
        first = u[0, 0] * (u[1, 1] * u[2, 2] - u[1, 2] * u[2, 1])
        second = u[0, 1] * (u[1, 0] * u[2, 2] - u[1, 2] * u[2, 0])
        third = u[0, 2] * (u[1, 0] * u[2, 1] - u[1, 1] * u[2, 0])
        y[...] = first - second + third
        return
    y[...] = 1
    for j in range(n):
        p = j
        for i in range(j + 1, n):
            if abs(u[i, j]) > abs(u[p, j]):
                p = i
        row = u[p].copy()
        u[p] = u[j]
        y[...] *= -row[j] if p != j else row[j]
        if row[j] != 0:
            for i in range(j + 1, n):
                f = u[i, j] / row[j]
                u[i, j + 1 :] -= f * row[j + 1 :]


def cholesky(a: Array, y: Array) -> None:
    """Reads the lower triangle only."""
    n = a.shape[0]
    y[...] = 0
    for j in range(n):
        d = a[j, j] - np.sum(y[j, :j] * y[j, :j])
        assert d > 0, "LinAlgError: Matrix is not positive definite"
        y[j, j] = np.sqrt(d)
        for i in range(j + 1, n):
            y[i, j] = (a[i, j] - np.sum(y[i, :j] * y[j, :j])) / y[j, j]
