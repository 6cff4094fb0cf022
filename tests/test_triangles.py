"""Attentions with masks: what nobody asks for of a product is not made; sums over scores are sums over results."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import gradient_source, read_module
from layerc.transpile.ir import Product
from layerc.transpile.passes.tree import walk

TEXT = '''
import numpy as np
from layerc import layer, real


def softmax(s):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@layer
def causal(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    t, d = q.shape
    seen = np.arange(t)[:, None] >= np.arange(t)[None, :]
    return softmax(np.where(seen, q @ k.T / np.sqrt(d), -np.inf)) @ v


@layer
def later(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """The other triangle, as a comparison the other way round, and an einsum."""
    i, j = np.arange(q.shape[0])[:, None], np.arange(q.shape[0])[None, :]
    return np.einsum("ts,sd->td", softmax(np.where(j < i, -1e30, q @ k.T)), v)


@layer
def window(q: real["T D"], k: real["T D"], v: real["T D"], w: int = 5) -> real["T D"]:
    """As far as w on one side, three on the other."""
    i, j = np.arange(q.shape[0])[:, None], np.arange(q.shape[0])[None, :]
    near = (i - j < w) & (j - i <= 3)
    return softmax(np.where(near, q @ k.T, -np.inf)) @ v


@layer
def crossed(q: real["T D"], k: real["S D"], v: real["S E"]) -> real["T E"]:
    """Rows that begin somewhere along others; as NumPy's own triangle."""
    s = q @ k.T
    seen = np.tri(q.shape[0], k.shape[0], 2) > 0
    return softmax(np.where(seen, s, -1e9)) @ v


@layer
def heads(q: real["H T D"], k: real["H T D"], v: real["H T D"]) -> real["H T D"]:
    t = q.shape[1]
    mask = np.where(np.arange(t)[:, None] >= np.arange(t)[None, :], 0.0, -np.inf)
    return softmax(q @ np.swapaxes(k, 1, 2) + mask) @ v


@layer
def open_(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """No mask."""
    return softmax(q @ k.T) @ v


@layer
def both(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """Scores that something else asks for, too."""
    s = q @ k.T
    seen = np.arange(q.shape[0])[:, None] >= np.arange(q.shape[0])[None, :]
    return softmax(np.where(seen, s, -np.inf)) @ v + np.mean(s)


@layer
def linear(q: real["T D"], k: real["T D"], v: real["T D"]) -> real["T D"]:
    """No softmax: 0 where the mask is."""
    i, j = np.arange(q.shape[0])[:, None], np.arange(q.shape[0])[None, :]
    return np.where(i >= j, q @ k.T, 0.0) @ v
'''
ASKED = {"causal": 1, "later": 1, "window": 2, "crossed": 1, "linear": 1}
NAMES = [*ASKED, "heads", "open_", "both"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("triangles")


@pytest.fixture(scope="module")
def package(folder):
    return built_from(folder, "masked", TEXT)


def draw(name: str, t: int, d: int, dtype: type, examples: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(31 * t + d)
    shapes = {
        "heads": [(examples, 2, t, d)] * 3,
        "crossed": [(examples, t, d), (examples, t + 4, d), (examples, t + 4, d + 1)],
    }
    return [rng.standard_normal(s).astype(dtype) for s in shapes.get(name, [(examples, t, d)] * 3)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("t", "d"), [(1, 1), (3, 40), (17, 16), (40, 5), (75, 33)])
def test_values_and_gradients(package, name: str, t: int, d: int) -> None:
    agrees(getattr(package, name), draw(name, t, d, np.float64), np.random.default_rng(t), 1e-10, 1e-5, exact=False)


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_hang_on_threads(package, name: str) -> None:
    for examples, t in ((1, 300), (6, 33)):
        same_bits(getattr(package, name), draw(name, t, 24, np.float32, examples))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked(folder, package, name: str) -> None:
    forward = next(k for (layer, m), k in kernels_in(folder / "masked.py").items() if (layer, m) == (name, "predict"))
    asked = [len(s.asked) for s in walk(forward.body) if isinstance(s, Product)]
    assert max(asked, default=0) == ASKED.get(name, 0)


@pytest.mark.parametrize("name", ["causal", "window", "crossed", "linear", "later"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_seen_where_numpy_sees_it(package, name: str, bad: float) -> None:
    """In a row that others are masked from, too."""
    layer = getattr(package, name)
    for place in range(3):
        values = draw(name, 37, 20, np.float64)
        values[place][0, 30, 3] = bad
        with np.errstate(invalid="ignore", over="ignore"):
            want = layer.reference(*values)
        got = layer(*values)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, 1e-10, 1e-10)
        np.testing.assert_array_equal(layer.vjp(*values)[0], got)


@pytest.mark.parametrize("name", ["causal", "later", "window", "crossed", "heads", "open_"])
def test_rows_are_worth_what_their_results_are(folder, package, name: str) -> None:
    text = gradient_source(read_module(folder / "masked.py"), name)
    assert "np.sum(dy * y, axis=" in text


CHANGED = '''
import numpy as np
from layerc import layer, real


@layer
def changed(q: real["T S"], v: real["S D"]) -> real["T D"]:
    """What is multiplied is not what was normalised."""
    e = np.exp(q)
    w = e / np.sum(e, axis=1, keepdims=True)
    p = w.copy()
    p[0] = 1.0
    return p @ v


@layer
def returned(q: real["T S"], v: real["S D"]) -> tuple[real["T D"], real["T S"]]:
    """More than the product comes back for a factor."""
    e = np.exp(q)
    w = e / np.sum(e, axis=1, keepdims=True)
    return w @ v, w * w
'''


@pytest.mark.parametrize("name", ["changed", "returned"])
def test_others_add_up_what_comes_back(folder, name: str) -> None:
    (folder / "changed.py").write_text(CHANGED)
    assert "dy * y" not in gradient_source(read_module(folder / "changed.py"), name)
