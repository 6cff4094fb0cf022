"""The cases as a JAX user would write them. A twin takes the case's arguments in order and returns y."""

import jax
import jax.numpy as jnp
from jax import lax


def _channel(p):
    return p[:, None, None]


def srelu_where(x, tl, al, tr, ar):
    tl, al, tr, ar = map(_channel, (tl, al, tr, ar))
    return jnp.where(x <= tl, tl + al * (x - tl), jnp.where(x >= tr, tr + ar * (x - tr), x))


def srelu_clamp(x, tl, al, tr, ar):
    """The same as a sum of three clipped pieces; equal gradients but at ties, which do not occur."""
    tl, al, tr, ar = map(_channel, (tl, al, tr, ar))
    return jnp.clip(x, tl, tr) - al * jax.nn.relu(tl - x) + ar * jax.nn.relu(x - tr)


def mish_formula(x):
    return x * jnp.tanh(jnp.log1p(jnp.exp(x)))


def mish_softplus(x):
    return x * jnp.tanh(jax.nn.softplus(x))


def mish_own(x):
    return jax.nn.mish(x)


def rbf_broadcast(x, centers, gamma):
    return jnp.exp(-gamma * jnp.sum((x[:, None, :] - centers) ** 2, -1))


def rbf_matmul(x, centers, gamma):
    """|x - c|^2 = |x|^2 + |c|^2 - 2 x.c, the product by one GEMM."""
    squares = jnp.sum(x * x, 1, keepdims=True) + jnp.sum(centers * centers, 1)
    return jnp.exp(-gamma * (squares - 2 * x @ centers.T))


def ema_scan(x, decay, unroll=1):
    def step(h, x_t):
        h = decay * h + x_t
        return h, h

    terms = jnp.swapaxes((1 - decay) * x, 0, 1)
    _, y = lax.scan(step, jnp.zeros_like(terms[0]), terms, unroll=unroll)
    return jnp.swapaxes(y, 0, 1)


def ema_scan_unrolled(x, decay):
    return ema_scan(x, decay, unroll=8)


def ema_associative(x, decay):
    def combine(left, right):
        (a, x_a), (b, x_b) = left, right
        return a * b, b * x_a + x_b

    powers = jnp.broadcast_to(decay, (1, *x.shape[1:]))
    return lax.associative_scan(combine, (powers, (1 - decay) * x), axis=1)[1]


def ema_doubling(x, decay):
    """Hillis and Steele's scan: after the pass with shift s, y[t] sums the last 2s terms."""
    y, power, shift = (1 - decay) * x, decay, 1
    while shift < x.shape[1]:
        y = y + power * jnp.pad(y, ((0, 0), (shift, 0), (0, 0)))[:, :-shift]
        power, shift = power * power, 2 * shift
    return y


def ema_chunks(x, decay, length=32):
    """Inside a chunk of time a batched matmul with decay^(t-s), from chunk to chunk a short scan."""
    n, t, d = x.shape
    step = jnp.arange(length)
    lag = step[:, None] - step
    kernel = jnp.where(lag[..., None] >= 0, decay ** jnp.maximum(lag, 0)[..., None], 0.0)  # (t, s, d)
    chunks = ((1 - decay) * x).reshape(n, t // length, length, d)
    local = jnp.einsum("tsd,ncsd->cntd", kernel, chunks)

    def carry(h, last):
        return decay**length * h + last, h

    _, carried = lax.scan(carry, jnp.zeros_like(local[0, :, 0]), local[:, :, -1])
    y = local + decay ** (step + 1)[:, None] * carried[:, :, None]
    return jnp.moveaxis(y, 0, 1).reshape(n, t, d)


def _newton(E, mean, e):
    return (E - e * jnp.sin(E) - mean) / (1 - e * jnp.cos(E))


def _at_the_root(E, mean, e):
    """The implicit function theorem as one Newton step whose slope is a constant: exact at the root."""
    slope = lax.stop_gradient(1 - e * jnp.cos(E))
    return E - (E - e * jnp.sin(E) - mean) / slope


def kepler_fixed(mean, e, iterations=8):
    """A trip count chosen beforehand for these arguments, unrolled: lax.while_loop has no reverse mode."""
    E = mean + e * jnp.sin(mean)
    for _ in range(iterations):
        E = E - _newton(E, mean, e)
    return E


def kepler_scan(mean, e, iterations=8):
    def step(E, _):
        return E - _newton(E, mean, e), None

    return lax.scan(step, mean + e * jnp.sin(mean), None, length=iterations)[0]


def kepler_implicit(mean, e):
    """lax.while_loop to the root, outside the differentiated part, then the implicit function theorem."""

    def going(state):
        _, step, count = state
        return (jnp.max(jnp.abs(step)) > 1e-5) & (count < 50)

    def body(state):
        E, _, count = state
        step = _newton(E, *fixed)
        return E - step, step, count + 1

    fixed = lax.stop_gradient((mean, e))
    start = fixed[0] + fixed[1] * jnp.sin(fixed[0])
    E, _, _ = lax.while_loop(going, body, (start, jnp.ones_like(start), 0))
    return _at_the_root(E, mean, e)


def kepler_implicit_fixed(mean, e):
    return _at_the_root(kepler_fixed(*lax.stop_gradient((mean, e))), mean, e)


def layer_norm(x, weight, bias):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5) * weight + bias


