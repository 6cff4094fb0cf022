"""Extents that are one for some sizes, or for all by an argument of their own; and loops whose sizes depend on what
they count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.transpile.dims import Dim, coincide, maximum, may_be_one, minimum, same_extent
from layerc.transpile.layers import check_file
from layerc.transpile.program import For, walk_stmts

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def turned(x: real["T D"], k: int = 1) -> real["T D"]:
    """Both parts together are as long as x, however long each is."""
    return x * np.concatenate([x[k:], x[:k]])


@layer
def before(x: real["T D"]) -> real["T D"]:
    return x * np.concatenate([np.ones_like(x[:1]), x[:-1]])


@layer
def same(x: real["T D"], w: Param[real["K"]]) -> real["T D"]:
    """K//2 on either side are enough, be K even or odd."""
    k = w.shape[0]
    p = np.pad(x, ((k // 2, k // 2), (0, 0)))
    y = np.zeros_like(x)
    for j in range(k):
        y += w[j] * p[j : j + x.shape[0]]
    return y


@layer
def dilated(x: real["T D"], w: Param[real["K"]], dilation: int = 1) -> real["T D"]:
    t = x.shape[0]
    y = np.zeros_like(x)
    for j in range(w.shape[0]):
        o = min(j * dilation, t)
        y[o:] += w[j] * x[: t - o]
    return y


@layer
def rotary(x: real["T D"], angle: Param[real["D//2"]]) -> real["T D"]:
    a, b = x[:, 0::2], x[:, 1::2]
    y = np.empty_like(x)
    y[:, 0::2] = a * np.cos(angle) - b * np.sin(angle)
    y[:, 1::2] = a * np.sin(angle) + b * np.cos(angle)
    return y


@layer
def halves(x: real["T D"]) -> real["T D"]:
    """A count of every second place is the greater half, which is what D // 2 leaves."""
    t, d = x.shape
    half = d // 2
    angle = np.arange(t)[:, None] / 100.0 ** (np.arange(0, d, 2) / d)
    c, s = np.cos(angle), np.sin(angle)
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


@layer
def scores(q: real["T D"], k: real["S D"]) -> real["T S"]:
    half = q.shape[1] // 2
    c = np.cos(np.arange(q.shape[0])[:, None] * np.ones(half))
    turned = np.concatenate([q[:, :half] * c, q[:, half:] * c], axis=-1)
    return np.einsum("id,jd->ij", turned, k) * np.tensordot(turned, k, axes=([1], [1]))


@layer
def quarters(x: real["H W"]) -> real["H//2 W//2"]:
    a, b = np.maximum(x[::2, ::2], x[1::2, ::2]), np.maximum(x[::2, 1::2], x[1::2, 1::2])
    return np.maximum(a, b)


@layer
def crossed(x: real["T D"]) -> real["T D"]:
    return x * np.stack([-x[:, 1::2], x[:, 0::2]], axis=-1).reshape(x.shape)


@layer
def leading(x: real["T D"], w: Param[real["K"]], n: int = 3) -> real["n D"]:
    """As many as there are of another argument, and as configuration says."""
    return x[:n] ** 2 * np.sum(w * x[: w.shape[0], 0])


@layer
def pyramid(x: real["T D"]) -> real["7 D"]:
    t = x.shape[0]
    parts = []
    for n in (1, 2, 4):
        for i in range(n):
            parts.append(np.mean(x[i * t // n : (i + 1) * t // n], axis=0))
    return np.stack(parts)


@layer
def powers(x: real["T D"]) -> real["7 D"]:
    t = x.shape[0]
    y = np.zeros((7, x.shape[1]))
    at = 0
    for level in range(3):
        n = 2**level
        for i in range(n):
            y[at] = np.mean(x[i * t // n : (i + 1) * t // n], axis=0) ** 2
            at += 1
    return y


@layer
def joined(x: real["T"], a: real[""]) -> real["T+3"]:
    """Lists of numbers stand between arrays."""
    return np.concatenate([[a], np.cumprod(x)[:-1], [0.5, a, 1]]) ** 2


@layer
def asserted(x: real["C T"]) -> real["C//2 T"]:
    c, t = x.shape
    assert c % 2 == 0, "channels must be even"
    return x[: c // 2] * np.tanh(x[c // 2 :])


@layer(batched=True)
def pairs(z: real["N D"]) -> real[""]:
    n = z.shape[0] // 2
    return np.sum((z[:n] - z[n:]) ** 2 * z[:n])
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("agree"), "agree", TEXT)


def draw(*shape: int, dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


CASES = {
    "turned": [([(3, t, 4)], {"k": k}) for t, k in [(5, 1), (5, 5), (5, 9), (1, 1), (4, 0), (0, 2)]],
    "before": [([(3, t, 4)], {}) for t in (0, 1, 2, 7)],
    "same": [([(3, t, 4), (k,)], {}) for t in (1, 6) for k in (1, 2, 3, 4, 9)],
    "dilated": [([(3, t, 4), (3,)], {"dilation": d}) for t in (1, 2, 9) for d in (1, 2, 4)],
    "rotary": [([(3, 5, d), (d // 2,)], {}) for d in (2, 6, 32)],
    "halves": [([(3, 5, d)], {}) for d in (2, 6, 32)],
    "scores": [([(3, 5, d), (3, 4, d)], {}) for d in (2, 6, 32)],
    "quarters": [([(3, h, w)], {}) for h, w in [(2, 2), (4, 6), (8, 34)]],
    "crossed": [([(3, 5, d)], {}) for d in (2, 6, 32)],
    "leading": [([(3, t, 4), (k,)], {"n": n}) for t, k, n in [(6, 2, 3), (3, 3, 3), (5, 1, 0), (1, 1, 1)]],
    "pyramid": [([(3, t, 4)], {}) for t in (4, 7, 16)],
    "powers": [([(3, t, 4)], {}) for t in (4, 7, 16)],
    "joined": [([(3, t), (3,)], {}) for t in (1, 2, 9)],
    "asserted": [([(3, c, 4)], {}) for c in (2, 6)],
    "pairs": [([(n, 4)], {}) for n in (2, 6)],
}


@pytest.mark.parametrize("name", CASES)
def test_is_as_numpy_where_sizes_agree(package, name):
    layer = getattr(package, name)
    for shapes, options in CASES[name]:
        for dtype, tight in ((np.float64, 1e-11), (np.float32, 1e-4)):
            values = [draw(*shape, dtype=dtype) for shape in shapes]
            close = 1e-6 if dtype is np.float64 else 2e-3
            agrees(layer, values, np.random.default_rng(0), tight, close, exact=False, **options)


ODD = [
    ("rotary", [(3, 5, 7), (3,)], {}, "operands could not be broadcast together"),
    ("halves", [(3, 5, 7)], {}, "operands could not be broadcast together"),
    ("scores", [(3, 5, 7), (3, 4, 7)], {}, "operands could not be broadcast together"),
    ("quarters", [(3, 4, 5)], {}, "operands could not be broadcast together"),
    ("crossed", [(3, 4, 5)], {}, "operands could not be broadcast together"),
    ("leading", [(3, 2, 4), (1,)], {"n": 3}, "operands could not be broadcast together"),
    ("leading", [(3, 3, 4), (5,)], {"n": 3}, "operands could not be broadcast together"),
    ("turned", [(3, 3, 4)], {"k": -1}, "negative"),
    ("pairs", [(5, 4)], {}, "operands could not be broadcast together"),
    ("asserted", [(2, 5, 4)], {}, "channels must be even"),
]


@pytest.mark.parametrize(("name", "shapes", "options", "message"), ODD)
def test_is_an_error_with_its_place_where_they_do_not(package, name, shapes, options, message):
    values = [draw(*shape) for shape in shapes]
    for call in (getattr(package, name), getattr(package, name).vjp):
        with pytest.raises((ValueError, IndexError, AssertionError), match=rf"agree\.py:\d+: {name}: .*{message}"):
            call(*values, **options)


PLAIN = """

@layer
def plain(x: real["T"]) -> real["T"]:
    for n in (1, 2, 4):
        x = x * n
    return x
"""


def test_a_loop_is_typed_one_by_one_only_where_sizes_depend_on_it():
    layers = check_file(Path("agree.py"), TEXT + PLAIN).layers
    loops = {layer.name: sum(isinstance(s, For) for s in walk_stmts(layer.predict.body)) for layer in layers}
    assert loops["pyramid"] == loops["powers"] == 3
    assert loops["plain"] == 1


N, K, M = map(Dim.of, "NKM")


def test_what_is_one_for_all_sizes():
    assert same_extent(maximum(Dim.of(0), N - K) + minimum(K, N), N)
    assert same_extent(minimum(N + 1, K + 1), minimum(N, K) + 1)
    assert not same_extent(minimum(N, K), N)
    assert not same_extent((N + 1) // 2, N // 2)
    assert same_extent((N + 1) // 2, N - N // 2)
    assert same_extent((N + K + 5) // 2, N + K - (N + K) // 2 + 2)
    assert not same_extent((N + 2) // 3, N - N // 3)


def test_what_is_one_for_some():
    assert may_be_one((N + 1) // 2, N // 2)
    assert may_be_one(N - N // 2, N // 2)
    assert may_be_one(minimum(N, K), K)
    assert coincide(minimum(N, K) * M, K * M)
    assert not may_be_one(minimum(N, Dim.of(2)), N)  # x[:2] is two elements of x
    assert not may_be_one(minimum(N, Dim.of(1)), N)  # which is repeated
    assert not may_be_one(N - 1, N)
    assert not may_be_one(N // 2, N)
    assert not may_be_one(N, K)


def test_a_dimension_may_be_called_as_a_number_is(tmp_path):
    text = '\n\n@layer\ndef named(x: real["T"], n: real, w: real["n"]) -> real["T"]:\n    return x * n + np.sum(w)\n'
    package = built_from(tmp_path, "named_of", f"import numpy as np\nfrom layerc import layer, real{text}")
    agrees(package.named, [draw(2, 5), draw(2), draw(2, 3)], np.random.default_rng(0), 1e-12, 1e-6)
