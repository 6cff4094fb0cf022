"""The cases as a Numba user would write them, what goes step by step or looks things up: see twins_numba.py."""

import math

import numpy as np
from numba import get_num_threads, prange
from twins_numba import ONE, TWO, ZERO, added, kernel, partial, serial, share


# -- recurrences --------------------------------------------------------------------------------------------------
@serial
def _averaged(x, decay, y):
    """One example."""
    for j in range(decay.size):
        y[0, j] = (ONE - decay[j]) * x[0, j]
    for t in range(1, x.shape[0]):
        before, row, put = y[t - 1], x[t], y[t]
        for j in range(decay.size):
            put[j] = decay[j] * before[j] + (ONE - decay[j]) * row[j]


@kernel
def ema(x, decay):
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        _averaged(x[i], decay, y[i])
    return y


@kernel
def ema_backward(x, decay, y, dy):
    n, steps, width = x.shape
    dx, d_decay = np.empty_like(x), np.zeros((n, width), x.dtype)
    for i in prange(n):
        g, to_decay = np.zeros(width, x.dtype), d_decay[i]
        for t in range(steps - 1, -1, -1):
            row, got, before, to = x[i, t], dy[i, t], y[i, max(t - 1, 0)], dx[i, t]
            for j in range(width):
                g[j] = decay[j] * g[j] + got[j]
            for j in range(width):
                to[j] = (ONE - decay[j]) * g[j]
            if t > 0:
                for j in range(width):
                    to_decay[j] += g[j] * before[j]
            for j in range(width):
                to_decay[j] -= g[j] * row[j]
    return dx, added(d_decay)


@serial
def _sigmoid(v):
    return ONE / (ONE + math.exp(-v))


@serial
def _tanh(v):
    """By an exponential, which costs a sixth of the C library's tanh."""
    return ONE - TWO / (ONE + math.exp(TWO * v))


@kernel
def gru(x, w_input, w_hidden, bias):
    """A thread has its examples, through all steps and products."""
    (n, steps, inputs), width, parts = x.shape, w_hidden.shape[0], get_num_threads()
    y = np.empty((n, steps, width), x.dtype)
    for part in prange(parts):
        low, high = share(part, parts, n)
        gates = np.dot(x[low:high].reshape(-1, inputs), w_input).reshape(high - low, steps, -1)
        h, inner = np.zeros((high - low, width), x.dtype), np.empty((high - low, 3 * width), x.dtype)
        for t in range(steps):
            np.dot(h, w_hidden, inner)
            for i in range(high - low):
                gate, own, state, put = gates[i, t], inner[i], h[i], y[low + i, t]
                for j in range(width):
                    k, l = width + j, 2 * width + j
                    reset, update = _sigmoid(gate[j] + own[j] + bias[j]), _sigmoid(gate[k] + own[k] + bias[k])
                    candidate = _tanh(gate[l] + bias[l] + reset * own[l])
                    state[j] = (ONE - update) * candidate + update * state[j]
                    put[j] = state[j]
    return y


@kernel
def gru_forward(x, w_input, w_hidden, bias):
    """Kept: what the gates let through, the states step by step, and what w_hidden has given to the candidates."""
    (n, steps, inputs), width, parts = x.shape, w_hidden.shape[0], get_num_threads()
    y, gates = np.empty((n, steps, width), x.dtype), np.empty((n, steps, 3 * width), x.dtype)
    h, inner = np.empty((steps + 1, n, width), x.dtype), np.empty((n, steps, width), x.dtype)
    for part in prange(parts):
        low, high = share(part, parts, n)
        np.dot(x[low:high].reshape(-1, inputs), w_input, gates[low:high].reshape(-1, 3 * width))
        h[0, low:high] = ZERO
        product = np.empty((high - low, 3 * width), x.dtype)
        for t in range(steps):
            np.dot(h[t, low:high], w_hidden, product)
            for i in range(low, high):
                _let_through(gates[i, t], product[i - low], bias, h[t, i], h[t + 1, i])
                inner[i, t] = product[i - low, 2 * width :]
                y[i, t] = h[t + 1, i]
    return y, (gates, h, inner)


