"""What a library is compiled from: units that know nothing of each other, objects that are kept; nothing is left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from layerc.build import cache, driver, objects, units
from layerc.build.compiler import CompilerFailed, NoCompiler
from layerc.build.units import Compiled, shared, with_lines
from layerc.transpile.errors import InternalError, InvalidFile

HEAD = "from layerc import layer, real\nimport numpy as np\n"
ONE = "\n@layer(backward=None)\ndef one(x: real['N']):\n    return x + 1\n"
TWO = "\n@layer(backward=None)\ndef two(x: real['N']):\n    return np.sum(x) * x\n"
THREE = "\n@layer(backward=None)\ndef three(x: real['N M']):\n    return x @ x.T\n"
SOURCE = HEAD + ONE + TWO + THREE


class Folder:
    """Builds in a folder with a compiler that writes down how it is run."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self.patch, self.log = path, patch, path / "log"
        self.cache = path / "cache" / "objects"
        self.compiler("cc")
        patch.setenv("LAYERC_CACHE", str(path / "cache"))
        patch.setenv("LAYERC_CFLAGS", "-O0")

    def compiler(self, name: str, before: str = "") -> None:
        script = self.path / name
        script.write_text(f'#!/bin/sh\necho "$@" >>{self.log}\n{before}\nexec cc "$@"\n')
        script.chmod(0o755)
        self.patch.setenv("CC", str(script))

    def build(self, source: str = SOURCE, into: str = "made", **options) -> dict[str, bytes]:
        """The files of the package."""
        (self.path / "things.py").write_text(source)
        made = driver.build(self.path / "things.py", self.path / into, **options)
        return {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()}

    def runs(self) -> int:
        """How many C files were compiled since the last time."""
        said = self.log.read_text() if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        return len(re.findall(r" -c lc_\w+\.c ", said))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(units, "SMALL", 0)  # so that each layer has a unit of its own
    return Folder(tmp_path, monkeypatch)


# -- objects that are kept ----------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"portable": True}, {"f32_only": True}], ids=str)
def test_the_same_package_without_a_run_of_the_compiler(folder, options):
    cold = folder.build(**options)
    assert folder.runs() > 2
    assert folder.build(into="again", **options) == cold
    assert folder.runs() == 0


@pytest.mark.parametrize(
    ("source", "runs"),
    [
        (HEAD + ONE + TWO.replace("* x", "- x") + THREE, 1),
        ("# said before\n" * 9 + SOURCE, 0),
        (HEAD + THREE + TWO + ONE, 1),  # what Python calls names them in this order
        (HEAD + ONE + THREE, 1),
        (HEAD + ONE.replace("def one", "def zero") + SOURCE.removeprefix(HEAD), 2),
    ],
    ids=["an edit", "other lines", "another order", "one less", "one more before them"],
)
def test_other_layers_are_not_compiled_again(folder, source, runs):
    folder.build()
    folder.runs()
    warm = folder.build(source)
    assert folder.runs() == runs
    shutil.rmtree(folder.cache.parent)
    assert folder.build(source, into="cold") == warm


def test_other_flags_and_another_compiler_are_other_objects(folder):
    folder.build()
    every = folder.runs()
    assert every == 4
    folder.patch.setenv("LAYERC_CFLAGS", "-O0 -DOWN")
    folder.build()
    assert folder.runs() == every
    folder.compiler("other")
    folder.build(into="other made")
    assert folder.runs() == every
    folder.patch.setattr(cache, "processor", lambda: "another")
    folder.build(into="elsewhere")
    assert folder.runs() == every


def test_a_header_that_has_changed(folder):
    header = folder.path / "a folder" / "own.h"
    header.parent.mkdir()
    header.write_text("#define LC_OWN 1\n")
    folder.patch.setenv("LAYERC_CFLAGS", f"-O0 '-I{header.parent}' -include own.h")
    folder.build()
    assert folder.runs() == 4
    folder.build(into="again")
    assert folder.runs() == 0
    header.write_text("#define LC_OWN 1\n/* said differently */\n")
    folder.build(into="once more")
    assert folder.runs() == 3


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:-9], lambda data: data[:-9] + b"otherwise", lambda data: b"\xff\n" + data],
    ids=["empty", "cut off", "another end", "no digest"],
)
def test_a_damaged_object_is_made_again(folder, damage):
    cold = folder.build()
    for path in folder.cache.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    folder.runs()
    assert folder.build(into="again") == cold
    assert folder.runs() == 4
    assert folder.build(into="once more") == cold
    assert folder.runs() == 0


def test_without_a_folder_for_them(folder):
    cold = folder.build()
    (folder.path / "file").write_text("")
    folder.patch.setenv("LAYERC_CACHE", str(folder.path / "file"))
    assert folder.build(into="again") == cold
    folder.patch.setenv("LAYERC_CACHE", str(folder.path / "cache"))
    shutil.rmtree(folder.cache)
    folder.cache.write_text("")
    assert folder.build(into="once more") == cold


def test_there_are_never_too_many(folder):
    folder.build()
    sizes = [path.stat().st_size for path in folder.cache.iterdir()]
    most = sum(sizes) * 5 // 4
    folder.patch.setattr(objects, "MOST", most)
    for k in range(3):
        folder.build(SOURCE.replace("x + 1", f"x + {k}.5"), into="again")
        assert sum(path.stat().st_size for path in folder.cache.iterdir()) <= most
    folder.runs()
    folder.build(SOURCE.replace("x + 1", "x + 2.5"), into="last")
    assert folder.runs() == 0


