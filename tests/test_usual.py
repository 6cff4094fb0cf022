"""What configuration usually is: multiplications where exponents have their default, windows written out where extents
and steps have theirs, and the same values whatever is given."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

from layerc.build.driver import compile_module, read_module
from layerc.transpile.ir import For, If, Op
from layerc.transpile.passes.tree import own_exprs, parts, walk

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def norm(x: real["T K"], *, p: float = 3.0) -> real["T"]:
    """A root of what is known too."""
    return np.sum(np.abs(x) ** p, axis=1) ** (1 / p)


@layer
def focal(x: real["T K"], *, gamma: float = 2.0) -> real["T"]:
    p = np.exp(x - np.max(x, axis=1, keepdims=True))
    p = p / np.sum(p, axis=1, keepdims=True)
    return -np.sum((1 - p) ** gamma * np.log(p), axis=1)


@layer
def whole(x: real["T K"], *, n: int = 2, m: int = 3) -> real["T K"]:
    """Whole exponents, of which one is an extent, too."""
    y = x**n
    for i in range(m):
        y[0] = y[0] + x[0] ** m * i
    return y


@layer
def root(x: real["T K"], *, power: float = 0.5) -> real["T K"]:
    return (1 + x * x) ** power - (1 + x * x) ** (power - 1)


@layer
def no_default(x: real["T K"], *, p: float) -> real["T K"]:
    return (1 + x * x) ** p


@layer
def unusual(x: real["T K"], *, p: float = 2.5) -> real["T K"]:
    """A power at its default as well."""
    return (1 + x * x) ** p


@layer
def none(x: real["T K"], *, p: float = 0.0, q: float = 1.0) -> real["T K"]:
    return x**p + x**q


@layer
def by_loops(x: real["T K"], *, p: float = 3.0) -> real["T-1 K-1"]:
    """Windows, with an array that both versions have for themselves."""
    t, k = x.shape
    y = np.zeros((t - 1, k - 1))
    for i in range(t - 1):
        for j in range(k - 1):
            s = 0.0
            for a in range(2):
                for b in range(2):
                    s += abs(x[i + a, j + b]) ** p
            y[i, j] = s ** (1 / p)
    return y


@layer
def pooled(x: real["T K"], *, k: int = 3, s: int = 2) -> real["(T-k)//s+1 (K-k)//s+1"]:
    """Slices by steps, and shapes that hang on them."""
    h, w = (x.shape[0] - k) // s + 1, (x.shape[1] - k) // s + 1
    y = np.zeros((h, w))
    for i in range(k):
        for j in range(k):
            y += x[i : i + s * h : s, j : j + s * w : s] ** 2
    return y / (k * k)


@layer
def by_elements(x: real["T K"], *, k: int = 3, s: int = 2) -> real["(T-k)//s+1 (K-k)//s+1"]:
    h, w = (x.shape[0] - k) // s + 1, (x.shape[1] - k) // s + 1
    y = np.zeros((h, w))
    for p in range(h):
        for q in range(w):
            for i in range(k):
                for j in range(k):
                    y[p, q] += x[p * s + i, q * s + j] ** 2
    return y / (k * k)


@layer
def long(x: real["T K"], *, k: int = 40) -> real["T K"]:
    """Nothing is written out of a window of forty."""
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        for i in range(min(k, t + 1)):
            y[t] += x[t - i]
    return y
'''

CALLS = [
    *(("norm", {"p": p}) for p in (3.0, 2.0, 1.0, 2.5, 3.0000001)),
    *(("focal", {"gamma": g}) for g in (2.0, 1.5, 3.0)),
    *(("whole", {"n": n, "m": m}) for n, m in ((2, 3), (2, 2), (3, 3), (1, 4), (0, 3))),
    *(("root", {"power": p}) for p in (0.5, 1.5, -1.0)),
    ("no_default", {"p": 2.0}),
    ("unusual", {}),
    *(("none", {"p": p, "q": q}) for p, q in ((0.0, 1.0), (0.0, 2.0), (1.0, 1.0))),
    *(("by_loops", {"p": p}) for p in (3.0, 2.0)),
    *((name, {"k": k, "s": s}) for name in ("pooled", "by_elements") for k, s in ((3, 2), (3, 1), (2, 2), (1, 3))),
    ("long", {"k": 40}),
    ("long", {"k": 3}),
]


class Called:
    """A layer with some of its configuration given."""

    def __init__(self, layer, config):
        self.layer, self.config = layer, config

    def __call__(self, x):
        return self.layer(x, **self.config)

    def vjp(self, x):
        return self.layer.vjp(x, **self.config)

    def reference(self, x):
        return self.layer.reference(x, **self.config)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("usual"), "usual_of", TEXT)


def draw(shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(("name", "config"), CALLS, ids=str)
@pytest.mark.parametrize("shape", [(3, 2, 3), (2, 5, 18), (1, 9, 40)])
def test_values_and_gradients(package, name, config, shape):
    layer = Called(getattr(package, name), config)
    if config.get("s") and config["k"] > min(shape[1:]):
        pytest.skip("no window fits in")
    agrees(layer, [draw(shape)], np.random.default_rng(shape[2]), 1e-9, 3e-5)


@pytest.mark.parametrize("name", ["norm", "focal", "by_loops", "pooled", "by_elements"])
def test_bits_do_not_hang_on_threads(package, name):
    same_bits(getattr(package, name), [draw((9, 5, 33), np.float32)])


@pytest.mark.parametrize(("name", "config"), [("norm", {"p": 3.0}), ("root", {"power": 0.5}), ("none", {"p": 0.0})])
def test_special_values(package, name, config):
    x = np.array([[[0.0, -0.0, np.inf], [-np.inf, np.nan, 1e-30]]])
    layer = getattr(package, name)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(layer(x, **config), layer.reference(x, **config))


def body_of(path, name):
    """Of a layer's kernel, as the passes begin with it."""
    path.write_text(TEXT)
    parts = compile_module(read_module(path), upto="fold").parts
    return next(p.kernel.body for p in parts if (p.layer.name, p.method) == (name, "predict"))