@serial
def _let_through(gate, own, bias, before, after):
    """A step of one example. gate: x @ w_input, then what the gates let through; own: h @ w_hidden."""
    width = before.size
    for j in range(width):
        k, l = width + j, 2 * width + j
        gate[j] = _sigmoid(gate[j] + own[j] + bias[j])
        gate[k] = _sigmoid(gate[k] + own[k] + bias[k])
        gate[l] = _tanh(gate[l] + bias[l] + gate[j] * own[l])
        after[j] = (ONE - gate[k]) * gate[l] + gate[k] * before[j]


@serial
def _through_gates(gate, own, before, g, back, to, to_own):
    """The same backward: g, and back of the step after it, make the gradient of the state after it."""
    width = before.size
    reset, update, candidate = gate[:width], gate[width : 2 * width], gate[2 * width :]
    to_reset, to_update, to_candidate = to[:width], to[width : 2 * width], to[2 * width :]
    last = to_own[2 * width :]
    for j in range(width):
        back[j] += g[j]
    for j in range(width):
        to_candidate[j] = back[j] * (ONE - update[j]) * (ONE - candidate[j] * candidate[j])
        to_update[j] = back[j] * (before[j] - candidate[j]) * update[j] * (ONE - update[j])
    for j in range(width):
        back[j] *= update[j]
        to_reset[j] = to_candidate[j] * own[j] * reset[j] * (ONE - reset[j])
    to_own[: 2 * width] = to[: 2 * width]
    for j in range(width):
        last[j] = to_candidate[j] * reset[j]


@kernel
def gru_backward(x, w_input, w_hidden, gates, h, inner, dy):
    (n, steps, inputs), width, parts = x.shape, w_hidden.shape[0], get_num_threads()
    dx, d_gates, d_inner = np.empty_like(x), np.empty_like(gates), np.empty((steps, n, 3 * width), x.dtype)
    d_input, d_hidden, d_bias = partial(w_input), partial(w_hidden), np.zeros((parts, 3 * width), x.dtype)
    w_back = np.ascontiguousarray(w_hidden.T)
    for part in prange(parts):
        low, high = share(part, parts, n)
        back, through = np.zeros((high - low, width), x.dtype), np.empty((high - low, width), x.dtype)
        for t in range(steps - 1, -1, -1):
            for i in range(low, high):
                to, to_own = d_gates[i, t], d_inner[t, i]
                _through_gates(gates[i, t], inner[i, t], h[t, i], dy[i, t], back[i - low], to, to_own)
            np.dot(d_inner[t, low:high], w_back, through)
            back += through
        flat, to_bias = d_gates[low:high].reshape(-1, 3 * width), d_bias[part]
        np.dot(flat, w_input.T, dx[low:high].reshape(-1, inputs))
        np.dot(x[low:high].reshape(-1, inputs).T, flat, d_input[part])
        for row in flat:
            to_bias += row
    for part in prange(parts):  # of whole steps: the states of a thread's examples do not lie together
        low, high = share(part, parts, steps)
        np.dot(h[low:high].reshape(-1, width).T, d_inner[low:high].reshape(-1, 3 * width), d_hidden[part])
    return dx, added(d_input), added(d_hidden), added(d_bias)


# -- dynamic programming ------------------------------------------------------------------------------------------
@serial
def _distance(a, b):
    total = ZERO
    for k in range(a.size):
        total += (a[k] - b[k]) * (a[k] - b[k])
    return total


@serial
def _soft_least(left, up, both):
    """-log of the sum of e^-way, and the share of each way. (gamma is 1.)"""
    least = min(left, up, both)
    of_left, of_up, of_both = math.exp(least - left), math.exp(least - up), math.exp(least - both)
    total = of_left + of_up + of_both
    return least - math.log(total), of_left / total, of_up / total, of_both / total


@serial
def _edged(rows, columns, dtype):
    cost = np.empty((rows + 1, columns + 1), dtype)
    cost[0], cost[:, 0] = np.inf, np.inf
    cost[0, 0] = ZERO
    return cost


@kernel
def soft_dtw(a, b):
    rows, columns = a.shape[1], b.shape[1]
    y = np.empty(a.shape[0], a.dtype)
    for n in prange(a.shape[0]):
        cost = _edged(rows, columns, a.dtype)
        for i in range(rows):
            for j in range(columns):
                soft = _soft_least(cost[i + 1, j], cost[i, j + 1], cost[i, j])[0]
                cost[i + 1, j + 1] = _distance(a[n, i], b[n, j]) + soft
        y[n] = cost[rows, columns]
    return y


