"""A pullback holds what its kernel reads; of what gives it no more than a shape it takes the numbers."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import built_from

LAYERS = """
import numpy as np
from layerc import Layer, Param, i32, layer, real


@layer
def bag(index: i32["L"], table: Param[real["V D"]]) -> real["D"]:
    total = np.zeros(table.shape[1])
    for i in range(index.shape[0]):
        total += table[index[i]]
    return total / index.shape[0]


@layer
def roots(a: real["D"]) -> real["D"]:
    # Of what those before leave: its gradient asks for the roots.
    y = np.zeros(a.shape)
    for i in range(a.shape[0]):
        s = a[i]
        for k in range(i):
            s -= 0.1 * y[k]
        y[i] = np.sqrt(s)
    return y


@layer
def ends(D: real["D"], w: real["D"]) -> real[""]:
    return D[0] + 2.0 * D[D.shape[0] - 1] + w[1] ** 2


class Bag(Layer):
    table: Param[real["9 D"]]

    def predict(self, index: i32["L"], x: real["D"]) -> real["D"]:
        return np.sum(self.table[index], axis=0) + x
"""


@pytest.fixture(scope="module")
def L(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return built_from(Path(tmp_path_factory.mktemp("held")), "held_layers", LAYERS)


def arguments(name: str, dtype: Any = np.float64) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    if name == "bag":
        return rng.integers(0, 7, (3, 4)).astype(np.int32), rng.standard_normal((7, 5)).astype(dtype)
    if name == "roots":
        return (rng.uniform(8, 9, (3, 4)).astype(dtype),)
    return rng.standard_normal((3, 5)).astype(dtype), rng.standard_normal((3, 5)).astype(dtype)


UNREAD = {"bag": {1}, "roots": {0}, "ends": {0}}  # by position


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", UNREAD)
def test_what_is_asked_for_its_shape_only_is_let_go(L: Any, name: str, calls: int) -> None:
    layer = getattr(L, name)
    for _ in range(calls):  # first as a new call, then as a known one
        given = list(arguments(name))
        y, pullback = layer.vjp(*given)
        seen = [weakref.ref(a) for a in given]
        given.clear()
        gc.collect()
        assert {k for k, one in enumerate(seen) if one() is None} == UNREAD[name]
        assert len(pullback(np.ones_like(y))) == len(seen)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNREAD)
def test_gradients_are_those_of_numpy(L: Any, name: str, dtype: Any) -> None:
    layer, given = getattr(L, name), arguments(name, dtype)
    y, plain = layer.vjp(*given, acceleration="none")
    dy = np.random.default_rng(4).standard_normal(y.shape).astype(dtype)
    wanted = plain(dy)
    for _ in range(2):
        into = tuple(None if g is None else np.empty_like(g) for g in wanted)
        for out in (None, into):
            for one, other in zip(layer.vjp(*given)[1](dy, out=out), wanted, strict=True):
                assert (one is None) == (other is None)
                if other is not None:
                    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_gradients_may_go_where_the_argument_was(L: Any) -> None:
    """Nothing is copied for that: it is not read any more."""
    (a,) = arguments("roots")
    y, pullback = L.roots.vjp(a)
    (wanted,) = pullback(np.ones_like(y))
    assert pullback(np.ones_like(y), out=(a,))[0] is a
    np.testing.assert_array_equal(a, wanted)


def test_variants_for_one_shape_hold_as_little(L: Any) -> None:
    (a,) = arguments("roots")
    y, pullback = L.roots.vjp(a)
    (wanted,) = pullback(np.ones_like(y))
    L.roots.specialize(a=a.shape)
    y, pullback = L.roots.vjp(a)
    seen = weakref.ref(a)
    del a
    assert seen() is None
    np.testing.assert_allclose(pullback(np.ones_like(y))[0], wanted, rtol=1e-12)


def test_classes(L: Any) -> None:
    layer = L.Bag(name="b")
    index, x = np.array([[0, 8], [1, 8]], np.int32), np.zeros((2, 3))
    table = np.arange(27.0).reshape(9, 3)
    layer.params["table"] = table
    y, pullback = layer.vjp(index, x)
    np.testing.assert_array_equal(y, table[index].sum(axis=1))
    wanted = np.zeros_like(table)
    np.add.at(wanted, index, np.ones((2, 1, 3)))
    np.testing.assert_array_equal(pullback(np.ones_like(y)).params["table"], wanted)


def test_the_manifest_says_what_is_not_read(L: Any) -> None:
    unread = {name: getattr(L, name).manifest["methods"]["backward"].get("unread") for name in UNREAD}
    assert unread == {"bag": ["table"], "roots": ["a"], "ends": ["D"]}
    assert "unread" not in L.ends.manifest["methods"]["predict"]
