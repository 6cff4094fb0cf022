"""Calls of a built package: results, gradients, every kind of bad call, and what a call leaves alone."""

import copy
import gc
import pickle
import sys
import threading
import weakref

import handmade
import numpy as np
import pytest

F32, F64 = np.float32, np.float64
RNG = np.random.default_rng(0)


@pytest.fixture(scope="session")
def L(tmp_path_factory):
    directory = tmp_path_factory.mktemp("with a blank")
    handmade.build(directory / "handmade_compiled")
    sys.path.insert(0, str(directory))
    try:
        import handmade_compiled

        yield handmade_compiled
    finally:
        sys.path.remove(str(directory))


def draw(*shape, dtype=F32):
    return RNG.standard_normal(shape).astype(dtype)


def mish(x):
    return x * np.tanh(np.log1p(np.exp(x)))


def slope(f, x, dy, eps=1e-6):
    """The gradient of sum(f(x) * dy), by differences."""
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        a, b = x.copy(), x.copy()
        a[i], b[i] = x[i] + eps, x[i] - eps
        g[i] = np.sum((f(a) - f(b)) * dy) / (2 * eps)
    return g


# -- results ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 4), (0,), (3, 0)])
def test_any_shape(L, shape, dtype):
    x = draw(*shape, dtype=dtype)
    for _ in range(2):  # first as a new call, then as a known one
        y = L.mish(x)
        assert y.dtype == dtype
        assert y.shape == shape
        np.testing.assert_allclose(y, mish(x), rtol=1e-5)


@pytest.mark.parametrize("batch", [None, True, False])
def test_batch_of_a_group_is_said_outright(L, batch):
    x = draw(4, 6)
    np.testing.assert_allclose(L.mish(x, batch=batch), mish(x), rtol=1e-5)


def test_batch_true_needs_an_axis(L):
    with pytest.raises(ValueError, match=r"mish: argument 'x': expected one axis more"):
        L.mish(F32(1.0), batch=True)


def test_ranks_tell_a_batch(L):
    x, i = draw(5, 3), np.array([0, 1, 2, -1, 0])
    np.testing.assert_array_equal(L.pick(x, i), x[np.arange(5), i])
    assert L.pick(x[0], np.int64(1)) == x[0, 1]
    assert L.pick(x[0], 1) == x[0, 1]
    assert L.pick(x[0], 1).shape == ()


def test_whole_batches(L):
    x, c, gamma = draw(6, 3), draw(4, 3), np.abs(draw(4))
    expected = np.exp(-gamma * ((x[:, None] - c) ** 2).sum(-1))
    np.testing.assert_allclose(L.rbf(x, c, gamma), expected, rtol=1e-4)
    np.testing.assert_allclose(L.rbf(x, gamma=gamma, centers=c), expected, rtol=1e-4)
    assert L.rbf(x[:0], c, gamma).shape == (0, 4)


def test_several_outputs(L):
    x = draw(4)
    y1, y2 = L.moments(x, 3)
    np.testing.assert_allclose(y1, x.sum() * 3, rtol=1e-5)
    np.testing.assert_allclose(y2, np.exp(x), rtol=1e-5)
    y1, y2 = L.moments(np.stack([x, x]), np.array([1, 2]))
    assert (y1.shape, y2.shape) == ((2,), (2, 4))


def test_config_by_keyword(L):
    x = draw(4)
    for power in (1, 2, np.int64(3)):
        np.testing.assert_allclose(L.scale(x, 2.0, power=power), x * 2.0**power, rtol=1e-6)


def test_weak_scalars_take_the_arrays_type(L):
    for dtype in (F32, F64):
        for by in (2, 2.0):
            assert L.scale(draw(3, dtype=dtype), by).dtype == dtype
    assert L.mish(0.5).dtype == F64
    assert L.mish([0.5, 1]).shape == (2,)


def test_scalar_shared_by_a_batch(L):
    x = draw(3, 4)
    y, pullback = L.scale.vjp(x, 2.0)
    np.testing.assert_allclose(y, 2 * x)
    dx, dby = pullback(np.ones_like(y))
    assert dby.shape == ()
    np.testing.assert_allclose(dby, x.sum(), rtol=1e-5)
    np.testing.assert_allclose(dx, 2)
    into = np.zeros((), F32)
    assert pullback(np.ones_like(y), out=(None, into))[1] is into
    np.testing.assert_allclose(into, x.sum(), rtol=1e-5)