@kernel
def soft_dtw_forward(a, b):
    """Kept: the share that each way had in a cell."""
    rows, columns = a.shape[1], b.shape[1]
    y, shares = np.empty(a.shape[0], a.dtype), np.empty((a.shape[0], rows, columns, 3), a.dtype)
    for n in prange(a.shape[0]):
        cost = _edged(rows, columns, a.dtype)
        for i in range(rows):
            for j in range(columns):
                soft, left, up, both = _soft_least(cost[i + 1, j], cost[i, j + 1], cost[i, j])
                cost[i + 1, j + 1] = _distance(a[n, i], b[n, j]) + soft
                shares[n, i, j, 0], shares[n, i, j, 1], shares[n, i, j, 2] = left, up, both
        y[n] = cost[rows, columns]
    return y, (shares,)


@kernel
def soft_dtw_backward(a, b, shares, dy):
    """Through the table the other way."""
    rows, columns, width = a.shape[1], b.shape[1], a.shape[2]
    da, db = np.zeros_like(a), np.zeros_like(b)
    for n in prange(a.shape[0]):
        weight = np.zeros((rows + 1, columns + 1), a.dtype)  # the gradient of a cell
        weight[rows, columns] = dy[n]
        for i in range(rows - 1, -1, -1):
            for j in range(columns - 1, -1, -1):
                w = weight[i + 1, j + 1]
                weight[i + 1, j] += w * shares[n, i, j, 0]
                weight[i, j + 1] += w * shares[n, i, j, 1]
                weight[i, j] += w * shares[n, i, j, 2]
                for k in range(width):
                    pull = TWO * w * (a[n, i, k] - b[n, j, k])
                    da[n, i, k] += pull
                    db[n, j, k] -= pull
    return da, db


@serial
def _tops(alpha, transition, top):
    """The largest path into each state."""
    top[:] = -np.inf
    for i in range(alpha.size):
        row = transition[i]
        for j in range(alpha.size):
            path = alpha[i] + row[j]
            top[j] = path if path > top[j] else top[j]


@serial
def _log_total(alpha):
    """The logarithm of the sum of e^alpha."""
    top, total = alpha.max(), ZERO
    for i in range(alpha.size):
        total += math.exp(alpha[i] - top)
    return top + math.log(total)


@kernel
def crf(score, transition):
    n, steps, states = score.shape
    y = np.empty(n, score.dtype)
    for e in prange(n):
        alpha, top, total = score[e, 0].copy(), np.empty(states, score.dtype), np.empty(states, score.dtype)
        for t in range(1, steps):
            _tops(alpha, transition, top)
            total[:] = ZERO
            for i in range(states):
                for j in range(states):
                    total[j] += math.exp(alpha[i] + transition[i, j] - top[j])
            for j in range(states):
                alpha[j] = score[e, t, j] + top[j] + math.log(total[j])
        y[e] = _log_total(alpha)
    return y


@kernel
def crf_forward(score, transition):
    """Kept: the exponentials of all paths and their sums, and the last states; backward takes none of them anew."""
    n, steps, states = score.shape
    y, path = np.empty(n, score.dtype), np.empty((n, steps, states, states), score.dtype)
    total, last = np.empty_like(score), np.empty((n, states), score.dtype)
    for e in prange(n):
        alpha, top, share_of = score[e, 0].copy(), np.empty(states, score.dtype), last[e]
        for t in range(1, steps):
            _tops(alpha, transition, top)
            sums, paths = total[e, t], path[e, t]
            sums[:] = ZERO
            for i in range(states):
                row = paths[i]
                for j in range(states):
                    row[j] = math.exp(alpha[i] + transition[i, j] - top[j])
                    sums[j] += row[j]
            for j in range(states):
                alpha[j] = score[e, t, j] + top[j] + math.log(sums[j])
        y[e] = _log_total(alpha)
        for j in range(states):
            share_of[j] = math.exp(alpha[j] - y[e])
    return y, (path, total, last)


@kernel
def crf_backward(transition, path, total, last, dy):
    d_score, d_transition = np.empty_like(total), partial(transition)
    (n, steps, states), parts = total.shape, d_transition.shape[0]
    for part in prange(parts):
        low, high = share(part, parts, n)
        scaled, to_transition = np.empty(states, total.dtype), d_transition[part]
        for e in range(low, high):
            d_score[e, steps - 1] = dy[e] * last[e]
            for t in range(steps - 1, 0, -1):
                for j in range(states):
                    scaled[j] = d_score[e, t, j] / total[e, t, j]
                for i in range(states):
                    row, to, out = path[e, t, i], to_transition[i], ZERO
                    for j in range(states):
                        went = row[j] * scaled[j]
                        to[j] += went
                        out += went
                    d_score[e, t - 1, i] = out
    return d_score, added(d_transition)


