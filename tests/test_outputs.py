"""Outputs stand in for what the forward made them of: nothing is run again, and nothing is saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.ir import For, Grow
from layerc.transpile.layers import check_file
from layerc.transpile.passes.tree import has, walk

SOURCE = '''
import numpy as np
from layerc import Param, layer, real


@layer
def factor(a: real["N N"]) -> real["N N"]:
    """Cholesky's, by its rows: the diagonal is written in one branch, all else in the other."""
    l = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, j] = np.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l


@layer
def apart(a: real["N N"]) -> real["N N"]:
    """The same with the branches the other way round, and two conditions in one."""
    l = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            if j <= i and i != j:
                l[i, j] = (a[i, j] - np.sum(l[i, :j] * l[j, :j])) / l[j, j]
            elif not (j < i or j > i):
                l[i, j] = np.sqrt(a[i, j] - np.sum(l[i, :j] * l[i, :j]))
    return l


@layer
def path(x: real["T"], gap: Param[real]) -> real["T+1"]:
    """Each place is written once, and read afterwards."""
    y = np.zeros(x.shape[0] + 1)
    for t in range(x.shape[0]):
        y[t + 1] = np.tanh(y[t]) * gap + x[t] * y[0]
    return y


@layer
def gone_on(x: real["T"]) -> tuple[real["T"], real[""]]:
    """What is returned is written to again: it is the last content that is given."""
    y = np.sin(x)
    total = np.sum(y * y)
    y[0] = total * x[0]
    return y, total


@layer
def chosen(x: real["T"]) -> real["T"]:
    """The gradient asks which of the values it computes again was the largest."""
    y = np.zeros_like(x)
    for t in range(x.shape[0]):
        y[t] = np.max(np.sin(x[: t + 1]))
    return y


@layer
def newton(z: real["N"]) -> real["N"]:
    """A `while` for each element: some take more steps than a tape would hold."""
    y = np.empty_like(z)
    for i in range(z.shape[0]):
        w = 1.0 + 0.0 * z[i]
        for _ in range(1):
            step, count = 1.0, 0
            while abs(step) > 1e-12 * w and count < 40:
                step = (w * w - z[i]) / (2 * w)
                w = w - step
                count += 1
        y[i] = w
    return y
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("outputs"), "outputs_of", SOURCE)


def draw(rng, name, examples, size, real):
    if name in ("factor", "apart"):
        m = rng.standard_normal((examples, size, size))
        return [(m @ np.swapaxes(m, 1, 2) + size * np.eye(size)).astype(real)]
    if name == "newton":
        return [np.exp(6 * rng.random((examples, size))).astype(real)]
    x = rng.standard_normal((examples, size)).astype(real)
    return [x, np.asarray(0.7, real)] if name == "path" else [x]


NAMES = ("factor", "apart", "path", "gone_on", "chosen", "newton")


@pytest.mark.parametrize("name", [n for n in NAMES if n != "gone_on"])
@pytest.mark.parametrize(("examples", "size"), [(1, 1), (3, 4), (16, 6), (21, 5)])
def test_values_and_gradients(package, name, examples, size):
    rng = np.random.default_rng(examples + size)
    agrees(getattr(package, name), draw(rng, name, examples, size, np.float64), rng, 1e-10, 1e-5)


def test_an_output_that_is_written_to_again(package):
    x = np.random.default_rng(3).standard_normal((4, 5))
    (y, total), pullback = package.gone_on.vjp(x)
    dy, dt = np.ones_like(y), np.full_like(total, 0.3)
    gradient = pullback(dy, dt)
    gradient = gradient[0] if isinstance(gradient, (tuple, list)) else gradient
    way = np.random.default_rng(4).standard_normal(x.shape)

    def value(s):
        y, total = package.gone_on.reference(x + s * way)
        return np.sum(y * dy) + np.sum(total * dt)

    np.testing.assert_allclose(np.sum(gradient * way), (value(1e-6) - value(-1e-6)) / 2e-6, 1e-7)


@pytest.mark.parametrize("name", ["factor", "path", "newton"])
@pytest.mark.parametrize("examples", [1, 40])
def test_bits_do_not_hang_on_threads(package, name, examples):
    same_bits(getattr(package, name), draw(np.random.default_rng(1), name, examples, 60, np.float32))


@pytest.mark.parametrize(("name", "given"), [("factor", True), ("apart", True), ("path", True), ("chosen", False)])
def test_what_the_gradient_is_given(name, given):
    text = gradient_file(check_file(Path("outputs_of.py"), SOURCE))
    text = text[text.index(f"def d_{name}(") :].partition("\n\n\n")[0]
    assert (" y: real" in text) == given
    if given:
        assert "_saved" not in text
        assert sum(line.strip().startswith("for ") for line in text.split("\n")) <= 3, "the forward is run again"


def test_elements_with_lists_of_their_own_are_shared_by_threads(tmp_path):
    path = tmp_path / "outputs_of.py"
    path.write_text(SOURCE)
    body = kernels_in(path)["newton", "backward"].body
    shared = [s for s in walk(body) if isinstance(s, For) and s.parallel and has(s.body, Grow)]
    assert any("N" in s.hi.symbols() for s in shared), "only the batch is"
