"""Reductions in loops that carry something: an iteration leaves them to its reverse."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

pytestmark = pytest.mark.optimised

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def chain(score: real["T K"], w: Param[real["K K"]]) -> real[""]:
    """Largest elements that cancel, and sums within an expression."""
    alpha = score[0]
    for t in range(1, score.shape[0]):
        paths = alpha[:, None] + w
        top = np.max(paths, axis=0)
        alpha = score[t] + top + np.log(np.sum(np.exp(paths - top), axis=0))
    return np.sum(alpha * alpha)


@layer
def best(score: real["T K"], w: Param[real["K K"]]) -> real["K"]:
    """Viterbi's recursion: the largest elements have derivatives, which ask which they were."""
    alpha = score[0] * 1.0
    for t in range(1, score.shape[0]):
        alpha = score[t] + np.max(np.sin(alpha)[:, None] + w, axis=0)
    return alpha


@layer
def lengths(x: real["T K"], w: Param[real["K"]]) -> real["T K"]:
    """Numbers: an axis less than what they are taken of; twice the same, and one within another."""
    y = np.empty_like(x)
    h = w * 1.0
    for t in range(x.shape[0]):
        h = h / np.sqrt(1 + np.sum(h * h)) + x[t] / (1 + np.sqrt(1 + np.sum(h * h)))
        y[t] = h * np.mean(np.exp(h - np.mean(h)))
    return y


@layer
def halves(x: real["T K"], *, first: int = 1) -> real["K"]:
    """From a step on that the call tells; a part of each step; what is read again behind the loop."""
    h = np.zeros(x.shape[1])
    for t in range(first, x.shape[0]):
        half = x.shape[1] // 2
        h[:half] = np.tanh(h[:half] * np.sum(x[t]) + x[t, :half])
        top = np.max(np.abs(h + x[t]))
        h = h * np.log(1 + top * np.sum(h * h))
        if np.sum(h) > 0:
            h = h * np.var(h + x[t])
    return h + np.sum(h)


@layer
def nested(x: real["T K"], w: Param[real["K"]]) -> real["K"]:
    """A loop in a loop: both carry."""
    h = w * 1.0
    for t in range(x.shape[0]):
        total = np.mean(np.cos(h))
        for k in range(2):
            h = np.sin(h * total + x[t]) / np.sum(h * h + np.exp(x[t]))
    return h


@layer
def guarded(x: real["T K"]) -> real["K"]:
    """What is not chosen is not computed: the largest of no elements."""
    h = np.ones(x.shape[1])
    for t in range(x.shape[0]):
        h = h * np.tanh(np.sum(h)) + (np.max(x[t, 1:]) if x.shape[1] > 1 else 0.5)
    return h
'''

NAMES = ["chain", "best", "lengths", "halves", "nested", "guarded"]


def draw(name: str, steps: int, width: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(steps * 17 + width)
    shapes = {"chain": (width, width), "best": (width, width), "lengths": (width,), "nested": (width,)}
    found = [0.5 * rng.standard_normal((3, steps, width))]
    found += [0.5 * rng.standard_normal(shapes[name])] if name in shapes else []
    return [v.astype(dtype) for v in found]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("reductions"), "reductions_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("steps", "width"), [(1, 3), (2, 1), (4, 2), (5, 7), (3, 18)])
def test_values_and_gradients(package, name, steps, width):
    agrees(getattr(package, name), draw(name, steps, width, np.float64), np.random.default_rng(width), 1e-9, 3e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 6, 33, np.float32))


def test_no_steps_and_no_elements(package):
    for name in ("lengths", "nested", "guarded"):
        layer = getattr(package, name)
        values = draw(name, 0, 4, np.float64)
        np.testing.assert_allclose(layer(*values), layer.reference(*values), 1e-12)
        y, pullback = layer.vjp(*values)
        assert all(np.isfinite(g).all() for g in pullback(np.ones_like(y)))


@pytest.mark.parametrize("first", [0, 2, 9])
def test_from_a_step_of_the_call_on(package, first):
    layer = package.halves
    (x,) = draw("halves", 5, 6, np.float64)
    y, pullback = layer.vjp(x, first=first)
    np.testing.assert_allclose(y, layer.reference(x, first=first), 1e-12)
    (gradient,) = pullback(np.ones_like(y))
    way = np.random.default_rng(first).standard_normal(x.shape)
    ends = [np.sum(layer.reference(x + s * way, first=first)) for s in (1e-6, -1e-6)]
    np.testing.assert_allclose(np.sum(gradient * way), (ends[0] - ends[1]) / 2e-6, 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("name", "saved", "again"),
    [
        ("chain", ["top_saved", "total_saved"], []),
        ("best", ["alpha_saved"], ["largest_saved"]),  # which one it was is asked of what is computed again
        ("lengths", ["total_saved"], []),
    ],
)
def test_what_is_left_to_the_reverse(package, name, saved, again):
    text = getattr(package, name).gradient_source
    assert all(f"{n}[" in text for n in saved), text
    assert not any(f"{n}[" in text for n in again), text
