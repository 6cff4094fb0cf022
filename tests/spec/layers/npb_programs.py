"""Programs in the manner of NPBench and PolyBench, written afresh: solvers, stencils, dynamic programs, networks."""

import numpy as np

from layerc import Param, bool_, i64, layer, real

G = 9.81


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
def floyd_warshall_rows(path: real["N N"]):  # N=4 low=0.1 high=3
    for k in range(path.shape[0]):
        for i in range(path.shape[0]):
            tmp = path[i, k] + path[k, :] < path[i, :]
            path[i, :] = np.where(tmp, path[i, k] + path[k, :], path[i, :])
    return path


@layer
def go_fast(a: real["N N"]):  # N=4
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


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
