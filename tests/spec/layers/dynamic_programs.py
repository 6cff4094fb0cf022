"""Dynamic programming, parsing, alignment, sequence models and searches."""

import numpy as np

from layerc import Param, i64, layer, real


@layer
def smith_waterman(s: real["N M"], gap: real[""]):  # N=4 M=3
    n, m = s.shape
    h = np.zeros((n + 1, m + 1))
    best = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            h[i, j] = max(0.0, h[i - 1, j - 1] + s[i - 1, j - 1], h[i - 1, j] - abs(gap), h[i, j - 1] - abs(gap))
            best = max(best, h[i, j])
    return best, h


@layer
def lcs(a: i64["N"], b: i64["M"]):  # N=6 M=5 ints=0:3
    n, m = a.shape[0], b.shape[0]
    L = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                L[i + 1, j + 1] = L[i, j] + 1
            else:
                L[i + 1, j + 1] = max(L[i, j + 1], L[i + 1, j])
    return L[n, m], L


@layer
def weighted_lcs(a: i64["N"], b: i64["M"], w: real["V"]):  # N=5 M=4 V=3 ints=0:3 low=0.1 edge=1
    L = np.zeros((a.shape[0] + 1, b.shape[0] + 1))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            if a[i] == b[j]:
                L[i + 1, j + 1] = L[i, j] + w[a[i] % w.shape[0]]
            else:
                L[i + 1, j + 1] = np.maximum(L[i, j + 1], L[i + 1, j])
    return L[-1, -1]


@layer
def dtw(x: real["N D"], y: real["M D"]):  # N=4 M=3 D=2 edge=1
    n, m = x.shape[0], y.shape[0]
    c = np.full((n + 1, m + 1), np.inf)
    c[0, 0] = 0
    for i in range(n):
        for j in range(m):
            d = np.sum((x[i] - y[j]) ** 2)
            c[i + 1, j + 1] = d + min(c[i, j], c[i, j + 1], c[i + 1, j])
    return c[n, m]


@layer
def soft_dtw(x: real["N D"], y: real["M D"], *, gamma: float = 0.5):  # N=4 M=3 D=2 edge=1
    n, m = x.shape[0], y.shape[0]
    r = np.full((n + 1, m + 1), 1e3)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = -r[i - 1, j - 1] / gamma, -r[i - 1, j] / gamma, -r[i, j - 1] / gamma
            k = max(a, b, c)
            z = np.exp(a - k) + np.exp(b - k) + np.exp(c - k)
            r[i, j] = np.sum((x[i - 1] - y[j - 1]) ** 2) - gamma * (np.log(z) + k)
    return r[n, m]


@layer
def viterbi(e: real["T K"], a: real["K K"]):  # T=4 K=3 edge=1
    T, K = e.shape
    v = e[0]
    back = np.zeros((T, K), dtype=np.int64)
    for t in range(1, T):
        s = v[:, None] + a
        back[t] = np.argmax(s, axis=0)
        v = np.max(s, axis=0) + e[t]
    path = np.zeros(T, dtype=np.int64)
    path[T - 1] = np.argmax(v)
    for t in range(T - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return np.max(v), path


@layer
def forward_algorithm(e: real["T K"], a: real["K K"], start: real["K"]):  # T=4 K=3 edge=1
    alpha = start + e[0]
    for t in range(1, e.shape[0]):
        m = np.max(alpha)
        alpha = np.log(np.exp(alpha - m) @ np.exp(a)) + m + e[t]
    m = np.max(alpha)
    return m + np.log(np.sum(np.exp(alpha - m)))


@layer
def forward_backward(e: real["T K"], a: real["K K"]):  # T=4 K=3 low=0.1 high=1 edge=1
    T, K = e.shape
    alpha = np.zeros((T, K))
    beta = np.ones((T, K))
    alpha[0] = e[0] / K
    for t in range(1, T):
        alpha[t] = (alpha[t - 1] @ a) * e[t]
        alpha[t] /= alpha[t].sum()
    for t in range(T - 2, -1, -1):
        beta[t] = a @ (e[t + 1] * beta[t + 1])
        beta[t] /= beta[t].sum()
    g = alpha * beta
    return g / g.sum(axis=1, keepdims=True)


def logadd(a, b):
    m = np.maximum(a, b)
    return m + np.log(np.exp(a - m) + np.exp(b - m))


@layer
def ctc(logits: real["T V"], target: i64["L"]):  # T=6 V=4 L=2 ints=1:4 edge=1
    T = logits.shape[0]
    L = target.shape[0]
    S = 2 * L + 1
    m = np.max(logits, axis=1, keepdims=True)
    lp = logits - m - np.log(np.sum(np.exp(logits - m), axis=1, keepdims=True))
    labels = np.zeros(S, dtype=np.int64)
    for k in range(L):
        labels[2 * k + 1] = target[k] % logits.shape[1]
    alpha = np.full(S, -1e5)
    alpha[0] = lp[0, 0]
    alpha[1] = lp[0, labels[1]]
    for t in range(1, T):
        new = np.full(S, -1e5)
        for s in range(S):
            a = alpha[s]
            if s > 0:
                a = logadd(a, alpha[s - 1])
            if s > 1 and labels[s] != 0 and labels[s] != labels[s - 2]:
                a = logadd(a, alpha[s - 2])
            new[s] = a + lp[t, labels[s]]
        alpha = new
    return -logadd(alpha[S - 1], alpha[S - 2])


@layer
def nussinov(seq: i64["N"], w: real["4"]):  # N=6 ints=0:4 low=0.2 edge=1
    n = seq.shape[0]
    table = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    match = w[seq[i] % 4] if seq[i] + seq[j] == 3 else 0.0
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match)
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@layer
def floyd_warshall(path: real["N N"]):  # N=4 low=0.1
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, path[:, k][:, None] + path[k])
    return path


