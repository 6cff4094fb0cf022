# ruff: noqa: E501 (one line a case)
"""The command line: what it prints, its exit status, and that nobody ever sees a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from layerc import commands
from layerc.cli import main

GOOD = "import numpy as np\nfrom layerc import layer, real\n\n@layer\ndef mish(x: real['*S']):\n    return x * np.tanh(np.log1p(np.exp(x)))\n\n\n@layer\ndef twice(x: real['N']):\n    y = x + x\n    return y\n"
BAD = GOOD.replace("x + x", "np.unique(x)")


@pytest.fixture
def good(tmp_path):
    (tmp_path / "layers.py").write_text(GOOD)
    return tmp_path / "layers.py"


@pytest.fixture
def bad(tmp_path):
    (tmp_path / "layers.py").write_text(BAD)
    return tmp_path / "layers.py"


def run(capsys, *words):
    status = main([str(w) for w in words])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return status, said.out, said.err


# -- help -------------------------------------------------------------------------------------------------
def test_without_arguments_it_teaches(capsys):
    status, out, _ = run(capsys)
    assert status == 0
    assert "layerc build layers.py" in out
    assert "@layer" in out
    assert len(out.splitlines()) <= 16


def test_help_lists_the_commands(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert all(name in out for name in ("build", "grad", "show", "check", "bench", "info"))


@pytest.mark.parametrize("command", ["build", "grad", "show", "check", "bench", "info"])
def test_every_command_has_help(capsys, command):
    status, out, _ = run(capsys, command, "--help")
    assert status == 0
    assert "exit status" in out


# -- usage: status 2 --------------------------------------------------------------------------------------
# words ({good}: a file, {folder}: where it lies) | part of what is said
USAGE = [
    ("frob", "invalid choice"),
    ("build", "required"),
    ("build {folder}/none.py", "there is no file"),
    ("build {folder}", "is a directory"),
    ("build .", "is a directory"),
    ("build /", "is a directory"),
    ("build ./:net", "is a directory"),
    ("build {good} --frob", "unrecognized"),
    ("build {good} --dump frob", "there is no stage frob"),
    ("build {good} -o {good}", "there is a file of this name"),
    ("build {good} -o {folder}", "holds other files"),
    ("grad {good}:none", "has no layer none; it has mish, twice"),
    ("grad {good} --order 0", "--order is 1 or more"),
    ("show {good}", "--stage"),
    ("show {good} --stage frob", "ir:lower"),
    ("check {folder}/none.py:x", "there is no file"),
    ("info {folder}", "no manifest.json"),
    ("bench {good} --shapes x", "NAME=VALUE"),
    ("bench {good} --shapes x=a", "integers"),
    ("bench {good} --shapes x=3 zz=4", "no argument zz; there is x"),
    ("bench {good} --shapes x=3 --config zz=4", "no argument zz; there is x"),
    ("bench {good}:twice --shapes x=900000000,900000000", "no room in memory"),
    ("bench {good}:twice --shapes x=-3", "negative"),
]


@pytest.mark.parametrize(("words", "message"), USAGE, ids=[w for w, _ in USAGE])
def test_wrong_usage(capsys, good, words, message):
    status, _, err = run(capsys, *words.format(good=good, folder=good.parent).split())
    assert status == 2
    assert message in err
    assert sorted(p.name for p in good.parent.iterdir()) == ["layers.py"]


# -- mistakes: status 1 -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "words", ["build {f}", "grad {f}", "show {f} --stage c", "check {f}", "bench {f} --shapes x=3"]
)
def test_mistakes_in_the_file(capsys, bad, words):
    status, _, err = run(capsys, *words.format(f=bad).split())
    assert status == 1
    assert "layers.py:11:9: error[shape]: np.unique has a result whose shape depends on values" in err
    assert "1 mistake; nothing was written" in err
    assert sorted(p.name for p in bad.parent.iterdir()) == ["layers.py"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"", "no layer in this file"),
        (b"x = 3\n", "no layer in this file"),
        (b"def f(:\n", "error[syntax]"),
        (b"a\0b", "error[syntax]"),
    ],
)
def test_files_that_hold_no_layers(capsys, tmp_path, content, message):
    (tmp_path / "odd.py").write_bytes(content)
    status, _, err = run(capsys, "build", tmp_path / "odd.py")
    assert status == 1
    assert message in err
    assert "odd.py:1:" in err


# -- no compiler: status 3 --------------------------------------------------------------------------------
def test_no_compiler(capsys, good, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    status, _, err = run(capsys, "build", good)
    assert status == 3
    assert "no-such-compiler" in err
    assert sorted(p.name for p in good.parent.iterdir()) == ["layers.py"]


def test_mistakes_come_before_the_compiler(capsys, bad, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert run(capsys, "build", bad)[0] == 1


# -- faults of layerc: status 70 --------------------------------------------------------------------------
def test_an_internal_error_asks_for_a_report(capsys, good, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("the tables have turned")

    monkeypatch.setattr(commands.driver, "compile_module", broken)
    status, _, err = run(capsys, "check", good)
    assert status == 70
    assert "the tables have turned" in err
    assert "please report it" in err


def test_an_interrupt_is_not_a_fault(capsys, good, monkeypatch):
    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.driver, "compile_module", stopped)
    assert run(capsys, "check", good)[0] == 130


# -- what commands do -------------------------------------------------------------------------------------
def test_build(capsys, good):
    status, out, err = run(capsys, "build", good)
    assert (status, err) == (0, "")
    made = good.parent / "layers_compiled"
    assert f"built {made}: mish, twice" in out
    assert "import layers_compiled as L; L.mish(x)" in out
    assert (made / "manifest.json").is_file()
    status, out, _ = run(capsys, "info", made)
    assert status == 0
    assert "mish(x: real['*S']) -> real['*S']" in out


def test_build_elsewhere_and_dump(capsys, good):
    status, out, _ = run(capsys, "build", good, "-o", good.parent / "deep" / "pack", "--f32-only", "--dump", "ir:lower")
    assert status == 0
    assert "kernel mish(batch, S)" in out
    assert (good.parent / "deep" / "pack" / "__init__.py").is_file()


def test_grad(capsys, good):
    status, out, _ = run(capsys, "grad", good)
    assert status == 0
    assert "def d_mish(" in out
    assert "def d_twice(" in out
    compile(out, "gradients.py", "exec")
    status, out, _ = run(capsys, "grad", f"{good}:mish")
    assert "def d_mish(" in out
    assert "d_twice" not in out


def test_a_gradient_of_nothing(capsys, tmp_path):
    source = tmp_path / "constant.py"
    source.write_text(
        "from layerc import i64, layer, real\n\n@layer\ndef half(k: i64['N']) -> real['N']:\n    return k / 2\n"
    )
    status, _, err = run(capsys, "grad", f"{source}:half")
    assert status == 1
    assert "half has no gradient" in err


def test_second_order(capsys, good):
    status, out, _ = run(capsys, "grad", f"{good}:mish", "--order", "2")
    assert status == 0
    assert "def d_d_mish(" in out


@pytest.mark.parametrize(
    ("stage", "part"),
    [
        ("typed", "def mish("),
        ("ir", "kernel mish"),
        ("ir:lower", "kernel mish"),
        ("ir:fuse", "kernel mish"),
        ("c", "mish_f32"),
    ],
)
def test_show(capsys, good, stage, part):
    status, out, _ = run(capsys, "show", f"{good}:mish", "--stage", stage)
    assert status == 0
    assert part in out
    assert "twice" not in out


def test_check_shows_what_was_inferred(capsys, good):
    status, out, _ = run(capsys, "check", good)
    assert status == 0
    assert "twice(x: real['N']) -> real['N']" in out
    assert '11  y: real["N"]' in out


def test_bench(capsys, good):
    status, out, _ = run(capsys, "bench", f"{good}:twice", "--shapes", "x=8,100")
    assert status == 0
    assert "forward" in out
    assert "backward" in out
    assert sorted(p.name for p in good.parent.iterdir()) == ["layers.py"]


def test_bench_takes_the_shapes_of_parameters(capsys, tmp_path):
    path = tmp_path / "dense.py"
    path.write_text(
        "from layerc import Param, layer, real\n\n@layer\ndef dense(x: real['I'], weight: Param[real['O I']],"
        " bias: Param[real['O']]) -> real['O']:\n    return weight @ x + bias\n"
    )
    assert main(["bench", str(path), "--shapes", "x=4,3"]) == 2
    assert "give --shapes weight=..." in capsys.readouterr().err
    assert main(["bench", str(path), "--shapes", "x=4,3", "weight=2,3"]) == 0
    assert "bias (2,)" in capsys.readouterr().out


CLASS = """
from layerc import Layer, Param, config, init, real


