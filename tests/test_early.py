"""What a reverse computes from the forward alone is computed in the forward sweep, so that no matrix is saved for
every step."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def linear_attention(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        state = state + np.outer(k[t], v[t])
        y[t] = q[t] @ state
    return y


@layer
def before(q: real["T D"], k: real["T D"], v: real["T D"], *, decay: float = 0.9) -> real["T D"]:
    """Asked before it changes, of an output, and of what the reverse computes too."""
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        y[t] = np.tanh(q[t] @ state)
        state = decay * state + np.outer(k[t], v[t])
    return y


@layer
def two(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """Two states, the second made of the first."""
    first = np.zeros((q.shape[1], q.shape[1]))
    second = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(1, q.shape[0]):
        second = 0.5 * second + first
        first = first + np.outer(k[t], v[t])
        y[t - 1] = q[t] @ first + q[t] @ second
    return y


@layer
def both(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """Asked for what it was, and for what it becomes."""
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        old = state
        state = state + np.outer(k[t], v[t])
        y[t] = q[t] @ (state - 0.5 * old)
    return y


@layer
def in_between(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """A product is left behind the state's change, and asked for with what the state was."""
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        old = state
        state = 0.5 * state + np.outer(k[t], v[t])
        r = np.tanh(state @ k[t])
        y[t] = q[t] * (old @ r)
    return y


@layer
def gated(q: real["T D"], k: real["T D"], v: real["T D"], g: real["T"]) -> real["T D"]:
    """The gate's gradient asks for the state, and for what comes back."""
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        state = g[t] * state + np.outer(k[t], v[t])
        y[t] = q[t] @ state
    return y


@layer
def twice(q: real["T D"], k: real["T D"]) -> real["T D"]:
    """Its gradient has other parts."""
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        state = state + np.outer(k[t], q[t])
        y[t] = q[t] @ state
    return y + q * q


@layer
def delta(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """Not linear: the state is read on its way."""
    state = np.zeros((q.shape[1], q.shape[1]))
    y = np.zeros_like(q)
    for t in range(q.shape[0]):
        y[t] = q[t] @ state
        state += np.outer(k[t], v[t] - k[t] @ state)
    return y


@layer
def small(x: real["T N"], c: real["T N"], a: Param[real["N"]]) -> real["T"]:
    """A vector for every step is no more than an argument."""
    h = np.zeros(x.shape[1])
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        h = 0.5 * h + x[t]
        y[t] = np.sum(c[t] * h)
    return y * np.sum(a)


@layer
def shared(q: real["D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """A sum over all steps, which the reverse adds up from the last one on."""
    state = np.zeros((k.shape[1], k.shape[1]))
    y = np.zeros_like(k)
    for t in range(k.shape[0]):
        state = state + np.outer(k[t], v[t])
        y[t] = q @ state
    return y


@layer
def last(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["D D"]:
    """The row of q is another at each step, the place that is written is not."""
    state = np.zeros((q.shape[1], q.shape[1]))
    seen = np.zeros_like(state)
    for t in range(q.shape[0]):
        state = state + np.outer(k[t], v[t])
        seen = state * q[t]
    return seen + state
'''

MOVED = ["linear_attention", "before", "two", "both"]
SAVED = ["gated", "twice", "delta", "shared", "last", "in_between"]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("early"), "early_of", TEXT)


def draw(name: str, steps: int, width: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(steps * 17 + width)
    rows, row = (2, steps, width), (2, width)
    shapes = {
        "gated": [rows, rows, rows, (2, steps)],
        "twice": [rows, rows],
        "small": [rows, rows, (width,)],
        "shared": [row, rows, rows],
    }
    return [(0.5 * rng.standard_normal(s)).astype(dtype) for s in shapes.get(name, [rows, rows, rows])]


@pytest.mark.parametrize("name", [*MOVED, *SAVED, "small"])
@pytest.mark.parametrize(("steps", "width"), [(1, 3), (2, 1), (4, 2), (5, 7), (3, 18)])
def test_values_and_gradients(package, name, steps, width):
    layer = getattr(package, name)
    agrees(layer, draw(name, steps, width, np.float64), np.random.default_rng(width), 1e-9, 3e-5)


@pytest.mark.parametrize("name", MOVED)
def test_bits_do_not_hang_on_threads(package, name):
    layer = getattr(package, name)
    same_bits(layer, draw(name, 6, 33, np.float32))


@pytest.mark.parametrize("name", MOVED)
def test_no_steps(package, name):
    layer = getattr(package, name)
    y, pullback = layer.vjp(*draw(name, 0, 4, np.float64))
    assert all(g.shape[1] == 0 for g in pullback(np.ones_like(y)))


@pytest.mark.parametrize("name", MOVED)
def test_nothing_is_saved(package, name):
    text = getattr(package, name).gradient_source
    assert "_saved" not in text, text
    sweep, reverse = text.split("reversed(")
    assert "d_q[t" in sweep, text
    assert "d_q[t" not in reverse, text


@pytest.mark.parametrize("name", SAVED)
def test_what_something_else_asks_for_is_saved(package, name):
    text = getattr(package, name).gradient_source
    assert "_saved" in text, text
    assert "d_q[t" not in text.split("reversed(")[0], text


def test_a_vector_is_saved(package):
    text = package.small.gradient_source
    assert "h_saved" in text, text
