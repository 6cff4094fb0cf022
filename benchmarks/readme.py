"""Copies the tables of the last whole benchmark run into README.md and docs/performance.md, between their bench marks.

python benchmarks/readme.py     after any of `make bench`, `bench-kinds`, `bench-nets`, `bench-compile`, `bench-ways`
                                and `bench-spellings`
"""

import json
import re
import sys
from pathlib import Path

import compile_times
import convolutions
import nets
import report
import spellings
import tables
import ways
from settings import RESULTS

ROOT = Path(__file__).parent.parent
OTHERS = {  # results that are one table or a few, the blocks of their run, and the target that makes them
    "nets": (nets.blocks, "bench-nets"),
    "convolutions": (convolutions.blocks, "bench-nets"),
    "ways": (ways.blocks, "bench-ways"),
    "spellings": (spellings.blocks, "bench-spellings"),
    "compile": (compile_times.blocks, "bench-compile"),
}


def main() -> int:
    path = RESULTS / "bench.json"
    if not path.exists():
        print(f"{path} is missing: run `make bench` first")
        return 1
    run = json.loads(path.read_text())
    ratios, again = report.ratio_block(run), "again: `make bench && python benchmarks/readme.py`"
    _put(ROOT / "README.md", "bench", [ratios], [_where(run), again])
    rest = [block for block in report.sections(run) if block.title not in ("Machine", "Twins tried", ratios.title)]
    _put(ROOT / "docs" / "performance.md", "bench", [ratios, *rest], [*report.machine_lines(run), again])
    if (path := RESULTS / "kinds.json").exists():
        run = json.loads(path.read_text())
        again = "again: `make bench-kinds && python benchmarks/readme.py`"
        _put(ROOT / "docs" / "performance.md", "kinds", _short(run), [_where(run), again])
    for name, (written, command) in OTHERS.items():
        if (path := RESULTS / f"{name}.json").exists():
            run = json.loads(path.read_text())
            again = f"again: `make {command} && python benchmarks/readme.py`"
            _put(ROOT / "docs" / "performance.md", name, written(run), [_where(run), again])
    return 0


def _short(run: dict) -> list[tables.Block]:
    """Machine, ratios and times of the gradient; then what a gradient costs beside a forward, and what it keeps."""
    blocks = report.sections(run)
    return [*blocks[:3], *(block for block in blocks[3:] if block.title in (report.PASSES, report.KEPT))]


def _where(run: dict) -> str:
    facts = run["machine"]
    return f"float32, {facts['threads']} threads, {facts['cpu']}, commit {facts['commit']}, {facts['date'][:10]}"


def _put(page: Path, mark: str, blocks: list[tables.Block], lines: list[str]) -> None:
    """Between the marks of that name."""
    marks = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
    text = tables.markdown(blocks).replace("## ", "### ") + "\n" + "\n".join(f"- {line}" for line in lines) + "\n\n"
    page.write_text(marks.sub(lambda m: m.group(1) + text + m.group(2), page.read_text()))
    print(f"wrote {page}")


if __name__ == "__main__":
    sys.exit(main())
