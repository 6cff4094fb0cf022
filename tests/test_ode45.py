"""`ode45` in layer files: closed forms, scipy, both gradients, under NumPy, as gradient source and compiled."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import load_package
from scipy import integrate
from test_gradient_source import call_gradient, differences, outputs_of

import layerc
from layerc.adjoint.gradient import gradient_file
from layerc.build.driver import build, gradient_source
from layerc.transpile.errors import InvalidFile
from layerc.transpile.layers import check_file

RNG = np.random.default_rng(0)
HEAD = "import layerc\nimport numpy as np\nfrom layerc import Layer, Param, init, layer, ode45, real, stop_gradient\n\n"
METHODS = ("direct", "adjoint")

# name, arguments, dy/dt and its call, the closed form of the same arguments, values of them
GROWTH = (
    'y0: real["N"], t0: real, t1: real, w: Param[real["N"]]',
    "lambda t, y, w: -w * y, t0, t1, y0, w",
    lambda y0, t0, t1, w: y0 * np.exp(-w * (t1 - t0)),
    {"y0": np.array([1.0, 2.0, -0.5]), "t0": np.array(0.25), "t1": np.array(1.75), "w": np.array([0.5, 1.0, -1.5])},
)
OSCILLATOR = (
    'y0: real["2"], t1: real, omega: real',
    "lambda t, y: np.stack([y[1], -(omega**2) * y[0]]), 0.0, t1, y0",
    lambda y0, t1, omega: np.stack(
        [
            y0[0] * np.cos(omega * t1) + y0[1] / omega * np.sin(omega * t1),
            y0[1] * np.cos(omega * t1) - y0[0] * omega * np.sin(omega * t1),
        ]
    ),
    {"y0": np.array([1.0, -0.3]), "t1": np.array(2.5), "omega": np.array(3.0)},
)
LOGISTIC = (
    "p: real, t1: real, rate: Param[real], limit: Param[real]",
    "lambda t, y, r: r * y * (1 - y / limit), 0, t1, p, rate",
    lambda p, t1, rate, limit: limit / (1 + (limit / p - 1) * np.exp(-rate * t1)),
    {"p": np.array(0.2), "t1": np.array(2.0), "rate": np.array(1.3), "limit": np.array(1.7)},
)
FORCED = (
    'm: real["2 N"], t0: real, t1: real, a: real',
    "swung, t0, t1, m, a",
    lambda m, t0, t1, a: m * np.exp(a * (np.sin(t1) - np.sin(t0))),
    {"m": RNG.normal(size=(2, 3)), "t0": np.array(2.0), "t1": np.array(-1.0), "a": np.array(0.7)},
)
EXACT = {"growth": GROWTH, "oscillator": OSCILLATOR, "logistic": LOGISTIC, "forced": FORCED}


def source(name: str, method: str, more: str = "rtol=1e-9, atol=1e-12") -> str:
    arguments, call, _, _ = EXACT[name]
    helper = "def swung(t, y, a):\n    return a * np.cos(t) * y\n\n"
    text = f"@layer\ndef {name}({arguments}):\n    return ode45({call}, {more}, gradient='{method}')\n"
    return HEAD + helper + text


def run(text: str) -> dict[str, Any]:
    """A layer file, executed."""
    names: dict[str, Any] = {"__name__": "case"}
    exec(compile(text, "case", "exec"), names)
    return names


def gradient_of(text: str) -> str:
    return gradient_file(check_file(Path("case.py"), text))


def by_gradient_source(text: str, name: str, args: dict[str, np.ndarray], y: Any, dy: Any) -> list[np.ndarray]:
    """The gradients, by the gradient source under NumPy alone."""
    return call_gradient(run(gradient_of(text))[f"d_{name}"], args, [np.asarray(y)], [np.asarray(dy)])


# -- values ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
@pytest.mark.parametrize("name", EXACT)
def test_numpy_follows_the_closed_form(name, rtol):
    _, _, exact, args = EXACT[name]
    y = run(source(name, "direct", f"rtol={rtol}, atol={rtol / 1000}"))[name](*args.values())
    np.testing.assert_allclose(y, exact(**args), rtol=50 * rtol, atol=20 * rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_face_takes_arrays_and_numbers(dtype):
    y = layerc.ode45(lambda t, y: -y, 0, 1, np.ones((2, 3), dtype))
    assert y.dtype == dtype and y.shape == (2, 3)
    np.testing.assert_allclose(y, np.exp(-1), rtol=2e-6)
    assert np.shape(layerc.ode45(lambda t, y, k: k * y, 1.0, -1.0, 2.0, 0.5)) == ()
    assert layerc.ode45(lambda t, y: y, 0.5, 0.5, np.array([1.25, 3.0])).tolist() == [1.25, 3.0]
    assert layerc.ode45(lambda t, y: y, 0.0, 1.0, np.zeros((0, 2))).shape == (0, 2)


def test_a_stiff_problem_stays_within_tolerance():
    def van_der_pol(t, y):
        return np.array([y[1], 30 * (1 - y[0] ** 2) * y[1] - y[0]])

    solved = integrate.solve_ivp(van_der_pol, (0, 25), [2.0, 0.0], method="Radau", rtol=1e-10, atol=1e-12)
    found = layerc.ode45(van_der_pol, 0.0, 25.0, np.array([2.0, 0.0]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found, solved.y[:, -1], rtol=1e-5)


def test_what_cannot_be_followed_is_an_error():
    with np.errstate(all="ignore"):
        with pytest.raises(AssertionError, match="max_steps"):
            layerc.ode45(lambda t, y: y * y, 0.0, 2.0, np.array([1.0]))
        with pytest.raises(AssertionError, match="max_steps"):
            layerc.ode45(lambda t, y: -y, 0.0, 1.0, np.array([1.0]), max_steps=2)
        with pytest.raises(AssertionError, match="max_steps"):
            layerc.ode45(lambda t, y: np.nan * y, 0.0, 1.0, np.array([1.0]))
    with pytest.raises(AssertionError, match="shape of y"):
        layerc.ode45(lambda t, y: np.sum(y), 0.0, 1.0, np.ones(2))
    with pytest.raises(AssertionError, match='"direct" or "adjoint"'):
        layerc.ode45(lambda t, y: y, 0.0, 1.0, np.ones(2), gradient="no")
    with pytest.raises(AssertionError, match="a function"):
        layerc.ode45(1.0, 0.0, 1.0, np.ones(2))


# -- gradients -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EXACT)
def test_gradient_source_follows_the_closed_form(name, method):
    _, _, exact, args = EXACT[name]
    text = source(name, method)
    y = run(text)[name](*args.values())
    dy = RNG.normal(size=np.shape(y))
    found = by_gradient_source(text, name, args, y, dy)
    for (argument, _), gradient in zip(args.items(), found, strict=True):
        expected = differences(exact, args, [dy], argument)
        np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-7, err_msg=argument)


@pytest.mark.parametrize("name", EXACT)
def test_the_direct_gradient_is_that_of_the_steps(name):
    """At a tolerance that shows: the derivative of what is computed, not of what it approximates."""
    _, _, _, args = EXACT[name]
    text = source(name, "direct", "rtol=0.01, atol=0.01")
    f = run(text)[name].fn
    y = f(**args)
    dy = RNG.normal(size=np.shape(y))
    found = by_gradient_source(text, name, args, y, dy)
    for argument, gradient in zip(args, found, strict=True):
        expected = differences(f, args, [dy], argument, h=1e-5)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7, err_msg=argument)


@pytest.mark.parametrize("method", METHODS)
def test_no_time_passes(method):
    args = {**GROWTH[3], "t1": GROWTH[3]["t0"]}
    dy = np.array([1.0, 2.0, 3.0])
    d_y0, d_t0, d_t1, d_w = by_gradient_source(source("growth", method), "growth", args, args["y0"], dy)
    slope = -args["w"] * args["y0"]
    np.testing.assert_allclose(d_y0, dy)
    np.testing.assert_allclose([d_t0, d_t1], [-dy @ slope, dy @ slope])
    np.testing.assert_allclose(d_w, 0, atol=1e-12)


def test_a_rejected_step_leaves_no_nan():
    """The first trials run below 0, where the root is NaN: the steps that are taken do not."""
    body = "    return ode45(lambda t, y, k: -k * np.sqrt(y), 0.0, 60.0, y0, k, rtol=1e-3, atol=1e-9)\n"
    text = HEAD + '@layer\ndef drained(y0: real["N"], k: real):\n' + body
    args = {"y0": np.array([1.0]), "k": np.array(0.0333)}
    with np.errstate(invalid="ignore"):
        y = run(text)["drained"](*args.values())
        d_y0, d_k = by_gradient_source(text, "drained", args, y, np.ones(1))
        roots = []
        layerc.ode45(lambda t, y: roots.append(-args["k"] * np.sqrt(y)) or roots[-1], 0.0, 60.0, args["y0"], rtol=1e-3)
    assert np.isnan(roots).any()
    root = np.sqrt(args["y0"]) - args["k"] * 30
    np.testing.assert_allclose(y, root**2, rtol=1e-2)
    np.testing.assert_allclose(d_y0, root / np.sqrt(args["y0"]), rtol=1e-2)
    np.testing.assert_allclose(d_k, -60 * root[0], rtol=1e-2)


def test_gradient_source_reads_well():
    """One derivative of f, inside a loop over the stages; no step that was rejected; nothing of the search."""
    text = gradient_of(source("growth", "direct"))
    assert "ode45(" in re.findall(r"# \d+: (.*)", text)[0] and "layerc" not in text.partition("def ")[2]
    backward = text[text.index("d_t1 = ") :]
    assert backward.count("for ") == 3 and "while" not in backward and "_saved[" not in backward
    adjoint = gradient_of(source("growth", "adjoint"))
    assert adjoint.count("while ") == 2  # no forward: y is given
    for made in (text, adjoint):
        assert check_file(Path("gradients.py"), made).layers


# Whole layers f, and values of their arguments. ruff: noqa: E501 (one line a statement)
LAYERS = """
def a_constant_start(x: real):
    return ode45(lambda t, y: -y * x, 0.0, 1.0, 2.0, METHOD) * x