@layer
def floyd_warshall_outer(path: real["N N"]):  # N=4 low=0.1
    for k in range(path.shape[0]):
        for i in range(path.shape[0]):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])
    return path


@layer
def bellman_ford(w: real["N N"]):  # N=4 low=0.1 edge=1
    d = np.full(w.shape[0], 1e3)
    d[0:1] = 0
    for _ in range(w.shape[0] - 1):
        d = np.minimum(d, np.min(d[:, None] + w, axis=0))
    return d


@layer
def knapsack(value: real["N"], weight: i64["N"], *, room: int = 6):  # N=4 ints=1:4 low=0.1
    best = np.zeros(room + 1)
    for i in range(value.shape[0]):
        for c in range(room, 0, -1):
            if weight[i] <= c:
                best[c] = max(best[c], best[c - weight[i]] + value[i])
    return best


@layer
def matrix_chain(p: real["N"]):  # N=5 low=0.5 edge=-
    n = p.shape[0] - 1
    m = np.zeros((n + 1, n + 1))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = 1e9
            for k in range(i, j):
                best = min(best, m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1])
            m[i, j] = best
    return m


@layer
def inside_cyk(e: real["N K"], rule: real["K K K"]):  # N=4 K=2 low=0.1 high=1 edge=1
    n, k = e.shape
    chart = np.zeros((n, n, k))
    for i in range(n):
        chart[i, i] = e[i]
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            total = np.zeros(k)
            for m in range(i, j):
                total = total + np.einsum("abc,b,c->a", rule, chart[i, m], chart[m + 1, j])
            chart[i, j] = total
    return chart[0, n - 1]


@layer
def sorting_network(x: real["4"], w: real["4"]):  #
    y = x.copy()
    for i, j in ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2)):
        a, b = min(y[i], y[j]), max(y[i], y[j])
        y[i] = a
        y[j] = b
    return y * w


@layer
def insertion_sort(x: real["N"]):  # N=6 edge=1
    for i in range(1, x.shape[0]):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


@layer
def binary_search(x: real["N"], v: real[""]):  # N=8
    s = np.sort(x)
    lo, hi = 0, s.shape[0]
    while lo < hi:
        mid = (lo + hi) // 2
        if s[mid] < v:
            lo = mid + 1
        else:
            hi = mid
    return lo, v * lo + np.sum(s)


@layer
def beam_scores(x: real["T 4"]):  # T=3
    score = np.zeros(2)
    for t in range(x.shape[0]):
        all_scores = (score[:, None] + x[t][None, :]).reshape(-1)
        order = np.argsort(-all_scores)
        score = all_scores[order[:2]]
    return score


@layer
def pagerank(a: real["N N"]):  # N=4 low=0.1 high=1 edge=1
    p = np.full(a.shape[0], 1.0 / a.shape[0])
    m = a / a.sum(axis=0)
    for _ in range(3):
        p = 0.15 / a.shape[0] + 0.85 * (m @ p)
    return p


@layer
def union_find_labels(e: i64["M 2"], x: real["N"]):  # M=4 N=5 ints=0:5 edge=-
    parent = np.arange(x.shape[0])
    for k in range(e.shape[0]):
        a, b = e[k, 0], e[k, 1]
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    s = np.zeros_like(x)
    for i in range(x.shape[0]):
        r = i
        while parent[r] != r:
            r = parent[r]
        s[r] += x[i] ** 2
    return s, parent


@layer
def histogram(x: real["N"], w: real["N"]):  # N=8 low=0 high=4
    counts = np.zeros(4, dtype=np.int64)
    sums = np.zeros(4)
    for i in range(x.shape[0]):
        b = int(x[i])
        if b >= 0 and b < 4:
            counts[b] += 1
            sums[b] += w[i] * x[i]
    return counts, sums


@layer
def segment_sums(x: real["N D"], seg: i64["N"], *, count: int = 3):  # N=6 D=2 ints=0:3
    out = np.zeros((count, x.shape[1]))
    np.add.at(out, seg, x)
    n = np.zeros(count)
    np.add.at(n, seg, 1.0)
    return out / np.maximum(n, 1)[:, None]


@layer
def run_lengths(x: i64["N"], w: real["N"]):  # N=8 ints=0:2
    run = 0
    total = 0.0
    for i in range(x.shape[0]):
        if i > 0 and x[i] == x[i - 1]:
            run += 1
        else:
            run = 1
        total += run * w[i]
    return total, run
