"""Lines of a program."""

from __future__ import annotations

Lines = list[str]


def indented(lines: Lines) -> Lines:
    return [f"    {line}" for line in lines or ["pass"]]
