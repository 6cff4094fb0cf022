"""The NumPy meaning of layer files: annotations, calls, batches, class layers."""

import importlib.util
import threading
from pathlib import Path

import numpy as np
import pytest
from nets import built_from

import layerc
from layerc import (
    Array,
    Bool,
    Float,
    Float32,
    Float64,
    Int32,
    Int64,
    Layer,
    Memory,
    Param,
    Random,
    State,
    bool_,
    config,
    f32,
    f64,
    i32,
    i64,
    init,
    layer,
    real,
)
from layerc.annotations import array_type

EXAMPLES = Path(__file__).resolve().parent.parent / "examples/layers.py"


@pytest.fixture(scope="module")
def layers():
    spec = importlib.util.spec_from_file_location("example_layers", EXAMPLES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- the public names -------------------------------------------------------------------------------------


def test_all_names_exist():
    missing = [name for name in layerc.__all__ if not hasattr(layerc, name)]
    assert not missing
    assert set(layerc.__all__) <= set(dir(layerc))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'layerc' has no attribute 'lyer'"):
        layerc.lyer


# -- annotations ------------------------------------------------------------------------------------------

SPELLINGS = [
    (Float[Array, "C *S"], real["C *S"]),
    (Float32[Array, "N"], f32["N"]),
    (Float64[np.ndarray, "N"], f64["N"]),
    (Int32[Array, "N"], i32["N"]),
    (Int64[Array, "N"], i64["N"]),
    (Bool[Array, ""], bool_[""]),
    (real, real[""]),
    (type("Float32[Array, 'N']", (), {"dim_str": "N"}), f32["N"]),  # what jaxtyping itself makes
    (int, None),
    (None, None),
]


@pytest.mark.parametrize(("spelling", "expected"), SPELLINGS)
def test_spellings(spelling, expected):
    assert array_type(spelling) == expected


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: real["N ("], ValueError),
        (lambda: real[3], TypeError),
        (lambda: Param[int], TypeError),
        (lambda: State["N"], TypeError),
        (lambda: Float["N"], TypeError),
        (lambda: init.uniform(1, 0), ValueError),
        (lambda: init.normal(0, -1), ValueError),
    ],
)
def test_bad_annotations(make, error):
    with pytest.raises(error):
        make()


@layer
def everything(
    x: real["N"], w: Param[real["N"]], m: State[f64["N"]], rng: Random, n: i64, b: real = 1.0, k: int = 3
) -> {"y": real["N"], "z": i64[""]}:
    return w * x + b * k, n


def test_signature():
    signature = everything.signature
    roles = [(a.name, a.role) for a in signature.arguments]
    expected = [
        ("x", "input"),
        ("w", "param"),
        ("m", "state"),
        ("rng", "random"),
        ("n", "input"),
        ("b", "input"),
    ]
    assert roles == [*expected, ("k", "config")]
    assert signature.outputs == (("y", real["N"]), ("z", i64[""]))
    assert str(signature) == (
        'everything(x: real["N"], w: Param[real["N"]], m: State[f64["N"]], rng: Random, n: i64[""], '
        'b: real[""] = 1.0, k: int = 3) -> {\'y\': real["N"], \'z\': i64[""]}'
    )


def test_signature_of_a_future_annotations_file(tmp_path):
    namespace: dict = {}
    text = (
        "from __future__ import annotations\nfrom layerc import layer, real\n"
        '@layer\ndef f(x: real["N"]) -> tuple[real["N"], real[""]]:\n    return x, x.sum()\n'
    )
    exec(compile(text, "f.py", "exec", dont_inherit=True), namespace)
    assert namespace["f"].signature.outputs == (("y1", real["N"]), ("y2", real[""]))


# -- the example layers, by their formulas ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_mish(layers, rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    y = layers.mish(x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, x * np.tanh(np.logaddexp(0, x)), rtol=1e-5)


