# ruff: noqa: E501 (one line a case)
"""Small functions of the subset, a line each: expression, then its arguments as `name: dtype dims [domain]`.

Domains of floats: default normal, `pos` (0.1 .. 3), `unit` (-0.95 .. 0.95), `above` (1.1 .. 3), `some` (small integers: ties and
zeros). Integers are drawn from -n .. n - 1 for `in n`, n a size; else small ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from layerc.transpile.operations import ROWS

SIZES = {"N": 5, "M": 7, "K": 3}
# Odd sizes, ones, sizes beyond what fits a vector, and none.
ALL_SIZES = (
    {"N": 5, "M": 7, "K": 3},
    {"N": 1, "M": 1, "K": 1},
    {"N": 19, "M": 67, "K": 33},
    {"N": 2, "M": 1, "K": 4},
    {"N": 0, "M": 3, "K": 2},
    {"N": 4, "M": 0, "K": 0},
)


@dataclass(frozen=True)
class Case:
    name: str
    source: str
    arguments: tuple[tuple[str, str, str, str], ...]  # name, dtype, dims, domain


_DOMAINS = {
    "log": "pos",
    "log2": "pos",
    "log10": "pos",
    "log1p": "pos",
    "sqrt": "pos",
    "arcsin": "unit",
    "arccos": "unit",
    "arctanh": "unit",
    "arccosh": "above",
    "logit": "open",
    "gammaln": "pos",
    "digamma": "pos",
    "trigamma": "pos",
    "power": "pos",
    "reciprocal": "pos",
    "xlogy": "pos",
    "tan": "unit",
}
_INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor")

# name | expression | arguments
EXPRESSIONS = """
broadcast      | x + y                                         | x: real N M; y: real M
columns        | x * y[:, None]                                | x: real N M; y: real N
scalars        | x * s - 2 * s                                 | x: real N; s: real
weak           | 2 * x + 1 - x / 3 + 0.5                       | x: real N
integers       | i * 2 + x                                     | i: i64 N; x: real N
small_integers | i // 2 + i % 3                                | i: i32 N
divide_integers| i / 2                                         | i: i64 N
by_zero        | i // j + i % j                                | i: i64 N; j: i64 N
float_floor    | x // 0.7 + x % 0.7                            | x: real N
rounded        | np.round(x * 3, 1) + x.round()                  | x: real N
powers         | x**2 + x**3 + x**0.5 + x**-1 + x**1 + x**0    | x: real N pos
int_powers     | i**2                                          | i: i64 N
int_power_of   | i**j                                          | i: i64 N; j: i64 N
bool_sum       | (x > 0) + (y > 0)                             | x: real N; y: real N
bool_product   | (x > 0) * (y > 0) * x                         | x: real N; y: real N
logic          | (x > 0) & ~(y > 0) | (x > y)                  | x: real N; y: real N
chained        | np.where((0 < x) & (x < 1), x, -x)            | x: real N
nested_where   | np.where(x > 0, 1.0, np.where(x < -1, 0.0, x))| x: real N
clip_one_side  | np.clip(x, 0, None) + np.clip(x, None, 0.5)   | x: real N
constants      | x * np.pi + np.e * math.tau                   | x: real N
math_scalars   | math.sqrt(2) * x + math.exp(s) * math.log(3)  | x: real N; s: real
casts          | x.astype(np.float64) + i.astype(np.float32)   | x: real N; i: i32 N
to_bool        | x.astype(bool)                                | x: real N some
to_int         | x.astype(np.int64)                            | x: real N
float_of       | float(i) * x                                  | i: i64; x: real N
mixed_f32      | x + y                                         | x: f32 N; y: f64 N

