"""Loops over windows, as people write them: in the order of the formula, with a branch for the border."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.ir import For
from layerc.transpile.layers import check_file
from layerc.transpile.passes.tree import in_vectors, walk

SOURCE = '''
import numpy as np
from layerc import Param, layer, real


@layer
def lp_pool(x: real["C H W"]) -> real["C H-2 W-2"]:
    """Windows that overlap."""
    c, h, w = x.shape
    y = np.zeros((c, h - 2, w - 2))
    for k in range(c):
        for i in range(h - 2):
            for j in range(w - 2):
                total = 0.0
                for a in range(3):
                    for b in range(3):
                        total += np.abs(x[k, i + a, j + b]) ** 3
                y[k, i, j] = np.sqrt(total + 1e-3)
    return y


@layer
def depthwise(x: real["C H W"], weight: Param[real["C A B"]]) -> real["C H W"]:
    """A border of zeros, by a branch; windows of an extent that is known at the call."""
    c, h, w = x.shape
    y = np.zeros((c, h, w))
    for k in range(c):
        for i in range(h):
            for j in range(w):
                total = 0.0
                for a in range(weight.shape[1]):
                    for b in range(weight.shape[2]):
                        r, s = i + a - 1, j + b - 1
                        if 0 <= r < h and 0 <= s < w:
                            total += weight[k, a, b] * x[k, r, s]
                y[k, i, j] = total
    return y


@layer
def convolution(x: real["C H W"], weight: Param[real["D C 3 3"]], bias: Param[real["D"]]) -> real["D H W"]:
    """Over all channels."""
    c, h, w = x.shape
    d = weight.shape[0]
    y = np.zeros((d, h, w))
    for o in range(d):
        for i in range(h):
            for j in range(w):
                y[o, i, j] = bias[o]
                for k in range(c):
                    for a in range(3):
                        for b in range(3):
                            if i + a >= 1 and i + a < h + 1 and j + b >= 1 and j + b <= w:
                                y[o, i, j] += weight[o, k, a, b] * x[k, i + a - 1, j + b - 1]
    return y


@layer
def average(x: real["C H W"]) -> real["C H//2 W//2"]:
    """Windows side by side."""
    c, h, w = x.shape
    y = np.zeros((c, h // 2, w // 2))
    for k in range(c):
        for i in range(h // 2):
            for j in range(w // 2):
                for a in range(2):
                    for b in range(2):
                        y[k, i, j] += np.exp(x[k, 2 * i + a, 2 * j + b]) / 4
    return y


@layer
def largest(x: real["C W"]) -> real["C W"]:
    """The largest of five, less at the ends."""
    c, w = x.shape
    y = np.zeros((c, w))
    for k in range(c):
        for j in range(w):
            top = -np.inf
            for b in range(-2, 3):
                if 0 <= j + b < w:
                    top = max(top, x[k, j + b])
            y[k, j] = top
    return y


@layer
def delayed(x: real["C T"], weight: Param[real["C K"]], *, step: int = 3) -> real["C T"]:
    """A causal filter with gaps."""
    y = np.zeros_like(x)
    for c in range(x.shape[0]):
        for t in range(x.shape[1]):
            for k in range(weight.shape[1]):
                if t - step * k >= 0:
                    y[c, t] += np.tanh(weight[c, k] * x[c, t - step * k])
    return y


@layer
def filtered(x: real["T"], weight: Param[real["K"]]) -> real["T"]:
    """The border in the bounds of a window of any length."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        for k in range(min(weight.shape[0], t + 1)):
            y[t] += weight[k] * x[t - k]
    return y


@layer
def backwards(x: real["T"], weight: Param[real["K"]]) -> real["T"]:
    """Where it is in the input, and downwards."""
    n, m = x.shape[0], weight.shape[0]
    y = np.zeros(n)
    for t in range(n):
        for s in range(t, max(-1, t - m), -1):
            y[t] += weight[t - s] * np.sin(x[s])
    return y


@layer
def around(x: real["C T"], weight: Param[real["2*R+1"]]) -> real["C T"]:
    """A border at either end."""
    c, n = x.shape
    r = weight.shape[0] // 2
    y = np.zeros((c, n))
    for i in range(c):
        for t in range(n):
            total = 0.0
            for s in range(max(0, t - r), min(n, t + r + 1)):
                total += weight[s - t + r] * x[i, s]
            y[i, t] = total
    return y


