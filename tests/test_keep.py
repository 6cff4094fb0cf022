"""Keep or recompute: the training pair computes, bit for bit, what the gradient source computes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_cases import CASES
from nets import built_from
from test_gradient_source import arguments, layer_source

from layerc.adjoint.gradient import gradient, kept
from layerc.transpile.backwards import cotangents_of
from layerc.transpile.layers import check_file
from layerc.transpile.printer import print_function

HEAD = "from __future__ import annotations\nimport numpy as np\nfrom scipy import special\n\n"
PAIRS = {
    case.name: (case, layer, pair)
    for case in CASES
    for module in [check_file(Path("case.py"), layer_source(case))]
    for layer in module.layers
    if layer.backward == "auto"
    for pair in [kept(layer, module.source, module.path)]
    if pair is not None
}


def run(function: Any, values: dict[str, Any]) -> tuple[Any, ...]:
    space: dict[str, Any] = {}
    exec(HEAD + print_function(function), space)
    found = space[function.name](**{p.name: values[p.name] for p in function.params})
    return found if isinstance(found, tuple) else (found,)


def test_many_layers_keep_something() -> None:
    assert len(PAIRS) > 50


@pytest.mark.parametrize("name", PAIRS)
def test_the_pair_is_the_gradient(name: str) -> None:
    case, layer, pair = PAIRS[name]
    values = dict(arguments(case, 0))
    forward = dict(zip((r.name for r in pair.forward.results), run(pair.forward, values), strict=True))
    plain = run(layer.forward or layer.predict, values)
    for one, other in zip(plain, forward.values(), strict=False):
        np.testing.assert_array_equal(one, other)
    rng = np.random.default_rng(1)
    values = forward | values  # an argument may be called y
    for result, carrier in cotangents_of(layer.forward or layer.predict):
        values[carrier.name] = np.asarray(rng.standard_normal(np.shape(forward[result.name])))
    whole = gradient(layer, layer_source(case), "case.py")
    for one, other in zip(run(pair.pullback, values), run(whole, values), strict=True):
        np.testing.assert_array_equal(one, other)


ALIASES = """
@layer
def f(x: real["N"]) -> real["N"]:
    y = x.copy()
    z = y.copy()
    z[0] *= z[0]
    if z[0] > 0:
        for i in range(x.shape[0]):
            z[1::2] -= np.sin(y[1::2])
            z = np.tanh(z[::-1]) + 0.1 * x
    return z