sum_all        | np.sum(x)                                     | x: real N M
sum_0          | np.sum(x, axis=0)                             | x: real N M K
sum_1          | x.sum(axis=1, keepdims=True)                  | x: real N M K
sum_last       | np.sum(x, axis=-1)                            | x: real N M
sum_two        | np.sum(x, axis=(0, 2))                        | x: real N M K
sum_bool       | np.sum(x > 0, axis=0)                         | x: real N M
sum_int        | np.sum(i, axis=0)                             | i: i32 N M
sum_product    | np.sum(x * y[None, :], axis=1)                | x: real N M; y: real M
sum_scalar     | np.sum(s) + x                                 | s: real; x: real N
prod           | np.prod(x, axis=1)                            | x: real N M
max_all        | np.max(x)                                     | x: real N M
max_0          | np.max(x, axis=0)                             | x: real N M
min_keep       | np.min(x, axis=1, keepdims=True)              | x: real N M
max_int        | np.max(i, axis=0) - np.min(i)                 | i: i64 N M
any_all        | np.any(x > 1, axis=0) & ~np.all(x > 0, axis=0)| x: real N M
argmax_all     | np.argmax(x)                                  | x: real N M some
argmax_0       | np.argmax(x, axis=0)                          | x: real N M some
argmin_1       | np.argmin(x, axis=1)                          | x: real N M some
argmax_keep    | np.argmax(x, axis=-1, keepdims=True)          | x: real N M some
mean           | np.mean(x) + np.mean(x, axis=0)               | x: real N M
mean_int       | np.mean(i, axis=1)                            | i: i64 N M
var            | np.var(x, axis=1) + np.var(x)                 | x: real N M
std            | np.std(x, axis=0, keepdims=True)              | x: real N M
norm           | np.linalg.norm(x, axis=1)                     | x: real N M
norm_all       | np.linalg.norm(x)                             | x: real N M
logsumexp_none | special.logsumexp(x[:, :0], axis=1) | x: real N M
logsumexp      | special.logsumexp(x, axis=1)                  | x: real N M
softmax        | special.softmax(x, axis=-1)                   | x: real N M
softmax_0      | special.softmax(2 * x, axis=0)                | x: real N M
log_softmax    | special.log_softmax(x, axis=1)                | x: real N M
normalised     | (x - np.mean(x, axis=0)) / np.sqrt(np.var(x, axis=0) + 1e-5) | x: real N M
nested_sums    | np.sum(np.exp(x - np.max(x, axis=1, keepdims=True)), axis=0) | x: real N M

matmul         | x @ y                                         | x: real N M; y: real M K
matmul_vector  | x @ v                                         | x: real N M; v: real M
vector_matmul  | v @ x                                         | x: real N M; v: real N
matmul_batch   | x @ y                                         | x: real K N M; y: real M N
dot            | np.dot(v, w)                                  | v: real N; w: real N
dot_matrix     | np.dot(x, y)                                  | x: real N M; y: real M K
inner          | np.inner(x, y)                                | x: real N M; y: real K M
outer          | np.outer(v, w)                                | v: real N; w: real M
matmul_of      | np.exp(x) @ (y * 2).T                         | x: real N M; y: real K M
matmul_chain   | x @ y @ z                                     | x: real N M; y: real M K; z: real K N
transposed     | x.T @ x                                       | x: real N M
matmul_sum     | np.sum(x @ y, axis=1) + np.sum((x @ y) ** 2, axis=1) | x: real N M; y: real M K

einsum         | np.einsum("ij,kj->ik", x, y)                  | x: real N M; y: real K M
einsum_trace   | np.einsum("ii,i->i", x, v) + np.einsum("ij->j", x) | x: real N N; v: real N

transpose      | x.T * 2                                       | x: real N M
transpose_3    | np.transpose(x, (2, 0, 1))                    | x: real N M K
swapaxes       | np.swapaxes(x, 0, 2) + 1                      | x: real N M K
moveaxis       | np.moveaxis(x, 0, -1)                         | x: real N M K
expand_dims    | np.expand_dims(x, 1) + x[None]                | x: real N
squeeze        | np.squeeze(np.sum(x, axis=1, keepdims=True), axis=1) | x: real N M
squeeze_thin   | x * np.squeeze(x[None, :, :1], axis=(0, -1))[:, None] | x: real N M
broadcast_to   | np.broadcast_to(v, (N, M))                    | x: real N M; v: real M
flip           | np.flip(x, axis=0) + np.flip(x)               | x: real N M
copy           | x.copy() + np.copy(x)                         | x: real N
reshape        | x.reshape(N * M)                              | x: real N M
reshape_left   | x.reshape(-1, M)                              | x: real N M
tri_less       | x[1:] + np.sum(np.tri(N - 1, 2))               | x: real N
zeros_less     | x + np.sum(np.zeros((N - 2, 3)))              | x: real N
reshape_twice  | np.exp(x.T).ravel().reshape(N, M) * x          | x: real N M
reshape_minus  | np.reshape(x, (M, -1))                        | x: real N M K
reshape_units  | x.reshape(N, 1, M, 1)                         | x: real N M
reshape_of     | (x * 2).reshape(M, N).T                       | x: real N M
reshape_view   | x.T.reshape(N * M)                            | x: real N M
ravel          | np.ravel(x + 1)                               | x: real N M
ravel_twice    | x.ravel() * np.exp(x).ravel()                 | x: real N M
concatenate    | np.concatenate([x, y], axis=0)                | x: real N M; y: real K M
concatenate_1  | np.concatenate((x, 2 * y, x), axis=1)         | x: real N M; y: real N K
concatenate_of | np.concatenate([np.sum(x, axis=1), v])        | x: real N M; v: real K
array          | np.sum(np.concatenate([x[None], y[None]]), axis=0) | x: real N; y: real N

