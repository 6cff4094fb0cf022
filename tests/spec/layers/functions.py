"""Elementwise functions, reductions and products, in every form that NumPy gives them."""

import math

import numpy as np
import scipy.special
from scipy import special
from scipy.special import expit, logsumexp

from layerc import bool_, f32, i32, i64, layer, real


@layer
def arithmetic(x: real["N"], y: real["N"]):  # N=4 low=0.5 high=3 kink
    return x + y - x * y / x, x // y, x % y, x**y, -x, +x, abs(x - y), x**2 + x**-1 + x**0.5, 2**x, divmod_free(x, y)


def divmod_free(x, y):
    return np.floor_divide(x, y) + np.remainder(x, y) + np.mod(x, y)


@layer
def matmul_forms(a: real["N K"], b: real["K M"], u: real["K"], v: real["N"], s: real["A N K"], t: real["A K M"]):  # N=2 K=3 M=4 A=2
    return a @ b, a @ u, v @ a, u @ u, s @ t, s @ b, s @ u, np.matmul(a, t), np.dot(a, b), a.dot(u), np.dot(u, u), np.inner(a, u), np.outer(u, v)


@layer
def einsums(a: real["N K"], b: real["K M"], s: real["A N K"], q: real["N N"]):  # N=2 K=3 M=4 A=2
    return (
        np.einsum("nk,km->nm", a, b),
        np.einsum("ank,km->amn", s, b),
        np.einsum("ii->i", q),
        np.einsum("ii", q),
        np.einsum("nk->kn", a),
        np.einsum("nk->", a),
        np.einsum("nk,nk->n", a, a),
        np.einsum("i,j,k->ijk", a[0], b[0], q[0]) if a.shape[0] > 0 and b.shape[0] > 0 else np.zeros((a.shape[1], b.shape[1], a.shape[0])),
        np.einsum("ank,bnk->ab", s, s),
    )


@layer
def tensordots(a: real["A B C"], b: real["C B D"], c: real["B C"]):  # A=2 B=3 C=2 D=4
    return np.tensordot(a, b, axes=([1, 2], [1, 0])), np.tensordot(a, c, 2), np.tensordot(a, b, axes=1), np.tensordot(c, a, axes=((0,), (1,))), np.trace(c @ c.T)


@layer
def comparisons(x: real["N"], y: real["N"]):  # N=5
    a = (x < y) | (x <= 0)
    b = (x > y) & (y >= 0) ^ (x == y)
    c = x != y
    return a, b, c, np.where(a, x, y), np.equal(x, y), np.greater(x, 0), np.less_equal(x, y), np.not_equal(x, 1), ~a


@layer
def elementary(x: real["N"]):  # N=5 low=0.3 high=0.9
    return np.exp(x) + np.exp2(x) + np.expm1(x), np.log(x) + np.log2(x) + np.log10(x) + np.log1p(x), np.sqrt(x) + np.cbrt(x) + np.square(x) + np.reciprocal(x), np.power(x, 3) + np.power(x, x)


@layer
def circular(x: real["N"], y: real["N"]):  # N=5 low=0.1 high=0.9
    return np.sin(x) + np.cos(x) * np.tan(y), np.arcsin(x) + np.arccos(y) + np.arctan(x), np.arctan2(x, y), np.sinh(x) + np.cosh(y) + np.tanh(x), np.arcsinh(x) + np.arccosh(y + 1) + np.arctanh(x), np.hypot(x, y), np.logaddexp(x, y)


@layer
def stepped(x: real["N"], y: real["N"]):  # N=6
    return np.sign(x) * y, np.floor(x) * y, np.ceil(x) + y, np.rint(x) * y, np.trunc(x) + np.round(y), np.heaviside(x, 0.5) * y, np.copysign(x, y), np.heaviside(x, y)


@layer
def extremes(x: real["N"], y: real["N"], s: real[""]):  # N=6
    return np.maximum(x, y), np.minimum(x, 0.5), np.fmax(x, s), np.fmin(x, y), np.clip(x, -1, 1), x.clip(-0.5, None), np.clip(x, s, s + 1), np.clip(x, a_min=None, a_max=y), np.absolute(x)


@layer
def finite_or_not(x: real["N"]):  # N=5
    y = np.where(x > 1, np.inf, np.where(x < -1, np.nan, x))
    return np.isnan(y), np.isinf(y), np.isfinite(y), np.where(np.isfinite(y), x, 0)


@layer
def of_scipy(x: real["N M"]):  # N=3 M=4
    return (
        special.erf(x) + special.erfc(x),
        expit(x) + special.log_expit(x),
        scipy.special.logit(expit(x)),
        special.xlogy(np.abs(x) + 0.1, np.abs(x) + 0.2),
        special.gammaln(np.abs(x) + 0.5),
    )


@layer
def of_scipy_rows(x: real["N M"]):  # N=3 M=4 edge=1
    return logsumexp(x), logsumexp(x, axis=1), special.logsumexp(x, axis=-1, keepdims=True), special.softmax(x, axis=1), special.softmax(x), special.log_softmax(x, axis=0)