def test_srelu(layers, rng):
    s = layers.SReLU(name="s1")
    s.initialize((3, 2, 2), dtype=np.float64)
    values = {"left_threshold": -1.0, "left_slope": 0.1, "right_threshold": 1.0, "right_slope": 2.0}
    for name, value in values.items():
        s.params[name] = np.full(3, value)
    x = np.array([-3.0, -1.0, 0.5, 3.0]).reshape(1, 2, 2).repeat(3, 0)
    y = np.array([-1.2, -1.0, 0.5, 5.0]).reshape(1, 2, 2).repeat(3, 0)
    np.testing.assert_allclose(s(x), y)
    np.testing.assert_allclose(s(np.stack([x, -x]))[0], y)  # initialize told the rank of an example


def test_rbf(layers, rng):
    x, c, g = rng.standard_normal((4, 3)), rng.standard_normal((5, 3)), rng.random(5)
    expected = [[np.exp(-g[k] * np.sum((x[n] - c[k]) ** 2)) for k in range(5)] for n in range(4)]
    np.testing.assert_allclose(layers.rbf(x, c, g), expected)


def test_ema(layers, rng):
    x, decay = rng.standard_normal((2, 6, 3)).astype(np.float32), np.full(3, 0.5, np.float32)
    y = layers.ema(x, decay)
    assert y.shape == x.shape
    assert y.dtype == np.float32
    np.testing.assert_allclose(y[:, 1], 0.25 * x[:, 0] + 0.5 * x[:, 1], rtol=1e-5)
    np.testing.assert_array_equal(y[1], layers.ema(x[1], decay))


def test_kepler(layers, rng):
    mean, e = rng.uniform(0, 3, (4, 5)), rng.uniform(0, 0.8, (4, 5))
    E = layers.kepler(mean, e)
    np.testing.assert_allclose(E - e * np.sin(E), mean, atol=1e-8)


# -- calls --------------------------------------------------------------------------------------------------


@layer
def scale(x: real["*S"], factor: real = 2.0) -> real["*S"]:
    assert x.ndim == 1
    return factor * x


@layer
def outer(x: real["N"], y: real["M"], *, n: int = 1) -> tuple[real["N M"], real[""]]:
    return n * x[:, None] * y, x.sum() * y.sum()


@layer
def overwrite(x: real["N"]) -> real["N"]:
    x[0] = 7
    x *= 2
    return x


@layer
def makers(x: real["N"]) -> real["2*N"]:
    return np.concatenate([np.zeros(x.shape[0]), x * np.arange(x.shape[0])])


@layer
def inferred(x: real["C *S"]):
    return x * np.ones(x.shape[1])


@layer
def one_hot(i: i64[""], table: Param[real["K"]], on: bool_[""]) -> real["K"]:
    return np.where(np.arange(table.shape[0]) == i, table, 0.0 * table) * on


@layer
def conv(x: real["H"], w: Param[real["k"]], stride: int = 1) -> real["(H-k)//stride+1"]:
    return np.array([np.sum(x[i : i + len(w)] * w) for i in range(0, len(x) - len(w) + 1, stride)])


@layer
def typed(x: real["N"]) -> real["N"]:
    zero = np.zeros(3, dtype=real)
    assert zero.dtype == x.dtype == x.astype(real).dtype
    return x + zero[0]


@layer
def remembers(x: real["N"]) -> tuple[real["N"], Memory[real["N"]]]:
    return x + 1, x


@layer
def uses_scale(x: real["N"]) -> real["N"]:
    return scale(x, 3.0) + makers(x)[: x.shape[0]]


X32, X64 = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6.0).reshape(2, 3)

