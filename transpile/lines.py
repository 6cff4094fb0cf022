"""The lines of a source as Python's parser counts them."""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines_of(text: str, keepends: bool = False) -> list[str]:
    """Like `str.splitlines`, which also parts lines where Python does not: at form feeds, U+2028 and others."""
    found = _LINE.findall(text)
    return found if keepends else [line.rstrip("\r\n") for line in found]


__all__ = ["lines_of"]
