"""Puts real output into the markdown files here: `python docs/quoted.py` (a test checks that nothing is stale).

A code block after a line `<!-- $ layerc grad docs/layers.py:huber -->` is what that command prints.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

from layerc.cli import main

HERE = Path(__file__).parent
BLOCK = re.compile(r"(<!-- \$ layerc (?P<command>.*?) -->\n```\w*\n)(?P<output>.*?)(```\n)", re.DOTALL)


def printed(command: str) -> str:
    """What `layerc <command>` prints, run in the checkout."""
    out = io.StringIO()
    with contextlib.chdir(HERE.parent), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(command.split())
    return out.getvalue().strip("\n") + "\n"


def updated(text: str) -> str:
    return BLOCK.sub(lambda found: found[1] + printed(found["command"]) + found[4], text)


if __name__ == "__main__":
    for path in [Path(p) for p in sys.argv[1:]] or sorted(HERE.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        if (after := updated(before)) != before:
            path.write_text(after, encoding="utf-8")
            print("updated", path)