# call; shape and type of each output
CALLS = [
    (lambda: scale(X64), [((2, 3), "f8")]),
    (lambda: scale(X32), [((2, 3), "f4")]),
    (lambda: scale(X32, 0.5), [((2, 3), "f4")]),  # a Python number is weak
    (lambda: scale(X32, np.float32(0.5)), [((2, 3), "f4")]),
    (lambda: scale(X32, factor=np.array([1, 2], "f4")), [((2, 3), "f4")]),  # the scalar tells: a batch of 2
    (lambda: scale(X32, batch=True, factor=np.array([1, 2], "f4")), [((2, 3), "f4")]),
    (lambda: scale([1, 2]), [((2,), "f8")]),
    (lambda: scale(X32[:, ::2]), [((2, 2), "f4")]),  # not contiguous
    (lambda: outer(X32[0], X32[1, :2]), [((3, 2), "f4"), ((), "f4")]),
    (lambda: outer(X32, X32[:, :2], n=2), [((2, 3, 2), "f4"), ((2,), "f4")]),
    (lambda: outer(X32[:0], X32[:0, :2]), [((0, 3, 2), "f4"), ((0,), "f4")]),  # an empty batch
    (lambda: makers(X32[0]), [((6,), "f4")]),
    (lambda: inferred(X32.reshape(1, 2, 3)), [((1, 2, 3), "f4")]),
    (lambda: one_hot(1, X32[0], True), [((3,), "f4")]),
    (lambda: one_hot(np.array([1, 2]), X32[0], np.array([True, False])), [((2, 3), "f4")]),
    (lambda: conv(X64[0], np.ones(2)), [((2,), "f8")]),
    (lambda: conv(np.ones((4, 9)), np.ones(3), stride=2), [((4, 4), "f8")]),
    (lambda: typed(X32[0]), [((3,), "f4")]),
    (lambda: remembers(X32[0]), [((3,), "f4")]),  # the memory is not for the caller
    (lambda: uses_scale(X32[0]), [((3,), "f4")]),
    (lambda: everything(X32[0], X32[1], np.zeros(3), Random(0), 5), [((3,), "f4"), ((), "i8")]),
    (lambda: everything(X32[0], X32[1], np.zeros(3), n=5), [((3,), "f4"), ((), "i8")]),
]


@pytest.mark.parametrize(("call", "expected"), CALLS)
def test_calls(call, expected):
    result = call()
    outputs = result if isinstance(result, tuple) else (result,)
    assert [(np.shape(y), y.dtype.str[1:]) for y in outputs] == expected


REFUSED = [
    (lambda: scale(X32, np.float64(2)), TypeError, ["scale", "'x' is float32", "'factor' is float64"]),
    (lambda: scale(np.arange(3)), TypeError, ["scale", "'x'", "float32 or float64, got int64"]),
    (lambda: scale(np.array([1 + 2j])), TypeError, ["scale", "'x'", "complex128"]),
    (lambda: scale("abc"), TypeError, ["scale", "'x'", "'abc'"]),
    (lambda: scale(), TypeError, ["scale", "'x' is missing"]),
    (lambda: scale(X64, 1.0, 2.0), TypeError, ["scale takes 2 arrays by position, got 3"]),
    (lambda: scale(X64, x=X64), TypeError, ["scale", "'x' is given twice"]),
    (lambda: scale(X64, slope=2), TypeError, ["scale has no argument 'slope'"]),
    (lambda: scale(X64, batch=True, factor=np.ones(3)), ValueError, ["scale", "'factor'", "batch of 3"]),
    (lambda: outer(X64[0], X64[1], 2), TypeError, ["outer takes 2", "(n) is passed by keyword"]),
    (lambda: outer(X64[0], X64[1], n=1.5), TypeError, ["outer", "'n'", "integer", "1.5"]),
    (lambda: outer(X64[0], X64[1], n=True), TypeError, ["outer", "'n'", "integer"]),
    (lambda: outer(X64, X64[0]), ValueError, ["outer", "'y'", "(3,)"]),
    (lambda: outer(1.0, X64[0]), ValueError, ["outer", "'x'", "rank 0 instead of 1"]),
    (lambda: one_hot(np.int32(1), X32[0], True), TypeError, ["one_hot", "'i'", "int64", "int32"]),
    (lambda: one_hot(1.5, X32[0], True), TypeError, ["one_hot", "'i'"]),
    (lambda: one_hot(1, X32[0], 1), TypeError, ["one_hot", "'on'", "bool"]),
    (lambda: everything(X32[0], X32[1], np.zeros(3, "f4"), n=5), TypeError, ["everything", "'m'", "float64"]),
    (lambda: everything(X32[0], X32[1, :2], np.zeros(3), n=5), ValueError, ["everything", "'w'", "N is 2"]),
]