zeros          | np.zeros((N, M)) + np.ones(M) + np.full((N, 1), 2.5) | x: real N M
likes          | np.zeros_like(x) + np.ones_like(x) + np.full_like(x, 3) | x: real N M
full_of        | np.full((N,), s) * x                          | x: real N; s: real
empties        | np.where(x == x, x, np.empty_like(x)) + 0 * np.where(x == x, x, np.empty(N)) | x: real N
arange         | np.arange(N) * x + np.arange(1, N + 1)        | x: real N
eye            | np.eye(N) * x[:, None] + np.eye(N, N, 1)      | x: real N
dtypes         | np.zeros(N, dtype=np.int64) + i               | i: i64 N
sizes          | x * x.shape[0] + np.size(x) + len(x) + x.ndim | x: real N

cumsum         | np.cumsum(x, axis=1) + np.cumsum(x, axis=-2)  | x: real N M
cumsum_middle  | x.cumsum(axis=1)                              | x: real N M K
cumsum_flat    | np.cumsum(x * 2)                              | x: real N M
cumsum_int     | np.cumsum(i, axis=0) + np.cumsum(x > 0, axis=0) | i: i32 N M; x: real N M
cumprod        | np.cumprod(x, axis=1) + np.cumprod(i, axis=0) | x: real N M; i: i64 N M
cumprod_flat   | np.cumprod(x)                                 | x: real N M
sort           | np.sort(x, axis=0) + np.sort(-x)              | x: real N M some
sort_middle    | np.sort(x, axis=1)                            | x: real N M K
sort_flat      | np.sort(x, axis=None)                         | x: real N M
sort_int       | np.sort(i, axis=0)                            | i: i64 N M
sort_nan       | np.sort(np.where(x > 0, np.nan, x), axis=1)   | x: real N M
argsort        | np.argsort(x, axis=0)                         | x: real N M
argsort_ties   | np.argsort(x, kind="stable")                  | x: real N M some
argsort_least  | np.argsort(x, axis=0, stable=True)[:2] + np.argsort(-x, axis=0, kind="stable")[0:2] | x: real N M some
argsort_head   | np.argsort(x)[:, None, :3]                    | x: real N M
argsort_nan    | np.argsort(np.where(x > 0, np.nan, x), axis=None, stable=True) | x: real N M
median         | np.sort(x, axis=1)[:, x.shape[1] // 2]        | x: real N M
take           | np.take(x, i, axis=1)                         | x: real N M; i: i64 K in M
take_matrix    | np.take(x * 2, i, axis=0)                     | x: real N M; i: i32 K M in N
take_flat      | np.take(x, i) + x.take(0)                     | x: real N M; i: i64 K in N
take_one       | x.take(i, axis=-1)                            | x: real N M; i: i64 in M
take_list      | np.take(x, [0, -1, 0], axis=0)                | x: real N M
take_along     | np.take_along_axis(x, i, axis=1)              | x: real N M; i: i64 N K in M
take_along_0   | np.take_along_axis(x, i, axis=0)              | x: real N M; i: i64 K M in N
take_along_mid | np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1) | x: real N M K some
take_along_all | np.take_along_axis(x, i, axis=None)           | x: real N M; i: i64 K in N

