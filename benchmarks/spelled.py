"""Layers that are each written in several ways, as different authors would: `<what>__<how>`."""

import numpy as np

from layerc import Param, i32, layer, real


# -- a filter of 3 x 3, zeros outside ----------------------------------------------------------------------------
@layer
def filter__slices(x: real["H W"], f: Param[real["3 3"]]) -> real["H W"]:
    h, w = x.shape
    padded = np.zeros((h + 2, w + 2))
    padded[1 : h + 1, 1 : w + 1] = x
    y = np.zeros(x.shape)
    for a in range(3):
        for b in range(3):
            y += padded[a : a + h, b : b + w] * f[a, b]
    return y


@layer
def filter__windows(x: real["H W"], f: Param[real["3 3"]]) -> real["H W"]:
    h, w = x.shape
    padded = np.pad(x, 1)
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            y[i, j] = np.sum(padded[i : i + 3, j : j + 3] * f)
    return y


@layer
def filter__bounds(x: real["H W"], f: Param[real["3 3"]]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            for a in range(max(0, i - 1), min(h, i + 2)):
                for b in range(max(0, j - 1), min(w, j + 2)):
                    y[i, j] += x[a, b] * f[a - i + 1, b - j + 1]
    return y


@layer
def filter__branch(x: real["H W"], f: Param[real["3 3"]]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            for a in range(3):
                for b in range(3):
                    if 0 <= i + a - 1 and i + a - 1 < h and 0 <= j + b - 1 and j + b - 1 < w:
                        y[i, j] += x[i + a - 1, j + b - 1] * f[a, b]
    return y


@layer
def filter__skip(x: real["H W"], f: Param[real["3 3"]]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            total = 0.0
            for a in range(3):
                for b in range(3):
                    r, c = i + a - 1, j + b - 1
                    if r < 0 or r >= h or c < 0 or c >= w:
                        continue
                    total += x[r, c] * f[a, b]
            y[i, j] = total
    return y


@layer
def filter__choice(x: real["H W"], f: Param[real["3 3"]]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            for a in range(3):
                for b in range(3):
                    r, c = i + a - 1, j + b - 1
                    y[i, j] += (x[r, c] if 0 <= r and r < h and 0 <= c and c < w else 0.0) * f[a, b]
    return y


# -- the largest of 3 x 3 ----------------------------------------------------------------------------------------
@layer
def largest__bounds(x: real["H W"]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            top = -np.inf
            for a in range(max(0, i - 1), min(h, i + 2)):
                for b in range(max(0, j - 1), min(w, j + 2)):
                    top = max(top, x[a, b])
            y[i, j] = top
    return y


@layer
def largest__branch(x: real["H W"]) -> real["H W"]:
    h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(h):
        for j in range(w):
            top = -np.inf
            for a in range(3):
                for b in range(3):
                    if i + a >= 1 and i + a <= h and j + b >= 1 and j + b <= w:
                        top = max(top, x[i + a - 1, j + b - 1])
            y[i, j] = top
    return y


# -- a softmax of the first elements of each row -------------------------------------------------------------------
@layer
def softmax__mask(x: real["T S"], length: i32) -> real["T S"]:
    shown = np.where(np.arange(x.shape[1]) < length, x, -np.inf)
    e = np.exp(shown - np.max(shown, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@layer
def softmax__loops(x: real["T S"], length: i32) -> real["T S"]:
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        top = -np.inf
        for j in range(length):
            top = max(top, x[t, j])
        total = 0.0
        for j in range(length):
            y[t, j] = np.exp(x[t, j] - top)
            total += y[t, j]
        for j in range(length):
            y[t, j] = y[t, j] / total
    return y


# -- a mean of the first rows --------------------------------------------------------------------------------------
@layer
def mean__mask(x: real["T D"], length: i32) -> real["D"]:
    return np.sum(np.where(np.arange(x.shape[0])[:, None] < length, x, 0.0), axis=0) / length


@layer
def mean__loop(x: real["T D"], length: i32) -> real["D"]:
    total = np.zeros(x.shape[1])
    for t in range(length):
        total += x[t]
    return total / length


@layer
def mean__elements(x: real["T D"], length: i32) -> real["D"]:
    total = np.zeros(x.shape[1])
    for t in range(length):
        for d in range(x.shape[1]):
            total[d] += x[t, d]
    return total / length


# -- a layer normalisation -----------------------------------------------------------------------------------------
@layer
def norm__axes(x: real["T D"]) -> real["T D"]:
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5)


@layer
def norm__rows(x: real["T D"]) -> real["T D"]:
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        centred = x[t] - np.mean(x[t])
        y[t] = centred / np.sqrt(np.mean(centred**2) + 1e-5)
    return y


@layer
def norm__elements(x: real["T D"]) -> real["T D"]:
    t, d = x.shape
    y = np.zeros(x.shape)
    for i in range(t):
        mean = 0.0
        for j in range(d):
            mean += x[i, j]
        mean = mean / d
        variance = 0.0
        for j in range(d):
            variance += (x[i, j] - mean) ** 2
        scale = 1.0 / np.sqrt(variance / d + 1e-5)
        for j in range(d):
            y[i, j] = (x[i, j] - mean) * scale
    return y


# -- attention -----------------------------------------------------------------------------------------------------
@layer
def attention__matrices(q: real["T D"], k: real["S D"], v: real["S D"]) -> real["T D"]:
    scores = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return (e / np.sum(e, axis=1, keepdims=True)) @ v


@layer
def attention__rows(q: real["T D"], k: real["S D"], v: real["S D"]) -> real["T D"]:
    y = np.zeros(q.shape)
    for t in range(q.shape[0]):
        scores = k @ q[t] / np.sqrt(q.shape[1])
        e = np.exp(scores - np.max(scores))
        y[t] = (e / np.sum(e)) @ v
    return y


# -- distances to centres ------------------------------------------------------------------------------------------
@layer
def distance__broadcast(x: real["D"], c: Param[real["K D"]]) -> real["K"]:
    return np.exp(-np.sum((x[None, :] - c) ** 2, axis=1))


@layer
def distance__rows(x: real["D"], c: Param[real["K D"]]) -> real["K"]:
    y = np.zeros(c.shape[0])
    for k in range(c.shape[0]):
        y[k] = np.exp(-np.sum((x - c[k]) ** 2))
    return y


@layer
def distance__elements(x: real["D"], c: Param[real["K D"]]) -> real["K"]:
    y = np.zeros(c.shape[0])
    for k in range(c.shape[0]):
        total = 0.0
        for d in range(x.shape[0]):
            total += (x[d] - c[k, d]) ** 2
        y[k] = np.exp(-total)
    return y


# -- a root of each element ----------------------------------------------------------------------------------------
@layer
def root__array(x: real["H W"]) -> real["H W"]:
    w = np.log1p(x)
    step = np.ones(x.shape)
    turns = 0
    while np.max(np.abs(step)) > 1e-5 and turns < 20:
        e = np.exp(w)
        step = (w * e - x) / (e * (w + 1.0))
        w = w - step
        turns += 1
    return w


@layer
def root__while(x: real["H W"]) -> real["H W"]:
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            w, step, turns = np.log1p(x[i, j]), 1.0, 0
            while abs(step) > 1e-5 and turns < 20:
                e = np.exp(w)
                step = (w * e - x[i, j]) / (e * (w + 1.0))
                w = w - step
                turns += 1
            y[i, j] = w
    return y


@layer
def root__break(x: real["H W"]) -> real["H W"]:
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            w = np.log1p(x[i, j])
            for _ in range(20):
                e = np.exp(w)
                step = (w * e - x[i, j]) / (e * (w + 1.0))
                w = w - step
                if abs(step) < 1e-5:
                    break
            y[i, j] = w
    return y


def lambert(v: float) -> float:
    """W(v) of one number."""
    w = np.log1p(v)
    for _ in range(20):
        e = np.exp(w)
        step = (w * e - v) / (e * (w + 1.0))
        w = w - step
        if abs(step) < 1e-5:
            return w
    return w


@layer
def root__return(x: real["H W"]) -> real["H W"]:
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = lambert(x[i, j])
    return y


@layer
def root__flat(x: real["H W"]) -> real["H W"]:
    flat = x.reshape(-1)
    y = np.zeros(flat.shape)
    for i in range(flat.shape[0]):
        y[i] = lambert(flat[i])
    return y.reshape(x.shape)
