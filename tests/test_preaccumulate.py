"""Local derivatives made in the forward: of what iterates and has few inputs and results, element by element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from
from test_keep import run
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient, kept
from layerc.transpile.layers import check_file
from layerc.transpile.printer import print_function

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def root(x: real, a: Param[real]) -> real:
    """An example is an element; what the loop ends with is needed behind it."""
    w = 1.0 + x * x
    t = a * x
    while abs(w * w * w - t * t - 1.0) > 1e-4 * (1.0 + t * t):
        w = w - (w * w * w - t * t - 1.0) / (3.0 * w * w)
    return w * x + t


@layer
def shared(x: real["H W"], a: real["W"], s: real) -> real["H W"]:
    """Two axes; elements of a row, and a number, that many elements have in common; what the gradient does without."""
    h, w = x.shape
    y = np.empty((h, w))
    turns = 0
    for i in range(h):
        for j in range(w):
            u = 1.0 + np.exp(x[i, j])
            k = 0
            while abs(u * u - 2.0 - a[j] * a[j]) > 1e-3 and k < 30:
                u = 0.5 * (u + (2.0 + a[j] * a[j]) / u)
                k += 1
            turns += k
            y[i, j] = np.exp(-u) * s + np.sin(u)
    return y


@layer
def parameters(x: real["N"], p: Param[real["3"]]) -> real["N"]:
    """What costs much in a turn has a name in the gradient, which the forward has not; some take no turn."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u = x[i]
        while u > 0.5:
            u = 0.6 * u * p[0] - 0.1 * p[1] * np.sin(u)
        y[i] = np.exp(u) + p[2]
    return y


@layer
def total(x: real["N"], g: real["N"]) -> real:
    """One number comes back for all; the forward goes on, and its names with other values."""
    s = 0.0
    for i in range(len(x)):
        u = x[i] * g[i]
        while u * u > 0.5:
            u = 0.5 * u + 0.1 * np.cos(u)
        u = u * u
        u = u + g[i]
        s += u * u
    return np.tanh(s / (1 + len(x)))


@layer
def twice(x: real["N"]) -> real["N"]:
    """Two loops one after the other."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u = x[i]
        while u < 2.0:
            u = u * u + 0.3
        while u > 1.0:
            u = 0.5 * u + 0.1 * np.cos(u)
        y[i] = u * np.sqrt(2.0 + x[i] * x[i])
    return y * y[::-1]


@layer
def deeper(x: real["N"]) -> real["N"]:
    """A loop in each turn of another."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u, n = x[i], 0
        while n < 3:
            v = 1.0 + u
            while v * v > 1.5:
                v = 0.6 * v
            u = np.sin(v) + x[i]
            n += 1
        y[i] = u
    return y


@layer
def left(x: real["H W"]) -> real["H W"]:
    """A loop that is left by `break`, and one by `return`."""
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            w = np.log1p(x[i, j] * x[i, j])
            for _ in range(20):
                step = (w * np.exp(w) - 1.0) / (np.exp(w) * (w + 1.0))
                w = w - step
                if abs(step) < 1e-3:
                    break
            y[i, j] = halved(w * x[i, j])
    return y


def halved(v: float) -> float:
    """Until it is small."""
    for k in range(9):
        v = 0.5 * v + 0.1 * np.cos(v)
        if v * v < 0.3:
            return v * v
    return v


@layer
def fixed(x: real["N"], a: Param[real]) -> real["N"]:
    """As many turns for all, with a branch; the array is a copy, whose elements are taken out."""
    y = x.copy()
    for i in range(len(x)):
        u = x[i] - a
        for _ in range(7):
            if u > 0:
                u = 0.5 * u
            else:
                u = a * u
            u = np.sin(u) + 0.2 * x[i]
        y[i] = u * x[i]
    return y


@layer
def carried(x: real["N"]) -> real["N"]:
    """An element begins with what the one before has left."""
    y = np.zeros_like(x)
    s = 0.0
    for i in range(len(x)):
        u = x[i] + 0.5 * s
        while u * u > 0.4:
            u = 0.5 * u + 0.1 * np.cos(u)
        s = u
        y[i] = u
    return y


@layer
def two(x: real["N"]) -> tuple[real["N"], real["N"]]:
    """Two results."""
    y, z = np.zeros_like(x), np.zeros_like(x)
    for i in range(len(x)):
        u = x[i]
        while u * u > 0.4:
            u = 0.5 * u + 0.1 * np.cos(u)
        y[i] = u
        z[i] = u * u
    return y, z


@layer
def neighbours(x: real["N"]) -> real["N"]:
    """An element has two results in one array."""
    y = np.zeros_like(x)
    for i in range(len(x) - 1):
        u = x[i]
        while u * u > 0.4:
            u = 0.5 * u + 0.1 * np.cos(u)
        y[i] += u
        y[i + 1] += u * u
    return y


@layer
def rows(x: real["N M"]) -> real["N M"]:
    """An element is a row."""
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        u = x[i].copy()
        while np.sum(u * u) > 1.0:
            u = 0.5 * u + 0.01 * np.cos(u)
        y[i] = u
    return y