def batch_norm(x, weight, bias):
    centred = x - jnp.mean(x, (0, 2, 3), keepdims=True)
    variance = jnp.mean(centred**2, (0, 2, 3), keepdims=True)
    return centred / jnp.sqrt(variance + 1e-5) * _channel(weight) + _channel(bias)


def cross_entropy(x, label):
    shifted = x - lax.stop_gradient(jnp.max(x, 1, keepdims=True))
    chosen = jnp.take_along_axis(shifted, label[:, None], 1)[:, 0]
    return jnp.log(jnp.sum(jnp.exp(shifted), 1)) - chosen


def gru(x, w_input, w_hidden, bias):
    def step(h, gate):
        (r, z, n), (hr, hz, hn) = jnp.split(gate, 3, 1), jnp.split(h @ w_hidden, 3, 1)
        z = jax.nn.sigmoid(z + hz)
        h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn) + z * h
        return h, h

    h = jnp.zeros((x.shape[0], w_hidden.shape[0]), x.dtype)
    return jnp.swapaxes(lax.scan(step, h, jnp.swapaxes(x @ w_input + bias, 0, 1))[1], 0, 1)


def soft_dtw_diagonals(a, b, gamma=1.0):
    """Anti-diagonals as the steps of a scan, all of one length: cells outside the table are infinite."""
    n, rows, columns = a.shape[0], a.shape[1], b.shape[1]
    cost = jnp.sum((a[:, :, None] - b[:, None]) ** 2, -1)
    i = jnp.arange(rows)

    def step(carry, k):
        before, last = carry
        j = k - i  # the cell (i, j) of the table
        ways = jnp.stack((last[:, 1:], last[:, :-1], before[:, :-1]))
        here = cost[:, i, jnp.clip(j, 0, columns - 1)] - gamma * jax.nn.logsumexp(-ways / gamma, 0)
        here = jnp.where((j >= 0) & (j < columns), here, 1e10)
        return (last.at[:, 0].set(1e10), jnp.pad(here, ((0, 0), (1, 0)), constant_values=1e10)), None

    edge = jnp.full((n, rows + 1), 1e10, a.dtype)
    (_, last), _ = lax.scan(step, (edge.at[:, 0].set(0.0), edge), jnp.arange(rows + columns - 1))
    return last[:, rows]


def crf(score, transition):
    def step(alpha, s):
        return s + jax.nn.logsumexp(alpha[:, :, None] + transition, 1), None

    steps = jnp.swapaxes(score, 0, 1)
    return jax.nn.logsumexp(lax.scan(step, steps[0], steps[1:])[0], 1)


def warp_gather(image, flow):
    height, width = image.shape[-2:]
    row = jnp.clip(jnp.arange(height)[:, None] + flow[:, 0], 0, height - 1)
    column = jnp.clip(jnp.arange(width) + flow[:, 1], 0, width - 1)
    top, left = jnp.floor(row).astype(int), jnp.floor(column).astype(int)
    below, right = jnp.minimum(top + 1, height - 1), jnp.minimum(left + 1, width - 1)
    down, across = (row - top)[:, None], (column - left)[:, None]
    at = jax.vmap(lambda picture, i, j: picture[:, i, j])
    upper = (1 - across) * at(image, top, left) + across * at(image, top, right)
    lower = (1 - across) * at(image, below, left) + across * at(image, below, right)
    return (1 - down) * upper + down * lower