repeat         | np.repeat(x, 3, axis=1)                       | x: real N M
repeat_flat    | x.repeat(2) * 2                               | x: real N M
repeat_zero    | np.repeat(x, 0, axis=0)                       | x: real N M
tile           | np.tile(x, 2) + np.tile(x, (1, 2))            | x: real N M
tile_more      | np.tile(x, (2, 1, 3))                         | x: real N M
tile_rows      | np.tile(v, (N, 1)) @ np.repeat(v[:, None], K, axis=1) | x: real N K; v: real M
stopped        | x + stop_gradient(np.sin(x) - x[0]) * 2       | x: real N M
roll           | np.roll(x, 2, axis=0) - np.roll(x, -3, axis=-1) | x: real N M
roll_flat      | np.roll(x, 4)                                 | x: real N M
roll_values    | np.roll(x, (k, 1 - k), axis=(0, 1)) + np.roll(x, (j, 2)) - np.roll(x, k, axis=(1, 0)) | x: real N M; k: i64; j: i32
roll_two       | np.roll(x, (1, -2), axis=(0, 1)) + np.roll(x, 1, axis=(0, 1)) | x: real N M
diagonal       | np.diagonal(x @ x.T) * x.diagonal(0, 0, 0 + 1).sum() | x: real N M
diagonal_off   | np.diagonal(x, 1)                             | x: real N M
diagonal_below | np.diagonal(x, offset=-2)                     | x: real N M
diagonal_at    | np.diagonal(x @ x.T, N - 1) * np.trace(x, 1 - M) | x: real N M
cross          | np.cross(y * y, z) + np.cross(z, i)           | y: real 3; z: real N 3; i: i64 3
cross_axis     | np.cross(x, y, axis=0) + np.cross(y, x[:, 0, None], axis=-2) | x: real 3 N; y: real 3 N
matrix_power   | np.linalg.matrix_power(x, 3) @ np.linalg.matrix_power(x, 6) + np.linalg.matrix_power(x, 0) | x: real N N
matrix_inverse | np.linalg.matrix_power(x @ x.T + 9 * np.eye(N), -2) | x: real N N
integer_power  | np.linalg.matrix_power(i, 5) + np.linalg.matrix_power(i, 1) | i: i64 K N N
diagonal_axes  | np.diagonal(x, axis1=2, axis2=0)              | x: real N M K
trace          | np.trace(x) + x.trace(1) + np.trace(x, -1)    | x: real N M
trace_axes     | np.trace(x, axis1=1, axis2=2)                 | x: real N M K
trace_int      | np.trace(i)                                   | i: i32 N M
triangles      | np.tril(x) - np.triu(x, 1) * np.tril(x, -1)   | x: real N M
triangles_batch| np.tril(x, 1) + np.triu(x, k=-1)              | x: real K N M
tri            | np.tri(N) @ x + np.tri(N, M, -1)              | x: real N M
split          | np.split(x, 1)[0] + np.split(x, 1, axis=1)[0] | x: real N M
split_two      | np.split(np.concatenate([x, y]), 2)[1]        | x: real N M; y: real N M
split_at       | np.split(x, (1,), axis=1)[0] * np.split(x, [2, 3], axis=1)[2].sum() | x: real N M
pad            | np.pad(x, 1) + np.pad(x, (1,), mode="constant", constant_values=2) | x: real N M
pad_pairs      | np.pad(x * x, ((0, 2), (1, 0)), constant_values=s) | x: real N M; s: real
pad_int        | np.pad(i, (2, 0))                             | i: i64 N
linspace       | np.linspace(0, 1, N) * x + np.linspace(s, 3, N, endpoint=False) | x: real N; s: real
linspace_1     | np.linspace(2, s, 1) + np.linspace(-1, 1).sum() | s: real
tensordot      | np.tensordot(x, y, 1) + np.tensordot(x, y, axes=((1,), (0,))) | x: real N M; y: real M K
tensordot_two  | np.tensordot(x, y, axes=([0, 1], [1, 0]))     | x: real N M K; y: real M N
tensordot_outer| np.tensordot(v, w, axes=0)                    | v: real N; w: real K
einsum_lone    | np.einsum("ij,jk->k", x, y) + np.einsum("ij->", x) | x: real N M; y: real M K
einsum_diagonal| np.einsum("iij->ij", x) * np.einsum("ii", y)  | x: real N N M; y: real N N
vdot           | np.vdot(x, y)                                 | x: real N M; y: real N M
outer_flat     | np.outer(x, y)                                | x: real N M; y: real K
dot_ranks      | np.dot(x, y) + np.dot(x, 1.5)[:, 0, None, None]    | x: real N M; y: real K M N
solve          | np.linalg.solve(x / 5 + 2 * np.eye(N), y)     | x: real N N; y: real N M
solve_vector   | np.linalg.solve(x / 5 + 2 * np.eye(N), y)     | x: real N N; y: real N
solve_batch    | np.linalg.solve(x / 5 + 2 * np.eye(N), y)     | x: real K N N; y: real K N M
solve_repeated | np.linalg.solve(x / 5 + 2 * np.eye(N), y)     | x: real K N N; y: real N
solve_lower    | np.linalg.solve(np.tril(x / 5 + 2), y)        | x: real N N; y: real N M
solve_upper    | np.linalg.solve(np.triu(x / 5 + 2), y)        | x: real K N N; y: real K N M
solve_lower_v  | np.linalg.solve(np.tril(x / 5 + 2), y)        | x: real K N N; y: real N
solve_turned   | np.linalg.solve(np.tril(x / 5 + 2).T, y)      | x: real N N; y: real N
solve_cholesky | np.linalg.solve(np.linalg.cholesky(x @ x.T + N * np.eye(N)).T, x) | x: real N N
solve_strict   | np.linalg.solve(np.tril(x, -1) + 2 * np.eye(N), y) | x: real N N; y: real N
solve_diagonal | np.linalg.solve(2 * np.eye(N), y)             | x: real N N; y: real N M
solve_above    | np.linalg.solve(np.tril(x / 5 + 2, 1), y)     | x: real N N; y: real N
solve_spread   | np.linalg.solve(np.tril(x / 5 + 2) + np.eye(1), y) | x: real N N; y: real N
inv            | np.linalg.inv(x / 5 + 2 * np.eye(N)) @ x      | x: real N N
inv_batch      | np.linalg.inv(x / 5 + 2 * np.eye(N))          | x: real K N N
inv_swapped    | np.linalg.inv(np.eye(N)[::-1] * 2 + x / 99)   | x: real N N
det            | np.linalg.det(x / 5 + np.eye(N))              | x: real N N
det_batch      | np.linalg.det(x / 5 + np.eye(N))              | x: real K N N
det_singular   | np.linalg.det(x * 0)                          | x: real N N
cholesky       | np.linalg.cholesky(x @ x.T + N * np.eye(N))   | x: real N M
cholesky_batch | np.linalg.cholesky(np.tril(x) * 0.01 + 2 * np.eye(N)) | x: real K N N
indefinite     | np.linalg.cholesky(-np.eye(N)) @ x            | x: real N N
singular       | np.linalg.solve(x * 0, x)                     | x: real N N
singular_lower | np.linalg.solve(np.tril(x * 0), x)            | x: real N N

