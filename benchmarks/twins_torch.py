"""The cases as a torch user would write them. A twin takes the case's arguments in order and returns y."""

import functools

import torch
import torch.nn.functional as F


def _channel(p: torch.Tensor) -> torch.Tensor:
    return p[:, None, None]


def srelu_where(x, tl, al, tr, ar):
    tl, al, tr, ar = map(_channel, (tl, al, tr, ar))
    return torch.where(x <= tl, tl + al * (x - tl), torch.where(x >= tr, tr + ar * (x - tr), x))


def srelu_clamp(x, tl, al, tr, ar):
    """The same as a sum of three clipped pieces; equal gradients but at ties, which do not occur."""
    tl, al, tr, ar = map(_channel, (tl, al, tr, ar))
    return torch.clamp(x, tl, tr) - al * F.relu(tl - x) + ar * F.relu(x - tr)


def mish_formula(x):
    return x * torch.tanh(torch.log1p(torch.exp(x)))


def mish_softplus(x):
    return x * torch.tanh(F.softplus(x))


def mish_own(x):
    return F.mish(x)


def rbf_broadcast(x, centers, gamma):
    return torch.exp(-gamma * (x[:, None, :] - centers).square().sum(-1))


def rbf_matmul(x, centers, gamma):
    """|x - c|^2 = |x|^2 + |c|^2 - 2 x.c, the product by one GEMM."""
    squares = x.square().sum(1, keepdim=True) + centers.square().sum(1)
    return torch.exp(-gamma * torch.addmm(squares, x, centers.T, alpha=-2))


def ema_loop(x, decay):
    h, ys = torch.zeros_like(x[:, 0]), []
    for x_t in ((1 - decay) * x).unbind(1):
        h = torch.addcmul(x_t, decay, h)
        ys.append(h)
    return torch.stack(ys, 1)


def ema_doubling(x, decay):
    """Hillis and Steele's scan: after the pass with shift s, y[t] sums the last 2s terms."""
    y, power, shift = (1 - decay) * x, decay, 1
    while shift < x.shape[1]:
        y = y + power * F.pad(y, (0, 0, shift, 0))[:, :-shift]
        power, shift = power * power, 2 * shift
    return y


