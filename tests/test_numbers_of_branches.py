"""A number that both ways of a branch make is chosen, also where one of them adds to a parameter's gradient, too."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, If
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def slopes(x: real["C H W"], a: Param[real["C"]]) -> real["C H W"]:
    y = np.empty_like(x)
    for c in range(x.shape[0]):
        for h in range(x.shape[1]):
            for w in range(x.shape[2]):
                v = x[c, h, w]
                if v > 0:
                    y[c, h, w] = v
                else:
                    y[c, h, w] = a[c] * v
    return y


@layer
def in_line(x: real["N C"], a: Param[real["C"]]) -> real["N C"]:
    y = np.empty_like(x)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            v = x[n, c]
            y[n, c] = v if v > 0 else a[c] * v
    return y


@layer
def both_ways(x: real["N C"], a: Param[real["C"]], b: Param[real["C"]]) -> real["N C"]:
    y = np.empty_like(x)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            if x[n, c] > 0.5:
                t = a[c] * x[n, c]
                u = b[c]
            else:
                t = b[c] + x[n, c]
                u = a[c] * a[c]
            y[n, c] = t * u
    return y


@layer
def of_what_is_added(x: real["N C"]) -> real["N C"]:
    """No choice may be made here: what the branch adds is what its number is."""
    y = np.zeros_like(x)
    total = 0.0
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            if x[n, c] > 0:
                total += x[n, c]
                t = total
            else:
                t = 1.0
            y[n, c] = t
    return y
'''
NAMES = ["slopes", "in_line", "both_ways", "of_what_is_added"]


def draw(name: str, batch: int, dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(batch)
    shape = (3, 5, 37) if name == "slopes" else (6, 37)
    values = [rng.standard_normal((batch, *shape))]
    for _ in range({"of_what_is_added": 0, "both_ways": 2}.get(name, 1)):
        values.append(rng.standard_normal(shape[0] if name == "slopes" else shape[-1]))
    return [v.astype(dtype) for v in values]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("numbers")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "numbers_of", TEXT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [0, 1, 3, 20])
def test_values_and_gradients(package, name, batch):
    agrees(getattr(package, name), draw(name, batch), np.random.default_rng(1), 1e-10, 2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(name, 40, np.float32))


@pytest.mark.parametrize("name", ["slopes", "in_line", "both_ways"])
def test_pixels_have_no_order_and_no_branch(folder, package, name):
    kernel = kernels_in(folder / "numbers_of.py")[name, "backward"]
    loops = [s for s in walk(kernel.body) if isinstance(s, For) and s.var.split("_")[0] not in ("b", "chunk")]
    assert loops
    assert all(s.kind == "map" for s in loops)
    innermost = [s for s in loops if not any(isinstance(inner, For) for inner in walk(s.body))]
    assert not any(isinstance(inner, If) for s in innermost for inner in walk(s.body))
