"""Linear algebra as people write it in NumPy (after PolyBench and NPBench)."""

import numpy as np

from layerc import layer, real


@layer
def gemm(alpha: real[""], beta: real[""], C: real["NI NJ"], A: real["NI NK"], B: real["NK NJ"]):  # NI=3 NJ=4 NK=2
    C[:] = alpha * A @ B + beta * C
    return C


@layer
def two_mm(alpha: real[""], beta: real[""], A: real["N K"], B: real["K M"], C: real["M L"], D: real["N L"]):  # N=2 K=3 M=2 L=3
    D[:] = alpha * A @ B @ C + beta * D
    return D


@layer
def three_mm(A: real["N K"], B: real["K M"], C: real["M L"], D: real["L P"]):  # N=2 K=3 M=2 L=3 P=2
    return A @ B @ (C @ D)


@layer
def atax(A: real["M N"], x: real["N"]):  # M=3 N=4
    return (A @ x) @ A


@layer
def bicg(A: real["N M"], p: real["M"], r: real["N"]):  # M=3 N=4
    return r @ A, A @ p


@layer
def mvt(x1: real["N"], x2: real["N"], y1: real["N"], y2: real["N"], A: real["N N"]):  # N=4
    x1 += A @ y1
    x2 += y2 @ A
    return x1, x2


@layer
def gesummv(alpha: real[""], beta: real[""], A: real["N N"], B: real["N N"], x: real["N"]):  # N=4
    return alpha * A @ x + beta * B @ x


@layer
def gemver(a: real[""], b: real[""], A: real["N N"], u1: real["N"], v1: real["N"], u2: real["N"], v2: real["N"], w: real["N"], x: real["N"], y: real["N"], z: real["N"]):  # N=3
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += b * y @ A + z
    w += a * A @ x
    return A, x, w


@layer
def syrk(alpha: real[""], beta: real[""], C: real["N N"], A: real["N M"]):  # N=4 M=3
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]
    return C


@layer
def syr2k(alpha: real[""], beta: real[""], C: real["N N"], A: real["N M"], B: real["N M"]):  # N=4 M=3
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]
    return C


@layer
def symm(alpha: real[""], beta: real[""], C: real["M N"], A: real["M M"], B: real["M N"]):  # M=4 N=3 edge=1
    temp2 = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2
    return C


@layer
def trmm(alpha: real[""], A: real["M M"], B: real["M N"]):  # M=4 N=3
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha
    return B


@layer
def trisolv(L: real["N N"], b: real["N"]):  # N=4 low=1 high=2
    x = np.zeros_like(b)
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


@layer
def durbin(r: real["N"]):  # N=5 low=0.05 high=0.3 edge=1
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@layer
def cholesky_loops(M: real["N N"]):  # N=4 low=-0.3 high=0.3
    n = M.shape[0]
    A = (M + M.T) / 2 + 3 * np.eye(n)
    for i in range(n):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])
    return np.tril(A)


@layer
def cholesky_vectors(M: real["N N"]):  # N=4 low=-0.3 high=0.3 edge=1
    A = M @ M.T + 2 * np.eye(M.shape[0])
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])
    return A


@layer
def lu(M: real["N N"]):  # N=4 low=-0.3 high=0.3
    A = M + 2 * np.eye(M.shape[0])
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A


@layer
def ludcmp(M: real["N N"], b: real["N"]):  # N=4 low=-0.3 high=0.3
    A = M + 2 * np.eye(M.shape[0])
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(A.shape[0]):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(A.shape[0] - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


@layer
def lu_pivoted(M: real["N N"], b: real["N"]):  # N=4 edge=1
    n = M.shape[0]
    A = M.copy()
    x = b.copy()
    for k in range(n - 1):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            for j in range(n):
                t = A[k, j]
                A[k, j] = A[p, j]
                A[p, j] = t
            x[k], x[p] = x[p], x[k]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i, k:] -= f * A[k, k:]
            x[i] -= f * x[k]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


@layer
def gram_schmidt(A: real["M N"]):  # M=4 N=3
    Q = np.zeros_like(A)
    R = np.zeros((A.shape[1], A.shape[1]), dtype=A.dtype)
    for k in range(A.shape[1]):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