slices         | x[1:] - x[:-1]                                | x: real N
steps          | x[::2]                                        | x: real N M
reversed       | x[::-1, ::-1]                                 | x: real N M
back_by_two    | x[::-2]                                       | x: real N
inner_slice    | x[1:3, 2:-1]                                  | x: real N M
past_the_end   | x[3:100] * 2                                  | x: real N
last           | x[-1] + x[0]                                  | x: real N M
ellipsis       | x[..., 0] * x[0, ...].sum()                   | x: real N M
new_axes       | x[:, None, :] * x[None]                       | x: real N M
view_of_view   | x[1:].T[:, 0]                                 | x: real N M
index_of       | (x * 2)[0, :]                                 | x: real N M
gather         | x[i]                                          | x: real N; i: i64 K in N
gather_rows    | x[i] + x[-1]                                  | x: real N M; i: i32 K in N
gather_columns | x[:, i]                                       | x: real N M; i: i64 K in M
gather_pairs   | x[i, j]                                       | x: real N M; i: i64 K in N; j: i64 K in M
gather_matrix  | x[i]                                          | x: real N M; i: i64 K M in N
gather_arange  | x[np.arange(N)] * 2                           | x: real N M
gather_of      | (x + 1)[i + 0]                                | x: real N; i: i64 K in N
at_value       | x[i] * 2                                      | x: real N M; i: i64 in N
"""

# Whole bodies: name | arguments, then the lines.
BODIES = """
ema | x: real N M; d: real M unit
    y = np.zeros_like(x)
    h = np.zeros_like(d)
    for t in range(x.shape[0]):
        h = d * h + (1 - d) * x[t]
        y[t] = h
    return y