class Scale(Layer):
    factor: Param[real["D"]] = init.ones()
    power: int = config(2)

    def predict(self, x: real["D"]) -> real["D"]:
        return self.factor * x ** self.power
"""


def test_bench_of_a_class_layer(capsys, tmp_path):
    path = tmp_path / "scale.py"
    path.write_text(CLASS)
    status, out, err = run(capsys, "bench", f"{path}:Scale", "--shapes", "x=8,5", "--config", "power=3")
    assert (status, err) == (0, "")
    assert "Scale  x (8, 5)" in out
    assert "backward" in out


def test_no_file_at_all(capsys):
    status, _, err = run(capsys, "build", "")
    assert status == 2
    assert "is a directory" in err


LAYER = '{"name": "f", "signature": "f()", "doc": 3, "kind": [], "parameters": 3, "methods": []}'


@pytest.mark.parametrize(
    "text",
    ["[]", "3", "null", "{", "{}", '{"net": []}', '{"source": "a", "layerc": 1, "layers": 3}']
    + [f'{{"source": "a", "layerc": 1, "native": {native}, "layers": [{LAYER}]}}' for native in ("[]", "{}")],
)
def test_info_of_what_is_no_manifest(capsys, tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    status, _, err = run(capsys, "info", tmp_path)
    assert status == 2
    assert "build the package again" in err


def test_bench_says_which_shapes_it_needs(capsys, good):
    status, _, err = run(capsys, "bench", f"{good}:twice")
    assert status == 2
    assert "--shapes x=..." in err


def test_as_a_program(good):
    """The real thing, once: a process, a closed pipe."""
    code = "import sys; from layerc.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "check", str(good)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", code, "check", str(good)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
