# ruff: noqa: E501 (one line a case)
"""Statements of the language that are errors, each with its way out; imported layer files; states, memory and backwards by hand."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from layerc.build.driver import build, compile_module, read_module
from layerc.transpile.errors import InvalidFile

HEAD = "import numpy as np\nfrom layerc import Layer, Memory, Param, State, config, init, layer, real, i64\n"
FIRST = HEAD.count("\n")

# the file, or the body of f(x: real["N"]) | line of the file after its head | kind | part of the message | part of the help
# fmt: off
MISTAKES = [
    ("for i in range(3): pass\nelse: x = x\nreturn x", 3, "statement", "else on a loop", "before the loop"),
    ("while x[0] > 0: x = x - 1\nelse: x = x\nreturn x", 3, "statement", "else on a loop", "before the loop"),
    ("while True: x = x + 1\nreturn x", 3, "statement", "never ends", "break"),
    ("break\nreturn x", 3, "syntax", "break outside a loop", ""),
    ("for i in range(3): x = x + i; i = 2 * i\nreturn x * i", 4, "name", "i counts the loop", "another name"),
    ("for i in range(3):\n    if x[i] > 0: return x[:i]\nreturn x", 3, "shape", "another shape in every iteration", "allocate the largest"),
    ("for i in range(3):\n    if x[i] > 0: return x, x\nreturn x", 2, "type", "different kind of thing", ""),
    ("for i in range(3):\n    if x[i] > 0: return x", 2, "type", "returned only when", "every path"),
    ("y = x\ndel y\nreturn y", 5, "name", "y was deleted", ""),
    ("a, *b, c, d = x, x\nreturn a", 3, "type", "expected 4 values", ""),
    ("a, b = x\nreturn a", 3, "type", "known first extent", ""),
    ("n = 0\nfor i in range(3): n = n > 1\nreturn x * n", 4, "type", "before the loop", "final type"),
    ("s = 1.0\nfor v in x: s = x * s\nfor v in x: s = s[1:]\nreturn s", 5, "type", "before the loop", "final type"),
    ("v = (x, x)\nfor i in range(20): v = (v[0], v[1], x)\nreturn v[0]", 4, "name", "one thing before the loop and another", "inside the loop"),
    ("v = x\nv[0] = 0\nfor i in range(2): v = np.stack([x, x])\nreturn v", 5, "type", "a choice of arrays has one shape", "of its own"),
    ("ys = []\nreturn np.stack(ys)", 4, "type", "expected a list or tuple of arrays", ""),
    ("ys = []\nfor i in range(2): ys.append(x)\nreturn ys * 2", 5, "type", "arithmetic on a list", "np.stack"),
    ("ys = []\nfor v in x:\n    if v > 0: ys.append(v)\nreturn np.array(ys)", 6, "shape", "appended to", "largest size"),
    ("ys = []\nwhile x[0] > 0:\n    x = x - 1\n    ys.append(x)\nreturn np.stack(ys)", 7, "shape", "depends on values", "largest size"),
    ("ys = []\nfor i in range(x.shape[0]): ys.append(x[:i])\nreturn np.concatenate(ys)", 4, "shape", "must have one shape", "largest size"),
    ("ys = []\nys.append(x)\nys.append(x[1:])\nfor i in range(2): ys.append(x)\nreturn np.stack(ys)", 5, "shape", "must have one shape", ""),
    ("y, ys = np.zeros(2), []\nfor i in range(2):\n    y[i] = 1\n    ys.append(y)\nreturn np.stack(ys)", 5, "aliasing", "writes into y; ys, which shares its memory", ".copy()"),
    ("ys = [v for v in x if v > 0]\nreturn np.array(ys)", 3, "shape", "under a condition", "largest size"),
    ("ys = []\nys.insert(0, x)\nreturn x", 4, "unsupported", "no method insert", "append"),
    ("s = [x]\nreturn s.pop()", 3, "unsupported", "popped from", "append"),
    ("g = lambda u: g(u)\nreturn g(x)", 3, "unsupported", "calls itself", "loop"),
    ("match 3:\n    case 3: return x", 3, "statement", "Match", "if and elif"),
    ("async def g(): pass\nreturn x", 3, "statement", "AsyncFunctionDef", "def"),
    ("global z\nreturn x", 3, "statement", "Global", "argument"),
    ("return x * 3j", 3, "type", "complex", "float"),
    ("return 2 ** 1000 * x", 3, "type", "64 bits", "float"),
    ("assert False, 'no'\nreturn x", 3, "type", "never holds: no", ""),
    ("A = A\n@layer\ndef f(x: real['N']): return x * A", 1, "name", "defined by itself", ""),
    ("class A(Layer):\n    def predict(x: real['N']): return x", 2, "layer", "must be self", "def predict(self"),
    ("class A(Layer):\n    def predict(self, x: real['N']): return x\n    def forward(self, x: real['N'], y: real['N']): return x", 1, "layer", "differ", "same signature"),
    ("class A(Layer):\n    s: State[real['N']]\n    def predict(self, x: real['N']):\n        self.s = x[1:]\n        return x", 4, "shape", "the state s has shape (N,)", "declared"),
    ("class A(Layer):\n    def predict(self, x: real['N']): return self.g(x)", 2, "name", "self.g is no method", ""),
    ("@layer\ndef f(x: real['N']): return x\n@f.backward\ndef g(dy): return dy[1:]", 4, "backward", "the gradient of x has shape", ""),
]
# fmt: on


@pytest.mark.parametrize(
    ("text", "line", "kind", "message", "help"), MISTAKES, ids=[m[3][:30] + str(k) for k, m in enumerate(MISTAKES)]
)
def test_a_mistake_is_drawn_where_it_is(text, line, kind, message, help, tmp_path):
    if "@layer" not in text and "(Layer)" not in text:
        text = '@layer\ndef f(x: real["N"]):\n' + "\n".join("    " + row for row in text.split("\n"))
    path = tmp_path / "wrong.py"
    path.write_text(HEAD + text + "\n")
    with pytest.raises(InvalidFile) as caught:
        compile_module(read_module(path))
    found = [(m.span.line - FIRST, m.kind, m.message, m.help) for m in caught.value.mistakes]
    assert any(at == line and k == kind and message in m and help in h for at, k, m, h in found), str(caught.value)


# -- imported layer files --------------------------------------------------------------------------------------
HELPERS = """
import numpy as np
from layerc import layer, real
GAIN = 1.5
A, B = 2.0, 3.0

