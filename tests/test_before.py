"""The state before a step is the output of the step before: where that is so nothing is saved, and where it is not
quite so nothing is taken for it."""

from __future__ import annotations

import numpy as np
import pytest
from nets import built_from, kernels_in
from thorough import agrees, same_bits

from layerc.build.driver import gradient_source, read_module
from layerc.transpile.ir import For
from layerc.transpile.passes.tree import walk

HEAD = "import numpy as np\nfrom layerc import layer, real\n"
PLAIN = """
    y = np.zeros_like(x)
    h = np.zeros_like(w)
    for t in range(x.shape[0]):
        h = w * h * h + x[t]
        y[t] = h
    return y
"""
TAKEN = {
    "plain": PLAIN,
    "last_axis": """
    z = np.empty((x.shape[1], x.shape[0]))
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = np.tanh(w * h) + x[t]
        z[:, t] = h
    return z.T * 1.0, z
""",
    "two": """
    a, b = np.zeros_like(x), np.zeros_like(x)
    h, g = np.zeros_like(w), np.zeros_like(w)
    for t in range(x.shape[0]):
        h = w * h * g + x[t]
        g = g * g * 0.1 + h
        a[t] = h
        b[t] = g
    return a, b
""",
    "scalar": """
    y = np.zeros(x.shape[0])
    s = np.zeros(())
    for t in range(x.shape[0]):
        s = np.sin(s) + np.sum(x[t] * w)
        y[t] = s
    return y
""",
    "delays": """
    y = np.zeros(x.shape[0])
    x1, x2, y1, y2 = 0.0, 0.0, 0.0, 0.0
    for t in range(x.shape[0]):
        out = w[0] * x[t, 0] + x1 * x2 - 0.3 * y1 * y2
        x2, x1, y2, y1 = x1, y2, y1, out
        y[t] = out
    return y
""",
    "rows_of_an_argument": """
    y = np.zeros_like(x)
    a, b = np.zeros_like(w), np.zeros_like(w)
    for t in range(x.shape[0]):
        y[t] = np.sin(a * w) * x[t] + b * a
        b = a
        a = x[t]
    return y
""",
}
CHANGES = {  # what makes PLAIN another layer, of which the state is saved
    "begins_with_more": ("np.zeros_like(w)", "1.0 * w"),
    "changed_before_the_next": ("        y[t] = h\n", "        y[t] = h\n        h = h * 0.5\n"),
    "output_changed_after": ("    return y", "    y[:1] = 2.0 * y[:1]\n    return y"),
    "another_output": ("    return y", "    y = np.tanh(y)\n    return y"),
    "given_before": (
        "        h = w * h * h + x[t]\n        y[t] = h\n",
        "        y[t] = h\n        h = w * h * h + x[t]\n",
    ),
    "turned": ("y[t] = h", "y[t, ::-1] = h"),
    "downwards": ("range(x.shape[0])", "range(x.shape[0] - 1, -1, -1)"),
    "sometimes": ("        y[t] = h\n", "        if t % 2 == 0:\n            y[t] = h\n"),
    "added": ("y[t] = h", "y[t] += h"),
    "product": ("w * h * h", "np.tanh(np.outer(w, w) @ h)"),
}
LEFT = {name: PLAIN.replace(*change) for name, change in CHANGES.items()}
LEFT["on_the_diagonal"] = PLAIN.replace("np.zeros_like(x)", "np.zeros((x.shape[0], *x.shape))").replace(
    "y[t]", "y[t, t]"
)
LEFT["from_one_on"] = PLAIN.replace("np.zeros_like(x)", "np.ones_like(x)").replace("range(", "range(1, ")
LEFT["spread"] = """
    y = np.zeros_like(x)
    s = np.zeros(())
    for t in range(x.shape[0]):
        s = np.sin(s) + np.sum(x[t] * w)
        y[t] = s
    return y
"""
RESULTS = {"last_axis": '{"y": real["T D"], "z": real["D T"]}', "two": '{"a": real["T D"], "b": real["T D"]}'}
LEFT["exchanged"] = """
    y = np.zeros(x.shape[0])
    a, b = 0.0, 0.0
    for t in range(x.shape[0]):
        y[t] = a * b * x[t, 0]
        c = a + 1.0
        a = b
        b = c
    return y
"""
LEFT["a_delay_of_what_is_changed_after"] = """
    y = np.zeros(x.shape[0])
    a, b = 0.0, 0.0
    for t in range(x.shape[0]):
        a = np.sin(a * b) + x[t, 0]
        b = a
        y[t] = a
        a = a * 0.5
    return y * 2.0
"""
DELAYS = TAKEN["delays"]
LEFT["from_another_number"] = DELAYS.replace("y2 = 0.0, 0.0, 0.0, 0.0", "y2 = 0.0, 0.0, 0.0, 1.0")
LEFT["another_element"] = """
    y = np.zeros_like(x)
    a = np.zeros_like(w)
    for t in range(x.shape[0]):
        y[t] = np.sin(a * w) * x[t]
        a = x[x.shape[0] - 1 - t]
    return y
"""
LEFT["sometimes_taken"] = """
    y = np.zeros_like(x)
    a = np.zeros_like(w)
    for t in range(x.shape[0]):
        y[t] = np.sin(a * w) * x[t]
        if t % 2 == 1:
            a = x[t]
    return y
"""
LEFT["argument_written_to"] = """
    y = np.zeros_like(x)
    a = np.zeros_like(w)
    x = x * 2.0
    for t in range(x.shape[0]):
        y[t] = np.sin(a * w) * x[t]
        a = x[t]
    return y
"""
RESULTS |= dict.fromkeys(
    ("delays", "exchanged", "a_delay_of_what_is_changed_after", "from_another_number"), 'real["T"]'
)
RESULTS |= {"scalar": 'real["T"]', "on_the_diagonal": 'real["T T D"]'}


