"""Outputs in the memory of what they are computed from: which kernels may, and that all give the same."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from nets import built_from

SOURCE = """
    import numpy as np
    from layerc import layer, real

    @layer(batched=True)
    def update(w: real["P"], g: real["P"], v: real["P"], lr: float = 0.1) -> tuple[real["P"], real["P"]]:
        v = 0.9 * v - lr * g
        return w + v, v

    @layer
    def wave(x: real["N"]) -> real["N"]:
        return np.sin(x) * x

    @layer
    def turned(x: real["N"]) -> real["N"]:
        return x[::-1] * 2

    @layer
    def softened(x: real["N"]) -> real["N"]:
        e = np.exp(x - np.max(x))
        return e / np.sum(e)

    @layer
    def sums(x: real["N"]) -> real["N"]:
        return np.cumsum(x)

    @layer
    def smoothed(x: real["N"]) -> real["N"]:
        y = np.zeros(x.shape[0])
        for t in range(x.shape[0]):
            y[t] = x[t] + x[t - 1]
        return y

    @layer
    def twice_read(x: real["N"], z: real["N"]) -> tuple[real["N"], real["N"]]:
        return x + z, x * z

    @layer(batched=True)
    def of_all(x: real["N M"]) -> real["N M"]:
        return x - np.mean(x, axis=0)
    """
OVER = {
    "update": [{"w", "g", "v"}, {"g", "v"}],
    "wave": [{"x"}],
    "twice_read": [{"x", "z"}, {"x", "z"}],  # both are read before the first is stored
    "turned": [set()],
    "softened": [set()],
    "sums": [set()],
    "smoothed": [set()],
    "of_all": [set()],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("overwrite"), "overwrite", SOURCE)


def methods(package, name):
    manifest = json.loads(Path(package.__file__).with_name("manifest.json").read_text())
    (layer,) = [entry for entry in manifest["layers"] if entry["name"] == name]
    return layer["methods"]


def test_which_outputs_may_lie_over_what(package):
    for name, expected in OVER.items():
        outputs = methods(package, name)["predict"]["outputs"]
        assert [set(output.get("over", ())) for output in outputs] == expected, name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OVER)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_in_place_is_the_same(package, name, dtype, size):
    function = getattr(package, name)
    rng = np.random.default_rng(size)
    shape = (size, 3) if name == "of_all" else (size,)
    arrays = [rng.normal(size=shape).astype(dtype) for _ in range({"update": 3, "twice_read": 2}.get(name, 1))]
    expected = function(*[a.copy() for a in arrays])
    if len(arrays) == 1:
        function(arrays[0], out=arrays[0])
        np.testing.assert_array_equal(arrays[0], expected)
        return
    for places in permutations(range(len(arrays)), 2):
        given = [a.copy() for a in arrays]
        function(*given, out=tuple(given[k] for k in places))
        for k, right in zip(places, expected):
            np.testing.assert_array_equal(given[k], right)


def test_one_array_for_all(package):
    """The same memory as two arguments, and shifted by one."""
    x = np.random.default_rng(1).normal(size=1000)
    expected = package.update(x, x, x)
    given = x.copy()
    second = np.empty_like(x)
    package.update(given, given, given, out=(given, second))
    np.testing.assert_array_equal(given, expected[0])
    given = x.copy()
    package.wave(given[:-1], out=given[1:])
    np.testing.assert_array_equal(given[1:], package.wave(x[:-1]))


def test_what_a_pullback_reads_is_not_written_over(package):
    x = np.random.default_rng(2).normal(size=1000)
    _, pullback = package.wave.vjp(x)
    (expected,) = pullback(np.ones(1000))
    _, pullback = package.wave.vjp(x, out=np.empty(1000))
    (found,) = pullback(np.ones(1000))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", OVER)
def test_calls_by_name_are_the_same_when_repeated(package, name):
    """From the second call on they take the short way, which looks at memory by itself."""
    function = getattr(package, name)
    rng = np.random.default_rng(4)
    shape = (50, 3) if name == "of_all" else (50,)
    names = {"update": ("w", "g", "v"), "twice_read": ("x", "z")}.get(name, ("x",))
    arrays = {n: rng.normal(size=shape) for n in names}
    expected = function.run("predict", {n: a.copy() for n, a in arrays.items()}, {}, False)
    for places in permutations(names, len(expected)) if len(names) > 1 else [("x",)]:
        for _ in range(3):
            given = {n: a.copy() for n, a in arrays.items()}
            out = dict(zip(expected, (given[n] for n in places)))
            made = function.run("predict", given, {}, False, out=out)
            for y, right in expected.items():
                assert made[y] is out[y]
                np.testing.assert_array_equal(out[y], right)


def test_short_calls_refuse_what_long_ones_do(package):
    x, z = np.random.default_rng(5).normal(size=(2, 20))
    memory = np.empty(21)

    def call(arrays, y1, y2):
        return package.twice_read.run("predict", arrays, {}, False, out={"y1": y1, "y2": y2})

    for _ in range(3):
        expected = call({"x": x, "z": z}, np.empty(20), np.empty(20))
        with pytest.raises(ValueError, match="overlap"):
            call({"x": x, "z": z}, memory[1:], memory[:-1])
        locked = np.empty(20)
        locked.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            call({"x": x, "z": z}, locked, np.empty(20))
        memory[:20] = x
        shifted = call({"x": memory[:20], "z": z}, memory[1:], np.empty(20))
        for y, right in expected.items():
            np.testing.assert_array_equal(shifted[y], right)
        steps = np.empty(40)[::2]
        call({"x": x, "z": z}, steps, np.empty(20))
        np.testing.assert_array_equal(steps, expected["y1"])
