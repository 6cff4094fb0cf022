"""Examples that are numbers, or have loops around a `while`: many walk together, whichever way the loop is left."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in, runs_loops
from thorough import agrees, same_bits

from layerc.build.driver import gradient_source, read_module
from layerc.cli import main
from layerc.transpile.dims import Dim
from layerc.transpile.dump import dump
from layerc.transpile.ir import For
from layerc.transpile.passes.alike import LANES, MANY_LANES
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, i64, layer, real

MOST = 9


def solve(v: float, tol: float) -> float:
    w = np.log1p(v)
    for _ in range(20):
        e = np.exp(w)
        s = (w * e - v) / (e * (w + 1.0))
        w = w - s
        if abs(s) < tol:
            return w
    return -w


def fraction(v):
    for k in range(2, 40):
        if k % 7 == 6:
            v = v - 0.01 / k
        step = k * (k - v) / (40.0 + k * k * k)
        v = v + step
        if abs(step) < 3e-2:
            return v * 0.5
    return v


@layer
def lambert(x: real[""]) -> real[""]:
    w, step, trips = np.log1p(x), 1.0, 0
    while abs(step) > 1e-6 * (1.0 + abs(w)) and trips < 20:
        e = np.exp(w)
        f = w * e - x
        step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0))
        w = w - step
        trips += 1
    return w


@layer
def left(x: real[""], a: Param[real[""]]) -> real[""]:
    """By a break, after some arithmetic, in one loop of two."""
    v = x
    for _ in range(MOST):
        v = a * np.sin(v) + x
        if v > 1.2:
            v = v - 0.5 * x
            break
        v = v * 1.1
    for _ in range(3):
        v = v + 0.1 * np.cos(v)
    return v


@layer
def returned(x: real[""]) -> real[""]:
    return solve(x, 1e-7)


@layer
def of_elements(x: real["D"]) -> real["D"]:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = solve(x[i], 1e-7)
    return y


@layer
def fixed(x: real[""], z: real[""]) -> real[""]:
    """As many steps for all, two states."""
    p, q = x, z
    for _ in range(6):
        p, q = p + 0.1 * q, q - 0.1 * np.sin(p)
    return p * p + q


@layer
def both_ways(x: real[""], a: Param[real[""]]) -> real[""]:
    """A number that each way sets, and one of them again."""
    v, k = x, 0
    while k < 7 and abs(v) < 4.0:
        if v > 0:
            d = a * np.cos(v)
            e = 0.5
        else:
            d = 0.3 * v - a
            e = v * v
        if d > 0.1:
            d = d * 0.5 + 0.1 * e
        v = v + d * 0.7 + 0.05 * e
        k += 1
    return v


@layer
def inner_loops(x: real["D"], *, most: int = 4) -> real["D"]:
    """A loop that is left, in a loop that is left; what the outer one makes anew, the inner one changes."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(most):
            s = 0.5 * v
            for _ in range(3):
                s = s + 0.3 * np.exp(-s * s)
                if s > 1.0:
                    break
            v = v * 0.5 + s
            if v > 2.0:
                break
        y[i] = v
    return y


@layer
def three_loops(x: real["C H W"], k: Param[real["C"]]) -> real["C H W"]:
    """A `while` inside three loops: rows of the last one walk together."""
    y = np.zeros_like(x)
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                s, d, n = 1.0, 1.0, 0
                while abs(d) > 1e-7 and n < 12:
                    t = 0.5 * (s + (0.5 + k[c] * k[c] + x[c, i, j] * x[c, i, j]) / s)
                    d = t - s
                    s = t
                    n += 1
                y[c, i, j] = s
    return y


@layer
def flat(x: real["N D"]) -> real["N D"]:
    """An array seen as one row."""
    f = x.reshape(-1)
    y = np.zeros_like(f)
    for i in range(f.shape[0]):
        s, n = f[i], 0
        while s * s < 2.0 and n < 6:
            s = s * 1.4 + 0.1 * f[i]
            n += 1
        y[i] = s
    return y.reshape(x.shape)


@layer
def running(x: real["H W"]) -> real["H W"]:
    """What a row leaves, the next one reads: rows wait for each other."""
    y = np.zeros_like(x)
    s = 0.1
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            n = 0
            while s < 1.0 + x[i, j] * x[i, j] and n < 4:
                s = s * 1.5 + 0.1
                n += 1
            y[i, j] = s * x[i, j]
            s = 0.2 + 0.1 * np.sin(s)
    return y


