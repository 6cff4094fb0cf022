"""A build that would change nothing does not even load the compiler; whatever could change something does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SOURCE = """
from layerc import layer, real
from helpers import twice

@layer
def f(x: real["N"]):
    return twice(x) + 1
"""
HELPERS = "def twice(x):\n    return 2 * x\n"
RUN = """
import sys
from layerc.cli import main
status = main(["build", *sys.argv[1:]])
print("loaded" if "layerc.transpile.layers" in sys.modules else "at once", status)
"""


@pytest.fixture
def build(tmp_path):
    """Runs `layerc build` in the folder; the last line it prints, and what it printed before."""
    (tmp_path / "things.py").write_text(SOURCE)
    (tmp_path / "helpers.py").write_text(HELPERS)

    def run(*options, **environment):
        done = subprocess.run(
            [sys.executable, "-c", RUN, "things.py", *options],
            cwd=tmp_path,
            env={**os.environ, "LAYERC_CACHE": str(tmp_path / "cache"), **environment},
            capture_output=True,
            text=True,
        )
        *said, last = done.stdout.splitlines()
        return last, said

    assert run()[0] == "loaded 0"
    return run


def test_nothing_has_changed(build):
    last, said = build()
    assert last == "at once 0"
    assert said == ["built things_compiled: f", "next: import things_compiled as L; L.f(x)"]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "things.py").write_text(SOURCE + "# more\n"),
        lambda folder: (folder / "helpers.py").write_text(HELPERS.replace("2", "3")),
        lambda folder: (folder / "other.py").write_text(""),
        lambda folder: (folder / "things_compiled" / "gradients.py").write_text("# gone"),
        lambda folder: (folder / "things_compiled" / "_native.abi3.so").unlink(),
        lambda folder: (folder / "helpers.py").unlink(),
    ],
    ids=["the file", "an imported file", "a file beside", "the package", "the library", "an import that is gone"],
)
def test_what_could_change_something_is_built(build, tmp_path, change):
    before = (tmp_path / "things_compiled" / "gradients.py").read_text()
    change(tmp_path)
    last, _ = build()
    assert last.startswith("loaded")
    if last == "loaded 0":
        assert (tmp_path / "things_compiled" / "_native.abi3.so").exists()
        assert ("3" in (tmp_path / "helpers.py").read_text()) == (
            (tmp_path / "things_compiled" / "gradients.py").read_text() != before
        )
        assert build()[0] == "at once 0"


def test_other_options_and_another_compiler_are_another_build(build, tmp_path):
    assert build("--f32-only")[0] == "loaded 0"
    assert build("--f32-only")[0] == "at once 0"
    assert build()[0] == "loaded 0"
    assert build(LAYERC_CFLAGS="-g")[0] == "loaded 0"
    assert build(LAYERC_CFLAGS="-g")[0] == "at once 0"
    assert build(CC="false")[0] == "loaded 3"


def test_without_a_cache_it_is_built(build, tmp_path):
    (tmp_path / "file").write_text("")
    assert build(LAYERC_CACHE=str(tmp_path / "file"))[0] == "loaded 0"
    assert build(LAYERC_CACHE=str(tmp_path / "file"))[0] == "loaded 0"


def test_a_mistake_is_told_again(build, tmp_path):
    (tmp_path / "things.py").write_text(SOURCE.replace("x)", "y)"))
    assert build()[0] == "loaded 1"
    assert build()[0] == "loaded 1"
