"""Every Python block of docs/coming-from.md runs, section by section, as its reader would run it."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "coming-from.md"
BLOCK = re.compile(r"(?:<!-- file (?P<file>\w+\.py) -->\n)?```python\n(?P<code>.*?)```\n", re.DOTALL)
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE))

for needed in ("sklearn", "h5py", "safetensors"):
    pytest.importorskip(needed)


def test_the_page_has_its_sections():
    assert list(SECTIONS) == ["Mocha.jl", "Caffe", "MATLAB", "Wolfram"]
    assert all(BLOCK.search(body) for body in SECTIONS.values())


@pytest.mark.parametrize("title", SECTIONS)
def test_section(title, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    values: dict = {}
    for block in BLOCK.finditer(SECTIONS[title]):
        if block["file"]:
            Path(block["file"]).write_text(block["code"])
            build = [sys.executable, "-m", "layerc.cli", "build", block["file"]]
            done = subprocess.run(build, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            continue
        first = PAGE.read_text().count("\n", 0, PAGE.read_text().index(block["code"]))
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * first + block["code"], str(PAGE), "exec"), values)


def test_names_of_layers_in_the_tables_exist():
    """What the right columns call is there."""
    import layerc
    import layerc.runtime as runtime

    known = {*dir(runtime), *dir(layerc), *dir(runtime.LRPolicy), *dir(runtime.DataTransformers), *dir(runtime.Neurons)}
    known |= {"Type", "Prelu"}
    for title, body in SECTIONS.items():
        for row in re.findall(r"^\| .* \|$", body, re.MULTILINE)[2:]:
            right = row.strip("| ").rsplit(" | ", 1)[-1]
            for name in re.findall(r"\b([A-Z]\w+)\(", right):
                assert name in known, f"{title}: {name} in {row}"
