"""ODE: solutions and both gradients against scipy, exact solutions and central differences."""

import numpy as np
import pytest
from layer_checks import check_gradients, net_of
from nets import load_package
from scipy import integrate

from layerc.build import driver
from layerc.runtime import ODE, CompiledLayer, Gaussian, Neurons

SOURCE = """
import numpy as np
from layerc import Param, layer, real

@layer
def decay(t: real, y: real["D"]) -> real["D"]:
    return -y

@layer
def pull(t: real, y: real["D"], w: Param[real["D D"]], b: Param[real["D"]]) -> real["D"]:
    return np.tanh(y @ w + b) * np.cos(2 * t)

@layer
def blow_up(t: real, y: real["D"]) -> real["D"]:
    return y * y

@layer
def grown(y: real["D"], w: Param[real["D D"]]) -> real["D"]:
    return np.exp(y @ w / 3)

@layer
def wrong(t: real, y: real["D"]) -> real[""]:
    return np.sum(y)
"""
RNG = np.random.default_rng(0)
W, B = RNG.normal(size=(3, 3)), RNG.normal(size=3)


@pytest.fixture(scope="module")
def L(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ode")
    (folder / "rates.py").write_text(SOURCE)
    driver.build(folder / "rates.py", folder / "rates_compiled")
    return load_package(folder / "rates_compiled", "rates_compiled")


def made(fn, **more):
    return ODE(fn, name="y", bottoms=["x"], **more)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-6), (np.float32, 1e-5)])
@pytest.mark.parametrize("t", [(0.0, 1.0), (2.0, -1.0), (1.0, 1.0)])
def test_exact(L, dtype, tol, t):
    x = RNG.normal(size=(4, 3)).astype(dtype)
    net = net_of(made(L.decay, t=t), {"x": x}, dtype)
    net.forward(data={"x": x})
    np.testing.assert_allclose(net.blobs["y"].data, x * np.exp(t[0] - t[1]), rtol=tol, atol=tol)


@pytest.mark.parametrize("gradient", ["direct", "adjoint"])
@pytest.mark.parametrize("n", [1, 3])
def test_against_scipy_and_differences(L, gradient, n):
    x = RNG.normal(size=(n, 3))
    layer = made(L.pull, t=(0.5, 2.0), gradient=gradient, rtol=1e-10, atol=1e-12, params={"w": W, "b": B})
    net = net_of(layer, {"x": x})
    net.forward(data={"x": x})
    for row, found in zip(x, net.blobs["y"].data):
        solved = integrate.solve_ivp(
            lambda t, y: np.tanh(y @ W + B) * np.cos(2 * t), (0.5, 2), row, rtol=1e-11, atol=1e-12
        )
        np.testing.assert_allclose(found, solved.y[:, -1], rtol=1e-8)
    check_gradients(net, {"x": x})


def test_direct_is_the_derivative_of_its_steps(L):
    x = RNG.normal(size=(2, 3))
    net = net_of(made(L.pull, rtol=1e-3, atol=1e-3, params={"w": W, "b": ((3,), Gaussian())}), {"x": x})
    check_gradients(net, {"x": x}, tol=1e-5)


def test_parameters_have_settings(L):
    layer = made(L.pull, params={"w": W, "b": B}, w_lr=0, b_decay=0.5)
    held = net_of(layer, {"x": np.ones((1, 3))}).params["y"]
    assert (held["w"].frozen, held["b"].decay) == (True, 0.5)


def test_an_input_called_like_the_output(L):
    layer = CompiledLayer(L.grown, name="y", bottoms=["x"], params={"w": W})
    check_gradients(net_of(layer, {"x": RNG.normal(size=(2, 3))}), {"x": RNG.normal(size=(2, 3))})


def test_no_examples(L):
    net = net_of(made(L.decay, neuron=Neurons.Tanh()), {"x": np.zeros((0, 3))})
    net.forward(data={"x": np.zeros((0, 3))})
    net.backward(seed={"y": np.zeros((0, 3))})
    assert net.blobs["x"].diff.shape == (0, 3)


def test_errors(L):
    net = net_of(made(L.blow_up, t=(0.0, 2.0)), {"x": np.ones((1, 1))})
    with pytest.raises(FloatingPointError, match=r"beyond t = (1|0\.9999)"), np.errstate(all="ignore"):
        net.forward(data={"x": np.ones((1, 1))})
    with pytest.raises(ValueError, match=r"'y'.*'x'"):
        net_of(made(L.wrong), {"x": np.ones((1, 2))})
    for bad in (
        {"solver": "euler"},
        {"gradient": "no"},
        {"rtol": 0},
        {"t": (0, np.inf)},
        {"t": 1},
        {"params": {"w": W}},
    ):
        with pytest.raises(ValueError, match=f"ODE 'y'.*{next(iter(bad))}"):
            made(L.decay, **bad)
    with pytest.raises(ValueError, match=r"ODE 'y'.*fn"):
        made(np.tanh)