@layer
def counted(x: real["D"]) -> real["D"]:
    """The loop's own number is asked for, inside and behind it."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        s = x[i]
        k = 0
        for k in range(5):
            s = s + 0.3 * k
            if s > 1.0:
                break
        y[i] = s * (k + 1)
    return y


@layer
def halved(x: real["D"]) -> real["D"]:
    """A search, and a step of Newton's method behind it."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        lo, hi = 0.0, 4.0
        while hi - lo > 1e-7:
            mid = 0.5 * (lo + hi)
            if mid * np.exp(mid) > x[i]:
                hi = mid
            else:
                lo = mid
        w = 0.5 * (lo + hi)
        e = np.exp(w)
        y[i] = w - (w * e - x[i]) / (e * (w + 1.0))
    return y


@layer
def eigenvector(a: real["3 3"]) -> real["3"]:
    """Of a small matrix, until it stands: lists of small arrays."""
    s = a @ a.T + np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.2]])
    v = np.ones(3)
    for _ in range(60):
        u = s @ v
        u = u / np.sqrt(np.sum(u * u))
        d = np.max(np.abs(u - v))
        v = u
        if d < 1e-9:
            break
    return v


@layer
def relaxed(a: real["3 3"], b: real["3"]) -> real["3"]:
    """Some examples are not entered for, others have their own number of turns."""
    x, err, n = b * 0.1, np.max(np.abs(b)), 0
    while err > 0.3 and n < 9:
        r = b - 0.1 * (a @ x) - x
        if r[0] > 0:
            x = x + 0.7 * r
        else:
            x = x + 0.6 * r * np.cos(r[1])
        err = np.max(np.abs(r))
        n += 1
    return x


@layer
def crossing(p: real["2"]) -> real["2"]:
    """Newton's method for two unknowns."""
    x = np.array([1.0, 0.2])
    for _ in range(12):
        f = np.array([x[0] * x[0] + x[1] * x[1] - 1.0 - p[0] * p[0], x[0] * x[1] - 0.1 * np.tanh(p[1])])
        j = np.array([[2 * x[0], 2 * x[1]], [x[1], x[0]]])
        det = j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0]
        x = x - np.array([f[0] * j[1, 1] - f[1] * j[0, 1], f[1] * j[0, 0] - f[0] * j[1, 0]]) / det
        if np.sum(f * f) < 1e-24:
            break
    return x


@layer
def vectors(x: real["D"], w: Param[real["D D"]]) -> real["D"]:
    """A fixed point: of arrays, left when it stands."""
    y = np.zeros_like(x)
    for _ in range(40):
        n = np.tanh(0.2 * (w @ y) + x)
        d = np.max(np.abs(n - y))
        y = n
        if d < 1e-9:
            break
    return y


@layer
def series(x: real["D"]) -> real["D"]:
    """The loop's own number is computed with, in a branch, too."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        term = x[i]
        total = term
        for k in range(1, 30):
            term = -term * x[i] * x[i] / (2 * k * (2 * k + 1))
            total += term
            if abs(term) < 1e-2 * abs(total):
                break
        y[i] = total if total > 0.3 else fraction(total)
    return y


@layer
def of_places(x: real["D"], c: Param[real["D"]]) -> real["D"]:
    """The number is a place, too."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        s = x[i]
        for k in range(3):
            s = s + 0.3 * k + np.cos(s)
            j = k + 0
            if s > 1.0:
                break
            if j < c.shape[0]:
                s += c[j]
        y[i] = s
    return y
