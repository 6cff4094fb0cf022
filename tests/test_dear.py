"""What is dear in a `while` is left to the reverse, on a tape beside what the loop carries: which values, and that each
is the right one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import gradient_source, read_module

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def rebound(x: real["N"], w: real["N"], most: int = 3) -> real["N"]:
    """The sine of what enters is not that of what the loop makes of it."""
    y, k = 1.0 * x, 0
    while k < most:
        a = np.sin(y) * w + np.cos(y)
        y = a + 0.5 * np.cos(y)
        y = np.sin(y) * x + np.cos(a)
        k += 1
    return y


@layer
def written(x: real["N"], w: real["N"], most: int = 3) -> real["N"]:
    """A store in between."""
    y, k = 1.0 * x, 0
    while k < most:
        s = np.exp(-y * y)
        y[0] = y[0] * 0.5 + np.sum(s)
        y = 0.3 * np.exp(-y * y) * w + s
        k += 1
    return y


@layer
def nested(x: real["N"], w: real["N"], most: int = 3) -> real["N"]:
    """Beside a branch and a loop, which have dear values of their own."""
    y, k = 1.0 * x, 0
    while k < most:
        t = np.tanh(y)
        if k % 2 == 0:
            y = t * w + np.sin(y)
        else:
            y = np.sin(t) + y
        for j in range(2):
            y = y + 0.1 * np.tanh(y) * t
        k += 1
    return y


@layer
def products(x: real["N"], w: real["N N"], most: int = 3) -> real["N"]:
    y, k = 1.0 * x, 0
    while k < most:
        z = w @ y
        y = np.tanh(z) / np.sqrt(1.0 + np.sum(z * z))
        k += 1
    return y


@layer
def scalar(x: real["N"], most: int = 3) -> real["N"]:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, k = x[i], 0
        while k < most:
            a = np.sin(a) + 0.2 * np.cos(a) * x[i]
            k += 1
        y[i] = a
    return y
'''
NAMES = ("rebound", "written", "nested", "products", "scalar")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("dear"), "dear", TEXT)


class Called:
    """A layer with its loop's length."""

    def __init__(self, layer, most: int) -> None:
        self.layer, self.most = layer, most

    def __call__(self, *values):
        return self.layer(*values, most=self.most)

    def vjp(self, *values):
        return self.layer.vjp(*values, most=self.most)

    def reference(self, *values):
        return self.layer.reference(*values, most=self.most)


def values(name: str, rows: int, size: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(rows * size)
    shapes = {"products": [(rows, size), (rows, size, size)], "scalar": [(rows, size)]}
    return [rng.standard_normal(s).astype(dtype) for s in shapes.get(name, [(rows, size)] * 2)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("most", [0, 1, 7, 8, 9, 11])
@pytest.mark.parametrize(("dtype", "tight", "close"), [(np.float64, 1e-9, 1e-4), (np.float32, 1e-3, 2e-2)])
def test_values_and_gradients(package, name, most, dtype, tight, close):
    """On the tape, at its end, and beyond it."""
    layer = Called(getattr(package, name), most)
    for rows, size in ((1, 1), (3, 5), (5, 33)):
        given = values(name, rows, size, dtype)
        agrees(layer, given, np.random.default_rng(most), tight, close, exact=name != "products")


@pytest.mark.parametrize("name", ["rebound", "products"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), values(name, 9, 40, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_written_gradient_is_the_compiled_one(package, name):
    given = [v[0] for v in values(name, 1, 6, np.float64)]
    space: dict = {}
    exec(Path(package.__file__).with_name("gradients.py").read_text(), space)
    _, pullback = getattr(package, name).vjp(*[v[None] for v in given])
    dy = np.random.default_rng(1).standard_normal(given[0].shape)
    found = pullback(dy[None])
    want = space[f"d_{name}"](*given, dy, 3)
    for one, other in zip(found, want if isinstance(want, tuple) else (want,), strict=False):
        np.testing.assert_allclose(one[0], other, 1e-12, 1e-12)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("dear_source") / "dear.py"
    path.write_text(TEXT)
    module = read_module(path)
    return lambda name: gradient_source(module, name)


def test_what_is_left(source):
    """The sine of what enters is computed once, and that of another value of the variable is another."""
    forward, back = source("rebound").split("for _ in range(trips)")
    assert "sin_y_saved.append(sin_y)" in forward
    assert "np.sin(y)" not in "".join(line for line in back.splitlines() if "# " not in line)
    assert "y_2_saved.append(y_2)" in forward
    assert {name for name in ("z", "tanh_z") if f"{name}_saved.append({name})" in source("products")} == {"z", "tanh_z"}


def test_scalars_are_computed_again(source):
    """A place of a list for each of them would cost what it spares."""
    assert "sin_a_saved" not in source("scalar")
