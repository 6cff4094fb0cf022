"""Blocks of a report (title, lines, table) as aligned text and as markdown, and the files of a run."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Block:
    title: str
    lines: list[str] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


def text(blocks: list[Block]) -> str:
    parts = []
    for block in blocks:
        parts += [block.title, "-" * len(block.title), *block.lines]
        if block.header:
            parts += _aligned([block.header, *block.rows])
        parts.append("")
    return "\n".join(parts)


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def markdown(blocks: list[Block]) -> str:
    parts = []
    for block in blocks:
        parts += [f"## {block.title}", "", *(f"- {line}" for line in block.lines), ""]
        if block.header:
            rows = [block.header, ["---"] * len(block.header), *block.rows]
            parts += ["| " + " | ".join(row) + " |" for row in rows] + [""]
    return "\n".join(parts)


def write(blocks: list[Block], run: dict[str, Any], directory: Path, name: str) -> list[Path]:
    """name.txt, name.md and name.json: what was printed, and the run that it comes from."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {"txt": text(blocks), "md": markdown(blocks), "json": json.dumps(run, indent=1)}
    for ending, content in files.items():
        (directory / f"{name}.{ending}").write_text(content + "\n")
    return [directory / f"{name}.{ending}" for ending in files]
