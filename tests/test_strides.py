"""Slices in steps that configuration, or a shape, tells."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from
from thorough import agrees

from layerc.adjoint.gradient import gradient_text
from layerc.transpile.layers import check_file

TEXT = '''
import numpy as np
from layerc import Param, layer, real


@layer
def every(x: real["T D"], p: int = 2) -> real["_ D"]:
    return x[::p] ** 2


@layer
def phases(x: real["T D"], p: int = 2) -> real["D"]:
    s = np.zeros(x.shape[1])
    for i in range(p):
        s += np.sum(x[i::p] ** 2, axis=0) * (i + 1)
    return s


@layer
def scaled(x: real["H W"], p: int = 2) -> real["H W"]:
    y = x.copy()
    for i in range(p):
        for j in range(p):
            y[i::p, j::p] *= 0.5 * (i + j)
    return y


@layer
def pooled(x: real["H W"], stride: int = 2, k: int = 3) -> real["(H-k)//stride+1 (W-k)//stride+1"]:
    h, w = (x.shape[0] - k) // stride + 1, (x.shape[1] - k) // stride + 1
    y = np.full((h, w), -np.inf)
    for i in range(k):
        for j in range(k):
            y = np.maximum(y, x[i : i + stride * h : stride, j : j + stride * w : stride])
    return y


@layer
def filtered(x: real["T"], w: Param[real["K"]], s: int = 1) -> real["(T-K)//s+1"]:
    """The windows are as many as a range counts."""
    k = w.shape[0]
    return np.stack([np.sum(w * x[t : t + k]) for t in range(0, x.shape[0] - k + 1, s)])


@layer
def of_a_view(x: real["T D"], p: int = 2) -> real["T D"]:
    y = x.copy()
    odd = y[1:]
    odd[::p] += x[1:][::p] * x[:-1][::p]
    y[::p][1:] *= 2.0
    return y


@layer
def by_a_shape(x: real["T"], w: Param[real["K"]]) -> real["T"]:
    y = np.zeros_like(x)
    for k in range(w.shape[0]):
        y[k :: w.shape[0]] = w[k] * x[k :: w.shape[0]]
    return y
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("strides"), "strides", TEXT)


CASES = {
    "every": [([(3, t, 4)], {"p": p}) for t in (0, 1, 5, 17) for p in (1, 2, 3, 9)],
    "phases": [([(3, t, 4)], {"p": p}) for t in (0, 1, 5, 17) for p in (0, 1, 2, 3, 9)],
    "scaled": [([(3, h, w)], {"p": p}) for h, w in ((1, 1), (5, 7), (4, 18)) for p in (1, 2, 3)],
    "pooled": [([(3, 9, 20)], {"stride": s, "k": k}) for s in (1, 2, 3, 5) for k in (1, 2, 3, 9)],
    "filtered": [([(3, 19), (k,)], {"s": s}) for s in (1, 2, 5) for k in (1, 3, 4)],
    "of_a_view": [([(3, t, 4)], {"p": p}) for t in (1, 2, 9) for p in (1, 2, 4)],
    "by_a_shape": [([(3, t), (k,)], {}) for t in (1, 9, 33) for k in (1, 2, 5)],
}


@pytest.mark.parametrize("name", CASES)
def test_is_as_numpy(package, name):
    layer = getattr(package, name)
    for shapes, options in CASES[name]:
        for dtype, tight in ((np.float64, 1e-11), (np.float32, 1e-4)):
            rng = np.random.default_rng(0)
            values = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
            close = 1e-6 if dtype is np.float64 else 2e-3
            agrees(layer, values, rng, tight, close, exact=False, **options)


@pytest.mark.parametrize("step", [0, -1, -3])
def test_a_step_that_is_not_positive_is_an_error(package, step):
    x = np.ones((2, 6, 4))
    with pytest.raises(ValueError, match="the arguments do not fit"):
        package.every(x, p=step)
    with pytest.raises(ValueError, match=r"strides\.py:\d+: of_a_view: the step p of a slice is not positive"):
        package.of_a_view(x, p=step)


@pytest.mark.parametrize(
    ("body", "adds"),
    [
        ("x[0::2] * x[1::2]", 0),
        ("x[0::2] * x[1::2] + x[::2]", 1),
        ("x[0::4] + x[1::4] ** 2 + x[2::4] ** 3", 0),
        ("x[0::4] * x[2::4] + x[0::2][::2]", 2),
    ],
)
def test_what_lies_between_is_stored(tmp_path, body, adds):
    """Slices that take turns never meet: the gradient stores each of them. Others are added to."""
    text = f'from layerc import layer, real\n\n\n@layer\ndef f(x: real["4*N"]) -> real["_"]:\n    return {body}\n'
    path = tmp_path / "between.py"
    path.write_text(text)
    (layer,) = check_file(path).layers
    assert gradient_text(layer, text, str(path)).count("+=") == adds
