"""Layers whose gradients are kept as text (golden/layers.py), each with a backward by hand in handwritten.py."""

import numpy as np
from scipy import special

from layerc import Param, layer, real


@layer
def dense(x: real["I"], weight: Param[real["O I"]], bias: Param[real["O"]]) -> real["O"]:
    return np.tanh(weight @ x + bias)


@layer
def layer_norm(x: real["D"], weight: Param[real["D"]], bias: Param[real["D"]], eps: float = 1e-5) -> real["D"]:
    centred = x - np.mean(x)
    deviation = np.sqrt(np.mean(centred * centred) + eps)
    return weight * centred / deviation + bias


@layer
def cross_entropy(x: real["K"], target: real["K"]) -> real:
    return -np.sum(target * special.log_softmax(x))


@layer
def huber(p: real["N"], t: real["N"], delta: float = 1.0) -> real:
    error = np.abs(p - t)
    return np.sum(np.where(error <= delta, 0.5 * error**2, delta * (error - 0.5 * delta)))


@layer
def attention(q: real["T D"], k: real["S D"], v: real["S E"]) -> real["T E"]:
    weights = special.softmax(q @ k.T / np.sqrt(q.shape[1]), axis=1)
    return weights @ v


@layer
def bilinear(x: real["I"], y: real["J"], a: Param[real["K I J"]]) -> real["K"]:
    return np.einsum("i,kij,j->k", x, a, y)


@layer
def largest_of_pairs(x: real["2*N"]) -> real["N"]:
    return np.maximum(x[0::2], x[1::2])


@layer
def cosine(a: real["N"], b: real["N"]) -> real:
    return np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
