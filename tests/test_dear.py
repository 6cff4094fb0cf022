"""What is dear in a `while` is left to the reverse, on a tape beside what the loop carries: which values, and that each
is the right one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import gradient_source, read_module
from layerc.transpile.ir import Check, Const, Store
from layerc.transpile.passes.tree import roots, walk

LOOP = """
@layer
def {name}(x: real["N"], w: real["{shape}"], most: int = 3) -> real["N"]:
    v, b, k = 1.0 * x, 0.5 * x, 0
    while k < most:
{body}
        k += 1
    return v + b
"""
BODIES = {
    "rebound": """
        a = np.sin(v) * w + np.cos(v)
        v = a + 0.5 * np.cos(v)
        v = np.sin(v) * x + np.cos(a)""",  # the sine of what enters is not that of what the loop makes of it
    "meeting": """
        a = np.sin(v) * w + np.cos(v)
        v = a + 0.5 * np.cos(v) + 0.1 * np.mean(a)
        v = 0.3 * x * np.sin(v) + np.cos(a)""",  # elements do: else the forward makes their derivatives
    "carried_on": """
        a = np.sin(v) * w
        v = a + 0.5 * x
        b = np.sin(v) * b + np.sin(v)""",
    "rebound_in_a_loop": """
        a = np.tanh(v) * w + np.tanh(v) * np.tanh(v)
        for j in range(2):
            v = v + 0.1 * np.tanh(v)
        v = v + a""",
    "rebound_in_a_branch": """
        a = np.tanh(v) * w
        if k % 2 == 0:
            v = v * 0.5 + a
            v = np.tanh(v) * v + np.tanh(v)
        v = v + a * np.tanh(v)""",
    "written": """
        s = np.exp(-v * v)
        v[0] = v[0] * 0.5 + np.sum(s)
        v = 0.3 * np.exp(-v * v) * w + s""",
    "nested": """
        t = np.tanh(v)
        if k % 2 == 0:
            v = t * w + np.sin(v)
        else:
            v = np.sin(t) + v
        for j in range(2):
            v = v + 0.1 * np.tanh(v) * t""",
    "products": """
        z = w @ v
        v = np.tanh(z) / np.sqrt(1.0 + np.sum(z * z))""",
}
APART = """
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


@layer
def until(x: real["N"], most: int = 3) -> real["N"]:
    # Neighbours end at different turns, and take different ways.
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        a, k = x[i], 0
        while k < most and a < 1.0 + np.cos(x[i]):
            e = np.exp(-0.5 * a * a)
            if e > 0.7:
                a = a + e * np.sin(e)
            else:
                a = a + 0.5 * np.tanh(e + x[i] * x[i]) + 0.1
            k += 1
        y[i] = a
    return y


@layer
def counted(x: real["N"], w: real["N N"], most: int = 3) -> real["N"]:
    # As often as only running it tells: lists, too.
    y = 1.0 * x
    for k in range(int(np.sum(x) * 0.0) + most):
        z = w @ y
        s = np.sum(z * z)
        y = np.tanh(z) / (1.0 + s) + x
    return y
"""
LOOPS = [
    LOOP.format(name=name, shape="N N" if name == "products" else "N", body=body.strip("\n"))
    for name, body in BODIES.items()
]
TEXT = "\n".join(["import numpy as np\nfrom layerc import layer, real\n", *LOOPS, APART])
NAMES = (*BODIES, "scalar", "until", "counted")


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
    matrix = [(rows, size), (rows, size, size)]
    shapes = {"products": matrix, "counted": matrix, "scalar": [(rows, size)], "until": [(rows, size)]}
    return [rng.standard_normal(s).astype(dtype) for s in shapes.get(name, [(rows, size)] * 2)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("most", [0, 1, 7, 8, 9, 11])
@pytest.mark.parametrize(("dtype", "tight", "close"), [(np.float64, 1e-9, 1e-4), (np.float32, 1e-3, 2e-2)])
def test_values_and_gradients(package, name, most, dtype, tight, close):
    """On the tape, at its end, and beyond it."""
    layer = Called(getattr(package, name), most)
    for rows, size in ((1, 1), (3, 5), (5, 33)):
        given = values(name, rows, size, dtype)
        agrees(layer, given, np.random.default_rng(most), tight, close, exact=name not in ("products", "counted"))


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
    for one, other in zip(found, want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(one[0], other, 1e-12, 1e-12)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("dear_source") / "dear.py"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def source(file):
    module = read_module(file)
    return lambda name: gradient_source(module, name)


def test_what_is_left(source):
    """The sine of what enters is computed once, and that of another value of the variable is another."""
    forward, back = source("rebound").split("for _ in range(trips)")
    assert "sin_v_saved.append(sin_v)" in forward
    assert "np.sin(v)" not in "".join(line for line in back.splitlines() if "# " not in line)
    assert "v_2_saved.append(v_2)" in forward
    for name, values in (("products", {"z", "tanh_z"}), ("counted", {"z", "s"}), ("rebound_in_a_loop", {"tanh_v"})):
        assert all(f"{value}_saved.append({value})" in source(name) for value in values), name


def test_tapes_are_written_as_they_come(file):
    """Nothing fills them before, and no place of them is checked."""
    kernel = kernels_in(file)["meeting", "vjp"]
    tapes = {b.name for b in kernel.buffers if b.name.endswith("_tape")}
    assert tapes == {"v_tape", "sin_v_tape", "a_tape", "v_2_tape", "sin_v_2_tape"}
    root = roots(kernel)
    stores = [s for s in walk(kernel.body) if isinstance(s, Store) and root[s.buffer] in tapes]
    assert stores
    assert not [s for s in stores if isinstance(s.value, Const)]
    assert not [s for s in walk(kernel.body) if isinstance(s, Check)]


def test_scalars_of_elements_are_left(source):
    """In the loop over elements, whose reverse runs it again: to where the last turn is the first to be asked for."""
    for name, left in (("scalar", "prod"), ("until", "e")):
        forward, back = source(name).split("for _ in range(trips")
        assert f"{left}_saved.append({left})" in forward
        assert f"{left} = {left}_saved.pop()" in back
    assert "np.exp(" not in "".join(line.split("# ")[0] for line in back.splitlines())
