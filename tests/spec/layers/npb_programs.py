"""Programs in the manner of NPBench and PolyBench, written afresh: solvers, stencils, dynamic programs, networks."""

import numpy as np

from layerc import Param, bool_, i64, layer, real

G = 9.81


@layer
def adi_sweep(u: real["N N"], *, tsteps: int = 2):  # N=5 edge=-
    n = u.shape[0]
    v, p, q = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    DX, DY, DT = 1.0 / n, 1.0 / n, 1.0 / tsteps
    mul1, mul2 = 2.0 * DT / (DX * DX), 1.0 * DT / (DY * DY)
    a, b = -mul1 / 2.0, 1.0 + mul1
    d, e = -mul2 / 2.0, 1.0 + mul2
    c, f = a, d
    for t in range(1, tsteps + 1):
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
def arc_distance(theta_1: real["N"], phi_1: real["N"], theta_2: real["N"], phi_2: real["N"]):  # N=4 low=0.1 high=1.4
    temp = np.sin((theta_2 - theta_1) / 2) ** 2 + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))


@layer
def azimint_naive(data: real["N"], radius: real["N"], *, npt: int = 3) -> real["npt"]:  # N=8 low=0.1 high=1.9 kink edge=-
    rmax = radius.max()
    res = np.zeros(npt)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask = np.logical_and((r1 <= radius), (radius < r2))
        count = np.sum(mask)
        res[i] = np.sum(np.where(mask, data, 0)) / max(count, 1)
    return res


@layer
def atax(A: real["M N"], x: real["N"]):  # M=3 N=4
    return (A @ x) @ A


@layer
def bicg(A: real["N M"], p: real["M"], r: real["N"]):  # N=3 M=4
    return r @ A, A @ p


@layer
def build_b(b: real["N M"], u: real["N M"], v: real["N M"], rho: real, dt: real):  # N=4 M=5 low=0.5 high=2 edge=-
    dx = dy = 0.5
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )
    return b


def pressure_poisson(p, dx, dy, b, nit):
    pn = np.empty_like(p)
    for q in range(nit):
        pn[:] = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


@layer
def cavity_step(u: real["N N"], v: real["N N"], p: real["N N"], *, nt: int = 2, nit: int = 2):  # N=4 low=0.1 high=0.5 edge=-
    dt, rho, nu = 0.01, 1.0, 0.1
    dx = dy = 2 / (u.shape[0] - 1)
    b = np.zeros_like(u)
    un = np.empty_like(u)
    vn = np.empty_like(v)
    for n in range(nt):
        un[:] = u.copy()
        vn[:] = v.copy()
        b[1:-1, 1:-1] = rho / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        p = pressure_poisson(p, dx, dy, b, nit)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[-1, :] = 1
        v[1:-1, 1:-1] = vn[1:-1, 1:-1] - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
        v[:, -1] = 0
    return u, v, p


@layer
def channel_step(u: real["N M"], p: real["N M"], *, F: float = 1.0):  # N=4 M=4 edge=-
    un = u.copy()
    dt, dx = 0.1, 0.5
    u[1:-1, 1:-1] = un[1:-1, 1:-1] - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2]) + F * dt
    u[1:-1, -1] = un[1:-1, -1] - un[1:-1, -1] * dt / dx * (un[1:-1, -1] - un[1:-1, -2]) - dt * (p[1:-1, 0] - p[1:-1, -2])
    u[1:-1, 0] = un[1:-1, 0] - un[1:-1, 0] * dt / dx * (un[1:-1, 0] - un[1:-1, -1])
    u[0, :] = 0
    u[-1, :] = 0
    udiff = (np.sum(u) - np.sum(un)) / (3 + np.sum(u * u))
    return u, udiff


@layer
def compute(array_1: real["N M"], array_2: real["N M"], a: real, b: real, c: real):  # N=2 M=3 kink
    return np.clip(array_1, -1, 1) * a + array_2 * b + c


@layer
def contour_like(ham: real["Q N N"], z: real["Z"], w: real["Z"]):  # Q=2 N=2 Z=3 low=0.1 high=0.6 edge=-
    total = np.zeros((ham.shape[1], ham.shape[2]))
    for k in range(z.shape[0]):
        t = np.zeros_like(total)
        for n in range(ham.shape[0]):
            t += z[k] ** (n + 1) * ham[n]
        total += w[k] * np.linalg.inv(t + 3.0 * np.eye(total.shape[0]))
    return total


@layer
def conv2d_bias(input: real["H W C"], weights: real["K K C D"], bias: real["D"]):  # H=4 W=4 C=2 K=2 D=3 edge=1
    K = weights.shape[0]
    H_out, W_out = input.shape[0] - K + 1, input.shape[1] - K + 1
    output = np.empty((H_out, W_out, weights.shape[3]))
    for i in range(H_out):
        for j in range(W_out):
            output[i, j, :] = np.sum(input[i : i + K, j : j + K, :, np.newaxis] * weights, axis=(0, 1, 2))
    return output + bias