'''
SHAPES = {
    "left": ["", "shared"],
    "fixed": ["", ""],
    "both_ways": ["", "shared"],
    "inner_loops": ["d"],
    "of_elements": ["d"],
    "three_loops": ["2 3 d", "shared 2"],
    "flat": ["3 d"],
    "running": ["3 d"],
    "counted": ["d"],
    "halved": ["d"],
    "series": ["d"],
    "of_places": ["d", "shared d"],
    "vectors": ["d", "shared d d"],
    "eigenvector": ["3 3"],
    "relaxed": ["3 3", "3"],
    "crossing": ["2"],
}
POSITIVE = ("lambert", "returned", "of_elements", "halved")
NAMES = [
    line[4 : line.index("(")] for line in TEXT.split("@layer")[1:] for line in line.split("\n") if line[:4] == "def "
]
NUMBERS = [name for name in NAMES if all(s in ("", "shared") for s in SHAPES.get(name, [""]))]


def draw(name: str, examples: int, d: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * examples + d)
    found = []
    for text in SHAPES.get(name, [""]):
        shape = tuple(d if axis == "d" else int(axis) for axis in text.removeprefix("shared").split())
        value = np.asarray(rng.standard_normal(shape if text.startswith("shared") else (examples, *shape)))
        found.append(np.asarray(np.abs(value) * 3 if name in POSITIVE else value, dtype))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("numbers")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "numbers_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("examples", "d"), [(1, 16), (2, 1), (3, 17), (17, 3), (0, 20), (64, 2), (65, 1), (150, 4), (2, 70)]
)
def test_values_and_gradients(package, name, examples, d):
    layer = getattr(package, name)
    values, rng = draw(name, examples, d, np.float64), np.random.default_rng(d)
    agrees(layer, values, rng, 1e-10, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        for examples, d in ((1, 200), (300, 7)):
            same_bits(getattr(package, name), draw(name, examples, d, dtype))


@pytest.mark.parametrize(
    "name",
    [*(n for n in NUMBERS if n != "fixed"), "of_elements", "three_loops", "flat", "inner_loops", "halved", "series"],
)
def test_they_run_together(package, folder, name):
    """Forward and gradient, 64 at a time, but of a pullback that has nothing left to run."""
    kernels = [k for (layer, _), k in kernels_in(folder / "numbers_of.py").items() if layer == name and runs_loops(k)]
    assert len(kernels) >= 2
    for kernel in kernels:
        assert any(isinstance(s, For) and s.hi == Dim.of(MANY_LANES) for s in walk(kernel.body)), dump(kernel)


@pytest.mark.parametrize("name", ["eigenvector", "relaxed", "crossing"])
def test_small_arrays_run_together(package, folder, name):
    """Sixteen examples, and each of their lists is one."""
    for (layer, _), kernel in kernels_in(folder / "numbers_of.py").items():
        if layer == name:
            assert any(isinstance(s, For) and s.hi == Dim.of(LANES) for s in walk(kernel.body)), dump(kernel)
            lists = [b for b in kernel.buffers if b.kind == "list"]
            assert not lists or any(b.shape[-1] == Dim.of(LANES) and len(b.shape) == 3 for b in lists), dump(kernel)


@pytest.mark.parametrize("name", NUMBERS)
def test_nothing_that_is_kept_lies_across_examples(package, folder, name):
    for (layer, _), kernel in kernels_in(folder / "numbers_of.py").items():
        assert layer != name or all(len(b.shape) < 2 for b in kernel.buffers if b.kind in ("in", "out")), dump(kernel)


def test_a_for_that_is_left_is_a_while(folder, package):
    """Unless it is asked for its number, or might not count to an integer."""
    gradients = gradient_source(read_module(folder / "numbers_of.py"))
    found = {name: gradients[gradients.index(f"def d_{name}(") :].split("\ndef ")[0] for name in NAMES}
    assert "while going and turn < 9" in found["left"]
    assert "while going and turn < most" in found["inner_loops"].replace("_2", "").replace("_3", "")
    assert all(f"turn{n} < {most}" in found["series"] for n, most in (("", 30), ("_3", 40)))
    assert all("while" not in found[name] for name in ("counted", "of_places"))
    assert "while" not in found["fixed"]


@pytest.mark.parametrize("body", ["range(2.5)", "range(n)"])
def test_a_limit_must_be_an_integer(tmp_path, capsys, body):
    """Also where a function is given something else than it says."""
    (tmp_path / "half.py").write_text(
        "import numpy as np\nfrom layerc import layer, real\n\n\n"
        f"def some(x: float, n: int) -> float:\n    for _ in {body}:\n        x = np.sin(x)\n        if x > 0.1:\n"
        "            break\n    return x\n\n\n@layer\ndef f(x: real) -> real:\n    return some(x, 2.5)\n"
    )
    assert main(["build", str(tmp_path / "half.py")]) == 1
    assert "range takes integers" in capsys.readouterr().err
