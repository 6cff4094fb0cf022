"""`acceleration="none"`: the NumPy meaning in the place of the kernels, for calls, class layers and nets."""

import numpy as np
import pytest
from nets import data, load_package

from layerc.build.driver import build
from layerc.runtime import (
    SGD,
    BatchNorm,
    CompiledLayer,
    Convolution,
    Dropout,
    InnerProduct,
    MemoryData,
    Net,
    Neurons,
    Pooling,
    SoftmaxLoss,
    interpreted,
)

SOURCE = """
import numpy as np
from layerc import Layer, Memory, Param, Random, State, config, i64, init, layer, ode45, real

@layer
def mish(x: real["*S"]) -> real["*S"]:
    return x * np.tanh(np.log1p(np.exp(x)))

@layer
def affine(x: real["N"], w: Param[real["N M"]], i: i64, c: real, *, power: int = 2) -> {"z": real["M"], "total": real}:
    y = (x @ w) ** power * c
    return {"z": y + i, "total": np.sum(y)}

@layer(batched=True)
def centred(x: real["B N"], weight: Param[real["N"]]) -> real["B N"]:
    return (x - np.mean(x, axis=0)) * weight

@layer
def noisy(x: real["N"], rng: Random) -> real["N"]:
    return x * rng.standard_normal(x.shape)

@layer(backward=None)
def rounded(x: real["_ N"]) -> real["_"]:
    return np.rint(x)[:, 0]

@layer
def rooted(a: real["N"]) -> real["N"]:
    return np.sqrt(a)

@rooted.backward
def rooted_backward(y, dy):
    return dy / (2 * y)

@layer
def fades(y0: real["N"], t: real) -> real["N"]:
    return ode45(lambda t, y: -y, 0.0, t, y0)

class Running(Layer):
    batched = True
    rate: float = config(0.25)
    gain: Param[real["N"]] = init.uniform(0.5, 1.5)
    mean: State[real["N"]] = init.zeros()

    def predict(self, x: real["B N"]) -> real["B N"]:
        return (x - self.mean) * self.gain

    def forward(self, x: real["B N"]) -> real["B N"]:
        self.mean = self.mean + self.rate * (np.mean(x, axis=0) - self.mean)
        return (x - self.mean) * self.gain

class Kept(Layer):
    w: Param[real["N"]] = init.ones()

    def forward(self, x: real["N"], rng: Random) -> tuple[real["N"], Memory[real["N"]]]:
        mask = rng.random(x.shape) * self.w
        return x * mask, mask

    def predict(self, x: real["N"], rng: Random) -> tuple[real["N"], Memory[real["N"]]]:
        return x * self.w, self.w

    def backward(self, x, memory, dy):
        return dy * memory, dy * x * memory / self.w
"""
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def L(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acceleration")
    (folder / "some.py").write_text(SOURCE)
    return load_package(build(folder / "some.py", folder / "some_compiled"), "some_compiled")


def normal(*shape):
    return RNG.normal(size=shape)


CALLS = {
    "mish": ("mish", [normal(2, 3)], {}),
    "mish, a batch": ("mish", [normal(2, 3)], {"batch": True}),
    "mish, no example": ("mish", [np.zeros((0, 3))], {"batch": True}),
    "mish, one number": ("mish", [np.array(0.5)], {}),
    "mish, strided": ("mish", [normal(4, 6)[::2, ::-1]], {}),
    "affine": ("affine", [normal(3), normal(3, 2), 4, 0.5], {"power": 3}),
    "affine, a batch": ("affine", [normal(5, 3), normal(3, 2), np.arange(5), normal(5)], {}),
    "affine, a shared scalar": ("affine", [normal(5, 3), normal(3, 2), np.arange(5), 2.0], {}),
    "affine, no example": ("affine", [normal(0, 3), normal(3, 2), np.arange(0), normal(0)], {}),
    "centred": ("centred", [normal(4, 3), normal(3)], {}),
    "noisy": ("noisy", [normal(3, 4)], {"rng": 7}),
    "rooted": ("rooted", [normal(2, 4) ** 2], {}),
    "fades": ("fades", [normal(2, 3), np.array([1.0, 2.0])], {}),
}


def tupled(y):
    return y if isinstance(y, tuple) else (y,)


def same(found, expected, dtype):
    tol = 1e-12 if dtype == np.float64 else 1e-5
    for a, b in zip(tupled(found), tupled(expected), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CALLS)
def test_functions_are_what_they_are_compiled(L, case, dtype):
    name, args, options = CALLS[case]
    args = [a.astype(dtype) if getattr(a, "dtype", None) == np.float64 else a for a in args]
    fn = getattr(L, name)
    y, pullback = fn.vjp(*args, **options)
    z, interpreted_pullback = fn.vjp(*args, **options, acceleration="none")
    same(z, y, dtype)
    same(fn(*args, **options, acceleration="none"), fn(*args, **options, acceleration="auto"), dtype)
    dys = [RNG.normal(size=np.shape(one)).astype(dtype) for one in tupled(y)]
    same(interpreted_pullback(*dys), pullback(*dys), dtype)
    same(interpreted_pullback(*dys), pullback(*dys), dtype)


def test_it_is_numpy_that_runs(L, monkeypatch):
    module = L._package.source_module()
    monkeypatch.setattr(module.mish, "fn", lambda x: 0 * x + 3)
    monkeypatch.setattr(L._package.gradient_module(), "d_mish", lambda x, dy: dy * 5)
    x = np.ones((2, 3))
    y, pullback = L.mish.vjp(x, acceleration="none", batch=True)
    assert np.all(y == 3) and np.all(pullback(x)[0] == 5)
    assert not np.any(L.mish(x) == 3)


def test_out_and_writes(L):
    x, y = normal(3, 2), np.empty((3, 2))
    before = x.copy()
    assert L.mish(x, out=y, acceleration="none") is y
    np.testing.assert_allclose(y, L.mish(x))
    np.testing.assert_array_equal(x, before)


def test_no_gradient(L):
    x = normal(2, 3)
    np.testing.assert_array_equal(L.rounded(x, acceleration="none"), np.rint(x)[:, 0])
    with pytest.raises(NotImplementedError, match="rounded.*backward=None"):
        L.rounded.vjp(x, acceleration="none")


@pytest.mark.parametrize("choice", ["numpy", None, True, 1, ""])
def test_other_choices_are_refused(L, choice):
    layer = L.Running(name="r")
    layer.initialize((4, 3))
    message = r"acceleration must be 'auto' or 'none'"
    for call in (L.mish, L.mish.vjp, layer, layer.vjp):
        with pytest.raises(ValueError, match=message):
            call(np.ones((4, 3), np.float32), acceleration=choice)
    with pytest.raises(ValueError, match=f"net 'n': {message}"):
        Net("n", [MemoryData(data=[np.ones((4, 3))], name="d", tops=["x"], batch_size=2)], acceleration=choice)


def test_bad_calls_say_the_same(L):
    for bad in ([np.ones((2, 2), np.int64)], [np.ones(2), 3]):
        messages = []
        for choice in ("auto", "none"):
            with pytest.raises((TypeError, ValueError)) as caught:
                L.mish(*bad, acceleration=choice)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_class_layers_and_their_states(L):
    x, dy = normal(5, 3), normal(5, 3)
    found = []
    for choice in ("auto", "none"):
        layer = L.Running(name="r", rate=0.5)
        layer.initialize((5, 3), seed=3, dtype=np.float64)
        y, pullback = layer.vjp(x, acceleration=choice)
        z = layer(x, acceleration=choice)
        gradients = pullback(dy)
        found.append([y, z, layer.states["mean"], gradients.inputs[0], gradients.params["gain"]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_memory_and_a_backward_by_hand_draw_the_same(L):
    x, dy = normal(4, 3), normal(4, 3)
    found = []
    for choice in ("auto", "none"):
        layer = L.Kept(name="k")
        layer.initialize((3,), seed=1, dtype=np.float64)
        rows = []
        for _ in range(2):  # a fresh draw each
            y, pullback = layer.vjp(x, acceleration=choice)
            gradients = pullback(dy)
            rows += [y, gradients.inputs[0], gradients.params["w"]]
        found.append(rows)
    assert not np.allclose(found[0][0], found[0][3])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def net_of(L, choice):
    x, t = data(12, 16, 3)
    layers = [
        MemoryData(data=[x.reshape(-1, 1, 4, 4), t], name="data", batch_size=6),
        Convolution(2, kernel=3, pad=1, name="conv", bottoms=["data"], neuron=Neurons.Tanh()),
        BatchNorm(name="bn", bottoms=["conv"]),
        Pooling("max", kernel=2, stride=2, name="pool", bottoms=["bn"]),
        InnerProduct(5, name="ip1", bottoms=["pool"]),
        Dropout(name="drop", bottoms=["ip1"], tops=["dropped"], ratio=0.25),
        L.Running(name="running", bottoms=["dropped"], tops=["running"]),
        CompiledLayer(L.mish, name="mish", bottoms=["running"]),
        InnerProduct(3, name="ip2", bottoms=["mish"]),
        SoftmaxLoss(name="loss", bottoms=["ip2", "label"]),
    ]
    return Net("n", layers, seed=2, acceleration=choice)


def test_nets_train_alike(L):
    found = []
    for choice in ("auto", "none"):
        net = net_of(L, choice)
        losses = [net.forward_backward() for _ in range(3)]
        gradients = {k: np.array(p.gradient) for layer in net.params.values() for k, p in layer.items()}
        SGD(max_iter=3, lr=0.1, momentum=0.9).solve(net)
        found.append((losses, gradients, net.predict(data(12, 16, 3)[0][:2].reshape(-1, 1, 4, 4))))
    (losses, gradients, y), (others, other_gradients, z) = found
    np.testing.assert_allclose(others, losses, rtol=1e-10)
    np.testing.assert_allclose(z, y, rtol=1e-8, atol=1e-10)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(other_gradients[name], gradient, rtol=1e-8, atol=1e-10)


def test_a_net_without_acceleration_runs_no_kernel(L, monkeypatch):
    ran = []
    run = interpreted._Run.__call__
    monkeypatch.setattr(interpreted._Run, "__call__", lambda self, *a: ran.append(self.core.name) or run(self, *a))
    net_of(L, "auto").forward_backward()
    assert not ran
    net_of(L, "none").forward_backward()
    assert {"mish", "Running"} <= set(ran) and len(set(ran)) > 6