@pytest.mark.parametrize(("call", "error", "tells"), REFUSED)
def test_refused_calls(call, error, tells):
    with pytest.raises(error) as caught:
        call()
    for word in tells:
        assert word in str(caught.value)


def test_the_callers_arrays_never_change():
    x = np.arange(3.0)
    np.testing.assert_array_equal(overwrite(x), [14, 2, 4])
    np.testing.assert_array_equal(x, [0, 1, 2])
    y = np.arange(6.0).reshape(2, 3)
    overwrite(y)
    np.testing.assert_array_equal(y, np.arange(6.0).reshape(2, 3))


def test_params_start_fresh_for_each_example():
    @layer
    def writes(x: real["N"], w: Param[real["N"]]) -> real["N"]:
        w += 1
        return x * w

    np.testing.assert_array_equal(writes(np.ones((3, 2)), np.zeros(2)), np.ones((3, 2)))


def test_values_of_a_batch():
    np.testing.assert_array_equal(outer(X64, X64)[0][1], np.outer(X64[1], X64[1]))
    np.testing.assert_array_equal(scale(X64, np.array([1.0, 3.0])), X64 * [[1], [3]])


def test_dlpack():
    class Foreign:
        def __dlpack__(self, **kwargs):
            return X32.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return X32.__dlpack_device__()

    np.testing.assert_array_equal(scale(Foreign()), 2 * X32)


def test_wrong_returns():
    @layer
    def wrong_rank(x: real["N"]) -> real["N"]:
        return x.sum()

    @layer
    def wrong_size(x: real["N"]) -> real["N"]:
        return x[1:]

    @layer
    def wrong_count(x: real["N"]) -> tuple[real["N"], real["N"]]:
        return x

    for fn in (wrong_rank, wrong_size, wrong_count):
        with pytest.raises(ValueError, match=fn.name):
            fn(X64[0])


def test_no_annotation_is_an_error_that_names_the_argument():
    @layer
    def untyped(x):
        return x

    with pytest.raises(TypeError, match="untyped: argument 'x' has no type"):
        untyped(X64)


def test_errors_of_the_body_leave_no_trace():
    @layer
    def fails(x: real["N"]) -> real["N"]:
        assert x[0] > 0, "positive"
        return x

    with pytest.raises(AssertionError, match="positive"):
        fails(-np.ones(2))
    with pytest.raises(TypeError):
        fails(np.arange(2))  # checked again: no helper call


def test_a_helper_call_in_one_thread_is_a_layer_call_in_another():
    inside, results = threading.Event(), []

    @layer
    def waits(x: real["N"]) -> real["N"]:
        other = threading.Thread(target=lambda: results.append(scale(np.ones((2, 2)))))
        other.start()
        other.join()
        inside.set()
        return x

    waits(np.ones(1))
    assert results[0].shape == (2, 2)


def test_backward():
    @layer(backward=None)
    def plain(x: real["N"]) -> real["N"]:
        return x

    @layer
    def curved(x: real["N"]) -> real["N"]:
        return x * x

    @curved.backward
    def curved_backward(x, dy):
        return 2 * x * dy

    assert not plain.differentiable
    assert curved.differentiable
    assert curved.custom_backward is curved_backward
    assert curved.fn(3) == 9
    with pytest.raises(TypeError, match="backward"):
        layer(backward="no")(curved.fn)