@layer
def spread_out(x: real["T"], weight: Param[real["K"]]) -> real["T+K-1"]:
    """Each input adds to several outputs."""
    y = np.zeros(x.shape[0] + weight.shape[0] - 1)
    for t in range(x.shape[0]):
        strength = np.sin(x[t])
        for k in range(weight.shape[0]):
            y[t + k] += strength * weight[k]
    return y


@layer
def between(x: real["H W"]) -> real["H W"]:
    """A branch with two ways: what is outside is the border's."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            total = 0.0
            for b in range(3):
                s = j + b - 1
                if 0 <= s < w:
                    v = x[i, s]
                else:
                    v = x[i, j]
                total += v * v
            y[i, j] = total * x[i, j]
    return y


@layer
def recurring(x: real["H W"]) -> real["H W"]:
    """An iteration needs what the one before it left."""
    h, w = x.shape
    y = np.copy(x)
    for i in range(h):
        for j in range(w):
            for b in range(2):
                if j - b - 1 >= 0:
                    y[i, j] += 0.3 * np.sin(y[i, j - b - 1])
    return y


@layer
def otherwise(x: real["T"], w: Param[real["K"]]) -> real["T"]:
    """What falls outside goes elsewhere."""
    n = x.shape[0]
    y = np.zeros(n)
    for j in range(n):
        t = np.sin(x[j])
        for b in range(w.shape[0]):
            r = j + b - 1
            if 0 <= r < n:
                y[r] += t * w[b]
            else:
                y[j] += t
    return y


@layer
def bilateral(x: real["H W"], sigma: Param[real]) -> real["H W"]:
    """Variables that a branch makes for itself."""
    h, w = x.shape
    y = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            total = 0.0
            weight = 0.0
            for a in range(3):
                for b in range(5):
                    if 0 <= i + a - 1 < h and 0 <= j + b - 2 < w:
                        d = x[i + a - 1, j + b - 2] - x[i, j]
                        e = np.exp(-sigma * d * d)
                        weight += e
                        total += e * x[i + a - 1, j + b - 2]
            y[i, j] = total / weight
    return y


@layer
def kept(x: real["H W"]) -> real["H W"]:
    """A variable that a branch sets, and that is asked for whether it did or not."""
    h, w = x.shape
    y = np.zeros((h, w))
    last = 0.5
    for i in range(h):
        for j in range(w):
            for b in range(3):
                if 0 <= j + b - 1 < w:
                    if x[i, j + b - 1] > 0:
                        last = x[i, j + b - 1]
            y[i, j] = last * x[i, j]
    return y


@layer
def across(x: real["C H W"], gain: Param[real["C"]]) -> real["C H W"]:
    """A window over channels, which lie far from each other."""
    c, h, w = x.shape
    y = np.zeros((c, h, w))
    for k in range(c):
        for i in range(h):
            for j in range(w):
                s = 0.0
                for a in range(5):
                    if 0 <= k + a - 2 < c:
                        s += x[k + a - 2, i, j] ** 2
                y[k, i, j] = gain[k] * x[k, i, j] / np.sqrt(1.0 + 0.1 * s)
    return y


@layer
def soft_pool(x: real["H W"]) -> real["H//2 W//2"]:
    """Windows that share no place: each writes to its own."""
    h, w = x.shape
    y = np.zeros((h // 2, w // 2))
    for i in range(h // 2):
        for j in range(w // 2):
            total = 0.0
            weight = 0.0
            for a in range(2):
                for b in range(2):
                    e = np.exp(x[2 * i + a, 2 * j + b])
                    weight += e
                    total += e * x[2 * i + a, 2 * j + b]
            y[i, j] = total / weight
    return y


@layer
def sharing_pool(x: real["H W"]) -> real["H//2 (W-1)//2"]:
    """Windows of three, two apart: the gradient's share a place."""
    h, w = x.shape
    y = np.zeros((h // 2, (w - 1) // 2))
    for i in range(h // 2):
        for j in range((w - 1) // 2):
            y[i, j] = np.max(x[2 * i : 2 * i + 2, 2 * j : 2 * j + 3])
    return y
'''

SHAPES = {
    "lp_pool": ["2 n+2 m+2"],
    "depthwise": ["2 n m", "2 3 3"],
    "convolution": ["2 n m", "3 2 3 3", "3"],
    "average": ["2 n m"],
    "largest": ["2 m"],
    "delayed": ["2 m", "2 4"],
    "filtered": ["m", "4"],
    "backwards": ["m", "5"],
    "around": ["2 m", "7"],
    "spread_out": ["m", "4"],
    "between": ["n m"],
    "recurring": ["n m"],
    "otherwise": ["m", "4"],
    "bilateral": ["n m", ""],
    "kept": ["n m"],
    "across": ["n 2 m", "n"],
    "soft_pool": ["n m"],
    "sharing_pool": ["n m"],
}
PARAMETERS = {
    ("depthwise", 1),
    ("convolution", 1),
    ("convolution", 2),
    ("delayed", 1),
    ("filtered", 1),
    ("backwards", 1),
    ("around", 1),
    ("spread_out", 1),
    ("otherwise", 1),
    ("bilateral", 1),
    ("across", 1),
}


def draw(name: str, examples: int, n: int, m: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n + 31 * m)
    found = []
    for position, text in enumerate(SHAPES[name]):
        shape = tuple(eval(axis, {"n": n, "m": m}) for axis in text.split())
        found.append(rng.standard_normal(shape if (name, position) in PARAMETERS else (examples, *shape)).astype(dtype))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("windows")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "windows_of", SOURCE)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("examples", "n", "m"), [(1, 1, 1), (2, 3, 2), (1, 2, 63), (3, 4, 67), (18, 3, 131), (0, 2, 3)]
)
def test_values_and_gradients(package, name, examples, n, m):
    values = draw(name, examples, n, m, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(m), 1e-10, 2e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 3, 40, 150, np.float32))


@pytest.mark.parametrize(
    "name", ["lp_pool", "depthwise", "convolution", "filtered", "backwards", "around", "spread_out"]
)
def test_gradients_run_along_memory(package, folder, name):
    """A strip of a row at a time, or the whole row: loops over windows are outside of the loops in vectors."""
    for (layer, method), kernel in kernels_in(folder / "windows_of.py").items():
        if layer == name and method.startswith(("backward", "pullback")):
            strips = [s for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("strip")]
            rows = strips or [s for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("i_step")]
            inner = [s for s in walk(tuple(rows)) if isinstance(s, For) and in_vectors(s)]
            assert rows, method
            assert inner, method
            sizes = [(s.hi - s.lo).value for s in inner]  # a strip of partial sums is cleared as a whole
            assert all(size is None or size >= 256 for size in sizes), "a short loop is innermost"


@pytest.mark.parametrize(("name", "steps"), [("bilateral", 0), ("across", 0), ("soft_pool", 0), ("kept", 1)])
def test_what_an_iteration_has_for_itself(package, folder, name, steps):
    """Nothing is left in order but what hands something on."""
    kernel = kernels_in(folder / "windows_of.py")[name, "predict"]
    assert any(isinstance(s, For) and s.kind == "seq" for s in walk(kernel.body)) == bool(steps)


def test_source_reads_as_one_would_write_it() -> None:
    """One variable for a running sum, and no cotangent handed from one to another."""
    text = gradient_file(check_file(Path("windows_of.py"), SOURCE))
    one = text[text.index("def d_depthwise(") :].partition("\n\n\n")[0]
    code = [line.strip() for line in one.split("\n") if "#" not in line]
    assert code[-4:] == [
        "if (0 <= r and r < h) and (0 <= s and s < w):",
        "d_weight[k, a, b] += d_total * x[k, r, s]",
        "d_x[k, r, s] += d_total * weight[k, a, b]",
        "return d_x, d_weight",
    ]
    assert "total_2" not in text[text.index("def d_lp_pool(") :].partition("\n\n\n")[0]


@pytest.mark.parametrize("name", ["filtered", "backwards", "around"])
def test_a_window_of_any_length_has_the_same_everywhere(package, folder, name):
    """What a border cuts off is a range of the loop along memory, which is the innermost one."""
    for way in ("predict", "backward"):
        kernel = kernels_in(folder / "windows_of.py")[name, way]
        loops = [s for s in walk(kernel.body) if isinstance(s, For)]
        assert any(s.var.startswith("strip") for s in loops), way
        for loop in loops:
            if in_vectors(loop):
                assert not {v for v in (loop.hi - loop.lo).symbols() if v.split("_")[0] in ("t", "i")}, (way, loop)