def an_integer_argument(x: real["3"]):
    return ode45(lambda t, y, k, c: -y[k] * c, 0, 1, x, np.array([1, 0, 2]), 0.3, METHOD)

def an_integer_start(x: real["3"]):
    return ode45(lambda t, y: -y * x, 0.0, 1.0, np.arange(3), METHOD)

def loops_and_branches(x: real["3"]):
    def slope(t, y):
        h = np.zeros_like(y)
        for i in range(y.shape[0]):
            if y[i] > 0:
                h[i] = -y[i] * t
        return h
    return ode45(slope, 0.0, 1.0, x, METHOD)

def one_in_another(x: real):
    return ode45(lambda t, y: ode45(lambda s, z: -z * x, 0.0, 0.5, y, METHOD), 0.0, 1.0, x, METHOD)

def at_every_step(x: real["3"], k: real):
    h = k
    for t in range(len(x)):
        h = ode45(lambda s, y: x[t] - np.sin(y) * k, 0.0, 0.4, h, METHOD)
    return h

def a_captured_view(x: real["3"], w: real["2 3 3"]):
    a = w[1].T
    return ode45(lambda t, y: a @ y, 0.0, 0.5, x, METHOD)
"""
ODD = {re.findall(r"\w+", text)[1]: text for text in LAYERS.strip().split("\n\n")}
NESTED = ("one_in_another",)  # steps times steps


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in NESTED else []) for n in ODD])
def test_odd_ones(name, method):
    rtol = 1e-7 if name in NESTED else 1e-9
    text = HEAD + "@layer\n" + ODD[name].replace("METHOD", f"rtol={rtol}, gradient='{method}'") + "\n"
    shapes = dict(re.findall(r'(\w+): real(?:\["([^"]*)"\])?', text))
    args = {a: RNG.uniform(-1, 1, tuple(map(int, dims.split()))) for a, dims in shapes.items()}
    f = run(text)[name]
    y = f(*args.values())
    dy = RNG.normal(size=np.shape(y))
    for argument, gradient in zip(args, by_gradient_source(text, name, args, y, dy), strict=True):
        expected = differences(f, args, [dy], argument, h=1e-5)
        np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-7, err_msg=argument)


def test_second_order():
    text = HEAD + (
        "@layer\ndef growth(y0: real, w: real):\n    return ode45(lambda t, y: -w * y, 0.0, 1.0, y0, rtol=1e-10)\n"
    )
    twice = run(gradient_source(check_file(Path("case.py"), text), None, 2))["d_d_growth"]
    given = {"y0": 2.0, "w": 0.5, "dy": 1.0, "dy1": 0.3, "dy2": 0.7, "y": 2.0 * np.exp(-0.5)}
    d_y0, d_w, d_dy = twice(**{k: given[k] for k in twice.__code__.co_varnames[: twice.__code__.co_argcount]})
    e = np.exp(-0.5)  # y = 2 e, dy/dy0 = e, dy/dw = -2 e
    np.testing.assert_allclose([d_y0, d_w, d_dy], [-0.7 * e, -0.3 * e + 0.7 * 2 * e, 0.3 * e - 0.7 * 2 * e], rtol=1e-6)


# -- compiled --------------------------------------------------------------------------------------------------
MORE = """
class Field(Layer):
    w: Param[real["D D"]] = init.normal(0, 1)
    b: Param[real["D"]] = init.normal(0, 1)

    def slope(self, t, y):
        return np.tanh(y @ self.w + self.b) * np.cos(2 * t)

    def predict(self, y0: real["D"]) -> real["D"]:
        return ode45(lambda t, y: self.slope(t, y), 0.5, 2.0, y0, gradient="METHOD")