@layer
def last(x: real["N"]) -> real["N"]:
    """What the last element leaves is used behind the loop."""
    y = np.zeros_like(x)
    u = 1.0
    for i in range(len(x)):
        u = x[i]
        while u * u > 0.4:
            u = 0.5 * u + 0.1 * np.cos(u)
        y[i] = u
    return y * u


@layer
def whole(x: real["H W"], a: real["W"], s: Param[real]) -> real["H W"]:
    """Whole arrays until all have converged; two arguments are repeated."""
    u = np.ones_like(x)
    step = np.ones_like(x)
    while np.max(np.abs(step)) > 1e-4:
        step = (u + np.exp(u) * s * s - x * x - a * a) / (1.0 + np.exp(u) * s * s)
        u = u - step
    return u * np.cos(x)


@layer
def begins(x: real["N"], a: real["N"]) -> real["N"]:
    """A root begins at 0, where its derivative is infinite, and nothing has come of the inputs yet."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u, last, turns = 0.0, 1.0, 0
        while abs(u - last) > 1e-3 and turns < 40:
            last = u
            u = 0.4 * np.sqrt(u) + 0.1 * x[i] * x[i] + 0.01 * a[i] * a[i]
            turns += 1
        y[i] = u
    return y


@layer
def passed_by(x: real["N"]) -> real["N"]:
    """What a choice passes by has no finite value, and no finite derivative."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u = x[i]
        while u * u > 0.2:
            u = np.where(u > 0, 0.5 * np.sqrt(np.where(u > 0, u, 1.0)) - 0.4, 0.5 * np.log1p(-np.minimum(u, 0.0)))
        y[i] = np.maximum(u, 0.3 * x[i]) + np.clip(u, -0.1, 0.2)
    return y


@layer
def in_a_branch(x: real["N"]) -> real["N"]:
    """Only some elements iterate; the others are not what they were for the sake of the loop."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 0.2:
            u = x[i]
            while u > 0.3:
                u = 0.5 * u + 0.1 * np.sin(u)
            y[i] = u * x[i]
        else:
            y[i] = -x[i]
    return y


@layer
def constants(x: real["N"], a: real["N"]) -> real["N"]:
    """What never changes has no room; a variable is given a number on the way."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u, v = x[i], a[i]
        while u > 0.3:
            u = 0.5 * u + 0.1 * np.sin(u)
            if u > 1.0:
                v = 0.5
        y[i] = u + v * v + a[i]
    return y


@layer
def unturned(x: real["N"], a: Param[real]) -> real["N"]:
    """Where no turn is taken, what it would have gone over stays."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u, v = x[i] * x[i], x[i]
        while v > 0.4:
            v = 0.5 * v
            u = np.tanh(a)
        y[i] = u
    return y


@layer
def written(x: real["N"]) -> real["N"]:
    """The array is written into before the loop and behind it; where no turn is taken, it is that of before."""
    u = x.copy()
    u[0] = 0.5 * u[1]
    v = u
    while np.max(np.abs(u)) > 1.6:
        u = np.sin(u)
    u[2] = u[0] * u[1]
    return u + v * x


@layer
def joined(x: real["N"], a: Param[real]) -> real["N"]:
    """Numbers of Python's own on some ways, and an element that is summed up in another loop."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u = 0.25
        if x[i] > 0:
            u = x[i]
        n, s = 0, 0.0
        while n < 4:
            if u > a:
                u = 1.0
            s += u * u
            u = np.tanh(u + 0.1 * x[i])
            n += 1
        y[i] = s * u
    return y


@layer
def softened(x: real["N"]) -> real["N"]:
    """A sum on the way."""
    u = x
    while np.max(np.abs(u)) > 0.6:
        u = np.tanh(u - 0.1 * np.mean(u))
        u = 0.9 * u
    return u


@layer
def along(x: real["T"], a: Param[real]) -> real:
    """Each turn takes another element."""
    h, t = 0.0, 0
    while t < len(x):
        h = np.tanh(a * h + x[t])
        t += 1
    return h