"""


@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_crosses_is_not_written_into_by_another_name(n: int) -> None:
    """The pair as it is printed, run by NumPy, whose assignments are aliases."""
    source = "import numpy as np\nfrom layerc import layer, real\n" + ALIASES
    module = check_file(Path("f.py"), source)
    pair = kept(module.layers[0], source, "f.py")
    assert pair is not None
    values: dict[str, Any] = {"x": np.linspace(0.4, 1.7, n), "dy": np.linspace(-1, 1.5, n)}
    values |= dict(zip((r.name for r in pair.forward.results), run(pair.forward, values), strict=True))
    (one,), (other,) = run(pair.pullback, values), run(gradient(module.layers[0], source, "f.py"), values)
    np.testing.assert_array_equal(one, other)


def keeps(body: str, params: str = 'x: real["N D"]') -> tuple[str, ...]:
    source = f"import numpy as np\nfrom layerc import Param, layer, real\n\n\n@layer\ndef f({params}):\n"
    module = check_file(Path("f.py"), source + "".join(f"    {line}\n" for line in body.split("\n")))
    pair = kept(module.layers[0], module.source, module.path)
    return pair.names if pair else ()


def test_what_is_kept() -> None:
    """Reductions cross, elementwise values do not; of a list of unknown length its beginning does; a gradient that is
    linear in its input needs nothing."""
    assert keeps("s = np.sum(x * x, axis=1)\nreturn x / s[:, None]") == ("s",)
    assert keeps("c = x - np.mean(x, axis=0)\nreturn np.exp(c) * c") == ("c_mean",)  # and not c, which is larger
    assert keeps("return np.tanh(x) * np.sin(x)") == ()
    assert keeps("return np.cumsum(3 * x, axis=0)") == ()
    newton = "y = 1.0 * x\nwhile np.max(np.abs(y * y - x)) > 1e-9:\n    y = 0.5 * (y + x / y)\nreturn y"
    assert keeps(newton, 'x: real["N"]') == ("trips_kept", "y_tape")
    grown = "ys = []\nfor i in range(3):\n    ys.append(np.tanh(x * i))\nreturn np.stack(ys)"
    assert keeps(grown) == ()  # but the output, which the pullback is given
    assert keeps(f"x += y\n{grown}", 'x: real["N"], y: real') == ("ys",)  # y is something else
    chain = "h = x[0]\nfor t in range(1, x.shape[0]):\n    h = np.tanh(h * np.sum(h)) + x[t]\nreturn h * h"
    assert keeps(chain) == ("h", "h_saved", "total_h_saved")  # the sum, of which there is one for each step


@pytest.mark.parametrize(
    ("body", "args", "kept"),
    [
        ("m = np.max(x)\ne = np.exp(x - m)\nreturn m + np.log(np.sum(e))", 'x: real["N D"]', ("e", "total_e")),
        ("return np.sum(np.tanh(x) ** 2, axis=1)", 'x: real["N D"]', ("tanh_x",)),
        ("return np.sum(np.tanh(x) * x, axis=1)", 'x: real["N D"]', ()),  # x is asked for anyway
        ("return np.sum(np.tanh(x * x) ** 2, axis=1)", 'x: real["N D"]', ()),
        ("return np.sum(np.tanh(w) ** 2) * x", 'x: real, w: Param[real["N D"]]', ()),  # made once a call
        ("return np.sum(np.tanh(x[:, None] - y) ** 2, axis=1)", 'x: real["N"], y: real["D"]', ()),  # more than both
        ("return np.sum(np.sqrt(x[:, None, :]) * y, axis=2)", 'x: real["N D"], y: real["M D"]', ()),
        ("a = np.tanh(x)\nx[0] = 0\nreturn np.sum(a * a, axis=1) + np.sum(x, axis=1)", 'x: real["N D"]', ("a",)),
        ("return np.sum((3 * x) ** 2, axis=1)", 'x: real["N D"]', ()),  # arithmetic
    ],
)
def test_what_is_dear_crosses_in_place_of_what_it_is_made_of(body: str, args: str, kept: tuple[str, ...]) -> None:
    """Where that is no more memory."""
    assert keeps(body, args) == kept


def held(body: str, result: str = 'real["N D"]') -> set[str]:
    """What the pullback takes of what it is a gradient of, its outputs and what is kept."""
    source = f"import numpy as np\nfrom layerc import layer, real\n\n\n@layer\ndef f(x: real['N D']) -> {result}:\n"
    module = check_file(Path("f.py"), source + "".join(f"    {line}\n" for line in body.split("\n")))
    pair = kept(module.layers[0], module.source, module.path)
    assert pair is not None
    values: dict[str, Any] = {"x": np.random.default_rng(2).standard_normal((3, 4))}
    values |= dict(zip((r.name for r in pair.forward.results), run(pair.forward, values), strict=True))
    for name in [p.name for p in pair.pullback.params if p.role == "cotangent"]:
        values[name] = np.random.default_rng(3).standard_normal((3, 4))
    whole = gradient(module.layers[0], module.source, module.path)
    np.testing.assert_array_equal(run(pair.pullback, values)[0], run(whole, values)[0])
    return {p.name for p in pair.pullback.params if p.role != "cotangent"}


def test_outputs_that_cost_little_are_not_held() -> None:
    """Where what they are made of is at hand anyway."""
    standard = "c = x - np.mean(x)\nreturn c / np.sqrt(np.mean(c**2) + 1e-5)"
    assert held(standard) == {"x", "c_mean", "sqrt"}
    power = "c = x - np.mean(x)\nreturn np.exp(c / np.sqrt(np.mean(c**2) + 1e-5))"
    assert "y" in held(power)  # an exponential costs more than its memory
    changed = "c = x - np.mean(x)\nr = c / np.sqrt(np.mean(c**2) + 1e-5)\nc = np.sin(c)\nreturn r * c"
    assert held(changed) == {"x", "c_mean", "sqrt"}


@pytest.mark.parametrize("value", ["y * np.sum(np.exp(y))", "y * (y @ y)", "y / np.sqrt(np.mean(y**2) + 1e-5)"])
def test_an_argument_may_have_the_name_of_an_output(value: str) -> None:
    """The gradient reads the argument, not the output made again."""
    text = f'from layerc import layer, real\nimport numpy as np\n\n@layer\ndef f(y: real["N"]):\n    return {value}\n'
    module = check_file(Path("f.py"), text)
    (layer,) = module.layers
    pair = kept(layer, module.source, module.path)
    assert pair is not None
    y, dy = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0])
    _, *memory = run(pair.forward, {"y": y})
    values = {"y": y, "dy": dy, **dict(zip(pair.names, memory, strict=True))}
    want = run(gradient(layer, text, "f.py"), {"y": y, "dy": dy})
    np.testing.assert_array_equal(run(pair.pullback, values), want)


LOOPS = """
def f(x: real["N"], w: real["N"], most: int = 3, other: int = 2):
    y, k = 1.0 * x, 0
    while k < most:
        y[0] += np.sum(y) * 0.01
        y = np.sin(y * w) + x
        k += 1
    s, k = np.sum(w), 0
    while k < other:
        s = np.cos(s) * y[0]
        y = np.tanh(y * s)
        k += 1
    return y * s