accumulate | x: real N M
    total = np.zeros(M)
    for row in x:
        total += row
    return total

swap | x: real N; y: real N
    for k in range(3):
        x, y = y, x + y
    return x - y

shifted_self | x: real N
    v = x + 0
    v = v[::-1] + v
    return v

matmul_self | x: real N N
    v = x
    for k in range(2):
        v = v @ x / 4
    return v

prefix | x: real N
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = np.sum(x[: i + 1])
    return y

triangle | x: real N M
    y = np.zeros((N, M))
    for i in range(N):
        for j in range(M):
            if i > j:
                y[i, j] = x[i, j] * x[i - 1, j]
            elif i == j:
                y[i, j] = 1
            else:
                y[i, j] = -x[i, j - 1]
    return y

backwards | x: real N
    y = np.zeros_like(x)
    s = 0.0
    for i in range(N - 1, -1, -1):
        s = 0.5 * s + x[i]
        y[i] = s
    return y

by_twos | x: real N
    y = np.ones_like(x)
    for i in range(0, N, 2):
        y[i] = x[i] * i
    for i in range(N - 1, 0, -3):
        y[i] += x[i - 1]
    return y

enumerated | x: real N M
    s = np.zeros(M)
    for i, row in enumerate(x):
        s = s * 0.5 + i * row
    return s

zipped | x: real N M; y: real N M
    s = 0.0
    for a, b in zip(x, reversed(y)):
        s = s + np.sum(a * b)
    return s

newton | x: real N pos
    r = x
    step = np.ones_like(x)
    count = 0
    while np.any(np.abs(step) > 1e-6) and count < 60:
        step = (r * r - x) / (2 * r)
        r = r - step
        count += 1
    return r, count

collatz | i: i64
    n = abs(i) + 1
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps

branches | x: real N; s: real
    if s > 0:
        y = x * s
        z = np.sum(x)
    else:
        y = x[::-1]
        z = 0.0
    return y + z

early | x: real N; s: real
    if s < 0:
        return -x
    elif s > 1:
        return x * 2
    return x + s

stores | x: real N M
    y = np.zeros((N, M))
    y[:, 0] = 1
    y[0] = x[0]
    y[1:, 1:] = x[:-1, :-1] * 2
    y[::2] += 0.5
    y[-1] *= 3
    return y

overlap | x: real N
    x[1:] = x[:-1]
    return x

overwrite | x: real N M
    x[:, 0] = x[:, -1]
    x += 1
    x[0] -= x[-1]
    return x

masked | x: real N M
    x[x < 0] = 0
    x[x > 1] *= 2
    return x

views | x: real N M
    y = x * 2
    row = y[0]
    row[:] = 7
    column = y[:, 0]
    column += 1
    return y, np.sum(row)

scatter | x: real K; i: i64 K in N; z: real N
    y = z.copy()
    np.add.at(y, i, x)
    y[i] += 1
    return y

scatter_rows | x: real K M; i: i64 K in N; z: real N M
    y = np.zeros_like(z)
    np.add.at(y, i, x)
    return y

gather_store | x: real K; i: i64 K in N; z: real N
    y = z * 1
    y[i] = x
    return y

assigned_twice | x: real N
    a = np.exp(x)
    b = a
    a = a + 1
    return a * b

carried_alias | x: real N M
    h = np.zeros(M)
    y = np.zeros((N, M))
    for t in range(N):
        before = h
        h = h * 0.5 + x[t]
        y[t] = before - h
    return y

two_outputs | x: real N
    return np.exp(x), x > 0

outputs_share | x: real N
    y = x * 2
    return y, y, y[::-1]

same_input | x: real N
    return x, x.T

closures | x: real N
    def twice(v, by=2.0):
        return v * by
    square = lambda v: v * v
    return twice(square(x)) + twice(x, by=3.0)

ternaries | x: real N; s: real
    t = s if s > 0 else -s
    return x * t + (1.0 if N > 2 else 2.0)

scalar_loop | s: real; x: real N
    a, b = s, 1.0
    for k in range(4):
        a, b = a + 0.1 * b, b - 0.1 * a
    return a + b + 0 * x

