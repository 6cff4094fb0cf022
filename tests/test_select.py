"""What branches add to a number, and what they set, is chosen between: loops with cheap branches run in vectors."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.adjoint.gradient import gradient_file
from layerc.transpile.ir import Check, For, If
from layerc.transpile.layers import check_file
from layerc.transpile.passes.tree import has, in_vectors, walk

TEXT = '''
import numpy as np
from layerc import i32, layer, real


@layer
def huber(x: real["D"], y: real["D"], *, delta: float = 1.0) -> real[""]:
    total = 0.0
    for i in range(x.shape[0]):
        e = abs(x[i] - y[i])
        if e <= delta:
            total += 0.5 * e * e
        else:
            total += delta * (e - 0.5 * delta)
    return total / (x.shape[0] + 1)


@layer
def wing(x: real["D"], y: real["D"]) -> real[""]:
    """Three ways, one of which has numbers of its own."""
    total = 1.0
    for i in range(x.shape[0]):
        e = x[i] - y[i]
        if e > 1.0:
            total = total + 2.0 * e
        elif e < -1.0:
            f = e + 0.5
            g = f * e
            total = g + total
        else:
            total += e * e
    return total


@layer
def taken_off(x: real["D"]) -> real[""]:
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            total -= x[i]
        else:
            total -= x[i] * x[i]
    return total


@layer
def set_both(x: real["D"], y: real["D"]) -> real["D"]:
    z = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > y[i]:
            high = x[i]
            low = y[i]
        else:
            high = y[i]
            low = x[i]
        z[i] = high - 0.5 * low
    return z


@layer
def two_signs(x: real["D"], y: real["D"]) -> real[""]:
    """One way adds, one takes off: nothing is chosen between."""
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > y[i]:
            total += x[i]
        else:
            total -= y[i]
    return total


@layer
def neighbours(x: real["D"]) -> real[""]:
    """What one way reads is not there on the other."""
    total = 0.0
    for i in range(x.shape[0]):
        if i > 0:
            total += x[i] * x[i - 1]
        else:
            total += x[i]
    return total


@layer
def steps(x: real["D"]) -> real[""]:
    """What is chosen hangs on what was."""
    total = 0.0
    for i in range(x.shape[0]):
        if total > 1.0:
            total += 0.25 * x[i]
        else:
            total += x[i]
    return total


@layer
def turned(x: real["D"], y: real["D"]) -> real["D"]:
    """A branch that reads what it sets."""
    z = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        a = x[i]
        b = y[i]
        if a > b:
            a, b = b, a
        else:
            a, b = a * 0.5, b * 0.25
        z[i] = a - 3.0 * b
    return z


@layer
def written_between(x: real["D"], w: real["D"]) -> real[""]:
    """What is added is what was there before the branch went on to write."""
    v = w.copy()
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            total += v[i] * x[i]
            v[i] = 2.0
        else:
            total += v[i]
            v[i] = x[i]
    return total + np.sum(v * v)


@layer
def whole_numbers(x: real["D"], y: real["D"]) -> real["D"]:
    """A branch that sets numbers of every kind."""
    z = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > y[i]:
            n = 3
            up = True
            f = 0.5
        else:
            n = i
            up = y[i] > 0
            f = x[i]
        z[i] = x[i] * n * f if up else y[i] - f
    return z


@layer
def relu_like(x: real["D"]) -> real["D"]:
    """Each way writes the element once: the gradient takes nothing back."""
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        v = x[i]
        if v > 0:
            y[i] = v
        elif v > -1:
            y[i] = 0.1 * v
        else:
            y[i] = -0.1
    return y


@layer
def written_twice(x: real["D"]) -> real["D"]:
    """One way writes it again."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i]
        if x[i] > 0.5:
            y[i] = 2.0 * x[i]
        else:
            y[i] = y[i] + x[i] * x[i]
    return y


@layer
def ranks(x: real["D"], y: real["D"]) -> real[""]:
    """A number of a way of a way, and sums at two places."""
    loss = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if y[i] > y[j]:
                d = x[i] - x[j]
                if d < 1.0:
                    loss += 1.0 - d
    return loss


@layer
def softplus(x: real["D"]) -> real["D"]:
    """A function on one way only."""
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 20.0:
            s = x[i]
        else:
            s = np.log1p(np.exp(x[i]))
        y[i] = x[i] * s
    return y


@layer
def dear_both(x: real["D"], y: real["D"], *, w: float = 1.0) -> real[""]:
    """One number, made by a logarithm or by a root; its gradient has a number on the way."""
    total = 0.0
    for i in range(x.shape[0]):
        d = abs(x[i] - y[i])
        if d < w:
            total += w * np.log(1.0 + d / 2.0)
        else:
            total += np.sqrt(d) - 0.5
    return total


