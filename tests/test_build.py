# ruff: noqa: E501 (one line a case)
"""From a layer file to a package that works: what is written, when, and what the manifest says."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import layerc
from layerc.build import driver
from layerc.build.driver import build
from layerc.build.gradients import gradients_of

SOURCE = '''
import numpy as np
from layerc import Layer, Param, State, config, init, i64, layer, real


@layer
def gate(x: real["C *S"], w: Param[real["C"]], *, slope: float = 0.5, times: int = 2, flip: bool = False):
    """Scales and saturates.

    With care.
    """
    y = np.tanh(x * w[:, None]) * slope
    for _ in range(times):
        y = y + x
    return -y if flip else y


@layer(batched=True)
def pair(x: real["N D"], k: i64["N"]) -> {"rows": real["N D"], "total": real[""]}:
    return x[k], np.sum(x * x)


@layer
def cube(x: real["*S"]) -> real["*S"]:
    return x**3


@cube.backward
def cube_backward(x, dy):
    return 3 * x * x * dy


@layer(backward=None)
def steps(x: real["_ _"]):
    return np.floor(x).T


@layer(backward=None)
def typed(x: real["N"]):
    return x.astype(np.float32), np.eye(2, dtype=np.float64), np.zeros(3) + x[0], x > 0


class Scale(Layer):
    """Counts its calls."""

    batched = True
    gain: Param[real["C"]] = init.uniform(1, 2)
    seen: State[real[""]] = init.zeros()
    power: int = config(2, check=lambda k: k > 0)

    def predict(self, x: real["N C"]) -> real["N C"]:
        return x * self.gain**self.power

    def forward(self, x: real["N C"]) -> real["N C"]:
        self.seen = self.seen + 1
        return x * self.gain**self.power
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    (folder / "things.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield build(folder / "things.py")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def L(made):
    return importlib.import_module(made.name)


@pytest.fixture(scope="module")
def manifest(made):
    return json.loads((made / "manifest.json").read_text())


def layer_of(manifest, name):
    return next(layer for layer in manifest["layers"] if layer["name"] == name)


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_reference_has_the_types_of_the_compiled(L, real):
    x = np.arange(3).astype(real)
    assert [y.dtype for y in L.typed.reference(x)] == [np.float32, np.float64, real, bool]
    assert [y.dtype for y in L.typed(x)] == [np.float32, np.float64, real, bool]


# -- what is written --------------------------------------------------------------------------------------
def test_the_package_lies_beside_the_file(made):
    assert made.name == "things_compiled"
    names = {p.name for p in made.iterdir()} - {"__pycache__"}
    assert names >= {"__init__.py", "__init__.pyi", "gradients.py", "things.c", "things.h", "manifest.json"}
    assert "things.py" in {p.name for p in made.parent.iterdir()}


def test_the_default_output_can_be_imported():
    assert driver.default_output(Path("a/my-layers.v2.py")) == Path("a/my_layers_v2_compiled")


def test_the_same_input_gives_the_same_bytes(made, tmp_path):
    (tmp_path / "things.py").write_text(SOURCE)
    again = build(tmp_path / "things.py", tmp_path / "elsewhere" / "pack")
    for path in made.iterdir():
        if path.is_file():
            assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_unchanged_output_is_not_rewritten(tmp_path):
    (tmp_path / "things.py").write_text(
        "from layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    return x + 1\n"
    )
    made = build(tmp_path / "things.py")
    before = {p.name: p.stat().st_mtime_ns for p in made.iterdir()}
    build(tmp_path / "things.py")
    assert {p.name: p.stat().st_mtime_ns for p in made.iterdir()} == before


def test_one_type_only(tmp_path):
    (tmp_path / "small.py").write_text(
        "from layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    return x + 1\n"
    )
    made = build(tmp_path / "small.py", f32_only=True)
    assert "f_f64" not in (made / "small.c").read_text()
    found = json.loads((made / "manifest.json").read_text())
    assert found["layers"][0]["methods"]["predict"]["kernels"] == {"f32": "f_f32"}


def test_gradients_can_be_imported_with_numpy_alone(made):
    code = "import sys; sys.modules['layerc'] = None; sys.path.insert(0, sys.argv[1]); import gradients; print(gradients.__layers__)"
    done = subprocess.run([sys.executable, "-c", code, str(made)], capture_output=True, text=True, check=True)
    assert "d_gate" in done.stdout


def test_progress_tells_the_stages(tmp_path):
    (tmp_path / "p.py").write_text(
        "from layerc import layer, real\n\n@layer\ndef first(x: real['N']):\n    return x + 1\n"
    )
    told = []
    build(tmp_path / "p.py", progress=told.append)
    assert told[0] == "reading p.py"
    assert any("first" in line for line in told)


def test_the_version_is_the_package_s():
    assert driver.VERSION == layerc.__version__


# -- the manifest -----------------------------------------------------------------------------------------
def test_parameters_are_listed_as_written(manifest):
    gate = layer_of(manifest, "gate")
    assert [
        (p["name"], p["role"], p["dtype"], p["shape"], p["default"], p["required"]) for p in gate["parameters"]
    ] == [
        ("x", "input", "real", "C *S", None, True),
        ("w", "param", "real", "C", None, True),
        ("slope", "config", "float", "", 0.5, False),
        ("times", "config", "int", "", 2, False),
        ("flip", "config", "bool", "", False, False),
    ]
    assert (
        gate["signature"]
        == "gate(x: real['C *S'], w: Param[real['C']], slope: float = 0.5, times: int = 2, flip: bool = False) -> real['C *S']"
    )
    assert gate["doc"].startswith("Scales and saturates.")
    assert (gate["kind"], gate["batched"], gate["backward"], gate["line"]) == ("function", False, "auto", 7)


def test_methods_say_how_kernels_are_called(manifest):
    predict = layer_of(manifest, "gate")["methods"]["predict"]
    assert predict == {
        "kernels": {"f32": "gate_f32", "f64": "gate_f64"},
        "dims": ["C", "S"],
        "config": ["slope", "times", "flip"],
        "arguments": ["x", "w"],
        "outputs": [{"name": "y", "role": "output", "dtype": "real", "shape": "C *S", "cotangent": "dy"}],
    }
    backward = layer_of(manifest, "gate")["methods"]["backward"]
    assert [(o["name"], o["of"], o["role"]) for o in backward["outputs"]] == [
        ("d_x", "x", "input"),
        ("d_w", "w", "param"),
    ]
    assert "dy" in backward["arguments"]
    assert [o["name"] for o in backward["variants"]["params"]["outputs"]] == ["d_w"]
    assert list(backward["variants"]) == ["params"]  # that for inputs would do most of the work


def test_classes_and_states(manifest):
    scale = layer_of(manifest, "Scale")
    assert set(scale["methods"]) == {"predict", "forward", "backward"}
    assert [(p["name"], p["role"]) for p in scale["parameters"]] == [
        ("x", "input"),
        ("gain", "param"),
        ("seen", "state"),
        ("power", "config"),
    ]
    assert scale["parameters"][1]["init"] == {"name": "uniform", "args": [1, 2]}
    assert scale["parameters"][3]["check"] == "lambda k: k > 0"
    assert [(o["name"], o["role"]) for o in scale["methods"]["forward"]["outputs"]] == [
        ("y", "output"),
        ("seen", "state"),
    ]


def test_axes_without_a_name_get_one(manifest):
    steps = layer_of(manifest, "steps")
    words = steps["parameters"][0]["shape"].split()
    assert len(set(words)) == 2
    assert "_" not in words
    assert steps["methods"]["predict"]["outputs"][0]["shape"].split() == words[::-1]


def test_backward_by_hand_and_none(manifest, made):
    assert layer_of(manifest, "cube")["backward"] == "custom"
    assert "3 * x * x * dy" in layer_of(manifest, "cube")["sources"]["gradient"]
    assert layer_of(manifest, "steps")["backward"] == "none"
    assert "backward" not in layer_of(manifest, "steps")["methods"]


def test_errors_have_numbers_from_two(manifest):
    assert sorted(e["number"] for e in manifest["errors"]) == list(range(2, 2 + len(manifest["errors"])))


def test_names_of_kernels_are_never_shared(tmp_path):
    source = tmp_path / "n.py"
    source.write_text(
        "from layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    return x * x\n\n@layer\ndef f_backward(x: real['N']):\n    return x + 1\n"
    )
    stages = driver.compile_module(driver.read_module(source))
    names = [part.kernel.name for part in stages.parts]
    assert len(set(names)) == len(names) == 4


# -- what it computes -------------------------------------------------------------------------------------
def test_functions(L):
    x, w = np.random.default_rng(0).normal(size=(4, 3, 5)), np.ones(3)
    for options in ({}, {"slope": 2.0, "times": 0}, {"flip": True}):
        np.testing.assert_allclose(
            L.gate(x, w, batch=True, **options), L.gate.reference(x, w, batch=True, **options), rtol=1e-12
        )
    k = np.array([1, -1, 0, 2])
    for found, expected in zip(L.pair(x[:, 0], k), L.pair.reference(x[:, 0], k)):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(L.steps(x[0]), np.floor(x[0]).T)


def test_gradients(L):
    rng = np.random.default_rng(0)
    x, w, dy = rng.normal(size=(4, 3, 5)), rng.normal(size=3), rng.normal(size=(4, 3, 5))
    _, pullback = L.gate.vjp(x, w, batch=True)
    dx, dw = pullback(dy)
    for array, gradient in ((x, dx), (w, dw)):
        direction = rng.normal(size=array.shape)
        e = 1e-6 * direction
        plus = L.gate(x + e if array is x else x, w + e if array is w else w, batch=True)
        minus = L.gate(x - e if array is x else x, w - e if array is w else w, batch=True)
        np.testing.assert_allclose(np.sum((plus - minus) * dy) / 2e-6, np.sum(gradient * direction), rtol=1e-6)
    np.testing.assert_allclose(L.cube.vjp(x)[1](dy)[0], 3 * x * x * dy)


def test_variants_of_a_gradient(L):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(4, 3, 5)), "w": rng.normal(size=3), "dy": rng.normal(size=(4, 3, 5))}
    config = {"slope": 0.5, "times": 2, "flip": False}
    arrays["y"] = L.gate.run("predict", arrays, config)["y"]
    full = L.gate.pull(arrays, config)
    for want, name in (("params", "w"), ("inputs", "x")):
        part = L.gate.pull(arrays, config, want)
        assert set(part) == {name}
        np.testing.assert_array_equal(part[name], full[name])


def test_a_class_layer(L):
    layer = L.Scale(name="s", power=3)
    layer.initialize((4, 2))
    x = np.ones((4, 2), np.float32)
    np.testing.assert_allclose(layer(x), layer.params["gain"] ** 3 * x, rtol=1e-6)
    assert layer.states["seen"] == 0
    y, pullback = layer.vjp(x)
    assert layer.states["seen"] == 1
    gradients = pullback(np.ones_like(y))
    np.testing.assert_allclose(gradients.params["gain"], 4 * 3 * layer.params["gain"] ** 2, rtol=1e-5)


def test_checked_finds_where_a_nan_arises(tmp_path, monkeypatch):
    source = tmp_path / "nans.py"
    source.write_text(
        "import numpy as np\nfrom layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    y = np.log(x)\n    return y * 2\n"
    )
    made = build(source, checked=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    f = importlib.import_module(made.name).f
    np.testing.assert_allclose(f(np.ones(3)), 0)
    with pytest.raises(FloatingPointError, match=r"nans.py:6: f: NaN or infinity in y"):
        f(np.zeros(3))


def test_the_gradient_that_is_compiled_is_the_text(tmp_path):
    source = tmp_path / "t.py"
    source.write_text(
        "import numpy as np\nfrom layerc import layer, real\n\n@layer\ndef f(x: real['N']):\n    return np.exp(x) * x\n"
    )
    gradients = gradients_of(driver.read_module(source))
    assert gradients.sources["f"] in gradients.text
    assert gradients.functions["f"].span.path == "gradients.py"
