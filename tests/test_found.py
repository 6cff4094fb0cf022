"""What a loop keeps in a few places, of all that it has seen, has its derivative where it was found; and what is more
than kept has it as before."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

HEAD = "import numpy as np\nfrom layerc import Param, i64, layer, real\n"
KEEPS = """
            j = 2
            while j > 0 and near[j - 1] > v:
                near[j] = near[j - 1]
                j -= 1
            near[j] = v
"""
START = """
    y = np.zeros(x.shape[0])
    near = np.zeros(3)
    for n in range(x.shape[0]):
        for k in range(3):
            near[k] = 9.0
"""
ENDS = """
        for k in range(3):
            y[n] += np.sin(near[k]) * (k + 1)
    return y
"""
# What is before the loop over p, the loop's head, what makes v in it, and what is behind it.
ALL = "for p in range(x.shape[1]):"
BODIES = {
    "plain": ("", ALL, ["v = x[n, p] * w[p]"], ""),
    "skips": ("", ALL, ["v = x[n, p] * w[p]", "if v >= near[2]:", "    continue"], ""),
    "beside": ("", "for p in range(1, x.shape[1] - 1):", ["q = p + 1", "v = x[n, q] * w[q - 2]"], ""),
    "rows": ("", ALL, ["v = np.sum(x[n] * w[p])"], ""),
    "slices": ("", "for p in range(x.shape[1] - 1):", ["v = np.sum(x[n, p : p + 2] * w[p])"], ""),
    "carried": ("old = 0.1 * n", ALL, ["v = x[n, p] * w[p] + old", "old = 0.5 * v"], ""),
    "earlier": ("old = 0.1 * n", ALL, ["v = old + 0.0", "old = x[n, p] * w[p]"], ""),
    "summed": ("", ALL, ["v = 0.1 * p", "for i in range(2):", "    v += x[n, i] * w[p]"], ""),
    "changed": ("z = np.cos(x[n])", ALL, ["z[p] = z[p - 1] + x[n, p]", "v = z[p] * w[p]"], ""),
    "doubled": ("", ALL, ["v = x[n, p] * w[p]", "near[1] *= 1.5"], ""),
    "used": ("", ALL, ["v = x[n, p] * w[p]", "y[n] += 0.1 * near[0] * v"], ""),
    "written": ("", ALL, ["v = x[n, p] * w[p]"], "near[1] = near[0] * near[2]"),
    "whole": ("", ALL, ["v = x[n, p] * w[p]"], "y[n] = np.sum(near**2)"),
}
LATER = '''
@layer
def lasting(x: real["N P"], w: Param[real["P"]]) -> real["N"]:
    """Filled once: it keeps what earlier rows have had."""
    y = np.zeros(x.shape[0])
    near = np.zeros(3)
    for n in range(x.shape[0]):
        for p in range(x.shape[1]):
            v = x[n, p] * w[p]
            j = 2
            while j > 0 and near[j - 1] > v:
                near[j] = near[j - 1]
                j -= 1
            near[j] = v
        y[n] = near[0] * near[2]
    return y


@layer
def behind(x: real["N P"], w: Param[real["P"]]) -> real["N"]:
    """Asked again behind the loop around."""
    y = np.zeros(x.shape[0])
    near = np.zeros(3)
    for n in range(x.shape[0]):
        for k in range(3):
            near[k] = 9.0
        for p in range(x.shape[1]):
            v = x[n, p] * w[p]
            j = 2
            while j > 0 and near[j - 1] > v:
                near[j] = near[j - 1]
                j -= 1
            near[j] = v
        y[n] = near[0] * near[2]
    return y + near[1]


@layer
def alone(x: real["P"], w: Param[real["P"]]) -> real["3"]:
    """In no loop, of all that there is, in order."""
    near = np.zeros(3)
    y = np.zeros(3)
    for p in range(x.shape[0]):
        v = np.exp(x[p]) * w[p]
        j = 2
        while j > 0 and near[j - 1] < v:
            near[j] = near[j - 1]
            j -= 1
        near[j] = v
    for k in range(3):
        y[k] = near[k] ** 2
    return y


@layer
def in_order(x: real["P"], w: Param[real["P"]]) -> real["P"]:
    """As many as there are."""
    kept = np.zeros(x.shape[0])
    y = np.zeros(x.shape[0])
    for p in range(x.shape[0]):
        j = p - 1
        while j >= 0 and kept[j] > x[p]:
            kept[j + 1] = kept[j]
            j -= 1
        kept[j + 1] = x[p]
    for k in range(x.shape[0]):
        y[k] = kept[k] * w[k]
    return y
'''
FOUND = ("plain", "skips", "beside", "rows", "alone", "in_order")
NAMES = (*BODIES, "lasting", "behind", "alone", "in_order")


def text() -> str:
    layers = []
    for name, (before, head, made, after) in BODIES.items():
        signature = f'\n@layer\ndef {name}(x: real["N P"], w: Param[real["P"]]) -> real["N"]:'
        lines = "".join(f"            {line}\n" for line in made)
        loop = f"        {before or 'pass'}\n        {head}\n{lines}{KEEPS[1:]}"
        layers.append(f"{signature}{START}{loop}        {after or 'pass'}\n{ENDS[1:]}")
    return HEAD + "\n".join(layers) + LATER


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("found")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "found_of", text())


def draw(name: str, n: int, p: int, batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(10 * n + p)
    shape = (batch, p) if name in ("alone", "in_order") else (batch, n, p)
    return [rng.uniform(0.2, 2, shape), rng.uniform(0.5, 2, p)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "p", "batch"), [(1, 2, 1), (3, 9, 2), (2, 17, 16)])
def test_values_and_gradients(package, name, n, p, batch):
    agrees(getattr(package, name), draw(name, n, p, batch), np.random.default_rng(p), 1e-11, 2e-5)


@pytest.mark.parametrize("name", FOUND)
def test_none_and_no_numbers(package, name):
    layer = getattr(package, name)
    if name != "rows":
        none = draw(name, 2, 0, 2)
        np.testing.assert_array_equal(layer(*none), layer.reference(*none))
        assert all(g.shape == v.shape for g, v in zip(layer.vjp(*none)[1](layer(*none)), none, strict=True))
    values = draw(name, 2, 7, 2)
    values[0].reshape(-1)[::4] = np.nan
    np.testing.assert_allclose(layer(*values), layer.reference(*values), 1e-12)


def test_of_equal_ones_the_kept_one_has_it(package):
    x, w = np.full((1, 1, 5), 2.0), np.ones(5)
    _, pullback = package.plain.vjp(x, w)
    found, _ = pullback(np.ones((1, 1)))
    want = np.zeros(5)
    want[[0, 1, 4]] = np.cos(2.0) * np.array([1, 2, 3])  # each later one goes over the last place
    np.testing.assert_allclose(found[0, 0], want, 1e-12)


@pytest.mark.parametrize("name", ["plain", "skips", "alone"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [v.astype(np.float32) for v in draw(name, 5, 9, 17)])


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_written_so(folder, package, name):
    """One look at each place, where all that happens is that something is kept."""
    source = (folder / "found_of_compiled" / "gradients.py").read_text()
    body = source.split(f"def d_{name}(")[1].split("\ndef ")[0]
    assert ("_found" in body) == (name in FOUND)
    assert not (name in FOUND and "reversed(range(P))" in body and name != "in_order")
