"""How a private matrix lies, and one sweep over the state of a recurrence."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import touched, walk

LAYERS = '''
import numpy as np
from layerc import Param, layer, real


@layer
def attended(q: real["T D"], k: real["T D"], v: real["T E"]) -> real["T E"]:
    """Linear attention: the state is read across as it is written."""
    s = np.zeros((q.shape[1], v.shape[1]))
    y = np.zeros((q.shape[0], v.shape[1]))
    for t in range(q.shape[0]):
        s = s + np.outer(k[t], v[t])
        y[t] = q[t] @ s
    return y


@layer
def selective(x: real["T D"], a: Param[real["D N"]], b: real["T N"], c: real["T N"]) -> real["T D"]:
    """A state space: read along its short rows, so that it lies turned, and the decay beside it too."""
    h = np.zeros((x.shape[1], b.shape[1]))
    y = np.zeros(x.shape)
    decay = np.exp(-np.exp(a))
    for t in range(x.shape[0]):
        h = decay * h + x[t][:, None] * b[t]
        y[t] = h @ c[t]
    return y


@layer
def corrected(q: real["T D"], k: real["T D"], v: real["T E"], beta: real["T"]) -> real["T E"]:
    """Fast weights, which are asked before they learn."""
    w = np.zeros((v.shape[1], q.shape[1]))
    y = np.zeros(v.shape)
    for t in range(q.shape[0]):
        error = v[t] - w @ k[t]
        w = w + beta[t] * np.outer(error, k[t])
        y[t] = w @ q[t]
    return y


@layer
def summed(x: real["T D"], b: real["T N"]) -> real["T D"]:
    """No sum of products: NumPy adds it up two by two, and so do we."""
    h = np.zeros((x.shape[1], b.shape[1]))
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        h = 0.5 * h + x[t][:, None] * b[t]
        y[t] = np.sum(h, axis=1)
    return y


@layer
def filled(x: real["T D"], w: real["D"]) -> real["T D"]:
    """A nest reads what it fills afterwards, and the next one adds to."""
    s = np.zeros((x.shape[1], x.shape[1]))
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        r = x[t] * 2.0
        for i in range(x.shape[1]):
            for j in range(x.shape[1]):
                s[i, j] += w[j] * r[i]
            r[i] = 1.0
        for i in range(x.shape[1]):
            for j in range(x.shape[1]):
                r[j] += x[t, i] * s[i, j]
        y[t] = r
    return y
'''

SHAPES = {
    "attended": lambda b, t, d, n: [(b, t, d), (b, t, d), (b, t, n)],
    "selective": lambda b, t, d, n: [(b, t, d), (d, n), (b, t, n), (b, t, n)],
    "corrected": lambda b, t, d, n: [(b, t, d), (b, t, d), (b, t, n), (b, t)],
    "summed": lambda b, t, d, n: [(b, t, d), (b, t, n)],
    "filled": lambda b, t, d, n: [(b, t, d), (b, d)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("layout"), "layout", LAYERS)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "layout.py"
    path.write_text(LAYERS)
    return kernels_in(path)


def drawn(name, sizes, dtype=np.float64):
    rng = np.random.default_rng(7)
    return [(0.4 * rng.standard_normal(s)).astype(dtype) for s in SHAPES[name](*sizes)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "sizes", [(2, 3, 5, 4), (1, 1, 1, 1), (3, 4, 18, 35), (0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 8, 0)]
)
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients(package, name, sizes, dtype):
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (3e-5, 3e-3)
    agrees(getattr(package, name), drawn(name, sizes, dtype), np.random.default_rng(8), tight, close)


@pytest.mark.parametrize("name", SHAPES)
def test_bits(package, name):
    same_bits(getattr(package, name), drawn(name, (9, 4, 33, 20)))


def shape(kernel, name):
    return next(" ".join(map(str, b.shape)) for b in kernel.buffers if b.name == name)


def sweeps(kernel, name):
    """In a step of the recurrence: loops over rows of a matrix, copies of one nest as one."""
    step = next(s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and name in touched((s,)))
    return sum(isinstance(s, For) and name in touched((s,)) and "x4" in s.var for s in step.body)


@pytest.mark.parametrize(
    ("name", "matrix", "lies"),
    [
        ("attended", "s", "D E"),  # y[t] adds up rows
        ("selective", "h", "N D"),
        ("corrected", "w", "D E"),  # E D in the text
        ("summed", "h", "D N"),
    ],
)
def test_how_it_lies(kernels, name, matrix, lies):
    assert shape(kernels[name, "predict"], matrix) == lies


@pytest.mark.parametrize(("name", "matrix"), [("attended", "s"), ("selective", "h")])
def test_one_sweep_over_the_state(kernels, name, matrix):
    """What is zero before the second nest begins does not keep it from the first."""
    assert sweeps(kernels[name, "predict"], matrix) == 1