def scale(x, k=GAIN):
    return x * k * A

@layer
def soft(x: real["N"]):
    return np.log1p(np.exp(x))

def bad(x):
    return np.unique(x)
"""


def test_imported_layer_files(tmp_path, monkeypatch):
    (tmp_path / "helpers_beside.py").write_text(HELPERS)
    (tmp_path / "importing.py").write_text(
        HEAD + "import helpers_beside as h\nfrom helpers_beside import scale as by, GAIN\n"
        '@layer\ndef f(x: real["N"]):\n    return by(x) + h.scale(x, k=2.0) * h.B + GAIN + h.soft(x)\n'
    )
    made = build(tmp_path / "importing.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    f = importlib.import_module(made.name).f
    (tmp_path / "helpers_beside.py").unlink()  # the package has what it needs
    x = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(f(x), f.reference(x), rtol=1e-14)
    np.testing.assert_allclose(f.vjp(x)[1](np.ones(5))[0], 3 + 12 + 1 / (1 + np.exp(-x)), rtol=1e-14)
    assert "helpers_beside" not in sys.modules


def test_mistakes_in_imported_files(tmp_path):
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "one.py").write_text("from two import b\n")
    (tmp_path / "two.py").write_text("from one import a\nb = 3\n")
    path = tmp_path / "wrong.py"
    path.write_text(
        HEAD + 'from helpers import bad, scal\nimport one\n@layer\ndef f(x: real["N"]):\n    return bad(x)\n'
    )
    with pytest.raises(InvalidFile) as caught:
        read_module(path)
    drawn = str(caught.value)
    assert "helpers.py:15:12: error[shape]: np.unique" in drawn
    assert "wrong.py:3:1: error[import]: helpers.py defines no scal" in drawn
    assert "did you mean scale?" in drawn
    assert "error[import]: layer files import each other in a circle: one.py, two.py, one.py" in drawn


# -- classes ---------------------------------------------------------------------------------------------------
CLASSES = """
class BatchNorm(Layer):
    batched = True
    gamma: Param[real["C"]] = init.ones()
    mean: State[real["C"]] = init.zeros()
    var: State[real["C"]] = init.ones()
    momentum: float = config(0.9)

    def normal(self, x, m, v):
        return (x - m) / np.sqrt(v + 1e-5) * self.gamma

    def predict(self, x: real["N C"]) -> real["N C"]:
        return self.normal(x, self.mean, self.var)

    def forward(self, x: real["N C"]) -> real["N C"]:
        m, v = np.mean(x, axis=0), np.var(x, axis=0)
        self.mean = self.momentum * self.mean + (1 - self.momentum) * m
        self.var = self.momentum * self.var + (1 - self.momentum) * v
        return self.normal(x, m, v)

