"""A softmax that goes over its scores once, scaling its sums down as the largest grows, is computed as one that knows
the largest beforehand; where that would be another result, it is not."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import read_module
from layerc.transpile.program import Call, For, stmt_exprs, walk, walk_stmts

HEAD = "import math\n\nimport numpy as np\nfrom layerc import Param, layer, real\n"
ROWS = """
@layer
def {name}(x: real["T"], v: real["T D"]) -> real["D"]:
    T, D = v.shape
    m = {begin}
    l = {total}
    acc = np.zeros(D)
    for t in range(T):
{body}
    return acc / l
"""
SCORES = """
@layer
def {name}(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    T, D = q.shape
    y = np.empty_like(q)
    for i in range(T):
        m = -np.inf
        l = 0.0
        acc = np.zeros(D)
        for j in range({stop}):
            s = 0.0
            for d in range(D):
                s += q[i, d] * k[j, d]
            s = s / math.sqrt(D) - 0.1 * (i - j)
{body}
        for d in range(D):
            y[i, d] = acc[d] / l
    return y
"""
SUMS = """
@layer
def {name}(x: real["T"]) -> real[""]:
    m = {begin}
    l = {total}
    for t in range({start}, x.shape[0]):
{body}
    return {end}
"""
# What the loop over t does in place of {body}: those that change, and those that must not.
PLAIN = """
new = max(m, x[t])
old = np.exp(m - new)
p = np.exp(x[t] - new)
l = l * old + p
acc = acc * old + p * v[t]
m = new
"""
IN_PLACE = """
before = m
m = max(m, x[t])
scale = np.exp(before - m)
l *= scale
acc *= scale
w = np.exp(x[t] - m)
l += w
acc += w * v[t]
"""
BRANCH = """
if x[t] > m:
    acc = acc * np.exp(m - x[t])
    l = l * np.exp(m - x[t])
    m = x[t]
p = np.exp(x[t] - m)
acc += p * v[t]
l += p
"""
ELEMENTS = """
new = max(m, s)
old = math.exp(m - new)
p = math.exp(s - new)
l = l * old + p
for d in range(D):
    acc[d] = acc[d] * old + p * v[j, d]
m = new
"""
IN_BRANCH = """
if m < s:
    scale = math.exp(m - s)
    l *= scale
    for d in range(D):
        acc[d] *= scale
    m = s
p = math.exp(s - m)
l += p
for d in range(D):
    acc[d] += p * v[j, d]
"""
LINE = """
new = max(m, x[t])
l = l * math.exp(m - new) + math.exp(x[t] - new)
m = new
"""
CHANGED = {
    "plain": (ROWS, PLAIN, {}),
    "sink": (ROWS, PLAIN, {"begin": "0.0", "total": "1.0"}),
    "in_place": (ROWS, IN_PLACE, {}),
    "branch": (ROWS, BRANCH, {"begin": "-1e30"}),
    "elements": (SCORES, ELEMENTS, {}),
    "triangle": (SCORES, ELEMENTS, {"stop": "i + 1"}),
    "in_branch": (SCORES, IN_BRANCH, {}),
    "masked": (SCORES, "if k[j, 0] > 9.0:\n    s = -np.inf\n" + ELEMENTS.lstrip(), {}),
    "line": (SUMS, LINE, {}),
    "from_first": (SUMS, LINE, {"begin": "x[0]", "total": "1.0", "start": "1"}),
}
LEFT = {
    "told": (SUMS, LINE, {"end": "m * l"}),
    "carried": (ROWS, PLAIN.replace("max(m, x[t])", "max(m, x[t] + 0.1 * l)"), {}),
    "one_scaled": (ROWS, PLAIN.replace("acc * old", "acc"), {}),
    "twice": (ROWS, PLAIN.replace("acc * old", "acc * old * old"), {}),
    "some": (SCORES, ELEMENTS.replace("range(D)", "range(D // 2)"), {}),
    "one_infinite": (
        SUMS,
        "if x[t] > m:\n    l = l * np.exp(m - x[t]) + 1.0\n    m = x[t]\nelse:\n    l += np.exp(x[t] - m)\n",
        {},
    ),
    "another": (ROWS, BRANCH.replace("    m = x[t]\n", "    m = x[t]\n    l = l + 0.5\n"), {}),
    "apart": (SUMS, "m = max(m, x[t])\n", {"end": "m + np.log(l + np.sum(np.exp(x - m)))"}),
    "behind": (SUMS, LINE, {"end": "new + np.log(l)", "begin": "x[0]\n    new = m", "total": "1.0", "start": "1"}),
}
ALL = {**CHANGED, **LEFT}


def text() -> str:
    layers = []
    for name, (form, body, told) in ALL.items():
        depth = 12 if form is SCORES else 8
        lines = "".join(f"{' ' * depth}{line}\n" for line in body.strip().split("\n"))
        given = {"begin": "-np.inf", "total": "0.0", "start": "0", "stop": "T", "end": "m + np.log(l)"}
        layers.append(form.format(name=name, body=lines, **{**given, **told}))
    return HEAD + "\n".join(layers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rescaled")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "rescaled_of", text())


@pytest.fixture(scope="module")
def module(folder, package):
    return read_module(folder / "rescaled_of.py")


def drawn(name: str, steps: int, width: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(steps * 31 + width)
    form = ALL[name][0]
    shapes = {ROWS: [(5, steps), (5, steps, width)], SUMS: [(5, steps)], SCORES: [(5, steps, width)] * 3}[form]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def scores_of(function) -> list[For]:
    """The loops that go over the scores."""
    return [s for s in walk_stmts(function.body) if isinstance(s, For) and s.var in ("t", "j")]


def exponentials(loops) -> int:
    tops = (top for loop in loops for s in loop.body for top in stmt_exprs(s))
    return sum(isinstance(e, Call) and e.op == "exp" for top in tops for e in walk(top))


@pytest.mark.parametrize("name", ALL)
def test_what_changes(module, name):
    (function,) = (layer.predict for layer in module.layers if layer.name == name)
    loops = scores_of(function)
    assert len(loops) == (2 if name in CHANGED else 1)
    assert name in LEFT or exponentials(loops) == 1, "of what is taken off, none of what scales"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [(7, 4), (1, 3), (33, 20)], ids=str)
def test_numpy_and_differences(package, name, size):
    layer = getattr(package, name)
    values = drawn(name, *size, np.float64)
    agrees(layer, values, np.random.default_rng(3), 1e-11, 2e-6, exact=False)


@pytest.mark.parametrize("name", CHANGED)
def test_bits_of_threads(package, name):
    same_bits(getattr(package, name), drawn(name, 40, 24, np.float32))


@pytest.mark.parametrize("name", [n for n in ALL if ALL[n][0] is not SCORES])
@pytest.mark.parametrize("infinity", [-np.inf, np.inf, np.nan, 1e4, -1e4])
@pytest.mark.parametrize("at", ["first", "second", "two", "last", "all"])
def test_infinite_scores(package, name, infinity, at):
    layer = getattr(package, name)
    for dtype, close in ((np.float64, 1e-11), (np.float32, 1e-5)):
        values = drawn(name, 9, 4, dtype)
        values[0][:, {"first": [0], "second": [1], "two": [0, 1], "last": [8], "all": slice(None)}[at]] = infinity
        with np.errstate(all="ignore"):
            want = layer.reference(*(v.astype(float) for v in values))
        np.testing.assert_allclose(layer(*values), want, close, close)


@pytest.mark.parametrize("name", [n for n in ALL if ALL[n][0] is ROWS])
def test_no_scores(package, name):
    layer, values = getattr(package, name), drawn(name, 0, 4, np.float64)
    with np.errstate(all="ignore"):
        want = layer.reference(*values)
    np.testing.assert_array_equal(layer(*values), want)


@pytest.mark.parametrize("at", [[0], [1], [0, 1], [8], slice(None)], ids=str)
def test_infinite_scores_that_are_kept_in_a_row(package, at):
    """NumPy's nan where the first is: what comes then is lost."""
    for dtype, close in ((np.float64, 1e-11), (np.float32, 1e-5)):
        q, k, v = drawn("masked", 9, 4, dtype)
        k[:, at, 0] = 10.0
        with np.errstate(all="ignore"):
            want = package.masked.reference(*(a.astype(float) for a in (q, k, v)))
        assert np.isnan(want).all() == (at == [0] or at == [0, 1] or at == slice(None))
        np.testing.assert_allclose(package.masked(q, k, v), want, close, close)
