"""Arrays that loops write into again and again: the gradient takes each write back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.layers import check_file

TAKEN_BACK = '''
import numpy as np
from layerc import Param, layer, real


@layer
def gauss_jordan(a: real["D D"]) -> real["D D"]:
    n = a.shape[0]
    m = np.zeros((n, 2 * n))
    for i in range(n):
        for j in range(n):
            m[i, j] = a[i, j]
        m[i, n + i] = 1.0
    for i in range(n):
        pivot = m[i, i]
        for j in range(2 * n):
            m[i, j] = m[i, j] / pivot
        for k in range(n):
            if k != i:
                factor = m[k, i]
                for j in range(2 * n):
                    m[k, j] -= factor * m[i, j]
    y = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            y[i, j] = m[i, n + j]
    return y


@layer
def lu_solve(a: real["D D"], b: real["D"]) -> real["D"]:
    n = a.shape[0]
    u = a.copy()
    x = b.copy()
    for i in range(n):
        for k in range(i + 1, n):
            f = u[k, i] / u[i, i]
            u[k, i:] -= f * u[i, i:]
            x[k] -= f * x[i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - u[i, i + 1 :] @ x[i + 1 :]) / u[i, i]
    return x


@layer
def lattice(x: real["n"]) -> real["n"]:
    """Results of branches: places, what both ways leave, what is asked of values."""
    n = x.shape[0]
    a = x * 1.0
    for t in range(1, 4):
        before = a.copy()
        for s in range(n):
            k = s // 2 if s % 2 == 1 else 0
            best = before[s]
            if s >= 1:
                best = np.logaddexp(best, before[s - 1])
                if s >= 2 and s % 3 == 2:
                    best = np.sin(best) * before[s - 2]
                else:
                    best = best * a[s - 1]
            factor = np.exp(best)
            if before[k] > 0.1:
                factor = np.tanh(factor) + x[k]
                best = best * best * 0.5
            if s % 4 == 0:
                last = np.exp(factor * 0.1) * a[s]
            elif s % 4 == 1:
                last = np.sin(factor * 0.1) * a[s]
            else:
                last = factor * a[s]
            a[s] = best * 0.3 + t * last * last * 0.1
    return a


@layer
def pivoting(a: real["D D"]) -> real[""]:
    n = a.shape[0]
    u = a.copy()
    det = 1.0
    for i in range(n):
        p = i
        for k in range(i + 1, n):
            if abs(u[k, i]) > abs(u[p, i]):
                p = k
        if p != i:
            for j in range(n):
                t = u[i, j]
                u[i, j] = u[p, j]
                u[p, j] = t
            det = -det
        det = det * u[i, i]
        for k in range(i + 1, n):
            f = u[k, i] / u[i, i]
            for j in range(i, n):
                u[k, j] = u[k, j] - f * u[i, j]
    return det


@layer
def heat(u: real["N"], k: Param[real[""]], steps: int = 4) -> real["N"]:
    v = u.copy()
    n = u.shape[0]
    for s in range(steps):
        for i in range(1, n - 1):
            v[i] = v[i] + k * v[i] * (v[i - 1] - 2 * v[i] + v[i + 1])
    return v


@layer
def relax(u: real["N M"]) -> real["N M"]:
    v = u.copy()
    for s in range(3):
        for i in range(1, u.shape[0]):
            if v[i, 0] > 0:
                v[i] = np.sin(v[i]) * v[i - 1]
            else:
                v[i] *= v[i - 1]
    return v


@layer
def bubble(x: real["N"]) -> real["N"]:
    y = x.copy()
    n = x.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if y[j] > y[j + 1]:
                t = y[j]
                y[j] = y[j + 1]
                y[j + 1] = t * 1.1
    return y


@layer
def householder(a: real["M N"]) -> real["M N"]:
    r = a.copy()
    m, n = a.shape
    for k in range(n):
        v = np.zeros(m)
        for i in range(k, m):
            v[i] = r[i, k]
        norm = np.sqrt(np.sum(v * v))
        s = 1.0
        if v[k] < 0:
            s = -1.0
        v[k] += s * norm
        vv = np.sum(v * v)
        for j in range(n):
            dot = 0.0
            for i in range(m):
                dot += v[i] * r[i, j]
            for i in range(m):
                r[i, j] -= 2 * dot / vv * v[i]
    return r


@layer
def states(x: real["T"], w: Param[real["K K"]]) -> real["K"]:
    h = np.zeros(w.shape[0])
    for t in range(x.shape[0]):
        for i in range(w.shape[0]):
            h[i] = np.tanh(h[i] * x[t] + np.sum(w[i] * h))
    return h


@layer
def floyd(d: real["N N"]) -> real["N N"]:
    y = d.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                y[i, j] = -np.log(np.exp(-y[i, j]) + np.exp(-(y[i, k] + y[k, j])))
    return y


@layer
def butterflies(x: real["N"]) -> real["N"]:
    y = x.copy()
    n = x.shape[0]
    for s in range(3):
        for i in range(n // 2):
            a = y[i]
            b = y[n - 1 - i]
            y[i] = a * b + a
            y[n - 1 - i] = a - b * b
    return y


@layer
def local(x: real["B N"]) -> real["B N"]:
    out = np.zeros_like(x)
    for b in range(x.shape[0]):
        y = x[b].copy()
        for s in range(3):
            for i in range(1, x.shape[1]):
                y[i] = y[i] * y[i - 1] + 0.5
        out[b] = y
    return out


@layer
def masked(x: real["N"]) -> real["N"]:
    """What was there before a write is read before and after it."""
    y = x.copy()
    total = 0.0
    for i in range(x.shape[0]):
        total += y[0] * y[0]
        y[0] = np.tanh(-y[0]) * x[i]
        y[1:] = np.sin(y[1:]) * total
    return y


@layer
def twice(x: real["N"]) -> real[""]:
    """Written outside of loops, too, and read by a loop that does not write."""
    y = x * x
    a = np.sum(np.cos(y))
    y[0] = a * y[0]
    b = 0.0
    for i in range(x.shape[0]):
        b = b * y[i] + np.exp(y[i])
    y *= b
    return np.sum(y * y)


@layer
def before(x: real["N N M"], b: real["N"]) -> real["N N M"]:
    """What is made of an array before it is written to is not made again of what crosses."""
    q = np.copy(x)
    q[:] = b @ np.tanh(q)
    return np.maximum(q, 0.1)


@layer
def empty(x: real["N"], *, steps: int = 0) -> real["N"]:
    """Loops that may not run at all."""
    y = x.copy()
    for s in range(steps):
        for i in range(1, x.shape[0] - 2):
            y[i] *= y[i - 1] * y[i + 2]
    return y
'''


VERSIONS = '''
import numpy as np
from layerc import Param, layer, real


@layer
def branch(x: real["N"]) -> real["N"]:
    """A branch outside of loops."""
    y = np.sin(x)
    if y[0] > 0:
        y[0] = y[0] * y[0]
    return y * y


@layer
def until(x: real["N"]) -> real["N"]:
    """A while inside."""
    y = x.copy()
    for i in range(x.shape[0]):
        k = 0
        while k < 3:
            y[i] = np.sin(y[i]) * y[0]
            k += 1
    return y


@layer
def varying(x: real["N"]) -> real["N"]:
    """What crosses has another size in each iteration."""
    y = x.copy()
    for i in range(1, x.shape[0]):
        tail = np.cos(y[i:])
        y[i:] = tail * y[i - 1]
    return y


@layer
def anywhere(x: real["N"]) -> real["N"]:
    """Places that are themselves in an array that is written to."""
    y = x.copy()
    p = np.zeros(x.shape[0], dtype=np.int64)
    for i in range(x.shape[0]):
        p[i] = (2 * i + 1) % x.shape[0]
        y[p[i]] = np.sin(y[p[i]]) * y[0]
    return y


@layer
def anew(x: real["N"]) -> real["N"]:
    """Written into, and then another array by the same name."""
    y = x * 1.0
    for i in range(3):
        y[:1] += x[0] * y[0]
        y = np.sin(y) * y[0] + x
    return x * y


@layer
def anew_until(x: real["N"], w: Param[real[""]]) -> real["N"]:
    y, k = 1.0 * x, 0
    while k < 5:
        y[0] += np.sum(y) * 0.1
        y = np.sin(y * w) + x
        k += 1
    return y


@layer
def anew_somewhere(x: real["N"]) -> real["N"]:
    y = x * 1.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] += x[0] * y[0] * y[i]
            y = np.sin(y) + x
        else:
            y[0] *= y[i]
    if x[0] > 0:
        y[0] *= y[0]
        y = np.cos(y) * x
        y[0] *= y[0]
    return x * y


@layer
def anew_inside(x: real["N"]) -> real["N"]:
    """In a loop whose own array is taken back."""
    m = x * 1.0
    for k in range(3):
        u = m * x[0]
        if x[0] > 0:
            u[0] *= u[0]
            u = np.sin(u)
            u[0] *= u[0]
        m[0] *= np.sum(u)
        m[:] += np.tanh(m)
    return m


@layer
def nothing_left(x: real[""]) -> real[""]:
    """Loops through which the cotangent goes as it is."""
    y = x
    for i in range(2):
        for j in range(3):
            y -= np.sin(1.5)
    return y


@layer
def carried_inside(x: real["N"]) -> real["N"]:
    """What an iteration hands on is an array that is also written into."""
    m = x * 1.0
    for k in range(3):
        u = m * x[0]
        for i in range(x.shape[0]):
            u[i] *= u[0]
            u = np.sin(u)
            u[0] *= u[i]
        m[0] *= np.sum(u)
        m[:] += np.tanh(m)
    return m


@layer
def slices(x: real["N"]) -> real["N"]:
    """What a write to a slice goes over, outside of all loops."""
    y = x * x
    y[1:] = np.sin(y[:-1]) * y[1:]
    y[:] = y * y + y[0]
    y[0] = np.tanh(y[0]) * y[-1]
    y *= y
    return y


@layer
def summed(x: real["N"]) -> real["N"]:
    """What is made of an array before a write that no derivative needs."""
    z = np.cumsum(x)
    t = np.exp(z)
    z += t
    return z


@layer
def last(x: real["N"]) -> real["N"]:
    z = x * 0.5
    for i in range(2):
        z[-1] -= np.tanh(x[0])
    z[-1] -= np.tanh(z[-1])
    return z


@layer
def first(x: real["N"]) -> real["N"]:
    z = np.cumsum(x)
    t = np.tanh(z[0])
    z[0] -= t
    return z
'''

SHAPES = {
    "gauss_jordan": ["n n"],
    "lu_solve": ["n n", "n"],
    "pivoting": ["n n"],
    "heat": ["n+2", ""],
    "relax": ["n 3"],
    "householder": ["n+1 n"],
    "states": ["n", "4 4"],
    "floyd": ["n n"],
    "local": ["3 n"],
    "before": ["n n 2", "n"],
    "anew_until": ["n", ""],
    "nothing_left": [""],
}
NAMES = [line[4 : line.index("(")] for line in TAKEN_BACK.split("\n") if line.startswith("def ")]
OTHERS = [line[4 : line.index("(")] for line in VERSIONS.split("\n") if line.startswith("def ")]


def draw(name: str, examples: int, n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    found = []
    for text in SHAPES.get(name, ["n"]):
        shape = tuple(eval(axis, {"n": n}) for axis in text.split())
        parameter = text in ("", "4 4")
        found.append(0.5 * rng.standard_normal(shape if parameter else (examples, *shape)))
    if name in ("gauss_jordan", "lu_solve", "householder", "pivoting"):
        found[0] += 3 * np.eye(*found[0].shape[1:])  # far from singular
    if name == "floyd":
        found[0] = 3 + np.abs(found[0])
    return [v.astype(dtype) for v in found]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("undo"), "taken_back", TAKEN_BACK)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("versions"), "versions_of", VERSIONS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("examples", "n"), [(1, 1), (2, 2), (3, 4), (5, 5), (37, 6), (0, 3)])
def test_values_and_gradients(package, name, examples, n):
    """For its gradient `twice` does not store what it sums up, so that the two sums are not rounded alike."""
    values, rng = draw(name, examples, n, np.float64), np.random.default_rng(n)
    agrees(getattr(package, name), values, rng, 1e-10, 2e-6, exact=name != "twice")


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name):
    for dtype in (np.float32, np.float64):
        same_bits(getattr(package, name), draw(name, 70, 6, dtype))


@pytest.mark.parametrize("name", NAMES)
def test_a_pullback_may_be_called_twice(package, name):
    y, pullback = getattr(package, name).vjp(*draw(name, 4, 5, np.float64))
    before, first, second = np.copy(y), pullback(np.ones_like(y)), pullback(np.ones_like(y))
    assert np.array_equal(before, y)
    for a, b in zip(*(g if isinstance(g, tuple) else (g,) for g in (first, second)), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(("examples", "n"), [(1, 1), (3, 4), (37, 6)])
def test_what_cannot_be_taken_back_has_versions(others, name, examples, n):
    agrees(getattr(others, name), draw(name, examples, n, np.float64), np.random.default_rng(n), 1e-10, 2e-6)


TWICE = '''
import numpy as np
from layerc import layer, real


@layer
def popped(a: real["K"]) -> real["K"]:
    """The gradient pops arrays and writes into them."""
    k = 0
    while k < 2:
        k += 1
        for i in range(3):
            a[:] *= np.tanh(a + i)
        a *= np.arctan(a)
        j = 0
        while j < 1:
            j += 1
            a = np.sin(a)
    return a


@layer
def rows(x: real["M N"]) -> real["M N"]:
    m = x * 1.0
    for i in range(x.shape[0]):
        m[i] = m[i] / (2.0 + m[i, 0] * m[i, 0])
        for k in range(x.shape[0]):
            if k != i:
                m[k] -= m[k, 0] * m[i]
    return m
'''


def test_second_derivatives(tmp_path) -> None:
    text = gradient_file(check_file(Path("twice.py"), TWICE))
    package = built_from(tmp_path, "twice_of", text)
    rng = np.random.default_rng(4)
    shapes = {"d_popped": [(4,), (4,)], "d_rows": [(3, 2), (3, 2)]}
    for name, of in shapes.items():
        agrees(getattr(package, name), [rng.standard_normal(shape) for shape in of], rng, 1e-10, 2e-6)


def test_source() -> None:
    """Nothing is saved but what is read again, and scalars; nothing is run again."""
    text = gradient_file(check_file(Path("taken_back.py"), TAKEN_BACK))
    one = text[text.index("def d_gauss_jordan(") :].partition("\n\n\n")[0]
    assert "np.copy" not in one
    assert one.count("_saved") == 3 * 3  # made, filled, read: what a row was before it is divided, and two scalars
    assert one.count("m_read") == 3  # and what it was after, which all others read
    one = text[text.index("def d_states(") :].partition("\n\n\n")[0]
    code = [line for line in one.split("\n") if "#" not in line]
    assert sum("np.tanh(" in line for line in code) == 1, "what was written is there, until it is taken back"
    assert one.count("_saved") == 3
    one = text[text.index("def d_lattice(") :].partition("\n\n\n")[0]
    rooms = {line.split(" = ")[0].strip() for line in one.split("\n") if "_saved" in line and "np.empty" in line}
    assert not any(name.startswith(("k_", "value_")) for name in rooms), "places are told by the counter"
    assert len(rooms) == 10, "what a way through a branch has left needs no second room behind the branch"