"""


@pytest.mark.parametrize("most", [0, 1, 7, 8, 9, 20])
@pytest.mark.parametrize("other", [0, 8, 9])
def test_loops_on_tapes(most: int, other: int) -> None:
    """Two loops, one that writes into what it carries: bit for bit the whole gradient, on the tapes and beyond."""
    source = f"import numpy as np\nfrom layerc import layer, real\n\n\n@layer{LOOPS}"
    module = check_file(Path("f.py"), source)
    layer = module.layers[0]
    pair = kept(layer, module.source, module.path)
    assert pair is not None
    assert sum(name.endswith("_tape") for name in pair.names) >= 3
    rng = np.random.default_rng(most)
    values = {"x": rng.standard_normal(4), "w": rng.standard_normal(4), "most": most, "other": other}
    results = dict(zip((r.name for r in pair.forward.results), run(pair.forward, values), strict=True))
    values |= results | {"dy": rng.standard_normal(4)}
    whole = run(gradient(layer, source, "f.py"), values)
    for one, other_one in zip(run(pair.pullback, values), whole, strict=True):
        np.testing.assert_array_equal(one, other_one)


NEARLY = """
import numpy as np
from layerc import Param, layer, real


@layer
def power(a: real["N N"]) -> real["N"]:
    v = np.ones(a.shape[0]) / np.sqrt(a.shape[0])
    change, n = 1.0, 0
    while change > 1e-7 and n < 100:
        w = a @ v
        w = w / np.linalg.norm(w)
        change = np.max(np.abs(w - v))
        v = w
        n += 1
    return v


@layer
def fixed(x: real["N"], w: Param[real["N N"]]) -> real["N"]:
    z = np.zeros_like(x)
    m = 0.5 * w / np.linalg.norm(w)
    n = 0
    while True:
        new = np.tanh(m @ z + x)
        n += 1
        if np.linalg.norm(new - z) < 1e-7 or n == 50:
            break
        z = new
    return z
"""


def test_a_loop_runs_again_as_often_as_it_did(tmp_path: Path) -> None:
    """Near the end rounding decides, which is another one where the loop stands alone."""
    package = built_from(tmp_path, "nearly", NEARLY)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 9))
        a = rng.standard_normal((3, n, n))
        values = {"power": [a @ a.transpose(0, 2, 1) / n], "fixed": [a[:, 0], a[0]]}
        for name, arrays in values.items():
            y, pullback = getattr(package, name).vjp(*(v.astype(np.float32) for v in arrays))
            want, exact = getattr(package, name).vjp(*arrays)
            found, wanted = pullback(np.ones_like(y)), exact(np.ones_like(want))
            if name == "fixed":  # the other one may end far from where it ends in float64
                assert all(np.allclose(p, q, 1e-3, 1e-4) for p, q in zip(found, wanted, strict=True)), seed


def test_checks_stay_in_the_forward() -> None:
    source = (
        "import numpy as np\nfrom layerc import layer, real\n\n\n@layer\n"
        'def f(x: real["N"]):\n    assert np.min(x) > 0, "positive"\n    s = np.sum(np.log(x))\n    return x * s * s\n'
    )
    module = check_file(Path("f.py"), source)
    pair = kept(module.layers[0], module.source, module.path)
    assert pair is not None
    assert "assert" in print_function(pair.forward)
    assert "assert" not in print_function(pair.pullback)
