"""The cases of kinds.py as a torch user would write them, and torch's own kernels for them."""

import torch
import torch.nn.functional as F


# -- normalisation ------------------------------------------------------------------------------------------------
def group_norm(x, weight, bias):
    n, c, h, w = x.shape
    g = x.view(n, 8, -1)
    centred = g - g.mean(-1, keepdim=True)
    scaled = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
    return scaled.view(n, c, h, w) * weight[:, None, None] + bias[:, None, None]


def group_norm_own(x, weight, bias):
    return F.group_norm(x, 8, weight, bias)


def batch_norm_last(x, weight, bias):
    mean = x.mean((0, 1, 2))
    centred = x - mean
    return centred * torch.rsqrt(centred.square().mean((0, 1, 2)) + 1e-5) * weight + bias


def batch_norm_last_own(x, weight, bias):
    y = F.batch_norm(x.permute(0, 3, 1, 2), None, None, weight, bias, training=True)
    return y.permute(0, 2, 3, 1)


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def rms_norm_own(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)


def weight_standard(w):
    centred = w - w.mean((1, 2, 3), keepdim=True)
    return centred * torch.rsqrt(centred.square().mean((1, 2, 3), keepdim=True) + 1e-5)


# -- activations --------------------------------------------------------------------------------------------------
def hard_swish(x):
    return x * torch.clamp(x + 3, 0, 6) / 6


def hard_swish_own(x):
    return F.hardswish(x)


def prelu_last(x, slope):
    return torch.where(x > 0, x, slope * x)


def prelu_last_own(x, slope):
    return F.prelu(x.permute(0, 3, 1, 2), slope).permute(0, 2, 3, 1)


# -- softmax and losses -------------------------------------------------------------------------------------------
def masked_softmax(x, length):
    inside = torch.arange(x.shape[-1]) < length[:, None, None]
    return torch.softmax(x.masked_fill(~inside, -torch.inf), -1)


def focal_loss(x, label):
    log_p = F.log_softmax(x, -1).gather(1, label.long()[:, None])[:, 0]
    return -((1 - log_p.exp()) ** 2) * log_p


def contrastive(a, b, same):
    cosine = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + 1e-8)
    return torch.where(same == 1, 1 - cosine, F.relu(cosine - 0.5))


def contrastive_own(a, b, same):
    return F.cosine_embedding_loss(a, b, 2 * same - 1, margin=0.5, reduction="none")


# -- dynamic programming ------------------------------------------------------------------------------------------
def ctc(x, label):
    """All states of a step at once."""
    log_p = torch.log_softmax(x, 2)
    n, steps, _ = log_p.shape
    length = label.shape[1]
    states = torch.zeros(n, 2 * length + 1, dtype=torch.long)
    states[:, 1::2] = label
    skip = torch.zeros_like(states, dtype=torch.bool)
    skip[:, 3::2] = label[:, 1:] != label[:, :-1]
    emitted = log_p.gather(2, states[:, None, :].expand(n, steps, -1))
    alpha = torch.full(states.shape, -1e30)
    alpha = torch.cat((emitted[:, 0, :2], alpha[:, 2:]), 1)
    for t in range(1, steps):
        one = F.pad(alpha, (1, 0), value=-1e30)[:, :-1]
        two = torch.where(skip, F.pad(alpha, (2, 0), value=-1e30)[:, :-2], -1e30)
        alpha = torch.logsumexp(torch.stack((alpha, one, two)), 0) + emitted[:, t]
    return -torch.logaddexp(alpha[:, -1], alpha[:, -2])


def ctc_own(x, label):
    n, steps, _ = x.shape
    log_p = torch.log_softmax(x, 2)
    lengths = torch.full((n,), steps), torch.full((n,), label.shape[1])
    return F.ctc_loss(log_p.transpose(0, 1), label.long(), *lengths, reduction="none")


def hmm(emission, transition, initial):
    alpha = torch.exp(initial + emission[:, 0])
    total = alpha.sum(1, keepdim=True)
    alpha, result, step = alpha / total, torch.log(total), torch.exp(transition)
    for t in range(1, emission.shape[1]):
        alpha = (alpha @ step) * torch.exp(emission[:, t])
        total = alpha.sum(1, keepdim=True)
        alpha, result = alpha / total, result + torch.log(total)
    return result[:, 0]