@layer
def many(x: real["N"], p: Param[real["5"]]) -> real["N"]:
    """Six inputs."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        u = x[i]
        while u > 0.5:
            u = 0.5 * u * np.tanh(p[0]) + 0.1 * np.sin(p[1] + p[2] * u + p[3] * u * u) + 0.01 * p[4]
        y[i] = u
    return y
'''
AHEAD = (
    "root shared parameters total twice deeper left fixed carried two neighbours rows last".split()
    + "whole begins passed_by in_a_branch constants unturned written joined".split()
)
OTHERS = ["softened", "along", "many"]
ARGUMENTS = {
    "root": [(9,), ()],
    "shared": [(3, 5, 70), (3, 70), (3,)],
    "parameters": [(3, 21), (3,)],
    "total": [(5, 18), (5, 18)],
    "rows": [(2, 4, 5)],
    "left": [(2, 3, 40)],
    "fixed": [(4, 33), ()],
    "whole": [(2, 5, 7), (2, 7), ()],
    "begins": [(3, 19), (3, 19)],
    "constants": [(3, 19), (3, 19)],
    "unturned": [(3, 19), ()],
    "joined": [(3, 19), ()],
    "along": [(3, 12), ()],
    "many": [(3, 19), (5,)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory):
    return built_from(tmp_path_factory.mktemp("preaccumulate"), "layers", TEXT)


@pytest.fixture(scope="module")
def module():
    return check_file(Path("layers.py"), TEXT)


@pytest.fixture(scope="module")
def pairs(module):
    return {layer.name: kept(layer, module.source, module.path) for layer in module.layers}


@pytest.mark.parametrize("name", AHEAD)
def test_the_pullback_runs_no_loop_again(pairs, name: str) -> None:
    pullback = print_function(pairs[name].pullback)
    assert "while" not in pullback and "_saved" not in pullback
    assert any("_by_" in n for n in pairs[name].names)


@pytest.mark.parametrize("name", OTHERS)
def test_others_do_as_before(pairs, name: str) -> None:
    assert pairs[name] is None or not any("_by_" in n for n in pairs[name].names)


def draw(name: str, dtype: type, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [(1.3 * rng.standard_normal(s)).astype(dtype) for s in ARGUMENTS.get(name, [(4, 21)])]


@pytest.mark.heavy
@pytest.mark.parametrize("name", [n for n in AHEAD + OTHERS if n != "two"])
@pytest.mark.parametrize("seed", range(3))
def test_values_and_gradients(package, name: str, seed: int) -> None:
    values, rng = draw(name, np.float64, seed), np.random.default_rng(seed)
    agrees(getattr(package, name), values, rng, 1e-10, 2e-5, exact=name != "total")


@pytest.mark.parametrize("name", [n for n in AHEAD if n != "two"])
def test_the_pair_is_the_gradient(module, pairs, name: str) -> None:
    """As printed: of an example, what the source of the gradient makes of what comes back, but for rounding."""
    layer = next(x for x in module.layers if x.name == name)
    values = dict(zip((p.name for p in layer.predict.params), draw(name, np.float64, 7), strict=True))
    values = {p.name: values[p.name][0] if p.role == "input" else values[p.name] for p in layer.predict.params}
    forward = dict(zip((r.name for r in pairs[name].forward.results), run(pairs[name].forward, values), strict=True))
    values |= forward | {"dy": np.random.default_rng(1).standard_normal(np.shape(forward["y"]))}
    whole = gradient(layer, TEXT, "layers.py")
    for found, want in zip(run(pairs[name].pullback, values), run(whole, values), strict=True):
        np.testing.assert_allclose(found, want, 1e-12, 1e-12)


@pytest.mark.heavy
@pytest.mark.parametrize("name", [n for n in AHEAD if n != "two"])
def test_bits_do_not_hang_on_threads(package, name: str) -> None:
    same_bits(getattr(package, name), draw(name, np.float32))


@pytest.mark.heavy
def test_no_number_comes_back_for_no_number(package) -> None:
    x = np.array([[np.nan, 3.0, np.inf, 0.0]])
    _, pullback = package.parameters.vjp(x, np.array([0.5, 0.5, 0.5]))
    d_x, _ = pullback(np.array([[1.0, 1.0, 1.0, 0.0]]))
    assert np.isnan(d_x[0, 0]) == np.isnan(x[0, 0]) and np.isfinite(d_x[0, 1]) and d_x[0, 3] == 0.0


@pytest.mark.heavy
@pytest.mark.parametrize("n", [0, 1])
def test_few_elements(package, n: int) -> None:
    y, pullback = package.total.vjp(np.full((3, n), 2.0), np.full((3, n), 0.7))
    assert all(g.shape == (3, n) for g in pullback(np.ones_like(y)))


VERSIONS = '''
import numpy as np
from layerc import layer, real


@layer
def again(x: real["N"]) -> tuple[real["N"], real["N"]]:
    """What only the forward asks of a variable, between and behind its values."""
    y, z = np.zeros_like(x), np.zeros_like(x)
    n = np.zeros(x.shape[0], dtype=np.int64)
    for i in range(len(x)):
        u = x[i]
        while u > 0.7:
            u = 0.5 * u + 0.1 * np.cos(u)
        n[i] = int(10 * u)
        u = u * u + x[i]
        n[i] += int(10 * u)
        while u > 0.6:
            u = 0.5 * u
        n[i] += int(10 * u)
        y[i] = u
    return y, z + n
'''


def test_values_of_a_variable_are_told_apart(tmp_path: Path) -> None:
    module = check_file(tmp_path / "again.py", VERSIONS)
    pair = kept(module.layers[0], module.source, module.path)
    assert pair is not None and any("_by_" in n for n in pair.names)
    x = np.array([3.0, 0.1, 0.9, 1.7])
    want = run(module.layers[0].predict, {"x": x})
    found = run(pair.forward, {"x": x})
    assert all(np.array_equal(a, b) for a, b in zip(want, found, strict=False))
    layer = built_from(tmp_path, "again", VERSIONS).again
    assert np.array_equal(layer.vjp(x)[0][1], layer(x)[1]) and np.array_equal(layer(x)[1], want[1])
