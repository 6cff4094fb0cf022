"""Arrays that are seen in groups: normalised, pooled, shuffled by `np.reshape`, in one sweep with what is around."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

SOURCE = '''
import numpy as np
from layerc import Param, layer, real


@layer
def group_norm(x: real["C H W"], weight: Param[real["C"]], bias: Param[real["C"]], *, groups: int = 3) -> real["C H W"]:
    """As it is written everywhere."""
    C, H, W = x.shape
    g = x.reshape(groups, C // groups, H, W)
    mean = np.mean(g, axis=(1, 2, 3), keepdims=True)
    var = np.var(g, axis=(1, 2, 3), keepdims=True)
    y = ((g - mean) / np.sqrt(var + 1e-5)).reshape(C, H, W)
    return y * weight[:, None, None] + bias[:, None, None]


@layer
def pooled(x: real["C H W"]) -> real["C H//2 W//2"]:
    """Two axes of one array in pairs."""
    C, H, W = x.shape
    return np.sum(np.exp(x).reshape(C, H // 2, 2, W // 2, 2), axis=(2, 4))


@layer
def scaled(x: real["C S"], w: Param[real["C"]]) -> real["C S"]:
    """Products before and behind the groups; the weights count both ways."""
    C, S = x.shape
    m = (x * w[:, None]).reshape(2, C // 2, S)
    top = np.max(m, axis=1, keepdims=True)
    return np.tanh(m - top).reshape(C, S) * w[::-1, None] + x


@layer(batched=True)
def shuffled(x: real["N C S"], w: real["C"]) -> real["N C S"]:
    """Groups change places with their members; a batch of one function."""
    N, C, S = x.shape
    y = (x * w[:, None]).reshape(N, 2, C // 2, S)
    return np.swapaxes(y / (1 + np.sum(y * y, axis=2, keepdims=True)), 1, 2).reshape(N, C, S)


@layer
def counted(x: real["C S"], w: Param[real["C"]], *, groups: int = 2) -> real["C"]:
    """Sums of the channels that are asked for on their own, too."""
    C, S = x.shape
    m = x * w[:, None]
    total = np.sum(np.tanh(m.reshape(groups, C // groups, S)))
    return np.exp(np.sum(m, axis=1)) + total


@layer
def sometimes(x: real["C S"], w: Param[real["C"]], *, groups: int = 2, often: int = 0) -> real["C S"]:
    """Groups that nobody may ever look at: where nobody does, any number of channels will do."""
    C, S = x.shape
    m = np.exp(x * w[:, None])
    total = 0.0
    for k in range(often):
        total += np.sum(np.tanh(m.reshape(groups, C // groups, S))) * (k + 1)
    return m * (1 + total)


@layer
def headed(x: real["T D"], w: Param[real["D D"]], b: Param[real["D"]]) -> real["T D"]:
    """Heads: what a product makes is seen in groups."""
    T, D = x.shape
    q = (x @ w + b).reshape(T, 2, D // 2)
    s = np.einsum("thd,shd->hts", q, q)
    return np.einsum("hts,shd->thd", np.tanh(s), q).reshape(T, D)
'''

SHAPES = {
    "group_norm": lambda n, c, s: [(n, 3 * c, s, 4), (3 * c,), (3 * c,)],
    "pooled": lambda n, c, s: [(n, c, 2 * s, 6)],
    "scaled": lambda n, c, s: [(n, 2 * c, s), (2 * c,)],
    "shuffled": lambda n, c, s: [(n, 2 * c, s), (2 * c,)],
    "counted": lambda n, c, s: [(n, 2 * c, s), (2 * c,)],
    "sometimes": lambda n, c, s: [(n, c, s), (c,)],
    "headed": lambda n, c, s: [(n, s, 2 * c), (2 * c, 2 * c), (2 * c,)],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("regroup"), "groups_of", SOURCE)


def draw(rng, shapes, real):
    return [(0.5 * rng.standard_normal(s)).astype(real) for s in shapes]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize(("examples", "channels", "size"), [(1, 1, 1), (2, 2, 3), (5, 4, 7), (9, 1, 20), (0, 2, 2)])
def test_values_and_gradients(package, name, real, examples, channels, size):
    rng = np.random.default_rng(channels + size)
    values = draw(rng, SHAPES[name](examples, channels, size), real)
    agrees(getattr(package, name), values, rng, *((1e-11, 1e-5) if real == np.float64 else (3e-5, 2e-3)))


@pytest.mark.parametrize("name", ["group_norm", "scaled", "shuffled", "headed"])
def test_arrays_without_elements(package, name):
    """Gradients of weights are zeros then, all of them."""
    values = draw(np.random.default_rng(0), SHAPES[name](2, 3, 0), np.float64)
    y, pullback = getattr(package, name).vjp(*values)
    for value, gradient in zip(values, pullback(np.ones_like(y)), strict=True):
        assert gradient.shape == value.shape
        assert not gradient.any()


def test_groups_that_leave_a_channel(package):
    """Of an array without elements any groups are right, and no channel is forgotten; else it is a mistake."""
    x, w = np.ones((2, 4, 0, 4)), np.ones(4)
    y, pullback = package.group_norm.vjp(x, w, w)
    assert y.shape == x.shape
    assert [g.shape for g in pullback(y)] == [x.shape, w.shape, w.shape]
    assert all(not g.any() for g in pullback(y))
    assert np.array_equal(package.counted(np.ones((2, 5, 0)), np.ones(5)), np.ones((2, 5)))
    with pytest.raises(ValueError, match="cannot reshape"):
        package.group_norm(np.ones((2, 4, 5, 4)), w, w)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("examples", [1, 2, 20])
def test_bits_do_not_hang_on_threads(package, name, examples):
    values = draw(np.random.default_rng(1), SHAPES[name](examples, 4, 40), np.float32)
    same_bits(getattr(package, name), values)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("nests") / "groups_of.py"
    path.write_text(SOURCE)
    return kernels_in(path)


@pytest.mark.parametrize("method", ["predict", "vjp", "pullback"])
def test_group_norm_makes_no_array_of_an_example(kernels, method):
    """One group is at hand at a time."""
    temps = [b for b in kernels["group_norm", method].buffers if b.kind == "temp" and not b.alias]
    axes = {b: [d for d in b.shape if not str(d).endswith(", 32))")] for b in temps}  # a gang has 32 at most
    images = [b for b in temps if "H" in {s for d in axes[b] for s in d.symbols()}]
    assert all(str(b.shape[0]).startswith("(C//") for b in images), images