# -- places that are looked up ------------------------------------------------------------------------------------
@serial
def _between(v, size):
    """The place below v, held inside; the steps to the next; how far between; 1 where v was inside."""
    held = min(max(v, ZERO), np.float32(size - 1))
    at = math.floor(held)
    return at, 1 if at < size - 1 else 0, held - np.float32(at), ONE if held == v else ZERO


@serial
def _sources(flow, places, between):
    """Where every pixel of one example comes from: (place, right, under) and (across, down, and where they move)."""
    height, width = flow.shape[1:]
    for i in range(height):
        for j in range(width):
            p = i * width + j
            row, under, down, rows = _between(np.float32(i) + flow[0, i, j], height)
            column, right, across, columns = _between(np.float32(j) + flow[1, i, j], width)
            places[0, p], places[1, p], places[2, p] = row * width + column, right, under * width
            between[0, p], between[1, p], between[2, p], between[3, p] = across, down, columns, rows


@serial
def _warped(image, places, between, y):
    """All planes of one example."""
    place, right, under, across, down = places[0], places[1], places[2], between[0], between[1]
    for c in range(image.shape[0]):
        plane, put = image[c], y[c]
        for p in range(place.size):
            at = place[p]
            low, u, v = at + under[p], across[p], down[p]
            upper = (ONE - u) * plane[at] + u * plane[at + right[p]]
            lower = (ONE - u) * plane[low] + u * plane[low + right[p]]
            put[p] = (ONE - v) * upper + v * lower


@kernel
def warp(image, flow):
    n, depth, pixels = image.shape[0], image.shape[1], image.shape[2] * image.shape[3]
    flat, y = image.reshape(n, depth, pixels), np.empty_like(image)
    out = y.reshape(n, depth, pixels)
    for e in prange(n):
        places, between = np.empty((3, pixels), np.uint32), np.empty((4, pixels), image.dtype)
        _sources(flow[e], places, between)
        _warped(flat[e], places, between, out[e])
    return y


@kernel
def warp_forward(image, flow):
    n, depth, pixels = image.shape[0], image.shape[1], image.shape[2] * image.shape[3]
    flat, y = image.reshape(n, depth, pixels), np.empty_like(image)
    out = y.reshape(n, depth, pixels)
    places, between = np.empty((n, 3, pixels), np.uint32), np.empty((n, 4, pixels), image.dtype)
    for e in prange(n):
        _sources(flow[e], places[e], between[e])
        _warped(flat[e], places[e], between[e], out[e])
    return y, (places, between)


@kernel
def warp_backward(image, places, between, dy):
    n, depth, height, width = image.shape
    pixels, d_image, d_flow = height * width, np.zeros_like(image), np.empty((n, 2, height, width), image.dtype)
    flat, given = image.reshape(n, depth, pixels), dy.reshape(n, depth, pixels)
    back = d_image.reshape(n, depth, pixels)
    moved = d_flow.reshape(n, 2, pixels)
    for e in prange(n):
        place, right, under, across, down = places[e, 0], places[e, 1], places[e, 2], between[e, 0], between[e, 1]
        by_row, by_column = moved[e, 0], moved[e, 1]
        by_row[:], by_column[:] = ZERO, ZERO
        for c in range(depth):
            plane, got, to = flat[e, c], given[e, c], back[e, c]
            for p in range(pixels):
                at, u, v, g = place[p], across[p], down[p], got[p]
                low, beside, across_low = at + under[p], at + right[p], at + under[p] + right[p]
                upper, lower = plane[beside] - plane[at], plane[across_low] - plane[low]
                by_row[p] += g * (plane[low] + u * lower - plane[at] - u * upper)
                by_column[p] += g * ((ONE - v) * upper + v * lower)
                to[at] += g * (ONE - v) * (ONE - u)
                to[beside] += g * (ONE - v) * u
                to[low] += g * v * (ONE - u)
                to[across_low] += g * v * u
        for p in range(pixels):
            by_column[p] *= between[e, 2, p]
            by_row[p] *= between[e, 3, p]
    return d_image, d_flow
