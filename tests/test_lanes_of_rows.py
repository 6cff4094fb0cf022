"""Rows of a layer that sees the whole batch walk through a recurrence together, as examples do."""

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
from layerc import Param, layer, real


@layer(batched=True)
def filtered(x: real["N T"], a: Param[real["2"]]) -> real["N T"]:
    n, steps = x.shape
    y = np.empty((n, steps))
    for r in range(n):
        u = 0.0
        v = 0.0
        for t in range(steps):
            w = x[r, t] - a[0] * np.tanh(u) - a[1] * v
            v = u
            u = w
            y[r, t] = w
    return y


@layer(batched=True)
def solved(x: real["N 9"], m: Param[real["9 9"]]) -> real["N 9"]:
    """A triangle that all rows share, which the layer makes before; the rows are read again behind."""
    n = x.shape[0]
    l = np.tril(m) + 4.0 * np.eye(9)
    c = x - x.mean(axis=0)
    y = np.zeros((n, 9))
    for r in range(n):
        for i in range(9):
            s = c[r, i]
            for k in range(i):
                s -= l[i, k] * y[r, k]
            y[r, i] = s / l[i, i]
    return y * c


@layer(batched=True)
def last_one(x: real["N T"]) -> real["N"]:
    """What the last row leaves is asked for behind the loop."""
    n, steps = x.shape
    y = np.zeros(n)
    h = 0.0
    for r in range(n):
        h = 0.0
        for t in range(steps):
            h = np.tanh(0.5 * h + x[r, t])
        y[r] = h
    return y * h


@layer(batched=True)
def summed(x: real["N T"], a: Param[real[""]]) -> real["N T"]:
    """All rows add to one place."""
    n, steps = x.shape
    total = np.zeros(steps)
    for r in range(n):
        h = 0.0
        for t in range(steps):
            h = np.tanh(a * h + x[r, t])
            total[t] += h
    return x * total


@layer(batched=True)
def from_the_second(x: real["N T"]) -> real["N T"]:
    n, steps = x.shape
    y = np.zeros((n, steps))
    for r in range(1, n):
        h = 0.0
        for t in range(steps):
            h = np.tanh(0.5 * h + x[r, t] * x[r - 1, t])
            y[r, t] = h
    return y
'''
SHAPES = {
    "filtered": ["n 7", "2"],
    "solved": ["n 9", "9 9"],
    "last_one": ["n 6"],
    "summed": ["n 5", ""],
    "from_the_second": ["n 6"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("of_rows")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "of_rows", TEXT)


def draw(name: str, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    shapes = [[n if axis == "n" else int(axis) for axis in text.split()] for text in SHAPES[name]]
    return [np.asarray(rng.standard_normal(shape) * 0.5, dtype) for shape in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [1, 3, 4, 15, 16, 17, 37])
def test_values_and_gradients(package, name, n):
    agrees(getattr(package, name), draw(name, n, np.float64), np.random.default_rng(n), 1e-10, 3e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 300, np.float32))


@pytest.mark.parametrize("name", ["filtered", "solved", "summed"])
def test_they_run_together(folder, name):
    for (layer, method), kernel in kernels_in(folder / "of_rows.py").items():
        if layer == name:
            assert any(isinstance(s, For) and (s.hi - s.lo).value == LANES for s in walk(kernel.body)), method


STATES = '''
import numpy as np
from layerc import i64, layer, real


@layer
def states(x: real["T K"], label: i64["S"]) -> real[""]:
    """Rows of numbers that are summed for each step by itself, and a recurrence over states that look them up."""
    T, K = x.shape
    S = label.shape[0]
    logp = np.zeros((T, K))
    for t in range(T):
        m = x[t].max()
        logp[t] = x[t] - m - np.log(np.sum(np.exp(x[t] - m)))
    alpha = np.full(S, -np.inf)
    alpha[0] = logp[0, label[0]]
    for t in range(1, T):
        new = np.full(S, -np.inf)
        for s in range(S):
            v = alpha[s]
            if s > 0:
                v = np.logaddexp(v, alpha[s - 1])
            new[s] = v + logp[t, label[s]]
        alpha = new
    return np.logaddexp(alpha[S - 1], alpha[S - 2])
'''


@pytest.fixture(scope="module")
def of_states(folder):
    return built_from(folder, "of_states", STATES)


@pytest.mark.parametrize(("examples", "t", "k", "s"), [(1, 3, 4, 2), (5, 9, 3, 4), (17, 30, 40, 7), (16, 4, 65, 3)])
def test_steps_of_many_states(of_states, examples, t, k, s):
    rng = np.random.default_rng(t)
    values = [rng.standard_normal((examples, t, k)), rng.integers(-k, k, (examples, s))]
    agrees(of_states.states, values, rng, 1e-10, 3e-5)
    same_bits(of_states.states, [values[0].astype(np.float32), values[1]])
    values[1][-1, 1] = k
    with pytest.raises(IndexError, match=str(k)):
        of_states.states(*values)


def test_sums_go_in_blocks(folder, of_states):
    """Rows of some blocks keep their recurrence in lanes; longer ones are vectors as they are."""
    kernels = kernels_in(folder / "of_states.py")
    for method in ("predict", "vjp", "backward"):
        (groups,) = (s.lo for s in kernels["states", method].body if isinstance(s, For) and s.var.startswith("groups"))

        def taken(k: int, groups: Dim = groups) -> bool:
            return groups.evaluate({"batch": 16, "T": 500, "K": k, "S": 9}) > 0

        assert taken(64), method
        assert taken(65), method
        assert not taken(1000), method
        assert any(b.dtype == "f64" and b.shape == (Dim.of(LANES),) for b in kernels["states", method].buffers), method
