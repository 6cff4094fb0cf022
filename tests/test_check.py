"""The validity suite: valid layers of every kind pass, and planted mistakes are found and named."""

from __future__ import annotations

import importlib
import re
import sys
import time

import numpy as np
import pytest

from layerc.build import driver
from layerc.cli import main
from layerc.runtime import get_num_threads
from layerc.runtime.differences import compare

HEAD = """
import numpy as np
from layerc import Layer, Param, Random, State, bool_, config, i64, init, layer, real

"""

GOOD = (
    HEAD
    + """
@layer
def relu(x: real["*S"]) -> real["*S"]:
    return np.where(x > 0, x, 0)


@layer
def logs(x: real["N"]) -> real["N"]:
    return np.log(x) / np.sqrt(x - 0.01)


@layer
def two(x: real["N D"], w: Param[real["D"]], *, times: int = 2) -> {"y": real["N D"], "z": real[""]}:
    return times * (x * w), np.sum(x * x)


@layer
def needs(x: real["N"], *, k: int) -> real["N"]:
    return k * x


@layer
def pick(x: real["N D"], at: i64["N"]) -> real["N"]:
    return x[np.arange(x.shape[0]), at]


@layer
def named(dy: real["N"], dy1: real["N"]):
    return dy * dy1


@layer
def tests(m: bool_["N M"], x: real["N M"]):
    return np.min(m, axis=1), np.min(x > 0, axis=0), np.sum(m), np.floor(np.sum(m, axis=0))


@layer(backward=None)
def steps(x: real["N"]) -> real["N"]:
    return np.floor(x)


@layer
def biggest(x: real["N D"]) -> real["N"]:
    return np.max(np.round(x), axis=1) + np.max(x, axis=1)


@layer
def by_hand(x: real["N D"]) -> real["N D"]:
    return x * x * x


@by_hand.backward
def by_hand_backward(x, dy):
    return 3 * x * x * dy


class Norm(Layer):
    batched = True
    gamma: Param[real["C"]] = init.ones()
    mean: State[real["C"]] = init.zeros()
    count: State[real] = init.zeros()

    def predict(self, x: real["N C"]) -> real["N C"]:
        return self.gamma * (x - self.mean)

    def forward(self, x: real["N C"]) -> real["N C"]:
        self.count += 1
        m = np.mean(x, axis=0)
        self.mean = 0.9 * self.mean + 0.1 * m
        return self.gamma * (x - m)


class Scale(Layer):
    gain: Param[real["C"]] = init.uniform(0, 1)
    power: int = config(2)

    def predict(self, x: real["C *S"]) -> real["C *S"]:
        return x**self.power * self.gain[:, None]
"""
)

