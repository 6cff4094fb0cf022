"""What a build has worked out is kept: another one asks no pass about a kernel again, and never gets a wrong answer."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from layerc.build import answers, driver
from layerc.build.answers import Answers
from layerc.transpile import emit, passes

HEAD = "from layerc import layer, real\nimport numpy as np\n"
ONE = "\n@layer\ndef one(x: real['N']):\n    return np.sin(x) * 2\n"
TWO = "\n@layer\ndef two(x: real['N M']):\n    return np.sum(x, axis=1, keepdims=True) * x\n"
RUN, FUNCTION = passes.run, emit.function


class Folder:
    """Builds in a folder, and the kernels that were asked about."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self.cache, self.asked = path, path / "cache" / "answers", set[str]()
        patch.setenv("LAYERC_CACHE", str(path / "cache"))
        patch.setenv("LAYERC_CFLAGS", "-O0")
        patch.setattr(passes, "run", self._run)
        patch.setattr(emit, "function", self._function)

    def _run(self, kernel: Any) -> Any:
        self.asked.add(kernel.name)
        return RUN(kernel)

    def _function(self, kernel: Any, dtype: str) -> str:
        self.asked.add(f"{kernel.name} {dtype}")
        return FUNCTION(kernel, dtype)

    def build(self, source: str, into: str = "made", **options: Any) -> tuple[dict[str, bytes], set[str]]:
        """The files of the package; what was asked."""
        self.asked = set()
        (self.path / "things.py").write_text(source)
        made = driver.build(self.path / "things.py", self.path / into, **options)
        return {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()}, self.asked


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return Folder(tmp_path, monkeypatch)


def test_an_edit_asks_about_its_layer_only(folder):
    _, asked = folder.build(HEAD + ONE + TWO)
    assert {"one", "one f32", "one f64", "one_backward", "two", "two_backward f64"} <= asked
    warm, asked = folder.build("# a line more\n" + HEAD + ONE.replace("2", "3") + TWO)
    assert asked == {f"one{part}{dtype}" for part in ("", "_backward") for dtype in ("", " f32", " f64")}
    shutil.rmtree(folder.cache)
    cold, _ = folder.build("# a line more\n" + HEAD + ONE.replace("2", "3") + TWO, into="cold")
    assert warm == cold
    assert folder.build(HEAD + TWO, into="less of it", f32_only=True)[1] == set()


def test_a_layer_more_in_front(folder):
    folder.build(HEAD + TWO)
    _, asked = folder.build(HEAD + ONE + TWO)
    assert not any(name.startswith("two") for name in asked)


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:-9], lambda data: data[:-9] + b"otherwise", lambda data: data[::-1]],
    ids=["empty", "cut off", "another end", "backwards"],
)
def test_what_is_damaged_is_asked_again(folder, damage):
    cold, asked = folder.build(HEAD + ONE)
    for path in folder.cache.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    assert folder.build(HEAD + ONE, into="again") == (cold, asked)
    assert folder.build(HEAD + ONE, into="once more") == (cold, set())


def test_another_compiler_answers_itself(folder, monkeypatch):
    _, asked = folder.build(HEAD + ONE)
    monkeypatch.setattr(answers, "own_files", lambda: [("passes.py", 10, 10)])
    assert folder.build(HEAD + ONE, into="again")[1] == asked


def test_without_a_folder(folder, monkeypatch):
    cold, asked = folder.build(HEAD + ONE)
    (folder.path / "file").write_text("")
    monkeypatch.setenv("LAYERC_CACHE", str(folder.path / "file"))
    assert folder.build(HEAD + ONE, into="again") == (cold, asked)


def test_there_are_never_too_many(folder, monkeypatch):
    folder.build(HEAD + ONE)
    most = sum(path.stat().st_size for path in folder.cache.iterdir()) * 5 // 4
    monkeypatch.setattr(answers, "MOST", most)
    for k in range(3, 6):
        folder.build(HEAD + ONE.replace("2", str(k)))
        assert sum(path.stat().st_size for path in folder.cache.iterdir()) <= most


def test_a_failure_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("LAYERC_CACHE", str(tmp_path))
    kept = Answers().kept(_fails)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            kept(0)
    assert kept(4) == 0.25
    assert len(list((tmp_path / "answers").iterdir())) == 1


def _fails(number: int) -> float:
    return 1 / number


def test_what_is_asked_is_told_apart_by_the_function_and_by_all_arguments(tmp_path, monkeypatch):
    monkeypatch.setenv("LAYERC_CACHE", str(tmp_path))
    both = Answers()
    assert both.kept(os.path.join)("a", "b") == "a/b"
    assert both.kept(os.path.join)("b", "a") == "b/a"
    assert both.kept(os.path.relpath)("a", "b") == "../a"
    assert pickle.loads(pickle.dumps(both.kept(int)("11", base=2))) == 3