LAYOUTS = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "fortran": np.asfortranarray,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "unaligned": lambda x: _unaligned(x),
    "read-only": lambda x: _read_only(x),
}


def _unaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
    raw[:] = np.frombuffer(x.tobytes(), np.uint8)
    return raw.view(x.dtype).reshape(x.shape)


def _read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(L, layout):
    plain = draw(4, 6)
    L.mish(plain)  # the shape is known: nothing may go wrong on the short way either
    x = LAYOUTS[layout](plain)
    before = x.copy()
    for _ in range(2):
        y, pullback = L.mish.vjp(x)
        np.testing.assert_allclose(y, mish(before), rtol=1e-5)
        (dx,) = pullback(LAYOUTS[layout](np.ones_like(plain)))
        np.testing.assert_allclose(dx, L.mish.vjp(np.array(before, F32))[1](np.ones_like(plain))[0])
    np.testing.assert_array_equal(x, before)
    assert y.flags.c_contiguous
    assert dx.dtype == F32


# -- gradients -------------------------------------------------------------------------------------------


def test_gradients(L):
    x = draw(5, dtype=F64)
    _, pullback = L.mish.vjp(x)
    dy = draw(5, dtype=F64)
    np.testing.assert_allclose(pullback(dy)[0], slope(mish, x, dy), rtol=1e-6)
    first = pullback(dy)[0]
    np.testing.assert_array_equal(first, pullback(dy)[0])  # it may be called again
    assert first is not pullback(dy)[0]


