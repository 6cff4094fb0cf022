"""`specialize`: kernels for one shape, chosen by themselves; the same numbers; a bounded cache."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from layerc.build.driver import build
from layerc.runtime import specialise

SOURCE = """
import numpy as np
from layerc import Param, layer, real

@layer
def scaled(x: real["C S"], w: Param[real["C"]], power: int = 2, shift: float = 0.5) -> real["C S"]:
    return w[:, None] * (x - shift) ** power + np.sum(x, axis=1)[:, None]

@layer(batched=True)
def dense(x: real["N D"], w: Param[real["D K"]]) -> real["N K"]:
    return np.tanh(x @ w)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LAYERC_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "special.py"
    path.write_text(SOURCE)
    build(path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "special_compiled", raising=False)
    return SimpleNamespace(L=importlib.import_module("special_compiled"), cache=tmp_path / "cache" / "variants")


def arguments(rng: np.random.Generator, batch: int, s: int, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((batch, 3, s)).astype(dtype), rng.standard_normal(3).astype(dtype)


def both(f: Any, *args: np.ndarray) -> list[np.ndarray]:
    y, pullback = f.vjp(*args)
    return [y, *pullback(np.ones_like(y))]


def test_same_numbers_and_chosen_by_itself(package: Any) -> None:
    f, rng = package.L.scaled, np.random.default_rng(0)
    args, others = arguments(rng, 5, 7), arguments(rng, 4, 7)
    before, elsewhere = both(f, *args), both(f, *others)
    assert f.cache_info() == (0, 0, 0, specialise.MAXSIZE)
    f.specialize(x=(5, 3, 7), w=(3,))
    for one, other in zip(both(f, *args), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)
    assert f.cache_info()[:3] == (1, 2, 0)
    for one, other in zip(both(f, *others), elsewhere, strict=True):
        np.testing.assert_array_equal(one, other)
    f(*arguments(rng, 5, 7, np.float64))  # another type is another case
    f(*args, power=3)  # and so is another configuration
    assert f.cache_info()[:3] == (1, 2, 4)


def test_configuration_types_and_products(package: Any) -> None:
    rng = np.random.default_rng(1)
    f, args = package.L.scaled, arguments(rng, 2, 4, np.float64)
    expected = f(*args, power=3)
    f.specialize(x=(2, 3, 4), w=(3,), power=3, dtype=np.float64)
    np.testing.assert_allclose(f(*args, power=3), expected, rtol=1e-12)
    assert f.cache_info()[:3] == (1, 1, 0)
    g = package.L.dense
    x, w = rng.standard_normal((9, 5)).astype("f"), rng.standard_normal((5, 6)).astype("f")
    before = both(g, x, w)
    g.specialize(x=(9, 5), w=(5, 6))
    for one, other in zip(both(g, x, w), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_the_cache_is_bounded_and_found_again(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialise, "MAXSIZE", 2)
    f = package.L.scaled
    for s in (2, 3, 4):
        f.specialize(x=(1, 3, s), w=(3,))
    assert f.cache_info().size == 2
    made = sorted(p.name for p in package.cache.iterdir())
    assert len(made) == 3
    f.specialize(x=(1, 3, 2), w=(3,))  # from the disk
    assert sorted(p.name for p in package.cache.iterdir()) == made


def test_mistakes(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = package.L.scaled
    with pytest.raises(TypeError, match=r"scaled.*'w'"):
        f.specialize(x=(3, 4))
    with pytest.raises(ValueError, match="scaled"):
        f.specialize(x=(3, 4), w=(5,))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    with pytest.raises(RuntimeError, match="compiler"):
        f.specialize(x=(3, 4), w=(3,))
    assert f.cache_info().size == 0