"""


@pytest.fixture(scope="module")
def L(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ode45")
    text = source("forced", "direct", "rtol=1e-6") + MORE.replace("METHOD", "adjoint")
    (folder / "equations.py").write_text(text)
    return load_package(build(folder / "equations.py", folder / "equations_compiled"), "equations_compiled")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_takes_the_steps_of_numpy(L, dtype):
    args = [v.astype(dtype) for v in FORCED[3].values()]
    y, pullback = L.forced.vjp(*args)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(y, L.forced.reference(*args), rtol=100 * eps)
    np.testing.assert_allclose(y, FORCED[2](*args), rtol=1e-5)
    dy = RNG.normal(size=y.shape).astype(dtype)
    for argument, gradient in zip(FORCED[3], pullback(dy), strict=True):
        expected = differences(FORCED[2], dict(FORCED[3]), [dy.astype(np.float64)], argument)
        assert np.asarray(gradient).dtype == dtype
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4, err_msg=argument)


def test_each_example_has_steps_of_its_own(L):
    m, a = RNG.normal(size=(3, 2, 4)), np.array([0.1, 0.7, 5.0])
    t0, t1 = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, -1.0])
    y, pullback = L.forced.vjp(m, t0, t1, a)
    gradients = pullback(np.ones_like(y))
    for k in range(3):
        alone, pull = L.forced.vjp(m[k], t0[k], t1[k], a[k])
        np.testing.assert_array_equal(y[k], alone)
        for whole, one in zip(gradients, pull(np.ones_like(alone)), strict=True):
            np.testing.assert_array_equal(whole[k], one)


def test_what_f_reads_of_its_class_has_a_gradient(L):
    """The adjoint against the derivative of scipy's solution, for parameters that are no argument of f."""
    layer = L.Field(name="f")
    layer.initialize((3,), seed=1, dtype=np.float64)
    x = RNG.normal(size=(2, 3))
    y, pullback = layer.vjp(x)
    dy = RNG.normal(size=y.shape)
    found = pullback(dy)
    params = {k: np.array(v) for k, v in layer.params.items()}

    def solved(x, w, b):
        rows = [
            integrate.solve_ivp(
                lambda t, y: np.tanh(y @ w + b) * np.cos(2 * t), (0.5, 2.0), row, rtol=1e-12, atol=1e-12
            ).y[:, -1]
            for row in x
        ]
        return np.array(rows)

    args = {"x": x, **params}
    np.testing.assert_allclose(y, solved(**args), rtol=1e-5, atol=1e-6)
    for name, gradient in {"x": found.inputs[0], **found.params}.items():
        expected = differences(solved, args, [dy], name, h=1e-5)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5, err_msg=name)


