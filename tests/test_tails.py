"""What a vectorised loop leaves is part of a vector: lanes beyond the end touch nothing, and count for nothing."""

from __future__ import annotations

import ctypes
import platform
import re
import subprocess

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.transpile.emit import pieces

pytestmark = pytest.mark.optimised

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def chain(x: real["D"], p: Param[real["D"]]) -> real["D"]:
    return np.exp(x) * np.tanh(p) - 1 / x


@layer
def losses(x: real["D"]) -> tuple[real[""], real[""], real[""], real[""]]:
    """Of 0, every term is infinite or no number."""
    return np.sum(np.log(x) / x), np.prod(np.log(x) + 2), np.max(np.tanh(1 / x) - x), np.min(np.log(x) / np.sin(x))


@layer
def rows(x: real["T D"], shift: i32["D"]) -> real["T D"]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True)) + shift
    return e / np.sum(e, axis=1, keepdims=True)


@layer
def counter(x: real["T D"]) -> real["T D"]:
    """Where an element stands is part of what it is."""
    t, d = x.shape
    return np.cos(x * np.arange(d)) + np.sqrt(np.arange(t)[:, None] + 1.0)


@layer
def middle(x: real["D"], a: Param[real[""]]) -> real["D"]:
    """Neither end of the loop is that of the array."""
    y = x.copy()
    for i in range(1, x.shape[0] - 2):
        y[i] = np.tanh(a * x[i - 1]) + np.exp(-x[i + 1] * x[i + 2])
    return y


@layer
def added(x: real["T D"], w: Param[real["D"]]) -> real["D"]:
    """Rows are added to one place."""
    y = np.zeros(w.shape)
    for t in range(x.shape[0]):
        y += np.tanh(x[t] * w)
    return y


@layer
def filtered(x: real["T D"], w: Param[real["3 3"]]) -> real["T D"]:
    """Its gradient adds to three rows in one loop."""
    y = np.zeros_like(x)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            for a in range(3):
                for b in range(3):
                    y[i, j] += x[i + a - 1, j + b - 1] * w[a, b]
    return y


@layer
def settled(x: real["D"]) -> tuple[real["D"], real["D"]]:
    """True and false are bytes: no part of a vector of floats."""
    return np.where(np.any(np.exp(x) > 20), x, np.tanh(x)), np.where(np.all(np.exp(x) > 0.001), np.exp(x), x)


@layer
def unmoved(x: real["D"], w: real["K"]) -> real[""]:
    """What is added is of one place all along, in part or as a whole."""
    a = 0.0
    b = 0.0
    c = 0.0
    for i in range(x.shape[0]):
        a += w[0]
        b += w[1] * w[w.shape[0] - 1]
        c += w[1] * x[i]
    return a + 2 * b + 3 * c


@layer
def first(x: real["D"]) -> real["D"]:
    """Where there is no first element there is none to add to."""
    y = x.copy()
    y[:1] += x[-1:]
    return y