# -- filters over time, recurrences -------------------------------------------------------------------------------
def biquad(x, b, a):
    driven = b[0] * x + b[1] * F.pad(x, (1, 0))[:, :-1] + b[2] * F.pad(x, (2, 0))[:, :-2]
    y1 = y2 = torch.zeros_like(x[:, 0])
    found = []
    for now in driven.unbind(1):
        y1, y2 = now - a[0] * y1 - a[1] * y2, y1
        found.append(y1)
    return torch.stack(found, 1)


def lstm(x, w_input, w_hidden, bias):
    h = c = torch.zeros(x.shape[0], w_hidden.shape[0])
    found = []
    for now in (x @ w_input + bias).unbind(1):
        i, f, g, o = (now + h @ w_hidden).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        found.append(h)
    return torch.stack(found, 1)


def lstm_own(x, w_input, w_hidden, bias):
    n, width = x.shape[0], w_hidden.shape[0]
    zeros, none = torch.zeros(1, n, width), torch.zeros_like(bias)
    weights = [w_input.T, w_hidden.T, bias, none]
    y, _, _ = torch._VF.lstm(x, (zeros, zeros), weights, True, 1, 0.0, True, False, True)
    return y


def linear_attention(q, k, v):
    """As a masked product of matrices."""
    return torch.tril(q @ k.transpose(1, 2)) @ v


# -- small matrices -----------------------------------------------------------------------------------------------
def cholesky_own(a):
    """torch's gradient is symmetric; the loops read the lower triangle only."""
    lower = torch.tril(a)
    return torch.linalg.cholesky(lower + torch.tril(a, -1).transpose(1, 2))


def cholesky(a):
    """Column by column."""
    n = a.shape[-1]
    columns = []
    for j in range(n):
        rest = a[:, j:, j]
        for done in columns:
            rest = rest - done[:, j:] * done[:, j : j + 1]
        columns.append(F.pad(rest / torch.sqrt(rest[:, :1]), (j, 0)))
    return torch.stack(columns, 2)


def inverse_own(a):
    return torch.linalg.inv(a)


# -- attention ----------------------------------------------------------------------------------------------------
def causal_attention(q, k, v):
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(later, -torch.inf), -1) @ v


def causal_attention_own(q, k, v):
    return F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0]


# -- gather and scatter -------------------------------------------------------------------------------------------
def embedding_bag(index, table):
    return table[index.long()].mean(1)


def embedding_bag_own(index, table):
    return F.embedding_bag(index.long(), table, mode="mean")


def neighbour_sum(x, source, target):
    return torch.zeros_like(x).index_add(0, target.long(), x[source.long()])


# -- windows ------------------------------------------------------------------------------------------------------
def lp_pool(x):
    return F.avg_pool2d(x**3, 3, 1).mul(9) ** (1 / 3)


def lp_pool_own(x):
    return F.lp_pool2d(x, 3.0, 3, 1)


def depthwise(x, weight):
    h, w = x.shape[2:]
    padded = F.pad(x, (1, 1, 1, 1))
    parts = (padded[:, :, a : a + h, b : b + w] * weight[:, a, b, None, None] for a in range(3) for b in range(3))
    return sum(parts)


def depthwise_own(x, weight):
    return F.conv2d(x, weight[:, None], padding=1, groups=x.shape[1])


def upsample_own(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


# -- an iteration for each element --------------------------------------------------------------------------------
def lambert_w(x):
    """All elements until the last one stands."""
    w = torch.log1p(x)
    for _ in range(20):
        e = torch.exp(w)
        f = w * e - x
        step = f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
        w = w - step
        if bool((step.abs() <= 1e-6 * (1 + w.abs())).all()):
            break
    return w


def lambert_w_fixed(x):
    """Without asking, as a compiler of graphs needs it."""
    w = torch.log1p(x)
    for _ in range(5):
        e = torch.exp(w)
        f = w * e - x
        w = w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
    return w