@layer
def covariance(data: real["N M"]):  # N=5 M=3 edge=-
    n = data.shape[0]
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((data.shape[1], data.shape[1]), dtype=data.dtype)
    for i in range(data.shape[1]):
        cov[i:, i] = data[:, i] @ data[:, i:] / (n - 1)
        cov[i, i:] = cov[i:, i]
    return cov


@layer
def correlation(data: real["N M"]):  # N=5 M=3 edge=-
    n, m = data.shape
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(n) * stddev
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 :, i] = corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return corr


@layer
def doitgen(A: real["R Q P"], C4: real["P P"]):  # R=2 Q=3 P=2
    r, q, p = A.shape
    A[:] = np.reshape(np.reshape(A, (r, q, 1, p)) @ C4, (r, q, p))
    return A


@layer
def conjugate_gradient(M: real["N N"], b: real["N"]):  # N=4 low=-0.5 high=0.5 edge=1
    A = M @ M.T + np.eye(M.shape[0])
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(3):
        Ap = A @ p
        alpha = rs / (p @ Ap + 1e-6)
        x = x + alpha * p
        r -= alpha * Ap
        new = r @ r
        p = r + (new / (rs + 1e-6)) * p
        rs = new
    return x


@layer
def conjugate_gradient_until(M: real["N N"], b: real["N"]):  # N=3 low=-0.5 high=0.5 loose=1e-2 edge=1
    A = M @ M.T + 2 * np.eye(M.shape[0])
    x = np.zeros_like(b)
    r = b.copy()
    p = r
    rs = np.dot(r, r)
    k = 0
    while rs > 0.05 and k < 10:
        Ap = A @ p
        alpha = rs / np.dot(p, Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = np.dot(r, r)
        p = r + (new / rs) * p
        rs = new
        k += 1
    return x, k


@layer
def power_iteration(M: real["N N"], v: real["N"]):  # N=3 low=0.2 high=1 edge=1
    A = M + M.T
    for _ in range(4):
        v = A @ v
        v = v / np.linalg.norm(v)
    return v @ A @ v, v


@layer
def givens_qr(A: real["M N"]):  # M=3 N=3 low=0.5 high=2
    m, n = A.shape
    for j in range(n):
        for i in range(m - 1, j, -1):
            a = A[i - 1, j]
            b = A[i, j]
            r = np.hypot(a, b)
            c = a / r
            s = b / r
            for k in range(n):
                u = c * A[i - 1, k] + s * A[i, k]
                w = -s * A[i - 1, k] + c * A[i, k]
                A[i - 1, k] = u
                A[i, k] = w
    return A


@layer
def jacobi_eigen(M: real["N N"]):  # N=3 low=0.2 high=1 edge=1
    A = M + M.T
    n = A.shape[0]
    for p in range(n):
        for q in range(p + 1, n):
            theta = 0.5 * np.arctan2(2 * A[p, q], A[q, q] - A[p, p])
            c, s = np.cos(theta), np.sin(theta)
            J = np.eye(n)
            J[p, p] = c
            J[q, q] = c
            J[p, q] = s
            J[q, p] = -s
            A = J.T @ A @ J
    return np.diagonal(A)


@layer
def thomas(a: real["N"], b: real["N"], c: real["N"], d: real["N"]):  # N=5 low=0.1 high=0.5 edge=1
    n = d.shape[0]
    bb = b + 2
    cp = np.zeros(n)
    dp = np.zeros(n)
    x = np.zeros(n)
    cp[0] = c[0] / bb[0]
    dp[0] = d[0] / bb[0]
    for i in range(1, n):
        m = bb[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


@layer
def determinant(M: real["N N"]):  # N=3 low=0.3 high=1
    A = M + 2 * np.eye(M.shape[0])
    d = 1.0
    for k in range(A.shape[0]):
        d = d * A[k, k]
        for i in range(k + 1, A.shape[0]):
            A[i, k:] = A[i, k:] - A[i, k] / A[k, k] * A[k, k:]
    return d, np.linalg.det(M)


@layer
def solves(M: real["N N"], b: real["N"], B: real["N K"]):  # N=3 K=2 low=-0.3 high=0.3 edge=1
    A = M + np.eye(M.shape[0])
    L = np.linalg.cholesky(A @ A.T)
    return np.linalg.solve(A, b), np.linalg.solve(A, B), np.linalg.inv(A), np.linalg.solve(L, b), np.linalg.det(A)