'''

NAMES = ["chain", "losses", "rows", "counter", "middle", "added", "filtered", "settled", "unmoved", "first"]
WHOLE = ("settled", "filtered", "unmoved", "first")  # of these, no part of a vector is read
LENGTHS = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 100]


def draw(name: str, n: int, d: int, dtype) -> list[np.ndarray]:
    rng = np.random.default_rng(n + d)
    real = lambda *s: (rng.random(s) + 0.5).astype(dtype)  # noqa: E731
    more = {
        "chain": lambda: [real(d)],
        "rows": lambda: [rng.integers(0, 3, (n, d)).astype(np.int32)],
        "middle": lambda: [real()],
        "added": lambda: [real(d)],
        "filtered": lambda: [real(3, 3)],
        "unmoved": lambda: [real(n, 4)],
    }.get(name, list)()
    return [real(n, 5, d) if name in ("rows", "counter", "added", "filtered") else real(n, d), *more]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tails")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "tails_of", TEXT)


def close(got, want, tight):
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
        np.testing.assert_allclose(a, b, tight, tight)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("d", LENGTHS)
def test_every_length(package, name, d):
    layer = getattr(package, name)
    if d == 0 and name in ("losses", "rows"):
        return  # the largest of nothing is an error
    for dtype, tight in ((np.float64, 1e-12), (np.float32, 2e-5)):
        for n in (1, 5):
            values = draw(name, n, d, dtype)
            wide = [v.astype(float) if v.dtype.kind == "f" else v for v in values]
            close(layer(*values), layer.reference(*wide), tight)
    if name not in ("losses", "settled"):
        agrees(layer, draw(name, 5, d, np.float64), np.random.default_rng(d), 1e-10, 3e-6)


@pytest.mark.parametrize("name", ["chain", "counter"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_last_ones_are_as_the_others(package, name, dtype):
    """The same bits, whether an element is in a whole vector or in a part of one."""
    layer, values = getattr(package, name), draw(name, 3, 64, dtype)
    whole = layer(*values)
    for d in LENGTHS:
        assert np.array_equal(layer(*(v[..., :d] for v in values)), whole[..., :d])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_beyond_the_end_do_not_count(package, dtype):
    """What they compute is infinite, or no number; and NaN of lanes that count stays."""
    for d in LENGTHS[1:]:
        values = draw("losses", 4, d, dtype)
        assert all(np.isfinite(y).all() for y in package.losses(*values)), d
        assert np.isfinite(package.losses.vjp(*values)[1](*np.ones((4, 4), dtype))[0]).all(), d
        values[0][2, d - 1] = np.nan
        for y in package.losses(*values):
            assert np.isnan(y[2])
            assert np.isfinite(np.delete(y, 2)).all()


def test_nothing_beyond_is_written(package):
    """Neighbours in memory keep what they have: rows of one array, each made on its own."""
    x = np.random.default_rng(0).random((6, 40)).astype(np.float32) + 0.5
    for d in LENGTHS:
        want = package.chain(x[:, :d], x[0, :d])
        for k in range(6):
            assert np.array_equal(package.chain(x[k : k + 1, :d], x[0, :d])[0], want[k])


def test_there_are_parts(folder, package):
    text = (folder / "tails_of_compiled" / "tails_of.c").read_text()
    parts = re.findall(r"^int LC_NAME\((\w+)_f32\).*?^}", text, re.M | re.S)
    bodies = dict(zip(parts, (m.group() for m in re.finditer(r"^int LC_NAME\(\w+_f32\).*?^}", text, re.M | re.S))))
    assert all("lc_some_f32" in bodies[name] for name in NAMES if name not in WHOLE)
    assert len(re.findall(r"lc_(?:put|back)_f32\(&d_x", bodies["filtered_backward"])) >= 3  # a part of each row


PROBE = """
void four_{t}({c} *to, const lc_part_{t} *p) {{ lc_add_four_{t}(to, p[0], p[1], p[2], p[3]); }}
{c} one_{t}(const lc_part_{t} *p) {{ return lc_add_lanes_{t}(*p); }}
int wide_{t}(void) {{ return LC_LANES ? lc_wide_{t} : 0; }}
"""


@pytest.mark.parametrize("flags", ["-march=native", "-march=x86-64-v3", "-march=x86-64-v4"])
@pytest.mark.parametrize(("t", "c"), [("f32", "float"), ("f64", "double")])
def test_four_sums_at_once_are_the_same_sums(tmp_path, flags, t, c):
    if platform.machine() != "x86_64" or (flags.endswith("v4") and "avx512f" not in _macros("-march=native").lower()):
        pytest.skip("not a machine for this")
    probe = tmp_path / "four.c"
    body = PROBE.format(t=t, c=c)
    probe.write_text("\n".join([*pieces((), functions=[body])]))
    out = tmp_path / "four.so"
    subprocess.run(
        ["cc", "-std=gnu11", "-O2", flags, "-shared", "-fPIC", str(probe), "-o", str(out), "-lm"], check=True
    )
    library = ctypes.CDLL(str(out))
    wide = getattr(library, f"wide_{t}")()
    if not wide:
        pytest.skip("a vector has one lane")
    dtype = {"f32": np.float32, "f64": np.float64}[t]
    one = getattr(library, f"one_{t}")
    one.restype = {"f32": ctypes.c_float, "f64": ctypes.c_double}[t]
    storage = np.zeros(4 * wide + 64, dtype)
    aligned = storage[(-storage.ctypes.data // storage.itemsize) % (64 // storage.itemsize) :]
    rng, to = np.random.default_rng(0), np.empty(4, dtype)
    for _ in range(200):
        values = (rng.standard_normal(4 * wide) * 10.0 ** rng.uniform(-6, 6, 4 * wide)).astype(dtype)
        aligned[: 4 * wide] = values
        getattr(library, f"four_{t}")(ctypes.c_void_p(to.ctypes.data), ctypes.c_void_p(aligned.ctypes.data))
        place = aligned.ctypes.data
        want = [one(ctypes.c_void_p(place + k * wide * storage.itemsize)) for k in range(4)]
        assert to.tolist() == want


def _macros(flag):
    command = ["cc", flag, "-dM", "-E", "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