@layer
def of_math(x: real[""]):  # low=0.2 high=0.8
    return math.sin(x) + math.cos(x) + math.tan(x), math.exp(x) * math.log(x) + math.log1p(x), math.sqrt(x) + math.pow(x, 2.5), math.atan(x) + math.asin(x) + math.hypot(x, 1.0), math.tanh(x) + math.sinh(x), math.erf(x) + math.lgamma(x), math.fabs(x), math.floor(x * 10), math.ceil(x * 10)


@layer
def sums(x: real["A B C"]):  # A=2 B=3 C=4
    return np.sum(x), np.sum(x, axis=0), np.sum(x, axis=(0, 2)), np.sum(x, -1, keepdims=True), x.sum(), x.sum(1), x.sum(axis=(1, 2), keepdims=True), np.sum(x, axis=None), sum(x[:, 0, 0]) if x.shape[1] > 0 and x.shape[2] > 0 else 0.0


@layer
def means(x: real["A B C"]):  # A=2 B=3 C=4 edge=1
    return np.mean(x), np.mean(x, axis=0), x.mean(axis=(-1, 1)), np.mean(x, axis=-1, keepdims=True), np.var(x), np.var(x, axis=1, ddof=1) if x.shape[1] > 1 else x[:, 0] * 0, x.var(axis=(0, 1)), np.std(x, axis=-1), x.std(keepdims=True)


@layer
def products_of(x: real["A B C"]):  # A=2 B=3 C=2
    return np.prod(x), np.prod(x, axis=0), np.prod(x, axis=(1, 2)), x.prod(axis=-1, keepdims=True)


@layer
def extrema(x: real["A B C"]):  # A=2 B=3 C=4 edge=1
    return np.max(x), np.min(x, axis=0), np.max(x, axis=(0, 2)), x.max(-1, keepdims=True), x.min(), np.amax(x, axis=1), np.amin(x), np.argmax(x), np.argmax(x, axis=1), x.argmin(axis=-1), x.argmax()


@layer
def logical(x: real["N M"]):  # N=3 M=4
    return np.any(x > 1), np.all(x > -2, axis=0), np.any(x > 0, axis=(0, 1)), (x > 0).all(axis=1, keepdims=True), (x > 1).sum(), np.sum(x > 0, axis=0), np.mean(x > 0) if x.size > 0 else 0.0


@layer
def scans(x: real["A B C"]):  # A=2 B=3 C=4
    return np.cumsum(x), np.cumsum(x, axis=0), x.cumsum(axis=-1), np.cumprod(x, axis=1), np.cumprod(x[0]) if x.shape[0] > 0 else np.zeros(x.shape[1] * x.shape[2])


@layer
def norms(x: real["A B"]):  # A=3 B=4
    return np.linalg.norm(x), np.linalg.norm(x, axis=0), np.linalg.norm(x, axis=-1, keepdims=True), np.linalg.norm(x[:, 0]) if x.shape[1] > 0 else 0.0


@layer
def sorts(x: real["A B"]):  # A=3 B=4
    return np.sort(x), np.sort(x, axis=0), np.argsort(x), np.argsort(x, axis=0), np.sort(x, axis=None), np.sort(-x, axis=-1)[:, ::-1]


@layer
def integers(i: i64["N"], k: i32["N"]):  # N=6 ints=1:7
    return i + k, i * 2, i // k, i % k, i**2, i / k, i & 3, i | k, i ^ i, np.sum(i), np.cumsum(i), np.prod(k), np.maximum(i, k), np.abs(-i), np.sign(i - 3), i > k, np.clip(i, 2, 4), np.sort(i), np.argsort(k, kind="stable"), np.mean(i), np.dot(i, i)


@layer
def shifts_of_type(x: real["N"], i: i64["N"], b: bool_["N"], w: f32["N"]):  # N=4 ints=0:5 kink
    return x + i, x * b, i + b, i * 2.5, x + 1, i + 1, b + b, x > i, w * 2, w + i, x * np.float32(2), x + np.pi


@layer
def scalars(x: real[""], n: i64[""]):  # ints=1:5
    return x * n, x + 1, n + 1, n / 2, n // 2, n % 3, -n, x**n, n**2, float(n) * x, int(x), bool(n), min(n, 3), max(x, 0.5), abs(n)


@layer
def mixture_is_real(x: real["N"], i: i64["N"]):  # N=4
    y = np.zeros(x.shape[0])
    y += i
    z = np.ones((x.shape[0],)) * i
    return y * x, z + x, np.full(x.shape, 2) * x, np.array([1.0, 2.0, 3.0]), np.array([1, 2]), np.array([[1.0, 2.0], [3.0, 4.0]]) * x[0] if x.shape[0] > 0 else np.zeros((2, 2))


@layer
def arrays_of_scalars(x: real["N"], s: real[""]):  # N=3 edge=1
    return np.array([s, 2 * s, x[0]]), np.array([[s, 1.0], [0.0, s]]) @ np.array([x[0], s]), np.stack([x, x * s]), np.array([x, x])


@layer(backward=None)
def forward_only(x: real["N"]):  # N=5 low=0.2 high=4
    return special.digamma(x)
