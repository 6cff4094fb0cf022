"""Networks, physics, signal processing and statistics by hand."""

import numpy as np

from layerc import Param, i64, layer, real


@layer
def nbody(pos: real["N 3"], vel: real["N 3"], mass: real["N"], *, steps: int = 2, dt: float = 0.01):  # N=3 low=0.5 high=2
    acc = accelerations(pos, mass)
    for t in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = accelerations(pos, mass)
        vel += acc * dt / 2.0
    ke = 0.5 * np.sum(mass * np.sum(vel**2, axis=1))
    return pos, vel, ke


def accelerations(pos, mass):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv = dx**2 + dy**2 + dz**2 + 0.1**2
    inv = np.where(inv > 0, inv, 1.0) ** (-1.5)
    return np.hstack((((dx * inv) @ mass)[:, None], ((dy * inv) @ mass)[:, None], ((dz * inv) @ mass)[:, None]))


@layer
def nbody_loops(pos: real["N 2"]):  # N=4
    e = 0.0
    f = np.zeros_like(pos)
    for i in range(pos.shape[0]):
        for j in range(i):
            d = pos[i] - pos[j]
            r2 = d @ d + 0.2
            e += 1.0 / np.sqrt(r2)
            f[i] -= d / r2
            f[j] += d / r2
    return e, f


@layer
def dft(re: real["N"], im: real["N"]):  # N=5
    n = re.shape[0]
    k = np.arange(n)
    w = 2 * np.pi * np.outer(k, k) / n if n > 0 else np.zeros((n, n))
    c, s = np.cos(w), np.sin(w)
    return re @ c + im @ s, im @ c - re @ s