def test_random_numbers():
    a, b = Random(7), Random(7)
    for draw in (
        lambda r: r.random((2, 3)),
        lambda r: r.uniform(-1, 1, (4,)),
        lambda r: r.standard_normal(5),
        lambda r: r.integers(0, 9, (6,)),
        lambda r: r.bernoulli(0.5, (7,)),
    ):
        np.testing.assert_array_equal(draw(a), draw(b))


# -- class layers -------------------------------------------------------------------------------------------


class Dense(Layer):
    weight: Param[real["I O"]] = init.he()
    bias: Param[real["O"]] = init.zeros()
    calls: State[i64] = init.zeros()
    O: int = config(2, check=lambda n: n > 0)
    gain: float = 1.0

    def predict(self, x: real["I"]) -> real["O"]:
        return self.gain * self.project(x) + self.bias

    def project(self, x):
        return x @ self.weight


class Norm(Layer):
    """Running mean over the batch."""

    batched = True
    mean: State[real["D"]] = init.zeros()
    momentum: float = config(0.5)

    def predict(self, x: real["N D"]) -> real["N D"]:
        return x - self.mean

    def forward(self, x: real["N D"]) -> real["N D"]:
        batch = np.mean(x, axis=0)
        self.mean = (1 - self.momentum) * self.mean + self.momentum * batch
        return x - batch


class ByHand(Layer):
    scale: Param[real["C"]]
    count: State[real[""]]

    def initialize(self, *input_shapes):
        self.scale = np.full(input_shapes[0][0], 3.0)
        self.count = np.array(1.0)

    def reset_state(self):
        self.count = np.array(5.0)

    def forward(self, x: real["C *S"]) -> real["C *S"]:
        self.count += 1
        return self.scale[:, None] * x


def test_class_layer():
    d = Dense(O=4, gain=2)
    d.initialize((3,), seed=1)
    assert {name: (a.shape, a.dtype) for name, a in d.params.items()} == {
        "weight": ((3, 4), np.float32),
        "bias": ((4,), np.float32),
    }
    assert d.states["calls"].dtype == np.int64
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(d(x), 2 * (x @ d.params["weight"]), rtol=1e-6)
    np.testing.assert_allclose(d(x)[1], d.predict(x[1]), rtol=1e-6)
    np.testing.assert_allclose(d(x), d.forward(x))  # predict serves as forward
    assert d.gain == 2.0
    assert repr(d) == "Dense(name='dense', O=4, gain=2.0)"


@pytest.mark.parametrize(
    ("make", "error", "tells"),
    [
        (lambda: Dense(name="d", O=0), ValueError, ["Dense", "'d'", "O", "0"]),
        (lambda: Dense(O="4"), ValueError, ["Dense", "O", "'4'"]),
        (lambda: Dense(O=2.5), ValueError, ["Dense", "O", "2.5"]),
        (lambda: Dense(P=4), TypeError, ["Dense", "'P'", "O, gain"]),
        (lambda: Dense()(np.ones(3)), ValueError, ["Dense", "'weight'", "initialize"]),
        (lambda: Dense().initialize((3, 3)), ValueError, ["Dense", "'x'", "rank 2"]),
        (lambda: Dense().initialize((3,), (3,)), ValueError, ["Dense", "one shape for each input", '"I"']),
        (lambda: Dense().initialize((3,), dtype=np.int32), TypeError, ["Dense", "int32"]),
        (lambda: Dense().initialize((3,), dtype="foo"), TypeError, ["Dense", "'foo'"]),
        (lambda: Dense().initialize((3.5,)), TypeError, ["Dense", "'x'", "3.5"]),
        (lambda: Dense().initialize((3,), seed="a"), TypeError, ["Dense", "seed", "'a'"]),
        (lambda: Dense(gain=10**400), ValueError, ["Dense", "gain", "float"]),
        (lambda: overwrite(np.ma.masked_array(X32[0])), TypeError, ["overwrite", "'x'", "mask"]),
        (lambda: setattr(Dense(), "O", 3), AttributeError, ["Dense", "'O'", "configuration"]),
        (lambda: setattr(Dense(), "other", 3), AttributeError, ["Dense", "'other'", "no field"]),
        (lambda: Dense().reset_state(), ValueError, ["Dense", "initialize"]),
    ],
)
def test_class_errors(make, error, tells):
    with pytest.raises(error) as caught:
        make()
    for word in tells:
        assert word in str(caught.value)


