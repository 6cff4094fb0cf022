"""An array stored as a whole is another one from there on, in the gradient: nothing is saved, nothing brought back;
and where something shows it by another name, it is one array as ever."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

pytestmark = pytest.mark.heavy  # compiles for long

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def softmax(x: real["N K"], z: real["N K"]) -> real["N K"]:
    """What one writes to save memory."""
    p = np.exp(x - np.max(x, axis=1, keepdims=True))
    p /= np.sum(p, axis=1, keepdims=True)
    return p * z


@layer
def by_rows(x: real["N K"], z: real["N K"]) -> real["N K"]:
    """In a loop, several times, and with all elements named."""
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        p = np.exp(x[i])
        p[...] = p / np.sum(p)
        p *= z[i]
        p[:] = np.sin(p) * p
        p[0] = p[0] * p[1]
        y[i] = p
    return y


@layer
def broadcast(x: real["N K"], z: real["N K"]) -> real["N K"]:
    """A row, or a number, that goes into all of it."""
    p = np.exp(x)
    q = p * p
    p[...] = z[0]
    q += p
    p[:, :] = 2.0
    return p * q * x


@layer
def shown(x: real["N K"], z: real["N K"]) -> real["N K"]:
    """Names of the same memory."""
    p = np.exp(x)
    row = p[0]
    q = p
    s = p * p
    p *= z
    return s * p + q * row


@layer
def of_two_ways(x: real["N K"], z: real["N K"]) -> real["N K"]:
    p = np.exp(x)
    s = p * p
    if z[0, 0] > 0:
        p *= z
    else:
        p *= 2.0
    for k in range(2):
        p *= np.cos(s)
    return s * p
'''
NAMES = ("softmax", "by_rows", "broadcast", "shown", "of_two_ways")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("anew"), "anew", TEXT)


@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 1, 2), (1, 4, 17), (0, 2, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients(package, name, shape):
    rng = np.random.default_rng(3)
    values = [rng.uniform(-1, 1, shape) for _ in range(2)]
    agrees(getattr(package, name), values, rng, 1e-12, 1e-6)
    agrees(getattr(package, name), [v.astype(np.float32) for v in values], rng, 1e-5, 2e-3)


def test_nothing_is_saved(package):
    source = package.softmax.gradient_source
    assert "saved" not in source
    assert "p_2 = p / total_p" in source