def test_against_jax(L):
    jax = pytest.importorskip("jax")
    from jax.experimental.ode import odeint

    jax.config.update("jax_enable_x64", True)
    m, t0, t1, a = (np.asarray(v) for v in (FORCED[3]["m"], 0.5, 2.0, 0.7))

    def loss(m, a):
        times = jax.numpy.array([0.5, 2.0])
        return odeint(lambda y, t, a: a * jax.numpy.cos(t) * y, m, times, a, rtol=1e-10, atol=1e-12)[-1].sum()

    expected = jax.grad(loss, (0, 1))(m, a)
    y, pullback = L.forced.vjp(m, t0, t1, a)
    d_m, _, _, d_a = pullback(np.ones_like(y))
    np.testing.assert_allclose(d_m, expected[0], rtol=1e-5)
    np.testing.assert_allclose(d_a, expected[1], rtol=1e-5)


def test_a_compiled_failure_names_the_call(L):
    with pytest.raises(AssertionError, match=r"(?s)forced.*max_steps.*equations.py.*line \d+|equations.py:\d+"):
        L.forced(np.ones((2, 1)), 0.0, 1e9, 5.0)


# -- mistakes --------------------------------------------------------------------------------------------------
# the call | part of the message | part of the help
MISTAKES = [
    ("ode45(lambda t, y: np.sum(y), 0.0, 1.0, x)", "has the shape of y", ""),
    ("ode45(lambda t, y: y[1:], 0.0, 1.0, x)", "do not broadcast", ""),
    ("ode45(lambda t, y: y[:2], 0.0, 1.0, np.ones(3) * x[0])", "has the shape of y", ""),
    ("ode45(x, 0.0, 1.0, x)", "takes a function first", ""),
    ("ode45(lambda t, y: y, 0.0, 1.0, x, tol=1e-3)", "no argument tol", "rtol"),
    ('ode45(lambda t, y: y, 0.0, 1.0, x, gradient="reverse")', '"direct" or "adjoint"', ""),
    ("ode45(lambda y: y, 0.0, 1.0, x)", "takes 1 arguments, got 2", ""),
    ("ode45(lambda t, y: y, 0.0, 1.0)", "ode45 needs y0", ""),
    ("layerc.ode45(lambda t, y: np.unique(y), 0.0, 1.0, x)", "np.unique", "np.sort"),
    ("np.sin(*x.shape)", "* is for calls of functions", "write the arguments out"),
]


