"""Sums fill four vectors at a time: every length, NaN, and the same bits everywhere."""

from __future__ import annotations

import platform
import re

import numpy as np
import pytest
from nets import built_from
from thorough import agrees, same_bits

TEXT = '''
import numpy as np
from layerc import layer, real


@layer
def moments(x: real["D"]) -> real[""]:
    mean = np.sum(x) / x.shape[0]
    return np.sum((x - mean) * (x - mean)) + mean


@layer
def flat(x: real["C H W"]) -> real[""]:
    """All axes are one: what is left over does not count."""
    return np.sum(x * x) + np.sum(np.abs(x - 1))


@layer
def dear(x: real["D"]) -> real[""]:
    """A loop of four vectors, not four times its body."""
    return np.sum(np.exp(x) * np.tanh(x))


@layer
def of_three(x: real["D"]) -> real[""]:
    """There is enough to do while a sum waits."""
    return np.sum(x) * np.sum(x * x) * np.sum(np.abs(x))


@layer
def standard(x: real["T D"]) -> real["T D"]:
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
'''

LENGTHS = [1, 7, 8, 31, 32, 33, 63, 64, 65, 95, 127, 128, 129, 200, 1023, 1024, 1025, 1060, 2050]
TYPES = ((np.float64, 1e-12), (np.float32, 1e-5))


@pytest.fixture(
    scope="module", params=["cc", "cc -mno-avx512f", "cc -mno-avx2"], ids=["this processor", "AVX2", "neither"]
)
def package(request, tmp_path_factory):
    if "avx" in request.param and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("only x86 has these vectors to do without")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", request.param)
        return built_from(tmp_path_factory.mktemp("abreast"), f"abreast_{request.param_index}", TEXT)


def draw(name: str, n: int, dtype) -> np.ndarray:
    shape = {"flat": (3, 1, n, 2), "standard": (3, 2, n)}.get(name, (3, n))
    return np.random.default_rng(n).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", ["moments", "flat", "dear", "of_three", "standard"])
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(package, name, n):
    layer = getattr(package, name)
    for dtype, tight in TYPES:
        x = draw(name, n, dtype)
        np.testing.assert_allclose(layer(x), layer.reference(x.astype(float)), tight, tight)
        same_bits(layer, [x], (1, 2))
        assert np.array_equal(layer(x), layer.vjp(x)[0])
    if n <= 200:
        agrees(layer, [draw(name, n, np.float64)], np.random.default_rng(n), 1e-11, 1e-5)


@pytest.mark.parametrize("n", [8, 65, 129, 1060])
def test_no_number_is_lost(package, n):
    for k in {0, n // 3, n // 2, n - 1}:
        x = draw("moments", n, np.float32)
        x[1, k] = np.nan
        y = package.moments(x)
        assert np.isnan(y[1])
        assert np.isfinite(y[[0, 2]]).all()


def body_of(package, name: str) -> str:
    text = getattr(package, name).c_source
    body = text[text.index(f"int LC_NAME({name}_f32)(") :]
    return body[: body.index("\n}\n")]


@pytest.mark.parametrize("name", ["moments", "of_three"])
@pytest.mark.parametrize("n", [2**20, 2**20 + 1023, 2**20 + 1025])
def test_blocks_add_up_in_double(package, name, n):
    """A lane that went on would be off by 1e-4; without vectors a block is by 2e-6, and three sums by thrice that."""
    x = np.full((8, n), 0.1, np.float32)  # of fewer examples, blocks are shared among threads
    layer = getattr(package, name)
    np.testing.assert_allclose(layer(x), layer.reference(x.astype(float)), 1e-5 if name == "of_three" else 1e-6)


def test_blocks_are_one_loop(package):
    """Vectors have no loop of blocks around them, which most rows would go through once."""
    for name, sums in (("moments", 2), ("of_three", 3), ("standard", 2)):
        body = body_of(package, name)
        parts = re.split(r"^ *#(if LC_LANES|else|endif)\n", body, flags=re.M)
        where = dict.fromkeys(parts[1::2], "")
        for kind, text in zip(parts[1::2], parts[2::2]):
            where[kind] += text
        assert "+ 1023) / 1024" not in where["if LC_LANES"], name
        assert where["if LC_LANES"].count("_block += 1024;") >= 1, name
        assert where["else"].count("+ 1023) / 1024") >= 1, name
        assert body.count("wide += (double)") + body.count("wide_2 += (double)") >= sums, name


def test_which_loops_are(package):
    for name, times in (("moments", 2), ("flat", 1), ("dear", 1), ("of_three", 0), ("standard", 2)):
        body = body_of(package, name)
        assert body.count("& -lc_abreast_f32") >= times, name
        assert times or "lc_abreast" not in body