@layer
def covariance(data: real["N M"]):  # N=4 M=3 edge=-
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((data.shape[1], data.shape[1]))
    for i in range(data.shape[1]):
        cov[i:, i] = cov[i, i:] = data[:, i] @ data[:, i:] / (data.shape[0] - 1.0)
    return cov


@layer
def correlation(data: real["N M"]):  # N=5 M=3 edge=-
    N, M = data.shape
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(N) * stddev
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1 :, i] = corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return corr


@layer
def cholesky(A: real["N N"]):  # N=3 edge=-
    A = A @ A.T + 4 * np.eye(A.shape[0])
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])
    return np.tril(A)


@layer
def lu(A: real["N N"]):  # N=3 edge=-
    A += 6 * np.eye(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A


@layer
def ludcmp(A: real["N N"], b: real["N"]):  # N=3 edge=-
    A += 6 * np.eye(A.shape[0])
    x, y = np.zeros_like(b), np.zeros_like(b)
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
def durbin(r: real["N"]):  # N=4 low=-0.4 high=0.4 edge=-
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
def gramschmidt(A: real["M N"]):  # M=4 N=3 low=0.5 high=2 edge=-
    Q = np.zeros_like(A)
    R = np.zeros((A.shape[1], A.shape[1]))
    for k in range(A.shape[1]):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


@layer
def deriche(img: real["W H"], *, alpha: float = 0.25):  # W=4 H=4 edge=-
    k = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
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


@layer
def fdtd_2d(ex: real["X Y"], ey: real["X Y"], hz: real["X Y"], fict: real["T"]):  # X=3 Y=4 T=2 edge=1
    for t in range(fict.shape[0]):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


@layer
def floyd_warshall(path: real["N N"]):  # N=4 low=0.1 high=3
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
    return path


@layer
def floyd_warshall_rows(path: real["N N"]):  # N=4 low=0.1 high=3
    for k in range(path.shape[0]):
        for i in range(path.shape[0]):
            tmp = path[i, k] + path[k, :] < path[i, :]
            path[i, :] = np.where(tmp, path[i, k] + path[k, :], path[i, :])
    return path


@layer
def gemm(alpha: real, beta: real, C: real["I J"], A: real["I K"], B: real["K J"]):  # I=2 J=3 K=4
    C[:] = alpha * A @ B + beta * C
    return C


@layer
def gemver(alpha: real, beta: real, A: real["N N"], u1: real["N"], v1: real["N"], x: real["N"], y: real["N"], z: real["N"]):  # N=3
    A += np.outer(u1, v1) + np.multiply.outer(v1, u1)
    x += beta * y @ A + z
    return A, x, alpha * A @ x


@layer
def gesummv(alpha: real, beta: real, A: real["N N"], B: real["N N"], x: real["N"]):  # N=3
    return alpha * A @ x + beta * B @ x


@layer
def go_fast(a: real["N N"]):  # N=4
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


@layer
def hdiff(in_field: real["I J K"], out_field: real["I J K"], coeff: real["I J K"]):  # I=6 J=6 K=2 edge=-
    I, J, K = out_field.shape[0] - 4, out_field.shape[1] - 4, out_field.shape[2]
    lap_field = 4.0 * in_field[1 : I + 3, 1 : J + 3, :] - (
        in_field[2 : I + 4, 1 : J + 3, :] + in_field[0 : I + 2, 1 : J + 3, :] + in_field[1 : I + 3, 2 : J + 4, :] + in_field[1 : I + 3, 0 : J + 2, :]
    )
    res = lap_field[1:, 1 : J + 1, :] - lap_field[:-1, 1 : J + 1, :]
    flx_field = np.where((res * (in_field[2 : I + 3, 2 : J + 2, :] - in_field[1 : I + 2, 2 : J + 2, :])) > 0, 0, res)
    res2 = lap_field[1 : I + 1, 1:, :] - lap_field[1 : I + 1, :-1, :]
    fly_field = np.where((res2 * (in_field[2 : I + 2, 2 : J + 3, :] - in_field[2 : I + 2, 1 : J + 2, :])) > 0, 0, res2)
    out_field[2:-2, 2:-2] = in_field[2 : I + 2, 2 : J + 2, :] - coeff[2:-2, 2:-2] * (
        flx_field[1:, :, :] - flx_field[:-1, :, :] + fly_field[:, 1:, :] - fly_field[:, :-1, :]
    )
    return out_field


@layer
def vadv(utens: real["I J K"], u_stage: real["I J K"], wcon: real["I+1 J K"], u_pos: real["I J K"], dtr: real):  # I=2 J=2 K=4 low=0.2 high=0.6 edge=-
    I, J, K = utens.shape
    ccol = np.zeros((I, J, K))
    dcol = np.zeros((I, J, K))
    data_col = np.zeros((I, J))
    for k in range(1):
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        cs = gcv * 0.4
        ccol[:, :, k] = gcv * 0.6
        bcol = dtr - ccol[:, :, k]
        correction_term = -cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr * u_pos[:, :, k] + utens[:, :, k] + correction_term
        divided = 1.0 / (bcol + 2)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = dcol[:, :, k] * divided
    for k in range(1, K - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        acol = gav * 0.6
        ccol[:, :, k] = gcv * 0.6
        bcol = dtr - acol - ccol[:, :, k]
        dcol[:, :, k] = dtr * u_pos[:, :, k] + utens[:, :, k] - gav * 0.4 * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        divided = 1.0 / (bcol + 2 - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = (dcol[:, :, k] - (dcol[:, :, k - 1]) * acol) * divided
    for k in range(K - 1, K - 2, -1):
        datacol = dcol[:, :, k]
        data_col[:] = datacol
        utens[:, :, k] = dtr * (datacol - u_pos[:, :, k])
    for k in range(K - 2, -1, -1):
        datacol = dcol[:, :, k] - ccol[:, :, k] * data_col
        data_col[:] = datacol
        utens[:, :, k] = dtr * (datacol - u_pos[:, :, k])
    return utens


@layer
def mvt(x1: real["N"], x2: real["N"], y_1: real["N"], y_2: real["N"], A: real["N N"]):  # N=3
    x1 += A @ y_1
    x2 += y_2 @ A
    return x1, x2


@layer
def nussinov(table: i64["N N"], seq: i64["N"]):  # N=5 ints=0:4
    N = seq.shape[0]
    table[:] = 0
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < N:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < N:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@layer
def seidel_2d(A: real["N N"], *, tsteps: int = 3):  # N=4
    N = A.shape[0]
    for t in range(0, tsteps - 1):
        for i in range(1, N - 1):
            A[i, 1:-1] += A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0
    return A


@layer
def spmv_padded(row_length: i64["R"], cols: i64["R W"], vals: real["R W"], x: real["N"]):  # R=3 W=3 N=4 ints=0:4
    y = np.zeros(vals.shape[0])
    for i in range(vals.shape[0]):
        for k in range(vals.shape[1]):
            if k < row_length[i]:
                y[i] += vals[i, k] * x[cols[i, k]]
    return y


@layer
def stockham(re: real["8"], im: real["8"]):  #
    N = 8
    yr, yi = re.copy(), im.copy()
    half, span = 4, 1
    while half >= 1:
        zr, zi = np.empty_like(yr), np.empty_like(yi)
        for p in range(4):
            if p < half:
                c, s = np.cos(np.pi * p / half), -np.sin(np.pi * p / half)
                for q in range(4):
                    if q < span:
                        ar, ai = yr[q + span * p], yi[q + span * p]
                        br, bi = yr[q + span * (p + half)], yi[q + span * (p + half)]
                        zr[q + span * 2 * p], zi[q + span * 2 * p] = ar + br, ai + bi
                        zr[q + span * (2 * p + 1)] = (ar - br) * c - (ai - bi) * s
                        zi[q + span * (2 * p + 1)] = (ar - br) * s + (ai - bi) * c
        yr, yi = zr, zi
        half //= 2
        span *= 2
    return yr, yi


@layer
def symm(alpha: real, beta: real, C: real["M N"], A: real["M M"], B: real["M N"]):  # M=3 N=2
    temp2 = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * temp2
    return C


@layer
def syrk(alpha: real, beta: real, C: real["N N"], A: real["N M"]):  # N=3 M=2
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]
    return C


@layer
def syr2k(alpha: real, beta: real, C: real["N N"], A: real["N M"], B: real["N M"]):  # N=3 M=2
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]
    return C


@layer
def trisolv(L: real["N N"], x: real["N"], b: real["N"]):  # N=4 low=0.5 high=2
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


@layer
def trmm(alpha: real, A: real["M M"], B: real["M N"]):  # M=3 N=2
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha
    return B


@layer
def doitgen(A: real["R Q P"], C4: real["P P"]):  # R=2 Q=2 P=3
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            A[r, q, :] = np.reshape(np.reshape(A[r], (A.shape[1], 1, A.shape[2]))[q] @ C4, (A.shape[2],))
    return A


@layer
def scattering_like(G: real["K E N N"], D: real["K W N N"], dH: real["A N N"]):  # K=2 E=3 N=2 W=2 A=2 edge=-
    Sigma = np.zeros_like(G)
    for k in range(G.shape[0]):
        for E in range(G.shape[1]):
            for q in range(D.shape[0]):
                for w in range(D.shape[1]):
                    for i in range(dH.shape[0]):
                        if E - w >= 0:
                            dHG = G[k, E - w] @ dH[i]
                            dHD = dH[i] @ D[q, w]
                            Sigma[k, E] += dHG @ dHD
    return Sigma