def test_what_was_used_last_stays(tmp_path):
    for age, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    cache.shrink(tmp_path, 14)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_two_builds_at_once(folder):
    (folder.path / "things.py").write_text(SOURCE)
    command = [sys.executable, "-m", "layerc", "build", "things.py", "-o"]
    both = [subprocess.Popen([*command, name], cwd=folder.path, stdout=subprocess.DEVNULL) for name in ("a", "b")]
    assert [process.wait(60) for process in both] == [0, 0]
    folder.runs()
    files = [{p.name: p.read_bytes() for p in (folder.path / name).iterdir() if p.is_file()} for name in ("a", "b")]
    assert files[0] == files[1]
    assert [path.name for path in folder.cache.iterdir() if path.name.startswith(".")] == []


def test_a_debugger_finds_the_lines_of_the_one_file(folder):
    folder.patch.setenv("LAYERC_CFLAGS", "-g -O0")
    made = folder.build()
    assert not folder.cache.exists()  # such an object names the folder where it was made
    library, lines = folder.path / "made" / "_native.abi3.so", made["things.c"].decode().splitlines()
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    for name in ("one_f32", "three_f64"):
        address = next(line.split()[0] for line in symbols.splitlines() if line.endswith(f" T {name}"))
        place = subprocess.run(["addr2line", "-e", library, address], capture_output=True, text=True, check=True).stdout
        file, number = re.fullmatch(r"(?:.*/)?(\S+):(\d+).*\n", place).groups()
        assert file == "things.c"
        assert lines[int(number) - 1].startswith(f"int LC_NAME({name})(") or lines[int(number) - 1] == "{"


# -- nothing is left behind ---------------------------------------------------------------------------------
def lives(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


@pytest.mark.parametrize("fault", [driver.passes.IRError("odd"), KeyboardInterrupt()], ids=["a fault", "an interrupt"])
def test_a_late_fault_leaves_no_process_and_no_file(folder, fault):
    begun, scratch = folder.path / "begun", folder.path / "scratch"
    scratch.mkdir()
    folder.patch.setattr(tempfile, "tempdir", str(scratch))
    folder.compiler("slow", f'case "$*" in *"-c lc_"*) sleep 60 & echo $$ $! >>{begun}; wait;; esac')
    run = driver.passes.run

    def late(kernel):
        if kernel.name != "three":
            return run(kernel)
        until = time.monotonic() + 20
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.01)
        raise fault

    folder.patch.setattr(driver.passes, "run", late)
    start = time.monotonic()
    with pytest.raises((InternalError, KeyboardInterrupt)):
        folder.build()
    assert time.monotonic() - start < 30
    assert begun.exists()
    assert not any(lives(int(word)) for word in begun.read_text().split())
    assert list(scratch.iterdir()) == []
    assert not (folder.path / "made").exists()
    assert not folder.cache.exists()


def test_no_compiler_runs_for_a_file_with_mistakes(folder):
    with pytest.raises(InvalidFile):
        folder.build(SOURCE.replace("x @ x.T", "x @ x"))
    assert folder.runs() == 0
    folder.patch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoCompiler):
        folder.build()
    assert not (folder.path / "made").exists()


def test_c_that_is_refused(folder):
    folder.compiler("picky", 'case "$*" in *"-c lc_"*) echo no, thanks; exit 1;; esac')
    with pytest.raises(CompilerFailed, match="no, thanks"):
        folder.build()
    assert not (folder.path / "made").exists()
    assert not folder.cache.exists()


# -- which functions share a unit ---------------------------------------------------------------------------
def functions(layer: str, *sizes: int) -> list[Compiled]:
    return [Compiled(layer, None, "f32", "x" * size) for size in sizes]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([("large", 30_000, 30_000)], ["large large"]),
        ([("large", 90_000, 20_000, 70_000, 20_000)], ["large", "large large", "large"]),
        ([("huge", 120_000, 1)], ["huge", "huge"]),
        ([("s0", 100), ("large", 30_000), ("s2", 100)], ["large", "s0 s2"]),
        ([("s0", 15_000), ("s2", 15_000), ("s4", 15_000), ("s5", 15_000)], ["s0 s2 s4", "s5"]),
        ([("s0", 100), ("s1", 100), ("s2", 100)], ["s0 s1", "s2"]),
        ([], []),
    ],
    ids=["a layer", "cut", "a function", "small ones", "full", "by name", "nothing"],
)
def test_units(layers, expected):
    found = shared(functions(name, *sizes) for name, *sizes in layers)
    assert [" ".join(f.layer for f in unit) for unit in found] == expected


def test_a_small_layer_more_changes_few_units():
    names = [f"layer{k}" for k in range(200)]
    before = {" ".join(f.layer for f in unit) for unit in shared(functions(name, 1000) for name in names)}
    after = {" ".join(f.layer for f in unit) for unit in shared(functions(name, 1000) for name in ["more", *names])}
    assert 10 < len(before) < 60
    assert len(after - before) <= 3


def test_lines():
    whole = "a\nb\nint f;\nint g;\n"
    assert with_lines(["b", "int g;"], whole, 'odd".c') == '#line 2 "odd\\".c"\nb\n#line 4 "odd\\".c"\nint g;\n'
