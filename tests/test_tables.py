"""What loops would compute again of the same elements is computed once, before them."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def lp_pool(x: real["C H W"], *, p: float = 3.0) -> real["C H-2 W-2"]:
    """Nine windows come to each place."""
    c, h, w = x.shape
    y = np.zeros((c, h - 2, w - 2))
    for k in range(c):
        for i in range(h - 2):
            for j in range(w - 2):
                s = 0.0
                for a in range(3):
                    for b in range(3):
                        s += np.abs(x[k, i + a, j + b]) ** p
                y[k, i, j] = s ** (1 / p)
    return y


@layer
def soft_pool(x: real["C T"], scale: Param[real["C"]]) -> real["C T"]:
    """Conditions on places."""
    c, t = x.shape
    y = np.zeros((c, t))
    for i in range(c):
        for j in range(t):
            s, n = 0.0, 0.0
            for b in range(-2, 3):
                if 0 <= j + b < t:
                    e = np.exp(scale[i] * x[i, j + b])
                    s += e * x[i, j + b]
                    n += e
            y[i, j] = s / n
    return y


@layer
def columns(x: real["C T"], a: Param[real["T"]]) -> real["C T"]:
    """What the outer loop does not change."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = np.tanh(a[j]) * x[i, j] + np.log1p(np.exp(a[j]))
    return y


@layer
def two_arrays(x: real["T"], z: real["T"]) -> real["T"]:
    """Of both at one place, backwards."""
    t = x.shape[0]
    y = np.zeros(t)
    for j in range(t):
        for b in range(4):
            if t - 1 - j - b >= 0:
                y[j] += np.exp(np.sin(x[t - 1 - j - b]) * z[t - 1 - j - b])
    return y


@layer
def changing(x: real["T"]) -> real["T"]:
    """The array is written into: no table of it. Of what stays, there is one."""
    y = x.copy()
    for i in range(3):
        for j in range(1, x.shape[0]):
            y[j] = np.sin(y[j - 1]) + np.exp(np.sin(x[j])) * 0.1
    return y


