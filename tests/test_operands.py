"""Arrays that are written again and again, of whose old content little is read: the forward leaves that alone."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import KINDS, built_from, kernels_in, layers_of
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.layers import check_file

LAYERS = '''
import numpy as np
from layerc import Param, layer, real


@layer
def eliminated(a: real["N M"]) -> real["N M"]:
    """A row is read by a loop that writes all others."""
    m = a.copy()
    n, w = a.shape
    for i in range(n):
        for k in range(n):
            if k != i:
                f = np.tanh(m[k, 0])
                for j in range(w):
                    m[k, j] -= f * m[i, j]
    return m


@layer
def all_rows(a: real["N M"]) -> real["N M"]:
    """Its own row, too: what the loop reads, it writes."""
    m = a.copy()
    n, w = a.shape
    for i in range(n):
        for k in range(n):
            f = np.tanh(m[k, 0])
            for j in range(w):
                m[k, j] -= 0.3 * f * m[i, j]
    return m


@layer
def slices(a: real["N N"], b: real["N"]) -> real["N N"]:
    u = a * b
    n = a.shape[0]
    for i in range(n):
        for k in range(i + 1, n):
            u[k, i:] -= np.sin(u[k, i]) * u[i, i:]
    return u * u


@layer
def triangle(a: real["N N"]) -> real["N N"]:
    """The places that are read hang on a counter that is not among them."""
    m = a.copy()
    n = a.shape[0]
    for i in range(n):
        for k in range(i):
            for j in range(k, n):
                m[k, j] -= 0.1 * m[i, j] * m[k, k]
    return m


@layer
def beyond(a: real["N"]) -> real["N"]:
    """A place that is there only where a condition says so."""
    m = a.copy()
    n = a.shape[0]
    for s in range(3):
        for i in range(n):
            for k in range(i):
                if i + 1 < n:
                    m[k] = np.sin(m[k]) * m[i + 1]
    return m


@layer
def there_and_back(a: real["N"]) -> real["N"]:
    """What a loop reads is written after it, and by the next step before it."""
    m = a.copy()
    n = a.shape[0]
    for i in range(n):
        m[i] = np.sin(m[i]) * m[i]
        for k in range(n):
            if k > i:
                m[k] += 0.1 * np.sin(m[k]) * m[i]
        m[i] = np.cos(m[i]) * m[i]
    return m


@layer
def between(a: real["N"]) -> real["N"]:
    """A place that is written after a loop that writes it, too, and read before both."""
    m = a.copy()
    n = a.shape[0]
    t = 0.0
    for i in range(n):
        t = t + m[i] * m[i]
        for k in range(2):
            m[i] += 0.1 * m[i] * t
        m[i] = 0.5 * np.cos(m[i])
    return m * t


@layer
def outside(a: real["N N"]) -> real["N N"]:
    """Of a row that is written from i on, its first number is read: not a part of what the write goes over."""
    m = a.copy()
    n = a.shape[0]
    for i in range(n):
        for k in range(n):
            m[k, i:] *= 1 - 0.1 * m[k, 0]
    return m


@layer
def outside_all(a: real["N N"]) -> real["N N"]:
    """And here all of it."""
    m = a.copy()
    n = a.shape[0]
    for i in range(n):
        for k in range(n):
            m[k, i:] *= 1 - 0.1 * np.sum(m[k, 0:])
    return m


@layer
def told_inside(a: real["N"]) -> real["N"]:
    """A place whose name means nothing before the loop that reads it."""
    m = a.copy()
    n = a.shape[0]
    for i in range(n):
        for k in range(n - 1):
            last = n - 1
            m[k] -= 0.3 * np.sin(m[k]) * m[last]
        m[n - 1] = 0.9 * np.sin(m[n - 1])
    return m


@layer
def as_much(a: real["N"], w: Param[real["K"]]) -> real["N"]:
    """To leave what is read would take as much as what the writes go over."""
    m = a.copy()
    for s in range(w.shape[0]):
        for k in range(2):
            m[0] += 0.1 * m[0] * np.sum(m[1:] * m[1:]) * w[s]
        m[1:] = np.sin(m[1:])
    return m


@layer
def two_steps(a: real["N M"]) -> real["N M"]:
    """The row before is read: the next step of the outer loop writes it."""
    m = a.copy()
    n, w = a.shape
    for s in range(2):
        for i in range(1, n):
            for j in range(w):
                m[i, j] = m[i, j] * 0.5 + m[i, j] * m[i - 1, 0]
    return m


@layer
def from_the_end(a: real["N"]) -> real["N"]:
    m = a.copy()
    n = a.shape[0]
    for i in range(n - 1):
        for k in range(n - 1):
            m[k] *= 1 + 0.1 * m[-1]
    return m


@layer
def wrapped(a: real["N"]) -> real["N"]:
    """k - 1 means the last place for the first k, and that is read as constant nowhere."""
    m = a.copy()
    n = a.shape[0]
    for i in range(n):
        for k in range(n - 1):
            m[k - 1] = np.sin(m[k - 1]) * m[n - 1]
    return m


def _step(m: real["N N"], i: int) -> real["N N"]:
    y = m.copy()
    for k in range(m.shape[0]):
        if k != i:
            for j in range(m.shape[0]):
                y[k, j] -= y[k, i] * y[i, j] * 0.1
    return y


@layer
def by_helper(a: real["N N"]) -> real["N N"]:
    """One loop of the text, twice in the program."""
    return _step(_step(a, 0), a.shape[0] - 1)


@layer
def columns(a: real["N M"]) -> real[""]:
    """Whole columns at once, and the array as a whole behind it."""
    m = a.copy()
    n, w = a.shape
    for i in range(w):
        for k in range(w):
            if k != i:
                m[:, k] -= np.sum(m[:, i] * m[:, k]) * m[:, i]
    return np.sum(m * m)


@layer
def often(a: real["N"], w: Param[real["K"]]) -> real["N"]:
    """A loop around with a counter that is in no place: each of its steps has a room of its own."""
    m = a.copy()
    n = a.shape[0]
    for s in range(w.shape[0]):
        for i in range(n):
            for k in range(n):
                if k < i:
                    m[k] += w[s] * np.sin(m[k]) * m[i]
    return m


@layer
def for_good(x: real["N M"], w: Param[real["3 3"]], k: int = 2) -> real["N M"]:
    """Only what is written last is taken back: before the first loop nothing is there yet that the reverse reads."""
    n, m = x.shape
    y = np.zeros((n, m))
    for i in range(m):
        t = 0.0
        for j in range(n):
            y[j, i] += x[j, i] * x[j, i]
            t += x[j, i]
        for j in range(n):
            y[j, i] /= 1.0 + t * t
    for a in range(k):
        for b in range(k):
            y[: n - k + 1, : m - k + 1] += x[a : a + n - k + 1, b : b + m - k + 1] * w[a, b]
    return y
'''

SHAPES = {
    "eliminated": [(3, 4), (1, 2), (0, 3), (5, 17)],
    "all_rows": [(3, 4), (1, 2), (0, 3)],
    "slices": [(4, 4), (1, 1), (0, 0)],
    "triangle": [(4, 4), (1, 1), (0, 0)],
    "beyond": [(5,), (1,), (0,)],
    "there_and_back": [(5,), (1,), (0,)],
    "between": [(5,), (1,), (0,)],
    "outside": [(4, 4), (1, 1), (0, 0)],
    "outside_all": [(4, 4), (1, 1), (0, 0)],
    "told_inside": [(5,), (1,)],
    "as_much": [(5,), (1,)],
    "two_steps": [(4, 3), (1, 2), (0, 2)],
    "from_the_end": [(4,), (1,)],
    "wrapped": [(4,), (1,)],
    "by_helper": [(4, 4), (1, 1)],
    "columns": [(5, 3), (1, 1), (2, 0)],
    "often": [(5,), (1,), (0,)],
    "for_good": [(5, 7), (3, 3), (2, 1)],
}
EXTRA = {"slices": lambda shape: [shape[:1]], "often": lambda shape: [(3,)], "as_much": lambda shape: [(3,)]}
EXTRA["for_good"] = lambda shape: [(3, 3)]
PARAMS = ("often", "as_much", "for_good")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("operands"), "operands", LAYERS)


@pytest.fixture(scope="module")
def gradients(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "operands.py"
    path.write_text(LAYERS)
    text = gradient_file(check_file(path))
    return {name: part for part in text.split("\n\n\n") if (name := part[len("def d_") :].split("(")[0]) in SHAPES}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [0, 3, 17])
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients(package, name, batch, dtype):
    rng = np.random.default_rng(5)
    tight, close = (1e-12, 1e-6) if dtype == np.float64 else (1e-4, 2e-3)
    for shape in SHAPES[name]:
        values = [0.6 * rng.standard_normal((batch, *shape)).astype(dtype)]
        for more in EXTRA.get(name, lambda shape: [])(shape):
            lead = () if name in PARAMS else (batch,)
            values.append(0.6 * rng.standard_normal((*lead, *more)).astype(dtype))
        agrees(getattr(package, name), values, rng, tight, close)


@pytest.mark.parametrize("name", ["eliminated", "slices", "columns"])
def test_bits(package, name):
    rng = np.random.default_rng(6)
    shape = SHAPES[name][0]
    extra = [rng.standard_normal((40, *s)) for s in EXTRA.get(name, lambda shape: [])(shape)]
    same_bits(getattr(package, name), [0.3 * rng.standard_normal((40, *shape)), *extra])


# What of the array the forward leaves: the rooms' names, and whether the reverse takes anything back.
LEFT = {
    "eliminated": (["m_read"], False),
    "all_rows": (["m_saved"], True),
    "slices": (["u_saved"], False),  # of what a write goes over, one number is read
    "beyond": (["m_saved"], True),
    "two_steps": (["m_saved"], True),
    "wrapped": (["m_saved"], True),
    "often": (["m_read", "m_saved"], False),
    "outside": (["m_saved"], True),
    "told_inside": (["m_saved", "m_saved_2"], True),
    "between": (["m_saved", "m_saved_2"], True),
    "as_much": (["m_saved", "m_saved_2"], True),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(gradients, name):
    text = gradients[name]
    rooms, back = LEFT[name]
    made = sorted(set(re.findall(r"^    ([mu]_(?:read|saved)\w*) = np.empty", text, re.M)))
    assert made == rooms
    assert bool(re.search(r"^ +[mu]\[.*\] = [mu]_saved", text, re.M)) == back


def test_elimination_keeps_a_row_for_each_step(gradients):
    """And no matrix."""
    assert "m_read = np.empty((N, M)" in gradients["eliminated"]
    assert "m_saved" not in gradients["eliminated"]


ARITHMETIC = "import numpy as np\nfrom layerc import layer, real\n\n\n" + layers_of(KINDS, "gauss_jordan")


@pytest.fixture(scope="module")
def arithmetic(tmp_path_factory):
    path = tmp_path_factory.mktemp("arithmetic") / "arithmetic.py"
    path.write_text(ARITHMETIC)
    return path


def test_what_arithmetic_alone_makes_does_not_cross(arithmetic):
    """Two rows of 2*N for each step, and f: more than what the layer takes and gives."""
    assert ("gauss_jordan", "pullback") not in kernels_in(arithmetic)


def test_a_running_sum_is_of_the_layers_type(tmp_path):
    """0.0 is a number of Python's; what is added to it is not."""
    path = tmp_path / "eliminated.py"
    path.write_text(LAYERS[: LAYERS.index("@layer\ndef all_rows")])
    kernels = kernels_in(path)
    sums = [b for b in kernels["eliminated", "pullback"].buffers if b.name.startswith("d_") and not b.shape]
    assert sums and all(b.dtype == "real" for b in sums)
