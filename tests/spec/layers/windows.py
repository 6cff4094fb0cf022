"""Windows, masks and bounds of slices, in the many ways in which people write them."""

import numpy as np

from layerc import Param, bool_, f32, f64, i32, i64, layer, real


@layer
def filter_strided(x: real["N"], w: real["K"], *, s: int = 2) -> real["(N-K)//s+1"]:  # N=9 K=3 edge=1
    n, k = x.shape[0], w.shape[0]
    y = np.zeros((n - k) // s + 1)
    for i in range((n - k) // s + 1):
        y[i] = x[i * s : i * s + k] @ w
    return y


@layer
def filter_named_count(x: real["N"], w: real["K"], *, stride: int = 3):  # N=11 K=4 edge=1
    count = (x.size - w.size) // stride + 1
    out = np.empty(count)
    for t in range(count):
        lo = t * stride
        hi = lo + w.size
        out[t] = np.dot(w, x[lo:hi])
    return out


@layer
def filter_steps(x: real["N"], w: real["3"]):  # N=9 edge=-
    y = np.zeros(len(x))
    for i in range(0, len(x) - 2, 2):
        y[i] = np.sum(x[i : i + 3] * w)
    return y


@layer
def filter_list(x: real["N"], w: real["K"], *, s: int = 2):  # N=9 K=3 edge=1
    return np.stack([x[i * s : i * s + w.shape[0]] @ w for i in range((x.shape[0] - w.shape[0]) // s + 1)])


@layer
def conv1d_channels(x: real["C N"], w: Param[real["D C K"]], b: Param[real["D"]], *, s: int = 2):  # C=2 N=8 D=3 K=3 edge=1
    C, N = x.shape
    D, _, K = w.shape
    y = np.zeros((D, (N - K) // s + 1))
    for i in range(y.shape[1]):
        y[:, i] = np.tensordot(w, x[:, s * i : s * i + K], axes=([1, 2], [0, 1])) + b
    return y


@layer
def conv2d_general(x: real["C H W"], w: real["D C P Q"], *, sh: int = 2, sw: int = 1):  # C=2 H=6 W=5 D=2 P=2 Q=3 edge=1
    C, H, W = x.shape
    D, _, P, Q = w.shape
    oh, ow = (H - P) // sh + 1, (W - Q) // sw + 1
    y = np.zeros((D, oh, ow))
    for d in range(D):
        for i in range(oh):
            for j in range(ow):
                y[d, i, j] = np.sum(x[:, i * sh : i * sh + P, j * sw : j * sw + Q] * w[d])
    return y


@layer
def conv2d_padded(x: real["C H W"], w: real["D C P Q"], *, stride: int = 2, pad: int = 1):  # C=2 H=5 W=4 D=2 P=3 Q=3 edge=1
    p = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    H = (x.shape[1] + 2 * pad - w.shape[2]) // stride + 1
    W = (x.shape[2] + 2 * pad - w.shape[3]) // stride + 1
    y = np.zeros((w.shape[0], H, W))
    for i in range(H):
        for j in range(W):
            window = p[:, i * stride : i * stride + w.shape[2], j * stride : j * stride + w.shape[3]]
            y[:, i, j] = np.einsum("dcpq,cpq->d", w, window)
    return y


@layer
def pool_max(x: real["C H W"], *, k: int = 2):  # C=2 H=4 W=6 edge=1
    C, H, W = x.shape
    out = np.empty((C, H // k, W // k))
    for i in range(H // k):
        for j in range(W // k):
            out[:, i, j] = np.max(x[:, k * i : k * i + k, k * j : k * j + k], axis=(1, 2))
    return out


@layer
def pool_overlapping(x: real["H W"], *, k: int = 3, s: int = 2):  # H=7 W=5 edge=-
    h, w = (x.shape[0] - k) // s + 1, (x.shape[1] - k) // s + 1
    best, mean = np.zeros((h, w)), np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            window = x[i * s : i * s + k, j * s : j * s + k]
            best[i, j] = window.max()
            mean[i, j] = window.mean()
    return best, mean


@layer
def unpool(y: real["C H W"]) -> real["C 2*H 2*W"]:  # C=2 H=2 W=3
    C, H, W = y.shape
    out = np.zeros((C, 2 * H, 2 * W))
    for i in range(H):
        for j in range(W):
            out[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = y[:, i, j][:, None, None]
    return out


@layer
def pad_config(x: real["N"], *, pad: int = 2) -> real["N+2*pad"]:  # N=4
    return np.pad(x, (pad, pad))


@layer
def pad_config_inferred(x: real["N M"], *, before: int = 1, after: int = 2):  # N=3 M=2
    return np.pad(x, ((before, after), (0, after)), constant_values=0.5) ** 2


@layer
def pad_one_number(x: real["N M"], *, pad: int = 1):  # N=3 M=2 edge=1
    return np.pad(x, pad), np.pad(x * x, pad, mode="edge")


@layer
def window_clamped(x: real["C T"], *, kernel: int = 3):  # C=5 T=2
    half = kernel // 2
    near = np.empty_like(x)
    for c in range(x.shape[0]):
        near[c] = np.sum(x[max(c - half, 0) : max(c + half + 1, 0)], axis=0)
    return near


@layer
def window_clamped_config(x: real["C T"], *, half: int = 1):  # C=5 T=2
    near = np.empty_like(x)
    for c in range(x.shape[0]):
        near[c] = np.mean(x[max(c - half, 0) : min(c + half + 1, x.shape[0])], axis=0)
    return near


@layer
def window_columns(x: real["H W"], *, kernel: int = 3, pad: int = 1):  # H=2 W=5
    y = np.empty_like(x)
    for j in range(x.shape[1]):
        y[:, j] = np.sum(x[:, max(j - pad, 0) : max(j - pad + kernel, 0)] ** 2, axis=1)
    return y


@layer
def window_both(x: real["H W"], *, r: int = 1):  # H=4 W=5
    H, W = x.shape
    out = np.zeros((H, W))
    for i in range(H):
        for j in range(W):
            out[i, j] = np.mean(x[max(0, i - r) : min(H, i + r + 1), max(0, j - r) : min(W, j + r + 1)])
    return out


@layer
def moving_max(x: real["N"], *, k: int = 3):  # N=6
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[max(i - k + 1, 0) : i + 1].max()
    return y


@layer
def blur_softmax(x: real["N"], *, r: int = 2):  # N=6
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        w = x[max(0, i - r) : min(x.shape[0], i + r + 1)]
        e = np.exp(w - np.max(w))
        out[i] = np.sum(e * w) / np.sum(e)
    return out


@layer
def attention_local(q: real["T D"], k: real["T D"], v: real["T D"], *, radius: int = 2):  # T=5 D=2
    T, D = q.shape
    out = np.zeros((T, D))
    for t in range(T):
        a, b = max(0, t - radius), min(T, t + radius + 1)
        scores = k[a:b] @ q[t] / np.sqrt(D)
        p = np.exp(scores - np.max(scores))
        out[t] = (p / p.sum()) @ v[a:b]
    return out


@layer
def attention_causal_rows(q: real["T D"], k: real["T D"], v: real["T E"]):  # T=4 D=3 E=2
    out = np.zeros_like(v)
    for t in range(q.shape[0]):
        s = k[: t + 1] @ q[t]
        p = np.exp(s - np.max(s))
        out[t] = p @ v[: t + 1] / np.sum(p)
    return out


@layer
def blocks_of(x: real["N"], *, b: int = 3):  # N=9 edge=-
    total = np.zeros(x.shape[0] // b)
    for k in range(x.shape[0] // b):
        total[k] = np.prod(x[b * k : b * (k + 1)])
    return total


@layer
def blocked_matmul(a: real["N K"], b: real["K M"], *, t: int = 2):  # N=5 K=3 M=4
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(0, a.shape[0], t):
        for j in range(0, b.shape[1], t):
            c[i : i + t, j : j + t] = a[i : i + t, :] @ b[:, j : j + t]
    return c


@layer
def blocked_three(a: real["N K"], b: real["K M"]):  # N=5 K=6 M=4
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(0, a.shape[0], 2):
        for k in range(0, a.shape[1], 3):
            for j in range(0, b.shape[1], 2):
                c[i : i + 2, j : j + 2] += a[i : i + 2, k : k + 3] @ b[k : k + 3, j : j + 2]
    return c


@layer
def last_block(x: real["N"], *, t: int = 4):  # N=10
    y = x.copy()
    for i in range(0, x.shape[0], t):
        y[i : min(i + t, x.shape[0])] -= np.mean(x[i : min(i + t, x.shape[0])])
    return y


@layer
def downsample(x: real["H W"], *, f: int = 2) -> real["H//f W//f"]:  # H=6 W=4
    H, W = x.shape
    return x[: H // f * f, : W // f * f].reshape(H // f, f, W // f, f).mean(axis=(1, 3))


@layer
def every_other(x: real["N"]):  # N=7
    return x[::2], x[1::2], x[::-2], x[-2::-1], x[:-3:-1], x[5:1:-2]


@layer
def steps_of_config(x: real["N"], *, s: int = 2):  # N=7
    return x[::2] * s


@layer
def reversed_ranges(x: real["N"]):  # N=5
    y = np.zeros_like(x)
    acc = 0.0
    for i in range(len(x) - 1, -1, -1):
        acc = 0.5 * acc + x[i]
        y[i] = acc
    for i in reversed(range(1, len(x))):
        y[i] += y[i - 1]
    return y


@layer
def windows_down(x: real["N"], w: real["K"]):  # N=7 K=3 edge=1
    y = np.zeros(x.shape[0] - w.shape[0] + 1)
    for i in range(x.shape[0] - w.shape[0], -1, -1):
        y[i] = x[i : i + w.shape[0]][::-1] @ w
    return y


@layer
def convolve_full(x: real["N"], w: real["K"]) -> real["N+K-1"]:  # N=5 K=3 edge=1
    y = np.zeros(len(x) + len(w) - 1)
    for i in range(len(x)):
        y[i : i + len(w)] += x[i] * w
    return y


@layer
def convolve_full_gather(x: real["N"], w: real["K"]) -> real["N+K-1"]:  # N=5 K=3 edge=1
    n, k = len(x), len(w)
    y = np.zeros(n + k - 1)
    for t in range(n + k - 1):
        for j in range(max(0, t - n + 1), min(t + 1, k)):
            y[t] += x[t - j] * w[j]
    return y


@layer
def transposed_convolution(x: real["N"], w: real["K"], *, s: int = 2) -> real["(N-1)*s+K"]:  # N=4 K=3 edge=1
    y = np.zeros((x.shape[0] - 1) * s + w.shape[0])
    for i in range(x.shape[0]):
        y[i * s : i * s + w.shape[0]] += x[i] * w
    return y


@layer
def dilated(x: real["C N"], w: real["D C K"], *, d: int = 2):  # C=2 N=9 D=2 K=3 edge=1
    C, N = x.shape
    K = w.shape[2]
    M = N - d * (K - 1)
    y = np.zeros((w.shape[0], M))
    for k in range(K):
        y += w[:, :, k] @ x[:, k * d : k * d + M]
    return y


@layer
def autocorrelation(x: real["N"], *, lags: int = 3) -> real["lags"]:  # N=6 edge=-
    n = x.shape[0]
    m = x - x.mean()
    r = np.zeros(lags)
    for k in range(lags):
        r[k] = m[: n - k] @ m[k:] / n
    return r


@layer
def overlap_add(frames: real["F L"], *, hop: int = 2) -> real["(F-1)*hop+L"]:  # F=3 L=4 edge=1
    F, L = frames.shape
    y = np.zeros((F - 1) * hop + L)
    for f in range(F):
        y[f * hop : f * hop + L] += frames[f]
    return y


@layer
def framed(x: real["N"], *, length: int = 4, hop: int = 2) -> real["(N-length)//hop+1 length"]:  # N=10 edge=-
    count = (x.shape[0] - length) // hop + 1
    frames = np.zeros((count, length))
    for f in range(count):
        frames[f, :] = x[f * hop : f * hop + length]
    return frames


@layer
def upper_rows(a: real["N N"], b: real["N"]):  # N=4
    x = np.zeros_like(b)
    for i in range(b.shape[0] - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / (3 + np.abs(a[i, i]))
    return x


@layer
def shifted_difference(x: real["N"], *, lag: int = 2) -> real["N-lag"]:  # N=6 edge=-
    return x[lag:] - x[:-lag]


@layer
def last_ones(x: real["N M"], *, k: int = 2):  # N=4 M=3 edge=-
    return x[-k:, :-1] - x[:k, 1:], x[..., -1], x[-1, ...]


@layer
def moving_median(x: real["N"], k: int = 3):  # N=6 edge=1
    p = np.pad(x, k // 2, mode="edge")
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = np.sort(p[i : i + k])[k // 2]
    return y