def test_class_calls_are_checked():
    d = Dense()
    d.initialize((3,))
    with pytest.raises(ValueError, match=r"Dense: argument 'x'.*I is 4 here, but 3 in argument 'weight'"):
        d(np.ones(4, np.float32))
    with pytest.raises(TypeError, match="all real arrays of a call must have one type"):
        d(np.ones(3))
    d.params["extra"] = np.ones(3)
    with pytest.raises(ValueError, match="no param 'extra'"):
        d(np.ones(3, np.float32))


def test_a_required_field():
    class Needs(Layer):
        k: int = config()

        def predict(self, x: real["N"]) -> real["N"]:
            return x * self.k

    with pytest.raises(TypeError, match="'k' is required"):
        Needs()
    np.testing.assert_array_equal(Needs(k=2)(np.ones(3)), [2, 2, 2])  # nothing to initialize


def test_states_change_in_forward_only():
    n = Norm()
    n.initialize((4, 2), dtype=np.float64)
    x = np.array([[1.0, 2], [3, 4]])
    n.forward(x)
    np.testing.assert_array_equal(n.states["mean"], [1, 1.5])
    np.testing.assert_array_equal(n(x), x - [1, 1.5])
    np.testing.assert_array_equal(n.states["mean"], [1, 1.5])
    n.reset_state()
    np.testing.assert_array_equal(n.states["mean"], [0, 0])


def test_initialize_and_reset_by_hand():
    b = ByHand()
    b.initialize((2, 3))
    x = np.ones((4, 2, 3), np.float32)
    np.testing.assert_array_equal(b(x), 3 * x)
    assert b.params["scale"].dtype == np.float32
    assert b.states["count"] == 1
    b.forward(x)  # each example counts from the old state
    assert b.states["count"] == 2
    b.reset_state()
    assert b.states["count"] == 5


def test_initialize_may_build_on_the_inits():
    class Halved(Dense):
        more: Param[real["M"]]

        def initialize(self, *input_shapes):
            super().initialize(*input_shapes)
            self.weight *= 0.5
            self.more = init.ones() if len(input_shapes) > 1 else np.zeros(7)

        def reset_state(self):
            self.calls = np.zeros_like(self.calls) + 4

    whole, half = Dense(name="d"), Halved(name="d")
    whole.initialize((3,))
    half.initialize((3,))
    np.testing.assert_array_equal(half.params["weight"], 0.5 * whole.params["weight"])
    assert half.params["more"].shape == (7,)
    half.reset_state()
    assert half.states["calls"] == 4


def test_examples_must_agree_on_a_state():
    class Last(Layer):
        last: State[real[""]]

        def forward(self, x: real[""]) -> real[""]:
            self.last = x
            return x

    layer_ = Last()
    layer_.initialize(())
    assert layer_.forward(np.float32(2)) == 2
    assert layer_.states["last"] == 2
    with pytest.raises(ValueError, match="batched = True"):
        layer_.forward(np.array([1, 2], np.float32))


def test_params_are_not_assigned_by_a_method():
    class Greedy(Layer):
        w: Param[real["N"]] = init.ones()

        def predict(self, x: real["N"]) -> real["N"]:
            self.w = x
            return x

    g = Greedy()
    g.initialize((3,))
    with pytest.raises(AttributeError, match="'w' is a param"):
        g(np.ones(3, np.float32))


