"""What a built package promises (SPEC 2 and 4), line by line, on the layers of `layers/contract.py`."""

from __future__ import annotations

import copy
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spec.harness import LAYERS, load

from layerc.build.driver import build

X = np.array([0.5, -1.5, 2.0], np.float32)
IMAGES = np.random.default_rng(0).standard_normal((4, 3, 2, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(LAYERS / "contract.py", tmp_path_factory.mktemp("contract") / "contract_compiled")


@pytest.fixture(scope="module")
def L(folder: Path) -> Any:
    return load(folder / "__init__.py", folder.name, folder)


# -- functions -----------------------------------------------------------------------------------------------------
def test_any_leading_axis_of_a_group_is_data_or_batch(L: Any) -> None:
    whole = L.mish(IMAGES)
    np.testing.assert_array_equal(whole, L.mish(IMAGES, batch=True))
    np.testing.assert_allclose(whole, L.mish.reference(IMAGES), rtol=2e-6, atol=1e-6)
    assert L.mish(np.float32(1.5)).shape == ()
    assert L.mish(IMAGES[:0]).shape == (0, 3, 2, 5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_keep_their_type(L: Any, dtype: Any) -> None:
    y, pullback = L.mish.vjp(X.astype(dtype))
    (dx,) = pullback(np.ones_like(y))
    assert y.dtype == dx.dtype == dtype


def test_params_are_shared_by_the_batch(L: Any) -> None:
    x = np.random.default_rng(1).standard_normal((5, 3))
    w = np.random.default_rng(2).uniform(1, 2, 3)
    y, pullback = L.by_output.vjp(x, w)
    dx, dw = pullback(np.ones_like(y))
    assert dx.shape == (5, 3)
    np.testing.assert_allclose(dw, np.exp(x).sum(0))


def test_a_batched_function_takes_the_batch(L: Any) -> None:
    rng = np.random.default_rng(3)
    x, c, g = rng.standard_normal((4, 2)), rng.standard_normal((3, 2)), rng.uniform(0.5, 1, 3)
    y, pullback = L.rbf.vjp(x, c, g)
    gradients = pullback(np.ones_like(y))
    assert [d.shape for d in gradients] == [x.shape, c.shape, g.shape]
    np.testing.assert_allclose(y, L.rbf.reference(x, c, g))


def test_texts_of_a_function(L: Any) -> None:
    assert "def d_mish(" in L.mish.gradient_source
    assert "np.tanh(np.log1p(np.exp(x)))" in L.mish.source
    assert "mish" in L.mish.c_source
    assert "*S" in str(L.mish.signature)


def test_configuration_is_passed_by_keyword(L: Any) -> None:
    np.testing.assert_allclose(L.scaled(X), X * 2)
    np.testing.assert_allclose(L.scaled(X, by=3.0, times=2), X * 9)
    np.testing.assert_allclose(L.scaled(X, flip=True), X[::-1] * 2)
    _, pullback = L.scaled.vjp(X, by=3.0)
    gradients = pullback(np.ones_like(X))
    assert len(gradients) == 1
    np.testing.assert_allclose(gradients[0], 3 * np.ones(3))
    with pytest.raises(TypeError, match="scaled"):
        L.scaled(X, 3.0)


def test_named_outputs(L: Any) -> None:
    y, pullback = L.named.vjp(X, np.float32(2))
    assert [v.shape for v in y] == [(3,), ()]
    dx, dw = pullback(np.ones(3, np.float32), np.float32(10))
    np.testing.assert_allclose(dx, [14, 14, 14])
    assert dw == pytest.approx(2 * X.sum())


def test_slots_without_a_gradient_hold_none(L: Any) -> None:
    k, m = np.array([1, 2, 3]), np.array([True, False, True])
    (y, n), pullback = L.counted.vjp(X, k, m, np.float32(7))
    np.testing.assert_allclose(y, [0.5, 7, 6])
    assert n.dtype == np.int64
    dx, dk, dm, ds = pullback(np.ones(3, np.float32), None)
    np.testing.assert_allclose(dx, [1, 0, 3])
    assert dk is None
    assert dm is None
    assert ds == 1


def test_what_the_output_does_not_depend_on_has_zeros(L: Any) -> None:
    _, pullback = L.unrelated.vjp(X, np.array([np.nan, np.inf], np.float32))
    _, dz = pullback(np.ones(3, np.float32))
    assert np.array_equal(dz, [0, 0])


def test_no_gradient(L: Any) -> None:
    with pytest.raises(NotImplementedError, match="forward_only"):
        L.forward_only.vjp(X)


def test_out_is_written(L: Any) -> None:
    y = np.empty_like(X)
    assert L.mish(X, out=y) is y
    np.testing.assert_array_equal(y, L.mish(X))
    z = np.empty_like(X)
    got, pullback = L.mish.vjp(X, out=z)
    assert got is z
    dx = np.empty_like(X)
    (found,) = pullback(np.ones_like(X), out=(dx,))
    assert found is dx
    for wrong in (np.empty(2, np.float32), np.empty(3, np.float64)):
        with pytest.raises((ValueError, TypeError), match="mish"):
            L.mish(X, out=wrong)


def test_anything_with_dlpack(L: Any) -> None:
    torch = pytest.importorskip("torch")
    y, pullback = L.mish.vjp(torch.tensor(X))
    assert isinstance(y, torch.Tensor)
    (dx,) = pullback(torch.ones(3))
    assert isinstance(dx, torch.Tensor)
    np.testing.assert_array_equal(y.numpy(), L.mish(X))


def test_the_pullback_may_be_called_again(L: Any) -> None:
    _, pullback = L.mish.vjp(X)
    one, two = pullback(np.ones(3, np.float32)), pullback(np.full(3, 2, np.float32))
    np.testing.assert_allclose(2 * one[0], two[0])


def test_arguments_are_left_alone_and_may_be_strided_or_read_only(L: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)[::-1, ::2]
    x.flags.writeable = False
    np.testing.assert_allclose(L.mish(x), L.mish(x.copy()))


def test_threads_may_call_at_once(L: Any) -> None:
    expected, found = L.mish(IMAGES), []
    threads = [threading.Thread(target=lambda: found.append(L.mish(IMAGES))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(y, expected) for y in found)


# -- custom backwards ------------------------------------------------------------------------------------------------
def test_a_backward_by_hand_is_used(L: Any) -> None:
    _, pullback = L.straight_through.vjp(X)
    np.testing.assert_array_equal(pullback(np.full(3, 5, np.float32))[0], [5, 0, 0])
    _, pullback = L.two.vjp(X)
    np.testing.assert_allclose(pullback(np.ones(3, np.float32), np.float32(1))[0], 2 * X + 10)
    _, pullback = L.two_unnamed.vjp(X)
    np.testing.assert_allclose(
        pullback(np.ones(3, np.float32), np.ones(3, np.float32))[0], np.cos(X) - np.sin(X), rtol=1e-5
    )


def test_memory_reaches_the_backward(L: Any) -> None:
    s = L.Remembers()
    s.initialize((3,))
    y, pullback = s.vjp(X)
    np.testing.assert_allclose(y, np.tanh(X), rtol=1e-5)
    found = pullback(np.ones_like(X))
    np.testing.assert_allclose(found.inputs[0], 1 - np.tanh(X) ** 2, rtol=1e-4)
    np.testing.assert_allclose(found.params["w"], np.tanh(X), rtol=1e-5)
    np.testing.assert_allclose(s(X), y)


# -- class layers ----------------------------------------------------------------------------------------------------
def test_a_class_layer(L: Any) -> None:
    s = L.SReLU(name="s1")
    s.initialize((3, 2, 5))
    y = s(IMAGES)
    assert y.shape == IMAGES.shape
    assert s(IMAGES[0]).shape == IMAGES[0].shape
    np.testing.assert_allclose(y, s.reference(IMAGES), rtol=1e-5)
    s.params["left_slope"] = np.full(3, 0.25, np.float32)
    y, pullback = s.vjp(IMAGES)
    found = pullback(np.ones_like(y))
    assert isinstance(found.inputs, tuple)
    assert found.inputs[0].shape == IMAGES.shape
    assert set(found.params) == {"left_threshold", "left_slope", "right_threshold", "right_slope"}
    assert found.params["left_slope"].shape == (3,)
    np.testing.assert_array_equal(pullback(np.ones_like(y)).inputs[0], found.inputs[0])


def test_first_values_depend_on_seed_and_name(L: Any) -> None:
    def values(name: str, seed: int, dtype: Any = np.float32) -> np.ndarray:
        s = L.SReLU(name=name)
        s.initialize((3, 2), seed=seed, dtype=dtype)
        return s.params["left_slope"]

    assert np.array_equal(values("a", 1), values("a", 1))
    assert not np.array_equal(values("a", 1), values("a", 2))
    assert not np.array_equal(values("a", 1), values("b", 1))
    assert values("a", 1, np.float64).dtype == np.float64
    assert np.all((values("a", 1) >= 0) & (values("a", 1) <= 1))


def test_states(L: Any) -> None:
    s = L.RunningMean(name="m", rate=0.25)
    s.initialize((4, 3))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    s(x)
    assert np.array_equal(s.states["mean"], [0, 0, 0])
    y, pullback = s.vjp(x)
    np.testing.assert_allclose(s.states["mean"], 0.25 * x.mean(0))
    np.testing.assert_allclose(y, x - x.mean(0), atol=1e-6)
    np.testing.assert_allclose(pullback(np.ones_like(y)).inputs[0], np.zeros_like(x), atol=1e-6)
    s.reset_state()
    assert np.array_equal(s.states["mean"], [0, 0, 0])
    for _ in range(3):  # a State that is declared before a Param, at calls like one before
        s.reset_state()
        s.params["scale"] = np.full(3, 2, np.float32)
        np.testing.assert_allclose(s.vjp(x)[0], 2 * (x - x.mean(0)), atol=1e-6)
        np.testing.assert_allclose(s.states["mean"], 0.25 * x.mean(0))
        np.testing.assert_allclose(s(x), 2 * (x - 0.25 * x.mean(0)), atol=1e-6)


def test_states_change_in_place(L: Any) -> None:
    s = L.Counter()
    s.initialize((4, 3))
    x = np.zeros((4, 3), np.float32)
    for k in (1, 2):
        assert np.array_equal(s.vjp(x)[0][0], [k, 0, 10 * k])
        assert np.array_equal(s.states["count"], [k, 0, 10 * k])
        assert np.array_equal(s(x)[0], [k, 0, 10 * k])


def test_configuration_of_a_class(L: Any) -> None:
    s = L.Kernel(gain=2.0, size=2)
    s.initialize((5,))
    assert s.params["w"].shape == (2,)
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_allclose(s(x), np.convolve(x, s.params["w"][::-1], "valid") * 2, rtol=1e-5)
    assert s.size == 2
    with pytest.raises(AttributeError, match="Kernel"):
        s.size = 3
    for wrong, message in (({"gain": 1.0, "size": 0}, "size"), ({"gain": 1.0, "sise": 2}, "sise"), ({}, "gain")):
        with pytest.raises((ValueError, TypeError), match=message):
            L.Kernel(**wrong)
    with pytest.raises((TypeError, ValueError), match="gain"):
        L.Kernel(gain="much")


def test_a_layer_can_be_copied(L: Any) -> None:
    s = L.SReLU()
    s.initialize((3, 2))
    other = copy.deepcopy(s)
    other.params["left_slope"] = np.zeros(3, np.float32)
    assert s.params["left_slope"].any()


# -- bad calls: the exception, naming layer and argument -------------------------------------------------------------
BAD = [
    (lambda L: L.by_output(X), TypeError, ("by_output", "'w'", "missing")),
    (lambda L: L.by_output(X, X, X), TypeError, ("by_output", "2")),
    (lambda L: L.by_output(X, X[:2]), ValueError, ("by_output", "N", "'w'")),
    (lambda L: L.by_output(X, X.astype("f8")), TypeError, ("by_output", "float64")),
    (lambda L: L.by_output(X, np.ones((2, 3), "f4")), ValueError, ("by_output", "'w'")),
    (lambda L: L.by_output(np.ones((2, 2, 3), "f4"), X), ValueError, ("by_output", "'x'")),
    (lambda L: L.by_output(X > 0, X), TypeError, ("by_output", "'x'", "bool")),
    (lambda L: L.by_output(np.array(["a", "b", "c"]), X), TypeError, ("by_output", "'x'")),
    (lambda L: L.by_output(X.astype("f2"), X), TypeError, ("by_output", "'x'", "float16")),
    (lambda L: L.by_output(X.astype("c8"), X), TypeError, ("by_output", "'x'")),
    (lambda L: L.by_output(None, X), TypeError, ("by_output", "'x'")),
    (lambda L: L.by_output(x=X, v=X), TypeError, ("by_output", "'v'")),
    (lambda L: L.counted(X, X, X > 0, 1.0), TypeError, ("counted", "'k'", "int64")),
    (lambda L: L.scaled(X, by="2"), TypeError, ("scaled", "'by'")),
    (lambda L: L.scaled(X, times=1.5), TypeError, ("scaled", "'times'")),
    (lambda L: L.mish.vjp(X)[1](X[:2]), ValueError, ("mish", "'dy'")),
    (lambda L: L.mish.vjp(X)[1](X.astype("f8")), TypeError, ("mish", "'dy'")),
    (lambda L: L.mish.vjp(X)[1](X, X), (TypeError, ValueError), ("mish",)),
    (lambda L: L.at(X, 3), IndexError, ("contract.py:", "at", "index 3")),
    (lambda L: L.positive(-X), AssertionError, ("contract.py:", "positive", "x must be positive")),
    (lambda L: L.ratio(1, 0), ZeroDivisionError, ("contract.py:", "ratio")),
    (lambda L: L.SReLU()(IMAGES), RuntimeError, ("SReLU", "initialize")),
    (lambda L: L.SReLU().initialize((3,), (3,)), (ValueError, TypeError), ("SReLU",)),
    (lambda L: L.SReLU().params.__setitem__("slope", X), (KeyError, ValueError), ("slope",)),
    (lambda L: L.SReLU(depth=3), TypeError, ("SReLU", "depth")),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_bad_call_names_layer_and_argument(L: Any, number: int) -> None:
    call, kind, parts = BAD[number]
    with pytest.raises(kind) as caught:
        call(L)
    for part in parts:
        assert part in str(caught.value), caught.value


# -- the package -----------------------------------------------------------------------------------------------------
def test_files_of_a_package(folder: Path) -> None:
    names = {p.name for p in folder.iterdir()}
    assert {"__init__.py", "__init__.pyi", "gradients.py", "contract.c", "contract.h", "manifest.json"} <= names


def test_gradients_import_with_numpy_only(folder: Path) -> None:
    code = (
        "import sys; sys.modules['layerc'] = None; sys.path.insert(0, PLACE); import gradients, numpy as np;"
        "print(gradients.d_mish(np.ones(2), np.ones(2)))".replace("PLACE", repr(str(folder)))
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_package_needs_no_compiler(folder: Path) -> None:
    code = (
        "import sys\nfor name in ('gast', 'astor', 'layerc.transpile', 'layerc.build', 'layerc.adjoint'): sys.modules[name] = None\n"
        "sys.path.insert(0, PLACE)\nimport contract_compiled as L, numpy as np\n"
        "y, pullback = L.mish.vjp(np.ones(3)); print(pullback(y))\n"
        "s = L.SReLU(); s.initialize((3, 2)); s(np.ones((3, 2), 'f4'))".replace("PLACE", repr(str(folder.parent)))
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_same_input_gives_the_same_bytes(folder: Path) -> None:
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir() if p.is_file()}
    build(LAYERS / "contract.py", folder)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir() if p.is_file()} == before


def test_the_gradient_can_be_given_back(tmp_path: Path, L: Any) -> None:
    """Gradient source is a layer file: edited, it is a backward; its own gradient exists."""
    text = L.by_output.gradient_source
    assert inspect.cleandoc(text)
    file = tmp_path / "again.py"
    file.write_text(
        "import numpy as np\nfrom layerc import Param, layer, real\n\n\n"
        "@layer\ndef sine(x: real['N']) -> real['N']:\n    return np.sin(x)\n\n\n"
        "@sine.backward\ndef d_sine(x, dy):\n    return 3 * dy * np.cos(x)\n"
    )
    made = build(file)
    again = load(made / "__init__.py", made.name, made)
    _, pullback = again.sine.vjp(X)
    np.testing.assert_allclose(pullback(np.ones_like(X))[0], 3 * np.cos(X), rtol=1e-5)
