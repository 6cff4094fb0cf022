"""Files of mistakes: one run finds all of them, each on the line that says so, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parent / "mistakes").glob("*.py"))
DRAWN = re.compile(r"^(?P<file>\S+\.py):(?P<line>\d+):(?P<column>\d+): error\[(?P<kind>[a-z]+)\]: (?P<message>.*)$")


def expected(path: Path) -> list[tuple[int, str, str]]:
    """Line, kind and a part of the message, of every `# E kind: part`."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for note in re.findall(r"# E ?((?:[^#]|#(?! [EH]))*)", line):
            kind, _, part = note.strip().partition(": ")
            found.append((number, kind, part))
    return found


def build(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "layerc", "build", str(path), "-o", str(folder / "out")]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_mistake_is_found_in_one_run(path: Path, tmp_path: Path) -> None:
    done = build(path, tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    lines = done.stderr.splitlines()
    drawn = [m for line in lines if (m := DRAWN.match(line))]
    wanted = expected(path)
    for mistake in drawn:
        line = int(mistake["line"])
        fits = [w for w in wanted if w[0] == line and w[1] in ("", mistake["kind"]) and w[2] in done.stderr]
        assert fits, f"not expected: {mistake[0]}"
        wanted.remove(next((w for w in fits if w[2] in mistake["message"]), fits[0]))
    assert not wanted, f"not found: {wanted}\n{done.stderr}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_mistake_is_drawn(path: Path, tmp_path: Path) -> None:
    """The line as it stands in the file, and a caret below that line, where the column says."""
    source = path.read_text().splitlines()
    lines = build(path, tmp_path).stderr.splitlines()
    for position, line in enumerate(lines):
        if (mistake := DRAWN.match(line)) is None:
            continue
        number, column = int(mistake["line"]), int(mistake["column"])
        assert lines[position + 1] == f"{number:>5} | {source[number - 1]}"
        caret = lines[position + 2]
        assert re.fullmatch(r"      \| [ \t]*\^+", caret), caret
        assert caret.index("^") == len("      | ") + column - 1


@pytest.mark.parametrize("path", [f for f in FILES if "# H " in f.read_text()], ids=lambda p: p.stem)
def test_the_help_says_what_to_write(path: Path, tmp_path: Path) -> None:
    """`# H part` of the help below the caret."""
    lines = build(path, tmp_path).stderr.splitlines()
    helps = {int(m["line"]): lines[k + 3] for k, line in enumerate(lines) if (m := DRAWN.match(line))}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for part in re.findall(r"# H (.*)$", line):
            assert part in helps[number], f"line {number}: {helps[number]}"
