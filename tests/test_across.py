"""A loop over channels that lie side by side, with sums of its own, goes inside of those over places."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.transpile.ir import For, Store
from layerc.transpile.passes.tree import in_vectors, walk

TEXT = '''
import numpy as np
from layerc import Param, i32, layer, real


@layer
def normed(x: real["H W C"], w: Param[real["C"]]) -> real["H W C"]:
    H, W, C = x.shape
    y = np.zeros_like(x)
    for c in range(C):
        m, v = 0.0, 0.0
        for i in range(H):
            for j in range(W):
                m += x[i, j, c]
        m = m / (H * W)
        for i in range(H):
            for j in range(W):
                v += (x[i, j, c] - m) ** 2
        r = 1.0 / np.sqrt(v / (H * W) + 1e-2)
        for i in range(H):
            for j in range(W):
                y[i, j, c] = (x[i, j, c] - m) * r * w[c]
    return y


@layer
def of_rows(x: real["H W C"]) -> real["C"]:
    """A number of its own in a loop in the loop; a sum over all channels beside them."""
    y = np.zeros(x.shape[2])
    for c in range(x.shape[2]):
        for i in range(x.shape[0]):
            s = 0.0
            for j in range(x.shape[1]):
                s += x[i, j, c]
            y[c] += s * s
    return y


@layer
def total(x: real["T C"]) -> real[""]:
    """What all channels add up."""
    s = 0.0
    for c in range(x.shape[1]):
        m = 0.0
        for t in range(x.shape[0]):
            m += x[t, c]
        s += m * m
    return s


@layer
def largest(x: real["T C"]) -> real["T C"]:
    """Steps that hang on each other in the gradient, for each channel by itself."""
    y = np.zeros_like(x)
    for c in range(x.shape[1]):
        top = x[0, c]
        for t in range(x.shape[0]):
            top = max(top, x[t, c])
        total = 0.0
        for t in range(x.shape[0]):
            y[t, c] = np.exp(x[t, c] - top)
            total += y[t, c]
        for t in range(x.shape[0]):
            y[t, c] = y[t, c] / total
    return y


@layer
def shared(x: real["T C"]) -> real["T C"]:
    """An array that each channel makes for itself."""
    T, C = x.shape
    y = np.zeros_like(x)
    for c in range(C):
        row = np.zeros(T)
        for t in range(T):
            row[t] = x[t, c] ** 2
        s = np.sum(row)
        for t in range(T):
            y[t, c] = row[T - 1 - t] / (1.0 + s)
    return y


@layer
def later(x: real["T C"]) -> real["T C"]:
    """A channel that asks for what the one before has made."""
    T, C = x.shape
    y = np.zeros_like(x)
    s = 0.0
    for c in range(C):
        m = 0.0
        for t in range(T):
            m += x[t, c]
        for t in range(T):
            y[t, c] = x[t, c] * m + s
        s = s + np.tanh(m)
    return y


@layer
def entropy(x: real["H W C"], label: i32["C"]) -> real[""]:
    """Arrays of its own, and an index that is asked about last."""
    total = 0.0
    for c in range(x.shape[2]):
        e = np.exp(x[:, 0, c] - np.max(x[:, 0, c]))
        total += np.log(np.sum(e)) * e[0] - x[label[c], 0, c]
    return total


@layer
def two_questions(x: real["H C"], a: i32["C"], b: i32["C"]) -> real[""]:
    """Which of two is out of range first is told by the channel."""
    total = 0.0
    for c in range(x.shape[1]):
        m = np.sum(x[:, c] ** 2)
        total += x[a[c], c] * m
        total += x[b[c], c] * m
    return total


@layer
def some(x: real["T C"]) -> real["T C"]:
    """Not all of the channels, and from the last one on."""
    T, C = x.shape
    y = np.zeros_like(x)
    for c in range(C - 1, 0, -1):
        m = 0.0
        for t in range(T):
            m += x[t, c] * x[t, c - 1]
        for t in range(T):
            y[t, c] = x[t, c] * m
    return y
'''
SHAPES = {
    "normed": ["h w c", "c"],
    "of_rows": ["h w c"],
    "total": ["h c"],
    "largest": ["h c"],
    "shared": ["h c"],
    "later": ["h c"],
    "entropy": ["h w c", "labels"],
    "two_questions": ["h c", "labels", "labels"],
    "some": ["h c"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("across")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "across_of", TEXT)


def draw(name: str, h: int, w: int, c: int, batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(h + 10 * c)
    found = []
    for k, text in enumerate(SHAPES[name]):
        if text == "labels":
            found.append(rng.integers(-h, h, (batch, c)).astype(np.int32) if h else np.zeros((batch, c), np.int32))
            continue
        shape = tuple({"h": h, "w": w, "c": c}[n] for n in text.split())
        found.append(rng.standard_normal((batch, *shape) if k == 0 else shape))
    return found


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("h", "w", "c", "batch"), [(1, 1, 1, 1), (3, 2, 1, 2), (4, 3, 5, 5), (2, 5, 33, 1)])
def test_values_and_gradients(package, name, h, w, c, batch):
    agrees(getattr(package, name), draw(name, h, w, c, batch), np.random.default_rng(c), 1e-10, 3e-5)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("h", "w", "c"), [(3, 2, 0), (1, 0, 2)])
def test_none_at_all(package, name, h, w, c):
    layer, values = getattr(package, name), draw(name, h, w, c, 2)
    try:
        with np.errstate(all="ignore"):
            want = layer.reference(*values)
    except (IndexError, ZeroDivisionError):  # of no columns none is the first, and Python divides by zero
        return
    np.testing.assert_array_equal(layer(*values), want)


@pytest.mark.parametrize("name", SHAPES)
def test_bits_do_not_hang_on_threads(package, name):
    values = draw(name, 17, 9, 33, 9)
    same_bits(getattr(package, name), [v.astype(np.float32) if v.dtype == float else v for v in values])


def test_the_first_fault_is_told(package):
    x, ok = np.zeros((1, 3, 4)), np.zeros((1, 4), np.int32)
    late, early = ok.copy(), ok.copy()
    late[0, 3], early[0, 1] = 7, 9
    with pytest.raises(IndexError, match="9"):
        package.two_questions(x, late, early)
    with pytest.raises(IndexError, match="7"):
        package.two_questions(x, late, ok)
    with pytest.raises(IndexError, match="7"):
        package.entropy(x[:, :, None], late)


@pytest.mark.parametrize(("name", "methods"), [("normed", ("predict", "backward")), ("largest", ("predict",))])
def test_vectors_run_along_memory(folder, package, name, methods):
    kernels = kernels_in(folder / "across_of.py")
    for method in methods:
        rows = [s for s in walk(kernels[name, method].body) if isinstance(s, For) and in_vectors(s)]
        places = [(r.var, s.index) for r in rows for s in walk(r.body) if isinstance(s, Store) and len(s.index) > 1]
        assert places
        assert not any(var in d.symbols() for var, index in places for d in index[:-1]), method
