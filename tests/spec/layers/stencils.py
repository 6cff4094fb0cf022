"""Stencils and time steps (after PolyBench, NPBench and the weather kernels there)."""

import numpy as np

from layerc import layer, real


@layer
def jacobi_1d(A: real["N"], B: real["N"], *, steps: int = 4):  # N=7
    for t in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
    return A, B


@layer
def jacobi_2d(A: real["N M"], B: real["N M"], *, steps: int = 3):  # N=5 M=4
    for t in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
    return A, B


@layer
def heat_3d(A: real["N N N"]):  # N=4
    B = A.copy()
    for t in range(2):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, 0:-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A, B = B, A
    return A


@layer
def seidel_2d(A: real["N N"]):  # N=4
    n = A.shape[0]
    for t in range(2):
        for i in range(1, n - 1):
            A[i, 1:-1] += A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            for j in range(1, n - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0
    return A


@layer
def fdtd_2d(ex: real["X Y"], ey: real["X Y"], hz: real["X Y"], fict: real["T"]):  # X=4 Y=4 T=3
    for t in range(fict.shape[0]):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


@layer
def adi(u: real["N N"], *, steps: int = 2):  # N=5 edge=-
    n = u.shape[0]
    v = np.empty(u.shape, dtype=u.dtype)
    p = np.empty(u.shape, dtype=u.dtype)
    q = np.empty(u.shape, dtype=u.dtype)
    dx, dt = 1.0 / n, 1.0 / steps
    mul1, mul2 = 2.0 * dt / (dx * dx) * 0.1, 1.0 * dt / (dx * dx) * 0.1
    a = -mul1 / 2.0
    b = 1.0 + mul1
    c = a
    d = -mul2 / 2.0
    e = 1.0 + mul2
    f = d
    for t in range(1, steps + 1):
        v[0, 1 : n - 1] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -c / (a * p[1 : n - 1, j - 1] + b)
            q[1 : n - 1, j] = (
                -d * u[j, 0 : n - 2] + (1.0 + 2.0 * d) * u[j, 1 : n - 1] - f * u[j, 2:n] - a * q[1 : n - 1, j - 1]
            ) / (a * p[1 : n - 1, j - 1] + b)
        v[n - 1, 1 : n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]
        u[1 : n - 1, 0] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = u[1 : n - 1, 0]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -f / (d * p[1 : n - 1, j - 1] + e)
            q[1 : n - 1, j] = (
                -a * v[0 : n - 2, j] + (1.0 + 2.0 * a) * v[1 : n - 1, j] - c * v[2:n, j] - d * q[1 : n - 1, j - 1]
            ) / (d * p[1 : n - 1, j - 1] + e)
        u[1 : n - 1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1 : n - 1, j] = p[1 : n - 1, j] * u[1 : n - 1, j + 1] + q[1 : n - 1, j]
    return u


@layer
def hdiff(inp: real["A+4 B+4 K"], coeff: real["A B K"]):  # K=2 A=3 B=2
    i, j = coeff.shape[0], coeff.shape[1]
    lap = 4.0 * inp[1 : i + 3, 1 : j + 3, :] - (
        inp[2 : i + 4, 1 : j + 3, :] + inp[0 : i + 2, 1 : j + 3, :] + inp[1 : i + 3, 2 : j + 4, :] + inp[1 : i + 3, 0 : j + 2, :]
    )
    res1 = lap[1:, 1 : j + 1, :] - lap[: i + 1, 1 : j + 1, :]
    flx = np.where(res1 * (inp[2 : i + 3, 2 : j + 2, :] - inp[1 : i + 2, 2 : j + 2, :]) > 0, 0, res1)
    res2 = lap[1 : i + 1, 1:, :] - lap[1 : i + 1, : j + 1, :]
    fly = np.where(res2 * (inp[2 : i + 2, 2 : j + 3, :] - inp[2 : i + 2, 1 : j + 2, :]) > 0, 0, res2)
    return inp[2 : i + 2, 2 : j + 2, :] - coeff * (flx[1:, :, :] - flx[:-1, :, :] + fly[:, 1:, :] - fly[:, :-1, :])


@layer
def vadv(u: real["N K"], wcon: real["N K"], stage: real["N K"]):  # N=2 K=5 low=0.1 high=0.6 edge=-
    K = u.shape[1]
    ccol = np.zeros_like(u)
    dcol = np.zeros_like(u)
    for k in range(1):
        gcv = 0.25 * (wcon[:, k + 1] + wcon[:, k])
        cs = gcv * 0.1
        ccol[:, k] = gcv * 0.9
        bcol = 5.0 - ccol[:, k]
        correction = -cs * (stage[:, k + 1] - stage[:, k])
        dcol[:, k] = 5.0 * u[:, k] + correction
        divided = 1.0 / bcol
        ccol[:, k] = ccol[:, k] * divided
        dcol[:, k] = dcol[:, k] * divided
    for k in range(1, K - 1):
        gav = -0.25 * (wcon[:, k] + wcon[:, k - 1])
        gcv = 0.25 * (wcon[:, k + 1] + wcon[:, k])
        acol = gav * 0.9
        ccol[:, k] = gcv * 0.9
        bcol = 5.0 - acol - ccol[:, k]
        dcol[:, k] = 5.0 * u[:, k] - gav * 0.1 * (stage[:, k - 1] - stage[:, k])
        divided = 1.0 / (bcol - ccol[:, k - 1] * acol)
        ccol[:, k] = ccol[:, k] * divided
        dcol[:, k] = (dcol[:, k] - dcol[:, k - 1] * acol) * divided
    out = np.zeros_like(u)
    for k in range(K - 1, K - 2, -1):
        datacol = dcol[:, k]
        out[:, k] = datacol * 2
    for k in range(K - 2, -1, -1):
        datacol = dcol[:, k] - ccol[:, k] * out[:, k + 1]
        out[:, k] = datacol
    return out


@layer
def deriche(img: real["W H"]):  # W=5 H=4 edge=-
    alpha = 0.25
    k = (1.0 - np.exp(-alpha)) * (1.0 - np.exp(-alpha)) / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = a5 = k
    a2 = a6 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = a7 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = a8 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    c1 = c2 = 1
    y1 = np.empty_like(img)
    y1[:, 0] = a1 * img[:, 0]
    y1[:, 1] = a1 * img[:, 1] + a2 * img[:, 0] + b1 * y1[:, 0]
    for j in range(2, img.shape[1]):
        y1[:, j] = a1 * img[:, j] + a2 * img[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2 = np.empty_like(img)
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * img[:, -1]
    for j in range(img.shape[1] - 3, -1, -1):
        y2[:, j] = a3 * img[:, j + 1] + a4 * img[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = c1 * (y1 + y2)
    y1[0, :] = a5 * out[0, :]
    y1[1, :] = a5 * out[1, :] + a6 * out[0, :] + b1 * y1[0, :]
    for i in range(2, img.shape[0]):
        y1[i, :] = a5 * out[i, :] + a6 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a7 * out[-1, :]
    for i in range(img.shape[0] - 3, -1, -1):
        y2[i, :] = a7 * out[i + 1, :] + a8 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return c2 * (y1 + y2)


def build_up_b(rho, dt, dx, dy, u, v):
    b = np.zeros_like(u)
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )
    return b


def pressure_poisson(nit, p, dx, dy, b):
    pn = np.empty_like(p)
    for q in range(nit):
        pn[...] = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


@layer
def cavity_flow(u: real["N M"], v: real["N M"], p: real["N M"], *, nt: int = 2, nit: int = 2, nu: float = 0.1, rho: float = 1.0):  # N=4 M=4 low=-0.5 high=0.5 edge=-
    dt, dx, dy = 0.1, 0.5, 0.5
    for n in range(nt):
        un = u.copy()
        vn = v.copy()
        b = build_up_b(rho, dt, dx, dy, u, v)
        pressure_poisson(nit, p, dx, dy, b)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * (dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2]))
        )
        v[1:-1, 1:-1] = vn[1:-1, 1:-1] - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
        u[0, :] = 0
        u[:, 0] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
    return u, v, p


