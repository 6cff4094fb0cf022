"""The cases of kinds.py as a JAX user would write them."""

import jax
import jax.numpy as jnp
from jax import lax


# -- normalisation ------------------------------------------------------------------------------------------------
def group_norm(x, weight, bias):
    n, c, h, w = x.shape
    g = x.reshape(n, 8, -1)
    centred = g - g.mean(-1, keepdims=True)
    scaled = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled.reshape(n, c, h, w) * weight[:, None, None] + bias[:, None, None]


def batch_norm_last(x, weight, bias):
    centred = x - x.mean((0, 1, 2))
    return centred * lax.rsqrt((centred**2).mean((0, 1, 2)) + 1e-5) * weight + bias


def rms_norm(x, weight):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def weight_standard(w):
    centred = w - w.mean((1, 2, 3), keepdims=True)
    return centred * lax.rsqrt((centred**2).mean((1, 2, 3), keepdims=True) + 1e-5)


# -- activations --------------------------------------------------------------------------------------------------
def hard_swish(x):
    return jax.nn.hard_swish(x)


def prelu_last(x, slope):
    return jnp.where(x > 0, x, slope * x)


# -- softmax and losses -------------------------------------------------------------------------------------------
def masked_softmax(x, length):
    inside = jnp.arange(x.shape[-1]) < length[:, None, None]
    return jax.nn.softmax(jnp.where(inside, x, -jnp.inf), -1)


def focal_loss(x, label):
    log_p = jnp.take_along_axis(jax.nn.log_softmax(x, -1), label[:, None], 1)[:, 0]
    return -((1 - jnp.exp(log_p)) ** 2) * log_p


def contrastive(a, b, same):
    cosine = (a * b).sum(-1) / (jnp.linalg.norm(a, axis=-1) * jnp.linalg.norm(b, axis=-1) + 1e-8)
    return jnp.where(same == 1, 1 - cosine, jax.nn.relu(cosine - 0.5))


# -- dynamic programming ------------------------------------------------------------------------------------------
def ctc(x, label):
    log_p = jax.nn.log_softmax(x, 2)
    n, length = label.shape
    states = jnp.zeros((n, 2 * length + 1), label.dtype).at[:, 1::2].set(label)
    skip = jnp.zeros(states.shape, bool).at[:, 3::2].set(label[:, 1:] != label[:, :-1])
    emitted = jnp.take_along_axis(log_p, states[:, None, :], 2)
    first = jnp.full(states.shape, -1e30).at[:, :2].set(emitted[:, 0, :2])

    def step(alpha, now):
        one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=-1e30)[:, :-1]
        two = jnp.where(skip, jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=-1e30)[:, :-2], -1e30)
        return jax.nn.logsumexp(jnp.stack((alpha, one, two)), 0) + now, None

    alpha, _ = lax.scan(step, first, emitted[:, 1:].swapaxes(0, 1))
    return -jnp.logaddexp(alpha[:, -1], alpha[:, -2])


def hmm(emission, transition, initial):
    alpha = jnp.exp(initial + emission[:, 0])
    total = alpha.sum(1)
    step = jnp.exp(transition)

    def one(carried, now):
        alpha, result = carried
        alpha = (alpha @ step) * jnp.exp(now)
        total = alpha.sum(1)
        return (alpha / total[:, None], result + jnp.log(total)), None

    (_, result), _ = lax.scan(one, (alpha / total[:, None], jnp.log(total)), emission[:, 1:].swapaxes(0, 1))
    return result


# -- filters over time, recurrences -------------------------------------------------------------------------------
def biquad(x, b, a):
    driven = b[0] * x + b[1] * jnp.pad(x, ((0, 0), (1, 0)))[:, :-1] + b[2] * jnp.pad(x, ((0, 0), (2, 0)))[:, :-2]

    def step(carried, now):
        y1, y2 = carried
        out = now - a[0] * y1 - a[1] * y2
        return (out, y1), out

    zero = jnp.zeros_like(x[:, 0])
    return lax.scan(step, (zero, zero), driven.T)[1].T


def lstm(x, w_input, w_hidden, bias):
    def step(carried, now):
        h, c = carried
        i, f, g, o = jnp.split(now + h @ w_hidden, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[0], w_hidden.shape[0]))
    return lax.scan(step, (zero, zero), (x @ w_input + bias).swapaxes(0, 1))[1].swapaxes(0, 1)


def linear_attention(q, k, v):
    return jnp.tril(q @ k.swapaxes(1, 2)) @ v


# -- small matrices -----------------------------------------------------------------------------------------------
def cholesky(a):
    lower = jnp.tril(a)
    return jnp.linalg.cholesky(lower + jnp.tril(a, -1).swapaxes(1, 2), symmetrize_input=False)


def inverse(a):
    return jnp.linalg.inv(a)


# -- attention ----------------------------------------------------------------------------------------------------
def causal_attention(q, k, v):
    scores = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


# -- gather and scatter -------------------------------------------------------------------------------------------
def embedding_bag(index, table):
    return table[index].mean(1)


def neighbour_sum(x, source, target):
    return jnp.zeros_like(x).at[target].add(x[source])


# -- windows ------------------------------------------------------------------------------------------------------
def lp_pool(x):
    h, w = x.shape[2] - 2, x.shape[3] - 2
    cubes = x**3
    return sum(cubes[:, :, a : a + h, b : b + w] for a in range(3) for b in range(3)) ** (1 / 3)


def depthwise(x, weight):
    h, w = x.shape[2:]
    padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(padded[:, :, a : a + h, b : b + w] * weight[:, a, b, None, None] for a in range(3) for b in range(3))


def upsample(x):
    n, c, h, w = x.shape
    return jax.image.resize(x, (n, c, 2 * h, 2 * w), "bilinear")


# -- an iteration for each element --------------------------------------------------------------------------------
def lambert_w(x):
    """Every element takes as many steps as the slowest would."""
    w = jnp.log1p(x)
    for _ in range(5):
        e = jnp.exp(w)
        f = w * e - x
        w = w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
    return w