class Double(BatchNorm):
    def predict(self, x: real["N C"]) -> real["N C"]:
        return BatchNorm.predict(self, x) * 2

    def forward(self, x: real["N C"]) -> real["N C"]:
        return BatchNorm.forward(self, x) * 2

class Centred(Layer):
    batched = True
    mean: State[real["C"]] = init.zeros()
    count: State[real] = init.zeros()
    w: Param[real["C"]]

    def initialize(self, shape):
        self.w = np.arange(shape[-1]) + 1.0
        self.mean = np.full(shape[-1], 0.5)

    def predict(self, x: real["N C"]) -> real["N C"]:
        return (x - self.mean) * self.w

    def forward(self, x: real["N C"]) -> real["N C"]:
        self.mean = 0.5 * self.mean + 0.5 * np.mean(x, axis=0)
        self.count += 1
        return (x - self.mean) * self.w

class Kept(Layer):
    w: Param[real["C"]] = init.ones()

    def predict(self, x: real["C"]) -> real["C"]:
        return np.tanh(x * self.w)

    def forward(self, x: real["C"]) -> tuple[real["C"], Memory[real["C"]]]:
        t = np.tanh(x * self.w)
        return t, 1 - t * t

    def backward(self, x, w, dy, memory):
        return dy * memory * w, dy * memory * x
"""


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language")
    (folder / "language_classes.py").write_text(HEAD + CLASSES)
    made = build(folder / "language_classes.py")
    sys.path.insert(0, str(folder))
    yield importlib.import_module(made.name)
    sys.path.remove(str(folder))


def differences(f, x, h=1e-6):
    found = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[k] = h
        found[k] = (f(x + step) - f(x - step)) / (2 * h)
    return found


@pytest.mark.parametrize("name", ["BatchNorm", "Double", "Centred"])
def test_states(name, classes):
    rng = np.random.default_rng(2)
    x, dy = rng.standard_normal((2, 6, 3))

    def fresh():
        made = getattr(classes, name)()
        made.initialize((6, 3), dtype=np.float64)
        return made

    layer = fresh()
    first = {k: np.array(v) for k, v in layer.states.items()}
    np.testing.assert_allclose(layer(x), layer.reference(x), rtol=1e-12)
    _, pullback = layer.vjp(x)
    np.testing.assert_allclose(
        pullback(dy).inputs[0], differences(lambda z: np.sum(fresh().vjp(z)[0] * dy), x), rtol=1e-5, atol=1e-8
    )
    share = 0.5 if name == "Centred" else 0.9
    np.testing.assert_allclose(layer.states["mean"], share * first["mean"] + (1 - share) * x.mean(axis=0), rtol=1e-12)
    after = {k: np.array(v) for k, v in layer.states.items()}
    layer(x)  # inference leaves them as they are
    assert all(np.array_equal(v, after[k]) for k, v in layer.states.items())


def test_memory_and_backward_by_hand(classes):
    layer = classes.Kept()
    layer.initialize((4,), dtype=np.float64)
    x = np.random.default_rng(1).standard_normal((5, 4))
    y, pullback = layer.vjp(x)
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-14)
    found = pullback(np.ones_like(y))
    np.testing.assert_allclose(found.inputs[0], 1 - np.tanh(x) ** 2, rtol=1e-12)
    np.testing.assert_allclose(found.params["w"], np.sum((1 - np.tanh(x) ** 2) * x, axis=0), rtol=1e-12)