@layer
def strided(x: real["T"]) -> real["T//2"]:
    """Each element is asked for once."""
    y = np.zeros(x.shape[0] // 2)
    for i in range(x.shape[0] // 2):
        for a in range(2):
            y[i] += np.exp(np.sin(x[2 * i + a]))
    return y


@layer
def beyond(x: real["C T"]) -> real["C T"]:
    """The outer place is asked for under a condition that a table would not know."""
    c, t = x.shape
    y = np.zeros((c, t))
    for k in range(c):
        for j in range(t):
            for b in range(3):
                if k + 1 < c and j + b < t:
                    y[k, j] += np.exp(np.sin(x[k + 1, j + b]))
    return y


@layer
def basis(x: real["N"], c: Param[real["M N 5"]]) -> real["M"]:
    """Of a variable of the iteration, and of a counter."""
    m, n, _ = c.shape
    y = np.zeros(m)
    for i in range(m):
        for j in range(n):
            for k in range(5):
                t = (x[j] - 0.5 * k) / 0.6
                y[i] += c[i, j, k] * np.exp(-t * t)
    return y


@layer
def later(x: real["T"]) -> real["T"]:
    """The variable is asked for before it is set: of the iteration before; and behind the loops."""
    t = x.shape[0]
    y = np.zeros(t)
    u = 0.3
    for i in range(3):
        for j in range(t):
            y[j] += i * np.exp(np.sin(u))
            u = x[j] * 0.5
            y[j] += np.exp(np.sin(u) + 1.0)
    return y * np.exp(np.sin(u))


@layer
def triangle(x: real["T"]) -> real["T"]:
    """A counter whose loop hangs on another one, and one that does not begin at 0."""
    t = x.shape[0]
    y = np.zeros(t)
    for i in range(t):
        for j in range(i):
            y[i] += np.exp(np.sin(x[j]) - 0.1 * j)
        for k in range(1, 4):
            y[i] += np.exp(np.cos(x[t - 1]) - 0.1 * k)
    return y


@layer
def chained(x: real["T"], w: Param[real["4"]]) -> real["T"]:
    """Variables of variables; one of them hangs on what changes."""
    t = x.shape[0]
    y = np.zeros(t)
    for i in range(3):
        for j in range(t):
            for k in range(4):
                a = x[j] * w[k]
                b = np.tanh(a) - 0.2 * k
                d = b + y[j]
                y[j] += 0.1 * np.exp(-b * b) + 0.1 * np.sin(np.exp(-d * d))
    return y


@layer
def scored(q: real["T A"], k: real["S A"], val: real["S E"], v: Param[real["A"]]) -> real["T E"]:
    """Each pair of rows is come to once, though a product has its rows in strips."""
    t, s, e = q.shape[0], k.shape[0], val.shape[1]
    y = np.zeros((t, e))
    for i in range(t):
        score = np.zeros(s)
        for j in range(s):
            for a in range(v.shape[0]):
                score[j] += v[a] * np.tanh(q[i, a] + k[j, a])
        total = 0.0
        for j in range(s):
            score[j] = np.exp(score[j])
            total += score[j]
        for j in range(s):
            for c in range(e):
                y[i, c] += score[j] / total * val[j, c]
    return y


@layer
def pairs(x: real["T"], w: Param[real["3"]]) -> real["T"]:
    """Of two elements of one array, and of an element and a weight: each pair is come to once."""
    t = x.shape[0]
    y = np.zeros(t)
    for i in range(t):
        for a in range(3):
            if i + a < t:
                d = x[i + a] - x[i]
                y[i] += np.exp(-d * d) + np.exp(-((x[i + a] - 0.5 * x[i]) ** 2)) + np.sin(np.exp(x[i + a] * w[a]))
    return y
'''

SHAPES = {
    "lp_pool": ["2 n+2 m+2"],
    "soft_pool": ["n m", "n"],
    "columns": ["n m", "m"],
    "two_arrays": ["m", "m"],
    "beyond": ["n m"],
    "basis": ["m", "n m 5"],
    "chained": ["m", "4"],
    "scored": ["m 4", "n 4", "n 3", "4"],
    "pairs": ["m", "3"],
}
PARAMETERS = {("soft_pool", 1), ("columns", 1), ("basis", 1), ("chained", 1), ("scored", 3), ("pairs", 1)}
NAMES = [line[4 : line.index("(")] for line in TEXT.split("\n") if line.startswith("def ")]


def draw(name: str, examples: int, n: int, m: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n + 31 * m)
    found = []
    for position, text in enumerate(SHAPES.get(name, ["m"])):
        shape = tuple(eval(axis, {"n": n, "m": m}) for axis in text.split())
        found.append(rng.standard_normal(shape if (name, position) in PARAMETERS else (examples, *shape)).astype(dtype))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "tables_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "n", "m"), [(1, 1, 1), (2, 3, 2), (1, 2, 63), (3, 4, 67), (18, 1, 5), (0, 2, 3)])
def test_values_and_gradients(package, name, examples, n, m):
    values = draw(name, examples, n, m, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(m), 1e-10, 2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3, 40, 150, np.float32))


def test_which_have_tables(package, folder):
    """One for each array of dear values; none where each is asked for once, or where a condition guards the place."""
    parts = compile_module(read_module(folder / "tables_of.py"), upto="tables").parts
    kernels = {p.layer.name: p.kernel for p in parts if p.method == "predict"}
    found = {n: [b.shape for b in kernels[n].buffers if b.name.startswith("table")] for n in NAMES}
    assert {n: len(shapes) for n, shapes in found.items() if shapes} == {
        "lp_pool": 1,
        "soft_pool": 1,
        "columns": 2,
        "two_arrays": 1,
        "changing": 1,
        "basis": 2,  # of the quotient, too
        "triangle": 1,  # of the sine, which no counter changes
        "chained": 2,
    }
    assert {tuple(map(str, shape)) for shape in found["basis"]} == {("N", "5")}
    assert [str(d) for d in found["lp_pool"][0]] == ["H", "W"]
