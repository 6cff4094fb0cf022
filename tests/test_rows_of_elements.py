"""A `while` for each element that goes along a row at each turn, of parameters or of the element's own: neighbours run
together, what they remember too."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.ir import For, Load, Op, Store
from layerc.transpile.passes.alike import MANY_LANES
from layerc.transpile.passes.asking import asking
from layerc.transpile.passes.flatten import flat_elements
from layerc.transpile.passes.in_hand import in_hand
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real
from scipy import special


@layer
def inverse(y: real["N"], a: Param[real["K"]], b: Param[real["K"]]) -> real["N"]:
    """A flow back, by Newton's method: each turn remembers a row."""
    x = np.zeros_like(y)
    for n in range(len(y)):
        v = y[n]
        for _ in range(30):
            th = np.tanh(b * v)
            step = (v + np.sum(a * th) - y[n]) / (1 + np.sum(a * b * (1 - th**2)))
            v = v - step
            if abs(step) < 1e-9:
                break
        x[n] = v
    return x


@layer
def quantile(u: real["N"], mu: real["N K"], log_s: real["N K"]) -> real["N"]:
    """Each element has a mixture of its own: a bisection, then Newton's method."""
    N, K = mu.shape
    x = np.zeros(N)
    for n in range(N):
        lo, hi = -20.0, 20.0
        while hi - lo > 1e-2:
            mid = 0.5 * (lo + hi)
            if np.mean(special.expit((mid - mu[n]) * np.exp(-log_s[n]))) < special.expit(u[n]):
                lo = mid
            else:
                hi = mid
        v = 0.5 * (lo + hi)
        for _ in range(4):
            s = special.expit((v - mu[n]) * np.exp(-log_s[n]))
            v = v - (np.mean(s) - special.expit(u[n])) / np.mean(s * (1 - s) * np.exp(-log_s[n]))
        x[n] = v
    return x


@layer
def beside(x: real["N K"], w: Param[real["K"]]) -> real["N"]:
    """The row of the next element, which the last one has not."""
    N, K = x.shape
    y = np.zeros(N)
    for n in range(N):
        v, k = 0.4 + 0.1 * n, 0
        while n + 1 < N and abs(v) > 0.3 and k < 5:
            v = 0.4 * v + 0.1 * np.sum(np.sin(x[n + 1] * v) * w)
            k += 1
        y[n] = v
    return y


@layer
def settles(x: real["N K"], w: Param[real["K"]]) -> real["N"]:
    """A row of the element is read turn after turn, and no turn may be made for some."""
    N, K = x.shape
    y = np.zeros(N)
    for n in range(N):
        v, k = 0.5 * x[n, 0] + 0.1, 0
        while abs(v) > 0.3 and k < 5:
            v = 0.4 * v + 0.1 * np.sum(np.sin(x[n] * v) * w)
            k += 1
        y[n] = v
    return y
'''
SHAPES = {
    "inverse": ("n", "k", "k"),
    "quantile": ("n", "n k", "n k"),
    "settles": ("n k", "k"),
    "beside": ("n k", "k"),
}
OWN = {"inverse": (), "quantile": ("mu", "log_s"), "settles": ("x",)}


def draw(name: str, examples: int, n: int, k: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * examples + 10 * n + k)
    found = []
    for text in SHAPES[name]:
        shape = tuple({"n": n, "k": k}[axis] for axis in text.split())
        of_all = text == "k"
        found.append(rng.uniform(0.1, 0.9, shape if of_all else (examples, *shape)).astype(dtype))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "rows_of_elements", TEXT)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("examples", "n", "k"), [(1, 70, 5), (2, 64, 1), (5, 3, 7), (3, 130, 20), (2, 20, 80), (0, 5, 3), (2, 0, 3)]
)
def test_values_and_gradients(package, name, examples, n, k):
    layer, values = getattr(package, name), draw(name, examples, n, k, np.float64)
    agrees(layer, values, np.random.default_rng(n), 1e-8, 1e-5, exact=False)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_of_threads(package, name, dtype):
    for examples, n, k in ((1, 300, 5), (9, 70, 12)):
        same_bits(getattr(package, name), draw(name, examples, n, k, dtype))


def wide(kernel) -> list[For]:
    return [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == Dim.of(MANY_LANES)]


@pytest.mark.parametrize("name", [n for n in SHAPES if n != "beside"])
def test_neighbours_run_together(package, folder, name):
    of = {m: k for (layer, m), k in kernels_in(folder / "rows_of_elements.py").items() if layer == name}
    for method in ("predict", "backward"):
        assert wide(of[method]), method
        lists = [b for b in of[method].buffers if b.kind == "list"]
        assert not lists or any(b.shape[-1] == Dim.of(MANY_LANES) for b in lists), method


@pytest.mark.parametrize("name", [n for n in OWN if OWN[n]])
def test_rows_of_their_own_are_fetched_once(package, folder, name):
    """By a loop that does nothing else, and read there afterwards."""
    kernel = kernels_in(folder / "rows_of_elements.py")[name, "predict"]
    reads = [
        (loop, e)
        for loop in wide(kernel)
        for s in loop.body
        for own in own_exprs(s)
        for e in parts(own)
        if isinstance(e, Load) and e.buffer in OWN[name]
    ]
    assert {e.buffer for _, e in reads} == set(OWN[name])
    assert all(len(loop.body) == 1 for loop, _ in reads)


def test_what_no_turn_changes_is_computed_before_them(package, folder):
    """exp(-log_s) of the row, for both loops."""
    kernel = kernels_in(folder / "rows_of_elements.py")["quantile", "predict"]
    exps = [
        e
        for loop in wide(kernel)
        for s in loop.body
        for own in own_exprs(s)
        for e in parts(own)
        if isinstance(e, Op) and e.op == "exp"
    ]
    full = [s for s in walk(kernel.body) if isinstance(s, For) and s.hi == Dim.of("N") // MANY_LANES]
    assert len(exps) <= 2 * len(full), "a table for each of the two loops at most"


def test_a_row_that_may_not_be_there_is_not_fetched(folder, package):
    parts = compile_module(read_module(folder / "rows_of_elements.py"), upto="steps").parts
    kernels = {p.layer.name: asking(flat_elements(p.kernel)) for p in parts if p.method == "predict"}
    for name, rows in (("settles", 1), ("beside", 0)):
        (nest,) = (s for s in kernels[name].body if isinstance(s, For))
        held = in_hand(nest, kernels[name])
        inside = walk((held[0],)) if held else ()
        fetched = [s for s in inside if isinstance(s, Store) and s.value.__class__ is Load and s.value.buffer == "x"]
        assert len(fetched) == rows, name