def test_params_are_summed_over_the_batch(L):
    x, c, gamma = draw(6, 3, dtype=F64), draw(4, 3, dtype=F64), np.abs(draw(4, dtype=F64))
    _, pullback = L.rbf.vjp(x, c, gamma)
    dy = draw(6, 4, dtype=F64)
    dx, dc, dg = pullback(dy)
    np.testing.assert_allclose(dx, slope(lambda v: L.rbf(v, c, gamma), x, dy), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(dc, slope(lambda v: L.rbf(x, v, gamma), c, dy), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(dg, slope(lambda v: L.rbf(x, c, v), gamma, dy), rtol=1e-5, atol=1e-8)


def test_empty_batch_gives_zero_gradients_of_params(L):
    x, c, gamma = draw(0, 3), draw(4, 3), draw(4)
    y, pullback = L.rbf.vjp(x, c, gamma)
    dx, dc, dg = pullback(y)
    assert dx.shape == (0, 3)
    assert not dc.any()
    assert not dg.any()


def test_integer_input_has_none(L):
    x = draw(3, 4)
    _, pullback = L.pick.vjp(x, np.array([1, 0, 3]))
    dx, di = pullback(np.ones(3, F32))
    assert di is None
    assert dx.sum() == 3


def test_several_cotangents(L):
    x = draw(4)
    (_, y2), pullback = L.moments.vjp(x, 2)
    dy1, dy2 = F32(3), draw(4)
    np.testing.assert_allclose(pullback(dy1, dy2)[0], 6 + dy2 * y2, rtol=1e-5)
    np.testing.assert_allclose(pullback(3.0, None)[0], 6, rtol=1e-5)
    np.testing.assert_allclose(pullback(None, dy2)[0], dy2 * y2, rtol=1e-5)


def test_disabled_gradient(L):
    assert L.flat(draw(3)).shape == (3,)
    for _ in range(2):
        with pytest.raises(NotImplementedError, match=r"flat: .*backward=None"):
            L.flat.vjp(draw(3))


def test_pullback_keeps_only_what_it_needs(L):
    i = np.array([0, 1])
    x = draw(2, 3)
    seen = weakref.ref(x)
    _, pullback = L.pick.vjp(x, i)
    del x
    gc.collect()
    assert seen() is None  # the gradient of an index does not read x
    assert pullback(np.ones(2, F32))[0].shape == (2, 3)


# -- bad calls -------------------------------------------------------------------------------------------

BAD = [
    ("mish()", TypeError, "mish: argument 'x' is missing"),
    ("mish(x, x)", TypeError, r"mish: takes 1 arguments \(x\), got 2"),
    ("mish(x, x=x)", TypeError, "mish: argument 'x' is given twice"),
    ("mish(x, z=1)", TypeError, "mish: no argument 'z'; it takes x"),
    ("mish(x.astype('f2'))", TypeError, "mish: argument 'x': expected float32 or float64, got float16"),
    ("mish(x.astype(int))", TypeError, "mish: argument 'x': expected float32 or float64, got int64"),
    ("mish(x + 0j)", TypeError, "mish: argument 'x': expected float32 or float64, got complex64"),
    ("mish(x > 0)", TypeError, "mish: argument 'x': expected float32 or float64, got bool"),
    ("mish(True)", TypeError, "mish: argument 'x': expected float64, got bool True"),
    ("mish('a')", TypeError, "mish: argument 'x': expected an array, got str"),
    ("mish(None)", TypeError, "mish: argument 'x': expected an array, got NoneType"),
    ("mish([1, 'a'])", TypeError, "mish: argument 'x': expected float64, got a list"),
    ("mish([[1], [1, 2]])", ValueError, "mish: argument 'x'"),
    ("mish({})", TypeError, "mish: argument 'x': expected an array, got dict"),
    ("rbf(x2, x2.astype('d'), x)", TypeError, "rbf: argument 'centers' is float64, but 'x' is float32"),
    ("rbf(x, x2, x)", ValueError, "rbf: argument 'x': expected shape \"N D\", got .*rank 1 instead of 2"),
    ("rbf(x2, x2[:, :2], x)", ValueError, "rbf: argument 'centers': .*D is 2 here, but 3 in argument 'x'"),
    ("rbf(x2, x2, x[:1])", ValueError, "rbf: argument 'gamma': .*K is 1 here"),
    ("rbf(x2, x2, x, batch=False)", ValueError, "rbf: takes whole batches"),
    ("pick(x2, np.array([1, 2, 0]))", ValueError, "pick: argument 'index': a batch of 3, but 'x' has 2"),
    ("pick(x2, np.array([0, 1], 'i4'))", TypeError, "pick: argument 'index': expected int64, got int32"),
    ("pick(x, 1.0)", TypeError, "pick: argument 'index': expected int64, got float 1.0"),
    ("pick(x, 2**70)", ValueError, "pick: argument 'index'"),
    ("pick(x2[None], np.array([1]))", ValueError, "pick: argument 'x': expected rank 2"),
    ("pick(x, np.float64(1))", TypeError, "pick: argument 'index': expected int64, got float64"),
    ("scale(x, np.float64(2))", TypeError, "scale: argument 'by' is float64, but 'x' is float32"),
    ("scale(x, 2.0, power=0)", ValueError, "scale: argument 'power' = 0 fails its check: lambda p: p > 0"),
    ("scale(x, 2.0, power=1.5)", TypeError, "scale: argument 'power': expected int, got float 1.5"),
    ("scale(x, 2.0, power=True)", TypeError, "scale: argument 'power': expected int, got bool True"),
    ("scale(x, 2.0, 2)", TypeError, "scale: takes 2 arguments .* configuration is passed by keyword"),
    ("scale(x, 2.0, power=99)", MemoryError, "scale: out of memory"),
    ("scale(x, 2.0, power=98)", ZeroDivisionError, "layers.py:31: scale: integer division by zero"),
    ("scale(x, 2.0, power=97)", RuntimeError, "layers.py:31: scale: not an exception we raise"),
    ("scale(x, 2.0, power=91)", RuntimeError, "scale: unknown error 77"),
    ("scale(x, 2.0, power=2**63)", ValueError, "scale: argument 'power': an integer of more than 64 bits"),
    ("mish(np.ma.masked_array(x, x > 1))", TypeError, "mish: argument 'x': a masked array would lose its mask"),
    ("mish.vjp(x)[1](x, dz=x)", TypeError, "mish: pullback has no argument 'dz'; it takes dy and out="),
    ("mish.specialize(x='a')", TypeError, "mish: argument 'x': expected a shape, .* not 'a'"),
    ("mish.specialize(x=(2, 3.5))", TypeError, "mish: argument 'x': expected a shape"),
    ("mish.specialize(x=(2,), dtype='foo')", TypeError, "mish: specialize: dtype must be float32 or float64"),
    ("pick(x, 7)", IndexError, "layers.py:31: pick: index 7 is out of range for axis 0 with size 3"),
    ("pick(x2, np.array([0, -4]))", IndexError, "pick: index -4 is out of range"),
    (
        "mish.vjp(x)[1](x[:2])",
        ValueError,
        r"mish: pullback: argument 'dy': expected shape \(3,\), got \(2,\)",
    ),
    (
        "mish.vjp(x)[1](x.astype('d'))",
        TypeError,
        "mish: pullback: argument 'dy': expected float32, got float64",
    ),
    ("mish.vjp(x)[1]()", ValueError, r"mish: pullback: expected 1 gradients \(dy\), got 0"),
    ("mish.vjp(x)[1](1.0)", ValueError, "mish: pullback: argument 'dy': expected shape"),
    ("mish.vjp(x)[1](x, out=(x, x))", ValueError, "mish: pullback: out: expected 1 arrays, got 2"),
    ("mish(x, out=x[:2])", ValueError, r"mish: out for 'y': expected shape \(3,\), got \(2,\)"),
    ("mish(x, out=x.astype('d'))", TypeError, "mish: out for 'y': expected float32, got float64"),
    ("mish(x, out=np.broadcast_to(x[:1], 3))", ValueError, "mish: out for 'y': the array is read-only"),
    ("mish(x, out=3)", TypeError, "mish: argument 'y': expected an array, got int"),
    ("moments(x, 1, out=x)", ValueError, "moments: out: expected 2 arrays, got 1"),
    (
        "moments(x, 1, out=(x[:1].reshape(()), x))",
        ValueError,
        "moments: out: the arrays for 'y1' and 'y2' overlap",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[row[0] for row in BAD])
def test_bad_calls(L, call, error, message):
    x, x2 = np.array([1, 2, 3], F32), np.arange(6, dtype=F32).reshape(2, 3)
    for _ in range(2):
        with pytest.raises(error, match=message) as caught:
            eval(f"L.{call}", {"L": L, "x": x, "x2": x2, "np": np})
        assert type(caught.value) is error
    np.testing.assert_array_equal(x, [1, 2, 3])


def test_a_float_is_no_known_integer(L):
    """1 and 1.0 are equal keys of a dict, but not the same argument."""
    x = draw(3)
    for by in (x[0], np.array(2, F32)):
        L.scale(x, by, power=1)
        L.scale(x, by, power=1)
        L.scale.run("predict", {"x": x, "by": np.asarray(by)}, {"power": 1}, batched=False)
        for power in (1.0, True):
            with pytest.raises(TypeError, match="power"):
                L.scale(x, by, power=power)
            with pytest.raises(TypeError, match="power"):
                L.scale.run("predict", {"x": x, "by": np.asarray(by)}, {"power": power}, batched=False)


# -- out -------------------------------------------------------------------------------------------------

OUTS = {
    "plain": lambda x: np.empty_like(x),
    "the input": lambda x: x,
    "strided": lambda x: np.empty((4, 12), F32)[:, ::2],
    "unaligned": lambda x: _unaligned(np.empty_like(x)),
}


@pytest.mark.parametrize("kind", [*OUTS, "overlapping"])
def test_out(L, kind):
    memory = draw(5 * 6)
    x = memory[:24].reshape(4, 6)
    expected = mish(x.copy())
    out = memory[3:27].reshape(4, 6) if kind == "overlapping" else OUTS[kind](x)
    assert L.mish(x, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["plain", "dy", "x", "strided"])
def test_out_of_pullback(L, kind):
    x, dy = draw(4, 6), draw(4, 6)
    out = {"plain": np.empty_like(x), "dy": dy, "x": x, "strided": np.empty((4, 12), F32)[:, ::2]}[kind]
    y0 = np.empty_like(x)
    y, pullback = L.mish.vjp(x, out=y0)
    assert y is y0
    (expected,) = pullback(dy)
    (dx,) = pullback(dy, out=(out,))
    assert dx is out
    np.testing.assert_array_equal(out, expected)


# -- classes ---------------------------------------------------------------------------------------------


def srelu(x, tl, al, tr, ar):
    tl, al, tr, ar = (v.reshape(-1, *[1] * (x.ndim - 1)) for v in (tl, al, tr, ar))
    return np.where(x <= tl, tl + al * (x - tl), np.where(x >= tr, tr + ar * (x - tr), x))


def test_class_layer(L):
    s = L.SReLU(name="s1")
    s.initialize((3, 4, 5), seed=2)
    assert list(s.params) == ["left_threshold", "left_slope", "right_threshold", "right_slope"]
    assert all(p.shape == (3,) and p.dtype == F32 for p in s.params.values())
    x = draw(7, 3, 4, 5)
    expected = np.stack([srelu(one, *s.params.values()) for one in x])
    for _ in range(2):
        np.testing.assert_allclose(s(x), expected, rtol=1e-6)
        np.testing.assert_allclose(s(x[0]), expected[0], rtol=1e-6)
        y, pullback = s.vjp(x)
        got = pullback(np.ones_like(y))
        assert got.inputs[0].shape == x.shape
        assert list(got.params) == list(s.params)
    np.testing.assert_allclose(s.reference(x), expected, rtol=1e-6)
    assert s.gradient_source == L.SReLU.gradient_source


def test_class_gradients(L):
    s = L.SReLU()
    s.initialize((2, 3), dtype=F64)
    x, dy = draw(4, 2, 3, dtype=F64), draw(4, 2, 3, dtype=F64)
    got = s.vjp(x)[1](dy)

    def with_param(name, value):
        other = copy.deepcopy(s)
        other.params[name] = value
        return other(x)

    np.testing.assert_allclose(got.inputs[0], slope(s, x, dy), rtol=1e-5, atol=1e-8)
    for name, value in s.params.items():
        expected = slope(lambda v, name=name: with_param(name, v), value, dy)
        np.testing.assert_allclose(got.params[name], expected, rtol=1e-5, atol=1e-8)


def test_initial_values_have_their_own_streams(L):
    a, b, c = L.SReLU(name="a"), L.SReLU(name="b"), L.SReLU(name="a")
    for s in (a, b, c):
        s.initialize((8, 2), seed=1)
    slopes = [s.params["left_slope"] for s in (a, b, c)]
    assert not np.array_equal(slopes[0], slopes[1])
    np.testing.assert_array_equal(slopes[0], slopes[2])
    assert not np.array_equal(a.params["left_slope"], a.params["right_slope"])
    b.initialize((8, 2), seed=1, dtype=F64)
    np.testing.assert_array_equal(b.params["left_slope"].astype(F32), slopes[1])
    assert (a.params["left_threshold"] <= 0).all()


def test_setting_params(L):
    s = L.SReLU(name="s1")
    with pytest.raises(RuntimeError, match="SReLU 's1': param 'left_threshold' has no value"):
        s(draw(3, 4))
    s.initialize((3, 4))
    value = np.full(3, 0.25, F32)
    s.params["left_slope"] = value
    s.params["left_slope"] += 1
    np.testing.assert_array_equal(value, 0.25)
    np.testing.assert_array_equal(s.params["left_slope"], 1.25)
    for name, bad, error in [
        ("left_slope", np.zeros(4, F32), ValueError),
        ("left_slope", np.zeros(3), TypeError),
        ("left_slope", np.zeros((3, 1), F32), ValueError),
        ("left_slop", value, KeyError),
    ]:
        with pytest.raises(error, match="SReLU 's1'"):
            s.params[name] = bad
    with pytest.raises(TypeError):
        del s.params["left_slope"]
    with pytest.raises(AttributeError, match="cannot be assigned"):
        s.left_slope = value
    s.params.update(left_slope=[1, 2, 3])
    np.testing.assert_array_equal(s.params["left_slope"], [1, 2, 3])
    x = draw(2, 3, 4)
    np.testing.assert_allclose(s(x), np.stack([srelu(one, *s.params.values()) for one in x]), rtol=1e-6)


def test_params_set_without_initialize(L):
    s = L.SReLU()
    for name in reversed(s.params.allowed):
        s.params[name] = np.full(3, 0.5, F32)
    assert s(draw(3, 4)).shape == (3, 4)
    assert list(s.params) == list(s.params.allowed)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        ("Running(rate=2.0)", ValueError, "Running 'running': field 'rate' = 2.0 fails its check"),
        ("Running(rate='a')", ValueError, "Running 'running': field 'rate': expected float, got str 'a'"),
        ("Running(rats=1)", TypeError, "Running 'running': no field 'rats'; it takes rate"),
        ("Running().initialize((3,))", ValueError, "Running 'running': argument 'x': expected shape \"N C\""),
        ("Running().initialize()", ValueError, "initialize takes 1 shapes"),
        ("Running().initialize((3, 4), dtype='f2')", TypeError, "dtype must be float32 or float64"),
        ("Running().initialize((3, 4), dtype='foo')", TypeError, "dtype must be float32 or float64, not 'foo'"),
        ("Running().initialize((3, 4), seed='a')", TypeError, "Running 'running': initialize: seed must be an integer"),
        ("Running().initialize((3, 'a'))", TypeError, "Running 'running': argument 'x': expected a shape"),
        ("Running().initialize((3, 4.5))", TypeError, "Running 'running': argument 'x': expected a shape"),
        ("Running().initialize((3, -4))", ValueError, "Running 'running': argument 'x': .* negative size"),
        ("Running().params['q']", KeyError, "Running 'running': no param 'q'; it has none"),
    ],
)
def test_bad_fields(L, make, error, message):
    with pytest.raises(error, match=message):
        eval(f"L.{make}", {"L": L})


def test_states(L):
    s = L.Running(rate=0.25)
    assert s.rate == 0.25
    s.initialize((5, 3))
    x = draw(5, 3)
    np.testing.assert_array_equal(s(x), x)
    assert not s.states["mean"].any()  # predict leaves the states alone
    y, pullback = s.vjp(x)
    np.testing.assert_allclose(s.states["mean"], 0.25 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(y, x - s.states["mean"], rtol=1e-5)
    got = pullback(np.ones_like(y))
    np.testing.assert_allclose(got.inputs[0], 0.75, rtol=1e-5)
    assert got.params == {}
    s.vjp(x)
    np.testing.assert_allclose(s.states["mean"], 0.4375 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(s.reference(x), s(x), rtol=1e-6)
    s.reset_state()
    assert not s.states["mean"].any()


def test_initialize_of_the_author(L):
    s = L.Shift()
    s.initialize((5, 3))
    assert s.params["offset"].dtype == F32
    np.testing.assert_array_equal(s(np.zeros((2, 3), F32)), [[0, -1, -2]] * 2)
    with pytest.raises(NotImplementedError, match="Shift 'shift'"):
        s.vjp(draw(2, 3))


def test_initialized_again(L):
    """The same input is one example first, then a batch."""
    s, x = L.SReLU(), draw(2, 2)
    s.initialize((2, 2), seed=3)
    values = [p.copy() for p in s.params.values()]
    for _ in range(2):
        np.testing.assert_allclose(s(x), srelu(x, *values), rtol=1e-6)
    s.initialize((2,), seed=3)
    for _ in range(2):
        np.testing.assert_allclose(s(x), np.stack([srelu(one, *values) for one in x]), rtol=1e-6)


def test_params_changed_in_place_and_replaced(L):
    s, x = L.SReLU(), draw(2, 3)
    s.initialize((2, 3))
    s(x)
    s.params["left_slope"][...] = 7
    np.testing.assert_allclose(s(x), srelu(x, *s.params.values()), rtol=1e-6)
    s.params["right_slope"] = np.full(2, 9, F32)
    np.testing.assert_allclose(s(x), srelu(x, *s.params.values()), rtol=1e-6)
    out = np.empty_like(x)
    assert s(x, out=out) is out
    np.testing.assert_array_equal(out, s(x))
    shared = np.full((4,), 5, F32)[::2]  # the Net may share an array of any layout
    s.params.bind("left_slope", shared)
    np.testing.assert_allclose(s(x), srelu(x, *s.params.values()), rtol=1e-6)
    shared[...] = 6
    np.testing.assert_allclose(s(x), srelu(x, *s.params.values()), rtol=1e-6)


def test_pickle_and_copy(L):
    assert pickle.loads(pickle.dumps(L.mish)) is L.mish
    s = L.Running(rate=0.25, name="r")
    s.initialize((5, 3))
    s.vjp(draw(5, 3))
    other = pickle.loads(pickle.dumps(s))
    assert (other.name, other.rate) == ("r", 0.25)
    np.testing.assert_array_equal(other.states["mean"], s.states["mean"])
    other.states["mean"] = np.zeros(3, F32)
    assert s.states["mean"].any()


# -- whole batches by name, for the Net ------------------------------------------------------------------


def test_run_and_pull(L):
    s = L.SReLU()
    s.initialize((3, 4))
    x, dy = draw(5, 3, 4), draw(5, 3, 4)
    arrays = {"x": x, **s.params}
    out = {"y": np.empty_like(x)}
    for _ in range(2):
        assert s.compiled.run("predict", arrays, {}, out=out)["y"] is out["y"]
        np.testing.assert_array_equal(out["y"], s(x))
        got, expected = s.compiled.pull({**arrays, "dy": dy}, {}), s.vjp(x)[1](dy)
        np.testing.assert_array_equal(got["x"], expected.inputs[0])
        np.testing.assert_array_equal(got["left_slope"], expected.params["left_slope"])
        only = s.compiled.pull({**arrays, "dy": dy}, {}, want="params")
        assert (list(only), only["left_slope"][0]) == (list(s.params), 42)  # the kernel for params alone
        assert list(s.compiled.pull({**arrays, "dy": dy}, {}, want="inputs")) == ["x"]
    one = s.compiled.run("predict", {**arrays, "x": x[0]}, {}, batched=False)["y"]
    np.testing.assert_array_equal(one, out["y"][0])


def test_run_checks(L):
    run = L.Running.compiled.run
    x, mean = draw(4, 3), draw(3)
    got = run("forward", {"x": x, "mean": mean}, {"rate": 0.5})
    assert list(got) == ["y", "mean"]
    with pytest.raises(TypeError, match="Running: argument 'mean' is missing"):
        run("forward", {"x": x}, {})
    with pytest.raises(TypeError, match="Running: argument 'mean' is float64"):
        run("forward", {"x": x, "mean": mean.astype(F64)}, {})
    with pytest.raises(ValueError, match="Running: argument 'mean'"):
        run("forward", {"x": x, "mean": mean[:2]}, {})
    strided = run("forward", {"x": np.asfortranarray(x), "mean": mean}, {"rate": 0.5})
    np.testing.assert_array_equal(strided["y"], got["y"])


# -- random ----------------------------------------------------------------------------------------------


def test_random(L):
    x = np.ones(100, F32)
    np.testing.assert_array_equal(L.noise(x, rng=5), L.noise(x, 5))
    assert not np.array_equal(L.noise(x), L.noise(x))
    y, pullback = L.noise.vjp(x)
    np.testing.assert_array_equal(pullback(x)[0], y)  # the same numbers again
    a, b = (L.noise(x, rng=np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    with pytest.raises(TypeError, match="noise: argument 'rng': expected a seed or a generator, got str"):
        L.noise(x, rng="a")


# -- other arrays ----------------------------------------------------------------------------------------


class Foreign:
    """An array of no library that this process knows more of than DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_of_an_unknown_kind(L):
    x = draw(4)
    y = L.mish(Foreign(x))
    np.testing.assert_array_equal(y, L.mish(x))


def test_torch(L):
    torch = pytest.importorskip("torch")
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    y, pullback = L.mish.vjp(x)
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, torch.nn.functional.mish(x))
    (dx,) = pullback(torch.ones_like(y))
    assert isinstance(dx, torch.Tensor)
    np.testing.assert_array_equal(dx.numpy(), L.mish.vjp(x.numpy())[1](np.ones((3, 4), F32))[0])
    torch.testing.assert_close(L.mish(x.T), torch.nn.functional.mish(x.T))
    out = torch.empty(3, 4)
    assert L.mish(x, out=out) is out
    torch.testing.assert_close(out, y)
    with pytest.raises(TypeError, match=r"mish: argument 'x': cannot read this torch.Tensor"):
        L.mish(x.requires_grad_())
    with pytest.raises(TypeError, match=r"mish: argument 'x': .*float16"):
        L.mish(torch.zeros(3, dtype=torch.float16))


def test_jax(L):
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.linspace(-2, 2, 12)
    for _ in range(2):
        y, pullback = L.mish.vjp(x)
        assert type(y) is type(x)
        np.testing.assert_allclose(np.asarray(y), mish(np.asarray(x)), rtol=1e-5)
        assert type(pullback(y)[0]) is type(x)


# -- many at once ----------------------------------------------------------------------------------------


def test_threads_of_python(L):
    xs = [draw(50, 50) for _ in range(8)]
    expected = [L.mish(x) for x in xs]
    wrong = []

    def work(i):
        for _ in range(200):
            if not np.array_equal(L.mish(xs[i]), expected[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_known_shapes_are_bounded(L):
    for n in range(1200):
        L.mish(np.zeros(n, F32))
    assert len(L.mish.core._cases) <= 512


def test_attributes(L):
    assert L.mish.name == "mish"
    assert L.mish.signature == "mish(x)"
    assert L.mish.__doc__ == "mish(x)\n\nmish, by hand."
    assert L.mish.gradient_source.startswith("def d_mish")
    assert L.mish.manifest["name"] == "mish"
    assert repr(L.mish) == "<compiled mish(x)>"
    assert L.SReLU.signature.startswith("SReLU(")