BAD = (
    HEAD
    + """
@layer
def scaled(x: real["N D"]) -> real["N D"]:
    return x * x


@scaled.backward
def scaled_backward(x, dy):
    return 2.002 * x * dy


@layer
def summed(x: real["N N"], b: Param[real["N"]]) -> real["N N"]:
    return x * b


@summed.backward
def summed_backward(x, b, dy):
    return dy * b, np.sum(dy * x, axis=1)


@layer
def swapped(a: real["N"], b: real["N"]) -> real["N"]:
    return a * np.exp(b)


@swapped.backward
def swapped_backward(a, b, dy):
    return dy * a * np.exp(b), dy * np.exp(b)


@layer
def nan(x: real["N"]) -> real["N"]:
    return np.abs(x)


@nan.backward
def nan_backward(x, dy):
    return dy * np.sqrt(x) * np.sqrt(x) / x


@layer
def element(x: real["N D"]) -> real["N D"]:
    return np.tanh(x)


@element.backward
def element_backward(x, dy):
    d_x = dy * (1 - np.tanh(x) ** 2)
    d_x[3, 1] = 1.5 * d_x[3, 1]
    return d_x


@layer
def slightly(x: real["N D"]) -> real["N D"]:
    return np.sin(x)


@slightly.backward
def slightly_backward(x, dy):
    d_x = dy * np.cos(x)
    d_x[7, 5] = 1.01 * d_x[7, 5]
    return d_x


@layer
def zero(x: real["N"], w: Param[real["N"]]) -> real["N"]:
    return x * w


@zero.backward
def zero_backward(x, w, dy):
    return dy * w, np.zeros_like(w)


@layer
def ignores(x: real["N"]) -> real["N"]:
    return 3 * x


@ignores.backward
def ignores_backward(x, dy):
    return 3 * dy + 0 * x + 1


@layer
def halfrelu(x: real["N"]) -> real["N"]:
    return np.where(x > 0, x, 0)


@halfrelu.backward
def halfrelu_backward(x, dy):
    return np.where(x > 0.5, dy, 0)


class Mean(Layer):
    batched = True
    mean: State[real["C"]] = init.zeros()

    def predict(self, x: real["N C"]) -> real["N C"]:
        return x - self.mean

    def forward(self, x: real["N C"]) -> real["N C"]:
        m = np.mean(x, axis=0)
        self.mean = m
        return x - m

    def backward(self, dy):
        return dy
"""
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The two packages, by name."""
    folder = tmp_path_factory.mktemp("check")
    sys.path.insert(0, str(folder))
    try:
        for name, text in (("valid", GOOD), ("wrong", BAD)):
            (folder / f"{name}.py").write_text(text)
            driver.build(folder / f"{name}.py")
        yield {name: importlib.import_module(f"{name}_compiled") for name in ("valid", "wrong")}
    finally:
        sys.path.remove(str(folder))


@pytest.fixture
def good(packages):
    return packages["valid"]


@pytest.fixture
def bad(packages):
    return packages["wrong"]


def row(report, test):
    return next(r for r in report.rows if r.test == test)


# -- valid layers -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["relu", "logs", "two", "pick", "steps", "biggest", "by_hand", "named", "tests"])
def test_valid_functions_pass(good, name):
    report = getattr(good, name).check()
    assert report.passed, str(report)


@pytest.mark.parametrize("name", ["Norm", "Scale"])
def test_valid_classes_pass(good, name):
    report = getattr(good, name)().check()
    assert report.passed, str(report)


def test_shapes_and_configuration_may_be_given(good):
    report = good.two.check((6, 5), w=(5,), times=4)
    assert report.passed, str(report)
    assert "x 6x5, w 5" in report.title
    assert good.needs.check(k=2).passed
    assert good.Scale(power=3).check((4, 2, 3)).passed
    assert good.relu.check(3).passed


def test_bad_shapes_are_refused(good):
    with pytest.raises(ValueError, match=r"two: argument 'w': expected shape"):
        good.two.check((6, 5), w=4)
    with pytest.raises(TypeError, match="check takes 1 shapes"):
        good.relu.check((3,), (3,))
    with pytest.raises(TypeError, match="'k' is required"):
        good.needs.check()


def test_the_report_is_a_table(good):
    report = good.relu.check((3, 4))
    lines = str(report).splitlines()
    assert lines[0] == "relu  x 3x4"
    assert re.search(r"gradient of x +passed +\d\.\de-\d+", str(report))
    assert "all 14 tests passed" in lines[-1]
    assert bool(report)


def test_a_layer_is_left_as_it_was(good):
    layer = good.Norm()
    layer.initialize((4, 3), dtype=np.float64)
    before = {n: a.copy() for n, a in {**layer.params, **layer.states}.items()}
    threads = get_num_threads()
    assert layer.check((5, 2)).passed
    assert {n: a.tolist() for n, a in before.items()} == {
        n: a.tolist() for n, a in {**layer.params, **layer.states}.items()
    }
    assert get_num_threads() == threads


def test_tests_that_do_not_apply_are_skipped(good):
    assert row(good.Norm().check(), "examples independent").result == "skipped"
    assert not any("gradient" in r.test for r in good.steps.check().rows)


def test_random_layers_are_checked_with_one_seed(tmp_path, monkeypatch):
    text = HEAD + "@layer\ndef noisy(x: real['N'], rng: Random) -> real['N']:\n    return x * rng.random(x.shape)\n"
    (tmp_path / "noise.py").write_text(text)
    driver.build(tmp_path / "noise.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    report = importlib.import_module("noise_compiled").noisy.check()
    assert report.passed, str(report)
    assert row(report, "as the file under NumPy").result == "passed"


def test_values_are_drawn_where_the_layer_is_defined(good):
    assert row(good.logs.check(), "predict runs").note == "values in 0.1..0.9"


# -- planted mistakes -------------------------------------------------------------------------------------
# layer | the test that fails | what is said
PLANTED = [
    ("scaled", "gradient of x", r"worst at \[\d, \d, \d\] backward gives"),
    ("summed", "gradient of b", r"worst at \[\d\]"),
    ("swapped", "gradient of a", r"worst at"),
    ("swapped", "gradient of b", r"worst at"),
    ("nan", "gradient of x", r"is nan at \[\d, \d\]"),
    ("nan", "backward runs", r"NaN or infinity in the gradient of x"),
    ("element", "gradient of x", r"worst at \[\d, 3, 1\]"),
    ("zero", "gradient of w", r"backward gives 0, differences"),
    ("ignores", "gradient linear in dy", r"x differs"),
    ("halfrelu", "gradient of x", r"worst at"),
    ("Mean", "gradient of x", r"worst at"),
]


@pytest.mark.parametrize(("name", "test", "note"), PLANTED, ids=[f"{n}-{t}" for n, t, _ in PLANTED])
def test_planted_mistakes_are_found(bad, name, test, note):
    layer = getattr(bad, name)
    shapes = {"element": ((5, 4),), "halfrelu": ((40,),)}.get(name, ())
    report = (layer() if isinstance(layer, type) else layer).check(*shapes)
    assert not report.passed
    found = row(report, test)
    assert found.result == "FAILED", str(report)
    assert re.search(note, found.note), found.note


def test_what_is_right_beside_a_mistake_passes(bad):
    report = bad.summed.check()
    assert row(report, "gradient of x").result == "passed"
    assert {r.test for r in report.failures} == {"gradient of b"}


def test_one_element_in_a_large_array_is_found_fast(bad):
    started = time.process_time()  # of this process: a machine may do other things beside it
    report = bad.slightly.check((256, 768), observations=2)
    assert time.process_time() - started < 30
    assert re.search(r"worst at \[\d, 7, 5\]", row(report, "gradient of x").note), str(report)


# -- differences ------------------------------------------------------------------------------------------
RNG = np.random.default_rng(1)


def test_kinks_are_told_from_errors():
    x = RNG.standard_normal((20, 20))
    x[3, 4] = x[5, 6] = 0.0  # exactly at the kink of relu
    dy = RNG.standard_normal(x.shape)
    found = compare(lambda x: [np.maximum(x, 0)], x, [dy], dy * (x > 0), RNG)
    assert found.passed
    assert "kinks of the layer at [" in found.text
    wrong = dy * (x > 0)
    wrong[3, 4] = 2 * dy[3, 4]  # not between the slopes of the two sides
    assert not compare(lambda x: [np.maximum(x, 0)], x, [dy], wrong, RNG).passed


def test_a_jump_is_no_error():
    x = RNG.standard_normal(10)
    x[2] = 0.5
    found = compare(lambda x: [np.floor(x + 0.5) + x], x, [np.ones(10)], np.ones(10), RNG)
    assert found.passed
    assert "[2]" in found.text


@pytest.mark.parametrize("size", [3, 1000, 256 * 256 * 3])
def test_a_thousandth_is_an_error(size):
    x, dy = RNG.standard_normal(size), RNG.standard_normal(size)
    right = dy * np.cos(x)
    assert compare(lambda x: [np.sin(x)], x, [dy], right, RNG).passed
    assert not compare(lambda x: [np.sin(x)], x, [dy], 1.001 * right, RNG).passed


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e6])
def test_the_size_of_things_does_not_matter(scale):
    x, dy = RNG.standard_normal(50), RNG.standard_normal(50)
    right = scale * dy * np.cos(x)
    assert compare(lambda x: [scale * np.sin(x)], x, [dy], right, RNG).passed
    wrong = right.copy()
    wrong[7] *= 1.01
    found = compare(lambda x: [scale * np.sin(x)], x, [dy], wrong, RNG)
    assert "[7]" in found.text
    assert compare(lambda x: [np.sin(x / scale)], scale * x, [dy], dy * np.cos(x) / scale, RNG).passed


def test_infinities_of_the_layer_do_not_count():
    x = RNG.standard_normal(6)
    mask = np.array([0.0, -np.inf, 0, 0, -np.inf, 0])
    dy = np.ones(6)
    assert compare(lambda x: [x * x + mask], x, [dy], np.where(np.isfinite(mask), 2 * x, 0), RNG).passed


# -- the command ------------------------------------------------------------------------------------------
def run(capsys, *words):
    status = main([str(w) for w in words])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return status, said.out, said.err


@pytest.fixture
def files(tmp_path):
    (tmp_path / "valid.py").write_text(HEAD + "@layer\ndef sq(x: real['C *S']) -> real['C *S']:\n    return x * x\n")
    (tmp_path / "wrong.py").write_text(
        (tmp_path / "valid.py").read_text() + "\n@sq.backward\ndef sq_b(x, dy):\n    return 2.01 * x * dy\n"
    )
    return tmp_path


def test_the_command_passes(capsys, files):
    status, out, err = run(capsys, "check", files / "valid.py", "--shapes", "x=4,3,2")
    assert (status, err) == (0, "")
    assert "sq(x: real['C *S']) -> real['C *S']" in out
    assert "sq  x 3x2" in out
    assert "all 14 tests passed" in out
    assert sorted(p.name for p in files.iterdir()) == ["valid.py", "wrong.py"]


def test_the_command_fails(capsys, files):
    status, out, err = run(capsys, "check", f"{files / 'wrong.py'}:sq")
    assert status == 1
    assert "FAILED" in out
    assert "the layer failed" in err
    assert run(capsys, "check", files / "wrong.py", "--types")[0] == 0


def test_a_layer_of_parameters_alone(tmp_path, capsys):
    """It has no batch: there is one observation."""
    path = tmp_path / "alone.py"
    path.write_text(
        "import numpy as np\nfrom layerc import Param, layer, real\n\n@layer\n"
        "def spread(w: Param[real['N']]):\n    return np.tanh(w) * 2\n\n@layer\n"
        "def square(w: Param[real['N']]) -> real:\n    return w @ w\n"
    )
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert "FAILED" not in out
    assert "takes no examples" in out


def test_a_layer_that_no_values_suit_is_a_mistake_of_its_file(tmp_path, capsys):
    path = tmp_path / "bound.py"
    path.write_text(
        "from layerc import layer, real\n\n@layer\ndef last(x: real['N']):\n"
        "    s = x[0]\n    for i in range(x.shape[0]):\n        s = s + x[-i:].sum()\n    return s\n"
    )
    status, _, err = run(capsys, "check", path)
    assert (status, "bound.py:7: last: the slice bound -i is negative" in err) == (1, True), err
    assert "internal" not in err


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda m, x: (m[:, 0] & False, np.min(x > 0, axis=0), np.sum(m), np.sum(m, axis=0)), "y1 differs"),
        (lambda m, x: (np.min(m, axis=1), x[0] > 9, np.sum(m), np.sum(m, axis=0)), "y2 differs"),
        (
            lambda m, x: (np.min(m, axis=1), np.min(x > 0, axis=0), 1.0 * np.sum(m), 0),
            "y3: compiled int64, NumPy float64",
        ),
    ],
)
def test_masks_and_types_are_compared_with_those_of_numpy(good, monkeypatch, wrong, said):
    """Random masks of 4 by 3 are hardly ever all True."""
    monkeypatch.setattr(type(good.tests), "reference", lambda self, **given: wrong(**given))
    assert row(good.tests.check(), "as the file under NumPy").note.startswith(said)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--shapes z=3", "no argument z; there is x"),
        ("--shapes x=", "expected shape"),
        ("--shapes x=a", "integers"),
        ("--config k=2", "no argument k"),
    ],
)
def test_wrong_usage(capsys, files, words, message):
    status, _, err = run(capsys, "check", files / "valid.py", *words.split())
    assert status == 2
    assert message in err