@layer
def found_largest(x: real["D"]) -> real["D"]:
    """By comparisons, which leave out what is no number; and the least of them, written the other way round."""
    y = np.zeros(x.shape[0])
    top, low = -1e30, 1e30
    for i in range(x.shape[0]):
        if x[i] > top:
            top = x[i]
        if low >= x[i]:
            low = x[i]
    for i in range(x.shape[0]):
        y[i] = x[i] * (top - low)
    return y


@layer
def places_added(x: real["D"]) -> real[""]:
    n = 0
    s = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            n += i
            s += i * x[i]
    return s / (n + 1)


@layer
def plain_hinge(x: real["D"], label: i32) -> real[""]:
    """An index that the loop does not change is asked before it."""
    loss = 0.0
    for j in range(x.shape[0]):
        loss += max(x[j] - x[label] + 1.0, 0.0)
    return loss


@layer
def label_rows(x: real["D 3"], label: i32) -> real["D 3"]:
    """Rows of what the index looks up: an inner loop goes along them."""
    y = np.zeros(x.shape)
    for j in range(x.shape[0]):
        y[j] = x[label] * x[j]
    return y


@layer
def label_row_added(x: real["D 3"], label: i32) -> real["3"]:
    y = np.zeros(3)
    for j in range(x.shape[0]):
        y += x[label] * x[j]
        y[label - label] += x[label, 1]
    return y


@layer
def hinge_outside(x: real["D"], label: i32) -> real[""]:
    loss = 0.0
    right = x[label]
    for j in range(x.shape[0]):
        if j == label:
            continue
        margin = x[j] - right + 1.0
        if margin > 0:
            loss += margin
    return loss


@layer
def hinge(x: real["D"], label: i32) -> real[""]:
    """Added on one way of one way."""
    loss = 0.0
    for j in range(x.shape[0]):
        if j != label:
            margin = x[j] - x[label] + 1.0
            if margin > 0:
                loss += margin
    return loss


@layer
def pinball(x: real["D"], y: real["D"], *, tau: float = 0.3) -> real[""]:
    loss = 0.0
    for i in range(x.shape[0]):
        e = y[i] - x[i]
        if e >= 0:
            loss += tau * e
        else:
            loss -= (1 - tau) * e
    return loss


@layer
def asymmetric(x: real["D"], y: real["D"]) -> real[""]:
    """Powers and logarithms on both ways, and numbers that they have for themselves."""
    loss = 0.0
    for i in range(x.shape[0]):
        p = 1.0 / (1.0 + np.exp(-x[i]))
        if y[i] > 0:
            loss -= (1 - p) ** 1.5 * np.log(max(p, 1e-8))
        else:
            q = p - 0.05
            if q > 0:
                loss -= q**2.5 * np.log(max(1 - q, 1e-8))
    return loss


@layer
def counted(x: real["D"], kind: i32["D"]) -> real[""]:
    n = 0
    total = 0.0
    for i in range(x.shape[0]):
        if kind[i] == 1:
            n += 2
            total += x[i]
        elif kind[i] == 2:
            n += 1
            total += 3.0 * x[i]
        else:
            total += 0.5
    return total / (n + 1)