@pytest.mark.parametrize(("call", "message", "help"), MISTAKES)
def test_mistakes_are_drawn_at_the_call(call, message, help):
    text = HEAD + f'@layer\ndef f(x: real["N"]):\n    return {call}\n'
    with pytest.raises(InvalidFile) as caught:
        check_file(Path("case.py"), text)
    drawn = str(caught.value)
    assert drawn.count("error[") == 1 and message in drawn and help in drawn, drawn
    assert drawn.startswith(f"case.py:{text[: text.index('    return')].count(chr(10)) + 1}:") and "^" in drawn


# -- what it is made with --------------------------------------------------------------------------------------
def test_a_helper_with_a_backward_of_its_own():
    text = HEAD + (
        "from layerc.runtime.derivatives import with_backward\n\n"
        "def root(a):\n    x = 1.0 * a + 1\n    for _ in range(30):\n        x = 0.5 * (x + a / x)\n"
        "    return with_backward(x, root_backward, (a,))\n\n"
        "def root_backward(a, y, dy):\n    return (dy / (2 * y),)\n\n"
        '@layer\ndef both(a: real["N"], b: real["N"]):\n    return np.sum(root(a) * root(a * b))\n'
    )
    args = {"a": np.array([1.0, 4.0, 0.3]), "b": np.array([2.0, 0.5, 1.5])}
    f = run(text)["both"]
    gradient = gradient_of(text)
    assert gradient.count("for ") == 2 and "a_2 / x" not in gradient.partition("# ")[2], gradient
    found = by_gradient_source(text, "both", args, f(*args.values()), 1.0)
    for name, got in zip(args, found, strict=True):
        np.testing.assert_allclose(got, differences(f, args, outputs_of(1.0), name), rtol=1e-6)


def test_stop_gradient_stops_it_in_every_order():
    text = HEAD + '@layer\ndef through(x: real["N"]):\n    return x * x + stop_gradient(np.sin(x) - x)\n'
    x = np.array([0.5, 2.0])
    np.testing.assert_array_equal(run(text)["through"](x), x * x + np.sin(x) - x)
    (found,) = by_gradient_source(text, "through", {"x": x}, x, np.ones(2))
    np.testing.assert_allclose(found, 2 * x)
    stopped = HEAD + '@layer\ndef scaled(x: real["N"]):\n    return x * stop_gradient(np.sin(x))\n'
    twice = gradient_source(check_file(Path("case.py"), stopped), None, 2)
    second = run(twice)["d_d_scaled"]
    d_x, d_dy = second(**{name: x if name == "x" else np.ones(2) for name in inspect.signature(second).parameters})
    np.testing.assert_allclose(d_x, 0)
    np.testing.assert_allclose(d_dy, np.sin(x))
