"""Several writes into one array whose places never meet: halves, the even and the odd ones."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits, sized

from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

pytestmark = pytest.mark.optimised

TEXT = """
import numpy as np
from layerc import layer, real


@layer
def rope(x: real["T D"], angle: real["T D//2"]) -> real["T D"]:
    t, d = x.shape
    y = np.zeros_like(x)
    for i in range(t):
        for j in range(d // 2):
            c, s = np.cos(angle[i, j]), np.sin(angle[i, j])
            y[i, j] = x[i, j] * c - x[i, d // 2 + j] * s
            y[i, d // 2 + j] = x[i, j] * s + x[i, d // 2 + j] * c
    return y


@layer
def rope2(x: real["T D"], angle: real["T D//2"]) -> real["T D"]:
    t, d = x.shape
    y = np.zeros_like(x)
    for i in range(t):
        for j in range(d // 2):
            c, s = np.cos(angle[i, j]), np.sin(angle[i, j])
            y[i, 2 * j] = x[i, 2 * j] * c - x[i, 2 * j + 1] * s
            y[i, 2 * j + 1] = x[i, 2 * j] * s + x[i, 2 * j + 1] * c
    return y


@layer
def unhaar(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n // 2):
        y[2 * i] = (x[i] + x[n // 2 + i]) / 2
        y[2 * i + 1] = (x[i] - x[n // 2 + i]) / 2
    return y


@layer
def chained(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n // 2):
        y[i] = np.tanh(x[i])
        y[n // 2 + i] = y[i] * x[n // 2 + i] + y[n // 2 - 1 - i]
    return y


@layer
def meets(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n // 2 + 1):
        y[i] = x[i] ** 2
        y[n - 1 - i] = x[i] * x[n - 1 - i]
    return y


@layer
def triple(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n // 3):
        y[3 * i] = x[i] * x[i]
        y[3 * i + 2] = x[i] ** 3
        y[3 * i + 1] = y[3 * i] * y[3 * i + 2]
    return y


@layer
def crossing(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n // 4):
        y[2 * i] = x[i] * 2
        y[4 * i] = x[i] * x[i + 1]
        y[4 * i + 1] = x[i] ** 2
    return y


@layer
def from_the_end(x: real["N"]) -> real["N-3"]:
    n = x.shape[0]
    y = np.zeros(n - 3)
    for i in range(n):
        y[i - 3] = x[i] ** 2
    return y


@layer
def from_the_end_in_steps(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros(n)
    for i in range(n // 2 + 1):
        y[2 * i - 2] = x[i] ** 2
    return y


@layer
def from_both_ends(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros_like(x)
    for i in range(n // 3):
        y[n // 2 + i + 1] += 0.5 * y[i - 1] + x[i - n + 1]
        y[i - 1] += x[n // 2 + i + 1] * 2
    return y


@layer
def steps_from_both_ends(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = x * 0.5
    for i in range(n // 3):
        y[i + 1] += x[i - n // 2 - 1] ** 2
        y[2 * i - n + 2] = x[i + 2] * 2
        y[2 * i - 3] += 0.5 * y[2 * i] + x[2 * i]
    return y
"""

APART = ["rope", "rope2", "unhaar", "triple", "chained"]  # each place is written once, or is read before it is again
# ... or might, as far as one can tell, not be.
MEETING = ["meets", "crossing", "from_the_end", "from_the_end_in_steps", "steps_from_both_ends"]
ADDING = ["from_both_ends"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("halves")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "halves_of", TEXT)


def draw(name: str, n: int, dtype: type) -> list[np.ndarray]:
    shapes = ["3 n", "2 3 h"] if name.startswith("rope") else ["n"]
    return sized(shapes, {"n": n, "h": n // 2}, 2, dtype)


@pytest.mark.parametrize("name", APART + MEETING + ADDING)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9, 12, 64, 130])
def test_values_and_gradients(package, name, n):
    n = max(n, 6) if name == "from_the_end" else n  # which has three places less, and begins three before the end
    agrees(getattr(package, name), draw(name, n, np.float64), np.random.default_rng(n), 1e-12, 1e-5)


@pytest.mark.parametrize("name", APART + MEETING)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 260, np.float32))


@pytest.mark.parametrize("name", APART + MEETING)
def test_a_place_is_cleared_where_another_write_may_have_been(package, name):
    cleared = [line for line in getattr(package, name).gradient_source.splitlines() if line.endswith("] = 0")]
    assert bool(cleared) == (name in MEETING)


@pytest.mark.parametrize("name", ["rope", "rope2", "unhaar"])
@pytest.mark.parametrize("method", ["predict", "backward"])
def test_iterations_are_independent(package, folder, name, method):
    """What an iteration writes is the other half's of none."""
    kernel = kernels_in(folder / "halves_of.py")[name, method]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and not s.var.startswith("strip")]
    assert {s.kind for s in loops if str(s.hi) != "batch"} == {"map"}
