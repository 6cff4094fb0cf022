"""An element that a `while` goes back to is a variable of the loop in its gradient; a `while` that no derivative goes
through leaves its result to the gradient."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, gradient_of
from thorough import agrees, same_bits

from layerc.build.driver import read_module, show

TEXT = '''
import numpy as np
from layerc import i64, layer, real


@layer
def kepler(m: real["N"], ecc: real["N"]) -> real["N"]:
    E = m.copy()
    for n in range(len(m)):
        while True:
            step = (E[n] - 0.3 * np.tanh(ecc[n]) * np.sin(E[n]) - m[n]) / (1 - 0.3 * np.tanh(ecc[n]) * np.cos(E[n]))
            E[n] -= step
            if abs(step) < 1e-3:
                break
    return E


@layer
def begun(x: real["N"]) -> real["N"]:
    """What is stored right before is what the variable begins with."""
    y = np.zeros_like(x)
    for n in range(len(x)):
        y[n] = np.sin(x[n])
        k = 0
        while k < 3:
            y[n] = y[n] * y[n] + 0.5 * x[n]
            k += 1
    return y


@layer
def zero_trips(x: real["N"]) -> real["N"]:
    y = 2.0 * x
    for n in range(len(x)):
        while y[n] < -0.5:
            y[n] = y[n] * 0.5 * np.cos(x[n]) + 0.3
    return y


@layer
def pair(z: real["N 2"]) -> real["N 2"]:
    """Two elements, each in hand."""
    w = z.copy()
    for n in range(z.shape[0]):
        k = 0
        while w[n, 0] ** 2 + w[n, 1] ** 2 < 50.0 and k < 4:
            re = w[n, 0] ** 2 - w[n, 1] ** 2 + z[n, 0]
            w[n, 1] = 2 * w[n, 0] * w[n, 1] + z[n, 1]
            w[n, 0] = re
            k += 1
    return w


@layer
def rows(z: real["N K"]) -> real["N K"]:
    """A row in hand, and loops over it."""
    w = np.sin(z)
    for n in range(z.shape[0]):
        size = 10.0
        k = 0
        while size > 0.5 and k < 5:
            size = 0.0
            for j in range(z.shape[1]):
                w[n, j] = 0.7 * w[n, j] * w[n, j] + 0.1 * z[n, j]
                size += abs(w[n, j])
            w[n] *= 0.9
            k += 1
    return w


@layer
def by_a_view(z: real["N K"]) -> real["N K"]:
    w = z.copy()
    for n in range(z.shape[0]):
        row = w[n]
        k = 0
        while k < 3:
            row[0] = np.sin(row[0]) * z[n, 1] + w[n, 0] ** 2
            k += 1
    return w


@layer
def aliased(x: real["N"], i: i64["N"]) -> real["N"]:
    """One element is written, and another read that may be the same."""
    y = x.copy()
    for n in range(len(x)):
        k = 0
        while k < 2:
            y[n] = np.sin(y[n]) + 0.5 * y[i[n]]
            k += 1
    return y


@layer
def neighbours(x: real["N"]) -> real["N"]:
    """y[n - 1] is another element."""
    y = x.copy()
    for n in range(1, len(x)):
        k = 0
        while k < 2:
            y[n] = np.sin(y[n]) + 0.5 * y[n - 1] * y[n]
            k += 1
    return y


@layer
def index_moves(x: real["N"]) -> real["N"]:
    y = x.copy()
    k = 0
    while k < len(x):
        y[k] = y[k] * np.sin(y[k])
        k += 1
    return y


@layer
def left_and_skipped(x: real["N"]) -> real["N"]:
    y = x.copy()
    for n in range(len(x)):
        k = 0
        while k < 6:
            k += 1
            if k == 2:
                continue
            y[n] = y[n] * np.cos(y[n])
            if y[n] < 0.1:
                break
            y[n] += 0.25 * x[n]
    return y


@layer
def from_the_end(x: real["N"]) -> real["N"]:
    y = x.copy()
    while abs(y[-1]) > 0.2:
        y[-1] = 0.5 * np.sin(y[-1]) * y[-1]
    return y


@layer
def two_deep(x: real["N M"]) -> real["N M"]:
    y = x.copy()
    for n in range(x.shape[0]):
        for m in range(x.shape[1]):
            while y[n, m] < 1.0:
                k = 0
                while k < 2:
                    y[n, m] += 0.2 * np.exp(-y[n, m] ** 2) + 0.1
                    k += 1
    return y


@layer
def looked_up(x: real["N"], i: i64["M"]) -> real["N"]:
    """Places that only running the program tells, and that may not be there: then no turn looks."""
    y = x.copy()
    for m in range(len(i)):
        k = 0
        while k < 2 and i[m] < len(x):
            y[i[m]] = y[i[m]] * np.sin(y[i[m]])
            k += 1
    return y


@layer
def surely_looked_up(x: real["N"], i: i64["M"]) -> real["N"]:
    y = x.copy()
    for m in range(len(i)):
        while abs(y[i[m]]) > 0.3:
            y[i[m]] = 0.8 * y[i[m]] * np.sin(y[i[m]])
    return y


@layer
def whole(x: real["N"]) -> real["N"]:
    """The loop asks for the whole array, too."""
    y = x.copy()
    for n in range(len(x)):
        while np.sum(y * y) > 1.0 and y[n] > 0.1:
            y[n] = 0.5 * y[n] * np.cos(y[n])
    return y


@layer
def only_read(x: real["N"], p: real["N"]) -> real["N"]:
    """An element of an argument."""
    y = np.zeros_like(x)
    for n in range(len(x)):
        e = x[n]
        while e < p[n] * p[n]:
            e = e + 0.3 * np.exp(p[n])
        y[n] = e
    return y


@layer
def bisected(u: real["N"], w: real["K"]) -> real["N"]:
    y = np.zeros_like(u)
    for n in range(len(u)):
        lo = -30.0
        hi = 30.0
        while hi - lo > 1e-9:
            mid = (lo + hi) / 2
            s = 0.0
            for k in range(w.shape[0]):
                s += np.tanh(mid - w[k]) + 0.1 * mid
            if s < u[n]:
                lo = mid
            else:
                hi = mid
        z = (lo + hi) / 2
        s = 0.0
        ds = 0.0
        for k in range(w.shape[0]):
            t = np.tanh(z - w[k])
            s += t + 0.1 * z
            ds += 1.1 - t * t
        y[n] = z - (s - u[n]) / ds
    return y


@layer
def in_a_table(x: real["N"], v: real["M"]) -> real["N"]:
    y = np.zeros_like(x)
    for n in range(len(x)):
        lo = 0
        hi = v.shape[0] - 1
        while hi - lo > 1:
            mid = (lo + hi) // 2
            if 0.7 * mid - 2.0 <= x[n]:
                lo = mid
            else:
                hi = mid
        y[n] = v[lo] + v[lo + 1] * np.sin(x[n])
    return y


@layer
def asked_before(x: real["N"], w: real["K"]) -> real["N"]:
    """What the number was before the loop is not what it leaves."""
    y = np.zeros_like(x)
    for n in range(len(x)):
        e = 1.0
        c = np.sin(e * x[n])
        while e < 3.0 * abs(x[n]):
            e = 1.5 * e + 0.1
        for k in range(w.shape[0]):
            y[n] += c * np.cos(w[k] / e) * e
    return y


@layer
def not_only_the_sum(x: real["T S"]) -> real["T"]:
    """What a sum is on the way is not what it is in the end."""
    y = np.zeros(x.shape[0])
    for t in range(x.shape[0]):
        c = np.zeros(x.shape[1])
        total = 0.0
        for j in range(x.shape[1]):
            total += np.exp(x[t, j])
            c[j] = total
        q = 0.0
        for j in range(x.shape[1]):
            q += np.sin(x[t, j] * c[j])
        y[t] = np.log(total) * q
    return y
'''
SHAPES = {
    "kepler": [(7,), (7,)],
    "begun": [(6,)],
    "zero_trips": [(9,)],
    "pair": [(6, 2)],
    "rows": [(4, 3)],
    "by_a_view": [(4, 3)],
    "aliased": [(6,), 6],
    "neighbours": [(6,)],
    "index_moves": [(6,)],
    "left_and_skipped": [(9,)],
    "from_the_end": [(4,)],
    "two_deep": [(3, 4)],
    "looked_up": [(6,), 8],
    "surely_looked_up": [(6,), 8],
    "whole": [(5,)],
    "only_read": [(6,), (6,)],
    "bisected": [(6,), (4,)],
    "in_a_table": [(9,), (8,)],
    "asked_before": [(9,), (4,)],
    "not_only_the_sum": [(3, 5)],
}
IN_HAND = ("kepler", "begun", "zero_trips", "pair", "left_and_skipped", "two_deep", "neighbours")
KEPT = {"bisected": "z_kept", "in_a_table": "lo_kept"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("while_elements")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "while_elements", TEXT)


def values_of(name, batch, dtype, seed=3):
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, 6, (batch, shape))
        if isinstance(shape, int)
        else rng.standard_normal((batch, *shape)).astype(dtype)
        for shape in SHAPES[name]
    ]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batch", [1, 5])
def test_values_and_gradients(package, name, dtype, batch):
    tight, close = (1e-8, 2e-6) if dtype == np.float64 else (2e-5, 5e-3)
    agrees(getattr(package, name), values_of(name, batch, dtype), np.random.default_rng(4), tight, close)


@pytest.mark.parametrize("name", ["kepler", "pair", "bisected", "in_a_table"])
def test_many_elements_on_any_threads(package, name):
    rng = np.random.default_rng(0)
    n = 67 * 3
    values = [rng.standard_normal((2, n, *shape[1:])) for shape in SHAPES[name]]
    if name in ("bisected", "in_a_table"):
        values[1] = values[1][:, :8]
    agrees(getattr(package, name), values, rng, 1e-8, 1e-4)
    same_bits(getattr(package, name), values)


@pytest.mark.parametrize("name", [n for n in SHAPES if n not in ("from_the_end", "in_a_table", "not_only_the_sum")])
def test_empty(package, name):
    values = [v[:, :0] for v in values_of(name, 2, np.float64)]
    layer = getattr(package, name)
    y, pullback = layer.vjp(*values)
    assert y.shape == layer.reference(*values).shape
    pullback(np.ones(y.shape))


def test_the_element_is_in_hand(tmp_path):
    """No array is saved, and none copied in a loop."""
    for name in IN_HAND:
        text = gradient_of(tmp_path, TEXT, name)
        saved = [line for line in text.splitlines() if "_saved.append(np.copy" in line or "_saved[n] = " in line]
        assert not [s for s in saved if not s.split("=")[-1].strip().isidentifier() or "copy" in s], text
        assert "append(np.copy" not in text, text
    text = gradient_of(tmp_path, TEXT, "kepler")
    assert "E_n = m[n]" in text, text
    assert "E_n = E_n - step" in text, text
    assert "d_m[n] += d_E_n" in text, text
    assert "y_n = np.sin(x[n])" in gradient_of(tmp_path, TEXT, "begun")


def test_a_row_is_in_hand(tmp_path):
    text = gradient_of(tmp_path, TEXT, "rows")
    assert "w_n = " in text, text


def test_what_may_be_elsewhere_or_missing_is_not(tmp_path):
    for name in ("aliased", "index_moves", "looked_up", "whole"):
        text = gradient_of(tmp_path, TEXT, name)
        assert "y_n" not in text, text
        assert "y_m" not in text, text


@pytest.mark.parametrize("dtype", [np.int64])
def test_places_that_are_not_there(package, dtype):
    """No turn looks there, or the first one does."""
    x, i = np.random.default_rng(1).standard_normal((1, 4)), np.array([[1, 7, 3]], dtype)
    y, pullback = package.looked_up.vjp(x, i)
    np.testing.assert_allclose(y, package.looked_up.reference(x, i), 1e-12)
    assert np.isfinite(pullback(np.ones(y.shape))[0]).all()
    for run in (package.surely_looked_up, package.surely_looked_up.vjp, package.surely_looked_up.reference):
        with pytest.raises(IndexError):
            run(x, i)


def test_nan(package):
    """A NaN ends a loop that goes on while something is larger, and stays with its element."""
    x = np.array([[0.3, np.nan, -2.0, 1.0]])
    for layer in (package.zero_trips, package.from_the_end, package.left_and_skipped):
        y, pullback = layer.vjp(x)
        np.testing.assert_allclose(y, layer.reference(x), 1e-12)
        d_x = pullback(np.ones(y.shape))
        d_x = d_x[0] if isinstance(d_x, tuple) else d_x
        assert np.isfinite(d_x[0, [0, 2, 3]]).all()


@pytest.mark.parametrize("name", KEPT)
def test_what_a_search_leaves_is_kept(package, folder, name):
    """The pullback does not search again."""
    text = show(read_module(folder / "while_elements.py"), "kept", name)
    back = text[text.index("d_" + name) :]
    assert f"{KEPT[name]}: Memory[" in back, text
    assert "while" not in back, text
