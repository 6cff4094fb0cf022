"""Powers of quarters are square roots; all others are what they were."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees

from layerc.transpile.ir import Op
from layerc.transpile.passes.tree import own_exprs, parts, walk

ROOTS = {"a": 0.25, "b": 0.75, "c": 1.5, "d": -0.5, "e": -0.25, "f": -0.75, "g": -1.5}
OTHERS = {"h": 0.3, "i": 2.5, "j": 1.25}
HEAD = "import numpy as np\nfrom layerc import layer, real\n"
TEXT = HEAD + "".join(
    f'\n\n@layer\ndef {name}(x: real["N"]) -> real["N"]:\n    return x ** {power}\n'
    for name, power in (ROOTS | OTHERS).items()
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("powers")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "powers_of", TEXT)


@pytest.mark.parametrize("name", ROOTS | OTHERS)
def test_values_and_gradients(package, name):
    x = np.random.default_rng(0).uniform(0.1, 3, (3, 37))
    agrees(getattr(package, name), [x], np.random.default_rng(1), 1e-13, 1e-7)


@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_edges_are_those_of_numpy(package, name, dtype):
    x = np.array([[0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -1.0, np.finfo(dtype).max, np.finfo(dtype).tiny]], dtype)
    with np.errstate(all="ignore"):
        want = np.power(x, np.asarray(ROOTS[name], dtype))
    np.testing.assert_allclose(getattr(package, name)(x), want, 4 * np.finfo(dtype).eps, 0)
    assert np.array_equal(np.signbit(getattr(package, name)(x[:, :5])), np.signbit(want[:, :5]))


@pytest.mark.parametrize("name", ROOTS | OTHERS)
def test_which_are_roots(folder, name):
    for (layer, method), kernel in kernels_in(folder / "powers_of.py").items():
        if layer == name and method == "predict":
            ops = {p.op for s in walk(kernel.body) for e in own_exprs(s) for p in parts(e) if isinstance(p, Op)}
            assert ("power" in ops) == (name in OTHERS)
            assert ("power_quarters" in ops) == (name in ROOTS)
