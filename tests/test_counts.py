"""Whole numbers that each turn of a loop makes larger by as much follow from the turn; others stay variables."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.build.driver import compile_module, read_module
from layerc.transpile.dims import Dim
from layerc.transpile.errors import InvalidFile
from layerc.transpile.ir import Check, For
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def laid_out(x: real["H W"]) -> real["2*H*W"]:
    """Two loops, one after the other, count on."""
    h, w = x.shape
    y = np.zeros(2 * h * w)
    k = 0
    for i in range(h):
        for j in range(w):
            y[k] = x[i, j] * x[i, j]
            k += 1
    for i in range(h):
        for j in range(w):
            y[k] = np.sin(x[i, j])
            k = k + 1
    return y


@layer
def pairs(x: real["N"]) -> real["N*N"]:
    """Each turn of the outer loop adds less than the one before."""
    n = x.shape[0]
    y = np.zeros(n * n)
    k = 0
    for i in range(n):
        for j in range(i + 1, n):
            y[k] = x[i] * x[j]
            k += 1
    return y


@layer
def downwards(x: real["N"]) -> real["N"]:
    y = np.zeros(x.shape[0])
    k = x.shape[0] - 1
    for v in x:
        y[k] = v * v + k
        k -= 1
    return y + k


@layer
def steps(x: real["N"], at: int = 1) -> real["3"]:
    """By twos, from behind, and not at all."""
    k, m, never = at, 0, 5
    total = np.zeros(3)
    for i in range(at, x.shape[0], 2):
        total[0] += x[i] * k
        k += 2
    for i in reversed(range(x.shape[0])):
        total[1] += x[i] * m
        m += 1
    for i in range(4, 2):
        total[2] += x[i] * never
        never += 1
    return total + never * k


@layer
def slices(x: real["N"]) -> real["N"]:
    n = x.shape[0]
    y = np.zeros(n)
    k = 0
    for i in range(n // 3):
        y[k:k + 3] = np.cumsum(x[k:k + 3] ** 2)
        k += 3
    return y


@layer
def sums_of_counts(x: real["N"]) -> real["N"]:
    """The second is the sum of the first; the third doubles."""
    y = np.zeros(x.shape[0])
    k, total, twice = 0, 0, 1
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * total + k * x[i] + twice % 7
        k += 1
        total += k
        twice += twice
    return y


@layer
def found(x: real["N"]) -> real["N"]:
    """Nobody knows how many."""
    y = np.zeros(x.shape[0])
    k = 0
    for v in x:
        if v > 0:
            y[k] = v * v
            k += 1
    return y


@layer
def left_out(x: real["N"]) -> real["N"]:
    y = np.zeros(x.shape[0])
    k = 0
    for i in range(x.shape[0]):
        if x[i] < 0:
            continue
        y[k] = x[i] ** 2
        k += 1
        if k > 3:
            break
    return y


@layer
def asked(x: real["N"]) -> real["N"]:
    """What is true of the first turn only."""
    y = np.zeros(x.shape[0])
    last = 0.0
    k = 0
    for v in x:
        if k == 0:
            last = v
        elif k % 2 == 1:
            last = last * v
        y[k] = last
        k += 1
    return y


@layer
def searched(x: real["N"]) -> real["N"]:
    """A loop inside that ends somewhere."""
    y = np.zeros(x.shape[0])
    k = 0
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            if x[j] > 0.5:
                break
            y[k] += x[j] * x[i]
        k += 1
    return y
'''
NAMES = [line[4 : line.index("(")] for line in TEXT.split("\n") if line.startswith("def ")]
VARIABLES = {"found", "left_out"}  # whose counts stay numbers that are kept


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("counts")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "counts_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 20])
def test_values_and_gradients(package, name, n):
    rng = np.random.default_rng(n)
    shape = (2, n, 3) if name == "laid_out" else (2, n)
    agrees(getattr(package, name), [rng.standard_normal(shape)], rng, 1e-11, 3e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_keeps_no_count(package, folder, name):
    text = package.__file__.replace("__init__.py", "gradients.py")
    with open(text, encoding="utf-8") as file:
        gradient = file.read().split(f"def d_{name}(")[1].split("\ndef ")[0]
    assert ("k_saved" in gradient) == (name in VARIABLES), gradient


@pytest.mark.parametrize("name", ["laid_out", "downwards", "slices"])
def test_turns_are_their_own_and_their_places_known(package, folder, name):
    for (layer, _), kernel in kernels_in(folder / "counts_of.py").items():
        if layer == name:
            assert not [s for s in walk(kernel.body) if isinstance(s, Check) and "k" in str(s.info)], kernel.name
            ours = [Dim.of(extent) for extent in ("N", "H", "W")]
            lone = [s for s in walk(kernel.body) if isinstance(s, For) and s.kind == "seq" and s.hi in ours]
            assert name == "slices" or not lone, kernel.name


def test_a_mistake_beside_a_count_is_told_once(tmp_path):
    """The turn that is looked at first is any turn then."""
    wrong = TEXT.split("@layer")[1].replace("np.sin(x", "np.sin(z")
    (tmp_path / "wrong.py").write_text(TEXT.split("@layer")[0] + "@layer" + wrong)
    with pytest.raises(InvalidFile) as caught:
        compile_module(read_module(tmp_path / "wrong.py"))
    assert str(caught.value).count("error[") == str(caught.value).count("z is not defined") == 1