window | x: real N
    y = np.zeros(N - 1)
    for i in range(N - 1):
        y[i] = np.max(x[i : i + 2])
    return y

last_axis | x: real N M
    y = np.zeros_like(x)
    for j in range(M):
        y[:, j] = x[:, j] + (y[:, j - 1] if j > 0 else np.zeros(N))
    return y

negative_walk | x: real N M
    s = np.zeros(M)
    for k in range(1, N + 1):
        s += x[-k] * k
    return s

int_state | x: real N some
    best, where = x[0], 0
    for k in range(1, N):
        if x[k] > best:
            best = x[k]
            where = k
    return x[where], where

lists | x: real N
    saved = []
    v = x
    for k in range(3):
        saved.append(v)
        v = v * 2
    for k in range(3):
        v = v + saved.pop()
    return v

unpacked | x: real 2 N
    a, b = x
    return a - b

bool_inputs | m: bool N; x: real N
    return np.where(m, x, -x), ~m

asserted | x: real N
    assert x.shape[0] > 0, "nothing there"
    return x + 1

row_then_store | x: real N M
    y = x * 1
    s = 0.0
    for i in range(x.shape[0]):
        y[i] = y[i] * 2
        row = y[i]
        s = s + np.sum(row)
        y[i, 0] = 5
        s = s + row[0]
    return y, s

index_changes | x: real N; k: i64 in N
    i = abs(k) % 3
    v = x[i]
    w = x[i:]  if False else x
    i = i + 1
    return v + x[i] + w

alias_rotation | x: real N
    a = x * 2
    b = x * 3
    for k in range(3):
        c = a
        a = b + c
        b = c[::-1]
    return a, b

branch_alias | x: real N; s: real
    if s > 0:
        y = x
    else:
        y = x * 2
    z = y
    y = y + 1
    return z * y

flag_loop | x: real N
    going = True
    n = 0
    t = 0.0
    while going:
        for i in range(n):
            t = t + x[i % x.shape[0]]
        n += 1
        going = n < 5
    return t, n

elimination | x: real N N
    a = x * 1
    for k in range(x.shape[0]):
        for i in range(k + 1, x.shape[0]):
            f = a[i, k] / (a[k, k] + 10)
            a[i, k:] -= f * a[k, k:]
    return a

add_own_transpose | x: real N N
    x += x.T
    return x

stores_of_products | x: real N N
    x[:] = x @ x
    x[0] = x[1] + x[-1]
    x[:, 0] += np.sum(x, axis=1)
    return x

growing_windows | x: real N M
    y = np.zeros((x.shape[0], x.shape[1]))
    for i in range(x.shape[0]):
        y[i] = np.mean(x[: i + 1], axis=0) - np.max(x[i:], axis=0)
    return y

loop_over_indices | x: real N; k: i64 K in N
    y = np.zeros_like(x)
    for j in k:
        y[j] += x[j - 1]
    return y

helper_writes | x: real N
    def bump(v, i):
        v[i] += 1
        return v[i] * 2
    t = bump(x, 0)
    u = bump(x, 0)
    return x + t * u

swapped_arguments | x: real N; z: real N
    x, z = z, x
    x[0] = 3
    return x - z

views_of_views | x: real N M
    y = x * 1
    v = y[1:, ::2]
    v += 1
    w = v[:, 0]
    w[:] = 0
    return y

scalar_scan | x: real N M
    total = 0.0
    best = -np.inf
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            if v > best:
                best = v
            total += v if v > 0 else 0.5 * v
    return total, best

mask_then_view | x: real N
    y = np.zeros_like(x)
    y[:] = x
    y[y > 0] = -1
    z = np.where(y < 0, y, x)
    return z[::-1][1:]

running_max | x: real N M
    h = x[0]
    for t in range(1, x.shape[0]):
        h = np.maximum(h, x[t]) * 0.9
    return h

argument_by_another_name | x: real N
    y = x
    y[0] = 7
    return x + y

write_rows | x: real N M
    for row in x:
        row[0] = 2
    return x

scale_rows | x: real N M
    for i, row in enumerate(x):
        row *= i
    return x

reshaped_then_written | x: real N M
    t = x.reshape(x.shape[0] * x.shape[1])
    t[0] = 0
    t += 1
    return t