@layer
def life_like(x: real["N M"]):  # N=4 M=5
    s = np.zeros_like(x)
    for di in (-1, 0, 1):
        for dj in (-1, 0, 1):
            if di != 0 or dj != 0:
                s = s + np.roll(np.roll(x, di, axis=0), dj, axis=1)
    return np.tanh(s - 3) * x


@layer
def wave_1d(u0: real["N"], c: real[""]):  # N=6 edge=1
    prev = u0
    cur = u0 * 1
    for t in range(3):
        nxt = np.zeros_like(cur)
        nxt[1:-1] = 2 * cur[1:-1] - prev[1:-1] + c * c * (cur[2:] - 2 * cur[1:-1] + cur[:-2])
        prev, cur = cur, nxt
    return cur


@layer
def upwind(q: real["N"], v: real["N"]):  # N=6
    for t in range(2):
        left = np.roll(q, 1)
        right = np.roll(q, -1)
        q = q - 0.1 * (np.maximum(v, 0) * (q - left) + np.minimum(v, 0) * (right - q))
    return q


@layer
def smooth_masked(x: real["N M"], w: real["3 3"]):  # N=4 M=4 edge=-
    y = np.zeros((x.shape[0] - 2, x.shape[1] - 2))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = np.sum(x[i : i + 3, j : j + 3] * w)
    return y


@layer
def diffusion_implicit(u: real["N"], k: real[""]):  # N=4 low=0.2 high=1 edge=1
    n = u.shape[0]
    A = np.eye(n) * (1 + 2 * k) - k * np.eye(n, k=1) - k * np.eye(n, k=-1)
    for t in range(2):
        u = np.linalg.solve(A, u)
    return u
