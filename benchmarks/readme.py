"""Copies the tables of the last whole benchmark run into README.md, between its bench marks.

python benchmarks/readme.py        after `make bench`; nothing is typed by hand
"""

import json
import re
import sys
from pathlib import Path

import report
import tables
from settings import RESULTS

README = Path(__file__).parent.parent / "README.md"
MARKS = re.compile(r"(<!-- bench -->\n).*?(<!-- /bench -->)", re.DOTALL)


def main() -> int:
    path = RESULTS / "bench.json"
    if not path.exists():
        print(f"{path} is missing: run `make bench` first")
        return 1
    run = json.loads(path.read_text())
    blocks = [
        report.time_block(run, "gradient", "Forward and every gradient, float32"),
        report.ratio_block(run),
    ]
    lines = [*report.machine_lines(run), "again: `make bench && python benchmarks/readme.py`"]
    text = tables.markdown(blocks).replace("## ", "### ") + "\n" + "\n".join(f"- {line}" for line in lines) + "\n\n"
    README.write_text(MARKS.sub(lambda m: m.group(1) + text + m.group(2), README.read_text()))
    print(f"wrote {README}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