def ema_chunks(x, decay, length=32):
    """Inside a chunk of time a batched matmul with decay^(t-s), from chunk to chunk a short loop."""
    n, t, d = x.shape
    step = torch.arange(length)
    lag = step[:, None] - step
    kernel = torch.where(lag[..., None] >= 0, decay ** lag.clamp(min=0)[..., None], 0.0)  # (t, s, d)
    chunks = ((1 - decay) * x).view(n, t // length, length, d)
    local = torch.einsum("tsd,ncsd->nctd", kernel, chunks)
    h, carried = torch.zeros_like(x[:, 0]), []
    for last in local[:, :, -1].unbind(1):
        carried.append(h)
        h = torch.addcmul(last, decay**length, h)
    y = local + decay ** (step + 1)[:, None] * torch.stack(carried, 1)[:, :, None]
    return y.view(n, t, d)


def _newton(E, mean, e):
    return (E - e * torch.sin(E) - mean) / (1 - e * torch.cos(E))


def _newton_until_converged(step_of, mean, e):
    E = mean + e * torch.sin(mean)
    for _ in range(50):
        step = step_of(E, mean, e)
        E = E - step
        if step.abs().max() <= 1e-5:
            break
    return E


def _at_the_root(E, mean, e):
    """The implicit function theorem as one Newton step whose slope is a constant: exact at the root."""
    slope = (1 - e * torch.cos(E)).detach()
    return E - (E - e * torch.sin(E) - mean) / slope


def kepler_while(mean, e):
    return _newton_until_converged(_newton, mean, e)


def kepler_implicit(mean, e):
    with torch.no_grad():
        E = _newton_until_converged(_newton, mean, e)
    return _at_the_root(E, mean, e)


_compiled_newton = functools.cache(lambda: torch.compile(_newton))
_compiled_root = functools.cache(lambda: torch.compile(_at_the_root))


def kepler_compiled_step(mean, e):
    return _newton_until_converged(_compiled_newton(), mean, e)


def kepler_implicit_compiled_step(mean, e):
    with torch.no_grad():
        E = _newton_until_converged(_compiled_newton(), mean, e)
    return _compiled_root()(E, mean, e)


def kepler_fixed(mean, e, iterations=8):
    """A trip count chosen beforehand for these arguments, so that the whole is one graph."""
    E = mean + e * torch.sin(mean)
    for _ in range(iterations):
        E = E - _newton(E, mean, e)
    return E


def kepler_implicit_fixed(mean, e):
    return _at_the_root(kepler_fixed(mean.detach(), e.detach()), mean, e)


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * weight + bias


def layer_norm_own(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias)


def batch_norm(x, weight, bias):
    centred = x - x.mean((0, 2, 3), keepdim=True)
    variance = centred.square().mean((0, 2, 3), keepdim=True)
    return centred / torch.sqrt(variance + 1e-5) * _channel(weight) + _channel(bias)


def batch_norm_own(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, training=True)


def cross_entropy(x, label):
    # Detached: a derivative of the maximum is 0 but for rounding, a sum over the row that lands on one element.
    shifted = x - x.amax(1, keepdim=True).detach()
    chosen = shifted.gather(1, label.long()[:, None])[:, 0]
    return shifted.exp().sum(1).log() - chosen


def cross_entropy_own(x, label):
    return F.cross_entropy(x, label.long(), reduction="none")


def gru(x, w_input, w_hidden, bias):
    gates = (x @ w_input + bias).unbind(1)
    h, ys = torch.zeros_like(gates[0][:, : w_hidden.shape[0]]), []
    for gate in gates:
        (r, z, n), (hr, hz, hn) = gate.chunk(3, 1), (h @ w_hidden).chunk(3, 1)
        z = torch.sigmoid(z + hz)
        h = torch.lerp(torch.tanh(n + torch.sigmoid(r + hr) * hn), h, z)
        ys.append(h)
    return torch.stack(ys, 1)


def gru_own(x, w_input, w_hidden, bias):
    h = x.new_zeros(1, x.shape[0], w_hidden.shape[0])
    weights = [w_input.T, w_hidden.T, bias, torch.zeros_like(bias)]
    return torch.gru(x, h, weights, True, 1, 0.0, True, False, True)[0]


def soft_dtw_diagonals(a, b, gamma=1.0):
    """Cell after cell is hopeless in eager torch: a whole anti-diagonal at a time, as everybody does."""
    n, rows, columns = a.shape[0], a.shape[1], b.shape[1]
    cost = (a[:, :, None] - b[:, None]).square().sum(-1)
    before, last = a.new_full((n, rows + 1), torch.inf), a.new_full((n, rows + 1), torch.inf)
    before[:, 0] = 0.0
    for k in range(2, rows + columns + 1):  # cells (i, k - i), counted from 1
        low, high = max(1, k - columns), min(rows, k - 1)
        i = torch.arange(low, high + 1)
        ways = torch.stack((last[:, low : high + 1], last[:, low - 1 : high], before[:, low - 1 : high]))
        inside = cost[:, i - 1, k - i - 1] - gamma * torch.logsumexp(-ways / gamma, 0)
        before, last = last, F.pad(inside, (low, rows - high), value=torch.inf)
    return last[:, rows]


def crf(score, transition):
    steps = score.unbind(1)
    alpha = steps[0]
    for step in steps[1:]:
        alpha = step + torch.logsumexp(alpha[:, :, None] + transition, 1)
    return torch.logsumexp(alpha, 1)


def _places(flow):
    height, width = flow.shape[-2:]
    row = (torch.arange(height)[:, None] + flow[:, 0]).clamp(0, height - 1)
    column = (torch.arange(width) + flow[:, 1]).clamp(0, width - 1)
    return row, column


def warp_gather(image, flow):
    n, depth, height, width = image.shape
    row, column = _places(flow)
    top, left = row.floor().long(), column.floor().long()
    below, right = (top + 1).clamp(max=height - 1), (left + 1).clamp(max=width - 1)
    down, across = (row - top)[:, None], (column - left)[:, None]
    flat = image.reshape(n, depth, -1)

    def at(i, j):
        index = (i * width + j).reshape(n, 1, -1).expand(-1, depth, -1)
        return flat.gather(2, index).reshape(image.shape)

    upper = torch.lerp(at(top, left), at(top, right), across)
    lower = torch.lerp(at(below, left), at(below, right), across)
    return torch.lerp(upper, lower, down)


def warp_own(image, flow):
    height, width = image.shape[-2:]
    row, column = _places(flow)
    grid = torch.stack((column * (2 / (width - 1)) - 1, row * (2 / (height - 1)) - 1), -1)
    return F.grid_sample(image, grid, mode="bilinear", padding_mode="border", align_corners=True)