transposed_at_the_end | x: real N M
    y = np.zeros((x.shape[0], x.shape[1]))
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    t = y.T
    return t + 1

copies_in_a_loop | x: real N M
    y = x * 1
    for k in range(3):
        t = y.T.copy()
        y[0] = t[:, 0] + 1
        z = t * 2
    return y

beyond_a_view | x: real N
    u = x[1:3]
    for k in range(x.shape[0]):
        u[k] = 5
    return x

places_in_a_view | x: real N
    u = x[1:]
    for k in range(u.shape[0]):
        u[-k - 1] += k
        u[k] *= 2
    return x

renamed_while_looped_over | x: real N M
    s = x[0] * 0
    for r in x:
        x = np.sin(x) + 1
        s = s + r
    return x + s

in_place_under_another_name | x: real N
    v = x
    for k in range(3):
        x -= v
        v[0] += 1
    return v

given_where_it_goes_on | x: real N; s: real
    if s > 0:
        if x[0] > 0:
            return -x
        v = s * 2
    else:
        v = 1.0
    return x * v

store_after_view | x: real N N
    y = x * 1
    for k in range(3):
        t = y.T
        s = np.sum(t @ y, axis=0) * 0.1
        y[0] = s
    return y
"""


def cases() -> tuple[Case, ...]:
    return (*_elementwise(), *_expressions(), *_bodies())


def _elementwise() -> list[Case]:
    """A case for every elementwise row of the table, made from the row."""
    found = []
    for row in ROWS.values():
        spelling = next((s for s in row.spellings if s.startswith(("np.", "special."))), None)
        if row.kind != "elementwise" or spelling is None or row.name in ("left_shift", "right_shift", "bitwise_not"):
            continue
        kind = "i64" if row.name in _INTEGERS else "real"
        domain = _DOMAINS.get(row.name, "")
        names = row.arrays
        first = "bool" if row.name == "where" else kind
        arguments = tuple((n, first if k == 0 else kind, "N M" if k == 0 else "M", domain) for k, n in enumerate(names))
        given = ["1" if a.kind == "int" else a.name for a in row.signature]  # the order of polygamma
        found.append(_case(f"op_{row.name}", [f"return {spelling}({', '.join(given)})"], arguments))
    return found


def _expressions() -> list[Case]:
    lines = [re.split(r"\s*\|\s{1,}", line) for line in EXPRESSIONS.strip().splitlines() if line.strip()]
    return [_case(p[0].strip(" |"), [f"return {' | '.join(p[1:-1]).strip()}"], _arguments(p[-1])) for p in lines]


def _bodies() -> list[Case]:
    found = []
    for block in BODIES.strip().split("\n\n"):
        head, *lines = block.splitlines()
        name, _, arguments = head.partition(" | ")
        found.append(_case(name.strip(), [line[4:] for line in lines], _arguments(arguments)))
    return found


def _arguments(text: str) -> tuple[tuple[str, str, str, str], ...]:
    found = []
    for part in text.split(";"):
        name, _, rest = part.strip().partition(": ")
        dtype, *words = rest.split()
        dims = [w for w in words if w in SIZES or w.isdigit()]
        if "in" in words:
            dims = words[: words.index("in")]
        domain = " ".join(words[len(dims) :])
        found.append((name, dtype, " ".join(dims), domain))
    return tuple(found)


def _case(name: str, lines: list[str], arguments: tuple[tuple[str, str, str, str], ...]) -> Case:
    spelled = ", ".join(f"{n}: {_element(d)}" + (f'["{dims}"]' if dims else "") for n, d, dims, _ in arguments)
    used = set(re.findall(r"\b[NMK]\b", "\n".join(lines)))
    known: dict[str, str] = {}
    for n, _, dims, _ in arguments:
        for axis, dim in enumerate(dims.split()):
            known.setdefault(dim, f"{n}.shape[{axis}]")
    sizes = [f"{dim} = {known[dim]}" for dim in sorted(used & known.keys())]
    body = "".join(f"    {line}\n" for line in [*sizes, *lines])
    return Case(name, f"@layer(backward=None)\ndef {name}({spelled}):\n{body}", arguments)


def _element(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


HEAD = "import math\n\nimport numpy as np\nfrom scipy import special\n\nfrom layerc import bool_, f32, f64, i32, i64, layer, real, stop_gradient\n\n\n"