def text() -> str:
    same = 'real["T D"]'
    layers = [
        f'@layer\ndef {name}(x: real["T D"], w: real["D"]) -> {RESULTS.get(name, same)}:{body}'
        for name, body in (TAKEN | LEFT).items()
    ]
    return "\n\n".join([HEAD, *layers])


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return built_from(tmp_path_factory.mktemp("before"), "before", text())


class First:
    """A layer of two outputs as one of them all in a row."""

    def __init__(self, layer) -> None:
        self.layer = layer

    def row(self, ys) -> np.ndarray:
        return np.concatenate([y.reshape(-1) for y in ys])

    def __call__(self, *values):
        return self.row(self.layer(*values))

    def reference(self, *values):
        return self.row(self.layer.reference(*values))

    def vjp(self, *values):
        ys, pullback = self.layer.vjp(*values)

        def back(dy):
            parts, at = [], 0
            for y in ys:
                parts.append(dy[at : at + y.size].reshape(y.shape))
                at += y.size
            return pullback(*parts)

        return self.row(ys), back


@pytest.mark.parametrize("name", [*TAKEN, *LEFT])
@pytest.mark.parametrize(("dtype", "tight", "close"), [(np.float64, 1e-9, 1e-5), (np.float32, 1e-3, 2e-2)])
@pytest.mark.parametrize(("rows", "steps", "size"), [(2, 0, 3), (2, 1, 3), (5, 4, 1), (1, 6, 33), (18, 5, 17)])
def test_values_and_gradients(package, name, dtype, tight, close, rows, steps, size):
    layer = getattr(package, name)
    rng = np.random.default_rng(rows * steps)
    x, w = 0.5 * rng.standard_normal((rows, steps, size)), rng.uniform(0.1, 0.6, (rows, size))
    layer = First(layer) if name in ("two", "last_axis") else layer
    agrees(
        layer, [x.astype(dtype), w.astype(dtype)], rng, tight, close, exact=name not in ("scalar", "spread", "product")
    )


@pytest.mark.parametrize("name", ["plain", "scalar"])
def test_bits_do_not_hang_on_threads(package, name):
    rng = np.random.default_rng(3)
    same_bits(getattr(package, name), [rng.standard_normal((9, 7, 40)), rng.uniform(0.1, 0.6, (9, 40))])


def test_an_infinite_output_is_not_multiplied_by_nothing(package):
    """Zero before the first step is a zero, whatever the first step gave out."""
    (_, z), pullback = package.last_axis.vjp(np.array([[[np.inf, 1.0]]]), np.full((1, 2), 0.5))
    assert np.isinf(z[0, 0, 0])
    d_x, d_w = pullback(np.zeros((1, 1, 2)), np.ones((1, 2, 1)))
    np.testing.assert_array_equal(d_x, [[[1.0, 1.0]]])
    np.testing.assert_array_equal(d_w, [[0.0, 0.0]])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("before_source") / "before.py"
    path.write_text(text())
    module = read_module(path)
    return path, lambda name: gradient_source(module, name)


@pytest.mark.parametrize("name", TAKEN)
def test_nothing_is_saved(source, name):
    assert "_saved" not in source[1](name)
    assert "max(t - 1, 0)" in source[1](name)


@pytest.mark.parametrize("name", LEFT)
def test_it_is_saved(source, name):
    assert "_saved" in source[1](name)


def test_rows_of_the_output_are_fetched_ahead(source):
    kernel = kernels_in(source[0])["plain", "backward"]
    fetched = {p.buffer for s in walk(kernel.body) if isinstance(s, For) for p in s.ahead}
    assert {"y", "dy"} <= fetched