'''
NAMES = (
    "huber",
    "wing",
    "pinball",
    "taken_off",
    "set_both",
    "two_signs",
    "neighbours",
    "steps",
    "turned",
    "written_between",
    "whole_numbers",
    "relu_like",
    "written_twice",
    "ranks",
    "softplus",
    "dear_both",
    "asymmetric",
    "found_largest",
    "places_added",
)
IN_VECTORS = ("huber", "wing", "taken_off", "set_both", "dear_both", "asymmetric", "found_largest")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("select")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "select_of", TEXT)


def draw(package, name: str, examples: int, d: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(d)
    values = [rng.standard_normal((examples, d)).astype(dtype) * 1.5]
    if name in (
        "huber",
        "wing",
        "pinball",
        "set_both",
        "two_signs",
        "turned",
        "written_between",
        "whole_numbers",
        "ranks",
        "dear_both",
        "asymmetric",
    ):
        values.append(rng.standard_normal((examples, d)).astype(dtype))
    if name == "counted":
        values.append(rng.integers(0, 4, (examples, d)).astype(np.int32))
    return values


@pytest.mark.parametrize("name", [*NAMES, "counted"])
@pytest.mark.parametrize(("examples", "d"), [(1, 1), (3, 2), (2, 17), (20, 70), (0, 3), (2, 0)])
def test_values_and_gradients(package, name, examples, d):
    values = draw(package, name, examples, d, np.float64)
    agrees(getattr(package, name), values, np.random.default_rng(d), 1e-10, 3e-6)


@pytest.mark.parametrize("name", [*NAMES, "counted"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), draw(package, name, 5, 700, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_infinities(package, name):
    values = draw(package, name, 3, 40, np.float32)
    values[0][:, ::7] = np.nan
    values[0][1, 3::7] = np.inf
    values[0][2, 4::7] = -np.inf
    with np.errstate(all="ignore"):
        want = getattr(package, name).reference(*(v.astype(float) for v in values))
    np.testing.assert_allclose(getattr(package, name)(*values), want, 1e-4)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((n, "predict") for n in IN_VECTORS),
        *((n, "backward") for n in ("huber", "dear_both", "asymmetric")),
    ],
)
def test_loops_have_no_branches(folder, package, name, kind):
    kernel = kernels_in(folder / "select_of.py")[name, kind]
    inner = [s for s in walk(kernel.body) if isinstance(s, For) and not has(s.body, For)]
    assert any(in_vectors(s) for s in inner)
    assert not any(has(s.body, If) for s in inner)


def test_cotangents_do_not_go_through_branches(folder, package):
    text = gradient_file(check_file(folder / "select_of.py"))
    huber = text[text.index("def d_huber") : text.index("def d_wing")]
    assert "d_total = dy / (x.shape[0] + 1)" in huber
    assert "d_total_2" not in huber
    assert huber.count("d_e += d_total * ") == 2
    assert "d_loss" not in text[text.index("def d_hinge") :]


@pytest.mark.parametrize(("examples", "d"), [(1, 1), (3, 7), (40, 33), (0, 5), (2, 0)])
def test_a_label(package, examples, d):
    rng = np.random.default_rng(d)
    values = [rng.standard_normal((examples, d)), rng.integers(-d, max(d, 1), examples).astype(np.int32)]
    table = [np.random.default_rng(1).standard_normal((examples, d, 3)), values[1]]
    agrees(package.label_rows, table, rng, 1e-10, 3e-6)
    agrees(package.label_row_added, table, rng, 1e-10, 3e-6)
    layers = package.hinge, package.plain_hinge, *([package.hinge_outside] if d else [])
    for layer in layers:
        agrees(layer, values, rng, 1e-10, 3e-6)
    if examples and d > 1:
        values[1][0] = d
        for layer in layers:
            with pytest.raises(IndexError, match=f"{d}"):
                layer(*values)


def test_nothing_is_asked_in_loops(folder, package):
    """Of an index that they do not change, and of numbers that one way has."""
    kernels = kernels_in(folder / "select_of.py")
    for name, kind in (("plain_hinge", "predict"), ("plain_hinge", "backward"), ("hinge_outside", "backward")):
        inner = [s for s in walk(kernels[name, kind].body) if isinstance(s, For) and not has(s.body, For)]
        assert any(in_vectors(s) for s in inner)
        assert not any(has(s.body, If, Check) for s in inner)
    text = gradient_file(check_file(folder / "select_of.py"))
    assert "d_y[i] = 0" not in text[text.index("def d_relu_like") : text.index("def d_written_twice")]


LARGEST = """
import numpy as np
from layerc import i64, layer, real


@layer
def largest(x: real["E H"], node: i64["E"], *, nodes: int = 5) -> real["nodes H"]:
    top = np.full((nodes, x.shape[1]), -np.inf)
    for e in range(x.shape[0]):
        for h in range(x.shape[1]):
            if x[e, h] > top[node[e], h]:
                top[node[e], h] = x[e, h]
    return top
"""


@pytest.mark.parametrize(("edges", "heads"), [(30, 8), (30, 19), (1, 1), (0, 3), (4, 0)])
def test_the_largest_at_rows_that_are_looked_up(tmp_path, edges, heads):
    """Whether the row is there is asked before the loop along it, if that has a turn."""
    layer = built_from(tmp_path, "largest_of", LARGEST).largest
    kernel = kernels_in(tmp_path / "largest_of.py")["largest", "predict"]
    rows = [s for s in walk(kernel.body) if isinstance(s, For) and s.var.startswith("h")]
    assert any(in_vectors(s) for s in rows)
    assert not any(has(s.body, If, Check) for s in rows)
    rng = np.random.default_rng(edges)
    x, node = rng.standard_normal((2, edges, heads)), rng.integers(-5, 5, (2, edges))
    x[..., ::3] = np.nan
    np.testing.assert_array_equal(layer(x, node), layer.reference(x, node))
    if edges:
        node[1, -1] = 5
        if heads:
            with pytest.raises(IndexError, match="5"):
                layer(x, node)
        else:
            layer(x, node)