def powers(body) -> int:
    return sum(isinstance(p, Op) and p.op == "power" for s in walk(body) for e in own_exprs(s) for p in parts(e))


@pytest.mark.parametrize(
    ("name", "usual", "otherwise"), [("norm", 1, 2), ("focal", 0, 1), ("whole", 0, 2), ("root", 0, 2), ("none", 0, 2)]
)
def test_fewer_powers_at_the_default(tmp_path, name, usual, otherwise):
    (split,) = body_of(tmp_path / "usual.py", name)
    assert isinstance(split, If)
    assert (powers(split.then), powers(split.orelse)) == (usual, otherwise)


@pytest.mark.parametrize("name", ["pooled", "by_elements"])
def test_extents_and_steps_are_numbers_at_the_default(tmp_path, name):
    (split,) = body_of(tmp_path / "usual.py", name)
    assert isinstance(split, If)
    names = [
        {n for s in walk(way) if isinstance(s, For) for n in (s.hi - s.lo).symbols()} & {"k", "s"}
        for way in (split.then, split.orelse)
    ]
    assert names == [set(), {"k", "s"}]


@pytest.mark.parametrize("name", ["pooled", "by_elements"])
def test_what_is_given_must_fit_all_the_same(package, name):
    layer, x = getattr(package, name), draw((2, 6, 7))
    with pytest.raises(ValueError, match="negative"):
        layer(x, k=9)
    with pytest.raises(ValueError, match="division by zero"):
        layer(x, s=0)


@pytest.mark.parametrize("name", ["no_default", "unusual", "long"])
def test_one_version_where_it_spares_nothing(tmp_path, name):
    assert not any(isinstance(s, If) for s in body_of(tmp_path / "usual.py", name))