def test_inherited_fields_and_a_layer_without_init():
    class Wider(Dense):
        extra: Param[real["O"]]

    assert list(Wider.param_fields) == ["weight", "bias", "extra"]
    assert list(Dense.param_fields) == ["weight", "bias"]
    with pytest.raises(ValueError, match="'extra' has no init"):
        Wider().initialize((3,))


def test_first_values_depend_on_seed_and_name_only():
    def first(name, seed):
        d = Dense(name=name)
        d.initialize((3,), seed=seed)
        return d.params["weight"]

    np.testing.assert_array_equal(first("a", 0), first("a", 0))
    assert not np.array_equal(first("a", 0), first("a", 1))
    assert not np.array_equal(first("a", 0), first("b", 0))


# rule; smallest and largest mean, smallest and largest deviation, of many draws of shape (300, 100)
INITS = [
    (init.uniform(-1, 0), -0.51, -0.49, 0.28, 0.30),
    (init.normal(2, 0.5), 1.98, 2.02, 0.49, 0.51),
    (init.zeros(), 0, 0, 0, 0),
    (init.ones(), 1, 1, 0, 0),
    (init.constant(2.5), 2.5, 2.5, 0, 0),
    (init.xavier(), -0.01, 0.01, 0.056, 0.059),  # sqrt(1/300)
    (init.he(), -0.01, 0.01, 0.080, 0.083),  # sqrt(2/300)
]


@pytest.mark.parametrize(("rule", "low", "high", "narrow", "wide"), INITS)
def test_init(rule, low, high, narrow, wide, rng):
    values = rule.draw(rng, (300, 100), np.float32)
    assert values.shape == (300, 100)
    assert values.dtype == np.float32
    assert low <= values.mean(dtype=float) <= high
    assert narrow <= values.std(dtype=float) <= wide
    assert eval(repr(rule), {"init": init}) == rule


def test_one_named_output_is_the_array_itself():
    @layer
    def squared(x: real["N"]) -> {"z": real["N"]}:
        return x * x

    np.testing.assert_array_equal(squared(np.arange(3.0)), [0, 1, 4])


def test_named_outputs_may_be_returned_by_name():
    @layer
    def swapped(x: real["N"]) -> {"y": real["N"], "z": real[""]}:
        return {"z": x.sum(), "y": x * 3}

    y, z = swapped(np.arange(3.0))
    np.testing.assert_array_equal(y, [0, 3, 6])
    assert z == 3


NAMED = """
import numpy as np
from layerc import layer, real


@layer
def slopes(x: real["N"]) -> {"dy": real["N"], "y": real["N"]}:
    return {"dy": np.sin(x), "y": x * x}


@layer
def sizes(x: real["N"], a: real["M"]) -> {"x2": real["N"], "dx2": real}:
    return {"x2": np.tanh(x), "dx2": np.sum(a * a)}


@layer
def lone(x: real["N"], dz: real["N"]) -> {"z": real["N"]}:
    return {"z": np.tanh(x) * dz}


@layer
def lent(n: real["N"], out: real["N"]) -> real["N"]:
    return n * out
"""


def test_an_output_may_be_called_as_the_cotangent_of_another_would_be(tmp_path):
    """The pullback was given its values for that; and other names that something else has already."""
    package = built_from(tmp_path, "named_so", NAMED)
    x, a = np.array([[0.5, 1.0, 2.0]]), np.array([[3.0, 4.0]])
    full, none = np.ones((1, 3)), np.zeros((1, 3))
    _, pullback = package.slopes.vjp(x)
    np.testing.assert_allclose(pullback(full, none)[0], np.cos(x))
    np.testing.assert_allclose(pullback(none, full)[0], 2 * x)
    _, pullback = package.sizes.vjp(x, a)
    for got, want in zip(pullback(full, np.ones(1)), (1 - np.tanh(x) ** 2, 2 * a), strict=True):
        np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(package.lone.reference(x, x), package.lone(x, x))
    for one in (package.slopes, package.sizes, package.lone, package.lent):
        report = one.check()
        assert report.passed, str(report)