@layer
def fft8(re: real["8"], im: real["8"]):  #
    order = np.array([0, 4, 2, 6, 1, 5, 3, 7])
    a = re[order]
    b = im[order]
    m = 1
    for stage in range(3):
        for start in range(4):
            j = start % m
            top = (start // m) * 2 * m + j
            angle = -np.pi * j / m
            c, s = np.cos(angle), np.sin(angle)
            tr = c * a[top + m] - s * b[top + m]
            ti = c * b[top + m] + s * a[top + m]
            a[top + m] = a[top] - tr
            b[top + m] = b[top] - ti
            a[top] += tr
            b[top] += ti
        m *= 2
    return a, b


@layer
def mandelbrot(cx: real["H W"], cy: real["H W"]):  # H=3 W=4 low=-0.5 high=0.5
    zx, zy = np.zeros_like(cx), np.zeros_like(cx)
    n = np.zeros_like(cx)
    for t in range(6):
        inside = zx * zx + zy * zy < 4.0
        nx = zx * zx - zy * zy + cx
        ny = 2 * zx * zy + cy
        zx = np.where(inside, nx, zx)
        zy = np.where(inside, ny, zy)
        n += inside
    return n, zx, zy


@layer
def mandelbrot_escape(cx: real[""], cy: real[""]):  #
    x, y = 0.0, 0.0
    n = 0
    while x * x + y * y < 4.0 and n < 20:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        n += 1
    return n, x * x + y * y


@layer
def conv2d(x: real["C H W"], w: real["K C P Q"], b: real["K"]):  # C=2 H=5 W=4 K=2 P=3 Q=2
    K, C, P, Q = w.shape
    H, W = x.shape[1] - P + 1, x.shape[2] - Q + 1
    y = np.zeros((K, H, W))
    for i in range(H):
        for j in range(W):
            y[:, i, j] = np.tensordot(w, x[:, i : i + P, j : j + Q], axes=([1, 2, 3], [0, 1, 2])) + b
    return np.maximum(y, 0)


@layer
def conv2d_strided(x: real["C H W"], w: real["K C 3 3"], *, stride: int = 2, pad: int = 1):  # C=2 H=5 W=4 K=2 edge=1
    p = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    H, W = (p.shape[1] - 3) // stride + 1, (p.shape[2] - 3) // stride + 1
    y = np.zeros((w.shape[0], H, W))
    for i in range(H):
        for j in range(W):
            for a in range(3):
                for b in range(3):
                    y[:, i, j] += w[:, :, a, b] @ p[:, i * stride + a, j * stride + b]
    return y


@layer
def im2col(x: real["C H W"], w: real["K C*9"]):  # C=2 H=4 W=4 K=2 edge=-
    C, H, W = x.shape
    cols = np.zeros((C, 9, H - 2, W - 2))
    for a in range(3):
        for b in range(3):
            cols[:, a * 3 + b] = x[:, a : a + H - 2, b : b + W - 2]
    return (w @ cols.reshape(C * 9, -1)).reshape(w.shape[0], H - 2, W - 2)


@layer
def pool2d(x: real["C H W"]):  # C=2 H=4 W=6 edge=1
    C, H, W = x.shape
    best = np.zeros((C, H // 2, W // 2))
    mean = np.zeros((C, H // 2, W // 2))
    for i in range(H // 2):
        for j in range(W // 2):
            part = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            best[:, i, j] = np.max(part, axis=(1, 2))
            mean[:, i, j] = np.mean(part, axis=(1, 2))
    return best, mean


@layer
def depthwise(x: real["C T"], w: real["C K"]):  # C=2 T=6 K=3
    y = np.zeros((x.shape[0], x.shape[1] - w.shape[1] + 1))
    for k in range(w.shape[1]):
        y += w[:, k : k + 1] * x[:, k : k + x.shape[1] - w.shape[1] + 1]
    return y


@layer
def lstm(x: real["T D"], wx: real["D 4*H"], wh: real["H 4*H"], b: real["4*H"]):  # T=3 D=2 H=2 low=-1 high=1
    H = wh.shape[0]
    h, c = np.zeros(H), np.zeros(H)
    hs = []
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        i, f, o = 1 / (1 + np.exp(-z[:H])), 1 / (1 + np.exp(-z[H : 2 * H])), 1 / (1 + np.exp(-z[2 * H : 3 * H]))
        g = np.tanh(z[3 * H :])
        c = f * c + i * g
        h = o * np.tanh(c)
        hs.append(h)
    return np.stack(hs), c


@layer
def gru(x: real["T D"], h: real["H"], wz: real["D+H H"], wr: real["D+H H"], wn: real["D+H H"]):  # T=3 D=2 H=2 low=-1 high=1
    for xt in x:
        xh = np.concatenate([xt, h])
        z = 1 / (1 + np.exp(-(xh @ wz)))
        r = 1 / (1 + np.exp(-(xh @ wr)))
        n = np.tanh(np.concatenate([xt, r * h]) @ wn)
        h = (1 - z) * n + z * h
    return h


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@layer
def multi_head_attention(x: real["T D"], wq: real["D D"], wk: real["D D"], wv: real["D D"], *, heads: int = 2):  # T=3 D=4 edge=-
    T, D = x.shape
    k = D // heads
    q = (x @ wq).reshape(T, heads, k).transpose(1, 0, 2)
    kk = (x @ wk).reshape(T, heads, k).transpose(1, 0, 2)
    v = (x @ wv).reshape(T, heads, -1).transpose(1, 0, 2)
    s = q @ kk.swapaxes(1, 2) / np.sqrt(k)
    s = np.where(np.tril(np.ones((T, T))) > 0, s, -np.inf)
    return (softmax(s) @ v).transpose(1, 0, 2).reshape(T, D)


@layer
def transformer_block(x: real["T D"], w1: real["D F"], w2: real["F D"], g: Param[real["D"]]):  # T=3 D=4 F=5 edge=1
    m = x.mean(axis=-1, keepdims=True)
    v = x.var(axis=-1, keepdims=True)
    h = (x - m) / np.sqrt(v + 1e-5) * g
    h = h @ w1
    h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    return x + h @ w2


@layer
def mlp(x: real["N D"], w1: real["D H"], b1: real["H"], w2: real["H C"], t: i64["N"]):  # N=4 D=3 H=5 C=3 edge=1
    h = np.maximum(x @ w1 + b1, 0.01 * (x @ w1 + b1))
    z = h @ w2
    lp = z - np.log(np.sum(np.exp(z - z.max(axis=1, keepdims=True)), axis=1, keepdims=True)) - z.max(axis=1, keepdims=True)
    return -np.mean(lp[np.arange(x.shape[0]), t % z.shape[1]])


@layer
def kmeans(x: real["N D"], c: real["K D"]):  # N=6 D=2 K=2 edge=1
    for step in range(2):
        d = np.sum((x[:, None, :] - c[None, :, :]) ** 2, axis=2)
        label = np.argmin(d, axis=1)
        for k in range(c.shape[0]):
            member = (label == k).astype(x.dtype)
            n = member.sum()
            if n > 0:
                c[k] = member @ x / n
    return c, np.sum(np.min(np.sum((x[:, None, :] - c) ** 2, axis=2), axis=1))


@layer
def nearest_neighbour(x: real["N D"], q: real["M D"], y: real["N"]):  # N=5 D=2 M=3 edge=1
    out = np.zeros(q.shape[0])
    for j in range(q.shape[0]):
        d = np.linalg.norm(x - q[j], axis=1)
        k = np.argsort(d)
        out[j] = y[k[0]] / (d[k[0]] + 1)
    return out


@layer
def gaussian_mixture(x: real["N D"], mu: real["K D"], logs: real["K D"], w: real["K"]):  # N=4 D=2 K=3 edge=1
    lw = w - np.log(np.sum(np.exp(w)))
    q = -0.5 * np.sum(((x[:, None] - mu) / np.exp(logs)) ** 2, axis=-1) - np.sum(logs, axis=-1) + lw
    m = q.max(axis=1)
    return np.sum(m + np.log(np.sum(np.exp(q - m[:, None]), axis=1)))


@layer
def kalman_filter(z: real["T M"], F: real["N N"], H: real["M N"]):  # T=3 M=2 N=2 low=0.2 high=0.8 edge=1
    n = F.shape[0]
    x, P = np.zeros(n), np.eye(n)
    for t in range(z.shape[0]):
        x = F @ x
        P = F @ P @ F.T + 0.1 * np.eye(n)
        S = H @ P @ H.T + 0.2 * np.eye(H.shape[0])
        K = np.linalg.solve(S, H @ P).T
        x = x + K @ (z[t] - H @ x)
        P = (np.eye(n) - K @ H) @ P
    return x, P


@layer
def runge_kutta(y: real["N"], k: real[""], *, steps: int = 3):  # N=3
    def rhs(v):
        return -k * v + np.sin(v)

    h = 0.1
    for _ in range(steps):
        k1 = rhs(y)
        k2 = rhs(y + h / 2 * k1)
        k3 = rhs(y + h / 2 * k2)
        k4 = rhs(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@layer
def newton_sqrt(a: real["N"]):  # N=4 low=0.5 high=4
    x = np.ones_like(a)
    while np.sum(np.abs(x * x - a)) > 1e-3:
        x = 0.5 * (x + a / x)
    return x




@layer
def bisection(a: real[""]):  # low=0.5 high=3 kink
    lo, hi = 0.0, 3.0
    for _ in range(20):
        mid = 0.5 * (lo + hi)
        if mid * mid * mid > a:
            hi = mid
        else:
            lo = mid
    return lo


@layer
def ar_filter(x: real["N"], a: real["P"], b: real["Q"]):  # N=6 P=2 Q=2 low=-0.5 high=0.5
    y = np.zeros_like(x)
    for n in range(x.shape[0]):
        for k in range(b.shape[0]):
            if n - k >= 0:
                y[n] += b[k] * x[n - k]
        for k in range(a.shape[0]):
            if n - k - 1 >= 0:
                y[n] -= a[k] * y[n - k - 1]
    return y


@layer
def resample(x: real["N"], t: real["M"]):  # N=5 M=4 low=0.1 high=3.9 edge=-
    k = np.floor(t).astype(int)
    k = np.clip(k, 0, x.shape[0] - 2)
    f = t - k
    return x[k] * (1 - f) + x[k + 1] * f


@layer
def spline_basis(x: real["N"], knots: real["8"]):  # N=4 low=0.1 high=0.9
    t = np.cumsum(np.abs(knots) + 0.1)
    u = x * 3
    b = np.zeros((x.shape[0], 7))
    for i in range(7):
        b[:, i] = np.where((u >= t[i]) & (u < t[i + 1]), 1.0, 0.0)
    for p in range(1, 3):
        for i in range(7 - p):
            left = (u - t[i]) / (t[i + p] - t[i])
            right = (t[i + p + 1] - u) / (t[i + p + 1] - t[i + 1])
            b[:, i] = left * b[:, i] + right * b[:, i + 1]
    return b[:, :5]


@layer
def ray_marching(o: real["3"], d: real["3"], r: real[""]):  # low=0.2 high=1
    n = d / np.linalg.norm(d)
    t = 0.0
    for k in range(30):
        p = o * 3 - t * n
        s = np.linalg.norm(p) - abs(r) * 0.3
        if s < 1e-3:
            break
        if t > 10:
            break
        t = t + s
    return t


@layer
def crc_like(b: i64["N"]):  # N=6 ints=0:16
    c = 0
    for v in b:
        c = c ^ v
        for _ in range(4):
            if c & 1 == 1:
                c = (c // 2) ^ 9
            else:
                c = c // 2
    return c


@layer
def softmax_temperature(x: real["*S"], t: real[""]) -> real["*S"]:  # S=2x3 low=0.3 high=2
    e = np.exp(x / t)
    return e / np.sum(e)
