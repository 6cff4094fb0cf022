"""Recurrences that look into arrays at places of their own: sixteen examples run together, faults are faults."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.dims import Dim
from layerc.transpile.ir import For
from layerc.transpile.passes.alike import LANES
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def aligned(x: real["T K"], label: i32["L"]) -> real[""]:
    """Connectionist temporal classification, of scores."""
    steps, length = x.shape[0], label.shape[0]
    states = 2 * length + 1
    alpha = np.full(states, -50.0)
    alpha[0] = x[0, 0]
    alpha[1] = x[0, label[0]]
    for t in range(1, steps):
        before = alpha.copy()
        for s in range(states):
            k = label[s // 2] if s % 2 == 1 else 0
            best = before[s]
            if s >= 1:
                best = np.logaddexp(best, before[s - 1])
            if s >= 3 and s % 2 == 1:
                if label[s // 2] != label[s // 2 - 1]:
                    best = np.logaddexp(best, before[s - 2])
            alpha[s] = best + x[t, k]
    return -np.logaddexp(alpha[states - 1], alpha[states - 2])


@layer
def walker(x: real["S"], turn: i32["T"], a: Param[real[""]]) -> real["T"]:
    """Where the next step looks is found by the last one; negative places count from the end."""
    y = np.zeros(turn.shape[0])
    h = 0.1
    for t in range(turn.shape[0]):
        h = a * np.tanh(h) + x[turn[t]] * 0.5
        y[t] = h
    return y


@layer
def counted(x: real["T"], bin: i32["T"]) -> real["5"]:
    """Every example adds to an array of its own, where it stands, while the sum so far decides."""
    found = np.zeros(5)
    level = 0.0
    for t in range(x.shape[0]):
        level = 0.9 * level + x[t]
        if level > 0:
            found[bin[t]] += level * x[t]
    return found


@layer
def sometimes(x: real["T S"], index: i32["T"]) -> real[""]:
    """A place that is one only where the branch is taken."""
    s = 0.2
    for t in range(x.shape[0]):
        if s < 1.0:
            s += x[t, index[t]] * x[t, index[t]]
        else:
            s *= 0.4
    return s


@layer
def either(x: real["T S"], index: i32["T"]) -> real[""]:
    """Places in both ways, one within the other."""
    s = 0.2
    for t in range(x.shape[0]):
        if index[t] >= 0:
            s = 0.5 * s + x[t, index[t]]
            if s > 0:
                s -= x[t, index[t] // 2]
        else:
            s = np.sin(s) * x[t, -index[t] - 1]
    return s
'''

NAMES = ["aligned", "walker", "counted", "sometimes", "either"]


def draw(name: str, n: int, dtype) -> list[np.ndarray]:
    rng = np.random.default_rng(n + len(name))
    real, place = lambda *s: rng.standard_normal((n, *s)).astype(dtype), lambda a, b, *s: rng.integers(a, b, (n, *s))
    return {
        "aligned": lambda: [real(7, 4), place(1, 4, 3).astype(np.int32)],
        "walker": lambda: [real(6), place(-6, 6, 9).astype(np.int32), np.asarray(0.7, dtype)],
        "counted": lambda: [real(11), place(-5, 5, 11).astype(np.int32)],
        "sometimes": lambda: [real(8, 3), place(-3, 3, 8).astype(np.int32)],
        "either": lambda: [real(8, 3), place(-3, 3, 8).astype(np.int32)],
    }[name]()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("places")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "places_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("examples", [0, 1, 15, 16, 37])
def test_values_and_gradients(package, name, examples):
    agrees(getattr(package, name), draw(name, examples, np.float64), np.random.default_rng(1), 1e-10, 3e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_hang_on_threads(package, name, dtype):
    same_bits(getattr(package, name), draw(name, 50, dtype))


@pytest.mark.parametrize("name", NAMES)
def test_they_run_together(package, folder, name):
    for (layer, _), kernel in kernels_in(folder / "places_of.py").items():
        if layer == name:
            assert any(isinstance(s, For) and s.hi == Dim.of(LANES) for s in walk(kernel.body)), kernel.name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [77, -77, 2**31 - 1, -(2**31)])
def test_a_place_that_is_none(package, name, bad):
    """Wherever it stands: in lanes, in what is left over; the error is that of the example alone."""
    layer, values = getattr(package, name), draw(name, 37, np.float32)
    reached = {"counted": 11, "sometimes": 1}.get(name, 0)
    for example in (0, 15, 16, 31, 36):
        where = [v.copy() for v in values]
        where[0][example] = abs(where[0][example]) + (reached == 11)
        where[1][example, 0] = bad
        if name == "either" and bad == -(2**31):
            continue  # - index - 1 is a place far out, as an int32 it is one
        with pytest.raises(IndexError) as alone:
            layer(*(v[example : example + 1] if v.ndim else v for v in where))
        for call in (layer, layer.vjp):
            with pytest.raises(IndexError) as together:
                call(*where)
            assert str(together.value) == str(alone.value)


def test_a_place_that_nobody_asks_for(package):
    """The branch is not taken: no error, though the place is none; also where the array has no element at all."""
    x, index = np.full((40, 6, 3), 2.0), np.zeros((40, 6), np.int32)
    index[:, 1::2] = 99  # after the first step s is above 1, then 0.4 times as much, below again
    x[:, ::2] = 1.0
    layer = package.sometimes
    taken = layer.reference(x[:1], index[:1])
    np.testing.assert_allclose(layer(x, index), np.repeat(taken, 40))
    np.testing.assert_allclose(
        layer.vjp(x, index)[1](np.ones(40))[0][39], layer.vjp(x[:1], index[:1])[1](np.ones(1))[0][0]
    )


def test_of_several_faults_one_is_named(package):
    """The one that comes first in time: all sixteen stop there."""
    x, label = draw("walker", 32, np.float32)[:2]
    label[3, 5], label[9, 2] = 50, 60
    with pytest.raises(IndexError, match="60"):
        package.walker(x, label, np.float32(0.5))


DROPPED = """
import numpy as np
from layerc import layer, real


@layer
def called(x: real["T 3"]) -> real["3"]:
    def first(k):
        return x[k], np.sin(x[k])

    first(0)
    return np.zeros(3)


@layer
def computed(x: real["T 3"]) -> real["3"]:
    np.sqrt(x[1])
    return np.ones(3)
"""


def test_what_nobody_gets_may_fail(tmp_path):
    package = built_from(tmp_path, "dropped", DROPPED)
    for name, enough in (("called", 1), ("computed", 2)):
        layer = getattr(package, name)
        assert layer(np.ones((4, enough, 3))).shape == (4, 3)
        with pytest.raises(IndexError):
            layer(np.ones((4, enough - 1, 3)))
